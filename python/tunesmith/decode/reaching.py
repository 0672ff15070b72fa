"""Which references a decoder can reach: forced decoding, counted.

>>> from tunesmith.decode.translation import Model
>>> translator = Model.load("model").translator()  # doctest: +SKIP
>>> found = reachability(translator, ["das haus"], [["the house", "a home"]])  # doctest: +SKIP
>>> found.summary(least=5)["whole"]  # doctest: +SKIP
1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from tunesmith import _core
from tunesmith.decode.batches import Pace
from tunesmith.decode.translator import Translator
from tunesmith.errors import InputError

# Words by which sentences are grouped.
WIDTH = 10


@dataclass(frozen=True)
class Reach:
    """How far the reference of a pair can be reached."""

    line: int
    """The sentence, counted from 0."""
    source: str
    """The sentence in words of the model, and the same of its reference."""
    reference: str
    reached: int
    """Words of the reference that are reached, from its beginning."""
    whole: bool
    """Whether the reference is a translation of the whole sentence."""
    states: int
    """Hypotheses that lead there, apart by what comes later."""
    derivations: float
    """Ways there."""
    given_up: str | None
    """`work` if the search looked at too many hypotheses, `length` if the sentence is too long."""

    @property
    def words(self) -> int:
        """Words of the reference."""
        return len(self.reference.split())

    def is_used(self, least: int) -> bool:
        """Whether `maxforce` can learn from it, with prefixes of at least so many words."""
        return self.given_up is None and self.reached > 0 and (self.whole or self.reached >= least)


@dataclass(frozen=True)
class Reachability:
    """How far the references of a text can be reached; each reference makes a pair."""

    pairs: Sequence[Reach]

    def whole(self, *, once: bool = False) -> list[int]:
        """Return the pairs whose reference is reached as a whole; with `once`, one per sentence."""
        found = [number for number, pair in enumerate(self.pairs) if pair.whole and pair.words]
        if not once:
            return found
        first = {self.pairs[number].line: number for number in reversed(found)}
        return sorted(first.values())

    def used(self, least: int = 5) -> list[int]:
        """Return the pairs that are reached as a whole, or of which at least so many words are."""
        return [number for number, pair in enumerate(self.pairs) if pair.is_used(least)]

    def part(self, size: int, seed: int = 1) -> list[int]:
        """Return about so many of the pairs that are reached as a whole, drawn at random."""
        found = self.whole()
        order = _core.permutation(seed, 0, len(found)).astype(np.int64)
        return sorted(found[place] for place in order[:size].tolist())

    def texts(self, pairs: Sequence[int]) -> tuple[list[str], list[list[str]]]:
        """Return sentences and references of some pairs, in words of the model.

        They are text for `Live(…, tokenized=True)`.
        """
        chosen = [self.pairs[number] for number in pairs]
        return [pair.source for pair in chosen], [[pair.reference] for pair in chosen]

    def summary(self, least: int = 5) -> dict[str, Any]:
        """Return counts of pairs and words; see `summary_of`."""
        return summary_of(self.pairs, least)

    def by_length(self, least: int = 5, width: int = WIDTH) -> list[dict[str, Any]]:
        """Return the same for sentences of 1 to `width` words, and so on."""
        groups: dict[int, list[Reach]] = {}
        for pair in self.pairs:
            groups.setdefault(max(len(pair.source.split()) - 1, 0) // width, []).append(pair)
        return [
            {"from": place * width + 1, "to": (place + 1) * width, **summary_of(group, least)}
            for place, group in sorted(groups.items())
        ]

    def to_json(self, least: int = 5) -> dict[str, Any]:
        """Return everything as plain values."""
        pairs = [
            {**asdict(pair), "words": pair.words, "used": pair.is_used(least)}
            for pair in self.pairs
        ]
        for pair in pairs:
            del pair["source"], pair["reference"]
        return {
            "least": least,
            **self.summary(least),
            "lengths": self.by_length(least),
            "each": pairs,
        }


def tuning_sets(
    tuning: Reachability, training: Reachability, *, least: int = 5, seed: int = 1
) -> dict[str, tuple[list[str], list[list[str]]]]:
    """Return the tuning sets of Liu & Huang 2014, table 6: sentences and references.

    `prefixes` are the pairs of a tuning set that are reached as a whole, or of which at least
    `least` words are (nist02-px); `whole` those reached as a whole, once per sentence (nist02-r);
    `training` is a part of the pairs of the training text that are reached as a whole, as many as
    the tuning set has sentences (train-r-part). All are in words of the model.
    """
    size = len({pair.line for pair in tuning.pairs})
    return {
        "prefixes": tuning.texts(tuning.used(least)),
        "whole": tuning.texts(tuning.whole(once=True)),
        "training": training.texts(training.part(size, seed)),
    }


def summary_of(pairs: Sequence[Reach], least: int) -> dict[str, Any]:
    """Return counts: pairs, those reached `whole`, and those `used` by `maxforce`; their words;
    those that were `given_up` or are `too_long`; the median of states and derivations."""
    used = [pair for pair in pairs if pair.is_used(least)]
    return {
        "pairs": len(pairs),
        "sentences": len({pair.line for pair in pairs}),
        "whole": sum(pair.whole and pair.words > 0 for pair in pairs),
        "used": len(used),
        "words": sum(pair.words for pair in pairs),
        "whole_words": sum(pair.words for pair in pairs if pair.whole),
        "used_words": sum(pair.reached for pair in used),
        "reached_words": sum(pair.reached for pair in pairs),
        "given_up": sum(pair.given_up == "work" for pair in pairs),
        "too_long": sum(pair.given_up == "length" for pair in pairs),
        "blank": sum(pair.words == 0 for pair in pairs),
        "states": median(pair.states for pair in used) if used else 0,
        "derivations": median(pair.derivations for pair in used) if used else 0.0,
    }


def in_words(counts: Mapping[str, int]) -> str:
    """Return in a line how much of a text a learner could use.

    >>> in_words({"pairs": 3512, "used": 434, "whole": 92, "words": 92724, "used_words": 6227})
    '434 of 3,512 pairs (12%) and 7% of their words, 92 as a whole'
    """
    shares = [
        round(100 * counts[part] / counts[all_]) if counts[all_] else 0
        for part, all_ in (("used", "pairs"), ("used_words", "words"))
    ]
    more = [
        f"{counts[name]:,} {called}"
        for name, called in (
            ("given_up", "given up because they took too long"),
            ("too_long", "in sentences that are translated in pieces"),
            ("blank", "with an empty reference"),
        )
        if counts.get(name)
    ]
    return ", ".join(
        [
            f"{counts['used']:,} of {counts['pairs']:,} pairs ({shares[0]}%) and {shares[1]}% of "
            f"their words",
            f"{counts['whole']:,} as a whole",
            *more,
        ]
    )


def reachability(
    translator: Translator,
    lines: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    threads: int = 0,
    tell: Callable[[int], object] = lambda done: None,
) -> Reachability:
    """Force a decoder to each reference of each line; `tell` gets the number of pairs done.

    Gold derivations keep to the limits of the translator's search: distortion, phrase and table
    limit. Raise for hierarchical models, and if there are not as many lines as references.
    """
    if len(lines) != len(references):
        raise InputError(
            f"{len(lines)} sentences, but references for {len(references)}",
            remedy="give files of the same number of lines",
        )
    pairs = [(number, text) for number, texts in enumerate(references) for text in texts]
    found: list[Reach] = []
    pace = Pace(threads)
    while len(found) < len(pairs):
        begun, part = perf_counter(), pairs[len(found) : len(found) + pace.size]
        texts = [lines[number] for number, _ in part]
        wanted = [text for _, text in part]
        reached = translator.reach(texts, wanted, threads=threads)
        said = zip(translator.prepared(texts), translator.prepared_references(wanted), strict=True)
        for (number, _), (source, reference), one in zip(part, said, reached, strict=True):
            found.append(
                Reach(
                    number,
                    source,
                    reference,
                    one.words,
                    one.whole,
                    one.states,
                    one.derivations,
                    one.given_up,
                )
            )
        pace.took(len(part), perf_counter() - begun)
        tell(len(found))
    return Reachability(found)
