"""What a driver knows of spaces, whoever holds them: features, and the line of each list."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar
from warnings import warn

import numpy as np
import numpy.typing as npt

from tunesmith.errors import InputError
from tunesmith.weights import Vector, Weights

if TYPE_CHECKING:
    from tunesmith.spaces.base import Spaces

T = TypeVar("T")
Positions = npt.NDArray[np.int64]
Kind = tuple[str, bool, bool]

# Names that a message lists, and among how many it looks for similar ones.
SHOWN_NAMES = 12
SEARCHED_NAMES = 5000


class Outline(ABC):
    """The features of spaces, and the line that each list or forest belongs to."""

    what: str
    """A list, a forest or a bin: what there is of each sentence."""

    @property
    @abstractmethod
    def whole(self) -> Spaces:
        """The spaces themselves; raises if workers hold them."""

    @property
    def kind(self) -> Kind:
        """What the spaces are, whether they are flat, and whether they are binned."""
        return self.what, self.flat, self.binned

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Feature names; a feature's id is its place here."""

    @property
    @abstractmethod
    def groups(self) -> Positions:
        """The line that each list or forest belongs to: several only where a line has bins."""

    @property
    def last(self) -> Positions:
        """The list or forest of each line that holds whole translations."""
        groups = self.groups
        ends = np.append(groups[1:] != groups[:-1], True)
        return np.flatnonzero(ends) if len(groups) else np.zeros(0, np.int64)

    @property
    def lines(self) -> int:
        """Number of lines."""
        return len(self.last)

    @property
    @abstractmethod
    def binned(self) -> bool:
        """Whether a line has a list for every step of its search."""

    def by_line(self, values: Sequence[T]) -> list[T]:
        """Return the values of the lines, given those of all lists: of bins, the last one's."""
        return [values[place] for place in self.last.tolist()]

    @property
    @abstractmethod
    def flat(self) -> bool:
        """Whether every hypothesis is written out, as in a list."""

    @property
    @abstractmethod
    def hypotheses(self) -> int:
        """Number of hypotheses in all lists, of edges in all forests."""

    @cached_property
    def width(self) -> int:
        """Number of features: the length of a vector of weights."""
        return len(self.names)

    def holds_as_many(self, hypotheses: int) -> bool:
        """Whether a search that merged into these has brought nothing new since there were so many
        hypotheses; forests cannot tell."""
        return self.flat and self.hypotheses == hypotheses

    def vector(self, weights: Vector | Mapping[str, float], *, partial: bool = False) -> Vector:
        """Return weights in the order of the names.

        Refuses a vector of another length, weights that are not finite, and a mapping in which a
        weight other than zero has no feature here, unless `partial`. `Weights` that were learnt or
        read may know features that these sentences lack: they cause a warning, and are refused only
        where no weight has a feature.
        """
        if isinstance(weights, Mapping):
            if not partial:
                self.check_names(weights)
            vector = Weights(weights).vector(self.names)
        else:
            vector = np.ascontiguousarray(weights, np.float64)
            if vector.shape != (self.width,):
                raise InputError(
                    f"weights of shape {vector.shape} for {self.width} features",
                    remedy="give one weight per name, in the order of the names",
                )
        if not np.isfinite(vector).all():
            Weights.from_vector(self.names, vector).check_finite()
        return vector

    def check_names(self, weights: Mapping[str, float], *, learnt: bool = False) -> None:
        """Refuse weights other than zero that have no feature here.

        `Weights` cause a warning in place of that, and those that were `learnt` elsewhere nothing
        at all, but both are refused where no weight has a feature.
        """
        constants = weights.constants if isinstance(weights, Weights) else frozenset[str]()
        used = [name for name, value in weights.items() if value and name not in constants]
        unknown = [name for name in used if name not in self._known]
        if not unknown or not self.hypotheses:
            return
        some = len(unknown) < len(used)
        if some and learnt:
            return
        if some and isinstance(weights, Weights):
            shown = ", ".join(unknown[:5]) + ("…" if len(unknown) > 5 else "")
            told = f"weights without a feature in the {self.what}s: {len(unknown)} ({shown})"
            # To whoever called the method that called `vector`.
            warn(told, stacklevel=4)
            return
        also = f"; if the {self.what}s may lack it, give Weights(…)" if some else ""
        raise InputError(
            f"no feature is called {unknown[0]!r}",
            weights.file if isinstance(weights, Weights) else None,
            remedy=self._similar(unknown[0]) + also,
        )

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def _similar(self, name: str) -> str:
        if near := get_close_matches(name, self.names[:SEARCHED_NAMES]):
            return f"use {' or '.join(map(repr, near))}"
        more = "…" if self.width > SHOWN_NAMES else ""
        listed = ", ".join(self.names[:SHOWN_NAMES]) + more
        return f"there are {listed}" if listed else f"the {self.what}s have no features at all"


class Elsewhere(Outline):
    """Spaces that workers hold."""

    def __init__(self, kind: Kind, names: list[str], groups: Positions, hypotheses: int) -> None:
        self.what, self._flat, self._binned = kind
        self._names, self._groups, self._hypotheses = names, groups, hypotheses

    @property
    def whole(self) -> Spaces:
        """Refuse."""
        raise InputError(
            f"the {self.what}s are held by workers, and the tuner asks for all of them",
            remedy="let the tuner ask task.shares, or leave its attribute `shared` out",
        )

    @property
    def names(self) -> list[str]:
        """Feature names; a feature's id is its place here, and at every worker."""
        return self._names

    @property
    def groups(self) -> Positions:
        """The line that each list or forest belongs to."""
        return self._groups

    @property
    def hypotheses(self) -> int:
        """Number of hypotheses in all lists, of edges in all forests."""
        return self._hypotheses

    @property
    def flat(self) -> bool:
        """Whether every hypothesis is written out, as in a list."""
        return self._flat

    @property
    def binned(self) -> bool:
        """Whether a line has a list for every step of its search."""
        return self._binned
