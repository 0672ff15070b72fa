"""Whether what a paper claims holds here: claims of recipes, judged on results.

Scores are compared as in Clark et al. 2011: over all seeds, by approximate randomisation stratified
by sentence, and by a paired bootstrap of the mean over seeds. The larger p counts: randomisation
takes runs of one system, which are alike, for as many samples. Figures of other kinds (times,
spreads, numbers of features) have one value per seed; they differ if the values of all seeds do not
overlap. The evidence has the p of the exact rank test for that: with two seeds of each it is 0.33,
and only four or more can show p < 0.05. One seed of each shows nothing: chance alone makes them
differ.

Over several tasks, a claim that one is better is confirmed if it is better on more than half of the
tasks, and worse on none. A claim that one is at least as good (`>=`) is confirmed if it is worse on
none. A claim that two are equal (`~`) is confirmed if they differ on none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from math import comb
from statistics import fmean
from typing import Any, Literal

import numpy as np

from tunesmith.errors import InputError
from tunesmith.experiments.recipe import DEVELOPMENT, TESTS, Claim, Recipe
from tunesmith.experiments.running import Found, metric_of
from tunesmith.experiments.tables import SAMPLES, Filled, Several
from tunesmith.metrics.significance import CHANCE, compare_both

Status = Literal["confirmed", "not confirmed", "not testable here"]
Difference = Literal["higher", "unclear", "lower"]
CONFIRMED: Status = "confirmed"
NOT_CONFIRMED: Status = "not confirmed"
UNTESTABLE: Status = "not testable here"


@dataclass(frozen=True)
class Evidence:
    """Two systems on one task."""

    task: str
    left: str
    right: str
    left_value: float
    right_value: float
    difference: float
    """Positive if the left one is better, or its figure higher."""
    outcome: Difference
    p: float | None = None
    p_bootstrap: float | None = None
    ci: tuple[float, float] | None = None
    seeds: int = 1
    scored: bool = True
    """Whether scores are compared, not other figures: `higher` means better then."""

    @property
    def said(self) -> str:
        """The outcome in words: of an error rate, the lower one is the better."""
        words = {"higher": "better", "lower": "worse"} if self.scored else {}
        return words.get(self.outcome, self.outcome)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and what it rests on."""

    claim: str
    text: str
    status: Status
    reason: str
    evidence: list[Evidence] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


def judge(
    recipe: Recipe,
    claim: Claim,
    found: Mapping[tuple[str, str], Sequence[Found]],
    tables: Sequence[Filled],
) -> Judged:
    """Return the verdict on a claim; `found` has the runs of each task and system."""
    tasks = [task for task in recipe.tasks if not claim.tasks or task in claim.tasks]
    evidence = []
    for task in tasks:
        for left in recipe.matching([claim.left], task):
            for right in recipe.matching(claim.right, task):
                both = {(task, left.name), (task, right.name)}
                if left.name != right.name and both <= found.keys():
                    one = _compared(recipe, claim, task, left.name, right.name, found, tables)
                    evidence += [] if one is None else [one]
    return verdict(claim, evidence)


def verdict(claim: Claim, evidence: Sequence[Evidence]) -> Judged:
    """Return the verdict that evidence leads to."""

    def told(status: Status, reason: str) -> Judged:
        return Judged(str(claim), claim.text, status, reason, list(evidence))

    if not evidence:
        return told(
            UNTESTABLE,
            "no two systems could be compared, or the tests are too short to show a difference",
        )
    sign = -1.0 if claim.relation.startswith("<") else 1.0
    names = {1.0: ("higher", "lower"), -1.0: ("lower", "higher")}[sign]
    wins = [each for each in evidence if each.outcome == names[0]]
    losses = [each for each in evidence if each.outcome == names[1]]
    unclear = len(evidence) - len(wins) - len(losses)
    counts = f"{len(wins)} as claimed, {unclear} unclear, {len(losses)} the other way"
    if claim.relation == "~":
        if claim.within is not None:
            far = [each for each in evidence if abs(each.difference) > claim.within]
            reason = f"{len(far)} of {len(evidence)} differ by more than {claim.within:g}"
            return told(NOT_CONFIRMED if far else CONFIRMED, reason)
        differ = len(wins) + len(losses)
        reason = f"{differ} of {len(evidence)} differ significantly"
        return told(NOT_CONFIRMED if differ else CONFIRMED, reason)
    if claim.relation in (">=", "<="):
        near = claim.within or 0.0
        worse = [each for each in losses if sign * each.difference < -near]
        return told(NOT_CONFIRMED if worse else CONFIRMED, counts)
    enough = 2 * len(wins) > len(evidence) and not losses
    return told(CONFIRMED if enough else NOT_CONFIRMED, counts)


