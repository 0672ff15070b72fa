"""The examples of docs/lm.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "lm.md").read_text(encoding="utf-8")


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, "docs/lm.md", "exec"), {})
    assert (tmp_path / "lm.tlm").exists()


def test_every_option_is_described() -> None:
    for option in ("--order", "--out", "--prune", "--vocab", "--memory", "--temp", "--threads"):
        assert option in TEXT
    for option in ("--skip-symbols", "--fallback"):
        assert option in TEXT
