"""Running commands: in this process where that is enough, in one of their own where it is not."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tunesmith.cli import app

COMMAND = (sys.executable, "-c", "from tunesmith.__main__ import main; main()")


@dataclass(frozen=True)
class Ran:
    """What a command wrote and how it ended."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """The one JSON object in the last line; anything that is not strict JSON is an error."""

        def refuse(text: str) -> None:
            raise AssertionError(f"{text} is no JSON")

        found = json.loads(self.out.splitlines()[-1], parse_constant=refuse)
        assert isinstance(found, dict)
        return found


def tunesmith(*words: object) -> Ran:
    """Run a command in this process; an error that is not told as a message fails the test."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            app([str(word) for word in words], prog_name="tunesmith")
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
    return Ran(code, out.getvalue(), err.getvalue())


def process(*words: object, **options: Any) -> Ran:
    """Run a command in a process of its own."""
    ended = subprocess.run(
        [*COMMAND, *map(str, words)],
        stdout=options.pop("stdout", subprocess.PIPE),
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        **options,
    )
    return Ran(ended.returncode, ended.stdout or "", ended.stderr)


def listing(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder with its content; folders end in a slash."""
    return {
        str(path.relative_to(folder)) + ("/" if path.is_dir() else ""): b""
        if path.is_dir()
        else path.read_bytes()
        for path in folder.rglob("*")
    }


def refused(folder: Path, *words: object, code: int = 2) -> Ran:
    """Run a command that must be refused: nothing on stdout, nothing new in the folder."""
    before = listing(folder)
    ran = tunesmith(*words)
    assert ran.code == code, ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert listing(folder) == before
    return ran


@dataclass(frozen=True)
class Sample:
    """Lists to tune on and lists to test on."""

    folder: Path

    @property
    def dev(self) -> tuple[Path, str, Path]:
        """The tuning lists as a command takes them."""
        return self.folder / "dev.nbest.gz", "-r", self.folder / "dev.ref"

    @property
    def test(self) -> tuple[Path, str, Path]:
        """The test lists as a command takes them."""
        return self.folder / "test.nbest.gz", "-r", self.folder / "test.ref"


def on_a_terminal(*words: object, columns: int = 80, **environment: str) -> str:
    """Run a command on a terminal of its own and return what it showed."""
    ours, theirs = pty.openpty()
    setting = {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": "40", **environment}
    base = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    shown = b""
    with subprocess.Popen(
        [*COMMAND, *map(str, words)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=base | setting,
    ):
        os.close(theirs)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                part = os.read(ours, 65536)
            except OSError:
                break
            if not part:
                break
            shown += part
    os.close(ours)
    return shown.decode()
