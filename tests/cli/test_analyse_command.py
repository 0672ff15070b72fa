"""`tunesmith analyse`, and tuning over bins from the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Ran, refused, tunesmith
from twins.toy import make_world

from tunesmith.analysis import diversity
from tunesmith.runs import RunDirectory

BEAM = ("--search", "stack=4", "--search", "pop_limit=20")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("analyse"))


def asked(world: Path) -> tuple[object, ...]:
    return (world / "model", "-s", world / "dev.src", "-r", world / "dev.tgt")


def poor(world: Path, kind: str = "phrase") -> tuple[object, ...]:
    return ("--kind", kind, "-w", world / f"{kind}.toml")


def rows(ran: Ran) -> list[dict[str, float]]:
    found: list[dict[str, float]] = ran.object["rows"]
    return found


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_a_wider_beam_finds_better_model_scores(world: Path, kind: str) -> None:
    ran = tunesmith(
        *("analyse", "beams", *asked(world), *poor(world, kind), "--beams", "1,4,30", "--json")
    )
    found = rows(ran)
    assert [row["beam"] for row in found] == [1, 4, 30]
    scores = [row["model_score"] for row in found]
    assert scores[0] < scores[-1] and scores == sorted(scores)


def test_the_score_of_a_beam_is_that_of_the_translations(world: Path, tmp_path: Path) -> None:
    settings = ("--search", "stack=4", "--search", "pop_limit=40")
    ran = tunesmith("analyse", "beams", *asked(world), *poor(world), "--beams", "4", "--json")
    out = tmp_path / "out"
    translated = tunesmith(
        *("translate", world / "model", *poor(world), "--input", world / "dev.src", *settings)
    )
    out.write_text(translated.out)
    score = tunesmith(
        *("score", out, "-r", world / "dev.tgt", "-m", "bleu:tokenize=none", "--json")
    ).object
    assert rows(ran)[0]["score"] == pytest.approx(score["bleu:tokenize=none"], abs=1e-6)


def test_lists_have_oracles_and_diversity(world: Path) -> None:
    command = ("analyse", "lists", *asked(world), *poor(world))
    (short,), (long,) = (rows(tunesmith(*command, "--nbest", n, "--json")) for n in (2, 30))
    assert short["score"] == long["score"] <= short["oracle"] <= long["oracle"]
    assert long["worst"] < long["score"]
    assert 0 < short["diversity"] < long["diversity"] < 1


def test_bins_and_time_of_a_run_are_in_its_report(world: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    tuned = tunesmith(
        *("tune", *asked(world), *poor(world), "-t", "sa-mert", "--set", "restarts=2"),
        *("--epochs", 2, "--run", run, *BEAM, "--json"),
    ).object
    events = [event for event in RunDirectory(run).events() if event["event"] == "epoch"]
    assert len(events) == 2 and all(event["score_bins"] > 0 for event in events)
    ran = tunesmith("analyse", "bins", *asked(world), "--run", run, *BEAM, "--json")
    (row,) = rows(ran)
    assert row["final"] == pytest.approx(tuned["tuned"]) and row["every"] != row["final"]
    assert tunesmith("analyse", "time", run, "--json").object["rows"][0]["tuner"] == "sa-mert"
    tunesmith("report", run)
    page = (run / "report.html").read_text()
    assert "Bins of the search" in page and "All bins" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--partial", "bleu"), "are about bins"),
        (("--ways", "3"), "are about bins"),
        (("-t", "sa-mert", "--partial", "bleu", "-m", "chrf"), "BLEU only, not for chrf"),
        (("-t", "sa-mert", "--space", "list"), "learns from bins, not from lists"),
        (("-t", "sa-mira", "--regime", "batch=3"), "regime"),
    ],
)
def test_options_of_bins_that_make_no_sense_are_refused(
    world: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    ran = refused(tmp_path, "tune", *asked(world), "-o", tmp_path / "w.toml", *words)
    assert message in ran.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("beams", "--beams", "0"), "a beam of 0"),
        (("beams", "--beams", "x"), "--beams x"),
        (("lists", "--metric", "blue"), "blue"),
        (("bins", "--run", "nowhere"), "nowhere"),
    ],
)
def test_bad_analyses_are_refused(
    world: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    ran = refused(tmp_path, "analyse", words[0], *asked(world), *words[1:])
    assert message in ran.err


@given(texts=st.lists(st.text("ab ", max_size=12), min_size=2, max_size=5), n=st.integers(1, 3))
def test_diversity_lies_between_0_and_1(texts: list[str], n: int) -> None:
    found = diversity(texts, n)
    assert found is None or -1e-12 <= found <= 1 + 1e-12
    same = diversity([texts[0]] * 3, n)
    assert same is None or same == 0.0
    assert diversity(["a b c", "x y z"], 2) == 1.0
