"""What a run keeps on disk to go on from after a kill: checkpoints and decoded files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.errors import InputError
from tunesmith.files.arrays import file_digest, packed, read_arrays, unpacked, write_arrays
from tunesmith.learn.task import State
from tunesmith.runs import RunDirectory
from tunesmith.spaces import Spaces, load_spaces
from tunesmith.tuning.journal import Journal
from tunesmith.tuning.rounds import Decoded
from tunesmith.tuning.standing import Clock, Job, Standing
from tunesmith.weights import Weights

# Suffix of the weights of a decoding.
WEIGHTS = ".weights"


class Keeper:
    """Saves where jobs stand and what they decoded, and gives it back to a resumed run."""

    def __init__(self, journal: Journal, directory: RunDirectory | None, clock: Clock) -> None:
        self._journal, self._directory, self._clock = journal, directory, clock
        self._decoded: dict[str, str] = {}
        self.finished: list[Standing] = []
        """Where the jobs ended that are done."""
        self._state: dict[str, Any] | None = None
        point = journal.point
        if point is not None:
            self._state, self._arrays = dict(point.state), point.arrays
            clock.decode, clock.optimise, clock.before = point.state["clock"]
            self._decoded = dict(point.state["decoded"])
            self.finished = [
                Standing(_weights(point.arrays, f"final.{number}"), **kept)
                for number, kept in enumerate(point.state["finished"])
            ]

    def interrupted(self) -> tuple[Standing, Weights, State] | None:
        """Return where the job was that a kill interrupted: standing, weights and tuner's state.

        The next call returns nothing: later jobs begin anew.
        """
        state, self._state = self._state, None
        if state is None or state["current"] is None:
            return None
        standing = Standing(_weights(self._arrays, "best"), **state["current"])
        return standing, _weights(self._arrays, "weights"), _part(self._arrays, "state")

    def checkpoint(
        self, standing: Standing | None, weights: Weights, state: State, *, now: bool
    ) -> None:
        """Make this the point to go back to; without a standing, all begun jobs are done."""
        if self._directory is None:
            return
        parts: dict[str, Mapping[str, Any]] = {
            f"final.{number}": _arrays(each.weights) for number, each in enumerate(self.finished)
        }
        if standing is not None:
            parts |= {"weights": _arrays(weights), "best": _arrays(standing.weights)}
            parts["state"] = state
        clock = self._clock
        self._journal.checkpoint(
            {f"{part}.{name}": a for part, arrays in parts.items() for name, a in arrays.items()},
            {
                "current": None if standing is None else standing.plain(),
                "finished": [each.plain() for each in self.finished],
                "clock": [clock.decode, clock.optimise, clock.total],
                "decoded": self._decoded,
            },
            now=now,
        )

    def save(self, job: Job, number: int, decoded: Decoded | None) -> None:
        """Save the weights of a decoding and what they found, with digests for the checkpoint.

        What workers hold stays there: a resumed run decodes again with the weights.
        """
        if decoded is None or self._directory is None or self._journal.finished:
            return
        path = self._path(job, number)
        path.parent.mkdir(exist_ok=True)
        file = path.with_suffix(WEIGHTS)
        write_arrays(file, _arrays(decoded.weights), {})
        self._decoded[file.name] = file_digest(file)
        if decoded.found is not None:
            file = decoded.found().save(path)
            self._decoded[file.name] = file_digest(file)

    def load(self, job: Job, rounds: int) -> Iterator[Decoded]:
        """Yield the decodings of the first rounds of a job, as far as they were saved.

        Raise if a file is missing, or is not the one of the checkpoint.
        """
        if self._directory is None:
            return
        for number in range(rounds + 1):
            path = self._path(job, number)
            names = {
                Path(name).suffix: name for name in self._decoded if Path(name).stem == path.name
            }
            if not names:
                return
            weights = read_arrays(self._checked(path.with_name(names.pop(WEIGHTS, path.name))))
            assert weights is not None, "the file is there"
            lists = [path.with_name(name) for name in names.values()]
            yield Decoded(
                _weights({f"of.{name}": a for name, a in weights.arrays.items()}, "of"),
                partial(self._loaded, lists[0], job) if lists else None,
            )

    def _loaded(self, file: Path, job: Job) -> Spaces:
        return load_spaces(self._checked(file), job.source.references, job.source.sources)

    def _checked(self, file: Path) -> Path:
        """Return a file; raise if it is missing, or is not the one of the checkpoint."""
        remedy = "start the run in another folder"
        if not file.is_file():
            raise InputError("what was decoded is missing", str(file), remedy=remedy)
        if file_digest(file) != self._decoded[file.name]:
            raise InputError(
                "this is not the file that the run decoded: its digest differs from the "
                "checkpoint's",
                str(file),
                remedy=f"put the run's own file back, or {remedy}",
            )
        return file

    def _path(self, job: Job, number: int) -> Path:
        assert self._directory is not None
        first = job.kind == "run" and job.number == 0
        prefix = "" if first else f"{job.kind}-{job.number}-"
        return self._directory.path / "decoded" / f"{prefix}{number:04d}"


def _arrays(weights: Weights) -> State:
    return {"names": packed(list(weights)), "values": np.array(list(weights.values()), np.float64)}


def _part(arrays: Mapping[str, Any], part: str) -> State:
    return {
        name.removeprefix(f"{part}."): array
        for name, array in arrays.items()
        if name.startswith(f"{part}.")
    }


def _weights(arrays: Mapping[str, Any], part: str) -> Weights:
    found = _part(arrays, part)
    return Weights(dict(zip(unpacked(found["names"]), found["values"].tolist(), strict=True)))
