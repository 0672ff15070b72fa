"""Every tuner with a decoder in the loop, and the ways to use threads.

Tuned on val of Multi30k, tested on its three test sets: with Moses' phrase-based model from its
untuned weights (pop limit 300), and with the hierarchical model of our own training from the
weights that an untuned model has (pop limit 30). What a run found is kept in
`benchmarks/results/tuning`, so that a measurement that was stopped goes on; delete the folder to
measure anew.
"""

from __future__ import annotations

import gzip
import hashlib
import itertools
import json
import os
import statistics
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.fresh import in_fresh_process
from benchmarks.harness import Cell, Claim, Outcome, say, timed
from tunesmith.decode.translation import Model
from tunesmith.learn.online import with_regime
from tunesmith.metrics import get_metric
from tunesmith.metrics.significance import compare_both
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.training.pipeline import Training, train
from tunesmith.tuning import tune

KEPT = Path(__file__).resolve().parent / "results" / "tuning"
TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
BATCH = ("mert", "pro", "kbmira", "rampion", "risk")
ONLINE = ("mira", "mira-hildreth", "mira-cp", "rm", "rm-cp", "adagrad", "arow", "perceptron")
DECODINGS, PASSES = 6, {"adagrad": 10, "arow": 20, "perceptron": 20}
"""Of batch tuners, and of online ones that have not ended after six passes: their presets' own."""
TO_THEIR_END = ("mert", "pro", "kbmira")
"""Batch tuners that are also run until they end, with Moses' model."""
OPTIONS: dict[str, dict[str, Any]] = {}
"""Where a preset's own are not used."""


def texts(setting: Setting, name: str, count: int | None = None) -> tuple[list[str], list[str]]:
    """Return sentences and references of a text of Multi30k."""
    source, target = (
        text_lines(setting.file("multi30k", f"{name}.{side}.gz"))[:count] for side in ("de", "en")
    )
    return source, target


@cache
def trained(setting_shared: Path) -> Path:
    """Return the model of our own training, which is made at the first call."""
    setting, folder = Setting(shared=setting_shared), KEPT / "model"
    KEPT.mkdir(parents=True, exist_ok=True)
    for side in ("de", "en"):
        packed = setting.file("multi30k", f"train.{side}.gz")
        (KEPT / f"train.{side}").write_bytes(gzip.decompress(packed.read_bytes()))
    train(Training(KEPT / "train.de", KEPT / "train.en", kind="both"), folder, 2)
    return folder


def model_of(shared: str, decoder: str, templates: Iterable[str] = ()) -> tuple[Model, Any]:
    """Return a model and the settings of its search."""
    setting = Setting(shared=Path(shared))
    if decoder == "moses":
        ini = setting.file("multi30k-moses", "moses.untuned.ini")
        return Model.of_moses(ini, KEPT / "moses"), {"pop_limit": 300, "stack": 100}
    kind: Any = decoder
    model = Model.load(KEPT / "model", kind, named=list(templates))
    return model, {"pop_limit": 30} if decoder == "hiero" else {}


def tuned(
    shared: str,
    decoder: str,
    preset: str,
    seed: int,
    *,
    keep: list[Any],
    options: dict[str, Any] | None = None,
    regime: str | None = None,
    iterations: int = 0,
    sentences: int | None = None,
    threads: int = 1,
    templates: Iterable[str] = (),
    rows: str = "",
) -> dict[str, Any]:
    """Tune in a process of its own, then translate the test sets; `rows` is a file for their
    statistics."""
    setting = Setting(shared=Path(shared))
    model, search = model_of(shared, decoder, templates)
    keep.append(model)

    def live(name: str) -> Live:
        lines, references = texts(setting, name, sentences)
        pairs = [[reference] for reference in references]
        return Live(model, lines, pairs, settings=search, tokenized=True, threads=threads)

    tuner = with_regime(make_tuner(preset, options), regime)
    epochs: list[dict[str, Any]] = []
    result, time = timed(
        lambda: tune(
            live("val"),
            preset,
            METRIC,
            start=model.weights,
            tuner=tuner,
            seed=seed,
            iterations=iterations or None,
            fixed={"UnknownWordPenalty0": 1.0} if decoder == "moses" else None,
            threads=threads,
            listen=lambda event: epochs.append(event) if event["event"] == "epoch" else None,
        )
    )
    metric, found, scores = get_metric(METRIC), {}, {}
    for name in TESTS:
        test = live(name)
        lists = test.decode(result.weights, 1)
        found[name] = metric.stats(lists.outputs(lists.best(result.weights)), test.references)
        scores[name] = metric.score(found[name].sum(axis=0))
    if rows:
        np.savez_compressed(rows, **found)  # type: ignore[arg-type]
    told = ("spread", "nonzero", "score", "seconds", "decode_seconds", "optimise_seconds")
    return {
        "start": result.start,
        "val": result.tuned,
        "tests": scores,
        "iterations": result.iterations,
        "cpu": time.cpu,
        "wall": time.wall,
        "nonzero": result.weights.nonzero,
        "refused": result.refused,
        "epochs": [{key: event.get(key) for key in told} for event in epochs],
    }


