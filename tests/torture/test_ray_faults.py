"""Workers and nodes of a real cluster on this machine are killed at random, for minutes.

`pytest -m torture tests/torture/test_ray_faults.py`; TUNESMITH_KILLS says how many workers are
killed at least (50). Prints the table of docs/ray.md.
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Record
from twins import asking
from twins.lists import Array, learnable
from twins.toy import POOR, make_world
from twins.training import task_of

from tunesmith import Forests, tune
from tunesmith.decode.translation import Model
from tunesmith.engines import THREADS, Engine
from tunesmith.engines.ray import Ray
from tunesmith.learn.online import with_regime
from tunesmith.learn.task import Task, Tuner
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.spaces import Bins, Spaces

if find_spec("ray") is None:
    pytest.skip("the extra ray is not installed", allow_module_level=True)
pytestmark = pytest.mark.torture

KILLS = int(os.environ.get("TUNESMITH_KILLS", "50"))
NODES = 3
START = np.array([0.002, 0.05, -0.03, 0.04])
METRIC = "bleu:tokenize=none"
STORE = 80 << 20
SURVIVED: Counter[str] = Counter()
# Long enough to be hit on the way.
CASES: dict[str, tuple[str, dict[str, Any], str | None]] = {
    "mira mixed": ("mira", {"passes": 40}, "shards=3,mix=5"),
    "mira apart": ("mira", {"passes": 40}, "shards=3,mix=0"),
    "mira in batches": ("mira", {"passes": 10}, "batch=10"),
    "adagrad in batches": ("adagrad", {"passes": 10, "samples": 300}, "batch=10"),
    "adagrad mixed": ("adagrad", {"passes": 40, "samples": 300}, "shards=2,mix=3"),
    "mert": ("mert", {"restarts": 40}, None),
    "mert on forests": ("mert", {"restarts": 20}, None),
    "mert on bins": ("mert", {"restarts": 40}, None),
    "pro": ("pro", {"rounds": 40, "samples": 300}, None),
    "risk": ("risk", {"steps": 12}, None),
    "risk on forests": ("risk", {"steps": 6}, None),
    "random": ("random", {"tries": 3000}, None),
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head for the driver, and nodes for workers."""
    asking.open_door()
    os.environ["RAY_DEDUP_LOGS_SKIP_REGEX"] = ".*"
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 0,
            "object_store_memory": STORE,
            "include_dashboard": False,
            "_system_config": {"worker_niceness": 0},
        },
    )
    for _ in range(NODES):
        made.add_node(num_cpus=3, object_store_memory=STORE)
    made.wait_for_nodes()
    yield made
    print(f"\nsurvived: {dict(SURVIVED)}")
    made.shutdown()


@pytest.fixture(scope="module")
def engine(cluster: Any) -> Iterator[Ray]:
    with Ray(3, cluster.address, timeout=60.0) as made:
        yield made


def epochs(tuner: Tuner, task: Task, engine: Engine) -> list[Array]:
    found = replace(task, engine=engine)
    return [epoch.weights for epoch in tuner.epochs(found, START, 3, None)]


class Killer:
    """Kills a random worker every now and then, in a thread of its own."""

    def __init__(self, cluster: Any, seed: int, pause: float) -> None:
        self._cluster, self._rng, self._pause = cluster, random.Random(seed), pause
        self._stop = threading.Event()
        self.kills = 0

    def __enter__(self) -> Killer:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._pause * self._rng.uniform(0.2, 1.8)):
            numbers = stations(self._cluster)
            if numbers:
                try:
                    os.kill(self._rng.choice(numbers), signal.SIGKILL)
                    self.kills += 1
                except ProcessLookupError:
                    pass


def stations(cluster: Any) -> list[int]:
    """Return the processes of a cluster's actors, as the kernel knows them: nobody is asked."""
    raylets = {
        str(each.process.pid)
        for node in cluster.list_all_nodes()
        for each in node.all_processes["raylet"]
    }
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            parent = (file.parent / "stat").read_text().rpartition(")")[2].split()[1]
            if parent in raylets and file.read_bytes().startswith(b"ray::_Station"):
                found.append(int(file.parent.name))
        except OSError:
            continue
    return found


