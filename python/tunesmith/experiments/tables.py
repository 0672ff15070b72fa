"""The tables of a recipe, filled from its runs; some decode again with what was learnt."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import pairwise
from statistics import fmean, stdev
from typing import Any

from tunesmith.analysis import by_beam, of_bins, of_lists, overlap, reordered
from tunesmith.decode.templates import DENSE, groups, template_of
from tunesmith.experiments.recipe import DEVELOPMENT, Recipe, System, Tabulated
from tunesmith.experiments.running import Found, metric_of
from tunesmith.experiments.store import Store
from tunesmith.experiments.worlds import Read, World
from tunesmith.metrics import Metric
from tunesmith.metrics.significance import compare_both

SAMPLES = 1000
"""Draws of the tests of significance."""
BEAMS = (1, 2, 4, 8, 16, 30)
PAIR = {"oracle", "prediction"}
"""The keys of y+ and y- in the events of a pass."""


@dataclass(frozen=True)
class Several:
    """A figure of several seeds."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Their mean."""
        return fmean(self.values)

    @property
    def deviation(self) -> float:
        """Their standard deviation; zero for one seed."""
        return stdev(self.values) if len(self.values) > 1 else 0.0


Cell = Several | float | int | str | None


@dataclass(frozen=True)
class Filled:
    """A table with its figures."""

    kind: str
    title: str
    columns: list[str]
    rows: list[dict[str, Cell]]
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """What tables are filled from."""

    recipe: Recipe
    worlds: Mapping[str, World]
    found: Mapping[tuple[str, str], Sequence[Found]]
    store: Store

    def runs(self, asked: Tabulated, task: str) -> list[tuple[System, Sequence[Found]]]:
        """Return the systems of a table that were run on a task, with their runs."""
        return [
            (system, self.found[task, system.name])
            for system in self.recipe.matching(asked.systems, task)
            if (task, system.name) in self.found
        ]

    def metric(self) -> Metric:
        """Return the metric that is tuned for."""
        return metric_of(self.recipe.metrics[0])

    def first_test(self, task: str) -> tuple[str, Read]:
        """Return the first test of a task."""
        return next(iter(self.worlds[task].tests.items()))

    def analysed(
        self, kind: str, run: Found, make: Callable[[], Mapping[str, Any]], **key: Any
    ) -> dict[str, Any]:
        """Return an analysis of a run's weights, now or from before."""
        known = {"analysis": kind, "run": run.facts["folder"].rpartition("/")[2], **key}
        return self.store.kept("analyses", known, lambda path: make())


def fill(context: Context, asked: Tabulated) -> list[Filled]:
    """Return a table for each task, or one for all of them if it is about gains."""
    made = []
    if asked.kind == "gains":
        table = _gains(context, asked)
        return [replace(table, title=asked.title, columns=_columns(table.rows))]
    for task in context.recipe.tasks:
        if task not in context.worlds:
            continue
        table = _KINDS[asked.kind](context, asked, task)
        if table.rows:
            title = f"{asked.title} ({task})" if len(context.recipe.tasks) > 1 else asked.title
            made.append(Filled(table.kind, title, _columns(table.rows), table.rows, table.notes))
    return made


def _columns(rows: Sequence[Mapping[str, Cell]]) -> list[str]:
    return list(dict.fromkeys(key for row in rows for key in row))


def several(values: Sequence[float | None]) -> Cell:
    """Return figures of several seeds as a cell."""
    known = tuple(float(each) for each in values if each is not None)
    return Several(known) if known else None


def swing(run: Found) -> float | None:
    """Return how far the tuning score moves from round to round, after the first."""
    curve = run.facts["curve"][1:]
    moves = [abs(b - a) for a, b in pairwise(curve)]
    return fmean(moves) if moves else None


def _range(run: Found) -> float | None:
    """Return how far the corpus scores of y+ and y- are apart, in the mean of the passes."""
    known = [each["corpus"] for each in run.epochs if each.get("corpus", {}).keys() >= PAIR]
    return fmean(each["oracle"] - each["prediction"] for each in known) if known else None


def _ratio(run: Found) -> float | None:
    """Return the length of the output against that of the references, if BLEU was measured."""
    test, scores = next(iter(run.tests.items()))
    name = next((each for each in scores if metric_of(each).name == "bleu"), None)
    if name is None:
        return None
    total = run.rows(test, name).sum(axis=0)
    return float(total[0] / total[1]) if total[1] else None


