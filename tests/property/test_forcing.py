"""Violations of forced derivations: the step, its degenerate cases, the lists they make."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins import forcing

from tunesmith._core import Contest, Decoder, Pools, Translator
from tunesmith.learn.selectors import Fix
from tunesmith.lm import estimate
from tunesmith.training.rules import AlignedCorpus, make_phrase_table

SOURCE = "a b c d\nb a d c\nc d a\na c b d\nd b\na\nb\nb c\n"
TARGET = "A B C D\nA B C D\nA C D\nA B C D\nB D\nA X\nX\nC\n"
LINKS = (
    "0-0 1-1 2-2 3-3\n0-1 1-0 2-3 3-2\n0-1 1-2 2-0\n0-0 1-2 2-1 3-3\n0-1 1-0\n0-0 0-1\n0-0\n0-0\n"
)
UPDATES = get_args(Fix)


@pytest.fixture(scope="module")
def decoder(tmp_path_factory: pytest.TempPathFactory) -> Decoder:
    folder = tmp_path_factory.mktemp("forced")
    for name, text in (("s", SOURCE), ("t", TARGET), ("l", LINKS)):
        (folder / name).write_text(text)
    corpus = AlignedCorpus(folder / "s", folder / "t", folder / "l")
    make_phrase_table(corpus, folder / "words")
    estimate(folder / "t", order=3).write_arpa(folder / "lm.arpa")
    return Decoder.phrase(folder / "words", folder / "lm.arpa", templates=["rule-id", "order"])


def translator(decoder: Decoder, seed: int, **settings: float) -> tuple[Translator, dict[str, Any]]:
    draw = np.random.default_rng(seed)
    weights = {name: float(draw.normal()) for name in decoder.dense}
    weights["RI:a~A"] = float(draw.normal())
    return decoder.translator([*weights.items()], [*settings.items()]), weights


def dots(pools: Pools, weights: dict[str, float]) -> np.ndarray:
    return pools.dot(np.array([weights.get(name, 0.0) for name in pools.names]))


lines = st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join)
references = st.lists(st.sampled_from("ABCDX"), min_size=1, max_size=6).map(" ".join)
seeds = st.integers(0, 10_000)
limits = st.fixed_dictionaries(
    {
        "stack": st.integers(0, 3),
        "pop_limit": st.sampled_from([0, 2, 5]),
        "distortion_limit": st.sampled_from([-1, 0, 1, 3]),
        "table_limit": st.integers(0, 2),
    }
)


def reachable(made: Translator, line: str, data: st.DataObject) -> str:
    """Draw a string that a wide search with the same limits finds."""
    texts = [each.text for each in made.translate([line], details=200)[0].derivations]
    return data.draw(st.sampled_from(sorted(set(texts)) or [""]))


@given(st.data(), seeds, limits, lines, st.booleans(), st.sampled_from(UPDATES))
def test_the_step_is_that_of_the_twin(
    decoder: Decoder,
    data: st.DataObject,
    seed: int,
    asked: dict[str, int],
    line: str,
    future: bool,
    update: str,
) -> None:
    made, weights = translator(decoder, seed, **asked)
    wide, _ = translator(decoder, seed, **(asked | {"stack": 0, "pop_limit": 0}))
    reference = data.draw(references) if data.draw(st.booleans()) else reachable(wide, line, data)
    pools, (found,) = made.violations([line], [reference], update, 3, future, 1)
    assert found.step == forcing.step(update, found.rungs)
    if found.whole and reference:
        (translation,) = wide.translate([line], details=20_000)
        steps = forcing.gold_steps(translation.derivations, reference)
        # The beam may be empty where a wide search is not.
        assert {rung[0] for rung in found.rungs} <= set(steps)
        assert asked["stack"] or asked["pop_limit"] or [r[0] for r in found.rungs] == steps
        covered, *_, held, right = found.rungs[-1] if found.rungs else (0, False, False)
        if covered == len(line.split()):
            listed = made.nbest([line], 20_000)
            strings = listed.texts(np.arange(listed.hypotheses))
            assert held == (reference in strings)
            best = [text for text, score in zip(strings, listed.scores, strict=True)
                    if score >= listed.scores.max() - 1e-3]  # fmt: skip
            assert right == (reference == strings[0]) or len(best) > 1
    texts = pools.texts(np.arange(pools.hypotheses))
    assert all(reference.split()[: len(text.split())] == text.split() for text in texts[:1])
    assert (len(texts) > 1) == (found.step is not None)
    # Scores are those of the features, and no update but the unchecked one goes uphill.
    scores = dots(pools, weights)
    assert np.allclose(scores, pools.scores, atol=1e-3)
    if found.step is not None:
        rung = next(rung for rung in found.rungs if rung[0] == found.step)
        assert pools.scores[:2].tolist() == pytest.approx([rung[1], rung[2]], abs=1e-4)
        assert update == "unchecked" or scores[0] - scores[1] <= 1e-3


def chosen(made: Translator, line: str, reference: str, **more: Any) -> list[Contest]:
    """Return what each update chooses."""
    return [made.violations([line], [reference], update, **more)[1][0] for update in UPDATES]


@given(st.data(), seeds, lines, st.integers(0, 2))
def test_a_beam_that_keeps_all_makes_early_and_standard_updates_equal(
    decoder: Decoder, data: st.DataObject, seed: int, line: str, table_limit: int
) -> None:
    made, _ = translator(decoder, seed, stack=0, pop_limit=0, table_limit=table_limit)
    reference = reachable(made, line, data)
    standard, early, most, unchecked = chosen(made, line, reference)
    assert early.step == standard.step == unchecked.step
    # Where the end is wrong, something is at least as wrong.
    assert standard.step is None or most.step is not None
    assert all(rung[3] and rung[2] >= rung[1] - 1e-4 for rung in most.rungs)


@given(st.data(), seeds, st.sampled_from("abcd"), st.integers(0, 2))
def test_one_word_makes_all_updates_equal(
    decoder: Decoder, data: st.DataObject, seed: int, word: str, stack: int
) -> None:
    made, _ = translator(decoder, seed, stack=0)
    reference = reachable(made, word, data)
    narrow, _ = translator(decoder, seed, stack=stack)
    found = chosen(narrow, word, reference)
    assert len({each.step for each in found}) == 1


@given(st.data(), seeds, limits, lines)
def test_the_best_of_the_beam_is_the_first_of_its_k_best(
    decoder: Decoder, data: st.DataObject, seed: int, asked: dict[str, int], line: str
) -> None:
    made, _ = translator(decoder, seed, **asked)
    wide, _ = translator(decoder, seed, **(asked | {"stack": 0, "pop_limit": 0}))
    reference = reachable(wide, line, data)
    lists = [made.violations([line], [reference], k=k)[0] for k in (1, 2, 50)]
    texts = [pools.texts(np.arange(pools.hypotheses)) for pools in lists]
    for pools, found in zip(lists[1:], texts[1:], strict=True):
        assert found[: len(texts[0])] == texts[0]
        assert np.allclose(pools.scores[: len(texts[0])], lists[0].scores, atol=1e-4)
        assert (np.diff(pools.scores[1:]) <= 1e-4).all()
    assert [len(found) for found in texts] == sorted(len(found) for found in texts)
    assert len(texts[0]) <= 2 and len(texts[1]) <= 3


def test_lists_hold_features_of_the_rest_if_asked(decoder: Decoder, tmp_path: Path) -> None:
    made, weights = translator(decoder, 3, stack=1)
    plain, (one,) = made.violations(["d c b a"], ["A B C D"], "unchecked", least=1)
    hoped, (other,) = made.violations(["d c b a"], ["A B C D"], "unchecked", 1, True, 1)
    assert one.rungs[-1] == other.rungs[-1]
    assert any(a[1:3] != b[1:3] for a, b in zip(one.rungs, other.rungs, strict=True))
    assert np.allclose(dots(hoped, weights), hoped.scores, atol=1e-3)
    assert np.allclose(dots(plain, weights), plain.scores, atol=1e-3)
