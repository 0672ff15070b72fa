"""Weights survive the disk exactly, and a bad file is refused with its line."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tunesmith.errors import InputError
from tunesmith.runs import dump_weights, load_weights

names = st.text(st.characters(exclude_categories=["Cs"]))
finite = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.one_of(names, st.booleans(), st.integers(-(2**60), 2**60), finite)
metas = st.dictionaries(
    names,
    st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)
in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(st.dictionaries(names, finite), metas)
@example({"": 0.0, '"': -0.0, "\\": 5e-324, "a\r\nb\x00\x7f\x85\u2028": 1e308, "[x]\n": 1e16}, {})
@in_a_folder
def test_any_names_and_floats_come_back_exactly(
    tmp_path: Path, weights: dict[str, float], meta: dict[str, object]
) -> None:
    path = tmp_path / "weights.toml"
    dump_weights(path, weights, meta)
    back, told = load_weights(path)
    assert {name: value.hex() for name, value in back.items()} == {
        name: value.hex() for name, value in weights.items()
    }
    assert told == meta
    # What anybody else's TOML reader sees is the same.
    seen = tomllib.loads(path.read_text(encoding="utf-8"))
    assert seen["weights"] == weights and seen["tunesmith"] == meta


@given(st.dictionaries(names, finite))
@in_a_folder
def test_the_order_is_by_magnitude_or_as_given(tmp_path: Path, weights: dict[str, float]) -> None:
    path = tmp_path / "weights.toml"
    dump_weights(path, weights, {})
    sizes = [abs(value) for value in load_weights(path)[0].values()]
    assert sizes == sorted(sizes, reverse=True)
    dump_weights(path, weights, {}, order="given")
    assert list(load_weights(path)[0]) == list(weights)


@given(st.text(max_size=200))
@example("[weights]\na = 1\na = 2\n")
@example("[tunesmith]\n\n[weights]\na = 1e999\n")
@in_a_folder
def test_any_text_is_read_or_refused_with_the_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "weights.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        load_weights(path)
    except InputError as error:
        assert error.file == str(path)


def test_a_file_reads_well(tmp_path: Path) -> None:
    path = tmp_path / "weights.toml"
    meta = {"tuner": "rm", "metric": "bleu", "heldout": None, "scores": {"start": 38.9}}
    dump_weights(path, {"WordPenalty0": -1, "LM0": 0.0985, "PT:das_haus~the_house": 0.5}, meta)
    assert path.read_text().split("\n")[2:] == [
        "[tunesmith]",
        'tuner = "rm"',
        'metric = "bleu"',
        "",
        "[tunesmith.scores]",
        "start = 38.9",
        "",
        "[weights]",
        '"WordPenalty0" = -1.0',
        '"PT:das_haus~the_house" = 0.5',
        '"LM0" = 0.0985',
        "",
    ]


def test_a_file_written_by_hand_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "weights.toml"
    path.write_bytes(b"\xef\xbb\xbf# mine\r\n[weights]\r\nLM0 = 1 # large\r\n'a b' = 2.5\r\n")
    assert load_weights(path) == ({"LM0": 1.0, "a b": 2.5}, {})


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[tunesmith]\n\n[weights]\n"a" = 1.0\n"b" = nan\n', 5, "'b' is not a finite number"),
        ('[tunesmith]\n\n[weights]\n"a" = 1e999\n', 4, "'a' is not a finite number"),
        ("[weights]\na = 1" + "0" * 400 + "\n", 2, "'a' is not a finite number"),
        ('[weights]\na = "1"\n', 2, "'a' is text"),
        ("[weights]\na = true\n", 2, "'a' is true or false"),
        ("[weights]\nLex.0 = 1\n", 2, "'Lex' is a table (put quotation marks"),
        ("[weights]\na = 1\na = 2\n", 3, "not TOML"),
        ("[weights]\na = \n", 2, "not TOML"),
        ('[weights]\n"a" = 1.0\n"b = 2', 3, "not TOML"),
        ("LM0 = 1\n", None, "no table [weights]"),
        ("tunesmith = 1\n[weights]\n", None, "tunesmith is not a table"),
    ],
)
def test_a_bad_file_is_refused_with_line_and_remedy(
    tmp_path: Path, text: str, line: int | None, said: str
) -> None:
    path = tmp_path / "weights.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        load_weights(path)
    assert said in str(caught.value)
    assert (caught.value.file, caught.value.line) == (str(path), line)
    assert caught.value.remedy


def test_bytes_that_are_not_utf8_are_named(tmp_path: Path) -> None:
    path = tmp_path / "weights.toml"
    path.write_bytes(b'[weights]\n"a" = 1.0\n"\xff" = 2.0\n')
    with pytest.raises(InputError, match=":3: not UTF-8"):
        load_weights(path)


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.toml", tmp_path):
        with pytest.raises(InputError, match="cannot read"):
            load_weights(path)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_weight_that_is_not_finite_is_not_written(tmp_path: Path, value: float) -> None:
    path = tmp_path / "weights.toml"
    dump_weights(path, {"a": 1.0}, {})
    before = path.read_bytes()
    with pytest.raises(InputError, match="'LM0' is"):
        dump_weights(path, {"LM0": value}, {})
    with pytest.raises(InputError, match="not valid Unicode"):
        dump_weights(path, {"bad\udc80": 1.0}, {})
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["weights.toml"]


def test_weights_as_we_write_them_never_go_through_the_slow_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tomllib needs 14 seconds for a million weights: it is given the few lines before them."""
    path = tmp_path / "weights.toml"
    odd = {"": 0.5, 'a "b" \\ c': -0.0, "tab\t": 5e-324, "täglich\u2028": 1e308, "[weights]": 1e-7}
    weights = {f"PT:das_haus_{i}~the_house_{i}": i * 0.37 - 1e3 for i in range(10_000)} | odd
    dump_weights(path, weights, {"tuner": "adagrad"})
    parse, parsed = tomllib.loads, list[str]()

    def counted(text: str) -> dict[str, Any]:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(tomllib, "loads", counted)
    assert load_weights(path) == (weights, {"tuner": "adagrad"})
    (head,) = parsed
    assert "tuner" in head and "[weights]" not in head
    # Somebody's own line sends the whole file there.
    path.write_text(path.read_text(encoding="utf-8") + "mine = 1 # by hand\n", encoding="utf-8")
    assert load_weights(path)[0] == {**weights, "mine": 1.0}
    assert "mine" in parsed[-1]
