"""How fast is this machine? KenLM's queries on a text whose figures are known elsewhere.

Moses' times were measured on another machine, together with two figures of KenLM:

- its `query` program on the training text, 0.12 CPU s. Here the Python package scores the same
  29,000 sentences. Both split the text, look up words and query; `query` also reads and prints, so
  the quotient `low = measured / 0.12` makes this machine look faster than it is.
- 1.0e-7 CPU s for a query with word ids ready. The package has no such call; splitting and encoding
  the sentences in Python is measured alone and taken off. Word lookup and the cost of a call are
  left in, so `high = (measured - splitting) / (406,534 × 1.0e-7)` makes it look slower than it is.

The truth lies between. Moses' seconds are carried over with their geometric mean, and a time counts
as better than Moses' only where it is better with `low` too.
"""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass
from typing import Any

from benchmarks.data import Setting, text_lines
from benchmarks.harness import Outcome, Skip, best_of
from benchmarks.peers import KENLM_QUERY_SECONDS, KENLM_TEXT_SECONDS


@dataclass(frozen=True)
class Yardstick:
    """This machine's CPU seconds per second of the machine behind Moses' figures."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """The factor to carry figures over with."""
        return math.sqrt(self.low * self.high)


def kenlm_module() -> Any:
    """Return the `kenlm` package; skip where it is not installed."""
    try:
        return importlib.import_module("kenlm")
    except ImportError:
        raise Skip("kenlm is not installed: pip install 'tunesmith[bench]'") from None


def measure_yardstick(setting: Setting) -> tuple[Yardstick, Outcome]:
    """Return the factor between this machine and the one behind Moses' figures."""
    model = kenlm_module().Model(str(setting.file("multi30k-moses", "lm.arpa.gz")))
    sentences = text_lines(setting.file("multi30k", "train.en.gz"))
    tokens = sum(len(sentence.split()) + 1 for sentence in sentences)
    repeats = 5 if setting.quick else 15

    def score() -> float:
        return float(sum(model.score(sentence) for sentence in sentences))

    def split() -> int:
        return sum(len([word.encode() for word in sentence.split()]) for sentence in sentences)

    _, scored = best_of(repeats, score)
    _, split_only = best_of(repeats, split)
    bare = tokens * KENLM_QUERY_SECONDS
    found = Yardstick(scored.cpu / KENLM_TEXT_SECONDS, (scored.cpu - split_only.cpu) / bare)
    outcome = Outcome("Yardstick: KenLM queries on the training text")
    outcome.rows = [
        {
            "route": "from text",
            "queries": tokens,
            "here, CPU s": scored.cpu,
            "there, CPU s": KENLM_TEXT_SECONDS,
            "factor": found.low,
        },
        {
            "route": "splitting taken off",
            "queries": tokens,
            "here, CPU s": scored.cpu - split_only.cpu,
            "there, CPU s": bare,
            "factor": found.high,
        },
    ]
    outcome.notes = [
        f"Moses' seconds × {found.middle:.2f} (between {found.low:.2f} and {found.high:.2f}) "
        "are seconds of this machine."
    ]
    return found, outcome
