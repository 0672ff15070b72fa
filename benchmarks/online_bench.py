"""Online learners beside MERT with a live decoder, on development text of four tasks.

Multi30k German-English with Moses' phrase-based model and with a hierarchical model of our own
training, Tatoeba German-English, and Spanish verses with four English references. Each development
text is cut in two: weights are tuned on one half and judged on the other, with odd seeds on the
even lines and with even seeds on the odd ones, so that settings can be chosen without a test set.
What a run found is kept in `benchmarks/results/online`, so that a measurement that was stopped goes
on; delete the folder to measure anew.

`python -m benchmarks online` compares the presets. `python -m benchmarks.online_bench TASK TUNER
[KEY=VALUE …]` runs one setting and prints its learning curve.
"""

from __future__ import annotations

import gzip
import json
import random
import statistics
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks import searchaware_bench
from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.harness import Cell, Outcome, say, timed
from tunesmith.decode.translation import Model
from tunesmith.sources import Live
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide
from tunesmith.tuning import tune

KEPT = Path(__file__).resolve().parent / "results" / "online"
TASKS = ("multi30k", "hiero", "tatoeba", "verses")
TUNERS = ("mert", "mira", "rm", "mira-hildreth")
SEEDS, DECODINGS, PASSES = (1, 2, 3, 4), 8, 10
# Pairs of Tatoeba that are held out as development text, and pairs of words at most to train on.
HELD, TRAINED, LONGEST = 1000, 60_000, 25
Texts = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Work:
    """A model, its development text in two halves, and the settings of its search."""

    model: Model
    development: Texts
    settings: Mapping[str, float] = field(default_factory=dict)
    fixed: Mapping[str, float] = field(default_factory=dict)

    def half(self, odd: int) -> Live:
        """Return the even (0) or the odd lines (1) as a source."""
        lines, references = self.development
        return Live(
            self.model,
            lines[odd::2],
            references[odd::2],
            settings=self.settings,
            tokenized=True,
            threads=1,
        )


def captions(setting: Setting) -> Work:
    """Return Multi30k with Moses' model."""
    found = searchaware_bench.captions(setting)
    return Work(
        found.model,
        found.development,
        {"stack": 30, "pop_limit": 150, "distortion_limit": 6},
        {"UnknownWordPenalty0": 1.0},
    )


def hierarchical(setting: Setting) -> Work:
    """Return Multi30k with a hierarchical model of our own."""
    folder = KEPT / "hiero"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model" / "model.toml").exists():
        for side in ("de", "en"):
            packed = setting.file("multi30k", f"train.{side}.gz")
            (folder / f"train.{side}").write_bytes(gzip.decompress(packed.read_bytes()))
        say("  training on captions")
        made = Training(folder / "train.de", folder / "train.en", kind="hiero")
        train(made, folder / "model", 2)
    development = searchaware_bench.captions(setting).development
    return Work(Model.load(folder / "model", "hiero"), development, {"pop_limit": 30})


def sentences(setting: Setting) -> Work:
    """Return Tatoeba with a phrase-based model of our own; development text by source sentence."""
    folder = KEPT / "tatoeba"
    folder.mkdir(parents=True, exist_ok=True)
    german, english = (
        text_lines(setting.file("tatoeba", f"de-en.{side}.gz")) for side in ("de", "en")
    )
    pairs: dict[str, list[str]] = {}
    for source, target in zip(german, english, strict=True):
        if 4 <= len(source.split()) <= LONGEST:
            pairs.setdefault(source, []).append(target)
    shuffled = sorted(pairs)
    random.Random(22).shuffle(shuffled)
    held, rest = shuffled[:HELD], shuffled[HELD : HELD + TRAINED]
    if not (folder / "model" / "model.toml").exists():
        texts = [(source, target) for source in rest for target in pairs[source]]
        for place, side in enumerate(("de", "en")):
            (folder / f"train.{side}").write_text("".join(f"{pair[place]}\n" for pair in texts))
        say("  training on Tatoeba")
        de, en = (TextSide(each, tokenize="moses", case="lower") for each in ("de", "en"))
        made = Training(folder / "train.de", folder / "train.en", de, en, "phrase")
        train(made, folder / "model", 2)
    model = Model.load(folder / "model", "phrase")
    lines = [model.source.prepare(each) for each in held]
    references = [[model.target.prepare(text) for text in pairs[each]] for each in held]
    return Work(model, (lines, references), {"stack": 30, "pop_limit": 150, "distortion_limit": 6})


