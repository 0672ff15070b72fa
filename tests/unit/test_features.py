"""Weights by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tunesmith import InputError, Weights


def test_weights_are_a_mapping_and_a_vector() -> None:
    weights = Weights({"LM0": 0.5, "WP": -1})
    assert weights == {"LM0": 0.5, "WP": -1.0} and len(weights) == 2
    assert weights.vector(["WP", "new", "LM0"]).tolist() == [-1.0, 0.0, 0.5]
    assert weights.get("new", 0.0) == 0.0
    with pytest.raises(KeyError):
        weights["new"]
    with pytest.raises(TypeError):
        hash(weights)


def test_a_vector_gets_its_names_back() -> None:
    vector = np.array([0.0, -2.5])
    assert Weights.from_vector(["a", "b"], vector) == {"a": 0.0, "b": -2.5}
    assert Weights.from_vector(["a", "b"], vector, drop_zeros=True) == {"b": -2.5}
    kept = Weights.from_vector(["c", "a"], np.zeros(2), drop_zeros=True, always={"a"})
    assert kept == {"a": 0.0}
    with pytest.raises(ValueError):
        Weights.from_vector(["a"], vector)


def test_the_largest_weights_come_first() -> None:
    weights = Weights({"a": 0.5, "b": -3.0, "d": 0.5, "c": 0.0})
    assert list(weights.top(3).items()) == [("b", -3.0), ("a", 0.5), ("d", 0.5)]


def test_the_largest_change_is_told_also_of_weights_that_are_gone_or_new() -> None:
    before, after = Weights({"a": 1.0, "b": 2.0}), Weights({"a": 1.5, "c": -1.0})
    assert after.change(before) == 2.0
    assert before.change(after) == 2.0
    assert after.change(Weights({"a": 1.0})) == 1.0
    assert after.change(after) == Weights({}).change(Weights({})) == 0.0


def test_zeros_are_not_counted() -> None:
    assert Weights({"a": 1.0, "b": 0.0, "c": -0.0, "d": -2.0}).nonzero == 2


def test_some_weights_are_replaced_in_a_copy() -> None:
    weights = Weights({"a": 1.0, "b": 2.0}, {"tuner": "rm"})
    new = weights.replaced({"b": 3.0, "c": 4.0})
    assert new == {"a": 1.0, "b": 3.0, "c": 4.0} and new.meta == {"tuner": "rm"}
    assert weights == {"a": 1.0, "b": 2.0}


def test_saved_weights_are_read_back_to_the_last_bit(tmp_path: Path) -> None:
    values = {"LM 0": 0.1 + 0.2, "PT:das_haus~the_house": -1e-300, 'quote"d': 1e17, "": 0.0}
    Weights(values, {"tuner": "rm", "start": 38.5}).save(tmp_path / "w.toml")
    again = Weights.load(tmp_path / "w.toml")
    assert again == values
    assert again.meta["tuner"] == "rm" and again.meta["start"] == 38.5


def test_spreads_are_kept_beside_weights_and_rank_them(tmp_path: Path) -> None:
    weights = Weights({"large": 9.0, "wide": -0.1, "still": 100.0, "PT:a~b=": 0.5})
    weights.meta["spread"] = {"wide": 100.0, "large": 0.5, "PT:a~b=": 0.1 + 0.2}
    weights.save(tmp_path / "w.toml")
    again = Weights.load(tmp_path / "w.toml")
    assert again == weights and again.spread == weights.spread
    assert again.influence == {"wide": 10.0, "large": 4.5, "PT:a~b=": pytest.approx(0.15)}
    assert list(again.ranked(9)) == ["wide", "large", "PT:a~b=", "still"]
    assert again.ranked(2) == {"wide": -0.1, "large": 9.0}
    # Without spreads there is only the size.
    assert list(Weights(dict(again)).ranked(2)) == ["still", "large"]
    assert Weights({"a": 1.0}, {"spread": "none"}).spread == {}


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    for text in ('[weights]\na = "x"\n', "[weights]\na = nan\n", "a = [", ""):
        path.write_text(text)
        with pytest.raises(InputError, match=r"w\.toml"):
            Weights.load(path)
