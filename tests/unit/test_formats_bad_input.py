"""Whatever is wrong with a list: an error with file, line and remedy, or a counted skip."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tunesmith.errors import InputError
from tunesmith.formats import detect, read_nbest, read_references, write_nbest

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"

GOOD = {
    "moses": "0 ||| a ||| A= 1 ||| 1",
    "cdec": "0 ||| a ||| A=1 ||| 1",
    "travatar": "0 ||| a ||| 1 ||| A=1",
    "jsonl": '{"hypotheses": [{"text": "a", "features": {"A": 1}}]}',
    "fairseq": "H-0\t-1\ta",
    "nemo": '{"beams": [["a", 1]]}',
    "nemo-tsv": "a\t1",
    "flat": "a",
    "kaldi": "u-1 a",
    "espnet1": '{"utts": {"u": {"output": [{"rec_text": "a", "score": 1}]}}}',
}

# format, bad line, part of the message
BAD = [
    ("moses", "0 ||| a ||| A= 1", "found 3 of the 4 fields"),
    ("moses", "0 ||| a ||| A= b ||| 1", '"b" is not a number'),
    ("moses", "0 ||| a ||| A= nan ||| 1", "not a finite number"),
    ("moses", "0 ||| a ||| A= 1 ||| -inf", "not a finite number"),
    ("moses", "0 ||| a ||| A= 1 A= 2 ||| 1", "given twice"),
    ("moses", "0 |||  ||| A= 1 ||| 1", "has no text"),
    ("cdec", "0 ||| a ||| A= ||| 1", "has no value"),
    ("cdec", "0 ||| a ||| A=inf ||| 1", "not a finite number"),
    ("cdec", "0 ||| a ||| A=1 A=1 ||| 1", "given twice"),
    ("cdec", "0 ||| a ||| 1 ||| A=1", "the score stands before the features"),
    ("moses", "0 ||| a ||| 1 ||| A=1", "the score stands before the features"),
    ("moses", "0 ||| a ||| 1 ||| A= 1", "the score stands before the features"),
    ("moses", "0|||a||||A= 1|||1", "found 3 of the 4 fields"),
    ("travatar", "0 ||| a ||| A=1 ||| 1", 'the score "A=1" is not a number'),
    ("travatar", "0 ||| a ||| 1 ||| A= 1", "has no value"),
    ("travatar", "0 ||| a ||| A=1", "id ||| text ||| score ||| features"),
    ("jsonl", "{", "not JSON"),
    ("jsonl", "[]", "not a JSON object"),
    ("jsonl", '{"texts": []}', "no list of hypotheses"),
    ("jsonl", '{"hypotheses": [{}]}', "without text"),
    ("jsonl", '{"hypotheses": [{"text": "a", "features": {"A": "b"}}]}', "has no number"),
    ("jsonl", '{"hypotheses": [{"text": "a", "features": {"A": NaN}}]}', "not a finite number"),
    ("jsonl", '{"hypotheses": [{"text": "a", "score": -Infinity}]}', "not a finite number"),
    ("jsonl", '{"hypotheses": [{"text": "a", "features": {"A": 1e39}}]}', "not a finite number"),
    ("jsonl", '{"hypotheses": [{"text": "a", "features": {"A": 1, "A": 2}}]}', "given twice"),
    ("jsonl", '{"hypotheses": [{"text": " "}]}', "has no text"),
    ("jsonl", '{"hypotheses": [{"text": "\\ud800"}]}', "lone surrogate"),
    ("jsonl", "[" * 100_000, "not JSON"),
    ("jsonl", '{"key": 1, "hypotheses": [{"text": "a"}]}', "the key is not text"),
    ("jsonl", '{"source": 1, "hypotheses": []}', "the source is not text"),
    ("jsonl", '{"source": "\\ud800", "hypotheses": []}', "the source is not text"),
    ("jsonl", '{"references": "a", "hypotheses": []}', "references are not a list of texts"),
    ("fairseq", "H-1\t-1", "without score or text"),
    ("fairseq", "H-1\tx\ta", "is not a number"),
    ("fairseq", "H-1\t-inf\ta", "not a finite number"),
    ("fairseq", "H-1\t-1\t", "has no text"),
    ("nemo", '{"text": "a"}', "no beams"),
    ("nemo", '{"beams": [["a"]]}', "not text and score"),
    ("nemo", '{"beams": [["a", "b"]]}', "has no number"),
    ("nemo", '{"beams": [["a", Infinity]]}', "not a finite number"),
    ("nemo-tsv", "a", "no score behind a tab"),
    ("nemo-tsv", "a\tb", "is not a number"),
    ("nemo-tsv", "a\tnan", "not a finite number"),
    ("flat", "", "has no text"),
    ("kaldi", "u words", "has no rank"),
    ("kaldi", "v-1", "has no text"),
]


def listed(key: str) -> str:
    return f'{{"key": "{key}", "hypotheses": [{{"text": "a"}}]}}'


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(("format", "line", "message"), BAD)
def test_a_bad_line_is_named_or_skipped(
    tmp_path: Path, format: str, line: str, message: str
) -> None:
    path = write(tmp_path / "list", [GOOD[format], line])
    with pytest.raises(InputError) as caught:
        read_nbest(path, format, per_sentence=1)
    error = caught.value
    assert message in error.message
    assert error.file == str(path)
    assert error.line == 2
    assert error.remedy
    assert str(error) == f"{path}:2: {error.message} ({error.remedy})"
    pools, skipped = read_nbest(path, format, per_sentence=1, skip_bad=True)
    assert pools.hypotheses == 1
    assert [(skip.count, str(skip.first)) for skip in skipped] == [(1, str(error))]


@pytest.mark.parametrize("format", GOOD)
def test_bytes_that_are_not_utf8(tmp_path: Path, format: str) -> None:
    path = tmp_path / "list"
    path.write_bytes(GOOD[format].encode() + b"\n\xff\n")
    with pytest.raises(InputError, match=r"list:2: invalid UTF-8: byte 0xff at offset 0") as caught:
        read_nbest(path, format, per_sentence=1)
    assert caught.value.remedy
    pools, skipped = read_nbest(path, format, per_sentence=1, skip_bad=True)
    assert pools.hypotheses == 1
    assert [skip.reason for skip in skipped] == ["invalid UTF-8"]


@pytest.mark.parametrize("format", [*GOOD, None])
def test_a_file_without_hypotheses(tmp_path: Path, format: str | None) -> None:
    path = tmp_path / "list"
    for text in ("", "\n\n"):
        path.write_text(text)
        with pytest.raises(InputError) as caught:
            read_nbest(path, format, per_sentence=1)
        assert caught.value.file == str(path)
        assert caught.value.remedy


@pytest.mark.parametrize("format", GOOD)
def test_a_truncated_archive_is_never_skipped(tmp_path: Path, format: str) -> None:
    path = tmp_path / "list.gz"
    path.write_bytes(gzip.compress((GOOD[format] + "\n").encode())[:-9])
    for skip_bad in (False, True):
        with pytest.raises(InputError, match="truncated") as caught:
            read_nbest(path, format, per_sentence=1, skip_bad=skip_bad)
        assert caught.value.file == str(path)
        assert caught.value.line in (1, 2)
        assert caught.value.remedy


@pytest.mark.parametrize("format", [*GOOD, "espnet", None])
def test_a_directory_or_a_missing_file(tmp_path: Path, format: str | None) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError) as caught:
            read_nbest(path, format, per_sentence=1)
        assert caught.value.file is not None
        assert caught.value.file.startswith(str(path))
        assert caught.value.remedy


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(tmp_path: Path) -> None:
    path = write(tmp_path / "list", [GOOD["moses"]])
    path.chmod(0)
    with pytest.raises(InputError, match="permission denied"):
        read_nbest(path)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("format", ["moses", "cdec", "jsonl"])
def test_a_full_disk(format: str) -> None:
    pools = read_nbest(GOLDEN / "moses.nbest").pools
    with pytest.raises(InputError, match=r"/dev/full: no space left to write it") as caught:
        write_nbest(pools, "/dev/full", format)
    assert caught.value.remedy


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """A limit on the size of files stands in for a disk that fills up half-way."""
    script = f"""
