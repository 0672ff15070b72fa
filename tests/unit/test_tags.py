"""Tags of words in their phrases: counted in tagged text, and found by a decoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith import InputError, tune
from tunesmith.decode.translation import Model
from tunesmith.sources import Live
from tunesmith.training.classes import read_classes
from tunesmith.training.pipeline import Training, train
from tunesmith.training.tags import TAGS, Written, read_tagged, write_tags
from tunesmith.training.text import TextSide

# `can` is a verb, behind an article a noun.
TEXT = (
    "we|PRON can|AUX go|VERB",
    "they|PRON can|AUX see|VERB",
    "the|DET can|NOUN is|AUX red|ADJ",
    "we|PRON see|VERB the|DET can|NOUN",
    "they|PRON can|AUX see|VERB the|DET can|NOUN",
    "we|PRON can|AUX see|VERB",
)
SOURCES = (
    "wir können gehen",
    "sie können sehen",
    "die dose ist rot",
    "wir sehen die dose",
    "sie können sehen die dose",
    "wir können sehen",
)


def tagged(folder: Path, lines: tuple[str, ...] = TEXT) -> Path:
    path = folder / "tagged"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def test_phrases_are_written_where_tags_differ_from_those_of_their_words(tmp_path: Path) -> None:
    out = tmp_path / TAGS
    made = write_tags(read_tagged(tagged(tmp_path)), out)
    found = read_classes(out)
    assert found["can"] == "AUX" and found["the can"] == "DET NOUN"
    assert found["see the can"] == "VERB DET NOUN"
    assert "we can" not in found, "its words have the same tags alone"
    assert made == Written(
        sum(" " not in phrase for phrase in found), sum(" " in phrase for phrase in found)
    )
    write_tags(read_tagged(tagged(tmp_path)), out, longest=2)
    assert max(len(phrase.split()) for phrase in read_classes(out)) == 2


def test_the_most_frequent_tags_of_a_phrase_count(tmp_path: Path) -> None:
    out = tmp_path / TAGS
    write_tags([[("a", "X"), ("b", tag)] for tag in "PPQ"] + [[("b", "Q")]] * 5, out)
    assert read_classes(out) == {"a": "X", "b": "Q", "a b": "X P"}
    # Of equally frequent ones the first in the alphabet; a word without a tag is no part.
    write_tags([[("b", "Q")], [("b", "P")], [("b", "Q"), ("c", ""), ("b", "P")]], out)
    assert read_classes(out) == {"b": "P"}


def test_bad_tagged_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"tagged:2: 'can' is no word with a tag \(write word\|TAG"
    ):
        list(read_tagged(tagged(tmp_path, ("we|PRON", "can go|VERB"))))
    with pytest.raises(InputError, match="no word has a tag"):
        write_tags([[("a", "")]], tmp_path / TAGS)
    assert list(read_tagged(tagged(tmp_path, ("a|b|X",)))) == [[("a|b", "X")]]


def texts(folder: Path) -> tuple[Path, Path]:
    sides = folder / "train.de", folder / "train.en"
    plain = [" ".join(token.rpartition("|")[0] for token in line.split()) for line in TEXT]
    for path, lines in zip(sides, (SOURCES, plain), strict=True):
        path.write_text("".join(f"{line}\n" for line in [*lines] * 5))
    return sides


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_a_model_of_tagged_text_learns_bigrams_of_tags(tmp_path: Path, kind: str) -> None:
    given = Training(*texts(tmp_path), kind=kind, order=2, tagged=tagged(tmp_path))  # type: ignore[arg-type]
    made = train(given, tmp_path / "model", 1)
    assert made["stages"]["tags"]["tagged"] == "100.0%"
    assert TAGS in made["files"]
    model = Model.load(tmp_path / "model", kind, named=["hasler2011-tags"])  # type: ignore[arg-type]
    lines = ["wir sehen die dose", "sie können sehen"]
    references = [["we see the can"], ["they can see"]]
    # Rules of single words make the same string, with `can` as it is tagged alone.
    source = Live(model, lines, references, k=5)
    found = source.decode({**model.weights, "TT:DET~NOUN": 9.0}, 1)
    names = {name for name in found.names if name.startswith("TT:")}
    assert {"TT:<s>~PRON", "TT:DET~NOUN", "TT:NOUN~</s>", "TT:PRON~AUX"} <= names
    result = tune(
        Live(model, lines, references, k=5), "mira", "bleu:tokenize=none",
        options={"passes": 2}, start=model.weights,
    )  # fmt: skip
    assert result.tuned >= result.start


def test_tags_of_other_words_are_refused(tmp_path: Path) -> None:
    loud = tagged(tmp_path, tuple(line.upper() for line in TEXT))
    sides = texts(tmp_path)
    with pytest.raises(InputError, match=r"only 0% of the words .*work.corpus\.target"):
        train(Training(*sides, kind="phrase", order=2, tagged=loud), tmp_path / "model", 1)
    lower = TextSide(case="lower")
    given = Training(*sides, lower, lower, "phrase", order=2, tagged=loud)
    made = train(given, tmp_path / "lower", 1)
    assert made["stages"]["tags"]["tagged"] == "100.0%"
