"""CoNLL-U: sentences of words with tags and heads, read with their lines kept for writing.

Comments, multiword tokens (`1-2`) and empty nodes (`1.1`) are kept as they are written; only words
are tagged and parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike

from tunesmith._core import Lines
from tunesmith.errors import InputError

COLUMNS = 10
FORM, UPOS, XPOS, HEAD, DEPREL, DEPS = 1, 3, 4, 6, 7, 8
TAG_COLUMNS = {"upos": UPOS, "xpos": XPOS}
BLANK = "_"
NUMBER = re.compile(r"[1-9][0-9]{0,8}\Z")
RANGE = re.compile(r"([1-9][0-9]{0,8})-([1-9][0-9]{0,8})\Z")
EMPTY = re.compile(r"(0|[1-9][0-9]{0,8})\.[1-9][0-9]{0,8}\Z")
HEAD_NUMBER = re.compile(r"(0|[1-9][0-9]{0,8})\Z")


@dataclass(frozen=True)
class Word:
    """One word: its ten columns, and the line it stands in."""

    fields: tuple[str, ...]
    line: int = 0

    @property
    def form(self) -> str:
        """The word as it is written."""
        return self.fields[FORM]

    @property
    def head(self) -> int | None:
        """The number of the head, 0 for the root; None if there is none."""
        text = self.fields[HEAD]
        return None if text == BLANK else int(text)

    @property
    def label(self) -> str:
        """The name of the relation to the head."""
        return self.fields[DEPREL]

    def tag(self, column: str) -> str:
        """Return the tag in `upos` or `xpos`; `_` if there is none."""
        return self.fields[TAG_COLUMNS[column]]

    def with_tag(self, column: str, tag: str) -> Word:
        """Return the word with another tag."""
        return self._with({TAG_COLUMNS[column]: tag})

    def with_head(self, head: int, label: str) -> Word:
        """Return the word with another head; enhanced dependencies, of the old tree, are dropped.

        An empty label is written as `_`.
        """
        return self._with({HEAD: str(head), DEPREL: label or BLANK, DEPS: BLANK})

    def _with(self, changed: dict[int, str]) -> Word:
        fields = (changed.get(place, text) for place, text in enumerate(self.fields))
        return replace(self, fields=tuple(fields))


@dataclass(frozen=True)
class Sentence:
    """The words of a sentence, and all its lines in order.

    `parts` has lines that are kept unchanged, and for each word its place among the words.
    """

    words: tuple[Word, ...]
    parts: tuple[str | int, ...]
    file: str = ""
    line: int = 0

    def forms(self) -> tuple[str, ...]:
        """Return the words as they are written."""
        return tuple(word.form for word in self.words)

    def has_tags(self, column: str) -> bool:
        """Return whether all words have a tag."""
        return all(word.tag(column) != BLANK for word in self.words)

    def tags(self, column: str) -> tuple[str, ...]:
        """Return the tags of all words; raise if one has none."""
        for word in self.words:
            if word.tag(column) == BLANK:
                raise self._error(
                    f"the word {word.form!r} has no {column.upper()} tag",
                    word.line,
                    "tag the text first (tunesmith structured apply TAGGER), or name another "
                    "column with --column",
                )
        return tuple(word.tag(column) for word in self.words)

    def heads(self) -> tuple[int, ...]:
        """Return the heads of all words; raise if they are not one tree with one root."""
        heads = []
        for word in self.words:
            if word.head is None:
                raise self._error(
                    f"the word {word.form!r} has no head", word.line, "give a text with trees"
                )
            if word.head > len(self.words):
                raise self._error(
                    f"the head {word.head} is outside the sentence of {len(self.words)} words",
                    word.line,
                    "correct the head",
                )
            heads.append(word.head)
        roots = [word for word in self.words if word.head == 0]
        if len(roots) != 1:
            raise self._error(
                f"the sentence has {len(roots)} roots",
                roots[1].line if roots else self.line,
                "exactly one word must have the head 0",
            )
        self._check_cycles(heads)
        return tuple(heads)

    def labels(self) -> tuple[str, ...]:
        """Return the names of all relations; raise if one has none."""
        for word in self.words:
            if word.label == BLANK:
                raise self._error(
                    f"the relation of {word.form!r} to its head has no name",
                    word.line,
                    "name it, or train with --unlabelled",
                )
        return tuple(word.label for word in self.words)

    def _check_cycles(self, heads: Sequence[int]) -> None:
        # Words from which the root is reached; 0 is the root itself.
        safe = {0}
        for number in range(1, len(heads) + 1):
            path = []
            at = number
            while at not in safe:
                if at in path:
                    raise self._error(
                        f"the heads form a cycle through {self.words[at - 1].form!r}",
                        self.words[at - 1].line,
                        "correct a head so that all words lead to the root",
                    )
                path.append(at)
                at = heads[at - 1]
            safe.update(path)

    def _error(self, message: str, line: int, remedy: str) -> InputError:
        return InputError(message, self.file or None, line or None, remedy)

    def with_words(self, words: Sequence[Word]) -> Sentence:
        """Return the sentence with other words in the same places."""
        return replace(self, words=tuple(words))

    def text(self) -> str:
        """Return the lines of the sentence and the blank line after it."""
        lines = (
            part if isinstance(part, str) else "\t".join(self.words[part].fields)
            for part in self.parts
        )
        return "".join(f"{line}\n" for line in (*lines, ""))


def read_conllu(path: str | PathLike[str]) -> Iterator[Sentence]:
    """Yield the sentences of a file, plain or compressed; `-` is the standard input.

    Raise an `InputError` with file and line for what is not CoNLL-U. Heads and tags may be missing
    (`_`): `Sentence.tags` and `Sentence.heads` raise where they are needed.
    """
    lines = Lines(path)
    words: list[Word] = []
    parts: list[str | int] = []
    first = until = 0
    for line in lines:
        number = lines.line
        if not line.strip():
            if words:
                yield Sentence(tuple(words), tuple(parts), lines.file, first)
                words, parts, until = [], [], 0
            elif parts:
                raise _bad("comments without a sentence", lines, "put words after them")
            continue
        if not parts:
            first = number
        if line.startswith("#"):
            if words:
                raise _bad("a comment inside a sentence", lines, "put a blank line before it")
            parts.append(line)
            continue
        fields = tuple(line.split("\t"))
        _check_columns(fields, lines)
        name = fields[0]
        if NUMBER.match(name):
            if int(name) != len(words) + 1:
                raise _bad(
                    f"word {name} follows word {len(words)}", lines, "number words 1, 2, 3 …"
                )
            if not (fields[HEAD] == BLANK or HEAD_NUMBER.match(fields[HEAD])):
                raise _bad(
                    f"the head {fields[HEAD]!r} is no number", lines, "give the head's number, or _"
                )
            parts.append(len(words))
            words.append(Word(fields, number))
        elif found := RANGE.match(name):
            start, end = int(found[1]), int(found[2])
            if start != len(words) + 1 or end < start or start <= until:
                raise _bad(
                    f"the token {name} stands before word {len(words) + 1}",
                    lines,
                    "a multiword token stands before its first word, and none overlap",
                )
            until = end
            parts.append(line)
        elif found := EMPTY.match(name):
            if int(found[1]) != len(words):
                raise _bad(
                    f"the empty node {name} follows word {len(words)}",
                    lines,
                    f"it must stand after word {found[1]}",
                )
            parts.append(line)
        else:
            raise _bad(f"{name!r} is no id", lines, "ids are 1, 1-2 or 1.1")
        if until and len(words) == until:
            until = 0
    if words:
        yield Sentence(tuple(words), tuple(parts), lines.file, first)
    elif parts:
        raise _bad("comments without a sentence", lines, "put words after them")


def _check_columns(fields: Sequence[str], lines: Lines) -> None:
    if len(fields) != COLUMNS:
        remedy = "separate ten columns by tabs"
        if len(fields) == 1 and len(fields[0].split()) == COLUMNS:
            remedy = "separate the columns by tabs, not spaces"
        raise _bad(f"{len(fields)} columns, not {COLUMNS}", lines, remedy)
    for place, text in enumerate(fields):
        if not text:
            raise _bad(f"column {place + 1} is empty", lines, "write _ for nothing")


def _bad(message: str, lines: Lines, remedy: str) -> InputError:
    return InputError(message, lines.file, lines.line, remedy)


def write_conllu(sentences: Iterable[Sentence]) -> Iterator[str]:
    """Yield the text of each sentence."""
    return (sentence.text() for sentence in sentences)
