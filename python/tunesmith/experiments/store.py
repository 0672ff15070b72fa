"""What was found before, by the content of everything that decides it.

An entry's name is a digest of its key: settings of the tuner, digests of texts and models, seed,
version of the program. The build of the program is written beside it, not into the key: a result of
another build is used, and counted, so that whoever reads a table knows.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy.typing as npt

import tunesmith
from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.files.arrays import read_arrays, write_arrays
from tunesmith.files.atomic import atomic_write, cannot_write
from tunesmith.files.fingerprint import read_object
from tunesmith.files.plain import plain, pretty

FORMAT = 1
# Packages that show results and do not make them.
_SHOWS = ("cli", "report", "experiments", "serve")


def digest_of(key: object) -> str:
    """Return a digest of plain values; the order of keys does not matter."""
    text = json.dumps(plain(key), sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def lines_digest(lines: Iterable[str]) -> str:
    """Return a digest of lines."""
    made = hashlib.sha256()
    for line in lines:
        made.update(line.encode("utf-8", "surrogatepass") + b"\n")
    return made.hexdigest()[:24]


@cache
def build() -> str:
    """Return a digest of the program: its core, and the modules that make results."""
    made = hashlib.sha256(Path(_core.__file__).read_bytes())
    folder = Path(tunesmith.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        if path.relative_to(folder).parts[0] not in _SHOWS:
            made.update(path.read_bytes())
    return made.hexdigest()[:12]


class Store:
    """A folder of entries, which are written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hits = self.made = 0
        self.other_builds = 0
        self._lock = threading.Lock()
        self._making: dict[str, threading.Lock] = {}

    def path(self, kind: str, key: object) -> Path:
        """Return the folder of an entry; it is made if it is not there."""
        path = self.folder / kind / digest_of({"format": FORMAT, "key": key})
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(path, error) from error
        return path

    def kept(
        self, kind: str, key: Mapping[str, Any], make: Callable[[Path], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return what was found for a key; `make` finds it, given a folder to work in.

        A process that dies while making leaves what `make` itself has written, and the next one
        goes on from there. Of several threads that want the same, one makes it.
        """
        whole = {"version": _core.__version__, **key}
        path = self.path(kind, whole)
        with self._lock:
            making = self._making.setdefault(str(path), threading.Lock())
        with making:
            return self._found_or_made(path, whole, make)

    def _found_or_made(
        self, path: Path, whole: Mapping[str, Any], make: Callable[[Path], Mapping[str, Any]]
    ) -> dict[str, Any]:
        file = path / "found.json"
        if file.exists():
            entry = read_object(file, remedy="remove the file; it is made again")
            with self._lock:
                self.hits += 1
                self.other_builds += entry.get("build") != build()
            return _found(entry, file)
        with atomic_write(path / "key.json") as stream:
            stream.write(pretty(whole))
        found = dict(make(path))
        entry = {"build": build(), "found": plain(found)}
        with atomic_write(file) as stream:
            stream.write(pretty(entry))
        with self._lock:
            self.made += 1
        return _found(json.loads(pretty(entry)), file)


def _found(entry: Mapping[str, Any], file: Path) -> dict[str, Any]:
    found = entry.get("found")
    if not isinstance(found, dict):
        raise InputError("not a result", str(file), remedy="remove the file; it is made again")
    return {**found, "folder": str(file.parent)}


def save_rows(path: Path, arrays: Mapping[str, npt.ArrayLike]) -> None:
    """Write arrays beside an entry."""
    write_arrays(path / "rows.npz", arrays, {})


def load_rows(found: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays beside an entry."""
    path = Path(found["folder"]) / "rows.npz"
    remedy = "remove its folder; it is made again"
    try:
        read = read_arrays(path)
    except InputError as error:
        raise InputError(error.message, str(path), remedy=remedy) from error
    if read is None:
        raise InputError("is missing", str(path), remedy=remedy)
    return read.arrays
