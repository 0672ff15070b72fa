"""`--as PAPER`: the settings of the papers, and chains of tuners."""

from __future__ import annotations

from pathlib import Path

import pytest
from twins.lists import learnable
from twins.toy import POOR, make_world

from tunesmith import InputError, Weights, tune
from tunesmith.decode.translation import Model
from tunesmith.learn.online import Online, Regime
from tunesmith.learn.ranking import Ramp, Ranking
from tunesmith.learn.selectors import Bounded
from tunesmith.learn.updates import PassiveAggressive
from tunesmith.papers import PAPERS, find_paper, settings_of
from tunesmith.sources import Live
from tunesmith.tuning.chain import stages_of

METRIC = "bleu:tokenize=none"
WANTED = (
    *("eidelman2012", "hasler2011", "eidelman2013", "green2013", "cherry2012"),
    *("hopkins2011", "gimpel2012", "liu2012", "liu2014", "och2003"),
)


def test_every_paper_has_settings() -> None:
    assert sorted(PAPERS) == sorted(WANTED)


@pytest.mark.parametrize(
    ("paper", "preset"), [(name, preset) for name in WANTED for preset in PAPERS[name].tuners]
)
def test_settings_make_a_tuner(paper: str, preset: str) -> None:
    settings = settings_of(paper, preset)
    settings.tuner(preset)
    settings.on_lists().tuner(preset)


def test_relative_margin_is_the_papers() -> None:
    found = settings_of("eidelman2013", "rm").tuner("rm")
    assert isinstance(found, Online)
    selector = found.learner.selector
    assert isinstance(selector, Bounded)
    assert (selector.bound, selector.price, selector.k) == (1.0, 0.01, 500)
    assert found.learner.update == PassiveAggressive(0.01)
    assert found.learner.spread == 0.0
    assert found.regime == Regime(shards=15, mix=1)


def test_pro_makes_one_round_between_decodings_and_many_on_saved_lists() -> None:
    settings = settings_of("hopkins2011", "pro")
    live, saved = settings.tuner("pro"), settings.on_lists().tuner("pro")
    assert isinstance(live, Ranking) and isinstance(saved, Ranking)
    assert (live.rounds, saved.rounds, live.interpolate) == (1, 30, 0.1)
    assert live.context is False and live.take == "last"


def test_options_of_ones_own_replace_those_of_the_paper() -> None:
    settings = settings_of("hasler2011", "mira-hildreth")
    assert settings.with_options("mira-hildreth", {"c": "0.5"})["c"] == "0.5"
    # C is nothing to a perceptron, so the paper's is left out rather than refused.
    assert "c" not in settings.with_options("mira-hildreth", {"learner": "perceptron"})
    settings.tuner("mira-hildreth", {"learner": "perceptron"})


def test_gradients_of_green_et_al_are_computed_where_lists_are_decoded() -> None:
    found = settings_of("green2013", "adagrad").tuner("adagrad")
    assert isinstance(found, Online)
    assert found.regime == Regime(batch=20, delay=15, ordered=False, stale="gradient")


def test_saved_lists_have_no_delay() -> None:
    found = settings_of("green2013", "adagrad").on_lists()
    assert found.regime == "batch=20"


def test_unknown_papers_and_tuners_are_refused() -> None:
    with pytest.raises(InputError, match=r"no paper named 'och'.*och2003"):
        find_paper("och")
    with pytest.raises(InputError, match=r"och2003 has no settings for mira.*mert"):
        settings_of("och2003", "mira")


def test_equal_weights_keep_their_signs_and_what_is_fixed() -> None:
    found = Weights({"a": 2.0, "b": -0.1, "c": 1.0, "d": 0.5}).uniform({"c": 7.0, "e": 1.0})
    assert dict(found) == {"a": 0.25, "b": -0.25, "c": 7.0, "d": 0.25}


def test_start_weights_of_the_papers() -> None:
    own = Weights({"lm": 0.5, "words": -1.0, "unknown": 1.0})
    given = settings_of("hasler2011", "mira-hildreth").start_of(own, {"unknown": 1.0})
    assert dict(given) == {"lm": 0.1, "words": 0.1, "unknown": 1.0}
    equal = settings_of("green2013", "adagrad").start_of(own, {})
    assert equal["lm"] == -equal["words"] > 0
    assert settings_of("och2003", "mert").start_of(own, {}) is own


def test_costs_of_rampion_count_ten_times() -> None:
    found = settings_of("gimpel2012", "rampion").tuner("rampion")
    assert isinstance(found, Ramp)
    assert (found.gain.times, found.eta, found.rounds, found.passes) == (10.0, 1e-4, 10, 5)


def test_moses_goes_all_the_way_to_the_solution_of_pro() -> None:
    settings = settings_of("liu2014", "pro")
    found, again = settings.tuner("pro"), settings.on_lists().tuner("pro")
    assert isinstance(found, Ranking)
    assert (found.interpolate, found.rounds, settings.iterations) == (1.0, 1, 25)
    assert found == again


