"""The numbers of `rerank check` against the plainest way to compute them."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from running import tunesmith


def edits(one: list[str], two: list[str]) -> int:
    """The edit distance, as in a first lecture."""
    row = list(range(len(two) + 1))
    for i, left in enumerate(one, start=1):
        last, row[0] = row[0], i
        for j, right in enumerate(two, start=1):
            last, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, last + (left != right))
    return row[-1]


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


@pytest.fixture(scope="module")
def lists() -> list[list[tuple[str, dict[str, float]]]]:
    """Random lists of different lengths with a constant, a dense and a rare feature."""
    draw = random.Random(3)
    made = []
    for _ in range(12):
        rows = []
        for _ in range(draw.randint(1, 7)):
            text = " ".join(draw.choice("abcde") for _ in range(draw.randint(3, 8)))
            features = {"same": 4.0, "length": float(len(text)), "any": round(draw.gauss(0, 2), 3)}
            if draw.random() < 0.3:
                features["rare"] = float(draw.randint(1, 3))
            rows.append((text, features))
        made.append(rows)
    return made


@pytest.fixture(scope="module")
def references() -> list[str]:
    draw = random.Random(4)
    return [" ".join(draw.choice("abcde") for _ in range(draw.randint(4, 8))) for _ in range(12)]


@pytest.fixture(scope="module")
def files(
    tmp_path_factory: pytest.TempPathFactory,
    lists: list[list[tuple[str, dict[str, float]]]],
    references: list[str],
) -> tuple[Path, str, Path]:
    folder = tmp_path_factory.mktemp("check")
    nbest, ref = folder / "nbest", folder / "ref"
    nbest.write_text(
        "".join(
            f"{number} ||| {text} ||| {' '.join(f'{k}= {v}' for k, v in features.items())} ||| 0\n"
            for number, rows in enumerate(lists)
            for text, features in rows
        )
    )
    ref.write_text("".join(f"{line}\n" for line in references))
    return nbest, "-r", ref


@pytest.fixture(scope="module")
def found(files: tuple[Path, str, Path]) -> dict[str, Any]:
    return tunesmith("rerank", "check", *files, "-m", "wer", "--json").object


def test_counts(found: dict[str, Any], lists: list[list[tuple[str, dict[str, float]]]]) -> None:
    sizes = sorted(len(rows) for rows in lists)
    assert found["sentences"] == 12
    assert found["hypotheses"] == sum(sizes)
    assert found["features"] == 4
    assert found["single_lists"] == sizes.count(1)
    assert found["empty_lists"] == 0
    assert (found["shortest"], found["longest"]) == (sizes[0], sizes[-1])
    assert found["median"] == int((sizes[5] + sizes[6]) / 2)
    distinct = sum(len({text for text, _ in rows}) for rows in lists)
    assert found["distinct_texts"] == distinct


def test_worst_first_and_oracle(
    found: dict[str, Any],
    lists: list[list[tuple[str, dict[str, float]]]],
    references: list[str],
) -> None:
    errors = [
        [edits(text.split(), ref.split()) for text, _ in rows]
        for rows, ref in zip(lists, references, strict=True)
    ]
    words = sum(len(ref.split()) for ref in references)
    scores = found["scores"]
    assert scores["first"] == pytest.approx(100 * sum(e[0] for e in errors) / words)
    assert scores["oracle"] == pytest.approx(100 * sum(map(min, errors)) / words)
    assert scores["worst"] == pytest.approx(100 * sum(map(max, errors)) / words)
    assert scores["headroom"] == pytest.approx(scores["first"] - scores["oracle"])


def test_bleu_of_the_first_is_that_of_sacrebleu_and_bounds_are_bounds(
    files: tuple[Path, str, Path],
    lists: list[list[tuple[str, dict[str, float]]]],
    references: list[str],
) -> None:
    scores = tunesmith("rerank", "check", *files, "--json").object["scores"]
    firsts = [rows[0][0] for rows in lists]
    assert scores["first"] == pytest.approx(sacrebleu.corpus_bleu(firsts, [references]).score)
    assert scores["worst"] <= scores["first"] <= scores["oracle"]
    draw = random.Random(5)
    for _ in range(200):
        texts = [draw.choice(rows)[0] for rows in lists]
        score = sacrebleu.corpus_bleu(texts, [references]).score
        assert scores["worst"] - 1e-9 <= score <= scores["oracle"] + 1e-9


@pytest.mark.parametrize("name", ["same", "length", "any", "rare"])
def test_the_row_of_a_feature(
    found: dict[str, Any],
    lists: list[list[tuple[str, dict[str, float]]]],
    references: list[str],
    name: str,
) -> None:
    row = next(row for row in found["feature_table"] if row["name"] == name)
    table = [[features.get(name, 0.0) for _, features in rows] for rows in lists]
    values = [value for part in table for value in part]
    present = [name in features for rows in lists for _, features in rows]
    assert row["coverage"] == pytest.approx(mean([float(there) for there in present]))
    assert row["lowest"] == pytest.approx(min(values), rel=1e-6)
    assert row["highest"] == pytest.approx(max(values), rel=1e-6)
    assert row["mean"] == pytest.approx(mean(values), rel=1e-5, abs=1e-6)
    several = [part for part in table if len(part) > 1]
    assert row["varies"] == pytest.approx(mean([float(len(set(part)) > 1) for part in several]))

    gains = [
        [1 - edits(text.split(), ref.split()) / len(ref.split()) for text, _ in rows]
        for rows, ref in zip(lists, references, strict=True)
    ]
    x = [value - mean(part) for part in table for value in part]
    y = [value - mean(part) for part in gains for value in part]
    spread = math.sqrt(sum(v * v for v in x) * sum(v * v for v in y))
    if spread < 1e-9:
        assert row["correlation"] is None
    else:
        expected = sum(a * b for a, b in zip(x, y, strict=True)) / spread
        assert row["correlation"] == pytest.approx(expected, abs=1e-5)


def test_what_deserves_a_look_is_told(files: tuple[Path, str, Path], tmp_path: Path) -> None:
    ran = tunesmith("rerank", "check", *files)
    assert "features that never vary within a list and cannot matter: 1 (same)" in ran.err
    nbest = tmp_path / "poor.nbest"
    nbest.write_text("0 ||| a ||| A= 1 ||| 1\n2 ||| b ||| A= 1 ||| 1\n2 ||| b ||| A= 2 ||| 3\n")
    (tmp_path / "ref").write_text("a\nx\nb\n")
    told = tunesmith("rerank", "check", nbest, "-r", tmp_path / "ref", "-m", "chrf").err
    assert "empty lists: 1;" in told
    assert "lists not sorted by their own score: 1;" in told
    assert "the headroom is 0.00" in told


def test_without_references_there_are_no_scores(files: tuple[Path, str, Path]) -> None:
    found = tunesmith("rerank", "check", files[0], "--json").object
    assert found["scores"] == {}
    assert all(row["correlation"] is None for row in found["feature_table"])
