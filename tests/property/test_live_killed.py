"""Runs with a decoder in the loop, killed again and again, end with the same weights."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from twins.toy import POOR, make_world

from tunesmith import Weights, tune
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.learn.online import with_regime
from tunesmith.presets import make_tuner
from tunesmith.runs import RunDirectory
from tunesmith.sources import Live

# Children of a server that has everything loaded start at once.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tunesmith.tuning", "twins.toy"])

RUNS: list[dict[str, Any]] = [
    {"preset": "mert", "options": {"restarts": 2}, "iterations": 4},
    {"preset": "kbmira", "kind": "hiero", "options": {"passes": 5}, "iterations": 4},
    {"preset": "mira", "iterations": 8, "named": ["rule-id"]},
    {"preset": "mira-hildreth", "iterations": 6, "regime": "shards=2,mix=2", "named": ["bigrams"]},
    {"preset": "adagrad", "iterations": 8, "regime": "batch=5,delay=2", "named": ["rule-id"]},
    {"preset": "mert", "options": {"restarts": 1}, "iterations": 2, "seeds": 2, "kills": 6},
    {"preset": "mira", "iterations": 2, "folds": 2, "kills": 6},
]
KILLS = 12
TIMES = {"seconds", "decode_seconds", "optimise_seconds"}


def called(asked: dict[str, Any]) -> str:
    """Return a name for a run."""
    return "-".join([asked["preset"], *(name for name in ("seeds", "folds") if name in asked)])


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("killed"))


def work(world: Path, folder: Path, asked: dict[str, Any], resume: bool) -> None:
    kind: Kind = asked.get("kind", "phrase")
    model = Model.load(world / "model", kind, named=asked.get("named", ()))
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    source = Live(model, lines, [[text] for text in references], k=30, threads=1)
    tuner = with_regime(make_tuner(asked["preset"], asked.get("options")), asked.get("regime"))
    tune(
        source,
        asked["preset"],
        "bleu:tokenize=none",
        start=POOR[kind],
        tuner=tuner,
        iterations=asked["iterations"],
        seeds=asked.get("seeds", 1),
        folds=asked.get("folds", 0),
        threads=1,
        run=folder,
        resume=resume,
    )


def begin(world: Path, folder: Path, asked: dict[str, Any]) -> ForkServerProcess:
    process = SERVER.Process(target=work, args=(world, folder, asked, is_begun(folder)))
    process.start()
    return process


def is_begun(folder: Path) -> bool:
    return (folder / "config.json").exists()


@pytest.mark.parametrize("asked", RUNS, ids=called)
def test_a_run_killed_at_random_points_ends_with_the_same_weights(
    world: Path, asked: dict[str, Any]
) -> None:
    whole, killed = world / f"{called(asked)}-whole", world / f"{called(asked)}-killed"
    began = time.monotonic()
    undisturbed = begin(world, whole, asked)
    undisturbed.join()
    assert undisturbed.exitcode == 0
    span = time.monotonic() - began
    chance = random.Random(called(asked))
    kills = 0
    while kills < asked.get("kills", KILLS):
        process = begin(world, killed, asked)
        process.join(chance.uniform(0.0, 0.6 * span))
        if process.exitcode is not None:
            # Done before anybody could stop it: begin another one.
            assert process.exitcode == 0
            same(whole, killed)
            killed = killed.with_name(f"{killed.name}-{kills}")
            continue
        process.kill()
        process.join()
        kills += 1
    last = begin(world, killed, asked)
    last.join()
    assert last.exitcode == 0
    same(whole, killed)


def same(one: Path, other: Path) -> None:
    expected, found = (Weights.load(path / "weights.toml") for path in (one, other))
    assert dict(found) == dict(expected)
    assert found.meta["tuned"] == expected.meta["tuned"]
    told = [json.loads((path / "result.json").read_text()) for path in (one, other)]
    for result in told:
        for name in TIMES:
            del result[name]
    assert told[0] == told[1]
    events = [[each["event"] for each in RunDirectory(path).events()] for path in (one, other)]
    assert events[0] == events[1]
