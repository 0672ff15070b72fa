"""Versions of a learner, and what leads from one to another: what mirrors of it are sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.weights import Vector

Lines = npt.NDArray[np.uint32]
ENTRIES = 64
"""How many changes are kept before those that nobody needs apart are joined."""


@dataclass(frozen=True)
class Change:
    """What leads from one version of a learner to the next."""

    names: list[str] = field(default_factory=list)
    """Features that are new."""
    ids: Lines = field(default_factory=lambda: np.empty(0, np.uint32))
    values: Vector = field(default_factory=lambda: np.empty(0))
    """Weights that are other ones."""
    lines: Lines = field(default_factory=lambda: np.empty(0, np.uint32))
    stats: Vector = field(default_factory=lambda: np.empty(0))
    """Lines that were visited, with the statistics of what was chosen for each."""
    context: npt.NDArray[np.float64] | None = None
    """What is chosen for every line; it comes before the lines that were visited."""

    def __bool__(self) -> bool:
        """Return whether anything is another."""
        several = (self.names, self.ids, self.lines)
        return any(len(each) for each in several) or self.context is not None

    @classmethod
    def joined(cls, several: Sequence[Change]) -> Change:
        """Return what leads from before the first to after the last."""
        if len(several) == 1:
            return several[0]
        if not several:
            return cls()
        contexts = [place for place, each in enumerate(several) if each.context is not None]
        # A context replaces what gains knew.
        visited = several[contexts[-1] :] if contexts else several
        ids = np.concatenate([each.ids for each in several])
        values = np.concatenate([each.values for each in several])
        # Of the values of a weight, the last one counts.
        own, last = np.unique(ids[::-1], return_index=True)
        return cls(
            [name for each in several for name in each.names],
            own,
            values[::-1][last],
            np.concatenate([each.lines for each in visited]),
            np.concatenate([each.stats for each in visited]),
            several[contexts[-1]].context if contexts else None,
        )


@dataclass(frozen=True)
class Base:
    """A version of a learner as far as those who select have to know it."""

    version: int
    names: list[str] | None
    weights: Vector
    gain: Vector
    context: npt.NDArray[np.float64] | None

    @classmethod
    def of(cls, version: int, learner: _core.Learner) -> Base:
        """Return what a learner is now."""
        return cls(
            version,
            learner.names or None,
            learner.weights,
            learner.state()["gain"],
            learner.context,
        )


@dataclass(frozen=True)
class Moved:
    """Weights as they are sent to somebody who has earlier ones: where they differ from these.

    >>> earlier, now = np.zeros(9), np.array([0.0, 0, 0, 7, 0, 0, 0, 0, 0, 5])
    >>> Moved.since(earlier, now)
    Moved(size=10, values=array([7., 5.]), ids=array([3, 9], dtype=uint32))
    >>> bool((Moved.since(earlier, now).onto(earlier) == now).all())
    True
    """

    size: int
    values: Vector
    ids: Lines | None = None
    """Of the weights that differ; None if all are sent, because that is shorter."""

    @classmethod
    def since(cls, earlier: Vector | None, now: Vector) -> Moved:
        """Return what differs in any bit; features that are new were zero before."""
        if earlier is None:
            return cls(len(now), now)
        padded = np.pad(earlier, (0, len(now) - len(earlier)))
        ids = np.flatnonzero(padded.view(np.int64) != now.view(np.int64)).astype(np.uint32)
        if ids.nbytes + 8 * len(ids) >= now.nbytes:
            return cls(len(now), now)
        return cls(len(now), now[ids], ids)

    def onto(self, earlier: Vector | None) -> Vector:
        """Return the weights."""
        if self.ids is None:
            return self.values
        assert earlier is not None
        found = np.pad(earlier, (0, self.size - len(earlier)))
        found[self.ids] = self.values
        return found


class Versions:
    """The changes of a learner, as far back as anyone may have to be told of them."""

    def __init__(self, places: int) -> None:
        self.now = 0
        self._told = [0] * places
        """The version that each worker was last sent to."""
        self._log: list[tuple[int, Change]] = []
        """Versions, and what led to each from the entry before."""

    def add(self, change: Change) -> None:
        """Take a change to a new version."""
        if change:
            self.now += 1
            self._log.append((self.now, change))

    def send(self, place: int) -> tuple[int, Change]:
        """Return what a worker has missed, and since which version; from now on it knows."""
        since, self._told[place] = self._told[place], self.now
        return since, self.between(since, self.now)

    def between(self, since: int, version: int) -> Change:
        """Return what leads from one version to another."""
        return Change.joined([each for at, each in self._log if since < at <= version])

    def compact(self, wanted: Iterable[int]) -> None:
        """Join changes, if there are many; changes from and to these versions must stay known."""
        if len(self._log) <= ENTRIES:
            return
        marks = {*wanted, *self._told, self.now}
        least = min(marks)
        kept, several = list[tuple[int, Change]](), list[Change]()
        for at, change in self._log:
            if at <= least:
                continue
            several.append(change)
            if at in marks:
                kept.append((at, Change.joined(several)))
                several = []
        self._log = kept
