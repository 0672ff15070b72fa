"""A recipe that runs in a moment."""

from __future__ import annotations

from pathlib import Path

BASE = """
title = "Mine"
tasks = ["sample-lists"]
metrics = ["bleu:tokenize=none"]
seeds = 1

[[systems]]
name = "first"
preset = "none"

[[systems]]
name = "kbmira"
preset = "kbmira"

[[tables]]
kind = "scores"
title = "Scores"
baseline = "first"

[[claims]]
text = "Tuning helps"
claim = "kbmira > first on tests"
"""


def written(folder: Path, text: str = BASE) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path
