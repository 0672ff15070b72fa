"""Tables of statistics: what goes in comes out, what cannot be used is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.metrics import Bleu, Wer

STARTS = np.array([0, 3, 3, 5])


def test_rows_come_back_and_equal_ones_are_kept_once() -> None:
    rows = np.array([[1, 2], [1, 2], [0, 2], [1, 2], [1, 2]], float)
    table = _core.Table.from_rows(STARTS, rows)
    assert table.rows().tolist() == rows.tolist()
    assert (table.width, table.hypotheses, table.sentences, table.distinct) == (2, 5, 3, 3)


def test_texts_are_scored_against_their_own_references() -> None:
    texts = ["a b", "a c", "a b", "x", "y"]
    references = [["a b", "c"], ["never used"], ["y"]]
    table = _core.Table.from_texts(Bleu().native, STARTS, texts, references)
    expected = Bleu().stats(texts, [references[i] for i in (0, 0, 0, 2, 2)])
    assert table.rows().tolist() == expected.tolist()


@pytest.mark.parametrize("starts", [[], [0], [1, 5], [0, 4], [0, 4, 2, 5], [0, -1, 5]])
def test_offsets_that_do_not_divide_the_rows_are_refused(starts: list[int]) -> None:
    with pytest.raises(InputError, match="do not divide 5 hypotheses"):
        _core.Table.from_rows(np.array(starts, np.int64), np.zeros((5, 2)))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_by_place(value: float) -> None:
    rows = np.zeros((5, 2))
    rows[4, 1] = value
    with pytest.raises(InputError, match="hypothesis 2 of sentence 3"):
        _core.Table.from_rows(STARTS, rows)


def test_references_for_another_number_of_sentences_are_refused() -> None:
    with pytest.raises(InputError, match="3 sentences, but references for 1"):
        _core.Table.from_texts(Wer().native, STARTS, ["a"] * 5, [["a"]])


def test_no_hypotheses_are_an_empty_table() -> None:
    table = _core.Table.from_rows(np.array([0, 0]), np.zeros((0, 3)))
    assert table.rows().shape == (0, 3)
    assert table.sentences == 1