import resource, signal, sys
from tunesmith.errors import InputError
from tunesmith.formats import read_nbest, write_nbest
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
pools = read_nbest({str(GOLDEN / "moses.nbest")!r}).pools
resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))
for format in ("moses", "jsonl", "kaldi"):
    try:
        write_nbest(pools, {str(tmp_path / "out")!r}, format, lossy=True)
    except InputError as error:
        assert "no space left" in error.message and error.remedy, error
        print(error.file)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    target = str(tmp_path / "out")
    moses, jsonl, kaldi = done.stdout.splitlines()
    assert (moses, jsonl) == (target, target)
    assert kaldi.startswith(f"{target}/")
    assert list(tmp_path.iterdir()) == []


def test_ids_out_of_order(tmp_path: Path) -> None:
    path = write(tmp_path / "list", ["1 ||| a ||| ||| 1", "0 ||| a ||| ||| 1"])
    with pytest.raises(InputError, match=r"list:2: id 0 comes after"):
        read_nbest(path)
    path = write(tmp_path / "list", ["H-1\t1\ta", "H-0\t1\ta", "H-1\t1\tb"])
    with pytest.raises(InputError, match="already left"):
        read_nbest(path)
    path = write(tmp_path / "list", ["H-0\t1\ta", "H-99999999\t1\ta"])
    with pytest.raises(InputError, match="past the last"):
        read_nbest(path)


