"""The examples in the metrics' documentation run as printed."""

from __future__ import annotations

import doctest

import pytest

from tunesmith.metrics import base, column, registry


@pytest.mark.parametrize("module", [base, column, registry], ids=lambda module: module.__name__)
def test_examples(module: object) -> None:
    found = doctest.testmod(module)  # type: ignore[arg-type]
    assert found.attempted > 0
    assert found.failed == 0
