"""Runs with a decoder in the loop, killed again and again, end with the same weights."""

from __future__ import annotations

import multiprocessing
import random
import time
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from twins.toy import POOR, make_world

from tunesmith import Weights
from tunesmith.drivers import with_regime
from tunesmith.live import tune_live
from tunesmith.model_weights import Kind
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.translation import Model

# Children of a server that has everything loaded start at once.
SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(["tunesmith.live", "twins.toy"])

RUNS: list[dict[str, Any]] = [
    {"preset": "mert", "options": {"restarts": 2}, "iterations": 4},
    {"preset": "kbmira", "kind": "hiero", "options": {"passes": 5}, "iterations": 4},
    {"preset": "mira", "iterations": 8, "named": ["rule-id"]},
    {"preset": "mira-hildreth", "iterations": 6, "regime": "shards=2,mix=2", "named": ["bigrams"]},
    {"preset": "adagrad", "iterations": 8, "regime": "batch=5,delay=2", "named": ["rule-id"]},
]
KILLS = 12


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
    tune_live(
        source,
        POOR[kind],
        asked["preset"],
        tuner=tuner,
        iterations=asked["iterations"],
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


@pytest.mark.parametrize("asked", RUNS, ids=lambda asked: asked["preset"])
def test_a_run_killed_at_random_points_ends_with_the_same_weights(
    world: Path, asked: dict[str, Any]
) -> None:
    whole, killed = world / f"{asked['preset']}-whole", world / f"{asked['preset']}-killed"
    began = time.monotonic()
    undisturbed = begin(world, whole, asked)
    undisturbed.join()
    assert undisturbed.exitcode == 0
    span = time.monotonic() - began
    chance = random.Random(asked["preset"])
    kills = 0
    while kills < KILLS:
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
