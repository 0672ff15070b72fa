"""An engine whose workers die: one of them before the first question of each kind, and others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from tunesmith.engines import Crew
from tunesmith.engines.base import Asked, Job, P, Question
from tunesmith.engines.ray import Ray
from twins import asking

T = TypeVar("T")


class Killing:
    """Asks the workers of another engine, and kills one before chosen questions to all of them.

    These are the question of each name that comes at each of some turns.
    """

    def __init__(self, engine: Ray, turns: Sequence[int], seed: str) -> None:
        self.engine, self._turns, self._rng = engine, turns, random.Random(seed)
        self.asked = Counter[str]()
        """How often each question was asked."""
        self.killed = list[str]()
        """The question before which each of the workers died."""

    def crew(self, share: Any, threads: int) -> Crew:
        """Return workers that are in danger."""
        return _Mortal(self, self.engine.crew(share, threads))

    def close(self) -> None:
        """The engine belongs to others."""

    def before(self, question: Callable[..., Any]) -> None:
        """Kill a worker, if it is time."""
        name = question.__name__
        if self.asked[name] in self._turns:
            asking.kill(self._rng.choice(asking.processes(self.engine)))
            self.killed.append(name)
        self.asked[name] += 1


class _Mortal:
    def __init__(self, engine: Killing, crew: Crew) -> None:
        self._engine, self._crew, self.size = engine, crew, crew.size

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._engine.before(question)
        return self._crew.ask(question, *args, **kwargs)

    def map(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        self._engine.before(question)
        return self._crew.map(question, args)

    def ask_all(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> list[T]:
        self._engine.before(question)
        return self._crew.ask_all(question, args)

    def ask_at(self, place: int, question: Callable[..., T], args: tuple[Any, ...]) -> T:
        self._engine.before(question)
        return self._crew.ask_at(place, question, args)

    def pipeline(
        self, question: Callable[..., T], jobs: Iterable[Job], depth: int, ordered: bool
    ) -> Iterator[tuple[int, T]]:
        self._engine.before(question)
        return self._crew.pipeline(question, jobs, depth, ordered)

    def abreast(self, most: int) -> Crew:
        return _Mortal(self._engine, self._crew.abreast(most))

    def settle(self, asked: Sequence[Asked]) -> None:
        self._crew.settle(asked)
