"""Commands with `--engine ray`: options, silence, and a driver that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from running import COMMAND, Sample, process, tunesmith

SLOW = ("--tuner", "mert", "--set", "restarts=60", "--seeds", "2")
NEEDS_RAY = pytest.mark.skipif(find_spec("ray") is None, reason="the extra ray is not installed")
RAY = ("--engine", "ray", "--workers", 2)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for Ray, short enough for the names of its sockets; it marks Ray's processes."""
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


def left(session: Path) -> list[str]:
    """Return the commands of processes that belong to a session of Ray."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(session) in text:
            found.append(text)
    return found


@pytest.mark.parametrize(
    "words", [("--workers", 2), ("--address", "localhost:1"), ("--timeout", 9)]
)
def test_options_of_ray_are_refused_without_it(sample: Sample, words: tuple[object, ...]) -> None:
    ran = tunesmith("rerank", "tune", *sample.dev, *words)
    assert ran.code == 2
    assert f"{words[0]} without --engine ray" in ran.err


def test_an_unknown_engine_is_refused(sample: Sample) -> None:
    ran = tunesmith("rerank", "tune", *sample.dev, "--engine", "spark")
    assert ran.code == 2
    assert "use one of threads, ray" in ran.err


@pytest.mark.parametrize("seconds", ["inf", "1e300"])
def test_a_timeout_that_ray_cannot_count_is_refused(sample: Sample, seconds: str) -> None:
    ran = tunesmith("rerank", "tune", *sample.dev, "--engine", "ray", "--timeout", seconds)
    assert ran.code == 2
    assert "a timeout of" in ran.err and "give seconds, at most 1000000000" in ran.err


def test_an_address_of_no_form_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    words = "rerank", "tune", tmp_path / "none", "-r", tmp_path / "none"
    ran = tunesmith(*words, "--engine", "ray", "--address", "head")
    assert ran.code == 2
    assert (
        ran.err == "error: --address head (give HOST:PORT of the head, or auto on a node of it)\n"
    )


@pytest.mark.parametrize(
    ("tuner", "remedy"), [("kbmira", "give --regime shards=2"), ("rampion", "leave --workers out")]
)
def test_workers_that_would_be_idle_are_refused(sample: Sample, tuner: str, remedy: str) -> None:
    ran = tunesmith("rerank", "tune", *sample.dev, "--tuner", tuner, *RAY)
    assert ran.code == 2
    assert "keeps only 1 busy" in ran.err and remedy in " ".join(ran.err.split())


@pytest.mark.parametrize(
    ("address", "message"),
    [("127.0.0.1:1", "no Ray at 127.0.0.1:1"), ("ray", "give HOST:PORT"), ("a:b", "HOST:PORT")],
)
def test_an_address_without_a_cluster_is_told(sample: Sample, address: str, message: str) -> None:
    ran = tunesmith("rerank", "tune", *sample.dev, "--engine", "ray", "--address", address)
    assert ran.code == 2
    assert message in ran.err


@NEEDS_RAY
def test_a_command_is_silent_about_ray_and_leaves_nothing_behind(
    sample: Sample, session: Path
) -> None:
    words = "rerank", "tune", *sample.dev, *SLOW, "--json"
    ran, wanted = process(*words, *RAY), tunesmith(*words)
    assert ran.code == 0, ran.err
    assert ran.object["weights"] == wanted.object["weights"]
    assert ran.err == wanted.err
    assert not left(session)
    assert not list(session.iterdir())


@NEEDS_RAY
@pytest.mark.torture
def test_a_killed_driver_takes_its_workers_along_and_its_run_goes_on(
    sample: Sample, tmp_path: Path, session: Path
) -> None:
    wanted = tunesmith("rerank", "tune", *sample.dev, *SLOW, "--json").object["weights"]
    words = "rerank", "tune", *sample.dev, *SLOW, *RAY, "--run", tmp_path / "run", "--json"
    with subprocess.Popen(
        [*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        while not (tmp_path / "run" / "checkpoint.npz").exists():
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        assert left(session)
        os.kill(running.pid, signal.SIGKILL)
        out, err = running.communicate(timeout=60)
    assert out == "" and "ray" not in err.lower()
    while left(session):
        time.sleep(0.1)
    ran = process(*words, "--resume")
    assert ran.code == 0, ran.err
    assert ran.object["weights"] == wanted
    assert "ray" not in ran.err.replace(str(tmp_path), "").lower()
    while left(session):
        time.sleep(0.1)
