"""What a person sees: messages on stderr, tables on stdout, progress on a terminal."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.status import Status
from rich.table import Table
from rich.text import Text

from tunesmith.features import Weights
from tunesmith.formats import Skipped
from tunesmith.report.story import PARTS
from tunesmith.runs.plain import plain
from tunesmith.tuning import Listener

# Only a terminal has an edge: a table in a file is as wide as what it holds.
UNBOUNDED = 10_000
# Of the table of weights.
SHOWN_WEIGHTS = 20
# Of a column in the lines that tell of epochs.
NARROWEST = 7


class Out(Console):
    """Standard output, whose reader may leave as that of all other output."""

    def on_broken_pipe(self) -> None:
        """Pass the error on, which rich takes for a failure of ours."""
        raise


# Neither markup nor emoji: names of features and files are printed as they are.
out = Out(
    soft_wrap=True,
    highlight=False,
    markup=False,
    emoji=False,
    width=None if sys.stdout.isatty() else UNBOUNDED,
)
err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def fail(message: str, code: int) -> NoReturn:
    """Print an error and leave."""
    err.print(Text("error: ", style="bold red"), end="")
    err.print(message)
    sys.exit(code)


def note(message: str) -> None:
    """Print a message that is not data."""
    err.print(message)


def warn(message: str) -> None:
    """Print something that deserves a look."""
    err.print(Text("warning: ", style="bold yellow"), end="")
    err.print(message)


def emit(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line of stdout; what is not a number is null."""
    print(json.dumps(plain(value), ensure_ascii=False, allow_nan=False), flush=True)


@contextmanager
def busy(what: str) -> Iterator[Status]:
    """Return a block in which a terminal says what is being done; warnings are told behind it."""
    with warnings.catch_warnings(record=True) as told, err.status(what) as status:
        yield status
    for each in told:
        warn(str(each.message))


def tell_skipped(skipped: list[Skipped]) -> dict[str, int]:
    """Say what reading left out, and return how many lines for which reason."""
    for skip in skipped:
        warn(f"left out: {skip}")
    return {skip.reason: skip.count for skip in skipped}


def table(title: str, *columns: str, header: bool = True) -> Table:
    """Return a table whose first column is text and the others numbers."""
    made = Table(
        title=title or None,
        title_justify="left",
        title_style="bold",
        box=None,
        pad_edge=False,
        show_header=header,
    )
    for number, column in enumerate(columns):
        made.add_column(
            column, justify="left" if number == 0 else "right", no_wrap=number > 0, overflow="fold"
        )
    return made


def show_weights(weights: Weights) -> None:
    """Print the weights that matter most: by how far they move scores within lists, if known."""
    spread, influence = weights.spread, weights.influence
    if not spread:
        rows = table("\nWeights", "name", "weight", header=False)
    else:
        rows = table("\nWeights, what matters most first", "", "weight", "spread", "product")
    for name, value in weights.ranked(SHOWN_WEIGHTS).items():
        rows.add_row(name, f"{value:+.6g}", *effect(name, spread, influence))
    out.print(rows)
    if spread:
        out.print("spread: mean standard deviation of the feature within lists", style="dim")
    if len(weights) > SHOWN_WEIGHTS:
        out.print(f"… and {len(weights) - SHOWN_WEIGHTS:,} more", style="dim")


def changed_of(found: Mapping[str, int]) -> str:
    """Return in words how many outputs changed."""
    changed, better, worse = (found[key] for key in ("changed", "better", "worse"))
    return (
        f"output changed for {changed:,} of {found['sentences']:,} sentences: {better:,} better, "
        f"{worse:,} worse, {changed - better - worse:,} with the same gain"
    )


def effect(name: str, spread: Mapping[str, float], influence: Mapping[str, float]) -> list[str]:
    """Return a feature's spread and its product with the weight; blank where not known."""
    if not spread:
        return []
    known = name in influence
    return [f"{spread[name]:.4g}", f"{influence[name]:.4g}"] if known else ["", ""]


