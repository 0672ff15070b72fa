"""A node of a cluster that cannot see a model's path gets the model from the driver.

The node has a mount namespace of its own, in which an empty disk lies over the model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from faults import can_mount
from twins import asking
from twins.toy import POOR

from tunesmith import tune
from tunesmith.decode.translation import Model
from tunesmith.engines import THREADS, Worker, reads
from tunesmith.engines.delivery import FOLDER
from tunesmith.engines.ray import Ray
from tunesmith.learn.online import with_regime
from tunesmith.presets import make_tuner
from tunesmith.sources import Live

if find_spec("ray") is None:
    pytest.skip("the extra ray is not installed", allow_module_level=True)
pytestmark = pytest.mark.torture
STORE = 80 << 20


@pytest.fixture
def cluster(world: Path, tmp_path: Path) -> Iterator[Any]:
    """A head for the driver, and a node for workers that cannot see the model."""
    if not can_mount(tmp_path / "try") or shutil.which("unshare") is None:
        pytest.skip("no right to mount a disk")
    asking.open_door()
    from ray.cluster_utils import Cluster

    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False},
    )
    ray = f"'{sys.executable}' -m ray.scripts.scripts start --address={made.address} --block"
    start = (
        f"mount -t tmpfs tmpfs '{world / 'model'}'"
        f" && exec {ray} --num-cpus=2 --object-store-memory={STORE}"
    )
    node = subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", start],
        env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield made
    finally:
        node.terminate()
        node.wait()
        made.shutdown()


@reads
def seen(worker: Worker, path: str) -> tuple[list[str], list[str]]:
    """Return what a worker sees of a folder, and where its model comes from."""
    origin = worker.share.model.origin
    return [each.name for each in Path(path).iterdir()], [
        str(each) for each in origin.paths.values()
    ]


def test_a_model_reaches_a_node_that_cannot_see_it(
    world: Path, tmp_path: Path, cluster: Any
) -> None:
    model = Model.load(world / "model", "phrase", named=["pairs"])
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines()[:12] for side in ("src", "tgt")
    )
    source = Live(model, lines, [[text] for text in references], k=20)
    tuner = with_regime(make_tuner("mira"), "shards=2,mix=2")

    def tuned(engine: Any) -> dict[str, float]:
        return dict(
            tune(
                source,
                metric="bleu:tokenize=none",
                tuner=tuner,
                start=POOR["phrase"],
                iterations=2,
                keep="last",
                engine=engine,
            ).weights
        )

    wanted = tuned(THREADS)
    models = tmp_path / "cache" / "tunesmith" / FOLDER
    with Ray(2, cluster.address, timeout=60.0) as engine:
        assert tuned(engine) == wanted
        (copy,) = (path for path in models.iterdir() if path.is_dir())
        there, paths = engine.crew(source, 1).ask(seen, str(world / "model"))
        assert there == []
        assert {Path(path).parent for path in paths} == {copy}
        written = time.time_ns()
        table = copy / "phrases.rules"
        content = bytearray(table.read_bytes())
        content[len(content) // 2] ^= 1
        table.write_bytes(content)
        assert tuned(engine) == wanted
        # Fetched again, once for both workers.
        assert table.stat().st_mtime_ns > written
        assert bytes(content) != table.read_bytes()
    assert table.read_bytes() == (world / "model" / "phrases.rules").read_bytes()
