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
from math import copysign
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith._core import Lines
from tunesmith.errors import InputError
from tunesmith.formats.base import is_stream
from tunesmith.formats.jsonl import is_number
from tunesmith.formats.weights import read_cdec, read_moses_ini
from tunesmith.formats.weights_file import dump_weights, load_weights

Vector = npt.NDArray[np.float64]

_OUR_TABLES = ("[tunesmith]", "[weights]")


class Weights(Mapping[str, float]):
    """A weight per feature name; names without an entry weigh zero.

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
        """The file they were read from, for messages."""
        self.constants: frozenset[str] = (
            values.constants if isinstance(values, Weights) else frozenset()
        )
        """Names that a decoder added, which lists may lack."""

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
        """Return named weights; `drop_zeros` drops zeros, except those of names in `always`."""
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
        """Read weights from TOML, a Moses `.ini`, or `name value` lines of Moses and cdec.

        `name= value`, as in n-best lists, means the same. Raise an `InputError` with file and line
        if the file cannot be read, is a pipe, or has a weight that is not a finite number.
        """
        name = str(path)
        if is_stream(name):
            # Detecting the format would consume the pipe.
            raise InputError(
                "weights cannot be read from a pipe", name, remedy="write them to a file first"
            )
        # Look at the content, too: our files may have any name.
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
        """Return the weights of `names`, zero for unknown names."""
        get = self._values.get
        return np.array([get(name, 0.0) for name in names], np.float64)

    def uniform(self, fixed: Mapping[str, float], value: float | None = None) -> Weights:
        """Return weights that all are `value`; fixed ones stay.

        Without a value they have the same size and the signs they have.
        """
        size = 1.0 / max(len(self), 1)
        equal = {
            name: copysign(size, weight) if value is None else value
            for name, weight in self.items()
        }
        return self.replaced({**equal, **{name: fixed[name] for name in fixed if name in self}})

    def replaced(self, values: Mapping[str, float]) -> Weights:
        """Return a copy with some weights replaced."""
        new = Weights(self, self.meta)
        new._values |= values
        return new

    def with_constants(self, values: Mapping[str, float]) -> Weights:
        """Return a copy with weights that a decoder sets itself."""
        new = self.replaced(values)
        new.constants |= values.keys()
        return new

    def change(self, before: Weights) -> float:
        """Return the largest absolute difference between these weights and those before."""
        was, now = before._values, self._values
        gone = [was[name] for name in was.keys() - now.keys()]
        values = np.fromiter(now.values(), np.float64, len(now))
        moved = np.concatenate([values - before.vector(list(now)), gone])
        return float(np.abs(moved).max(initial=0.0))

    def check_finite(self) -> None:
        """Raise if a weight is NaN or infinite; the error names the first."""
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
        """Return the weights of largest magnitude, largest first."""
        items: Iterable[tuple[str, float]] = self._values.items()
        if 0 < count < len(self):
            # Sort only the weights that can be among the largest.
            sizes = np.abs(np.fromiter(self._values.values(), np.float64, len(self)))
            least = np.partition(sizes, -count)[-count]
            items = compress(items, sizes >= least)
        return dict(sorted(items, key=lambda item: (-abs(item[1]), item[0]))[:count])

    @property
    def spread(self) -> dict[str, float]:
        """The spread of each feature within the lists that the weights were tuned on, if known."""
        stored = self.meta.get("spread")
        if not isinstance(stored, Mapping):
            return {}
        return {str(name): float(value) for name, value in stored.items() if is_number(value)}

    @property
    def influence(self) -> dict[str, float]:
        """The influence of each feature on scores within a list, |weight| × spread, largest first.

        Empty if spreads are unknown. A raw weight says little: a feature whose values differ by
        hundreds has a small weight, and a feature that never varies may have any.
        """
        moves = {
            name: abs(self._values[name]) * spread
            for name, spread in self.spread.items()
            if name in self._values
        }
        return dict(sorted(moves.items(), key=lambda item: (-item[1], item[0])))

    def ranked(self, count: int) -> dict[str, float]:
        """Return the most important weights: by influence if known, then by magnitude."""
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

    # The versions that `Mapping` provides look up each weight by name: too slow for many.

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


def _plain_names(weights: Mapping[str, float], file: str) -> dict[str, float]:
    """Return weights without the = that n-best lists write after names; raise for repeated names.

    Names with a colon come from templates and may end in a word that is a =.
    """
    found: dict[str, float] = {}
    for name, value in weights.items():
        plain = name if ":" in name else name.removesuffix("=")
        if plain in found:
            raise InputError(f"two weights of {plain}", file, remedy="give every name one weight")
        found[plain] = value
    return found
