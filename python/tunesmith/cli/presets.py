"""`tunesmith presets`: the tuners and their options."""

from __future__ import annotations

import inspect
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, out, table
from tunesmith.presets import explained, find_preset, preset_names

EXAMPLES = "Examples:\n\n$ tunesmith presets\n\n$ tunesmith presets rm"


def presets(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="A tuner, to see its options.")
    ] = None,
    json: o.Json = False,
) -> None:
    """List the tuners, or explain one."""
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
        rows.add_row(key, "see above" if default is None else shown(default), allowed, meaning)
    out.print(rows)


def shown(value: object) -> str:
    """Return a default as a user types it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
