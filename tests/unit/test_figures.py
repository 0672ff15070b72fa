"""Figures in the docs are those of kept results, and none of them is typed."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import docs
from benchmarks.__main__ import NAMES
from benchmarks.harness import Claim, Outcome, save
from tunesmith.experiments import find_recipe

PAGES = docs.pages()
RESULTS = sorted(docs.KEPT.glob("*.json"))
# Decimals, shares, and counts of a thousand or more.
FIGURE = re.compile(r"\d\.\d|\d ?%|\d,\d{3}\b")
REFERENCE = {
    ("experiments.md", "Recipes"): "sections and tables of papers",
    ("hiero.md", "The search"): "defaults",
    ("maxforce.md", "Which step is corrected"): "defaults",
    ("papers.md", ""): "settings and mechanisms of papers",
    ("ray.md", "Which regime for how many sentences"): "advice that follows from the predictions",
    ("rules.md", "Phrase pairs"): "a constant of the definition",
    ("serve.md", "Limits"): "defaults",
    ("structured.md", "Options of `train`"): "defaults",
    ("training.md", "What becomes of bad text"): "limits",
    ("translate.md", "Search"): "defaults",
    ("translate.md", "Markup"): "an example",
}
"""Tables that look up something: the page, the heading (none: all), and what their numbers are."""


def tables(text: str) -> list[tuple[str, str]]:
    """Return the heading and the lines of each table that stands in no block and in no code."""
    found: list[tuple[str, str]] = []
    heading, within = "", False
    outside = re.sub(r"^```.*?^```", "", docs.BLOCK.sub("", text), flags=re.DOTALL | re.MULTILINE)
    for line in outside.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        if line.startswith("|"):
            before = found.pop()[1] if within else ""
            found.append((heading, f"{before}{line}\n"))
        within = line.startswith("|")
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_are_what_the_kept_results_give(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    marks = re.findall(r"<!-- (begin|end) (\S+) -->", text)
    begun = [name for kind, name in marks if kind == "begin"]
    assert marks == [(kind, name) for name in begun for kind in ("begin", "end")]
    assert docs.filled(text) == text, "run python -m benchmarks.docs"


def test_no_result_is_shown_twice_or_kept_for_nothing() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = re.findall(r"<!-- begin (\S+) -->", text)
    assert len(shown) == len({*shown})
    assert {*docs.VIEWS} <= {*shown}
    assert sorted({path.stem for path in RESULTS} - docs.shown()) == []


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_kept_results_say_where_they_come_from(path: Path) -> None:
    found = json.loads(path.read_text(encoding="utf-8"))
    assert not found["quick"]
    assert found.get("by_hand") or found.get("transcribed") or found["date"]
    if "recipe" in found:
        assert path.stem in docs.RECIPES and find_recipe(found["recipe"]).exists()
    elif "by_hand" not in found:
        assert path.stem in (*NAMES, "torture")
    for claim in found["claims"]:
        told = {**claim, "measured": float(claim["measured"])}
        assert Claim(**{k: v for k, v in told.items() if k != "kept"}).kept == claim["kept"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_tables_of_figures_stand_in_blocks(page: Path) -> None:
    found = tables(page.read_text(encoding="utf-8"))
    typed = {heading for heading, lines in found if FIGURE.search(lines)}
    allowed = {heading for name, heading in REFERENCE if name == page.name}
    if "" not in allowed:
        assert typed - allowed == set()
        assert allowed - typed == set(), "no longer needed"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_score_is_typed_into_prose(page: Path) -> None:
    text = docs.BLOCK.sub("", page.read_text(encoding="utf-8"))
    prose = re.sub(r"^```.*?^```|`[^`\n]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    assert re.findall(r".*(?<![\d.])\d\d\.\d\d?(?![\d.]).*", prose) == []


def test_a_table_that_is_typed_is_found() -> None:
    block = "<!-- begin x -->\n| 1.5 |\n<!-- end x -->\n"
    text = f"# A\n{block}## B\n| a |\n| 2.5 |\n\n```\n| 3.5 |\n```\n| c |\n"
    assert tables(text) == [("B", "| a |\n| 2.5 |\n"), ("B", "| c |\n")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one page and nothing measured."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text("no blocks\n")
    for name, path in (
        ("ROOT", tmp_path),
        ("DOCS", tmp_path / "docs"),
        ("EXPERIMENTS", tmp_path / "docs" / "results"),
        ("KEPT", tmp_path / "docs" / "results" / "benchmarks"),
        ("RESULTS", tmp_path / "measured"),
        ("TORTURE", tmp_path / "torture"),
    ):
        monkeypatch.setattr(docs, name, path)
    return tmp_path


def page_of(place: Path, name: str) -> str:
    """Return what a page with one block has there after the docs were filled."""
    page = place / "docs" / "page.md"
    page.write_text(f"a\n<!-- begin {name} -->\nold\n<!-- end {name} -->\nb\n")
    docs.main([])
    before, _, rest = page.read_text().partition(f"<!-- begin {name} -->\n")
    inside, _, after = rest.partition(f"<!-- end {name} -->")
    assert (before, after) == ("a\n", "\nb\n")
    return inside


def test_new_results_fill_the_blocks(place: Path) -> None:
    assert page_of(place, "serve-kills").startswith("Not measured yet: `python -m benchmarks ser")
    outcome = Outcome("Kills", [{"lost": 0}], notes=["four clients"])
    outcome.claims = [Claim("lost", 0, 0, "at most")]
    save(place / "measured", "serve-kills", outcome, True)
    assert page_of(place, "serve-kills").startswith("Not measured yet"), "a quick run"
    save(place / "measured", "serve-kills", outcome, False)
    told = page_of(place, "serve-kills")
    assert told.startswith("Kills.\n\n| lost |\n| ---: |\n| 0 |\n\n- Four clients.\n\n| claim |")
    assert re.search(r"\n\n\*`python -m benchmarks serve-kills`: 20\d\d-.* cores.*\.\*\n$", told)


def test_an_older_result_does_not_replace_a_newer_one(place: Path) -> None:
    save(place / "measured", "serve-kills", Outcome("New", [{"lost": 0}]), False)
    assert page_of(place, "serve-kills").startswith("New.")
    path = save(place / "measured", "serve-kills", Outcome("Old", [{"lost": 1}]), False)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({k: v for k, v in content.items() if k != "date"}))
    os.utime(path, (0, 0))
    assert page_of(place, "serve-kills").startswith("New.")


def test_pages_of_experiments_are_copied_if_all_were_run_at_small_scale(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made, kept = place / "made", place / "docs" / "results"

    def run(name: str, scale: str) -> None:
        (made / name).mkdir(parents=True, exist_ok=True)
        (made / name / "result.json").write_text(json.dumps({"scale": scale}))
        (made / name / "README.md").write_text(f"# {name}\n")
        (made / name / "new.svg").write_text("<svg/>")

    before = "a\n<!-- begin verdicts -->\nb\n<!-- end verdicts -->\nc\n"
    for name in ("one", "two"):
        (kept / name).mkdir(parents=True)
        (kept / name / "README.md").write_text("old\n")
        (kept / name / "old.svg").write_text("<svg/>")
    (kept / "README.md").write_text(before)
    run("one", "small")
    (made / "README.md").write_text("# Experiments\n\n| one | confirmed |\n")
    for scale in (None, "smoke"):
        if scale:
            run("two", scale)
        docs.main([str(made)])
        assert "pages not copied: two" in capsys.readouterr().err
        assert (kept / "README.md").read_text() == before
        assert (kept / "one" / "README.md").read_text() == "old\n"
    run("two", "small")
    docs.main([str(made)])
    assert {path.name for path in (kept / "one").iterdir()} == {"README.md", "new.svg"}
    assert (kept / "README.md").read_text() == before.replace("b\n", "| one | confirmed |\n")


def test_missed_targets_are_always_shown(place: Path) -> None:
    outcome = Outcome("T", [{"val": 1.0}], [Claim("good", 1.0, 2.0, "at least")])
    outcome.claims.append(Claim("small", 1.0, 2.0, "at most"))
    save(place / "measured", "tuning", outcome, False)
    told = page_of(place, "tuning")
    assert "| good | at least 2.00 | 1.00 | NO |" in told and "small" not in told


def test_torture_is_kept_when_all_parts_came_to_their_end(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def part(name: str, **cells: Any) -> None:
        (place / "torture").mkdir(exist_ok=True)
        about = {"date": "2026-11-19", "commit": "abc", "machine": {"cores": 2}}
        told = {"part": name, "rows": [cells], "claims": [], "notes": [], **about}
        (place / "torture" / f"{name}.json").write_text(json.dumps(told))

    part("readers", what="damaged inputs", count=7)
    part("tests", what="kills", count=3)
    assert page_of(place, "torture").startswith("Not measured yet: `make torture`")
    assert "nothing of soak" in capsys.readouterr().err
    part("soak", what="turns", count=2)
    told = page_of(place, "torture")
    assert told.index("damaged inputs") < told.index("kills") < told.index("turns")
    assert "*`make torture`: 2026-11-19, commit abc, 2 cores.*" in told
