"""Text files: lines in, whole files out."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from tunesmith._core import AtomicWriter, Lines
from tunesmith.errors import InputError


def test_lines_know_their_number(tmp_path: Path) -> None:
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"eins\r\n") + gzip.compress("zweiß\n\ndrei".encode()))
    lines = Lines(path)
    assert [(line, lines.line) for line in lines] == [
        ("eins", 1),
        ("zweiß", 2),
        ("", 3),
        ("drei", 4),
    ]
    assert lines.file == str(path)


def test_a_bad_line_can_be_stepped_over(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a\nb\xfe\nc\n")
    lines = Lines(path)
    assert next(lines) == "a"
    with pytest.raises(InputError, match=r"text:2: invalid UTF-8: byte 0xfe at offset 1"):
        next(lines)
    assert list(lines) == ["c"]


def test_a_file_appears_when_the_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "text.zst"
    with AtomicWriter(path) as out:
        out.write("one\n")
        assert not path.exists()
    assert list(Lines(path)) == ["one"]
    with pytest.raises(ValueError, match="closed"):
        out.write("more")


def test_a_failed_block_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), AtomicWriter(path) as out:
        out.write("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["text"]


def test_discard_and_commit(tmp_path: Path) -> None:
    path = tmp_path / "text"
    out = AtomicWriter(path)
    out.write("x")
    out.discard()
    assert not list(tmp_path.iterdir())
    out = AtomicWriter(path)
    out.commit()
    assert path.read_text() == ""
    with pytest.raises(ValueError, match="closed"):
        out.commit()


def test_errors_are_values_with_their_parts(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        Lines(tmp_path)
    assert isinstance(caught.value, ValueError)
    assert caught.value.message == "is a directory"
    assert (caught.value.file, caught.value.line) == (str(tmp_path), None)
    assert str(caught.value) == f"{tmp_path}: is a directory (name a file inside it)"
    assert str(InputError("wrong")) == "wrong"


def test_lines_from_the_standard_input(tmp_path: Path) -> None:
    import subprocess
    import sys

    script = "from tunesmith._core import Lines; print(list(Lines('-')))"
    done = subprocess.run(
        [sys.executable, "-c", script], input=gzip.compress(b"a\nb\n"), capture_output=True
    )
    assert done.stdout == b"['a', 'b']\n"
