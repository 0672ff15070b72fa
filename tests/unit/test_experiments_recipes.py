"""Recipes are read strictly: what is wrong has file, key and remedy."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from twins.recipe import BASE, written

from tunesmith.errors import InputError
from tunesmith.experiments import SCALES, find_recipe, find_task, read_recipe, shipped
from tunesmith.experiments.fields import at_scale
from tunesmith.experiments.tasks import find_tasks


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", shipped())
def test_every_recipe_of_the_package_can_be_read(name: str, scale: str) -> None:
    recipe = read_recipe(find_recipe(name), scale)
    assert recipe.claims and recipe.tables
    assert all(find_task(recipe, task).name == task for task in recipe.tasks)
    assert recipe.reproduces or "No paper" in recipe.about


def test_recipes_are_files_of_the_package() -> None:
    folder = resources.files("tunesmith.experiments")
    names = {each.name for each in (folder / "recipes").iterdir()}
    assert {f"{name}.toml" for name in shipped()} <= names
    assert len(shipped()) >= 18
    assert (folder / "tasks.toml").is_file()


def test_a_scale_without_a_value_takes_that_of_the_next_smaller_one() -> None:
    given = {"seeds": {"smoke": 1, "small": 3}, "k": [{"full": 9}], "other": {"a": 1}}
    assert at_scale(given, "smoke") == {"seeds": 1, "k": [9], "other": {"a": 1}}
    assert at_scale(given, "full") == {"seeds": 3, "k": [9], "other": {"a": 1}}


def test_varied_systems_have_names_and_options_of_their_own(tmp_path: Path) -> None:
    text = BASE.replace('name = "kbmira"\n', 'name = "kbmira {c}"\nvary = { c = [0.1, 0.01] }\n')
    text = text.replace("kbmira > first", "kbmira * > first")
    systems = read_recipe(written(tmp_path, text), "smoke").systems[1:]
    assert [each.name for each in systems] == ["kbmira 0.1", "kbmira 0.01"]
    assert [each.options for each in systems] == [{"c": 0.1}, {"c": 0.01}]


BAD = {
    "test that is not there": (
        "kbmira > first on tests",
        "kbmira > first on news",
        "claims: no test of sample-lists is called 'news'",
        "use tests, development or one of test",
    ),
    "column of a text": (
        "kbmira > first on tests",
        "kbmira > first on development in swing",
        "claims: `kbmira > first on development in swing` names a text, but a column belongs to",
        "leave `on development` out",
    ),
    "claim about itself": (
        "kbmira > first on tests",
        "kbmira > kbmira, kbm* on tests",
        "compares a system with itself",
        "name another",
    ),
    "margin below zero": (
        'claim = "kbmira > first on tests"',
        'claim = "kbmira >= first on tests"\nwithin = -0.2',
        "claims[1].within: -0.2 is below 0",
        "correct",
    ),
    "time below zero": (
        "seeds = 1",
        "seeds = 1\nseconds = -1",
        "seconds: -1 is below 0",
        "correct",
    ),
    "start from oneself": (
        'preset = "kbmira"',
        'preset = "kbmira"\nafter = "kbmira"',
        "systems: kbmira starts from its own weights: kbmira after kbmira",
        "let the first",
    ),
    "unknown template": (
        'preset = "kbmira"',
        'preset = "kbmira"\ntemplates = ["rule-idd"]',
        'systems[2].templates: no features are named "rule-idd"',
        "tunesmith features",
    ),
    "unknown key": ("seeds = 1", "seeds = 1\nseed = 2", "seed: unknown key", "there are"),
    "unknown key of a system": (
        'preset = "kbmira"',
        'preset = "kbmira"\nlike = "cherry2012"',
        "systems[2].like: unknown key",
        "there are",
    ),
    "unknown preset": (
        'preset = "kbmira"',
        'preset = "mire"',
        "systems[2].preset: no tuner named 'mire'",
        "choose one of none,",
    ),
    "unknown option": (
        'preset = "kbmira"',
        'preset = "kbmira"\noptions = { see = 1 }',
        "systems[2].options: kbmira has no option 'see'",
        "it has c,",
    ),
    "no seeds": ("seeds = 1\n", "", "seeds: is missing", "add seeds ="),
    "zero seeds": ("seeds = 1", "seeds = 0", "seeds: 0 is not a whole number from 1", "correct"),
    "text for a number": ("seeds = 1", 'seeds = "1"', "seeds: '1' is not a whole", "correct"),
    "number for a text": ('title = "Mine"', "title = 3", "title: 3 is not a text", "quotes"),
    "unknown metric": ("bleu:tokenize=none", "blue", "metrics: ", "bleu"),
    "unknown table": ('"scores"', '"score"', "tables[1].kind: 'score' is unknown", "use one of"),
    "unknown column": (
        'baseline = "first"',
        'more = ["speed"]',
        "tables[1].more: 'speed' is unknown",
        "use features",
    ),
    "gains of nothing": (
        'kind = "scores"',
        'kind = "gains"\n\n[[tables]]\nkind = "scores"',
        "tables[1].baseline: is missing",
        "whose gains",
    ),
    "no weights at the top": (
        'kind = "scores"',
        'kind = "weights"\ntop = 0\n\n[[tables]]\nkind = "scores"',
        "tables[1].top: 0 is not a whole number",
        "correct",
    ),
    "unknown system in a claim": (
        "> first on",
        "> last on",
        "claims: no system is called 'last'",
        "there are first, kbmira",
    ),
    "unknown regime": (
        'preset = "kbmira"',
        'preset = "kbmira"\nregime = "shards=x"',
        "systems[2].regime: 'shards=x' is no part of a regime",
        "give batch=N",
    ),
    "unknown metric of a system": (
        'preset = "kbmira"',
        'preset = "kbmira"\nmetric = "blue"',
        "systems[2].metric: unknown metric 'blue'",
        "choose one of bleu",
    ),
    "plot over nothing": (
        "[[claims]]",
        '[[plots]]\nkind = "options"\n\n[[claims]]',
        "plots[1].x: is missing",
        "name the option",
    ),
    "plot over an option that nothing has": (
        "[[claims]]",
        '[[plots]]\nkind = "options"\nx = "cc"\n\n[[claims]]',
        "plots: no system has a number for 'cc'",
        "name an option",
    ),
    "plot of passes over an option": (
        "[[claims]]",
        '[[plots]]\nkind = "passes"\nx = "c"\n\n[[claims]]',
        "plots[1].x: a plot of passes has none",
        "leave it out",
    ),
    "no claim": ("kbmira > first on tests", "kbmira", "claims[1].claim: 'kbmira' is no", "write"),
    "two of a name": ('name = "first"', 'name = "kbmira"', "two systems are called", "its own"),
    "not TOML": ("seeds = 1", "seeds =", "not TOML: ", "correct the file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_recipe_is_refused_with_file_key_and_remedy(name: str, tmp_path: Path) -> None:
    old, new, message, remedy = BAD[name]
    assert old in BASE
    path = written(tmp_path, BASE.replace(old, new, 1))
    with pytest.raises(InputError) as told:
        find_tasks(read_recipe(path, "smoke"))
    assert told.value.file == str(path)
    assert message in told.value.message
    assert told.value.remedy is not None and remedy in told.value.remedy


@pytest.mark.parametrize(
    ("more", "metric", "told"),
    [
        ("", " in ter", "first has no ter on the tuning text, only bleu:tokenize=none"),
        ('metric = "ter"', "", "kbmira has no bleu:tokenize=none on the tuning text, only ter"),
        ('development = "large"', "", "kbmira and first are tuned on different texts"),
    ],
)
def test_tuning_scores_of_other_metrics_and_texts_are_not_compared(
    more: str, metric: str, told: str, tmp_path: Path
) -> None:
    text = BASE.replace('["bleu:tokenize=none"]', '["bleu:tokenize=none", "ter"]')
    text = text.replace('preset = "kbmira"', f'preset = "kbmira"\n{more}')
    text = text.replace("kbmira > first on tests", f"kbmira > first on development{metric}")
    with pytest.raises(InputError) as refused:
        read_recipe(written(tmp_path, text), "smoke")
    assert told in refused.value.message and refused.value.remedy == "claim it on tests"


PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")


def test_the_page_lists_every_recipe_with_what_it_reproduces() -> None:
    for name, path in shipped().items():
        recipe = read_recipe(path, "smoke")
        told = "; ".join(recipe.reproduces) or f"{recipe.title} (in no paper)"
        assert f"| `{name}` | {told} |" in PAGE
