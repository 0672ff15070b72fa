"""The model directory: what is inside, and where it came from."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tunesmith import _core
from tunesmith._core import AtomicWriter, RuleTable
from tunesmith.errors import InputError, check_regular
from tunesmith.limits import read_whole
from tunesmith.runs.config import CHECKED, fingerprint
from tunesmith.training.text import PIECES, TextSide, read_case

FORMAT = 1
SIDES = ("source", "target")
PHRASES, HIERO, LM = "phrases.rules", "hiero.rules", "lm.tlm"
REPAIR = "correct it, or delete it and start the training again, which writes it anew"


def pieces_file(side: str) -> str:
    """Return the name of the file with a side's pieces."""
    return f"pieces.{side}.model"


def case_file(side: str) -> str:
    """Return the name of the file with a side's truecasing table."""
    return f"case.{side}"


def write_model(folder: Path, config: Mapping[str, Any], summary: Mapping[str, Any]) -> Path:
    """Write `model.toml`; call it last, its presence says that the model is whole."""
    stages = summary["stages"]
    lines = [
        "# A translation model; made and read by tunesmith.",
        f"format = {FORMAT}",
        f'version = "{_core.__version__}"',
        f'kind = "{config["kind"]}"',
        "",
        "[files]",
        *(f'"{name}" = {size}  # bytes' for name, size in summary["files"].items()),
        "",
        "[digests]",
        *(f'"{name}" = "{_digest(folder / name)}"' for name in summary["files"]),
    ]
    for name in SIDES:
        side: Mapping[str, Any] = config[f"{name}_side"]
        recorded = {key: side[key] for key in ("language", "tokenize", "case")}
        if side["tokenize"] in PIECES:
            recorded["pieces"] = pieces_file(name)
        if side["case"] == "true":
            recorded["truecase"] = case_file(name)
        lines += ["", f"[{name}]", *(f"{key} = {_text(text)}" for key, text in recorded.items())]
        lines += ["# Regular expressions of what is not language and comes out as it went in."]
        lines += ["protected = [", *(f"    {_text(each)}," for each in side["protected"]), "]"]
    lines += ["", "[features]", "# Sparse ones, by their templates (docs/features.md)."]
    lines += [f"templates = [{', '.join(map(_text, _templates(folder)))}]"]
    lines += ["", "[made_from]", f"pairs = {stages['text']['pairs']}"]
    lines += [f"aligner = {_text(stages.get('align', {}).get('aligner', 'given'))}"]
    for item in config["inputs"]:
        lines += ["", "[[made_from.inputs]]", f"role = {_text(item['role'])}"]
        lines += [f"path = {_text(item['path'])}", f"size = {item['size']}"]
        lines += [f"sha256 = {_text(item['sha256'])}"]
    lines += ["", "[seconds]", *(f"{name} = {facts['seconds']}" for name, facts in stages.items())]
    path = folder / "model.toml"
    with AtomicWriter(str(path)) as out:
        out.write("\n".join(lines) + "\n")
    return path


def _templates(folder: Path) -> list[str]:
    """Return what somebody chose for a model that is written again."""
    if not (folder / "model.toml").is_file():
        return []
    return list(_description(folder).get("features", {}).get("templates", []))


def read_model(folder: Path) -> dict[str, Any]:
    """Return what `model.toml` says; refuse a folder without a whole model, and files in it that
    are not the model's own.
    """
    told = _description(folder)
    _check_files(folder, told["files"], told.get("digests", {}))
    return told


def _description(folder: Path) -> dict[str, Any]:
    path = folder / "model.toml"
    check_regular(path)
    if not path.is_file():
        raise InputError(
            "there is no model here: model.toml is missing",
            str(folder),
            remedy="give the folder that was given to --model; an unfinished training goes on when "
            "it is started again",
        )
    try:
        told = tomllib.loads(read_whole(path).decode("utf-8").replace("\r\n", "\n"))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a model description: {error}", str(path), remedy=REPAIR) from None
    if told.get("format") != FORMAT:
        raise InputError(
            f"a model of format {told.get('format')}, not {FORMAT}",
            str(path),
            remedy="train it again with this version",
        )
    for name in ("files", *SIDES):
        if not isinstance(told.get(name), dict):
            raise InputError(f"there is no [{name}]", str(path), remedy=REPAIR)
    parts = (told[side].get(key) for side in SIDES for key in ("pieces", "truecase"))
    for name in (*told["files"], *(name for name in parts if isinstance(name, str))):
        check_regular(folder / name)
    _check_features(told.get("features", {}), str(path))
    return told


