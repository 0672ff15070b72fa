"""Configurations of Moses: what is read from them, what is refused, what is kept."""

from __future__ import annotations

import gzip
import os
from concurrent.futures import ThreadPoolExecutor
from math import inf
from pathlib import Path

import pytest

from tunesmith.decode.moses import read_config
from tunesmith.decode.moses_sections import SECTIONS, SHORT
from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.lm import estimate
from tunesmith.sources import Live
from tunesmith.training.pipeline import Training, train
from tunesmith.training.rules import RuleTable, export_moses, export_reordering

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


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg" / "tunesmith"


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
        "drop_unknown": 0,
    }
    more = "[search-algorithm]\n1\n[cube-pruning-pop-limit]\n50\n[stack]\n30\n[ttable-limit]\n7\n"
    ini.write_text(
        INI + more + "[beam-threshold]\n0.1\n[xml-input]\nexclusive\n[drop-unknown]\n1\n"
    )
    config = read_config(ini)
    assert [config.settings[name] for name in ("pop_limit", "stack", "table_limit")] == [50, 30, 7]
    assert config.settings["threshold"] == pytest.approx(2.3026, abs=1e-4)
    assert config.markup == "exclusive"
    assert config.settings["drop_unknown"] == 1
    ini.write_text(INI.replace("[distortion-limit]\n4\n", "[max-trans-opt-per-coverage]\n5\n"))
    settings = read_config(ini).settings
    assert (settings["distortion_limit"], settings["table_limit"]) == (-1, 5)
    ini.write_text(INI.replace("path=table", "table-limit=3 path=table"))
    assert read_config(ini).settings["table_limit"] == 3


def test_the_threshold_of_moses_makes_sizes_of_weights_matter(ini: Path) -> None:
    model = Model.of_moses(ini)
    assert Live(model, ["das haus"], ["the house"]).prunes
    assert not Live(model, ["das haus"], ["the house"], settings={"threshold": inf}).prunes


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


def test_files_are_converted_once(ini: Path, cache: Path) -> None:
    told: list[str] = []
    Model.of_moses(ini, tell=told.append)
    assert len(told) == 2
    assert "converting" in told[0]
    kept = sorted(cache.iterdir())
    assert not (ini.parent / "tunesmith-cache").exists()
    assert [path.suffix for path in kept] == [".tlm", ".rules"]
    Model.of_moses(ini, tell=told.append)
    assert len(told) == 2
    os.utime(ini.parent / "lm.arpa", (1, 1))
    Model.of_moses(ini, tell=told.append)
    assert len(told) == 3
    assert "lm.arpa" in told[2]


