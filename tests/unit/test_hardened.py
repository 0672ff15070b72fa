"""What damaged files, small machines and careless copies once did; each is told in one line now."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from twins.toy import make_world

from tunesmith import _core, tune
from tunesmith.errors import InputError
from tunesmith.files.arrays import read_arrays, write_arrays
from tunesmith.learn import selectors
from tunesmith.learn.online import Learner, Online, Schedule
from tunesmith.learn.updates import Custom
from tunesmith.serve.database import FILE, connect, open_store
from tunesmith.spaces import Bins, Pools

COMMAND = (sys.executable, "-c", "from tunesmith.__main__ import main; main()")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A file of two lists."""
    core = _core.Pools.from_arrays(
        np.array([0, 1, 2]),
        ["a", "b"],
        np.array([0, 1, 2]),
        np.array([0, 0]),
        np.array([1.0, 2.0]),
        ["f"],
        np.array([0.5, 0.25]),
    )
    return Pools(core, None, None).save(tmp_path / "lists")


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("scores", np.zeros(1)),
        ("scores", np.zeros(2, np.float32)),
        ("starts", np.array([0, 2, 1])),
        ("starts", np.zeros((2, 2), np.int64)),
        ("texts", np.array([255, 10, 10], np.uint8)),
        ("names", None),
        ("columns", np.frombuffer(b"x\n", np.uint8)),
    ],
)
def test_lists_whose_arrays_do_not_fit_are_refused(lists: Path, name: str, array: Any) -> None:
    found = read_arrays(lists)
    assert found is not None
    arrays = {**found.arrays, name: array}
    write_arrays(lists, {key: each for key, each in arrays.items() if each is not None}, {})
    with pytest.raises(InputError, match="does not hold lists") as refused:
        Pools.load(lists, None, None)
    assert refused.value.file == str(lists)


def test_bins_of_an_unknown_kind_are_refused(lists: Path) -> None:
    found = read_arrays(lists)
    assert found is not None
    write_arrays(lists, found.arrays, {"partial": "nothing"})
    with pytest.raises(InputError, match="does not hold bins"):
        Bins.load(lists, None, None)


@pytest.mark.parametrize("state", [{}, {"k": 1}])
def test_a_checkpoint_whose_numbers_are_none_is_refused(tmp_path: Path, state: Any) -> None:
    path = tmp_path / "checkpoint.npz"
    write_arrays(path, {"w": np.zeros(2)}, state, events=-1)
    with pytest.raises(InputError, match="numbers of events"):
        read_arrays(path)
    write_arrays(path, {"w": np.zeros(2)}, state, events=1)
    assert read_arrays(path) is not None


def test_a_store_whose_damage_is_not_text_is_refused(tmp_path: Path) -> None:
    with closing(connect(open_store(tmp_path, create=True))):
        pass
    for extra in tmp_path.glob(f"{FILE}-*"):
        extra.unlink()
    path = tmp_path / FILE
    content = path.read_bytes()
    assert b"CREATE TABLE tokens" in content
    path.write_bytes(content.replace(b"CREATE TABLE tokens", b"CREATE TABLE \xe9 \xe9(("))
    with pytest.raises(InputError, match="the store is damaged"):
        open_store(tmp_path)


def limit(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (size, size))


def ended(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)], capture_output=True, text=True, timeout=120, **options
    )


def test_too_little_memory_to_load_the_program_is_told() -> None:
    ran = ended("presets", preexec_fn=lambda: limit(170 << 20))
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("error: out of memory") and ran.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "error",
    [
        "MemoryError()",
        "RuntimeError('can\\'t start new thread')",
        "ImportError('x.so: failed to map segment from shared object')",
    ],
)
def test_a_command_without_memory_ends_with_a_message(error: str) -> None:
    code = f"from tunesmith.cli import no_traceback\nwith no_traceback([]):\n    raise {error}\n"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 2
    assert ran.stderr.startswith("error: out of memory (give it more memory")
    assert ran.stderr.count("\n") == 1


def test_small_files_may_be_overwritten_while_they_are_in_use(world: Path, tmp_path: Path) -> None:
    for name in ("lm.tlm", "phrases.rules"):
        shutil.copy(world / "model" / name, tmp_path / name)
    model = _core.LanguageModel.load(tmp_path / "lm.tlm")
    table = _core.RuleTable(tmp_path / "phrases.rules")
    before = model.score("the house sees"), table.children(table.root)
    for name in ("lm.tlm", "phrases.rules"):
        os.truncate(tmp_path / name, 0)
    assert (model.score("the house sees"), table.children(table.root)) == before


