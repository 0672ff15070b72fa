"""The model directory: what is inside, and where it came from."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunesmith import _core
from tunesmith._core import AtomicWriter, RuleTable
from tunesmith.errors import InputError

FORMAT = 1


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
    for side in ("source", "target"):
        recorded = config[f"{side}_side"]
        lines += [
            "",
            f"[{side}]",
            *(
                f"{key} = {_text(recorded[key])}"
                for key in ("language", "tokenize", "case", "model")
            ),
        ]
    lines += ["", "[made_from]"]
    lines += [f"# {item}" for item in config["inputs"]]
    lines += [f"pairs = {stages['text']['pairs']}", f'aligner = "{config["aligner"]}"']
    lines += ["", "[seconds]", *(f"{name} = {facts['seconds']}" for name, facts in stages.items())]
    path = folder / "model.toml"
    with AtomicWriter(str(path)) as out:
        out.write("\n".join(lines) + "\n")
    return path


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
        raise InputError(f"not a model description: {error}", str(path)) from None
    if told.get("format") != FORMAT:
        raise InputError(
            f"a model of format {told.get('format')}, not {FORMAT}",
            str(path),
            remedy="train it again with this version",
        )
    return told


def rule_tables(folder: Path) -> dict[str, RuleTable]:
    """Return the rule tables of a model by kind."""
    files = read_model(folder)["files"]
    return {
        name.removesuffix(".rules"): RuleTable(folder / name)
        for name in files
        if name.endswith(".rules")
    }


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
