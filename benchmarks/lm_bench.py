"""Language models: queries beside KenLM's package, size, estimation, growth.

Run it with `python -m benchmarks.lm_bench`.

Queries are measured in turn through each one's fastest entry from Python. For KenLM that is
`Model.score` of a whole sentence, which runs in C++ but for the call; for us it is `score_many`,
held to one thread. Both split the text and look words up.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import Setting, text_lines
from benchmarks.fresh import in_fresh_process
from benchmarks.harness import (
    Cell,
    Claim,
    Outcome,
    Skip,
    best_of,
    machine,
    markdown,
    save,
    say,
    side_by_side,
)
from tunesmith.lm import LanguageModel, estimate

RESULTS = Path(__file__).resolve().parent / "results"
FACTORS = (1, 4, 16)


def kenlm_module() -> Any:
    """Return the `kenlm` package; skip where it is not installed."""
    try:
        return importlib.import_module("kenlm")
    except ImportError:
        raise Skip("kenlm is not installed: pip install 'tunesmith[bench]'") from None


def queries(setting: Setting) -> Outcome:
    """Score the training text with KenLM and with ours, one thread each."""
    arpa = setting.file("multi30k-moses", "lm.arpa.gz")
    texts = text_lines(setting.file("multi30k", "train.en.gz"))
    theirs = kenlm_module().Model(str(arpa))
    ours = LanguageModel.load(arpa)
    repeats = setting.times(15)
    tokens = sum(len(text.split()) + 1 for text in texts)
    ids = [np.append(ours.ids(text), np.uint32(ours.end_id)) for text in texts]
    flat, ends = np.concatenate(ids), np.cumsum([len(part) for part in ids])
    sums = sum(theirs.score(text) for text in texts), ours.score_many(texts, threads=1).sum()
    if abs(sums[0] - sums[1]) > 1e-6 * abs(sums[0]):
        raise AssertionError(f"scores differ: {sums[0]}, {sums[1]}")
    kenlm, many = side_by_side(
        repeats,
        [texts],
        lambda part: sum(theirs.score(text) for text in part),
        lambda part: ours.score_many(part, threads=1).sum(),
    )
    _, each = best_of(repeats, lambda: sum(ours.score(text) for text in texts))
    _, ready = best_of(repeats, lambda: ours.score_ids(flat, ends)[0].sum())
    outcome = Outcome("Language model queries, the training text, one thread")
    for name, seconds in (
        ("KenLM, Model.score of each sentence", kenlm.cpu),
        ("ours, score of each sentence", each.cpu),
        ("ours, score_many", many.cpu),
        ("ours with ids ready, score_ids", ready.cpu),
    ):
        outcome.rows.append(
            {"entry": name, "CPU s": seconds, "ns per query": seconds / tokens * 1e9}
        )
    outcome.claims = [
        Claim("query rate from text, ours / KenLM", kenlm.cpu / many.cpu, 1.0, "at least"),
    ]
    return outcome


def files(setting: Setting) -> Outcome:
    """Load the model in each of its forms."""
    arpa = setting.file("multi30k-moses", "lm.arpa.gz")
    outcome = Outcome("Loading a 5-gram model of 781,386 n-grams")
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "lm.tlm"
        model, read = best_of(setting.times(3), partial(LanguageModel.load, arpa))
        model.save(binary)
        _, mapped = best_of(20, partial(LanguageModel.load, binary))
        outcome.rows = [
            {"form": "ARPA, gzip", "bytes": arpa.stat().st_size, "seconds": read.wall},
            {"form": "binary, checked", "bytes": binary.stat().st_size, "seconds": mapped.wall},
        ]
    outcome.claims = [
        Claim("a binary loads", mapped.wall * 1000, 20, "at most", "ms"),
    ]
    return outcome


def estimation(setting: Setting) -> Outcome:
    """Estimate from the training text and from several times as much."""
    source = setting.file("multi30k", "train.en.gz")
    outcome = Outcome("Estimation, order 5, ARPA written, two threads")
    with tempfile.TemporaryDirectory() as folder:
        for factor in FACTORS[: 2 if setting.quick else 3]:
            text = Path(folder) / f"text.{factor}"
            words = grow(text_lines(source), factor, text)
            for memory in ("1G", "32M"):
                runs = [
                    in_fresh_process(
                        "benchmarks.lm_bench:estimate_once",
                        text=str(text),
                        out=str(Path(folder) / "lm.arpa"),
                        memory=memory,
                    )
                    for _ in range(setting.times(3) if factor == 1 else 1)
                ]
                found = min(runs, key=lambda run: run.cpu)
                row: dict[str, Cell] = {
                    "text": f"{factor}×",
                    "words": words,
                    "memory allowed": memory,
                    "n-grams": found.value,
                    "CPU s": found.cpu,
                    "seconds": found.wall,
                    "peak MB": (found.peak - found.before) / 1e6,
                }
                outcome.rows.append(row)
    first = float(outcome.rows[0]["CPU s"] or 0)
    last, before = outcome.rows[-2], outcome.rows[0]
    growth = float(last["CPU s"] or 0) / first
    size = float(last["n-grams"] or 0) / float(before["n-grams"] or 1)
    outcome.claims = [
        Claim("growth of CPU over growth of n-grams", growth / size, 1.5, "at most"),
    ]
    outcome.notes = [
        "More text is the same text with a tenth of its words changed in every copy.",
        "Peak memory is what the process took on top of the interpreter and its modules.",
    ]
    return outcome


def estimate_once(text: str, out: str, memory: str, keep: list[Any]) -> int:
    """Estimate and write; return the number of n-grams."""
    found = estimate(text, order=5, memory=memory, threads=2)
    found.write_arpa(out)
    keep.append(found)
    return sum(order.ngrams for order in found.orders)


def grow(lines: list[str], factor: int, path: Path) -> int:
    """Write copies of a text, each but the first with some words changed; return the words."""
    chance = random.Random(factor)
    count = 0
    with path.open("w", encoding="utf-8") as out:
        for copy in range(factor):
            for line in lines:
                words = line.split()
                count += len(words)
                if copy:
                    words = [f"{word}{copy}" if chance.random() < 0.1 else word for word in words]
                out.write(" ".join(words) + "\n")
    return count


def main(arguments: list[str] | None = None) -> int:
    """Run all; return 1 where a claim is not kept."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lm_bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything")
    options = parser.parse_args(arguments)
    setting = Setting(quick=options.quick)
    facts = machine()
    print(f"{facts['cores']} cores, load {facts['load']}, Python {facts['python']}\n")
    broken = 0
    try:
        for name, run in (
            ("lm-queries", queries),
            ("lm-files", files),
            ("lm-estimation", estimation),
        ):
            say(f"{name} …")
            outcome = run(setting)
            print(markdown(outcome), flush=True)
            save(RESULTS, name, outcome, options.quick)
            broken += sum(not claim.kept for claim in outcome.claims)
    except Skip as skip:
        print(f"skipped: {skip}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
