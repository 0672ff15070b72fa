"""Sentences of all clients in one queue, translated in batches by a few threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import perf_counter
from typing import Any, Generic, TypeVar

from tunesmith.errors import InputError
from tunesmith.serve.settings import RequestError, busy

Found = TypeVar("Found")
Way = TypeVar("Way")
"""How sentences are translated; only sentences with an equal one are put into one batch."""
SLICE = 0.005
"""Seconds that a batch may take, more or less. All answers of a batch wait for its last sentence:
16 sentences of 10 ms each would hold back the first answer for 160 ms."""
NEWS = 0.2
"""The share of a batch in the mean time of a sentence, which changes with model and load."""


@dataclass(frozen=True)
class How:
    """What is wanted of translations."""

    details: int = 0
    """The number of derivations that are wanted."""
    local: bool = False
    """Whether each sentence gets weights of its own."""


@dataclass(eq=False)
class Ticket(Generic[Way, Found]):
    """The sentences of one request."""

    lines: Sequence[str]
    how: Way
    future: Future[list[Found]]
    results: list[Any] = field(default_factory=list)
    given: int = 0
    """How many of the sentences workers took."""
    done: int = 0
    begun: float = field(default_factory=perf_counter)
    waited: float | None = None
    """Seconds until a worker took the first sentence."""

    def __post_init__(self) -> None:
        self.results = [None] * len(self.lines)


class Batcher(Generic[Way, Found]):
    """Threads that take sentences from a queue, one of each request in turn.

    A worker takes its share of what waits, but no more than `batch` sentences and no more than it
    translates in about `seconds`: fast decoders save time by batches, slow ones would only hold
    back answers. No batch waits for more sentences, nor for another worker. A sentence that cannot
    be translated fails its own request only.
    """

    def __init__(
        self,
        translate: Callable[[Sequence[str], Way], Sequence[Found]],
        *,
        workers: int,
        batch: int,
        queue: int,
        seconds: float = SLICE,
        observe: Callable[[int, float], object] = lambda size, seconds: None,
    ) -> None:
        self._translate = translate
        self._workers, self._batch, self._limit = workers, batch, queue
        self._seconds = seconds
        self._each: float | None = None
        """Seconds that a sentence took lately; None before the first."""
        self._observe = observe
        self._tickets: deque[Ticket[Way, Found]] = deque()
        self._changed = Condition()
        self._open = True
        self.waiting = 0
        """Sentences that no worker has taken."""
        self._threads = [
            Thread(target=self._work, name=f"translator-{number}", daemon=True)
            for number in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, lines: Sequence[str], how: Way) -> Ticket[Way, Found]:
        """Queue the sentences of a request; raise if too many wait."""
        ticket: Ticket[Way, Found] = Ticket(lines, how, Future())
        if not lines:
            ticket.future.set_result([])
            return ticket
        with self._changed:
            if not self._open:
                raise busy("stopping", "the service is stopping")
            if self.waiting + len(lines) > self._limit:
                raise busy(
                    "queue_full",
                    f"{self.waiting:,} sentences wait and the queue holds {self._limit:,}: "
                    "send fewer, or send them later",
                )
            self.waiting += len(lines)
            self._tickets.append(ticket)
            self._changed.notify(min(len(lines), self._workers))
        return ticket

    def cancel(self, ticket: Ticket[Way, Found]) -> None:
        """Forget the sentences of a request that no worker has taken."""
        with self._changed:
            if ticket in self._tickets:
                self._tickets.remove(ticket)
                self.waiting -= len(ticket.lines) - ticket.given
        ticket.future.cancel()

    def close(self) -> None:
        """Translate what waits, and end the threads."""
        with self._changed:
            self._open = False
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _take(self) -> list[tuple[Ticket[Way, Found], int]]:
        """Return sentences that are translated in the same way, none at the end."""
        with self._changed:
            while self._open and not self._tickets:
                self._changed.wait()
            if not self._tickets:
                return []
            # Leave the other workers their share.
            size = min(self._batch, -(-self.waiting // self._workers), self._quick())
            how = self._tickets[0].how
            taken: list[tuple[Ticket[Way, Found], int]] = []
            passed = 0
            while self._tickets and len(taken) < size and passed < len(self._tickets):
                ticket = self._tickets.popleft()
                if ticket.how != how:
                    self._tickets.append(ticket)
                    passed += 1
                    continue
                passed = 0
                if ticket.waited is None:
                    ticket.waited = perf_counter() - ticket.begun
                taken.append((ticket, ticket.given))
                ticket.given += 1
                if ticket.given < len(ticket.lines):
                    self._tickets.append(ticket)
            self.waiting -= len(taken)
            return taken

    def _quick(self) -> int:
        """Return how many sentences are translated in time: one where that is unknown."""
        if self._each is None:
            return 1
        return max(1, int(self._seconds / self._each)) if self._each else self._batch

    def _work(self) -> None:
        while taken := self._take():
            begun = perf_counter()
            found = self._answers(taken)
            each = (perf_counter() - begun) / len(taken)
            with self._changed:
                before = each if self._each is None else self._each
                self._each = before + NEWS * (each - before)
            for (ticket, place), answer in zip(taken, found, strict=True):
                self._give(ticket, place, answer)
            self._observe(len(taken), perf_counter() - begun)

    def _answers(self, taken: list[tuple[Ticket[Way, Found], int]]) -> list[Found | BaseException]:
        lines = [ticket.lines[place] for ticket, place in taken]
        how = taken[0][0].how
        # A panic of the core is no Exception, and must not end the worker either.
        try:
            return list(self._translate(lines, how))
        except BaseException as error:
            if len(lines) == 1:
                return [error]
        return [each for one in taken for each in self._answers([one])]

    def _give(self, ticket: Ticket[Way, Found], place: int, found: Found | BaseException) -> None:
        with self._changed:
            ticket.results[place] = found
            ticket.done += 1
            last = ticket.done == len(ticket.lines)
        if not last or not ticket.future.set_running_or_notify_cancel():
            return
        failed = next((each for each in ticket.results if isinstance(each, BaseException)), None)
        if failed is None:
            ticket.future.set_result(ticket.results)
        else:
            ticket.future.set_exception(_refusal(failed))


def _refusal(error: BaseException) -> RequestError:
    """Return the answer to a request with a sentence that cannot be translated."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, InputError):
        remedy = "" if error.remedy is None else f" ({error.remedy})"
        return RequestError(422, "bad_text", f"{error.message}{remedy}")
    message = f"a sentence could not be translated: {type(error).__name__}: {error}"
    return RequestError(500, "failed", message)
