"""Fingerprints by which a resumed run recognises its inputs, and JSON files."""

from __future__ import annotations

import hashlib
import json
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO

from tunesmith.errors import InputError
from tunesmith.files.text import cannot_read, read_whole

# Suffixes of our large files, which have a checksum of the rest at one of their ends.
CHECKED = (".rules", ".tlm")
END = 4096


def fingerprint(path: Path | str, *, ends: bool = False) -> dict[str, Any]:
    """Return path, size and SHA-256 of an input, by which a resumed run recognises it.

    With `ends`, the hash is of both ends only: for large files that hold a checksum there.
    """
    try:
        with Path(path).open("rb") as stream:
            digest = _ends(stream) if ends else hashlib.file_digest(stream, "sha256")
            size = stream.seek(0, SEEK_END)
            of = "sha256_of_ends" if ends else "sha256"
            return {"path": str(path), "size": size, of: digest.hexdigest()}
    except OSError as error:
        raise cannot_read(Path(path), error) from error


def _ends(stream: BinaryIO) -> hashlib._Hash:
    digest = hashlib.sha256(stream.read(END))
    stream.seek(max(stream.seek(0, SEEK_END) - END, 0))
    digest.update(stream.read())
    return digest


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """Return the one JSON object in `path`; raise if the file holds anything else."""
    try:
        value = json.loads(read_whole(path))
    except OSError as error:
        raise cannot_read(path, error, remedy) from error
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise InputError(
            f"not JSON: {error.msg}", file=str(path), line=error.lineno, remedy=remedy
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=str(path), remedy=remedy) from error
    if not isinstance(value, dict):
        raise InputError("not a JSON object", file=str(path), remedy=remedy)
    return value
