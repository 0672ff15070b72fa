"""`tunesmith experiment`: recipes listed, shown, run to a verdict, and resumed after a kill."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
from running import COMMAND, refused, tunesmith

from tunesmith.experiments import shipped

SLOW = """
title = "Long enough to be killed on the way"
tasks = ["sample-lists"]
metrics = ["bleu:tokenize=none"]
seeds = 1

[[systems]]
name = "kbmira"
preset = "kbmira"

[[systems]]
name = "mert {restarts}"
preset = "mert"
vary = { restarts = [300, 301, 302, 303] }

[[tables]]
kind = "scores"

[[claims]]
claim = "mert * >= kbmira on tests"
"""


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TUNESMITH_DATA", "TUNESMITH_SHARED"):
        monkeypatch.delenv(name, raising=False)


def test_list_names_every_recipe_with_what_it_reproduces() -> None:
    ran = tunesmith("experiment", "list", "--json")
    assert [each["name"] for each in ran.object["recipes"]] == list(shipped())
    assert "Table 6" in tunesmith("experiment", "list").out


def test_show_tells_systems_and_claims() -> None:
    ran = tunesmith("experiment", "show", "hasler2011-start", "--scale", "full", "--json")
    assert ran.object["seeds"] == 3
    assert ran.object["systems"] == {"preset": "mira-hildreth", "uniform": "mira-hildreth"}
    assert "uniform ~ preset on tests" in ran.object["claims"].values()


def test_a_recipe_runs_to_a_verdict_with_table_and_plot(tmp_path: Path) -> None:
    asked = ("experiment", "run", "hasler2011-start", "--scale", "smoke", "--out", tmp_path / "o")
    ran = tunesmith(*asked, "--latex", "--json")
    assert ran.code == 0, ran.err
    (outcome,) = ran.object["outcomes"]
    assert outcome["verdict"] in ("confirmed", "not confirmed")
    (claim,) = outcome["claims"]
    assert [each["seeds"] for each in claim["evidence"]] == [1]
    assert 0.0 <= claim["evidence"][0]["p"] <= 1.0
    folder = tmp_path / "o" / "hasler2011-start"
    assert json.loads((folder / "result.json").read_text("utf-8")) == outcome
    page = (folder / "README.md").read_text("utf-8")
    assert f"**{outcome['verdict']}**" in page
    assert "| uniform |" in page
    assert "it shows that the recipe runs, nothing more" in page
    (plot,) = outcome["plots"]
    assert ElementTree.fromstring((folder / plot).read_text("utf-8")).tag.endswith("svg")
    assert r"\toprule" in (folder / "tables.tex").read_text("utf-8")
    index = (tmp_path / "o" / "README.md").read_text("utf-8")
    assert "[hasler2011-start](hasler2011-start/README.md)" in index
    # Again: the same figures, and nothing is run.
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("o/cache/*/*/found.json")}
    again = tunesmith(*asked, "--json").object["outcomes"][0]
    assert again["tables"] == outcome["tables"]
    assert kept == {p: p.stat().st_mtime_ns for p in tmp_path.glob("o/cache/*/*/found.json")}


def test_a_recipe_without_its_data_is_not_testable_here(tmp_path: Path) -> None:
    ran = tunesmith("experiment", "run", "reranking-speech", "--out", tmp_path / "o")
    assert ran.code == 0
    assert "not testable here: there is no nbest-asr/" in ran.err.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "hasler"), "no recipe named 'hasler' (give a file, or one of eidelman2012-"),
        (("run", "none.toml"), "none.toml: no such recipe (check the path)"),
        (("run", "hasler2011-start", "--scale", "tiny"), "tiny"),
        (("run", "hasler2011-start", "--data", "nowhere"), "nowhere: no such folder"),
        (("run", "hasler2011-start", "--engine", "steam"), "steam"),
    ],
)
def test_what_cannot_be_run_is_refused(
    words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = refused(tmp_path, "experiment", *words)
    assert message in " ".join(ran.err.split())


def test_a_bad_recipe_stops_all_before_the_first_runs(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text(SLOW.replace("seeds = 1", "seeds = 0"))
    ran = refused(tmp_path, "experiment", "run", "reranking", bad, "--out", tmp_path / "o")
    assert "bad.toml: seeds: 0 is not a whole number" in " ".join(ran.err.split())


def test_a_killed_experiment_goes_on_where_it_was(tmp_path: Path) -> None:
    recipe = tmp_path / "slow.toml"
    recipe.write_text(SLOW)
    asked = ("experiment", "run", recipe, "--scale", "smoke", "--jobs", "1", "--json", "--out")
    runs = tmp_path / "killed" / "cache" / "runs"
    with subprocess.Popen(
        [*COMMAND, *map(str, (*asked, tmp_path / "killed"))],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        until = time.monotonic() + 60
        # One run is complete, another has begun.
        while not (
            (done := list(runs.glob("*/found.json"))) and len(list(runs.glob("*/run"))) > len(done)
        ):
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < until
            time.sleep(0.005)
        running.kill()
        running.communicate(timeout=60)
    assert running.returncode == -signal.SIGKILL
    assert not (tmp_path / "killed" / "slow").exists()
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*/found.json")}
    assert 0 < len(kept) < 5
    went_on = tunesmith(*asked, tmp_path / "killed")
    assert went_on.code == 0, went_on.err
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    undisturbed = tunesmith(*asked, tmp_path / "undisturbed")
    one, other = (each.object["outcomes"][0] for each in (went_on, undisturbed))
    assert one["tables"] == other["tables"]
    assert one["claims"] == other["claims"]