def test_a_cache_may_be_another_folder(
    ini: Path, cache: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    own = tmp_path_factory.mktemp("own")
    Model.of_moses(ini, cache=own)
    assert len(list(own.iterdir())) == 2
    assert not cache.exists()
    with pytest.raises(InputError, match=r"cannot be kept here: .* \(name a folder with --cache"):
        Model.of_moses(ini, cache=ini / "below")


def test_conversions_at_the_same_time_do_not_meet(ini: Path, cache: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        models = list(pool.map(Model.of_moses, [ini] * 8))
    assert len({model.translator().batch(["ein haus"])[0].text for model in models}) == 1
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("ending", [".rules", ".tlm"])
def test_a_damaged_file_of_the_cache_is_to_be_deleted(ini: Path, cache: Path, ending: str) -> None:
    Model.of_moses(ini)
    (kept,) = cache.glob(f"*{ending}")
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="delete this file; it is made again") as refused:
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


def test_a_damaged_table_leaves_nothing_behind(ini: Path, cache: Path) -> None:
    with gzip.open(ini.parent / "table.gz", "at") as file:
        file.write("das haus ||| the house\n")
    with pytest.raises(InputError, match="table"):
        Model.of_moses(ini)
    assert list(cache.iterdir()) == []


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
        ("wbe-msd-bidirectional-fe", "hier-mslr-f", r"has the type 'hier-mslr-f', which is not"),
        (
            "num-features=4",
            "num-features=4000000000",
            r"num-features=4000000000 \(give a number of at most 9 digits",
        ),
        (
            "num-features=4",
            "num-features=400000000",
            r"ini:12: num-features=400000000, but .*table.gz has 4 scores \(write num-features=4",
        ),
        ("input-factor=0", "input-factor=0,1", r"has the input-factor '0,1', which is not supp"),
        ("path=table", "path=table output-factor=1", r"factors are not supported: train a model"),
        ("factor=0 path=lm", "factor=1 path=lm", r"LM0 has the factor '1', which is not"),
        ("order=2", "order=2 oov-feature=1", r"LM0 has the oov-feature '1'.*the second weight"),
        ("path=orders", "path=orders default-scores=0,0", r"0 has the default-scores '0,0'"),
        (
            "PhrasePenalty\n",
            "PhrasePenalty per-phrase-table=true\n",
            r"the per-phrase-table 'true'",
        ),
        (
            "Distortion\n",
            "Distortion\nDistortion\n",
            r"ini:15: a second Distortion \(take it out, and a",
        ),
        ("Distortion\n", "Distortion sparse=1\n", r"Distortion0 has the sparse '1'"),
        ("KENLM name=LM0", "KENLM name=LM0 name=LM1", r"ini:15: name= is given twice"),
        (
            "PhraseDictionaryMemory",
            "PhraseDictionaryMultiModel",
            r"MultiModel is not supported \(write PhraseDictionaryMemory, and path= its text",
        ),
        ("[input-factors]\n0\n", "[input-factors]\n0\n1\n", r"ini:4: \[input-factors\] 1 is not"),
        ("0 T 0\n", "0 T 0\n0 G 0\n", r"ini:6: \[mapping\] 0 G 0 is not supported \(keep one step"),
        ("0 T 0\n", "0 T 1\n", r"ini:5: \[mapping\] 0 T 1 is not supported"),
        ("path=table", "path=absent", r"no text file at .*absent, which TranslationModel0 names"),
        ("path=table ", "", r"TranslationModel0 has no path="),
        ("path=table", "path=table size=3", r"TranslationModel0 has the size '3', which is not"),
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
        (
            "[weight]\n",
            "[stack]\n2.5\n[weight]\n",
            r"ini:17: \[stack\] '2.5' is not a whole number",
        ),
        (
            "[weight]\n",
            "[s]\n9\n[weight]\n",
            r"ini:17: \[s\] has no effect .*\(write \[stack\], or",
        ),
        ("[weight]\n", "[stacks]\n9\n[weight]\n", r"ini:17: \[stacks\] is not a section of Moses"),
        ("# A conf", "stack 3\n# A conf", r"ini:1: 'stack 3' stands before any section"),
        (
            "[weight]\n",
            "[beam-threshold]\nnan\n[weight]\n",
            r"\[beam-threshold\] 'nan' is not a number of at",
        ),
        (
            "limit]\n4",
            "limit]\n-2",
            r"\[distortion-limit\] '-2' is not a whole number of at least -1",
        ),
        (
            "KENLM name",
            "KENLM path=x\nKENLM name",
            r"ini:16: a second language model \(take this line",
        ),
        ("KENLM name=LM0 factor=0 path=lm.arpa order=2\n", "", r"no language model"),
        ("[distortion-limit]\n4", "[distortion-limit]\nfar", r"\[distortion-limit\] 'far' is not"),
        ("[weight]\n", "[search-algorithm]\n3\n[weight]\n", r"search algorithm 3.*--kind hiero"),
        ("[weight]\n", "[weights]\n", r"\[weights\] is not a section of Moses"),
        ("[weight]\n", "[description]\n", r"no \[weight\] section"),
    ],
)
def test_what_is_not_supported_is_named(ini: Path, old: str, new: str, message: str) -> None:
    assert old in INI
    ini.write_text(INI.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_config(ini)


@pytest.mark.parametrize("name", [name for name in SECTIONS if SECTIONS[name].use == "refused"])
def test_sections_that_change_the_output_are_refused_until_they_are_out(
    ini: Path, name: str
) -> None:
    ini.write_text(f"{INI}[{name}]\n7 x\n")
    with pytest.raises(InputError, match=rf"ini:25: \[{name}\] 7 x is not supported \(.+\)"):
        read_config(ini)
    for harmless in (f"[{name}]\n", *(f"[{name}]\n{value}\n" for value in SECTIONS[name].harmless)):
        ini.write_text(INI + harmless)
        read_config(ini)


def test_sections_that_change_nothing_are_ignored(ini: Path) -> None:
    plain = read_config(ini)
    ignored = [name for name in SECTIONS if SECTIONS[name].use == "ignored"]
    short = [name for name, full in SHORT.items() if full in ignored]
    ini.write_text(INI + "".join(f"[{name}]\n1\n" for name in [*ignored, *short]))
    assert read_config(ini) == plain


def test_switches_are_read_as_moses_reads_them(ini: Path) -> None:
    for value, is_on in {"": 0, "0": 0, "No": 0, "1": 1, "TRUE": 1, "y": 1}.items():
        ini.write_text(f"{INI}[drop-unknown]\n{value}\n")
        assert read_config(ini).settings["drop_unknown"] == is_on
    ini.write_text(f"{INI}[drop-unknown]\nmaybe\n")
    with pytest.raises(InputError, match=r"\[drop-unknown\] 'maybe' \(write true or false"):
        read_config(ini)


def test_unknown_words_are_dropped_but_for_numbers(ini: Path) -> None:
    line = "das neue haus ist klein 1999"
    assert Model.of_moses(ini).translator().batch([line])[0].text.split()[-1] == "1999"
    ini.write_text(f"{INI}[drop-unknown]\ntrue\n")
    (found,) = Model.of_moses(ini).translator().batch([line], details=1)
    assert found.text == "the house is small 1999"
    features = dict(found.derivations[0].features)
    assert (features["WordPenalty0"], features["UnknownWordPenalty0"]) == (-5, -200)


@pytest.mark.parametrize("start", ["", "wbe-", "phrase-"])
def test_a_reordering_model_has_several_names(ini: Path, start: str) -> None:
    ini.write_text(INI.replace("wbe-msd", f"{start}msd"))
    assert Model.of_moses(ini).translator().batch(["ein haus"])[0].text == "a house"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("[X][X] haus [X] ||| [X][X] house [X] ||| 1 1 1 1 ||| 0-0", "table:1: hierarchical rules"),
        ("a ||| b ||| 1 1 1 1\n[NP][X] a ||| b [X][NP] ||| 1 1 1 1", "table:2: hierarchical"),
        ("das [X] ||| the [X] ||| 1 1 1 1\nein [X] ||| a [X] ||| 1 1 1 1", "table:1: hierarch"),
        ("das|ART ||| the ||| 1 1 1 1", 'table:1: "das|ART" has factors'),
        ("a ||| b ||| 1 1 1 1 ||| 0-0 ||| 1 1 1 ||| dom_x 1 |||", "table:1: the sparse features"),
    ],
)
def test_tables_of_other_models_are_refused(ini: Path, lines: str, message: str) -> None:
    (ini.parent / "table").write_text(f"{lines}\n")
    with pytest.raises(InputError) as refused:
        Model.of_moses(ini)
    assert message in str(refused.value)
    assert refused.value.remedy


