"""Files that follow a value to another machine.

A value that is loaded from files names them with `Files`. When an engine sends it, the files are
described by size and checksum. A worker that has the same files under the same paths uses these.
Any other takes them from the sender in pieces, and puts them into a folder of its machine's cache
whose name is their checksum, so that all workers of a machine share them. What lies there is
compared with the checksum each time, and fetched again if it is damaged.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self
from uuid import uuid4

from filelock import FileLock, Timeout

from tunesmith.errors import InputError
from tunesmith.files.cache import user_cache
from tunesmith.files.fingerprint import CHECKED, fingerprint
from tunesmith.files.text import cannot_read

PIECE = 16 << 20
"""Bytes that are sent at a time."""
PATIENCE = 3600.0
"""Seconds to wait for another worker of this machine that fetches the same files."""
FOLDER = "models"
_REMEDY = "put the files under the same path on all nodes, or set XDG_CACHE_HOME there"


@dataclass(frozen=True)
class Files:
    """Files that a value is loaded from: absolute paths by the names that they keep elsewhere."""

    paths: Mapping[str, Path]


@dataclass(frozen=True)
class Described:
    """A file as the sender has it."""

    name: str
    path: str
    size: int
    sha256: str
    """Of both ends only, if the file has a checksum of the rest."""

    @classmethod
    def of(cls, name: str, path: Path) -> Self:
        """Return the description of a file; raise if it cannot be read."""
        found = fingerprint(path, ends=path.suffix in CHECKED)
        digest = found.get("sha256") or found["sha256_of_ends"]
        return cls(name, str(path), found["size"], str(digest))

    def is_at(self, path: Path) -> bool:
        """Whether the same file lies at a path."""
        try:
            return Described.of(self.name, path) == Described(
                self.name, str(path), self.size, self.sha256
            )
        except InputError:
            return False


class Shelf(Protocol):
    """Gives away the files of its machine."""

    def digests(self, paths: Sequence[str]) -> list[str]:
        """Return the SHA-256 of whole files."""

    def pieces(self, path: str) -> Iterator[bytes]:
        """Yield a file in pieces."""


class Own:
    """The files of the machine that this runs on."""

    def digests(self, paths: Sequence[str]) -> list[str]:
        """Return the SHA-256 of whole files."""
        return [fingerprint(path)["sha256"] for path in paths]

    def piece(self, path: str, start: int) -> bytes:
        """Return what follows a place in a file, at most `PIECE` bytes; nothing at its end."""
        try:
            with Path(path).open("rb") as stream:
                stream.seek(start)
                return stream.read(PIECE)
        except OSError as error:
            raise cannot_read(Path(path), error) from error


def describe(files: Files) -> list[Described]:
    """Return what a receiver must find, or be sent."""
    return [Described.of(name, path) for name, path in files.paths.items()]


def receive(share: bytes, shelf: Shelf | None) -> Any:
    """Return a value that was sent; raise if its files are neither here nor can be fetched."""
    return _Receiver(io.BytesIO(share), shelf).load()


class _Receiver(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, shelf: Shelf | None) -> None:
        super().__init__(stream)
        self._shelf = shelf

    def persistent_load(self, described: Sequence[Described]) -> Files:
        return located(described, self._shelf)


def located(
    described: Sequence[Described], shelf: Shelf | None, cache: Path | None = None
) -> Files:
    """Return the files where they are on this machine; fetch them if they are not or are others."""
    here = {each.name: Path(each.path) for each in described}
    others = [each for each in described if not each.is_at(here[each.name])]
    if not others:
        return Files(here)
    if shelf is None:
        raise InputError(
            "this is no longer the file that the work began with",
            others[0].path,
            remedy="put it back, or start again",
        )
    digests = shelf.digests([each.path for each in described])
    facts = [(each.name, digest) for each, digest in zip(described, digests, strict=True)]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
    folder = (cache or user_cache()) / FOLDER
    place = folder / key
    with _alone(folder, key):
        if not all(_digest(place / name) == digest for name, digest in facts):
            _fetch(described, digests, shelf, place)
    return Files({name: place / name for name, _ in facts})


def _fetch(
    described: Sequence[Described], digests: Sequence[str], shelf: Shelf, place: Path
) -> None:
    """Write all files, compare them, and give their folder its name; nothing else is left."""
    # Nobody else writes: these are of workers that were killed, and of a damaged copy.
    for old in (place, *place.parent.glob(f".{place.name}.*")):
        shutil.rmtree(old, ignore_errors=True)
    part = place.with_name(f".{place.name}.{uuid4().hex}.part")
    try:
        part.mkdir()
        for each, wanted in zip(described, digests, strict=True):
            (part / each.name).parent.mkdir(parents=True, exist_ok=True)
            digest = hashlib.sha256()
            with (part / each.name).open("wb") as out:
                for piece in shelf.pieces(each.path):
                    digest.update(piece)
                    out.write(piece)
            if digest.hexdigest() != wanted or not each.is_at(part / each.name):
                raise InputError(
                    "the file changed while it was sent to a worker",
                    each.path,
                    remedy="leave models alone while they are in use, and start again",
                )
        part.rename(place)
    except OSError as error:
        message = f"a model cannot be kept here: {error.strerror or error}"
        raise InputError(message, str(part.parent), remedy=_REMEDY) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def _alone(folder: Path, key: str) -> Iterator[None]:
    """Keep other workers of this machine from the same files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(
            folder / f"{key}.lock", PATIENCE, fallback_to_soft=False, preserve_lock_file=True
        )
        lock.acquire()
    except Timeout:
        message = f"another worker has not fetched a model in {PATIENCE:g} seconds"
        raise InputError(message, str(folder), remedy="look what it waits for") from None
    except OSError as error:
        message = f"a model cannot be kept here: {error.strerror or error}"
        raise InputError(message, str(folder), remedy=_REMEDY) from None
    try:
        yield
    finally:
        lock.release()


def _digest(path: Path) -> str | None:
    try:
        return str(fingerprint(path)["sha256"])
    except InputError:
        return None
