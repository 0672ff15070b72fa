"""An engine whose workers share nothing: whatever goes to one or comes back is pickled."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tunesmith.engines import Crew, Dealt, Pool, Worker
from tunesmith.engines.base import Asked, P, Question

T = TypeVar("T")


def sent(value: T) -> T:
    """Return a value as it arrives on another machine."""
    copy: T = pickle.loads(pickle.dumps(value))
    return copy


@dataclass(frozen=True)
class Pickling:
    """Workers that each hold a copy of the task, or of their part of it."""

    workers: int = 1
    asked: list[list[str]] = field(default_factory=list, compare=False)
    """The names of the questions that each worker of the last crew was asked."""
    given: list[Any] = field(default_factory=list, compare=False)
    """What the workers of all crews were given."""

    def crew(self, share: Any, threads: int) -> Crew:
        """Return workers that were sent the task."""
        self.asked[:] = [[] for _ in range(self.workers)]
        dealt = share.parts(self.workers) if isinstance(share, Dealt) else [share] * self.workers
        workers = [Worker(sent(part), Pool(threads)) for part in dealt]
        self.given.extend(worker.share for worker in workers)
        return _Apart(workers, self.asked)

    def close(self) -> None:
        """Workers end with their crew."""


class _Apart:
    def __init__(self, workers: list[Worker], asked: list[list[str]]) -> None:
        self._workers, self._asked = workers, asked
        self.size = len(workers)

    def _answer(
        self, place: int, question: Callable[..., T], args: tuple[Any, ...], more: dict[str, Any]
    ) -> T:
        self._asked[place].append(question.__name__)
        known, given, named = sent((question, args, more))
        return sent(known(self._workers[place], *given, **named))

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._answer(0, question, args, kwargs)

    def map(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        for each in args:
            yield self._answer(0, question, each, {})

    def ask_all(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> list[T]:
        return [
            self._answer(place, question, each, {})
            for place, each in zip(range(self.size), args, strict=True)
        ]

    def settle(self, asked: Sequence[Asked]) -> None:
        """Workers in this process are not lost."""
