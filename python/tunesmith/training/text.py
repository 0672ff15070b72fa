"""Preparation of text for a model and its reversal: tokens, case, pieces, filters."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, Literal

from tunesmith._core import AtomicWriter, Lines
from tunesmith.errors import InputError
from tunesmith.training.protect import (
    CLOSE,
    MASK,
    OPEN,
    PROTECTED,
    SPACE,
    WHOLE_NUMBERS,
    Protector,
    Span,
    behind_number,
    glued,
    glued_pieces,
    is_markup,
    joined_pieces,
    joined_words,
    protector_of,
    unmask,
    verbatim,
)

Tokenizer = Literal["none", "moses", "char", "sentencepiece", "bpe"]
Case = Literal["keep", "lower", "true"]
TOKENIZERS: tuple[Tokenizer, ...] = ("none", "moses", "char", "sentencepiece", "bpe")
CASES: tuple[Case, ...] = ("keep", "lower", "true")
PIECES = ("sentencepiece", "bpe")
UNKNOWN = "unknown"
"""Stands for any language: the tokeniser then uses rules that hold for all languages."""
LEARNT_FROM = 1_000_000
"""Maximum number of lines from which pieces are learnt."""

_CONTROL = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), 0x2028, 0x2029], " ")
_UNSPACED = "[\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
"""Chinese and Japanese characters and punctuation; spaces between them are ignored."""
_TOO_FEW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")
"""Part of sentencepiece's error message."""
_NO_SPACE = re.compile(f"(?<={_UNSPACED}) (?={_UNSPACED})")


def check_choice(what: str, value: str, choices: Sequence[str]) -> None:
    """Raise if a value is not one of the choices."""
    if value not in choices:
        raise InputError(f"{what} {value!r}", remedy=f"use one of {', '.join(choices)}")


def spaced(line: str) -> str:
    """Return a line with single spaces between its words; control characters count as spaces."""
    return " ".join(line.translate(_CONTROL).split())