def _check_files(folder: Path, sizes: Mapping[str, object], digests: object) -> None:
    """Refuse files other than those the model was made with; a missing one is named by its reader.

    A model without digests was made before there were any, and is known by its sizes.
    """
    if not isinstance(digests, dict):
        raise InputError("digests is not a table", str(folder / "model.toml"), remedy=REPAIR)
    for name in {**sizes, **digests}:
        path = inside(folder, name)
        if not path.is_file():
            continue
        same = path.stat().st_size == sizes.get(name)
        if not same or (name in digests and _digest(path) != digests[name]):
            raise InputError(
                "this is not the file that the model was made with: "
                f"its {'digest' if same else 'size'} differs from the one in model.toml",
                str(path),
                remedy="put the model's own file back, or train the model again; if you changed "
                "the file on purpose, correct its size and delete its digest in model.toml",
            )


def inside(folder: Path, name: str) -> Path:
    """Return the path of a file of the model; refuses a name that leads out of the folder."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise InputError(
            f"the file {json.dumps(name)} is outside the model's folder",
            str(folder / "model.toml"),
            remedy="copy the file into the folder and name it without a path",
        )
    return folder / name


def _digest(path: Path) -> str:
    """Return a SHA-256 of a file, or of its ends where the file has a checksum of the rest."""
    told = fingerprint(path, ends=path.suffix in CHECKED)
    return str(told.get("sha256") or told["sha256_of_ends"])


def _check_features(told: object, file: str) -> None:
    names = told.get("templates", []) if isinstance(told, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(
            "templates in [features] is not a list of names",
            file,
            remedy='write templates = ["rule-id", "pairs"], for instance',
        )
    check_templates(names, file)


def check_templates(names: Sequence[str], file: str) -> None:
    """Refuse names that are neither of a template nor of a set, and say where they stand."""
    known = {known[0] for known in (*_core.TEMPLATES, *_core.TEMPLATE_SETS)}
    for name in names:
        if name not in known:
            raise InputError(
                f'no features are named "{name}"',
                file,
                remedy="correct the name in templates; tunesmith features lists those there are",
            )


def text_sides(folder: Path) -> tuple[TextSide, TextSide]:
    """Return how the model's source and target text are prepared and restored.

    >>> source, target = text_sides(Path("model"))  # doctest: +SKIP
    >>> target.restore(translate(source.prepare("Das ist ein Haus.")))  # doctest: +SKIP
    """
    told = read_model(folder)
    source, target = (_side(folder, name, told[name]) for name in SIDES)
    return source, target


def _side(folder: Path, name: str, told: Mapping[str, Any]) -> TextSide:
    file = str(folder / "model.toml")
    wanted = ["language", "tokenize", "case"]
    wanted += ["pieces"] if told.get("tokenize") in PIECES else []
    wanted += ["truecase"] if told.get("case") == "true" else []
    for key in wanted:
        if not isinstance(told.get(key), str):
            raise InputError(f"[{name}] does not tell its {key}", file, remedy=REPAIR)
    # Models made before text was protected do not have them.
    protected = told.get("protected", [])
    if not isinstance(protected, list) or not all(isinstance(each, str) for each in protected):
        raise InputError(f"protected in [{name}] is not a list of strings", file, remedy=REPAIR)
    try:
        side = TextSide(
            told["language"],
            told["tokenize"],
            told["case"],
            str(inside(folder, told["pieces"])) if "pieces" in wanted else "",
            protected=tuple(protected),
        )
    except InputError as error:
        raise InputError(f"[{name}]: {error.message}", file, remedy=error.remedy) from None
    return read_case(side, inside(folder, told["truecase"])) if "truecase" in wanted else side


def rule_tables(folder: Path) -> dict[str, RuleTable]:
    """Return the rule tables of a model by kind."""
    files = read_model(folder)["files"]
    return {
        name.removesuffix(".rules"): RuleTable(inside(folder, name))
        for name in files
        if name.endswith(".rules")
    }


def _text(value: str) -> str:
    # A JSON string is a TOML string too, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
