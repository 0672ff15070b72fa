"""What tuning asks of the phrase-based decoder: bins, forced derivations, orientation to blocks."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tunesmith import InputError
from tunesmith._core import Decoder, Pools, Translator
from tunesmith.lm import estimate
from tunesmith.training.rules import (
    AlignedCorpus,
    PhraseOptions,
    make_hiero_table,
    make_phrase_table,
)

SOURCE = "a b c d\nb a d c\nc d a\na c b d\nd b\n"
TARGET = "A B C D\nA B C D\nA C D\nA B C D\nB D\n"
LINKS = "0-0 1-1 2-2 3-3\n0-1 1-0 2-3 3-2\n0-1 1-2 2-0\n0-0 1-2 2-1 3-3\n0-1 1-0\n"
LINES = ["d c b a", "a b c d", "c a d b a", "b x a"]
SEARCH = [("stack", 0.0), ("pop_limit", 0.0), ("distortion_limit", -1.0)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("phrases")
    for name, text in (("s", SOURCE), ("t", TARGET), ("l", LINKS)):
        (folder / name).write_text(text)
    corpus = AlignedCorpus(folder / "s", folder / "t", folder / "l")
    make_phrase_table(corpus, folder / "words")
    options = PhraseOptions(reordering=False, hierarchical_reordering=True)
    make_phrase_table(corpus, folder / "blocks", options)
    make_phrase_table(corpus, folder / "sides", replace(options, reordering_sides=True))
    make_hiero_table(corpus, folder / "rules")
    estimate(folder / "t", order=3).write_arpa(folder / "lm.arpa")
    return folder


def decoders(folder: Path, table: str) -> tuple[Translator, dict[str, float]]:
    decoder = Decoder.phrase(folder / table, folder / "lm.arpa")
    weights = {name: 0.1 + 0.07 * place for place, name in enumerate(decoder.dense)}
    return decoder.translator(list(weights.items()), SEARCH), weights


def scores(pools: Pools, weights: dict[str, float]) -> np.ndarray:
    return pools.dot(np.array([weights[name] for name in pools.names if name in weights] + [0.0]))


@pytest.mark.parametrize(
    ("table", "prefix", "features"),
    [("words", "word", 6), ("blocks", "block", 6), ("sides", "block", 8)],
)
def test_scores_are_those_of_the_features(
    folder: Path, table: str, prefix: str, features: int
) -> None:
    translator, weights = decoders(folder, table)
    assert sum(name.startswith(f"{prefix}-") for name in weights) == features
    for line in LINES:
        (found,) = translator.translate([line], details=1)
        best = found.derivations[0]
        assert found.score == pytest.approx(best.score, abs=1e-4)
        told = sum(weights.get(name, 0.0) * value for name, value in best.features)
        assert told == pytest.approx(best.score, abs=1e-4)
    lists = translator.nbest(LINES, 200, False)
    assert lists.hypotheses > 100
    assert np.allclose(scores(lists, weights), lists.scores, atol=1e-3)


@pytest.mark.parametrize(
    ("target", "order"),
    [
        ("B A C", ["right", "swap", "monotone"]),
        ("A C B", ["monotone", "right", "swap"]),
        ("C A B", ["right", "left", "monotone"]),
    ],
)
def test_a_phrase_that_stands_apart_lies_left_or_right(
    folder: Path, target: str, order: list[str]
) -> None:
    """Orientations to the phrase before, one word after the other."""
    decoder = Decoder.phrase(folder / "sides", folder / "lm.arpa")
    translator = decoder.translator([("lm", 1.0)], [*SEARCH, ("phrase_limit", 1.0)])
    forced, _, _ = translator.force(["a b c"], [target], 10)
    assert forced.hypotheses == 1
    found = dict(forced.features(0))
    classes = ("monotone", "swap", "left", "right")
    fired = {each for each in classes if found.get(f"block-previous-{each}")}
    assert fired == set(order)


@pytest.mark.parametrize(("table", "monotone"), [("words", False), ("blocks", True)])
def test_orientation_is_to_the_last_phrase_or_to_its_block(
    folder: Path, table: str, monotone: bool
) -> None:
    """After `b`, then `a`, `c` goes on where the two together end, but not where `a` does."""
    decoder = Decoder.phrase(folder / table, folder / "lm.arpa")
    translator = decoder.translator([("lm", 1.0)], [*SEARCH, ("phrase_limit", 1.0)])
    forced, _, _ = translator.force(["a b c"], ["B A C"], 10)
    assert forced.hypotheses == 1
    found = dict(forced.features(0))
    name = f"{table[:-1]}-previous-"
    assert found[f"{name}swap"] != 0
    assert found[f"{name}discontinuous"] != 0
    assert (found[f"{name}monotone"] != 0) is monotone


def test_bins_hold_partial_translations(folder: Path) -> None:
    translator, weights = decoders(folder, "words")
    bins = translator.bins(LINES, 10)
    lines = bins.lines.tolist()
    assert lines == [i for i, line in enumerate(LINES) for _ in line.split()]
    assert np.allclose(scores(bins, weights), bins.scores, atol=1e-3)
    last = {line: place for place, line in enumerate(lines)}
    whole = [translator.translate([line])[0] for line in LINES]
    starts = bins.starts
    for line, found in enumerate(whole):
        (text,) = bins.texts(starts[[last[line]]])
        assert text == found.text
    # With what is hoped for the rest every partial translation is as long as a whole one.
    first = translator.bins(LINES[:1], 10)
    texts = first.wholes(np.arange(first.hypotheses))
    assert all({"A", "B", "C", "D"} <= set(text.split()) for text in texts)


def test_the_last_bin_is_the_list_of_the_best(folder: Path) -> None:
    translator, _ = decoders(folder, "words")
    bins, lists = translator.bins(LINES, 7), translator.nbest(LINES, 7)
    lines = bins.lines
    last = np.flatnonzero(np.append(lines[1:] != lines[:-1], True)).tolist()
    whole = bins.subset(last)
    assert whole.texts(np.arange(whole.hypotheses)) == lists.texts(np.arange(lists.hypotheses))
    assert whole.starts.tolist() == lists.starts.tolist()
    for part in range(3):
        assert whole.csr()[part].tolist() == lists.csr()[part].tolist()


def test_estimates_are_scores_with_what_is_hoped_for(folder: Path) -> None:
    translator, weights = decoders(folder, "words")
    own, hoped = (translator.bins(LINES, 5, future=future) for future in (False, True))
    assert np.allclose(scores(hoped, weights), hoped.scores, atol=1e-3)
    assert own.texts(np.arange(own.hypotheses)) == hoped.texts(np.arange(hoped.hypotheses))
    covered = [own.extra(at).partition("\t")[0] for at in range(own.hypotheses)]
    lengths = np.array([len(line.split()) for line in LINES])[own.lines]
    lengths = np.repeat(lengths, np.diff(own.starts))
    whole = np.array([each == f"0-{length}" for each, length in zip(covered, lengths, strict=True)])
    assert np.array_equal(own.scores[whole], hoped.scores[whole])
    # The same for all that cover the same words.
    rests: dict[tuple[int, str], float] = {}
    lists = np.repeat(own.lines, np.diff(own.starts))
    for line, spans, more in zip(lists.tolist(), covered, hoped.scores - own.scores, strict=True):
        assert rests.setdefault((line, spans), more) == pytest.approx(more, abs=1e-4)
    assert len(rests) > len(LINES)


def test_what_is_hoped_for_is_the_best_monotone_translation_of_each_gap(folder: Path) -> None:
    """Without features that look beyond a phrase, a gap is translated as if it stood alone."""
    decoder = Decoder.phrase(folder / "words", folder / "lm.arpa")
    inside = ("p(f|e)", "lex(f|e)", "p(e|f)", "lex(e|f)", "words", "phrases", "unknown")
    weights = [(name, 0.17 + 0.07 * place) for place, name in enumerate(inside)]
    bins = decoder.translator(weights, SEARCH).bins(LINES, 10)
    monotone = decoder.translator(weights, [*SEARCH[:2], ("distortion_limit", 0.0)])
    every = np.arange(bins.hypotheses)
    lines = np.repeat(bins.lines, np.diff(bins.starts)).tolist()
    gaps_seen = 0
    for at, (text, whole) in enumerate(zip(bins.texts(every), bins.wholes(every), strict=True)):
        words = LINES[lines[at]].split()
        for span in bins.extra(at).partition("\t")[0].split(","):
            begin, end = map(int, span.split("-"))
            words[begin:end] = ["|"] * (end - begin)
        gaps = [gap.strip() for gap in " ".join(words).split("|") if gap.strip()]
        wanted = [text, *(monotone.translate([gap])[0].text for gap in gaps)]
        assert whole.split() == " ".join(wanted).split()
        gaps_seen += len(gaps)
    assert gaps_seen > 100


def test_more_ways_show_what_was_recombined(folder: Path) -> None:
    translator, weights = decoders(folder, "words")
    one, all_ = (translator.bins(LINES, 5, ways=ways) for ways in (1, 1000))
    assert all_.hypotheses > one.hypotheses
    assert np.allclose(scores(all_, weights), all_.scores, atol=1e-3)
    assert np.array_equal(one.scores[one.starts[:-1]], all_.scores[all_.starts[:-1]])


def test_bins_of_a_sentence_that_is_cut_stand_behind_its_first_pieces(folder: Path) -> None:
    decoder = Decoder.phrase(folder / "words", folder / "lm.arpa")
    weights = {name: 0.1 + 0.07 * place for place, name in enumerate(decoder.dense)}
    translator = decoder.translator(list(weights.items()), [*SEARCH, ("max_words", 2.0)])
    bins = translator.bins(["d c b a d"], 1)
    covered = [bins.extra(int(start)).partition("\t")[0] for start in bins.starts[:-1]]
    assert [sum(b - a for a, b in spans(each)) for each in covered] == [1, 2, 3, 4, 5]
    assert np.allclose(scores(bins, weights), bins.scores, atol=1e-3)
    (whole,) = translator.translate(["d c b a d"])
    assert whole.pieces == 3
    texts = bins.texts(np.arange(bins.hypotheses))
    starts = bins.starts
    assert texts[starts[4]] == whole.text
    first = texts[starts[1]]
    assert first and all(text.startswith(f"{first} ") for text in texts[starts[2] :])
    potential = bins.wholes(np.arange(bins.hypotheses))
    rests = [bins.extra(position).split("\t")[2] for position in range(bins.hypotheses)]
    assert potential == [f"{text} {rest}".strip() for text, rest in zip(texts, rests, strict=True)]
    assert all({"A", "B", "C", "D"} <= set(text.split()) for text in potential)


def spans(covered: str) -> list[list[int]]:
    """Return the spans of the extra text."""
    return [[int(end) for end in span.split("-")] for span in covered.split(",")]


def test_references_are_reached_or_how_far(folder: Path) -> None:
    translator, weights = decoders(folder, "words")
    lines = ["d c b a", "d c b a", "b x a", "a b", ""]
    wanted = ["A B C D", "A B Z", "x A B", "Z", "A"]
    forced, reached, whole = translator.force(lines, wanted, 5)
    starts = forced.starts
    assert reached == [4, 2, 3, 0, 0]
    assert whole == [True, False, True, False, False]
    for place, (reference, words) in enumerate(zip(wanted, reached, strict=True)):
        texts = set(forced.texts(np.arange(starts[place], starts[place + 1])))
        assert texts == {" ".join(reference.split()[:words])}
    assert np.allclose(scores(forced, weights), forced.scores, atol=1e-3)
    with pytest.raises(InputError, match="1 references for 5 lines"):
        translator.force(lines, ["A"])
    assert translator.force([""], [""])[2] == [True]


def texts_of(bins: Pools) -> list[set[str]]:
    """Return the texts of each bin."""
    starts = bins.starts.tolist()
    return [set(bins.texts(np.arange(a, b))) for a, b in itertools.pairwise(starts)]


def test_forced_bins_hold_the_beginnings_of_the_reference(folder: Path) -> None:
    translator, weights = decoders(folder, "words")
    bins = translator.bins(["d c b a", "d c b a", "a b"], 100, references=["A B C D", "A B Z", "Z"])
    assert bins.lines.tolist() == [0] * 4 + [1] * 4 + [2] * 2
    assert texts_of(bins) == [
        *({"A"}, {"A B"}, {"A B C"}, {"A B C D"}),
        *({"A"}, {"A B"}, set(), set()),
        *(set(), set()),
    ]
    assert np.allclose(scores(bins, weights), bins.scores, atol=1e-3)
    # The last bin has derivations of the reference, the best of all among them.
    forced, _, _ = translator.force(["d c b a"], ["A B C D"], 1000)
    last = bins.scores[bins.starts[3] : bins.starts[4]]
    assert last.max() == pytest.approx(forced.scores.max(), abs=1e-4)
    assert all(np.isclose(forced.scores, score, atol=1e-4).any() for score in last)


def test_a_forced_search_holds_nothing_that_leads_nowhere(tmp_path: Path) -> None:
    """`a` alone can say the whole reference, and then nothing is left for `b` to say."""
    for name, text in (("s", "a\na\nb\n"), ("t", "A\nA X\nX\n"), ("l", "0-0\n0-0 0-1\n0-0\n")):
        (tmp_path / name).write_text(text)
    corpus = AlignedCorpus(tmp_path / "s", tmp_path / "t", tmp_path / "l")
    make_phrase_table(corpus, tmp_path / "words")
    estimate(tmp_path / "t", order=2).write_arpa(tmp_path / "lm.arpa")
    translator, _ = decoders(tmp_path, "words")
    free = translator.bins(["a b"], 10)
    assert texts_of(free)[0] >= {"A", "A X"}
    bins = translator.bins(["a b"], 10, references=["A X"])
    assert texts_of(bins) == [{"A"}, {"A X"}]
    assert translator.reach(["a"], ["A X"])[0].whole
    (found,) = translator.reach(["a b"], ["A X"])
    # `A` after one word, `A X` after both.
    assert (found.words, found.whole, found.states, found.derivations) == (2, True, 2, 1.0)


def test_only_phrases_can_be_forced(folder: Path) -> None:
    decoder = Decoder.hiero(folder / "rules", folder / "lm.arpa")
    translator = decoder.translator([("lm", 1.0)], [])
    with pytest.raises(InputError, match="forced to a reference"):
        translator.bins(LINES, 1, references=LINES)
    with pytest.raises(InputError, match="forced to a reference"):
        translator.force(LINES, LINES)
