"""The report of a run in progress: rewritten after its epochs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self

from tunesmith.report.page import write_report

REFRESH = 3.0
"""Seconds after which the page of a run in progress reloads itself."""
_PAUSE = 1.0
# A page with many epochs takes long to write and must not slow down the run.
_SHARE = 0.05


class Follow:
    """A listener that keeps `report.html` of a run directory up to date; with None it does nothing.

    ```
    with Follow("run") as follow:
        tune(pools, "rm", run="run", listen=follow)
    ```

    At the end of the block the page is written once more, without reloading, whether the run has
    ended or was stopped.
    """

    def __init__(self, run: Path | str | None) -> None:
        self._run = run
        self._begun = False
        self._due = 0.0

    def __call__(self, event: dict[str, Any]) -> None:
        """Rewrite the page after an event, which the run directory already has."""
        if event["event"] == "stage":
            # The next tuner of a chain has a folder of its own.
            self.__exit__()
            self._run, self._begun, self._due = event["folder"], False, 0.0
            return
        self._begun = True
        began = time.monotonic()
        if self._run is None or event["event"] not in ("start", "epoch") or began < self._due:
            return
        write_report(self._run, live=REFRESH)
        now = time.monotonic()
        self._due = now + max(_PAUSE, (now - began) / _SHARE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # If no event came, the directory may belong to another run.
        if self._run is not None and self._begun:
            write_report(self._run)