def test_lists_with_and_without_keys_do_not_mix(tmp_path: Path) -> None:
    path = write(tmp_path / "list", [GOOD["jsonl"], '{"key": "k", "hypotheses": []}'])
    with pytest.raises(InputError, match="some have none"):
        read_nbest(path)


def test_a_skipped_line_of_jsonl_keeps_the_others_in_place(tmp_path: Path) -> None:
    path = write(tmp_path / "list", ["{", GOOD["jsonl"], "[]"])
    pools, _ = read_nbest(path, "jsonl", skip_bad=True)
    assert pools.starts.tolist() == [0, 0, 1, 1]


def test_a_skipped_line_of_jsonl_with_keys_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "list.jsonl", ["{", listed("a"), "[]", listed("b")])
    assert read_nbest(path, skip_bad=True).pools.keys == ["a", "b"]
    read = read_references([path], keys=["a", "b"], skip_bad=True)
    assert (len(read.texts), read.blank) == (2, [0, 1])


def test_two_lists_of_one_key(tmp_path: Path) -> None:
    one, two = listed("a"), listed("b")
    beam = '{"audio_filepath": "a", "beams": [["a", 1]]}'
    for format, lines in [("jsonl", [one, one]), ("jsonl", [one, two, one]), ("nemo", [beam] * 2)]:
        path = write(tmp_path / "list", lines)
        message = rf'list:{len(lines)}: the key "a" is given twice'
        with pytest.raises(InputError, match=message) as caught:
            read_nbest(path, format)
        assert caught.value.remedy
        pools, skipped = read_nbest(path, format, skip_bad=True)
        assert pools.hypotheses == len(lines) - 1
        assert [(skip.reason, skip.count) for skip in skipped] == [("ids out of order", 1)]


def test_a_score_that_some_hypotheses_lack_is_not_zero(tmp_path: Path) -> None:
    kaldi, espnet = (
        shutil.copytree(GOLDEN / name, tmp_path / name) for name in ("kaldi", "espnet")
    )
    write(kaldi / "acwt", ["spk1-utt1-1 1", "spk1-utt2-1 2"])
    (espnet / "output.2" / "1best_recog" / "score").unlink()
    write(espnet / "output.1" / "2best_recog" / "lm_score", ["utt-a -1"])
    for path, told, left in [
        (kaldi, r'acwt: no value for "spk1-utt1-2"', 2),
        (espnet, r'output.1/1best_recog/lm_score: no score for "utt-a"', 1),
    ]:
        with pytest.raises(InputError, match=told) as caught:
            read_nbest(path)
        assert caught.value.remedy
        assert read_nbest(path, skip_bad=True).pools.hypotheses == left
    # A total is not weighed, and lists may do without.
    write(kaldi / "acwt", ["spk1-utt1-1 1", "spk1-utt1-2 0", "spk1-utt2-1 2"])
    write(kaldi / "total", ["spk1-utt1-1 1"])
    assert read_nbest(kaldi).pools.hypotheses == 3


def test_espnet_writes_no_lists_that_it_would_not_read(tmp_path: Path) -> None:
    line = '{"key": "a", "hypotheses": [{"text": "a", "score": 1}, {"text": "b"}]}'
    pools = read_nbest(write(tmp_path / "list", [line])).pools
    with pytest.raises(InputError, match="some hypotheses have a score and some have none"):
        write_nbest(pools, tmp_path / "espnet", "espnet")


