"""Online learners beside MERT with a live decoder, on development text of four tasks.

Multi30k German-English with Moses' phrase-based model and with a hierarchical model of our own
training, Tatoeba German-English, and Spanish verses with four English references. Each development
text is cut in two: weights are tuned on one half and judged on the other, with odd seeds on the
even lines and with even seeds on the odd ones, so that settings can be chosen without a test set.
What a run found is kept in `benchmarks/results/online`, so that a measurement that was stopped goes
on; delete the folder to measure anew.

`python -m benchmarks online` compares the presets there, `online-settings` what their defaults were
chosen from; `online-tests` tunes on the whole
development text and translates the test sets, which choose nothing; `shrink` compares the ways to
apply L1 with sparse features, from the weights of a short MERT, and `online-sparse` MIRA and
relative margin.
`python -m benchmarks.online_bench TASK TUNER [KEY=VALUE …]` runs one setting and prints its
learning curve.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any

from benchmarks import searchaware_bench
from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.harness import Cell, Claim, Outcome, say, timed
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.metrics import get_metric
from tunesmith.sources import Live
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide
from tunesmith.tuning import tune

KEPT = Path(__file__).resolve().parent / "results" / "online"
TASKS = ("multi30k", "hiero", "tatoeba", "verses")
TUNERS = ("mert", "mira", "rm", "mira-hildreth")
SEEDS, DECODINGS, PASSES = (1, 2, 3, 4), 8, 10
# Pairs of Tatoeba that are held out as development text, and pairs of words at most to train on.
HELD, TRAINED, LONGEST = 1000, 60_000, 25
Texts = tuple[list[str], list[list[str]]]
PHRASES = {"stack": 30, "pop_limit": 150, "distortion_limit": 6}
JUDGED, TEST_SEEDS = ("mert", "mira", "rm"), (1, 2, 3, 4, 5)
PLAIN, SCALED = {"spread": "0", "normalise": "false"}, {"spread": "1", "normalise": "true"}
SETTINGS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("mert", {}),
    ("mira", PLAIN),
    ("mira", SCALED),
    ("mira", {"gain": "background", "c": "0.0003", **PLAIN}),
    ("rm", {"bound": "2", **SCALED}),
)
"""What the defaults of the margin learners were chosen from."""
# Captions with a phrase-based model of our own, because models of Moses have no templates.
SPARSE_TASKS, SPARSE_SEEDS, SPARSE = ("captions", "verses"), (1, 2), ("green2013",)
SHRINKS, STRENGTHS = ("exact", "phrasal", "touched"), ("0.1", "0.01")
MARGIN_TASKS, SHORT, LONG = ("captions", "verses", "tatoeba"), 4, 8
LARGE = {"c": "0.03", "average": "none"}
MARGINS: tuple[tuple[str, Mapping[str, str]], ...] = (
    ("mira", {}),
    ("rm", {}),
    ("rm", {"bound": "3"}),
    ("mira", LARGE),
    ("rm", {**LARGE, "price": "0.03", "bound": "1"}),
)
"""The last two take larger steps and no averages, as the paper's learners; defaults come first."""


@dataclass(frozen=True)
class Work:
    """A model, its development text in two halves, and the settings of its search."""

    model: Model
    development: Texts
    tests: Mapping[str, Texts]
    settings: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)

    def half(self, odd: int) -> Live:
        """Return the even (0) or the odd lines (1) of the development text as a source."""
        lines, references = self.development
        return self.live((lines[odd::2], references[odd::2]))

    def live(self, texts: Texts) -> Live:
        """Return a text as a source."""
        return Live(
            self.model,
            *texts,
            settings=self.settings,
            tokenized=True,
            threads=1,
        )


def captions(setting: Setting) -> Work:
    """Return Multi30k with Moses' model."""
    found = searchaware_bench.captions(setting)
    return Work(
        found.model,
        found.development,
        found.tests,
        PHRASES,
        {"UnknownWordPenalty0": 1.0},
    )


def hierarchical(setting: Setting) -> Work:
    """Return Multi30k with a hierarchical model of our own."""
    return _captions_of(setting, "hiero", {"pop_limit": 30})


def phrases(setting: Setting) -> Work:
    """Return Multi30k with a phrase-based model of our own."""
    return _captions_of(setting, "phrase", PHRASES)


