"""N-gram language models: estimated from text, read from files, queried word by word or in bulk."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tunesmith import _core
from tunesmith._core import LmState as State
from tunesmith.errors import InputError

__all__ = ["Estimate", "LanguageModel", "Order", "State", "Text", "WordScore", "estimate"]

Path = str | PathLike[str]
FALLBACK = (0.5, 1.0, 1.5)
"""Default discounts for counts of one, two, and more, if they cannot be estimated."""
MAX_ORDER = 6
NO_WORDS = "the text has no words"
"""The core's message; the core sees all files as one text."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_ADDRESSABLE = 2**63


class WordScore(NamedTuple):
    """The score of one word of a sentence."""

    log10: float
    """Log-probability to base ten, with backoffs."""
    length: int
    """Length of the longest n-gram that was found."""
    known: bool


@dataclass(frozen=True)
class Text:
    """The score of a text under a model."""

    sentences: int
    tokens: int
    """Number of words and sentence ends."""
    unknown: int
    log10: float
    unknown_log10: float
    """The part of `log10` that comes from unknown words."""

    @property
    def perplexity(self) -> float:
        """Perplexity per token, unknown words included; NaN for an empty text."""
        return _perplexity(self.log10, self.tokens)

    @property
    def perplexity_known(self) -> float:
        """Perplexity per token that the model knows."""
        return _perplexity(self.log10 - self.unknown_log10, self.tokens - self.unknown)


@dataclass(frozen=True)
class Order:
    """The n-grams of one order of an estimate."""

    ngrams: int
    before_pruning: int
    discounts: tuple[float, ...]
    """Discounts of counts of one, two, and three or more."""
    fallback: str | None
    """Why the discounts could not be estimated; None if they were."""


class LanguageModel:
    """A model in memory or mapped from a file; threads may share it.

    >>> model = estimate(sentences=["a b", "b a b"], order=2).model()
    >>> len(model.full_scores("a b"))
    3
    """

    def __init__(self, core: _core.LanguageModel) -> None:
        self.core = core

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read an ARPA file (plain, gzip or zstd) or map a binary; the content decides."""
        return cls(_core.LanguageModel.load(path))

    def save(self, path: Path) -> None:
        """Write a binary atomically; it loads in milliseconds."""
        self.core.save(path)

    @property
    def order(self) -> int:
        """Length of the longest n-grams."""
        return self.core.order

    @property
    def counts(self) -> list[int]:
        """Number of n-grams of each order."""
        return self.core.counts

    def __contains__(self, word: str) -> bool:
        return self.core.id(word) != 0

    def __len__(self) -> int:
        return self.core.vocabulary_size

    def __repr__(self) -> str:
        return repr(self.core)

    def score(self, sentence: str, bos: bool = True, eos: bool = True) -> float:
        """Return the log-probability, to base ten, of a sentence and its end.

        Without `bos` the words need not begin a sentence, without `eos` they need not end it.
        """
        return self.core.score(sentence, bos, eos)

    def full_scores(self, sentence: str, bos: bool = True, eos: bool = True) -> list[WordScore]:
        """Return the score of each word, and last that of the end of the sentence."""
        return [WordScore(*score) for score in self.core.full_scores(sentence, bos, eos)]

    def score_many(
        self, sentences: Sequence[str], bos: bool = True, eos: bool = True, threads: int = 0
    ) -> NDArray[np.float64]:
        """Return the log-probabilities of sentences; the fastest way to score text."""
        return self.core.score_many(sentences, bos, eos, threads)

    def measure(self, sentences: Iterable[str]) -> Text:
        """Return the total score of sentences."""
        return Text(*self.core.measure(list(sentences)))

    def measure_file(self, path: Path, threads: int = 0) -> Text:
        """Return the total score of a file of one sentence per line; `-` is the standard input."""
        return Text(*self.core.measure_file(path, threads))

    def perplexity(self, sentences: Iterable[str]) -> float:
        """Return the perplexity per word and end of sentence, unknown words included."""
        return self.measure(sentences).perplexity

    def id(self, word: str) -> int:
        """Return the id of a word; 0, the id of `<unk>`, if the model does not know it."""
        return self.core.id(word)

    def word(self, id: int) -> str:
        """Return the word of an id."""
        return self.core.word(id)

    def ids(self, sentence: str) -> NDArray[np.uint32]:
        """Return the ids of the words of a sentence."""
        return self.core.ids(sentence)

    @property
    def end_id(self) -> int:
        """The id of `</s>`."""
        return self.core.end_id

    def begin_state(self) -> State:
        """Return the state at the beginning of a sentence."""
        return self.core.begin_state()

    def empty_state(self) -> State:
        """Return the state without any context."""
        return self.core.empty_state()

    def score_word(self, state: State, word: str | int) -> tuple[float, State, int]:
        """Return a word's log-probability after a state, the next state, and the n-gram's length.

        Two states are equal, and have equal hashes, if and only if all continuations score alike.
        """
        return self.core.score_word(state, self.id(word) if isinstance(word, str) else word)

    def score_words(
        self, state: State, words: NDArray[np.uint32]
    ) -> tuple[NDArray[np.float32], NDArray[np.uint8], list[State]]:
        """Return log-probabilities, lengths and next states of many words after one state."""
        (values, lengths), states = self.core.score_words(state, words)
        return values, lengths, states

    def score_ids(
        self, ids: NDArray[np.uint32], ends: NDArray[np.int64], bos: bool = True
    ) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return log-probabilities and lengths of all words of sentences given as ids.

        `ends` says where in `ids` each sentence ends; `</s>` is scored where it is among the ids.
        """
        return self.core.score_ids(ids, ends, bos)


