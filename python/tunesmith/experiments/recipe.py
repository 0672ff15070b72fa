"""Recipes: short TOML files that say what to run, what to tabulate and what is claimed.

A value that differs by scale is written as a table: `seeds = { smoke = 1, small = 3, full = 5 }`. A
scale that is not in the table takes the value of the next smaller one that is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from importlib import resources
from itertools import product
from pathlib import Path
from typing import Any, Literal

from tunesmith.errors import InputError
from tunesmith.experiments.fields import Fields, at_scale
from tunesmith.learn.online import with_regime
from tunesmith.metrics import get_metric
from tunesmith.papers import Settings, settings_of
from tunesmith.presets import make_tuner, preset_names
from tunesmith.training.model import check_templates

NONE, CONSENSUS, ALONE = "none", "consensus", "best-feature"
UNTUNED = (NONE, CONSENSUS, ALONE)
"""What a system may have in place of a tuner: keep its start weights; choose from saved lists."""
ACCURACY = "accuracy"
"""The metric of structured tasks."""
SPACES = ("list", "forest", "bins")
KEPT = ("best", "last", "heldout")
TESTS, DEVELOPMENT = "tests", "development"
"""Where a claim holds, if not on a single test."""
RELATIONS = (">=", "<=", ">", "<", "~")
_CLAIM = re.compile(r"(.+?)\s+(>=|<=|>|<|~)\s+(.+?)(?:\s+on\s+(.+?))?(?:\s+in\s+(.+))?")


@dataclass(frozen=True)
class System:
    """One row of an experiment: a preset with its options, and what it is run on."""

    name: str
    preset: str
    options: Mapping[str, Any] = field(default_factory=dict)
    templates: tuple[str, ...] = ()
    space: str | None = None
    regime: str | None = None
    start: float | Literal["equal"] | None = None
    """All dense weights at the start; equal: of one size, with the signs of the model's own; None:
    the model's own."""
    after: str | None = None
    """The system whose weights it starts from."""
    metric: str | None = None
    iterations: int | None = None
    decodings: int | None = None
    """Decodings of the tuning text at most, instead of iterations."""
    seconds: float | None = None
    """Time after which no more rounds count."""
    keep: str = "best"
    development: str = "development"
    """The tuning text of the task."""
    beam: int | None = None
    nbest: int | None = None
    search: Mapping[str, float] = field(default_factory=dict)
    """Limits of a paper's phrase-based search, where the task has none."""
    partial: str | None = None
    ranked: str | None = None
    local: Mapping[str, Any] | None = None
    """Weights of each test sentence: method, k, strength."""
    derived: tuple[str, ...] = ()
    """Features that saved lists are given (`spaces/derived.py`)."""
    tasks: tuple[str, ...] = ()
    """The tasks it is run on; none: all."""
    on_lists: System | None = None
    """The same on saved lists, if a paper's settings differ there."""

    @property
    def changed(self) -> dict[str, Any]:
        """What else differs from a system with only a preset: regime, start, length of lists."""
        told = ("name", "preset", "options", "templates", "tasks", "on_lists")
        plain = System("", "")
        return {
            each.name: value
            for each in fields(self)
            if each.name not in told
            and (value := getattr(self, each.name)) != getattr(plain, each.name)
        }

    def number(self, option: str) -> float | None:
        """Return the value of an option, if it is a number: of the tuner, or the beam."""
        value = {**(self.local or {}), **self.options, "beam": self.beam}.get(option)
        return float(value) if isinstance(value, int | float) else None


@dataclass(frozen=True)
class Tabulated:
    """A table that a recipe asks for."""

    kind: str
    title: str
    systems: tuple[str, ...] = ("*",)
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Plotted:
    """A plot that a recipe asks for."""

    kind: str
    title: str
    systems: tuple[str, ...] = ("*",)
    bars: bool = False
    """Whether the scores of y+ and y- are drawn around each point."""
    x: str | None = None
    """The option that varies, for a plot of options."""
    y: str = "mean"
    """The column that is drawn over it."""


@dataclass(frozen=True)
class Claim:
    """What a paper says: `left relation each of right`, on some text or in a column of a table."""

    text: str
    left: str
    relation: str
    right: tuple[str, ...]
    where: str = TESTS
    quantity: str | None = None
    """A metric, or a column; None: the first metric."""
    within: float | None = None
    tasks: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = f"{self.left} {self.relation} {', '.join(self.right)}"
        if self.quantity is None or self.where != TESTS:
            told += f" on {self.where}"
        return told if self.quantity is None else f"{told} in {self.quantity}"


