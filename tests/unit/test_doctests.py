"""The examples in the documentation run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import tunesmith

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(tunesmith.__path__, "tunesmith.")
    if not module.name.startswith(("tunesmith._", "tunesmith.cli"))
)
WITH_EXAMPLES = {
    "tunesmith.features",
    "tunesmith.metrics.base",
    "tunesmith.metrics.column",
    "tunesmith.metrics.registry",
    "tunesmith.select",
    "tunesmith.spaces",
    "tunesmith.templates",
    "tunesmith.tuning",
    "tunesmith.update",
}


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_say(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    assert found.attempted > 0 or name not in WITH_EXAMPLES, "its examples are gone"


def test_documented_modules_are_found() -> None:
    assert set(MODULES) >= WITH_EXAMPLES
