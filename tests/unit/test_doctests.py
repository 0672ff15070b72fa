"""The examples in the documentation run and give what they say."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import tunesmith

ROOT = Path(tunesmith.__file__).parent
MODULES = sorted(module.name for module in pkgutil.walk_packages(tunesmith.__path__, "tunesmith."))
# Modules that show how to use a part, or how to write one.
WITH_EXAMPLES = {
    "tunesmith.decode.templates",
    "tunesmith.engines.base",
    "tunesmith.experiments",
    "tunesmith.learn.online",
    "tunesmith.learn.selectors",
    "tunesmith.learn.updates",
    "tunesmith.lm",
    "tunesmith.metrics.base",
    "tunesmith.metrics.column",
    "tunesmith.metrics.registry",
    "tunesmith.spaces.forests",
    "tunesmith.spaces.pools",
    "tunesmith.structured",
    "tunesmith.tuning.loop",
    "tunesmith.weights",
}


@pytest.mark.parametrize("name", [name for name in MODULES if name != "tunesmith._core"])
def test_examples_give_what_they_say(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.failed == 0
    assert found.attempted > 0 or name not in WITH_EXAMPLES, "its examples are gone"


def test_every_file_is_a_module_that_is_found() -> None:
    files = {path.relative_to(ROOT).with_suffix("") for path in ROOT.rglob("*.py")}
    named = {".".join(("tunesmith", *file.parts)).removesuffix(".__init__") for file in files}
    assert named == {*MODULES, "tunesmith"} - {"tunesmith._core"}
    assert named > WITH_EXAMPLES
