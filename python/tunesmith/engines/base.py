"""Workers, and how a driver asks them.

A question is a module-level function whose first argument is the worker; the others, and its
answer, are plain values: arrays, numbers, parts of tuners. So a worker may sit in this process, in
another one, or on another machine. What it holds stays there.

>>> from tunesmith.engines import Threads
>>> def longest(worker, least):
...     return max((line for line in worker.share if len(line) >= least), key=len)
>>> Threads().crew(["a", "abc", "ab"], threads=1).ask(longest, 2)
'abc'
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from tunesmith.engines.pool import Pool

P = ParamSpec("P")
T = TypeVar("T")
Question = Callable[Concatenate["Worker", P], T]


class Worker:
    """Holds a share of the work, and values that one question keeps for the next."""

    def __init__(self, share: Any, pool: Pool) -> None:
        self.share = share
        self.pool = pool
        self.kept: dict[str, Any] = {}


class Crew(Protocol):
    """Workers that were given the same share of work."""

    size: int

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the answer of the first worker."""

    def map(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        """Yield the answers for each tuple of arguments, in order; some are found in parallel."""

    def ask_all(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> list[T]:
        """Return the answers of all workers, each for its own arguments, in their order."""


class Engine(Protocol):
    """Makes workers. The same questions get the same answers, to the bit, from every engine."""

    def crew(self, share: Any, threads: int) -> Crew:
        """Return workers that hold a share, each with this number of threads (0: one per core)."""