def verses(setting: Setting) -> Work:
    """Return Spanish verses with four references."""
    found = searchaware_bench.work("verses", setting.shared)
    return Work(
        found.model,
        found.development,
        {"stack": 30, "pop_limit": 150, "distortion_limit": 6},
    )


@cache
def work(task: str, shared: Path) -> Work:
    """Return a task; models are made at the first call."""
    KEPT.mkdir(parents=True, exist_ok=True)
    make = {"multi30k": captions, "hiero": hierarchical, "tatoeba": sentences, "verses": verses}
    return make[task](Setting(shared=shared))


def tuned(
    setting: Setting,
    task: str,
    preset: str,
    options: Mapping[str, str] | None = None,
    seed: int = 1,
    start: Mapping[str, float] | None = None,
    rounds: int | None = None,
) -> dict[str, Any]:
    """Return the scores of a run on both halves, from its file if it was made before."""
    options = dict(options or {})
    shown = [f"{key}={value}" for key, value in sorted(options.items())]
    shown += [] if start is None else ["from-mert"]
    shown += [] if rounds is None else [f"rounds={rounds}"]
    name = "-".join([task, preset, str(seed), *shown])
    file = KEPT / f"{name}.json"
    if file.exists():
        found: dict[str, Any] = json.loads(file.read_text())
        return found
    done = work(task, setting.shared)
    curve: list[tuple[float, float]] = []
    facts: list[dict[str, Any]] = []

    def listen(event: dict[str, Any]) -> None:
        if event["event"] == "epoch":
            curve.append((round(event["score"], 2), round(event["heldout"], 2)))
            facts.append({key: event.get(key) for key in ("updates", "spread", "weight_change")})

    most = rounds or (DECODINGS if preset in ("mert", "kbmira", "pro") else PASSES)
    result, time = timed(
        lambda: tune(
            done.half((seed + 1) % 2),
            preset,
            METRIC,
            options=options,
            start=done.model.weights if start is None else start,
            seed=seed,
            iterations=most,
            heldout=[done.half(seed % 2)],
            fixed=done.fixed,
            threads=1,
            listen=listen,
        )
    )
    told = {
        "task": task,
        "preset": preset,
        "options": options,
        "seed": seed,
        "start": [result.start, result.heldout_start],
        "tuned": [result.tuned, result.heldout],
        "curve": curve,
        "facts": facts,
        "cpu": time.cpu,
        "weights": dict(result.weights),
    }
    file.write_text(json.dumps(told))
    say(
        f"  {name}: {result.start:.2f} -> {result.tuned:.2f}, judged "
        f"{result.heldout_start:.2f} -> {result.heldout:.2f}, {time.cpu:.0f} s"
    )
    return told


def online(setting: Setting) -> Outcome:
    """Return the scores of MERT and of the online presets on the half that judges."""
    outcome = Outcome("Online learners with a live decoder: BLEU on development text")
    seeds = SEEDS[:1] if setting.quick else SEEDS
    for task in TASKS[:1] if setting.quick else TASKS:
        for preset in TUNERS:
            runs = [tuned(setting, task, preset, seed=seed) for seed in seeds]
            row: dict[str, Cell] = {"task": task, "tuner": preset, "seeds": len(runs)}
            row["start"] = round(runs[0]["start"][1], 2)
            row["tuned on"] = _mean(run["tuned"][0] for run in runs)
            row["judged on"] = _mean(run["tuned"][1] for run in runs)
            row["CPU s"] = round(statistics.mean(run["cpu"] for run in runs))
            outcome.rows.append(row)
    outcome.notes.append(
        "Tuned on one half of the development text, judged on the other; no test set."
    )
    return outcome


def _mean(values: Iterable[float]) -> float:
    return round(statistics.mean(values), 2)


def main(words: Sequence[str]) -> None:
    """Run one setting; `start=mert` begins with what MERT found, `seed` and `rounds` are ours."""
    task, preset, *rest = words
    options = dict(word.split("=", 1) for word in rest)
    seed = int(options.pop("seed", "1"))
    rounds = options.pop("rounds", None)
    setting = Setting()
    first = None
    if options.pop("start", None) == "mert":
        first = tuned(setting, task, "mert", seed=seed)["weights"]
    found = tuned(setting, task, preset, options, seed, first, rounds and int(rounds))  # type: ignore[arg-type]
    print(json.dumps({key: found[key] for key in ("start", "tuned", "curve", "cpu")}))


if __name__ == "__main__":
    main(sys.argv[1:])