@pytest.mark.parametrize("space", ["\t", "  ", " \t"])
def test_any_white_space_divides_key_and_text(tmp_path: Path, space: str) -> None:
    for name in ("kaldi", "espnet"):
        whole = shutil.copytree(GOLDEN / name, tmp_path / name)
        for path in (path for path in whole.rglob("*") if path.is_file()):
            lines = path.read_text().splitlines()
            write(path, [line.replace(" ", space, 1) for line in lines])
        old, new = (read_nbest(folder).pools for folder in (GOLDEN / name, whole))
        assert new.keys == old.keys
        everything = range(old.hypotheses)
        assert [new.features(at) for at in everything] == [old.features(at) for at in everything]
        assert new.texts(new.starts[:-1]) == old.texts(old.starts[:-1])
    references = write(tmp_path / "ref", [f"b{space}B  B", f"a{space}A"])
    assert read_references([references], keys=["a", "b"]).texts == [["A"], ["B  B"]]


def test_what_is_read_only_once_has_its_format_named() -> None:
    with pytest.raises(InputError, match="the format of the standard input cannot be detected"):
        detect("-")
    ours, theirs = os.pipe()
    os.write(theirs, GOOD["jsonl"].encode())
    os.close(theirs)
    try:
        with pytest.raises(InputError, match=r"the format of a pipe cannot be detected") as caught:
            read_nbest(f"/dev/fd/{ours}")
        assert caught.value.remedy
        assert read_nbest(f"/dev/fd/{ours}", "jsonl").pools.hypotheses == 1
    finally:
        os.close(ours)


