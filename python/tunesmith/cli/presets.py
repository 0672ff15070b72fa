"""`tunesmith presets`: the tuners and their options."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, out, table
from tunesmith.errors import InputError
from tunesmith.presets import PRESETS, explained

EXAMPLES = "Examples:\n\n$ tunesmith presets\n\n$ tunesmith presets rm"


def presets(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A tuner, to see its options.")
    ] = None,
    json: o.Json = False,
) -> None:
    """List the tuners, or explain one."""
    if name is not None and name not in PRESETS:
        raise InputError(f"no tuner named {name!r}", remedy=f"use one of {', '.join(PRESETS)}")
    if json:
        chosen = [name] if name else list(PRESETS)
        emit(
            {
                key: {option: told._asdict() for option, told in explained(key).items()}
                for key in chosen
            }
        )
        return
    if name is None:
        rows = table("", "tuner", "what it does")
        rows.columns[1].justify = "left"
        rows.columns[1].no_wrap = False
        for key, make in PRESETS.items():
            rows.add_row(key, (inspect.getdoc(make) or "").split("\n")[0])
        out.print(rows)
        return
    out.print(inspect.getdoc(PRESETS[name]) or "")
    rows = table("\nOptions (--set key=value)", "key", "default", "allowed", "what it is")
    for column in rows.columns[2:]:
        column.justify, column.no_wrap = "left", False
    for key, (default, allowed, meaning) in explained(name).items():
        rows.add_row(key, "see above" if default is None else shown(default), allowed, meaning)
    out.print(rows)


def shown(value: object) -> str:
    """Return a default as one would type it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
