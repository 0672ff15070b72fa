"""Checkpoints of a run: arrays and JSON values in one file that cannot execute code."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write
from tunesmith.files.plain import plain
from tunesmith.files.text import cannot_read

FORMAT = 1
_META = "tunesmith"
_REMEDY = "start the run again in a new directory"


@dataclass(frozen=True)
class Checkpoint:
    """Arrays and JSON values of a run at one moment, and how many events came before it."""

    arrays: dict[str, npt.NDArray[Any]]
    state: dict[str, Any]
    events: int = 0
    events_bytes: int = 0


def write_arrays(
    path: Path,
    arrays: Mapping[str, npt.ArrayLike],
    state: Mapping[str, object],
    events: int = 0,
    events_bytes: int = 0,
) -> None:
    """Replace the checkpoint atomically; raise a `TypeError` for arrays of Python objects.

    Array names may be any text: the file numbers them and keeps their names in its JSON.
    """
    names = list(arrays)
    stored = [np.ascontiguousarray(arrays[name]).reshape(np.shape(arrays[name])) for name in names]
    for name, array in zip(names, stored, strict=True):
        if array.dtype.hasobject:
            raise TypeError(f"array {name!r} holds Python objects, which a checkpoint cannot store")
    meta = {
        "format": FORMAT,
        "names": names,
        "digest": _digest(stored),
        "events": events,
        "events_bytes": events_bytes,
        "state": plain(state),
    }
    text = json.dumps(meta, allow_nan=False).encode()
    members: dict[str, Any] = {str(index): array for index, array in enumerate(stored)}
    members[_META] = np.frombuffer(hashlib.sha256(text).digest() + text, np.uint8)
    with atomic_write(path) as stream:
        np.savez(stream, **members)


def read_arrays(path: Path) -> Checkpoint | None:
    """Return the checkpoint, or None when there is none yet.

    Raise an `InputError` if the file is damaged, is not a checkpoint, or would have to be
    unpickled.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            # Ours are not compressed; a small compressed file could unpack to more than the memory.
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.zip.infolist()):
                raise ValueError("it is compressed")
            text = _verified(archive[_META].tobytes())
            meta = json.loads(text)
            if meta["format"] != FORMAT:
                raise ValueError(f"format {meta['format']} is unknown to this version")
            _check_types(meta)
            stored = [archive[str(index)] for index in range(len(meta["names"]))]
        if _digest(stored) != meta["digest"]:
            raise ValueError("the checksum does not match")
        return Checkpoint(
            arrays=dict(zip(meta["names"], stored, strict=True)),
            state=meta["state"],
            events=meta["events"],
            events_bytes=meta["events_bytes"],
        )
    except FileNotFoundError:
        return None
    except (
        AttributeError,
        EOFError,
        IndexError,
        KeyError,
        MemoryError,
        NotImplementedError,
        OSError,
        OverflowError,
        RuntimeError,
        SyntaxError,
        TypeError,
        ValueError,
        zipfile.BadZipFile,
        zlib.error,
    ) as error:
        raise InputError(
            f"the checkpoint is damaged: {error}", file=str(path), remedy=_REMEDY
        ) from error


def _check_types(meta: dict[str, Any]) -> None:
    """Raise if the JSON of a checkpoint is not what `write_arrays` writes."""
    names, counts = meta["names"], (meta["events"], meta["events_bytes"])
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise ValueError("its names are not text")
    if len(set(names)) != len(names):
        raise ValueError("two arrays have the same name")
    if not all(type(count) is int and count >= 0 for count in counts):
        raise ValueError("its numbers of events are none")
    if not isinstance(meta["state"], dict):
        raise ValueError("its state is not a table")


def _verified(blob: bytes) -> bytes:
    if hashlib.sha256(blob[32:]).digest() != blob[:32]:
        raise ValueError("the checksum does not match")
    return blob[32:]


def _digest(arrays: list[npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, which a checkpoint stores for the files beside it."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise cannot_read(path, error, _REMEDY) from error


def packed(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    """Return lines of text as an array, for a checkpoint."""
    return np.frombuffer("\n".join([*texts, ""]).encode("utf-8"), np.uint8)


def unpacked(array: npt.NDArray[np.uint8]) -> list[str]:
    """Return the lines of text in an array that `packed` returned."""
    return array.tobytes().decode("utf-8").split("\n")[:-1]
