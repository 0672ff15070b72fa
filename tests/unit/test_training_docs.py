"""The example of docs/training.md runs, and the page tells of every stage and option."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from twins.cutting import needs_pieces

from tunesmith.cli import load
from tunesmith.training.aligners import ALIGNERS
from tunesmith.training.text import TOKENIZERS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "training.md").read_text(encoding="utf-8")


@needs_pieces
def test_the_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.de").write_text("Das Haus ist klein.\nEin Haus.\nDas ist ein Buch.\n" * 5)
    Path("train.en").write_text("The house is small.\nA house.\nThis is a book.\n" * 5)
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(compile(block, "docs/training.md", "exec"), {})
    assert capsys.readouterr().out.endswith("This is a house.\n")


def test_names_are_told() -> None:
    stages = ("case", "pieces", "text", "align", "symmetrise", "lm", "phrases", "hiero", "dev")
    for name in (*stages, *TOKENIZERS, *ALIGNERS):
        assert f"`{name}`" in TEXT or name in ("ibm2", "ibm3"), name


def test_options_in_the_page_are_options() -> None:
    train = load("train")
    known = {option for parameter in train.params for option in parameter.opts}
    told = set(re.findall(r"--[a-z]+(?:-[a-z]+)*", TEXT))
    assert told <= known
