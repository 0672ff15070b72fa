"""Training, models and bad tasks of the structured learner."""

from __future__ import annotations

import pickle
import runpy
from collections.abc import Callable
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from twins.structured import Maze

from tunesmith import InputError, _core
from tunesmith.files.arrays import read_arrays, write_arrays
from tunesmith.structured import Model, Parser, Tagger, Training, Tree, train
from tunesmith.structured.settings import METHODS, UPDATES
from tunesmith.structured.weights import Weights

ROOT = Path(__file__).parents[2]
TAGGED = [
    (("the", "dog", "barks"), ("DET", "NOUN", "VERB")),
    (("a", "dog", "sees", "the", "cat"), ("DET", "NOUN", "VERB", "DET", "NOUN")),
    (("cats", "see"), ("NOUN", "VERB")),
    (("the", "cat", "sleeps"), ("DET", "NOUN", "VERB")),
]
PARSED = [
    (TAGGED[0], Tree((2, 3, 0), ("det", "nsubj", "root"))),
    (TAGGED[1], Tree((2, 3, 0, 5, 3), ("det", "nsubj", "root", "det", "obj"))),
    (TAGGED[2], Tree((2, 0), ("nsubj", "root"))),
]
CROSSING = (TAGGED[1], Tree((3, 4, 0, 3, 3), ("a", "a", "root", "a", "a")))


# The last step alone need not teach a narrow beam anything.
@pytest.mark.parametrize(
    ("update", "beam"),
    [
        *((update, None) for update in UPDATES),
        *((update, beam) for update in ("early", "max-violation") for beam in (1, 4)),
    ],
)
@pytest.mark.parametrize("learner", METHODS)
def test_small_texts_are_learnt_by_heart(update: Any, learner: Any, beam: int | None) -> None:
    training = Training(beam=beam, update=update, learner=learner, passes=20)
    tagger = train(Tagger(), TAGGED, training)
    assert tagger.predict([words for words, _ in TAGGED]) == [tags for _, tags in TAGGED]
    parser = train(Parser(), PARSED, training)
    assert parser.predict([given for given, _ in PARSED]) == [tree for _, tree in PARSED]


@pytest.mark.parametrize(
    "training",
    [
        Training(batch=2, learner="mira"),
        Training(batch=3),
        Training(shards=2, batch=2, learner="kbest-mira"),
        Training(weights="voted", voters=3),
    ],
)
def test_regimes_learn_the_same_for_any_number_of_threads(training: Training) -> None:
    one, two = (train(Tagger(), TAGGED * 3, training, threads=threads) for threads in (1, 2))
    assert one.weights == two.weights and one == replace(two, history=one.history)
    assert one.predict([TAGGED[0][0]]) == [TAGGED[0][1]]


def test_voters_vote() -> None:
    model = train(Tagger(), TAGGED * 3, Training(weights="voted", voters=4, passes=3))
    assert 1 < len(model.weights.votes) <= 4
    assert (np.diff(model.weights.votes) <= 0).all()
    # Two voters against one with fewer votes than both of them.
    good, bad = model.weights.values[-1], -model.weights.values[-1]
    values = np.stack([bad, good, good])
    voted = replace(model.weights, values=values, votes=np.array([3.0, 2.0, 2.0]))
    alone = replace(model.weights, values=values[1:2], votes=np.array([1.0]))
    words = [words for words, _ in TAGGED]
    found = [replace(model, weights=each).predict(words) for each in (voted, alone)]
    assert found[0] == found[1]


def test_an_unlabelled_parser_has_no_labels() -> None:
    model = train(Parser(labelled=False), PARSED)
    assert model.predict([PARSED[0][0]]) == [Tree((2, 3, 0), ("", "", ""))]
    assert isinstance(model.task, Parser)
    assert model.task.transitions == ("shift", "left", "right")


def test_crossing_arcs_are_counted_and_left_out() -> None:
    model = train(Parser(), [*PARSED, CROSSING])
    assert (model.examples, model.skipped) == (3, 1)
    with pytest.raises(InputError, match="no example has a gold derivation"):
        train(Parser(), [CROSSING])


def test_the_pass_that_is_best_on_dev_is_kept() -> None:
    model = train(Tagger(), TAGGED, Training(passes=4), dev=TAGGED)
    scores = [each.dev for each in model.history]
    assert model.kept == scores.index(max(filter(None, scores))) + 1
    short = train(Tagger(), TAGGED, Training(passes=model.kept))
    assert model.weights == short.weights


def test_unknown_words_and_empty_sentences_can_be_tagged() -> None:
    model = train(Tagger(), TAGGED)
    assert model.predict([()]) == [()]
    ((one, two),) = model.predict([("zyx", "Über-123")])
    assert {one, two} <= {"DET", "NOUN", "VERB"}
    parser = train(Parser(), PARSED)
    assert parser.predict([((), ())]) == [Tree((), ())]
    assert parser.predict([(("x",), ("Y",))]) == [Tree((0,), ("root",))]


