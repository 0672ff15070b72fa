"""The eight Moses lists: MERT, batch MIRA, the whole way, every preset; beside Moses and NumPy.

Times of tuners are those of loaded lists: what is read and counted before is left out for ours and
for Moses' programs alike, but in the whole way, where everything counts.
"""

from __future__ import annotations

import gzip
import re
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks import numpy_twin
from benchmarks.data import Setting, first_sentences
from benchmarks.harness import (
    Claim,
    Outcome,
    RivalFailed,
    Time,
    best_of,
    in_turn,
    less,
    machine,
    say,
    several,
    timed,
)
from benchmarks.numpy_twin import Lists
from benchmarks.rivals import Ran, run
from benchmarks.tuners import Tuned, tune_once
from tunesmith.presets import PRESETS

# Two threads of ours make a load of two; more is somebody else's.
BUSY = 2.2
LOADED = "CPU seconds of one thread, from loaded lists: reading them is left out."
BLEU = "--sctype BLEU --scconfig case:true"
ALONE = "MOSES_MERT is not set: ours alone, nothing is said about Moses."


class MosesTuners:
    """Moses' `mert`, `kbmira` and `extractor` on the lists of a corpus, run in a folder."""

    def __init__(self, setting: Setting, tools: Path, folder: Path) -> None:
        self.tools, self.folder, self.corpus = tools, folder, setting.corpus
        (folder / "reference").write_bytes(gzip.decompress(self.corpus.references.read_bytes()))
        # Moses' programs know features by their place in the lists, which is that of our names.
        self.names = setting.pools.names
        lines = [" ".join(map(str, setting.start)), "0 " * len(self.names), "1 " * len(self.names)]
        (folder / "init.opt").write_text("\n".join(lines) + "\n")
        self.parts = [(f"{n}.features", f"{n}.scores") for n in range(len(self.corpus.lists))]

    def extract(self) -> float:
        """Write the statistics and features of every list; return CPU seconds."""
        taken = 0.0
        for lists, (features, scores) in zip(self.corpus.lists, self.parts, strict=True):
            arguments = f"{BLEU} --scfile {scores} --ffile {features} -r reference -n".split()
            taken += run(self.tools / "extractor", [*arguments, str(lists)], self.folder).cpu
        return taken

    def mert(self, seed: int, restarts: int) -> float:
        """Run `mert`; return CPU seconds after its lists were loaded."""
        features, scores = (",".join(names) for names in zip(*self.parts, strict=True))
        arguments = f"{BLEU} -d {len(self.names)} -n {restarts} -r {seed} --ifile init.opt"
        files = ["--scfile", scores, "--ffile", features]
        ran = run(self.tools / "mert", [*arguments.split(), *files], self.folder)
        return ran.cpu - _loaded(ran)

    def mert_weights(self) -> dict[str, float]:
        """Return what `mert` wrote."""
        values = (self.folder / "weights.txt").read_text().split()
        return self._named(dict(enumerate(map(float, values))))

    def kbmira(self, seed: int, passes: int = 60) -> float:
        """Run `kbmira`; return CPU seconds, reading included."""
        arguments = ["--dense-init", "init.opt", "-r", str(seed), "-J", str(passes)]
        for features, scores in self.parts:
            arguments += ["--ffile", features, "--scfile", scores]
        return run(self.tools / "kbmira", [*arguments, "-o", "mira.out"], self.folder).cpu

    def kbmira_weights(self) -> dict[str, float]:
        """Return what `kbmira` wrote."""
        lines = (self.folder / "mira.out").read_text().split("\n")
        pairs = [line.split() for line in lines if line.strip()]
        return self._named({int(name.removeprefix("F")): float(value) for name, value in pairs})

    def _named(self, values: dict[int, float]) -> dict[str, float]:
        if sorted(values) != list(range(len(self.names))):
            raise RivalFailed(f"{len(values)} weights for {len(self.names)} features")
        return {name: values[place] for place, name in enumerate(self.names)}


def _loaded(ran: Ran) -> float:
    """Return the CPU seconds that `mert` says it had taken when its lists were loaded."""
    found = re.search(r"Data loaded.*CPU ([0-9.]+)", ran.errors)
    if found is None:
        raise RivalFailed("mert does not say how long it took to load its lists")
    return float(found[1])


def mert(setting: Setting) -> Outcome:
    """The restarts of the preset from Moses' start weights, several seeds; one thread, then two."""
    task = setting.task()
    seeds = (1,) if setting.quick else (1, 2, 3)
    outcome = Outcome("`mert` on the eight Moses lists", notes=[LOADED])
    tools = setting.rivals.moses_mert
    if tools is None:
        outcome.notes.append(ALONE)
        for seed in seeds:
            tuned, time = best_of(
                setting.times(2), partial(tune_once, task, "mert", setting.start, seed)
            )
            _row(outcome, "ours, 30 restarts", seed, tuned.score, [time.cpu])
    else:
        _mert_in_turn(setting, tools, outcome)
    if not setting.quick:
        outcome.claims.append(_speedup(setting))
        load = machine()["load"]
        if load is not None and load > BUSY:
            outcome.notes.append(
                f"Other work kept the machine busy (load {load:.1f}): clock times, and so the "
                "gain of two threads, mean little."
            )
    return outcome


