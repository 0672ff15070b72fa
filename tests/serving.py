"""A real service for tests: a small model, a server on the loopback interface, commands."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import uvicorn

from tunesmith.serve import Service, Settings, application
from tunesmith.serve.database import connect, open_store
from tunesmith.serve.server import bound, url_of
from tunesmith.serve.store import Store
from tunesmith.serve.tokens import new_token
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide

COMMAND = (sys.executable, "-c", "from tunesmith.__main__ import main; main()")
PAIRS = [
    ("Das Haus ist klein.", "The house is small."),
    ("Das Haus ist klein.", "The house is little."),
    ("Das Buch ist alt.", "The book is old."),
    ("Das Buch ist alt.", "The book is ancient."),
    ("Ein Haus.", "A house."),
    ("Ein Buch.", "A book."),
    ("Hier ist das Haus.", "Here is the house."),
    ("Hier ist ein Buch.", "Here is a book."),
    ("Die Bank ist alt.", "The bank is old."),
    ("Die Bank ist klein.", "The bench is small."),
]


def write_model(folder: Path, pairs: Sequence[tuple[str, str]] = PAIRS) -> Path:
    """Train a model from German into English with a few words, some of them ambiguous."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, side in (("src", 0), ("tgt", 1)):
        (folder / name).write_text("".join(f"{pair[side]}\n" for pair in pairs) * 10)
    sides = TextSide("de", "moses", "true"), TextSide("en", "moses", "true")
    train(Training(folder / "src", folder / "tgt", *sides, order=3), folder / "model", 1)
    return folder / "model"


def token_of(store: Path, scope: str = "write", name: str = "") -> str:
    """Return a new token of a store, which is made if there is none."""
    base = connect(open_store(store, create=True))
    try:
        return new_token(base, name, scope)
    finally:
        base.close()


@dataclass(frozen=True)
class Serving:
    """A running service."""

    url: str
    service: Service

    def client(self, token: str | None = None, **options: Any) -> httpx.Client:
        """Return a client that speaks to the service."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **options)


@contextmanager
def serving(settings: Settings) -> Iterator[Serving]:
    """Serve in a thread of this process, through a real socket."""
    service = Service(settings)
    listening = bound("127.0.0.1", 0)
    config = uvicorn.Config(application(service), log_config=None, lifespan="on", ws="none")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive()
        yield Serving(url_of(listening), service)
    finally:
        server.should_exit = True
        thread.join()


@contextmanager
def process(*words: object, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run `tunesmith serve` in a process of its own; yield it with its address."""
    command = [*COMMAND, "serve", *map(str, words), "--port", "0", "--json"]
    started = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    try:
        assert started.stdout is not None
        line = started.stdout.readline()
        assert line, started.communicate()[1]
        yield started, json.loads(line)["url"]
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


def killed_while_writing(
    model: Path, store: Path, turns: int, least: int = 30
) -> tuple[dict[int, str], dict[int, str]]:
    """Kill services while four clients send corrections; return what was told and what is there.

    A service is killed as soon as it has acknowledged `least` corrections or a few more. The one of
    the next turn opens what the one before left.
    """
    token = token_of(store)
    acknowledged: dict[int, str] = {}
    for turn in range(turns):
        with process(model, "--store", store, "--rate", 100_000) as (started, url):
            stopped = threading.Barrier(5)

            def write(who: int, url: str = url, turn: int = turn, stopped: Any = stopped) -> None:
                with httpx.Client(
                    base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30
                ) as client:
                    stopped.wait()
                    for count in range(10_000):
                        text = f"The house {turn} {who} {count}"
                        body = {"source": "Das Haus ist alt.", "translation": text}
                        try:
                            sent = client.post("/v1/feedback", json=body)
                        except httpx.HTTPError:
                            return
                        if sent.status_code == 201:
                            acknowledged[sent.json()["id"]] = text

            threads = [threading.Thread(target=write, args=(who,)) for who in range(4)]
            for thread in threads:
                thread.start()
            stopped.wait()
            goal = len(acknowledged) + least + 7 * (turn % 5)
            while len(acknowledged) < goal:
                assert started.poll() is None
                time.sleep(0.0005)
            started.send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join()
    with Store(store, 10) as found:
        kept = {each.id: each.translation for each in found.corrections(10**6, None, None, None)}
    return acknowledged, kept