def test_settings_and_tasks_are_values() -> None:
    for value in (Training(beam=None, c=0.5), Tagger("xpos", ("word",)), Parser(labelled=False)):
        again = pickle.loads(pickle.dumps(value))
        assert again == value and hash(again) == hash(value)
        assert eval(repr(value)) == value
        with pytest.raises(FrozenInstanceError):
            setattr(value, fields(value)[0].name, None)
        assert (ROOT / value.KERNEL).is_file() or not (ROOT / "core").is_dir()


@pytest.mark.parametrize(
    "bad",
    [
        {"beam": 0},
        {"beam": -1},
        {"passes": 0},
        {"batch": 0},
        {"shards": 0},
        {"k": 0},
        {"c": 0.0},
        {"c": float("nan")},
        {"seed": -1},
        {"update": "late"},
        {"learner": "svm"},
        {"weights": "best"},
        {"weights": "voted", "shards": 2},
    ],
)
def test_settings_that_cannot_work_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        Training(**bad)
    assert caught.value.remedy


def test_a_beam_of_zero_and_unknown_templates_are_refused() -> None:
    model = train(Tagger(), TAGGED)
    with pytest.raises(InputError, match="a beam of 0"):
        model.predict([("a",)], beam=0)
    with pytest.raises(InputError, match='no template is named "wrod"'):
        train(Tagger(templates=("wrod",)), TAGGED)
    with pytest.raises(InputError, match="no examples"):
        train(Tagger(), [])
    with pytest.raises(InputError, match="nothing was learnt"):
        train(Tagger(), [(("a",), ("X",))])
    with pytest.raises(InputError, match="no sentence has two words"):
        train(Parser(), [((("a",), ("X",)), Tree((0,), ("root",)))])


# -- tasks written in Python -----------------------------------------------------------


class Broken(Maze):
    """A task with one method replaced."""

    def __init__(self, **methods: Callable[..., Any]) -> None:
        super().__init__()
        for name, method in methods.items():
            object.__setattr__(self, name, method)


class OddError(Exception):
    """What a task raises."""


def ones(given: str, wanted: int, state: tuple[int, int], action: int) -> bool:
    return action == 1