def overall(judged: Sequence[Judged]) -> Status:
    """Return the verdict on a recipe: confirmed if no claim that could be tested is not."""
    states = {each.status for each in judged}
    if NOT_CONFIRMED in states:
        return NOT_CONFIRMED
    return CONFIRMED if CONFIRMED in states else UNTESTABLE


def _compared(
    recipe: Recipe,
    claim: Claim,
    task: str,
    left: str,
    right: str,
    found: Mapping[tuple[str, str], Sequence[Found]],
    tables: Sequence[Filled],
) -> Evidence | None:
    metric = claim.quantity or recipe.metrics[0]
    if claim.quantity is not None and metric not in recipe.metrics:
        return _figures(recipe, claim, task, left, right, tables)
    ours, theirs = found[task, left], found[task, right]
    if claim.where == DEVELOPMENT:
        values = [[each.facts["development"] for each in runs] for runs in (ours, theirs)]
        return _separate(task, left, right, *values, higher=metric_of(metric).higher_is_better)
    tests = list(ours[0].tests)
    chosen = tests if claim.where == TESTS else [claim.where]
    rows = [
        [np.concatenate([run.rows(test, metric) for test in chosen]) for run in runs]
        for runs in (ours, theirs)
    ]
    if not could_differ(len(rows[0][0]), len(ours), len(theirs)):
        return None
    return compared_rows(task, left, right, rows[0], rows[1], metric)


def could_differ(sentences: int, left: int, right: int) -> bool:
    """Return whether a test of so many sentences could show a difference between so many runs.

    Of all ways to deal the outputs of a sentence to two systems, the real one and its mirror image
    differ most. If these alone are a twentieth of all, p is never below 0.05.
    """
    ways: int = comb(left + right, left) ** min(sentences, 100)
    return CHANCE * ways > 2.0


def compared_rows(
    task: str, left: str, right: str, ours: Sequence[Any], theirs: Sequence[Any], metric: str
) -> Evidence:
    """Compare the statistics of two systems' test sentences, one matrix for each seed."""
    measure = metric_of(metric)
    found = compare_both(measure, theirs, ours, SAMPLES)
    compared, boot = found.randomisation, found.bootstrap
    gain = compared.difference if measure.higher_is_better else -compared.difference
    return Evidence(
        task,
        left,
        right,
        compared.system.mean,
        compared.baseline.mean,
        gain,
        "unclear" if found.p >= CHANCE or gain == 0.0 else ("higher" if gain > 0 else "lower"),
        compared.p,
        boot.p,
        boot.ci,
        min(len(ours), len(theirs)),
    )


def _figures(
    recipe: Recipe, claim: Claim, task: str, left: str, right: str, tables: Sequence[Filled]
) -> Evidence | None:
    """Compare two systems in a column of a table; None where one of them has no figure."""
    assert claim.quantity is not None
    values = []
    for system in (left, right):
        cells = [
            row[claim.quantity]
            for table in tables
            for row in table.rows
            if row.get("system") == system
            and row.get("task") == task
            and row.get(claim.quantity) is not None
        ]
        if not cells and any(claim.quantity in table.columns for table in tables):
            return None
        if not cells:
            columns = list(dict.fromkeys(name for table in tables for name in table.columns))
            raise InputError(
                f"claims: no table has a column {claim.quantity!r} with {system} on {task}",
                recipe.file,
                remedy=f"there are {', '.join(columns)}",
            )
        cell = cells[0]
        if isinstance(cell, str):
            raise InputError(
                f"claims: the column {claim.quantity!r} has no numbers",
                recipe.file,
                remedy="use another",
            )
        values.append(list(cell.values) if isinstance(cell, Several) else [float(cell or 0.0)])
    return replace(_separate(task, left, right, *values, higher=True), scored=False)


def _separate(
    task: str, left: str, right: str, ours: list[float], theirs: list[float], *, higher: bool
) -> Evidence:
    """Compare figures of several seeds: they differ if they do not overlap; one seed is unclear."""
    sign = 1.0 if higher else -1.0
    mine, others = [sign * each for each in ours], [sign * each for each in theirs]
    outcome: Difference = "unclear"
    if len(mine) == len(others) == 1:
        pass
    elif min(mine) > max(others):
        outcome = "higher"
    elif max(mine) < min(others):
        outcome = "lower"
    return Evidence(
        task,
        left,
        right,
        fmean(ours),
        fmean(theirs),
        fmean(mine) - fmean(others),
        outcome,
        # How often chance alone keeps so many values apart, on whichever side.
        None if outcome == "unclear" else 2.0 / comb(len(mine) + len(others), len(mine)),
        seeds=min(len(ours), len(theirs)),
    )
