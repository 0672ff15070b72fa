"""A run's events as scalars for TensorBoard, which compares several runs while they go on.

>>> numbers({"event": "epoch", "epoch": 2, "score": 39.5, "spread": {"mean": 1.5, "sd": 0.5}})
{'score': 39.5, 'spread/mean': 1.5, 'spread/sd': 0.5}
>>> numbers({"event": "epoch", "heldout": 39.0, "heldout_all": [39.0, 41.0]})
{'heldout': 39.0, 'heldout_all/1': 39.0, 'heldout_all/2': 41.0}
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from tunesmith.errors import InputError

# Keys that are not measurements, and the weights, which are too many.
_NOT_SHOWN = ("event", "time", "run", "fold", "epoch", "weights")


def numbers(event: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers of an event by name.

    Numbers in tables are named `table/key`, numbers in lists `list/position`. Lists of one number
    are skipped.
    """

    def found(values: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, float]]:
        for name, value in values.items():
            if isinstance(value, Mapping):
                yield from found(value, f"{prefix}{name}/")
            elif isinstance(value, list) and len(value) > 1:
                yield from found(dict(enumerate(value, 1)), f"{prefix}{name}/")
            elif isinstance(value, int | float) and math.isfinite(value):
                yield f"{prefix}{name}", float(value)

    return dict(found({k: v for k, v in event.items() if k not in _NOT_SHOWN}, ""))


class Board:
    """A listener that writes TensorBoard files; with None it writes nothing.

    ```
    with Board("boards/rm") as board:
        tune(pools, "rm", listen=board)
    ```

    Raise if the package tensorboardX is not installed. Each of several seeds has its own folder;
    folds, which only serve the held-out score, have none.
    """

    def __init__(self, folder: Path | str | None) -> None:
        self._folder = None if folder is None else Path(folder)
        self._writers: dict[int, Any] = {}
        if self._folder is None:
            return
        try:
            from tensorboardX import SummaryWriter
        except ModuleNotFoundError:
            raise InputError(
                "TensorBoard's files are written by a package that is not installed: tensorboardX",
                remedy="pip install 'tunesmith[tensorboard]'",
            ) from None
        self._make = SummaryWriter

    def __call__(self, event: dict[str, Any]) -> None:
        """Write the numbers of the start, as of epoch 0, and of each epoch."""
        if self._folder is None or "fold" in event or event["event"] not in ("start", "epoch"):
            return
        run = int(event.get("run", 0))
        if run not in self._writers:
            folder = self._folder if run == 0 else self._folder / f"run-{run:02d}"
            # Flush, so that a run can be watched while it goes on.
            self._writers[run] = self._make(str(folder), max_queue=1, flush_secs=1)
        found = numbers(event)
        if event["event"] == "start":
            found = {"score": found["start"]}
        for name, value in found.items():
            self._writers[run].add_scalar(name, value, event.get("epoch", 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for writer in self._writers.values():
            writer.close()
