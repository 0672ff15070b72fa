"""Tasks made ready: texts read, models trained once, lists loaded."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tunesmith._core import AtomicWriter, Lines
from tunesmith.decode.moses import read_config
from tunesmith.decode.reaching import Reachability, reachability, tuning_sets
from tunesmith.decode.translation import Model
from tunesmith.demo.sample import write_sample
from tunesmith.errors import InputError
from tunesmith.experiments import sample
from tunesmith.experiments.recipe import HELDOUT, System
from tunesmith.experiments.store import Store, digest_of, lines_digest
from tunesmith.experiments.tasks import Corpus, Lists, Task, Text, used_parts
from tunesmith.files.fingerprint import CHECKED, fingerprint
from tunesmith.metrics import Metric
from tunesmith.sources import Live, Saved, Source
from tunesmith.spaces import Pools
from tunesmith.spaces.derived import with_derived
from tunesmith.spaces.reading import read_pools
from tunesmith.structured.conllu import read_conllu
from tunesmith.structured.tasks import Parser, Tagger
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide

REACHED = ("prefixes", "whole", "training")
"""Tuning texts that forced decoding makes: what of the references a decoder can reach."""


class UntestableError(Exception):
    """Why something cannot be tested here."""


@dataclass(frozen=True)
class Read:
    """Sentences with their references."""

    lines: list[str]
    references: list[list[str]]

    @cached_property
    def digest(self) -> str:
        """A digest of all of it."""
        return lines_digest([*self.lines, *(text for each in self.references for text in each)])

    def chosen(self, places: Sequence[int]) -> Read:
        """Return some of the sentences."""
        return Read([self.lines[i] for i in places], [self.references[i] for i in places])

    def spread(self, most: int | None) -> Read:
        """Return at most so many sentences, spread over the whole text, not its beginning."""
        if most is None or len(self.lines) <= most:
            return self
        step = len(self.lines) / most
        return self.chosen([int(number * step) for number in range(most)])


@dataclass(frozen=True)
class Overlap:
    """How many sentences of a test are in a text that was learnt from."""

    test: str
    count: int
    total: int
    text: str

    @property
    def much(self) -> bool:
        """Whether it is half of the test or more: then its scores say little of unseen text."""
        return 2 * self.count >= self.total

    def __str__(self) -> str:
        return f"{self.count} of {self.total} sentences of the test {self.test} are in {self.text}"


@dataclass(frozen=True)
class Data:
    """Where files of recipes are looked for: beside the recipe, then in the folder of data."""

    folders: tuple[Path, ...]
    task: str = ""
    own: str | None = None
    """The file of the recipe, if it defines the task."""

    def file(self, name: str) -> Path:
        """Return a file; if it is nowhere, raise.

        Without the data of the package's tasks, they cannot be tested. A file that a recipe names
        for a task of its own is a mistake in the recipe.
        """
        for folder in self.folders:
            if (folder / name).exists():
                return folder / name
        if self.own is not None:
            raise InputError(
                f"task.{self.task}: there is no {name}",
                self.own,
                remedy="correct the path (it is relative to the recipe), or give --data DIR",
            )
        given = "" if len(self.folders) > 1 else "; --data DIR names the folder of data"
        raise UntestableError(f"there is no {name}{given}")


class World:
    """A task with everything that its runs need."""

    def __init__(self, task: Task, data: Data, store: Store) -> None:
        self.task, self._data, self.store = task, data, store
        self._corpora: dict[str, tuple[Read, list[int]]] = {}
        self._models: dict[tuple[str, ...], Model] = {}
        self._lock = threading.RLock()

    # -- texts ---------------------------------------------------------------------------

    def _corpus(self, name: str) -> tuple[Read, list[int]]:
        """Return a corpus, and the part of each of its lines."""
        with self._lock:
            if name not in self._corpora:
                self._corpora[name] = self._dealt(self.task.corpora[name])
            return self._corpora[name]

    def _dealt(self, corpus: Corpus) -> tuple[Read, list[int]]:
        if corpus.sample is not None:
            made = sample.pairs(corpus.lines, corpus.seed, corpus.sample)
            read = Read([each.source for each in made], [[*each.references] for each in made])
        else:
            read = self._files(corpus.source, corpus.references)
        keys: Sequence[str] = read.lines
        if corpus.groups is not None:
            keys = [key.rpartition(".")[0] or key for key in Lines(self._data.file(corpus.groups))]
            if len(keys) != len(read.lines):
                raise InputError(
                    f"{len(keys)} keys for {len(read.lines)} lines",
                    corpus.groups,
                    remedy="give one key per line",
                )
        numbers: dict[str, int] = {}
        return read, [numbers.setdefault(key, len(numbers)) % corpus.parts for key in keys]

    def _files(self, source: str, references: Sequence[str]) -> Read:
        columns = [list(Lines(self._data.file(name))) for name in (source, *references)]
        for name, column in zip(references, columns[1:], strict=True):
            if len(column) != len(columns[0]):
                raise InputError(
                    f"{len(column)} lines, but {source} has {len(columns[0])}",
                    name,
                    remedy="give files of the same number of lines",
                )
        return Read(columns[0], [list(each) for each in zip(*columns[1:], strict=True)])

    def read(self, text: Text) -> Read:
        """Return a text: its parts, without empty and long lines."""
        if text.corpus is None:
            read = self._files(text.source, text.references)
            places: Iterator[int] | list[int] = list(range(len(read.lines)))
        else:
            read, parts = self._corpus(text.corpus)
            taken = set(text.part) or set(range(self.task.corpora[text.corpus].parts)) - used_parts(
                self.task, text.corpus
            )
            places = [i for i, part in enumerate(parts) if part in taken]
        kept = [
            i
            for i in places
            if 0 < len(read.lines[i].split()) <= (text.longest or 10**9)
            and all(each.strip() for each in read.references[i])
        ]
        found = read.chosen(kept)
        if text.merged:
            targets: dict[str, list[str]] = {}
            for line, references in zip(found.lines, found.references, strict=True):
                targets.setdefault(line, []).extend(references)
            found = Read(list(targets), [list(dict.fromkeys(e)) for e in targets.values()])
        if text.first is not None:
            found = Read(found.lines, [each[: text.first] for each in found.references])
        found = found.spread(text.most)
        if not found.lines:
            raise InputError(
                f"task.{self.task.name}: no line is left of {text.source or text.corpus}",
                self.task.file,
                remedy="check the text, parts and longest; lines without words do not count",
            )
        return found

    def tuning(self, name: str) -> Read:
        """Return a tuning text; those of `REACHED` are made by forced decoding."""
        with self._lock:
            if name in self._texts:
                return self._texts[name]
            if name in self.task.tuning:
                self._texts[name] = self.read(self.task.tuning[name])
            elif name in REACHED:
                self._texts |= self._reached()
            else:
                known = ", ".join([*self.task.tuning, *REACHED])
                raise InputError(
                    f"the task {self.task.name} has no tuning text {name!r}",
                    self.task.file,
                    remedy=f"use one of {known}",
                )
            return self._texts[name]

    @cached_property
    def _texts(self) -> dict[str, Read]:
        return {}

    def _reached(self) -> dict[str, Read]:
        model = self.model(())
        live = self.live(self.tuning("development"), None)
        translator = model.translator(model.weights, live.settings, tokenized=self.task.tokenized)

        def reached(read: Read) -> Reachability:
            return reachability(translator, read.lines, read.references)

        found = tuning_sets(reached(self.tuning("development")), reached(self.training(3000)))
        sets = {name: Read(*texts) for name, texts in found.items()}
        missing = [name for name in REACHED if not sets[name].lines]
        if missing:
            raise UntestableError(f"no reference can be reached for the tuning text {missing[0]!r}")
        return sets

    def training(self, most: int | None = None) -> Read:
        """Return the training text, or as much of its beginning as is wanted."""
        if self.task.train is None:
            text = self.task.tuning.get("training text")
            if text is None:
                raise UntestableError(f"the task {self.task.name} has no training text")
            read = self.read(text)
            return read if most is None else read.chosen(range(min(most, len(read.lines))))
        parts = [self.read(text) for text in self.task.train.texts]
        lines = [line for part in parts for line in part.lines]
        references = [each[:1] for part in parts for each in part.references]
        return Read(lines[:most], references[:most])

    @cached_property
    def tests(self) -> dict[str, Read]:
        """The test texts."""
        with self._lock:
            return {name: self.read(text) for name, text in self.task.tests.items()}

    def overlaps(self, systems: Sequence[System]) -> list[Overlap]:
        """Return what of the tests is in texts that systems learn from or choose a round by."""
        if self.task.structured is not None:
            return []
        learnt: dict[str, Collection[object]] = {}
        tests: Mapping[str, Sequence[object]]
        if self.task.lists:
            # Lists need not know their sources.
            keys = {
                name: [tuple(each) for each in pools.references or ()]
                for name, pools in self.lists.items()
            }
            learnt["the lists that are tuned on"] = set(keys.pop("development"))
            tests = keys
        else:
            names = [each.development for each in systems]
            names += [HELDOUT] if any(each.keep == HELDOUT for each in systems) else []
            for name in dict.fromkeys(names):
                if name in self.task.tuning:
                    learnt[f"the tuning text {name}"] = set(self.tuning(name).lines)
            with suppress(UntestableError):
                learnt["the training text"] = set(self.training().lines)
            tests = {name: read.lines for name, read in self.tests.items()}
        found = [
            Overlap(test, sum(line in text for line in lines), len(lines), name)
            for test, lines in tests.items()
            for name, text in learnt.items()
        ]
        return [each for each in found if each.count]

    # -- decoders ------------------------------------------------------------------------

    @cached_property
    def _folder(self) -> Path:
        """The model directory, trained at the first call."""
        task = self.task
        if task.model is not None:
            return self._data.file(task.model)
        assert task.train is not None
        how = task.train
        if how.tokenize == "moses" and find_spec("sacremoses") is None:
            raise UntestableError("its tokeniser is not installed (pip install 'tunesmith[train]')")
        read = self.training()
        sides = [TextSide(each, how.tokenize, how.case) for each in how.languages]
        key = {
            "text": read.digest,
            "how": [how.tokenize, how.case, how.languages, how.order, how.kind],
        }
        path = self.store.path("models", key)
        files = (path / "train.source", path / "train.target")
        columns = read.lines, [each[0] for each in read.references]
        for file, column in zip(files, columns, strict=True):
            with AtomicWriter(file) as out:
                out.write("".join(f"{line}\n" for line in column))
        train(
            Training(files[0], files[1], sides[0], sides[1], kind=how.kind, order=how.order),
            path / "model",
        )
        return path / "model"

    def model(self, templates: Sequence[str]) -> Model:
        """Return the model with some templates turned on."""
        wanted = tuple(templates)
        with self._lock:
            if wanted not in self._models:
                self._models[wanted] = self._loaded(wanted)
            return self._models[wanted]

    def _loaded(self, templates: tuple[str, ...]) -> Model:
        if self.task.moses is not None:
            if templates:
                raise InputError(
                    f"the task {self.task.name} has a model of Moses, which has no templates",
                    self.task.file,
                    remedy="leave the templates out, or train a model",
                )
            return Model.of_moses(self._data.file(self.task.moses), self.store.folder / "moses")
        return Model.load(self._folder, self.task.kind, named=list(templates))

    @cached_property
    def model_digest(self) -> str:
        """A digest of the files of the model."""
        if self.task.moses is not None:
            ini = self._data.file(self.task.moses)
            config = read_config(ini)
            parts = (config.phrases, config.lm, config.reordering)
            files = [ini, *(Path(part.path) for part in parts if part is not None)]
        else:
            files = sorted(path for path in self._folder.iterdir() if path.is_file())
            files = [path for path in files if path.suffix in (*CHECKED, ".toml", ".txt")]
        prints = [fingerprint(path, ends=path.suffix in CHECKED) for path in files]
        return digest_of([{k: v for k, v in each.items() if k != "path"} for each in prints])

    def live(self, read: Read, system: System | None, **more: Any) -> Live:
        """Return a decoder with a text, with the search of a system."""
        model = self.model(() if system is None else system.templates)
        known = {name for name, _ in model.decoder.settings}
        search = dict(self.task.search)
        if system is not None and "distortion_limit" in known:
            search = {**system.search, **search}
        if system is not None and system.beam is not None:
            wide = max(50.0, 5.0 * system.beam) if "stack" in known else float(system.beam)
            search |= {"stack": float(system.beam)} if "stack" in known else {}
            search["pop_limit"] = wide
        if system is not None:
            bins = {"partial": system.partial, "ranked": system.ranked}
            more = {**{k: v for k, v in bins.items() if v is not None}, **more}
            more = {"k": system.nbest, "space": system.space, **more}
        more = {"tokenized": self.task.tokenized, **more}
        return Live(model, read.lines, read.references, settings=search, threads=1, **more)

    # -- lists ---------------------------------------------------------------------------

    @cached_property
    def lists(self) -> dict[str, Pools]:
        """The saved lists by name, with the features of those that are tuned on."""
        found = {name: self._read_lists(each, name) for name, each in self.task.lists.items()}
        names = found["development"].names
        return {name: pools.aligned(names) for name, pools in found.items()}

    def lists_of(self, system: System) -> dict[str, Pools]:
        """Return the saved lists with the features that a system adds."""
        return {
            name: with_derived(pools, system.derived, threads=1)
            for name, pools in self.lists.items()
        }

    def _read_lists(self, lists: Lists, name: str) -> Pools:
        if lists.sample is not None:
            path = self.store.path("lists", {"sample": 1})
            if not (path / "test.nbest.gz").exists():
                write_sample(path, 60, 10)
            part = "dev" if name == "development" else "test"
            files, references = [path / f"{part}.nbest.gz"], [path / f"{part}.ref"]
        else:
            files = [self._data.file(each) for each in lists.lists]
            references = [self._data.file(each) for each in lists.references]
        pools = read_pools(files, references)
        if lists.part:
            pools = pools.subset(
                [i for i in range(pools.sentences) if i % lists.parts in lists.part]
            )
        return pools

    # -- what runs are told ----------------------------------------------------------------

    def source(self, system: System) -> Source:
        """Return what a system is tuned on."""
        if self.task.lists:
            decoding = ("templates", "space", "beam", "nbest", "partial", "ranked", "local")
            given = [name for name in decoding if getattr(system, name)]
            if given or system.development != "development":
                raise InputError(
                    f"{system.name}: {', '.join(given) or 'development'} of saved lists",
                    self.task.file,
                    remedy="leave it out: lists are ranked as they are",
                )
            return Saved(self.lists_of(system)["development"])
        if system.derived:
            raise InputError(
                f"{system.name}: derived features of {self.task.name}, which has no saved lists",
                self.task.file,
                remedy="leave `derived` out",
            )
        # What was reached is in words of the model.
        words = self.task.tokenized or system.development in REACHED
        return self.live(self.tuning(system.development), system, tokenized=words)

    def heldout(self, system: System) -> list[Source]:
        """Return the text that chooses a system's round, if one does."""
        return [self.live(read, system) for read in self._choosing(system)]

    def _choosing(self, system: System) -> list[Read]:
        if system.keep != HELDOUT:
            return []
        if HELDOUT not in self.task.tuning:
            raise InputError(
                f"{system.name}: the task {self.task.name} has no held-out text",
                self.task.file,
                remedy=f"add tuning.{HELDOUT}, or keep another round",
            )
        return [self.tuning(HELDOUT)]

    def examples(self) -> tuple[Any, dict[str, list[Any]]]:
        """Return a structured task, with examples to learn from, to choose by and to test on."""
        made: Tagger | Parser
        made = Tagger() if self.task.structured == "tagger" else Parser(labelled=False)
        files = self.task.conllu
        if files.get("sample"):
            trees = self.task.structured == "parser"
            given = sample.parsed if trees else sample.tagged
            whole: list[Any] = [*given(160, 1)]
            tests: list[Any] = [*given(60, 2)]
        else:
            whole, tests = (
                [made.example(each) for each in read_conllu(self._data.file(files[part]))]
                for part in ("train", "test")
            )
        # Every tenth sentence chooses the pass.
        learnt = [pair for number, pair in enumerate(whole) if number % 10]
        return made, {"learnt": learnt, "choosing": whole[::10], "test": tests}

    def digests(self, system: System, metric: Metric) -> Mapping[str, Any]:
        """Return what of the task decides the result of a system."""
        task = self.task
        if task.structured is not None:
            _, examples = self.examples()
            return {name: lines_digest(map(repr, pairs)) for name, pairs in examples.items()}
        chosen_by = self._choosing(system)
        if task.lists:
            return {name: Saved(pools).digest(metric) for name, pools in self.lists.items()}
        return {
            "model": self.model_digest,
            "kind": task.kind,
            "tokenized": task.tokenized,
            "fixed": dict(task.fixed),
            "tuning": self.tuning(system.development).digest,
            **({HELDOUT: chosen_by[0].digest} if chosen_by else {}),
            "tests": {name: read.digest for name, read in self.tests.items()},
        }
