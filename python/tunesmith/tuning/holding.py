"""Workers that decode lines and keep what they find.

Each worker decodes the lines of its blocks, which are those of a task's shares (`learn/shares.py`),
merges what it finds with what it has, and is asked about it by tuners. Lists never travel: the
driver knows the features, how many hypotheses there are, and what the decoder chose for each line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tunesmith.engines import THREADS, Dealt, Engine, Worker, grows, reads
from tunesmith.learn.shares import Numbers, Plan, Share
from tunesmith.learn.task import Task
from tunesmith.sources import Source
from tunesmith.sources.base import Choice, Chosen, Joined
from tunesmith.spaces import Elsewhere, Spaces
from tunesmith.spaces.outline import Kind
from tunesmith.tuning.setup import Setup
from tunesmith.weights import Weights


class Holders:
    """The workers that hold everything decoded so far."""

    def __init__(self, source: Source, setup: Setup, engine: Engine) -> None:
        self._setup = setup
        self.here = engine is THREADS
        """Whether all is held by the one worker of this process."""
        # A decoder takes about as long as there are words.
        words = [1 + len(text.split()) for text in source.sources] or [1] * source.sentences
        self._plan = Plan.of_lines(np.array(words, np.int64))
        deal = _Deal(source, replace(setup, engine=THREADS), self._plan)
        self._crew = engine.crew(deal, setup.threads)
        self._dealing = self._plan.dealt(self._crew.size)
        self._lines = [self._dealing.held(place) for place in range(self._crew.size)]
        self._held: Task | None = None
        self.decodings = 0
        """How many there were."""

    @property
    def held(self) -> Task:
        """Everything decoded so far; its shares are what these workers hold."""
        assert self._held is not None, "nothing has been decoded yet"
        return self._held

    def task(self) -> Task:
        """Return the same for a tuner: what this process holds is dealt to the engine's workers."""
        if self.here and self._setup.engine is not THREADS:
            return replace(self.held, engine=self._setup.engine)
        return self.held

    def decode(self, weights: Weights) -> tuple[Chosen, Spaces | None]:
        """Decode all lines; return what was chosen for each, and what was found if that is here."""
        args = (dict(weights),)
        return self._merged(self._crew.ask_all(_decode_lines, [args] * self._crew.size))

    def take(self, weights: Weights, found: Spaces) -> None:
        """Add what the weights have found in an earlier process, if it is to be held here."""
        self._merged([self._crew.ask(_take_found, weights, found)])

    def _merged(self, found: Sequence[_Found]) -> tuple[Chosen, Spaces | None]:
        """Give new features the same ids at all workers, and let these merge what they found."""
        self.decodings += 1
        crew = self._crew
        spaces = crew.ask(_latest) if self.here else None
        # By block, so that ids do not depend on who has decoded which.
        if crew.size == 1:
            blocks = found[0].names
        else:
            blocks = self._dealing.in_order([each.names for each in found])
        new = list(dict.fromkeys(name for names in blocks for name in names))
        sizes = np.concatenate([each.sizes for each in found])
        sizes = sizes[np.argsort(np.concatenate(self._lines), kind="stable")]
        starts = np.cumsum(sizes) - sizes
        hypotheses = sum(
            crew.ask_all(_merge_found, [(new, starts[lines]) for lines in self._lines])
        )
        if self.here:
            task = crew.ask(_share).task
        else:
            known = [] if self._held is None else self._held.outline.names
            groups = np.repeat(np.arange(len(sizes)), sizes)
            outline = Elsewhere(found[0].kind, [*known, *new], groups, hypotheses)
            task = self._setup.task(outline, growing=True)
        self._held = task.held_by(crew, self._plan)
        choices = [(lines, each.choice) for lines, each in zip(self._lines, found, strict=True)]
        return (choices[0][1] if crew.size == 1 else Joined(choices)), spaces


@dataclass(frozen=True)
class _Found:
    """What a worker tells of a decoding."""

    kind: Kind
    names: list[list[str]]
    """Features of each of its blocks that it did not know, each once."""
    sizes: Numbers
    """The number of lists of each line: more than one where there are bins."""
    choice: Choice


