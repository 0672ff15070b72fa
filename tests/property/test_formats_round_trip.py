"""Pools through every format and back, and arbitrary bytes through every parser."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunesmith import _core, formats
from tunesmith.errors import InputError
from tunesmith.formats import detect, read_nbest, read_references, weights, write_nbest

FORMATS = [
    "cdec", "espnet", "espnet1", "fairseq", "flat", "jsonl", "kaldi", "moses", "nemo", "nemo-tsv",
    "travatar",
]  # fmt: skip

# Control characters are not text; the line separators of Unicode are, and break no line here.
letters = st.characters(exclude_categories=["Cs", "Cc"])
words = st.text(letters.filter(lambda letter: not letter.isspace()), min_size=1, max_size=6)
texts = st.lists(st.one_of(words, st.just("|||")), min_size=1, max_size=4).map(" ".join)
values = st.floats(width=32, allow_nan=False, allow_infinity=False)
totals = st.floats(allow_nan=False, allow_infinity=False)
names = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,3}(_[0-9]{1,2})?", fullmatch=True)


@contextmanager
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def build(lists: list[list[dict[str, Any]]], keys: list[str] | None = None) -> _core.Pools:
    builder = _core.PoolsBuilder()
    for index, listed in enumerate(lists):
        builder.sentence(None if keys is None else keys[index])
        for item in listed:
            found = item.get("features", {})
            builder.push(
                item["text"],
                list(found),
                list(found.values()),
                item.get("score"),
                item.get("extra", ""),
                item.get("columns"),
            )
    return builder.finish()


def dump(pools: _core.Pools) -> list[list[tuple[Any, ...]]]:
    columns = {name: pools.column(name) for name in pools.columns}
    lists = []
    for first, last in zip(pools.starts[:-1], pools.starts[1:], strict=True):
        lists.append(
            [
                (
                    pools.texts(np.array([at]))[0],
                    dict(pools.features(at)),
                    None if math.isnan(pools.scores[at]) else float(pools.scores[at]),
                    pools.extra(at),
                    {name: cells[at] for name, cells in columns.items() if cells[at] == cells[at]},
                )
                for at in range(first, last)
            ]
        )
    return lists


def lists_of(hypothesis: st.SearchStrategy[dict[str, Any]], size: int | None = None) -> Any:
    low, high = (0, 3) if size is None else (size, size)
    return st.lists(
        st.lists(hypothesis, min_size=low, max_size=high), min_size=1, max_size=4
    ).filter(lambda lists: bool(lists[-1]))


COLUMNS = ["Q1", "Q2"]
# A name is either that of a feature or that of a column.
others = names.filter(lambda name: name not in COLUMNS)
featured = st.fixed_dictionaries(
    {"text": texts, "features": st.dictionaries(others, values, min_size=1, max_size=4)},
    optional={"columns": st.dictionaries(st.sampled_from(COLUMNS), values)},
)
scored = st.fixed_dictionaries({"text": texts, "score": totals.filter(lambda x: abs(x) < 1e30)})


@settings(deadline=None)
@given(
    lists_of(
        st.fixed_dictionaries(
            {"text": st.text(st.characters(exclude_categories=["Cs"])).filter(str.strip)},
            optional={
                "features": st.dictionaries(st.text(letters), values),
                "score": totals,
                "extra": st.text(letters),
                "columns": st.dictionaries(st.text(letters), totals),
            },
        )
    ),
    st.booleans(),
)
def test_jsonl_holds_everything(lists: list[list[dict[str, Any]]], keyed: bool) -> None:
    keys = [f"key {index}\n" for index in range(len(lists))] if keyed else None
    pools = build(lists, keys)
    with folder() as place:
        write_nbest(pools, place / "list.gz", "jsonl")
        again = read_nbest(place / "list.gz", "jsonl").pools
    assert dump(again) == dump(pools)
    assert again.keys == pools.keys


@settings(deadline=None)
@given(lists_of(featured), st.sampled_from(["moses", "cdec", "travatar"]))
def test_lists_with_bars(lists: list[list[dict[str, Any]]], format: str) -> None:
    for item in (item for listed in lists for item in listed):
        item["score"] = 0.0
        item["columns"] = item.get("columns", {})
    columns = sorted({name for listed in lists for item in listed for name in item["columns"]})
    pools = build(lists)
    with folder() as place:
        write_nbest(pools, place / "list.zst", format)
        again = read_nbest(place / "list.zst", format, columns=columns).pools
    assert dump(again) == dump(pools)


@settings(deadline=None)
@given(lists_of(scored), st.sampled_from(["fairseq", "espnet", "espnet1", "nemo"]))
def test_formats_with_one_score(lists: list[list[dict[str, Any]]], format: str) -> None:
    for item in (item for listed in lists for item in listed):
        item["features"] = {"score": item["score"]}
    keys = None if format == "fairseq" else [f"utt-{index}" for index in range(len(lists))]
    pools = build(lists, keys)
    with folder() as place:
        write_nbest(pools, place / "list", format)
        again = read_nbest(place / "list", format).pools
    expected = dump(pools)
    if format == "espnet":
        # An utterance without any hypothesis leaves no trace in its files.
        expected = [listed for listed in expected if listed]
    assert dump(again) == expected


@settings(deadline=None)
@given(st.integers(1, 3).flatmap(lambda size: st.tuples(st.just(size), lists_of(featured, size))))
def test_flat(sized: tuple[int, list[list[dict[str, Any]]]]) -> None:
    size, lists = sized
    pools = build(lists)
    with folder() as place:
        write_nbest(pools, place / "list", "flat")
        again = read_nbest(place / "list", "flat", per_sentence=size).pools
    assert dump(again) == dump(pools)


@settings(deadline=None)
@given(st.integers(1, 3).flatmap(lambda size: st.tuples(st.just(size), lists_of(scored, size))))
def test_nemo_candidates(sized: tuple[int, list[list[dict[str, Any]]]]) -> None:
    size, lists = sized
    for item in (item for listed in lists for item in listed):
        item["features"] = {"score": item["score"]}
    pools = build(lists)
    with folder() as place:
        write_nbest(pools, place / "list", "nemo-tsv")
        again = read_nbest(place / "list", "nemo-tsv", per_sentence=size).pools
    assert dump(again) == dump(pools)


@settings(deadline=None)
@given(lists_of(featured).filter(lambda lists: all(lists)))
def test_kaldi(lists: list[list[dict[str, Any]]]) -> None:
    items = [item for listed in lists for item in listed]
    # Every hypothesis has a line in every archive.
    known = dict.fromkeys((name for item in items for name in item["features"]), 0.0)
    for item in items:
        item.pop("columns", None)
        item["features"] = known | item["features"]
    pools = build(lists, [f"spk-{index}" for index in range(len(lists))])
    with folder() as place:
        write_nbest(pools, place / "list", "kaldi")
        again = read_nbest(place / "list", "kaldi").pools
    assert dump(again) == dump(pools)
    assert again.keys == pools.keys


@settings(deadline=None)
@given(st.dictionaries(names, totals, min_size=1))
def test_weights(given_weights: dict[str, float]) -> None:
    with folder() as place:
        weights.write_moses_ini(given_weights, place / "ini")
        assert weights.read_moses_ini(place / "ini") == given_weights
        weights.write_cdec(given_weights, place / "cdec")
        assert weights.read_cdec(place / "cdec") == given_weights


def attempt(path: Path, format: str | None, skip_bad: bool) -> None:
    """Reads whatever it is; anything but pools or an error with a remedy fails the test."""
    try:
        pools, skipped = read_nbest(path, format, per_sentence=2, skip_bad=skip_bad)
    except InputError as error:
        assert error.message
        assert error.remedy
        assert error.file
    else:
        assert pools.hypotheses > 0
        assert np.isfinite(pools.csr()[2]).all()
        assert all(skip.count > 0 for skip in skipped)


@pytest.mark.parametrize("format", [name for name in FORMATS if name != "espnet"])
@settings(deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_arbitrary_bytes_never_crash(format: str, content: bytes, skip_bad: bool) -> None:
    with folder() as place:
        path = place / "list"
        path.write_bytes(content)
        attempt(path, format, skip_bad)
        attempt(path, None, skip_bad)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_no_references_and_no_weights(content: bytes) -> None:
    with folder() as place:
        path = place / "file.jsonl"
        path.write_bytes(content)
        for read in (
            lambda: read_references([path], skip_bad=True),
            lambda: read_references([path], keys=["a", "b"]),
            lambda: weights.read_cdec(path),
            lambda: weights.read_moses_ini(path),
            lambda: detect(path),
        ):
            try:
                read()
            except InputError as error:
                assert error.remedy


def test_no_format_is_forgotten() -> None:
    assert set(FORMATS) <= set(formats.names())
