"""What a person sees: messages on stderr, tables on stdout, progress on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NoReturn, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tunesmith.formats import Skipped

out = Console(soft_wrap=True, highlight=False)
err = Console(stderr=True, soft_wrap=True, highlight=False)


def fail(message: str, code: int) -> NoReturn:
    """Print an error and leave."""
    err.print("[bold red]error:[/] ", end="")
    err.print(message, markup=False)
    sys.exit(code)


def note(message: str) -> None:
    """Print a message that is not data."""
    err.print(message, markup=False)


def warn(message: str) -> None:
    """Print something that deserves a look."""
    err.print("[bold yellow]warning:[/] ", end="")
    err.print(message, markup=False)


def emit(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line of stdout."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


def tell_skipped(skipped: list[Skipped]) -> None:
    """Say what reading left out."""
    for skip in skipped:
        warn(f"left out: {skip}")


def table(title: str, *columns: str) -> Table:
    """Return a table whose first column is text and the others numbers."""
    made = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        made.add_column(column, justify="left" if number == 0 else "right", no_wrap=number > 0)
    return made


class Watch:
    """Progress of a tuning run, fed by its events; silent where stderr is no terminal."""

    def __init__(self, epochs: int | None = None) -> None:
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[news]}"),
            TimeElapsedColumn(),
            console=err,
            disable=not err.is_terminal,
            transient=True,
        )
        self._epochs = epochs
        self._jobs: dict[str, Any] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """Take note of an event."""
        if event["event"] == "start":
            note(
                f"{event['preset']} for {event['metric']}: {event['sentences']} lists, "
                f"{event['hypotheses']} hypotheses, {event['features']} features; "
                f"start {event['start']:.2f}, oracle {event['oracle']:.2f}"
            )
        if event["event"] != "epoch":
            return
        kind = "fold" if "fold" in event else "run"
        name = f"{kind} {event[kind] + 1}"
        if name not in self._jobs:
            self._jobs[name] = self._progress.add_task(name, total=self._epochs, news="")
        heldout = event.get("heldout")
        news = f"{event['score']:.2f}" + ("" if heldout is None else f" (held-out {heldout:.2f})")
        self._progress.update(self._jobs[name], completed=event["epoch"], news=news)
