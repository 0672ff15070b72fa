"""The engine of one process: one worker with all threads of the core."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tunesmith.engines.base import Asked, Crew, Dealt, P, Question, T, Worker
from tunesmith.engines.pool import Pool


@dataclass(frozen=True)
class Threads:
    """Work in this process; nothing is copied."""

    def crew(self, share: Any, threads: int) -> Crew:
        """Return the one worker."""
        whole = next(share.parts(1)) if isinstance(share, Dealt) else share
        return _Here(Worker(whole, Pool(threads)))

    def close(self) -> None:
        """Do nothing: the threads of a call end with it."""


class _Here:
    size = 1

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return question(self._worker, *args, **kwargs)

    def map(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        return self._worker.pool.map(lambda each: question(self._worker, *each), args)

    def ask_all(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> list[T]:
        return [question(self._worker, *each) for each in args]

    def settle(self, asked: Sequence[Asked]) -> None:
        del asked  # this worker lives as long as the driver


THREADS = Threads()
