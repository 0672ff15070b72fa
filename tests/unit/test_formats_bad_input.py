"""Whatever is wrong with a list: an error with file, line and remedy, or a counted skip."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tunesmith.errors import InputError
from tunesmith.formats import read_nbest, read_references, write_nbest

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"

GOOD = {
    "moses": "0 ||| a ||| A= 1 ||| 1",
    "cdec": "0 ||| a ||| A=1 ||| 1",
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
    ("jsonl", '{"hypotheses": [{"text": "\\ud800"}]}', "half a character"),
    ("jsonl", "[" * 100_000, "not JSON"),
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


def test_files_of_numbers_of_the_wrong_length(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    for format in ("moses", "jsonl", "flat"):
        path = write(tmp_path / "list", [GOOD[format]])
        for text, message in [("", "ends after 0 lines"), ("1\n2\n", "goes on after 1 lines")]:
            numbers.write_text(text)
            for files in ({"features": {"n": numbers}}, {"columns": {"n": numbers}}):
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


def test_no_references_at_all() -> None:
    with pytest.raises(InputError, match="no references are given"):
        read_references([])
