"""Workers that share no memory with the driver give the same weights to the bit."""

from __future__ import annotations

import gc
import itertools
import pickle
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from twins.lists import METRICS, Array, WordOverlap, counted, learnable
from twins.pickling import Pickling, sent
from twins.quick import ON_LISTS, QUICK
from twins.toy import POOR, make_world
from twins.training import task_of

from tunesmith import Forests, Pools, Weights, get_metric, tune
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.spread import Spread
from tunesmith.decode.translation import Model
from tunesmith.engines import THREADS, Engine, Worker
from tunesmith.engines.dealing import BLOCKS
from tunesmith.errors import InputError
from tunesmith.formats.base import Report
from tunesmith.learn.online import Online, with_regime
from tunesmith.learn.ranking import Ranking
from tunesmith.learn.shares import Share
from tunesmith.learn.task import Task, Tuner
from tunesmith.lm import estimate
from tunesmith.presets import make_tuner
from tunesmith.sources import Live
from tunesmith.sources.live import SpaceName
from tunesmith.spaces import Bins, Elsewhere, Spaces
from tunesmith.training.rules import RuleTable, export_cdec, export_moses
from tunesmith.tuning.rounds import Following

START = np.array([0.002, 0.05, -0.03, 0.04])
LIVE = ("mira", "mira-hildreth", "rm-cp", "adagrad", "perceptron")
METRIC = "bleu:tokenize=none"


def split(tuner: Tuner) -> Tuner:
    """Return a tuner that several workers can share, if it is one."""
    return with_regime(tuner, "shards=2,mix=2") if isinstance(tuner, Online) else tuner


def epochs(tuner: Tuner, task: Task, engine: Engine) -> list[Array]:
    found = replace(task, engine=engine)
    return [epoch.weights for epoch in tuner.epochs(found, START, 3, None)]


def same_for_all_engines(tuner: Tuner, task: Task, more: Sequence[int] = ()) -> None:
    """One worker and several give the weights of the threads, and all of them are asked."""
    for workers, chosen in ((1, tuner), (2, split(tuner)), *((each, tuner) for each in more)):
        engine = Pickling(workers)
        found, wanted = (epochs(chosen, task, each) for each in (engine, THREADS))
        assert len(wanted) > 0 and not np.array_equal(wanted[-1], START)
        assert np.array_equal(found, wanted)
        assert len(engine.asked) == workers and engine.asked[0]
        if isinstance(chosen, Online):
            assert all("_walk" in questions for questions in engine.asked)
        elif getattr(chosen, "shared", False):
            assert all(questions == engine.asked[0] for questions in engine.asked)


def test_all_workers_share_the_work_of_most_batch_tuners() -> None:
    shared = {preset for preset in ON_LISTS if getattr(make_tuner(preset), "shared", False)}
    assert shared == {"mert", "pro", "risk", "random", "grid"}


def as_they_are(lists: Pools) -> Pools:
    return lists


