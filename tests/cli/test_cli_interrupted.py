"""Runs that are stopped: by the keyboard, by a kill, by a full disk. Each goes on afterwards."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest
from running import COMMAND, Sample, listing, process, tunesmith

# Long enough to be stopped on the way, short enough for a test.
SLOW = ("--tuner", "mert", "--set", "restarts=200", "--seeds", "2")


@pytest.fixture(scope="module")
def undisturbed(sample: Sample) -> dict[str, float]:
    """The weights of the run when nobody stops it."""
    ran = tunesmith("rerank", "tune", *sample.dev, *SLOW, "--json")
    assert ran.code == 0, ran.err
    weights = ran.object["weights"]
    assert isinstance(weights, dict)
    return weights


def stop(sample: Sample, folder: Path, how: signal.Signals) -> tuple[int, str]:
    """Start the run, stop it after its first checkpoint, and return how it ended."""
    words = "rerank", "tune", *sample.dev, *SLOW, "--run", folder / "run", "--out", folder / "w"
    with subprocess.Popen(
        [*COMMAND, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        until = time.monotonic() + 60
        while not (folder / "run" / "checkpoint.npz").exists():
            assert running.poll() is None, running.communicate()
            assert time.monotonic() < until
            time.sleep(0.02)
        running.send_signal(how)
        out, err = running.communicate(timeout=60)
    assert out == ""
    return running.returncode, err


@pytest.mark.parametrize("module", ["numpy", "typer"])
def test_an_interrupt_while_modules_are_imported_ends_quietly(tmp_path: Path, module: str) -> None:
    (tmp_path / f"{module}.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(10)\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [sys.executable, "-m", "tunesmith", "presets"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_stopped_run_resumes_to_the_same_weights(
    sample: Sample, undisturbed: dict[str, float], tmp_path: Path, how: signal.Signals
) -> None:
    code, err = stop(sample, tmp_path, how)
    assert not (tmp_path / "run" / "result.json").exists(), "the run was too fast to be stopped"
    assert not (tmp_path / "w").exists()
    if how == signal.SIGINT:
        assert code == 130
        assert "error: interrupted (a run with --run continues with --resume)" in err
        assert "Traceback" not in err
        assert not [name for name in listing(tmp_path) if name.endswith(".part")]
    again = "--run", tmp_path / "run", "--resume", "--out", tmp_path / "w"
    ran = tunesmith("rerank", "tune", *sample.dev, *SLOW, *again, "--json")
    assert ran.code == 0, ran.err
    assert ran.object["weights"] == undisturbed
    assert tomllib.loads((tmp_path / "w").read_text())["weights"] == undisturbed
    assert not [name for name in listing(tmp_path) if name.endswith(".part")]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_decoder_ends_with_the_run_that_started_it(tmp_path: Path, how: signal.Signals) -> None:
    for name, text in (("src", "a b\n"), ("tgt", "a b\n"), ("start", "f 1\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "tmp").mkdir()
    # A decoder that starts another process, which does not care to be asked.
    other = f"trap '' TERM; echo $$ > {tmp_path / 'begun'}; sleep 100; {{weights}} {{source}}"
    script = f"({other}) & sleep 100"
    words = ("tune", "--command", script, "-s", tmp_path / "src", "-r", tmp_path / "tgt")
    with subprocess.Popen(
        [*COMMAND, *map(str, words), "-w", str(tmp_path / "start")],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    ) as running:
        until = time.monotonic() + 60
        while not (tmp_path / "begun").exists() or not (tmp_path / "begun").read_text():
            assert running.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        running.send_signal(how)
        _, err = running.communicate(timeout=60)
    assert running.returncode == 128 + how
    assert err == ("error: interrupted\n" if how == signal.SIGINT else "")
    assert not list((tmp_path / "tmp").iterdir())
    # Dead processes are there until somebody has taken note of it.
    until = time.monotonic() + 20
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < until:
            os.killpg(int((tmp_path / "begun").read_text()), 0)
            time.sleep(0.02)


def test_a_finished_run_tells_its_result_again(sample: Sample, tmp_path: Path) -> None:
    words = "rerank", "tune", *sample.dev, "-t", "mert", "--run", tmp_path / "run", "--json"
    first = tunesmith(*words)
    before = listing(tmp_path)
    second = tunesmith(*words, "--resume")
    assert second.code == 0
    assert listing(tmp_path) == before
    assert second.object | {"seconds": 0} == first.object | {"seconds": 0}


def small_files(size: int) -> None:
    """Let this process write no file larger than `size`, which looks like a full disk."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def test_a_full_disk_leaves_no_weights_and_no_lists(sample: Sample, tmp_path: Path) -> None:
    weights = tmp_path / "w.toml"
    weights.write_text("[weights]\nlm = 1.0\n")
    before = listing(tmp_path)
    nbest = sample.dev[0]
    for words in (
        ["apply", nbest, "-w", weights, "--nbest-out", tmp_path / "new.nbest"],
        ["apply", nbest, "-w", weights, "--nbest-out", tmp_path / "new", "--out-format", "flat"],
        ["tune", *sample.dev, "-t", "mert", "--out", tmp_path / "tuned.toml"],
    ):
        ran = process("rerank", *words, preexec_fn=lambda: small_files(200))
        assert ran.code == 2, ran.err
        assert "Traceback" not in ran.err
        assert str(tmp_path) in ran.err
        assert "no space left" in ran.err or "File too large" in ran.err
        assert listing(tmp_path) == before


def test_a_run_on_a_full_disk_goes_on_when_there_is_room(sample: Sample, tmp_path: Path) -> None:
    words = "rerank", "tune", *sample.dev, "-t", "mert", "--json"
    run = "--run", tmp_path / "run"
    ran = process(*words, *run, preexec_fn=lambda: small_files(4000))
    assert ran.code == 2, ran.err
    assert "Traceback" not in ran.err
    assert "no space left to write it (free some space" in ran.err
    left = listing(tmp_path)
    assert not [name for name in left if name.endswith(".part")]
    for line in left["run/events.jsonl"].splitlines():
        json.loads(line)
    again = tunesmith(*words, *run, "--resume")
    assert again.code == 0, again.err
    assert again.object["weights"] == tunesmith(*words).object["weights"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("words", [["--help"], ["apply"]])
def test_a_full_disk_behind_stdout_is_told(
    sample: Sample, words: list[str], tmp_path: Path
) -> None:
    weights = tmp_path / "w.toml"
    weights.write_text("[weights]\nlm = 1.0\n")
    apply = ["rerank", "apply", sample.dev[0], "-w", weights]
    with Path("/dev/full").open("w") as full:
        ran = process(*(apply if words == ["apply"] else words), stdout=full)
    assert ran.code == 2
    assert ran.err.startswith("error: standard output: No space left on device (")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("words", [["presets"], ["apply"]])
def test_a_reader_that_has_seen_enough_is_no_error(
    sample: Sample, words: list[str], tmp_path: Path
) -> None:
    weights = tmp_path / "w.toml"
    weights.write_text("[weights]\nlm = 1.0\n")
    apply = ["rerank", "apply", sample.dev[0], "-w", weights]
    read, write = os.pipe()
    os.close(read)
    try:
        ran = process(*(apply if words == ["apply"] else words), stdout=write)
    finally:
        os.close(write)
    assert ran.err == ""
