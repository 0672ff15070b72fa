"""A run directory keeps what was asked, refuses what would spoil it, and has one writer."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from tunesmith import __version__
from tunesmith.errors import InputError
from tunesmith.files.arrays import read_arrays, write_arrays
from tunesmith.files.lock import Lock
from tunesmith.formats.weights_file import dump_weights
from tunesmith.runs import RunDirectory, fingerprint, load_weights, read_events

CONFIG: dict[str, object] = {
    "preset": "rm",
    "metric": "bleu",
    "seed": 1,
    "options": {"C": 0.01, "B": float("inf")},
}


def test_a_run_reads_back_what_was_written(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run").create(CONFIG) as run:
        run.event("start", preset="rm", score=np.float64(38.5), bad=float("nan"))
        run.save_checkpoint({"w": np.arange(3.0)}, {"epoch": 1})
        run.save_epoch_weights(3, {"LM0": 0.5}, {"tuner": "rm"})
        run.save_epoch_weights(3, {"LM0": 0.5}, {"tuner": "rm"}, run=2)
        run.save_weights({"LM0": 0.25}, {"tuner": "rm"})
        run.save_changes([{"sentence": 3, "before": "a", "after": "b"}])
        run.finish({"tuned": 39.0})

    seen = RunDirectory(tmp_path / "run").open()
    assert seen.config()["options"] == {"C": 0.01, "B": "inf"}
    (event,) = seen.events()
    assert (event["event"], event["score"], event["bad"]) == ("start", 38.5, None)
    assert "time" in event
    assert load_weights(seen.weights_file) == ({"LM0": 0.25}, {"tuner": "rm"})
    assert (seen.path / "weights" / "epoch-0003.toml").exists()
    assert (seen.path / "weights" / "run-02" / "epoch-0003.toml").exists()
    assert seen.changes() == [{"sentence": 3, "before": "a", "after": "b"}]
    assert seen.finished and seen.result() == {"tuned": 39.0}
    assert not list(seen.path.rglob("*.part"))


def test_create_refuses_a_directory_with_a_run(tmp_path: Path) -> None:
    with RunDirectory(tmp_path).create(CONFIG) as run:
        run.save_checkpoint({}, {})
    with pytest.raises(InputError, match=r"already holds a run.*--resume"):
        RunDirectory(tmp_path).create(CONFIG)


def test_create_begins_again_where_a_run_came_to_no_checkpoint(tmp_path: Path) -> None:
    with RunDirectory(tmp_path).create(CONFIG) as run:
        run.event("start", preset="rm")
        run.save_epoch_weights(1, {"LM0": 0.5}, {}, run=0)
    with RunDirectory(tmp_path).create({**CONFIG, "seed": 2}) as run:
        assert run.config()["seed"] == 2
        assert run.events() == []
        assert not (tmp_path / "weights").exists()


@pytest.mark.parametrize("name", ["notes.txt", "result.json", "weights.toml"])
def test_create_leaves_what_is_not_the_beginning_of_a_run(tmp_path: Path, name: str) -> None:
    RunDirectory(tmp_path).create(CONFIG).close()
    (tmp_path / name).write_text("{}")
    with pytest.raises(InputError, match="already holds a run"):
        RunDirectory(tmp_path).create(CONFIG)
    (tmp_path / name).unlink()
    for other in ('{"model": "of somebody else"}', "no JSON"):
        (tmp_path / "config.json").write_text(other)
        with pytest.raises(InputError, match="already holds a run"):
            RunDirectory(tmp_path).create(CONFIG)
        assert (tmp_path / "config.json").read_text() == other


def test_create_refuses_a_directory_with_other_files(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(InputError, match=r"not empty.*thesis\.tex"):
        RunDirectory(tmp_path).create(CONFIG)
    with pytest.raises(InputError, match="no run here"):
        RunDirectory(tmp_path).resume(CONFIG)
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis.tex"]


def test_create_refuses_a_file(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(InputError, match="run"):
        RunDirectory(tmp_path / "run").create(CONFIG)


def test_open_refuses_a_directory_without_a_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run here"):
        RunDirectory(tmp_path).open()


def test_resume_refuses_a_missing_directory_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run to resume"):
        RunDirectory(tmp_path / "rnu").resume(CONFIG)
    assert not (tmp_path / "rnu").exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"preset": "mert"}, 'preset was "rm", now "mert"'),
        ({"options": {"C": 0.1, "B": float("inf")}}, "options.C was 0.01, now 0.1"),
        ({"options": {"C": 0.01}}, 'options.B was "inf", now not given'),
        ({"folds": 3}, "folds was not given, now 3"),
    ],
)
def test_resume_refuses_another_configuration_and_names_the_key(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    RunDirectory(tmp_path).create(CONFIG).close()
    with pytest.raises(InputError) as caught:
        RunDirectory(tmp_path).resume({**CONFIG, **change})
    assert said in str(caught.value)
    assert caught.value.file == str(tmp_path / "config.json")
    RunDirectory(tmp_path).resume(CONFIG).close()


def test_resume_may_use_other_threads(tmp_path: Path) -> None:
    RunDirectory(tmp_path).create({**CONFIG, "threads": 1}).close()
    RunDirectory(tmp_path).resume({**CONFIG, "threads": 8}).close()


def test_an_input_may_move_but_not_change(tmp_path: Path) -> None:
    old, new = tmp_path / "dev.nbest", tmp_path / "moved.nbest"
    old.write_text("0 ||| a ||| LM0= 1 ||| 1\n")
    run = tmp_path / "run"
    RunDirectory(run).create({"inputs": [fingerprint(old)]}).close()
    old.rename(new)
    RunDirectory(run).resume({"inputs": [fingerprint(new)]}).close()
    new.write_text("0 ||| b ||| LM0= 1 ||| 1\n")
    with pytest.raises(InputError, match=r"input 0 \(.*moved\.nbest\) changed"):
        RunDirectory(run).resume({"inputs": [fingerprint(new)]})


def test_both_ends_tell_files_with_a_checksum_apart(tmp_path: Path) -> None:
    file = tmp_path / "lm.tlm"
    whole = bytes(20_000)
    found = []
    for place in (None, 0, 10_000, 19_999):
        data = bytearray(whole)
        if place is not None:
            data[place] = 1
        file.write_bytes(data)
        found.append(fingerprint(file, ends=True))
    before, head, middle, tail = (each["sha256_of_ends"] for each in found)
    assert len({before, head, tail}) == 3
    assert before == middle
    assert found[0]["size"] == 20_000
    file.write_bytes(b"short")
    assert fingerprint(file, ends=True)["size"] == 5


def test_the_version_is_told_and_may_be_another(tmp_path: Path) -> None:
    RunDirectory(tmp_path).create(CONFIG).close()
    file = tmp_path / "config.json"
    told = json.loads(file.read_text())
    assert told["version"] == __version__
    file.write_text(json.dumps({**told, "version": "0.0.1"}))
    RunDirectory(tmp_path).resume(CONFIG).close()


def test_a_missing_input_has_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent: cannot read"):
        fingerprint(tmp_path / "absent")


def test_only_one_process_writes(tmp_path: Path) -> None:
    script = (
        "import sys; from tunesmith.runs import RunDirectory\n"
        "run = RunDirectory(sys.argv[1]).create({'seed': 1})\n"
        "print('held', flush=True); sys.stdin.read()\n"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"held\n"
    with pytest.raises(InputError, match=rf"another process \({other.pid}\)"):
        RunDirectory(tmp_path).resume({"seed": 1})
    with pytest.raises(InputError, match=rf"another process \({other.pid}\)"):
        RunDirectory(tmp_path).create({"seed": 1})
    # Looking is allowed, and the lock dies with its process.
    assert RunDirectory(tmp_path).open().config()["seed"] == 1
    other.kill()
    other.communicate()
    RunDirectory(tmp_path).resume({"seed": 1}).close()


def test_only_one_process_begins_a_run(tmp_path: Path) -> None:
    """Both found the directory empty; the second meets the lock before the configuration."""
    lock = Lock(tmp_path)
    with pytest.raises(InputError, match=r"another process.*choose another run directory"):
        RunDirectory(tmp_path).create(CONFIG)
    lock.release()
    RunDirectory(tmp_path).create(CONFIG).close()


def test_a_directory_that_cannot_be_locked_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".lock").mkdir()
    with pytest.raises(InputError, match="cannot lock the model directory"):
        Lock(tmp_path, "model")


def test_another_thread_may_release_a_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    thread = threading.Thread(target=lock.release)
    thread.start()
    thread.join()
    Lock(tmp_path).release()


def test_writing_needs_create_or_resume(tmp_path: Path) -> None:
    RunDirectory(tmp_path).create(CONFIG).close()
    run = RunDirectory(tmp_path).open()
    with pytest.raises(ValueError, match="not open for writing"):
        run.event("start")
    with pytest.raises(ValueError, match="not open for writing"):
        run.save_weights({}, {})


def test_a_finished_run_keeps_its_events_on_resume(tmp_path: Path) -> None:
    with RunDirectory(tmp_path).create(CONFIG) as run:
        run.event("start")
        run.event("end")
        run.finish({"tuned": 1.0})
    with RunDirectory(tmp_path).resume(CONFIG) as run:
        assert run.finished
    assert [event["event"] for event in run.events()] == ["start", "end"]


def test_a_full_disk_takes_the_half_written_event_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunDirectory(tmp_path).create(CONFIG) as run:
        run.event("start")
        whole = os.write

        def full(descriptor: int, data: memoryview) -> int:
            if len(data) < 20:
                raise OSError(28, "No space left on device")
            return whole(descriptor, data[: len(data) // 2])

        with monkeypatch.context() as patch:
            patch.setattr(os, "write", full)
            with pytest.raises(InputError, match="No space left on device"):
                run.event("epoch", epoch=1)
        run.event("epoch", epoch=2)
    assert [event.get("epoch") for event in run.events()] == [None, 2]


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    program = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from tunesmith.errors import InputError
from tunesmith.runs import RunDirectory

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with RunDirectory(Path(sys.argv[1])).resume() as run:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
    many = {f"f{number}": 1.0 for number in range(10000)}
    for write in (
        lambda: run.save_checkpoint({"w": np.ones(1 << 20)}, {"epoch": 2}),
        lambda: run.save_weights(many, {}),
    ):
        try:
            write()
        except InputError as error:
            assert "no space left" in str(error) and error.file and error.remedy, error
        else:
            raise AssertionError("written")
"""
    pytest.importorskip("resource")
    with RunDirectory(tmp_path).create(CONFIG) as run:
        run.save_checkpoint({"w": np.zeros(2)}, {"epoch": 1})
    subprocess.run([sys.executable, "-c", program, tmp_path], check=True)
    with RunDirectory(tmp_path).resume() as run:
        point = run.load_checkpoint()
    assert point is not None and point.state == {"epoch": 1}
    assert not run.weights_file.exists()
    assert not list(tmp_path.rglob("*.part"))


