"""Spans of text that are not language (addresses, tags, numbers): kept whole and restored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tunesmith.errors import InputError

SPACE = "▁"
"""Replaces a space inside a word of the model."""
JOINER = "\uffed"
"""Marks the side of a protected word that had no space (￭, as in OpenNMT's tokeniser)."""
OPEN, CLOSE = "\uff5f", "\uff60"
"""Enclose a word that must not be changed (as in OpenNMT's tokeniser)."""
MASK = "\ue000"
"""Replaces a protected span while the rest of the line is processed."""

_CJK = r"\u2e80-\u9fff\uf900-\ufaff"
# A letter, digit or underscore of a script that puts spaces between words.
_WORD = rf"[^\W{_CJK}]"
_URL = rf"""[^\s<>"“”„«»|\\^{{}}`()▁{_CJK}\uff00-\uffef]"""
# The punctuation of a sentence is not part of an address, nor is a bracket opened before it.
_URL_REST = rf"(?:{_URL}|\({_URL}*\))*(?:(?![.,;:!?'’‘*_]){_URL}|\({_URL}*\))"
# Not inside a word or a longer number. The first condition only saves time.
_ALNUM = rf"[^\W_{_CJK}]"
_BEFORE = rf"(?=[-+−0-9])(?<!{_ALNUM})(?<![0-9][.,:/'’–-])(?<!\w-)"
_AFTER = rf"(?!{_ALNUM}|-\w|[.,:/'’–][0-9])"
_TAG = r"""</?[A-Za-z][\w:.-]*(?:\s+[\w:.@-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s"'<>=]+))?)*\s*/?>"""
_MAIL = rf"(?:mailto:)?(?:{_WORD}|[.+%-])+@(?:[A-Za-z0-9-]+\.)+[A-Za-z]{{2,}}"

WHOLE_NUMBERS = rf"{_BEFORE}[-+−]?[0-9]{{2,}}{_AFTER}"
"""Protected for tokenisers that split words; the others keep these numbers whole anyway."""
_NEEDS = {
    # Tags, comments, entities.
    _TAG: "<",
    r"<!--.*?-->": "<",
    r"&(?:[A-Za-z][A-Za-z0-9]{1,30}|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});": "&",
    # Addresses of pages and of people.
    rf"(?<!{_WORD})(?:(?i:https?|ftps?|file)://|(?i:www)\.){_URL_REST}": "/",
    rf"(?<![\w@./-])(?:[A-Za-z0-9-]+\.)+[a-z]{{2,}}/(?:{_URL_REST})?": "/",
    rf"(?<![\w.+-]){_MAIL}(?!{_WORD})": "@",
    # Placeholders.
    r"(?<!\w)@[\w-]+@(?!\w)": "@",
    # Paths: from a root or a folder, to a file with an extension, of Windows.
    r"(?<![\w./~)-])(?:~|\.{1,2})?(?:/[\w.+~@%-]+)+/?(?<!\.)": "/",
    r"(?<![\w./~-])[\w.+~@%-]+(?:/[\w.+~@%-]+)+\.[A-Za-z]\w{0,4}(?!\w)": "/",
    r"""(?<!\w)(?:[A-Za-z]:|\\\\[\w.-]+)\\(?:[^\s"<>|*?▁]*[^\s"<>|*?▁.,;:!)\]])?""": "\\",
    # Numbers with separators, dates, times; a currency right behind a number.
    rf"{_BEFORE}[-+−]?[0-9]+(?:[.,:/'’–-][0-9]+)+{_AFTER}": "0123456789",
    r"(?<=[0-9])[$£¥€₹](?![0-9])": "$£¥€₹",
    # Names of programs; marks of emphasis, without the words between them.
    r"(?<!\w)[^\W_]+(?:_+[^\W_]+)+(?!\w)": "_",
    r"(?<!\w)_{1,3}(?=[^\W_])|(?<=[^\W_])_{1,3}(?!\w)": "_",
    r"\*+": "*",
    WHOLE_NUMBERS: "0123456789",
}
# Regular expressions, each with characters of which a match has at least one. Most lines have
# none of them, and this check is ten times as fast. "www." counts as a slash.
PROTECTED: tuple[str, ...] = tuple(pattern for pattern in _NEEDS if pattern != WHOLE_NUMBERS)
"""The default regular expressions of protected spans."""

# A sentence begins with the first word after leading marks.
_MARKUP = re.compile(r"[<*_&]")
# Tokens that Moses' detokeniser attaches to the left or to the right.
_CLOSING = re.compile(r"[,.?!:;\\%}\])]+")
_OPENING = re.compile(r"[(\[{¿¡$£¥€₹]+")
_CURRENCY = re.compile(r"[$£¥€₹]")


class Span(NamedTuple):
    """A protected span among the words of the model."""

    text: str
    joins_left: bool = False
    joins_right: bool = False


class Protector:
    """Finds protected spans by regular expressions; earlier ones take precedence.

    sacremoses' `protected_patterns` is not enough: it replaces every occurrence of a matched text,
    glues it to its neighbours, and cannot restore the text from tokens.

    >>> protector = protector_of(PROTECTED)
    >>> masked, spans = protector.mask("<b>Siehe</b> https://a.de/B.")
    >>> spans, masked == f"{MASK}Siehe{MASK} {MASK}."
    (['<b>', '</b>', 'https://a.de/B'], True)
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise InputError(
                    f"{pattern!r} is not a regular expression: {error}",
                    remedy="correct it; see the documentation of Python's re module",
                ) from None
        self._patterns = patterns
        self._needed = frozenset("".join(_NEEDS.get(each, "") for each in patterns))
        self._always = any(each not in _NEEDS for each in patterns)
        self._compiled: dict[frozenset[str], re.Pattern[str]] = {}

    def _any(self, text: str) -> re.Pattern[str] | None:
        """Return the pattern of the expressions that can match a text, None if none can."""
        there = self._needed.intersection(text)
        if "www." in text or "WWW." in text:
            there |= {"/"}
        if not (there or self._always or MASK in text):
            return None
        if there not in self._compiled:
            chosen = [
                each
                for each in self._patterns
                if each not in _NEEDS or not there.isdisjoint(_NEEDS[each])
            ]
            # A mask character in the text must not be mistaken for a span.
            pattern = re.compile("|".join(f"(?:{each})" for each in (MASK, *chosen)))
            self._compiled[there] = pattern
        return self._compiled[there]

    def mask(self, line: str) -> tuple[str, list[str]]:
        """Return the line with `MASK` for each protected span, and the spans."""
        pattern = self._any(line) if self._patterns else None
        if pattern is None:
            return line, []
        spans: list[str] = []

        def hide(found: re.Match[str]) -> str:
            # Inside words a ▁ means a space.
            if not found[0] or SPACE in found[0]:
                return found[0]
            spans.append(found[0])
            return MASK

        return pattern.sub(hide, line), spans

    def span(self, token: str) -> Span | None:
        """Return the span that a word of the model represents, None if it is not protected."""
        if not self._patterns:
            return None
        if MASK in token:
            return Span(token)
        left, right = token.startswith(JOINER), token.endswith(JOINER)
        text = token[left : len(token) - right].removeprefix(SPACE).replace(SPACE, " ")
        if (left or right) and text:
            return Span(text, left, right)
        pattern = self._any(text)
        return Span(text) if pattern and pattern.fullmatch(text) else None


@lru_cache(maxsize=64)
def protector_of(patterns: tuple[str, ...]) -> Protector:
    """Return a protector for these patterns; raise for an invalid regular expression."""
    return Protector(patterns)


def is_markup(span: str) -> bool:
    """Return whether a span is a tag, an entity or a mark of emphasis."""
    return _MARKUP.match(span) is not None


def unmask(masked: str, spans: Sequence[str]) -> str:
    """Return a masked line with its spans restored."""
    if not spans:
        return masked
    parts = masked.split(MASK)
    return "".join(part for pair in zip(parts, [*spans, ""], strict=True) for part in pair)


def joined_words(words: list[str], masked: str, spans: Sequence[str]) -> list[str]:
    """Return Moses' tokens of a masked line, with masks replaced by spans.

    A joiner marks a side without a space if Moses' detokeniser would insert one.
    """
    if not spans:
        return words
    # Spaces at both ends, so that every mask has a character on either side.
    padded = f" {masked} "
    places = [at for at, character in enumerate(padded) if character == MASK]
    out: list[str] = []
    given = iter(zip(places, spans, strict=True))
    for at, word in enumerate(words):
        if word != MASK:
            out.append(word)
            continue
        place, span = next(given)
        left = padded[place - 1] != " " and not (at and _OPENING.fullmatch(words[at - 1]))
        right = padded[place + 1] not in (" ", MASK) and not (
            at + 1 < len(words) and _CLOSING.fullmatch(words[at + 1])
        )
        out.append(f"{JOINER * left}{span.replace(' ', SPACE)}{JOINER * right}")
    return out


def joined_pieces(pieces: list[str], spans: Sequence[str]) -> list[str]:
    """Return the pieces of a masked line, with masks replaced by spans.

    A span marks whether a space precedes it, as other pieces do: by ▁ or a joiner.
    """
    if not spans:
        return pieces
    out: list[str] = []
    given = iter(spans)
    for piece in pieces:
        for number, part in enumerate(piece.split(MASK)):
            if number:
                span = next(given).replace(" ", SPACE)
                if out and out[-1] == SPACE:
                    out[-1] += span
                else:
                    out.append((JOINER if out else SPACE) + span)
            if part:
                out.append(part)
    return out


def behind_number(token: str, before: str) -> bool:
    """Return whether a token is a currency that belongs to the number before it."""
    return before[-1:].isdigit() and _CURRENCY.fullmatch(token) is not None


def glued(masked: str, spans: Sequence[Span]) -> str:
    """Return text with masks replaced by spans, without the spaces that joiners forbid."""
    parts = masked.split(MASK)
    for at, span in enumerate(spans):
        if span.joins_left:
            parts[at] = parts[at].rstrip(" ")
        if span.joins_right:
            parts[at + 1] = parts[at + 1].lstrip(" ")
    return unmask(MASK.join(parts), [span.text for span in spans])


def glued_pieces(pieces: Sequence[str], spans: Sequence[Span | None]) -> str:
    """Return joined pieces, with ▁ for spaces; `spans` holds the protected ones."""
    text, joins = "", True
    for piece, span in zip(pieces, spans, strict=True):
        if span is None:
            text += piece.removeprefix(SPACE) if joins else piece
        else:
            joins = joins or span.joins_left or text.endswith(SPACE)
            text += span.text if joins else SPACE + span.text
        joins = span is not None and span.joins_right
    return text


def verbatim(text: str) -> str:
    """Return text as one word that is never changed."""
    return f"{OPEN}{text.replace(' ', SPACE)}{CLOSE}"
