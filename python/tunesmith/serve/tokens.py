"""Tokens: made once, shown once, kept as digests."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import sqlite3
import time
from dataclasses import dataclass

from tunesmith.errors import InputError

SCOPES = ("read", "write", "review")
"""What tokens permit; each includes those before it."""
PREFIX = "tsm"


@dataclass(frozen=True)
class Token:
    """A token as the store knows it."""

    id: int | None
    """None for whoever needs no token."""
    name: str
    scope: str
    created: float = 0.0
    revoked: float | None = None

    def permits(self, scope: str) -> bool:
        """Return whether the token permits this."""
        return SCOPES.index(self.scope) >= SCOPES.index(scope)


def new_token(base: sqlite3.Connection, name: str, scope: str) -> str:
    """Add a token to the store and return it: `tsm_ID_SECRET`."""
    # 256 random bits need no slow hash: nobody can try them all.
    secret = secrets.token_urlsafe(32)
    made = base.execute(
        "INSERT INTO tokens (name, scope, digest, created) VALUES (?, ?, ?, ?)",
        (name, scope, _digest(secret), time.time()),
    )
    return f"{PREFIX}_{made.lastrowid}_{secret}"


def find_token(base: sqlite3.Connection, text: str) -> Token | None:
    """Return the token that was presented, None if it is not valid."""
    prefix, _, rest = text.partition("_")
    number, _, secret = rest.partition("_")
    # Only what `new_token` writes; ids fit into 64 bits.
    if prefix != PREFIX or not number.isascii() or not number.isdigit() or len(number) > 18:
        return None
    row = base.execute(
        "SELECT id, name, scope, created, revoked, digest FROM tokens WHERE id = ?", (int(number),)
    ).fetchone()
    # Compare in any case, so that the time does not tell which ids exist.
    same = hmac.compare_digest(_digest(secret), bytes(32) if row is None else row[5])
    return Token(*row[:5]) if same and row is not None and row[4] is None else None


def list_tokens(base: sqlite3.Connection) -> list[Token]:
    """Return all tokens, also revoked ones."""
    rows = base.execute("SELECT id, name, scope, created, revoked FROM tokens ORDER BY id")
    return [Token(*row) for row in rows]


def revoke_token(base: sqlite3.Connection, number: int) -> Token:
    """Revoke a token by its number; raise if there is none or it is revoked already."""
    found = [token for token in list_tokens(base) if token.id == number]
    if not found or found[0].revoked is not None:
        raise InputError(
            f"no valid token has the number {number}",
            remedy="tunesmith token list shows the numbers",
        )
    base.execute("UPDATE tokens SET revoked = ? WHERE id = ?", (time.time(), number))
    return found[0]


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()
