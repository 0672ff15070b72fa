"""Parts of tuners are values: they print, compare, travel, and say where their kernel is."""

from __future__ import annotations

import dataclasses
import inspect
import pickle
from collections.abc import Iterator
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt
import pytest

from tunesmith import PRESETS
from tunesmith.learn import (
    baselines,
    gains,
    linesearch,
    local,
    online,
    ranking,
    risk,
    searchaware,
    selectors,
    updates,
)
from tunesmith.presets import make_tuner

Array = npt.NDArray[np.float64]
ROOT = Path(__file__).parents[2]
MODULES = (
    *(selectors, updates, gains, online, linesearch, local, ranking, risk, baselines),
    searchaware,
)


def choose(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
    return [(int(gains.argmax()), int(scores.argmax()))]


def choose_otherwise(scores: Array, gains: Array, seed: int) -> list[tuple[int, int]]:
    return []


@dataclasses.dataclass(frozen=True)
class Still:
    """A rule that never moves."""

    state: float = 0.0

    def init(self, features: int, /) -> Array:
        return np.full(1, self.state)

    def step(self, w: Array, state: Array, separate: Any, /) -> tuple[Array, Array]:
        return w, state


# Parts that cannot be made without others, or that are worth trying with other values.
HOPE_FEAR = selectors.HopeFear("LU", "PB", k=7, pinned=(0.1, -0.2, 1e-17), beta=0.4)
LEARNER = online.Learner(selector=HOPE_FEAR, update=updates.Hildreth(), gain=gains.Gain("context"))
PARTS: list[Any] = [
    HOPE_FEAR,
    selectors.HopeFear(),
    selectors.Lists(),
    selectors.Pairs(),
    selectors.Expected(),
    selectors.Bounded(HOPE_FEAR, inf, 0.1, 3),
    selectors.Bounded(selectors.Custom(choose)),
    selectors.Custom(choose),
    selectors.Violations("early", least=4),
    updates.PassiveAggressive(),
    updates.Hildreth(c=0.0),
    updates.CuttingPlane(),
    updates.Perceptron(),
    updates.Arow(linear=True),
    updates.AdaGrad(),
    updates.Sgd(anchor=(0.25, 1 / 3)),
    updates.Custom(Still()),
    gains.Gain(),
    gains.Gain("background", 0.999, "oracle", "length"),
    LEARNER,
    online.Schedule(),
    online.Regime(shards=3, mix=0),
    online.Online(learner=LEARNER),
    linesearch.LineSearch(),
    ranking.Ranking(selectors.Pairs()),
    ranking.Ranking(selectors.Pairs(), first=selectors.Pairs(9)),
    ranking.Ramp(),
    local.MarginUpdate(),
    local.ErrorUpdate(),
    risk.Risk(),
    searchaware.SearchAware(risk.Risk(), 10),
    baselines.RandomSearch(),
    baselines.Grid(),
]
TUNERS = {name: make_tuner(name) for name in PRESETS}
# Not by their repr: the address of a function is another in each process.
VALUES = [pytest.param(part, id=f"{type(part).__name__}{n}") for n, part in enumerate(PARTS)] + [
    pytest.param(tuner, id=name) for name, tuner in TUNERS.items()
]


def classes(module: ModuleType) -> list[type]:
    """Return the parts that a module defines."""
    return [
        made
        for _, made in inspect.getmembers(module, dataclasses.is_dataclass)
        if isinstance(made, type)
        and made.__module__ == module.__name__
        and not made.__name__.startswith("_")
    ]


# Modules of which all parts have a kernel; schedules and regimes are the driver's.
KERNELS = [made for module in MODULES if module is not online for made in classes(module)]


def inside(part: Any) -> Iterator[Any]:
    """Yield a part and all that it is made of."""
    yield part
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            yield from inside(value)


def written_in_python(part: Any) -> bool:
    return any(isinstance(each, selectors.Custom | updates.Custom) for each in inside(part))


def names_for(part: Any) -> dict[str, Any]:
    """Return the names that the expression of a part needs."""
    return {type(each).__name__: type(each) for each in inside(part)} | {"inf": inf}


def other(value: Any, kind: Any) -> Any:
    """Return another value for a field."""
    literal = next((each for each in get_args(kind) if get_origin(each) is Literal), None)
    if get_origin(kind) is not Literal and literal is not None:
        return other(value, literal)
    if get_origin(kind) is Literal:
        return next(each for each in get_args(kind) if each != value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        field = dataclasses.fields(value)[0]
        hint = get_type_hints(type(value))[field.name]
        return dataclasses.replace(value, **{field.name: other(getattr(value, field.name), hint)})
    if callable(value):
        return choose_otherwise
    if value is None:
        return (0.5,) if tuple[float, ...] in get_args(kind) else selectors.Pairs(3)
    if isinstance(value, bool):
        return not value
    if isinstance(value, tuple):
        return (*value, 0.5)
    assert isinstance(value, int | float), f"no other value is known for {value!r}"
    return 1.5 if value == inf else value + 1


def test_every_part_of_every_module_is_tried() -> None:
    tried = {type(part) for part in PARTS}
    assert {made for module in MODULES for made in classes(module)} == tried
    assert {type(each) for tuner in TUNERS.values() for each in inside(tuner)} <= tried


# A function has no expression.
PRINTED = [each for each in VALUES if not written_in_python(each.values[0])]


@pytest.mark.parametrize("part", PRINTED)
def test_a_part_prints_as_the_expression_that_makes_it(part: Any) -> None:
    again = eval(repr(part), names_for(part))
    assert again == part
    assert repr(again) == repr(part)


@pytest.mark.parametrize("part", VALUES)
def test_a_part_equals_one_that_is_made_alike_and_no_other(part: Any) -> None:
    alike = dataclasses.replace(part)
    assert alike is not part and alike == part and hash(alike) == hash(part)
    hints = get_type_hints(type(part))
    for field in dataclasses.fields(part):
        changed = other(getattr(part, field.name), hints[field.name])
        assert dataclasses.replace(part, **{field.name: changed}) != part, field.name


@pytest.mark.parametrize("part", VALUES)
def test_a_part_arrives_on_another_machine_as_it_was(part: Any) -> None:
    copy = pickle.loads(pickle.dumps(part))
    assert copy is not part and copy == part
    assert type(copy) is type(part)


@pytest.mark.parametrize("part", VALUES)
def test_a_part_cannot_be_changed(part: Any) -> None:
    for field in dataclasses.fields(part):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(part, field.name, None)


def test_no_two_presets_are_the_same_tuner() -> None:
    tuners = list(TUNERS.values())
    assert all(a != b for n, a in enumerate(tuners) for b in tuners[:n])


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_option_of_a_preset_changes_its_tuner(name: str) -> None:
    """Beside the values of other options that it needs."""
    beside: dict[str, Any] = {
        "decay": {"gain": "background"},
        "history": {"gain": "background"},
        "alpha": {"loss": "expected"} if name == "adagrad" else {},
    }
    if name == "maxforce":
        beside |= {key: {"learner": "kbest-mira"} for key in ("c", "margin", "k")}
        beside["rate"] = {"learner": "perceptron"}
    hints = get_type_hints(PRESETS[name])
    for option, parameter in inspect.signature(PRESETS[name]).parameters.items():
        given = beside.get(option, {})
        value = 0.5 if parameter.default is None else other(parameter.default, hints[option])
        if option == "gain_scale":
            value = "length"
        if isinstance(parameter.default, float) and 0.0 < parameter.default <= 1.0:
            value = parameter.default / 2
        assert make_tuner(name, {**given, option: value}) != make_tuner(name, given), option


def test_parts_with_a_kernel_make_one() -> None:
    for part in PARTS:
        if isinstance(part, online.Learner) or not hasattr(part, "kernel"):
            continue
        assert type(part.kernel()).__module__ == "tunesmith._core"


@pytest.mark.parametrize(
    "module", [selectors, updates, gains, linesearch, ranking, risk, baselines]
)
def test_every_class_names_the_file_of_its_kernel(module: ModuleType) -> None:
    for made in classes(module):
        assert exists(made), made


def test_a_learner_names_the_file_of_its_kernel() -> None:
    assert exists(online.Learner)


def exists(made: Any) -> bool:
    """Whether a part names a file of the core; the repository may not be there."""
    file: str = made.KERNEL
    assert file.startswith("core/") and file.endswith(".rs")
    if not (ROOT / "core").is_dir():
        pytest.skip("the repository is not here")
    return (ROOT / file).is_file()


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_a_preset_is_found_in_three_hops(name: str) -> None:
    """From its function to the classes that this names, and from these to their kernels."""
    source = inspect.getsource(PRESETS[name])
    found = list[type]()
    for part in inside(TUNERS[name]):
        made = type(part)
        assert made.__module__.startswith("tunesmith.learn.")
        if hasattr(made, "KERNEL") and made.__name__ in source:
            assert exists(made)
            found.append(made)
    assert found, "no class that the preset names has a kernel"
    if isinstance(TUNERS[name], online.Online):
        wanted = {online.Learner, *(type(part) for part in learner_parts(TUNERS[name]))}
        assert wanted <= set(found)


def learner_parts(tuner: Any) -> tuple[Any, Any, Any]:
    learner: online.Learner = tuner.learner
    return learner.selector, learner.update, learner.gain
