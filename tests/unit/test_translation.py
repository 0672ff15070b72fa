"""A model and its translators from Python: what they take, what they tell, what they refuse."""

from __future__ import annotations

import itertools
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from twins.toy import make_world

from tunesmith import InputError, Weights
from tunesmith.decode.batches import BATCH, LISTED, Pace
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.templates import Template
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.errors import WithoutEffect
from tunesmith.sources import Live
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide

LINE = "das kleine haus ein buch sieht"
PAIR = "PT:das~the"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("translation")) / "model"


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return Model.load(folder, "phrase")


@pytest.fixture
def no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def features(translator: Translator) -> set[str]:
    return {name for name, _ in translator.batch([LINE], details=1)[0].derivations[0].features}


def test_long_lists_are_made_for_few_lines_at_a_time() -> None:
    for k, most in ((1, BATCH), (LISTED // 10, 10), (LISTED, 1), (10 * LISTED, 1)):
        pace = Pace(threads=1, k=k)
        pace.took(1, 1e-9)
        assert pace.size == most
        assert pace.size * k <= max(LISTED, k)


def test_slow_lines_come_in_small_batches() -> None:
    pace = Pace(threads=2)
    sizes = [pace.size]
    for seconds in (0.001, 20.0, 50.0, 0.001):
        pace.took(pace.size, seconds)
        sizes.append(pace.size)
    # As many as threads to begin with, and never fewer.
    assert sizes == [2, 100, 5, 2, 100]


@pytest.mark.usefixtures("no_warnings")
def test_weights_turn_their_templates_on(folder: Path, model: Model) -> None:
    sparse = Weights({"lm": 0.5, "words": 1.0, PAIR: 5.0})
    assert PAIR not in features(model.translator({"lm": 0.5}))
    found = features(model.translator(sparse))
    assert any(name.startswith("PT:") for name in found)
    named = features(Model.load(folder, "phrase", named=["rule-id"]).translator(sparse))
    assert found == named
    # Files are not loaded for each translator.
    assert model.with_templates(["rule-id"]) is model.with_templates(["rule-id"])
    assert model.with_templates([]) is model
    told = Weights({"lm": 1.0}, {"templates": ["green2013"]})
    assert any(name.startswith("LO:") for name in features(model.translator(told)))


def test_weights_without_effect_are_warned_of(model: Model, folder: Path) -> None:
    with pytest.warns(WithoutEffect, match=r"no such features: 2, lmm, numbers:kept \(correct"):
        model.translator({"lm": 1.0, "lmm": 1.0, "numbers:kept": 1.0, "zero": 0.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Model.load(folder, "phrase", templates=[Numbers()]).translator({"lm": 1.0, "n:kept": 1.0})


@pytest.mark.usefixtures("no_warnings")
def test_tuning_is_not_warned(model: Model) -> None:
    found = Live(model, [LINE], [["the small house"]], k=5).decode({"lm": 0.5, PAIR: 1.0})
    assert any(name.startswith("PT:") for name in found.names)


class Numbers(Template):
    def find(self, *_: Any) -> dict[str, float]:
        return {"n:kept": 1.0}


def test_templates_are_instances_or_names(folder: Path) -> None:
    named = Model.load(folder, "phrase", templates=["rule-id", Numbers()])
    found = features(named.translator({"lm": 1.0}))
    assert "n:kept" in found and any(name.startswith("PT:") for name in found)
    with pytest.raises(TypeError, match=r"Numbers.* is a class, not a template: write Numbers\(\)"):
        Model.load(folder, "phrase", templates=[Numbers])  # type: ignore[list-item]
    with pytest.raises(InputError, match=r"in place of a list \(write \[\"rule-id\"\]"):
        Model.load(folder, "phrase", named="rule-id")


def test_callers_with_a_thread_each_do_not_wait_for_each_other(folder: Path) -> None:
    meeting = threading.Barrier(2, timeout=20)

    calls = itertools.count()

    class Meets(Template):
        def find(self, *_: Any) -> dict[str, float]:
            # The first caller waits here, so the second call is that of another thread.
            if next(calls) < 2:
                meeting.wait()
            return {}

    model = Model.load(folder, "phrase", templates=[Meets()])
    # Each translator has a cache of its own, so both look at the rules.
    several = [model.translator({"lm": 1.0}) for _ in range(2)]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda each: each.batch([LINE], threads=1)[0].text, several))
    assert found[0] == found[1] and not meeting.broken


@pytest.mark.parametrize("name", ["lm", "distortion", "given", "a|||b", "lm=", "x y", ""])
def test_templates_may_not_take_the_names_of_others(folder: Path, name: str) -> None:
    class Taken(Template):
        def find(self, *_: Any) -> dict[str, float]:
            return {name: 1.0}

    model = Model.load(folder, "phrase", templates=[Taken()])
    with pytest.raises(ValueError, match="is no name of a feature"):
        model.translator({"lm": 1.0}).batch([LINE])


def test_weights_are_a_mapping_or_a_file(model: Model, tmp_path: Path) -> None:
    (tmp_path / "w.txt").write_text("lm= 0.5\nwords 2\nWD:= 1\n")
    read = Weights.load(tmp_path / "w.txt")
    assert read == {"lm": 0.5, "words": 2.0, "WD:=": 1.0}
    for given in (tmp_path / "w.txt", str(tmp_path / "w.txt")):
        assert model.translator(given).weights["words"] == 2.0
    (tmp_path / "w.txt").write_text("lm= 0.5\nlm 2\n")
    with pytest.raises(InputError, match=r"w.txt: two weights of lm"):
        Weights.load(tmp_path / "w.txt")


TUNED: dict[Kind, list[Weights]] = {
    "phrase": [Weights({"lm": 0.25, "distortion": 0.1}), Weights({"lm": 0.25}, {"kind": "phrase"})],
    "hiero": [Weights({"lm": 0.25, "glue": 0.1}), Weights({"lm": 0.25}, {"kind": "hiero"})],
}


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_weights_are_of_one_kind_of_rules(folder: Path, tmp_path: Path, kind: Kind) -> None:
    other: Kind = "hiero" if kind == "phrase" else "phrase"
    own = shutil.copytree(folder, tmp_path / "model")
    for weights in TUNED[kind]:
        weights.save(own / "weights.toml")
        assert Model.load(own, kind).weights["lm"] == 0.25
        with pytest.warns(WithoutEffect, match=rf"weights.toml: .* tuned for {kind} rules"):
            fallen = Model.load(own, other)
        assert not fallen.tuned and fallen.weights["lm"] != 0.25
        with pytest.raises(InputError, match=f"weights for {kind} rules, but the model is of"):
            fallen.translator(weights)
    both = Weights({"lm": 0.25, "glue": 0.1, "distortion": 0.1, "words": 0.0})
    both.save(own / "weights.toml")
    assert Model.load(own, other).weights["lm"] == 0.25


CALLS: list[Callable[[Translator, Any], Any]] = [
    lambda made, lines: made.translate(lines),
    lambda made, lines: made.batch(lines),
    lambda made, lines: made.prepared(lines),
    lambda made, lines: made.nbest(lines, 2),
    lambda made, lines: made.forests(lines),
    lambda made, lines: made.bins(lines),
    lambda made, lines: made.force(lines, [LINE]),
    lambda made, lines: made.force([LINE], lines),
    lambda made, lines: made.bins([LINE], forced=lines),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_string_is_no_list_of_lines(model: Model, call: Callable[[Translator, Any], Any]) -> None:
    with pytest.raises(InputError, match=r"a string in place of a list of lines \(write \[text\]"):
        call(model.translator({"lm": 1.0}), LINE)


def test_what_is_no_text_is_refused_with_its_line(model: Model) -> None:
    translator = model.translator({"lm": 1.0})
    with pytest.raises(InputError, match=r"input:2: a lone surrogate, '\\udcff' \(decode"):
        translator.batch([LINE, "das \udcff"])
    with pytest.raises(InputError, match="input:1: int in place of a line"):
        translator.nbest([3], 2)  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda made: made.nbest([LINE], -1), "k"),
        (lambda made: made.nbest([LINE], 1, threads=-1), "threads"),
        (lambda made: made.batch([LINE], details=-1), "details"),
        (lambda made: made.translate([LINE], threads=-2), "threads"),
        (lambda made: made.forests([LINE], threads=-1), "threads"),
        (lambda made: made.force([LINE], [LINE], -1), "k"),
    ],
)
def test_numbers_below_zero_are_refused(
    model: Model, call: Callable[[Translator], Any], name: str
) -> None:
    with pytest.raises(InputError, match=rf"{name} is -\d \(give a number from 0"):
        call(model.translator({"lm": 1.0}))