# Chains.


@pytest.mark.parametrize("names", ["mert,mert", "mert,", ",mira", ""])
def test_chains_have_different_tuners(names: str) -> None:
    with pytest.raises(InputError, match="no chain of tuners"):
        stages_of(names)


def test_options_of_a_chain_name_their_tuner() -> None:
    with pytest.raises(InputError, match=r"'c' is an option of no tuner in mert,mira.*mira.c"):
        stages_of("mert,mira", {"c": 1})
    with pytest.raises(InputError, match="mert has no option 'c'"):
        stages_of("mert,mira", {"mert.c": 1})


def test_a_regime_is_for_the_online_tuners_of_a_chain() -> None:
    first, second = stages_of("mert,mira", regime="shards=2")
    assert not isinstance(first.tuner, Online)
    assert isinstance(second.tuner, Online) and second.tuner.regime.shards == 2
    with pytest.raises(InputError, match="no tuner in mert,pro has a regime"):
        stages_of("mert,pro", regime="shards=2")


def test_a_chain_begins_with_what_was_found_before() -> None:
    lists = learnable(2)
    options = {"mert.restarts": 2, "kbmira.passes": 4}
    found = tune(lists, "mert,kbmira", "bleu", options=options)
    first = tune(lists, "mert", "bleu", options={"restarts": 2})
    second = tune(lists, "kbmira", "bleu", options={"passes": 4}, start=first.weights)
    assert [stage["tuned"] for stage in found.stages] == [first.tuned, second.tuned]
    best = second if second.refused is None else first
    assert dict(found.weights) == dict(best.weights) and found.tuner == best.tuner


def test_a_tuner_that_finds_nothing_better_leaves_the_weights_of_the_one_before() -> None:
    lists = learnable(2)
    options = {"mert.restarts": 4, "random.tries": 1}
    found = tune(lists, "mert,random", "bleu", options=options)
    assert found.stages[1]["refused"] is not None
    assert found.tuner == "mert" and found.refused is None
    assert found.tuned == found.stages[0]["tuned"]


def test_folds_of_a_chain_are_refused() -> None:
    with pytest.raises(InputError, match=r"folds of a chain.*held-out"):
        tune(learnable(2), "mert,kbmira", "bleu", folds=2)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("papers"))


def live(world: Path, *templates: str) -> Live:
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines()[:12] for side in ("src", "tgt")
    )
    model = Model.load(world / "model", "phrase", named=templates)
    return Live(model, lines, [[text] for text in references], k=20)


def test_only_the_last_tuner_of_a_chain_sees_sparse_features(world: Path, tmp_path: Path) -> None:
    source, run = live(world, "pairs"), tmp_path / "run"
    folders = []

    def listen(event: dict[str, object]) -> None:
        if event["event"] == "stage":
            folders.append(event["folder"])

    def learn(resume: bool) -> dict[str, float]:
        options = {"mert.restarts": 2, "mira.passes": 2}
        found = tune(
            source, "mert,mira", METRIC, options=options, start=POOR["phrase"], iterations=2,
            run=run, resume=resume, listen=listen,
        )  # fmt: skip
        return dict(found.weights)

    found = learn(False)
    assert folders == [run / "1-mert", run / "2-mira"]
    dense, sparse = (Weights.load(run / each / "weights.toml") for each in ("1-mert", "2-mira"))
    assert not any(":" in name for name in dense)
    assert any(":" in name for name in sparse) and dict(sparse) == found
    assert learn(True) == found


def test_a_chain_that_was_stopped_in_its_first_tuner_goes_on(world: Path, tmp_path: Path) -> None:
    def learn(run: Path, stop: bool = False, resume: bool = False) -> dict[str, float]:
        def listen(event: dict[str, object]) -> None:
            if stop and event["event"] == "epoch":
                raise KeyboardInterrupt

        options = {"mert.restarts": 2, "mira.passes": 2}
        found = tune(
            live(world), "mert,mira", METRIC, options=options, start=POOR["phrase"], iterations=2,
            run=run, resume=resume, listen=listen,
        )  # fmt: skip
        return dict(found.weights)

    whole = learn(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        learn(tmp_path / "run", stop=True)
    assert not (tmp_path / "run" / "2-mira").exists()
    assert learn(tmp_path / "run", resume=True) == whole
    with pytest.raises(InputError, match="there is no run to resume here"):
        learn(tmp_path / "none", resume=True)


def test_learning_may_begin_with_zero(world: Path) -> None:
    zero = dict.fromkeys(POOR["phrase"], 0.0)
    found = tune(live(world), "adagrad", METRIC, start=zero, iterations=3)
    assert found.refused is None and found.tuned > found.start
    with pytest.raises(InputError, match="all weights for features of this model are zero"):
        live(world).model.translator(zero)
