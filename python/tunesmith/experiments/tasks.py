"""Tasks: a model, texts to tune on and texts to test on, as the files of tasks describe them.

`tasks.toml` has those of the recipes that are part of the package; a recipe may define its own with
`[task.NAME]` and `[corpus.NAME]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from tunesmith.decode.model_weights import Kind as ModelKind
from tunesmith.experiments.fields import Fields, at_scale
from tunesmith.experiments.recipe import DEVELOPMENT, TESTS, Recipe, read_toml
from tunesmith.experiments.sample import DOMAINS
from tunesmith.training.pipeline import KINDS as TRAINED
from tunesmith.training.pipeline import Kind
from tunesmith.training.text import CASES, TOKENIZERS, Case, Tokenizer

KINDS: tuple[ModelKind, ...] = ("phrase", "hiero")
STRUCTURED = ("tagger", "parser")


@dataclass(frozen=True)
class Corpus:
    """Parallel text that is dealt into parts; equal keys never stand in two parts."""

    source: str = ""
    references: tuple[str, ...] = ()
    groups: str | None = None
    """A file of keys: lines whose keys are equal up to the last dot stay together. Without it, the
    source sentence is the key."""
    parts: int = 1
    sample: str | None = None
    """The domain of generated text, instead of files."""
    lines: int = 0
    seed: int = 1


@dataclass(frozen=True)
class Text:
    """Sentences with references: files, or some parts of a corpus."""

    source: str = ""
    references: tuple[str, ...] = ()
    corpus: str | None = None
    part: tuple[int, ...] = ()
    """Parts of the corpus; none: those that no other text of the task has."""
    longest: int | None = None
    most: int | None = None
    merged: bool = False
    """Whether the targets of equal sources become references of one line."""
    first: int | None = None
    """How many of the references are used; None: all."""


@dataclass(frozen=True)
class Lists:
    """Saved n-best lists with references, or some parts of their sentences."""

    lists: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    part: tuple[int, ...] = ()
    parts: int = 1
    sample: str | None = None


@dataclass(frozen=True)
class Trained:
    """How a model is trained."""

    texts: tuple[Text, ...]
    tokenize: Tokenizer = "none"
    case: Case = "keep"
    languages: tuple[str, str] = ("unknown", "unknown")
    order: int = 5
    kind: Kind = "both"


@dataclass(frozen=True)
class Task:
    """What systems are tuned and tested on."""

    name: str
    file: str
    about: str
    kind: ModelKind | None = None
    train: Trained | None = None
    moses: str | None = None
    model: str | None = None
    tokenized: bool = False
    search: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)
    tuning: Mapping[str, Text] = field(default_factory=dict)
    tests: Mapping[str, Text] = field(default_factory=dict)
    lists: Mapping[str, Lists] = field(default_factory=dict)
    """Saved lists in place of texts, by the same names."""
    structured: str | None = None
    """The structured task that is learnt: tagger or parser."""
    conllu: Mapping[str, str] = field(default_factory=dict)
    corpora: Mapping[str, Corpus] = field(default_factory=dict)

    @property
    def test_names(self) -> list[str]:
        """What is tested on."""
        if self.structured is not None:
            return ["test"]
        return [*self.tests, *(name for name in self.lists if name != DEVELOPMENT)]

    @property
    def sampled(self) -> bool:
        """Whether its tests are sample text of the package, which shows nothing."""
        corpora = [self.corpora[text.corpus] for text in self.tests.values() if text.corpus]
        samples = [
            *(each.sample for each in corpora),
            *(each.sample for each in self.lists.values()),
        ]
        return "sample" in self.conllu or any(samples)


def task_names() -> list[str]:
    """Return the names of the tasks in the package."""
    return list(read_toml(_file())["task"])


def find_task(recipe: Recipe, name: str) -> Task:
    """Return a task of a recipe, or of the package; at smoke scale the one that stands for it."""
    known = at_scale(read_toml(_file()), recipe.scale)
    own = recipe.definitions
    tasks = {**known["task"], **own.get("task", {})}
    corpora = {**known["corpus"], **own.get("corpus", {})}
    here = Fields({}, recipe.file)
    if name not in tasks:
        raise here.wrong(
            "tasks", f"no task named {name!r}", f"define [task.{name}], or use {', '.join(tasks)}"
        )
    where = recipe.file if name in own.get("task", {}) else str(_file())
    stand_in = tasks[name].get("smoke")
    if recipe.scale == "smoke" and stand_in is not None:
        if stand_in not in tasks:
            raise Fields({}, where, f"task.{name}").wrong(
                "smoke", f"no task named {stand_in!r}", f"use {', '.join(tasks)}"
            )
        where = recipe.file if stand_in in own.get("task", {}) else str(_file())
        fields = Fields(tasks[stand_in], where, f"task.{stand_in}")
    else:
        fields = Fields(tasks[name], where, f"task.{name}")
    used = {key: _corpus(Fields(values, where, f"corpus.{key}")) for key, values in corpora.items()}
    return _task(name, fields, used)


def find_tasks(recipe: Recipe) -> list[Task]:
    """Return the tasks of a recipe; raise if one is missing, or if a claim names no test of it."""
    tasks = [find_task(recipe, name) for name in recipe.tasks]
    for claim in recipe.claims:
        for task in tasks:
            known = task.test_names
            sides = ([claim.left], claim.right)
            about = not claim.tasks or task.name in claim.tasks
            about = about and all(recipe.matching(side, task.name) for side in sides)
            if about and claim.where not in (TESTS, DEVELOPMENT, *known):
                raise Fields({}, recipe.file).wrong(
                    "claims",
                    f"no test of {task.name} is called {claim.where!r}",
                    f"use {TESTS}, {DEVELOPMENT} or one of {', '.join(known)}",
                )
    return tasks


def _file() -> Path:
    return Path(str(resources.files("tunesmith.experiments"))) / "tasks.toml"


def _task(name: str, fields: Fields, corpora: Mapping[str, Corpus]) -> Task:
    fields.text("smoke", None)
    lists = {key: _lists(each) for key, each in _inner(fields.table("lists", {}))}
    structured = fields.text("structured", None, STRUCTURED)
    tuning: dict[str, Text] = {}
    tests: dict[str, Text] = {}
    if not lists and structured is None:
        tuning["development"] = _text(fields.table("development"), corpora)
        tuning |= {key: _text(each, corpora) for key, each in _inner(fields.table("tuning", {}))}
        tests = {key: _text(each, corpora) for key, each in _inner(fields.table("tests"))}
        if not tests:
            raise fields.wrong("tests", "no tests", f"add [{fields.place}.tests.NAME]")
    elif lists and not {"development"} < lists.keys():
        raise fields.wrong(
            "lists", "development and at least one test are wanted", "add a table for each"
        )
    made = Task(
        name=name,
        file=fields.file,
        about=fields.text("about", ""),
        kind=fields.one_of("kind", KINDS, None),
        train=_trained(fields.table("train"), corpora) if "train" in fields.values else None,
        moses=fields.text("moses", None),
        model=fields.text("model", None),
        tokenized=fields.flag("tokenized", False),
        search=_numbers(fields, "search"),
        fixed=_numbers(fields, "fixed"),
        tuning=tuning,
        tests=tests,
        lists=lists,
        structured=structured,
        conllu={k: str(v) for k, v in fields.table("conllu", {}).values.items()},
        corpora=corpora,
    )
    decoders = [each for each in (made.train, made.moses, made.model) if each is not None]
    if tuning and len(decoders) != 1:
        raise fields.wrong("train", f"{len(decoders)} models", "give one of train, moses and model")
    fields.finish()
    return made


def _inner(fields: Fields) -> list[tuple[str, Fields]]:
    return [(key, fields.table(key)) for key in fields.values]


def _numbers(fields: Fields, key: str) -> dict[str, float]:
    inner = fields.table(key, {})
    return {name: inner.number(name) or 0.0 for name in inner.values}


def _corpus(fields: Fields) -> Corpus:
    made = Corpus(
        fields.text("source", ""),
        tuple(fields.texts("references", ())),
        fields.text("groups", None),
        fields.whole("parts", 1, least=1),
        fields.text("sample", None, DOMAINS),
        fields.whole("lines", 0),
        fields.whole("seed", 1),
    )
    if made.sample is None and not (made.source and made.references):
        raise fields.wrong("source", "no files", "give source and references")
    fields.finish()
    return made


def _text(fields: Fields, corpora: Mapping[str, Corpus]) -> Text:
    corpus = fields.text("corpus", None)
    if corpus is not None and corpus not in corpora:
        raise fields.wrong("corpus", f"no corpus named {corpus!r}", f"define [corpus.{corpus}]")
    part = fields.values.get("part", [])
    if not isinstance(part, list) or not all(isinstance(each, int) for each in part):
        raise fields.wrong("part", f"{part!r} is not a list of numbers", "write [0, 1]")
    fields.values.setdefault("part", [])
    fields.of_type("part", list)
    made = Text(
        fields.text("source", ""),
        tuple(fields.texts("references", ())),
        corpus,
        tuple(part),
        fields.whole("longest", None, least=1),
        fields.whole("most", None, least=1),
        fields.flag("merged", False),
        fields.whole("first", None, least=1),
    )
    if corpus is None and not (made.source and made.references):
        raise fields.wrong("source", "no text", "give source and references, or a corpus")
    fields.finish()
    return made


def _lists(fields: Fields) -> Lists:
    fields.values.setdefault("part", [])
    part = fields.of_type("part", list)
    made = Lists(
        tuple(fields.texts("lists", ())),
        tuple(fields.texts("references", ())),
        tuple(part),
        fields.whole("parts", 1, least=1),
        fields.text("sample", None),
    )
    if made.sample is None and not made.lists:
        raise fields.wrong("lists", "no lists", "name at least one file")
    fields.finish()
    return made


def _trained(fields: Fields, corpora: Mapping[str, Corpus]) -> Trained:
    languages = fields.texts("languages", ("unknown", "unknown"))
    if len(languages) != 2:
        raise fields.wrong("languages", f"{languages} are not two", 'write ["de", "en"]')
    made = Trained(
        tuple(_text(each, corpora) for each in fields.tables("texts")),
        fields.one_of("tokenize", TOKENIZERS, "none"),
        fields.one_of("case", CASES, "keep"),
        (languages[0], languages[1]),
        fields.whole("order", 5, least=1),
        fields.one_of("kind", TRAINED, "both"),
    )
    fields.finish()
    return made


def used_parts(task: Task, corpus: str) -> set[int]:
    """Return the parts of a corpus that are tuned or tested on."""
    texts: list[Text] = [*task.tuning.values(), *task.tests.values()]
    return {number for text in texts if text.corpus == corpus for number in text.part}


def described(task: Task) -> dict[str, Any]:
    """Return what is shown of a task."""
    return {
        "task": task.name,
        "about": task.about,
        "tuning": [*task.tuning, *(["development"] if task.lists else [])],
        "tests": task.test_names,
    }
