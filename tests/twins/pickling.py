"""An engine whose workers share nothing: whatever goes to one or comes back is pickled.

Workers may be lost: some questions end the worker that is asked, and its successor is asked what
changed the lost one, in the same order, and then the question again.
"""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from tunesmith.engines import Crew, Dealt, Pool, Worker
from tunesmith.engines.base import Asked, Effect, Job, P, Question, effect_of, pipelined

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
    losing: float = 0.0
    """How likely it is that a question ends the worker that is asked."""
    lost: list[int] = field(default_factory=list, compare=False)
    """The places of workers that were lost."""
    heard: list[tuple[str, Any, Any]] | None = field(default=None, compare=False)
    """Questions, what they were asked with, and what was answered, if anybody wants to know."""
    shuffling: bool = False
    """Whether answers that may come in any order do."""

    def crew(self, share: Any, threads: int) -> Crew:
        """Return workers that were sent the task."""
        self.asked[:] = [[] for _ in range(self.workers)]
        dealt = share.parts(self.workers) if isinstance(share, Dealt) else [share] * self.workers
        parts = [sent(part) for part in dealt]
        self.given.extend(parts)
        return _Apart(self, [(part, threads) for part in parts])

    def close(self) -> None:
        """Workers end with their crew."""


class _Apart:
    def __init__(self, engine: Pickling, shares: list[tuple[Any, int]]) -> None:
        self._engine, self._shares = engine, shares
        self._workers = [self._new(place) for place in range(len(shares))]
        self._log: list[list[tuple[Any, ...]]] = [[] for _ in shares]
        self._chance = random.Random(len(shares))
        self.size = len(shares)

    def _new(self, place: int) -> Worker:
        share, threads = self._shares[place]
        return Worker(sent(share), Pool(threads))

    def _lose(self, place: int) -> None:
        """Put a worker at a place that knows what its predecessor was told."""
        self._engine.lost.append(place)
        self._workers[place] = self._new(place)
        for question, args, more in sent(self._log[place]):
            question(self._workers[place], *args, **more)

    def _answer(
        self, place: int, question: Callable[..., T], args: tuple[Any, ...], more: dict[str, Any]
    ) -> T:
        self._engine.asked[place].append(question.__name__)
        while True:
            known, given, named = sent((question, args, more))
            answer = sent(known(self._workers[place], *given, **named))
            if self._chance.random() >= self._engine.losing:
                break
            self._lose(place)
        if self._engine.heard is not None:
            self._engine.heard.append((question.__name__, args, answer))
        effect = effect_of(question)
        if effect in (Effect.BEGINS, Effect.GROWS):
            grown = [old for old in self._log[place] if effect_of(old[0]) is Effect.GROWS]
            self._log[place] = grown
        if effect is not Effect.READS:
            self._log[place].append((question, args, more))
        return answer

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._answer(0, question, args, kwargs)

    def ask_at(self, place: int, question: Callable[..., T], args: tuple[Any, ...]) -> T:
        return self._answer(place, question, args, {})

    def map(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        for each in args:
            yield self._answer(0, question, each, {})

    def ask_all(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> list[T]:
        return [
            self._answer(place, question, each, {})
            for place, each in zip(range(self.size), args, strict=True)
        ]

    def pipeline(
        self, question: Callable[..., T], jobs: Iterable[Job], depth: int, ordered: bool
    ) -> Iterator[tuple[int, T]]:
        """Answer a question when it is due: what was asked later may have been answered before."""

        def ready(waiting: list[tuple[int, tuple[Any, ...]]]) -> int:
            any_order = self._engine.shuffling and not ordered
            return self._chance.randrange(len(waiting)) if any_order else 0

        return pipelined(
            jobs,
            self.size,
            depth,
            lambda place, args: (place, sent(args)),
            ready,
            lambda asked: self._answer(asked[0], question, asked[1], {}),
        )

    def abreast(self, most: int) -> Crew:
        """Return the same workers."""
        return self

    def settle(self, asked: Sequence[Asked]) -> None:
        """Let workers that come later begin with these questions."""
        self._log = [
            [(question, args[place], {}) for question, args in asked] for place in range(self.size)
        ]
