"""Pairs of a sentence and a reference, to which a decoder is forced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tunesmith import _core
from tunesmith.decode.translator import Translator
from tunesmith.errors import InputError
from tunesmith.learn.selectors import Violations
from tunesmith.sources.base import Source
from tunesmith.spaces import Pools, Spaces

if TYPE_CHECKING:
    from tunesmith.sources.live import Live


COUNTED = (
    *("pairs", "used", "whole", "prefixes", "wrong", "words", "used_words"),
    *("unreachable", "given_up", "too_long", "blank"),
)


class Pairs(Source):
    """Sentences with one reference each: a sentence with several becomes several pairs.

    The list of a pair holds the violations that a learner wants: a gold derivation, then those of
    the beam that it is to beat (Liu & Huang 2014, figure 6; Yu et al. 2013). `lines` says which
    sentence of the source each pair has.
    """

    follows = True

    def __init__(self, source: Live, wanted: Violations) -> None:
        if "force_limit" not in dict(source.model.decoder.settings):
            raise InputError(
                "a hierarchical decoder cannot be forced to a reference",
                remedy="tune a phrase-based model (--kind phrase), or choose another tuner",
            )
        if source.space not in (None, "list"):
            raise InputError(
                f"learning from forced decoding has no use for a space of {source.space}",
                remedy="leave --space out: it looks at the beam itself",
            )
        self._source, self._wanted = source, wanted
        found = source.references
        self.lines = [line for line, references in enumerate(found) for _ in references]
        self.sources = [source.sources[line] for line in self.lines]
        self.references = [[text] for references in found for text in references]

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        """Return the translations of the sentences, as often as they have references."""
        return self._source.decode(weights, k).subset(self.lines)

    def following(self, learner: _core.Learner) -> Translator:
        """Return a translator with the weights that a learner has now."""
        return self._source.following(learner)

    def found(self, translator: Translator, sentences: Sequence[int], k: int) -> Spaces:
        """Return the violations of some pairs, with counts of what could be reached."""
        lines = [self.sources[pair] for pair in sentences]
        references = [self.references[pair] for pair in sentences]
        texts = [text for (text,) in references]
        pools, contests = translator.violations(lines, texts, self._wanted, self._source.threads)
        lists = Pools(pools.core, references, lines)
        lists.counts = counts(contests, texts)
        return lists


def counts(contests: Sequence[_core.Contest], references: Sequence[str]) -> dict[str, int]:
    """Count pairs and words, and what of them is of use to a learner.

    `used` are the pairs that a learner can use: `whole` those whose reference is reached as a
    whole, `prefixes` the others; `wrong` are the violations, pairs at which the search is
    corrected; `used_words` are the words of references that are reached in them. `unreachable` are
    pairs of which too little can be reached. `given_up` and `too_long` are pairs that could not be
    searched, `blank` those with an empty reference.
    """
    total = Counter(dict.fromkeys(COUNTED, 0))
    for contest, reference in zip(contests, references, strict=True):
        length, used = len(reference.split()), bool(contest.rungs)
        searched = contest.given_up is None and length > 0
        total.update(
            pairs=1,
            used=used,
            whole=used and contest.whole,
            prefixes=used and not contest.whole,
            unreachable=searched and not used,
            wrong=contest.step is not None,
            words=length,
            used_words=contest.words if used else 0,
            given_up=contest.given_up == "work",
            too_long=contest.given_up == "length",
            blank=length == 0,
        )
    return dict(total)