MORE: dict[str, Callable[[Found], float | None]] = {
    "features": lambda run: run.facts["nonzero"],
    "rounds": lambda run: run.facts["rounds"],
    "seconds": lambda run: run.facts["seconds"],
    "swing": swing,
    "range": _range,
    "length": _ratio,
}


def _scores(context: Context, asked: Tabulated, task: str) -> Filled:
    recipe, rows = context.recipe, list[dict[str, Cell]]()
    every = context.runs(asked, task)
    baseline = asked.options.get("baseline")
    base = context.found.get((task, baseline)) if baseline else None
    for system, runs in every:
        row: dict[str, Cell] = {"task": task, "system": system.name}
        # Weights of each test sentence are not those that were scored on the tuning text.
        scores = [run.facts["development"] for run in runs]
        row[DEVELOPMENT] = None if system.local else several(scores)
        for metric in recipe.metrics:
            label = metric_of(metric).label
            for test in runs[0].tests:
                column = test if len(recipe.metrics) == 1 else f"{test} {label}"
                row[column] = several([run.tests[test][metric] for run in runs])
            mean = "mean" if len(recipe.metrics) == 1 else f"mean {label}"
            row[mean] = several([fmean(e[metric] for e in run.tests.values()) for run in runs])
        if base is not None:
            row["p"] = None if system.name == baseline else _p(recipe.metrics[0], base, runs)
        for name in asked.options.get("more", []):
            row[name] = several([MORE[name](run) for run in runs])
        rows.append(row)
    notes = [f"development: the score on {_tuned_text(context, task)}"]
    if any(system.local for system, _ in every):
        notes[0] += ", empty where each test sentence has weights of its own"
    others = {each.name: each.metric for each, _ in every if each.metric}
    if others:
        told = ", ".join(f"{name} ({metric_of(metric).label})" for name, metric in others.items())
        notes.append(f"tuned for another metric, which is that of their development score: {told}")
    if base is not None:
        notes.append(
            "p: the larger of approximate randomisation and bootstrap over all seeds and tests, "
            f"against {baseline}"
        )
    notes += refusals(every)
    if "swing" in asked.options.get("more", []):
        notes.append("swing: mean change of the development score from round to round")
    if "range" in asked.options.get("more", []):
        notes.append("range: corpus score of y+ minus that of y-, mean of the passes")
    if "length" in asked.options.get("more", []):
        notes.append("length: of the output, against the references, first test")
    if asked.options.get("sort"):
        best = f"mean {metric_of(recipe.metrics[0]).label}" if len(recipe.metrics) > 1 else "mean"
        sign = -1.0 if context.metric().higher_is_better else 1.0
        rows.sort(key=lambda row: sign * _value(row[best]))
        rows = [{"rank": place, **row} for place, row in enumerate(rows, 1)]
    return Filled("scores", "", [], rows, notes)


def refusals(every: Sequence[tuple[System, Sequence[Found]]]) -> list[str]:
    """Return notes about systems that tuning has not made better on the tuning text."""
    notes = []
    for said, wanted in (
        ("no round was better than the start, which was kept", "start"),
        ("the last round, which was kept, was no better than the start", "last"),
        ("the tuned weights score below the first of each list on the tuning lists", "tuned"),
    ):
        told = []
        for system, runs in every:
            count = sum(_refused(system, run) == wanted for run in runs)
            several = f" ({count} of {len(runs)} seeds)" if len(runs) > 1 else ""
            told += [f"{system.name}{several}"] if count else []
        notes += [f"{said}, with {', '.join(told)}"] if told else []
    return notes


def _refused(system: System, run: Found) -> str | None:
    """Return which weights of a run that found no better ones were tested."""
    if not run.facts["refused"]:
        return None
    if system.keep == "last":
        return "last"
    # Lists that are not decoded again have no round to fall back to.
    return "start" if run.facts["development"] == run.facts["start"] else "tuned"


def _tuned_text(context: Context, task: str) -> str:
    if context.worlds[task].task.structured is not None:
        return "the sentences that choose the pass, which were not learnt from"
    return "the text that was tuned on"