def _known(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what a run found, now or before."""
    parts = [str(asked[key]) for key in ("decoder", "preset", "seed")]
    told = json.dumps(asked, sort_keys=True)
    name = "-".join([*parts, hashlib.sha256(told.encode()).hexdigest()[:8]])
    path, rows = KEPT / f"{name}.json", KEPT / f"{name}.npz"
    if not path.exists():
        fresh = in_fresh_process("benchmarks.tuning_bench:tuned", **asked, rows=str(rows))
        path.write_text(json.dumps(fresh.value, indent=1))
        say(f"  {name}: val {fresh.value['val']:.2f}, {fresh.value['cpu']:.0f} CPU s")
    found: dict[str, Any] = json.loads(path.read_text())
    return {**found, "rows": rows}


def tuning(setting: Setting) -> Outcome:
    """Tune with every preset, three seeds each, both decoders."""
    outcome = Outcome("Every tuner with a decoder in the loop")
    trained(setting.shared)
    seeds = (1,) if setting.quick else (1, 2, 3)
    metric = get_metric(METRIC)
    # Converted once, before several processes want it.
    model_of(str(setting.shared), "moses")
    asked = {
        (decoder, preset, seed): {
            "shared": str(setting.shared),
            "decoder": decoder,
            "preset": preset,
            "seed": seed,
            "options": OPTIONS.get(preset),
            "iterations": DECODINGS if preset in BATCH else PASSES.get(preset, 6),
            "sentences": 100 if setting.quick else None,
        }
        for seed in seeds
        for decoder in ("moses", "hiero")
        for preset in (*BATCH, *ONLINE)
    }
    for preset, seed in itertools.product(TO_THEIR_END, seeds):
        own = asked["moses", preset, seed]
        asked["moses", f"{preset}, to its end", seed] = {**own, "iterations": 0}
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        found = dict(zip(asked, workers.map(_known, asked.values()), strict=True))
    for decoder in ("moses", "hiero"):
        start = found[decoder, "mert", 1]["start"]
        outcome.rows.append({"decoder": decoder, "tuner": "start", "val": f"{start:.2f}"})
        base = [found[decoder, "mert", seed] for seed in seeds]
        for preset in dict.fromkeys(preset for of, preset, _ in found if of == decoder):
            runs = [found[decoder, preset, seed] for seed in seeds]
            row: dict[str, Cell] = {"decoder": decoder, "tuner": preset}
            row["val"] = _spread([run["val"] for run in runs])
            for name in TESTS:
                row[name.removeprefix("test_").replace("_", " ")] = _spread(
                    [run["tests"][name] for run in runs]
                )
            compared = compare_both(
                metric,
                [np.load(run["rows"])[TESTS[0]] for run in base],
                [np.load(run["rows"])[TESTS[0]] for run in runs],
                samples=1000,
            )
            row["p (2016, against mert)"] = "" if preset == "mert" else f"{compared.p:.3f}"
            row["iterations"] = f"{statistics.fmean(run['iterations'] for run in runs):.1f}"
            row["CPU s"] = f"{statistics.fmean(run['cpu'] for run in runs):.0f}"
            outcome.rows.append(row)
            if preset not in (*BATCH, *ONLINE):
                continue
            mean = statistics.fmean(run["val"] for run in runs)
            below = statistics.fmean(run["val"] for run in base) - mean
            if preset != "mert":
                outcome.claims.append(
                    Claim(f"{decoder}, {preset}: BLEU below mert on val", below, 1.0, "at most")
                )
            outcome.claims.append(
                Claim(f"{decoder}, {preset}: BLEU above the start", mean - start, 0.5, "at least")
            )
    outcome.notes.append(
        f"{len(seeds)} seeds: mean and standard deviation. p: the larger of randomisation and "
        "bootstrap over all runs of both tuners (Clark et al. 2011), BLEU on test 2016. "
        "CPU seconds of tuning alone, the decodings for the score included, one thread."
    )
    return outcome


def _spread(values: list[float]) -> str:
    shown = f"{statistics.fmean(values):.2f}"
    return f"{shown} ± {statistics.stdev(values):.2f}" if len(values) > 1 else shown


def regimes(setting: Setting) -> Outcome:
    """Threads, sparse features, the spread of scores."""
    outcome = Outcome("Online tuning: regimes, sparse features, spread")
    trained(setting.shared)
    common = {
        "shared": str(setting.shared),
        "seed": 1,
        "iterations": 1 if setting.quick else 3,
        "sentences": 100 if setting.quick else None,
    }

    def run(what: str, **asked: Any) -> dict[str, Any]:
        found = _known({**common, **asked})
        outcome.rows.append(
            {
                "run": what,
                "val": found["val"],
                "test 2016": found["tests"][TESTS[0]],
                "s": found["wall"],
                "CPU s": found["cpu"],
                "weights": found["nonzero"],
            }
        )
        return found

    mira = {"decoder": "hiero", "preset": "mira", "threads": 2}
    ways: dict[str, dict[str, Any]] = {
        "serial, one thread": {"threads": 1},
        "serial": {},
        "two shards": {"regime": "shards=2"},
    }
    # The ways in turn, because a machine is not equally fast at all times.
    seeds = (1,) if setting.quick else (1, 2, 3)
    found = {
        (way, seed): run(f"mira, {way}, seed {seed}", **{**mira, **ways[way]}, seed=seed)
        for seed, way in itertools.product(seeds, ways)
    }
    run("mira, batches of 20", **mira, regime="batch=20")
    run("mira, three steps late", **mira, regime="delay=3")
    run("mira, as they arrive", **mira, regime="delay=3,ordered=false")

    def mean(way: str, of: Callable[[dict[str, Any]], float]) -> float:
        return statistics.fmean(of(found[way, seed]) for seed in seeds)

    seconds = {way: mean(way, lambda run: run["wall"]) for way in ways}
    bleu = {way: mean(way, lambda run: run["tests"][TESTS[0]]) for way in ways}
    for way, what in (("serial, one thread", "one"), ("serial", "two")):
        share = seconds["two shards"] / seconds[way]
        text = f"two shards on two threads / serial on {what}"
        outcome.claims.append(Claim(text, share, 0.6, "at most"))
    lost = bleu["serial"] - bleu["two shards"]
    outcome.claims.append(Claim("BLEU on test 2016, serial less mixed", lost, 0.2, "at most"))
    outcome.notes.append(
        "Serial steps are taken on one thread, whatever there is; with two, decodings for the "
        "score use both."
    )
    adagrad = {"decoder": "phrase", "preset": "adagrad", "iterations": 1 if setting.quick else 5}
    sparse = {"templates": ["green2013"], "options": {"l1": 0.001}}
    costs: list[float] = []
    for seed in seeds:
        plain = run(f"adagrad, dense, seed {seed}", **adagrad, seed=seed)
        many = run(f"adagrad, green2013, seed {seed}", **adagrad, **sparse, seed=seed)
        costs.append(many["cpu"] / plain["cpu"])
    text = "an epoch with sparse features / dense"
    outcome.claims.append(Claim(text, statistics.fmean(costs), 1.3, "at most"))
    bounded = run(
        "rm, B = 2, one thread", **{**mira, "threads": 1, "preset": "rm"}, options={"bound": 2.0}
    )
    for preset, seen in (("mira", found["serial, one thread", 1]), ("rm", bounded)):
        told = [f"{e['spread']['mean']:.1f} ± {e['spread']['sd']:.1f}" for e in seen["epochs"]]
        outcome.notes.append(f"Spread of {preset} by pass: {', '.join(told)}.")
    return outcome


def relative_margin(setting: Setting) -> Outcome:
    """What the bound on the spread does, at two step sizes and scales of the gain."""
    outcome = Outcome("Relative margin against MIRA, hierarchical, three passes, one seed")
    trained(setting.shared)
    common = {
        "shared": str(setting.shared),
        "decoder": "hiero",
        "seed": 1,
        "iterations": 3,
        "sentences": 100 if setting.quick else None,
    }
    asked: dict[tuple[str, float, str, float | None], dict[str, Any]] = {}
    for scale in ("one", "length"):
        for c in (0.001, 0.01):
            plain = {"gain_scale": scale, "c": c, "spread": 0, "normalise": False}
            options: dict[str, Any] = plain
            asked["mira", c, scale, None] = {**common, "preset": "mira", "options": options}
            for bound in (1.0, 3.0, 10.0, 30.0):
                options = {**plain, "price": c, "bound": bound}
                asked["rm", c, scale, bound] = {**common, "preset": "rm", "options": options}
    with ThreadPoolExecutor(os.cpu_count()) as workers:
        found = dict(zip(asked, workers.map(_known, asked.values()), strict=True))
    for (preset, c, scale, most), run in found.items():
        last = run["epochs"][-1]["spread"]
        outcome.rows.append(
            {
                "tuner": preset,
                "C = D": f"{c:g}",
                "gains times": "1" if scale == "one" else "length",
                "B": "" if most is None else f"{most:g}",
                "val": run["val"],
                "test 2016": run["tests"][TESTS[0]],
                "spread in the last pass": f"{last['mean']:.1f} ± {last['sd']:.1f}",
            }
        )
    best = {
        preset: max(run["val"] for key, run in found.items() if key[0] == preset)
        for preset in ("mira", "rm")
    }
    outcome.claims.append(
        Claim("rm at its best less mira at its best, val", best["rm"] - best["mira"], 0, "at least")
    )
    return outcome
