"""Damaged files of Python's readers: a value or an `InputError`, nothing else.

Half of the damage is done to bytes, half to what is in them, with checksums that fit again.
"""

from __future__ import annotations

import hashlib
import json
import random
import shutil
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import Record, chance, seconds
from running import tunesmith

from tunesmith import Weights
from tunesmith.errors import InputError
from tunesmith.files.arrays import file_digest, read_arrays, write_arrays
from tunesmith.formats.weights_file import dump_weights
from tunesmith.local.manifest import Manifest, _digest
from tunesmith.runs import RunDirectory
from tunesmith.serve.database import FILE, connect, open_store
from tunesmith.spaces import Bins, Pools
from tunesmith.structured.model import Model as Structured
from tunesmith.training.model import read_model

pytestmark = pytest.mark.torture
# For each of the readers below.
SPAN = seconds("FUZZ_SECONDS", 8)
NUMBERS = (0, 1, -1, 2**31, 2**63 - 1, -(2**63), 1e308, float("inf"), float("nan"))
VALUES: tuple[Any, ...] = (
    None,
    True,
    "",
    "x" * 300,
    "../x",
    "\0",
    [],
    {},
    [[]],
    {"": None},
    -1,
    1e9,
)


def flipped(content: bytes, dice: random.Random) -> bytes:
    """Return bytes with a few changes."""
    made = bytearray(content)
    for _ in range(dice.randint(1, 6)):
        at = dice.randrange(len(made) + 1)
        match dice.randrange(5):
            case 0 if at < len(made):
                made[at] ^= 1 << dice.randrange(8)
            case 1:
                made[at:at] = dice.randbytes(dice.randint(1, 8))
            case 2:
                del made[at : at + dice.randint(1, 40)]
            case 3 if dice.random() < 0.3:
                del made[at:]
            case _:
                made[at : at + 8] = dice.choice(NUMBERS[:6]).to_bytes(8, "little", signed=True)
    return bytes(made)


def altered(value: Any, dice: random.Random) -> Any:
    """Return a JSON value with a change somewhere in it."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(list(value))
        if dice.random() < 0.15:
            return {name: each for name, each in value.items() if name != key}
        return {**value, key: altered(value[key], dice)}
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = dice.randrange(len(value))
        if dice.random() < 0.3:
            return value[:at] + value[at + 1 :] if dice.random() < 0.5 else [*value, value[at]]
        return [*value[:at], altered(value[at], dice), *value[at + 1 :]]
    return dice.choice(VALUES)


def changed(arrays: dict[str, Any], dice: random.Random) -> dict[str, Any]:
    """Return arrays with a change in one of them."""
    name = dice.choice(list(arrays))
    array = np.array(arrays[name])
    match dice.randrange(6):
        case 0:
            return {key: each for key, each in arrays.items() if key != name}
        case 1 if array.size:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                number = np.array(dice.choice(NUMBERS)).astype(array.dtype)
            array.reshape(-1)[dice.randrange(array.size)] = number
        case 2:
            array = np.delete(array.reshape(-1), slice(0, dice.randint(1, 3)))
        case 3:
            array = np.append(array.reshape(-1), array.reshape(-1)[:2])
        case 4:
            array = array.astype(dice.choice(["f4", "i1", "u8", "f8", "U3"]))
        case _:
            array = array.reshape(1, -1) if dice.random() < 0.5 else array.reshape(-1)[::-1]
    return {**arrays, name: array}


Damage = Callable[[random.Random], None]
Reader = tuple[Path, Damage, Callable[[], object]]


@pytest.fixture(scope="module")
def made(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every kind."""
    folder = tmp_path_factory.mktemp("files")
    tuned = ("tune", world / "model", "--kind", "phrase", "-w", world / "phrase.toml")
    text = ("-s", world / "dev.src", "-r", world / "dev.tgt", "--epochs", "1")
    for name, more in (("run", ["-t", "mert"]), ("bins", ["-t", "sa-mert"])):
        ran = tunesmith(*tuned, *text, *more, "--run", folder / name)
        assert ran.code == 0, ran.err
    data = ("--data", world / "dev.src", world / "dev.tgt", "--weights", world / "phrase.toml")
    ran = tunesmith(
        *("local", "build", world / "model", "--kind", "phrase", *data, "--k", 5),
        *("--out", folder / "index"),
    )
    assert ran.code == 0, ran.err
    shutil.copytree(world / "model", folder / "model")
    conllu = "".join(f"{at}\t{word}\t_\t{tag}\t_\t_\t0\troot\t_\t_\n" for at, word, tag in WORDS)
    (folder / "text.conllu").write_text(f"{conllu}\n" * 4)
    ran = tunesmith(
        *("structured", "train", "tagger", folder / "text.conllu", "--model", folder / "tagger")
    )
    assert ran.code == 0, ran.err
    with closing(connect(open_store(folder / "store", create=True))) as base:
        row = "('a', 'b', 'a', 'accepted', '[]', 0.0, 0.0)"
        columns = "source, translation, key, status, reasons, created, changed"
        base.execute(f"INSERT INTO feedback ({columns}) VALUES {row}")
    return folder


@pytest.fixture
def ground(made: Path, tmp_path: Path) -> Path:
    """A copy of them, to be damaged."""
    return shutil.copytree(made, tmp_path / "ground")


WORDS = [(1, "the", "DET"), (2, "house", "NOUN"), (3, "sees", "VERB")]


