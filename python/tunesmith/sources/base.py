"""Where hypotheses come from.

A source has the sentences of a corpus, with references, and says what they could become under
given weights. One of your own is a subclass of `Source` with `references`, `sources` and `decode`.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.engines import Engine, Pool
from tunesmith.errors import InputError
from tunesmith.learn.selectors import Violations
from tunesmith.metrics import Metric, Rows
from tunesmith.spaces import Positions, Spaces
from tunesmith.weights import Weights

if TYPE_CHECKING:
    from tunesmith.sources.pairs import Pairs

# Default length of lists.
LIST = 100


class Chosen(Protocol):
    """What was chosen for the lines of a corpus, wherever they were decoded."""

    def statistics(self, metric: Metric) -> Rows:
        """Return a row of statistics per line; of bins, those of the last."""

    def outputs(self) -> list[str]:
        """Return a text per line; of bins, that of the last."""

    def score(self, metric: Metric) -> float:
        """Return the corpus score."""

    def facts(self, metric: Metric) -> dict[str, float]:
        """Return the corpus score over all bins, where there are bins."""


@dataclass(frozen=True)
class Choice:
    """What was chosen for the lines of a corpus."""

    spaces: Spaces
    positions: Positions

    def statistics(self, metric: Metric) -> Rows:
        """Return a row of statistics per line; of bins, those of the last."""
        rows: Rows = self.spaces.statistics(metric, self.positions)[self.spaces.last]
        return rows

    def outputs(self) -> list[str]:
        """Return a text per line; of bins, that of the last."""
        return self.spaces.by_line(self.spaces.outputs(self.positions))

    def score(self, metric: Metric) -> float:
        """Return the corpus score."""
        return self.spaces.score(metric, self.positions)

    def facts(self, metric: Metric) -> dict[str, float]:
        """Return the corpus score over all bins, where there are bins."""
        if not self.spaces.binned:
            return {}
        return {"score_bins": self.spaces.score_all(metric, self.positions)}


@dataclass(frozen=True)
class Joined:
    """Choices for the parts of a corpus, each with the lines it is for."""

    parts: Sequence[tuple[npt.NDArray[np.int64], Choice]]

    def statistics(self, metric: Metric) -> Rows:
        """Return a row of statistics per line."""
        order = np.argsort(np.concatenate([lines for lines, _ in self.parts]), kind="stable")
        rows: Rows = np.concatenate([choice.statistics(metric) for _, choice in self.parts])[order]
        return rows

    def outputs(self) -> list[str]:
        """Return a text per line."""
        found = {
            line: text
            for lines, choice in self.parts
            for line, text in zip(lines.tolist(), choice.outputs(), strict=True)
        }
        return [found[line] for line in sorted(found)]

    def score(self, metric: Metric) -> float:
        """Return the corpus score."""
        return metric.native.score(self.statistics(metric).sum(axis=0))

    def facts(self, metric: Metric) -> dict[str, float]:
        """Return the corpus score over all bins, where there are bins."""
        if not any(choice.spaces.binned for _, choice in self.parts):
            return {}
        lines = np.concatenate([lines[choice.spaces.groups] for lines, choice in self.parts])
        rows = np.concatenate(
            [choice.spaces.statistics(metric, choice.positions) for _, choice in self.parts]
        )[np.argsort(lines, kind="stable")]
        return {"score_bins": metric.native.score(rows.sum(axis=0))}


class Source(ABC):
    """Sentences with references, and what they could become under given weights."""

    references: list[list[str]]
    """The references of each sentence, in the words that hypotheses have."""
    sources: list[str]
    """The sentences."""

    fixed: bool = False
    """Whether all weights find the same hypotheses."""
    follows: bool = False
    """Whether single sentences can be decoded with a learner's current weights."""

    @property
    def prunes(self) -> bool:
        """Whether weights of another size find other hypotheses, as with a beam's threshold."""
        return False

    @property
    def sentences(self) -> int:
        """Number of sentences."""
        return len(self.references)

    def suited(self, space: str) -> Self:
        """Return the source with the kind of space that a tuner learns from; raise if it has none.

        Most tuners learn from any.
        """
        raise InputError(
            f"the tuner learns from {space}, which a {type(self).__name__} source does not have",
            remedy="give a model directory of tunesmith train, or a Moses configuration",
        )

    def sampled(self, most: int) -> Source:
        """Return at most so many of the sentences; all if the source cannot be split."""
        step = -(-self.sentences // most)
        can_be_split = type(self).subset is not Source.subset
        return self.subset(range(0, self.sentences, step)) if can_be_split else self

    def dense(self) -> Source:
        """Return the source without features that templates add for tuning; most have none."""
        return self

    @property
    def keys(self) -> list[str]:
        """A label per sentence, or nothing."""
        return []

    @abstractmethod
    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        """Return what the sentences could become, found with the weights, best first.

        With `k`, lists of that length are enough.
        """

    def on(self, engine: Engine) -> Self:
        """Return the source with workers of an engine to decode, if it can use them."""
        del engine
        return self

    def choose(self, weights: Weights, threads: int = 0) -> Choice:
        """Return what the weights choose for each sentence."""
        found = self.decode(weights, 1)
        return Choice(found, found.decoded(weights, threads))

    def subset(self, sentences: Sequence[int]) -> Self:
        """Return some of the sentences as a source of the same kind."""
        raise InputError(
            f"{type(self).__name__} cannot be split", remedy="give held-out text in place of folds"
        )

    spreads: bool = False
    """Whether workers elsewhere can decode parts of the sentences: `part` and `decode_parts`."""

    def part(self, sentences: Sequence[int]) -> Self:
        """Return what a worker needs to decode some of the sentences."""
        return self.subset(sentences)

    def decode_parts(
        self, weights: Mapping[str, float], ends: Sequence[int], pool: Pool
    ) -> list[Spaces]:
        """Return what the sentences of each block could become, as `decode`, given where blocks
        end. If there is no block, return a space without sentences."""
        raise NotImplementedError

    def thinned(self, kept: npt.NDArray[np.bool_]) -> Self:
        """Return what a worker needs that is asked about some sentences only; here, everything."""
        del kept
        return self

    def resume_key(self) -> dict[str, object]:
        """Return settings that must be the same when a run is resumed, apart from the sentences."""
        return {}

    def digest(self, metric: Metric) -> str:
        """Return a fingerprint of what is learnt from."""
        text = repr((self.sources, self.references)).encode("utf-8", "surrogatepass")
        return hashlib.sha256(text).hexdigest()

    def named_features(self, names: Sequence[str]) -> list[str]:
        """Return the features that have a weight from the start, for limits that name some.

        Raise if no feature can have one of the names. Here nothing is known of features.
        """
        return []

    @property
    def kept_weights(self) -> Mapping[str, float]:
        """Weights that are not to be tuned."""
        return {}

    @property
    def all_features(self) -> bool:
        """Whether the features of the first decoding are all that there can be, as far as names in
        limits and start weights are concerned."""
        return True

    @property
    def always(self) -> frozenset[str]:
        """Features whose weights are shown even where they are zero."""
        return frozenset()

    def forced(self, wanted: Violations) -> Pairs:
        """Return pairs of a sentence and a reference whose lists are the wanted violations.

        Raise for sources without a decoder that can be forced.
        """
        raise InputError(
            f"{type(self).__name__.lower()} lists cannot be forced to a reference",
            remedy="tune a phrase-based model or a configuration of Moses with its own decoder",
        )

    def following(self, learner: _core.Learner) -> Any:
        """Return a decoder with the weights that a learner has now."""
        raise NotImplementedError

    def found(self, translator: Any, sentences: Sequence[int], k: int) -> Spaces:
        """Return what a decoder that follows a learner makes of some sentences."""
        raise NotImplementedError


def refuse_empty(lines: Sequence[str]) -> None:
    """Raise if there are no sentences."""
    if not lines:
        raise InputError("the text has no sentences", remedy="give a source that has some")
