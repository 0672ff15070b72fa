"""From two texts to a model directory: time and memory by stage, and how they grow."""

from __future__ import annotations

import random
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.data import Setting, text_lines
from benchmarks.fresh import Fresh, in_fresh_process
from benchmarks.growth_plot import Growth, plot
from benchmarks.harness import Claim, Outcome, peak_bytes, say
from tunesmith.training.pipeline import Training, train
from tunesmith.training.stages import News

MEGA = 1e6
THREADS = 2
TIMES = (1, 4, 16)
CHANGED = 0.05
"""The share of words that a repetition of the text has others for."""
PLOT = Path(__file__).resolve().parent.parent / "docs" / "growth.svg"


class Meter:
    """Time and peak memory of each stage."""

    def __init__(self) -> None:
        self.stages: dict[str, dict[str, float]] = {}
        self._began = (0.0, 0.0)

    def __call__(self, news: News) -> None:
        """Take the time of a stage."""
        if news.state == "begun":
            # Linux forgets its mark of the peak when told so; elsewhere peaks can only grow.
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
            self._began = time.perf_counter(), time.process_time()
        elif news.state == "done":
            self.stages[news.stage] = {
                "s": time.perf_counter() - self._began[0],
                "cpu": time.process_time() - self._began[1],
                "peak": peak_bytes(),
            }


def trained(
    texts: list[str], model: str, keep: list[Any], dev: list[str] | None = None
) -> dict[str, Any]:
    """Train both kinds of rules; return what the stages took and what there is."""
    meter = Meter()
    source, target = (Path(path) for path in dev) if dev else (None, None)
    training = Training(Path(texts[0]), Path(texts[1]), dev=source, dev_target=target)
    summary = train(training, Path(model), THREADS, meter)
    return {"stages": meter.stages, "facts": summary["stages"], "files": summary["files"]}


def whole_training(setting: Setting) -> Outcome:
    """Train from Multi30k, both kinds of rules together."""
    texts = [str(setting.file("multi30k", f"train.{side}.gz")) for side in ("de", "en")]
    dev = [str(setting.file("multi30k", f"val.{side}.gz")) for side in ("de", "en")]
    outcome = Outcome(f"Training from Multi30k de-en, 29,000 pairs, {THREADS} threads")
    with tempfile.TemporaryDirectory() as name:
        run = in_fresh_process(
            "benchmarks.training_bench:trained", texts=texts, model=f"{name}/model", dev=dev
        )
    for stage, taken in run.value["stages"].items():
        outcome.rows.append(
            {
                "stage": stage,
                "CPU s": taken["cpu"],
                "s": taken["s"],
                "peak, MB": taken["peak"] / MEGA,
            }
        )
    found = run.value["facts"]["dev"]
    files = ", ".join(f"{file} {size / MEGA:.0f} MB" for file, size in run.value["files"].items())
    outcome.notes += [
        f"{files}.",
        f"Dev set: {100 * found['coverage']:.1f}% of the words covered, perplexity of the "
        f"translation {found['perplexity']:.1f}.",
    ]
    outcome.claims += [
        Claim("from text to both tables and a language model", run.wall, 90, "at most", "s"),
        Claim("peak memory", _peak(run) / MEGA, 2000, "at most", "MB"),
    ]
    return outcome


def growth(setting: Setting) -> Outcome:
    """Train from Multi30k, and from the text repeated with other words here and there."""
    texts = [text_lines(setting.file("multi30k", f"train.{side}.gz")) for side in ("de", "en")]
    if setting.quick:
        texts = [lines[:3000] for lines in texts]
    outcome = Outcome(
        f"Growth: training from Multi30k repeated, {100 * CHANGED:.0f}% of the words of "
        f"repetitions changed, {THREADS} threads"
    )
    seen: list[Growth] = []
    with tempfile.TemporaryDirectory() as name:
        for times in TIMES:
            folder = Path(name) / str(times)
            folder.mkdir()
            paths = [_repeated(lines, times, folder / str(n)) for n, lines in enumerate(texts)]
            run = in_fresh_process(
                "benchmarks.training_bench:trained",
                texts=list(map(str, paths)),
                model=str(folder / "model"),
            )
            stages = {
                stage: (taken["cpu"], taken["peak"] / MEGA)
                for stage, taken in run.value["stages"].items()
            }
            seen.append(Growth(times * len(texts[0]), stages))
            _grown(outcome, times, seen[-1], run)
            for file in folder.rglob("*"):
                if file.is_file():
                    file.unlink()
    first, last = seen[0], seen[-1]
    factor = last.pairs / first.pairs
    outcome.claims += [
        Claim(
            f"CPU time of {factor:.0f} times the text, by size",
            last.cpu / first.cpu / factor,
            1.5,
            "at most",
            "times as much",
        ),
        Claim(
            f"peak memory of {factor:.0f} times the text, by size",
            last.peak / first.peak / factor,
            1.0,
            "at most",
            "times as much",
        ),
    ]
    if not setting.quick:
        PLOT.write_text(plot(seen), encoding="utf-8")
        outcome.notes.append(f"Drawn in docs/{PLOT.name}.")
    return outcome


def _repeated(lines: list[str], times: int, path: Path) -> Path:
    """Write a text several times, all but the first with other words here and there."""
    words = [word for line in lines for word in line.split()]
    draw = random.Random(times)
    with path.open("w", encoding="utf-8") as out:
        for time_ in range(times):
            for line in lines:
                kept = [
                    draw.choice(words) if time_ and draw.random() < CHANGED else word
                    for word in line.split()
                ]
                out.write(" ".join(kept) + "\n")
    return path


def _grown(outcome: Outcome, times: int, seen: Growth, run: Fresh) -> None:
    say(f"  {times}x: {seen.cpu:.0f} CPU s, {run.wall:.0f} s, {seen.peak:.0f} MB")
    for stage, (cpu, peak) in seen.stages.items():
        outcome.rows.append({"text": f"{times}x", "stage": stage, "CPU s": cpu, "peak, MB": peak})
    outcome.rows.append(
        {"text": f"{times}x", "stage": "all", "CPU s": seen.cpu, "peak, MB": seen.peak}
    )


def _peak(run: Fresh) -> float:
    return max(float(taken["peak"]) for taken in run.value["stages"].values())
