"""Configurations of Moses: what is read from them, what is refused, what is kept."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tunesmith.errors import InputError
from tunesmith.lm import estimate
from tunesmith.moses import read_config
from tunesmith.training.pipeline import Training, train
from tunesmith.training.rules import RuleTable, export_moses, export_reordering
from tunesmith.translation import Model

SOURCE = "das haus ist klein\ndas buch ist alt\nein haus\nein buch\n" * 10
TARGET = "the house is small\nthe book is old\na house\na book\n" * 10
INI = """\
# A configuration
[input-factors]
0
[mapping]
0 T 0
[distortion-limit]
4
[feature]
UnknownWordPenalty
WordPenalty
PhrasePenalty
PhraseDictionaryMemory name=TranslationModel0 num-features=4 path=table input-factor=0
LexicalReordering name=LexicalReordering0 num-features=6 type=wbe-msd-bidirectional-fe path=orders
Distortion
KENLM name=LM0 factor=0 path=lm.arpa order=2
[weight]
UnknownWordPenalty0= 1
WordPenalty0= -1
PhrasePenalty0= 0.2
TranslationModel0= 0.2 0.2 0.2 0.2
LexicalReordering0= 0.3 0.3 0.3 0.3 0.3 0.3
Distortion0= 0.3
LM0= 0.5
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as Moses has it, its tables gzipped but named without."""
    folder = tmp_path_factory.mktemp("moses")
    (folder / "src").write_text(SOURCE)
    (folder / "tgt").write_text(TARGET)
    train(Training(folder / "src", folder / "tgt", kind="phrase"), folder / "model", 1)
    table = RuleTable(folder / "model" / "phrases.rules")
    export_moses(table, folder / "table.gz")
    export_reordering(table, folder / "orders.gz")
    estimate([folder / "tgt"], order=2).write_arpa(folder / "lm.arpa")
    return folder


@pytest.fixture
def ini(files: Path, tmp_path: Path) -> Path:
    for name in ("table.gz", "orders.gz", "lm.arpa"):
        (tmp_path / name).write_bytes((files / name).read_bytes())
    (tmp_path / "moses.ini").write_text(INI)
    return tmp_path / "moses.ini"


def test_settings_are_those_of_moses(ini: Path) -> None:
    config = read_config(ini)
    assert config.settings == {
        "stack": 200,
        "pop_limit": 0,
        "distortion_limit": 4,
        "phrase_limit": 20,
        "threshold": pytest.approx(11.5129, abs=1e-4),
        "table_limit": 20,
    }
    more = "[search-algorithm]\n1\n[cbp]\n50\n[s]\n30\n[b]\n0.1\n[ttable-limit]\n7\n[xml-input]\n"
    ini.write_text(INI + more + "exclusive\n[drop-unknown]\n")
    config = read_config(ini)
    assert [config.settings[name] for name in ("pop_limit", "stack", "table_limit")] == [50, 30, 7]
    assert config.settings["threshold"] == pytest.approx(2.3026, abs=1e-4)
    assert config.markup == "exclusive"
    assert config.remarks == [f"{ini}:36: [drop-unknown] is not known here and has no effect"]
    ini.write_text(INI.replace("path=table", "table-limit=3 path=table"))
    assert read_config(ini).settings["table_limit"] == 3


def test_values_have_the_names_and_signs_of_moses(ini: Path) -> None:
    translator = Model.of_moses(ini).translator()
    (found,) = translator.translate(["das haus ist neu"], details=1)
    assert found.text == "the house is neu"
    features = translator.features(found.derivations[0])
    assert features["WordPenalty0"] == -4
    assert features["UnknownWordPenalty0"] == -100
    assert {"LM0", "TranslationModel0_4", "LexicalReordering0_6"} <= set(features)
    weighted = sum(value * translator.weights.get(name, 0) for name, value in features.items())
    assert weighted == pytest.approx(found.score, abs=1e-4)


def test_files_are_converted_once(ini: Path) -> None:
    told: list[str] = []
    Model.of_moses(ini, tell=told.append)
    assert len(told) == 2
    assert "converting" in told[0]
    kept = sorted((ini.parent / "tunesmith-cache").iterdir())
    assert [path.suffix for path in kept] == [".tlm", ".rules"]
    Model.of_moses(ini, tell=told.append)
    assert len(told) == 2
    os.utime(ini.parent / "lm.arpa", (1, 1))
    Model.of_moses(ini, tell=told.append)
    assert len(told) == 3
    assert "lm.arpa" in told[2]


def test_a_cache_lies_where_it_may(
    ini: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, own = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("own")
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    Model.of_moses(ini, cache=own)
    assert len(list(own.iterdir())) == 2
    ini.parent.chmod(0o555)
    try:
        Model.of_moses(ini)
    finally:
        ini.parent.chmod(0o755)
    assert len(list((home / "tunesmith").iterdir())) == 2
    assert not (ini.parent / "tunesmith-cache").exists()


@pytest.mark.parametrize("ending", [".rules", ".tlm"])
def test_a_damaged_file_of_the_cache_is_to_be_deleted(ini: Path, ending: str) -> None:
    Model.of_moses(ini)
    (kept,) = (ini.parent / "tunesmith-cache").glob(f"*{ending}")
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="delete this file, it is made again") as refused:
        Model.of_moses(ini)
    assert refused.value.file == str(kept)
    kept.unlink()
    Model.of_moses(ini)
    assert kept.read_bytes() == whole


def test_an_empty_table_is_named(ini: Path) -> None:
    with gzip.open(ini.parent / "table.gz", "wt"):
        pass
    for _ in range(2):
        with pytest.raises(
            InputError, match=r"table.gz: the phrase table is empty \(give the table"
        ):
            Model.of_moses(ini)


@pytest.mark.parametrize("count", [3, 5])
def test_a_table_has_as_many_scores_as_is_said(ini: Path, count: int) -> None:
    told = INI.replace("num-features=4", f"num-features={count}")
    ini.write_text(told.replace("0= 0.2 0.2 0.2 0.2", "0=" + " 0.2" * count))
    message = rf"ini:12: num-features={count}, but .*table.gz has 4 scores \(write num-features=4"
    with pytest.raises(InputError, match=message):
        Model.of_moses(ini)


def test_weights_may_stand_one_by_one(ini: Path) -> None:
    whole = read_config(ini).weights
    single = "".join(f"TranslationModel0_{number}= 0.2\n" for number in range(1, 5))
    ini.write_text(INI.replace("TranslationModel0= 0.2 0.2 0.2 0.2\n", single))
    assert read_config(ini).weights == whole


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_finite_are_refused(ini: Path, weight: float) -> None:
    with pytest.raises(InputError, match=rf"the weight of PhrasePenalty0 is {weight} \(give a fin"):
        Model.of_moses(ini).translator({"LM0": 1.0, "PhrasePenalty0": weight})


def test_a_damaged_table_leaves_nothing_behind(ini: Path) -> None:
    with gzip.open(ini.parent / "table.gz", "wt") as file:
        file.write("das haus ||| the house\n")
    with pytest.raises(InputError, match="table"):
        Model.of_moses(ini)
    assert list((ini.parent / "tunesmith-cache").iterdir()) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Distortion\n", "OpSequenceModel path=x\n", r"ini:14: the feature OpSequenceModel is not"),
        (
            "Distortion\n",
            "Distortion name=D\n",
            r"Distortion with the name D \(call it Distortion0",
        ),
        ("Distortion\n", "Distortion x\n", r"ini:14: x is not name=value"),
        ("wbe-msd-bidirectional-fe", "hier-mslr-f", r"has the type 'hier-mslr-f'"),
        ("path=table", "path=absent", r"no text file at .*absent, which TranslationModel0 names"),
        ("path=table", "size=3", r"TranslationModel0 has no path="),
        ("num-features=4", "num-features=four", r"num-features=four"),
        ("num-features=6", "num-features=3", r"num-features=3, but LexicalReordering has 6"),
        (
            "TranslationModel0= 0.2",
            "TranslationModel0=",
            r"ini:20: TranslationModel0 has 4 values and 3 w",
        ),
        ("0= 0.2 0.2", "0= 0.2 0.2 0.2", r"ini:20: TranslationModel0 has 4 values and 5 weights"),
        ("LM0= 0.5\n", "", r"ini:15: LM0 has 1 values and 0 weights"),
        ("LM0= 0.5\n", "LM0= 0.5\nFoo0= 3\n", r"ini:24: no line of \[feature\] has the name Foo0"),
        (
            "Distortion\n",
            "",
            r"ini:21: no line of \[feature\] has the name Distortion0 \(take it out",
        ),
        ("LM0= 0.5", "LM0= much", r'ini:23: the weight "much" is not a number \(write a number\)'),
        (
            "[weight]\n",
            "[xml-input]\nconstraint\n[weight]\n",
            r"ini:17: \[xml-input\] 'constraint' \(use one of exclusive, inclusive, ignore, pass",
        ),
        (
            "[weight]\n",
            "[stack]\n-5\n[weight]\n",
            r"ini:17: \[stack\] '-5' is not a whole number of at least 0 \(correct it, or take",
        ),
        ("[weight]\n", "[s]\n2.5\n[weight]\n", r"ini:17: \[stack\] '2.5' is not a whole number"),
        ("[weight]\n", "[b]\nnan\n[weight]\n", r"\[beam-threshold\] 'nan' is not a number of at"),
        (
            "limit]\n4",
            "limit]\n-2",
            r"\[distortion-limit\] '-2' is not a whole number of at least -1",
        ),
        ("KENLM name", "KENLM path=x\nKENLM name", r"ini:16: a second language model"),
        ("KENLM name=LM0 factor=0 path=lm.arpa order=2\n", "", r"no language model"),
        ("[distortion-limit]\n4", "[distortion-limit]\nfar", r"\[distortion-limit\] 'far' is not"),
        ("[weight]\n", "[search-algorithm]\n3\n[weight]\n", r"search algorithm 3"),
        ("[weight]\n", "[weights]\n", r"no \[weight\] section"),
    ],
)
def test_what_is_not_supported_is_named(ini: Path, old: str, new: str, message: str) -> None:
    assert old in INI
    ini.write_text(INI.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_config(ini)
