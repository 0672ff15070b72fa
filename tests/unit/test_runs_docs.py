"""The example in docs/runs.md runs, and the page names every file it writes."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from tunesmith.runs import read_events

PAGE = (Path(__file__).parents[2] / "docs" / "runs.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    scope: dict[str, object] = {}
    exec(code, scope)
    assert scope["weights"] == {"LM0": 0.5, "WordPenalty0": -0.2}
    assert Path("run/report.html").exists()
    told = [event["event"] for event in read_events("run/events.jsonl")]
    assert told == ["start", "epoch", "end"]
    for module in re.findall(r"`(tunesmith\.[a-z.]+)`", PAGE):
        import_module(module)
    written = {path.name for path in Path("run").iterdir()} - {"report.html"}
    assert all(f"`{name}`" in PAGE for name in written)
