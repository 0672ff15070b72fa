"""The settings of a service: limits, feedback, access; and the errors that requests get."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tunesmith.decode.model_weights import Kind

CHARACTERS = 20
"""Characters that count as one word at least, so that text without spaces is limited too."""


@dataclass(frozen=True)
class Limits:
    """What one request, one client and all requests together may ask for."""

    body: int = 1 << 20
    """Bytes of a request's body."""
    sentences: int = 500
    """Sentences of a request."""
    words: int = 200
    """Words of a sentence."""
    long: Literal["refuse", "split"] = "refuse"
    """What happens to longer sentences."""
    nbest: int = 100
    """Translations of a sentence."""
    requests: int = 200
    """Requests that are answered at the same time."""
    queue: int = 5000
    """Sentences that wait for a worker."""
    batch: int = 16
    """Sentences that a worker takes at a time; fewer where these take long."""
    seconds: float = 30.0
    """Time for a request, from its first byte to its answer."""
    writes: int = 1000
    """Feedback that waits for the disk."""

    @property
    def characters(self) -> int:
        """Characters of a sentence."""
        return self.words * CHARACTERS


@dataclass(frozen=True)
class Feedback:
    """What happens to corrections."""

    accept: bool = True
    """Use what passes the filters at once; otherwise everything waits for review."""
    memory: bool = False
    """Answer with the newest accepted correction of the same sentence."""
    open: bool = False
    """Whoever reaches the service may write and review; only on the loopback interface."""
    ratio: float = 3.0
    """A translation that is so many times longer or shorter than its source is held."""
    coverage: float = 0.25
    """A translation with a smaller share of words that the model expects is held."""
    rate: int = 30
    """More corrections per minute from one token are held; ten times as many are refused."""


@dataclass(frozen=True)
class Paths:
    """The files of a service. Requests never name files: a reload reads these again."""

    model: Path
    weights: Path | None = None
    kind: Kind | None = None
    search: Mapping[str, float] = field(default_factory=dict)
    local: Path | None = None
    method: str | None = None
    store: Path | None = None


@dataclass(frozen=True)
class Access:
    """Who may ask."""

    private: bool = False
    """Reading needs a token, too."""
    origins: tuple[str, ...] = ()
    """Web pages of other origins that may ask; "*" for all."""
    hosts: tuple[str, ...] | None = None
    """Names that requests may address; None for all. Guards against rebinding of names."""


@dataclass(frozen=True)
class Settings:
    """A whole service."""

    paths: Paths
    limits: Limits = Limits()
    feedback: Feedback = Feedback()
    access: Access = Access()
    workers: int = 0
    """Threads that translate; 0: one per core."""


class RequestError(Exception):
    """A request that is answered with an error: a status, a code for programs, a message."""

    def __init__(
        self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.headers = dict(headers or {})


def busy(code: str, message: str, status: int = 503, seconds: int = 1) -> RequestError:
    """Return the error for a request that may succeed if it comes again later."""
    return RequestError(status, code, message, {"Retry-After": str(seconds)})
