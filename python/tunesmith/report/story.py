"""The content of a report, read from the events of a run; any key may be missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tunesmith.errors import InputError
from tunesmith.runs import RunDirectory, load_weights

PARTS = {"list": "hypotheses", "forest": "edges", "bin": "partial translations"}
"""The units in which lists and forests are counted."""


def number(value: object) -> float | None:
    """Return a finite number, or None for anything else."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            converted = float(value)
        except OverflowError:
            return None
        return converted if math.isfinite(converted) else None
    return None


def table(value: object) -> dict[str, Any]:
    """Return a table, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str | None:
    """Return a text that is not blank, or None."""
    return value if isinstance(value, str) and value.strip() else None


def numbers(value: object) -> dict[str, float]:
    """Return the finite numbers of a table by name."""
    return {
        name: found for name, item in table(value).items() if (found := number(item)) is not None
    }


@dataclass(frozen=True)
class Epoch:
    """One pass over the lists; anything may be unknown."""

    epoch: int
    score: float | None
    heldout: float | None
    model: float | None
    oracle: float | None
    prediction: float | None
    spread: float | None
    spread_sd: float | None
    nonzero: float | None
    updates: float | None
    weight_change: float | None
    seconds: float | None
    score_bins: float | None
    """The score over all bins of the search."""
    projected: float | None
    """The score that a batch tuner expects of its weights."""
    oracle_score: float | None
    hypotheses: float | None
    decode_seconds: float | None
    optimise_seconds: float | None
    staleness: float | None
    weights: dict[str, float]
    more_heldout: dict[str, float | None]
    """Scores of held-out texts except the first, as `heldout 2` and so on."""

    def value(self, key: str) -> float | None:
        """Return one of the numbers by its name in the events, or in `more_heldout`."""
        return number(self.more_heldout.get(key, getattr(self, key, None)))

    @classmethod
    def of(cls, event: Mapping[str, Any], position: int) -> Epoch:
        """Return the epoch of an event; an event without a number is the next epoch."""
        spread = table(event.get("spread"))
        given = number(event.get("epoch"))
        read: dict[str, Any] = {each.name: number(event.get(each.name)) for each in fields(cls)}
        read |= {
            "epoch": position if given is None else int(given),
            "spread": number(spread.get("mean")),
            "spread_sd": number(spread.get("sd")),
            "staleness": number(table(event.get("staleness")).get("mean")),
            "weights": numbers(event.get("weights")),
            "more_heldout": _more(event.get("heldout_all")),
        }
        return cls(**read)


@dataclass(frozen=True)
class Trial:
    """One of the runs with different seeds."""

    index: int
    epochs: list[Epoch]
    best_epoch: int | None
    score: float | None

    @property
    def moved(self) -> set[str]:
        """Return the names of weights that changed between epochs.

        A constant weight of -100 would flatten all other lines in the chart.
        """
        recorded = [epoch.weights for epoch in self.epochs if epoch.weights]
        last = recorded[-1] if recorded else {}
        return {
            name
            for name, value in last.items()
            if any(weights.get(name) != value for weights in recorded)
        }


@dataclass(frozen=True)
class Story:
    """The content of a report."""

    config: dict[str, Any]
    start: dict[str, Any]
    end: dict[str, Any] | None
    trials: list[Trial]
    weights: dict[str, float]
    changes: list[dict[str, Any]]
    higher: bool = True
    notes: list[str] = field(default_factory=list)
    spread: dict[str, float] = field(default_factory=dict)
    """The spread of each feature within lists, if known."""
    analyses: list[dict[str, Any]] = field(default_factory=list)
    """What `tunesmith analyse` has added."""

    def ranked(self, weights: Mapping[str, float]) -> list[str]:
        """Return names of weights, most important first: by |weight| × spread, then by size."""
        spread = self.spread
        return sorted(
            weights,
            key=lambda name: (
                -abs(weights[name]) * spread.get(name, 0.0),
                -abs(weights[name]),
                name,
            ),
        )

    @property
    def best(self) -> Trial | None:
        """Return the run with the best score, which charts for one run show."""
        scored = [trial for trial in self.trials if trial.score is not None]
        if not scored:
            return self.trials[0] if self.trials else None
        sign = 1.0 if self.higher else -1.0
        return max(scored, key=lambda trial: sign * (trial.score or 0.0))

    @property
    def features(self) -> float | None:
        """Return the number of features; decoding may have added some since the start."""
        known = number(self.start.get("features"))
        return None if known is None else max(known, float(len(self.weights)))

    @property
    def space(self) -> str:
        """Return the kind of space: a list, a forest, or `sentence` if every step decodes again."""
        return text(self.start.get("space")) or "list"

    @property
    def parts(self) -> str:
        """Return the unit in which lists or forests are counted."""
        return PARTS.get(self.space, "hypotheses")

    @property
    def heldout(self) -> dict[str, str]:
        """Return the keys of held-out scores with their titles."""
        found = {key: None for trial in self.trials for e in trial.epochs for key in e.more_heldout}
        return {key: key.replace("heldout", "held out") for key in ("heldout", *found)}

    def figure(self, key: str) -> float | None:
        """Return a number of the end event, or of the start event while the run goes on."""
        found = number((self.end or {}).get(key))
        return number(self.start.get(key)) if found is None else found

    @property
    def tuned(self) -> float | None:
        """Return the tuned score, or the best so far."""
        tuned = number((self.end or {}).get("tuned"))
        return tuned if tuned is not None or self.best is None else self.best.score

    @property
    def oracle(self) -> float | None:
        """Return the score of the best choices, from all lists so far if lists grow."""
        epochs = [] if self.best is None else self.best.epochs
        grown = [epoch.oracle_score for epoch in epochs if epoch.oracle_score is not None]
        return grown[-1] if grown else self.figure("oracle")

    def total(self, key: str) -> float | None:
        """Return the sum of a number over all epochs, None if no epoch has it."""
        values = [epoch.value(key) for trial in self.trials for epoch in trial.epochs]
        known = [value for value in values if value is not None]
        return sum(known) if known else None

    @property
    def headroom_used(self) -> float | None:
        """Return the share of the distance from start to oracle that tuning reached."""
        start, tuned, oracle = self.figure("start"), self.tuned, self.oracle
        if start is None or tuned is None or oracle is None or oracle == start:
            return None
        return (tuned - start) / (oracle - start)


def read_story(run: RunDirectory) -> Story:
    """Return the content of the report; an unreadable file becomes a note."""
    notes: list[str] = []
    config: dict[str, Any] = {}
    try:
        config = run.config()
    except InputError as error:
        notes.append(str(error))
    events = run.events()
    start: dict[str, Any] = {}
    end: dict[str, Any] | None = None
    epochs: dict[int, dict[int, Epoch]] = {}
    ends: dict[int, dict[str, Any]] = {}
    for event in events:
        kind = event.get("event")
        # Folds only serve the held-out score; their epochs see other sentences.
        if event.get("fold") is not None:
            continue
        index = int(number(event.get("run")) or 0)
        if kind == "start":
            start = event
        elif kind == "epoch":
            so_far = epochs.setdefault(index, {})
            epoch = Epoch.of(event, len(so_far) + 1)
            so_far[epoch.epoch] = epoch
        elif kind == "run_end":
            ends[index] = event
        elif kind == "end":
            end = event
    higher = start.get("metric_higher") is not False
    trials = [
        _trial(index, [found[key] for key in sorted(found)], ends.get(index, {}), higher)
        for index, found in sorted(epochs.items())
    ]
    weights, spread = _final_weights(run, end, trials, notes)
    return Story(
        config=config,
        start=start,
        end=end,
        trials=trials,
        weights=weights,
        spread=spread,
        changes=_changes(run, notes),
        analyses=run.analyses(),
        higher=higher,
        notes=notes,
    )


def _more(scores: object) -> dict[str, float | None]:
    listed = scores if isinstance(scores, list) else []
    return {f"heldout {place}": number(score) for place, score in enumerate(listed[1:], 2)}


def _trial(index: int, epochs: list[Epoch], end: dict[str, Any], higher: bool) -> Trial:
    scored = [(epoch.score, epoch.epoch) for epoch in epochs if epoch.score is not None]
    score, best = (max if higher else min)(scored) if scored else (None, None)
    kept = number(end.get("epoch"))
    told_score = number(end.get("score"))
    return Trial(
        index=index,
        epochs=epochs,
        best_epoch=best if kept is None else int(kept),
        score=score if told_score is None else told_score,
    )


def _final_weights(
    run: RunDirectory, end: dict[str, Any] | None, trials: list[Trial], notes: list[str]
) -> tuple[dict[str, float], dict[str, float]]:
    """Return the weights and the spread of their features."""
    if run.weights_file.exists():
        try:
            weights, meta = load_weights(run.weights_file)
            return weights, numbers(meta.get("spread"))
        except InputError as error:
            notes.append(str(error))
    final = numbers((end or {}).get("weights"))
    if final or not trials or not trials[0].epochs:
        return final, {}
    return trials[0].epochs[-1].weights, {}


def _changes(run: RunDirectory, notes: list[str]) -> list[dict[str, Any]]:
    try:
        return run.changes()
    except InputError as error:
        notes.append(str(error))
        return []
