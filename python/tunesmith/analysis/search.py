"""What the search finds with some weights: by beam size, in its lists, in its bins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter

import numpy as np

from tunesmith.analysis.diversity import diversity
from tunesmith.errors import InputError
from tunesmith.metrics import Metric
from tunesmith.sources.live import Live

BEAMS = (1, 2, 4, 8, 16, 30, 64, 100)
# What sets the width of the beam, by kind of decoder.
WIDTHS = {"stack": "phrase-based", "pop_limit": "hierarchical"}


@dataclass(frozen=True)
class Beamed:
    """What a beam of some width finds."""

    beam: int
    score: float
    model_score: float
    """Mean score of the model: higher means fewer search errors."""
    seconds: float


@dataclass(frozen=True)
class Listed:
    """What the lists of the k best hold."""

    score: float
    oracle: float
    worst: float
    hypotheses: float
    """Mean length of the lists."""
    diversity: float | None
    """Mean d' of the lists: 0 where all translations are equal, 1 where no two share a bigram."""
    shared: float | None
    """Mean d of the lists: minus the number of bigrams that two translations share."""


@dataclass(frozen=True)
class Binned:
    """What the best of each bin are worth."""

    final: float
    """The score of the last bins: of the output."""
    every: float
    """The score of all bins."""
    bins: int
    hypotheses: float
    """Mean length of the bins."""


def width_of(source: Live) -> str:
    """Return the setting that makes the beam wide or narrow."""
    known = [name for name, _ in source.model.decoder.settings]
    return next(name for name in WIDTHS if name in known)


def by_beam(
    source: Live, weights: Mapping[str, float], metric: Metric, beams: Sequence[int] = BEAMS
) -> Iterator[Beamed]:
    """Yield the score at each width of the beam, everything else being equal.

    A phrase-based search is as wide as its stacks: its pop limit is raised to ten times that where
    it is smaller. A hierarchical search is as wide as its pop limit.
    """
    name = width_of(source)
    known = {key for key, _ in source.model.decoder.settings}
    for beam in beams:
        if beam < 1:
            raise InputError(f"a beam of {beam}", remedy="give a number from 1 on")
        settings = {**source.settings, name: float(beam)}
        if name == "stack" and "pop_limit" in known:
            least = 10.0 * beam
            settings["pop_limit"] = max(least, settings.get("pop_limit", 0.0) or least)
        began = perf_counter()
        found = replace(source, settings=settings).decode(weights, 1)
        seconds = perf_counter() - began
        scores = np.asarray(found.listed([], 1).core.scores)
        yield Beamed(
            beam,
            found.score(metric, found.first()),
            float(scores.mean()) if len(scores) else 0.0,
            seconds,
        )


def of_lists(
    source: Live,
    weights: Mapping[str, float],
    metric: Metric,
    k: int = 100,
    n: int = 2,
    *,
    diverse: bool = True,
) -> Listed:
    """Return score, oracle and diversity of the `k` best translations of each sentence.

    Diversity looks at all pairs of a list: leave it out of very long ones.
    """
    found = source.decode(weights, k).listed([], k)
    starts = found.core.starts.tolist()
    texts = found.core.texts(np.arange(found.hypotheses))
    lists = [texts[a:b] for a, b in pairwise(starts)]
    means: list[float | None] = [] if diverse else [None, None]
    for normalised in (True, False) if diverse else ():
        each = [diversity(one, n, normalised=normalised) for one in lists]
        known = [value for value in each if value is not None]
        means.append(sum(known) / len(known) if known else None)
    return Listed(
        found.score(metric, found.first()),
        found.score(metric, found.oracle(metric)),
        found.score(metric, found.oracle(metric, best=False)),
        found.hypotheses / max(found.sentences, 1),
        *means,
    )


def of_bins(source: Live, weights: Mapping[str, float], metric: Metric) -> Binned:
    """Return the score of the output, and of the best of all bins."""
    found = replace(source, space="bins").decode(weights)
    best = found.decoded(weights)
    return Binned(
        found.score(metric, best),
        found.score_all(metric, best),
        found.sentences,
        found.hypotheses / max(found.sentences, 1),
    )
