"""Numbers of a run for TensorBoard: all epochs, with the real package where it is installed."""

from __future__ import annotations

import importlib.util
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tunesmith import Pools, tune
from tunesmith.errors import InputError
from tunesmith.runs.board import Board, numbers

installed = pytest.mark.skipif(
    importlib.util.find_spec("tensorboardX") is None,
    reason="tensorboardX is not installed (pip install 'tunesmith[tensorboard]')",
)


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """Read back what was written: records of a length, a checksum, an event, a checksum."""
    from tensorboardX.proto.event_pb2 import Event

    found: dict[str, dict[int, float]] = {}
    for file in folder.glob("events.*"):
        data = file.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            event = Event.FromString(data[12 : 12 + size])
            data = data[16 + size :]
            for value in event.summary.value:
                found.setdefault(value.tag, {})[event.step] = value.simple_value
    return found


@pytest.fixture
def pools() -> Pools:
    return Pools.from_arrays(
        np.random.default_rng(1).normal(size=(40, 3)),
        range(0, 41, 4),
        ["a", "b", "c"],
        texts=[f"{'good ' * (i % 4)}word{i}" for i in range(40)],
        references=[[f"good good word{4 * i + 2}"] for i in range(10)],
    )


@installed
def test_every_epoch_of_every_seed_is_there(pools: Pools, tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    with Board(tmp_path / "board") as board:

        def listen(event: dict[str, Any]) -> None:
            events.append(event)
            board(event)

        options = {"passes": 3}
        tune(pools, "mira", "chrf", seeds=2, folds=2, options=options, listen=listen)
    for run, folder in ((0, tmp_path / "board"), (1, tmp_path / "board" / "run-01")):
        told = [each for each in events if each["event"] == "epoch" and each.get("run") == run]
        found = scalars(folder)
        assert told
        for event in told:
            for name, value in numbers(event).items():
                assert found[name][event["epoch"]] == pytest.approx(value, rel=1e-6)
        assert set(found) >= {"score", "nonzero", "seconds", "spread/mean"}
        assert len(found["score"]) == len(told) + (run == 0)
    assert scalars(tmp_path / "board")["score"][0] == pytest.approx(events[0]["start"])


def test_only_finite_numbers_are_scalars() -> None:
    event = {"event": "epoch", "epoch": 1, "heldout": None, "score": float("nan"), "nonzero": 3}
    event |= {"weights": {"lm": 1.0}, "staleness": {"mean": 0.5, "max": 1}, "time": "now"}
    assert numbers(event) == {"nonzero": 3.0, "staleness/mean": 0.5, "staleness/max": 1.0}


def test_a_missing_package_is_told_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    with pytest.raises(InputError, match=r"pip install 'tunesmith\[tensorboard\]'"):
        Board(tmp_path / "board")
    assert not (tmp_path / "board").exists()
    with Board(None) as nothing:
        nothing({"event": "start", "start": 1.0})