def raises(*_: Any) -> Any:
    raise OddError("so it is")


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (
            {"actions": lambda given, state: [] if state == (1, 0) else [0, 1]},
            "example 1: .* no action",
        ),
        ({"features": lambda *_: {"f": float("nan")}}, 'example 1: the feature "f" is NaN'),
        ({"features": lambda *_: {"f": float("inf")}}, 'the feature "f" is inf'),
        ({"is_gold": lambda *_: False}, "no example has a gold derivation"),
        ({"features": lambda *_: ["same"]}, "nothing was learnt"),
    ],
)
def test_a_broken_task_is_refused_with_a_remedy(methods: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        train(Broken(**({"is_gold": ones} | methods)), [("abc", 1)])
    assert caught.value.remedy


@pytest.mark.parametrize("name", ["start", "is_end", "actions", "apply", "features", "is_gold"])
def test_what_a_task_raises_comes_out(name: str) -> None:
    with pytest.raises(OddError, match="so it is"):
        train(Broken(**({"is_gold": ones} | {name: raises})), [("abca", 5)])


def test_a_task_that_never_ends_is_refused() -> None:
    endless = Broken(
        is_end=lambda given, state: False,
        actions=lambda given, state: [1],
        apply=lambda given, state, action: (0, state[1] + 1),
    )
    model = train(Maze(), [("abca", 5), ("abc", 3), ("bca", 8)])
    with pytest.raises(InputError, match="does not end"):
        replace(model, task=endless).predict(["abc"])


def test_states_must_be_hashable_and_features_names() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        train(Broken(start=lambda given: []), [("abc", 1)])
    with pytest.raises(TypeError, match="several names or a mapping"):
        train(Broken(features=lambda *_: "name", is_gold=lambda *_: True), [("abc", 1)])


def test_several_derivations_may_be_gold() -> None:
    kernel = _core.StructuredTask.python(Maze(share=0.6))
    learner = kernel.learner(
        [("abca", seed) for seed in range(20)],
        beam=2,
        update="early",
        method="perceptron",
        c=1.0,
        k=1,
        batch=1,
        voters=0,
        seed=1,
    )
    assert max(learner.derivations) > 1
    assert learner.skipped[0] + len(learner.derivations) == 20


# -- models on disk --------------------------------------------------------------------


def test_models_come_back_as_they_were(tmp_path: Path) -> None:
    for number, model in enumerate(
        (
            train(Tagger(), TAGGED, dev=TAGGED),
            train(Parser(), PARSED, Training(beam=None)),
            train(Tagger(), TAGGED, Training(weights="voted", voters=2)),
        )
    ):
        model.save(tmp_path / str(number))
        again = Model.load(tmp_path / str(number))
        assert again == model and again is not model
        assert pickle.loads(pickle.dumps(model)) == model


def test_a_task_in_python_is_given_again(tmp_path: Path) -> None:
    model = train(Maze(), [("abca", 5), ("abc", 3), ("bca", 8)])
    model.save(tmp_path / "model")
    with pytest.raises(InputError, match="written in Python, 'Maze'"):
        Model.load(tmp_path / "model")
    again = Model.load(tmp_path / "model", Maze())
    assert again == model
    assert again.predict(["abca"]) == model.predict(["abca"])


def test_features_have_names(tmp_path: Path) -> None:
    named = train(Tagger(templates=("word", "tag-1")), TAGGED).features()
    assert named["word=dog → NOUN"] > 0
    assert list(named.values()) == sorted(named.values(), key=abs, reverse=True)


def test_a_model_is_replaced_whole_and_nothing_else_is(tmp_path: Path) -> None:
    train(Tagger(), TAGGED).save(tmp_path / "model")
    second = train(Parser(), PARSED)
    second.save(tmp_path / "model")
    assert Model.load(tmp_path / "model") == second
    assert len(list((tmp_path / "model").glob("weights-*.npz"))) == 1
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="other files than a model"):
        second.save(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_a_writer_that_dies_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train(Tagger(), TAGGED)
    first.save(tmp_path / "model")

    def die(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    # Between the weights and the description.
    monkeypatch.setattr("tunesmith.structured.model.atomic_write", die)
    with pytest.raises(KeyboardInterrupt):
        train(Parser(), PARSED).save(tmp_path / "model")
    with pytest.raises(KeyboardInterrupt):
        first.save(tmp_path / "new")
    monkeypatch.undo()
    assert Model.load(tmp_path / "model") == first
    with pytest.raises(InputError, match="there is no model here"):
        Model.load(tmp_path / "new")
    first.save(tmp_path / "new")
    assert Model.load(tmp_path / "new") == first


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("format = 1", "format = 2", "not a structured model"),
        ("[task]", "[tusk]", "not a structured model"),
        ('name = "tagger"', 'nme = "tagger"', "not a model description"),
        ('name = "tagger"', 'name = "tagger"\nmore = 1', "not a model description"),
        ("beam = 8", "beam = 0", "beam is 0"),
        ('sha256 = "', 'sha256 = "0', "its digest differs"),
        ('file = "', 'file = "../', "outside the folder"),
        ('"VERB"', "3", "a name is not text"),
        ('    "VERB",\n', "", "weights are of another task"),
    ],
)
def test_a_changed_description_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    train(Tagger(), TAGGED).save(tmp_path / "model")
    path = tmp_path / "model" / "model.toml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=message) as caught:
        Model.load(tmp_path / "model")
    assert caught.value.remedy


def test_arrays_that_no_training_wrote_are_refused(tmp_path: Path) -> None:
    write_arrays(tmp_path / "w.npz", train(Tagger(), TAGGED).weights.arrays(), {})
    found = read_arrays(tmp_path / "w.npz")
    assert found is not None
    Weights.from_arrays(found.arrays)
    for name, wrong in {
        "values": found.arrays["values"] * np.nan,
        "ends": found.arrays["ends"][::-1].copy(),
        "contexts": found.arrays["contexts"].astype(np.int64),
        "votes": np.zeros(1),
        "letters": np.full_like(found.arrays["letters"], 255),
    }.items():
        with pytest.raises(ValueError):
            Weights.from_arrays(found.arrays | {name: wrong})
    with pytest.raises(ValueError, match="missing"):
        Weights.from_arrays({})


# -- the example -----------------------------------------------------------------------


def test_the_example_learns_what_letters_alone_do_not_tell() -> None:
    path = ROOT / "examples" / "transliteration.py"
    if not path.exists():
        pytest.skip("the repository is not here")
    assert len(path.read_text(encoding="utf-8").splitlines()) < 50
    names = runpy.run_path(str(path))
    seen, unseen = names["seen"], names["unseen"]
    assert not {word for word, _ in seen} & {word for word, _ in unseen}
    single, whole = (
        train(names["Transliteration"](templates), seen, Training(beam=4))
        for templates in (names["TEMPLATES"][:1], names["TEMPLATES"])
    )
    right = [
        sum(model.predict([word]) == [wanted] for word, wanted in unseen)
        for model in (single, whole)
    ]
    assert right[1] >= right[0] + 4 and right[1] >= 0.8 * len(unseen)
    kernel = _core.StructuredTask.python(whole.task)
    learner = kernel.learner(
        seen, beam=1, update="early", method="mira", c=1.0, k=1, batch=1, voters=0, seed=1
    )
    assert sum(count > 1 for count in learner.derivations) > 20
