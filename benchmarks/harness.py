"""Measure, compare with a target, tell: times, peak memory, Markdown and JSON."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar

T = TypeVar("T")
P = TypeVar("P")
Cell = str | float | int | None


class Skip(Exception):  # noqa: N818 - not an error
    """Why a benchmark cannot run here."""


class RivalFailed(Exception):  # noqa: N818 - the message says whose error it is
    """A program that was given for comparison ended with an error, or printed something else."""


@dataclass(frozen=True)
class Time:
    """CPU seconds of all threads of this process, and seconds on the clock."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Claim:
    """A promise and what became of it; `measured` and `target` are in the same unit."""

    text: str
    measured: float
    target: float
    sense: Literal["at most", "at least"]
    unit: str = ""

    @property
    def kept(self) -> bool:
        """Whether the measured figure is on the right side of the target."""
        if self.sense == "at most":
            return self.measured <= self.target
        return self.measured >= self.target


@dataclass
class Outcome:
    """One table, the claims it supports, and what a reader must know about it."""

    title: str
    rows: list[dict[str, Cell]] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def timed(work: Callable[[], T]) -> tuple[T, Time]:
    """Return what the work returns, and the time it took."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = work()
    return value, Time(time.process_time() - cpu, time.perf_counter() - wall)


def best_of(count: int, work: Callable[[], T]) -> tuple[T, Time]:
    """Return the last value, and the least CPU and wall time of several runs.

    The least is the figure that other processes on the machine disturb least.
    """
    value, least = timed(work)
    for _ in range(count - 1):
        value, again = timed(work)
        least = _least([least, again])
    return value, least


def side_by_side(
    count: int, parts: Iterable[P], first: Callable[[P], object], second: Callable[[P], object]
) -> tuple[Time, Time]:
    """Do two pieces of work on each part in turn, several times; return the times of each.

    The time of a part is the least of its runs, as in `best_of`. Where other processes come and
    go, small parts have a quiet moment each, and what is done in turn is disturbed alike.
    """
    times = []
    for part in parts:
        runs = [
            (timed(partial(first, part))[1], timed(partial(second, part))[1]) for _ in range(count)
        ]
        times.append([_least(work) for work in zip(*runs, strict=True)])
    one, two = (
        Time(sum(time.cpu for time in work), sum(time.wall for time in work))
        for work in zip(*times, strict=True)
    )
    return one, two


def in_turn(count: int, *works: Callable[[], float]) -> list[list[float]]:
    """Do some pieces of work in turn, several times; return the CPU seconds that each run gave."""
    rounds = [[work() for work in works] for _ in range(count)]
    return [list(runs) for runs in zip(*rounds, strict=True)]


def less(whole: Sequence[float], part: Sequence[float]) -> list[float]:
    """Return the times of some runs without a part that was measured in runs of its own.

    The least time of the part is taken from all: where it is most of the whole, differences run by
    run would be noise. Raises `RivalFailed` where a run took no longer than the part.
    """
    rest = [time - min(part) for time in whole]
    if min(rest) <= 0.0:
        raise RivalFailed(
            f"loading took {min(part):.2f} CPU s and all of it {min(whole):.2f}: "
            "the machine is too busy, or the program did nothing"
        )
    return rest


def several(values: Iterable[float], digits: int = 2) -> str:
    """Return the figures of several runs as one cell."""
    return ", ".join(f"{value:,.{digits}f}" for value in values)


def _least(times: Sequence[Time]) -> Time:
    return Time(min(time.cpu for time in times), min(time.wall for time in times))


def peak_bytes() -> int:
    """Return the peak resident memory of this process, or zero where it cannot be told.

    `getrusage` would also count what the parent held when it started us, so Linux's own mark of
    this program is read where there is one.
    """
    return _status("VmHWM") or _rusage_peak()


def resident_bytes() -> int:
    """Return the resident memory of this process, or zero where it cannot be told."""
    return _status("VmRSS")


def _status(key: str) -> int:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:")), 0)


def _rusage_peak() -> int:
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def machine() -> dict[str, Any]:
    """Return what a reader needs to judge absolute figures."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load": load,
    }


def say(message: str) -> None:
    """Tell how far it is."""
    print(message, file=sys.stderr, flush=True)


def show(value: Cell) -> str:
    """Return a cell as text: three significant digits below a hundred, two decimals at least."""
    if value is None:
        return ""
    if isinstance(value, float):
        if value != 0 and abs(value) < 0.095:
            return f"{value:.2g}"
        return f"{value:.2f}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else value


def table(rows: Sequence[dict[str, Cell]]) -> str:
    """Return a Markdown table; numbers are aligned to the right."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    numeric = [all(_numeric(row.get(name)) for row in rows) for name in names]
    lines = [_line(names), _line("---:" if number else "---" for number in numeric)]
    lines += [_line(show(row.get(name)) for name in names) for row in rows]
    return "\n".join(lines)


def _numeric(value: Cell) -> bool:
    return not isinstance(value, str) or re.fullmatch(r"([+-]?[\d,]*\.?\d+)?", value) is not None


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def markdown(outcome: Outcome) -> str:
    """Return an outcome as a section of Markdown."""
    parts = [f"### {outcome.title}"]
    if outcome.rows:
        parts.append(table(outcome.rows))
    parts += [f"- {note}" for note in outcome.notes]
    if outcome.claims:
        parts.append(claims_table([_told(claim) for claim in outcome.claims]))
    return "\n\n".join(parts) + "\n"


def _told(claim: Claim) -> dict[str, Any]:
    return asdict(claim) | {"kept": claim.kept}


def claims_table(claims: Sequence[Mapping[str, Any]]) -> str:
    """Return claims, as `save` writes them, as a Markdown table."""
    return table([_claim_row(claim) for claim in claims])


def _claim_row(claim: Mapping[str, Any]) -> dict[str, Cell]:
    unit = f" {claim['unit']}" if claim["unit"] else ""
    return {
        "claim": claim["text"],
        "target": f"{claim['sense']} {show(claim['target'])}{unit}",
        "measured": f"{show(claim['measured'])}{unit}",
        "kept": "yes" if claim["kept"] else "NO",
    }


def commit() -> str:
    """Return the commit of the source, marked where files differ from it, or nothing."""
    asked = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    here = Path(__file__).resolve().parent
    try:
        told = subprocess.run(asked, cwd=here, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return told.stdout.strip()


def save(folder: Path, name: str, outcome: Outcome, quick: bool) -> Path:
    """Write an outcome as JSON; return where it lies."""
    folder.mkdir(parents=True, exist_ok=True)
    content = asdict(outcome) | {
        "claims": [_told(claim) for claim in outcome.claims],
        "quick": quick,
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
    }
    path = folder / f"{name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path
