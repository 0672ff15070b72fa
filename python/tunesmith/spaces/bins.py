"""The beam of a search, step by step: tuning over bins is search-aware tuning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.spaces.base import Positions, References
from tunesmith.spaces.pools import Pools


class Bins(Pools):
    """Partial translations that a beam kept, a list for each line and number of covered words.

    Every bin is a list like any other, so tuning on bins is search-aware tuning. Texts are those
    of the covered words, followed by the best translation of the rest if they are `potential`.
    """

    def __init__(
        self,
        core: _core.Pools,
        lines: npt.ArrayLike,
        covered: npt.ArrayLike,
        references: References | None = None,
        sources: Sequence[str] | None = None,
    ) -> None:
        super().__init__(core, references, sources)
        self.lines = np.asarray(lines, np.int64)
        """The line that each bin belongs to."""
        self.covered = np.asarray(covered, np.int64)
        """How many words of the line its translations cover."""

    @property
    def groups(self) -> Positions:
        """The line that each bin belongs to."""
        return self.lines

    def _like(
        self,
        core: _core.Pools,
        references: References | None,
        sources: Sequence[str] | None,
        kept: Sequence[int] | None = None,
    ) -> Bins:
        places = slice(None) if kept is None else list(kept)
        return Bins(core, self.lines[places], self.covered[places], references, sources)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "lines": self.lines, "covered": self.covered}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.lines, self.covered = state["lines"], state["covered"]

    def against(self, references: References) -> Bins:
        """Return the bins with references, given for each line."""
        most = int(self.lines.max(initial=-1))
        if most >= len(references):
            raise InputError(
                f"bins of {most + 1} lines, but references for {len(references)}",
                remedy="give references for every line, blank lines included",
            )
        chosen = [references[line] for line in self.lines]
        return Bins(self.core, self.lines, self.covered, chosen, self.sources)

    def rest(self, position: int) -> str:
        """Return the best translation of what a partial translation leaves uncovered."""
        return self.core.extra(position)
