"""Detection of how to prepare a text, from a sample of it and from its file name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Literal

from tunesmith._core import Lines
from tunesmith.errors import InputError
from tunesmith.training.text import UNKNOWN, Case, TextSide, Tokenizer, spaced

SAMPLE = 2000
"""Number of lines in the sample; lines without words do not count."""
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy "
    "da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu "
    "hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb "
    "lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om "
    "or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw "
    "ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
CODES = frozenset(_CODES.split())
"""Language codes (ISO 639-1) that a file name may end in."""

Look = Literal["raw", "tokenised", "unspaced", "unclear"]
LOOKS: dict[Look, str] = {
    "raw": "raw text",
    "tokenised": "tokenised text",
    "unspaced": "text without spaces",
    "unclear": "text without punctuation",
}

# Ignore a space before ? or !: French has one in raw text.
_ATTACHED = re.compile(r"\w[.,?!。，]+(?:\s|$)")
_SEPARATED = re.compile(r"(?:^|\s)[.,。，](?:\s|$)")
# Chinese, Japanese, Thai, Lao, Burmese, Khmer.
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")


@dataclass(frozen=True)
class Found:
    """The properties of a sample of text."""

    look: Look
    cased: bool

    @classmethod
    def of(cls, lines: Iterable[str]) -> Found:
        """Return the properties of the first lines that have words.

        >>> Found.of(["Das Haus, das alt ist."]), Found.of(["das haus , das alt ist ."])
        (Found(look='raw', cased=True), Found(look='tokenised', cased=False))
        """
        sample = list(islice(filter(None, map(spaced, lines)), SAMPLE))
        text = "\n".join(sample)
        attached, separated = len(_ATTACHED.findall(text)), len(_SEPARATED.findall(text))
        letters = sum(map(str.isalpha, text))
        look: Look
        if len(_UNSPACED.findall(text)) * 2 > letters:
            # Words in these scripts have about two characters.
            look = "unspaced" if text.count(" ") * 8 < letters else "tokenised"
        elif attached > separated:
            look = "raw"
        else:
            look = "tokenised" if separated else "unclear"
        # A few names in upper case do not make a text cased.
        capitals = sum(line != line.lower() for line in sample)
        return cls(look, capitals * 20 > len(sample))


def language_of(path: Path) -> str:
    """Return the language at the end of a file's name, or `unknown`.

    >>> language_of(Path("train.de.gz")), language_of(Path("text.en.txt")), language_of(Path("a"))
    ('de', 'en', 'unknown')
    """
    endings = [ending.removeprefix(".") for ending in reversed(path.suffixes)]
    return next((ending for ending in endings if ending in CODES), UNKNOWN)


@dataclass(frozen=True)
class Chosen:
    """The preparation of both sides, and the reason."""

    source: TextSide
    target: TextSide
    why: str
    """A line that reports the choice; empty if every option was given."""


def choose_sides(
    source: Path,
    target: Path,
    *,
    languages: tuple[str | None, str | None] = (None, None),
    tokenize: Tokenizer | None = None,
    case: Case | None = None,
    pieces: int = 8000,
    aligned: bool = False,
    protected: tuple[str, ...] | None = None,
) -> Chosen:
    """Return how to prepare two texts; options that are not given are detected.

    Raw text is tokenised with the Moses rules and truecased, text without spaces is split into
    characters. Tokenised text and text with given links (`aligned`) stay unchanged. Raise for raw
    text if sacremoses is not installed.
    """
    paths = (source, target)
    # Links refer to the words in the files.
    cut = tokenize or ("none" if aligned else None)
    found = [_prepared(path, cut, case) for path in paths]
    codes = [given or language_of(path) for given, path in zip(languages, paths, strict=True)]
    sides = [
        TextSide(code, *each[:2], pieces=pieces, protected=protected)
        for code, each in zip(codes, found, strict=True)
    ]
    why = []
    if aligned and tokenize is None:
        why.append("words unchanged because links are given: --tokenize none")
    reasons = [_reason(*each, cut, case) for each in found]
    if reasons[0] == reasons[1]:
        why.append(reasons[0])
    else:
        why += [f"{path.name}: {each}" for path, each in zip(paths, reasons, strict=True) if each]
    for role, given, side in zip(("source", "target"), languages, sides, strict=True):
        why.append("" if given else _language(role, side))
    return Chosen(sides[0], sides[1], "; ".join(filter(None, why)))


def _prepared(
    path: Path, tokenize: Tokenizer | None, case: Case | None
) -> tuple[Tokenizer, Case, Look | None]:
    """Return how to tokenise and case a text, and its properties if they were needed."""
    if tokenize and case:
        return tokenize, case, None
    if tokenize == "none":
        return tokenize, "keep", None
    found = Found.of(Lines(path))
    cut = tokenize or _tokenizer(found, path)
    fold: Case = "true" if found.cased and cut not in ("none", "char") else "keep"
    return cut, case or fold, found.look


def _reason(
    cut: Tokenizer,
    fold: Case,
    look: Look | None,
    tokenize: Tokenizer | None,
    case: Case | None,
) -> str:
    if look is None:
        return ""
    options = [] if tokenize else [f"--tokenize {cut}"]
    options += [] if case else [f"--case {fold}"]
    return f"{LOOKS[look]}: {' '.join(options)}"


def _language(role: str, side: TextSide) -> str:
    if side.language != UNKNOWN:
        return f"{role} language {side.language}, by its file name"
    if side.tokenize != "moses":
        return f"{role} language unknown"
    return f"{role} language unknown: rules for any language (--{role}-language names it)"


def _tokenizer(found: Found, path: Path) -> Tokenizer:
    if found.look == "unspaced":
        return "char"
    if found.look != "raw":
        return "none"
    if find_spec("sacremoses") is None:
        raise InputError(
            "the text is not tokenised, and the tokeniser sacremoses is not installed",
            str(path),
            remedy="pip install sacremoses, or give --tokenize none to train on words as they "
            "stand, with punctuation attached, which translates worse",
        )
    return "moses"
