"""The engine of a Ray cluster, or of several processes on this machine.

Workers are actors. Each is sent the pickled share of a crew once, and answers questions about it.
Actors are kept from crew to crew, because a process takes a second to start.

The driver can replace any actor: it keeps each share, and the questions that changed a worker since
the crew last settled. A new actor is sent the share, is asked those questions again in their order,
and then the one that was under way. The lost actor's state is gone with it, so nothing counts
twice, and the answers are those of the lost one to the bit.

Ray itself never repeats a call here: it does not know which questions came before.
"""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import pickle
import secrets
import shutil
import socket
import sys
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tunesmith.engines.base import (
    Asked,
    Crew,
    Dealt,
    Effect,
    Job,
    P,
    Question,
    T,
    Worker,
    effect_of,
    pipelined,
)
from tunesmith.engines.pool import Pool
from tunesmith.engines.ray_files import received, sent, shelf
from tunesmith.errors import InputError

TIMEOUT = 3600.0
"""Seconds to wait for one answer."""
LONGEST = 1e9
"""Seconds that may be waited for an answer at most: Ray counts them in a machine's integers."""
START = 120.0
"""Seconds to wait for a cluster, and for a place in it."""
MEMORY = 256 << 20
"""Bytes of shared memory for objects on their way; larger ones go through files."""
ATTEMPTS = 5
"""How many actors may be lost with the same question, before the question is to blame."""
STARTS = 20
"""How many actors may be lost in a row before they come to a question."""
KNOCK = 10.0
"""Seconds to wait for the head of a cluster."""
LOCAL, AUTO = "local", "auto"
ROOM = 24
"""Characters of a folder for temporary files, at most: Ray's sockets in it have long names."""
_FOLDER = "RAY_TMPDIR"
_NICENESS = "RAY_worker_niceness"
_TOKENS = {"RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"}
_MADE: set[str | None] = set()
"""Tokens that this process gave its own Ray."""


