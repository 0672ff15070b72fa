"""The examples of docs/formats.md run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "formats.md").read_text(), re.DOTALL)


def test_examples_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    scope: dict[str, object] = {}
    assert len(BLOCKS) == 4
    for block in BLOCKS:
        exec(compile(block, "docs/formats.md", "exec"), scope)
    assert (tmp_path / "out.jsonl.gz").is_file()