def readers(ground: Path, dice: random.Random) -> dict[str, Reader]:
    """Return for each kind of file how it is damaged inside, and how it is read."""
    lists = next((ground / "run" / "decoded").glob("*.npz"))
    bins = next((ground / "bins" / "decoded").glob("*.bins"))
    run, index = RunDirectory(ground / "run"), ground / "index"
    tagger = next((ground / "tagger").glob("*.npz"))

    def of_arrays(path: Path, sign: Callable[[], None] = lambda: None) -> Damage:
        found = read_arrays(path)
        assert found is not None

        def damage(dice: random.Random) -> None:
            state = altered(found.state, dice) if dice.random() < 0.2 else found.state
            state = state if isinstance(state, dict) else {"": state}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                write_arrays(path, changed(found.arrays, dice), state)
            sign()

        return damage

    def of_json(path: Path, sign: Callable[[Any], Any] = lambda value: value) -> Damage:
        value = json.loads(path.read_bytes())
        return lambda dice: void(path.write_text(json.dumps(sign(altered(value, dice)))))

    def of_lines(path: Path) -> Damage:
        rows = [json.loads(line) for line in path.read_text().splitlines()]

        def damage(dice: random.Random) -> None:
            made = altered(rows, dice)
            made = made if isinstance(made, list) else [made]
            path.write_text("".join(json.dumps(row) + "\n" for row in made))

        return damage

    def signed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        content = {key: each for key, each in value.items() if key != "digest"}
        return {**content, "digest": _digest(content)}

    description = ground / "tagger" / "model.toml"
    digest = file_digest(tagger)
    told = description.read_text()
    assert digest in told

    def sign_tagger() -> None:
        description.write_text(told.replace(digest, file_digest(tagger)))

    def of_bytes(path: Path) -> Damage:
        content = path.read_bytes()
        return lambda dice: void(path.write_bytes(flipped(content, dice)))

    base = ground / "store" / FILE
    return {
        "checkpoint": (run.checkpoint_file, of_arrays(run.checkpoint_file), run.load_checkpoint),
        "lists": (lists, of_arrays(lists), lambda: used(Pools.load(lists, None, None))),
        "bins": (bins, of_arrays(bins), lambda: used(Bins.load(bins, None, None))),
        "structured": (tagger, of_arrays(tagger, sign_tagger), lambda: tagged(ground / "tagger")),
        "description": (description, of_bytes(description), lambda: tagged(ground / "tagger")),
        "config": (run.config_file, of_json(run.config_file), run.config),
        "result": (run.result_file, of_json(run.result_file), run.result),
        "events": (run.events_file, of_lines(run.events_file), run.events),
        "manifest": (
            index / "index.json",
            of_json(index / "index.json", signed),
            lambda: Manifest.load(index),
        ),
        "weights": (
            run.weights_file,
            of_bytes(run.weights_file),
            lambda: dump_weights(ground / "again", dict(Weights.load(run.weights_file)), {}),
        ),
        "model": (
            ground / "model" / "model.toml",
            of_bytes(ground / "model" / "model.toml"),
            lambda: read_model(ground / "model"),
        ),
        "store": (base, of_bytes(base), lambda: stored(ground / "store")),
    }


def void(_: object) -> None:
    """Return nothing."""


def used(spaces: Pools) -> None:
    """Ask lists for what tuning asks them."""
    weights = dict.fromkeys(spaces.names, 1.0)
    spaces.core.dot(np.array(list(weights.values()), dtype=np.float64))
    spaces.core.texts(spaces.first()[spaces.first() >= 0])


def tagged(home: Path) -> None:
    """Tag a sentence with a model."""
    model = Structured.load(home)
    model.predict([["the", "house"]])


def stored(folder: Path) -> None:
    """Open a store and read what is in it."""
    for extra in folder.glob("*-*"):
        extra.unlink()
    with closing(connect(open_store(folder))) as base:
        base.execute("SELECT * FROM feedback").fetchall()


def fuzz(name: str, reader: Reader, dice: random.Random) -> Iterator[str]:
    """Damage a file and read it, again and again; yield how it ended."""
    path, inside, read = reader
    content = path.read_bytes()
    until = time.monotonic() + SPAN
    while time.monotonic() < until:
        if dice.random() < 0.5:
            inside(dice)
        else:
            path.write_bytes(flipped(content, dice))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                read()
            yield "accepted"
        except InputError as error:
            assert str(error)
            yield "refused"
        except sqlite3.DatabaseError:
            # The service turns these into answers.
            assert name == "store"
            yield "refused"
        except BaseException:
            kept = Path("target/torture")
            kept.mkdir(parents=True, exist_ok=True)
            found = path.read_bytes()
            digest = hashlib.sha256(found).hexdigest()[:8]
            (kept / f"python-{name}-{digest}").write_bytes(found)
            raise
    path.write_bytes(content)


NAMES = (
    *("checkpoint", "lists", "bins", "structured", "description", "config", "result", "events"),
    *("manifest", "weights", "model", "store"),
)


@pytest.mark.parametrize("name", NAMES)
def test_damaged_files_are_refused_or_read(
    ground: Path, name: str, record_property: Record
) -> None:
    dice = chance("fuzz", name)
    ends = list(fuzz(name, readers(ground, dice)[name], dice))
    assert "refused" in ends
    record_property("times", len(ends))
    print(f"{name}: {len(ends)} executions, {ends.count('accepted')} accepted")