SERVED = """
import os, sys
from tunesmith import _core
if sys.argv[3] == "told":
    _core.tell_bus_errors()
path = sys.argv[2]
if sys.argv[1] == "lm":
    used = _core.LanguageModel.load(path)
    use = lambda: used.score("the house sees")
else:
    used = _core.RuleTable(path)
    use = lambda: used.children(used.root)
use()
os.truncate(path, 0)
use()
"""


@pytest.mark.parametrize(("what", "name"), [("lm", "lm.tlm"), ("rules", "phrases.rules")])
@pytest.mark.parametrize("told", ["told", "untold"])
def test_a_mapped_file_that_is_cut_is_named(
    world: Path, tmp_path: Path, what: str, name: str, told: str
) -> None:
    path = shutil.copy(world / "model" / name, tmp_path / name)
    ran = subprocess.run(
        [sys.executable, "-c", SERVED, what, path, told],
        capture_output=True,
        text=True,
        env={**os.environ, "TUNESMITH_MAP_FROM": "0"},
    )
    if told == "told":
        assert ran.returncode == 2
        assert ran.stderr.startswith(f"error: {path}: was cut short")
        assert ran.stderr.count("\n") == 1
    else:
        # A library leaves signals to its program.
        assert ran.returncode == -signal.SIGBUS


def test_a_replaced_file_stays_readable(world: Path, tmp_path: Path) -> None:
    code = (
        "import os, sys\nfrom tunesmith import _core\n"
        "path = sys.argv[1]\nmodel = _core.LanguageModel.load(path)\n"
        "before = model.score('the house')\nmodel.save(path + '.new')\n"
        "os.replace(path + '.new', path)\nassert model.score('the house') == before\n"
        "model.save(path)\nassert model.score('the house') == before\n"
    )
    path = shutil.copy(world / "model" / "lm.tlm", tmp_path / "lm.tlm")
    ran = subprocess.run(
        [sys.executable, "-c", code, path],
        capture_output=True,
        text=True,
        env={**os.environ, "TUNESMITH_MAP_FROM": "0"},
    )
    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_size_from_which_files_are_mapped_must_be_a_number(world: Path) -> None:
    code = "import sys\nfrom tunesmith import _core\n_core.LanguageModel.load(sys.argv[1])\n"
    ran = subprocess.run(
        [sys.executable, "-c", code, str(world / "model" / "lm.tlm")],
        capture_output=True,
        text=True,
        env={**os.environ, "TUNESMITH_MAP_FROM": "much"},
    )
    assert "TUNESMITH_MAP_FROM is not a number of bytes" in ran.stderr


@pytest.mark.parametrize("weight", ["1e39", "-1e39", "1e300"])
@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_weights_beyond_all_bounds_translate(
    world: Path, tmp_path: Path, kind: str, weight: str
) -> None:
    weights = tmp_path / "w.toml"
    weights.write_text(f"[weights]\nlm = {weight}\nwords = -1.0\n")
    ran = ended(
        *("translate", world / "model", "--kind", kind, "-w", weights, "-i", world / "test.src"),
        *("--nbest", 20, "--nbest-out", tmp_path / "nbest"),
    )
    assert "panicked" not in ran.stderr and "Traceback" not in ran.stderr
    assert ran.returncode in (0, 2)


class Impatient:
    """An update rule that calls `separate` from a thread while it calls it itself."""

    def init(self, features: int) -> Any:
        return np.zeros(0)

    def step(self, w: Any, state: Any, separate: Any) -> Any:
        ends: list[str] = []

        def call() -> None:
            try:
                separate(w)
                ends.append("done")
            except RuntimeError as error:
                ends.append(str(error))

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        call()
        for thread in threads:
            thread.join()
        assert "done" in ends
        assert all(end == "done" or "once at a time" in end for end in ends)
        return w, state


def test_a_rule_that_separates_from_threads_does_not_wait_for_ever() -> None:
    texts, references = ["a b", "a c", "b", "c"], [["a b"], ["c"]]
    core = _core.Pools.from_arrays(
        np.array([0, 2, 4]),
        texts,
        np.array([0, 1, 2, 3, 4]),
        np.array([0, 0, 0, 0]),
        np.array([0.0, 1.0, 2.0, 0.5]),
        ["f"],
    )
    learner = Learner(selector=selectors.HopeFear(), update=Custom(Impatient()))
    tuner = Online(learner=learner, schedule=Schedule(passes=2))
    tune(Pools(core, references, None), "mira", "bleu:tokenize=none", tuner=tuner, start={"f": 1.0})
