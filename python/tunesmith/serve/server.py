"""The server: an address, signals, and a stop that lets requests finish."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from tunesmith.errors import InputError
from tunesmith.serve.settings import Limits

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Bytes of a request's first line and headers.
HEAD = 1 << 16


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> socket.socket:
    """Return a listening address; raise if it is taken or not of this machine."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
    except OSError as error:
        raise InputError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            remedy="give another --port (0: any free one) or --host",
        ) from error
    return made


def url_of(listening: socket.socket) -> str:
    """Return the address as a browser takes it."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(
    app: Starlette,
    listening: socket.socket,
    limits: Limits,
    started: Callable[[], object] = lambda: None,
) -> None:
    """Answer requests until SIGINT or SIGTERM; requests that were begun are answered first."""
    config = uvicorn.Config(
        app,
        http=partial(_Connection, seconds=limits.seconds),  # type: ignore[arg-type]
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=int(limits.seconds) + 1,
        h11_max_incomplete_event_size=HEAD,
    )
    _Server(config, started).run([listening])


class _Connection(H11Protocol):
    """A connection that is closed if it neither sends a request nor takes an answer in time.

    From the first byte of a body to the answer, the application looks at the time.
    """

    def __init__(self, *args: Any, seconds: float, **more: Any) -> None:
        super().__init__(*args, **more)
        self._seconds = seconds
        self._late: asyncio.TimerHandle | None = None
        self._unsent = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def on_response_complete(self) -> None:
        """Wait until the answer is taken, and for the next request."""
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._unsent = self.transport.get_write_buffer_size()
        self._late = self.loop.call_later(self._seconds, self._look)

    def _look(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            return
        if 0 < self.transport.get_write_buffer_size() < self._unsent:
            # A slow client that still takes its answer.
            self._wait()
        else:
            self.transport.abort()


class _Server(uvicorn.Server):
    """A server whose stop by a signal is a normal end."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object]) -> None:
        super().__init__(config)
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen, and say so."""
        await super().startup(sockets)
        if self.started:
            self._tell()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Stop on signals; a second SIGINT does not wait for requests."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {each: signal.signal(each, self._stop) for each in SIGNALS}
        try:
            yield
        finally:
            for each, handler in before.items():
                signal.signal(each, handler)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit and number == signal.SIGINT
        self.should_exit = True
