"""Sparse features by name, templates written in Python, and the files that templates want."""

from __future__ import annotations

import gzip
import inspect
from pathlib import Path

import pytest

from tunesmith._core import Decoder
from tunesmith.decode.templates import SETS, TEMPLATES, Template, Templates
from tunesmith.errors import InputError
from tunesmith.training.classes import CLASSES, make_classes, read_classes
from tunesmith.training.frequent import FREQUENT, write_frequent
from tunesmith.training.rules import AlignedCorpus, import_cdec, import_moses
from tunesmith.training.tags import TAGS, write_tags

Links = list[tuple[int, int]]


class Seen(Template):
    """Keeps what it is asked, and answers what it is told."""

    def __init__(self, answer: object = None) -> None:
        self.asked: list[tuple[list[str], list[str], Links, list[float]]] = []
        self.answer = {"seen": 1.0} if answer is None else answer

    def find(
        self, source: list[str], target: list[str], links: Links, scores: list[float]
    ) -> dict[str, float]:
        self.asked.append((source, target, links, scores))
        return self.answer  # type: ignore[return-value]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    (tmp_path / "s").write_text("das haus ja\ndas haus\nein haus\n")
    (tmp_path / "t").write_text("the house\nthe house of\na house\n")
    (tmp_path / "a").write_text("0-0 1-1\n" * 3)
    corpus = AlignedCorpus(tmp_path / "s", tmp_path / "t", tmp_path / "a")
    assert write_frequent(corpus, tmp_path / FREQUENT) == (3, 1, 1)
    assert make_classes(tmp_path / "t", tmp_path / CLASSES, classes=2) == 4
    write_tags([[("the", "DET"), ("house", "NOUN")]], tmp_path / TAGS)
    return tmp_path


def test_frequent_words_come_from_the_aligned_text(model: Path) -> None:
    lines = (model / FREQUENT).read_text().splitlines()
    assert lines[0] == "pair\thaus\thouse\t3"
    assert lines[-2:] == ["source\tja\t1", "target\tof\t1"]
    found = Templates(["frequent-deletions", "frequent-insertions"], folder=model)
    assert found.find(["ja", "ein"], ["of", "a"]) == {"FD:ja": 1.0, "FI:of": 1.0}


def test_as_many_words_are_frequent_as_in_the_paper() -> None:
    numbers = inspect.signature(write_frequent).parameters
    assert (numbers["pairs"].default, numbers["words"].default) == (300, 150)


def test_classes_are_read_back(model: Path) -> None:
    classes = read_classes(model / CLASSES)
    assert classes.keys() == {"the", "house", "of", "a"}
    assert classes["the"] == classes["a"]
    (model / CLASSES).write_text("the\t1\nhouse 2\n")
    with pytest.raises(InputError, match=r":2: .*is not a word, a tab and a class"):
        Templates(["class-bigrams"], folder=model)


def test_classes_want_words(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "empty.gz", "wt") as file:
        file.write("\n \n")
    with pytest.raises(InputError, match="no words"):
        make_classes(tmp_path / "empty.gz", tmp_path / "out")
    (tmp_path / "text").write_text("a b\n")
    with pytest.raises(InputError, match="no classes"):
        make_classes(tmp_path / "text", tmp_path / "out", classes=0)
    assert not (tmp_path / "out").exists()


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError) as raised:
        Templates(["rules"])
    for name in [*(each.name for each in TEMPLATES), *(each.name for each in SETS)]:
        assert name in str(raised.value)


