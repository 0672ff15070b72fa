"""What metrics promise one by one: names, statistics, gains, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER

from tunesmith.errors import InputError
from tunesmith.metrics import (
    Bleu,
    Chrf,
    Column,
    Metric,
    RatioColumns,
    StatisticsColumns,
    Ter,
    Wer,
    get_metric,
    metric_names,
    register,
)

HYPOTHESES = ["the cat sat on the mat .", "Hello, world!", ""]
REFERENCES = [["the cat sat on a mat ."], ["Hello world!"], ["nothing here"]]


def test_names_carry_options() -> None:
    assert get_metric("bleu") == Bleu()
    assert get_metric("bleu:tokenize=none,lowercase=1") == Bleu(tokenize="none", lowercase=True)
    assert get_metric("BLEU", max_order=2) == Bleu(max_order=2)
    assert get_metric("chrf++") == Chrf(word_order=2)
    assert get_metric("chrf:beta=3,whitespace=yes") == Chrf(beta=3, whitespace=True)
    assert get_metric("ter:normalized=true") == Ter(normalized=True)
    metric = Wer()
    assert get_metric(metric) is metric


def test_every_name_round_trips() -> None:
    for name in [
        "bleu",
        "chrf",
        "chrf++",
        "ter",
        "wer",
        "cer",
        "column:a",
        "column:-a",
        "column:a/b",
        "column:+a/b",
        "column:wer(a b)",
    ]:
        metric = get_metric(name)
        assert metric.name == name
        assert get_metric(metric.name) == metric


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("blue", "choose one of"),
        ("bleu:tokens=13a", "tokenize"),
        ("bleu:tokenize=klingon", "13a"),
        ("bleu:max_order=5", "1 to 4"),
        ("bleu:max_order=two", "whole number"),
        ("bleu:lowercase=maybe", "yes or no"),
        ("bleu:length=longest", "shortest"),
        ("chrf:beta=0", "positive"),
        ("chrf:char_order=0", "orders"),
        ("column", "NAME"),
        ("column:a/b/c", "ERRORS/LENGTH"),
        ("column:/", "ERRORS/LENGTH"),
        ("column:x,scale=-1", "positive"),
        ("column:bleu(a b)", "it has 10"),
    ],
)
def test_what_does_not_exist_is_refused_with_a_way_out(name: str, part: str) -> None:
    with pytest.raises(InputError, match=part):
        get_metric(name)


def test_unknown_keyword_options_are_refused() -> None:
    with pytest.raises(InputError, match="case_sensitive"):
        get_metric("ter", lower=True)
    with pytest.raises(InputError, match="options"):
        get_metric(Bleu(), lowercase=True)


@pytest.mark.parametrize("references", [1, 3])
def test_signatures_are_those_of_sacrebleu(references: int) -> None:
    pairs = [
        (get_metric("bleu"), BLEU()),
        (get_metric("bleu:tokenize=intl,lowercase=1"), BLEU(tokenize="intl", lowercase=True)),
        (get_metric("bleu:tokenize=zh"), BLEU(tokenize="zh")),
        (get_metric("chrf"), CHRF()),
        (get_metric("chrf++:lowercase=1"), CHRF(word_order=2, lowercase=True)),
        (get_metric("ter"), TER()),
        (get_metric("ter:no_punct=1,case_sensitive=1"), TER(no_punct=True, case_sensitive=True)),
    ]
    for ours, theirs in pairs:
        theirs.corpus_score(["a b"], [["a b"]] * references)
        assert ours.signature(references) == str(theirs.get_signature())


def test_signatures_name_what_sacrebleu_has_no_option_for() -> None:
    assert "|length:shortest|" in Bleu(length="shortest").signature()
    assert "|order:2|" in Bleu(max_order=2).signature()
    assert Bleu().signature(-1).startswith("nrefs:var|")
    assert Wer().signature(2).startswith("nrefs:2|case:mixed|unit:word|version:tunesmith-")


def test_labels_are_those_of_sacrebleu() -> None:
    for name in ["bleu", "chrf", "chrf++", "ter"]:
        metric = get_metric(name)
        theirs = {"bleu": BLEU(), "chrf": CHRF(), "chrf++": CHRF(word_order=2), "ter": TER()}[name]
        assert metric.label == theirs.corpus_score(["a"], [["a"]]).name


def test_bleu_statistics_have_the_documented_layout() -> None:
    stats = Bleu(tokenize="none").stats(["a b c d"], [["a b c x y"]])
    assert stats.tolist() == [[4, 5, 3, 2, 1, 0, 4, 3, 2, 1]]
    assert Bleu(max_order=2).native.width == 6


@pytest.mark.parametrize(("length", "expected"), [("closest", 2), ("shortest", 2), ("average", 3)])
def test_bleu_chooses_the_reference_length(length: str, expected: int) -> None:
    stats = Bleu(length=length).stats(["a b c"], [["a b c d", "a b"]])
    assert stats[0, 1] == expected


def test_a_gain_is_a_score_with_one_as_the_best() -> None:
    for name in ["bleu", "chrf", "chrf++", "ter", "wer", "cer"]:
        metric = get_metric(name)
        rows = metric.stats(HYPOTHESES, REFERENCES)
        gains = metric.native.gains(rows)
        scores = metric.scores(rows)
        expected = scores / 100 if metric.higher_is_better else 1 - scores / 100
        np.testing.assert_allclose(gains, expected, atol=1e-12)
        assert metric.score(rows.sum(axis=0)) == metric.corpus_score(HYPOTHESES, REFERENCES)


def test_sentence_gain_of_bleu_is_bleu_plus_one() -> None:
    metric = Bleu(tokenize="none")
    rows = metric.stats(["a b x d e"], [["a b c d e"]])
    precisions = 4 / 5 * 3 / 5 * 1 / 4 * 1 / 3
    assert metric.native.sentence_gains(rows)[0] == pytest.approx(precisions**0.25, abs=1e-12)
    short = metric.stats(["a b"], [["a b c d"]])
    assert metric.native.sentence_gains(short)[0] == pytest.approx(np.exp(-1), abs=1e-12)


def test_blank_text_is_never_nan() -> None:
    for name in [
        "bleu",
        "bleu:tokenize=char",
        "chrf",
        "chrf++:eps_smoothing=1",
        "ter",
        "wer",
        "cer",
        "ter:normalized=1,no_punct=1",
    ]:
        metric = get_metric(name)
        rows = metric.stats(["", " ", "a", "\u3000"], [[""], ["a", ""], ["", " "], ["\n"]])
        for values in (
            metric.scores(rows),
            metric.native.gains(rows),
            metric.native.sentence_gains(rows),
        ):
            assert np.isfinite(values).all()
        assert np.isfinite(metric.score(np.zeros(metric.native.width)))


def test_references_that_do_not_fit_are_refused() -> None:
    with pytest.raises(InputError, match="2 hypotheses, but references for 1"):
        Bleu().stats(["a", "b"], [["a"]])
    with pytest.raises(InputError, match="no reference for number 2"):
        Bleu().stats(["a", "b"], [["a"], []])
    with pytest.raises(InputError, match="list of references"):
        Bleu().stats(["a", "b"], ["a", "b"])


def test_rows_of_another_metric_are_refused() -> None:
    with pytest.raises(ValueError, match="10"):
        Bleu().scores(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="2"):
        Wer().score([1, 2, 3])


def test_arrays_of_any_layout_are_read() -> None:
    rows = Bleu().stats(HYPOTHESES, REFERENCES)
    expected = Bleu().scores(rows)
    assert Bleu().native.scores(np.asfortranarray(rows)).tolist() == expected.tolist()
    assert Bleu().native.scores(rows.astype(np.int32)).tolist() == expected.tolist()
    assert Bleu().native.scores(rows[::-1]).tolist() == expected[::-1].tolist()


def test_columns_are_means_and_ratios() -> None:
    mean = get_metric("column:comet")
    rows = mean.rows({"comet": [0.5, 0.9], "other": [1, 2]})
    assert rows.tolist() == [[0.5, 1], [0.9, 1]]
    assert mean.score(rows.sum(axis=0)) == pytest.approx(70)
    assert mean.native.gains(rows).tolist() == pytest.approx([0.5, 0.9])
    cost = get_metric("column:-cost,scale=1")
    assert not cost.higher_is_better
    assert cost.native.gains(np.array([[30.0, 1.0]]))[0] == pytest.approx(0.7)
    rate = get_metric("column:errors/words")
    assert isinstance(rate, RatioColumns)
    rows = rate.rows({"errors": [1, 2], "words": [4, 8]})
    assert rate.score(rows.sum(axis=0)) == 25
    assert rate.native.gains(rows).tolist() == [0.75, 0.75]
    assert get_metric("column:+right/all").native.gains(np.array([[3.0, 4.0]]))[0] == 0.75


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match=r"no column 'comet' \(there are bleurt\)"):
        Column("comet").rows({"bleurt": [1]})
    with pytest.raises(InputError, match="reads text"):
        Bleu().rows({"a": [1]})
    with pytest.raises(InputError, match="reads numbers"):
        Column("comet").stats(["a"], [["a"]])


def test_statistics_of_another_program_score_as_ones_own() -> None:
    bleu = Bleu(max_order=2)
    stats = bleu.stats(HYPOTHESES, REFERENCES)
    names = [f"s{i}" for i in range(6)]
    metric = get_metric(f"column:bleu:max_order=2({' '.join(names)})")
    assert isinstance(metric, StatisticsColumns)
    rows = metric.rows({name: stats[:, i] for i, name in enumerate(names)})
    assert metric.score(rows.sum(axis=0)) == bleu.score(stats.sum(axis=0))
    assert metric.signature(2) == bleu.signature(2)
    assert metric.columns == tuple(names)


def test_a_tokeniser_without_a_native_twin_runs_in_python() -> None:
    metric = get_metric("bleu:tokenize=zh,lowercase=1")
    hypotheses, references = ["我爱你 ABC。", "你好"], [["我也爱你 abc。"], ["您好", "你们好"]]
    theirs = BLEU(tokenize="zh", lowercase=True)
    expected = [
        theirs._extract_corpus_statistics([text], [[ref] for ref in refs])[0]
        for text, refs in zip(hypotheses, references, strict=True)
    ]
    assert metric.stats(hypotheses, references).tolist() == expected
    assert "|tok:zh|" in metric.signature()


def test_a_tokeniser_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise RuntimeError("no MeCab here")

    monkeypatch.setattr("sacrebleu.metrics.bleu._get_tokenizer", missing)
    with pytest.raises(InputError, match=r"ja-mecab.*no MeCab here.*install"):
        _ = get_metric("bleu:tokenize=ja-mecab").native


class Exact(Metric):
    """Share of sentences that are right. Statistics: right, sentences."""

    name, width = "exact", 2

    def row(self, hypothesis: str, references: list[str]) -> list[float]:
        if hypothesis == "boom":
            raise RuntimeError("a fault of one's own")
        return [float(hypothesis in references), 1]

    def score_rows(self, rows: np.ndarray) -> np.ndarray:
        return 100 * self.gain_rows(rows)

    def gain_rows(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(rows[:, 0] / np.maximum(rows[:, 1], 1))


def test_a_metric_in_python_is_a_metric() -> None:
    metric = Exact()
    texts = ["a", "b", "c"] * 50
    rows = metric.stats(texts, [["a"], ["x", "b"], ["d"]] * 50)
    assert rows.sum(axis=0).tolist() == [100, 150]
    assert metric.score(rows.sum(axis=0)) == pytest.approx(200 / 3)
    assert metric.native.gains(rows[:3]).tolist() == [1, 1, 0]
    assert metric.native.sentence_gains(rows[:3]).tolist() == [1, 1, 0]
    assert metric.label == "exact"
    assert metric.signature(2).startswith("nrefs:2|metric:exact|")
    register("exact", Exact)
    assert isinstance(get_metric("exact"), Exact)
    assert "exact" in metric_names()


def test_errors_of_a_metric_in_python_come_through() -> None:
    with pytest.raises(RuntimeError, match="a fault of one's own"):
        Exact().stats(["a", "boom"], [["a"], ["a"]])

    class Wrong(Exact):
        def gain_rows(self, rows: np.ndarray) -> np.ndarray:
            return np.zeros(1)

        def score_rows(self, rows: np.ndarray) -> np.ndarray:
            return np.full(len(rows), np.nan)

        def row(self, hypothesis: str, references: list[str]) -> list[float]:
            return [1.0]

    with pytest.raises(ValueError, match="each of 3 rows"):
        Wrong().native.gains(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="NaN"):
        Wrong().scores(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="2 finite numbers"):
        Wrong().stats(["a"], [["a"]])
    with pytest.raises(ValueError, match="needs width"):
        Metric().native  # noqa: B018


def test_a_metric_in_python_may_leave_text_out() -> None:
    class Numbers(Metric):
        name, width, columns = "numbers", 1, ("x",)

        def score_rows(self, rows: np.ndarray) -> np.ndarray:
            return rows[:, 0]

        gain_rows = score_rows

        def sentence_gain_rows(self, rows: np.ndarray) -> np.ndarray:
            return rows[:, 0] + 1

    metric = Numbers()
    assert metric.rows({"x": [1, 2]}).tolist() == [[1], [2]]
    assert metric.native.sentence_gains(np.array([[1.0]]))[0] == 2
    assert not metric.native.reads_text