needs_posix = pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX's")


@needs_posix
def test_weights_are_written_through_links(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for name in ("old.toml", "new.toml"):
        target, link = tmp_path / "there" / name, tmp_path / name
        link.symlink_to(target)
        if name == "old.toml":
            target.write_text("")
            target.chmod(0o640)
        dump_weights(link, {"a": 1.0}, {})
        assert link.is_symlink()
        assert load_weights(target)[0] == {"a": 1.0}
    assert (tmp_path / "there" / "old.toml").stat().st_mode & 0o777 == 0o640


@needs_posix
def test_weights_and_checkpoints_go_into_a_pipe(tmp_path: Path) -> None:
    writers: list[Callable[[Path], None]] = [
        lambda path: dump_weights(path, {"a": 1.0}, {}),
        lambda path: write_arrays(path, {"w": np.ones(3)}, {}),
    ]
    for number, write in enumerate(writers):
        pipe = tmp_path / f"{number}.pipe"
        os.mkfifo(pipe)
        with ThreadPoolExecutor(1) as other:
            read = other.submit(pipe.read_bytes)
            write(pipe)
            (tmp_path / "copy").write_bytes(read.result())
        assert pipe.is_fifo()
        assert sorted(entry.name for entry in tmp_path.iterdir() if entry != pipe)[-1:] == ["copy"]
        if number == 0:
            assert load_weights(tmp_path / "copy")[0] == {"a": 1.0}
        else:
            point = read_arrays(tmp_path / "copy")
            assert point is not None and point.arrays["w"].tolist() == [1.0] * 3
        pipe.unlink()


def test_a_compressed_checkpoint_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "c.npz", tunesmith=np.zeros(1 << 20, np.uint8))
    with pytest.raises(InputError, match=r"c\.npz: .*it is compressed"):
        read_arrays(tmp_path / "c.npz")


@needs_posix
def test_a_device_stays_one(tmp_path: Path) -> None:
    # A device of our own: a writer that replaces devices must not get hold of the machine's.
    device = tmp_path / "null"
    try:
        os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        device.write_bytes(b"")
    except OSError:
        pytest.skip("may not make devices here")
    dump_weights(device, {"a": 1.0}, {})
    assert device.is_char_device()
    assert [entry.name for entry in tmp_path.iterdir()] == ["null"]


def test_a_bad_line_inside_the_events_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"event": "start"}\n[1]\n{"event": "end"}\n')
    with pytest.raises(InputError) as caught:
        read_events(path)
    assert (caught.value.file, caught.value.line) == (str(path), 2)


def test_a_config_that_is_not_json_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{\n "a": \n')
    with pytest.raises(InputError, match=r"config\.json:3: not JSON"):
        RunDirectory(tmp_path).open().config()


def test_config_is_json_for_anybody(tmp_path: Path) -> None:
    RunDirectory(tmp_path).create({"path": tmp_path, "grid": np.array([1.5]), "t": (1,)}).close()
    stored = json.loads((tmp_path / "config.json").read_text())
    assert stored.items() >= {"path": str(tmp_path), "grid": [1.5], "t": [1]}.items()
