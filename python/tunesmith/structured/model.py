"""A learnt model: it predicts, and is kept in a directory that cannot execute code."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from os import PathLike
from pathlib import Path
from typing import Any

import tomli_w

from tunesmith import _core
from tunesmith.errors import InputError, check_regular
from tunesmith.files.arrays import file_digest, read_arrays, write_arrays
from tunesmith.files.atomic import TEMPORARY, atomic_write, cannot_write
from tunesmith.files.lock import LOCK, Lock
from tunesmith.files.text import read_whole
from tunesmith.structured.settings import Pass, Training
from tunesmith.structured.tasks import NATIVE, Parser, Tagger, Task
from tunesmith.structured.weights import Weights

FORMAT = 1
DESCRIPTION = "model.toml"
WEIGHTS = "weights-*.npz"
AGAIN = "train the model again"
_HEADER = """\
# A model of tunesmith structured. The file of weights has NumPy arrays, and its digest is checked.

"""
Progress = Callable[[str, int, int], object]


@dataclass(frozen=True)
class Model:
    """A task with learnt weights; `history` tells of the passes, `kept` which of them it is.

    `skipped` examples had no gold derivation.
    """

    task: Tagger | Parser | Task
    training: Training
    weights: Weights
    history: tuple[Pass, ...] = ()
    kept: int = 0
    examples: int = 0
    skipped: int = 0

    def predict(
        self,
        given: Iterable[Any],
        *,
        beam: int | None = None,
        threads: int = 0,
        progress: Progress | None = None,
    ) -> list[Any]:
        """Return the output for each input.

        The beam is the one of the training unless another is given. The number of threads never
        changes a result.
        """
        if beam is not None and beam < 1:
            raise InputError(f"a beam of {beam}", remedy="give 1 or more")
        inputs, width = list(given), self.training.beam if beam is None else beam
        task, kernel = self.task, self.weights.kernel
        if isinstance(task, Tagger | Parser):
            found = task.kernel().predict(kernel, task.inputs(inputs), width, threads, progress)
            return list(task.outputs(found))
        core = _core.StructuredTask.python(task)
        found = core.predict(kernel, inputs, width, threads, progress)
        return [task.output(one, actions) for one, actions in zip(inputs, found, strict=True)]

    def features(self) -> dict[str, float]:
        """Return the weight of each feature by its name, largest first."""
        task = self.task
        named = self.weights.named(task.actions() if isinstance(task, Tagger | Parser) else ())
        return dict(sorted(named.items(), key=lambda item: -abs(item[1])))

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the model into a new folder, or in place of a model that is there.

        A process that dies on the way leaves the old model, or none: the description is written
        last. Raise if the folder holds anything else.
        """
        home = Path(folder)
        check_folder(home)
        try:
            home.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(home, error) from error
        lock = Lock(home, "model")
        try:
            check_folder(home)
            self._write(home)
        finally:
            lock.release()

    def _write(self, home: Path) -> None:
        arrays = self.weights.arrays()
        digest = sha256(b"".join(array.tobytes() for array in arrays.values())).hexdigest()
        file = home / WEIGHTS.replace("*", digest[:16])
        write_arrays(file, arrays, {})
        document = {
            "format": FORMAT,
            "version": _core.__version__,
            "weights": {
                "file": file.name,
                "sha256": file_digest(file),
                "features": len(self.weights),
            },
            "task": _described(self.task),
            "training": _plain(asdict(self.training)),
            "learnt_from": {"examples": self.examples, "skipped": self.skipped, "kept": self.kept},
            "passes": [_plain(asdict(each)) for each in self.history],
        }
        with atomic_write(home / DESCRIPTION) as stream:
            stream.write((_HEADER + tomli_w.dumps(document)).encode())
        for old in (*home.glob(WEIGHTS), *home.glob(f".*{TEMPORARY}")):
            if old != file:
                old.unlink(missing_ok=True)

    @classmethod
    def load(cls, folder: str | PathLike[str], task: Task | None = None) -> Model:
        """Return the model in a folder; raise an `InputError` if it is damaged or incomplete.

        A task written in Python is not in the folder: give it as `task`.
        """
        home = Path(folder)
        document = _description(home)
        try:
            described = dict(document["task"])
            kind = described.pop("name")
            if kind in NATIVE:
                found: Any = NATIVE[kind](**_tuples(described))
            elif task is None:
                raise InputError(
                    f"the model is for a task written in Python, {kind!r}",
                    str(home / DESCRIPTION),
                    remedy="load it from Python, with task=",
                )
            else:
                found = task
            training = Training(**{"beam": None, **document["training"]})
            history = tuple(Pass(**each) for each in document["passes"])
            facts = {key: int(document["learnt_from"][key]) for key in ("examples", "skipped")}
            kept = int(document["learnt_from"]["kept"])
            weights = _weights(home, document["weights"])
            if kind in NATIVE:
                found.kernel()
                if weights.actions.size and weights.actions.max() >= len(found.actions()):
                    raise ValueError("weights are of another task")
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            text = f"not a model description: {error}"
            raise InputError(text, str(home / DESCRIPTION), remedy=AGAIN) from error
        return cls(found, training, weights, history, kept, **facts)

    def __repr__(self) -> str:
        what = _described(self.task)["name"]
        return f"<Model {what}, {len(self.weights):,} features, beam {self.training.beam}>"


