"""`tunesmith simulate` on a toy model, its measurements and a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import tunesmith
from twins.toy import make_world


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("simulate"))


def test_measurements_of_a_model_can_be_replayed(world: Path, tmp_path: Path) -> None:
    text = "-s", world / "dev.src", "-r", world / "dev.tgt"
    few = "--workers", "1,4", "--json"
    ran = tunesmith("simulate", world / "model", *text, *few, "--save", tmp_path / "m.json")
    assert ran.code == 0, ran.err
    known = json.loads((tmp_path / "m.json").read_text())
    assert len(known["decode_seconds"]) == ran.object["sentences"] == 40
    assert all(known[name] > 0 for name in ("step_seconds", "update_bytes", "list_bytes"))
    again = tunesmith("simulate", "--measurements", tmp_path / "m.json", *few)
    assert again.object == ran.object
    assert len(ran.object["predicted"]) == 8
    longer = tunesmith(
        "simulate", "--measurements", tmp_path / "m.json", "--sentences", 4000, "--regime", "mixing"
    )
    assert longer.code == 0 and "4,000 sentences" in longer.out


def test_the_epochs_of_a_run_can_be_replayed(world: Path, tmp_path: Path) -> None:
    text = "--source", world / "dev.src", "-r", world / "dev.tgt"
    more = "-t", "mira", "--epochs", 1, "--run", tmp_path / "run"
    assert tunesmith("tune", world / "model", *text, *more).code in (0, 1)
    ran = tunesmith("simulate", "--run", tmp_path / "run", "--sentences", 100, "--json")
    assert ran.code == 0, ran.err
    assert ran.object["measured"]["decode_seconds"] > 0
    missing = tunesmith("simulate", "--run", tmp_path / "none")
    assert missing.code == 2 and "there is no run here" in missing.err


def test_idle_options_are_refused(world: Path, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('{"decode_seconds": [1.0]}')
    known = "simulate", "--measurements", tmp_path / "m.json"
    for words, message in (
        (["--regime", "mini-batch", "--mix", 3], "--mix belongs to mixing"),
        (["--regime", "mixing", "--batch", 3], "--batch belongs to mini-batch"),
        (["--source", "x"], "belong to a model"),
        (["--regime", "x"], "use one of mixing"),
    ):
        ran = tunesmith(*known, *words)
        assert ran.code == 2 and message in ran.err
    assert tunesmith("simulate").code == 2