def _value(cell: Cell) -> float:
    if isinstance(cell, Several):
        return cell.mean
    return float(cell) if isinstance(cell, int | float) else math.nan


def _p(metric: str, base: Sequence[Found], runs: Sequence[Found]) -> float:
    """Return the larger p of both tests, which decides claims, too."""
    import numpy as np

    def rows(several: Sequence[Found]) -> list[Any]:
        return [np.concatenate([run.rows(test, metric) for test in run.tests]) for run in several]

    return compare_both(metric_of(metric), rows(base), rows(runs), SAMPLES).p


def _passes(context: Context, asked: Tabulated, task: str) -> Filled:
    rows: list[dict[str, Cell]] = []
    wanted = asked.options.get("weights", [])
    for system, runs in context.runs(asked, task):
        most = max((len(run.epochs) for run in runs), default=0)
        for name in wanted or [None]:
            row: dict[str, Cell] = {"task": task, "system": system.name}
            if name is not None:
                row["weight"] = str(name)
            for number in range(most):
                epochs = [run.epochs[number] for run in runs if number < len(run.epochs)]
                row[str(number + 1)] = several(
                    [
                        each.get("score") if name is None else _weight(each, str(name))
                        for each in epochs
                    ]
                )
            rows.append(row)
    told = f"; the score is that on {_tuned_text(context, task)}" if not wanted else ""
    notes = [f"columns: passes{told}"]
    return Filled("passes", "", [], rows, notes)


def _weight(epoch: Mapping[str, Any], name: str) -> float | None:
    """Return the weight of the feature whose name ends so, after a pass."""
    found = [v for key, v in epoch.get("weights", {}).items() if key == name or key.endswith(name)]
    return float(found[0]) if found else None


def _beams(context: Context, asked: Tabulated, task: str) -> Filled:
    rows, world = list[dict[str, Cell]](), context.worlds[task]
    beams = [int(each) for each in asked.options.get("beams", BEAMS)]
    name, read = context.first_test(task)
    for system, runs in context.runs(asked, task):

        def score(run: Found, system: System = system) -> Mapping[str, Any]:
            source = world.live(read, system)
            found = by_beam(source, run.weights, context.metric(), beams)
            return {str(each.beam): each.score for each in found}

        values = [context.analysed("beams", run, partial(score, run), beams=beams) for run in runs]
        row: dict[str, Cell] = {"task": task, "system": system.name}
        row |= {str(beam): several([each[str(beam)] for each in values]) for beam in beams}
        rows.append(row)
    return Filled("beams", "", [], rows, [f"columns: width of the beam; text: {name}"])


def _lists(context: Context, asked: Tabulated, task: str) -> Filled:
    rows, world = list[dict[str, Cell]](), context.worlds[task]
    ks = [int(each) for each in asked.options.get("k", [100])]
    on = asked.options.get("on", "test")
    diverse = bool(asked.options.get("diversity", "k" not in asked.options))
    for system, runs in context.runs(asked, task):
        read = (
            world.tuning(system.development) if on == DEVELOPMENT else context.first_test(task)[1]
        )

        def lists(
            run: Found, k: int, system: System = system, read: Read = read
        ) -> Mapping[str, Any]:
            live = world.live(read, system, k=None)
            return asdict(of_lists(live, run.weights, context.metric(), k, diverse=diverse))

        row: dict[str, Cell] = {"task": task, "system": system.name}
        for k in ks:
            values = [
                context.analysed("lists", run, partial(lists, run, k), k=k, on=on, diverse=diverse)
                for run in runs
            ]
            if k == ks[0]:
                row["1-best"] = several([each["score"] for each in values])
            row["oracle" if len(ks) == 1 else f"oracle {k}"] = several(
                [each["oracle"] for each in values]
            )
            if diverse:
                row["diversity"] = several([each["diversity"] for each in values])
        rows.append(row)
    notes = [f"text: {on}; lists of {', '.join(map(str, ks))}"]
    return Filled("lists", "", [], rows, notes)


