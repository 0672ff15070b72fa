"""The eight Moses lists: MERT, batch MIRA, the whole way, every preset; against Moses and NumPy."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from benchmarks import numpy_twin, peers
from benchmarks.data import Setting, first_sentences
from benchmarks.harness import Cell, Claim, Outcome, Time, best_of, machine, say, timed
from benchmarks.numpy_twin import Lists
from benchmarks.tuners import Tuned, tune_once
from benchmarks.yardstick import Yardstick
from tunesmith.presets import PRESETS

# Two threads of ours make a load of two; more is somebody else's.
BUSY = 2.2


def mert(setting: Setting, yardstick: Yardstick) -> Outcome:
    """The restarts of the preset from Moses' start weights, several seeds; one thread, then two."""
    task = setting.task()
    seeds = (1,) if setting.quick else (1, 2, 3)
    outcome = Outcome("`mert` on the eight Moses lists")
    runs, times = _seeds(
        seeds, lambda seed: tune_once(task, "mert", setting.start, seed), setting.times(2)
    )
    outcome.rows = _rows(seeds, runs, times, peers.MERT_SECONDS, yardstick)
    outcome.claims = [
        Claim("BLEU on the lists, worst seed", _worst(runs), peers.MERT_BLEU, "at least"),
        _time_claim(_slowest(times), peers.MERT_SECONDS, 10, yardstick),
    ]
    if not setting.quick:
        outcome.notes.append("Moses, 20 restarts: BLEU 41.04, other seeds 40.98, 40.92 and 41.02.")
        outcome.claims.append(_speedup(setting))
        load = machine()["load"]
        if load is not None and load > BUSY:
            outcome.notes.append(
                f"Other work kept the machine busy (load {load:.1f}): clock times, and so the "
                "gain of two threads, mean little."
            )
    return outcome


def _speedup(setting: Setting) -> Claim:
    """Clock time of one thread over that of two; runs alternate, the best of each counts."""
    tasks = {threads: setting.task(threads=threads) for threads in (1, 2)}
    clock = dict.fromkeys(tasks, float("inf"))
    for _ in range(4):
        for threads, task in tasks.items():
            _, time = timed(partial(tune_once, task, "mert", setting.start))
            clock[threads] = min(clock[threads], time.wall)
            say(f"  {threads} threads: {time.wall:.2f} s on the clock, {time.cpu:.2f} CPU s")
    return Claim("clock time, one thread over two", clock[1] / clock[2], 1.8, "at least", "×")


def kbmira(setting: Setting, yardstick: Yardstick) -> Outcome:
    """Sixty passes from loaded lists, several seeds."""
    task = setting.task()
    seeds = (1, 2) if setting.quick else (1, 2, 3, 4, 5)
    outcome = Outcome("`kbmira`, 60 passes, on the eight Moses lists")
    runs, times = _seeds(
        seeds, lambda seed: tune_once(task, "kbmira", setting.start, seed), setting.times(5)
    )
    outcome.rows = _rows(seeds, runs, times, peers.KBMIRA_SECONDS, yardstick)
    outcome.claims = [
        Claim("BLEU on the lists, worst seed", _worst(runs), peers.KBMIRA_BLEU, "at least"),
        _time_claim(_slowest(times), peers.KBMIRA_SECONDS, 3, yardstick),
    ]
    outcome.notes.append("Moses: BLEU 40.55, 40.39 and 40.40.")
    return outcome


def whole_way(setting: Setting, yardstick: Yardstick) -> Outcome:
    """From eight gzipped files to tuned weights on one thread."""
    setting.corpus.load()

    def run() -> Tuned:
        pools = setting.corpus.load()
        return tune_once(setting.task(pools), "kbmira", setting.corpus.start(pools))

    tuned, whole = best_of(setting.times(5), run)
    pools, read = best_of(setting.times(5), setting.corpus.load)
    _, counted = best_of(setting.times(5), lambda: setting.metric.table(pools, threads=1))
    moses = 8 * peers.EXTRACTOR_SECONDS + peers.KBMIRA_SECONDS
    outcome = Outcome("From eight gzipped files to tuned weights")
    outcome.rows = [
        {"step": "read and merge", "CPU s": read.cpu, "clock s": read.wall},
        {"step": "statistics of the merged lists", "CPU s": counted.cpu, "clock s": counted.wall},
        {"step": "the whole way, 60 passes included", "CPU s": whole.cpu, "clock s": whole.wall},
    ]
    outcome.claims = [_time_claim(whole.cpu, moses, 5, yardstick)]
    outcome.notes = [
        f"BLEU {tuned.score:.2f}. Moses: `extractor` once per list, 8 × 1.3 s measured on a busy "
        "machine, and `kbmira` 1.3 s."
    ]
    return outcome


