"""`tunesmith token`: make, list and revoke the tokens of a service."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, note, out, table
from tunesmith.errors import InputError
from tunesmith.serve.database import FAILURES, FILE, connect, damaged, open_store
from tunesmith.serve.tokens import list_tokens, new_token, revoke_token

app = typer.Typer(
    help="Make, list and revoke the tokens of a service (tunesmith serve).", no_args_is_help=True
)
Folder = Annotated[Path, o.option("--store", "DIR", "The store that the service is started with.")]


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith token new --store feedback --name Anna\n\n"
    "$ tunesmith token new --store feedback --name reviewer --review"
)
def new(
    store: Folder,
    name: Annotated[str, o.option("--name", "TEXT", "Whose it is.")] = "",
    read: Annotated[
        bool, o.flag("--read", "It permits to translate only (for --private).")
    ] = False,
    review: Annotated[
        bool,
        o.flag("--review", "It also permits to approve and undo corrections, and to reload."),
    ] = False,
    json: o.Json = False,
) -> None:
    """Make a token and print it. It is shown once: the store keeps only a digest."""
    if read and review:
        raise InputError("both --read and --review", remedy="give one of them")
    scope = "read" if read else "review" if review else "write"
    # A service with another store would refuse this token.
    if not (store / FILE).exists():
        note(f"{store} is a new store: start the service with it (--store)")
    with _open(store, create=True) as base:
        token = new_token(base, name, scope)
    if json:
        emit({"token": token, "scope": scope, "name": name})
    else:
        print(token)
    note(f"it permits to {scope}; keep it: it is not shown again")


@app.command("list", epilog="Example:\n\n$ tunesmith token list --store feedback")
def list_(store: Folder, json: o.Json = False) -> None:
    """List the tokens of a store."""
    with _open(store) as base:
        found = list_tokens(base)
    if json:
        tokens = [
            {"number": each.id, "name": each.name, "scope": each.scope, "valid": not each.revoked}
            for each in found
        ]
        emit({"tokens": tokens})
        return
    rows = table("", "number", "name", "permits to", "made", "")
    for each in found:
        made = datetime.fromtimestamp(each.created, UTC).strftime("%Y-%m-%d %H:%M")
        rows.add_row(str(each.id), each.name, each.scope, made, "revoked" if each.revoked else "")
    out.print(rows)


@app.command(epilog="Example:\n\n$ tunesmith token revoke 3 --store feedback")
def revoke(
    number: Annotated[int, typer.Argument(metavar="NUMBER", help="As `token list` shows it.")],
    store: Folder,
) -> None:
    """Revoke a token. A running service refuses it from now on."""
    with _open(store) as base:
        token = revoke_token(base, number)
    note(f"token {number} {token.name} is revoked".replace("  ", " "))


@contextmanager
def _open(folder: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open a store for one change, beside a running service."""
    path = open_store(folder, create=create)
    base = connect(path)
    try:
        yield base
    except FAILURES as error:
        raise damaged(path, error) from error
    finally:
        base.close()
