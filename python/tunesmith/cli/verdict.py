"""Whether tuning helped, for the terminal."""

from __future__ import annotations

from pathlib import Path

from tunesmith.cli.console import changed_of, note, out, table
from tunesmith.learn.untuned import CONSENSUS, START, described, is_alone
from tunesmith.report.wording import headline
from tunesmith.runs import RunDirectory
from tunesmith.tuning import Result

PLACES = {
    "lists": "the tuning lists",
    "text": "the tuning text",
    "folds": "held-out folds",
    "heldout": "held-out sentences",
}
# Maximum number of single features that are shown.
SHOWN_ALONE = 5


def show_untuned(result: Result) -> None:
    """Print the scores of choices without tuning: start, consensus, the best single features."""
    where = PLACES[result.significance["on"]]
    rows = table(f"\nWithout tuning, on {where}", "", "score", header=False)
    scores = result.baselines
    alone = [name for name in scores if is_alone(name)]
    for name in [START, CONSENSUS, *alone[:SHOWN_ALONE]]:
        if name in scores:
            best = "bold" if name == result.significance["against"] else None
            rows.add_row(described(name), f"{scores[name]:.2f}", style=best)
    out.print(rows)
    if len(alone) > SHOWN_ALONE:
        out.print(f"… and {len(alone) - SHOWN_ALONE} more features alone (--json)", style="dim")
    if len(alone) < len(result.weights):
        out.print(
            f"{len(alone)} of {len(result.weights):,} features were tried alone: those that at "
            "least half of the lists have",
            style="dim",
        )


def show_verdict(result: Result) -> None:
    """Print whether tuning beats the choices without tuning, the tests, and the changes."""
    tests = result.significance
    on, against = tests["on"], tests["against"]
    worst = max(tests[test]["p"] for test in ("bootstrap", "randomisation"))
    several = against if len(result.baselines) > 1 else None
    out.print(f"\n{headline(result.verdict, several, on, worst)}.", style="bold")
    compared = {against: tests} if against == START else {against: tests, START: tests["start"]}
    for name, found in compared.items():
        boot, shuffled = found["bootstrap"], found["randomisation"]
        out.print(
            f"against {described(name)}, on {PLACES[on]}: {boot['difference']:+.2f} "
            f"[{boot['ci'][0]:+.2f}, {boot['ci'][1]:+.2f}]\n"
            f"p = {boot['p']:.3g} (paired bootstrap), "
            f"p = {shuffled['p']:.3g} (approximate randomisation)"
        )
    if against != START:
        out.print(
            f"{described(against)} was chosen by its score on the same sentences, which favours it",
            style="dim",
        )
    if tests["chosen_there"]:
        out.print(
            "the epoch was chosen on the held-out sentences, which favours the tuned weights",
            style="dim",
        )
    out.print(f"{changed_of(result.changed)}, on {PLACES[on]}")


def tell_reports(run: Path) -> None:
    """Name the report of a run, or those of a chain of tuners."""
    for each in RunDirectory(run).stages or [run]:
        note(f"{each / 'report.html'} shows the run")
