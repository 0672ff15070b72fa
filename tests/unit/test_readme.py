"""What the README shows works as it stands."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from tunesmith.demo.sample import write_sample

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


def test_every_preset_is_in_the_guide() -> None:
    from tunesmith.presets import PRESETS

    text = (README.parent / "docs" / "tuning.md").read_text()
    assert [name for name in PRESETS if f"`{name}`" not in text] == []


def test_the_readme_takes_two_minutes_to_read() -> None:
    assert len(README.read_text().split()) <= 600


def test_the_first_python_of_the_readme_uses_the_default_tuner() -> None:
    first = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[0]
    assert 'preset="kbmira"' in first


PAGES = [README, README.parent / "CONTRIBUTING.md", *sorted((README.parent / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text())
    local = [link for link in links if not link.startswith("http")]
    assert [link for link in local if not (page.parent / link).exists()] == []


def test_no_page_carries_times_over_from_another_machine() -> None:
    assert [page.name for page in PAGES if "carried over" in page.read_text()] == []