class Estimate:
    """An estimated model, to write as ARPA or to query."""

    def __init__(self, core: _core.LmEstimate) -> None:
        self.core = core

    @property
    def orders(self) -> list[Order]:
        """Size and discounts of each order."""
        return [
            Order(count, before, tuple(discounts), reason)
            for count, before, discounts, reason in self.core.orders
        ]

    @property
    def sentences(self) -> int:
        """Number of lines read."""
        return self.core.sentences

    @property
    def words(self) -> int:
        """Number of words read."""
        return self.core.words

    @property
    def skipped(self) -> int:
        """Number of special words in the text that were skipped."""
        return self.core.skipped

    def messages(self) -> list[str]:
        """Return messages for the user: default discounts that were used, skipped words."""
        found = [
            f"{number}-grams: {order.fallback}, as in small or artificial texts; discounts "
            f"{', '.join(f'{value:g}' for value in order.discounts)} are used instead"
            for number, order in enumerate(self.orders, 1)
            if order.fallback is not None
        ]
        if self.skipped:
            found.append(f"{self.skipped} special words (<s>, </s>, <unk>) were skipped")
        return found

    def write_arpa(self, path: Path) -> None:
        """Write ARPA, compressed if the name ends in `.gz` or `.zst`; `-`: standard output."""
        self.core.write_arpa(path)

    def model(self) -> LanguageModel:
        """Return a model to query; it must fit into memory."""
        return LanguageModel(self.core.model())


def estimate(
    texts: Path | Sequence[Path] = (),
    *,
    sentences: Iterable[str] | None = None,
    order: int = 5,
    prune: Sequence[int] = (),
    vocabulary: Iterable[str] | None = None,
    memory: int | str = "1G",
    folder: Path | None = None,
    skip_symbols: bool = False,
    fallback: tuple[float, float, float] = FALLBACK,
    threads: int = 0,
    progress: Callable[[str, int, int], object] | None = None,
) -> Estimate:
    """Estimate an interpolated model with modified Kneser-Ney smoothing, as KenLM's `lmplz`.

    - `texts`: files of one sentence per line, plain, gzip or zstd; or `sentences`.
    - `prune`: for each order the count up to which n-grams are dropped; the last holds for higher
      orders. Must not decrease.
    - `vocabulary`: words to keep; n-grams with other words are dropped.
    - `memory`: for sorting, in bytes or as in `"500M"`; the rest goes to temporary files in
      `folder`. Neither memory nor threads change the result.
    - `skip_symbols`: treat `<s>`, `</s>` and `<unk>` in the text as white space; otherwise they
      are an error.
    - `fallback`: discounts for orders where none can be estimated; `Estimate.messages` reports it.
    - `progress`: called with the stage, the lines or n-grams done, and the total (0 if unknown).
    """
    paths = [texts] if isinstance(texts, str | PathLike) else list(texts)
    if (sentences is None) == (not paths):
        raise InputError(
            "both files and sentences are given, or neither",
            remedy="give either files or sentences",
        )
    if not all(0 < value <= top for value, top in zip(fallback, (1, 2, 3), strict=True)):
        raise InputError(
            f"fallback discounts {fallback}", remedy="give three, above 0 and at most 1, 2 and 3"
        )
    if min(prune, default=0) < 0 or threads < 0:
        raise InputError("a negative number", remedy="threads and thresholds cannot be negative")
    check_order(order)
    try:
        made = _core.estimate_lm(
            paths,
            None if sentences is None else list(sentences),
            order=order,
            prune=list(prune),
            vocabulary=None if vocabulary is None else list(vocabulary),
            memory=memory_bytes(memory),
            folder=folder,
            skip_symbols=skip_symbols,
            fallback=list(fallback),
            threads=threads,
            progress=progress,
        )
    except InputError as error:
        if error.message != NO_WORDS or not paths:
            raise
        files = ", ".join(map(str, paths))
        raise InputError(error.message, files, remedy=error.remedy) from None
    return Estimate(made)


def check_order(order: int) -> None:
    """Raise if an order is out of range."""
    if not 1 <= order <= MAX_ORDER:
        raise InputError(f"a model of order {order}", remedy=f"orders are 1 to {MAX_ORDER}")


def memory_bytes(text: int | str) -> int:
    """Return the number of bytes in `1000`, `"64K"`, `"1.5G"` or `"2GiB"`.

    Raise for other text, and for amounts that no machine has.
    """
    remedy = "write it as in 500M or 2G"
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?\s*", str(text).upper())
    if match is None:
        raise InputError(f"{text!r} is not an amount of memory", remedy=remedy)
    amount = float(match[1]) * _UNITS[match[2]]
    if amount >= _ADDRESSABLE:
        raise InputError(f"{text!r} is more memory than a machine can have", remedy=remedy)
    return int(amount)


def _perplexity(log10: float, tokens: int) -> float:
    if tokens == 0:
        return math.nan
    exponent = -log10 / tokens
    return math.inf if exponent > 300 else float(10**exponent)