def presets(setting: Setting) -> Outcome:
    """Every preset with its own defaults, from the same start weights."""
    pools = first_sentences(setting.pools, 200) if setting.quick else setting.pools
    task = setting.task(pools)
    start = task.evaluate(setting.start)[0]
    oracle = task.pools.score(task.metric, task.pools.oracle(task.metric, setting.start))
    outcome = Outcome("Every preset on the eight Moses lists")
    for name in PRESETS:
        tuned, time = timed(partial(tune_once, task, name, setting.start))
        say(f"  {name}: {tuned.score:.2f} in {time.cpu:.2f} CPU s")
        outcome.rows.append(
            {"preset": f"`{name}`", "BLEU": tuned.score, "CPU s": time.cpu, "clock s": time.wall}
        )
    lowest = min(float(row["BLEU"] or 0.0) for row in outcome.rows)
    outcome.claims = [Claim("lowest BLEU of any preset", lowest, start, "at least")]
    outcome.notes = [
        f"{pools.sentences:,} lists; start {start:.2f}, oracle {oracle:.2f}; one thread, one seed, "
        "each preset's defaults."
    ]
    return outcome


def twin(setting: Setting) -> Outcome:
    """The same climb and the same passes by a straightforward NumPy program."""
    pools = first_sentences(setting.pools, 100) if setting.quick else setting.pools
    task = setting.task(pools)
    lists = Lists.of(pools, setting.metric)
    ours: dict[str, Callable[[], float]] = {
        "MERT, one climb": lambda: (
            tune_once(task, "mert", setting.start, options={"restarts": 0}).score
        ),
        "batch MIRA, 60 passes": lambda: tune_once(task, "kbmira", setting.start).score,
    }
    theirs: dict[str, Callable[[], float]] = {
        "MERT, one climb": lambda: 100 * lists.score(numpy_twin.mert(lists, setting.start, seed=1)),
        "batch MIRA, 60 passes": lambda: (
            100 * lists.score(numpy_twin.kbmira(lists, setting.start, seed=1))
        ),
    }
    outcome = Outcome("Against straightforward NumPy on the same lists")
    for name in ours:
        score, time = best_of(setting.times(3), ours[name])
        twin_score, twin_time = timed(theirs[name])
        outcome.rows.append(
            {
                "work": name,
                "BLEU": score,
                "NumPy's BLEU": twin_score,
                "CPU s": time.cpu,
                "NumPy's CPU s": twin_time.cpu,
                "ratio": twin_time.cpu / time.cpu,
            }
        )
    outcome.notes = [
        f"{pools.sentences:,} lists, {pools.hypotheses:,} hypotheses, one thread; "
        "same start, same order of axes and of sentences."
    ]
    return outcome


def _seeds(
    seeds: tuple[int, ...], run: Callable[[int], Tuned], repeats: int = 1
) -> tuple[list[Tuned], list[Time]]:
    runs, times = [], []
    for seed in seeds:
        tuned, time = best_of(repeats, partial(run, seed))
        say(f"  seed {seed}: {tuned.score:.3f} in {time.cpu:.2f} CPU s")
        runs.append(tuned)
        times.append(time)
    return runs, times


def _rows(
    seeds: tuple[int, ...],
    runs: list[Tuned],
    times: list[Time],
    moses: float,
    yardstick: Yardstick,
) -> list[dict[str, Cell]]:
    return [
        {
            "seed": seed,
            "BLEU": round(tuned.score, 3),
            "CPU s": time.cpu,
            "Moses here, CPU s": moses * yardstick.middle,
            "times faster": moses * yardstick.middle / time.cpu,
            "at least": moses * yardstick.low / time.cpu,
            "at most": moses * yardstick.high / time.cpu,
        }
        for seed, tuned, time in zip(seeds, runs, times, strict=True)
    ]


def _worst(runs: list[Tuned]) -> float:
    return round(min(tuned.score for tuned in runs), 3)


def _slowest(times: list[Time]) -> float:
    return max(time.cpu for time in times)


def _time_claim(seconds: float, moses: float, part: int, yardstick: Yardstick) -> Claim:
    """Compare with a part of Moses' time, carried over by the factor that is hardest on us."""
    return Claim(
        f"CPU s, against 1/{part} of Moses' {moses:g} s × {yardstick.low:.2f}",
        seconds,
        moses * yardstick.low / part,
        "at most",
        "s",
    )
