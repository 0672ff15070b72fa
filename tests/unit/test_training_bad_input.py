"""Parallel text that is not as it should be: refused with file and line, or counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tunesmith.errors import InputError
from tunesmith.lm import LanguageModel
from tunesmith.training.model import rule_tables
from tunesmith.training.pipeline import Training, train
from tunesmith.training.rules import RuleTable, find

SOURCE = ["das haus ist klein", "das haus ist alt", "ein haus", "das buch ist klein", "ein buch"]
TARGET = ["the house is small", "the house is old", "a house", "the book is small", "a book"]


def run(folder: Path, source: bytes | list[str], target: bytes | list[str], **options: Any) -> Any:
    """Train both kinds of rules and return the facts of the stages."""
    for name, text in (("src", source), ("tgt", target)):
        if isinstance(text, list):
            text = "".join(f"{line}\n" for line in text).encode()
        (folder / name).write_bytes(text)
    training = Training(folder / "src", folder / "tgt", order=3, **options)
    return train(training, folder / "model")["stages"]


def tables(folder: Path) -> tuple[RuleTable, RuleTable]:
    found = rule_tables(folder / "model")
    return found["phrases"], found["hiero"]


@pytest.mark.parametrize("short", ["src", "tgt"])
def test_unequal_line_counts_name_the_shorter_file(tmp_path: Path, short: str) -> None:
    texts = {"src": SOURCE, "tgt": TARGET}
    texts[short] = texts[short][:3]
    with pytest.raises(InputError, match=rf"{short}:4: it ends after 3 lines, but .* has 5"):
        run(tmp_path, texts["src"], texts["tgt"])
    assert not (tmp_path / "model" / "model.toml").exists()
    assert not (tmp_path / "model" / "work" / "corpus.source").exists()


def test_empty_sides_are_left_out_and_counted(tmp_path: Path) -> None:
    facts = run(tmp_path, [*SOURCE, "", " \t ", "haus"], [*TARGET, "x", "y", "\u2028"])
    assert facts["text"] == facts["text"] | {"pairs": 5, "dropped": {"an empty side": 3}}


@pytest.mark.parametrize("source", [[], [""], ["", ""]])
def test_text_without_a_pair_is_refused(tmp_path: Path, source: list[str]) -> None:
    with pytest.raises(InputError, match="no sentence pair can be learnt from") as caught:
        run(tmp_path, source, source)
    assert caught.value.file == str(tmp_path / "src")
    assert "--longest" in str(caught.value.remedy)


def test_lines_of_ten_thousand_words_are_left_out_and_counted(tmp_path: Path) -> None:
    facts = run(tmp_path, [*SOURCE, "wort " * 10_000], [*TARGET, "word " * 10_000])
    assert facts["text"]["dropped"] == {"more than 100 words": 1}


def test_lines_of_ten_thousand_words_pass_through_where_they_are_wanted(tmp_path: Path) -> None:
    facts = run(tmp_path, [*SOURCE, "wort " * 10_000], [*TARGET, "word " * 10_000], longest=20_000)
    assert facts["text"]["pairs"] == 6
    assert facts["align"]["skipped"] == facts["phrases"]["skipped"] == {"too long": 1}
    assert facts["lm"]["words"] > 10_000


@pytest.mark.parametrize("bad", ["src", "tgt"])
def test_invalid_utf8_names_file_and_line(tmp_path: Path, bad: str) -> None:
    texts = {"src": b"das haus\ndas buch\n", "tgt": b"the house\nthe book\n"}
    texts[bad] = texts[bad].replace(b"b", b"\xff")
    with pytest.raises(InputError, match=rf"{bad}:2: invalid UTF-8: byte 0xff"):
        run(tmp_path, texts["src"], texts["tgt"])


def test_control_characters_are_spaces(tmp_path: Path) -> None:
    source = [*SOURCE[:-1], "ein\x00buch\x0b\x1f\x7f"]
    target = [*TARGET[:-1], "a\x01\x02book\x85"]
    run(tmp_path, source, target)
    lines = (tmp_path / "model" / "work" / "corpus.source").read_text().splitlines()
    assert lines[-1] == "ein buch"
    plain = tmp_path / "plain"
    plain.mkdir()
    run(plain, SOURCE, TARGET)
    for name in ("phrases.rules", "hiero.rules", "lm.tlm"):
        one, other = tmp_path / "model" / name, plain / "model" / name
        assert one.read_bytes() == other.read_bytes()


def test_bars_brackets_and_symbols_are_words_like_others(tmp_path: Path) -> None:
    odd = ["||| [X,1] [X][X]", "[X] ||| <s>", "</s> | <unk> [", "NULL ]"]
    facts = run(tmp_path, [*SOURCE * 5, *odd * 5], [*TARGET * 5, *odd * 5])
    assert any("special words" in message for message in facts["lm"]["messages"])
    phrases, hiero = tables(tmp_path)
    assert [rule.target for rule in find(phrases, "|||")] == [("|||",)]
    assert [rule.target for rule in find(phrases, "[X,1]")] == [("[X,1]",)]
    gap = find(hiero, "[X,1] [X][X]")
    assert gap, "a gap, not the word that is spelled like one"
    assert phrases.source_id("[X,1]") == hiero.source_id("[X,1]")


def test_a_vocabulary_of_one_word(tmp_path: Path) -> None:
    facts = run(tmp_path, ["ja", "ja ja", "ja"] * 4, ["yes", "yes yes", "yes"] * 4)
    assert facts["align"]["aligner"] == "fast_align"
    phrases, hiero = tables(tmp_path)
    assert ("yes",) in [rule.target for rule in find(phrases, "ja")]
    assert ("yes",) in [rule.target for rule in find(hiero, "ja")]
    assert LanguageModel.load(tmp_path / "model" / "lm.tlm").score("yes yes") < 0


def test_a_single_pair(tmp_path: Path) -> None:
    run(tmp_path, ["ja"], ["yes"])
    assert [rule.target for rule in find(tables(tmp_path)[0], "ja")] == [("yes",)]


@pytest.mark.parametrize(
    ("links", "line", "message"),
    [
        (["0-0"] * 4, 5, r"the alignment ends after 4 lines, but .*src goes on"),
        (["0-0"] * 6, 6, r"the alignment goes on, but .*src ends after 5 lines"),
    ],
)
def test_an_alignment_of_another_length_is_refused(
    tmp_path: Path, links: list[str], line: int, message: str
) -> None:
    (tmp_path / "links").write_text("".join(f"{given}\n" for given in links))
    with pytest.raises(InputError, match=message) as caught:
        run(tmp_path, SOURCE, TARGET, alignment=tmp_path / "links")
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "links"), line)


def test_links_outside_a_sentence_leave_their_pair_out_and_are_counted(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("0-0 1-1\n9-9\n0-7\n0-0\n0-0\n")
    facts = run(tmp_path, SOURCE, TARGET, alignment=tmp_path / "links")
    assert facts["phrases"]["skipped"] == {"badly aligned": 2}
    place = tmp_path / "model" / "work" / "alignment"
    assert f'the first at {place}:2: "9-9" lies outside' in facts["phrases"]["messages"][0]


def test_what_is_no_link_is_refused_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "links").write_text("0-0 1-1\n0-0\n0-0 junk\n0-0\n0-0\n")
    with pytest.raises(InputError, match='"junk" is not a link') as caught:
        run(tmp_path, SOURCE, TARGET, alignment=tmp_path / "links")
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "links"), 3)


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_a_model_without_a_rule_is_refused(tmp_path: Path, kind: str) -> None:
    (tmp_path / "links").write_text("\n" * 5)
    with pytest.raises(InputError, match="no rule can be extracted") as caught:
        run(tmp_path, SOURCE, TARGET, alignment=tmp_path / "links", kind=kind)
    assert caught.value.file == str(tmp_path / "links")
    assert not list((tmp_path / "model").glob("*.rules"))
    assert not (tmp_path / "model" / "model.toml").exists()


def test_dev_sets_of_unequal_length_or_without_text_are_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "dev").write_text("das haus\nein buch\n")
    (tmp_path / "dev.tgt").write_text("the house\n")
    with pytest.raises(InputError, match=r"dev\.tgt:2: it ends after 1 lines"):
        run(tmp_path, SOURCE, TARGET, dev=tmp_path / "dev", dev_target=tmp_path / "dev.tgt")
    (tmp_path / "empty").write_text("\n\x01\n")
    with pytest.raises(InputError, match="the dev set is empty"):
        run(tmp_path, SOURCE, TARGET, dev=tmp_path / "empty")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("role", ["dev", "dev_target", "lm_texts"])
def test_further_text_that_is_not_utf8_is_refused_at_once(tmp_path: Path, role: str) -> None:
    more = tmp_path / "more"
    more.write_bytes(b"the house\n\xff\n")
    with pytest.raises(InputError, match=r"more:2: invalid UTF-8"):
        run(tmp_path, SOURCE, TARGET, **{role: (more,) if role == "lm_texts" else more})
    assert not (tmp_path / "model").exists()


def test_perplexity_and_coverage_of_a_dev_set(tmp_path: Path) -> None:
    (tmp_path / "dev").write_text("das haus ist neu\n")
    (tmp_path / "dev.tgt").write_text("the house is new\n")
    facts = run(
        tmp_path, SOURCE * 9, TARGET * 9, dev=tmp_path / "dev", dev_target=tmp_path / "dev.tgt"
    )["dev"]
    assert (facts["words"], facts["covered"]) == (4, 3)
    assert (facts["tokens"], facts["unknown"]) == (5, 1)
    model = LanguageModel.load(tmp_path / "model" / "lm.tlm")
    assert facts["perplexity"] == pytest.approx(model.perplexity(["the house is new"]))
