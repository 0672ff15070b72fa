"""Weights of Moses and cdec, under the names of their lists."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tunesmith import Weights
from tunesmith.errors import InputError
from tunesmith.formats import read_nbest, weights

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"
DENSE = {
    "LM0": 0.0914386,
    "TranslationModel0_1": 0.0428084,
    "TranslationModel0_2": 0.0409442,
    "TranslationModel0_3": 0.0522524,
    "UnknownWordPenalty0": 1,
}
SPARSE = {"WT_a~b": 0.5, "PP_x=y": -0.25}


def test_moses_names_are_those_of_the_lists() -> None:
    read = weights.read_moses_ini(GOLDEN / "moses.ini")
    assert read == DENSE | SPARSE
    names = read_nbest(GOLDEN / "moses.nbest").pools.names
    assert {"LM0", "TranslationModel0_1", "TranslationModel0_2"} <= set(names) & set(read)


def test_moses_weights_come_back(tmp_path: Path) -> None:
    path = tmp_path / "moses.ini"
    weights.write_moses_ini(DENSE | SPARSE, path)
    assert weights.read_moses_ini(path) == DENSE | SPARSE
    assert "TranslationModel0= 0.0428084 0.0409442 0.0522524" in path.read_text().splitlines()


def test_a_template_keeps_everything_but_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "tuned.ini"
    new = {"LM0": 0.5, "TranslationModel0_2": -1.5, "WT_new": 2.0}
    weights.write_moses_ini(new, path, GOLDEN / "moses.ini")
    assert weights.read_moses_ini(path) == DENSE | new
    text = path.read_text()
    assert "[threads]\n2\n" in text
    assert "# dense weights" in text
    assert (tmp_path / "tuned.ini.sparse").read_text() == "WT_new 2.0\n"


def test_paths_are_written_in_full_where_they_would_lead_nowhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "table.minphr").write_text("")
    template = home / "moses.ini"
    lines = ("Compact path=table num-features=4", "KENLM path=work/lm.gz", "Other path=/lm.gz")
    template.write_text(
        "[feature]\n" + "".join(f"{line}\n" for line in lines) + "[weight]\nLM0= 1\n"
    )
    for folder in (home, tmp_path):
        path = folder / "tuned.ini"
        weights.write_moses_ini({"LM0": 2.0, "WT_a": 1.0}, path, template)
        told = path.read_text().splitlines()
        if folder is home:
            assert told[1:4] == list(lines)
            assert told[-1] == "tuned.ini.sparse"
        else:
            assert told[1] == f"Compact path={home / 'table'} num-features=4"
            assert told[2:4] == list(lines[1:])
            assert told[-1] == str(tmp_path / "tuned.ini.sparse")
        assert weights.read_moses_ini(path) == {"LM0": 2.0, "WT_a": 1.0}


def test_cdec(tmp_path: Path) -> None:
    read = weights.read_cdec(GOLDEN / "cdec.weights")
    assert read == {"CountEF": 0.105899, "LanguageModel_OOV": -1.00203, "Glue": -0.107464}
    weights.write_cdec(read, tmp_path / "weights.gz")
    assert weights.read_cdec(tmp_path / "weights.gz") == read
    weights.write_moses_sparse(read, tmp_path / "sparse")
    assert weights.read_moses_sparse(tmp_path / "sparse") == read


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A", "weights:1: .* is not name and weight"),
        ("A b", "weights:1: .* is not a number"),
        ("A nan", "weights:1: .* not a finite number"),
        ("A 1\nA 2", "weights:2: .* is given twice"),
    ],
)
def test_bad_cdec_weights(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "weights"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        weights.read_cdec(path)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[threads]\n2\n", "ini: no .weight. section"),
        ("[weight]\nLM0 0.5\n", "ini:2: .* is not Label= weights"),
        ("[weight]\nLM0= x\n", "ini:2: .* is not a number"),
        ("[weight]\nLM0= 1\nLM0= 2\n", "ini:3: .* is given twice"),
    ],
)
def test_bad_moses_weights(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "ini"
    path.write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        weights.read_moses_ini(path)
    assert caught.value.remedy


def test_a_name_that_cannot_be_written(tmp_path: Path) -> None:
    for name in ("", "a b", "# a", "[weight]"):
        with pytest.raises(InputError, match="cannot be written"):
            weights.write_cdec({name: 1.0}, tmp_path / "weights")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["w.toml", "moses.ini", "w.txt"])
def test_files_of_zeros_are_no_weights(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    os.truncate(path, 1 << 34)
    with pytest.raises(InputError, match=f"{name}:1: the line is longer .*TUNESMITH_LINE_LIMIT"):
        Weights.load(path)


@pytest.mark.parametrize("number", ["1" * 10000, "-" + "1_" * 5000 + "1"])
def test_a_weight_of_thousands_of_digits_is_named_with_its_line(
    tmp_path: Path, number: str
) -> None:
    path = tmp_path / "w.toml"
    path.write_text(f"[weights]\na = 1.5\nb = {number}\n")
    with pytest.raises(InputError, match=r"w.toml:3: .*decimal numbers") as caught:
        Weights.load(path)
    assert "sys." not in str(caught.value)
