"""Text cut into the sentences that a model translates, and put together again.

>>> pieces = cut("Ein Haus.  Dr. Ott kommt.\\n\\nEs ist 3.5 m hoch!", Limits())
>>> pieces.sentences
('Ein Haus.', 'Dr. Ott kommt.', 'Es ist 3.5 m hoch!')
>>> pieces.filled(["A house.", "Dr Ott comes.", "It is 3.5 m high!"])
'A house.  Dr Ott comes.\\n\\nIt is 3.5 m high!'
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape, unescape
from itertools import pairwise

from tunesmith.serve.settings import CHARACTERS, Limits, RequestError

_LINES = re.compile(r"(\r\n|\n|\r)")
# The end of a sentence: marks, closing quotes, spaces, and the first letter of the next sentence;
# or the marks of languages without spaces. Each run of marks is tried once, from its beginning, so
# that the time grows with the length of the text, whatever the text is.
_END = re.compile(
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s++[\"'“„«(\[¿¡]*+([^\W\d_]))"
    r"|(?<![。！？])[。！？]++[」』”’)]*+(?=\s*+\S)"
)
# A full stop after these does not end a sentence: initials and numbers, and common abbreviations.
_NO_END = re.compile(
    r"(?:^|[\s(\"'„“])(?:[^\W\d_]|\d+|[A-Za-z]\.[A-Za-z]|Dr|Mr|Mrs|Ms|Prof|St|Nr|No|Bd|Abs|Art|vgl|"
    r"bzw|ca|etc|usw|bspw|ggf|inkl|evtl|vs|cf|Hr|Fr|Frau|Mme|Mlle|M|Sr|Sra|Jr|Inc|Ltd|Co|Fig|Vol|"
    r"Jan|Feb|Mär|Mar|Apr|Jun|Jul|Aug|Sep|Sept|Okt|Oct|Nov|Dez|Dec)\.$"
)
_CLAUSE = re.compile(r"[,;:)–—]$")
_TAG = re.compile(r"<!--|<[!/?]?([A-Za-z][A-Za-z0-9]*+)[^<>]*+>")
# What ends a comment, and elements whose text is not translated.
_ENDS = {"<!--": re.compile("-->")} | {
    f"<{name}": re.compile(rf"</{name}\s*+>", re.IGNORECASE)
    for name in ("script", "style", "code", "pre", "textarea")
}


@dataclass(frozen=True)
class Pieces:
    """A text as sentences and what stands between them.

    `between` has one more item than `sentences`; together they are the text.
    """

    sentences: tuple[str, ...]
    between: tuple[str, ...]

    def filled(self, translations: Sequence[str]) -> str:
        """Return the text with these in place of the sentences."""
        first, *rest = self.between
        pairs = zip(translations, rest, strict=True)
        return first + "".join(part for pair in pairs for part in pair)


def cut(text: str, limits: Limits, *, html: bool = False) -> Pieces:
    """Return the sentences of a text; raise for a sentence that is too long.

    Lines are kept, and so are the spaces around sentences. In HTML, tags and what stands in
    scripts, styles and code is no sentence, and each text between tags is cut by itself.
    """
    sentences: list[str] = []
    between: list[list[str]] = [[]]
    for part, is_text in _parts(text, html):
        if not is_text:
            between[-1].append(part)
            continue
        for at, line in enumerate(_LINES.split(part)):
            if at % 2 or not line.strip():
                between[-1].append(line)
                continue
            for sentence in _fitting(_sentences(line), limits):
                # Spaces around a sentence are not part of it.
                core = sentence.strip()
                before = len(sentence) - len(sentence.lstrip())
                between[-1].append(sentence[:before])
                sentences.append(core)
                between.append([sentence[before + len(core) :]])
    return Pieces(tuple(sentences), tuple(map("".join, between)))


def from_html(sentence: str) -> str:
    """Return a sentence of HTML as plain text."""
    return unescape(sentence)


def to_html(translation: str) -> str:
    """Return plain text as a sentence of HTML."""
    return escape(translation, quote=False)


def _parts(text: str, html: bool) -> Iterator[tuple[str, bool]]:
    """Yield the parts of a text, and whether they are to be translated."""
    if not html:
        yield text, True
        return
    end = at = 0
    # What has no end here has none further on: it is not looked for again.
    endless: set[str] = set()
    while found := _TAG.search(text, at):
        name = found[0] if found[1] is None else f"{found[0][0]}{found[1].lower()}"
        start, at = found.span()
        if name in _ENDS and found[0][1] not in "/?":
            closed = None if name in endless else _ENDS[name].search(text, at)
            if closed is not None:
                at = closed.end()
            else:
                endless.add(name)
                if found[1] is None:
                    continue
        yield text[end:start], True
        yield text[start:at], False
        end = at
    yield text[end:], True


def _sentences(line: str) -> Iterator[str]:
    """Yield the sentences of a line, with the spaces that follow them."""
    ends = [
        found.end()
        for found in _END.finditer(line)
        if not (found[1] or "").islower()
        and not _NO_END.search(line, max(0, found.end() - 12), found.end())
    ]
    for start, end in pairwise([0, *ends, len(line)]):
        yield line[start:end]


def _fitting(sentences: Iterator[str], limits: Limits) -> Iterator[str]:
    """Yield sentences within the limits; longer ones are cut or refused."""
    for sentence in sentences:
        words = len(sentence.split())
        if words <= limits.words and len(sentence) <= limits.characters:
            yield sentence
        elif limits.long == "split":
            yield from _cut_long(sentence, limits)
        else:
            raise RequestError(
                422,
                "sentence_too_long",
                f"a sentence of {words:,} words and {len(sentence):,} characters, but the limit is "
                f"{limits.words:,} words or {limits.characters:,} characters: cut it into shorter "
                "sentences, one per line",
            )


def _cut_long(sentence: str, limits: Limits) -> Iterator[str]:
    """Yield a sentence in pieces, cut after a clause if possible."""
    parts = re.findall(rf"\s*\S{{1,{limits.words * CHARACTERS // 2}}}\s*", sentence)
    held: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        if held and (len(held) >= limits.words or size > limits.characters):
            # The last clause that is not too short ends here; without one, cut here.
            clauses = range(len(held), len(held) // 2, -1)
            ends = (n for n in clauses if _CLAUSE.search(held[n - 1].rstrip()))
            at = next(ends, len(held))
            yield "".join(held[:at])
            held = held[at:]
            size = sum(map(len, held)) + len(part)
        held.append(part)
    yield "".join(held)
