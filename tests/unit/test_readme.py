"""What the README shows works as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tunesmith.sample import write_sample

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_sample(tmp_path, count=40, size=8)
    # Something is said in two ways, and the tuning set prefers the one that is not chosen at first.
    texts = {
        "train": (
            "Das Haus ist klein.\nEin Buch.\nEin Buch.\nDas Buch.\n" * 5,
            "The house is small.\nA book.\nA very nice book.\nThe book.\n" * 5,
        ),
        "dev": (
            "Das Haus ist klein.\nEin Buch.\n" * 5,
            "The house is small.\nA book.\n" * 5,
        ),
        "test": ("Das Haus.\n", "The house.\n"),
    }
    for name, (source, target) in texts.items():
        (tmp_path / f"{name}.de").write_text(source)
        (tmp_path / f"{name}.en").write_text(target)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_readme_run(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from tunesmith.cli import app

    lines = re.findall(r"^\$ tunesmith (.*)$", README.read_text(), re.MULTILINE)
    assert len(lines) >= 4
    for line in lines:
        words = shlex.split(line, comments=True)
        target = None
        if ">" in words:
            target = words[words.index(">") + 1]
            words = words[: words.index(">")]
        app(words, standalone_mode=False)
        out = capsys.readouterr().out
        if target is not None:
            (sample / target).write_text(out)
    assert (sample / "weights.toml").exists()


def test_the_python_of_the_readme_runs(sample: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(compile(block, str(README), "exec"), {})


def test_every_preset_is_in_the_readme() -> None:
    from tunesmith.presets import PRESETS

    text = README.read_text()
    assert [name for name in PRESETS if f"`{name}`" not in text] == []


def test_the_links_of_the_readme_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README.read_text())
    assert [link for link in links if not (README.parent / link).exists()] == []