def _bins(context: Context, asked: Tabulated, task: str) -> Filled:
    rows, world = list[dict[str, Cell]](), context.worlds[task]
    for system, runs in context.runs(asked, task):

        def bins(run: Found, system: System = system) -> Mapping[str, Any]:
            read = world.tuning(system.development)
            return asdict(
                of_bins(world.live(read, system, space=None), run.weights, context.metric())
            )

        values = [context.analysed("bins", run, partial(bins, run)) for run in runs]
        rows.append(
            {
                "task": task,
                "system": system.name,
                "final bin": several([each["final"] for each in values]),
                "all bins": several([each["every"] for each in values]),
            }
        )
    return Filled("bins", "", [], rows, ["text: that which was tuned on"])


def _spread(context: Context, asked: Tabulated, task: str) -> Filled:
    rows: list[dict[str, Cell]] = []
    for system, runs in context.runs(asked, task):
        last: list[dict[str, float]] = []
        every: list[dict[str, float]] = []
        for run in runs:
            known = [each for each in run.epochs if each.get("spread")]
            if not known:
                continue
            best = max if context.metric().higher_is_better else min
            last.append(best(known, key=lambda each: each["score"])["spread"])
            every.append(
                {key: fmean(each["spread"][key] for each in known) for key in ("mean", "sd")}
            )
        if not last:
            continue
        rows.append(
            {
                "task": task,
                "system": system.name,
                "spread": several([each["mean"] for each in last]),
                "its sd": several([each["sd"] for each in last]),
                "spread, all passes": several([each["mean"] for each in every]),
                "its sd, all passes": several([each["sd"] for each in every]),
            }
        )
    notes = ["spread: s(y+) - s(y_w) in the lists of the best pass, mean and standard deviation"]
    return Filled("spread", "", [], rows, notes)


def _features(context: Context, asked: Tabulated, task: str) -> Filled:
    rows: list[dict[str, Cell]] = []
    for system, runs in context.runs(asked, task):
        counts = [{each.name: each.nonzero for each in groups(run.weights)} for run in runs]
        row: dict[str, Cell] = {"task": task, "system": system.name}
        row["features"] = several([sum(each.values()) for each in counts])
        names = sorted({name for each in counts for name in each}, key=lambda n: (n != DENSE, n))
        row |= {name: several([each.get(name, 0) for each in counts]) for name in names}
        rows.append(row)
    return Filled("features", "", [], rows, ["weights that are not zero, by template"])


def _weights(context: Context, asked: Tabulated, task: str) -> Filled:
    """Weights by name: those that are asked for, then the largest sparse ones of any system."""
    every = context.runs(asked, task)
    learnt = {system.name: [run.weights for run in runs] for system, runs in every}
    names = [str(name) for name in asked.options.get("features", [])]
    sizes: dict[str, float] = {}
    for one in (one for runs in learnt.values() for one in runs):
        for name, value in one.items():
            if template_of(name) != DENSE:
                sizes[name] = max(sizes.get(name, 0.0), abs(value))
    largest = sorted(sizes, key=lambda name: (-sizes[name], name))
    names += largest[: int(asked.options.get("top", 10))]
    rows: list[dict[str, Cell]] = []
    for name in dict.fromkeys(names):
        row: dict[str, Cell] = {"task": task, "feature": name}
        row |= {system: several([one.get(name) for one in runs]) for system, runs in learnt.items()}
        rows.append(row)
    return Filled("weights", "", [], rows, ["the named weights, then the largest sparse ones"])


def _gains(context: Context, asked: Tabulated) -> Filled:
    """How much better the baseline is than each system, over all tasks, tests and seeds."""
    recipe, rows = context.recipe, list[dict[str, Cell]]()
    baseline = str(asked.options.get("baseline", ""))
    for system in recipe.matching(asked.systems):
        if system.name == baseline:
            continue
        row: dict[str, Cell] = {"system": system.name}
        for metric in recipe.metrics:
            measure = metric_of(metric)
            gains = []
            for task in context.worlds:
                both = [context.found.get((task, name), []) for name in (baseline, system.name)]
                if not all(both):
                    continue
                means = [
                    [fmean(run.tests[test][metric] for run in runs) for test in runs[0].tests]
                    for runs in both
                ]
                sign = 1.0 if measure.higher_is_better else -1.0
                gains += [sign * (ours - other) for ours, other in zip(*means, strict=True)]
            row[measure.label] = fmean(gains) if gains else None
        rows.append(row)
    notes = [
        f"how much better {baseline} is, mean of all tests of all tasks and of all seeds; "
        "positive is better for every metric"
    ]
    return Filled("gains", "", [], rows, notes)


