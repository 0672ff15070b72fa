"""Chains of tuners: each begins with the weights that the one before it found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tunesmith.errors import InputError
from tunesmith.learn.online import Online, with_regime
from tunesmith.learn.task import Tuner
from tunesmith.presets import make_tuner
from tunesmith.sources import Source
from tunesmith.spaces import Spaces
from tunesmith.tuning.journal import Listener
from tunesmith.tuning.result import Result
from tunesmith.weights import Weights


@dataclass(frozen=True)
class Stage:
    """One tuner of a chain."""

    preset: str
    tuner: Tuner
    options: Mapping[str, Any] = field(default_factory=dict)


def stages_of(
    names: str, options: Mapping[str, Any] | None = None, regime: str | None = None
) -> list[Stage]:
    """Return the tuners of `mert,mira`; an option of one of several is `mira.c`.

    A regime is that of the online tuners among them.

    >>> [stage.options for stage in stages_of("mert,mira", {"mira.c": 0.1})]
    [{}, {'c': 0.1}]
    """
    presets = [name.strip() for name in names.split(",")]
    if len(set(presets)) < len(presets) or "" in presets:
        raise InputError(
            f"{names!r} is no chain of tuners", remedy="give different names: mert,mira"
        )
    given: dict[str, dict[str, Any]] = {preset: {} for preset in presets}
    for key, value in (options or {}).items():
        preset, dot, option = key.rpartition(".")
        if len(presets) == 1 and not dot:
            preset = presets[0]
        if preset not in given:
            raise InputError(
                f"{key!r} is an option of no tuner in {names}",
                remedy=f"name the tuner: {presets[-1]}.{option}",
            )
        given[preset][option] = value
    tuners = {preset: make_tuner(preset, given[preset]) for preset in presets}
    if regime is not None and len(presets) > 1:
        online = {name: each for name, each in tuners.items() if isinstance(each, Online)}
        if not online:
            raise InputError(f"no tuner in {names} has a regime", remedy="leave it out")
        tuners |= {name: with_regime(each, regime) for name, each in online.items()}
    else:
        tuners = {name: with_regime(each, regime) for name, each in tuners.items()}
    return [Stage(preset, tuners[preset], given[preset]) for preset in presets]


def tune_in_turn(
    tune: Callable[..., Result],
    stages: Sequence[Stage],
    source: Source | Spaces,
    metric: Any,
    *,
    start: Any,
    folds: int,
    run: str | Path | None,
    resume: bool,
    heldout: Source | Spaces | Sequence[Source | Spaces],
    listen: Listener | None,
    **more: Any,
) -> Result:
    """Return the result of the last tuner that found better weights than it began with.

    All but the last tuner see the features of the model alone, without templates that are only
    turned on for tuning: dense weights first, sparse ones from there. A run has a folder for each
    tuner; before each one `listen` gets an event `stage` with its folder. `Result.stages` tells
    what each found.
    """
    if folds:
        raise InputError(
            "folds of a chain: later tuners would begin with weights that know the fold",
            remedy="give held-out text instead",
        )
    given = [heldout] if isinstance(heldout, Source | Spaces) else list(heldout)
    told: list[dict[str, Any]] = []
    best: Result | None = None
    for number, stage in enumerate(stages, 1):
        last = number == len(stages)
        folder = None if run is None else Path(run) / f"{number}-{stage.preset}"
        # A chain that was stopped in one tuner has no run of the next ones yet.
        begun = folder is None or number == 1 or folder.is_dir()
        if listen is not None:
            listen({"event": "stage", "number": number, "tuner": stage.preset, "folder": folder})
        found = tune(
            source if last else _dense(source),
            stage.preset,
            metric,
            tuner=stage.tuner,
            options=stage.options,
            start=start,
            heldout=given if last else [_dense(each) for each in given],
            run=folder,
            resume=resume and begun,
            listen=listen,
            **more,
        )
        told.append(
            {
                "tuner": stage.preset,
                "start": found.start,
                "tuned": found.tuned,
                "heldout": found.heldout,
                "refused": found.refused,
            }
        )
        if best is None or best.refused is not None or found.refused is None:
            best = found
        if found.refused is None:
            start = Weights({**_named(start), **found.weights})
    assert best is not None, "a chain has at least one tuner"
    return replace(best, stages=told)


def _dense(source: Source | Spaces) -> Source | Spaces:
    return source.dense() if isinstance(source, Source) else source


def _named(start: Any) -> Mapping[str, float]:
    return start if isinstance(start, Mapping) else {}