@dataclass(frozen=True)
class Recipe:
    """What to run at a scale."""

    name: str
    file: str
    title: str
    scale: str
    reproduces: tuple[str, ...]
    about: str
    tasks: tuple[str, ...]
    metrics: tuple[str, ...]
    """The first is tuned for, all are reported."""
    seeds: int
    systems: tuple[System, ...]
    tables: tuple[Tabulated, ...]
    plots: tuple[Plotted, ...]
    claims: tuple[Claim, ...]
    alone: bool = False
    """Whether runs are made one at a time, because their time is measured."""
    wants: str | None = None
    """A package of Tunesmith that it needs."""
    definitions: Mapping[str, Any] = field(default_factory=dict)
    """Tasks and corpora of its own."""

    def matching(self, patterns: Sequence[str], task: str | None = None) -> list[System]:
        """Return the systems with these names or patterns, in their order."""
        return [
            each
            for each in self.systems
            if any(each.name == pattern or fnmatchcase(each.name, pattern) for pattern in patterns)
            and (task is None or not each.tasks or task in each.tasks)
        ]


# The kinds of tables with their options.
TABLES: dict[str, dict[str, Any]] = {
    "scores": {"baseline": str, "sort": bool, "more": list},
    "passes": {"weights": list},
    "beams": {"beams": list},
    "lists": {"k": list, "on": str, "diversity": bool},
    "bins": {},
    "spread": {},
    "features": {},
    "weights": {"features": list, "top": int},
    "gains": {"baseline": str},
    "overlap": {"template": str, "pairs": list},
    "words": {"words": list, "template": str},
    "order": {"pairs": list},
    "sentences": {"pairs": list},
    "similarity": {},
    "time": {},
}
MORE = ("features", "rounds", "seconds", "swing", "range", "length")
"""More columns of a table of scores."""
PLOTS = ("passes", "beams", "options")
HELDOUT = "heldout"
"""The tuning text that chooses the round, for systems with `keep = "heldout"`."""


def shipped() -> dict[str, Path]:
    """Return the recipes of the package by name."""
    folder = Path(str(resources.files("tunesmith.experiments"))) / "recipes"
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def find_recipe(name: str) -> Path:
    """Return the file of a recipe by its name or path; raise if there is none."""
    known = shipped()
    if name in known:
        return known[name]
    path = Path(name)
    if path.suffix == ".toml" or path.exists():
        if not path.is_file():
            raise InputError("no such recipe", name, remedy="check the path")
        return path
    raise InputError(
        f"no recipe named {name!r}",
        remedy=f"give a file, or one of {', '.join(known)}",
    )


