"""Learning from forced decoding beside tuning on references (Liu & Huang 2014, table 6).

Multi30k with Moses' model at beam 30. The tuning sets are those of `reaching.tuning_sets`. What a
run found is kept beside the runs of `searchaware_bench`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import mean
from typing import Any

from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.harness import Cell, Outcome, say
from benchmarks.searchaware_bench import DECODINGS, KEPT, SEEDS, Work, work
from tunesmith.decode.reaching import reachability, tuning_sets
from tunesmith.metrics import get_metric
from tunesmith.tuning import tune
from tunesmith.weights import Weights

BEAM, PASSES, TRAINING = 30, 5, 3000
Texts = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Run:
    """What is tuned on what."""

    text: str
    tuner: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The tuner with its options."""
        return " ".join([self.tuner, *(f"{key}={value}" for key, value in self.options.items())])

    @property
    def file(self) -> str:
        """The file without the seed."""
        return "-".join(["forced", self.text, *self.name.replace("=", "-").split()])


RUNS = (
    Run("val", "mert"),
    Run("val", "sa-mert"),
    Run("whole", "mert"),
    Run("whole", "sa-mert"),
    *(
        Run(text, "maxforce", options)
        for text in ("prefixes", "whole", "training")
        for options in ({}, {"learner": "mira"})
    ),
)
UPDATED = tuple(
    Run("training", "maxforce", options)
    for options in (
        {},
        {"future": True},
        {"update": "early"},
        {"update": "standard"},
        {"update": "unchecked"},
    )
)


def forced(setting: Setting) -> Outcome:
    """Return scores of tuners on the development text and the test sets, by tuning set."""
    done, sets = _sets(setting)
    seeds = setting.times(len(SEEDS))
    outcome = Outcome("MAXFORCE on Multi30k, beam 30, by tuning set")
    tests = list(done.tests)
    untuned = _judged(done, done.model.weights, tests)
    outcome.rows = [_row("nothing", 0, "", [untuned], tests)]
    for run in RUNS:
        found = [_found(done, sets, run, seed, tests) for seed in SEEDS[:seeds]]
        outcome.rows.append(_row(run.text, len(sets[run.text][0]), run.name, found, tests))
    outcome.notes = [
        f"BLEU, means of {seeds} seeds. length: words of the output on val divided by those of the "
        "reference. Only what was learnt from training text has not seen val.",
    ]
    return outcome


def updates(setting: Setting) -> Outcome:
    """Return scores on the development text by the step that is corrected."""
    done, sets = _sets(setting)
    seeds = setting.times(len(SEEDS))
    outcome = Outcome("MAXFORCE on training text, by the step that is corrected")
    for run in UPDATED:
        found = [_found(done, sets, run, seed, []) for seed in SEEDS[:seeds]]
        row = _row(run.text, len(sets[run.text][0]), run.name, found, [])
        outcome.rows.append({**row, "learnt from": _mean(found, "tuned")})
    outcome.notes = [
        f"BLEU, means of {seeds} seeds. val was not seen; learnt from: BLEU on the text itself.",
    ]
    return outcome


def _sets(setting: Setting) -> tuple[Work, dict[str, Texts]]:
    """Return the task, and all tuning sets by name."""
    done = work("multi30k", setting.shared)
    limit = 300 if setting.quick else TRAINING
    source, target = (
        text_lines(setting.file("multi30k", f"train.{side}.gz"))[:limit] for side in ("de", "en")
    )
    live = done.live(done.development, BEAM)
    translator = done.model.translator(done.model.weights, live.settings, tokenized=True)
    reached = [
        reachability(translator, *texts)
        for texts in (done.development, (source, [[each] for each in target]))
    ]
    return done, {"val": done.development, **tuning_sets(*reached)}


def _found(
    done: Work, sets: Mapping[str, Texts], run: Run, seed: int, tests: list[str]
) -> dict[str, Any]:
    """Return what a run found, from its file if it was made before; the tests at most once."""
    file = KEPT / f"{run.file}-{seed}.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if not found:
        forcing = run.tuner == "maxforce"
        result = tune(
            done.live(sets[run.text], BEAM),
            run.tuner,
            METRIC,
            options=run.options,
            start=done.model.weights,
            seed=seed,
            iterations=PASSES if forcing else DECODINGS,
            fixed={"UnknownWordPenalty0": 1.0},
            threads=1,
            keep="last" if forcing else "best",
        )
        found = {"weights": dict(result.weights), "counts": result.counts, "tuned": result.tuned}
    missing = [test for test in ("val", *tests) if test not in found]
    if missing:
        found |= _judged(done, Weights(found["weights"]), missing)
        file.write_text(json.dumps(found))
        say(f"  {file.stem}: {found['val']:.2f} on val")
    return found


def _judged(done: Work, weights: Mapping[str, float], tests: list[str]) -> dict[str, Any]:
    """Return scores on texts; of the development text also the length of the output."""
    metric, found = get_metric(METRIC), dict[str, Any]()
    for test in dict.fromkeys(["val", *tests]):
        source = done.live(done.development if test == "val" else done.tests[test], BEAM)
        spaces = source.decode(weights, 1)
        texts = spaces.outputs(spaces.first())
        found[test] = metric.corpus_score(texts, source.references)
        if test == "val":
            words = [sum(len(text.split()) for text in side) for side in (texts, _first(source))]
            found["length"] = words[0] / words[1]
    return found


def _first(source: Any) -> list[str]:
    return [references[0] for references in source.references]


def _row(
    text: str, pairs: int, name: str, found: list[dict[str, Any]], tests: list[str]
) -> dict[str, Cell]:
    return {
        "tuned on": text,
        "pairs": pairs,
        "tuner": name,
        "val": _mean(found, "val"),
        "length": _mean(found, "length"),
        **{test: _mean(found, test) for test in tests},
    }


def _mean(found: list[dict[str, Any]], key: str) -> float:
    return round(float(mean(each[key] for each in found)), 2)
