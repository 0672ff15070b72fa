"""`tunesmith inspect`: which weights there are, which matter, and the rules of a model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import Sample, refused, tunesmith
from twins.toy import make_world

from tunesmith import Weights
from tunesmith.decode.templates import TEMPLATES, groups, template_of
from tunesmith.formats.weights import read_moses_ini

VALUES = {
    "lm": 0.5,
    "words": -1.0,
    "distortion": 0.0,
    "PT:das_haus~the_house": 0.25,
    "PT:das~that": -0.75,
    "PT:ein~one": 0.0,
    "CX-1:haus~house~das": -0.125,
    "CX+1:haus~house~ist": 0.0,
}


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    Weights(VALUES, {"tuner": "rm", "templates": ["rule-id", "contexts"]}).save(tmp_path / "w.toml")
    return tmp_path / "w.toml"


def test_weights_are_counted_by_template_and_the_largest_shown(weights: Path) -> None:
    ran = tunesmith("inspect", weights, "--top", 2)
    assert ran.code == 0, ran.err
    rows = [line.split() for line in ran.out.splitlines()]
    assert ["dense", "3", "2", "1.5", "57.1%"] in rows
    assert ["rule-id", "3", "2", "1", "38.1%"] in rows
    assert ["contexts", "2", "1", "0.125", "4.8%"] in rows
    assert ["all", "8", "5"] in rows
    assert rows.index(["words", "-1"]) < rows.index(["lm", "+0.5"])
    assert ["PT:das~that", "-0.75", "rule-id"] in rows
    assert "… and 3 more (--top)" in ran.out
    assert "CX-1" not in ran.out
    told = tunesmith("inspect", weights, "--top", 3, "--json").object
    assert (told["weights"], told["nonzero"]) == (8, 5)
    assert list(told["top"]) == ["words", "PT:das~that", "lm"]
    assert [group["name"] for group in told["groups"]] == ["dense", "rule-id", "contexts"]
    assert told["meta"]["tuner"] == "rm"


def test_weights_are_ranked_by_how_far_they_move_scores(weights: Path, tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    lists.write_text(
        "0 ||| a ||| lm= -20 words= 1 ||| 0\n0 ||| b ||| lm= -40 words= 2 ||| 0\n"
        "1 ||| a ||| lm= -10 words= 1 ||| 0\n1 ||| b ||| lm= -10 words= 2 ||| 0\n"
    )
    ran = tunesmith("inspect", weights, "--lists", lists, "--out", tmp_path / "ranked.toml")
    assert ran.code == 0, ran.err
    for file in ((weights, "--lists", lists), (tmp_path / "ranked.toml",)):
        rows = [line.split() for line in tunesmith("inspect", *file).out.splitlines()]
        assert rows.index(["lm", "+0.5", "5", "2.5"]) < rows.index(["words", "-1", "0.5", "0.5"])
        told = tunesmith("inspect", *file, "--json").object
        assert list(told["influence"].items()) == [("lm", 2.5), ("words", 0.5)]
        assert list(told["top"])[:2] == ["lm", "words"]
    assert "weights without a feature in the lists: 3" in ran.err
    lists.write_text("0 ||| a ||| LM= -20 ||| 0\n")
    ran = refused(tmp_path, "inspect", weights, "--lists", lists)
    assert "no feature is called 'words' (there are LM)" in ran.err
    ran = refused(tmp_path, "inspect", weights, "--format", "moses")
    assert "--format without --lists" in ran.err


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--drop-zeros"], {name for name, value in VALUES.items() if value}),
        (["--group", "rule-id"], {name for name in VALUES if name.startswith("PT:")}),
        (["--group", "dense", "--negative"], {"words"}),
        (["--positive"], {"lm", "PT:das_haus~the_house"}),
    ],
)
def test_what_the_options_leave_is_written(
    weights: Path, tmp_path: Path, options: list[str], left: set[str]
) -> None:
    small = tmp_path / "small.toml"
    ran = tunesmith("inspect", weights, *options, "--out", small, "--json")
    assert ran.object["weights"] == len(left)
    found = Weights.load(small)
    assert dict(found) == {name: VALUES[name] for name in left}
    # Without them the decoder would not know which templates to turn on.
    assert found.meta["templates"] == ["rule-id", "contexts"]


def test_weights_of_other_programs_are_read_too(tmp_path: Path) -> None:
    (tmp_path / "cdec.txt").write_text("LanguageModel 0.5\nWordPenalty -1\n")
    told = tunesmith("inspect", tmp_path / "cdec.txt", "--json").object
    assert told["top"] == {"WordPenalty": -1.0, "LanguageModel": 0.5}


INI = "[feature]\nDistortion\nWordPenalty\n\n[weight]\nDistortion0= 0.3\nWordPenalty0= -1\n"


def test_weights_are_written_in_the_form_that_the_name_asks_for(
    weights: Path, tmp_path: Path
) -> None:
    plain, ini = tmp_path / "w.txt", tmp_path / "moses.ini"
    assert tunesmith("inspect", weights, "--group", "dense", "--negative", "-o", plain).code == 0
    assert plain.read_text() == "words -1.0\n"
    ini.write_text(INI)
    ran = tunesmith("inspect", ini, "--positive", "--out", ini)
    assert ran.code == 0, ran.err
    assert ini.read_text().startswith("[feature]\nDistortion\n")
    assert dict(read_moses_ini(ini)) == {"Distortion0": 0.3, "WordPenalty0": 0.0}


def test_zeros_that_a_configuration_does_not_have_are_not_written(tmp_path: Path) -> None:
    ini, new = tmp_path / "moses.ini", tmp_path / "new.ini"
    ini.write_text(INI + "\n[weight-file]\nsparse\n")
    (tmp_path / "sparse").write_text("bonus 0\nmalus 0.5\n")
    assert tunesmith("inspect", ini, "--drop-zeros", "--out", new).code == 0
    assert (tmp_path / "new.ini.sparse").read_text() == "malus 0.5\n"


def test_what_does_not_fit_is_refused(weights: Path, tmp_path: Path) -> None:
    wrong: list[tuple[list[object], str]] = [
        ([weights, "--group", "pairs"], "there are contexts, dense, rule-id"),
        ([weights, "das haus"], "looked up in a model"),
        ([weights, "--positive", "--negative"], "give one of them"),
        ([tmp_path, "--drop-zeros"], "a weights file"),
        ([tmp_path / "none.toml"], "none.toml"),
        ([weights, "--out", tmp_path / "no" / "w.toml"], "no such directory"),
        ([weights, "--out", tmp_path / "w.ini"], "no configuration of Moses to copy"),
        ([weights, "--group", "contexts", "--positive", "--out", weights], "no weights are left"),
    ]
    for words, said in wrong:
        assert said in refused(tmp_path, "inspect", *words).err


def test_rules_are_the_same_as_a_table_and_for_programs(tmp_path: Path) -> None:
    asked = ("inspect", make_world(tmp_path) / "model", "das [X] ein [X]")
    every = tunesmith(*asked, "--json").object["hiero"]
    counts = [rule["scores"]["CountEF"] for rule in every]
    assert len(counts) > 2 and counts == sorted(counts, reverse=True)
    few = tunesmith(*asked, "--top", 2, "--json").object["hiero"]
    assert few == every[:2]
    shown = tunesmith(*asked, "--top", 2).out
    assert [rule["target"] in shown for rule in every] == [True, True, *[False] * len(every[2:])]
    assert f"… and {len(every) - 2} more (--top)" in shown
    assert list(tunesmith(*asked, "--json").object) == ["phrases", "hiero"]
    for kind, name in (("hiero", "hiero"), ("phrase", "phrases")):
        assert list(tunesmith(*asked, "--json", "--kind", kind).object) == [name]


@given(st.dictionaries(st.sampled_from([*VALUES, "own:a", "own:b", ":x"]), st.floats(-9, 9)))
def test_groups_hold_every_weight_once(weights: dict[str, float]) -> None:
    found = groups(weights)
    assert sum(group.weights for group in found) == len(weights)
    assert sum(group.nonzero for group in found) == sum(map(bool, weights.values()))
    whole = sum(map(abs, weights.values()))
    assert sum(group.size for group in found) == pytest.approx(whole)
    assert sum(group.share for group in found) == pytest.approx(1.0 if whole else 0.0)


def test_every_template_knows_its_features() -> None:
    for known in TEMPLATES:
        assert template_of(known.example) == known.name


def test_two_weights_are_compared_by_template(weights: Path, tmp_path: Path) -> None:
    other = {
        "lm": 1.0,
        "words": -2.0,
        "distortion": 0.0,
        "PT:das_haus~the_house": -0.5,
        "PT:das~that": -1.5,
        "PT:neu~new": 3.0,
        "CX-1:haus~house~das": 0.0,
    }
    Weights(other).save(tmp_path / "v.toml")
    told = tunesmith("inspect", weights, tmp_path / "v.toml", "--json").object
    dense, rules, contexts = told["groups"]
    assert (dense["template"], dense["left"], dense["right"], dense["both"]) == ("dense", 2, 2, 2)
    assert (dense["cosine"], dense["correlation"]) == pytest.approx((1.0, 1.0))
    assert (rules["left"], rules["right"], rules["both"], rules["opposed"]) == (2, 3, 2, 1)
    assert rules["share"] == pytest.approx(2 / 3)
    assert rules["correlation"] == pytest.approx(1.0), "two points are on a line"
    assert (contexts["both"], contexts["cosine"], contexts["correlation"]) == (0, None, None)
    assert told["differences"][0]["feature"] == "PT:neu~new"
    assert told["differences"][0]["left"] is None
    assert "CX+1:haus~house~ist" not in {each["feature"] for each in told["differences"]}
    shown = tunesmith("inspect", weights, tmp_path / "v.toml", "--group", "rule-id", "--top", 1)
    rows = [line.split() for line in shown.out.splitlines()]
    assert ["rule-id", "2", "3", "2", "66.7%", "1", "+0.373", "+1.000"] in rows
    # Weights of length 1: 3 / √(1 + 4 + 0.25 + 2.25 + 9).
    assert any(row[:3] == ["PT:neu~new", "+0.7385", "+0.7385"] for row in rows)
    assert "… and 2 more (--top)" in shown.out
    assert not any(row[:1] == ["lm"] for row in rows)


def test_weights_of_the_same_direction_do_not_differ(weights: Path, tmp_path: Path) -> None:
    Weights({name: 3 * value for name, value in VALUES.items()}).save(tmp_path / "v.toml")
    told = tunesmith("inspect", weights, tmp_path / "v.toml", "--json").object
    assert told["differing"] == 0
    assert all(each["opposed"] == 0 for each in told["groups"])


def test_a_large_weight_that_nothing_learnt_hides_no_difference(tmp_path: Path) -> None:
    unknown = {"unknown": -100.0}
    for name, learnt in (("a", {"lm": 1.0, "words": 2.0}), ("b", {"lm": 4.0, "words": -2.0})):
        Weights({**learnt, **unknown}).save(tmp_path / f"{name}.toml")
    ran = tunesmith("inspect", tmp_path / "a.toml", tmp_path / "b.toml", "--json").object
    (dense,) = ran["groups"]
    assert (dense["both"], dense["opposed"], ran["left_out"]) == (3, 1, ["unknown"])
    assert dense["cosine"] == pytest.approx(0.0, abs=1e-12)
    assert dense["correlation"] == pytest.approx(-1.0)
    # Of length √20 and √5.
    moved = {each["feature"]: each["difference"] for each in ran["differences"]}
    assert moved == pytest.approx({"words": -6.0 / 20**0.5, "lm": 2.0 / 20**0.5})
    shown = tunesmith("inspect", tmp_path / "a.toml", tmp_path / "b.toml").out
    assert "leave unknown out" in shown
    same = tunesmith("inspect", tmp_path / "a.toml", tmp_path / "a.toml", "--json").object
    assert (same["left_out"], same["groups"][0]["cosine"]) == ([], pytest.approx(1.0))


def test_runs_are_compared_by_their_final_weights(sample: Sample, tmp_path: Path) -> None:
    for tuner in ("mert", "pro"):
        words = "rerank", "tune", *sample.dev, "-t", tuner, "--run", tmp_path / tuner
        assert tunesmith(*words).code == 0
    told = tunesmith("inspect", tmp_path / "mert", tmp_path / "pro", "--json").object
    files = [tmp_path / name / "weights.toml" for name in ("mert", "pro")]
    assert tunesmith("inspect", *files, "--json").object["groups"] == told["groups"]
    assert told["groups"][0]["both"] > 0
    ran = refused(tmp_path, "inspect", files[0], tmp_path)
    assert "a model has no weights to compare with" in ran.err
    ran = refused(tmp_path, "inspect", *files, "--drop-zeros")
    assert "--group and --top only" in ran.err
    files[1].unlink()
    assert "no weights yet" in refused(tmp_path, "inspect", files[0], tmp_path / "pro").err
