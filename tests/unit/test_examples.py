"""Files of examples: what is written is read back, damage is found, neighbours are the nearest."""

from __future__ import annotations

import pickle
from collections import Counter
from math import log, sqrt
from pathlib import Path

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from tunesmith._core import Blocks, Examples
from tunesmith.errors import InputError
from tunesmith.learn.local import ErrorUpdate, MarginUpdate
from tunesmith.local.index import Neighbours
from tunesmith.metrics import Bleu
from tunesmith.spaces import Pools

METRIC = Bleu(tokenize="none")
SOURCES = ["a b c", "a b", "c d e a", "x y", "b a", "a b c", "e e d"]


def lists(sentences: int, first: int = 0) -> Pools:
    """Three hypotheses each, with two dense features and sparse ones in some of them."""
    rows, ids, values, texts = [0], [], [], []
    for hypothesis in range(3 * sentences):
        number = hypothesis + first
        ids += [0, 1] + ([2 + number % 5] if hypothesis % 3 else [])
        values += [0.5 * number, -1.0] + ([2.0] if hypothesis % 3 else [])
        rows.append(len(ids))
        texts.append(f"w{number} a b")
    names = ["lm", "words", *(f"pair:{place + first}" for place in range(5))]
    starts = np.arange(sentences + 1) * 3
    references = [[f"w{3 * place + first} a b c"] for place in range(sentences)]
    return Pools.from_arrays((rows, ids, values), starts, names, texts, references)


def written(path: Path, ids: list[int], sources: list[str], pools: Pools) -> int:
    assert pools.references is not None
    references = [list(each) for each in pools.references]
    table, native = pools.table(METRIC), METRIC.native
    found = Examples.write(path, ids, sources, references, pools.core, table, native)
    assert found[:2] == (len(ids), path.stat().st_size)
    return found[2]


def by_name(pools: Pools) -> list[tuple[str, dict[str, float]]]:
    texts = pools.core.texts(np.arange(pools.hypotheses))
    return [(text, dict(pools.core.features(at))) for at, text in enumerate(texts)]


@pytest.fixture
def two(tmp_path: Path) -> tuple[Examples, list[Path], list[Pools]]:
    """Two files; the features of the second have other names, in another order."""
    examples, paths, pools = Examples(), [], [lists(4), lists(3, first=7)]
    for place, (ids, part) in enumerate(zip(([0, 2, 4, 6], [1, 3, 5]), pools, strict=True)):
        paths.append(tmp_path / f"{place}.seg")
        sum_ = written(paths[-1], ids, [SOURCES[id] for id in ids], part)
        examples.add(paths[-1], sum_, [])
    return examples, paths, pools


def test_lists_and_statistics_come_back(
    two: tuple[Examples, list[Path], list[Pools]], tmp_path: Path
) -> None:
    examples, paths, pools = two
    order = [3, 0, 5, 6]
    wanted = [(1, 1), (0, 0), (1, 2), (0, 3)]

    def check(examples: Examples) -> None:
        core, table, sources, references = examples.lists(order, texts=True)
        parts = [pools[which].subset([at]) for which, at in wanted]
        assert by_name(Pools(core)) == [each for part in parts for each in by_name(part)]
        assert table is not None
        assert np.array_equal(
            table.rows(), np.concatenate([part.table(METRIC).rows() for part in parts])
        )
        assert sources == [SOURCES[id] for id in order]
        assert references == [(part.references or [])[0] for part in parts]

    check(examples)
    merged = tmp_path / "merged.seg"
    examples.merge(paths, merged)
    examples.replace(paths, merged)
    check(examples)
    assert examples.ids.tolist() == list(range(7))


def test_blocks_teach_what_the_lists_do(
    two: tuple[Examples, list[Path], list[Pools]],
) -> None:
    examples = two[0]
    order = [3, 0, 5, 6]
    blocks = examples.blocks(order)
    core, table, *_ = examples.lists(order)
    pools = Pools(core)
    assert table is not None and blocks.names == pools.names and len(blocks) == 4
    start = np.linspace(-1.0, 2.0, len(blocks.names))
    copied = Blocks.of(core, table, METRIC.native)
    for update in (ErrorUpdate(3.0), MarginUpdate(0.5), MarginUpdate(0.5, normalise=True)):
        one, other = update.learn(blocks, start), update.learn(copied, start)
        assert not np.array_equal(one.weights, start)
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-9, atol=1e-12)
    with pytest.raises(KeyError):
        examples.blocks([0, 99])


def test_lists_without_texts_have_different_hypotheses(
    two: tuple[Examples, list[Path], list[Pools]],
) -> None:
    core = two[0].lists([0, 1])[0]
    assert core.distinct_texts == core.hypotheses == 6


def test_neighbours_are_those_of_the_plain_formula(
    two: tuple[Examples, list[Path], list[Pools]],
) -> None:
    examples = two[0]
    examples.remove([4])
    live = {id: words.split() for id, words in enumerate(SOURCES) if id != 4}
    frequency = Counter(word for words in live.values() for word in set(words))

    def weights(words: list[str]) -> dict[str, float]:
        idf = {word: log((1 + len(live)) / (1 + frequency[word])) + 1 for word in words}
        return {word: count * idf[word] for word, count in Counter(words).items()}

    def similarity(one: list[str], other: list[str]) -> float:
        first, second = weights(one), weights(other)
        product = sum(first[word] * second.get(word, 0.0) for word in first)
        norms = [sqrt(sum(each * each for each in side.values())) for side in (first, second)]
        edits = Levenshtein.distance(one, other) / max(len(one), len(other))
        cosine = product / (norms[0] * norms[1])
        return round(0.1 * (1 - edits) + 0.9 * cosine, 12) if product else 0.0

    for query in ("a b c", "b unknown a", "e d c", "x", "unknown", ""):
        words = query.split()
        scored = {id: similarity(words, other) for id, other in live.items()} if words else {}
        wanted = sorted((-each, id) for id, each in scored.items() if each)[:3]
        found = list(Neighbours(examples.near(query, 3)))
        assert [each.id for each in found] == [id for _, id in wanted]
        assert [each.source for each in found] == [SOURCES[id] for _, id in wanted]
        assert [each.similarity for each in found] == pytest.approx([-each for each, _ in wanted])
    assert examples.near("a b c", 3).ids[:2] == [0, 5]
    assert not {0, 5} & set(examples.near("a b c", 9, leave_out=True).ids)
    assert examples.near("a b c", 9, candidates=[5, 3, 99]).ids == [5]
    near = Neighbours(examples.near("a b c", 3))
    assert near[-1] == near[2] and near[:2] == [near[0], near[1]]
    assert pickle.loads(pickle.dumps(near)) == list(near)
    with pytest.raises(IndexError):
        near[3]
    # What was found has its text, whatever is removed meanwhile.
    examples.remove([0])
    assert near[0].source == "a b c"
    with pytest.raises(KeyError):
        examples.lists([4])


def test_damage_anywhere_is_found(tmp_path: Path) -> None:
    pools, path = lists(4), tmp_path / "a.seg"
    sum_ = written(path, [0, 2, 4, 6], [SOURCES[id] for id in (0, 2, 4, 6)], pools)
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        path.unlink()
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(InputError, match=r"corrupt|truncated|not a segment|not the file"):
            examples = Examples()
            examples.add(path, sum_, [])
            examples.lists([0, 2, 4, 6], texts=True)
    for length in range(0, len(whole), 11):
        path.unlink()
        path.write_bytes(whole[:length])
        with pytest.raises(InputError):
            Examples().add(path, sum_, [])