def as_bins(lists: Pools) -> Bins:
    """Return the lists as bins of half as many lines."""
    return Bins.of_lists(lists, (np.arange(lists.sentences) // 2).tolist())


SPACES = pytest.mark.parametrize(
    "spaces", [as_they_are, Forests.of_lists, as_bins], ids=["lists", "forests", "bins"]
)


@pytest.mark.parametrize("preset", ON_LISTS)
@SPACES
def test_every_preset_learns_the_same_apart(preset: str, spaces: Callable[[Pools], Spaces]) -> None:
    task = task_of(spaces(learnable(2, empty=[3])), "bleu", -5.0, 5.0)
    same_for_all_engines(make_tuner(preset, QUICK[preset]), task)


@pytest.mark.parametrize("preset", ["mert", "pro", "risk", "random", "grid"])
@SPACES
def test_more_workers_than_lines_learn_the_same(
    preset: str, spaces: Callable[[Pools], Spaces]
) -> None:
    """Four workers have several blocks, of forty some have nothing at all."""
    task = task_of(spaces(learnable(3, empty=[3, 11], sentences=14)), "bleu")
    same_for_all_engines(make_tuner(preset, QUICK[preset]), task, (4, 40))


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_every_metric_reaches_the_workers(metric: str) -> None:
    task = task_of(learnable(2), METRICS[metric])
    for preset in ("kbmira", "mert"):
        same_for_all_engines(make_tuner(preset, QUICK[preset]), task)


@pytest.mark.parametrize("preset", ["mert", "pro", "risk", "random", "grid"])
@pytest.mark.parametrize("spaces", [as_they_are, as_bins], ids=["lists", "bins"])
def test_sums_of_fractions_are_the_same_for_any_number_of_workers(
    preset: str, spaces: Callable[[Pools], Spaces]
) -> None:
    """More lines than blocks, and statistics whose sum depends on their order."""
    lists = learnable(4, sentences=BLOCKS + 150, size=4, empty=[7, BLOCKS])
    metric = get_metric("column:worth")
    made = spaces(lists)
    assert isinstance(made, Pools)
    made.set_statistics(metric, fractions(made.hypotheses))
    same_for_all_engines(make_tuner(preset, QUICK[preset]), task_of(made, metric), (3, 4))


def fractions(count: int) -> Array:
    """Return statistics of a mean that are no whole numbers, of sizes that differ by far."""
    rng = np.random.default_rng(6)
    values = rng.normal(size=count) * 10.0 ** rng.integers(-3, 3, count)
    return np.stack([values, np.ones(count)], axis=1)


@pytest.mark.parametrize("objective", ["sentence", "corpus"])
def test_both_objectives_of_risk_are_the_same_apart(objective: str) -> None:
    task = task_of(learnable(2, empty=[3]), "bleu")
    tuner = make_tuner("risk", {**QUICK["risk"], "objective": objective})
    same_for_all_engines(tuner, task, (3,))


def test_pairs_in_the_context_of_the_corpus_are_the_same_apart() -> None:
    task = task_of(learnable(2, empty=[3]), "bleu")
    tuner = make_tuner("pro", QUICK["pro"])
    assert isinstance(tuner, Ranking)
    same_for_all_engines(replace(tuner, context=True), task, (3,))


def test_ready_made_statistics_reach_the_workers() -> None:
    """They cannot be computed again: there are no references."""
    task = task_of(counted(np.random.default_rng(1), [5] * 8, 4), "wer")
    same_for_all_engines(make_tuner("mira", QUICK["mira"]), task)


def test_statistics_of_a_metric_that_is_named_by_its_address_reach_the_workers() -> None:
    metric = Nameless()
    lists = learnable(2)
    rows = lists.table(WordOverlap()).rows()
    bare = Pools(lists.core)
    bare.set_statistics(metric, rows)
    assert hex(id(metric))[2:] in repr(metric)
    same_for_all_engines(make_tuner("mira", QUICK["mira"]), task_of(bare, metric))


class Nameless(WordOverlap):
    """A metric without a repr of its own."""

    __repr__ = object.__repr__


def test_bins_reach_the_workers() -> None:
    lists = learnable(2)
    lines = (np.arange(lists.sentences) // 2).tolist()
    bins = Bins.of_lists(lists, lines)
    copy = sent(bins)
    assert isinstance(copy, Bins) and copy.partial is bins.partial
    assert copy.groups.tolist() == lines and copy.last.tolist() == [1, 3, 5, 7, 9, 11]
    same_for_all_engines(make_tuner("kbmira", QUICK["kbmira"]), task_of(bins, "bleu"))


def test_more_workers_than_learners_and_more_learners_than_workers() -> None:
    task = task_of(learnable(2), "bleu")
    tuner = make_tuner("mira", QUICK["mira"])
    for regime, workers in (("batch=1", 3), ("shards=3,mix=0", 2), ("shards=3,mix=4", 5)):
        chosen = with_regime(tuner, regime)
        found, wanted = (epochs(chosen, task, each) for each in (Pickling(workers), THREADS))
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("preset", ON_LISTS)
def test_a_run_that_stopped_goes_on_with_other_workers(preset: str) -> None:
    task, tuner = task_of(learnable(2), "bleu"), split(make_tuner(preset, QUICK[preset]))
    whole = list(tuner.epochs(task, START, 3, None))
    for done in {1, len(whole) - 1} - {0}:
        apart = replace(task, engine=Pickling(2))
        rest = list(tuner.epochs(apart, START, 3, whole[done - 1].state))
        assert [each.number for each in rest] == [each.number for each in whole[done:]]
        for found, wanted in zip(rest, whole[done:], strict=True):
            assert np.array_equal(found.weights, wanted.weights)


def holds(worker: Worker) -> int:
    """Return how many sentences a worker holds."""
    task: Task = worker.share
    return task.spaces.sentences


def test_a_worker_holds_the_task_and_engines_in_it_are_threads() -> None:
    """A worker that asks its own crew must not send the task on to others."""
    task = replace(task_of(learnable(2), "bleu"), engine=Pickling(2))
    assert task.crew.ask_all(holds, [(), ()]) == [12, 12]
    copy = sent(task)
    assert copy.engine == THREADS
    assert copy.evaluate(START) == task.evaluate(START)


def hypotheses(worker: Worker) -> int:
    """Return how many hypotheses a worker holds."""
    task: Task = worker.share
    return task.spaces.hypotheses


def has(worker: Worker) -> tuple[list[int], int, int]:
    """Return the numbers of the lists in a worker's share, and how many lists and hypotheses."""
    share: Share = worker.share
    return share.numbers.tolist(), share.task.spaces.sentences, share.task.spaces.hypotheses


@SPACES
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_share_holds_its_own_lists_only(spaces: Callable[[Pools], Spaces], workers: int) -> None:
    """Each list is in one share, lines stay together, and shares are about as large."""
    whole = spaces(learnable(2, sentences=30, empty=[3]))
    task = replace(task_of(whole, "bleu"), engine=Pickling(workers))
    answers = task.shares.ask(has)
    held = [number for numbers, _, _ in answers for number in numbers]
    assert sorted(held) == list(range(30))
    assert [count for _, count, _ in answers] == [len(numbers) for numbers, _, _ in answers]
    assert sum(count for _, _, count in answers) == whole.hypotheses
    lines = [set(whole.groups[numbers].tolist()) for numbers, _, _ in answers]
    assert sum(map(len, lines)) == whole.lines
    assert max(map(len, lines)) - min(map(len, lines)) <= 1


@SPACES
@pytest.mark.parametrize("workers", [2, 3])
def test_shares_have_about_as_many_hypotheses(
    spaces: Callable[[Pools], Spaces], workers: int
) -> None:
    """Also where every other line, or every third one, has nearly all of them."""
    sizes = [40 if line % 6 in (0, 1) else 2 for line in range(24)]
    whole = spaces(counted(np.random.default_rng(1), sizes, 4))
    task = replace(task_of(whole, "wer"), engine=Pickling(workers))
    answers = [count for _, _, count in task.shares.ask(has)]
    most = max(np.bincount(whole.groups, whole.extents))
    assert sum(answers) == whole.hypotheses and max(answers) - min(answers) <= most


def test_workers_are_dismissed_with_the_task() -> None:
    """At once, not when Python next collects garbage."""
    task = replace(task_of(learnable(2), "bleu"), engine=Pickling(2))
    crew = weakref.ref(task.shares.crew)
    assert crew() is not None
    gc.disable()
    try:
        del task
        assert crew() is None
    finally:
        gc.enable()


def test_batch_tuners_leave_each_list_with_one_worker() -> None:
    """No worker is sent the whole task on the way."""
    lists = learnable(2, sentences=20)
    for preset in ("mert", "pro", "risk", "random", "grid"):
        engine = Pickling(4)
        tuner = make_tuner(preset, QUICK[preset])
        list(tuner.epochs(replace(task_of(lists, "bleu"), engine=engine), START, 3, None))
        assert len(engine.given) == 4
        assert all(isinstance(each, Share) for each in engine.given)
        assert [each.task.spaces.sentences for each in engine.given] == [5] * 4


def test_workers_hold_the_lists_of_their_learners_and_evaluate_those() -> None:
    """Of other lists they hold the first hypothesis."""
    whole = task_of(learnable(2, empty=[3]), "bleu")
    engine = Pickling(2)
    task = replace(whole, engine=engine)
    learners = np.arange(12) % 3
    crew = task.dealt(learners)
    assert crew is task.dealt(learners.copy()) and crew is not task.dealt(learners[::-1])
    crew = task.dealt(learners)
    # Learners 0 and 2 are at the first worker: 8 of 12 lists, one of which is empty.
    sizes = np.diff(learnable(2, empty=[3]).core.starts)
    held = [int(sizes[learners % 2 == place].sum()) for place in range(2)]
    others = [int((sizes[learners % 2 != place] > 0).sum()) for place in range(2)]
    assert crew.ask_all(hypotheses, [(), ()]) == [a + b for a, b in zip(held, others, strict=True)]
    for weights in (START, -START, np.array([0.0, 0.0, 1.0, 0.0])):
        assert task.evaluate(weights) == whole.evaluate(weights)
        assert np.array_equal(task.chosen(weights), whole.chosen(weights))
    assert [names.count("_chosen") for names in engine.asked] == [6, 6]
    assert np.array_equal(task.best(START), whole.spaces.best(START))
    task.release()
    assert task.evaluate(START) == whole.evaluate(START)
    assert engine.asked == [["_sums"], ["_sums"]]


@SPACES
def test_workers_evaluate_their_shares(spaces: Callable[[Pools], Spaces]) -> None:
    """Also for a tuner whose lists are all with the first worker."""
    whole = task_of(spaces(learnable(2, empty=[3])), "bleu")
    engine = Pickling(3)
    task = replace(whole, engine=engine)
    assert [each.size for each in (task.dealt(np.zeros(task.spaces.lines, np.intp)),)] == [3]
    for weights in (START, -START, np.array([0.0, 0.0, 1.0, 0.0])):
        assert task.evaluate(weights) == whole.evaluate(weights)
        assert np.array_equal(task.chosen(weights), whole.chosen(weights))
        found, wanted = (each.spaces.outputs(each.best(weights)) for each in (task, whole))
        assert found == wanted
        assert wanted == whole.spaces.outputs(whole.spaces.best(weights))
    assert engine.asked == [["_sums", "_chosen", "_best"] * 3] * 3


def test_a_whole_run_is_the_same() -> None:
    """Folds, seeds and held-out lists included."""
    lists, heldout = learnable(2), learnable(5)
    many: list[dict[str, Any]] = [{"folds": 2}, {"heldout": heldout, "seeds": 2}]
    for preset, more in itertools.product(("kbmira", "mert", "risk", "rampion"), many):
        options = QUICK[preset]
        found, wanted = (
            tune(lists, preset, "bleu", options=options, start=START, engine=engine, **more)
            for engine in (Pickling(2), THREADS)
        )
        assert found.weights == wanted.weights
        assert (found.tuned, found.curve, found.heldout_all) == (
            wanted.tuned, wanted.curve, wanted.heldout_all,
        )  # fmt: skip


# With a live decoder.


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("engines"))


def live(world: Path, kind: Kind, *templates: str, **more: Any) -> Live:
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines()[:12] for side in ("src", "tgt")
    )
    model = Model.load(world / "model", kind, named=templates)
    return Live(model, lines, [[text] for text in references], k=20, **more)


def texts(worker: Worker) -> list[str]:
    """Return the text that a worker holds: of a task, or of a source."""
    source: Live = getattr(worker.share, "source", worker.share)
    assert not source.lines and not source.raw_references
    return [
        line
        for line, references in zip(source.sources, source.references, strict=True)
        if line or references
    ]


def test_workers_that_decode_hold_their_sentences_only(world: Path) -> None:
    source = live(world, "phrase")
    spaces = source.decode(POOR["phrase"], 1)
    lower, upper = (np.full(len(spaces.names), side) for side in (-np.inf, np.inf))
    task = Following(
        spaces, get_metric(METRIC), lower, upper, 1, Pickling(2),
        source=source, features=spaces.names, bounds={}, fixed={},
    )  # fmt: skip
    learners = np.arange(12) % 3
    crew = task.dealt(learners)
    assert crew is task.dealt(learners.copy()) and crew is not task.dealt(learners[::-1])
    wanted = [
        [line for line, learner in zip(source.sources, learners, strict=True) if learner % 2 == n]
        for n in range(2)
    ]
    assert task.dealt(learners).ask_all(texts, [(), ()]) == wanted
    # Blocks are sent with the question.
    apart = source.on(Pickling(2))
    found = apart.decode(POOR["phrase"], 1)
    assert found.outputs(found.first()) == spaces.outputs(spaces.first())
    assert apart._crew.ask_all(texts, [(), ()]) == [[], []]


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("preset", LIVE)
@pytest.mark.parametrize("workers", [1, 2])
def test_online_presets_follow_a_decoder_of_each_worker(
    world: Path, preset: str, kind: Kind, workers: int
) -> None:
    tuner = make_tuner(preset, QUICK[preset])
    source = live(world, kind, "pairs")
    found, wanted = (
        tune(
            source,
            metric=METRIC,
            tuner=split(tuner) if workers == 2 else tuner,
            start=POOR[kind],
            iterations=2,
            keep="last",
            engine=engine,
        )
        for engine in (Pickling(workers), THREADS)
    )
    assert dict(found.weights) == dict(wanted.weights)
    assert found.curve == wanted.curve
    # The learners of both workers have met features on the way.
    assert any(":" in name for name in found.weights)


def test_steps_on_stale_lists_and_bounds_of_new_features_are_the_same(world: Path) -> None:
    tuner, source = make_tuner("mira", QUICK["mira"]), live(world, "phrase", "pairs")
    for regime, workers in (("delay=2,batch=2", 1), ("shards=2,mix=2", 2)):
        found, wanted = (
            tune(
                source, metric=METRIC, tuner=with_regime(tuner, regime), start=POOR["phrase"],
                iterations=2, keep="last", bounds={"WP:*": (-1e-4, 1e-4)}, engine=engine,
            )
            for engine in (Pickling(workers), THREADS)
        )  # fmt: skip
        assert dict(found.weights) == dict(wanted.weights)
        sparse = [abs(weight) for name, weight in found.weights.items() if ":" in name]
        assert 0.0 < max(sparse) <= 1e-4


@pytest.mark.parametrize("space", ["list", "forest"])
def test_batch_presets_learn_the_same_from_what_a_decoder_finds(world: Path, space: Any) -> None:
    source = live(world, "hiero", space=space)
    for preset in ("mert", "kbmira"):
        options = QUICK[preset]
        found, wanted = (
            tune(
                source, preset, METRIC, options=options, start=POOR["hiero"], iterations=2,
                engine=engine,
            )
            for engine in (Pickling(2), THREADS)
        )  # fmt: skip
        assert dict(found.weights) == dict(wanted.weights)


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("space", ["list", "forest"])
def test_workers_decode_a_corpus_as_one_process_does(world: Path, kind: Kind, space: Any) -> None:
    """Several blocks, the order of features and an empty sentence included."""
    lines, references = (
        ["", *(world / f"dev.{side}").read_text().splitlines()] for side in ("src", "tgt")
    )
    model = Model.load(world / "model", kind, named=["pairs"])
    source = Live(model, lines, [[text] for text in references], k=20, space=space)
    weights, metric = Weights({**POOR[kind], "WP:haus~house": 0.5}), get_metric(METRIC)
    apart = source.on(Pickling(2))
    for k in (None, 3):
        found, wanted = (each.decode(weights, k) for each in (apart, source))
        assert found.names == wanted.names and len(found.names) > len(model.decoder.dense)
        assert list(found.contents(metric)) == list(wanted.contents(metric))
        assert (found.references, found.sources) == (wanted.references, wanted.sources)
        chosen = wanted.decoded(weights)
        assert found.outputs(found.decoded(weights)) == wanted.outputs(chosen)


def test_a_text_that_is_dealt_to_workers_is_translated_as_by_one_process(world: Path) -> None:
    translator = Model.load(world / "model", "phrase").translator(POOR["phrase"])
    spread = Spread(translator, Pickling(2), 1)
    lines = [*(world / "dev.src").read_text().splitlines()[:9], "", "haus"]
    found, wanted = (each.batch(lines, unique=True) for each in (spread, translator))
    assert [replace(each, seconds=0.0) for each in found] == [
        replace(each, seconds=0.0) for each in wanted
    ]
    for few in (lines, lines[:1], []):
        lists, others = (each.nbest(few, 5, links=True) for each in (spread, translator))
        assert lists.names == others.names and lists.sources == others.sources
        for name, array in others._arrays().items():
            assert np.array_equal(lists._arrays()[name], array, equal_nan=array.dtype.kind == "f")


def test_bad_lines_keep_their_numbers_when_they_are_dealt_to_workers(world: Path) -> None:
    translator = Model.load(world / "model", "phrase").translator(POOR["phrase"])
    spread = Spread(translator, Pickling(2), 1)
    lines = ["haus"] * 9
    lines[6] = "<x translation='y'>haus"
    for each in (spread, translator):
        with pytest.raises(InputError, match="text:16: "):
            each.batch(lines, markup="exclusive", first=10, file="text", report=Report())
        report = Report(skip_bad=True)
        found = each.batch(lines, markup="exclusive", first=10, file="text", report=report)
        assert len(found) == 9 and found[6].text == ""
        assert [(bad.count, bad.first.line) for bad in report.skipped.values()] == [(1, 16)]


@pytest.mark.parametrize("sizes", [[12], [5, 7], [1, 0, 3, 8]])
def test_joined_parts_are_the_whole(sizes: list[int]) -> None:
    whole = learnable(2, empty=[3], scored=True)
    ends = np.cumsum(sizes).tolist()
    parts = [
        whole.subset(list(range(end - size, end))) for size, end in zip(sizes, ends, strict=True)
    ]
    joined = Pools.join(parts)
    assert (joined.references, joined.names) == (whole.references, whole.names)
    for name, array in whole._arrays().items():
        assert np.array_equal(joined._arrays()[name], array, equal_nan=array.dtype.kind == "f")


def test_joined_bins_are_the_whole() -> None:
    whole = Bins.of_lists(learnable(2), [0, 0, 1, 1, 1, 2, 3, 3, 3, 3, 4, 4])
    parts = [whole.subset(list(range(*span))) for span in ((0, 5), (5, 5), (5, 10), (10, 12))]
    joined = Bins.join(parts)
    assert isinstance(joined, Bins) and joined.groups.tolist() == whole.groups.tolist()
    for name, array in whole._arrays().items():
        assert np.array_equal(joined._arrays()[name], array, equal_nan=array.dtype.kind == "f")


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize(
    ("space", "preset"), [("list", "mert"), ("list", "pro"), ("forest", "risk"), ("bins", "grid")]
)
def test_lists_stay_where_they_are_decoded(
    world: Path, kind: Kind, space: SpaceName, preset: str
) -> None:
    """Workers give the same, also when they are lost; the driver gets one translation a line."""
    source = live(world, kind, "pairs", space=space)

    def learnt(engine: Engine) -> tuple[Any, ...]:
        events: list[dict[str, Any]] = []
        found = tune(
            source, preset, METRIC, options=QUICK[preset], start=POOR[kind], iterations=2,
            keep="last", threads=1, engine=engine, listen=events.append,
        )  # fmt: skip
        facts = [(event.get("hypotheses"), event.get("oracle_score")) for event in events]
        return dict(found.weights), found.weights.meta["spread"], found.curve, found.oracle, facts

    wanted = learnt(THREADS)
    for engine in (Pickling(1), Pickling(3), Pickling(13), losing := Pickling(3, losing=0.02)):
        assert learnt(engine) == wanted, engine
        assert not any(isinstance(given, Task | Share) for given in engine.given)
    assert losing.lost


def test_lines_are_dealt_by_their_words(world: Path) -> None:
    """Workers that keep what they decode end together, also if every other line is a long one."""
    source = live(world, "phrase")
    words = [40 if line % 2 else 3 for line in range(12)]
    source = Live(source.model, [" ".join(["haus"] * n) for n in words], source.raw_references, k=3)
    engine = Pickling(2)
    tune(
        source, "random", METRIC, options={"tries": 2}, start=POOR["phrase"], iterations=1,
        keep="last", threads=1, engine=engine,
    )  # fmt: skip
    held = [sum(len(line.split()) for line in given.source.sources) for given in engine.given]
    assert held == [sum(words) / 2] * 2


def test_a_tuner_that_asks_for_lists_of_workers_is_told() -> None:
    lists = learnable(2)
    outline = Elsewhere(lists.kind, lists.names, lists.groups, lists.hypotheses)
    task = replace(task_of(lists, METRIC), outline=outline)
    assert task.outline.lines == lists.lines and task.outline.width == lists.width
    with pytest.raises(InputError, match="the lists are held by workers"):
        task.spaces  # noqa: B018


@pytest.mark.parametrize("kind", [Pools, Forests, Bins])
def test_what_is_kept_of_choices_has_the_same_texts_and_statistics(kind: type[Spaces]) -> None:
    lists = learnable(2, empty=[3])
    spaces: Spaces = lists
    if kind is Forests:
        spaces = Forests.of_lists(lists)
    elif kind is Bins:
        spaces = Bins.of_lists(lists, (np.arange(lists.sentences) // 2).tolist())
    chosen = spaces.best(np.array([0.1, 1.0, 0.3, -0.2]))
    small, places = spaces.kept(chosen)
    assert small.hypotheses == (chosen >= 0).sum() and not small.names
    assert small.outputs(places) == spaces.outputs(chosen)
    for metric in ("bleu", "ter"):
        assert np.array_equal(small.statistics(metric, places), spaces.statistics(metric, chosen))


def test_sentences_that_were_sent_are_decoded_again(world: Path) -> None:
    """What the driver has decoded stays with the driver."""
    source, start = live(world, "phrase"), Weights(POOR["phrase"])
    found, names = source.decode(start, 1), list(start)
    unit = np.ones(len(names))
    task = Following(
        found, get_metric(METRIC), -unit, unit, source=source, features=names, bounds={}, fixed={},
        latest=lambda: found,
    )  # fmt: skip
    copy, vector = sent(task), start.vector(names)
    assert np.array_equal(copy.chosen(vector), task.chosen(vector))
    vector = Weights({**start, "lm": 1.0, "words": 0.5}).vector(names)
    assert not np.array_equal(copy.chosen(vector), task.chosen(vector))


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_a_model_that_was_sent_translates_as_the_original(world: Path, kind: Kind) -> None:
    source = live(world, kind, "pairs")
    copy = sent(source)
    assert (copy.sources, copy.references, copy.resume_key()) == (
        source.sources, source.references, source.resume_key(),
    )  # fmt: skip
    assert copy.model.kind == kind
    for field in ("weights", "tuned", "source", "target", "settings", "templates", "fixed"):
        assert getattr(copy.model, field) == getattr(source.model, field), field
    weights = Weights({**POOR[kind], "WP:haus~house": 0.5})
    found, wanted = (each.decode(weights, 5) for each in (copy, source))
    assert list(found.contents(get_metric(METRIC))) == list(wanted.contents(get_metric(METRIC)))
    assert found.outputs(found.first()) == wanted.outputs(wanted.first())


def test_a_model_that_was_sent_keeps_its_own_weights_and_templates(
    world: Path, tmp_path: Path
) -> None:
    """Not those that have come to its folder since."""
    folder = Path(copytree(world / "model", tmp_path / "model"))
    base = Model.load(folder, "phrase", named=["insertions"])
    model = replace(base.with_templates(["pairs"]), weights=Weights(POOR["phrase"]))
    pickled = pickle.dumps(model)
    Weights({"lm": 2.0, "WBG:a~b": 1.0}, {"kind": "phrase", "templates": ["bigrams"]}).save(
        folder / "weights.toml"
    )
    assert "bigrams" in Model.load(folder, "phrase").templates
    copy = pickle.loads(pickled)
    assert dict(copy.weights) == POOR["phrase"]
    assert list(copy.templates) == list(model.templates) == ["insertions", "pairs"]
    lines = (world / "dev.src").read_text().splitlines()[:3]
    found, wanted = (each.translator().nbest(lines, 3).names for each in (copy, model))
    assert found == wanted
    assert any(name.startswith("WP:") for name in found)


MOSES = """\
[input-factors]
0
[mapping]
0 T 0
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=table.gz input-factor=0
Distortion
KENLM name=LM0 factor=0 path=lm.arpa order=2
[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
Distortion0= 0.3
LM0= 0.5
"""


def of_moses(world: Path, folder: Path) -> Model:
    export_moses(RuleTable(world / "model" / "phrases.rules"), folder / "table.gz")
    estimate([world / "train.tgt"], order=2).write_arpa(folder / "lm.arpa")
    (folder / "moses.ini").write_text(MOSES)
    return Model.of_moses(folder / "moses.ini", folder / "cache")


def of_cdec(world: Path, folder: Path) -> Model:
    export_cdec(RuleTable(world / "model" / "hiero.rules"), folder / "grammar.gz")
    weights = {"LanguageModel": 0.5, "EgivenFCoherent": -1.0, "Glue": 0.01, "PassThrough": -10.0}
    return Model.of_cdec(
        folder / "grammar.gz", world / "model" / "lm.tlm", weights, folder / "cache"
    )


@pytest.mark.parametrize("load", [of_moses, of_cdec])
def test_models_of_other_programs_are_sent_too(
    world: Path, tmp_path: Path, load: Callable[[Path, Path], Model]
) -> None:
    model = load(world, tmp_path)
    copy = sent(model)
    for field in ("weights", "settings", "fixed", "absent", "escaped", "markup"):
        assert getattr(copy, field) == getattr(model, field), field
    lines = (world / "dev.src").read_text().splitlines()[:3]
    found, wanted = (each.translator(tokenized=True).nbest(lines, 5) for each in (copy, model))
    assert found.names == wanted.names
    assert found.outputs(found.first()) == wanted.outputs(wanted.first())
    assert np.array_equal(found.core.scores, wanted.core.scores)


def test_a_model_that_was_not_loaded_from_files_is_not_sent(world: Path) -> None:
    base = Model.load(world / "model", "phrase")
    with pytest.raises(TypeError, match=r"not loaded from files.*use Model\.load"):
        pickle.dumps(Model(base.decoder, base.weights))
