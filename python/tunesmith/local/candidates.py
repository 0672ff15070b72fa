"""Candidates for neighbours: examples that share words with a sentence, by BM25 (tantivy).

The folder holds nothing that the examples do not: it can always be made again.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tunesmith.errors import InputError

if TYPE_CHECKING:
    import tantivy

ID = "id"
WORDS = "words"
MEMORY = 50_000_000
"""Bytes that documents may take before they are written."""
MAGIC = (1337).to_bytes(4, "little")
"""The end of each of tantivy's files, behind a footer with a checksum."""
CHUNK = 1 << 20
DAMAGED = "open the index again: it is repaired then, unless another process is writing it"


def engine() -> Any:
    """Return the package tantivy; raise if it is not installed."""
    try:
        import tantivy
    except ModuleNotFoundError as error:
        raise InputError(
            "retrieval needs the package tantivy", remedy="pip install 'tunesmith[local]'"
        ) from error
    except ImportError as error:
        raise InputError(
            f"the package tantivy cannot be loaded: {error}", remedy="install it again"
        ) from error
    return tantivy


class Candidates:
    """Examples by their words. Any thread may search; one at a time may write."""

    def __init__(self, folder: Path) -> None:
        """Open a folder; raise if it is damaged or not there."""
        self._tantivy = engine()
        self._folder = folder
        self._writer: tantivy.IndexWriter | None = None
        check_files(folder)
        with self._told():
            self._index = self._tantivy.Index.open(str(folder))
        self._prepare()

    @classmethod
    def create(cls, folder: Path, examples: Iterable[tuple[int, str]]) -> Candidates:
        """Make a folder from ids and words of examples; replace one that is there."""
        tantivy = engine()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        schema = tantivy.SchemaBuilder()
        schema.add_unsigned_field(ID, indexed=True, fast=True)
        schema.add_text_field(WORDS, tokenizer_name=WORDS, index_option="freq")
        made = cls.__new__(cls)
        made._tantivy, made._folder, made._writer = tantivy, folder, None
        with made._told():
            made._index = tantivy.Index(schema.build(), path=str(folder))
        made._prepare()
        made.change(add=examples)
        return made

    def _prepare(self) -> None:
        # Words are separated by spaces, and stay as they are.
        plain = self._tantivy.TextAnalyzerBuilder(self._tantivy.Tokenizer.whitespace()).build()
        self._index.register_tokenizer(WORDS, plain)
        self._index.config_reader("manual")
        with self._told():
            self._index.reload()

    def __len__(self) -> int:
        return int(self._index.searcher().num_docs)

    def near(self, terms: Sequence[tuple[str, float]], limit: int) -> list[int]:
        """Return ids of the examples that match weighted words best, best first."""
        query = self._tantivy.Query
        if not terms:
            return []
        schema, should = self._index.schema, self._tantivy.Occur.Should
        parts = [
            (should, query.boost_query(query.term_query(schema, WORDS, word, "freq"), weight))
            for word, weight in terms
        ]
        with self._told():
            searcher = self._index.searcher()
            hits = searcher.search(query.boolean_query(parts), limit, count=False).hits
            return list(searcher.fast_field_values(ID, [address for _, address in hits]))

    def ids(self) -> list[int]:
        """Return the ids of all examples, in no order."""
        with self._told():
            searcher = self._index.searcher()
            if not searcher.num_docs:
                return []
            query = self._tantivy.Query.all_query()
            hits = searcher.search(query, searcher.num_docs, count=False).hits
            return list(searcher.fast_field_values(ID, [address for _, address in hits]))

    def change(self, remove: Iterable[int] = (), add: Iterable[tuple[int, str]] = ()) -> None:
        """Remove examples, then add some; durable and visible to searches when this returns."""
        tantivy = self._tantivy
        with self._told():
            if self._writer is None:
                self._writer = self._index.writer(MEMORY, 1)
            writer = self._writer
            for id in remove:
                # By query: delete_documents_by_term takes an int for a signed field's term.
                query = tantivy.Query.term_query(self._index.schema, ID, id)
                writer.delete_documents_by_query(query)
            for id, words in add:
                document = tantivy.Document()
                document.add_unsigned(ID, id)
                document.add_text(WORDS, words)
                writer.add_document(document)
            writer.commit()
            self._index.reload()

    def close(self) -> None:
        """Stop writing; searching goes on."""
        if self._writer is not None:
            with suppress(ValueError):
                self._writer.wait_merging_threads()
            self._writer = None

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Turn what the engine raises into an error with file and remedy."""
        try:
            yield
        except InputError:
            raise
        except (ValueError, OSError, RuntimeError) as error:
            reason = f"the candidate search failed: {error}"
            raise InputError(reason, str(self._folder), remedy=DAMAGED) from error
        except BaseException as error:
            # A panic inside the engine is no `Exception`.
            if type(error).__name__ != "PanicException":
                raise
            reason = f"the candidate search failed: {error}"
            raise InputError(reason, str(self._folder), remedy=DAMAGED) from None


def check_files(folder: Path) -> None:
    """Raise unless all of the engine's files are there and have the checksums in their footers."""
    try:
        meta = json.loads((folder / "meta.json").read_bytes())
        named = [str(each["segment_id"]).replace("-", "") for each in meta["segments"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(folder / "meta.json", str(error)) from None
    for name in named:
        files = sorted(folder.glob(f"{name}.*"))
        if not {".term", ".idx", ".fast", ".fieldnorm"} <= {file.suffix for file in files}:
            raise _damaged(folder / f"{name}.idx", "a file is missing")
        for file in files:
            _check_footer(file)


def _check_footer(file: Path) -> None:
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            stream.seek(max(size - 8, 0))
            ends = stream.read()
            length = int.from_bytes(ends[:4], "little")
            rest = size - 8 - length
            if ends[4:] != MAGIC or rest < 0:
                raise _damaged(file, "it is truncated")
            stream.seek(rest)
            wanted = json.loads(stream.read(length))["crc"]
            stream.seek(0)
            checksum = 0
            while rest > 0 and (chunk := stream.read(min(CHUNK, rest))):
                checksum = zlib.crc32(chunk, checksum)
                rest -= len(chunk)
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise _damaged(file, str(error)) from None
    if checksum != wanted:
        raise _damaged(file, "its checksum differs")


def _damaged(file: Path, reason: str) -> InputError:
    return InputError(f"the candidate search is damaged: {reason}", str(file), remedy=DAMAGED)
