"""The model directory: its files, and the data and options they were made from."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from tunesmith import _core, plugins
from tunesmith._core import AtomicWriter, RuleTable
from tunesmith.errors import InputError, check_regular
from tunesmith.files.fingerprint import CHECKED, fingerprint
from tunesmith.files.text import read_whole
from tunesmith.training.text import PIECES, TextSide, read_case

FORMAT = 1
SIDES = ("source", "target")
PHRASES, HIERO, LM = "phrases.rules", "hiero.rules", "lm.tlm"
_HEADER = """\
# A translation model; made and read by tunesmith.
# [files] has sizes in bytes. `protected` has regular expressions of text that is not language and
# stays unchanged. `templates` has the templates of sparse features (docs/features.md).

"""
REPAIR = "correct it, or delete it and start the training again, which writes it anew"


def pieces_file(side: str) -> str:
    """Return the name of the file with a side's pieces."""
    return f"pieces.{side}.model"


def case_file(side: str) -> str:
    """Return the name of the file with a side's truecasing table."""
    return f"case.{side}"


def write_model(folder: Path, config: Mapping[str, Any], summary: Mapping[str, Any]) -> Path:
    """Write `model.toml`; call this last, because its presence marks the model as complete."""
    stages = summary["stages"]
    align = stages.get("align", {})
    document = {
        "format": FORMAT,
        "version": _core.__version__,
        "kind": config["kind"],
        "files": dict(summary["files"]),
        "digests": {name: _digest(folder / name) for name in summary["files"]},
        **{name: _recorded(name, config[f"{name}_side"]) for name in SIDES},
        "features": {"templates": _templates(folder)},
        "made_from": {
            "pairs": stages["text"]["pairs"],
            "aligner": align.get("aligner", "given"),
            "inputs": [
                {key: item[key] for key in ("role", "path", "size", "sha256")}
                for item in config["inputs"]
            ],
        },
        "seconds": {name: facts["seconds"] for name, facts in stages.items()},
    }
    path = folder / "model.toml"
    with AtomicWriter(str(path)) as out:
        out.write(_HEADER + tomli_w.dumps(document))
    return path


def _recorded(name: str, side: Mapping[str, Any]) -> dict[str, Any]:
    """Return how the text of a side was prepared."""
    recorded = {key: side[key] for key in ("language", "tokenize", "case")}
    if side["tokenize"] in PIECES:
        recorded["pieces"] = pieces_file(name)
    if side["case"] == "true":
        recorded["truecase"] = case_file(name)
    return {**recorded, "protected": list(side["protected"])}


def _templates(folder: Path) -> list[str]:
    """Return the templates that were chosen for a model that is now written again."""
    if not (folder / "model.toml").is_file():
        return []
    return list(_description(folder).get("features", {}).get("templates", []))


def read_model(folder: Path) -> dict[str, Any]:
    """Return the content of `model.toml`; raise if the model is incomplete or a file changed."""
    description = _description(folder)
    _check_files(folder, description["files"], description.get("digests", {}))
    return description


def _description(folder: Path) -> dict[str, Any]:
    path = folder / "model.toml"
    check_regular(path)
    if not path.is_file():
        raise InputError(
            "there is no model here: model.toml is missing",
            str(folder),
            remedy="give the folder that was given to --model; an unfinished training continues "
            "when it is started again",
        )
    try:
        description = tomllib.loads(read_whole(path).decode("utf-8").replace("\r\n", "\n"))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a model description: {error}", str(path), remedy=REPAIR) from None
    if description.get("format") != FORMAT:
        raise InputError(
            f"a model of format {description.get('format')}, not {FORMAT}",
            str(path),
            remedy="train it again with this version",
        )
    for name in ("files", *SIDES):
        if not isinstance(description.get(name), dict):
            raise InputError(f"there is no [{name}]", str(path), remedy=REPAIR)
    parts = (description[side].get(key) for side in SIDES for key in ("pieces", "truecase"))
    for name in (*description["files"], *(name for name in parts if isinstance(name, str))):
        check_regular(folder / name)
    _check_features(description.get("features", {}), str(path))
    return description


def _check_files(folder: Path, sizes: Mapping[str, object], digests: object) -> None:
    """Raise if a file is not the one the model was made with; missing files are not checked here.

    Models of earlier versions have no digests: only the sizes of their files are checked.
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
    """Return the path of a file of the model; raise if it is outside the folder."""
    if Path(name).is_absolute() or ".." in Path(name).parts:
        raise InputError(
            f"the file {json.dumps(name)} is outside the model's folder",
            str(folder / "model.toml"),
            remedy="copy the file into the folder and name it without a path",
        )
    return folder / name


def _digest(path: Path) -> str:
    """Return a SHA-256 of a file, or of its ends if the file has a checksum of the rest."""
    found = fingerprint(path, ends=path.suffix in CHECKED)
    return str(found.get("sha256") or found["sha256_of_ends"])


def _check_features(features: object, file: str) -> None:
    names = features.get("templates", []) if isinstance(features, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(
            "templates in [features] is not a list of names",
            file,
            remedy='write templates = ["rule-id", "pairs"], for instance',
        )
    check_templates(names, file)


OWN_TEMPLATES: dict[str, Callable[[], Any]] = {}
"""Templates of installed packages by name; `tunesmith.decode.templates.register` adds them."""


def check_templates(names: Sequence[str], file: str) -> None:
    """Raise if a name in `file` is neither a template nor a set of templates."""
    known = {known[0] for known in (*_core.TEMPLATES, *_core.TEMPLATE_SETS)}
    if not known.issuperset(names):
        plugins.load("templates")
        known |= OWN_TEMPLATES.keys()
    for name in names:
        if name not in known:
            raise InputError(
                f'no features are named "{name}"',
                file,
                remedy="correct the name in templates; tunesmith features lists all names",
            )


def text_sides(folder: Path) -> tuple[TextSide, TextSide]:
    """Return how the model's source and target text are prepared and restored.

    >>> source, target = text_sides(Path("model"))  # doctest: +SKIP
    >>> target.restore(translate(source.prepare("Das ist ein Haus.")))  # doctest: +SKIP
    """
    model = read_model(folder)
    source, target = (_side(folder, name, model[name]) for name in SIDES)
    return source, target


def _side(folder: Path, name: str, table: Mapping[str, Any]) -> TextSide:
    file = str(folder / "model.toml")
    wanted = ["language", "tokenize", "case"]
    wanted += ["pieces"] if table.get("tokenize") in PIECES else []
    wanted += ["truecase"] if table.get("case") == "true" else []
    for key in wanted:
        if not isinstance(table.get(key), str):
            raise InputError(f"[{name}] has no {key}", file, remedy=REPAIR)
    # Models of earlier versions do not have them.
    protected = table.get("protected", [])
    if not isinstance(protected, list) or not all(isinstance(each, str) for each in protected):
        raise InputError(f"protected in [{name}] is not a list of strings", file, remedy=REPAIR)
    try:
        side = TextSide(
            table["language"],
            table["tokenize"],
            table["case"],
            str(inside(folder, table["pieces"])) if "pieces" in wanted else "",
            protected=tuple(protected),
        )
    except InputError as error:
        raise InputError(f"[{name}]: {error.message}", file, remedy=error.remedy) from None
    return read_case(side, inside(folder, table["truecase"])) if "truecase" in wanted else side


def rule_tables(folder: Path) -> dict[str, RuleTable]:
    """Return the rule tables of a model by kind."""
    files = read_model(folder)["files"]
    return {
        name.removesuffix(".rules"): RuleTable(inside(folder, name))
        for name in files
        if name.endswith(".rules")
    }