def _mert_in_turn(setting: Setting, tools: Path, outcome: Outcome) -> None:
    """Run ours and Moses' with as many restarts each, one after the other, seed by seed."""
    task = setting.task()
    restarts = 2 if setting.quick else 20
    seeds = (1,) if setting.quick else (1, 2)
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as name:
        moses = MosesTuners(setting, tools, Path(name))
        moses.extract()
        for seed in seeds:
            tuned, time = timed(
                partial(tune_once, task, "mert", setting.start, seed, {"restarts": restarts})
            )
            ours.append(time.cpu)
            _row(outcome, f"ours, {restarts} restarts", seed, tuned.score, [time.cpu])
            theirs.append(moses.mert(seed, restarts))
            score = _score(setting, moses.mert_weights())
            _row(outcome, f"Moses, {restarts} restarts", seed, score, theirs[-1:])
    outcome.claims.append(
        Claim("CPU time, Moses / ours, least of each", min(theirs) / min(ours), 1.0, "at least")
    )


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


def kbmira(setting: Setting) -> Outcome:
    """Sixty passes from loaded lists, several seeds."""
    task = setting.task()
    seeds = (1, 2) if setting.quick else (1, 2, 3, 4, 5)
    outcome = Outcome("`kbmira`, 60 passes, on the eight Moses lists", notes=[LOADED])

    def ours(seed: int) -> tuple[Tuned, Time]:
        return timed(partial(tune_once, task, "kbmira", setting.start, seed))

    tools = setting.rivals.moses_mert
    if tools is None:
        outcome.notes.append(ALONE)
        for seed in seeds:
            runs = [ours(seed) for _ in range(setting.times(3))]
            _row(outcome, "ours", seed, runs[0][0].score, [time.cpu for _, time in runs])
        return outcome
    own, theirs = [], []
    with tempfile.TemporaryDirectory() as name:
        moses = MosesTuners(setting, tools, Path(name))
        moses.extract()
        for seed in seeds:
            mine, all_of_it, reading = in_turn(
                setting.times(3),
                lambda seed=seed: ours(seed)[1].cpu,  # type: ignore[misc]
                partial(moses.kbmira, seed),
                partial(moses.kbmira, seed, 0),
            )
            score = _score(setting, moses.kbmira_weights())
            passes = less(all_of_it, reading)
            own += mine
            theirs += passes
            _row(outcome, "ours", seed, ours(seed)[0].score, mine)
            _row(outcome, "Moses", seed, score, passes)
    outcome.notes.append(
        "Moses' reading is what it takes with no passes, measured in the same turn."
    )
    outcome.claims.append(
        Claim("CPU time, Moses / ours, least of each", min(theirs) / min(own), 1.0, "at least")
    )
    return outcome


def whole_way(setting: Setting) -> Outcome:
    """From eight gzipped files to tuned weights on one thread."""
    setting.corpus.load()
    scores = []

    def ours() -> float:
        def work() -> Tuned:
            pools = setting.corpus.load()
            return tune_once(setting.task(pools), "kbmira", setting.corpus.start(pools))

        tuned, time = timed(work)
        scores.append(tuned.score)
        return time.cpu

    outcome = Outcome("From eight gzipped files to tuned weights, 60 passes of batch MIRA")
    outcome.notes.append("CPU seconds of one thread; reading, statistics and merging included.")
    tools, times = setting.rivals.moses_mert, setting.times(5)
    if tools is None:
        outcome.notes.append(ALONE)
        runs = [ours() for _ in range(times)]
    else:
        with tempfile.TemporaryDirectory() as name:
            moses = MosesTuners(setting, tools, Path(name))
            runs, theirs = in_turn(times, ours, lambda: moses.extract() + moses.kbmira(1))
        outcome.rows.append(
            {
                "program": "Moses, `extractor` and `kbmira`",
                "CPU s": min(theirs),
                "runs": several(theirs),
            }
        )
        outcome.claims.append(
            Claim("CPU time, Moses / ours, least of each", min(theirs) / min(runs), 1.0, "at least")
        )
    pools, read = best_of(times, setting.corpus.load)
    _, counted = best_of(times, lambda: setting.metric.table(pools, threads=1))
    outcome.rows += [
        {"program": f"ours, BLEU {scores[-1]:.2f}", "CPU s": min(runs), "runs": several(runs)},
        {"program": "of which reading and merging", "CPU s": read.cpu},
        {"program": "of which statistics", "CPU s": counted.cpu},
    ]
    return outcome


def _score(setting: Setting, weights: dict[str, float]) -> float:
    """Return the BLEU of what weights choose, by our metric for everybody."""
    return setting.pools.score(setting.metric, setting.pools.best(weights))


def _row(outcome: Outcome, program: str, seed: int, score: float, times: list[float]) -> None:
    say(f"  {program}, seed {seed}: {score:.3f} in {several(times)} CPU s")
    outcome.rows.append(
        {
            "program": program,
            "seed": seed,
            "BLEU": round(score, 3),
            "CPU s": min(times),
            "runs": several(times),
        }
    )


def presets(setting: Setting) -> Outcome:
    """Every preset with its own defaults, from the same start weights."""
    pools = first_sentences(setting.pools, 200) if setting.quick else setting.pools
    task = setting.task(pools)
    start = task.evaluate(setting.start)[0]
    oracle = task.spaces.score(task.metric, task.spaces.oracle(task.metric, setting.start))
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
