"""A million sparse features: a pass must cost what its active features cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from benchmarks.data import METRIC, Setting
from benchmarks.harness import Claim, Outcome, Time, best_of, say
from tunesmith import Pools, _core, get_metric
from tunesmith.learn.online import Online
from tunesmith.presets import make_tuner

Law = Literal["uniform", "Zipf"]


@dataclass(frozen=True)
class Shape:
    """How large the generated lists are."""

    lists: int = 1000
    hypotheses: int = 200
    active: int = 200


def sparse_ids(
    rows: int, active: int, width: int, law: Law, rng: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Return ascending distinct feature ids, one row per hypothesis.

    Each row is a stratified sample: uniform over all ids, or Zipf, where every tenfold range of ids
    is as likely.
    """
    place = (np.arange(active) + rng.random((rows, active))) / active
    free = width - active
    spread = free * place if law == "uniform" else free**place
    return np.arange(active) + spread.astype(np.int64)


def sparse_pools(shape: Shape, width: int, law: Law, seed: int = 1) -> Pools:
    """Return lists with random features and random BLEU statistics."""
    rng = np.random.default_rng(seed)
    count = shape.lists * shape.hypotheses
    ids = sparse_ids(count, shape.active, width, law, rng)
    pools = Pools.from_arrays(
        features=(
            np.arange(count + 1) * shape.active,
            ids.ravel(),
            rng.normal(size=count * shape.active),
        ),
        starts=np.arange(shape.lists + 1) * shape.hypotheses,
        names=[f"f{number}" for number in range(width)],
    )
    lengths = rng.integers(12, 18, count).astype(np.float64)
    totals = lengths[:, None] - np.arange(4)
    matches = np.floor(totals * rng.random((count, 1)) * [1.0, 0.8, 0.6, 0.5])
    rows = np.column_stack([lengths, np.full(count, 15.0), matches, totals])
    pools.set_statistics(METRIC, rows)
    return pools


def adagrad_pass(pools: Pools, repeats: int) -> tuple[Time, int]:
    """Return the time of one AdaGrad pass with the preset's settings, and its updates."""
    metric = get_metric(METRIC)
    tuner = make_tuner("adagrad")
    assert isinstance(tuner, Online)
    learner = _core.Learner(
        pools.core,
        pools.table(metric),
        metric.native,
        tuner.learner.selector.kernel(),
        tuner.learner.update.kernel(),
        np.zeros(len(pools.names)),
        batch=tuner.regime.batch,
        averaged=tuner.schedule.average != "none",
        seed=1,
    )
    epochs = iter(range(1, repeats + 2))

    def run() -> int:
        epoch = next(epochs)
        return int(learner.run(_core.permutation(1, epoch, pools.sentences), epoch)["updates"])

    run()
    updates, time = best_of(repeats, run)
    return time, updates


def sparse(setting: Setting) -> Outcome:
    """One AdaGrad pass with a thousand features and with a million, as many of them active."""
    shape = Shape(lists=100) if setting.quick else Shape()
    outcome = Outcome("A million sparse features")
    worst = 0.0
    for law in ("uniform", "Zipf"):
        times = {}
        for width in (1_000, 1_000_000):
            pools = sparse_pools(shape, width, law)
            times[width], updates = adagrad_pass(pools, 3 if setting.quick else 7)
            say(f"  {law}, {width:,} features: {times[width].cpu:.3f} CPU s")
            del pools
        ratio = times[1_000_000].cpu / times[1_000].cpu
        worst = max(worst, ratio)
        outcome.rows.append(
            {
                "ids": law,
                "updates": updates,
                "1,000 features, CPU s": times[1_000].cpu,
                "1,000,000 features, CPU s": times[1_000_000].cpu,
                "ratio": ratio,
            }
        )
    outcome.claims = [Claim("a million features over a thousand", worst, 1.5, "at most", "×")]
    outcome.notes = [
        f"One AdaGrad pass, {shape.lists:,} lists of {shape.hypotheses}, {shape.active} active "
        "features per hypothesis, one thread."
    ]
    return outcome