def test_what_wants_a_file_says_how_to_make_it(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        with pytest.raises(InputError, match=r"tunesmith\.training\.frequent"):
            Templates(["contexts"], folder=folder)
        with pytest.raises(InputError, match=r"tunesmith\.training\.classes"):
            Templates(["class-bigrams"], folder=folder)
        with pytest.raises(InputError, match="train with --tagged"):
            Templates(["tag-bigrams"], folder=folder)


def test_every_set_can_be_turned_on(model: Path) -> None:
    for known in SETS:
        found = Templates([known.name], folder=model).find(["ja"], ["of"])
        single = Templates(known.templates, folder=model).find(["ja"], ["of"])
        assert found == single


def test_python_sees_words_as_they_are() -> None:
    seen = Seen()
    found = Templates(["rule-id"], own=[seen])
    source, target = ["a_b", "[X,1]", "&#95;"], ["~", "[X,1]"]
    assert found.find(source, target, [(0, 0)], [0.5]) == {
        "PT:a&#95;b_[X,1]_&#95;~&#126;_[X,1]": 1.0,
        "seen": 1.0,
    }
    assert seen.asked == [(source, target, [(0, 0)], [0.5])]


def test_a_rule_is_asked_for_once() -> None:
    seen = Seen()
    found = Templates(own=[seen])
    rules = [(["a"], ["b"], [], []), (["a"], ["b"], [(0, 0)], []), (["a"], ["b"], [], [0.5])]
    rules += [(["a", "b"], [], [], []), (["a", "[X,1]"], ["b"], [], [])]
    for _ in range(3):
        for rule in rules:
            assert found.find(*rule) == {"seen": 1.0}
    assert seen.asked == rules


def test_errors_of_python_reach_the_caller() -> None:
    class Broken(Template):
        def find(
            self, source: list[str], target: list[str], links: Links, scores: list[float]
        ) -> dict[str, float]:
            if source == ["bad"]:
                raise LookupError("no such word")
            return {"fine": 1.0}

    found = Templates(own=[Broken()])
    with pytest.raises(LookupError, match="no such word"):
        found.find(["bad"], [])
    assert found.find(["good"], []) == {"fine": 1.0}


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        ([("a", 1.0)], TypeError, "must return a dict"),
        ({1: 1.0}, TypeError, "str"),
        ({"a": "x"}, TypeError, "real number"),
        ({"a b": 1.0}, ValueError, "no name of a feature"),
        ({"": 1.0}, ValueError, "no name of a feature"),
        ({"a": float("nan")}, ValueError, "not finite"),
    ],
)
def test_bad_answers_are_refused(answer: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Templates(own=[Seen(answer)]).find(["a"], ["b"])


def test_own_templates_need_find() -> None:
    with pytest.raises(TypeError, match="find"):
        Templates(own=[object()])


PHRASES = """das haus ||| the house ||| 1 1 1 1 ||| 0-0 1-1 ||| 1 1 1
das ||| the ||| 1 1 1 1 ||| 0-0 ||| 1 1 1
haus ||| home ||| 1 1 1 1 ||| 0-0 ||| 1 1 1
haus ||| house ||| 1 1 1 1 ||| 0-0 ||| 1 1 1
"""
ARPA = "\\data\\\nngram 1=3\n\n\\1-grams:\n-1\t<unk>\n-1\t<s>\n-1\t</s>\n\n\\end\\\n"


@pytest.fixture
def files(model: Path) -> tuple[Path, Path]:
    (model / "phrases").write_text(PHRASES)
    (model / "lm").write_text(ARPA)
    import_moses(model / "phrases", model / "table")
    return model / "table", model / "lm"


def test_translations_have_the_features_and_their_weights(
    files: tuple[Path, Path], model: Path
) -> None:
    names = [template.name for template in TEMPLATES]
    decoder = Decoder.phrase(*files, templates=names, folder=model, own=[Seen()])
    plain = decoder.translator([("words", -1.0)], []).translate(["das haus quux"], details=50)
    found = {name for way in plain[0].derivations for name, _ in way.features}
    assert found >= {"PT:das_haus~the_house", "WP:haus~home", "LO:next-monotone:das~the"}
    assert found >= {"TB:<s>~the", "TB:quux~</s>", "CX-1:haus~house~das", "RS:w~w", "seen"}
    weights = {name: (at * 7 % 11 - 5) / 4 for at, name in enumerate(sorted(found))}
    [tuned] = decoder.translator(list(weights.items()), []).translate(["das haus quux"], details=50)
    assert len(tuned.derivations) > 2
    for way in tuned.derivations:
        expected = sum(weights[name] * value for name, value in way.features)
        assert way.score == pytest.approx(expected, abs=1e-4)


GRAMMAR = """[X] ||| das [X,1] ||| [X,1] the ||| F=1 ||| 0-1
[X] ||| haus ||| house ||| F=1 ||| 0-0
[X] ||| [X,1] von [X,2] ||| [X,2] 's [X,1] ||| F=1 ||| 1-1
[X] ||| das ||| the ||| F=1 ||| 0-0
"""


def test_hierarchical_translations_have_them_too(files: tuple[Path, Path], model: Path) -> None:
    (model / "grammar").write_text(GRAMMAR)
    import_cdec(model / "grammar", model / "hiero")
    names = [template.name for template in TEMPLATES]
    decoder = Decoder.hiero(model / "hiero", files[1], templates=names, folder=model, own=[Seen()])
    source = ["das haus von das haus"]
    plain = decoder.translator([("words", -1.0)], []).translate(source, details=50)
    found = {name for way in plain[0].derivations for name, _ in way.features}
    assert found >= {"SD:moved:2", "RS:[X,1]_w_[X,2]~[X,2]_w_[X,1]", "TB:'s~house", "seen"}
    weights = {name: (at * 7 % 11 - 5) / 4 for at, name in enumerate(sorted(found))}
    [tuned] = decoder.translator(list(weights.items()), []).translate(source, details=50)
    assert len(tuned.derivations) > 2
    for way in tuned.derivations:
        expected = sum(weights[name] * value for name, value in way.features)
        assert way.score == pytest.approx(expected, abs=1e-4)


def test_a_decoder_asks_once_for_each_rule(files: tuple[Path, Path]) -> None:
    seen = Seen()
    decoder = Decoder.phrase(*files, own=[seen])
    for weight in (0.0, 1.0, 2.0):
        translator = decoder.translator([("seen", weight)], [])
        translator.translate(["das haus", "haus das"] * 5, threads=1)
    asked = [(source, target) for source, target, _, _ in seen.asked]
    assert len(asked) == len({str(rule) for rule in asked}) == 4


def test_errors_while_decoding_reach_the_caller(files: tuple[Path, Path]) -> None:
    class Broken(Template):
        def find(
            self, source: list[str], target: list[str], links: Links, scores: list[float]
        ) -> dict[str, float]:
            return {"x": 1.0 / (target != ["home"])}

    translator = Decoder.phrase(*files, own=[Broken()]).translator([], [])
    assert translator.translate(["das"])[0].text == "the"
    # What was found with holes in it is kept by the decoder, so it must not be used again.
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            translator.translate(["das", "haus"], threads=2)
        with pytest.raises(ZeroDivisionError):
            translator.nbest(["das haus"], 5)


def test_the_documentation_lists_all_templates() -> None:
    page = (Path(__file__).parents[2] / "docs" / "features.md").read_text()
    for template in TEMPLATES:
        assert f"| `{template.name}` | `{template.example}` | {template.about} |" in page
    for known in SETS:
        listed = ", ".join(f"`{name}`" for name in known.templates)
        assert f"| `{known.name}` | {listed} |" in page
