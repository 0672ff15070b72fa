"""A model and a service that the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import Serving, serving, token_of, write_model

from tunesmith.serve import Feedback, Paths, Settings


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("served"))


@pytest.fixture(scope="session")
def shared(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """A service with a store, for tests that do not mind what others sent to it."""
    store = tmp_path_factory.mktemp("shared") / "store"
    paths = Paths(model, store=store)
    with serving(Settings(paths, feedback=Feedback(rate=100_000))) as running:
        yield running


@pytest.fixture(scope="session")
def tokens(shared: Serving) -> dict[str, str]:
    """A token of each scope."""
    store = shared.service.settings.paths.store
    assert store is not None
    return {scope: token_of(store, scope, scope) for scope in ("read", "write", "review")}
