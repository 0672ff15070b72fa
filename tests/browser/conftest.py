"""A headless Chromium for the tests of this folder, or a skip that says what is missing."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from sample_runs import add_analyses, write_run

from tunesmith.report import write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# Not for the whole session: while Playwright runs, no other test of this process may run an event
# loop.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("the Python package playwright is not installed")
    from render import chromium, find_chromium

    if find_chromium() is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def dense_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(write_run(tmp_path_factory.mktemp("dense") / "run"))


@pytest.fixture(scope="session")
def sparse_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("sparse") / "run"
    write_run(run, seeds=3, epochs=12, sparse=200)
    add_analyses(run)
    return write_report(run)
