"""The service measured: steady load for ten minutes, and processes killed while they write.

First all lines are asked for once, so that caches are full. Then a few clients ask as fast as they
get answers, and the decoder's own throughput is measured: the service says how long its decoder
took for how many sentences. After that the load has a fixed rate, 90% of that throughput. It comes
at times of its own, whether or not earlier requests were answered, so that a service that is too
slow is found out; the time of a request counts from the moment at which it was due.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.data import Setting
from benchmarks.harness import Claim, Outcome, say
from benchmarks.local_bench import KEPT, captions, captions_model, captions_translator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
SHARE, SECONDS, CONNECTIONS = 0.9, 600, 200
IDLE = 2
"""Seconds after which a connection is made anew: the service closes one that is idle for five."""
SATURATED, CLIENTS = 20, 8
"""Seconds for which the decoder is kept busy, and how many clients do it."""
TURNS = 100


@dataclass
class Loaded:
    """What clients saw, and what the service used."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    resident: list[tuple[float, int, int]] = field(default_factory=list)
    """Time since the start, bytes of its own, and bytes of mapped files."""
    behind: float = 0.0
    """Seconds by which the latest request was sent after it was due: the load's own fault."""


class Client:
    """A connection that is kept, for one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._used = 0.0

    async def ask(self, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return status and body of the answer; POST where there is something to send."""
        if time.perf_counter() - self._used > IDLE:
            self.close()
        if self._streams is None:
            self._streams = await asyncio.open_connection(self._host, self._port)
        reader, writer = self._streams
        head = (
            f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        try:
            writer.write(head.encode() + body)
            top = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
            fields = dict(line.lower().split(": ", 1) for line in top[1:] if ": " in line)
            content = await reader.readexactly(int(fields["content-length"]))
            self._used = time.perf_counter()
            return int(top[0].split()[1]), content
        except BaseException:
            writer.close()
            self._streams = None
            raise

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


def resident(process: int) -> tuple[int, int]:
    """Return the resident memory of a process in bytes: its own, and that of mapped files."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    sizes = dict(line.split(":", 1) for line in status.splitlines() if line.startswith("Rss"))
    own, mapped = (int(sizes[name].split()[0]) * 1024 for name in ("RssAnon", "RssFile"))
    return own, mapped


async def decoded(client: Client) -> tuple[float, float]:
    """Return how many sentences a service has decoded, and the seconds that its decoder took."""
    _, text = await client.ask("/metrics")
    figures = dict(line.split(" ", 1) for line in text.decode().splitlines() if line[0] != "#")
    count, seconds = (
        float(figures[name])
        for name in ("tunesmith_sentences_total", "tunesmith_batch_seconds_sum")
    )
    return count, seconds


def clients(url: str, count: int) -> list[Client]:
    """Return clients of a service."""
    address = urlsplit(url)
    assert address.hostname is not None and address.port is not None
    return [Client(address.hostname, address.port) for _ in range(count)]


async def request(client: Client, line: str, errors: list[str]) -> None:
    """Ask for the translation of a line, and note what went wrong."""
    body = {"q": line, "source": "de", "target": "en"}
    try:
        status, answer = await client.ask("/translate", json.dumps(body).encode())
        if status != 200 or not json.loads(answer)["translatedText"]:
            errors.append(f"status {status}")
    except (OSError, EOFError, ValueError, KeyError) as error:
        errors.append(repr(error))


@dataclass(frozen=True)
class Throughput:
    """Sentences a second of a service that is never idle."""

    decoder: float
    """In the seconds that the decoder took."""
    service: float
    """In seconds on the clock."""
    errors: list[str]


async def saturated(
    url: str, lines: Sequence[str], seconds: float = 0.0, count: int = 0
) -> Throughput:
    """Ask as fast as answers come, for some time or for a number of sentences."""
    observer, *several = clients(url, 1 + CLIENTS)
    errors: list[str] = []
    numbers = itertools.count()
    begun = time.perf_counter()

    async def ask(client: Client) -> None:
        for number in numbers:
            late = time.perf_counter() - begun >= seconds
            if number >= count if count else late:
                return
            await request(client, lines[number % len(lines)], errors)

    before = await decoded(observer)
    await asyncio.gather(*map(ask, several))
    wall = time.perf_counter() - begun
    after = await decoded(observer)
    for client in (observer, *several):
        client.close()
    done = after[0] - before[0]
    return Throughput(done / (after[1] - before[1]), done / wall, errors)


async def steady(
    url: str, process: int, lines: Sequence[str], rate: float, seconds: float
) -> Loaded:
    """Ask for sentences at a fixed rate for some time."""
    loaded = Loaded()
    every = clients(url, CONNECTIONS)
    idle = list(every)
    running: set[asyncio.Task[None]] = set()

    async def ask(client: Client, number: int, due: float) -> None:
        await request(client, lines[number % len(lines)], loaded.errors)
        loaded.seconds.append(time.perf_counter() - due)
        idle.append(client)

    begun, noted = time.perf_counter(), 0.0
    for number in range(round(rate * seconds)):
        due = begun + number / rate
        while (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        loaded.behind = max(loaded.behind, time.perf_counter() - due)
        if due - begun >= noted:
            loaded.resident.append((due - begun, *resident(process)))
            noted += min(5.0, seconds / 20)
        if not idle:
            # Everybody waits: the service is behind, and this request is turned away.
            loaded.errors.append("all connections are busy")
            continue
        task = asyncio.create_task(ask(idle.pop(), number, due))
        running.add(task)
        task.add_done_callback(running.discard)
        await asyncio.sleep(0)
    await asyncio.gather(*running)
    for client in every:
        client.close()
    return loaded


def load(setting: Setting) -> Outcome:
    """Return errors, latency and memory at 90% of the decoder's own throughput."""
    from serving import process

    outcome = Outcome("The service under steady load, one worker thread, on loopback")
    seconds, filling = (20, SATURATED / 4) if setting.quick else (SECONDS, SATURATED)
    names = ("val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    lines = [line for name in names for line in captions(setting, name)[0]]
    lines = lines[: 300 if setting.quick else None]
    for kind in ("hiero",):
        captions_translator(setting, kind)
        words = ("--kind", kind, "--weights", KEPT / "captions" / f"{kind}.toml", "--threads", "1")
        with (
            tempfile.TemporaryDirectory() as store,
            process(captions_model(setting), *words, "--store", store) as (started, url),
        ):
            say(f"  {kind}: every line once")
            first = asyncio.run(saturated(url, lines, count=len(lines)))
            able = asyncio.run(saturated(url, lines, seconds=filling))
            rate = SHARE * able.decoder
            say(f"  {kind}: {rate:.1f} requests a second for {seconds} seconds")
            found = asyncio.run(steady(url, started.pid, lines, rate, seconds))
        errors = [*first.errors, *able.errors, *found.errors]
        ordered = sorted(found.seconds)
        warm = [own for at, own, _ in found.resident if at >= seconds / 5]
        grown = 100 * (statistics.mean(warm[-5:]) / statistics.mean(warm[:5]) - 1)
        outcome.rows.append(
            {
                "decoder": kind,
                "seconds": seconds,
                "decoder, sentences/s": able.decoder,
                "requests": len(ordered),
                "requests/s": len(ordered) / seconds,
                "errors": len(errors),
                "p50, ms": 1000 * statistics.median(ordered),
                "p99, ms": 1000 * ordered[int(0.99 * (len(ordered) - 1))],
                "most, ms": 1000 * ordered[-1],
                "memory at start, MB": found.resident[0][1] / 1e6,
                "after a fifth, MB": statistics.mean(warm[:5]) / 1e6,
                "at the end, MB": statistics.mean(warm[-5:]) / 1e6,
            }
        )
        outcome.claims += [
            Claim(f"{kind}: errors", float(len(errors)), 0, "at most"),
            Claim(f"{kind}: memory grows after the first fifth by", grown, 5, "at most", "%"),
        ]
        outcome.notes += [f"errors: {', '.join(sorted(set(errors))[:5])}"] * bool(errors)
        outcome.notes += [
            f"{len(lines):,} sentences of Multi30k in turn, one a request, each asked for once "
            f"before; then {CLIENTS} clients without a pause for {filling:g} seconds: "
            f"{able.decoder:.1f} sentences a second of the decoder's own time, "
            f"{able.service:.1f} on the clock",
            f"a fixed rate of {100 * SHARE:.0f}% of the former; a request's time counts from the "
            f"moment at which it was due; the load itself was late by {1000 * found.behind:.0f} ms "
            "at most",
            f"memory of its own; {found.resident[-1][2] / 1e6:.0f} MB of mapped files come to it",
        ]
    outcome.notes.append(
        f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    return outcome


def kills(setting: Setting) -> Outcome:
    """Return what is lost when services are killed while clients send corrections."""
    from serving import killed_while_writing, write_model

    turns = 5 if setting.quick else TURNS
    outcome = Outcome(f"Corrections when the service is killed (SIGKILL) {turns} times")
    with tempfile.TemporaryDirectory() as folder:
        model = write_model(Path(folder))
        told, kept = killed_while_writing(model, Path(folder) / "store", turns)
    lost = sum(kept.get(number) != text for number, text in told.items())
    outcome.rows.append(
        {"killed": turns, "acknowledged": len(told), "found again": len(kept), "lost": lost}
    )
    outcome.notes.append(
        "four clients write without a pause; what was found beyond what was acknowledged had been "
        "written when the process was killed"
    )
    outcome.claims.append(Claim("acknowledged corrections that are lost", lost, 0, "at most"))
    return outcome
