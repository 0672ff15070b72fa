"""The structured learner gives what its slow twin gives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.structured import Maze, beam_steps, learn

from tunesmith.structured import Model, Training, train
from tunesmith.structured.settings import UPDATES, Update

WORDS = st.text("abc", min_size=1, max_size=4)
PAIRS = st.lists(st.tuples(WORDS, st.integers(0, 99)), min_size=1, max_size=4)


@pytest.mark.parametrize("update", UPDATES)
@given(pairs=PAIRS, beam=st.integers(1, 3), share=st.sampled_from([0.3, 0.5]))
@settings(max_examples=12)
def test_weights_are_those_of_the_twin(
    update: Update, pairs: list[tuple[str, int]], beam: int, share: float
) -> None:
    task = Maze(share=share)
    wanted = learn(task, pairs, update=update, beam=beam, passes=3, seed=1)
    training = Training(beam=beam, update=update, passes=3)
    if not wanted:
        return
    found = train(task, pairs, training).features()
    assert found.keys() == wanted.keys()
    assert all(found[name] == pytest.approx(wanted[name]) for name in wanted)


@given(pairs=PAIRS, beam=st.integers(1, 4))
@settings(max_examples=12)
def test_predictions_are_those_of_the_twin(pairs: list[tuple[str, int]], beam: int) -> None:
    task = Maze()
    model = train(task, [("abca", seed) for seed in range(6)], Training(passes=2))
    weights = model.features()
    # Nothing is gold for this twin, so nothing is held apart.
    blind = replace(task, share=0.0)
    for word, _ in pairs:
        best = beam_steps(blind, word, 0, weights, beam)[-1][0]
        assert model.predict([word], beam=beam) == [tuple(action for _, action in best)]


def test_mixed_and_batched_learning_of_python_tasks_is_the_same_for_any_threads() -> None:
    pairs = [("abca", seed) for seed in range(12)]
    training = Training(beam=2, passes=3, batch=2, shards=3)
    one, two = (train(Maze(), pairs, training, threads=threads) for threads in (1, 2))
    assert isinstance(one, Model) and one.weights == two.weights
