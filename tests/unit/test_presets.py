"""Presets: options by name, read as the types that they declare."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

import pytest
from twins.quick import QUICK

from tunesmith import PRESETS, InputError
from tunesmith.presets import make_tuner, preset_options

NAMES = {
    "mert", "pro", "kbmira", "mira", "mira-hildreth", "mira-cp", "rm", "rm-cp", "adagrad", "arow",
    "perceptron", "rampion", "risk", "random", "grid",
}  # fmt: skip


def test_every_published_tuner_has_a_name() -> None:
    assert set(PRESETS) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_preset_says_what_it_does_and_who_published_it(name: str) -> None:
    doc = inspect.getdoc(PRESETS[name]) or ""
    assert doc.splitlines()[0].endswith(".")
    if name not in ("random", "grid"):
        assert any(year in doc for year in ("19", "20")), "no reference"


@pytest.mark.parametrize("name", sorted(NAMES))
def test_every_option_has_a_default_that_can_be_written_as_text(name: str) -> None:
    options = preset_options(name)
    assert set(options) == set(get_type_hints(PRESETS[name])) - {"return"}
    as_text = {key: str(value) for key, value in options.items()}
    # Native parts have no equality; what is left must be the same.
    assert repr_of(make_tuner(name, as_text)) == repr_of(make_tuner(name))


def repr_of(tuner: Any) -> dict[str, Any]:
    plain = (int, float, str, bool)
    return {key: value for key, value in vars(tuner).items() if isinstance(value, plain)}


def test_hyphens_and_underscores_are_the_same() -> None:
    options = {"gain-scale": "length", "passes": "3"}
    tuner: Any = make_tuner("mira", options)
    assert (tuner.gain.gain_scale, tuner.passes) == ("length", 3)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("mirra", {}, "no tuner named 'mirra'.*choose one of .*mira"),
        ("mira", {"cc": 1}, "mira has no option 'cc'.*it has c, oracle"),
        ("mira", {"oracle": "hope"}, "mira.oracle is 'hope'.*M-C, LU, MB"),
        ("mira", {"passes": "many"}, "mira.passes is 'many'.*whole number"),
        ("mira", {"passes": "2.5"}, "whole number"),
        ("mira", {"passes": 2.5}, "whole number"),
        ("mira", {"passes": None}, "whole number"),
        ("mira", {"passes": -1}, "passes"),
        ("mira", {"k": "-3"}, "k"),
        ("mira", {"c": "big"}, "mira.c is 'big'.*a number"),
        ("mira", {"c": "nan"}, "a number"),
        ("mira", {"c": None}, "a number"),
        ("mira", {"shuffle": "maybe"}, "true or false"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        make_tuner(name, options)


@pytest.mark.parametrize("text", ["true", "1", "Yes", "on"])
def test_words_for_yes_and_no(text: str) -> None:
    tuner: Any = make_tuner("mira", {"shuffle": text})
    assert tuner.shuffle is True
    opposite = {"true": "false", "1": "0", "Yes": "No", "on": "off"}[text]
    tuner = make_tuner("mira", {"shuffle": opposite})
    assert tuner.shuffle is False


def test_no_slack_is_written_as_zero_and_no_bound_as_infinity() -> None:
    make_tuner("rm", {"c": 0, "bound": "inf"})


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_quick_options_of_these_tests_exist(name: str) -> None:
    assert set(QUICK[name]) <= set(preset_options(name))
