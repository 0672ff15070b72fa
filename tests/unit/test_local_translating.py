"""Sentences with weights of their own: learnt from a few lists, decoded beside each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from twins.toy import POOR, make_world

from tunesmith import InputError, Pools, Weights, get_metric
from tunesmith._core import Blocks
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.learn.local import blocks_of
from tunesmith.local import Local, LocalTranslator, Neighbour
from tunesmith.metrics import Metric

METRIC = get_metric("bleu:tokenize=none")
KINDS: list[Any] = ["phrase", "hiero"]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("local"))


class Shelf:
    """A few lists in memory; examples that share most words are nearest."""

    def __init__(self, translator: Translator, sources: list[str], targets: list[str]) -> None:
        self.sources, self.targets = sources, targets
        pools = translator.nbest(sources, 20)
        self.pools = Pools(pools.core, [[each] for each in targets], pools.sources)
        self.pools.table(METRIC)

    @property
    def metric(self) -> Metric:
        return METRIC

    def near(self, words: str, k: int, *, leave_out: bool) -> Sequence[Neighbour]:
        own = set(words.split())
        shared = [
            Neighbour(i, len(own & set(each.split())) / len(own), each, [self.targets[i]])
            for i, each in enumerate(self.sources)
            if not (leave_out and each == words)
        ]
        return sorted(shared, key=lambda each: (-each.similarity, each.id))[:k]

    def lists(self, ids: Sequence[int]) -> Pools:
        return self.pools.subset(ids)

    def blocks(self, ids: Sequence[int]) -> Blocks:
        return blocks_of(self.lists(ids), METRIC)


def lines(world: Path, name: str) -> list[str]:
    return (world / name).read_text().splitlines()


def parts(world: Path, kind: Any) -> tuple[Model, Translator, Shelf, list[str]]:
    model = Model.load(world / "model", kind)
    translator = model.translator({**POOR[kind], "PT:das~the": 0.25})
    shelf = Shelf(translator, lines(world, "dev.src"), lines(world, "dev.tgt"))
    return model, translator, shelf, lines(world, "test.src")[:12]


@pytest.mark.parametrize("method", ["mbuu", "ebuu"])
@pytest.mark.parametrize("kind", KINDS)
def test_each_sentence_is_decoded_as_by_a_translator_of_its_own(
    world: Path, kind: Any, method: str
) -> None:
    model, translator, shelf, text = parts(world, kind)
    local = LocalTranslator(translator, shelf, Local(method, k=10, strength=3.0))
    text = [*text, "", text[0]]
    found = local.batch(text, threads=2, details=3)
    assert len({tuple(each.moved.items()) for each in found}) > 2
    lists = translator.nbest(text, 10, changes=[each.changed for each in found], threads=2)
    ends = lists.core.starts
    for number, (each, line) in enumerate(zip(found, text, strict=True)):
        own = model.translator(translator.weights.replaced(each.changed))
        (alone,) = own.batch([line], details=3)
        assert (each.text, each.score, each.pieces) == (alone.text, alone.score, alone.pieces)
        for ours, theirs in zip(each.derivations, alone.derivations, strict=True):
            assert (ours.text, ours.score, ours.links) == (theirs.text, theirs.score, theirs.links)
            assert ours.features == theirs.features
        listed = own.nbest([line], 10)
        places = np.arange(ends[number], ends[number + 1])
        assert lists.core.texts(places) == listed.core.texts(np.arange(listed.hypotheses))
        assert lists.core.scores[places].tolist() == listed.core.scores.tolist()
        assert each.moved == {
            name: value - translator.weights.get(name, 0.0) for name, value in each.changed.items()
        }


@pytest.mark.parametrize("kind", KINDS)
def test_without_strength_translations_are_those_of_the_base_weights(
    world: Path, kind: Any
) -> None:
    _, translator, shelf, text = parts(world, kind)
    for method in ("mbuu", "ebuu"):
        local = LocalTranslator(translator, shelf, Local(method, strength=0.0))
        for ours, plain in zip(
            local.translate(text, details=2), translator.translate(text, details=2), strict=True
        ):
            assert (ours.text, ours.score) == (plain.text, plain.score)
            assert [d.score for d in ours.derivations] == [d.score for d in plain.derivations]
            assert ours.moved == ours.changed == {} and ours.neighbours


@pytest.mark.parametrize("method", ["ebuu", "mbuu", "mira", "rm", "kbmira"])
def test_results_do_not_depend_on_threads(world: Path, method: str) -> None:
    _, translator, shelf, text = parts(world, "phrase")
    local = LocalTranslator(translator, shelf, Local(method, k=8))
    found = [
        [(each.text, each.score, each.changed) for each in local.translate(text, threads=threads)]
        for threads in (1, 2, 4)
    ]
    assert found[0] == found[1] == found[2]
    assert any(changed for *_, changed in found[0])


def test_a_sentence_does_not_learn_from_itself_if_left_out(world: Path) -> None:
    _, translator, shelf, _ = parts(world, "phrase")
    line = shelf.sources[0]
    for leave_out in (False, True):
        local = LocalTranslator(translator, shelf, Local(k=5, leave_out=leave_out))
        sources = [each.source for each in local.learn_one(line).neighbours]
        assert (line in sources) is not leave_out and len(sources) == 5


def test_blank_lines_and_lines_without_examples_have_the_base_weights(world: Path) -> None:
    _, translator, _, text = parts(world, "phrase")
    empty = Shelf(translator, [], [])
    found = LocalTranslator(translator, empty).batch(["", text[0]])
    assert [each.neighbours for each in found] == [[], []]
    assert [each.text for each in found] == [t.text for t in translator.batch(["", text[0]])]


def test_options_that_make_no_sense_are_refused(world: Path) -> None:
    _, translator, shelf, text = parts(world, "phrase")
    for local, message in (
        (Local("mira", strength=0.1), r"mira has no strength.*use mbuu or ebuu"),
        (Local("mbu"), "no tuner named 'mbu'"),
        (Local("mbuu", options={"passes": 3}), "mbuu has no option 'passes'"),
    ):
        with pytest.raises(InputError, match=message):
            LocalTranslator(translator, shelf, local)
    with pytest.raises(InputError, match="k is 0"):
        Local(k=0)
    with pytest.raises(InputError, match="strength is -1"):
        Local(strength=-1.0)
    with pytest.raises(InputError, match="a string in place of"):
        LocalTranslator(translator, shelf).translate("text")
    with pytest.raises(InputError, match="changes of weights for 1 lines, but there are 2"):
        translator.batch(text[:2], changes=[{}])
    with pytest.raises(InputError, match="finite"):
        translator.batch(text[:1], changes=[{"lm": float("nan")}])


def test_weights_that_must_not_move_stay(world: Path) -> None:
    _, translator, shelf, text = parts(world, "phrase")
    local = LocalTranslator(translator, shelf, Local("mbuu", strength=5.0))
    assert "lm" in local.learn_one(text[0]).moved
    translator.fixed = frozenset(["lm", "given"])
    assert "lm" not in local.learn_one(text[0]).moved
    assert isinstance(translator.weights, Weights)
