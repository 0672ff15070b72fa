"""A small world that all tests of this folder may read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from commands import SEED
from recording import rows_of, write
from twins.toy import make_world

from tunesmith.demo.sample import write_sample

sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with text, a model of both kinds, weights, and lists to re-rank."""
    folder = make_world(tmp_path_factory.mktemp("world"))
    (folder / "lists").mkdir()
    write_sample(folder / "lists", count=40, size=10)
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Record what the tests did, if `make torture` asks for it."""
    write("tests", rows_of(terminalreporter.stats), [f"seed {SEED}"])
