"""What a part of the suite did, in the folder that `TORTURE_RESULTS` names, for docs/torture.md."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import commit, machine

ENDS = {"passed": "passed", "failed": "failed", "error": "failed", "skipped": "skipped"}
Row = dict[str, Any]


def rows_of(stats: Mapping[str, Iterable[pytest.TestReport]]) -> list[Row]:
    """Return a row for each test function: cases, times that a case recorded, seconds, outcome.

    A test calls `record_property("times", n)` for what it did more than once.
    """
    rows: dict[str, Row] = {}
    for kind, reports in stats.items():
        for report in reports:
            if not isinstance(report, pytest.TestReport):
                continue
            function = report.nodeid.split("[")[0].rpartition("::")[2]
            what = function.removeprefix("test_").replace("_", " ")
            row = rows.setdefault(what, {"what": what, "cases": 0, "times": 0, "s": 0.0})
            row["s"] += report.duration
            if (end := ENDS.get(kind)) is None:
                continue
            row[end] = row.get(end, 0) + 1
            row["cases"] += 1
            if end == "passed":
                row["times"] += int(dict(report.user_properties).get("times", 1))  # type: ignore[call-overload]
    return [_told(row) for row in rows.values()]


def _told(row: Row) -> Row:
    ends = {end: row.pop(end) for end in dict.fromkeys(ENDS.values()) if end in row}
    told = ", ".join(end if len(ends) == 1 else f"{count} {end}" for end, count in ends.items())
    return {**row, "s": round(row["s"]), "outcome": told}


def write(part: str, rows: Sequence[Row], notes: Sequence[str] = ()) -> None:
    """Write rows with date, commit and machine; do nothing where no folder is named."""
    named = os.environ.get("TORTURE_RESULTS")
    if not named:
        return
    folder = Path(named)
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "part": part,
        "rows": list(rows),
        "claims": [],
        "notes": list(notes),
        "machine": machine(),
        "date": datetime.now(UTC).date().isoformat(),
        "commit": commit(),
    }
    (folder / f"{part}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
