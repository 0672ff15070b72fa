"""What tuning asks of the hierarchical decoder: the cells of its chart as bins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tunesmith._core import Decoder, Pools, Translator
from tunesmith.lm import estimate
from tunesmith.training.rules import AlignedCorpus, make_hiero_table

SOURCE = "a b c d\nb a d c\nc d a\na c b d\nd b\n"
TARGET = "A B C D\nA B C D\nA C D\nA B C D\nB D\n"
LINKS = "0-0 1-1 2-2 3-3\n0-1 1-0 2-3 3-2\n0-1 1-2 2-0\n0-0 1-2 2-1 3-3\n0-1 1-0\n"
LINES = ["d c b a", "a b c d", "c a d b a", "b x a"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    for name, text in (("s", SOURCE), ("t", TARGET), ("l", LINKS)):
        (folder / name).write_text(text)
    make_hiero_table(AlignedCorpus(folder / "s", folder / "t", folder / "l"), folder / "rules")
    estimate(folder / "t", order=3).write_arpa(folder / "lm.arpa")
    return folder


def decoders(folder: Path, **settings: float) -> tuple[Translator, dict[str, float]]:
    decoder = Decoder.hiero(folder / "rules", folder / "lm.arpa")
    weights = {name: 0.1 + 0.07 * place for place, name in enumerate(decoder.dense)}
    return decoder.translator(list(weights.items()), list(settings.items())), weights


def cells(words: int, longest: int) -> list[str]:
    """Return the spans of the bins of a line: with each prefix also that of the glue rules."""
    return [
        f"{start}-{start + length}"
        for length in range(1, words + 1)
        for start in range(words - length + 1)
        for _ in range((length <= longest) + (start == 0))
    ]


def wholes(bins: Pools) -> list[str]:
    """Return the texts of a space with those around them."""
    found = []
    for position, text in enumerate(bins.texts(np.arange(bins.hypotheses))):
        _, before, after = bins.extra(position).split("\t")
        found.append(" ".join(f"{before} {text} {after}".split()))
    return found


@pytest.mark.parametrize("longest", [2, 10])
def test_every_cell_has_a_bin(folder: Path, longest: int) -> None:
    translator, _ = decoders(folder, max_span=longest)
    bins = translator.bins(LINES, 5)
    expected = [
        (i, one) for i, line in enumerate(LINES) for one in cells(len(line.split()), longest)
    ]
    assert bins.lines.tolist() == [line for line, _ in expected]
    starts = bins.starts
    filled = 0
    for place, (_, span) in enumerate(expected):
        extras = [bins.extra(position) for position in range(starts[place], starts[place + 1])]
        filled += bool(extras)
        # All items of a bin cover its span, in the same surroundings.
        assert len(set(extras)) <= 1
        assert all(extra.split("\t")[0] == span for extra in extras)
    assert filled > len(expected) / 2


def test_texts_and_surroundings_are_whole_translations(folder: Path) -> None:
    translator, weights = decoders(folder, pop_limit=0)
    parts, bins = (translator.bins(LINES, 1000, future=future) for future in (False, True))
    vector = np.array([weights[name] for name in bins.names])
    for each in (parts, bins):
        assert np.allclose(each.dot(vector), each.scores, atol=1e-3)
    # Nothing was pruned: what items become are derivations, with the best one among them.
    lists = translator.nbest(LINES, 1000, True)
    lines = np.repeat(bins.lines, np.diff(bins.starts))
    texts = wholes(bins)
    assert texts == wholes(parts)
    for line, source in enumerate(LINES):
        first, end = lists.starts[line : line + 2]
        known = dict(zip(lists.texts(np.arange(first, end)), lists.scores[first:end], strict=True))
        (best,) = translator.translate([source])
        own = np.flatnonzero(lines == line)
        assert {texts[at] for at in own} <= known.keys()
        assert all(bins.scores[at] <= known[texts[at]] + 1e-3 for at in own)
        assert bins.scores[own].max() == pytest.approx(best.score, abs=1e-3)
        last = bins.starts[np.flatnonzero(bins.lines == line)[-1]]
        assert texts[last] == best.text


def test_bins_of_several_searches_lie_side_by_side(folder: Path) -> None:
    one, _ = decoders(folder, pop_limit=1)
    many, _ = decoders(folder, pop_limit=30)
    narrow, wide = (each.bins(LINES, 10) for each in (one, many))
    assert narrow.lines.tolist() == wide.lines.tolist()
    assert narrow.hypotheses < wide.hypotheses
    assert 0 in np.diff(narrow.starts)