class Ray:
    """Work in the processes of a Ray cluster; without an address, in processes of this machine.

    `workers` is their number: by default one per node of the cluster, or one per core of this
    machine. An answer that takes longer than `timeout` seconds is asked of a new worker, once.

    The engine starts when its first crew is made. Close it, or use it in a `with` block: this ends
    its workers, and Ray on this machine if the engine started it.
    """

    def __init__(
        self,
        workers: int | None = None,
        address: str | None = None,
        *,
        timeout: float = TIMEOUT,
        memory: int = MEMORY,
    ) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"{workers} workers", remedy="give at least one")
        if not 0.0 < timeout <= LONGEST:
            raise InputError(
                f"a timeout of {timeout:g} seconds", remedy=f"give seconds, at most {LONGEST:.0f}"
            )
        if address is not None:
            _parsed(address)
        self.workers, self.address, self.timeout, self.memory = workers, address, timeout, memory
        self.replaced = 0
        """How many workers were lost or late, and replaced."""
        self._seats: list[_Seat] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._started_ray = False
        self._folder: str | None = None
        self._shelf: Any = None

    def crew(self, share: Any, threads: int) -> Crew:
        """Return workers that were sent a share.

        `threads` are those of each worker; 0 divides the cores of a node among its workers.
        """
        with self._lock:
            if not self._seats:
                self._start()
        return _Actors(self, next(self._numbers), share, threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ray(workers={self.workers}, address={self.address!r})"

    def close(self) -> None:
        """End the workers, and Ray itself if the engine started it."""
        with self._lock:
            if self._seats and _ray().is_initialized():
                for seat in self._seats:
                    seat.leave()
                if self._shelf is not None:
                    _ray().kill(self._shelf)
            self._seats, self._shelf = [], None
            if self._started_ray:
                _ray().shutdown()
                self._started_ray = False
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    def shelf(self) -> Any:
        """Return the actor from which other machines fetch files; None on this machine alone."""
        with self._lock:
            if self._shelf is None and self.address is not None:
                self._shelf = shelf(_ray())
            return self._shelf

    def _start(self) -> None:
        if self.address is None:
            _lock_door()
        else:
            _knock(self.address)
        ray = _ray()
        if not ray.is_initialized():
            self._connect()
        cores, nodes = int(ray.cluster_resources().get("CPU", 1)), len(_alive(ray))
        apart = self.address is not None
        count = self.workers or (nodes if apart else os.cpu_count() or 1)
        if not apart:
            cores = os.cpu_count() or 1
        threads = max(cores // count, 1)
        seats = [_Seat(self, threads, apart) for _ in range(count)]
        try:
            for seat in seats:
                seat.await_actor()
        except BaseException:
            for seat in seats:
                seat.leave()
            raise
        self._seats = seats

    def _connect(self) -> None:
        """Start Ray on this machine, or connect to a cluster."""
        ray = _ray()
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if self.address is None:
            quiet |= {
                "num_cpus": self.workers or os.cpu_count() or 1,
                "num_gpus": 0,
                "object_store_memory": self.memory,
                "include_dashboard": False,
            }
            if _NICENESS not in os.environ:
                # Ray would let its workers wait for all other work of the machine.
                quiet["_system_config"] = {"worker_niceness": 0}
            if _FOLDER not in os.environ:
                # Ray lets every user of the machine write where its workers read pickles, and
                # deletes nothing. Around that folder is one that only this user may enter.
                quiet["_temp_dir"] = f"{self._own_folder()}/r"
        try:
            ray.init(address=self.address or LOCAL, **quiet)
        except Exception as error:
            # Ray has no type of its own for a start that takes too long.
            where = "on this machine" if self.address is None else f"at {self.address}"
            raise InputError(
                f"no Ray {where}: {_told(error)}",
                remedy="check free memory, other work on the machine and the limit of processes"
                if self.address is None
                else "start one with ray start --head, give its HOST:PORT, and set RAY_AUTH_MODE "
                "and RAY_AUTH_TOKEN_PATH as on its nodes",
            ) from None
        self._started_ray = True

    def _own_folder(self) -> str:
        """Return a new folder that nobody else may enter; it is deleted when the engine closes."""
        place = os.environ.get("TMPDIR", "/tmp")
        self._folder = tempfile.mkdtemp(prefix="ray-", dir=place if len(place) <= ROOM else "/tmp")
        # Processes of a Ray that did not start end when this one exits, and write until then. What
        # is registered first comes last.
        atexit.register(shutil.rmtree, self._folder, ignore_errors=True)
        return self._folder


class _Seat:
    """The place of one worker; the actor that sits there may change."""

    def __init__(self, engine: Ray, threads: int, apart: bool) -> None:
        self._engine, self._threads, self._apart = engine, threads, apart
        self._lock = threading.Lock()
        self._turn = 0
        self.gone: deque[int] = deque()
        """Crews that nobody asks any more, and that the actor may still hold."""
        self._actor = self._new()

    @property
    def now(self) -> tuple[int, Any]:
        """How many actors sat here before, and the one that does."""
        with self._lock:
            return self._turn, self._actor

    def _new(self) -> Any:
        # An actor's reservation of CPUs decides only where it runs. Ray sets OMP_NUM_THREADS to
        # one for it, which all libraries for linear algebra obey: the core has its own threads.
        return (
            _ray()
            .remote(_Station)
            .options(
                num_cpus=1 if self._apart else 0,
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy="SPREAD",
            )
            .remote(self._threads, sys.path)
        )

    def leave(self) -> None:
        """End the actor."""
        _ray().kill(self._actor)

    def replace(self, turn: int) -> None:
        """Put a new actor here, unless another crew has done so since that turn."""
        with self._lock:
            if turn == self._turn:
                self.leave()
                self._turn += 1
                self._engine.replaced += 1
                self._actor = self._new()

    def taken(self) -> list[int]:
        """Take the crews that nobody asks any more; several threads may, each gets some."""
        found = list[int]()
        # Asking first how many there are would leave time for another thread to take them.
        with suppress(IndexError):
            while True:
                found.append(self.gone.popleft())
        return found

    def await_actor(self) -> None:
        """Wait until the actor runs; raise if the cluster has no place for it."""
        ray, until = _ray(), time.monotonic() + START
        for _ in range(STARTS):
            turn, actor = self.now
            try:
                ray.get(actor.ready.remote(), timeout=max(until - time.monotonic(), 0.0))
                return
            except ray.exceptions.GetTimeoutError:
                raise InputError(
                    f"no place for a worker in {START:g} seconds",
                    remedy="give fewer --workers, or add nodes: each worker takes one CPU",
                ) from None
            except ray.exceptions.RayError as error:
                why = _told(error)
                self.replace(turn)
        remedy = "install the same versions of Tunesmith and Python on all nodes"
        if self._apart and _token() in _MADE:
            remedy = (
                "connect in a new process: this one began a Ray of its own, whose token it keeps, "
                "and the cluster does not know it"
            )
        raise InputError(f"{STARTS} workers were lost before they began: {why}", remedy=remedy)


@dataclass(frozen=True)
class _Sent:
    """A question on its way to an actor."""

    place: int
    asked: bytes
    turn: int
    ready: Any
    """Done when the actor has come to the questions of the crew."""
    ref: Any


class _Station:
    """What runs in an actor: the workers of this place, by crew."""

    def __init__(self, threads: int, paths: Sequence[str]) -> None:
        # Metrics and parts of tuners may come from modules of the user.
        sys.path.extend(path for path in paths if path not in sys.path)
        # Read when the core makes its pool of "one thread per core".
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        self._threads = threads
        self._workers: dict[int, Worker] = {}
        self._failed: dict[int, Exception] = {}

    def ready(self) -> None:
        """Say that the process runs."""

    def hold(self, crew: int, share: bytes, threads: int, files: Any) -> None:
        """Take a crew's share; its files come from an actor, if they are not here."""
        self._failed.pop(crew, None)
        try:
            found = received(_ray(), share, files, TIMEOUT)
            self._workers[crew] = Worker(found, Pool(threads or self._threads))
        except Exception as error:
            self._failed[crew] = error

    def drop(self, crews: Sequence[int]) -> None:
        """Forget crews."""
        for crew in crews:
            self._workers.pop(crew, None)
            self._failed.pop(crew, None)

    def again(self, crew: int, asked: bytes) -> None:
        """Ask a question whose answer is known."""
        try:
            self._ask(crew, asked)
        except Exception as error:
            self._failed[crew] = error

    def answer(self, crew: int, asked: bytes) -> bytes:
        """Return the answer to a question, or what it raised, pickled."""
        try:
            return pickle.dumps((True, self._ask(crew, asked)))
        except Exception as error:
            return _failed(error)

    def _ask(self, crew: int, asked: bytes) -> Any:
        if crew in self._failed:
            raise self._failed[crew]
        question, args, named = pickle.loads(asked)
        return question(self._workers[crew], *args, **named)


class _Actors:
    """A crew: the driver's side of workers that hold a share."""

    def __init__(self, engine: Ray, number: int, share: Any, threads: int) -> None:
        self._engine, self._number, self._threads = engine, number, threads
        self._seats = list(engine._seats)
        self.size = len(self._seats)
        self._files = False
        if isinstance(share, Dealt):
            self._shares = [_ray().put(self._sent(part)) for part in share.parts(self.size)]
        else:
            self._shares = [_ray().put(self._sent(share))] * self.size
        self._log: list[list[tuple[Effect, bytes]]] = [[] for _ in self._seats]
        # A worker that is never asked holds nothing.
        self._moved: list[tuple[int, Any, Any]] = [(-1, None, None)] * self.size
        weakref.finalize(self, _forget, self._seats, number)

    def _sent(self, share: Any) -> bytes:
        """Return a share for the journey, with a description of its files."""
        found, files = sent(_ray(), share)
        self._files = self._files or files
        return found

    def ask(self, question: Question[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return self._answers(question, [(0, args, kwargs)])[0]

    def ask_at(self, place: int, question: Callable[..., T], args: tuple[Any, ...]) -> T:
        return self._answers(question, [(place, args, {})])[0]

    def ask_all(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> list[T]:
        return self._answers(
            question,
            [(place, each, {}) for place, each in zip(range(self.size), args, strict=True)],
        )

    def map(self, question: Callable[..., T], args: Sequence[tuple[Any, ...]]) -> Iterator[T]:
        # Two questions wait at each worker, so that none is idle while the driver reads answers.
        ray = _ray()
        coming = enumerate(_packed((question, each, {})) for each in args)
        free = deque(place for _ in range(2) for place in range(self.size))
        under_way: dict[int, _Sent] = {}
        found: dict[int, Any] = {}
        for wanted in range(len(args)):
            while wanted not in found:
                while free and (following := next(coming, None)) is not None:
                    under_way[following[0]] = self._send(free.popleft(), following[1])
                refs = {sent.ref: number for number, sent in under_way.items()}
                done, _ = ray.wait(list(refs), num_returns=1, timeout=self._engine.timeout)
                # After the time-out, the question that is wanted first has waited longest.
                number = refs[done[0]] if done else min(under_way)
                sent = under_way.pop(number)
                found[number] = self._receive(sent, question)
                free.append(sent.place)
            yield found.pop(wanted)

    def pipeline(
        self, question: Callable[..., T], jobs: Iterable[Job], depth: int, ordered: bool
    ) -> Iterator[tuple[int, T]]:
        ray = _ray()

        def send(place: int, args: tuple[Any, ...]) -> _Sent:
            return self._send(place, _packed((question, args, {})))

        def ready(sent: list[_Sent]) -> int:
            if ordered:
                return 0
            refs = [each.ref for each in sent]
            done, _ = ray.wait(refs, num_returns=1, timeout=self._engine.timeout)
            # After the time-out, the first question has waited longest.
            return refs.index(done[0]) if done else 0

        def receive(sent: _Sent) -> T:
            found: T = self._receive(sent, question)
            return found

        return pipelined(jobs, self.size, depth, send, ready, receive)

    def abreast(self, most: int) -> Crew:
        del most  # processes work side by side already
        return self

    def settle(self, asked: Sequence[Asked]) -> None:
        log: list[list[tuple[Effect, bytes]]] = [[] for _ in self._seats]
        for question, args in asked:
            packed = _packed_once(question, [(each, {}) for each in args])
            for own, each in zip(log, packed, strict=True):
                own.append((effect_of(question), each))
        self._log = log

    def _answers(
        self,
        question: Callable[..., T],
        asked: Sequence[tuple[int, tuple[Any, ...], dict[str, Any]]],
    ) -> list[T]:
        several = _packed_once(question, [(args, named) for _, args, named in asked])
        packed = [(place, each) for (place, *_), each in zip(asked, several, strict=True)]
        sent = [self._send(place, each) for place, each in packed]
        answers = [self._receive(each, question) for each in sent]
        effect = effect_of(question)
        for place, each in packed:
            if effect in (Effect.BEGINS, Effect.GROWS):
                self._log[place] = [old for old in self._log[place] if old[0] is Effect.GROWS]
            if effect is not Effect.READS:
                self._log[place].append((effect, each))
        return answers

    def _send(self, place: int, asked: bytes) -> _Sent:
        """Ask the actor at a place; bring a new one to where the crew is first."""
        seat = self._seats[place]
        if self._moved[place][0] != seat.now[0]:
            self._moved[place] = self._move_in(place)
        turn, actor, ready = self._moved[place]
        if gone := seat.taken():
            actor.drop.remote(gone)
        return _Sent(place, asked, turn, ready, actor.answer.remote(self._number, asked))

    def _move_in(self, place: int) -> tuple[int, Any, Any]:
        """Send the share to an actor, and ask what changed its predecessors; return its turn,
        the actor, and what is done when it is done.

        Calls of one caller run in their order, so the driver need not wait between them. If one of
        them fails, the question that follows raises its error.
        """
        turn, actor = self._seats[place].now
        files = self._engine.shelf() if self._files else None
        ready = actor.hold.remote(self._number, self._shares[place], self._threads, files)
        for _, each in self._log[place]:
            ready = actor.again.remote(self._number, each)
        return turn, actor, ready

    def _receive(self, sent: _Sent, question: Callable[..., Any]) -> Any:
        """Wait for an answer; replace an actor that is lost or late, and ask the new one."""
        ray, late, why = _ray(), False, ""
        attempts = starts = 0
        while attempts < ATTEMPTS and starts < STARTS:
            try:
                good, value = pickle.loads(ray.get(sent.ref, timeout=self._engine.timeout))
            except ray.exceptions.GetTimeoutError:
                if late:
                    raise InputError(
                        f"no answer to {question.__name__} in {self._engine.timeout:g} seconds",
                        remedy="allow more with --timeout SECONDS, or give more --workers",
                    ) from None
                late = True
            except ray.exceptions.RayTaskError:
                raise
            except ray.exceptions.RayError as error:
                why = _told(error)
                if _is_done(sent.ready):
                    attempts += 1
                else:
                    starts += 1
            else:
                if good:
                    return value
                raise value
            seat = self._seats[sent.place]
            seat.replace(sent.turn)
            seat.await_actor()
            sent = self._send(sent.place, sent.asked)
        raise InputError(
            f"{attempts + starts} workers were lost with the question {question.__name__}: {why}",
            remedy="look for lack of memory on the nodes; fewer --workers on each need less",
        )


def _failed(error: Exception) -> bytes:
    """Return what a question raised, pickled; by its name, if the driver could not read it."""
    try:
        found = pickle.dumps((False, error))
        # Many classes of errors can be written, and not made again from what is written.
        pickle.loads(found)
    except Exception:
        found = pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
    return found


def _is_done(ref: Any) -> bool:
    """Whether a call has ended well."""
    ray = _ray()
    try:
        ray.get(ref, timeout=0)
    except ray.exceptions.RayError:
        return False
    return True


def _forget(seats: Sequence[_Seat], number: int) -> None:
    # Runs when Python collects garbage, at any moment: no call of Ray here.
    for seat in seats:
        seat.gone.append(number)


def _packed(value: Any) -> bytes:
    """Return a value for the journey; what is defined in the user's main script goes with it."""
    found: bytes = _ray().cloudpickle.dumps(value)
    return found


def _packed_once(
    question: Callable[..., Any], asked: Sequence[tuple[tuple[Any, ...], dict[str, Any]]]
) -> list[bytes]:
    """Return a question with several arguments for the journey.

    Arguments that workers share, such as a learner's weights, are packed once and kept once.
    """
    once = {id(args): _packed((question, args, named)) for args, named in asked}
    return [once[id(args)] for args, _ in asked]


def _ray() -> Any:
    """Return the package, which takes a second to import; raise if it is not installed."""
    # Read when it is imported. Nobody's use of Tunesmith is reported.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # Ray would tell of lost workers on stdout, among translations.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
    try:
        import ray
    except ImportError:
        raise InputError(
            "the engine ray needs the package ray", remedy="pip install 'tunesmith[ray]'"
        ) from None
    return ray


def _lock_door() -> None:
    """Give a local Ray a token of its own: whoever reaches an open one may run code here.

    Ray reads these when it is imported. If it is imported already, its own defaults hold.
    """
    if "ray" not in sys.modules and not _TOKENS & os.environ.keys():
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        _MADE.add(_token())


def _token() -> str | None:
    return os.environ.get("RAY_AUTH_TOKEN")


def _knock(address: str) -> None:
    """Raise if nobody listens at an address: Ray itself would try for minutes."""
    where = _parsed(address)
    if where is None:
        return
    try:
        socket.create_connection(where, timeout=KNOCK).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray at {address}: {error}",
            remedy="start one with ray start --head, and give its HOST:PORT",
        ) from None


def _parsed(address: str) -> tuple[str, int] | None:
    """Return host and port of an address, None if Ray is to find it; raise if it is neither."""
    if address == AUTO:
        return None
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(
            f"--address {address}", remedy=f"give HOST:PORT of the head, or {AUTO} on a node of it"
        )
    return host.strip("[]"), int(port)


def _alive(ray: Any) -> list[Any]:
    return [node for node in ray.nodes() if node["Alive"]]


def _told(error: BaseException) -> str:
    """Return an error of Ray in one line."""
    return " ".join(str(error).split())[:300] or type(error).__name__
