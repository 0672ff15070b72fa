"""Reading a Moses n-best file: bytes per second, and memory for the numbers it holds."""

from __future__ import annotations

import gzip
import shutil
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.data import Setting
from benchmarks.fresh import Fresh, in_fresh_process
from benchmarks.harness import Claim, Outcome, say
from tunesmith.formats import read_nbest

MEGA = 1e6


def read_once(path: str, keep: list[Any]) -> dict[str, int]:
    """Read a file; return what the lists hold."""
    pools = read_nbest(path).pools
    keep.append(pools)
    return {
        "hypotheses": pools.hypotheses,
        "nonzeros": pools.nonzeros,
        "heap": pools.heap_bytes,
    }


def reading(setting: Setting) -> Outcome:
    """Read the eight lists one after the other, as one plain file and gzipped."""
    parts = setting.corpus.lists[: 2 if setting.quick else None]
    outcome = Outcome("Reading a Moses n-best file")
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "nbest"
        _joined(parts, plain)
        packed = Path(folder) / "nbest.gz"
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
            shutil.copyfileobj(source, target)
        size = plain.stat().st_size
        for label, path in (("plain", plain), ("gzip", packed)):
            runs = [
                in_fresh_process("benchmarks.reading:read_once", path=str(path))
                for _ in range(setting.times(5))
            ]
            best = min(runs, key=lambda run: run.cpu)
            say(f"  {label}: {size / best.cpu / MEGA:.0f} MB per CPU s")
            numbers = _numbers(best)
            outcome.rows.append(
                {
                    "file": label,
                    "MB, uncompressed": size / MEGA,
                    "CPU s": best.cpu,
                    "MB per CPU s": size / best.cpu / MEGA,
                    "numbers, MB": numbers / MEGA,
                    "held, MB": best.value["heap"] / MEGA,
                    "growth, MB": (best.after - best.before) / MEGA,
                    "peak growth, MB": (best.peak - best.before) / MEGA,
                }
            )
            if label == "plain":
                outcome.claims = [
                    Claim("speed", size / best.cpu / MEGA, 100.0, "at least", "MB/s"),
                    Claim(
                        "peak growth over the numbers held",
                        (best.peak - best.before) / numbers,
                        2.0,
                        "at most",
                        "×",
                    ),
                ]
    outcome.notes = [
        "Numbers: every feature value and every total score of the file, 8 bytes each. Held: what "
        "the lists report (values with their ids, scores, texts). Growth: resident memory of a "
        "fresh process, after reading and at its peak."
    ]
    return outcome


def _numbers(run: Fresh) -> int:
    return 8 * int(run.value["nonzeros"] + run.value["hypotheses"])


def _joined(parts: list[Path], target: Path) -> None:
    """Write lists one after the other, sentence numbers going on where the last list ended."""
    offset = 0
    with target.open("wb") as out:
        for part in parts:
            last = offset
            with gzip.open(part, "rb") as lines:
                for line in lines:
                    number, bar, rest = line.partition(b" ||| ")
                    last = offset + int(number)
                    out.write(b"%d%b%b" % (last, bar, rest))
            offset = last + 1
