"""Where events and checkpoints go."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy.typing as npt

from tunesmith.runs import RunDirectory
from tunesmith.weights import Weights

# A checkpoint costs a few milliseconds; epochs of fast tuners cost less. Going back at most this
# far after a kill changes nothing but time.
CHECKPOINT_SECONDS = 1.0

Listener = Callable[[dict[str, Any]], None]


class Journal:
    """Events and checkpoints of a run: for a run directory, a listener, both or neither."""

    def __init__(
        self,
        directory: RunDirectory | None,
        settings: Mapping[str, Any],
        resume: bool,
        listen: Listener | None,
    ) -> None:
        self._directory = directory
        self._listen = listen
        self._saved = 0.0
        self.finished = False
        self.point = None
        self._silent = False
        if directory is not None:
            if resume:
                directory.resume(settings)
                self.point = directory.load_checkpoint()
                self.finished = directory.finished
            else:
                directory.create(settings)
            # What comes before the checkpoint is in the file already.
            self._silent = self.point is not None or self.finished

    def event(self, kind: str, **fields: Any) -> None:
        """Write down an event and tell the listener."""
        if (
            self._directory is not None
            and not self.finished
            and not (self._silent and kind == "start")
        ):
            self._directory.event(kind, **fields)
        if self._listen is not None:
            self._listen({"event": kind, **fields})

    def checkpoint(
        self, arrays: Mapping[str, npt.NDArray[Any]], state: Mapping[str, Any], *, now: bool
    ) -> None:
        """Make this the point to go back to, if it is time."""
        due = now or time.monotonic() - self._saved > CHECKPOINT_SECONDS
        if self._directory is not None and not self.finished and due:
            self._directory.save_checkpoint(arrays, state)
            self._saved = time.monotonic()

    def weights(self, epoch: int, weights: Weights, run: int) -> None:
        """Keep the weights of an epoch of a run."""
        if self._directory is not None and not self.finished:
            self._directory.save_epoch_weights(
                epoch, weights, {"epoch": epoch, "run": run}, run=run
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._directory is not None:
            self._directory.close()