@dataclass(frozen=True)
class _Lines:
    """The lines of a worker that has found nothing yet."""

    source: Source
    setup: Setup
    lines: Numbers
    """The number of each line."""
    ends: Numbers
    """Where each block ends among them."""
    whole: int
    """The number of all lines."""

    @property
    def own(self) -> _Lines:
        return self

    @property
    def spaces(self) -> Spaces | None:
        return None

    def with_spaces(self, spaces: Spaces, starts: Numbers) -> _Held:
        """Return the share of a worker that holds these spaces, given where lines start."""
        groups = spaces.groups
        first = np.searchsorted(groups, np.arange(len(self.lines)))
        return _Held(
            self.setup.task(spaces, growing=True),
            starts[groups] + np.arange(len(groups)) - first[groups],
            np.searchsorted(groups, self.ends).astype(np.int64),
            self.lines,
            self.whole,
            own=self,
        )


@dataclass(frozen=True, kw_only=True)
class _Held(Share):
    """The share of a worker that decodes more of its lines later."""

    own: _Lines

    @property
    def spaces(self) -> Spaces | None:
        return self.task.spaces


@dataclass(frozen=True)
class _Deal(Dealt):
    """A source of which each worker is given the lines of its blocks."""

    source: Source
    setup: Setup
    plan: Plan

    def parts(self, size: int) -> Iterator[_Lines]:
        dealing = self.plan.dealt(size)
        for place in range(size):
            lines = dealing.held(place)
            source = self.source if size == 1 else self.source.part(lines.tolist())
            yield _Lines(source, self.setup, lines, dealing.ends(place), self.source.sentences)


@grows
def _decode_lines(worker: Worker, weights: Mapping[str, float]) -> _Found:
    """Decode the lines and keep what was found for `_merge_found`."""
    # What tuners have made of the lists is of no use any more, and large.
    worker.kept.clear()
    own: _Lines = worker.share.own
    if own.whole == len(own.lines):
        return _noted(worker, weights, [own.source.decode(weights)])
    return _noted(worker, weights, own.source.decode_parts(weights, own.ends.tolist(), worker.pool))


@grows
def _take_found(worker: Worker, weights: Mapping[str, float], found: Spaces) -> _Found:
    """Keep what was found earlier for `_merge_found`."""
    worker.kept.clear()
    return _noted(worker, weights, [found])


def _noted(worker: Worker, weights: Mapping[str, float], parts: Sequence[Spaces]) -> _Found:
    spaces: Spaces | None = worker.share.spaces
    known = set[str]() if spaces is None else set(spaces.names)
    names = list[list[str]]()
    for part in parts:
        names.append([name for name in part.names if name not in known])
        known.update(names[-1])
    found = parts[0] if len(parts) == 1 else type(parts[0]).join(parts)
    worker.kept["found"] = found
    choice = Choice(*found.kept(found.decoded(weights, worker.share.own.setup.threads)))
    sizes = np.bincount(found.groups, minlength=found.lines).astype(np.int64)
    return _Found(found.kind, names, sizes, choice)


@grows
def _merge_found(worker: Worker, new: list[str], starts: Numbers) -> int:
    """Merge what was found into what is held; return the number of hypotheses."""
    own: _Lines = worker.share.own
    held: Spaces | None = worker.share.spaces
    found: Spaces = worker.kept.pop("found")
    known = list[str]() if held is None else held.names
    merged = found if held is None else held.merged(found, own.setup.threads)
    merged = merged.aligned([*known, *new])
    worker.share = own.with_spaces(merged, starts)
    return merged.hypotheses


@reads
def _latest(worker: Worker) -> Spaces:
    """Return what was found; only a worker of this process is asked."""
    found: Spaces = worker.kept["found"]
    return found


@reads
def _share(worker: Worker) -> Share:
    """Return what is held; only a worker of this process is asked."""
    share: Share = worker.share
    return share