def _pairs(context: Context, asked: Tabulated, task: str) -> list[tuple[str, str]]:
    """Return the pairs of systems that a table compares; by default each with the first."""
    names = [system.name for system, _ in context.runs(asked, task)]
    given = asked.options.get("pairs")
    if given is None:
        return [(names[0], other) for other in names[1:]]
    return [(str(a), str(b)) for a, b in given if str(a) in names and str(b) in names]


def _overlap(context: Context, asked: Tabulated, task: str) -> Filled:
    rows: list[dict[str, Cell]] = []
    wanted = asked.options.get("template")
    for left, right in _pairs(context, asked, task):
        both = zip(context.found[task, left], context.found[task, right], strict=False)
        found = [
            [
                each
                for each in overlap(one.weights, other.weights)
                if (each.template == wanted if wanted else each.template != DENSE)
            ]
            for one, other in both
        ]
        rows.append(
            {
                "task": task,
                "A": left,
                "B": right,
                "|A|": several([sum(each.left for each in one) for one in found]),
                "|B|": several([sum(each.right for each in one) for one in found]),
                "|A∩B|": several([sum(each.both for each in one) for one in found]),
                "opposed": several([sum(each.opposed for each in one) for one in found]),
            }
        )
    notes = [f"features of {wanted or 'all templates'}; opposed: in both, with opposite signs"]
    return Filled("overlap", "", [], rows, notes)


def _words(context: Context, asked: Tabulated, task: str) -> Filled:
    rows, world = list[dict[str, Cell]](), context.worlds[task]
    template = asked.options.get("template", "rule-id")
    every = context.runs(asked, task)
    texts = {
        system.name: Counter(
            word.lower()
            for references in world.tuning(system.development).references
            for text in references
            for word in text.split()
        )
        for system, _ in every
    }
    words = [str(word) for word in asked.options.get("words", [])]
    if not words and len(texts) > 1:
        # The words that two texts use most differently.
        one, other = [*texts.values()][:2]
        gap = {w: abs(one[w] - other[w]) for w in one.keys() | other.keys() if len(w) > 3}
        words = sorted(gap, key=lambda word: (-gap[word], word))[:6]
    for word in words:
        for kind in ("tokens", "rules"):
            row: dict[str, Cell] = {"task": task, "word": word, "count": kind}
            for system, runs in every:
                row[system.name] = (
                    texts[system.name][word]
                    if kind == "tokens"
                    else several([_rules_with(run, word, template) for run in runs])
                )
            rows.append(row)
    notes = [
        f"tokens: in the references that were tuned on; rules: features of {template} with a "
        "weight whose target has the word"
    ]
    return Filled("words", "", [], rows, notes)


def _rules_with(run: Found, word: str, template: str) -> float:
    return float(
        sum(
            bool(value)
            and template_of(name) == template
            and word in name.rpartition("~")[2].lower().split("_")
            for name, value in run.weights.items()
        )
    )


def _order(context: Context, asked: Tabulated, task: str) -> Filled:
    rows, world = list[dict[str, Cell]](), context.worlds[task]
    for left, right in _pairs(context, asked, task):
        both = list(zip(context.found[task, left], context.found[task, right], strict=False))
        found = []
        for test, read in world.tests.items():
            references = world.live(read, None).references
            found += [
                reordered(one.outputs(test), other.outputs(test), references) for one, other in both
            ]
        total = len(both) or 1
        rows.append(
            {
                "task": task,
                "A": left,
                "B": right,
                "sentences": sum(each.sentences for each in found) // total,
                "order differs": sum(each.differ for each in found) / total,
                "A closer": sum(each.left for each in found) / total,
                "B closer": sum(each.right for each in found) / total,
                "neither": sum(each.neither for each in found) / total,
            }
        )
    notes = [
        "order differs: words that both outputs have, in another order; closer: more pairs of "
        "words in the order of the reference. All tests, mean of the seeds"
    ]
    return Filled("order", "", [], rows, notes)


