"""Weights by feature name: dense and sparse in one vector, readable on disk."""

from __future__ import annotations

from collections.abc import (
    Collection,
    ItemsView,
    Iterable,
    Iterator,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from itertools import compress, islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith._core import Lines
from tunesmith.errors import InputError
from tunesmith.formats.base import is_stream
from tunesmith.formats.weights import read_cdec, read_moses_ini
from tunesmith.runs.weights_file import dump_weights, load_weights

Vector = npt.NDArray[np.float64]

_OUR_TABLES = ("[tunesmith]", "[weights]")


class Weights(Mapping[str, float]):
    """A weight per feature name; a name that is not there weighs nothing.

    >>> w = Weights({"LM0": 0.5, "WordPenalty0": -1.0})
    >>> w.vector(["WordPenalty0", "Distortion0"]).tolist()
    [-1.0, 0.0]
    """

    def __init__(
        self,
        values: Mapping[str, float],
        meta: Mapping[str, object] | None = None,
        file: str | None = None,
    ) -> None:
        self._values: dict[str, float] = (
            values._values.copy()
            if isinstance(values, Weights)
            else {name: float(value) for name, value in values.items()}
        )
        self.meta: dict[str, object] = dict(meta or {})
        if file is None and isinstance(values, Weights):
            file = values.file
        self.file: str | None = file
        """Where they were read, for messages."""

    @classmethod
    def from_vector(
        cls,
        names: Sequence[str],
        vector: npt.ArrayLike,
        meta: Mapping[str, object] | None = None,
        *,
        drop_zeros: bool = False,
        always: Collection[str] = (),
    ) -> Weights:
        """Name the entries of a vector; with `drop_zeros` only those that are not zero or are
        `always` wanted.
        """
        values = np.asarray(vector, np.float64).tolist()
        pairs = zip(names, values, strict=True)
        named = cls({}, meta)
        if drop_zeros:
            named._values = {name: value for name, value in pairs if value or name in always}
        else:
            named._values = dict(pairs)
        return named

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Weights:
        """Read weights from TOML, a Moses `.ini`, or lines of `name value` as Moses and cdec write.

        `name= value`, as lists have it, is the same. Refuses what cannot be read, with file and
        line, weights that are no finite numbers, and a pipe.
        """
        name = str(path)
        if is_stream(name):
            # It would be empty after a look at what form it has.
            raise InputError(
                "weights cannot be read from a pipe", name, remedy="write them to a file first"
            )
        # By content too: a file of ours may have any name.
        head = [] if name.endswith((".toml", ".ini")) else list(islice(Lines(name), 20))
        if name.endswith(".toml") or any(line.strip() in _OUR_TABLES for line in head):
            values, meta = load_weights(Path(name))
            return cls(values, meta, name)
        if name.endswith(".ini"):
            return cls(read_moses_ini(Path(name)), file=name)
        return cls(_plain_names(read_cdec(Path(name)), name), file=name)

    def save(self, path: str | Path) -> None:
        """Write a weights file, atomically."""
        dump_weights(Path(path), self._values, self.meta)

    def vector(self, names: Sequence[str]) -> Vector:
        """Return the weights of `names`, zero for those that have none."""
        get = self._values.get
        return np.array([get(name, 0.0) for name in names], np.float64)

    def replaced(self, values: Mapping[str, float]) -> Weights:
        """Return these weights with some others in their place."""
        new = Weights(self, self.meta)
        new._values |= values
        return new

    def change(self, before: Weights) -> float:
        """Return the largest difference between a weight and what it was before."""
        was, now = before._values, self._values
        gone = [was[name] for name in was.keys() - now.keys()]
        values = np.fromiter(now.values(), np.float64, len(now))
        moved = np.concatenate([values - before.vector(list(now)), gone])
        return float(np.abs(moved).max(initial=0.0))

    def check_finite(self) -> None:
        """Refuse weights that are not numbers, or infinite, by the name of the first."""
        values = np.fromiter(self._values.values(), np.float64, len(self))
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            name = [*self._values][bad[0]]
            raise InputError(
                f"the weight of {name} is {self[name]}", self.file, remedy="give a finite number"
            )

    @property
    def nonzero(self) -> int:
        """The number of weights that are not zero."""
        return len(self) - [*self._values.values()].count(0.0)

    def top(self, count: int) -> dict[str, float]:
        """Return the largest by magnitude, largest first."""
        items: Iterable[tuple[str, float]] = self._values.items()
        if 0 < count < len(self):
            # Of many weights only those that may be among the largest are put in order.
            sizes = np.abs(np.fromiter(self._values.values(), np.float64, len(self)))
            least = np.partition(sizes, -count)[-count]
            items = compress(items, sizes >= least)
        return dict(sorted(items, key=lambda item: (-abs(item[1]), item[0]))[:count])

    @property
    def spread(self) -> dict[str, float]:
        """How far features vary within the lists that the weights were tuned on, where known."""
        told = self.meta.get("spread")
        if not isinstance(told, Mapping):
            return {}
        return {str(name): float(value) for name, value in told.items() if _is_number(value)}

    @property
    def influence(self) -> dict[str, float]:
        """How far each feature moves scores within a list, |weight| × spread, largest first.

        Empty where spreads are not known. A raw weight says little: a feature whose values differ
        by hundreds has a small one, and one that never varies may have any.
        """
        moves = {
            name: abs(self._values[name]) * spread
            for name, spread in self.spread.items()
            if name in self._values
        }
        return dict(sorted(moves.items(), key=lambda item: (-item[1], item[0])))

    def ranked(self, count: int) -> dict[str, float]:
        """Return the weights that matter most, first by influence where known, then by size."""
        first = list(self.influence)[:count]
        known = set(first)
        rest = (name for name in self.top(count + len(known)) if name not in known)
        return {name: self._values[name] for name in islice([*first, *rest], count)}

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # What `Mapping` makes of the above asks for one weight after the other: too slow for many.

    def keys(self) -> KeysView[str]:
        """Return the names."""
        return self._values.keys()

    def values(self) -> ValuesView[float]:
        """Return the weights."""
        return self._values.values()

    def items(self) -> ItemsView[str, float]:
        """Return names with weights."""
        return self._values.items()

    def __eq__(self, other: Any) -> bool:
        return isinstance(other, Mapping) and self._values == dict(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={value:.4g}" for name, value in self.top(8).items())
        more = ", …" if len(self) > 8 else ""
        return f"Weights({shown}{more})"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain_names(weights: Mapping[str, float], file: str) -> dict[str, float]:
    """Return weights without the = that lists write behind names; refuses one that comes twice.

    Names with a colon are of templates, which may have a word that is a =.
    """
    found: dict[str, float] = {}
    for name, value in weights.items():
        plain = name if ":" in name else name.removesuffix("=")
        if plain in found:
            raise InputError(f"two weights of {plain}", file, remedy="give every name one weight")
        found[plain] = value
    return found
