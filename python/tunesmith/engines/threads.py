"""The engine of one process: one worker with all threads of the core."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tunesmith.engines.base import (
    Asked,
    Crew,
    Dealt,
    Job,
    P,
    Question,
    T,
    Worker,
    pipelined,
)
from tunesmith.engines.pool import Pool


@dataclass(frozen=True)
class Threads:
    """Work in this process; nothing is copied."""

    def crew(self, share: Any, threads: int) -> Crew:
        """Return the one worker."""
        whole = next(share.parts(1)) if isinstance(share, Dealt) else share
        return _Here([Worker(whole, Pool(threads))])

    def close(self) -> None:
        """Do nothing: the threads of a call end with it."""


class _Here:
    def __init__(self, workers: list[Worker]) -> None:
        self._workers = workers
        self._worker = workers[0]
        self.size = len(workers)

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return question(self._worker, *args, **kwargs)

    def ask_at(self, place: int, question: Callable[..., T], args: tuple[Any, ...]) -> T:
        return question(self._workers[place], *args)

    def map(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        return self._worker.pool.map(lambda each: question(self._worker, *each), args)

    def ask_all(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> list[T]:
        return [question(worker, *each) for worker, each in zip(self._workers, args, strict=True)]

    def pipeline(
        self, question: Callable[..., T], jobs: Iterable[Job], depth: int, ordered: bool
    ) -> Iterator[tuple[int, T]]:
        with ExitStack() as threads:
            # Each worker has one thread, so that it answers its questions in their order.
            lanes = [threads.enter_context(ThreadPoolExecutor(1)) for _ in self._workers]
            waiting: set[Future[T]] = set()

            def send(place: int, args: tuple[Any, ...]) -> Future[T]:
                sent = lanes[place].submit(question, self._workers[place], *args)
                waiting.add(sent)
                return sent

            def ready(sent: list[Future[T]]) -> int:
                if ordered:
                    return 0
                wait(sent, return_when=FIRST_COMPLETED)
                return next(place for place, each in enumerate(sent) if each.done())

            def receive(sent: Future[T]) -> T:
                waiting.discard(sent)
                return sent.result()

            try:
                yield from pipelined(jobs, self.size, depth, send, ready, receive)
            finally:
                for each in waiting:
                    each.cancel()

    def abreast(self, most: int) -> Crew:
        count = min(self._worker.pool.threads or os.cpu_count() or 1, most)
        return _Here([Worker(self._worker.share, Pool(1)) for _ in range(count)])

    def settle(self, asked: Sequence[Asked]) -> None:
        del asked  # these workers live as long as the driver


THREADS = Threads()