def test_files_of_numbers_of_the_wrong_length(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    for format in ("moses", "jsonl", "flat"):
        path = write(tmp_path / "list", [GOOD[format]])
        for text, message in [("", "ends after 0 lines"), ("1\n2\n", "goes on after 1 lines")]:
            numbers.write_text(text)
            wrong: tuple[dict[str, Any], ...] = (
                {"features": {"n": numbers}},
                {"columns": {"n": numbers}},
            )
            for files in wrong:
                with pytest.raises(InputError, match=message) as caught:
                    read_nbest(path, format, per_sentence=1, **files)
                assert caught.value.file == str(numbers)
                assert caught.value.remedy


def test_blank_hypotheses_are_kept_on_request(tmp_path: Path) -> None:
    for format, line in [("moses", "0 |||  ||| A= 1 ||| 1"), ("flat", ""), ("kaldi", "u-1")]:
        path = write(tmp_path / "list", [line])
        pools, skipped = read_nbest(path, format, per_sentence=1, keep_blank=True)
        assert (pools.hypotheses, skipped) == (1, [])


def test_unequal_numbers_of_lists_and_references(tmp_path: Path) -> None:
    path = write(tmp_path / "ref", ["a", "b"])
    with pytest.raises(InputError, match=r"ref:3: 3 lists but 2 references") as caught:
        read_references([path], sentences=3)
    assert caught.value.remedy
    other = write(tmp_path / "other", ["a"])
    with pytest.raises(InputError, match=r"other:2: 2 lists but 1 references"):
        read_references([path, other])


def test_blank_references(tmp_path: Path) -> None:
    one = write(tmp_path / "one", ["a", " ", ""])
    two = write(tmp_path / "two", ["A", "B", ""])
    with pytest.raises(InputError, match=r"one:2: the reference is blank") as caught:
        read_references([one, two])
    assert caught.value.remedy
    read = read_references([one, two], skip_bad=True)
    assert read.texts == [["a", "A"], ["B"], [""]]
    assert read.blank == [2]
    assert [(skip.reason, skip.count) for skip in read.skipped] == [("blank reference", 3)]
    assert read_references([one, two], keep_blank=True).texts == [["a", "A"], [" ", "B"], ["", ""]]


def test_references_by_key(tmp_path: Path) -> None:
    keys = ["spk1-utt1", "spk1-utt2"]
    path = GOLDEN / "kaldi-references.txt"
    read = read_references([path], keys=keys)
    assert read.texts == [["THE CAT SAT ON"], ["HELLO"]]
    assert [skip.reason for skip in read.skipped] == ["reference without a list"]
    with pytest.raises(InputError, match="3 lists but 2 of their keys have a reference"):
        read_references([path], keys=[*keys, "spk2-utt1"])
    with pytest.raises(InputError, match="2 lists but 3 references"):
        read_references([path], keys=keys, keyed=False)
    twice = write(tmp_path / "twice", ["spk1-utt1 a", "spk1-utt1 b"])
    with pytest.raises(InputError, match="twice:2: the key"):
        read_references([twice], keys=keys)
    plain = write(tmp_path / "plain", ["A", "B"])
    assert read_references([plain], keys=keys).texts == [["A"], ["B"]]


def test_references_of_jsonl_lists(tmp_path: Path) -> None:
    read = read_references([GOLDEN / "lists.jsonl"], skip_bad=True)
    assert read.texts == [["a group", "one group"], ["empty"], [""]]
    assert read.blank == [2]
    bad = write(tmp_path / "bad.jsonl", ['{"references": "a"}'])
    with pytest.raises(InputError, match=r"bad.jsonl:1: references are not a list"):
        read_references([bad])


def test_references_of_jsonl_lists_by_key(tmp_path: Path) -> None:
    line = '{"key": "%s", "source": "%s", "references": ["%s"]}'
    lines = [line % (key, f"source {key}", key.upper()) for key in "bca"]
    # In a pipe, or unpacked under another name, it is JSONL as well.
    for name in ("refs.jsonl", "refs"):
        path = write(tmp_path / name, lines)
        read = read_references([path], keys=["a", "b"])
        assert read.texts == [["A"], ["B"]]
        assert [skip.reason for skip in read.skipped] == ["reference without a list"]
        with pytest.raises(InputError, match="2 lists but 1 of their keys have a reference"):
            read_references([path], keys=["a", "d"])
        assert read_references([path], sentences=3).texts == [["B"], ["C"], ["A"]]
        texts = read_references([path], keys=["a", "b"], sources=True).texts
        assert texts == [["source a"], ["source b"]]
    write(tmp_path / "refs.jsonl", [lines[0], lines[2], lines[0]])
    with pytest.raises(InputError, match=r'refs.jsonl:3: the key "b" is given twice'):
        read_references([tmp_path / "refs.jsonl"], keys=["a", "b"])
    text = write(tmp_path / "text", ['{"text": 1}', "{}"])
    assert read_references([text]).texts == [['{"text": 1}'], ["{}"]]


def test_references_have_keys_if_half_of_the_lists_are_among_them(tmp_path: Path) -> None:
    path = write(tmp_path / "ref", ["train-1 x", "dev-2 b", "dev-1 a"])
    assert read_references([path], keys=["dev-1", "dev-2"]).texts == [["a"], ["b"]]
    with pytest.raises(InputError, match='the first without one is "dev-3"'):
        read_references([path], keys=["dev-1", "dev-2", "dev-3"])
    plain = write(tmp_path / "plain", ["x", "dev-2 b", "y", "z", "q"])
    keys = [f"dev-{number}" for number in range(5)]
    assert read_references([plain], keys=keys).texts[1] == ["dev-2 b"]


def test_no_references_at_all() -> None:
    with pytest.raises(InputError, match="no references are given"):
        read_references([])


@pytest.mark.parametrize("format", GOOD)
def test_an_endless_line_is_refused_before_it_fills_the_memory(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "list"
    path.write_bytes((GOOD[format] + "\n").encode() + b" " * 3000 + b"\n")
    monkeypatch.setenv("TUNESMITH_LINE_LIMIT", "2000")
    for skip_bad in (False, True):
        with pytest.raises(InputError, match="longer than 2000 bytes") as caught:
            read_nbest(path, format, per_sentence=1, skip_bad=skip_bad)
        assert (caught.value.file, caught.value.line) == (str(path), 2)
        assert "TUNESMITH_LINE_LIMIT" in (caught.value.remedy or "")
    with pytest.raises(InputError, match="list:2: the line is longer"):
        read_references([path])
    monkeypatch.setenv("TUNESMITH_LINE_LIMIT", "1e9")
    with pytest.raises(InputError, match="not a number of bytes"):
        read_nbest(path, format, per_sentence=1)


def test_a_number_of_thousands_of_digits_says_nothing_of_python(tmp_path: Path) -> None:
    path = write(tmp_path / "list", [GOOD["jsonl"].replace(": 1", f": {'1' * 10000}")])
    with pytest.raises(InputError, match=r"list:1: .*thousands of digits") as caught:
        read_nbest(path, "jsonl")
    assert "sys." not in str(caught.value)