def test_words_in_brackets_are_words(ini: Path) -> None:
    (ini.parent / "table").write_text(
        "[lacht] ||| [laughs] ||| 1 1 1 1\nhaus ||| house ||| 1 1 1 1\n"
    )
    found = Model.of_moses(ini).translator().batch(["haus [lacht]"])
    assert found[0].text == "house [laughs]"


def test_sparse_weights_are_refused(ini: Path) -> None:
    (ini.parent / "sparse").write_text("TranslationModel0_x 0.5\n")
    ini.write_text(f"{INI}[weight-file]\nsparse\n")
    with pytest.raises(InputError, match=r"ini:25: the file of sparse weights has one for Trans"):
        read_config(ini)


@pytest.mark.parametrize("name", ["moses.ini", "table", "lm.arpa"])
def test_pipes_are_no_files_of_a_model(ini: Path, name: str) -> None:
    (ini.parent / name).unlink(missing_ok=True)
    os.mkfifo(ini.parent / name)
    with pytest.raises(InputError, match=rf"{name}: not a regular file"):
        Model.of_moses(ini)


def test_what_is_not_to_be_tuned_is_known(ini: Path) -> None:
    assert read_config(ini).fixed == {}
    told = INI.replace("PhrasePenalty\n", "").replace("PhrasePenalty0= 0.2\n", "")
    told = told.replace("UnknownWordPenalty0= 1\n", "")
    told = told.replace("Distortion\n", "Distortion tuneable=false\n")
    ini.write_text(told.replace("path=table", "path=table tuneable-components=1,0,1,1"))
    config = read_config(ini)
    assert config.absent == {"UnknownWordPenalty0": 1, "PhrasePenalty0": 0}
    assert config.fixed == {**config.absent, "Distortion0": 0.3, "TranslationModel0_2": 0.2}
    ini.write_text(INI.replace("path=table", "path=table tuneable-components=1,0"))
    with pytest.raises(InputError, match=r"tuneable-components=1,0 \(write 4 flags"):
        read_config(ini)


def test_a_model_is_shown_in_a_line(ini: Path) -> None:
    shown = repr(Model.of_moses(ini))
    assert shown == "<Model kind=None features=15 weights=15 tuned=True>"
