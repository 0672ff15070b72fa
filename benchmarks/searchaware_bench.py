"""Search-aware tuning against the same tuners without it, by beam size (Liu & Huang 2014).

Two tasks: Multi30k German-English with Moses' model, nearly monotone and easy for a beam; and
Spanish verses into English with four references and a model of our own training, where the beam
makes mistakes. Tuned on development text at each beam, tested at the same beam; beams of other
sizes, oracles, diversity, all-bin scores and times come from the same weights. What a run found is
kept in `benchmarks/results/search-aware`, so that a measurement that was stopped goes on; delete
the folder to measure anew.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.harness import Cell, Claim, Outcome, say, timed
from tunesmith.analysis import by_beam, of_bins, of_lists
from tunesmith.decode.translation import Model
from tunesmith.learn.task import Task
from tunesmith.metrics import get_metric
from tunesmith.metrics.significance import compare_both
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.spaces import Bins, Spaces
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide
from tunesmith.tuning import tune
from tunesmith.weights import Vector, Weights

KEPT = Path(__file__).resolve().parent / "results" / "search-aware"
BEAMS, SEEDS, DECODINGS = (4, 8, 16, 30), (1, 2, 3), 6
SAMPLES = 1000
PAIRS = {"mert": "sa-mert", "kbmira": "sa-mira", "pro": "sa-pro"}
TASKS = ("multi30k", "verses")
# Pop limits of the hierarchical search, and the seeds it is tuned with.
POPS, FEW = (5, 30), (1, 2)
# Chapters that are held out whole, by their number modulo 40: verses of a chapter share phrases.
DEVELOPMENT, TESTED = (7,), (17, 27, 37)
# Longer verses would take most of the time of a run.
LONGEST = 40


@dataclass(frozen=True)
class Work:
    """A model with the texts to tune and to test on."""

    model: Model
    development: tuple[list[str], list[list[str]]]
    tests: dict[str, tuple[list[str], list[list[str]]]]

    def live(self, texts: tuple[list[str], list[list[str]]], beam: int, **more: Any) -> Live:
        """Return a source of some text at a beam of some width."""
        search = {"stack": beam, "pop_limit": max(50, 5 * beam), "distortion_limit": 6}
        if self.model.kind == "hiero":
            search = {"pop_limit": beam}
        return Live(self.model, *texts, settings=search, tokenized=True, threads=1, **more)


def captions(setting: Setting, model: Model | None = None) -> Work:
    """Return Multi30k with Moses' model, or with another."""

    def text(name: str) -> tuple[list[str], list[list[str]]]:
        source, target = (
            text_lines(setting.file("multi30k", f"{name}.{side}.gz")) for side in ("de", "en")
        )
        return source, [[each] for each in target]

    if model is None:
        ini = setting.file("multi30k-moses", "moses.untuned.ini")
        model = Model.of_moses(ini, KEPT / "moses")
    names = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    return Work(model, text("val"), {n: text(n) for n in names})


def charts(setting: Setting) -> Work:
    """Return Multi30k with a hierarchical model of our own training."""
    kept, folder = KEPT / "charts", KEPT / "charts" / "model"
    kept.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.toml").exists():
        say("  training on captions")
        for side in ("de", "en"):
            lines = text_lines(setting.file("multi30k", f"train.{side}.gz"))
            (kept / f"train.{side}").write_text("\n".join([*lines, ""]))
        de, en = (TextSide(each, tokenize="none") for each in ("de", "en"))
        train(Training(kept / "train.de", kept / "train.en", de, en, "hiero"), folder, 2)
    return captions(setting, Model.load(folder, "hiero"))


def verses(setting: Setting) -> Work:
    """Return Spanish verses, their four English versions, and a model of the other chapters."""
    versions = [f"en.{name}" for name in ("web", "kjv", "asv", "ylt")]
    texts = {
        name: text_lines(setting.file("bible", f"bible.{name}.gz")) for name in ("es", *versions)
    }
    ids = text_lines(setting.file("bible", "bible.ids.gz"))
    chapters: dict[str, int] = {}
    numbers = [chapters.setdefault(each.rpartition(".")[0], len(chapters)) for each in ids]
    kept, folder = KEPT / "verses", KEPT / "verses" / "model"
    kept.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.toml").exists():
        say("  training on verses")
        held = {*DEVELOPMENT, *TESTED}
        for side, name in (("es", "es"), ("en", "en.web")):
            lines = [t for t, c in zip(texts[name], numbers, strict=True) if c % 40 not in held]
            (kept / f"train.{side}").write_text("\n".join([*lines, ""]))
        es, en = (TextSide(each, tokenize="moses", case="lower") for each in ("es", "en"))
        train(Training(kept / "train.es", kept / "train.en", es, en, "phrase"), folder, 2)
    model = Model.load(folder, "phrase")

    def part(remainders: Sequence[int]) -> tuple[list[str], list[list[str]]]:
        chosen = [i for i, chapter in enumerate(numbers) if chapter % 40 in remainders]
        source = [model.source.prepare(texts["es"][i]) for i in chosen]
        short = [i for i, text in enumerate(source) if 0 < len(text.split()) <= LONGEST]
        references = [
            [model.target.prepare(texts[name][chosen[i]]) for name in versions] for i in short
        ]
        return [source[i] for i in short], references

    return Work(model, part(DEVELOPMENT), {f"chapters {n}": part([n]) for n in TESTED})


