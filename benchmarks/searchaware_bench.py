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
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.harness import say, timed
from tunesmith.decode.translation import Model
from tunesmith.metrics import get_metric
from tunesmith.sources import Live
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide
from tunesmith.tuning import tune

KEPT = Path(__file__).resolve().parent / "results" / "search-aware"
BEAMS, SEEDS, DECODINGS = (4, 8, 16, 30), (1, 2, 3), 6
PAIRS = {"mert": "sa-mert", "kbmira": "sa-mira", "pro": "sa-pro"}
TASKS = ("multi30k", "verses")
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
        return Live(self.model, *texts, settings=search, tokenized=True, threads=1, **more)


def captions(setting: Setting) -> Work:
    """Return Multi30k with Moses' model."""

    def text(name: str) -> tuple[list[str], list[list[str]]]:
        source, target = (
            text_lines(setting.file("multi30k", f"{name}.{side}.gz")) for side in ("de", "en")
        )
        return source, [[each] for each in target]

    ini = setting.file("multi30k-moses", "moses.untuned.ini")
    names = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    return Work(Model.of_moses(ini, KEPT / "moses"), text("val"), {n: text(n) for n in names})


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
    return {"multi30k": captions, "verses": verses}[task](Setting(shared=shared))


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
    name = "-".join(str(found[key]) for key in ("task", "preset", "beam", "seed"))
    return np.load(KEPT / f"{name}.npz")[test]
