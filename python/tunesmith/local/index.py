"""An index: examples with n-best lists on disk, found by their similarity to a sentence.

>>> index = Index.build("index", translator, sources, references)  # doctest: +SKIP
>>> index = Index.open("index", translator)  # doctest: +SKIP
>>> [each.source for each in index.near("das ist ein haus", k=2)]  # doctest: +SKIP
['das ist ein haus .', 'das ist mein haus .']
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Self, overload

from tunesmith import _core
from tunesmith.decode.spread import Spread
from tunesmith.decode.translator import Translator
from tunesmith.engines import THREADS, Engine
from tunesmith.errors import InputError
from tunesmith.files.atomic import TEMPORARY
from tunesmith.files.lock import LOCK, Lock
from tunesmith.formats.base import Report
from tunesmith.local.candidates import Candidates
from tunesmith.local.candidates import engine as check_search
from tunesmith.local.identity import check_identity, identity
from tunesmith.local.manifest import FILE, Building, Manifest, Part
from tunesmith.metrics import Bleu
from tunesmith.spaces import Pools, References, check_range, references_of

METRIC = Bleu(tokenize="none")
"""The metric whose statistics are kept with the lists: both sides are words of the model."""
LENGTH = 100
"""Default length of the lists, and of what a search returns."""
CANDIDATES = 5
"""Candidates that are compared for each neighbour wanted."""
COMMON = 0.3
"""Words that more than this share of the examples have choose no candidates if others find enough.
"""
CHUNK = 1000
"""Examples in each file of a build: what a killed build loses at most."""
SMALL, MANY = 1000, 8
"""When there are so many files of fewer examples than this, they become one."""
FIRST_GIVEN = 1 << 32
"""Numbers from here on may be given by the caller of `add`."""
WORDS = "words"
EMPTY = "empty source or reference"
TRIES, PAUSE = 20, 0.05
"""How often an index is opened while another process changes it, and the seconds in between."""
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class Neighbour:
    """An example that is similar to a sentence."""

    id: int
    """Its number, never given twice."""
    similarity: float
    """0.1 · (1 - edit distance / longer length) + 0.9 · tf-idf cosine."""
    source: str
    """Its source in words of the model."""
    references: list[str]


class Neighbours(Sequence[Neighbour]):
    """The neighbours of a sentence, most similar first; texts are read when they are looked at."""

    def __init__(self, found: _core.Near) -> None:
        self._found = found

    @property
    def ids(self) -> list[int]:
        """The numbers of the examples."""
        return self._found.ids

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, place: int) -> Neighbour: ...
    @overload
    def __getitem__(self, place: slice) -> list[Neighbour]: ...
    def __getitem__(self, place: int | slice) -> Neighbour | list[Neighbour]:
        if isinstance(place, slice):
            return [Neighbour(*self._found[at]) for at in range(*place.indices(len(self)))]
        return Neighbour(*self._found[place + len(self) if place < 0 else place])

    def __reduce__(self) -> tuple[type[list[Neighbour]], tuple[list[Neighbour]]]:
        return list, (list(self),)


class Index:
    """A folder of examples.

    Any thread may search while one adds or removes; other processes may search, but not write.
    What `add` and `remove` did is on disk when they return.
    """

    metric = METRIC

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self._manifest = manifest
        self._examples = _core.Examples()
        for part in manifest.parts:
            self._examples.add(folder / part.file, part.checksum, part.removed)
        self._writing = threading.RLock()
        self._lock: Lock | None = None
        self._candidates = self._opened()

    # Making and opening

    @classmethod
    def build(
        cls,
        folder: str | PathLike[str],
        translator: Translator,
        sources: Sequence[str],
        references: References,
        *,
        k: int = LENGTH,
        threads: int = 0,
        engine: Engine = THREADS,
        progress: Progress = lambda done, lines: None,
        report: Report | None = None,
    ) -> Self:
        """Decode all sources and keep their `k` best translations; return the index.

        A build that was stopped goes on if it is called with the same arguments. Lines without
        source or reference are left out and counted. Raise if the folder holds a finished index,
        one that was begun with something else, or other files.
        """
        check_range("k", k, 1)
        check_search()
        if len(sources) != len(references):
            raise InputError(
                f"{len(sources)} sources, but references for {len(references)}",
                remedy="give files of the same number of lines",
            )
        if not sources:
            raise InputError("there are no examples", remedy="give text with at least one line")
        path = Path(folder)
        _check_unused(path)
        path.mkdir(parents=True, exist_ok=True)
        lock = Lock(path, "index")
        try:
            manifest = cls._begun(path, translator, sources, references, k)
            decoder = translator if engine is THREADS else Spread(translator, engine, threads)
            while manifest.building is not None and manifest.building.done < len(sources):
                progress(manifest.building.done, len(sources))
                manifest = cls._continued(
                    path, manifest, translator, decoder, sources, references, threads, report
                )
            progress(len(sources), len(sources))
            if not manifest.parts:
                raise InputError(
                    "no line has a source and a reference", remedy="look at the two files"
                )
            examples = _core.Examples()
            for part in manifest.parts:
                examples.add(path / part.file, part.checksum, part.removed)
            ids = examples.ids.tolist()
            words = examples.sources(ids)
            Candidates.create(path / WORDS, zip(ids, words, strict=True)).close()
            replace(manifest, building=None).save(path)
        finally:
            lock.release()
        return cls.open(path, translator)

    @classmethod
    def _begun(
        cls,
        folder: Path,
        translator: Translator,
        sources: Sequence[str],
        references: References,
        k: int,
    ) -> Manifest:
        """Return the manifest of a build, new or as far as it came."""
        data = hashlib.sha256(
            repr([list(sources), [references_of(each) for each in references]]).encode()
        ).hexdigest()
        made_with = identity(translator)
        if not (folder / FILE).exists():
            manifest = Manifest(
                made_with, k, repr(METRIC), WORDS, building=Building(data, len(sources), 0)
            )
            manifest.save(folder)
            return manifest
        manifest = Manifest.load(folder)
        if manifest.building is None:
            raise InputError(
                "there is an index here already",
                str(folder),
                remedy="add to it (tunesmith local add), or build in another folder",
            )
        check_identity(manifest.fingerprint, made_with, str(folder), translator)
        if (manifest.building.data, manifest.k) != (data, k):
            raise InputError(
                "a build with other text or another k was begun here",
                str(folder),
                remedy="repeat the command that began it, or build in another folder",
            )
        return manifest

    @classmethod
    def _continued(
        cls,
        folder: Path,
        manifest: Manifest,
        translator: Translator,
        decoder: Translator | Spread,
        sources: Sequence[str],
        references: References,
        threads: int,
        report: Report | None,
    ) -> Manifest:
        """Return the manifest after another file of a build."""
        assert manifest.building is not None
        first = manifest.building.done
        last = min(first + CHUNK, len(sources))
        lines = sources[first:last]
        texts = references[first:last]
        pools, kept = _decoded(
            translator, decoder, lines, texts, manifest.k, threads, first + 1, report
        )
        skipped = dict(manifest.skipped)
        if len(kept) < len(lines):
            skipped[EMPTY] = skipped.get(EMPTY, 0) + len(lines) - len(kept)
        ids = [first + place for place in kept]
        if ids:
            manifest = manifest.with_part(_written(folder, manifest.next_part, ids, pools))
        building = replace(manifest.building, done=last) if manifest.building else None
        manifest = replace(manifest, next_id=last, skipped=skipped, building=building)
        manifest.save(folder)
        return manifest

    @classmethod
    def open(cls, folder: str | PathLike[str], translator: Translator | None = None) -> Self:
        """Open an index; what a killed process left undone is repaired.

        Raise if it is damaged or unfinished, or if its lists were not decoded by `translator`:
        lists of another model or other weights would teach something else.
        """
        check_search()
        path = Path(folder)
        given = {} if translator is None else identity(translator)
        for left in reversed(range(TRIES)):
            manifest = Manifest.load(path)
            if manifest.building is not None:
                done, lines = manifest.building.done, manifest.building.lines
                raise InputError(
                    f"the index is not finished: {done:,} of {lines:,} lines were decoded",
                    str(path),
                    remedy="repeat the command that builds it: it goes on from there",
                )
            if translator is not None:
                check_identity(manifest.fingerprint, given, str(path), translator)
            try:
                return cls(path, manifest)
            except InputError:
                # What another process was changing did not fit together.
                changing = _written_now(path) or Manifest.load(path) != manifest
                if left == 0 or not changing:
                    raise
                time.sleep(PAUSE)
        raise AssertionError("unreachable")

    def is_current(self) -> bool:
        """Return whether the folder still holds this index; raise if it holds none."""
        with self._writing:
            return Manifest.load(self.folder) == self._manifest

    def check(self, translator: Translator) -> None:
        """Raise if the lists were not decoded by this translator."""
        found, folder = identity(translator), str(self.folder)
        check_identity(self._manifest.fingerprint, found, folder, translator)

    def _opened(self) -> Candidates:
        """Return the candidate search; make it again if it is damaged or lacks examples."""
        try:
            found = Candidates(self.folder / self._manifest.candidates)
            if len(found) >= len(self):
                return found
        except InputError:
            pass
        with self._writing:
            self._locked()
            # The folder of a search that another process has open must not change.
            name = f"{WORDS}-{self._manifest.next_file:06d}"
            ids = self._examples.ids.tolist()
            made = Candidates.create(
                self.folder / name, zip(ids, self._examples.sources(ids), strict=True)
            )
            self._save(
                replace(self._manifest, candidates=name, next_file=self._manifest.next_file + 1)
            )
            return made

    def close(self) -> None:
        """Stop writing, so that another process may."""
        with self._writing:
            self._candidates.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    # Searching

    def __len__(self) -> int:
        return len(self._examples)

    @property
    def ids(self) -> list[int]:
        """The numbers of all examples."""
        return [int(each) for each in self._examples.ids]

    @property
    def manifest(self) -> Manifest:
        """What the index was made with, and its files."""
        return self._manifest

    def near(
        self, words: str, k: int = LENGTH, *, exact: bool = False, leave_out: bool = False
    ) -> Neighbours:
        """Return the `k` examples most similar to a sentence in words of the model, best first.

        Examples that share no word with it are never among them. `exact` compares the sentence
        with every example; otherwise with candidates that share its rarest words. With
        `leave_out`, examples of the very same sentence are passed over.
        """
        check_range("k", k, 1)
        chosen: list[int] | None = None
        if not exact:
            chosen = self._chosen(words, CANDIDATES * k)
        return Neighbours(self._examples.near(words, k, chosen, leave_out))

    def _chosen(self, words: str, limit: int) -> list[int]:
        """Return candidates; words that most examples have say little and cost most."""
        terms = self._examples.terms(words)
        rare = [(word, weight) for word, weight, share in terms if share <= COMMON]
        found = self._candidates.near(rare, limit)
        if len(found) < limit and len(rare) < len(terms):
            found = self._candidates.near([(word, weight) for word, weight, _ in terms], limit)
        return found

    def lists(self, ids: Sequence[int], *, texts: bool = False) -> Pools:
        """Return the lists of examples, with statistics; raise a `KeyError` if one is not there.

        Without `texts` there are features and statistics only.
        """
        core, table, sources, references = self._examples.lists(ids, texts)
        pools = Pools(core, references, sources) if texts else Pools(core)
        if table is not None:
            pools.set_table(METRIC, table)
        return pools

    def blocks(self, ids: Sequence[int]) -> _core.Blocks:
        """Return lists of examples with gains, where they lie on disk; raise as `lists`."""
        return self._examples.blocks(ids)

    # Changing

    def add(
        self,
        translator: Translator,
        sources: Sequence[str],
        references: References,
        ids: Sequence[int] | None = None,
        *,
        threads: int = 0,
        report: Report | None = None,
    ) -> list[int]:
        """Decode sources and keep them as examples; return their numbers, in order.

        Lines without source or reference are left out and counted. Numbers may be given, from
        2**32 on; raise if one is there already.
        """
        if len(sources) != len(references):
            raise InputError(
                f"{len(sources)} sources, but references for {len(references)}",
                remedy="give one reference, or a list of them, for each source",
            )
        self.check(translator)
        if ids is not None:
            _check_given(ids, len(sources))
        made: list[int] = []
        for first in range(0, len(sources), CHUNK):
            lines, texts = sources[first : first + CHUNK], references[first : first + CHUNK]
            k = self._manifest.k
            pools, kept = _decoded(
                translator, translator, lines, texts, k, threads, first + 1, report
            )
            if not kept:
                continue
            with self._writing:
                self._locked()
                begin = self._manifest.next_id
                chosen = (
                    [begin + place for place in range(len(kept))]
                    if ids is None
                    else [ids[first + place] for place in kept]
                )
                if known := [
                    id
                    for id, file in zip(chosen, self._examples.files(chosen), strict=True)
                    if file is not None
                ]:
                    raise InputError(
                        f"example {known[0]} is there already",
                        str(self.folder),
                        remedy="remove it first, or give another number",
                    )
                part = _written(self.folder, self._manifest.next_part, chosen, pools)
                # A killed process may have left words under these numbers.
                words = zip(chosen, pools.sources or (), strict=True)
                self._candidates.change(remove=chosen, add=words)
                changed = self._manifest.with_part(part)
                if ids is None:
                    changed = replace(changed, next_id=begin + len(kept))
                self._save(changed)
                self._examples.add(self.folder / part.file, part.checksum, [])
                self._compact()
            made += chosen
        return made

    def remove(self, ids: Sequence[int]) -> int:
        """Take examples back; return how many there were. Numbers that are not there count not."""
        with self._writing:
            self._locked()
            files = dict(zip(ids, self._examples.files(ids), strict=True))
            gone = [id for id, file in files.items() if file is not None]
            if not gone:
                return 0
            names = {id: Path(file).name for id, file in files.items() if file is not None}
            parts = tuple(
                replace(
                    part,
                    removed=(*part.removed, *(id for id in gone if names[id] == part.file)),
                )
                for part in self._manifest.parts
            )
            self._save(replace(self._manifest, parts=parts))
            self._examples.remove(gone)
            self._candidates.change(remove=gone)
            return len(gone)

    def _compact(self) -> None:
        """Make one file of many small ones."""
        small = [part for part in self._manifest.parts if part.examples < SMALL]
        if len(small) < MANY:
            return
        files = [self.folder / part.file for part in small]
        name = self._manifest.next_part
        examples, size, checksum = self._examples.merge(files, self.folder / name)
        rest = tuple(part for part in self._manifest.parts if part not in small)
        part = Part(name, examples, size, checksum)
        self._save(replace(self._manifest, parts=rest).with_part(part))
        self._examples.replace(files, self.folder / name)
        for file in files:
            file.unlink(missing_ok=True)

    def _save(self, manifest: Manifest) -> None:
        manifest.save(self.folder)
        self._manifest = manifest

    def _locked(self) -> None:
        """Keep other processes from writing, until `close`; raise if another one writes."""
        if self._lock is None:
            self._lock = Lock(self.folder, "index")
            if Manifest.load(self.folder) != self._manifest:
                self._lock.release()
                self._lock = None
                raise InputError(
                    "another process has changed the index since it was opened",
                    str(self.folder),
                    remedy="open it again",
                )


def _written_now(folder: Path) -> bool:
    """Return whether a process has the right to write an index."""
    try:
        Lock(folder, "index").release()
    except InputError:
        return True
    return False


def _check_unused(folder: Path) -> None:
    """Raise if a folder without an index has files of somebody else: a build replaces files."""
    if (folder / FILE).exists() or not folder.is_dir():
        return
    for each in folder.iterdir():
        # A build that was killed at its very beginning leaves these.
        if each.name != LOCK and each.suffix != TEMPORARY:
            raise InputError(
                f"the folder is not empty: it has {each.name}",
                str(folder),
                remedy="give a new folder for the index",
            )


def _decoded(
    translator: Translator,
    decoder: Translator | Spread,
    lines: Sequence[str],
    references: References,
    k: int,
    threads: int,
    first: int,
    report: Report | None,
) -> tuple[Pools, list[int]]:
    """Return the lists of lines that have a source and a reference, and which lines these are."""
    texts = [translator.prepared_references(references_of(each)) for each in references]
    words = translator.prepared(lines)
    kept = [
        place
        for place, (source, several) in enumerate(zip(words, texts, strict=True))
        if source.strip() and any(each.strip() for each in several)
    ]
    pools = decoder.nbest(
        [lines[place] for place in kept], k, threads=threads, first=first, report=report
    )
    wanted = [[each for each in texts[place] if each.strip()] for place in kept]
    return Pools(pools.core, wanted, pools.sources), kept


def _written(folder: Path, name: str, ids: Sequence[int], pools: Pools) -> Part:
    """Write a file of examples; it is on disk when this returns."""
    found = _core.Examples.write(
        folder / name,
        ids,
        pools.sources or [],
        pools.references or [],
        pools.core,
        pools.table(METRIC),
        METRIC.native,
    )
    return Part(name, *found)


def _check_given(ids: Sequence[int], sources: int) -> None:
    if len(ids) != sources or len(set(ids)) != sources:
        raise InputError(
            f"{len(set(ids))} numbers for {sources} examples", remedy="give each its own number"
        )
    if ids and (min(ids) < FIRST_GIVEN or max(ids) >= 1 << 63):
        raise InputError(
            f"example {min(ids)}: numbers below {FIRST_GIVEN} are given by the index",
            remedy=f"give numbers from {FIRST_GIVEN} on",
        )