@cache
def work(task: str, shared: Path) -> Work:
    """Return a task; models are made at the first call."""
    KEPT.mkdir(parents=True, exist_ok=True)
    made = {"multi30k": captions, "verses": verses, "charts": charts}[task]
    return made(Setting(shared=shared))


def tuned(setting: Setting, task: str, preset: str, beam: int, seed: int, **more: Any) -> Any:
    """Return what a run found, from its file if it was made before."""
    name = "-".join([task, preset, str(beam), str(seed), *(str(each) for each in more.values())])
    file = KEPT / f"{name}.json"
    if file.exists():
        return json.loads(file.read_text())
    done = work(task, setting.shared)
    metric = get_metric(METRIC)
    seconds: list[float] = []
    result, time = timed(
        lambda: tune(
            done.live(done.development, beam, **more),
            preset,
            METRIC,
            start=done.model.weights,
            seed=seed,
            iterations=DECODINGS,
            fixed={"UnknownWordPenalty0": 1.0} if task == "multi30k" else None,
            threads=1,
            listen=lambda event: (
                seconds.append(event["optimise_seconds"]) if event["event"] == "epoch" else None
            ),
        )
    )
    scores, rows = {}, {}
    for test, texts in done.tests.items():
        source = done.live(texts, beam)
        found = source.decode(result.weights, 1)
        rows[test] = metric.stats(found.outputs(found.first()), source.references)
        scores[test] = metric.score(rows[test].sum(axis=0))
    np.savez_compressed(file.with_suffix(".npz"), **rows)  # type: ignore[arg-type]
    told = {
        "task": task,
        "preset": preset,
        "beam": beam,
        "seed": seed,
        **more,
        "start": result.start,
        "development": result.tuned,
        "tests": scores,
        "optimise": seconds,
        "cpu": time.cpu,
        "weights": dict(result.weights),
    }
    file.write_text(json.dumps(told))
    say(f"  {name}: {result.start:.2f} -> {result.tuned:.2f}, {time.cpu:.0f} s")
    return told


def runs(setting: Setting, task: str, preset: str, beam: int, **more: Any) -> list[Any]:
    """Return what all seeds found."""
    seeds = SEEDS[:1] if setting.quick else SEEDS
    return [tuned(setting, task, preset, beam, seed, **more) for seed in seeds]


def rows_of(found: Any, test: str) -> Any:
    """Return the statistics of a test set."""
    keys = ("task", "preset", "beam", "seed", "ranked")
    name = "-".join(str(found[key]) for key in keys if key in found)
    return np.load(KEPT / f"{name}.npz")[test]


def main_table(setting: Setting) -> Outcome:
    """Return test scores of every tuner and its search-aware form, by beam (their Table 2)."""
    outcome = Outcome("Search-aware tuning: BLEU on test sets, mean of the seeds")
    metric = get_metric(METRIC)
    for task in TASKS:
        tests = list(work(task, setting.shared).tests)
        for beam in BEAMS[:1] if setting.quick else BEAMS:
            for plain, aware in PAIRS.items():
                base = runs(setting, task, plain, beam)
                scored = runs(setting, task, aware, beam, ranked="score")
                estimated = runs(setting, task, aware, beam, ranked="estimate")
                for name, several in (
                    (plain, base),
                    (f"{aware} --ranked score", scored),
                    (f"{aware} (estimate)", estimated),
                ):
                    row: dict[str, Cell] = {"task": task, "beam": beam, "tuner": name}
                    row["seeds"] = len(several)
                    row["development"] = _mean(each["development"] for each in several)
                    row |= {t: _mean(each["tests"][t] for each in several) for t in tests}
                    row["mean"] = _mean(each["tests"][t] for each in several for t in tests)
                    row["p"] = None
                    if several is not base:
                        both = [_all_rows(each, tests) for each in (base, several)]
                        row["p"] = compare_both(metric, both[0], both[1], SAMPLES).p
                    outcome.rows.append(row)
    outcome.notes.append(
        "development: the last bin's score on the text that was tuned on; p: approximate "
        "randomisation over all test sentences and seeds, against the tuner above"
    )
    return outcome


