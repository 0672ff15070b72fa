"""How to prepare text that nobody described: found out from a sample and from file names."""

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
"""Lines with words that are looked at."""
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy "
    "da de dv dz ee el en eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu "
    "hy hz ia id ie ig ii ik io is it iu ja jv ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb "
    "lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no nr nv ny oc oj om "
    "or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw "
    "ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
CODES = frozenset(_CODES.split())
"""Codes of languages (ISO 639-1) that a file may end in."""

Look = Literal["raw", "tokenised", "unspaced", "unclear"]
LOOKS: dict[Look, str] = {
    "raw": "raw text",
    "tokenised": "tokenised text",
    "unspaced": "text without spaces",
    "unclear": "text without punctuation",
}

# A space before ? or ! means nothing: French has one.
_ATTACHED = re.compile(r"\w[.,?!。，]+(?:\s|$)")
_SEPARATED = re.compile(r"(?:^|\s)[.,。，](?:\s|$)")
# Chinese, Japanese, Thai, Lao, Burmese, Khmer.
_UNSPACED = re.compile("[\u2e80-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")


@dataclass(frozen=True)
class Found:
    """What a sample of a text looks like."""

    look: Look
    cased: bool

    @classmethod
    def of(cls, lines: Iterable[str]) -> Found:
        """Look at the first lines that have words.

        >>> Found.of(["Das Haus, das alt ist."]), Found.of(["das haus , das alt ist ."])
        (Found(look='raw', cased=True), Found(look='tokenised', cased=False))
        """
        sample = list(islice(filter(None, map(spaced, lines)), SAMPLE))
        text = "\n".join(sample)
        attached, separated = len(_ATTACHED.findall(text)), len(_SEPARATED.findall(text))
        letters = sum(map(str.isalpha, text))
        look: Look
        if len(_UNSPACED.findall(text)) * 2 > letters:
            # Words of these languages have about two characters.
            look = "unspaced" if text.count(" ") * 8 < letters else "tokenised"
        elif attached > separated:
            look = "raw"
        else:
            look = "tokenised" if separated else "unclear"
        # Names that somebody forgot do not make a text cased.
        capitals = sum(line != line.lower() for line in sample)
        return cls(look, capitals * 20 > len(sample))


def language_of(path: Path) -> str:
    """Return the language that a file's name ends in, `unknown` if none.

    >>> language_of(Path("train.de.gz")), language_of(Path("text.en.txt")), language_of(Path("a"))
    ('de', 'en', 'unknown')
    """
    endings = [ending.removeprefix(".") for ending in reversed(path.suffixes)]
    return next((ending for ending in endings if ending in CODES), UNKNOWN)


@dataclass(frozen=True)
class Chosen:
    """How both sides are prepared, and why."""

    source: TextSide
    target: TextSide
    why: str
    """A line that says what was chosen; empty if all was given."""


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
    """Return how to prepare two texts; what is given is taken, the rest is found out.

    Raw text is tokenised as Moses does it and truecased, text without spaces is cut into
    characters; tokenised text, and text that is `aligned` word by word, stays as it is. Refuses
    raw text where sacremoses is not installed.
    """
    paths = (source, target)
    # Links count the words of the files.
    cut = tokenize or ("none" if aligned else None)
    found = [_prepared(path, cut, case) for path in paths]
    codes = [given or language_of(path) for given, path in zip(languages, paths, strict=True)]
    sides = [
        TextSide(code, *each[:2], pieces=pieces, protected=protected)
        for code, each in zip(codes, found, strict=True)
    ]
    why = []
    if aligned and tokenize is None:
        why.append("words as they stand, since links are given: --tokenize none")
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
    """Return how to cut and case a text, and what it looks like if it was looked at."""
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
            "the text is not tokenised, and sacremoses, which would do it, is not installed",
            str(path),
            remedy="pip install sacremoses, or give --tokenize none to train on words as they "
            "stand, with punctuation attached, which translates worse",
        )
    return "moses"