def both(*listeners: Listener | None) -> Listener:
    """Return a listener that tells all of these that are there."""
    present = [listener for listener in listeners if listener is not None]

    def tell(event: dict[str, Any]) -> None:
        for listener in present:
            listener(event)

    return tell


def progress(*columns: ProgressColumn, hidden: bool = False) -> Progress:
    """Return progress on standard error, if that is a terminal; standard output is left alone."""
    return Progress(
        *columns,
        console=err,
        disable=hidden or not err.is_terminal,
        transient=True,
        redirect_stdout=False,
    )


class Watch:
    """Progress of a tuning run, fed by its events: a bar on a terminal, and with a decoder in the
    loop, whose epochs are few and slow, a line for each of them everywhere."""

    def __init__(self, epochs: int | None = None) -> None:
        self._progress = progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[news]}", markup=False),
            TimeElapsedColumn(),
        )
        self._epochs = epochs
        self._jobs: dict[str, Any] = {}
        self._heads: list[str] = []

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """Take note of an event."""
        if event["event"] == "start":
            note(
                f"{event['preset']} for {event['metric']}: {_sizes(event)}, "
                f"{event['features']:,} features\n"
                f"start {event['start']:.2f}"
                + ("" if event["oracle"] is None else f", oracle {event['oracle']:.2f}")
            )
            self._epochs = event.get("epochs", self._epochs)
        kind = "fold" if "fold" in event else "run"
        if kind not in event:
            return
        name = f"{kind} {event[kind] + 1}"
        if name not in self._jobs:
            self._jobs[name] = self._progress.add_task(name, total=self._epochs, news="")
        if event["event"] == "epoch":
            if "decode_seconds" in event:
                self._tell(_facts(event))
            heldout = event.get("heldout")
            also = "" if heldout is None else f" (held-out {heldout:.2f})"
            self._progress.update(
                self._jobs[name], completed=event["epoch"], news=f"{event['score']:.2f}{also}"
            )
        else:
            # A tuner that stopped early is done all the same.
            done = self._progress.tasks[self._jobs[name]].completed
            self._progress.update(self._jobs[name], total=done)

    def _tell(self, facts: dict[str, str]) -> None:
        """Print a line for an epoch, below the heads of its columns where these are new."""
        if not facts.keys() <= set(self._heads):
            self._heads = list(dict.fromkeys([*facts, *self._heads]))
            note(_columns({head: head for head in self._heads}))
        note(_columns({head: facts.get(head, "") for head in self._heads}))


def _columns(texts: dict[str, str]) -> str:
    return " ".join(text.rjust(max(len(head), NARROWEST)) for head, text in texts.items())


def _facts(event: dict[str, Any]) -> dict[str, str]:
    """Return what is known of an epoch as text, by the heads of columns."""
    first, *others = event.get("heldout_all") or [event.get("heldout")]
    told = {
        "epoch": (event["epoch"], "d"),
        "score": (event["score"], ".2f"),
        "projected": (event.get("projected"), ".2f"),
        "held-out": (first, ".2f"),
        **{f"held-out {place}": (score, ".2f") for place, score in enumerate(others, 2)},
        **{gain: (event.get(gain), ".4f") for gain in ("model", "oracle", "prediction")},
        "spread": ((event.get("spread") or {}).get("mean"), ".3f"),
        "non-zero": (event["nonzero"], ",d"),
        "decode": (event["decode_seconds"], ".1f"),
        "optimise": (event["optimise_seconds"], ".1f"),
    }
    units = {"decode": " s", "optimise": " s"}
    return {
        head: f"{value:{form}}{units.get(head, '')}"
        for head, (value, form) in told.items()
        if value is not None
    }


def _sizes(event: dict[str, Any]) -> str:
    """Return how many lists or forests a run begins with, and how much they hold."""
    space = event.get("space", "list")
    counted = f"{event['sentences']:,} {space}s"
    return f"{counted}, {event['hypotheses']:,} {PARTS[space]}" if space in PARTS else counted
