"""Choices without tuning, which tuned weights must beat to be useful."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tunesmith.metrics import Metric
from tunesmith.spaces import Pools, Positions, Spaces
from tunesmith.weights import Vector

START, CONSENSUS = "start", "consensus"
# With more features than this, only those that at least half of the lists have are tried alone,
# and of these at most `MOST_ALONE`: sparse features would cost much and choose almost nothing.
ALL_ALONE = 50
MOST_ALONE = 200


@dataclass(frozen=True)
class Untuned:
    """Choices by name, with their corpus scores: `start`, `consensus`, and every feature that was
    tried alone, as `+NAME` where its highest value is chosen and `-NAME` where its lowest is."""

    choices: dict[str, Positions]
    scores: dict[str, float]
    best: str
    """The name of the best one. It is known only after scoring, so a comparison with it on the
    same sentences favours it: weights that beat it beat every choice."""
    features: int
    """How many features there are; with many, not all are tried alone."""

    @property
    def alone(self) -> dict[str, float]:
        """The scores of single features, the better sign of each, the best feature first."""
        return {name: score for name, score in self.scores.items() if is_alone(name)}


def untuned_choices(
    spaces: Spaces, metric: Metric, start: Positions, weights: Vector, threads: int = 0
) -> Untuned:
    """Return the start, the consensus under the start's `weights`, and each feature alone.

    Of a feature the sign with the better score counts. There is no consensus if no list has two
    different texts.
    """
    sign = 1.0 if metric.higher_is_better else -1.0
    choices: dict[str, Positions] = {START: start}
    if _texts_differ(spaces):
        choices[CONSENSUS] = spaces.consensus(weights, None, threads)
    names = spaces.names
    alone: dict[str, float] = {}
    for feature in tried_alone(spaces):
        both: dict[str, Positions] = {}
        for mark, value in (("+", 1.0), ("-", -1.0)):
            unit = np.zeros(spaces.width)
            unit[feature] = value
            both[mark + names[feature]] = spaces.best(unit, threads)
        reached = {name: spaces.score(metric, chosen) for name, chosen in both.items()}
        better = max(reached, key=lambda name: sign * reached[name])
        choices[better], alone[better] = both[better], reached[better]
    scores = {
        name: spaces.score(metric, choices[name]) for name in (START, CONSENSUS) if name in choices
    }
    # Of equal scores, features whose highest value is chosen come first.
    scores |= sorted(alone.items(), key=lambda item: (-sign * item[1], item[0][0] == "-"))
    # Of equal scores the first wins: the start is the simplest choice.
    best = max(scores, key=lambda name: sign * scores[name])
    return Untuned(choices, scores, best, spaces.width)


def is_alone(name: str) -> bool:
    """Whether a choice is that of a single feature."""
    return name not in (START, CONSENSUS)


def described(name: str) -> str:
    """Return the name of a choice for use in a sentence."""
    if name == START:
        return "the start"
    return f"{name.removeprefix('+')} alone" if is_alone(name) else name


def tried_alone(spaces: Spaces) -> list[int]:
    """Return the features that are tried alone, in the order of names."""
    if spaces.width <= ALL_ALONE:
        return list(range(spaces.width))
    # The features of a forest are not known without a walk through all of its edges.
    return sorted(_frequent(spaces.listed([], 0))) if spaces.flat else []


def _frequent(pools: Pools) -> Iterator[int]:
    """Yield the features of at least half of the lists, those of the most lists first."""
    rows, ids, _ = pools.core.csr()
    starts = pools.core.starts
    least = max(np.count_nonzero(np.diff(starts)) / 2, 1)
    # A feature of `least` lists occurs at least so often; leave out the others to save memory.
    often = np.flatnonzero(np.bincount(ids, minlength=pools.width) >= least)
    place = np.full(pools.width, -1)
    place[often] = np.arange(len(often))
    lists = np.repeat(np.arange(pools.sentences), np.diff(rows[starts]))
    column = place[ids]
    seen = np.zeros((pools.sentences, len(often)), bool)
    seen[lists[column >= 0], column[column >= 0]] = True
    count = seen.sum(axis=0)
    order = np.argsort(-count, kind="stable")[:MOST_ALONE]
    yield from (int(often[at]) for at in order if count[at] >= least)


def _texts_differ(spaces: Spaces) -> bool:
    if not spaces.flat:
        return True
    core = spaces.listed([], 0).core
    return core.distinct_texts > int(np.count_nonzero(np.diff(core.starts)))
