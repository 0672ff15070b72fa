"""The page about papers names files and tests that exist; and the analyses of papers by hand."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tunesmith.analysis import diversity, reordered
from tunesmith.cli.presets import as_options
from tunesmith.experiments.recipe import Recipe, System, Tabulated
from tunesmith.experiments.running import Found, metric_of
from tunesmith.experiments.store import Store, save_rows
from tunesmith.experiments.tables import Context, Filled, fill, refusals
from tunesmith.papers import PAPERS, find_paper

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
BLEU = "bleu:tokenize=none"
MECHANISMS, SETTINGS = PAGE.split("## Settings of `--as PAPER`")


def rows_of(text: str) -> list[list[str]]:
    """Return the cells of the tables in a text, without heads."""
    lines = text.splitlines()
    heads = {place - 1 for place, line in enumerate(lines) if line and set(line) <= set("| -")}
    return [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for place, line in enumerate(lines)
        if line.startswith("| ") and place not in heads and not set(line) <= set("| -")
    ]


ROWS = rows_of(MECHANISMS)


def test_every_paper_has_a_table() -> None:
    assert len(re.findall(r"^\| mechanism \| paper", PAGE, re.MULTILINE)) == 7
    assert len(ROWS) > 60
    assert all(len(row) == 5 for row in ROWS), [row for row in ROWS if len(row) != 5]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_files_and_tests_of_the_page_exist(row: list[str]) -> None:
    files = re.findall(r"`([^`]+)`", row[2])
    assert files, "no file"
    for file in files:
        assert (ROOT / file).is_file(), file
    tests = re.findall(r"`([^`:]+)::(\w+)`", row[4])
    assert tests, "no test"
    for file, name in tests:
        assert re.search(rf"\b(?:def|fn) {name}\(", (ROOT / file).read_text("utf-8")), name


@pytest.mark.parametrize("part", SETTINGS.split("\n### ")[1:], ids=lambda part: part.split()[0])
def test_every_setting_of_a_paper_has_a_source(part: str) -> None:
    """The page lists each setting of `--as PAPER` once, with the value that it has."""
    name = part.split()[0]
    listed: list[tuple[str, str]] = []
    for tuners, settings, source in rows_of(part):
        assert source, settings
        for tuner in re.findall(r"`([^`]+)`", tuners):
            listed += [(tuner, each) for each in re.findall(r"`([^`]+)`", settings)]
    wanted = [
        (tuner, option.removeprefix("--set "))
        for tuner, settings in find_paper(name).tuners.items()
        for option in as_options(settings)
    ]
    assert sorted(listed) == sorted(wanted)


def test_the_page_has_the_settings_of_all_papers() -> None:
    assert sorted(re.findall(r"^### (\S+)$", SETTINGS, re.MULTILINE)) == sorted(PAPERS)


def test_diversity_is_that_of_the_definition() -> None:
    texts = ["a b c a b", "a b d", "c a b c", "x y"]

    def d(one: str, other: str) -> int:
        y, z = one.split(), other.split()
        places = ((i, j) for i in range(len(y) - 1) for j in range(len(z) - 1))
        return -sum(y[i : i + 2] == z[j : j + 2] for i, j in places)

    pairs = [1 - 2 * d(y, z) / (d(y, y) + d(z, z)) for y, z in combinations(texts, 2)]
    assert diversity(texts, 2) == pytest.approx(sum(pairs) / len(pairs))


def test_the_better_word_order_is_that_of_the_reference() -> None:
    references = [["the man saw it"], ["a b c"], ["x y z"], ["p q r"], ["one", "two"]]
    left = ["the man saw it", "c a b", "y x z", "p q r", "one"]
    right = ["saw the man it", "a b c", "z y x", "p q r", "two"]
    found = reordered(left, right, references)
    assert (found.sentences, found.differ) == (5, 3)
    assert (found.left, found.right, found.neither) == (2, 1, 0)
    both = reordered(["b a c"], ["a c b"], [["a b c"]])
    assert (both.differ, both.neither) == (1, 1)


# -- tables of recipes -----------------------------------------------------------------------


def tabulated(folder: Path, asked: Tabulated, outputs: dict[str, list[str]]) -> Filled:
    """Return a table about systems with these outputs; two tests have the same references."""
    references = [["a b c d e"], ["f g h i j"], ["k l m n o"]]
    metrics = (BLEU, "ter")
    found = {}
    for name, texts in outputs.items():
        path = folder / name
        path.mkdir()
        rows = {metric: metric_of(metric).stats(texts, references) for metric in metrics}
        tests = ("one", "two")
        save_rows(path, {f"{test}\t{m}": rows[m] for test in tests for m in metrics})
        scores = {m: metric_of(m).score(np.asarray(rows[m]).sum(axis=0)) for m in metrics}
        facts = {"folder": str(path), "tests": dict.fromkeys(tests, scores)}
        found["task", name] = [Found("task", name, 1, facts)]
    recipe = Recipe(
        name="r",
        file="r.toml",
        title="",
        scale="smoke",
        reproduces=(),
        about="",
        tasks=("task",),
        metrics=metrics,
        seeds=1,
        systems=tuple(System(name, "none") for name in outputs),
        tables=(asked,),
        plots=(),
        claims=(),
    )
    # Neither table looks at the task itself.
    worlds = {"task": None}
    context = Context(recipe, worlds, found, Store(folder / "cache"))  # type: ignore[arg-type]
    (table,) = fill(context, asked)
    return table


def test_what_tuning_has_not_made_better_is_noted(tmp_path: Path) -> None:
    systems = [System(name, "mert", keep="last" if name == "b" else "best") for name in "abcd"]

    def run(name: str, reason: str | None, development: float) -> Found:
        return Found("t", name, 1, {"refused": reason, "start": 1.0, "development": development})

    runs = {
        "a": [run("a", None, 2.0), run("a", "kept", 1.0)],
        "b": [run("b", "worse", 0.5)],
        "c": [run("c", None, 2.0)],
        # Saved lists are not decoded again: the tuned weights are tested, however bad.
        "d": [run("d", "worse", 0.5)],
    }
    assert refusals([(each, runs[each.name]) for each in systems]) == [
        "no round was better than the start, which was kept, with a (1 of 2 seeds)",
        "the last round, which was kept, was no better than the start, with b",
        "the tuned weights score below the first of each list on the tuning lists, with d",
    ]


GOOD = ["a b c d e", "f g h i x", "q r s t u"]
BAD = ["q r s t u", "f g h i j", "q r s t u"]


def test_zero_sentences_and_the_better_of_two_outputs(tmp_path: Path) -> None:
    table = tabulated(tmp_path, Tabulated("sentences", "t"), {"good": GOOD, "bad": BAD})
    shares = {row["system"]: row.get("zero, %") for row in table.rows}
    assert shares["good"].values == (pytest.approx(100 / 3),)  # type: ignore[union-attr]
    assert shares["bad"].values == (pytest.approx(200 / 3),)  # type: ignore[union-attr]
    best = ["a b c d e", "f g h i j", "q r s t u"]
    references = [["a b c d e"], ["f g h i j"], ["k l m n o"]]
    wanted = metric_of(BLEU).corpus_score(best, references)
    (oracle,) = [row["oracle of two"] for row in table.rows if "oracle of two" in row]
    assert oracle.values == (pytest.approx(wanted),)  # type: ignore[union-attr]


def test_gains_are_means_over_tests_and_positive_where_better(tmp_path: Path) -> None:
    asked = Tabulated("gains", "t", options={"baseline": "good"})
    table = tabulated(tmp_path, asked, {"good": GOOD, "bad": BAD})
    (row,) = table.rows
    assert row["system"] == "bad"
    references = [["a b c d e"], ["f g h i j"], ["k l m n o"]]
    for metric, sign in ((BLEU, 1.0), ("ter", -1.0)):
        scores = [metric_of(metric).corpus_score(texts, references) for texts in (GOOD, BAD)]
        assert row[metric_of(metric).label] == pytest.approx(sign * (scores[0] - scores[1]))
        assert float(row[metric_of(metric).label]) > 0  # type: ignore[arg-type]
