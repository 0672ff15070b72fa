"""A run killed at any byte goes on to the same events, arrays and weights."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tunesmith.errors import InputError
from tunesmith.files.arrays import read_arrays, write_arrays
from tunesmith.runs import RunDirectory

CONFIG: dict[str, object] = {"preset": "mira", "seed": 3}
EPOCHS = 4

TINY_TUNER = """
import sys, time
import numpy as np
from tunesmith.runs import RunDirectory

def tune(path, resume, epochs, pause=0.0, stop=None):
    run = RunDirectory(path)
    run = run.resume({"preset": "mira", "seed": 3}) if resume else run.create(
        {"preset": "mira", "seed": 3})
    with run:
        if run.finished:
            return run.result()
        point = run.load_checkpoint()
        first, w = (0, np.zeros(5)) if point is None else (point.state["epoch"], point.arrays["w"])
        if point is None:
            run.event("start", preset="mira", options={"text": "täglich ☕"})
        for epoch in range(first + 1, epochs + 1):
            w = w + np.random.default_rng((3, epoch)).normal(size=5)
            run.event("epoch", run=0, epoch=epoch, score=float(w.sum()))
            if stop == epoch:
                raise KeyboardInterrupt
            run.save_epoch_weights(epoch, {str(i): float(x) for i, x in enumerate(w)}, {})
            time.sleep(pause)
            run.save_checkpoint({"w": w}, {"epoch": epoch})
        run.event("end", tuned=float(w.sum()))
        run.save_weights({str(i): float(x) for i, x in enumerate(w)}, {})
        run.finish({"tuned": float(w.sum())})
        return run.result()
