"""Phrase and hierarchical rules: from aligned text to tables, and tables to and from text."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import count
from os import PathLike
from typing import Literal

from tunesmith._core import (
    GLUE_RULES,
    AlignedCorpus,
    AtomicWriter,
    RuleTable,
    import_cdec_grammar,
    import_moses_table,
)
from tunesmith.training.stages import Progress

__all__ = [
    "AlignedCorpus",
    "HieroOptions",
    "Imported",
    "Made",
    "PhraseOptions",
    "Rule",
    "RuleTable",
    "export_cdec",
    "export_moses",
    "export_reordering",
    "find",
    "import_cdec",
    "import_moses",
    "make_hiero_table",
    "make_phrase_table",
    "matches",
    "write_glue",
    "write_lexicon",
]

Path = str | PathLike[str]
GAPS = {"[X,1]": -1, "[X,2]": -2}
SHORT_GAPS = {"[1]": "[X,1]", "[2]": "[X,2]"}
GIBIBYTE = 1 << 30


@dataclass(frozen=True)
class PhraseOptions:
    """Options of the extraction and scoring of phrase pairs."""

    max_length: int = 7
    """Maximum number of words on either side."""
    reordering: bool = True
    """Orientations to the neighbouring words: msd-bidirectional-fe."""
    hierarchical_reordering: bool = False
    """Orientations to blocks of any size (Galley & Manning 2008)."""
    reordering_sides: bool = False
    """Of these, tell left from right where a block stands apart: eight features, not six."""
    smoothing: Literal["none", "good-turing", "kneser-ney"] = "none"
    """Smoothing of the two phrase probabilities (Foster, Kuhn & Johnson 2006)."""
    exact_lexicon: bool = False
    """Lexical weights from exact probabilities, not from the seven decimals of Moses' files."""
    min_count: int = 1
    """Minimum count; rarer phrase pairs are dropped after the probabilities are computed."""


@dataclass(frozen=True)
class HieroOptions:
    """Options of the extraction of hierarchical rules (Chiang 2007)."""

    max_span: int = 10
    """Maximum number of words on either side of an initial phrase."""
    max_symbols: int = 5
    """Maximum number of words and gaps on the source side."""
    max_gaps: int = 2
    min_gap: int = 1
    """Minimum number of source words under a gap."""
    adjacent_gaps: bool = False
    """Whether two gaps may touch on the source side."""
    tight: bool = True
    """Exclude words without links at the edges of phrases and gaps."""
    min_count: int = 1
    min_gap_count: int = 1
    """The same as `min_count`, for rules with gaps."""


@dataclass(frozen=True)
class Made:
    """Counts from the making of a table."""

    instances: int
    """Extracted rules, repetitions included."""
    distinct: int
    """Different rules, before any were dropped."""
    sources: int
    entries: int
    spilled: int
    """Bytes written to a temporary file because of the memory limit."""


@dataclass(frozen=True)
class Imported:
    """Counts from an import."""

    sources: int
    entries: int
    repeated: int
    """Rules given again with the same scores."""
    left_out: int
    """Glue rules."""
    missing: int
    """Phrase pairs without orientations, which got probabilities of one."""


