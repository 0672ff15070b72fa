"""Aligners on small texts: our own, those of other people, and what they refuse."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

import pytest

from tunesmith.errors import InputError
from tunesmith.training.aligners import ALIGNERS, Aligned, FastAlign, align, fast_align

SOURCE = ["das haus ist klein", "das buch ist alt", "ein haus", "ein altes buch"]
TARGET = ["the house is small", "the book is old", "a house", "an old book"]

needs_thot = pytest.mark.skipif(
    importlib.util.find_spec("thot") is None, reason="sil-thot is not installed"
)
needs_eflomal = pytest.mark.skipif(
    shutil.which("eflomal-align", path=str(Path(sys.executable).parent)) is None
    and shutil.which("eflomal-align") is None,
    reason="eflomal is not installed: pip install 'tunesmith[eflomal]'",
)


def texts(folder: Path, times: int = 20) -> tuple[Path, Path]:
    for name, lines in (("source", SOURCE), ("target", TARGET)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines) * times)
    return folder / "source", folder / "target"


@pytest.mark.parametrize(
    "aligner",
    [
        "fast_align",
        pytest.param("thot-fast_align", marks=needs_thot),
        pytest.param("hmm", marks=needs_thot),
        pytest.param("ibm1", marks=needs_thot),
        pytest.param("eflomal", marks=needs_eflomal),
    ],
)
def test_every_aligner_links_words_that_go_together(tmp_path: Path, aligner: str) -> None:
    out = Aligned(tmp_path / "f", tmp_path / "b")
    assert align(*texts(tmp_path), out, aligner)["aligner"] == aligner
    for path in (out.forward, out.backward):
        lines = path.read_text().splitlines()
        assert len(lines) == 80
        assert lines[2].split() == ["0-0", "1-1"]


def test_an_unknown_aligner_is_told_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no aligner named 'giza'") as caught:
        align(*texts(tmp_path), Aligned(tmp_path / "f", tmp_path / "b"), "giza")
    assert all(name in str(caught.value.remedy) for name in ALIGNERS)


def test_links_do_not_depend_on_threads_and_progress_is_told(tmp_path: Path) -> None:
    seen: set[str] = set()
    found = []
    for threads in (1, 2, 5):
        out = Aligned(tmp_path / f"f{threads}", tmp_path / f"b{threads}")
        told = fast_align(
            *texts(tmp_path, 3000),
            out,
            threads=threads,
            progress=lambda stage, done, total: seen.add(stage),
        )
        found.append((told, out.forward.read_bytes(), out.backward.read_bytes()))
    assert found[0] == found[1] == found[2]
    assert seen <= {"", "reading", "pairs of words", "passes over the text"}


def test_pairs_without_links_keep_their_line(tmp_path: Path) -> None:
    source, target = texts(tmp_path, 1)
    with source.open("a") as file:
        file.write("\n" + "wort " * 10_000 + "\nhaus\n")
    with target.open("a") as file:
        file.write("house\nhouse\n\n")
    out = Aligned(tmp_path / "f", tmp_path / "b")
    told = fast_align(source, target, out)
    assert (told["pairs"], told["skipped"]) == (7, {"an empty side": 2, "too long": 1})
    assert out.forward.read_text().endswith("\n\n\n\n")


def test_bad_text_is_named(tmp_path: Path) -> None:
    source, target = texts(tmp_path, 1)
    out = Aligned(tmp_path / "f", tmp_path / "b")
    target.write_bytes(target.read_bytes() + b"more\n")
    with pytest.raises(InputError, match=r"source:4: has 4 lines, but .*target has 5"):
        fast_align(source, target, out)
    target.write_bytes(b"a\nb\nc\n\xff\n")
    with pytest.raises(InputError, match=r"target:4: invalid UTF-8"):
        fast_align(source, target, out)
    assert not out.forward.exists()
    assert not out.backward.exists()


@pytest.mark.parametrize(
    "options",
    [{"iterations": 0}, {"alpha": 0.0}, {"null": 1.0}, {"tension": -1.0}, {"max_words": 70_000}],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="options of fast_align"):
        FastAlign(**options)  # type: ignore[arg-type]