"""
_scope: dict[str, Any] = {}
exec(TINY_TUNER, _scope)
tune = _scope["tune"]


def timeless(path: Path) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in event.items() if key != "time"}
        for event in RunDirectory(path).open().events()
    ]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "whole"
    tune(path, False, EPOCHS)
    return path


def same(path: Path, whole: Path) -> None:
    assert timeless(path) == timeless(whole)
    assert (path / "weights.toml").read_bytes() == (whole / "weights.toml").read_bytes()
    assert sorted(p.name for p in path.rglob("*")) == sorted(p.name for p in whole.rglob("*"))


@pytest.mark.parametrize("stop", range(1, EPOCHS + 1))
def test_an_interrupted_run_resumes_to_the_same_events_and_weights(
    tmp_path: Path, undisturbed: Path, stop: int
) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        tune(path, False, EPOCHS, stop=stop)
    tune(path, True, EPOCHS)
    same(path, undisturbed)


def test_events_torn_at_every_byte_are_read_and_repaired(tmp_path: Path, undisturbed: Path) -> None:
    """Before the first checkpoint any prefix of the events may be what a kill left."""
    data = (undisturbed / "events.jsonl").read_bytes()
    whole = RunDirectory(undisturbed).open().events()
    path = tmp_path / "run"
    for cut in range(len(data) + 1):
        path.mkdir(exist_ok=True)
        (path / "config.json").write_bytes((undisturbed / "config.json").read_bytes())
        (path / "events.jsonl").write_bytes(data[:cut])
        seen = RunDirectory(path).open().events()
        # All whole lines, and at most one more that lacks nothing but its newline.
        assert seen == whole[: len(seen)]
        assert 0 <= len(seen) - data[:cut].count(b"\n") <= 1
        with RunDirectory(path).resume(CONFIG) as run:
            assert run.load_checkpoint() is None
            run.event("start", again=cut)
        assert [event["again"] for event in run.events()] == [cut]


def test_events_cut_anywhere_behind_the_checkpoint_resume(
    tmp_path: Path, undisturbed: Path
) -> None:
    partial = tmp_path / "partial"
    with pytest.raises(KeyboardInterrupt):
        tune(partial, False, EPOCHS, stop=3)
    data = (partial / "events.jsonl").read_bytes()
    point = RunDirectory(partial).load_checkpoint()
    assert point is not None and point.events == 3
    for cut in range(len(data) + 1):
        path = tmp_path / f"cut-{cut}"
        path.mkdir()
        for name in ("config.json", "checkpoint.npz"):
            (path / name).write_bytes((partial / name).read_bytes())
        (path / "events.jsonl").write_bytes(data[:cut])
        if cut < point.events_bytes:
            # No kill does this: the events are on the disk before the checkpoint is.
            with pytest.raises(InputError, match=r"events\.jsonl: .*3 events"):
                tune(path, True, EPOCHS)
        else:
            tune(path, True, EPOCHS)
            assert timeless(path) == timeless(undisturbed)


def test_a_run_killed_before_its_configuration_starts_anew(tmp_path: Path) -> None:
    (tmp_path / ".lock").write_text("1\n")
    (tmp_path / ".config.json.0badc0de.part").write_text('{"pre')
    RunDirectory(tmp_path).resume(CONFIG).close()
    assert RunDirectory(tmp_path).open().config().items() >= CONFIG.items()
    assert not list(tmp_path.glob("*.part"))


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("kind", ["SIGKILL", "SIGTERM", "SIGINT"])
def test_a_process_killed_at_any_time_resumes(tmp_path: Path, kind: str) -> None:
    whole, path, epochs = tmp_path / "whole", tmp_path / "run", 40
    tune(whole, False, epochs)
    code = TINY_TUNER + f"\ntune(sys.argv[1], sys.argv[2] == 'resume', {epochs}, 0.002)\n"
    resume = "create"
    for attempt in range(60):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(path), resume],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stderr=subprocess.DEVNULL,
        )
        if attempt < 6:
            # Not before there is a directory, then at a moment nobody chose.
            while process.poll() is None and not path.exists():
                time.sleep(0.001)
            time.sleep(0.004 + 0.013 * attempt)
            process.send_signal(getattr(signal, kind))
        if process.wait() == 0:
            break
        resume = "resume"
    same(path, whole)


def test_every_damaged_byte_of_a_checkpoint_is_refused_or_harmless(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    arrays = {"w": np.arange(4.0), "naïve/../name": np.array([[1, 2]], np.int32)}
    write_arrays(path, arrays, {"epoch": 2}, 7, 99)
    data = path.read_bytes()
    refused = 0
    for place in range(len(data)):
        for damaged in (
            data[:place],
            data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :],
        ):
            path.write_bytes(damaged)
            try:
                point = read_arrays(path)
            except InputError as error:
                refused += 1
                assert error.file == str(path) and error.remedy
                continue
            # Zip keeps dates and other things that nothing depends on.
            assert point is not None and point.state == {"epoch": 2}
            assert (point.events, point.events_bytes) == (7, 99)
            assert list(point.arrays) == list(arrays)
            for name, array in arrays.items():
                assert np.array_equal(point.arrays[name], array)
    assert refused > 1.5 * len(data)


@given(st.binary(max_size=300))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_bytes_that_are_no_checkpoint_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "checkpoint.npz"
    path.write_bytes(data)
    with pytest.raises(InputError):
        read_arrays(path)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    np.savez(path, tunesmith=np.array([{"evil": print}], dtype=object))
    with pytest.raises(InputError, match="allow_pickle"):
        read_arrays(path)
    np.array([object], dtype=object).dump(path)
    with pytest.raises(InputError):
        read_arrays(path)
    with pytest.raises(TypeError, match="Python objects"):
        write_arrays(path, {"w": np.array([{}])}, {})


def test_arrays_keep_type_shape_and_order(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.npz"
    arrays = {
        "scalar": np.array(3.5),
        "empty": np.zeros((0, 3), np.float32),
        "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "text": np.array(["häuser", ""]),
        "state": np.array([2**63], np.uint64),
    }
    write_arrays(path, arrays, {"nested": {"list": [1, None, "x"]}})
    point = read_arrays(path)
    assert point is not None and point.state == {"nested": {"list": [1, None, "x"]}}
    for name, array in arrays.items():
        assert point.arrays[name].dtype == array.dtype
        assert point.arrays[name].shape == array.shape
        assert np.array_equal(point.arrays[name], array)
