"""The model directory: what is inside, and where it came from."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tunesmith import _core
from tunesmith._core import AtomicWriter, RuleTable
from tunesmith.errors import InputError
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
    return list(read_model(folder).get("features", {}).get("templates", []))


def read_model(folder: Path) -> dict[str, Any]:
    """Return what `model.toml` says; refuse a folder without a whole model."""
    path = folder / "model.toml"
    if not path.is_file():
        raise InputError(
            "there is no model here: model.toml is missing",
            str(folder),
            remedy="give the folder that was given to --model; an unfinished training goes on when "
            "it is started again",
        )
    try:
        told = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
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
    _check_features(told.get("features", {}), str(path))
    return told


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
            str(folder / told["pieces"]) if "pieces" in wanted else "",
            protected=tuple(protected),
        )
    except InputError as error:
        raise InputError(f"[{name}]: {error.message}", file, remedy=error.remedy) from None
    return read_case(side, folder / told["truecase"]) if "truecase" in wanted else side


def rule_tables(folder: Path) -> dict[str, RuleTable]:
    """Return the rule tables of a model by kind."""
    files = read_model(folder)["files"]
    return {
        name.removesuffix(".rules"): RuleTable(folder / name)
        for name in files
        if name.endswith(".rules")
    }


def _text(value: str) -> str:
    # A JSON string is a TOML string too, but for DEL, which TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