@dataclass(frozen=True)
class TextSide:
    """How one side of a corpus is prepared, and how text is restored.

    `moses` tokenises and detokenises as the Moses scripts do (sacremoses); `char` makes every
    character a word (Chinese, Japanese); `sentencepiece` and `bpe` split text into about `pieces`
    different pieces with the model in the file `model`, which training makes if none is given;
    `none` does not split words. `lower` and `true` fold case first; `true` keeps the case of names
    with a table learnt from the text, `truecase`.

    Control characters count as spaces. `restore` reverses `prepare`, except for case and spaces:
    spaces come back single and plain, as does `▁` from characters and pieces; with `moses`, its
    rules place them.

    Spans that match a regular expression of `protected` are not language: each stays one word,
    keeps its case, and is restored exactly. With `moses` and pieces a joiner (￭) marks the sides of
    a span that had no space. The default of `protected` is `PROTECTED`.

    >>> side = TextSide(tokenize="char")
    >>> side.prepare("你 好吗 OK go"), side.restore("你 好 吗 ▁ O K ▁ g o")
    ('你 好 吗 ▁ O K ▁ g o', '你好吗 OK go')
    """

    language: str = UNKNOWN
    tokenize: Tokenizer = "none"
    case: Case = "keep"
    model: str = ""
    pieces: int = 8000
    truecase: Mapping[str, str] = field(default_factory=dict)
    protected: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.protected is None:
            more = (WHOLE_NUMBERS,) if self.tokenize == "char" or self.tokenize in PIECES else ()
            object.__setattr__(self, "protected", (*PROTECTED, *more))
        protector_of(self.protected or ())
        check_choice("tokenisation", self.tokenize, TOKENIZERS)
        check_choice("case", self.case, CASES)
        if self.pieces < 1:
            raise InputError(f"{self.pieces} pieces", remedy="give a number above 0")

    def prepare(self, line: str, *, begins: bool = True) -> str:
        """Return the line as the model sees it: words between single spaces.

        If the line does not begin a sentence, the case of its first word is kept.
        """
        masked, spans = self._protector.mask(spaced(line))
        words = self._cased(self._words(masked), spans, begins)
        if self.tokenize == "moses":
            return " ".join(joined_words(words, masked, spans))
        text = " ".join(words)
        if self.tokenize == "char":
            text = _NO_SPACE.sub("", text).replace(" ", SPACE)
            return unmask(" ".join(text), [span.replace(" ", SPACE) for span in spans])
        if self.tokenize in PIECES:
            return " ".join(joined_pieces(self._pieces.encode(text, out_type=str), spans))
        return unmask(text, spans)

    def restore(self, words: str) -> str:
        """Return the model's output as text."""
        text = self._text(words)
        if self.case != "true" or words.startswith(OPEN):
            return text
        masked, spans = self._protector.mask(text)
        at = len(masked) - len(masked.lstrip(f"{MASK} "))
        if not all(map(is_markup, spans[: masked.count(MASK, 0, at)])):
            return text
        return unmask(masked[:at] + masked[at : at + 1].upper() + masked[at + 1 :], spans)

    def exact(self, text: str) -> str:
        """Return words from which `restore` makes exactly this text in the middle of a sentence."""
        words = self.prepare(text, begins=False)
        return words if SPACE in text or self._text(words) == text else verbatim(text)

    def _text(self, words: str) -> str:
        """Return words as text, without changing the case of the first."""
        tokens = words.split()
        found = [self._span(token, before) for before, token in pairwise(["", *tokens])]
        spans = [span for span in found if span]
        if self.tokenize in PIECES:
            return glued_pieces(tokens, found).replace(SPACE, " ").strip()
        if self.tokenize == "char":
            pairs = zip(tokens, found, strict=True)
            text = "".join(span.text if span else token for token, span in pairs)
            return text.replace(SPACE, " ").strip()
        masked = [MASK if span else token for token, span in zip(tokens, found, strict=True)]
        if self.tokenize == "moses":
            return glued(self._moses[1].detokenize(masked), spans)
        return glued(" ".join(masked), spans) if spans else words

    def _span(self, token: str, before: str) -> Span | None:
        if self.protected and self.tokenize == "moses" and behind_number(token, before):
            return Span(token)
        if token.startswith(OPEN) and token.endswith(CLOSE):
            return Span(token[1:-1].replace(SPACE, " "))
        return self._protector.span(token)

    def learn_case(self, lines: Iterable[str]) -> TextSide:
        """Return the side with a truecasing table: each word's commonest form within sentences."""
        forms: dict[str, Counter[str]] = {}
        for line in lines:
            masked, _ = self._protector.mask(spaced(line))
            for word in self._words(masked)[1:]:
                if MASK in word:
                    continue
                forms.setdefault(word.lower(), Counter())[word] += 1
        table = {
            lower: min(seen, key=lambda form: (-seen[form], form)) for lower, seen in forms.items()
        }
        return replace(self, case="true", truecase=table)

    def learn_pieces(self, lines: Iterable[str]) -> bytes:
        """Return a model of pieces as the content of a file for `model`.

        The model is learnt from the first million lines. Text with few different words gives fewer
        pieces than `pieces`. Raise if the text has no words, or more characters than `pieces`.
        """
        refused: list[InputError] = []

        def given() -> Iterator[str]:
            try:
                for line in islice(lines, LEARNT_FROM):
                    masked, spans = self._protector.mask(spaced(line))
                    words = self._cased(self._words(masked), spans)
                    if text := " ".join(words).replace(MASK, " ").strip():
                        yield text
            except InputError as error:
                # The trainer would wrap this error into one of its own.
                refused.append(error)
                raise

        out = io.BytesIO()
        try:
            _sentencepiece().SentencePieceTrainer.train(
                sentence_iterator=given(),
                model_writer=out,
                model_type="bpe" if self.tokenize == "bpe" else "unigram",
                vocab_size=self.pieces,
                hard_vocab_limit=False,
                # Text must be restored without loss.
                normalization_rule_name="identity",
                character_coverage=1.0,
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            if refused:
                raise refused[0] from None
            if few := _TOO_FEW.search(str(error)):
                raise InputError(
                    f"{self.pieces} pieces are too few for the characters of the text",
                    remedy=f"give --pieces {few[1]} or more, or try --tokenize char",
                ) from None
            raise InputError(
                f"no pieces can be learnt ({error})",
                remedy="check the text, or try --tokenize char",
            ) from None
        return out.getvalue()

    def _words(self, line: str) -> list[str]:
        if self.tokenize == "moses":
            tokens: list[str] = self._moses[0].tokenize(line, escape=False)
            return tokens
        return line.split()

    def _cased(self, words: list[str], spans: Sequence[str], begins: bool = True) -> list[str]:
        if self.case == "lower":
            return [word.lower() for word in words]
        if self.case != "true" or not begins:
            return words
        # The sentence begins after leading tags and marks.
        first = next((at for at, word in enumerate(words) if word.strip(MASK)), len(words))
        if first == len(words):
            return words
        word = words[first].lstrip(MASK)
        leading = first + len(words[first]) - len(word)
        if MASK in word or not all(map(is_markup, spans[:leading])):
            return words
        cased = MASK * (leading - first) + self.truecase.get(word.lower(), word)
        return [*words[:first], cased, *words[first + 1 :]]

    @cached_property
    def _protector(self) -> Protector:
        return protector_of(self.protected or ())

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
        if not Path(self.model).is_file():
            raise InputError("no such model of pieces", self.model, remedy="check the path")
        try:
            return _sentencepiece().SentencePieceProcessor(model_file=self.model)
        except RuntimeError:
            raise InputError(
                "not a model of sentencepiece", self.model, remedy="learn or copy it again"
            ) from None


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError:
        raise InputError(
            "pieces need sentencepiece", remedy="pip install 'tunesmith[train]'"
        ) from None
    return sentencepiece


def write_case(side: TextSide, path: Path) -> None:
    """Write a truecasing table: lower-cased word, tab, form."""
    with AtomicWriter(path) as out:
        out.write("".join(f"{lower}\t{form}\n" for lower, form in side.truecase.items()))


def read_case(side: TextSide, path: Path) -> TextSide:
    """Return the side with the truecasing table of a file."""
    table: dict[str, str] = {}
    for number, line in enumerate(Lines(path), 1):
        lower, tab, form = line.partition("\t")
        if not tab:
            raise InputError(
                "not a truecasing table: no tab", str(path), number, "train the model again"
            )
        table[lower] = form
    return replace(side, truecase=table)


@dataclass
class PairFilter:
    """Keeps usable sentence pairs and counts the others by reason."""

    longest: int = 100
    ratio: float = 9.0
    kept: int = 0
    dropped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.longest < 1:
            raise InputError(f"a limit of {self.longest} words", remedy="give a number above 0")
        # This also rejects NaN.
        if not self.ratio >= 1:
            raise InputError(
                f"a limit of {self.ratio:g} for the length ratio", remedy="give a number from 1"
            )

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
    """Yield the lines of two files together; raise if the numbers of lines differ."""
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
