"""The database of a store: its tables, how it is opened, and what can be wrong with it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from tunesmith.errors import InputError, check_regular

FILE = "service.sqlite"
# What SQLite raises; where damage has reached the text of its message, that cannot be decoded.
FAILURES = (sqlite3.Error, UnicodeDecodeError)
FORMAT = 1
# "Tunesmith store", as a number in the file's header.
APPLICATION = 0x54756E53
BUSY_SECONDS = 10.0
_TABLES = """
CREATE TABLE tokens (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    scope TEXT NOT NULL CHECK (scope IN ('read', 'write', 'review')),
    digest BLOB NOT NULL,
    created REAL NOT NULL,
    revoked REAL
) STRICT;
CREATE TABLE feedback (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL,
    translation TEXT NOT NULL,
    suggestion TEXT,
    key TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('accepted', 'held')),
    reasons TEXT NOT NULL,
    token INTEGER REFERENCES tokens (id),
    created REAL NOT NULL,
    changed REAL NOT NULL
) STRICT;
CREATE INDEX feedback_key ON feedback (key, status, changed);
CREATE INDEX feedback_token ON feedback (token, created);
CREATE INDEX feedback_status ON feedback (status, id);
"""
BACKUP = "restore the folder from a backup, or give a new folder to start without feedback"


def open_store(folder: Path, *, create: bool = False) -> Path:
    """Return the database of a store, checked; with `create`, make it if there is none.

    Raise if the folder holds no store, one of another format, or a damaged one.
    """
    path = folder / FILE
    check_regular(path)
    if not path.exists():
        if not create:
            raise InputError(
                f"there is no store here: {FILE} is missing",
                str(folder),
                remedy="tunesmith token new --store DIR makes one, and so does tunesmith serve",
            )
        _create(folder, path)
    try:
        _check_owner(path)
        base = connect(path)
        try:
            _check(base, path)
        finally:
            base.close()
    except FAILURES as error:
        raise damaged(path, error) from error
    except MemoryError as error:
        # A damaged page may ask SQLite for any amount of memory.
        raise InputError(
            "the store is damaged, or there is too little memory to open it",
            str(path),
            remedy=f"look for free memory; if there is enough, {BACKUP}",
        ) from error
    return path


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection that writes durably; transactions are begun by hand."""
    base = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
    )
    base.execute("PRAGMA journal_mode = WAL")
    # With FULL, the log is on the disk when a commit returns.
    base.execute("PRAGMA synchronous = FULL")
    base.execute("PRAGMA foreign_keys = ON")
    # Texts that are taken back do not stay in free pages.
    base.execute("PRAGMA secure_delete = ON")
    return base


def damaged(path: Path, error: Exception) -> InputError:
    """Return the error for a database that cannot be read."""
    return InputError(f"the store is damaged: {error}", str(path), remedy=BACKUP)


def _create(folder: Path, path: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Others on this machine must not read what people wrote.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise InputError(
            f"cannot make a store: {error.strerror or error}",
            str(folder),
            remedy="check the path, its permissions and the free space",
        ) from error


def _check_owner(path: Path) -> None:
    """Raise if the file is a database of another program; nothing in it is changed."""
    base = sqlite3.connect(path, timeout=BUSY_SECONDS)
    try:
        tables = base.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        owner = base.execute("PRAGMA application_id").fetchone()[0]
    finally:
        base.close()
    if tables and owner != APPLICATION:
        raise InputError(
            "a database of another program", str(path), remedy="give another folder as store"
        )


def _check(base: sqlite3.Connection, path: Path) -> None:
    base.execute("BEGIN IMMEDIATE")
    tables = base.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    if tables == 0:
        for statement in _TABLES.split(";"):
            base.execute(statement)
        base.execute(f"PRAGMA application_id = {APPLICATION}")
        base.execute(f"PRAGMA user_version = {FORMAT}")
    base.execute("COMMIT")
    found = base.execute("PRAGMA user_version").fetchone()[0]
    if found != FORMAT:
        raise InputError(
            f"a store of format {found}, not {FORMAT}",
            str(path),
            remedy="use the version of tunesmith that wrote it",
        )
    result = base.execute("PRAGMA quick_check(1)").fetchone()[0]
    if result != "ok":
        raise InputError(f"the store is damaged: {result}", str(path), remedy=BACKUP)
