"""Programs of others, which run in turn with ours where the environment names them.

`MOSES` names Moses' decoder, `MOSES_MERT` the folder of its `mert`, `kbmira` and `extractor`,
`CDEC` the decoder of cdec. Without them benchmarks measure ours alone and claim nothing about
others: times that were taken on another machine, or on another day, say nothing about this one.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import RivalFailed

TUNERS = ("mert", "kbmira", "extractor")


@dataclass(frozen=True)
class Rivals:
    """The programs that there are; `moses_mert` is a folder."""

    moses: Path | None = None
    moses_mert: Path | None = None
    cdec: Path | None = None

    @classmethod
    def named(cls, environment: Mapping[str, str] | None = None) -> Rivals:
        """Return the programs that an environment names; raise where one is not there."""
        given = os.environ if environment is None else environment
        tools = given.get("MOSES_MERT")
        if tools and Path(tools).is_file():
            tools = str(Path(tools).parent)
        for name in TUNERS if tools else ():
            _executable("MOSES_MERT", f"{tools}/{name}")
        return cls(
            _executable("MOSES", given.get("MOSES")),
            Path(tools).resolve() if tools else None,
            _executable("CDEC", given.get("CDEC")),
        )


def _executable(variable: str, name: str | None) -> Path | None:
    if not name:
        return None
    found = shutil.which(name)
    if found is None:
        raise ValueError(f"{variable}: {name} is no program that can be run; give its path")
    return Path(found).resolve()


@dataclass(frozen=True)
class Ran:
    """What a program took and printed."""

    cpu: float
    peak: int
    out: str
    errors: str


def run(program: Path, arguments: Sequence[str], folder: Path, stdin: str = "") -> Ran:
    """Run a program in a folder to its end; return the CPU seconds and peak bytes of its process.

    Raises `RivalFailed` with the last line that it printed where it ends with an error.
    """
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as given,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as out,
        tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors,
    ):
        given.write(stdin)
        given.seek(0)
        words = [str(program), *arguments]
        process = subprocess.Popen(words, cwd=folder, stdin=given, stdout=out, stderr=errors)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        errors.seek(0)
        printed, said = out.read(), errors.read()
    if process.returncode:
        last = (said.strip() or printed.strip() or "it printed nothing").splitlines()[-1]
        raise RivalFailed(f"{program} ended with {process.returncode}: {last}")
    peak = used.ru_maxrss if sys.platform == "darwin" else used.ru_maxrss * 1024
    return Ran(used.ru_utime + used.ru_stime, peak, printed, said)


def totals(nbest: str, sentences: int) -> list[float]:
    """Return the score of each sentence's first entry in a list; raise where some have none."""
    found: dict[int, float] = {}
    for line in nbest.splitlines():
        fields = line.split(" ||| ")
        found.setdefault(int(fields[0]), float(fields[3].split()[0]))
    if sorted(found) != list(range(sentences)):
        raise RivalFailed(f"{len(found)} of {sentences} sentences have a list")
    return [found[number] for number in range(sentences)]


def filtered(table: Path, sources: set[str], out: Path) -> None:
    """Write the lines of a gzipped Moses table whose source phrase is one of some."""
    with gzip.open(table, "rt", encoding="utf-8") as lines, out.open("w", encoding="utf-8") as kept:
        kept.writelines(line for line in lines if line.split(" ||| ", 1)[0] in sources)


def phrases(lines: Sequence[str], longest: int = 7) -> set[str]:
    """Return the phrases of some sentences."""
    split = [line.split() for line in lines]
    return {
        " ".join(words[start : start + size])
        for words in split
        for size in range(1, longest + 1)
        for start in range(len(words) - size + 1)
    }