def check_folder(home: Path) -> None:
    """Raise if a folder holds anything but a model."""
    if not home.exists():
        return
    if not home.is_dir():
        raise InputError("not a folder", str(home), remedy="name a new folder")
    ours = {home / LOCK, home / DESCRIPTION, *home.glob(WEIGHTS), *home.glob(f".*{TEMPORARY}")}
    described = (home / DESCRIPTION).is_file()
    if set(home.iterdir()) - ours or (described and "task" not in _description(home)):
        raise InputError(
            "the folder holds other files than a model", str(home), remedy="name a new folder"
        )


def _description(home: Path) -> dict[str, Any]:
    path = home / DESCRIPTION
    check_regular(path)
    if not path.is_file():
        raise InputError(
            f"there is no model here: {DESCRIPTION} is missing",
            str(home),
            remedy="give the folder that was given to --model",
        )
    try:
        document = tomllib.loads(read_whole(path).decode())
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a model description: {error}", str(path), remedy=AGAIN) from None
    if document.get("format") != FORMAT or "task" not in document:
        raise InputError(
            f"not a structured model of format {FORMAT}",
            str(path),
            remedy="give a folder of tunesmith structured train, or train the model again",
        )
    return document


def _weights(home: Path, described: Mapping[str, Any]) -> Weights:
    name = described["file"]
    if Path(name).name != name:
        raise ValueError(f"the file {name!r} is outside the folder")
    path = home / name
    check_regular(path)
    try:
        if file_digest(path) != described["sha256"]:
            raise ValueError("its digest differs from the one in model.toml")
        found = read_arrays(path)
        if found is None:
            raise ValueError("it is missing")
        return Weights.from_arrays(found.arrays)
    except ValueError as error:
        text = error.message if isinstance(error, InputError) else str(error)
        raise InputError(f"cannot use the weights: {text}", str(path), remedy=AGAIN) from error


def _described(task: Tagger | Parser | Task) -> dict[str, Any]:
    if isinstance(task, Tagger | Parser):
        values = {field.name: getattr(task, field.name) for field in fields(task)}
        return {"name": task.NAME, **_plain(values)}
    return {"name": type(task).__name__}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as TOML has them: lists for tuples, and nothing for None."""
    return {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in values.items()
        if value is not None
    }


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as tasks have them; raise if a list holds anything but text."""
    for value in values.values():
        texts: Sequence[object] = value if isinstance(value, list) else ()
        if not all(isinstance(text, str) for text in texts):
            raise ValueError("a name is not text")
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in values.items()
    }
