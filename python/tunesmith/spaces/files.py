"""Spaces that were saved, read back as what they were."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith.spaces.base import References, Spaces
from tunesmith.spaces.bins import SUFFIX, Bins
from tunesmith.spaces.forests import Forests
from tunesmith.spaces.pools import Pools


def load_spaces(file: Path, references: References | None, sources: Sequence[str] | None) -> Spaces:
    """Return what `Spaces.save` wrote; raise if the file is missing or damaged."""
    if file.suffix == ".forests":
        return Forests.load(file, references, sources)
    if file.suffix == SUFFIX:
        return Bins.load(file, references, sources)
    return Pools.load(file, references, sources)
