"""Input that cannot be used gets an error with file, line and remedy, or a counted skip."""

from __future__ import annotations

from os import SEEK_CUR
from pathlib import Path
from zlib import crc32

import pytest

from tunesmith._core import Decoder
from tunesmith.errors import InputError
from tunesmith.lm import estimate
from tunesmith.training.rules import (
    AlignedCorpus,
    PhraseOptions,
    RuleTable,
    export_cdec,
    export_moses,
    export_reordering,
    find,
    import_cdec,
    import_moses,
    make_hiero_table,
    make_phrase_table,
)


def corpus(
    folder: Path, source: bytes, target: bytes, links: bytes, *, skip_bad: bool = False
) -> AlignedCorpus:
    for name, text in (("source", source), ("target", target), ("links", links)):
        (folder / name).write_bytes(text)
    return AlignedCorpus(
        folder / "source", folder / "target", folder / "links", max_words=100, skip_bad=skip_bad
    )


@pytest.mark.parametrize(
    ("source", "target", "links", "file", "line", "message"),
    [
        (b"a\nb\n", b"x\n", b"0-0\n", "target", 1, "has 1 lines"),
        (b"a\n", b"x\ny\n", b"0-0\n", "source", 1, "has 1 lines"),
        (b"a\n", b"x\n", b"", "links", 0, "has 0 lines"),
        (b"a\nb\n", b"x\n\xff\n", b"0-0\n0-0\n", "target", 2, "invalid UTF-8"),
        (b"a\n", b"x\n", b"0-1\n", "links", 1, "outside the target"),
        (b"a\n", b"x\n", b"0:0\n", "links", 1, "is not a link"),
    ],
)
def test_bad_corpora_are_refused(
    tmp_path: Path, source: bytes, target: bytes, links: bytes, file: str, line: int, message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        corpus(tmp_path, source, target, links)
    assert caught.value.file == str(tmp_path / file) and caught.value.line == line
    assert caught.value.remedy


def test_empty_and_endless_sentences_are_counted(tmp_path: Path) -> None:
    endless = b"a " * 10_000
    text = corpus(
        tmp_path,
        b"a\n\n" + endless + b"\nb\nb\n",
        b"x\nx\nx\n \nx\n",
        b"0-0\n\n\n\n9-9\n",
        skip_bad=True,
    )
    assert len(text) == 1
    skipped = {reason: (count, error.line) for reason, count, error in text.skipped}
    assert skipped == {"an empty side": (2, 2), "too long": (1, 3), "badly aligned": (1, 5)}


def test_a_corpus_without_usable_sentences_gives_an_empty_table(tmp_path: Path) -> None:
    for text in (corpus(tmp_path, b"", b"", b""), corpus(tmp_path, b"a\n", b"x\n", b"\n")):
        for make in (make_phrase_table, make_hiero_table):
            assert make(text, tmp_path / "t").entries == 0
            table = RuleTable(tmp_path / "t")
            assert len(table) == 0 and find(table, "a") == []
            export_cdec(table, tmp_path / "text")
            assert (tmp_path / "text").read_bytes() == b""


def test_a_vocabulary_of_one_word(tmp_path: Path) -> None:
    text = corpus(tmp_path, b"a a a\n" * 9, b"a a a\n" * 9, b"0-0 1-1 2-2\n" * 9)
    make_phrase_table(text, tmp_path / "t")
    assert [rule.target for rule in find(RuleTable(tmp_path / "t"), "a a")] == [("a", "a")]
    make_hiero_table(text, tmp_path / "h")
    assert find(RuleTable(tmp_path / "h"), "[X,1] a [X,2]")


def test_marks_and_control_characters_are_words_like_any_other(tmp_path: Path) -> None:
    text = corpus(tmp_path, b"||| [X,1] a|b \x07\x0b\n", b"||| [X] c d\n", b"0-0 1-1 2-2 3-3\n")
    make_phrase_table(text, tmp_path / "p")
    make_hiero_table(text, tmp_path / "h")
    phrases, hiero = RuleTable(tmp_path / "p"), RuleTable(tmp_path / "h")
    assert find(phrases, ["|||", "[X,1]"])[0].target == ("|||", "[X]")
    assert find(phrases, ["\x07\x0b"])[0].target == ("d",)
    export_moses(phrases, tmp_path / "p.txt")
    assert import_moses(tmp_path / "p.txt", tmp_path / "p2").entries == len(phrases)
    export_cdec(hiero, tmp_path / "h.txt")
    assert import_cdec(tmp_path / "h.txt", tmp_path / "h2").entries == len(hiero)
    assert RuleTable(tmp_path / "p2").source_id("&#124;&#124;&#124;") is not None


def test_truncated_and_changed_tables_are_refused(tmp_path: Path) -> None:
    make_phrase_table(corpus(tmp_path, b"a b\n", b"x y\n", b"0-0 1-1\n"), tmp_path / "t")
    whole = (tmp_path / "t").read_bytes()
    bad = tmp_path / "bad"
    for cut in (0, 5, 100, len(whole) // 2, len(whole) - 1):
        bad.write_bytes(whole[:cut])
        with pytest.raises(InputError) as caught:
            RuleTable(bad, verify=False)
        assert caught.value.file == str(bad) and caught.value.remedy
    for place in range(0, len(whole), 7):
        changed = bytearray(whole)
        changed[place] ^= 255
        bad.write_bytes(changed)
        with pytest.raises(InputError):
            RuleTable(bad)
    bad.write_text("! ||| ! ||| 1 1 1 1 ||| 0-0 |||\n" * 99)
    with pytest.raises(InputError, match="not a table of rules") as caught:
        RuleTable(bad)
    assert "import" in (caught.value.remedy or "")
    with pytest.raises(InputError, match="directory"):
        RuleTable(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        RuleTable(tmp_path / "none")


def test_the_checksum_of_a_huge_table_is_read_too(tmp_path: Path) -> None:
    made = tmp_path / "t.rules"
    make_phrase_table(corpus(tmp_path, b"a b\n", b"x y\n", b"0-0 1-1\n"), made)
    estimate(sentences=["x y"], order=2).model().save(tmp_path / "lm.tlm")
    Decoder.phrase(made, tmp_path / "lm.tlm")
    # Zeros before the sections move these on; the trailer has their places and its own sum.
    whole, extra = made.read_bytes(), (1 << 30) + 8
    trailer = bytearray(whole[-208:])
    first = int.from_bytes(trailer[32:40], "little")
    for place in range(32, 192, 16):
        moved = int.from_bytes(trailer[place : place + 8], "little") + extra
        trailer[place : place + 8] = moved.to_bytes(8, "little")
    trailer[196:200] = crc32(trailer[:196]).to_bytes(4, "little")
    with made.open("wb") as out:
        out.write(whole[:first])
        out.seek(extra, SEEK_CUR)
        out.write(whole[first:-208] + trailer)
    assert len(RuleTable(made, verify=False)) == 3
    with pytest.raises(InputError, match="its checksum differs"):
        Decoder.phrase(made, tmp_path / "lm.tlm")


def test_what_a_table_lacks_cannot_be_written(tmp_path: Path) -> None:
    text = corpus(tmp_path, b"a\n", b"x\n", b"0-0\n")
    make_phrase_table(text, tmp_path / "t", PhraseOptions(reordering=False))
    table = RuleTable(tmp_path / "t")
    with pytest.raises(InputError, match="no column word-previous-monotone"):
        export_reordering(table, tmp_path / "r")
    make_hiero_table(text, tmp_path / "h")
    with pytest.raises(InputError, match="no column"):
        export_moses(RuleTable(tmp_path / "h"), tmp_path / "r")
    assert not (tmp_path / "r").exists()


def test_options_that_mean_nothing_are_refused(tmp_path: Path) -> None:
    text = corpus(tmp_path, b"a\n", b"x\n", b"0-0\n")
    with pytest.raises(ValueError, match="good-turing"):
        make_phrase_table(text, tmp_path / "t", PhraseOptions(smoothing="gt"))  # type: ignore[arg-type]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    text = corpus(tmp_path, b"a\n", b"x\n", b"0-0\n")
    with pytest.raises(InputError, match="no such file or directory"):
        make_phrase_table(text, tmp_path / "no" / "table")
