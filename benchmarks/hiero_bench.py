"""Hierarchical decoding against cdec: speed at its model scores, memory, threads, 500-best lists.

Run it with `python -m benchmarks hiero`.

cdec's grammar, weights and language model on the first 300 sentences of test 2016. Speeds are
sentences per CPU second. A speed counts against one of cdec's points if the mean model score is at
least as good; cdec's speeds are carried over to this machine by the yardstick.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from benchmarks.data import Setting, batched, text_lines
from benchmarks.fresh import in_fresh_process
from benchmarks.harness import Claim, Outcome, best_of, say, side_by_side
from benchmarks.peers import CDEC_DECODING
from benchmarks.plot import scatter
from benchmarks.yardstick import Yardstick
from tunesmith._core import Decoder, Translator
from tunesmith.lm import LanguageModel
from tunesmith.reading import read_weights
from tunesmith.training.rules import import_cdec

MEGA = 1e6
SENTENCES = 300
POP_LIMITS = (10, 30, 50, 100, 200, 400, 1000)
PART = 30
"""Sentences that are translated in one go where times of two things are compared."""
ROUNDING = 1e-5
"""What the last digit of cdec's scores hides."""
DRAWING = Path(__file__).resolve().parent / "results" / "hiero-length.svg"


def translator(files: list[str], pop_limit: int) -> Translator:
    """Return cdec's model (table, language model, weights) with a pop limit."""
    table, lm, weights = files
    named = list(read_weights(Path(weights)).items())
    return Decoder.hiero(table, lm, cdec=True).translator(named, [("pop_limit", pop_limit)])


def decoded(files: list[str], text: str, sentences: int, pop_limit: int, keep: list[Any]) -> float:
    """Translate with one thread; return the mean model score."""
    found = translator(files, pop_limit).translate(text_lines(Path(text))[:sentences], threads=1)
    return sum(one.score or 0.0 for one in found) / len(found)


def hiero(setting: Setting, yardstick: Yardstick) -> Outcome:
    """Decode with several pop limits; measure threads, lists and memory at cdec's."""
    grammar = setting.file("multi30k-cdec", "test_2016_flickr.grammar.gz")
    weights = str(setting.file("multi30k-cdec", "weights.mert"))
    text = setting.file("multi30k", "test_2016_flickr.de.gz")
    lines = text_lines(text)[: 60 if setting.quick else SENTENCES]
    outcome = Outcome(f"Hierarchical decoding, {len(lines)} sentences, one thread")
    with tempfile.TemporaryDirectory() as name:
        table, lm = str(Path(name) / "table"), str(Path(name) / "lm.tlm")
        import_cdec(grammar, Path(table))
        LanguageModel.load(setting.file("multi30k-moses", "lm.arpa.gz")).save(lm)
        files = [table, lm, weights]
        curve = _curve(setting, files, lines, outcome)
        for pop_limit, speed, score, memory in CDEC_DECODING:
            fresh = in_fresh_process(
                "benchmarks.hiero_bench:decoded",
                files=files,
                text=str(text),
                sentences=len(lines),
                pop_limit=pop_limit,
            )
            peak = (fresh.peak - fresh.before) / MEGA
            outcome.rows.append(
                {
                    "program": "cdec",
                    "pop limit": pop_limit,
                    "per CPU s": speed / yardstick.middle,
                    "mean score": f"{score:.5f}",
                    "peak, MB": memory / MEGA,
                }
            )
            own = next(row for row in outcome.rows if row["pop limit"] == pop_limit)
            own["peak, MB"] = peak
            outcome.claims.append(
                Claim(f"memory at pop limit {pop_limit}", peak, memory / MEGA, "at most", "MB")
            )
            if setting.quick:
                continue
            reached = [rate for rate, mean in curve.values() if mean >= score - ROUNDING]
            outcome.claims.append(
                Claim(
                    f"speed at {score:.5f}, ours / cdec's",
                    max(reached, default=0.0) * yardstick.middle / speed,
                    3,
                    "at least",
                )
            )
        _lists_and_threads(setting, files, lines, outcome)
    outcome.notes += [
        f"cdec's speeds are carried over with {yardstick.middle:.2f}; with {yardstick.low:.2f} "
        f"they would be {yardstick.middle / yardstick.low:.2f} times as high.",
        "Memory is what the process needs beyond the interpreter, files mapped included.",
        f"What lists cost is measured {PART} sentences at a time, with and without lists in turn; "
        "of each part the least time of seven counts.",
        f"Cost by sentence length: {DRAWING.name}.",
    ]
    return outcome


def _curve(
    setting: Setting, files: list[str], lines: list[str], outcome: Outcome
) -> dict[int, tuple[float, float]]:
    """Speed and mean score by pop limit; draws the cost of each sentence."""
    curve: dict[int, tuple[float, float]] = {}
    costs = {}
    for pop_limit in POP_LIMITS:
        ready = translator(files, pop_limit)
        found, time = best_of(setting.times(4), lambda r=ready: r.translate(lines, threads=1))  # type: ignore[misc]
        mean = sum(one.score or 0.0 for one in found) / len(found)
        curve[pop_limit] = len(lines) / time.cpu, mean
        say(f"  pop limit {pop_limit}: {curve[pop_limit][0]:.1f}/s, {mean:.5f}")
        outcome.rows.append(
            {
                "program": "tunesmith",
                "pop limit": pop_limit,
                "per CPU s": curve[pop_limit][0],
                "mean score": f"{mean:.5f}",
            }
        )
        if pop_limit in (30, 200, 1000):
            costs[f"pop limit {pop_limit}"] = [
                (float(len(line.split())), 1000 * one.seconds)
                for line, one in zip(lines, found, strict=True)
            ]
    scatter(DRAWING, "Cost of decoding by sentence length", ("words", "ms"), costs)
    return curve


def _lists_and_threads(
    setting: Setting, files: list[str], lines: list[str], outcome: Outcome
) -> None:
    """500-best lists on top of decoding, and two threads against one, at pop limit 200."""
    ready = translator(files, 200)
    times = setting.times(7)
    alone, lists = side_by_side(
        times,
        batched(lines, PART),
        lambda part: ready.translate(part, threads=1),
        lambda part: ready.nbest(part, 500, threads=1),
    )
    more = 100 * (lists.cpu / alone.cpu - 1)
    both, one = side_by_side(
        times,
        [lines],
        lambda part: ready.translate(part, threads=2),
        lambda part: ready.translate(part, threads=1),
    )
    outcome.rows += [
        {
            "program": "tunesmith, 500-best unique",
            "pop limit": 200,
            "per CPU s": len(lines) / lists.cpu,
        },
        {
            "program": "tunesmith, two threads",
            "pop limit": 200,
            "per CPU s": len(lines) / both.cpu,
            "per s": len(lines) / both.wall,
        },
    ]
    outcome.claims += [
        Claim("500-best on top of decoding, pop limit 200", more, 20, "at most", "%"),
        Claim("two threads against one", one.wall / both.wall, 1.8, "at least"),
    ]