def _captions_of(setting: Setting, kind: Kind, settings: Mapping[str, float]) -> Work:
    folder = KEPT / kind
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model" / "model.toml").exists():
        for side in ("de", "en"):
            packed = setting.file("multi30k", f"train.{side}.gz")
            (folder / f"train.{side}").write_bytes(gzip.decompress(packed.read_bytes()))
        say("  training on captions")
        made = Training(folder / "train.de", folder / "train.en", kind=kind)
        train(made, folder / "model", 2)
    found = searchaware_bench.captions(setting)
    model = Model.load(folder / "model", kind)
    return Work(model, found.development, found.tests, settings)


def sentences(setting: Setting) -> Work:
    """Return Tatoeba with a phrase-based model of our own; development text by source sentence."""
    folder = KEPT / "tatoeba"
    folder.mkdir(parents=True, exist_ok=True)
    german, english = (
        text_lines(setting.file("tatoeba", f"de-en.{side}.gz")) for side in ("de", "en")
    )
    pairs: dict[str, list[str]] = {}
    for source, target in zip(german, english, strict=True):
        if 4 <= len(source.split()) <= LONGEST:
            pairs.setdefault(source, []).append(target)
    shuffled = sorted(pairs)
    random.Random(22).shuffle(shuffled)
    held, rest = shuffled[:HELD], shuffled[HELD : HELD + TRAINED]
    last = shuffled[HELD + TRAINED :][:HELD]
    if not (folder / "model" / "model.toml").exists():
        texts = [(source, target) for source in rest for target in pairs[source]]
        for place, side in enumerate(("de", "en")):
            (folder / f"train.{side}").write_text("".join(f"{pair[place]}\n" for pair in texts))
        say("  training on Tatoeba")
        de, en = (TextSide(each, tokenize="moses", case="lower") for each in ("de", "en"))
        made = Training(folder / "train.de", folder / "train.en", de, en, "phrase")
        train(made, folder / "model", 2)
    model = Model.load(folder / "model", "phrase")

    def prepared(sources: Sequence[str]) -> Texts:
        return [model.source.prepare(each) for each in sources], [
            [model.target.prepare(text) for text in pairs[each]] for each in sources
        ]

    return Work(model, prepared(held), {"held out": prepared(last)}, PHRASES)


def verses(setting: Setting) -> Work:
    """Return Spanish verses with four references."""
    found = searchaware_bench.work("verses", setting.shared)
    return Work(found.model, found.development, found.tests, PHRASES)


@cache
def work(task: str, shared: Path) -> Work:
    """Return a task; models are made at the first call."""
    KEPT.mkdir(parents=True, exist_ok=True)
    make = {
        "multi30k": captions,
        "hiero": hierarchical,
        "captions": phrases,
        "tatoeba": sentences,
        "verses": verses,
    }
    return make[task](Setting(shared=shared))


