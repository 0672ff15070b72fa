"""Output for people: messages on stderr, tables on stdout, progress on a terminal."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, Self

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

from tunesmith.files.plain import plain
from tunesmith.formats import Skipped
from tunesmith.weights import Weights

if TYPE_CHECKING:
    from tunesmith.tuning.journal import Listener

# Only a terminal limits the width: a table in a file is as wide as its content.
UNBOUNDED = 10_000
# Maximum number of weights in the table.
TABLE_WEIGHTS = 20
# Minimum width of a column in the lines about epochs.
NARROWEST = 7


class Out(Console):
    """Standard output that raises if its reader closes the pipe, as other output does."""

    def on_broken_pipe(self) -> None:
        """Raise the error again; rich would exit with a failure."""
        raise


# No markup and no emoji: names of features and files are printed unchanged.
out = Out(
    soft_wrap=True,
    highlight=False,
    markup=False,
    emoji=False,
    width=None if sys.stdout.isatty() else UNBOUNDED,
)
err = Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False)


def fail(message: str, code: int) -> NoReturn:
    """Print an error and exit."""
    err.print(Text("error: ", style="bold red"), end="")
    err.print(message)
    sys.exit(code)


def note(message: str) -> None:
    """Print a message that is not data."""
    err.print(message)


def warn(message: str) -> None:
    """Print a warning."""
    err.print(Text("warning: ", style="bold yellow"), end="")
    err.print(message)


def emit(value: Mapping[str, Any]) -> None:
    """Print one JSON object on one line of stdout; NaN becomes null."""
    print(json.dumps(plain(value), ensure_ascii=False, allow_nan=False), flush=True)


@contextmanager
def busy(what: str) -> Iterator[Status]:
    """Show a status on a terminal during the block; print warnings after it."""
    with warnings.catch_warnings(record=True) as caught, err.status(what) as status:
        yield status
    for each in caught:
        warn(str(each.message))


def tell_skipped(skipped: list[Skipped]) -> dict[str, int]:
    """Warn of lines that reading skipped, and return their number by reason."""
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


def sentences(rows: Table, *places: int) -> Table:
    """Return a table, some columns of which are sentences: from the left, over several lines."""
    for place in places:
        rows.columns[place].justify, rows.columns[place].no_wrap = "left", False
    return rows


def show_weights(weights: Weights) -> None:
    """Print the most important weights: by their influence on scores within lists, if known."""
    spread, influence = weights.spread, weights.influence
    if not spread:
        rows = table("\nWeights", "name", "weight", header=False)
    else:
        rows = table("\nWeights, most important first", "", "weight", "spread", "product")
    for name, value in weights.ranked(TABLE_WEIGHTS).items():
        rows.add_row(name, f"{value:+.6g}", *effect(name, spread, influence))
    out.print(rows)
    if spread:
        out.print("spread: mean standard deviation of the feature within lists", style="dim")
    if len(weights) > TABLE_WEIGHTS:
        out.print(f"… and {len(weights) - TABLE_WEIGHTS:,} more", style="dim")


def changed_of(found: Mapping[str, int]) -> str:
    """Return in words how many outputs changed."""
    changed, better, worse = (found[key] for key in ("changed", "better", "worse"))
    return (
        f"output changed for {changed:,} of {found['sentences']:,} sentences: {better:,} better, "
        f"{worse:,} worse, {changed - better - worse:,} with the same gain"
    )


def effect(name: str, spread: Mapping[str, float], influence: Mapping[str, float]) -> list[str]:
    """Return a feature's spread and its product with the weight; blank if unknown."""
    if not spread:
        return []
    known = name in influence
    return [f"{spread[name]:.4g}", f"{influence[name]:.4g}"] if known else ["", ""]


def both(*listeners: Listener | None) -> Listener:
    """Return a listener that calls all of these that are not None."""
    present = [listener for listener in listeners if listener is not None]

    def tell(event: dict[str, Any]) -> None:
        for listener in present:
            listener(event)

    return tell


def progress(*columns: ProgressColumn, hidden: bool = False) -> Progress:
    """Return progress bars on standard error, which show only on a terminal."""
    return Progress(
        *columns,
        console=err,
        disable=hidden or not err.is_terminal,
        transient=True,
        redirect_stdout=False,
    )


def counter(*, hidden: bool = False) -> Progress:
    """Return a bar that counts what a task has done."""
    return progress(
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        hidden=hidden,
    )


class Watch:
    """A listener that shows the progress of a tuning run.

    On a terminal it shows a bar. With a decoder in the loop, whose epochs are few and slow, it
    prints a line for each epoch, also to files.
    """

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
        """Show the progress of an event."""
        if event["event"] == "stage":
            self._jobs, self._heads = {}, []
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
            # A tuner that stopped early is also done.
            done = self._progress.tasks[self._jobs[name]].completed
            self._progress.update(self._jobs[name], total=done)

    def _tell(self, facts: dict[str, str]) -> None:
        """Print a line for an epoch; print the heads of the columns if they changed."""
        if not facts.keys() <= set(self._heads):
            self._heads = list(dict.fromkeys([*facts, *self._heads]))
            note(_columns({head: head for head in self._heads}))
        note(_columns({head: facts.get(head, "") for head in self._heads}))


def _columns(texts: dict[str, str]) -> str:
    return " ".join(text.rjust(max(len(head), NARROWEST)) for head, text in texts.items())


def _facts(event: dict[str, Any]) -> dict[str, str]:
    """Return the numbers of an epoch as text, by column head."""
    first, *others = event.get("heldout_all") or [event.get("heldout")]
    columns = {
        "epoch": (event["epoch"], "d"),
        "score": (event["score"], ".2f"),
        "all bins": (event.get("score_bins"), ".2f"),
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
        for head, (value, form) in columns.items()
        if value is not None
    }


def _sizes(event: dict[str, Any]) -> str:
    """Return the number and size of the lists or forests at the start of a run."""
    space = event.get("space", "list")
    # Bins are many for each sentence.
    counted = f"{event['sentences']:,} {'sentence' if space == 'bin' else space}s"
    # Few commands show progress, and the report is slow to import.
    from tunesmith.report.story import PARTS

    return f"{counted}, {event['hypotheses']:,} {PARTS[space]}" if space in PARTS else counted
