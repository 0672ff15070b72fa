"""Lines with tags, as the model sees them."""

from __future__ import annotations

import re
from html import unescape
from xml.sax.saxutils import escape

from tunesmith.errors import InputError
from tunesmith.training.text import TextSide

MARKUP = ("none", "exclusive", "inclusive", "ignore")

# A > in quotes is part of a value.
_TAG = re.compile(r"""(<(?:[^>"']|"[^"]*"|'[^']*')*>)""")
_GIVEN = re.compile(r"""(\b(?:translation|english)\s*=\s*)(["'])(.*?)\2""")
_ENTITY = re.compile(r"""(\bentity\s*=\s*)(["'])(.*?)\2""")
_XML = re.compile(r"&(?:lt|gt|amp|quot|apos|#[0-9]+|#[xX][0-9a-fA-F]+);")
_QUOTES = {'"': "&quot;", "'": "&apos;"}

# A word lattice or confusion network of Moses: ((('a',1.0,1),),)
_LATTICE = re.compile(r"""\s*\(\s*\(\s*\(\s*['"].*\)\s*,?\s*\)\s*,?\s*\)\s*""")
_GRAMMAR = re.compile(r"\s*<seg\b[^>]*\bgrammar\s*=")


def refuse_lattice(line: str, file: str, number: int) -> None:
    """Raise for input formats of other decoders that would be read as plain words."""
    if _LATTICE.fullmatch(line):
        remedy = "give one plain sentence per line, such as the best path of the lattice"
        raise InputError("a word lattice, not a sentence", file, number, remedy)
    if _GRAMMAR.match(line):
        raise InputError(
            "a sentence with a grammar of its own",
            file,
            number,
            "give the sentence without <seg>, and one grammar for all with --cdec-grammar",
        )


def marked(line: str, source: TextSide, target: TextSide, escaped: bool) -> str:
    """Return a line with the text between tags and the translations inside tags prepared.

    With `escaped`, XML entities are unescaped. Placeholders are words of the model and stay
    unchanged, and so does the text they stand for. Only the first part of the line begins a
    sentence: elsewhere the case of the first word is kept.
    """

    def prepared(text: str, side: TextSide, begins: bool = False) -> str:
        plain = _unescaped(text) if escaped else text
        return escape(side.prepare(plain, begins=begins), _QUOTES)

    def given(found: re.Match[str]) -> str:
        each = (prepared(text, target) for text in found[3].split("||"))
        return f"{found[1]}{found[2]}{'||'.join(each)}{found[2]}"

    def entity(found: re.Match[str]) -> str:
        plain = _unescaped(found[3]) if escaped else found[3]
        return f"{found[1]}{found[2]}{escape(target.exact(plain), _QUOTES)}{found[2]}"

    # Every other part is a tag.
    texts, tags = (_TAG.split(line)[at::2] for at in (0, 1))
    held = [False, *(_ENTITY.search(tag) is not None for tag in tags)]
    first = next((at for at, text in enumerate(texts) if text.strip()), 0)
    for at, text in enumerate(texts):
        # A tag that is not closed is an error, not text to escape.
        if not held[at] and "<" not in text:
            texts[at] = prepared(text, source, at == first)
    tags = [
        _ENTITY.sub(entity, tag) if held[at] else _GIVEN.sub(given, tag)
        for at, tag in enumerate(tags, 1)
    ]
    return " ".join(part for pair in zip(texts, [*tags, ""], strict=True) for part in pair)


def without_tags(line: str, markup: str) -> str:
    """Return the words of a line without its tags."""
    return line if markup == "none" else " ".join(_unescaped(_TAG.sub(" ", line)).split())


def _unescaped(text: str) -> str:
    """Return text with XML's entities replaced by characters; HTML's other entities stay."""
    return _XML.sub(lambda found: unescape(found[0]), text)
