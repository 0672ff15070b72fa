"""Workers, and how a driver asks them.

A question is a module-level function whose first argument is the worker; the others, and its
answer, are plain values: arrays, numbers, parts of tuners. So a worker may sit in this process, in
another one, or on another machine. What it holds stays there.

A worker on another machine may be lost. Its successor is asked again what the lost one was asked,
in the same order. Most questions need not be repeated: mark those that change nothing in a worker
with `reads`, and those after which earlier questions no longer matter with `begins`. A question
that adds to what a worker holds is marked with `grows`: no later question undoes it.

>>> from tunesmith.engines import Threads, reads
>>> @reads
... def longest(worker, least):
...     return max((line for line in worker.share if len(line) >= least), key=len)
>>> Threads().crew(["a", "abc", "ab"], threads=1).ask(longest, 2)
'abc'
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from tunesmith.engines.pool import Pool

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
C = TypeVar("C", bound=Callable[..., Any])
Question = Callable[Concatenate["Worker", P], T]
Job = Callable[[int], tuple[Any, ...]]
"""Returns the arguments of a question, given the place of the worker that is asked."""
Asked = tuple[Callable[..., Any], Sequence[tuple[Any, ...]]]
"""A question, and its arguments for each worker."""


class Effect(Enum):
    """What a question does to a worker."""

    READS = "reads"
    CHANGES = "changes"
    BEGINS = "begins"
    GROWS = "grows"


def reads(question: C) -> C:
    """Mark a question that leaves a worker as it was, but for what can be computed again."""
    return _marked(question, Effect.READS)


def begins(question: C) -> C:
    """Mark a question after which the answers of a worker do not depend on earlier questions, but
    for those that `grows`."""
    return _marked(question, Effect.BEGINS)


def grows(question: C) -> C:
    """Mark a question that adds to what a worker holds.

    Answers after it depend on earlier questions that are marked so, and on no others.
    """
    return _marked(question, Effect.GROWS)


def _marked(question: C, effect: Effect) -> C:
    question.effect = effect  # type: ignore[attr-defined]
    return question


def effect_of(question: Callable[..., Any]) -> Effect:
    """Return what a question does to a worker; one that is not marked changes it."""
    found: Effect = getattr(question, "effect", Effect.CHANGES)
    return found


class Worker:
    """Holds a share of the work, and values that one question keeps for the next."""

    def __init__(self, share: Any, pool: Pool) -> None:
        self.share = share
        self.pool = pool
        self.kept: dict[str, Any] = {}


class Dealt(ABC):
    """Work of which each worker is given its own part."""

    @abstractmethod
    def parts(self, size: int) -> Iterator[Any]:
        """Yield the part of each worker; a single one is given the whole."""


class Crew(Protocol):
    """Workers that were given the same share of work, or their parts of it."""

    size: int

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the answer of the first worker."""

    def map(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        """Yield the answers for each tuple of arguments, in order; some are found in parallel.

        Any worker may be asked, so the question must be one that `reads`.
        """

    def ask_all(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> list[T]:
        """Return the answers of all workers, each for its own arguments, in their order."""

    def ask_at(self, place: int, question: Callable[..., T], args: tuple[Any, ...]) -> T:
        """Return the answer of one worker."""

    def pipeline(
        self, question: Callable[..., T], jobs: Iterable[Job], depth: int, ordered: bool
    ) -> Iterator[tuple[int, T]]:
        """Yield the numbers of jobs, from 0, and their answers; at most `depth` + 1 are under way.

        A job is taken only when there is room for it; it is given the place of the worker that will
        be asked, and returns the arguments. Unless `ordered`, answers come as they are ready. The
        question must be one that `reads`.
        """

    def abreast(self, most: int) -> Crew:
        """Return workers of the same share that answer side by side, at most so many if new."""

    def settle(self, asked: Sequence[Asked]) -> None:
        """Note that these questions alone would bring new workers to where the workers are now."""


class Engine(Protocol):
    """Makes workers. The same questions get the same answers, to the bit, from every engine."""

    def crew(self, share: Any, threads: int) -> Crew:
        """Return workers that hold a share, each with this number of threads (0: one per core).

        If the share is `Dealt`, each holds its part.
        """

    def close(self) -> None:
        """End the workers of all crews."""


def pipelined(
    jobs: Iterable[Job],
    size: int,
    depth: int,
    send: Callable[[int, tuple[Any, ...]], S],
    ready: Callable[[list[S]], int],
    receive: Callable[[S], T],
) -> Iterator[tuple[int, T]]:
    """Yield what `Crew.pipeline` promises, for workers that questions are sent to.

    `ready` returns the place of the next answer among those that were sent; the worker with the
    fewest questions is asked.
    """
    waiting: dict[int, tuple[int, S]] = {}
    load = [0] * size

    def take() -> tuple[int, T]:
        chosen = ready([sent for _, sent in waiting.values()])
        number = list(waiting)[chosen]
        place, sent = waiting.pop(number)
        load[place] -= 1
        return number, receive(sent)

    coming = enumerate(jobs)
    while True:
        if len(waiting) > depth:
            yield take()
        following = next(coming, None)
        if following is None:
            break
        number, job = following
        place = load.index(min(load))
        load[place] += 1
        waiting[number] = place, send(place, job(place))
    while waiting:
        yield take()
