"""docs/structured.md: its Python runs, its example is the file, its options are options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tunesmith.cli import load
from tunesmith.structured.settings import AVERAGES, METHODS, UPDATES

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "structured.md").read_text(encoding="utf-8")


def test_the_python_runs_and_the_example_is_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    first, example = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(first, "docs/structured.md", "exec"), {})
    assert capsys.readouterr().out == "[('DET', 'NOUN', 'VERB')]\n"
    assert example == (ROOT / "examples" / "transliteration.py").read_text(encoding="utf-8")


def test_options_and_names_are_those_of_the_command() -> None:
    commands = load("structured").commands
    known = {option for parameter in commands["train"].params for option in parameter.opts}
    told = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", TEXT))
    assert told == {option for option in known if option.startswith("--")}
    for name in (*UPDATES, *METHODS, *AVERAGES):
        assert f"`{name}`" in TEXT
