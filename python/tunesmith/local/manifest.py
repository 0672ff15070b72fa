"""The manifest of an index: which files it has, what was removed, and what it was made with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write
from tunesmith.files.fingerprint import read_object
from tunesmith.files.plain import pretty

FILE = "index.json"
FORMAT = 1
REMEDY = "copy the index again, or build it again in another folder"


@dataclass(frozen=True)
class Part:
    """A file of examples."""

    file: str
    examples: int
    bytes: int
    checksum: int
    removed: tuple[int, ...] = ()
    """The examples of this file that were removed."""

    @property
    def live(self) -> int:
        """Number of examples that were not removed."""
        return self.examples - len(self.removed)


@dataclass(frozen=True)
class Building:
    """How far a build has come."""

    data: str
    """A digest of the text."""
    lines: int
    done: int


@dataclass(frozen=True)
class Manifest:
    """All that is known of an index besides its examples. Written whole, never changed in place."""

    fingerprint: Mapping[str, str]
    """Digests of the model, the weights and the settings that the lists were decoded with."""
    k: int
    metric: str
    candidates: str
    """The folder of the candidate search."""
    parts: tuple[Part, ...] = ()
    next_id: int = 0
    next_file: int = 1
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Lines that were left out, by reason."""
    building: Building | None = None
    """None once the index is complete."""

    def with_part(self, part: Part) -> Manifest:
        """Return the manifest with one more file."""
        return replace(self, parts=(*self.parts, part), next_file=self.next_file + 1)

    @property
    def next_part(self) -> str:
        """The name of the next file of examples."""
        return f"examples-{self.next_file:06d}.seg"

    def save(self, folder: Path) -> None:
        """Replace the manifest on disk; durable when this returns."""
        content = {"format": FORMAT, **asdict(self)}
        with atomic_write(folder / FILE) as stream:
            stream.write(pretty({**content, "digest": _digest(content)}))

    @classmethod
    def load(cls, folder: Path) -> Manifest:
        """Return the manifest of an index; raise if there is none or it is damaged."""
        path = folder / FILE
        if not path.exists():
            raise InputError(
                f"there is no index here: {FILE} is missing",
                str(folder),
                remedy="make one: tunesmith local build MODEL --data SRC TGT --out INDEX",
            )
        content = read_object(path, REMEDY)
        digest = content.pop("digest", None)
        if content.get("format") != FORMAT:
            raise InputError(
                f"an index of format {content.get('format')!r}, not {FORMAT}",
                str(path),
                remedy="build it again with this version",
            )
        if digest != _digest(content):
            raise InputError("is corrupt: its checksum differs", str(path), remedy=REMEDY)
        try:
            return cls._of(content)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise InputError(f"is not a manifest: {error}", str(path), remedy=REMEDY) from None

    @classmethod
    def _of(cls, content: dict[str, Any]) -> Manifest:
        kept = {each.name: content[each.name] for each in fields(cls)}
        parts = [Part(**{**part, "removed": tuple(part["removed"])}) for part in kept["parts"]]
        names = [kept["candidates"], *(part.file for part in parts)]
        if any(name != Path(name).name or name in ("", "..") for name in names):
            raise ValueError("a file is outside the folder")
        building = kept["building"]
        kept["building"] = None if building is None else Building(**building)
        return cls(**{**kept, "parts": tuple(parts)})


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()
