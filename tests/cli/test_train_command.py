"""`tunesmith train` and `inspect` as one types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import on_a_terminal, process, tunesmith

SOURCE = "das haus ist klein\ndas buch ist alt\nein haus\nein buch\n" * 10
TARGET = "the house is small\nthe book is old\na house\na book\n" * 10


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "src").write_text(SOURCE)
    (tmp_path / "tgt").write_text(TARGET)
    return tmp_path / "src", tmp_path / "tgt"


def test_from_text_to_rules(texts: tuple[Path, Path], tmp_path: Path) -> None:
    model = tmp_path / "model"
    words = ("train", *texts, "--model", model, "--order", 3, "--threads", 1)
    ran = tunesmith(*words, "--dev", texts[0], "--dev-target", texts[1])
    assert ran.code == 0, ran.err
    assert "perplexity" in ran.out
    assert "coverage 1" in ran.out
    assert "align: done" in ran.err
    again = tunesmith(*words, "--dev", texts[0], "--dev-target", texts[1], "--json")
    assert "align: kept" in again.err
    tables = {"phrases.rules", "hiero.rules", "lm.tlm"}
    assert set(again.object["files"]) == tables | {"frequent.txt", "classes.txt"}
    assert again.object["stages"]["dev"]["coverage"] == 1
    found = tunesmith("inspect", model, "das haus", "--json").object
    assert found["phrases"][0]["target"] == "the house"


def test_models_are_asked_in_the_words_of_people(texts: tuple[Path, Path], tmp_path: Path) -> None:
    texts[0].write_text(SOURCE.replace("haus", "Haus").replace("\n", ".\n"))
    texts[1].write_text(TARGET.replace("\n", ".\n"))
    model = tmp_path / "model"
    words = ("train", *texts, "--model", model, "--tokenize", "moses", "--case", "true")
    told = tunesmith(*words, "--order", 3, "--dev", texts[0], "--dev-target", texts[1], "--json")
    asked = tunesmith("lm", "perplexity", model, texts[1], "--json").object
    assert asked["perplexity"] == pytest.approx(told.object["stages"]["dev"]["perplexity"])
    assert asked["unknown"] == 0
    assert tunesmith("lm", "query", model, texts[1]).out.split()[0] == "the"
    ran = tunesmith("inspect", model, "Ein haus.", "--json")
    assert "these are the rules for 'ein Haus .'" in ran.err
    assert ran.object["phrases"][0]["target"] == "a house ."
    assert "no rule for 'das boot'" in tunesmith("inspect", model, "das boot").out


def test_raw_text_is_tokenised_and_truecased_unless_options_say_otherwise(tmp_path: Path) -> None:
    pytest.importorskip("sacremoses")
    texts = tmp_path / "train.de", tmp_path / "train.en"
    texts[0].write_text("Das Haus, das alte.\nEin Buch.\n" * 5)
    texts[1].write_text("The house, the old one.\nA book.\n" * 5)
    words = ("train", *texts, "--kind", "phrase", "--order", 2, "--json", "--model")
    ran = tunesmith(*words, tmp_path / "one")
    assert ran.code == 0, ran.err
    lines = [line for line in ran.err.splitlines() if line.startswith("chosen: ")]
    assert lines == [f"chosen: {ran.object['chosen']}"]
    assert "raw text: --tokenize moses --case true" in lines[0]
    assert "source language de" in lines[0]
    moses = {"tokenize": "moses", "case": "true"}
    assert ran.object["text"] == {
        "source": {"language": "de", **moses},
        "target": {"language": "en", **moses},
    }
    assert tunesmith("inspect", tmp_path / "one", "das Haus ,", "--json").object["phrases"]
    given = ("--tokenize", "none", "--source-language", "nl", "--target-language", "en")
    ran = tunesmith(*words, tmp_path / "two", *given)
    assert "chosen" not in ran.err
    assert ran.object["text"]["source"] == {"language": "nl", "tokenize": "none", "case": "keep"}
    (tmp_path / "patterns").write_text("Haus,\n")
    ran = tunesmith(*words, tmp_path / "three", "--protected", tmp_path / "patterns")
    assert ran.code == 0, ran.err
    assert "das Haus, das" in (tmp_path / "three/work/corpus.source").read_text()


def test_raw_text_without_a_tokeniser_is_refused_with_what_helps(
    texts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunesmith.training.detect.find_spec", lambda name: None)
    words = ("train", *texts, "--model", tmp_path / "model", "--kind", "phrase", "--order", 2)
    assert tunesmith(*words).code == 0
    texts[0].write_text(SOURCE.replace("\n", ".\n"))
    words = ("train", *texts, "--model", tmp_path / "other", "--kind", "phrase", "--order", 2)
    ran = tunesmith(*words)
    assert ran.code == 2
    assert f"{texts[0]}: the text is not tokenised" in ran.err
    assert "pip install sacremoses" in ran.err.replace("\n", " ")
    assert not (tmp_path / "other").exists()
    assert tunesmith(*words, "--tokenize", "none").code == 0


def test_what_was_left_out_is_told(texts: tuple[Path, Path], tmp_path: Path) -> None:
    texts[0].write_text(SOURCE + "\n" + "wort " * 10_000 + "\n")
    texts[1].write_text(TARGET + "x\nword\n")
    ran = tunesmith("train", *texts, "--model", tmp_path / "model", "--kind", "phrase")
    assert ran.code == 0, ran.err
    assert "text: 1 sentence pairs left out: an empty side" in ran.err
    assert "text: 1 sentence pairs left out: more than 100 words" in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "syntax"], "use one of phrase, hiero, both"),
        (["--tokenize", "words"], "use one of none, moses, char, sentencepiece, bpe"),
        (["--case", "upper"], "use one of keep, lower, true"),
        (["--aligner", "giza"], "use one of fast_align, eflomal"),
        (["--order", "9"], "orders are 1 to 6"),
        (["--memory", "lots"], "write it as in 500M or 2G"),
        (["--tokenize", "bpe", "--pieces", "0"], "0 pieces"),
        (["--alignment", "absent"], "absent: cannot read: No such file"),
        (["--alignment", "absent", "--aligner", "giza"], "no aligner named 'giza'"),
        (["--longest", "0"], "a limit of 0 words"),
        (["--ratio", "nan"], "a limit of nan for the length ratio"),
    ],
)
def test_options_that_cannot_be_used_say_what_can(
    texts: tuple[Path, Path], tmp_path: Path, options: list[str], message: str
) -> None:
    ran = tunesmith("train", *texts, "--model", tmp_path / "model", *options)
    assert ran.code == 2
    assert message in ran.err
    assert ran.out == ""
    assert not (tmp_path / "model").exists()


def test_bad_text_ends_with_file_line_and_remedy(texts: tuple[Path, Path], tmp_path: Path) -> None:
    texts[1].write_bytes(b"the house\n\xff\n")
    ran = process("train", *texts, "--model", tmp_path / "model")
    assert ran.code == 2
    assert f"{texts[1]}:2: invalid UTF-8" in ran.err
    assert "iconv" in ran.err


def test_a_terminal_sees_a_bar_for_each_stage(texts: tuple[Path, Path], tmp_path: Path) -> None:
    shown = on_a_terminal("train", *texts, "--model", tmp_path / "model", "--order", 2)
    for stage in ("text", "align", "symmetrise", "lm", "phrases", "hiero"):
        assert stage in shown
    assert "━" in shown
    assert ": done" not in shown
