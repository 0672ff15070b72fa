"""Threads of one worker: calls side by side, results in a fixed order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


@dataclass(frozen=True)
class Pool:
    """A number of threads; each call starts them and ends them."""

    threads: int = 0
    """How many; 0 for one per core."""

    def map(self, call: Callable[[A], T], items: Iterable[A]) -> Iterator[T]:
        """Yield the results in the order of the items; closing the iterator cancels the rest."""
        with ThreadPoolExecutor(self.threads or None) as workers:
            jobs = [workers.submit(call, item) for item in items]
            try:
                for job in jobs:
                    yield job.result()
            finally:
                for job in jobs:
                    job.cancel()

    def pipeline(
        self, jobs: Iterable[Callable[[], T]], depth: int, ordered: bool = True
    ) -> Iterator[T]:
        """Yield the results of jobs; at most `depth` + 1 are under way at a time.

        A job is taken from `jobs` only when there is room for it. Unless `ordered`, results come
        as they are ready.
        """
        waiting: deque[Future[T]] = deque()

        def take() -> T:
            place = 0
            if not ordered:
                wait(waiting, return_when=FIRST_COMPLETED)
                place = next(i for i, job in enumerate(waiting) if job.done())
            job = waiting[place]
            del waiting[place]
            return job.result()

        coming = iter(jobs)
        with ThreadPoolExecutor(self.threads or os.cpu_count()) as workers:
            while True:
                if len(waiting) > depth:
                    yield take()
                job = next(coming, None)
                if job is None:
                    break
                waiting.append(workers.submit(job))
            while waiting:
                yield take()
