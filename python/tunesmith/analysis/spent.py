"""How the time of a run was spent: decoding, optimising."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tunesmith.errors import InputError
from tunesmith.runs import RunDirectory


@dataclass(frozen=True)
class Spent:
    """The seconds of a run's rounds."""

    run: str
    tuner: str
    rounds: int
    decode: float
    optimise: float
    last_optimise: float
    """Of the last round, which has the most hypotheses to learn from."""
    hypotheses: int | None
    """That the last round learnt from."""


def spent(folder: Path) -> Spent:
    """Return how a run spent its time; raise if the folder holds none."""
    if not folder.is_dir():
        raise InputError("no such run", str(folder), remedy="give a folder that --run made")
    tuner, rounds = "", []
    for event in RunDirectory(folder).events():
        if event.get("event") == "start":
            tuner = str(event.get("preset", ""))
        elif event.get("event") == "epoch" and "fold" not in event:
            rounds.append(event)
    if not rounds:
        raise InputError("the run has no rounds yet", str(folder), remedy="wait for the first")

    def seconds(event: dict[str, object], key: str, otherwise: str = "") -> float:
        value = event.get(key, event.get(otherwise, 0.0))
        return float(value) if isinstance(value, int | float) else 0.0

    last = rounds[-1]
    known = last.get("hypotheses")
    return Spent(
        str(folder),
        tuner,
        len(rounds),
        sum(seconds(each, "decode_seconds") for each in rounds),
        sum(seconds(each, "optimise_seconds", "seconds") for each in rounds),
        seconds(last, "optimise_seconds", "seconds"),
        int(known) if isinstance(known, int) else None,
    )