def test_workers_killed_at_random_change_no_weight(
    cluster: Any, engine: Ray, record_property: Record
) -> None:
    lists = learnable(2, sentences=60)
    bins = Bins.of_lists(lists, (np.arange(60) // 3).tolist())
    spaces: dict[str, Spaces] = {"forests": Forests.of_lists(lists), "bins": bins}
    tasks = {
        name: task_of(spaces.get(name.rpartition(" on ")[2], lists), "bleu", -5.0, 5.0)
        for name in CASES
    }
    tuners = {
        name: with_regime(make_tuner(preset, options), regime)
        for name, (preset, options, regime) in CASES.items()
    }
    wanted = {name: epochs(tuner, tasks[name], THREADS) for name, tuner in tuners.items()}
    assert np.array_equal(epochs(tuners["mert"], tasks["mert"], engine), wanted["mert"])
    runs = 0
    with Killer(cluster, 1, 3.0) as killer:
        while killer.kills < KILLS:
            for name, tuner in tuners.items():
                assert np.array_equal(epochs(tuner, tasks[name], engine), wanted[name]), name
                runs += 1
    record_property("times", killer.kills)
    SURVIVED["worker killed"] += killer.kills
    SURVIVED["runs with killed workers"] += runs
    assert engine.replaced >= KILLS // 2


@pytest.mark.parametrize(
    ("preset", "regime"),
    [
        ("mira", "shards=3,mix=4"),
        ("mira", "batch=5"),
        ("adagrad", "batch=4,delay=3,stale=gradient"),
    ],
)
def test_workers_with_decoders_killed_at_random_change_no_weight(
    cluster: Any,
    engine: Ray,
    tmp_path_factory: pytest.TempPathFactory,
    preset: str,
    regime: str,
    record_property: Record,
) -> None:
    folder = make_world(tmp_path_factory.mktemp("faults"))
    lines, references = (
        (folder / f"dev.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    model = Model.load(folder / "model", "phrase", named=["pairs"])
    source = Live(model, lines, [[text] for text in references], k=20)
    tuner = with_regime(make_tuner(preset, {"passes": 6}), regime)

    def found(engine: Engine) -> tuple[dict[str, float], list[int]]:
        events: list[dict[str, Any]] = []
        made = tune(
            source, metric=METRIC, tuner=tuner, start=POOR["phrase"], keep="last", engine=engine,
            listen=events.append,
        )  # fmt: skip
        visits = [event["visits"] for event in events if event["event"] == "epoch"]
        assert set(visits) == {len(lines)}
        return dict(made.weights), visits

    wanted = found(THREADS)
    with Killer(cluster, 2, 5.0) as killer:
        while killer.kills < 5:
            assert found(engine) == wanted
    record_property("times", killer.kills)
    SURVIVED[f"worker with a decoder killed, {regime}"] += killer.kills


def test_a_killed_node_changes_no_weight(
    cluster: Any, engine: Ray, record_property: Record
) -> None:
    record_property("times", 2)
    task = task_of(learnable(2), "bleu", -5.0, 5.0)
    tuner = with_regime(make_tuner("mira", {"passes": 30}), "shards=3,mix=5")
    wanted, found = epochs(tuner, task, THREADS), []
    before = engine.replaced
    for number, epoch in enumerate(tuner.epochs(replace(task, engine=engine), START, 3, None)):
        found.append(epoch.weights)
        if number in (3, 9):
            # Its workers go with it; one that comes finds room on it only later.
            node = random.Random(number).choice(sorted(cluster.worker_nodes, key=str))
            cluster.remove_node(node, allow_graceful=False)
            SURVIVED["node killed"] += 1
            cluster.add_node(num_cpus=3, object_store_memory=STORE)
    assert np.array_equal(found, wanted)
    assert engine.replaced > before


def test_workers_that_hang_change_no_weight(
    cluster: Any, engine: Ray, record_property: Record
) -> None:
    record_property("times", 3)
    task = task_of(learnable(2), "bleu", -5.0, 5.0)
    tuner = with_regime(make_tuner("mira", {"passes": 12}), "shards=3,mix=5")
    wanted, found = epochs(tuner, task, THREADS), []
    with Ray(3, cluster.address, timeout=15.0) as other:
        for number, epoch in enumerate(tuner.epochs(replace(task, engine=other), START, 3, None)):
            found.append(epoch.weights)
            if number in (2, 5):
                os.kill(random.Random(number).choice(asking.processes(other)), signal.SIGSTOP)
                SURVIVED["worker stopped, never answers"] += 1
            if number == 8:
                slow = random.Random(number).choice(asking.processes(other))
                os.kill(slow, signal.SIGSTOP)
                threading.Timer(2.0, os.kill, (slow, signal.SIGCONT)).start()
                SURVIVED["worker slow, within the time-out"] += 1
        assert other.replaced == 2
    assert np.array_equal(found, wanted)