def _sentences(context: Context, asked: Tabulated, task: str) -> Filled:
    """Sentences with a BLEU of zero, and the better of two outputs sentence by sentence."""
    import numpy as np

    rows: list[dict[str, Cell]] = []
    name = context.recipe.metrics[0]
    metric = metric_of(name)
    for system, runs in context.runs(asked, task):
        zeros = []
        for run in runs:
            every = np.concatenate([run.rows(test, name) for test in run.tests])
            order = (every.shape[1] - 2) // 2
            zeros.append(100.0 * float(np.mean(every[:, 1 + order] == 0.0)))
        rows.append({"task": task, "system": system.name, "zero, %": several(zeros)})
    for left, right in _pairs(context, asked, task):
        scores = []
        for one, other in zip(context.found[task, left], context.found[task, right], strict=False):
            sides = [
                np.concatenate([run.rows(test, name) for test in run.tests]) for run in (one, other)
            ]
            gains = [metric.native.sentence_gains(side) for side in sides]
            best = np.where((gains[0] >= gains[1])[:, None], sides[0], sides[1])
            scores.append(metric.score(best.sum(axis=0)))
        rows.append(
            {
                "task": task,
                "system": f"better of {left} and {right}",
                "oracle of two": several(scores),
            }
        )
    notes = ["zero: sentences of all tests without a matching 4-gram"]
    return Filled("sentences", "", [], rows, notes)


def _similarity(context: Context, asked: Tabulated, task: str) -> Filled:
    """How much the tests are like the tuning text: mean best cosine of tf-idf vectors."""
    world = context.worlds[task]
    names = [system.development for system, _ in context.runs(asked, task)]
    rows: list[dict[str, Cell]] = []
    for tuned in dict.fromkeys([DEVELOPMENT, *names]):
        like = _likeness(world.tuning(tuned).lines)
        row: dict[str, Cell] = {"task": task, "system": tuned}
        row |= {name: fmean(map(like, read.lines)) for name, read in world.tests.items()}
        rows.append(row)
    return Filled(
        "similarity",
        "",
        [],
        rows,
        ["mean cosine (tf-idf) of a test sentence with the most similar one of the tuning text"],
    )


def _likeness(lines: Sequence[str]) -> Callable[[str], float]:
    """Return a function that tells the best cosine of a sentence with some lines."""
    frequency = Counter(word for line in lines for word in set(line.lower().split()))
    total = len(lines)

    def vector(line: str) -> dict[str, float]:
        counts = Counter(line.lower().split())
        made = {w: c * math.log((1 + total) / (1 + frequency[w])) for w, c in counts.items()}
        size = math.sqrt(sum(v * v for v in made.values())) or 1.0
        return {w: v / size for w, v in made.items()}

    known = [vector(line) for line in lines]
    lines_of: dict[str, list[int]] = {}
    for place, each in enumerate(known):
        for word in each:
            lines_of.setdefault(word, []).append(place)

    def best(line: str) -> float:
        products: dict[int, float] = {}
        for word, value in vector(line).items():
            for place in lines_of.get(word, ()):
                products[place] = products.get(place, 0.0) + value * known[place][word]
        return max(products.values(), default=0.0)

    return best


def _time(context: Context, asked: Tabulated, task: str) -> Filled:
    rows: list[dict[str, Cell]] = []
    for system, runs in context.runs(asked, task):
        rounds = [run.facts["rounds"] or 1 for run in runs]
        last = [run.epochs[-1] if run.epochs else {} for run in runs]
        rows.append(
            {
                "task": task,
                "system": system.name,
                "rounds": several(rounds),
                "decode s": several([run.facts["decode_seconds"] for run in runs]),
                "optimise s": several([run.facts["optimise_seconds"] for run in runs]),
                "s per round": several(
                    [run.facts["seconds"] / n for run, n in zip(runs, rounds, strict=True)]
                ),
                "last optimise s": several([each.get("optimise_seconds") for each in last]),
                "hypotheses": several([each.get("hypotheses") for each in last]),
            }
        )
    return Filled("time", "", [], rows, ["one thread; wall-clock seconds"])


_KINDS: dict[str, Callable[[Context, Tabulated, str], Filled]] = {
    "scores": _scores,
    "passes": _passes,
    "beams": _beams,
    "lists": _lists,
    "bins": _bins,
    "spread": _spread,
    "features": _features,
    "weights": _weights,
    "overlap": _overlap,
    "words": _words,
    "order": _order,
    "sentences": _sentences,
    "similarity": _similarity,
    "time": _time,
}
