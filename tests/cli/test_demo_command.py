"""`tunesmith demo`: on two Bibles where they are installed, on sample lists everywhere."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest
from running import listing, refused, tunesmith

from tunesmith.cli import demo
from tunesmith.demo.verses import NEW, OLD, PARTS, place, read_versions, write_verses

TUNERS = {chosen.name for chosen in demo.TUNERS}
bibles = pytest.mark.skipif(
    any(importlib.util.find_spec(f"pythonbible_{name}") is None for name in (OLD, NEW)),
    reason="the Bibles are not installed (pip install 'tunesmith[demo]')",
)


@bibles
def test_the_demo_trains_tunes_tests_and_reports(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    ran = tunesmith("demo", "--out", folder, "--verses", 150)
    assert ran.code == 0, ran.err
    assert Path(ran.out.splitlines()[-1]) in {folder / name / "report.html" for name in TUNERS}
    assert {row.split()[0] for row in ran.out.splitlines() if row[:1].isalpha()} >= TUNERS
    assert "tunesmith train" in ran.err
    assert "tunesmith translate" in ran.err
    again = tunesmith("demo", "--out", folder, "--verses", 150, "--json")
    assert "kept" in again.err
    told = again.object
    assert again.out.count("\n") == 1
    assert told["verses"] == dict.fromkeys(PARTS, 150)
    assert set(told["tuners"]) == TUNERS
    assert told["best"] == max(TUNERS, key=lambda name: told["tuners"][name]["tuned"])
    # Even a hundred verses teach more than nothing.
    assert told["untranslated"] < told["untuned"]
    for name, found in told["tuners"].items():
        assert (found["tuned"] > found["start"]) == (found["refused"] is None)
        assert found["test"] == pytest.approx(told["untuned"] + found["difference"])
        assert f"{found['test']:.2f}" in ran.out
        assert (folder / f"{name}.toml").is_file()
    assert told["tuners"][told["best"]]["refused"] is None
    shown = told["examples"][0]
    assert shown["verse"].startswith("John ")
    assert shown["untuned"] != shown["tuned"]
    assert shown["tuned"] in ran.out
    assert "other verses" in refused(tmp_path, "demo", "--out", folder, "--verses", 160).err


@bibles
def test_no_verse_is_in_two_parts_and_the_versions_are_aligned(tmp_path: Path) -> None:
    parts = write_verses(tmp_path, read_versions())
    verses = [verse for part in parts.values() for verse in part]
    assert len(verses) == len(set(verses)) > 5000
    at = parts["test"].index(43003016)
    old, new = ((tmp_path / f"test.{name}").read_text().splitlines() for name in (OLD, NEW))
    assert len(old) == len(new) == len(parts["test"])
    assert "For God so loved the world" in old[at]
    assert "For God so loved the world" in new[at]
    for verse, text in zip(parts["test"], old, strict=True):
        assert place(verse).startswith("John ")
        assert text == text.strip() != ""
        assert not set(text) & set('[]"`’æ')


def test_parts_share_no_book() -> None:
    books = [book for part in PARTS.values() for book in part.books]
    assert len(books) == len(set(books))


def test_a_missing_bible_is_told_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, f"pythonbible_{OLD}.plain_text_readers_bible", None)
    ran = refused(tmp_path, "demo", "--out", tmp_path / "demo")
    assert f"pythonbible-{OLD}" in ran.err
    assert "pip install 'tunesmith[demo]'" in ran.err
    with pytest.raises(Exception, match="demo --lists"):
        read_versions()


def test_the_demo_runs_from_lists_to_report(tmp_path: Path) -> None:
    ran = tunesmith("demo", "--lists", "--out", tmp_path / "demo")
    assert ran.code == 0, ran.err
    report = Path(ran.out.splitlines()[-1])
    assert report.name == "report.html"
    assert report.exists()
    for name in ("mert", "kbmira", "rm"):
        row = next(line for line in ran.out.splitlines() if line.startswith(f"{name} "))
        _, start, tuned, oracle, unseen, better, *_ = row.split()
        assert float(start) < float(tuned) < float(oracle)
        assert float(unseen) < float(better)
        assert f"demo/{name}.toml" in ran.err
        assert f"demo/{name}.toml" in {f"demo/{path}" for path in listing(tmp_path / "demo")}
    (tmp_path / "demo" / "rm" / "result.json").unlink()
    told = tunesmith("demo", "--lists", "--out", tmp_path / "demo", "--json")
    assert told.code == 0, told.err
    assert told.out.count("\n") == 1
    assert set(told.object["tuners"]) == {"mert", "kbmira", "rm"}
    for name, found in told.object["tuners"].items():
        row = next(line for line in ran.out.splitlines() if line.startswith(f"{name} "))
        assert f"{found['heldout']:.2f}" in row


@pytest.mark.parametrize("more", [pytest.param([], marks=bibles), ["--lists"]])
def test_the_demo_leaves_a_folder_that_holds_something_alone(
    tmp_path: Path, more: list[str]
) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "dev.ref").write_text("references of somebody else\n")
    assert "not empty" in refused(tmp_path, "demo", "--out", tmp_path, *more).err
    assert "not a folder" in refused(tmp_path, "demo", "--out", tmp_path / "mine", *more).err
