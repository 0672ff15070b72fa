"""Commands that the system refuses something: one line, nothing half-written, then success."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from commands import SEED, Record, chance, contents, seconds
from faults import (
    COMMAND,
    Ended,
    can_mount,
    jumping_clock,
    limited,
    run,
    small_disk,
    without_privileges,
)

from tunesmith.demo.sample import write_sample

pytestmark = pytest.mark.torture

SIGNALS = int(seconds("SIGNALS", 6))
"""Signals of each kind for each command."""
SIZES = (4, 12, 40, 100)
"""Kilobytes of a disk that is full soon."""
HANDLES = (5, 7, 9, 14)
MEGABYTES = (250, 400, 600)
ATTEMPTS = 5
"""To run two commands in one folder."""
# What the core says before it ends the process.
ABORTED = "memory allocation of "
# What Python says if it is interrupted before the program begins.
UNBORN = "Failed to import the site module"
BLAS = "OpenBLAS"


def commands(world: Path, out: Path) -> dict[str, tuple[object, ...]]:
    """Return commands that write into a folder, by name."""
    lists = world / "lists"
    tune = (
        *("tune", world / "model", "--kind", "phrase", "-w", world / "phrase.toml"),
        *("-s", world / "dev.src", "-r", world / "dev.tgt", "--threads", "2", "--epochs", "3"),
    )
    kept = ("--run", out / "run", "--out", out / "weights.toml")
    decoding = ("--kind", "phrase", "--weights", world / "phrase.toml")
    return {
        "train": (
            *("train", world / "train.src", world / "train.tgt", "--model", out / "model"),
            *("--kind", "both", "--order", "3"),
        ),
        "tune mira": (*tune, "-t", "mira", *kept),
        "tune mert": (*tune, "-t", "mert", *kept),
        "rerank tune": (
            *("rerank", "tune", lists / "dev.nbest.gz", "-r", lists / "dev.ref", "-t", "mert"),
            *kept,
        ),
        "rerank apply": (
            *("rerank", "apply", lists / "dev.nbest.gz", "-w", lists / "weights.toml"),
            *("--nbest-out", out / "new.nbest"),
        ),
        "translate": (
            *("translate", world / "model", *decoding, "-i", world / "test.src"),
            *("--nbest", "50", "--nbest-out", out / "nbest"),
        ),
        "local build": (
            *("local", "build", world / "model", *decoding, "--k", "20", "--out", out / "index"),
            *("--data", world / "dev.src", world / "dev.tgt"),
        ),
        "lm": ("lm", "estimate", world / "train.tgt", "--order", "3", "--out", out / "lm.tlm"),
    }


NAMES = (
    *("train", "tune mira", "tune mert", "rerank tune", "rerank apply", "translate"),
    *("local build", "lm"),
)
Words = Callable[[Path], Sequence[object]]


@pytest.fixture(scope="module")
def ready(world: Path) -> Path:
    """The world with weights for its lists."""
    (world / "lists" / "weights.toml").write_text("[weights]\nlm = 1.0\n")
    return world


@pytest.fixture(params=NAMES)
def words(request: pytest.FixtureRequest, ready: Path) -> Words:
    """Each of the commands, for a folder; it goes on with what is there."""

    def asked(out: Path) -> Sequence[object]:
        found = commands(ready, out)[request.param]
        return (*found, "--resume") if (out / "run").is_dir() else found

    return asked


def left(folder: Path) -> list[str]:
    """Return unfinished writes in a folder."""
    return [str(path) for path in folder.rglob("*.part")]


def then_succeeds(words: Words, out: Path, whole: Path) -> None:
    """Run a command once more, undisturbed, and compare with a run that was never disturbed."""
    manifest = out / "index" / "index.json"
    if not (manifest.exists() and '"building": null' in manifest.read_text()):
        again = run(words(out))
        assert again.code == 0, again.err
    assert not left(out)
    if not whole.exists():
        whole.mkdir()
        first = run(words(whole))
        assert first.code == 0, first.err
    assert _lasting(out) == _lasting(whole)


def _lasting(folder: Path) -> dict[str, object]:
    # The files of a word search have random names.
    found = contents(folder)
    return {name: each for name, each in found.items() if not name.startswith("index/words")}


def test_a_full_disk(words: Words, tmp_path: Path, record_property: Record) -> None:
    record_property("times", len(SIZES))
    if not can_mount(tmp_path / "try"):
        pytest.skip("no right to mount a disk")
    disk = tmp_path / "disk"
    refused = 0
    for size in SIZES:
        with small_disk(disk, size << 10) as remount:
            ended = run(words(disk))
            if ended.code != 0:
                ended.check_clear()
                said = ended.err.lower()
                assert "no space left" in said, ended.err
                refused += 1
            assert not left(disk)
            remount("size=64m")
            then_succeeds(words, disk, tmp_path / "whole")
    assert refused > 0


def test_a_read_only_disk(words: Words, tmp_path: Path) -> None:
    if not can_mount(tmp_path / "try"):
        pytest.skip("no right to mount a disk")
    disk = tmp_path / "disk"
    with small_disk(disk, 64 << 20) as remount:
        remount("ro")
        ended = run(words(disk))
        ended.check_clear()
        assert "read-only" in ended.err.lower()
        remount("rw")
        then_succeeds(words, disk, tmp_path / "whole")


def test_no_permission(words: Words, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    out.chmod(0o555)
    ended = run(words(out), without_privileges)
    ended.check_clear()
    assert "permission denied" in ended.err.lower()
    assert not list(out.iterdir())
    out.chmod(0o755)
    then_succeeds(words, out, tmp_path / "whole")


def test_too_few_file_handles(words: Words, tmp_path: Path, record_property: Record) -> None:
    record_property("times", len(HANDLES))
    for count in HANDLES:
        out = tmp_path / str(count)
        out.mkdir()
        ended = run(words(out), limited(resource.RLIMIT_NOFILE, count))
        if ended.code != 0:
            ended.check_clear()
            assert "too many open files" in ended.err.lower(), ended.err
        assert not left(out)
        then_succeeds(words, out, tmp_path / "whole")


def test_too_little_memory(words: Words, tmp_path: Path, record_property: Record) -> None:
    """A line that says so; where the core or NumPy's BLAS has to give up, that is its own line."""
    record_property("times", len(MEGABYTES))
    for megabytes in MEGABYTES:
        out = tmp_path / str(megabytes)
        out.mkdir()
        try:
            ended = run(words(out), limited(resource.RLIMIT_AS, megabytes << 20), patience=40)
        except subprocess.TimeoutExpired:
            # The interpreter waits for ever for a thread that had no memory to begin with; it was
            # killed, and goes on as after any kill.
            print(f"{megabytes} MB: killed while it waited for a thread")
            ended = Ended(-signal.SIGKILL, "", "")
        assert "Traceback" not in ended.err, ended.err
        if ended.code == -signal.SIGABRT:
            assert ABORTED in ended.err, ended.err
        elif ended.code not in (0, -signal.SIGKILL) and BLAS not in ended.err:
            ended.check_clear()
        # A process that was ended by force leaves what a killed one does.
        for part in left(out):
            Path(part).unlink()
        then_succeeds(words, out, tmp_path / "whole")


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signals_at_any_moment(
    words: Words, tmp_path: Path, how: signal.Signals, record_property: Record
) -> None:
    record_property("times", SIGNALS)
    dice = chance("signals", how, str(words(tmp_path)[:2]))
    began = time.monotonic()
    (tmp_path / "span").mkdir()
    assert run(words(tmp_path / "span")).code == 0
    span = time.monotonic() - began
    for number in range(SIGNALS):
        out = tmp_path / str(number)
        out.mkdir()
        with subprocess.Popen(
            [*COMMAND, *map(str, words(out))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            time.sleep(dice.random() * span)
            running.send_signal(how)
            said, err = running.communicate(timeout=60)
        ended = Ended(running.returncode, said, err)
        if how != signal.SIGINT or UNBORN not in err:
            assert ended.code in (0, 128 + how, -how), f"seed {SEED}: {ended}"
            assert "Traceback" not in err and "panicked" not in err, f"seed {SEED}: {err}"
        if how == signal.SIGINT:
            assert not left(out)
        for part in left(out):
            Path(part).unlink()
        then_succeeds(words, out, tmp_path / "whole")


@pytest.mark.parametrize("name", ["tune mira", "tune mert", "translate", "local build"])
def test_files_that_are_cut_while_they_are_mapped(
    ready: Path, tmp_path: Path, name: str, record_property: Record
) -> None:
    """The command succeeds, or names a file in one line; it is never silent and never hangs."""
    record_property("times", SIGNALS)
    dice = chance("cut", name)
    files = ("lm.tlm", "phrases.rules")
    ends: list[int] = []
    span = 0.0
    for number in range(SIGNALS + 1):
        out = tmp_path / str(number)
        (out / "out").mkdir(parents=True)
        # The whole world, because commands name its files.
        here = Path(shutil.copytree(ready, out / "world"))
        began = time.monotonic()
        with subprocess.Popen(
            [*COMMAND, *map(str, commands(here, out / "out")[name])],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TUNESMITH_MAP_FROM": "0"},
        ) as running:
            if number:
                time.sleep(span * dice.random())
                path = here / "model" / dice.choice(files)
                os.truncate(path, dice.choice((0, dice.randrange(path.stat().st_size))))
            said, err = running.communicate(timeout=120)
        ended = Ended(running.returncode, said, err)
        if ended.code != 0:
            assert number, ended.err
            ended.check_clear()
            assert str(path) in err, err
        ends.append(ended.code)
        span = span or time.monotonic() - began
    print(f"{name}: {SIGNALS} files cut, {ends.count(2)} told, seed {SEED}")


def test_a_clock_that_jumps(words: Words, tmp_path: Path) -> None:
    library = jumping_clock(tmp_path)
    if library is None:
        pytest.skip("no compiler")
    out = tmp_path / "out"
    out.mkdir()
    ended = run(words(out), LD_PRELOAD=str(library))
    assert ended.code == 0, ended.err
    assert "Traceback" not in ended.err
    whole = tmp_path / "whole"
    whole.mkdir()
    assert run(words(whole)).code == 0
    assert _lasting(out) == _lasting(whole)


@pytest.mark.parametrize("name", ["train", "tune mira", "rerank tune", "local build"])
def test_two_commands_in_one_folder(
    ready: Path, tmp_path: Path, name: str, record_property: Record
) -> None:
    """The second is refused, or comes when the first is done; the files are those of one."""
    record_property("times", ATTEMPTS)
    lists = tmp_path / "lists"
    lists.mkdir()
    write_sample(lists, count=40, size=10)
    for attempt in range(ATTEMPTS):
        out = tmp_path / str(attempt)
        out.mkdir()
        asked = [*COMMAND, *map(str, commands(ready, out)[name])]
        both = [
            subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(2)
        ]
        ends = []
        for each in both:
            said, err = each.communicate(timeout=120)
            ends.append(Ended(each.returncode, said, err))
        assert any(end.code == 0 for end in ends), ends
        for end in ends:
            if end.code != 0:
                end.check_clear()
        assert not left(out)
        whole = tmp_path / "whole"
        if not whole.exists():
            whole.mkdir()
            assert run(commands(ready, whole)[name]).code == 0
        assert _lasting(out) == _lasting(whole)
