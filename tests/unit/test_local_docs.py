"""What docs/local.md shows is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from twins.toy import make_world

pytest.importorskip("tantivy")
TEXT = (Path(__file__).parents[2] / "docs" / "local.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path) -> None:
    make_world(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    space: dict[str, Any] = {}
    exec(compile(block, "docs/local.md", "exec"), space)
    sources, targets = (
        (tmp_path / f"dev.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    found = space["translated"](tmp_path / "model", tmp_path / "index", sources, targets, sources)
    assert len(found) == len(sources)
    assert all(text and near == 10 for text, near in found)