def tuned(
    setting: Setting,
    task: str,
    preset: str,
    options: Mapping[str, str] | None = None,
    seed: int = 1,
    start: Mapping[str, float] | None = None,
    rounds: int | None = None,
    templates: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the scores of a run on both halves, from its file if it was made before."""
    options = dict(options or {})
    shown = [f"{key}={value}" for key, value in sorted(options.items())]
    shown += [] if start is None else ["from-mert"]
    shown += [] if rounds is None else [f"rounds={rounds}"]
    shown += templates
    name = "-".join([task, preset, str(seed), *shown])
    file = KEPT / f"{name}.json"
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    done = work(task, setting.shared)
    done = replace(done, model=done.model.with_templates(templates))
    curve: list[tuple[float, float]] = []
    facts: list[dict[str, Any]] = []

    def listen(event: dict[str, Any]) -> None:
        if event["event"] == "epoch":
            curve.append((round(event["score"], 2), round(event["heldout"], 2)))
            facts.append({key: event.get(key) for key in ("updates", "spread", "weight_change")})

    most = rounds or (DECODINGS if preset in ("mert", "kbmira", "pro") else PASSES)
    result, time = timed(
        lambda: tune(
            done.half((seed + 1) % 2),
            preset,
            METRIC,
            options=options,
            start=done.model.weights if start is None else start,
            seed=seed,
            iterations=most,
            heldout=[done.half(seed % 2)],
            fixed=done.fixed,
            threads=1,
            listen=listen,
        )
    )
    told = {
        "task": task,
        "preset": preset,
        "options": options,
        "seed": seed,
        "start": [result.start, result.heldout_start],
        "tuned": [result.tuned, result.heldout],
        "curve": curve,
        "facts": facts,
        "cpu": time.cpu,
        "weights": dict(result.weights),
    }
    file.write_text(json.dumps(told))
    say(
        f"  {name}: {result.start:.2f} -> {result.tuned:.2f}, judged "
        f"{result.heldout_start:.2f} -> {result.heldout:.2f}, {time.cpu:.0f} s"
    )
    return told


def online(setting: Setting) -> Outcome:
    """Return the scores of MERT and of the online presets on the half that judges."""
    outcome = Outcome("Online learners with a live decoder: BLEU on development text")
    seeds = SEEDS[:1] if setting.quick else SEEDS
    for task in TASKS[:1] if setting.quick else TASKS:
        for preset in TUNERS:
            runs = [tuned(setting, task, preset, seed=seed) for seed in seeds]
            row: dict[str, Cell] = {"task": task, "tuner": preset, "seeds": len(runs)}
            row["start"] = round(runs[0]["start"][1], 2)
            row["tuned on"] = _mean(run["tuned"][0] for run in runs)
            row["judged on"] = _mean(run["tuned"][1] for run in runs)
            row["CPU s"] = round(statistics.mean(run["cpu"] for run in runs))
            outcome.rows.append(row)
    outcome.notes.append(
        "Tuned on one half of the development text, judged on the other; no test set."
    )
    return outcome


def settings(setting: Setting) -> Outcome:
    """Return the scores of settings of the margin learners on the half that judges."""
    outcome = Outcome("Settings of margin learners with a live decoder: BLEU on development text")
    for preset, options in SETTINGS:
        shown = [f"`{preset}`", *(f"`{key}={value}`" for key, value in options.items())]
        row: dict[str, Cell] = {"settings": ", ".join(shown)}
        for task in TASKS[:1] if setting.quick else TASKS:
            seeds = SEEDS[:1] if setting.quick or task == "hiero" else SEEDS[:2]
            runs = [tuned(setting, task, preset, options, seed) for seed in seeds]
            row[task] = _mean(run["tuned"][1] for run in runs)
        outcome.rows.append(row)
    outcome.notes.append(
        "Tuned on one half of the development text, judged on the other; two seeds, each with the "
        "halves exchanged; one for hiero."
    )
    return outcome


def tested(setting: Setting, task: str, preset: str, seed: int) -> dict[str, Any]:
    """Return the test scores of weights that were tuned on the whole development text."""
    file = KEPT / f"tests-{task}-{preset}-{seed}.json"
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    done, metric = work(task, setting.shared), get_metric(METRIC)
    result, time = timed(
        lambda: tune(
            done.live(done.development),
            preset,
            METRIC,
            start=done.model.weights,
            seed=seed,
            iterations=DECODINGS if preset == "mert" else PASSES,
            fixed=done.fixed,
            threads=1,
        )
    )

    def scored(weights: Mapping[str, float], texts: Texts) -> float:
        found = done.live(texts).decode(weights, 1)
        return found.score(metric, found.first())

    told = {
        "tuned": result.tuned,
        "start": {name: scored(done.model.weights, texts) for name, texts in done.tests.items()},
        "tests": {name: scored(result.weights, texts) for name, texts in done.tests.items()},
        "cpu": time.cpu,
    }
    file.write_text(json.dumps(told))
    say(f"  {file.stem}: {result.start:.2f} -> {result.tuned:.2f}, {time.cpu:.0f} s")
    return told


def tests(setting: Setting) -> Outcome:
    """Return test scores of MERT and of the online presets: means over seeds and test sets."""
    outcome = Outcome("Online learners with a live decoder: BLEU on test sets")
    seeds = TEST_SEEDS[:1] if setting.quick else TEST_SEEDS
    tasks = TASKS[:1] if setting.quick else TASKS
    # By seed first, so that a measurement that was stopped has whole columns.
    runs = {
        (task, preset, seed): tested(setting, task, preset, seed)
        for seed in seeds
        for task in tasks
        for preset in JUDGED
    }
    for task in tasks:
        means = {}
        for preset in JUDGED:
            several = [runs[task, preset, seed] for seed in seeds]
            scores = [statistics.mean(run["tests"].values()) for run in several]
            means[preset] = statistics.mean(scores)
            row: dict[str, Cell] = {"task": task, "tuner": preset, "seeds": len(several)}
            row["development"] = _mean(run["tuned"] for run in several)
            row["start"] = round(statistics.mean(several[0]["start"].values()), 2)
            row["tests"] = round(means[preset], 2)
            row["deviation"] = round(statistics.pstdev(scores), 2)
            row["to mert"] = round(means[preset] - means[JUDGED[0]], 2)
            row["CPU s"] = round(statistics.mean(run["cpu"] for run in several))
            outcome.rows.append(row)
        for preset in JUDGED[1:]:
            outcome.claims.append(
                Claim(
                    f"{preset} on {task} is at most 0.1 below mert",
                    means[preset] - means["mert"],
                    -0.1,
                    "at least",
                )
            )
    return outcome


def shrink(setting: Setting) -> Outcome:
    """Return the scores of AdaGrad with the ways to apply L1, on the half that judges."""
    outcome = Outcome("Ways to apply L1, sparse features: BLEU on development text")
    seeds = SPARSE_SEEDS[:1] if setting.quick else SPARSE_SEEDS
    for task in SPARSE_TASKS[:1] if setting.quick else SPARSE_TASKS:
        first = {seed: tuned(setting, task, "mert", seed=seed, rounds=4) for seed in seeds}
        for l1 in STRENGTHS:
            for way in SHRINKS:
                runs = [
                    tuned(
                        setting,
                        task,
                        "adagrad",
                        {"l1": l1, "shrink": way},
                        seed,
                        first[seed]["weights"],
                        6,
                        SPARSE,
                    )
                    for seed in seeds
                ]
                row: dict[str, Cell] = {"task": task, "l1": l1, "shrink": way, "seeds": len(runs)}
                row |= _from_mert(runs)
                row["weights"] = round(
                    statistics.mean(sum(map(bool, run["weights"].values())) for run in runs)
                )
                row["CPU s"] = round(statistics.mean(run["cpu"] for run in runs))
                outcome.rows.append(row)
    outcome.notes.append("Templates green2013, six passes, from the weights of a short MERT.")
    return outcome


def margins(setting: Setting) -> Outcome:
    """Return the scores of MIRA and relative margin with sparse features, on the half that judges.

    The paper has relative margin above MIRA there.
    """
    outcome = Outcome("MIRA and relative margin, sparse features: BLEU on development text")
    seeds = SPARSE_SEEDS[:1] if setting.quick else SPARSE_SEEDS
    scores: dict[str, list[list[float]]] = {preset: [] for preset, _ in MARGINS}
    for task in MARGIN_TASKS[:1] if setting.quick else MARGIN_TASKS:
        first = {seed: tuned(setting, task, "mert", seed=seed, rounds=SHORT) for seed in seeds}
        for of_task in scores.values():
            of_task.append([])
        for preset, options in MARGINS:
            runs = [
                tuned(setting, task, preset, options, seed, first[seed]["weights"], LONG, SPARSE)
                for seed in seeds
            ]
            shown = ", ".join(f"`{key}={value}`" for key, value in options.items())
            row: dict[str, Cell] = {"task": task, "tuner": preset, "settings": shown or "defaults"}
            row |= _from_mert(runs)
            row["spread"] = round(
                statistics.mean(run["facts"][-1]["spread"]["mean"] for run in runs), 1
            )
            row["CPU s"] = round(statistics.mean(run["cpu"] for run in runs))
            outcome.rows.append(row)
            scores[preset][-1].append(statistics.mean(run["tuned"][1] for run in runs))
    outcome.notes.append(
        "Templates green2013, eight passes, from the weights of a short MERT; two seeds, each with "
        "the halves exchanged. Spread is that of the scores in the last pass."
    )
    chosen: tuple[tuple[str, Callable[[list[float]], float]], ...] = (
        ("with their defaults", itemgetter(0)),
        ("with the best settings for each task", max),
    )
    for how, choose in chosen:
        rm, mira = (
            statistics.mean(choose(of_task) for of_task in scores[preset])
            for preset in ("rm", "mira")
        )
        outcome.claims.append(Claim(f"rm less mira {how}", rm - mira, 0.0, "at least"))
    return outcome


def _from_mert(runs: Sequence[Mapping[str, Any]]) -> dict[str, Cell]:
    """Return the scores of runs that began with the weights of a short MERT."""
    return {
        "mert": _mean(run["start"][1] for run in runs),
        "tuned on": _mean(run["tuned"][0] for run in runs),
        "judged on": _mean(run["tuned"][1] for run in runs),
    }


def _mean(values: Iterable[float]) -> float:
    return round(statistics.mean(values), 2)


def main(words: Sequence[str]) -> None:
    """Run one setting; `start=mert` begins with what MERT found, `seed` and `rounds` are ours."""
    task, preset, *rest = words
    options = dict(word.split("=", 1) for word in rest)
    seed = int(options.pop("seed", "1"))
    rounds = options.pop("rounds", None)
    setting = Setting()
    first = None
    if options.pop("start", None) == "mert":
        first = tuned(setting, task, "mert", seed=seed)["weights"]
    found = tuned(setting, task, preset, options, seed, first, rounds and int(rounds))  # type: ignore[arg-type]
    print(json.dumps({key: found[key] for key in ("start", "tuned", "curve", "cpu")}))


if __name__ == "__main__":
    main(sys.argv[1:])
