"""`tunesmith presets`: the tuners and their options."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, out, table
from tunesmith.errors import InputError
from tunesmith.papers import Settings, find_paper
from tunesmith.presets import explained, find_preset, preset_names

EXAMPLES = (
    "Examples:\n\n$ tunesmith presets\n\n$ tunesmith presets rm\n\n"
    "$ tunesmith presets --as eidelman2013"
)


def presets(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A tuner, to see its options.")
    ] = None,
    as_: Annotated[
        str | None, o.option("--as", "PAPER", "Show how a paper set its tuners.")
    ] = None,
    json: o.Json = False,
) -> None:
    """List the tuners, or explain one."""
    if as_ is not None:
        if name is not None:
            raise InputError("both a tuner and a paper", remedy="choose one of the two")
        show_paper(as_, json)
        return
    known = preset_names() if name is None else [name]
    if json:
        emit(
            {
                key: {option: entry._asdict() for option, entry in explained(key).items()}
                for key in known
            }
        )
        return
    if name is None:
        rows = table("", "tuner", "what it does")
        rows.columns[1].justify = "left"
        rows.columns[1].no_wrap = False
        for key in known:
            rows.add_row(key, (inspect.getdoc(find_preset(key)) or "").split("\n")[0])
        out.print(rows)
        return
    out.print(inspect.getdoc(find_preset(name)) or "")
    rows = table("\nOptions (--set key=value)", "key", "default", "allowed", "meaning")
    for column in rows.columns[2:]:
        column.justify, column.no_wrap = "left", False
    for key, (default, allowed, meaning) in explained(name).items():
        rows.add_row(key, "auto" if default is None else shown(default), allowed, meaning)
    out.print(rows)


def shown(value: object) -> str:
    """Return a default as a user types it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def show_paper(name: str, json: bool) -> None:
    """Print how a paper ran its tuners, as options of `tunesmith tune`."""
    paper = find_paper(name)
    if json:
        emit(
            {"reference": paper.reference, "open": paper.open}
            | {"tuners": {key: as_options(each) for key, each in paper.tuners.items()}}
        )
        return
    out.print(paper.reference)
    rows = table(f"\ntunesmith tune --as {name}", "tuner", "stands for")
    rows.columns[1].justify, rows.columns[1].no_wrap = "left", False
    for key, each in paper.tuners.items():
        rows.add_row(f"-t {key}", " ".join(as_options(each)) or "the defaults")
    out.print(rows)
    out.print(f"left open by the paper: {paper.open}")


def as_options(settings: Settings) -> list[str]:
    """Return settings as a user would type them.

    >>> as_options(Settings(options={"c": 0.01}, regime="shards=2", nbest=100))
    ['--set c=0.01', '--regime shards=2', '--nbest 100']
    """
    plain = {
        "--regime": settings.regime,
        "--epochs": settings.iterations,
        "--nbest": settings.nbest,
        "--space": settings.space,
        "--keep": settings.keep,
    }
    return [
        *(f"--set {key}={shown(value)}" for key, value in settings.options.items()),
        *(f"{key} {value}" for key, value in plain.items() if value is not None),
        *(f"--search {key}={value:g}" for key, value in settings.search.items()),
        *([] if settings.start is None else [f"(start: {started(settings.start)})"]),
    ]


def started(start: str | float) -> str:
    """Return a paper's start weights in words."""
    return "equal weights" if start == "equal" else f"all weights {start:g}"