def read_toml(path: Path) -> dict[str, Any]:
    """Return a TOML file; raise if it is not one."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"not TOML: {error}", str(path), remedy="correct the file") from None
    except UnicodeDecodeError:
        raise InputError("not UTF-8", str(path), remedy="save the file as UTF-8") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(reason, str(path), remedy="check the path") from None


def read_recipe(path: Path, scale: str) -> Recipe:
    """Return the recipe of a file at a scale; raise an error that names file, key and remedy."""
    document = at_scale(read_toml(path), scale)
    fields = Fields(document, str(path))
    title = fields.text("title")
    tasks = fields.texts("tasks")
    metrics = fields.texts("metrics", ("bleu:tokenize=none",))
    seeds = fields.whole("seeds", least=1)
    default = {
        "iterations": fields.whole("iterations", None, least=1),
        "decodings": fields.whole("decodings", None, least=2),
        "seconds": fields.number("seconds", None, least=0.0),
        "keep": fields.text("keep", "best", KEPT),
    }
    for name in metrics:
        if name != ACCURACY:
            _check_metric(fields, "metrics", name)
    systems = [one for each in fields.tables("systems") for one in _systems(each, default)]
    if not tasks:
        raise fields.wrong("tasks", "no tasks", "name at least one")
    if not systems:
        raise fields.wrong("systems", "no systems", "add a table [[systems]] with name and preset")
    names = [each.name for each in systems]
    for name in names:
        if names.count(name) > 1:
            raise fields.wrong(
                "systems", f"two systems are called {name!r}", "give each a name of its own"
            )
    for each in systems:
        if each.after is not None and each.after not in names:
            raise fields.wrong(
                "systems",
                f"{each.name} comes after {each.after!r}, which is no system",
                f"name one of {', '.join(names)}",
            )
        before = _starts_from(each, systems)
        if each.name in before:
            raise fields.wrong(
                "systems",
                f"{each.name} starts from its own weights: {' after '.join([each.name, *before])}",
                "let the first of them start from the model's",
            )
    recipe = Recipe(
        name=path.stem,
        file=str(path),
        title=title,
        scale=scale,
        reproduces=tuple(fields.texts("reproduces", ())),
        about=fields.text("about", ""),
        tasks=tuple(tasks),
        metrics=tuple(metrics),
        seeds=seeds,
        systems=tuple(systems),
        tables=tuple(_table(each) for each in fields.tables("tables")),
        plots=tuple(_plot(each) for each in fields.tables("plots", ())),
        claims=tuple(_claim(each) for each in fields.tables("claims", ())),
        alone=fields.flag("alone", False),
        wants=fields.text("wants", None),
        definitions={
            key: fields.table(key, {}).values for key in ("task", "corpus") if key in document
        },
    )
    fields.finish()
    if not recipe.tables:
        raise fields.wrong("tables", "no tables", "add a table [[tables]] with a kind")
    _check_names(recipe, fields)
    return recipe


def _check_metric(fields: Fields, key: str, name: str) -> None:
    try:
        get_metric(name)
    except InputError as error:
        raise fields.wrong(key, error.message, error.remedy or "correct it") from None


def _starts_from(system: System, systems: Sequence[System]) -> list[str]:
    """Return the systems that must be run before one, until one of them comes again."""
    after = {each.name: each.after for each in systems}
    found: list[str] = []
    name = system.after
    while name is not None and name not in found:
        found.append(name)
        name = after.get(name)
    return found


def _systems(fields: Fields, default: Mapping[str, Any]) -> list[System]:
    """Return the systems of a table: one, or one for each combination of `vary`."""
    vary = fields.table("vary", {}).values
    name = fields.text("name")
    rest = {key: value for key, value in fields.values.items() if key not in ("vary", "name")}
    choices: list[list[tuple[str, Any, str]]] = []
    for key, values in vary.items():
        if isinstance(values, Mapping):
            labelled = [(key, value, label) for label, value in values.items()]
        elif isinstance(values, list) and values:
            labelled = [(key, value, _label(value)) for value in values]
        else:
            raise fields.wrong(f"vary.{key}", "not a list of values", "write a list, or a table")
        choices.append(labelled)
    found = []
    for chosen in product(*choices):
        given = {
            key: dict(value) if isinstance(value, dict) else value for key, value in rest.items()
        }
        for key, value, _ in chosen:
            if key in _OWN:
                given[key] = value
            else:
                given["options"] = {**given.get("options", {}), key: value}
        labels = {key: label for key, _, label in chosen}
        try:
            called = name.format(**labels)
        except (KeyError, IndexError, ValueError):
            raise fields.wrong(
                "name", f"{name!r} does not fit `vary`", f"use {{{'}, {'.join(vary) or 'KEY'}}}"
            ) from None
        found.append(_system(Fields(given, fields.file, fields.place), called, labels, default))
    return found


def _label(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(str, value)) or "dense"
    return f"{value:g}" if isinstance(value, float) else str(value)


_OWN = {
    "preset",
    "templates",
    "space",
    "as",
    "regime",
    "start",
    "after",
    "metric",
    "iterations",
    "decodings",
    "seconds",
    "keep",
    "development",
    "beam",
    "nbest",
    "partial",
    "ranked",
    "local",
    "derived",
}


def _system(
    fields: Fields, name: str, labels: Mapping[str, str], default: Mapping[str, Any]
) -> System:
    preset = fields.text("preset").format(**labels) if labels else fields.text("preset")
    if preset not in (*UNTUNED, *preset_names()):
        raise fields.wrong(
            "preset",
            f"no tuner named {preset!r}",
            f"choose one of {', '.join([*UNTUNED, *preset_names()])}",
        )
    given = options = fields.table("options", {}).values
    paper, settings = fields.text("as", None), Settings()
    if paper is not None:
        try:
            settings = settings_of(paper, preset)
        except InputError as error:
            raise fields.wrong("as", error.message, error.remedy or "correct it") from None
        options = settings.with_options(preset, options)
    if preset not in UNTUNED:
        try:
            tuner = make_tuner(preset, options)
        except InputError as error:
            raise fields.wrong("options", error.message, error.remedy or "correct it") from None
        try:
            with_regime(tuner, fields.text("regime", settings.regime))
        except InputError as error:
            raise fields.wrong("regime", error.message, error.remedy or "correct it") from None
    metric = fields.text("metric", None)
    if metric is not None:
        _check_metric(fields, "metric", metric)
    after = fields.text("after", None)
    own = "iterations" in fields.values or "decodings" in fields.values
    shared = default["iterations"]
    if default["decodings"] is None and shared is None:
        shared = settings.iterations
    try:
        check_templates(fields.texts("templates", ()), fields.file)
    except InputError as error:
        raise fields.wrong("templates", error.message, "tunesmith features lists all") from None
    made = System(
        name=name,
        preset=preset,
        options=options,
        templates=tuple(fields.texts("templates", ())),
        space=fields.text("space", settings.space, SPACES),
        regime=fields.text("regime", settings.regime),
        start=fields.number("start", None) if "start" in fields.values else settings.start,
        after=None if after is None else after.format(**labels),
        metric=metric,
        iterations=fields.whole("iterations", None if own else shared, least=1),
        decodings=fields.whole("decodings", None if own else default["decodings"], least=2),
        seconds=fields.number("seconds", default["seconds"], least=0.0),
        keep=fields.text("keep", settings.keep or default["keep"], KEPT),
        development=fields.text("development", "development"),
        beam=fields.whole("beam", None, least=1),
        nbest=fields.whole("nbest", settings.nbest, least=1),
        search=settings.search,
        partial=fields.text("partial", None, ("potential", "bleu")),
        ranked=fields.text("ranked", None, ("estimate", "score")),
        local=fields.table("local", {}).values or None,
        derived=tuple(fields.texts("derived", ())),
        tasks=tuple(fields.texts("tasks", ())),
    )
    if paper is not None:
        lists = settings.on_lists()
        other = replace(
            made,
            options=lists.with_options(preset, given),
            regime=fields.text("regime", lists.regime),
            space=fields.text("space", None, SPACES),
            nbest=fields.whole("nbest", None, least=1),
            start=fields.number("start", None),
            iterations=fields.whole("iterations", None if own else default["iterations"], least=1),
            search={},
        )
        made = replace(made, on_lists=other)
    fields.finish()
    return made


def _table(fields: Fields) -> Tabulated:
    kind = fields.text("kind", choices=tuple(TABLES))
    made = Tabulated(
        kind,
        fields.text("title", kind),
        tuple(fields.texts("systems", ("*",))),
        {
            key: fields.of_type(key, wanted)
            for key, wanted in TABLES[kind].items()
            if key in fields.values
        },
    )
    _check_entries(fields, made)
    fields.finish(f"a table of {kind} has kind, title, systems, {', '.join(TABLES[kind])}")
    return made


def _check_entries(fields: Fields, made: Tabulated) -> None:
    """Raise if a list of a table has entries of the wrong kind."""
    for key in ("k", "beams"):
        for each in made.options.get(key, []):
            if isinstance(each, bool) or not isinstance(each, int) or each < 1:
                raise fields.wrong(
                    key, f"{each!r} is not a whole number from 1 on", "correct the number"
                )
    if made.kind == "gains" and "baseline" not in made.options:
        raise fields.wrong("baseline", "is missing", "name the system whose gains are wanted")
    top = made.options.get("top", 1)
    if isinstance(top, bool) or top < 1:
        raise fields.wrong("top", f"{top!r} is not a whole number from 1 on", "correct the number")
    for each in made.options.get("more", []):
        if each not in MORE:
            raise fields.wrong("more", f"{each!r} is unknown", f"use {', '.join(MORE)}")
    for each in made.options.get("pairs", []):
        if not isinstance(each, list) or [type(name) for name in each] != [str, str]:
            raise fields.wrong("pairs", f"{each!r} is not two systems", 'write [["A", "B"]]')
    on = made.options.get("on")
    if on not in (None, "test", "development"):
        raise fields.wrong("on", f"{on!r} is unknown", "use test or development")


def _plot(fields: Fields) -> Plotted:
    made = Plotted(
        fields.text("kind", choices=PLOTS),
        fields.text("title", ""),
        tuple(fields.texts("systems", ("*",))),
        fields.flag("bars", False),
        fields.text("x", None),
        fields.text("y", "mean"),
    )
    if made.kind == "options" and made.x is None:
        raise fields.wrong("x", "is missing", "name the option that varies")
    for key, kind in {"x": "options", "y": "options", "bars": "passes"}.items():
        if key in fields.values and made.kind != kind:
            raise fields.wrong(key, f"a plot of {made.kind} has none", "leave it out")
    fields.finish()
    return made


def _claim(fields: Fields) -> Claim:
    said = fields.text("claim")
    parsed = _CLAIM.fullmatch(said.strip())
    if parsed is None:
        raise fields.wrong(
            "claim", f"{said!r} is no claim", "write SYSTEM > SYSTEM on tests, or … in COLUMN"
        )
    left, relation, right, where, quantity = parsed.groups()
    made = Claim(
        fields.text("text", said),
        left.strip(),
        relation,
        tuple(each.strip() for each in right.split(",")),
        (where or TESTS).strip(),
        None if quantity is None else quantity.strip(),
        fields.number("within", None, least=0.0),
        tuple(fields.texts("tasks", ())),
    )
    fields.finish()
    return made


def _check_names(recipe: Recipe, fields: Fields) -> None:
    """Raise if a table, plot or claim names a system that is not there."""
    used = [
        *(("tables", name) for table in recipe.tables for name in table.systems),
        *(("plots", name) for plot in recipe.plots for name in plot.systems),
        *(("claims", name) for claim in recipe.claims for name in (claim.left, *claim.right)),
    ]
    names = ", ".join(each.name for each in recipe.systems)
    for key, name in used:
        if not recipe.matching([name]):
            raise fields.wrong(key, f"no system is called {name!r}", f"there are {names}")
    for key, task in [
        *(("systems", name) for each in recipe.systems for name in each.tasks),
        *(("claims", name) for each in recipe.claims for name in each.tasks),
    ]:
        if task not in recipe.tasks:
            raise fields.wrong(
                key, f"no task of the recipe is called {task!r}", f"use {', '.join(recipe.tasks)}"
            )
    for table in recipe.tables:
        baseline = table.options.get("baseline")
        if baseline is not None and not recipe.matching([baseline]):
            raise fields.wrong("tables", f"no system is called {baseline!r}", f"there are {names}")
    for plot in recipe.plots:
        drawn = recipe.matching(plot.systems)
        if plot.x is not None and all(each.number(plot.x) is None for each in drawn):
            raise fields.wrong(
                "plots",
                f"no system has a number for {plot.x!r}",
                "name an option of the systems, with its values",
            )
    for claim in recipe.claims:
        _check_claim(recipe, claim, fields)


def _check_claim(recipe: Recipe, claim: Claim, fields: Fields) -> None:
    """Raise if a claim is about scores that do not exist or cannot be compared."""
    pairs = product(recipe.matching([claim.left]), recipe.matching(claim.right))
    if all(left.name == right.name for left, right in pairs):
        raise fields.wrong(
            "claims", f"`{claim}` compares a system with itself", "name another system"
        )
    if claim.where == TESTS:
        return
    metric = claim.quantity or recipe.metrics[0]
    if metric not in recipe.metrics:
        raise fields.wrong(
            "claims",
            f"`{claim}` names a text, but a column belongs to none",
            f"leave `on {claim.where}` out, or use one of {', '.join(recipe.metrics)}",
        )
    if claim.where != DEVELOPMENT:
        return
    systems = recipe.matching([claim.left, *claim.right])
    for each in systems:
        tuned_for = each.metric or recipe.metrics[0]
        if tuned_for != metric:
            raise fields.wrong(
                "claims",
                f"`{claim}`: {each.name} has no {metric} on the tuning text, only {tuned_for}",
                "claim it on tests",
            )
        if each.development != systems[0].development:
            raise fields.wrong(
                "claims",
                f"`{claim}`: {each.name} and {systems[0].name} are tuned on different texts",
                "claim it on tests",
            )