@dataclass(frozen=True)
class Rule:
    """One rule in words; `links` are positions on the two sides."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    scores: dict[str, float]
    links: list[tuple[int, int]] = field(default_factory=list)


def make_phrase_table(
    corpus: AlignedCorpus,
    out: Path,
    options: PhraseOptions | None = None,
    *,
    memory: int = GIBIBYTE,
    threads: int = 0,
    progress: Progress | None = None,
) -> Made:
    """Extract and score phrase pairs into a table at `out`.

    Beyond `memory` bytes records go through a temporary file. The result does not depend on
    `memory` or `threads`.
    """
    chosen = asdict(options or PhraseOptions())
    return Made(
        **corpus.phrase_table(out, **chosen, memory=memory, threads=threads, progress=progress)
    )


def make_hiero_table(
    corpus: AlignedCorpus,
    out: Path,
    options: HieroOptions | None = None,
    *,
    memory: int = GIBIBYTE,
    threads: int = 0,
    progress: Progress | None = None,
) -> Made:
    """Extract and score hierarchical rules into a table at `out`; as `make_phrase_table`."""
    chosen = asdict(options or HieroOptions())
    return Made(
        **corpus.hiero_table(out, **chosen, memory=memory, threads=threads, progress=progress)
    )


def write_lexicon(corpus: AlignedCorpus, inverse: Path, direct: Path, *, threads: int = 0) -> int:
    """Write p(source | target) and p(target | source) as Moses' `lex.e2f` and `lex.f2e`.

    Return the number of word pairs, NULL included.
    """
    return corpus.write_lexicon(inverse, direct, threads=threads)


def find(table: RuleTable, source: str | Sequence[str]) -> list[Rule]:
    """Return the rules with exactly this source side.

    Gaps are `[X,1]` and `[X,2]`, in short `[1]` and `[2]`, or `[X]`, numbered from left to right.
    """
    words = source.split() if isinstance(source, str) else list(source)
    if table.kind == "hiero":
        words = _numbered(words)
    symbols = [_symbol(table, word) for word in words]
    known = [symbol for symbol in symbols if symbol is not None]
    if len(known) < len(words):
        return []
    return [_rule(table, words, *entry) for entry in table.lookup(known)]


def matches(table: RuleTable, sentence: str | Sequence[str]) -> Iterator[tuple[int, list[Rule]]]:
    """Yield, for each position of a sentence, the rules without gaps that start there."""
    words = sentence.split() if isinstance(sentence, str) else list(sentence)
    ids = [table.source_id(word) for word in words]
    for start in range(len(words)):
        node = table.root
        for end in range(start, len(words)):
            word = ids[end]
            child = None if word is None else table.child(node, word)
            if child is None:
                break
            node = child
            entries = table.entries(node)
            if entries:
                yield start, [_rule(table, words[start : end + 1], *entry) for entry in entries]


def _numbered(words: Sequence[str]) -> list[str]:
    """Return a source side with every gap in its long form."""
    place = count(1)
    return [f"[X,{next(place)}]" if word == "[X]" else SHORT_GAPS.get(word, word) for word in words]


def _symbol(table: RuleTable, word: str) -> int | None:
    gap = GAPS.get(word) if table.kind == "hiero" else None
    return table.source_id(word) if gap is None else gap


def _rule(
    table: RuleTable,
    source: Sequence[str],
    target: Sequence[int],
    scores: Sequence[float],
    links: list[tuple[int, int]],
) -> Rule:
    def shown(symbol: int) -> str:
        word = f"[X,{-symbol}]" if symbol < 0 else table.target_word(symbol)
        assert word is not None, "a table knows its own words"
        return word

    names = (name for name, _ in table.columns)
    named = dict(zip(names, scores, strict=True))
    return Rule(tuple(source), tuple(map(shown, target)), named, links)


def log_scores(table: RuleTable, scores: Sequence[float]) -> list[float]:
    """Return scores as a decoder adds them up: probabilities become natural logarithms."""
    return [
        (math.log(score) if score > 0 else -100.0) if scale == "probability" else score
        for (_, scale), score in zip(table.columns, scores, strict=True)
    ]


def import_moses(phrases: Path, out: Path, reordering: Path | None = None) -> Imported:
    """Turn a Moses phrase table, and a reordering table, into a table at `out`.

    Raise an `InputError` with file and line if a file is not such a table.
    """
    return Imported(**import_moses_table(phrases, out, reordering))


def import_cdec(grammar: Path, out: Path) -> Imported:
    """Turn a cdec grammar into a table at `out`; its features become the columns."""
    return Imported(**import_cdec_grammar(grammar, out))


def export_moses(table: RuleTable, out: Path) -> None:
    """Write a phrase table as Moses does, sorted, with links and counts."""
    table.export_moses(out)


def export_reordering(
    table: RuleTable, out: Path, model: Literal["word", "block"] = "word"
) -> None:
    """Write orientations as a Moses table of type msd-bidirectional-fe."""
    table.export_reordering(out, model)


def export_cdec(table: RuleTable, out: Path) -> None:
    """Write a cdec grammar, without glue."""
    table.export_cdec(out)


def write_glue(out: Path) -> None:
    """Write the glue rules that go with every hierarchical grammar."""
    with AtomicWriter(out) as file:
        file.write(GLUE_RULES)
