"""Learning from violations: pairs and their counts, learners, regimes, what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from twins.toy import POOR, make_world

from tunesmith import InputError, Result, tune
from tunesmith.cli import load
from tunesmith.decode.reaching import Reachability, in_words, reachability, tuning_sets
from tunesmith.decode.translation import Model
from tunesmith.learn import updates
from tunesmith.learn.online import Online, Regime, with_regime
from tunesmith.learn.selectors import Fix, Violations
from tunesmith.presets import make_tuner, preset_options
from tunesmith.runs import RunDirectory
from tunesmith.sources import Command, Live
from tunesmith.sources.pairs import Pairs
from tunesmith.spaces import Pools

METRIC = "bleu:tokenize=none"
UPDATES: list[Fix] = ["standard", "early", "max-violation", "unchecked"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("maxforce"))


@cache
def model(world: Path, kind: Any = "phrase", *templates: str) -> Model:
    return Model.load(world / "model", kind, named=templates)


def texts(world: Path, lines: int = 20) -> tuple[list[str], list[str]]:
    found = [(world / f"dev.{side}").read_text().splitlines()[:lines] for side in ("src", "tgt")]
    return found[0], found[1]


def source(world: Path, lines: int = 20, *templates: str, **settings: float) -> Live:
    sides = texts(world, lines)
    search = {"stack": 5, **settings}
    return Live(model(world, "phrase", *templates), *sides, settings=search, threads=1)


def tuner(**options: Any) -> Online:
    return cast(Online, make_tuner("maxforce", {"passes": 3, "rate": 0.01, **options}))


def learn(made: Live, chosen: Online, **more: Any) -> Result:
    return tune(
        made, "maxforce", METRIC, start=POOR["phrase"], tuner=chosen, threads=1, keep="last", **more
    )


def passes(made: Live, chosen: Online) -> list[dict[str, Any]]:
    """Return the events of passes."""
    events: list[dict[str, Any]] = []
    learn(made, chosen, listen=events.append)
    return [event for event in events if event["event"] == "epoch"]


# Learning


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize(
    "options",
    [
        {"rate": 0.05},
        {"learner": "mira", "c": 0.05},
        {"learner": "kbest-mira", "c": 0.05, "k": 3},
        {"rate": 0.05, "future": True},
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)
def test_every_update_and_learner_learns(world: Path, update: str, options: dict[str, Any]) -> None:
    chosen = cast(Online, make_tuner("maxforce", {"passes": 4, "update": update, **options}))
    found = learn(source(world), chosen)
    assert found.refused is None
    assert found.tuned > found.start + 2


def test_sparse_features_are_learnt(world: Path) -> None:
    found = learn(source(world, 20, "rule-id", "order"), tuner(rate=0.05))
    sparse = [name for name, weight in found.weights.items() if ":" in name and weight]
    assert len(sparse) > 10
    assert found.tuned > found.start + 2


@pytest.mark.parametrize("regime", ["batch=5", "shards=2,mix=2", "delay=2", "batch=4,shards=2"])
@pytest.mark.parametrize("options", [{"rate": 0.05}, {"learner": "mira", "c": 0.05}])
def test_regimes_are_those_of_all_online_tuners(
    world: Path, regime: str, options: dict[str, Any]
) -> None:
    chosen = cast(Online, make_tuner("maxforce", {"passes": 4, **options}))
    found = learn(source(world), cast(Online, with_regime(chosen, regime)))
    assert found.tuned > found.start + 2


@dataclass(frozen=True)
class Witness:
    """A perceptron that keeps what it was given."""

    seen: list[tuple[float, int]] = field(default_factory=list)

    def init(self, features: int, /) -> np.ndarray:
        return np.zeros(0)

    def rearrange(self, state: np.ndarray, places: Any, features: int, /) -> np.ndarray:
        return state

    def step(self, w: np.ndarray, state: np.ndarray, separate: Any, /) -> tuple[Any, Any]:
        rows = separate(w)
        for first, last in pairwise(rows["starts"]):
            ids, x = rows["ids"][first:last], rows["values"][first:last]
            self.seen.append((float(w[ids] @ x), len(rows["gains"])))
            w[ids] += 0.01 * x
        return w, state


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("future", [False, True])
def test_only_unchecked_updates_are_made_without_a_violation(
    world: Path, update: Fix, future: bool
) -> None:
    witness = Witness()
    chosen = tuner(update=update, future=future)
    seeing = replace(chosen, learner=replace(chosen.learner, update=updates.Custom(witness)))
    learn(source(world, 20, stack=2, pop_limit=3), seeing)
    margins = [margin for margin, _ in witness.seen]
    assert len(margins) > 10
    assert all(rows == 1 for _, rows in witness.seen)
    if update == "unchecked":
        assert max(margins) > 0.01
    else:
        assert max(margins) <= 1e-4


# Degenerate cases


def test_k_best_mira_with_one_is_mira() -> None:
    one = make_tuner("maxforce", {"learner": "kbest-mira", "k": 1})
    assert one == make_tuner("maxforce", {"learner": "mira"})
    assert one != make_tuner("maxforce", {"learner": "kbest-mira", "k": 2})


def weights_of(made: Live, chosen: Online) -> dict[str, float]:
    return dict(learn(made, chosen).weights)


def test_a_batch_of_one_is_serial(world: Path) -> None:
    """The mean of one row is the row, and the quadratic program of one row has a closed form."""
    made = source(world)
    mean = tuner()
    one_by_one = replace(mean, learner=replace(mean.learner, update=updates.Perceptron(0.01)))
    assert weights_of(made, mean) == weights_of(made, one_by_one)
    program = cast(Online, make_tuner("maxforce", {"passes": 3, "learner": "mira", "c": 0.02}))
    closed = replace(
        program, learner=replace(program.learner, update=updates.PassiveAggressive(0.02))
    )
    assert weights_of(made, program) == pytest.approx(weights_of(made, closed), abs=1e-7)


def test_the_rows_of_a_batch_are_averaged(world: Path) -> None:
    """One batch of all: the weights move by the mean of the violations at the start."""
    made = source(world)
    chosen = with_regime(tuner(passes=1, average="none"), "batch=20")
    translator = made.model.translator(POOR["phrase"], made.settings)
    wanted = Violations("max-violation", least=5)
    pools, contests = translator.violations(*texts(world), wanted)
    starts = pools.core.starts
    wrong = [place for place, contest in enumerate(contests) if contest.step is not None]
    change: dict[str, float] = {}
    for place in wrong:
        for sign, position in ((1.0, starts[place]), (-1.0, starts[place] + 1)):
            for name, value in pools.core.features(int(position)):
                change[name] = change.get(name, 0.0) + sign * value * 0.01 / len(wrong)
    found = weights_of(made, cast(Online, chosen))
    for name in made.model.decoder.dense:
        before = POOR["phrase"].get(name, 0.0)
        assert found.get(name, 0.0) == pytest.approx(before + change.get(name, 0.0), abs=1e-5)


class Mixed(Regime):
    """A regime that mixes even a single learner."""

    @property
    def mixings(self) -> int:
        return self.mix


def test_one_shard_that_is_mixed_is_serial(world: Path) -> None:
    made, chosen = source(world), tuner()
    assert weights_of(made, replace(chosen, regime=Mixed(mix=3))) == weights_of(made, chosen)


def test_visits_without_a_violation_count_in_the_average(world: Path) -> None:
    """The averaged perceptron counts how long weights survive."""
    made = source(world, 6)
    last, mean = (learn(made, tuner(passes=1, average=each, rate=1e-9)) for each in ("none", "all"))
    steps = passes(made, tuner(passes=1, rate=1e-9))[0]
    assert steps["updates"] > 0
    start = POOR["phrase"]
    names = made.model.decoder.dense
    moved = [
        np.array([found.weights.get(name, 0.0) - start.get(name, 0.0) for name in names])
        for found in (last, mean)
    ]
    assert 0 < np.abs(moved[1]).max() < np.abs(moved[0]).max()


# Pairs and what is counted


def test_each_reference_makes_a_pair_and_what_cannot_be_used_is_counted(world: Path) -> None:
    lines, references = texts(world, 3)
    several = [[references[0], f"the {references[0]}"], [references[1], "zebra"], ["", "a house"]]
    made = Live(model(world), lines, several, settings={"stack": 5}, threads=1)
    pairs = Pairs(made, Violations(least=None))
    assert pairs.lines == [0, 0, 1, 1, 2, 2]
    assert [text for (text,) in pairs.references] == [text for each in several for text in each]
    (event,) = passes(made, tuner(passes=1, prefixes=False))
    counts = event["counts"]
    assert counts["pairs"] == 6
    assert counts["used"] == counts["whole"] == 2
    assert counts["blank"] == 1
    words = sum(len(text.split()) for each in several for text in each)
    assert counts["words"] == words
    assert counts["used_words"] == sum(len(text.split()) for text in references[:2])
    (event,) = passes(made, tuner(passes=1, least=1))
    assert event["counts"]["whole"] == 2
    # The longest part of those that cannot be reached is used as well.
    assert event["counts"]["used"] > 2
    assert event["counts"]["used_words"] > counts["used_words"]


@pytest.mark.parametrize(
    ("settings", "key"), [({"max_words": 3}, "too_long"), ({"force_limit": 1}, "given_up")]
)
def test_what_is_given_up_is_counted_and_not_learnt_from(
    world: Path, settings: dict[str, float], key: str
) -> None:
    (event,) = passes(source(world, 4, **settings), tuner(passes=1))
    assert event["counts"][key] == event["counts"]["pairs"] == 4
    assert event["counts"]["used"] == event["updates"] == 0


def test_nothing_to_learn_from_is_refused(world: Path) -> None:
    lines, _ = texts(world, 3)
    made = Live(model(world), lines, ["zebra zebra"] * 3, threads=1)
    found = learn(made, tuner())
    assert found.refused is not None


def test_phrases_beyond_the_table_limit_are_no_gold(world: Path) -> None:
    """What the search cannot use cannot be learnt: the limit is that of the current weights."""
    lines, references = texts(world)
    counts = []
    for limit in (0, 1):
        translator = model(world).translator(
            POOR["phrase"], {"table_limit": limit}, tokenized=False
        )
        counts.append(sum(one.whole for one in translator.reach(lines, references)))
    assert counts[1] < counts[0]


# Reachability


@pytest.fixture(scope="module")
def found(world: Path) -> Reachability:
    lines, references = texts(world, 10)
    several = [[text, f"{text} zebra"] for text in references]
    told: list[int] = []
    translator = model(world).translator(POOR["phrase"])
    made = reachability(translator, lines, several, threads=1, tell=told.append)
    assert told[-1] == 20 and told == sorted(told)
    return made


def test_reachability_counts_pairs_and_words(found: Reachability) -> None:
    summary = found.summary(least=1)
    assert (summary["pairs"], summary["sentences"]) == (20, 10)
    assert summary["whole"] == len(found.whole()) == 10
    assert found.whole() == found.whole(once=True) == list(range(0, 20, 2))
    assert summary["used"] == len(found.used(1)) == 20
    # All but the last word of those that cannot be reached.
    assert summary["words"] - summary["reached_words"] >= 10
    assert summary["words"] == sum(pair.words for pair in found.pairs)
    assert found.used(1000) == found.whole()
    assert all(pair.states > 0 and pair.derivations >= 1 for pair in found.pairs)
    lengths = found.by_length(1, width=2)
    assert sum(group["pairs"] for group in lengths) == 20
    assert all(group["from"] + 1 == group["to"] for group in lengths)


def test_a_part_of_the_reachable_pairs_is_drawn_once_and_for_all(found: Reachability) -> None:
    part = found.part(4, seed=3)
    assert len(part) == 4
    assert part == found.part(4, seed=3) != found.part(4, seed=4)
    assert set(part) <= set(found.whole())
    assert found.part(1000) == found.whole()
    sources, references = found.texts(part)
    assert len(sources) == len(references) == 4
    pairs = [found.pairs[number] for number in part]
    assert references == [[pair.reference] for pair in pairs]


def test_the_tuning_sets_of_the_paper(found: Reachability, world: Path) -> None:
    sets = tuning_sets(found, found, least=1)
    assert {name: len(lines) for name, (lines, _) in sets.items()} == {
        "prefixes": 20,
        "whole": 10,
        "training": 10,
    }
    for lines, references in sets.values():
        made = Live(model(world), lines, references, tokenized=True)
        assert made.sources == lines and made.references == references


def test_counts_are_told_in_words(found: Reachability) -> None:
    told = in_words({**found.summary(), "given_up": 2, "too_long": 0, "blank": 1})
    assert "of 20 pairs" in told
    assert "2 given up" in told and "1 with an empty reference" in told and "pieces" not in told
    assert in_words(Reachability([]).summary()) == (
        "0 of 0 pairs (0%) and 0% of their words, 0 as a whole"
    )


# What is refused


def test_sources_that_cannot_be_forced_are_refused(world: Path) -> None:
    lines, references = texts(world, 3)
    lists = Pools.from_arrays([[1.0], [2.0]], [0, 2], ["f"], ["a", "b"], [["a"]])
    with pytest.raises(InputError, match=r"cannot be forced.*phrase-based"):
        tune(lists, "maxforce", METRIC)
    command = Command("decoder -w {weights} < {source}", lines, [[text] for text in references])
    with pytest.raises(InputError, match=r"cannot be forced.*phrase-based"):
        tune(command, "maxforce", METRIC, start={"f": 1.0})
    hiero = Live(model(world, "hiero"), lines, references)
    with pytest.raises(InputError, match=r"hierarchical.*--kind phrase"):
        tune(hiero, "maxforce", METRIC)
    for space in ("forest", "bins"):
        wide = replace(source(world, 3), space=space)
        with pytest.raises(InputError, match="leave --space out"):
            tune(wide, "maxforce", METRIC, start=POOR["phrase"])
    with pytest.raises(InputError, match=r"merged.*--merged"):
        tune(source(world, 3), "maxforce", METRIC, merged=True)
    with pytest.raises(InputError, match="forced to a reference"):
        model(world, "hiero").translator().reach(lines, references)
    with pytest.raises(InputError, match=r"no update named 'late'.*max-violation"):
        Violations(cast(Fix, "late"))
    with pytest.raises(InputError, match="2 sentences, but references for 1"):
        reachability(model(world).translator(), lines[:2], [["a"]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"update": "late"}, "maxforce.update is 'late'.*max-violation"),
        ({"k": 3}, "maxforce.k has no effect with learner=perceptron"),
        ({"c": 3}, "maxforce.c has no effect"),
        ({"learner": "mira", "rate": 3}, "maxforce.rate has no effect with learner=mira"),
        ({"prefixes": "false", "least": 3}, "no effect with prefixes=False.*prefixes=true"),
        ({"least": 0}, "least"),
        ({"batch": 3}, "--regime batch=3"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_tuner("maxforce", options)


# Runs


class Stopped(Exception):  # noqa: N818
    """What the listener raises."""


def test_a_stopped_run_resumes_to_the_same_weights(world: Path, tmp_path: Path) -> None:
    made, chosen = source(world, 8, "rule-id"), tuner(passes=4)
    wanted = learn(made, chosen, run=tmp_path / "whole")

    def events(name: str) -> Iterator[dict[str, Any]]:
        for event in RunDirectory(tmp_path / name).open().events():
            yield {key: event[key] for key in ("event", "score", "counts") if key in event}

    def stop(event: dict[str, Any]) -> None:
        if event["event"] == "epoch" and event["epoch"] == 2:
            raise Stopped

    with pytest.raises(Stopped):
        learn(made, chosen, run=tmp_path / "stopped", listen=stop)
    found = learn(made, chosen, run=tmp_path / "stopped", resume=True)
    assert dict(found.weights) == dict(wanted.weights)
    assert list(events("stopped")) == list(events("whole"))
    with pytest.raises(InputError, match="tuner"):
        learn(made, tuner(passes=4, update="early"), run=tmp_path / "whole", resume=True)


# The page


PAGE = (Path(__file__).parents[2] / "docs" / "maxforce.md").read_text(encoding="utf-8")


def test_the_example_of_the_page_runs(world: Path) -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "docs/maxforce.md", "exec"), names)
    assert names["learn"](world / "model", *texts(world), 5)


def test_every_option_and_count_is_described(world: Path) -> None:
    (event,) = passes(source(world, 3), tuner(passes=1))
    for name in (*preset_options("maxforce"), *event["counts"], *UPDATES):
        assert f"`{name}`" in PAGE, name
    told = {word for line in re.findall(r"\$ tunesmith.*", PAGE) for word in line.split()}
    assert {"reachability", "tune"} <= told
    for command in ("reachability", "tune"):
        parameters = load(command).params
        known = {option for parameter in parameters for option in parameter.opts}
        for line in re.findall(rf"\$ tunesmith {command}.*", PAGE):
            assert set(re.findall(r"--[a-z-]+", line)) <= known