def hierarchical(setting: Setting) -> Outcome:
    """Return test scores of two tuners and their search-aware forms over the cells of charts."""
    outcome = Outcome("Search-aware tuning of a hierarchical model: BLEU, mean of two seeds")
    metric = get_metric(METRIC)
    tests = list(work("charts", setting.shared).tests)
    for pop in POPS[:1] if setting.quick else POPS:
        for plain, aware in (("kbmira", "sa-mira"), ("mert", "sa-mert")):
            base: list[Any] = []
            for preset in (plain, aware):
                seeds = FEW[:1] if setting.quick else FEW
                found = [tuned(setting, "charts", preset, pop, seed) for seed in seeds]
                row: dict[str, Cell] = {"pop limit": pop, "tuner": preset}
                row["development"] = _mean(each["development"] for each in found)
                row |= {t: _mean(each["tests"][t] for each in found) for t in tests}
                row["mean"] = _mean(each["tests"][t] for each in found for t in tests)
                row["p"] = None
                if preset == aware:
                    both = [_all_rows(each, tests) for each in (base, found)]
                    row["p"] = compare_both(metric, both[0], both[1], SAMPLES).p
                row["CPU seconds"] = round(statistics.mean(each["cpu"] for each in found))
                base = base or found
                outcome.rows.append(row)
    return outcome


def _mean(values: Iterable[float]) -> float:
    return round(statistics.mean(values), 2)


def _all_rows(several: Sequence[Any], tests: Sequence[str]) -> list[Any]:
    """Return the statistics of all test sentences, for each seed."""
    return [np.concatenate([rows_of(each, test) for test in tests]) for each in several]


def _weights(setting: Setting, task: str, preset: str, beam: int) -> Weights:
    more = {"ranked": "estimate"} if preset.startswith("sa-") else {}
    return Weights(tuned(setting, task, preset, beam, SEEDS[0], **more)["weights"])


def analyses(setting: Setting) -> Outcome:
    """Return final-bin and all-bin scores, oracles and diversity (their Tables 3, 4, 5)."""
    outcome = Outcome("Search-aware tuning: bins on development text, lists on the first test set")
    metric = get_metric(METRIC)
    for task in TASKS:
        done = work(task, setting.shared)
        first = next(iter(done.tests.values()))
        for beam in (4,) if setting.quick else (4, 30):
            for preset in ("mert", "sa-mert"):
                weights = _weights(setting, task, preset, beam)
                bins = of_bins(done.live(done.development, beam), weights, metric)
                lists = of_lists(done.live(first, beam), weights, metric)
                outcome.rows.append(
                    {
                        "task": task,
                        "beam": beam,
                        "tuner": preset,
                        "final bin": round(bins.final, 2),
                        "all bins": round(bins.every, 2),
                        "1-best": round(lists.score, 2),
                        "oracle": round(lists.oracle, 2),
                        "diversity d'": round(lists.diversity or 0.0, 3),
                        "d": round(lists.shared or 0.0, 2),
                    }
                )
    return outcome


def beams(setting: Setting) -> Outcome:
    """Return test scores by the width of the beam, for weights tuned at two widths (Figure 5)."""
    outcome = Outcome("BLEU on the first test set by beam")
    metric = get_metric(METRIC)
    for task in TASKS:
        done = work(task, setting.shared)
        texts = next(iter(done.tests.values()))
        for beam in (4,) if setting.quick else (4, 30):
            for preset in ("mert", "sa-mert", "kbmira", "sa-mira"):
                weights = _weights(setting, task, preset, beam)
                row: dict[str, Cell] = {"task": task, "tuned at": beam, "tuner": preset}
                for found in by_beam(done.live(texts, beam), weights, metric):
                    row[str(found.beam)] = round(found.score, 2)
                outcome.rows.append(row)
    return outcome


def _optimised(name: str, job: Task, start: Vector) -> None:
    for _ in make_tuner(name).epochs(job, start, 1, None):
        pass


def optimisers(setting: Setting) -> Outcome:
    """Return the CPU seconds of each optimiser on the same decodings (their Table 8)."""
    outcome = Outcome("Optimiser time on the bins of six decodings, beam 30, one thread")
    done = work("multi30k", setting.shared)
    source = done.live(done.development, 30, space="bins")
    metric, rng = get_metric(METRIC), np.random.default_rng(1)
    bins: Spaces | None = None
    for number in range(2 if setting.quick else 6):
        varied = {
            name: value * (1 + 0.3 * rng.normal() * (number > 0))
            for name, value in done.model.weights.items()
        }
        found = source.decode(varied)
        bins = found if bins is None else bins.merged(found)
    assert isinstance(bins, Bins)
    for plain, aware in PAIRS.items():
        times = []
        for name, spaces in ((plain, bins.final()), (aware, bins)):
            spaces.table(metric)
            limit = np.full(spaces.width, np.inf)
            start = spaces.vector(done.model.weights)
            least = None
            for _ in range(setting.times(3)):
                job = Task(spaces, metric, -limit, limit, 1)
                _, spent = timed(partial(_optimised, name, job, start))
                job.release()
                least = spent.cpu if least is None else min(least, spent.cpu)
            times.append(least or 0.0)
            outcome.rows.append(
                {"tuner": name, "hypotheses": spaces.hypotheses, "seconds": round(times[-1], 2)}
            )
        outcome.claims.append(
            Claim(f"{aware} takes of {plain}'s time", times[1] / times[0], 3.0, "at most", "×")
        )
    return outcome
