"""CoNLL-U is read, checked and written back as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunesmith import InputError
from tunesmith.structured import Sentence, read_conllu, score, write_conllu


def row(number: object, form: str, tag: str = "X", head: object = 0, label: str = "dep") -> str:
    return f"{number}\t{form}\t_\t{tag}\t_\t_\t{head}\t{label}\t_\t_"


GOOD = "\n".join(
    [
        "# sent_id = 1",
        "# text = vámonos al mar",
        row("1-2", "vámonos", "_", "_", "_"),
        row(1, "vamos", "VERB", 0, "root"),
        row(2, "nos", "PRON", 1, "obj"),
        row("2.1", "hoy", "ADV", "_", "_"),
        row("3-4", "al", "_", "_", "_"),
        row(3, "a", "ADP", 5, "case"),
        row(4, "el", "DET", 5, "det"),
        row(5, "mar", "NOUN", 1, "obl"),
        "",
        row(1, "sí", "INTJ", 0, "root"),
        "",
        "",
    ]
)


def read(tmp_path: Path, text: str) -> list[Sentence]:
    (tmp_path / "text.conllu").write_text(text, encoding="utf-8")
    return list(read_conllu(tmp_path / "text.conllu"))


def test_all_lines_come_back(tmp_path: Path) -> None:
    sentences = read(tmp_path, GOOD)
    assert "".join(write_conllu(sentences)) == GOOD.removesuffix("\n") + "\n"
    assert sentences[0].forms() == ("vamos", "nos", "a", "el", "mar")
    assert sentences[0].tags("upos") == ("VERB", "PRON", "ADP", "DET", "NOUN")
    assert sentences[0].heads() == (0, 1, 5, 5, 1)
    assert [sentence.line for sentence in sentences] == [1, 12]


def test_only_words_are_changed(tmp_path: Path) -> None:
    sentence = read(tmp_path, GOOD)[0]
    words = [word.with_tag("xpos", "t").with_head(3, "") for word in sentence.words]
    lines = sentence.with_words(words).text().split("\n")
    assert lines[3] == "1\tvamos\t_\tVERB\tt\t_\t3\t_\t_\t_"
    assert [lines[at] for at in (0, 1, 2, 5, 6)] == [GOOD.split("\n")[at] for at in (0, 1, 2, 5, 6)]


def test_a_last_line_without_its_end_is_read(tmp_path: Path) -> None:
    assert len(read(tmp_path, row(1, "a"))) == 1


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("1\ta\tb", 1, "3 columns, not 10"),
        (row(1, "a").replace("\t", " "), 1, "not spaces"),
        (row(1, "a").replace("dep", ""), 1, "column 8 is empty"),
        (row(1, "a") + "\n" + row(3, "b"), 2, "word 3 follows word 1"),
        (row("x", "a"), 1, "'x' is no id"),
        (row("01", "a"), 1, "'01' is no id"),
        (row(1, "a", head="x"), 1, "the head 'x' is no number"),
        (row(1, "a", head=-1), 1, "the head '-1' is no number"),
        (row("2-3", "a"), 1, "stands before word 1"),
        (row("2-1", "a"), 1, "is no id|stands before word 1"),
        (row("1.1", "a"), 1, "follows word 0"),
        (row(1, "a") + "\n# late", 2, "a comment inside a sentence"),
        ("# alone\n\n" + row(1, "a"), 2, "comments without a sentence"),
        ("# alone", 1, "comments without a sentence"),
    ],
)
def test_what_is_not_conllu_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert caught.value.line == line
    assert caught.value.file == str(tmp_path / "text.conllu")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("heads", "line", "message"),
    [
        (("_", 0), 1, "'a' has no head"),
        ((3, 0), 1, "the head 3 is outside the sentence of 2 words"),
        ((0, 0), 2, "2 roots"),
        ((2, 1), 1, "0 roots"),
        ((0, 3, 2), 2, "cycle"),
        ((0, 2), 2, "cycle"),
    ],
)
def test_what_is_no_tree_is_refused_with_its_line(
    tmp_path: Path, heads: tuple[object, ...], line: int, message: str
) -> None:
    text = "\n".join(row(n, "abc"[n - 1], head=head) for n, head in enumerate(heads, 1))
    (sentence,) = read(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        sentence.heads()
    assert caught.value.line == line


def test_words_without_tags_are_refused_where_they_are_needed(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path, row(1, "a", tag="_"))
    assert not sentence.has_tags("upos")
    with pytest.raises(InputError, match="has no UPOS tag") as caught:
        sentence.tags("upos")
    assert caught.value.line == 1
    (sentence,) = read(tmp_path, row(1, "a", label="_"))
    with pytest.raises(InputError, match="has no name"):
        sentence.labels()


def test_scores_count_words_that_have_a_gold_value(tmp_path: Path) -> None:
    gold = read(tmp_path, GOOD)
    words = list(gold[0].words)
    words[1] = words[1].with_tag("upos", "X")
    words[2] = words[2].with_head(1, "case")
    words[3] = words[3].with_head(5, "amod")
    found = score(gold, [gold[0].with_words(words), gold[1]])
    assert (found.sentences, found.words, found.xpos) == (2, 6, None)
    assert found.upos == pytest.approx(100 * 5 / 6)
    assert found.uas == pytest.approx(100 * 5 / 6)
    assert found.las == pytest.approx(100 * 4 / 6)
    assert found.exact == pytest.approx(50)
    blank = gold[0].with_words([words[0].with_tag("upos", "_"), *gold[0].words[1:]])
    assert score([blank, gold[1]], gold).upos == pytest.approx(100)
    assert score(gold, [blank, gold[1]]).upos == pytest.approx(100 * 5 / 6)


def test_texts_that_differ_cannot_be_scored(tmp_path: Path) -> None:
    gold = read(tmp_path, GOOD)
    with pytest.raises(InputError, match="missing from the other file") as caught:
        score(gold, gold[:1])
    assert caught.value.line == 12
    with pytest.raises(InputError, match="stands here"):
        score(gold, [gold[0], gold[0]])
    with pytest.raises(InputError, match="no words"):
        score([], [])
