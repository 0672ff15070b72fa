"""Tables of statistics: what goes in comes out, what cannot be used is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.metrics import Bleu, Column, Metric, Rows, Wer, get_metric
from tunesmith.spaces import Pools

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


def test_python_metrics_score_lists_from_several_threads() -> None:
    class Length(Metric):
        name, width = "length", 2

        def row(self, hypothesis: str, references: list[str]) -> list[float]:
            return [abs(len(hypothesis) - len(references[0])), len(references[0])]

        def score_rows(self, rows: Rows) -> Rows:
            return np.asarray(100 * rows[:, 0] / rows[:, 1])

        def gain_rows(self, rows: Rows) -> Rows:
            return np.asarray(1 - rows[:, 0] / rows[:, 1])

    starts = np.arange(0, 401, 2)
    texts = ["a" * (i % 7) for i in range(400)]
    references = [["b" * (1 + i % 5)] for i in range(200)]
    pools = Pools.from_arrays(np.zeros((400, 1)), starts, ["x"], texts, references)
    expected = Length().stats(texts, [references[i // 2] for i in range(400)])
    for threads in (1, 2, 4):
        rows = Length().table(pools, threads).rows()
        assert rows.tolist() == expected.tolist()


def test_lists_without_what_a_metric_reads_are_refused() -> None:
    pools = Pools.from_arrays(np.zeros((2, 1)), [0, 2], ["x"], ["a", "b"])
    with pytest.raises(InputError, match="bleu needs references"):
        Bleu().table(pools)
    with pytest.raises(InputError, match=r"no column 'comet' \(there are none\)"):
        Column("comet").table(pools)


def test_a_column_of_the_lists_is_a_metric() -> None:
    builder = _core.PoolsBuilder(columns=["errors", "words"])
    for values in ([(1, 4), (2, 4)], [(0, 2)]):
        builder.sentence()
        for errors, words in values:
            columns = {"errors": float(errors), "words": float(words)}
            builder.push("text", ["x"], [1.0], columns=columns)
    pools = Pools(builder.finish())
    table = get_metric("column:errors/words").table(pools)
    assert table.rows().tolist() == [[1, 4], [2, 4], [0, 2]]
    assert get_metric("column:-errors").table(pools).rows()[:, 0].tolist() == [1, 2, 0]
    with pytest.raises(InputError, match=r"no column 'comet' \(there are errors, words\)"):
        get_metric("column:comet").table(pools)