@pytest.fixture(scope="module")
def cased(tmp_path_factory: pytest.TempPathFactory) -> Translator:
    folder = tmp_path_factory.mktemp("cased")
    (folder / "src").write_text("Das Haus ist das alte Haus .\nHier ist das Haus .\n" * 10)
    (folder / "tgt").write_text("The house is the old house .\nHere is the house .\n" * 10)
    sides = TextSide("de", "none", "true"), TextSide("en", "none", "true")
    train(Training(folder / "src", folder / "tgt", *sides, order=2), folder / "model", 1)
    return Model.load(folder / "model", "phrase").translator()


def test_capitals_are_kept_but_where_a_sentence_begins(cased: Translator) -> None:
    [first, other] = cased.prepared(
        ['Das <n translation="The House">Das</n> Das', '<n translation="The">Das</n> Das'],
        "exclusive",
    )
    assert " ".join(first.split()) == 'das <n translation="The House"> Das </n> Das'
    assert " ".join(other.split()) == '<n translation="The"> das </n> Das'
    assert cased.prepared(["Das Das"]) == ["das Das"]
    [found] = cased.batch(
        ['Hier ist <n translation="The Villa">das Haus</n> .'], markup="exclusive"
    )
    assert found.text == "Here is The Villa ."


def test_entities_of_xml_are_characters(cased: Translator) -> None:
    text = "x <n translation='y&apos;s &#38; &#x41;'>a&apos;b</n> &amp;apos; &eacute;"
    [found] = cased.batch([text], markup="exclusive")
    assert found.text == "X y's & A &apos; &eacute;"
    assert found.source == "x a'b &apos; &eacute;"


def test_tags_that_give_translations_have_words_inside(cased: Translator) -> None:
    for text in ('das <n translation="x"/> Haus', 'das <n translation="x"></n> Haus'):
        with pytest.raises(InputError, match=r"input:1: .*<n> has no words inside"):
            cased.batch([text], markup="exclusive")
