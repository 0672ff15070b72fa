"""A package of a user's own, installed, adds to the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from twins.toy import make_world

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    # A copy, because a build leaves files beside what it builds.
    copy, place = (tmp_path_factory.mktemp("plugin") / name for name in ("source", "installed"))
    shutil.copytree(EXAMPLE, copy, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--target", str(place))
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(copy)], check=True)
    return place


def run(installed: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(installed), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
    )


def test_metric_format_and_preset_of_a_package_are_found(installed: Path, tmp_path: Path) -> None:
    lists = tmp_path / "lists.tsv"
    lists.write_text("0\t-1\ta house\n0\t-1.2\tA HOUSE\n1\t-1\tthe dog\n1\t-1.3\tTHE DOG\n")
    references = tmp_path / "references"
    references.write_text("A HOUSE\nTHE DOG\n")
    said = run(
        installed,
        *("-m", "tunesmith", "rerank", "tune", str(lists), "-r", str(references)),
        *("--format", "shouting"),
        *("--metric", "shouting", "--tuner", "timid-mira", "--set", "c=10", "--json"),
    )
    assert said.returncode == 0, said.stderr
    found = json.loads(said.stdout)
    assert (found["start"], found["tuned"], found["tuner"]) == (0.0, 100.0, "timid-mira")
    assert found["weights"]["score"] < 0
    listed = run(installed, "-m", "tunesmith", "presets")
    assert "timid-mira" in listed.stdout and "hardly dares" in listed.stdout


def test_a_template_of_a_package_is_turned_on_by_name(installed: Path, tmp_path: Path) -> None:
    world = make_world(tmp_path)
    code = (
        "import sys; from tunesmith.decode import Model; "
        "model = Model.load(sys.argv[1], 'phrase', named=['capitals']); "
        "found = model.translator().nbest([open(sys.argv[2]).readline()], 1); "
        "print(*found.names)"
    )
    said = run(installed, "-c", code, str(world / "model"), str(world / "dev.src"))
    assert "capitals:kept" in said.stdout.split(), said.stderr


def test_without_the_package_its_names_are_refused(tmp_path: Path) -> None:
    said = run(tmp_path, "-m", "tunesmith", "presets", "timid-mira")
    assert said.returncode == 2
    assert "no tuner named 'timid-mira'" in said.stderr


def test_a_package_that_cannot_be_loaded_is_named(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise RuntimeError('no such thing')\n")
    info = tmp_path / "broken-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tunesmith.presets]\nbroken = broken\n")
    said = run(tmp_path, "-m", "tunesmith", "presets")
    assert said.returncode == 2
    assert "the package broken cannot be loaded: no such thing" in said.stderr
    assert "pip uninstall broken" in said.stderr
