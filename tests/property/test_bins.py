"""Bins: what equals lists, what projected means, what is merged, and who learns from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins.lists import learnable
from twins.quick import ON_LISTS, QUICK
from twins.toy import POOR, make_world
from twins.training import task_of

from tunesmith import Bins, InputError, Pools, Weights, get_metric, tune
from tunesmith.decode.translation import Model
from tunesmith.learn.searchaware import SearchAware
from tunesmith.learn.task import Tuner
from tunesmith.presets import PRESETS, make_tuner
from tunesmith.sources import Command, Live
from tunesmith.spaces.bins import Partial, Ranked
from tunesmith.spaces.files import load_spaces

METRIC = "bleu:tokenize=none"
SEARCH_AWARE = [name for name in PRESETS if name.startswith("sa-")]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("bins"))


def live(world: Path, *templates: str, lines: int = 15, **more: Any) -> Live:
    model = Model.load(world / "model", "phrase", named=templates)
    texts, references = (
        (world / f"dev.{side}").read_text().splitlines()[:lines] for side in ("src", "tgt")
    )
    settings = {"stack": 5, "pop_limit": 30}
    return Live(model, texts, references, **{"settings": settings, "k": 20, **more})


def decoded(source: Live, weights: Mapping[str, float] = POOR["phrase"]) -> Bins:
    """Return the bins of a decoding."""
    bins = replace(source, space="bins").decode(weights)
    assert isinstance(bins, Bins)
    return bins


def weights_after(spaces: Pools, preset: str, seed: int = 1) -> list[list[float]]:
    """Return the weights of every epoch."""
    task = task_of(spaces, METRIC)
    tuner = make_tuner(preset, QUICK[preset])
    start = np.linspace(0.1, 0.5, len(spaces.names))
    return [epoch.weights.tolist() for epoch in tuner.epochs(task, start, seed, None)]


@pytest.mark.parametrize("preset", ON_LISTS)
def test_a_tuner_over_the_last_bins_is_the_tuner_over_their_lists(world: Path, preset: str) -> None:
    if preset == "mert":
        pytest.skip("on bins it searches from points that a share of them leads to")
    bins = decoded(live(world, lines=8))
    last = bins.subset(bins.last.tolist())
    assert last.binned and last.sentences == bins.lines
    assert weights_after(last, preset) == weights_after(bins.final(), preset)


@pytest.mark.parametrize("restarts", [0, 6])
def test_line_search_over_the_last_bins_is_as_exact_as_over_their_lists(
    world: Path, restarts: int
) -> None:
    bins = decoded(live(world))
    last = bins.subset(bins.last.tolist())
    found = {}
    for space in (last, last.final()):
        options = {"restarts": restarts, "coarse": 0.0, "tolerance": 1e-12}
        task = task_of(space, METRIC)
        start = space.vector(POOR["phrase"])
        epochs = list(make_tuner("mert", options).epochs(task, start, 1, None))
        found[space.binned] = [task.evaluate(epoch.weights)[1] for epoch in epochs]
    # The climb from the start is the same; then more points can only help.
    assert found[True][0] == found[False][0]
    assert found[True][-1] >= found[True][0]
    if not restarts:
        assert found[True] == found[False]


@pytest.mark.parametrize("ranked", list(Ranked))
@pytest.mark.parametrize("space", ["dense", "sparse"])
def test_what_weights_choose_in_a_bin_is_what_the_search_ranks_first(
    world: Path, ranked: Ranked, space: str
) -> None:
    templates = ("rule-id",) if space == "sparse" else ()
    source = live(world, *templates, space="bins", ranked=ranked)
    bins = decoded(source)
    best = bins.best(bins.vector(POOR["phrase"], partial=True))
    scores, starts = bins.core.scores, bins.core.starts
    for place, (a, b) in enumerate(pairwise(starts)):
        assert scores[best[place]] == pytest.approx(scores[a:b].max(), abs=1e-3)
    # Projected is decoded: the last bin's choice is the decoder's output.
    one = replace(source, space="list").decode(POOR["phrase"], 1)
    assert bins.by_line(bins.outputs(best)) == one.outputs(one.first())
    assert bins.score(METRIC, best) == one.score(METRIC, one.first())


def test_projected_is_what_a_decoding_with_the_same_weights_scores(world: Path) -> None:
    events: list[dict[str, Any]] = []
    source = live(world, space="bins")
    tune(source, "sa-mert", METRIC, start=POOR["phrase"], iterations=1, listen=events.append)
    (first,) = [event for event in events if event["event"] == "start"]
    bins = decoded(source)
    best = bins.best(bins.vector(POOR["phrase"], partial=True))
    assert first["score_bins"] == bins.score_all(METRIC, best) != first["start"]
    assert first["start"] == bins.score(METRIC, best)


def test_the_newest_future_replaces_the_old_one(world: Path) -> None:
    source = live(world, ranked="score", lines=5)
    other = {name: -value for name, value in POOR["phrase"].items()}
    one, two = decoded(source), decoded(source, other)
    merged = one.merged(two)
    assert one.hypotheses < merged.hypotheses <= one.hypotheses + two.hypotheses

    def known(bins: Bins) -> dict[Any, tuple[str, str]]:
        lists = np.repeat(np.arange(bins.sentences), np.diff(bins.core.starts)).tolist()
        texts = bins.core.texts(np.arange(bins.hypotheses))
        return {
            (
                lists[at],
                texts[at],
                tuple(bins.covered(at)),
                tuple(sorted((n, v) for n, v in bins.core.features(at) if v)),
            ): bins.surroundings(at)
            for at in range(bins.hypotheses)
        }

    first, newest, both = known(one), known(two), known(merged)
    assert both.keys() == first.keys() | newest.keys() and len(both) == merged.hypotheses
    assert all(both[key] == newest.get(key, first.get(key)) for key in both)
    changed = [key for key in first.keys() & newest.keys() if first[key] != newest[key]]
    assert changed, "the two decodings never disagree about the rest"


def test_bins_of_other_sentences_cannot_be_merged(world: Path) -> None:
    one, two = (decoded(live(world, lines=n)) for n in (3, 4))
    with pytest.raises(InputError, match="different sentences"):
        one.merged(two)


@pytest.mark.parametrize("length", ["closest", "shortest", "average"])
def test_partial_scores_have_prorated_references(world: Path, length: str) -> None:
    metric = get_metric(f"{METRIC},length={length}") if length != "closest" else get_metric(METRIC)
    source = live(world, space="bins", partial=Partial.BLEU, lines=4)
    source.references = [[*each, f"{each[0]} and more", "x"] for each in source.references]
    bins = decoded(source)
    rows = bins.table(metric).rows()
    whole = replace_partial(bins).table(metric).rows()
    lists = np.repeat(np.arange(bins.sentences), np.diff(bins.core.starts)).tolist()
    texts = bins.core.texts(np.arange(bins.hypotheses))
    for at in range(0, bins.hypotheses, 7):
        references = (bins.references or [])[lists[at]]
        words = len((bins.sources or [])[lists[at]].split())
        share = sum(end - start for start, end in bins.covered(at)) / words
        plain = metric.stats([texts[at]], [references])[0]
        lengths = [len(each.split()) * share for each in references]
        own = len(texts[at].split())
        wanted = {
            "closest": min(lengths, key=lambda n: (abs(n - own), n)),
            "shortest": min(lengths),
            "average": sum(lengths) / len(lengths),
        }[length]
        assert rows[at, 1] == pytest.approx(wanted)
        assert np.delete(rows[at], 1).tolist() == np.delete(plain, 1).tolist()
    # Whole translations are scored alike either way.
    last = np.isin(lists, bins.last)
    assert np.array_equal(rows[last], whole[last])


def replace_partial(bins: Bins) -> Bins:
    """Return the bins with potential scores."""
    return Bins(bins.core, bins.references, bins.sources)


@pytest.mark.parametrize("metric", ["chrf", "ter", "wer"])
def test_other_metrics_score_whole_translations_only(world: Path, metric: str) -> None:
    source = live(world, space="bins", partial="bleu", lines=3)
    with pytest.raises(InputError, match="partial scores are defined for BLEU only"):
        decoded(source).table(metric)
    potential = decoded(replace(source, partial="potential"))
    assert potential.table(metric).rows().shape[0] == potential.hypotheses


@given(seed=st.integers(0, 99), gain=st.sampled_from(["sentence", "background", "context"]))
def test_bins_with_a_line_each_are_lists(seed: int, gain: str) -> None:
    lists = learnable(seed % 5, sentences=6)
    bins = Bins.of_lists(lists, range(6))
    start = np.full(len(lists.names), 0.1)
    tuner = make_tuner("mira", {"passes": 3, "gain": gain})
    found, wanted = (
        [e.weights.tolist() for e in tuner.epochs(task_of(each, "bleu"), start, seed, None)]
        for each in (bins, lists)
    )
    assert found == wanted


def test_gains_in_context_are_those_of_lines() -> None:
    """A line that is there in two equal bins counts once in the corpus around it."""
    lists = learnable(1, sentences=4)
    twice = Bins.of_lists(lists.subset([0, 0, 1, 1, 2, 2, 3, 3]), [0, 0, 1, 1, 2, 2, 3, 3])
    task = task_of(twice, "bleu")
    weights = np.full(len(lists.names), 0.1)
    assert np.array_equal(task.chosen(weights), task_of(lists, "bleu").chosen(weights))
    assert task.lengths() is None
    tuner = make_tuner("pro", {**QUICK["pro"], "gain": "context"})
    assert len(list(tuner.epochs(task, weights, 1, None))) == 4


@pytest.mark.parametrize("preset", SEARCH_AWARE)
def test_search_aware_presets_learn_and_resume(world: Path, tmp_path: Path, preset: str) -> None:
    asked: dict[str, Any] = {
        "preset": preset,
        "metric": METRIC,
        "start": POOR["phrase"],
        "options": QUICK[preset],
        "iterations": 3,
        "threads": 1,
    }
    whole = tune(live(world), **asked, run=tmp_path / "whole")
    assert whole.tuned > whole.start and whole.refused is None
    for stop in (1, 2):
        path = tmp_path / f"stopped-{stop}"

        def listen(event: dict[str, Any], stop: int = stop) -> None:
            if event.get("epoch") == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            tune(live(world), **asked, run=path, listen=listen)
        assert {file.suffix for file in (path / "decoded").iterdir()} == {".bins", ".weights"}
        again = tune(live(world), **asked, run=path, resume=True)
        assert (again.weights, again.tuned, again.curve) == (
            whole.weights,
            whole.tuned,
            whole.curve,
        )
    with pytest.raises(InputError, match="bins"):
        tune(live(world, ranked="score"), **asked, run=tmp_path / "whole", resume=True)


@pytest.mark.parametrize("preset", SEARCH_AWARE)
def test_search_aware_presets_learn_from_every_bin_not_only_from_the_last(
    world: Path, preset: str
) -> None:
    bins = decoded(live(world))
    assert bins.sentences > bins.lines
    tuner = make_tuner(preset, QUICK[preset])
    assert isinstance(tuner, SearchAware)

    def learnt(tuner: Tuner, spaces: Bins) -> list[list[float]]:
        task, start = task_of(spaces, METRIC), spaces.vector(POOR["phrase"])
        return [each.weights.tolist() for each in tuner.epochs(task, start, 1, None)]

    found = learnt(tuner, bins)
    assert found == learnt(tuner.tuner, bins)
    assert found[-1] != learnt(tuner.tuner, bins.subset(bins.last.tolist()))[-1]


@pytest.mark.parametrize("preset", SEARCH_AWARE)
def test_search_aware_presets_want_bins(world: Path, preset: str) -> None:
    lists = live(world, lines=3)
    with pytest.raises(InputError, match="learns from the bins of a search, not from lists"):
        tune(lists.decode(POOR["phrase"]), preset, METRIC)
    with pytest.raises(InputError, match="learns from bins, not from lists"):
        tune(replace(lists, space="list"), preset, METRIC, start=POOR["phrase"])
    command = Command("cat {weights}", ["a"], [["a"]])
    with pytest.raises(InputError, match="Command source does not have"):
        tune(command, preset, METRIC, start=POOR["phrase"])


def test_short_sentences_only(world: Path) -> None:
    found = decoded(live(world, lines=6))
    # Every other line is told to be short.
    sources = [
        " ".join(text.split()[: 2 + 3 * (line % 2)])
        for text, line in zip(found.sources or [], found.groups.tolist(), strict=True)
    ]
    bins, limit = Bins(found.core, found.references, sources), 5
    lengths = [len(line.split()) for line in bins.by_line(sources)]
    assert min(lengths) < limit <= max(lengths)
    seen: list[int] = []

    class Look:
        def epochs(self, task: Any, *_: Any) -> Any:
            seen.extend(len(line.split()) for line in task.spaces.by_line(task.spaces.sources))
            return iter(())

    list(SearchAware(Look(), limit).epochs(task_of(bins, METRIC), np.zeros(3), 1))
    assert seen == [n for n in lengths if n < limit] and seen
    with pytest.raises(InputError, match="fewer than 1 words"):
        list(
            make_tuner("sa-pro", {"shorter": 1}).epochs(
                task_of(bins, METRIC), np.zeros(bins.width), 1, None
            )
        )


@pytest.mark.parametrize("preset", ["mira", "adagrad", "perceptron"])
@pytest.mark.parametrize("batch", ["batch=1", "batch=4", "shards=2,mix=2"])
def test_online_tuners_follow_the_decoder_through_its_bins(
    world: Path, preset: str, batch: str
) -> None:
    from tunesmith.learn.online import with_regime

    source = live(world, "rule-id", space="bins", lines=20)
    tuner = with_regime(make_tuner(preset, QUICK[preset]), batch)
    events: list[dict[str, Any]] = []
    result = tune(
        *(source, preset, METRIC),
        tuner=tuner,
        start=POOR["phrase"],
        iterations=2,
        listen=events.append,
        keep="last",
        threads=1,
    )
    assert any(name.startswith("rule:") or ":" in name for name in result.weights)
    assert [event["event"] for event in events].count("epoch") == 2
    assert result.weights != Weights(POOR["phrase"])


def test_bins_come_back_from_a_file(world: Path, tmp_path: Path) -> None:
    source = live(world, "rule-id", space="bins", lines=4, partial="bleu")
    bins = decoded(source)
    file = bins.save(tmp_path / "0001")
    again = load_spaces(file, source.references, source.sources)
    assert isinstance(again, Bins) and again.partial is Partial.BLEU
    assert (again.groups.tolist(), again.names) == (bins.groups.tolist(), bins.names)
    assert again.references == bins.references and again.sources == bins.sources
    every = np.arange(bins.hypotheses)
    assert again.core.wholes(every) == bins.core.wholes(every)
    assert [again.core.extra(at) for at in range(9)] == [bins.core.extra(at) for at in range(9)]
    assert list(again.contents(get_metric(METRIC))) == list(bins.contents(get_metric(METRIC)))


def test_a_blank_line_has_an_empty_bin(world: Path) -> None:
    made = live(world).model.translator(POOR["phrase"])
    bins = made.bins(["", "a"])
    assert bins.lines == 2 and bins.groups.tolist()[0] == 0
    assert bins.outputs(bins.first())[0] == ""
