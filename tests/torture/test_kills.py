"""Commands that are killed at random moments end with the same files as undisturbed ones."""

from __future__ import annotations

import json
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from commands import Job, Record, chance, contents, kill_often
from serving import process, write_model

from tunesmith.serve.database import connect, open_store

pytestmark = pytest.mark.torture

# For each of the jobs below.
KILLS = int(os.environ.get("TORTURE_KILLS", "20"))
RAY = ("--engine", "ray", "--workers", "2")


def tuning(name: str, world: Path, *words: object, kind: str = "phrase") -> Job:
    """Return a job that tunes with a decoder."""
    asked = (
        *("tune", world / "model", "--kind", kind, "-w", world / f"{kind}.toml"),
        *("-s", world / "dev.src", "-r", world / "dev.tgt", "--threads", "2", *words),
    )
    return _run(name, *asked)


def reranking(name: str, world: Path, *words: object) -> Job:
    """Return a job that tunes on saved lists."""
    lists = (world / "lists" / "dev.nbest.gz", "-r", world / "lists" / "dev.ref")
    return _run(name, "rerank", "tune", *lists, *words)


def _run(name: str, *asked: object) -> Job:
    def begin(folder: Path) -> tuple[object, ...]:
        return (*asked, "--run", folder / "run", "--out", folder / "weights.toml")

    def again(folder: Path) -> tuple[object, ...]:
        # A process that was killed before it made the folder has nothing to go on with.
        return (*begin(folder), *(["--resume"] if (folder / "run").is_dir() else []))

    return Job(
        name,
        begin,
        again,
        lambda folder: contents(folder, leave_out=["log"]),
        begun=lambda folder: (folder / "run" / "checkpoint.npz").exists(),
    )


def training(world: Path) -> Job:
    """Return a job that trains a model of both kinds."""

    def asked(folder: Path) -> tuple[object, ...]:
        sides = (world / "train.src", world / "train.tgt")
        return ("train", *sides, "--model", folder / "model", "--kind", "both", "--order", "3")

    return Job("train", asked, asked, lambda folder: contents(folder, leave_out=["log"]))


def building(world: Path) -> Job:
    """Return a job that builds an index of examples, in many small files."""

    def asked(folder: Path) -> tuple[object, ...]:
        given = ("--kind", "phrase", "--weights", world / "phrase.toml", "--k", "20")
        data = ("--data", world / "dev.src", world / "dev.tgt")
        return ("local", "build", world / "model", *given, *data, "--out", folder / "index")

    def kept(folder: Path) -> object:
        # The names of the files of the word search are random.
        found = contents(folder / "index")
        return {name: each for name, each in found.items() if not name.startswith("words")}

    def finished(folder: Path) -> bool:
        manifest = folder / "index" / "index.json"
        return manifest.exists() and json.loads(manifest.read_bytes())["building"] is None

    patches = {"tunesmith.local.index.CHUNK": 5}
    return Job("local build", asked, asked, kept, patches, finished)


def jobs(world: Path) -> dict[str, Job]:
    """Return all jobs by name."""
    online = ("-t", "mira", "--epochs", "4")
    made = [
        tuning("tune serial", world, *online),
        tuning("tune batch", world, *online, "--regime", "batch=7"),
        tuning("tune shards", world, *online, "--regime", "shards=2,mix=3"),
        tuning("tune delay", world, *online, "--regime", "batch=5,delay=2"),
        tuning("tune mert", world, "-t", "mert", "--epochs", "4", "--set", "restarts=3"),
        tuning("tune kbmira", world, "-t", "kbmira", "--epochs", "4", kind="hiero"),
        tuning("tune shards on Ray", world, *online, "--regime", "shards=2,mix=3", *RAY),
        tuning("tune mert on Ray", world, "-t", "mert", "--epochs", "4", *RAY),
        reranking("rerank mert", world, "-t", "mert", "--set", "restarts=30", "--seeds", "2"),
        reranking("rerank mira", world, "-t", "mira", "--seeds", "2", "--folds", "2"),
        training(world),
        building(world),
    ]
    return {job.name: job for job in made}


NAMES = (
    *("tune serial", "tune batch", "tune shards", "tune delay", "tune mert", "tune kbmira"),
    *("rerank mert", "rerank mira", "train", "local build"),
)

# Ray takes seconds to start, so its drivers are killed less often.
ON_RAY, RAY_KILLS = ("tune shards on Ray", "tune mert on Ray"), max(KILLS // 4, 1)


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_command_ends_with_the_same_files(
    world: Path, tmp_path: Path, name: str, record_property: Record
) -> None:
    record_property("times", KILLS)
    ends, after = kill_often(jobs(world)[name], tmp_path, KILLS)
    told = f"{KILLS} kills, {after} with something to go on from"
    print(f"{name}: {told}, {ends} runs to the end, all the same")


@pytest.mark.parametrize("name", ON_RAY)
def test_a_killed_driver_of_ray_ends_with_the_same_files(
    world: Path, tmp_path: Path, name: str, record_property: Record
) -> None:
    pytest.importorskip("ray")
    record_property("times", RAY_KILLS)
    ends, after = kill_often(jobs(world)[name], tmp_path, RAY_KILLS)
    told = f"{RAY_KILLS} kills, {after} with something to go on from"
    print(f"{name}: {told}, {ends} runs to the end, all the same")


def test_a_killed_service_keeps_what_it_acknowledged(
    tmp_path: Path, record_property: Record
) -> None:
    """Corrections that were answered are there after every kill, once, with the same text."""
    record_property("times", KILLS)
    model, store = write_model(tmp_path / "text"), tmp_path / "store"
    dice = chance("serve")
    sent = [f"The house is old, said number {number}." for number in range(40 * KILLS)]
    acknowledged: dict[int, str] = {}
    waiting = list(sent)

    def send(url: str) -> None:
        with httpx.Client(base_url=url, timeout=30) as client, suppress(httpx.TransportError):
            while waiting:
                text = waiting[0]
                told = {"source": "Das Haus ist alt.", "translation": text}
                answer = client.post("/v1/feedback", json=told)
                assert answer.status_code == 201, answer.text
                waiting.pop(0)
                acknowledged[answer.json()["id"]] = text

    kills = 0
    words = (model, "--store", store, "--open-feedback", "--rate", 10**6)
    while kills < KILLS:
        with process(*words) as (running, url):
            sender = threading.Thread(target=send, args=(url,))
            sender.start()
            sender.join(dice.random() * 0.4)
            running.send_signal(signal.SIGKILL)
            kills += 1
            running.wait()
            sender.join()
        there = _stored(store)
        assert {number: there.get(number) for number in acknowledged} == acknowledged
        # A correction that was written but not answered is sent again, and no other.
        assert set(there.values()) <= set(sent[: len(sent) - len(waiting) + 1])
    assert len(acknowledged) > kills
    print(f"serve: {kills} kills, {len(acknowledged)} corrections, none lost or changed")


def _stored(store: Path) -> dict[int, str]:
    base = connect(open_store(store))
    try:
        assert base.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return dict(base.execute("SELECT id, translation FROM feedback").fetchall())
    finally:
        base.close()
