"""Text on its way into a model and out again: tokens, case, filters; recorded with the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from tunesmith.errors import InputError

Tokenizer = Literal["moses", "none", "char", "sentencepiece"]
Case = Literal["keep", "lower", "true"]


@dataclass(frozen=True)
class TextSide:
    """How one side of a corpus is prepared, and how that is undone.

    `moses` tokenises and detokenises as the Moses scripts do (sacremoses), `char` takes every
    character that is no space for a word (Chinese, Japanese), `sentencepiece` uses the model in
    `model`, `none` leaves the words as they stand. `lower` and `true` fold case: the latter keeps
    names, by a table learnt from the text, in `truecase`.

    >>> side = TextSide(tokenize="char")
    >>> side.prepare("你好 吗"), side.restore("你 好 吗")
    ('你 好 吗', '你好吗')
    """

    language: str = "en"
    tokenize: Tokenizer = "none"
    case: Case = "keep"
    model: str = ""
    truecase: Mapping[str, str] = field(default_factory=dict)

    def prepare(self, line: str) -> str:
        """Return the line as the model sees it: words between single spaces."""
        words = self._split(" ".join(line.split()))
        if self.case == "lower":
            words = [word.lower() for word in words]
        elif self.case == "true" and words:
            words = [self.truecase.get(words[0].lower(), words[0]), *words[1:]]
        return " ".join(words)

    def restore(self, words: str) -> str:
        """Return what the model wrote as text."""
        if self.tokenize == "moses":
            text: str = self._moses[1].detokenize(words.split())
        elif self.tokenize == "char":
            text = words.replace(" ", "")
        elif self.tokenize == "sentencepiece":
            text = self._pieces.decode(words.split())
        else:
            text = words
        return text[:1].upper() + text[1:] if self.case == "true" else text

    def learn_case(self, lines: Iterable[str]) -> TextSide:
        """Return the side with a truecasing table: the commonest form of each word that does not
        begin a sentence."""
        forms: dict[str, Counter[str]] = {}
        for line in lines:
            for word in self._split(" ".join(line.split()))[1:]:
                forms.setdefault(word.lower(), Counter())[word] += 1
        table = {
            lower: best
            for lower, seen in forms.items()
            if (best := min(seen, key=lambda form: (-seen[form], form)))
        }
        return TextSide(self.language, self.tokenize, "true", self.model, table)

    def _split(self, line: str) -> list[str]:
        if self.tokenize == "moses":
            tokens: list[str] = self._moses[0].tokenize(line, escape=False)
            return tokens
        if self.tokenize == "char":
            return [character for character in line if not character.isspace()]
        if self.tokenize == "sentencepiece":
            pieces: list[str] = self._pieces.encode(line, out_type=str)
            return pieces
        return line.split()

    @cached_property
    def _moses(self) -> tuple[Any, Any]:
        try:
            from sacremoses import MosesDetokenizer, MosesTokenizer
        except ImportError:
            raise InputError(
                "tokenisation needs sacremoses", remedy="pip install 'tunesmith[train]'"
            ) from None
        return MosesTokenizer(self.language), MosesDetokenizer(self.language)

    @cached_property
    def _pieces(self) -> Any:
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError:
            raise InputError(
                "subwords need sentencepiece", remedy="pip install sentencepiece"
            ) from None
        if not Path(self.model).is_file():
            raise InputError("no such sentencepiece model", self.model, remedy="check the path")
        return SentencePieceProcessor(model_file=self.model)


@dataclass
class PairFilter:
    """Sentence pairs that can be learnt from; the others are counted by reason."""

    longest: int = 100
    ratio: float = 9.0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def keep(self, source: str, target: str) -> bool:
        """Return whether a prepared pair is kept, and count it."""
        left, right = len(source.split()), len(target.split())
        reason = None
        if not left or not right:
            reason = "an empty side"
        elif max(left, right) > self.longest:
            reason = f"more than {self.longest} words"
        elif max(left, right) > self.ratio * min(left, right):
            reason = f"a length ratio above {self.ratio:g}"
        if reason is None:
            self.kept += 1
        else:
            self.dropped[reason] += 1
        return reason is None


def paired(
    source: Iterable[str], target: Iterable[str], files: tuple[str, str]
) -> Iterator[tuple[str, str]]:
    """Yield the lines of two files together; refuse an unequal number, naming both counts."""
    left, right = iter(source), iter(target)
    count = 0
    missing = object()
    while True:
        one, other = next(left, missing), next(right, missing)
        if one is missing and other is missing:
            return
        if one is missing or other is missing:
            short = 0 if one is missing else 1
            rest = right if one is missing else left
            total = count + 1 + sum(1 for _ in rest)
            raise InputError(
                f"it ends after {count} lines, but {files[1 - short]} has {total}",
                files[short],
                count + 1,
                "give one line per sentence in both files",
            )
        count += 1
        assert isinstance(one, str)
        assert isinstance(other, str)
        yield one, other
