"""Presets: options by name, read as the types that they declare."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Annotated, Any, Literal, get_type_hints

import numpy as np
import pytest
from twins.lists import learnable
from twins.quick import QUICK
from twins.training import task_of

from tunesmith import PRESETS, InputError, Pools, tune
from tunesmith.learn import selectors, updates
from tunesmith.learn.gains import Gain
from tunesmith.learn.online import Regime, with_regime
from tunesmith.learn.options import Doc, OnlyWith, Range, allowed, meaning, typed
from tunesmith.presets import explained, make_tuner, preset_options

NAMES = {
    "mert", "pro", "kbmira", "mira", "mira-hildreth", "mira-cp", "rm", "rm-cp", "adagrad", "arow",
    "sa-mert", "sa-mira", "sa-pro", "perceptron", "maxforce", "rampion", "risk", "random", "grid",
    "mbuu", "ebuu",
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
    assert make_tuner(name, as_text) == make_tuner(name)


def test_hyphens_and_underscores_are_the_same() -> None:
    options = {"gain-scale": "length", "passes": "3"}
    tuner: Any = make_tuner("mira", options)
    assert (tuner.learner.gain.scale, tuner.schedule.passes) == ("length", 3)
    assert make_tuner("mira", {"gain_scale": "length", "passes": 3}) == tuner


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


NUMBERS = [
    (name, key)
    for name in sorted(NAMES)
    for key, value in preset_options(name).items()
    if type(value) in (int, float)
]


@pytest.mark.parametrize(("name", "key"), NUMBERS)
def test_numbers_out_of_their_range_are_refused(name: str, key: str) -> None:
    marks = get_type_hints(PRESETS[name], include_extras=True)[key].__metadata__
    (span,) = [mark for mark in marks if isinstance(mark, Range)]
    assert preset_options(name)[key] in span
    # Without a bound the relative margin is MIRA.
    large = [] if key == "bound" else [np.inf, "inf", 1e300, 10**30]
    for wrong in (-1, "-1", -np.inf, np.nan, "nan", "many", *large):
        with pytest.raises(InputError, match=rf"{name}\.{key} is .*give a .*number .* up to"):
            make_tuner(name, {key: wrong})


@pytest.mark.parametrize(
    ("name", "option", "value", "allowed"),
    [
        ("mert", "tolerance", 0, "a number above 0 up to 1,000,000"),
        ("kbmira", "decay", 2, "a number from 0 up to 1"),
        ("mira-hildreth", "n", 0, "a whole number from 1 up"),
        ("mira-hildreth", "decrease", 1.5, "a number above 0 up to 1"),
        ("mira-hildreth", "rate", 0, "a number above 0 up to"),
        ("rm", "bound", 0, "a number above 0 up to inf"),
        ("adagrad", "k", 0, "a whole number from 1 up"),
        ("arow", "r", 0, "a number above 0 up"),
        ("grid", "points", 1, "a whole number from 2 up"),
    ],
)
def test_what_is_allowed_is_told(name: str, option: str, value: float, allowed: str) -> None:
    with pytest.raises(InputError) as refused:
        make_tuner(name, {option: value})
    assert f"{name}.{option} is {value} (give {allowed}" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "options", "k"),
    [
        *((name, {"k": 0}, 50_000) for name in ("mira", "mira-cp", "rm", "rm-cp")),
        *((name, {}, 500) for name in ("mira", "mira-cp", "rm", "rm-cp")),
        ("mira", {"oracle": "MB"}, 50_000),
        ("mira", {"oracle": "MB", "k": 20}, 50_000),
        ("mira", {"oracle": "LU", "k": 20}, 20),
        ("adagrad", {}, 200),
    ],
)
def test_a_live_decoder_is_asked_for_as_many_hypotheses_as_a_preset_needs(
    name: str, options: dict[str, Any], k: int
) -> None:
    tuner: Any = make_tuner(name, options)
    assert tuner.k == k


HOPES = ("mira", "mira-cp", "rm", "rm-cp")


@pytest.mark.parametrize("name", HOPES)
def test_hopes_and_fears_are_sought_among_unique_strings_and_in_whole_forests(name: str) -> None:
    for given, unique in (({}, True), ({"unique": "false"}, False)):
        tuner: Any = make_tuner(name, given)
        selector = tuner.learner.selector
        if name.startswith("rm"):
            assert (selector.k, selector.unique) == (500, unique)
            selector = selector.inner
        assert (selector.k, selector.unique, selector.whole_forests) == (500, unique, True)


def test_repeated_strings_do_not_use_up_the_candidates() -> None:
    """With k = 2, the third hypothesis counts where the first two are one string."""
    features = np.array([[3.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    pools = Pools.from_arrays(features, np.array([0, 3]), ["a", "b"], ["bad", "bad", "good"])
    pools.set_statistics("wer", np.array([[4.0, 5.0], [4.0, 5.0], [0.0, 5.0]]))
    task, start = task_of(pools, "wer"), np.array([1.0, 0.0])
    moved = {}
    for unique in (True, False):
        options = {"k": 2, "unique": unique, "oracle": "LU", "gain": "sentence", "passes": 1}
        tuner = make_tuner("mira", options)
        (epoch,) = tuner.epochs(task, start, 1, None)
        moved[unique] = epoch.weights[1] > 0.0
    assert moved == {True: True, False: False}


def test_kbmira_can_do_as_moses_does() -> None:
    tuner: Any = make_tuner("kbmira", {"c": 0.01, "history": "oracle", "average": "updates"})
    assert tuner.learner.gain == Gain("background", 0.999, "oracle", "background")
    assert tuner.schedule.average == "updates"


def test_adagrad_takes_batches_pairs_and_strengths_of_its_paper() -> None:
    tuner: Any = make_tuner("adagrad")
    assert (tuner.regime, tuner.k) == (Regime(batch=20), 200)
    assert tuner.learner.selector == selectors.Pairs(5000, 0.05, 15)
    assert tuner.learner.update == updates.AdaGrad("logistic", 0.02, 0.1, shrink="exact")


def test_the_perceptron_of_hildreth_learns_from_losses_not_only_from_mistakes() -> None:
    tuner: Any = make_tuner("mira-hildreth", {"learner": "perceptron"})
    assert tuner.learner.update == updates.Perceptron(0.01, mean=True, when="loss")
    # y+ is first, by less than the difference of the gains: the plain perceptron stops here.
    pools = Pools.from_arrays(
        np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0, 2]), ["a", "b"], ["good", "bad"]
    )
    pools.set_statistics("wer", np.array([[0.0, 5.0], [4.0, 5.0]]))
    moved = {}
    for name, options in (("mira-hildreth", {"learner": "perceptron"}), ("perceptron", {})):
        tuner = make_tuner(name, {**options, "gain": "sentence", "passes": 1})
        unscaled = replace(tuner, learner=replace(tuner.learner, spread=0.0, normalise=False))
        start = np.array([0.1, 0.0])
        (epoch,) = unscaled.epochs(task_of(pools, "wer"), start, 1, None)
        moved[name] = bool((epoch.weights != start).any())
    assert moved == {"mira-hildreth": True, "perceptron": False}


@pytest.mark.parametrize("name", ["rm", "rm-cp"])
def test_a_relative_margin_has_every_oracle_and_prediction(name: str) -> None:
    tuner: Any = make_tuner(name, {"oracle": "MB", "prediction": "PB", "by_cost": True})
    selector = tuner.learner.selector
    assert (selector.inner.oracle, selector.inner.prediction) == ("MB", "PB")
    assert selector.by_cost and tuner.k == 50_000


@pytest.mark.parametrize("name", ["pro", "rampion"])
def test_the_round_that_counts_is_the_best_or_the_last(name: str) -> None:
    pools = learnable(2)
    options: dict[str, Any] = {"rounds": 4, "take": "last"}
    if name == "rampion":
        options["eta"] = 0.3
    last = tune(pools, name, options=options, start={"quality": 1.0, "lm": 0.1}, threads=1)
    best = tune(
        pools,
        name,
        options=options | {"take": "best"},
        start={"quality": 1.0, "lm": 0.1},
        threads=1,
    )
    assert last.curve == best.curve
    assert last.tuned == last.curve[-1]
    assert best.tuned == max(best.curve[1:])
    assert best.weights != last.weights


@pytest.mark.parametrize("option", ["batch", "shards", "mix", "delay", "ordered", "stale"])
def test_a_regime_is_no_option_of_a_preset(option: str) -> None:
    for name, make in PRESETS.items():
        assert option not in preset_options(name), make
    with pytest.raises(InputError, match=f"no option '{option}'.*--regime {option}=2"):
        make_tuner("mira", {option: 2})


@pytest.mark.parametrize(
    ("regime", "wanted"),
    [
        ("shards=2,mix=5", Regime(shards=2, mix=5)),
        ("batch=7", Regime(batch=7)),
        ("delay=3", Regime(delay=3)),
        ("delay=3,ordered=false", Regime(delay=3, ordered=False)),
        ("delay=3,stale=gradient", Regime(delay=3, stale="gradient")),
    ],
)
def test_a_regime_changes_only_what_it_names(regime: str, wanted: Regime) -> None:
    tuner: Any = make_tuner("mira")
    assert with_regime(tuner, regime) == replace(tuner, regime=wanted)
    assert with_regime(tuner, None) is tuner
    stochastic: Any = make_tuner("adagrad")
    changed: Any = with_regime(stochastic, "shards=2")
    assert changed.regime == replace(stochastic.regime, shards=2)


@pytest.mark.parametrize(
    ("regime", "told"),
    [
        ("shards=0", "'shards=0' is no part of a regime"),
        ("shards=true", "'shards=true' is no part of a regime"),
        ("ordered=1", "'ordered=1' is no part of a regime"),
        ("batch=0", "'batch=0' is no part"),
        ("mix=-1", "'mix=-1' is no part"),
        ("delay=often", "'delay=often' is no part"),
        ("passes=3", "'passes=3' is no part"),
        ("ordered=maybe", "'ordered=maybe' is no part"),
        ("", "'' is no part"),
        ("mix=3", "mix without shards"),
        ("ordered=false", "ordered without a delay"),
        ("stale=gradient", "stale without a delay"),
        ("delay=2,stale=1", "'stale=1' is no part"),
        ("shards=2,delay=1", "both shards and a delay"),
    ],
)
def test_regimes_that_make_no_sense_are_refused(regime: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        with_regime(make_tuner("mira"), regime)


@pytest.mark.parametrize("preset", ["rm", "rm-cp", "mira-cp"])
def test_updates_that_select_again_have_no_stale_gradient(preset: str) -> None:
    with pytest.raises(InputError, match=r"chooses its constraints once.*give stale=lists"):
        with_regime(make_tuner(preset), "delay=2,stale=gradient")
    assert with_regime(make_tuner(preset), "delay=2,stale=lists")


@pytest.mark.parametrize("name", ["mert", "pro", "rampion", "risk", "random", "grid"])
def test_only_online_presets_have_a_regime(name: str) -> None:
    with pytest.raises(InputError, match="only online tuners have a regime"):
        with_regime(make_tuner(name), "shards=2")


def weights_of(**options: Any) -> list[list[float]]:
    task = task_of(learnable(1), "bleu")
    tuner = make_tuner("mira-hildreth", {"passes": 2, **options})
    return [epoch.weights.tolist() for epoch in tuner.epochs(task, np.full(4, 0.1), 1, None)]


def test_both_learners_of_hildreth_have_the_rate_of_the_paper() -> None:
    assert weights_of() == weights_of(rate=1.0) != weights_of(rate=0.01)
    either = {"learner": "perceptron"}
    assert weights_of(**either) == weights_of(**either, rate=0.01) != weights_of(**either, rate=1.0)


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("mira-hildreth", {"learner": "perceptron", "c": 0.1}, "c has no effect with learner="),
        ("mira-hildreth", {"learner": "perceptron", "scale-update": "yes"}, "scale_update has no"),
        ("mira", {"decay": 0.5}, r"decay has no effect with gain=context .*gain=background"),
        ("rm", {"decay": 0.5, "gain": "sentence"}, "decay has no effect with gain=sentence"),
        ("kbmira", {"decay": 0.5, "gain": "context"}, "decay has no effect with gain=context"),
        ("mira", {"history": "oracle"}, "history has no effect with gain=context"),
        ("adagrad", {"loss": "expected", "pairs": 5}, "pairs has no effect with loss=expected "),
        ("adagrad", {"loss": "expected", "samples": 5}, "samples has no effect"),
        ("adagrad", {"loss": "expected", "threshold": 0.5}, "threshold has no effect"),
        ("adagrad", {"alpha": 2.0}, r"alpha has no effect with loss=logistic.*use loss=expected"),
    ],
)
def test_options_without_effect_are_refused(name: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=rf"{name}\.{told}"):
        make_tuner(name, options)


def test_options_that_say_what_holds_anyway_are_taken() -> None:
    either = {"learner": "perceptron"}
    idle = {"c": 0.003, "scale_update": False}
    assert make_tuner("mira-hildreth", either | idle) == make_tuner("mira-hildreth", either)
    assert make_tuner("mira", {"decay": 0.9, "history": "1best"}) == make_tuner("mira")


def test_options_count_beside_the_values_that_they_need() -> None:
    online: Any = make_tuner("mira", {"decay": 0.5, "history": "oracle", "gain": "background"})
    assert online.learner.gain == Gain("background", 0.5, "oracle")
    expected: Any = make_tuner("adagrad", {"loss": "expected", "alpha": 2.0})
    assert expected.learner.selector == selectors.Expected(2.0)
    tempered: Any = make_tuner("risk", {"alpha": 2.0})
    assert tempered.alpha == 2.0
    ranking: Any = make_tuner("pro", {"samples": 300, "threshold": 0.1})
    assert ranking.selector == selectors.Pairs(300, 0.1, 50)


def test_every_option_is_explained() -> None:
    for name in NAMES:
        for told in explained(name).values():
            assert told.meaning and told.allowed
        for kind in get_type_hints(PRESETS[name], include_extras=True).values():
            for mark in getattr(kind, "__metadata__", ()):
                if isinstance(mark, OnlyWith):
                    assert mark.option in preset_options(name)
    mira = explained("mira")
    assert mira["oracle"].allowed == "M-C, LU, MB"
    assert mira["passes"][:2] == (20, "a whole number from 1 up to 1,000,000")
    assert mira["shuffle"].allowed == "true or false"
    assert mira["decay"].meaning.endswith("(gain=background)")
    assert "background" not in explained("risk")["alpha"].meaning
    assert explained("mira-hildreth")["rate"].allowed == "a number above 0 up to 1,000,000, or auto"
    assert explained("adagrad")["k"].meaning != mira["k"].meaning


def test_a_new_preset_needs_neither_ranges_nor_meanings(monkeypatch: pytest.MonkeyPatch) -> None:
    def plain(*, rate: float = 0.5, depth: int = 3, limit: float | None = None) -> Any:
        return rate, depth, limit

    monkeypatch.setitem(PRESETS, "plain", plain)
    make: Any = make_tuner
    assert make("plain", {"rate": "-2.5", "depth": "-7", "limit": "1"}) == (-2.5, -7, 1.0)
    assert make("plain", {"limit": "none"}) == (0.5, 3, None)
    for options, told in (
        ({"rate": "much"}, "plain.rate is 'much' .give a number.$"),
        ({"rate": "inf"}, "give a number"),
        ({"rate": "nan"}, "give a number"),
        ({"depth": "2.5"}, "plain.depth is '2.5' .give a whole number.$"),
        ({"depth": 2.5}, "give a whole number"),
        ({"limit": "x"}, "give a number, or auto"),
    ):
        with pytest.raises(InputError, match=told):
            make_tuner("plain", options)
    assert explained("plain")["rate"] == (0.5, "a number", "")


def test_a_type_says_what_an_option_means() -> None:
    count = Annotated[int, Range(1, 9), Doc("how often")]
    assert (allowed(count), meaning(count)) == ("a whole number from 1 up to 9", "how often")
    late = Annotated[count | None, OnlyWith("mode", ("slow", "late"))]
    assert allowed(late) == "a whole number from 1 up to 9, or auto"
    assert meaning(late) == "how often (mode=slow or late)"
    assert meaning(Annotated[count, Doc("how often at most")]) == "how often at most"
    with pytest.raises(InputError, match="from 1 up to 9"):
        typed("x", "10", late)
    mode = Annotated[Literal["slow", "late"], Doc("which")]
    assert (allowed(mode), meaning(mode), typed("x", "late", mode)) == (
        "slow, late",
        "which",
        "late",
    )
    with pytest.raises(TypeError, match="int, float, bool or a Literal"):
        typed("x", "a", list[str])


@pytest.mark.parametrize("text", ["true", "1", "Yes", "on"])
def test_words_for_yes_and_no(text: str) -> None:
    tuner: Any = make_tuner("mira", {"shuffle": text})
    assert tuner.schedule.shuffle is True
    opposite = {"true": "false", "1": "0", "Yes": "No", "on": "off"}[text]
    tuner = make_tuner("mira", {"shuffle": opposite})
    assert tuner.schedule.shuffle is False


def test_no_slack_is_written_as_zero_and_no_bound_as_infinity() -> None:
    tuner: Any = make_tuner("rm", {"c": 0, "bound": "inf"})
    assert tuner.learner.update == updates.PassiveAggressive(0.0)
    assert tuner.learner.selector.bound == np.inf


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_quick_options_of_these_tests_exist(name: str) -> None:
    assert set(QUICK[name]) <= set(preset_options(name))


@pytest.mark.parametrize("name", sorted(PRESETS))
def test_every_preset_says_where_it_differs_and_has_one_example(name: str) -> None:
    text = inspect.getdoc(PRESETS[name]) or ""
    assert text.count(">>> ") == 1, "one example, which the doctests run"
    assert "Deviation" in text or "a baseline" in text
