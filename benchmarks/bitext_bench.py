"""Tuning on held-out bitext with two workers of Ray (Green et al. 2013, section 4.4).

Tatoeba and LibreOffice help, split by source sentence: 15,000 sentences for tuning, 3,000 for
testing, the rest to train on. Sparse features are those of `green2013`. Models are made at the
first call and kept in `benchmarks/results/bitext`.

`python -m benchmarks ray-bitext` tunes on everything, on workers and on threads; `python -m
benchmarks.bitext_bench --sentences 500 --trained 60000` on a part.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.harness import Cell, Claim, Outcome, markdown, say, several
from benchmarks.online_bench import PHRASES
from benchmarks.ray_bench import ray
from tunesmith.decode.translation import Model
from tunesmith.engines import THREADS, Engine, Worker, reads
from tunesmith.engines.simulation import simulate
from tunesmith.sources import Live
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide
from tunesmith.tuning import tune
from tunesmith.tuning.measuring import WEIGHT_BYTES, measured_run

KEPT = Path(__file__).resolve().parent / "results" / "bitext"
TUNED, TESTED = 15_000, 3_000
LIST = 200
"""As in the paper."""
# The paper's 0.1 would leave fewer.
L1, FEATURES = 0.01, 500_000
PASSES, WORKERS, SIMULATED = 3, 2, (10, 100, 1000)
MB = 1 << 20
Texts = tuple[list[str], list[list[str]]]


def split(setting: Setting) -> tuple[dict[str, list[str]], list[str]]:
    """Return all translations by source sentence, and the sources in a random order."""
    pairs: dict[str, list[str]] = {}
    for corpus in ("tatoeba", "lohelp"):
        german, english = (
            text_lines(setting.file(corpus, f"de-en.{side}.gz")) for side in ("de", "en")
        )
        for source, target in zip(german, english, strict=True):
            if source and target:
                pairs.setdefault(source, []).append(target)
    shuffled = sorted(pairs)
    random.Random(23).shuffle(shuffled)
    return pairs, shuffled


def trained(pairs: Mapping[str, list[str]], rest: Sequence[str], most: int) -> Path:
    """Return a model of the sentences that are not held out; make it at the first call."""
    chosen = rest[:most] if most else rest
    folder = KEPT / str(len(chosen))
    if not (folder / "model" / "model.toml").exists():
        folder.mkdir(parents=True, exist_ok=True)
        texts = [(source, target) for source in chosen for target in pairs[source]]
        for place, side in enumerate(("de", "en")):
            (folder / f"train.{side}").write_text("".join(f"{pair[place]}\n" for pair in texts))
        say(f"  training on {len(texts):,} pairs")
        de, en = (TextSide(each, tokenize="moses", case="lower") for each in ("de", "en"))
        made = Training(folder / "train.de", folder / "train.en", de, en, "phrase")
        train(made, folder / "model", 2)
    return folder / "model"


@reads
def memory(worker: Worker) -> dict[str, int]:
    """Return the memory of a worker's process, in bytes: its own, and of files that are shared."""
    del worker
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    found = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Rss")}
    return {key: int(value) * 1024 for key, value in found.items()}


def tuned(
    source: Live, engine: Engine, run: Path | None = None
) -> tuple[dict[str, float], list[float]]:
    """Return weights, and the seconds of each pass with the decoding that scores it."""
    clock = list[float]()

    def listen(event: Mapping[str, Any]) -> None:
        if event["event"] in ("start", "epoch"):
            clock.append(time.perf_counter())
            say(f"  {engine}: {event['event']}")

    result = tune(
        source,
        "adagrad",
        METRIC,
        options={"l1": L1},
        regime=f"shards={WORKERS}",
        start=source.model.weights,
        iterations=PASSES,
        keep="last",
        threads=source.threads,
        engine=engine,
        run=run,
        listen=listen,
    )
    times = [after - before for before, after in pairwise(clock)]
    return dict(result.weights), times


def bitext(
    setting: Setting, sentences: int | None = None, most: int | None = None, *, both: bool = True
) -> Outcome:
    """Return features, memory of each worker and time of passes; weights are those of threads."""
    sentences = sentences or (200 if setting.quick else TUNED)
    most = (5_000 if setting.quick else 0) if most is None else most
    pairs, shuffled = split(setting)
    folder = trained(pairs, shuffled[TUNED + TESTED :], most)
    model = Model.load(folder, "phrase", named=["green2013"])
    lines = shuffled[: min(sentences, TUNED)]
    references = [pairs[line] for line in lines]

    def source(threads: int) -> Live:
        return Live(model, lines, references, k=LIST, settings=PHRASES, threads=threads)

    outcome = Outcome(f"Tuning on {len(lines):,} sentences of bitext with {WORKERS} workers")
    with ray(WORKERS) as engine, tempfile.TemporaryDirectory() as kept:
        crew = engine.crew(None, 1)
        asked = [() for _ in range(WORKERS)]
        before = crew.ask_all(memory, asked)
        weights, times = tuned(source(1), engine, Path(kept) / "run")
        after = crew.ask_all(memory, asked)
        known = measured_run(str(Path(kept) / "run"))
    row: dict[str, Cell] = {"engine": f"Ray, {WORKERS} workers", "features": len(weights)}
    row["seconds of passes"] = several(times, 0)
    row["MB of a worker before"] = several((each["RssAnon"] / MB for each in before), 0)
    row["MB after"] = several((each["RssAnon"] / MB for each in after), 0)
    row["MB of files"] = several((each["RssFile"] / MB for each in after), 0)
    outcome.rows.append(row)
    if not setting.quick and len(lines) == TUNED:
        outcome.claims.append(Claim("features", len(weights), FEATURES, "at least"))
    if both:
        wanted, times = tuned(source(WORKERS), THREADS)
        outcome.rows.append(
            {
                "engine": "threads",
                "features": len(wanted),
                "seconds of passes": several(times, 0),
            }
        )
        differ = sum(weights.get(name) != wanted.get(name) for name in {*weights, *wanted})
        outcome.claims.append(
            Claim("weights that differ from those of threads", differ, 0, "at most")
        )
    all_weights = replace(known, update_bytes=float(WEIGHT_BYTES * len(weights)))
    for count in SIMULATED:
        guess = simulate("mixing", all_weights, count, len(lines))
        outcome.rows.append(
            {
                "engine": f"simulated, {count:,} workers",
                "features": len(weights),
                "seconds of passes": several([guess.seconds], 0),
            }
        )
    size = sum(path.stat().st_size for path in model.files)
    outcome.notes.append(
        f"adagrad (λ = {L1}), templates of green2013, lists of {LIST}. The model has "
        f"{size / MB:.0f} MB, which the workers of a machine share where files are mapped. Memory "
        "is what a process has of its own, before it was sent the task and after the last pass. "
        "Seconds are those of passes with the decoding that scores them; simulated ones are "
        "without it"
    )
    return outcome


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sentences", type=int, default=TUNED)
    parser.add_argument("--trained", type=int, default=0, help="0: all that are not held out")
    parser.add_argument("--ray-only", action="store_true", help="do not compare with threads")
    asked = parser.parse_args()
    print(markdown(bitext(Setting(), asked.sentences, asked.trained, both=not asked.ray_only)))


if __name__ == "__main__":
    main()
