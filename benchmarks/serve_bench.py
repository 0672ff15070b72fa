"""The service measured: steady load for ten minutes, and processes killed while they write.

Lines come in a random order that is always the same: in the order of the files, long lines follow
long lines, and the load would not be steady. First all lines are asked for once, so that caches are
full. Then a few clients ask for all of them again, as fast as they get answers, and the decoder's
own throughput is measured: the service says how long its decoder took for how many sentences. After
that requests arrive at 90% of that throughput, whether or not earlier ones were answered, so that a
service that is too slow is found out. The time of a request counts from the moment at which it was
due.

Requests arrive evenly, one after the other at equal distances, or at random: independent clients
make a Poisson process. The target is about a steady load, so it is about even arrivals. At random
arrivals a queue is longer even if the service does nothing wrong.

The decoder's speed may change while the load lasts, because of other programs or other guests of
the same host. The service's own figures show that: its decoder's throughput in each stretch of five
seconds, and how many sentences waited.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.data import Setting
from benchmarks.harness import Cell, Claim, Outcome, say
from benchmarks.local_bench import KEPT, captions, captions_model, captions_translator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
SHARE, CONNECTIONS = 0.9, 200
SECONDS, SECONDS_AT_RANDOM = 600, 300
IDLE = 2
"""Seconds after which a connection is made anew: the service closes one that is idle for five."""
CLIENTS = 8
"""How many clients keep the decoder busy."""
STRETCH = 5.0
"""Seconds between two looks at the service's own figures."""
SEED = 1
TURNS = 100


@dataclass(frozen=True)
class Figures:
    """What a service says about itself."""

    sentences: float
    """Sentences decoded so far."""
    busy: float
    """Seconds that its decoder took for them."""
    waiting: float
    """Sentences that no thread has taken."""


@dataclass
class Loaded:
    """What clients saw, and what the service used."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    resident: list[tuple[float, int, int]] = field(default_factory=list)
    """Time since the start, bytes of its own, and bytes of mapped files."""
    behind: float = 0.0
    """Seconds by which the latest request was sent after it was due: the load's own fault."""
    figures: list[Figures] = field(default_factory=list)
    """The service's own figures at the start, after each stretch and at the end."""

    @property
    def speeds(self) -> list[float]:
        """Sentences a second of the decoder's own time, for each stretch."""
        pairs = list(itertools.pairwise(self.figures))
        return [
            (after.sentences - before.sentences) / (after.busy - before.busy)
            for before, after in pairs
            if after.busy > before.busy
        ]


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


async def figures_of(client: Client) -> Figures:
    """Return a service's own figures."""
    _, text = await client.ask("/metrics")
    figures = dict(line.split(" ", 1) for line in text.decode().splitlines() if line[0] != "#")
    names = "sentences_total", "batch_seconds_sum", "waiting_sentences"
    return Figures(*(float(figures[f"tunesmith_{name}"]) for name in names))


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


async def saturated(url: str, lines: Sequence[str], count: int) -> Throughput:
    """Ask for so many sentences as fast as answers come."""
    observer, *several = clients(url, 1 + CLIENTS)
    errors: list[str] = []
    numbers = iter(range(count))
    begun = time.perf_counter()

    async def ask(client: Client) -> None:
        for number in numbers:
            await request(client, lines[number % len(lines)], errors)

    before = await figures_of(observer)
    await asyncio.gather(*map(ask, several))
    wall = time.perf_counter() - begun
    after = await figures_of(observer)
    for client in (observer, *several):
        client.close()
    done = after.sentences - before.sentences
    return Throughput(done / (after.busy - before.busy), done / wall, errors)


def arrivals(rate: float, seconds: float, at_random: bool = False) -> Iterator[float]:
    """Yield the seconds at which requests are due: evenly, or as those of independent clients."""
    rng = random.Random(SEED)
    at = 0.0
    for number in itertools.count(1):
        if at >= seconds:
            return
        yield at
        at = at + rng.expovariate(rate) if at_random else number / rate


async def steady(
    url: str, process: int, lines: Sequence[str], due_at: Iterable[float], seconds: float
) -> Loaded:
    """Ask for sentences at given times; look at the service itself now and then."""
    loaded = Loaded()
    observer, *every = clients(url, 1 + CONNECTIONS)
    idle = list(every)
    running: set[asyncio.Task[None]] = set()

    async def look() -> None:
        # A service that is gone has no figures; its requests are errors anyhow.
        with suppress(OSError, EOFError, ValueError, KeyError):
            loaded.figures.append(await figures_of(observer))

    async def watch() -> None:
        while True:
            await asyncio.sleep(min(STRETCH, seconds / 20))
            await look()

    async def ask(client: Client, number: int, due: float) -> None:
        await request(client, lines[number % len(lines)], loaded.errors)
        loaded.seconds.append(time.perf_counter() - due)
        idle.append(client)

    await look()
    watching = asyncio.create_task(watch())
    begun, noted = time.perf_counter(), 0.0
    for number, at in enumerate(due_at):
        due = begun + at
        while (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        loaded.behind = max(loaded.behind, time.perf_counter() - due)
        if due - begun >= noted:
            loaded.resident.append((due - begun, *resident(process)))
            noted += min(STRETCH, seconds / 20)
        if not idle:
            # Everybody waits: the service is behind, and this request is turned away.
            loaded.errors.append("all connections are busy")
            continue
        task = asyncio.create_task(ask(idle.pop(), number, due))
        running.add(task)
        task.add_done_callback(running.discard)
        await asyncio.sleep(0)
    await asyncio.gather(*running)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    await look()
    for client in (observer, *every):
        client.close()
    return loaded


def load(setting: Setting) -> Outcome:
    """Return errors, latency and memory at 90% of the decoder's own throughput."""
    from serving import process

    outcome = Outcome("The service under steady load, one worker thread, on loopback")
    names = ("val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    lines = [line for name in names for line in captions(setting, name)[0]]
    random.Random(SEED).shuffle(lines)
    lines = lines[: 300 if setting.quick else None]
    kind = "hiero"
    captions_translator(setting, kind)
    words = ("--kind", kind, "--weights", KEPT / "captions" / f"{kind}.toml", "--threads", "1")
    with (
        tempfile.TemporaryDirectory() as store,
        process(captions_model(setting), *words, "--store", store) as (started, url),
    ):
        say(f"  {kind}: every line once, then once more")
        first = asyncio.run(saturated(url, lines, count=len(lines)))
        able = asyncio.run(saturated(url, lines, count=len(lines)))
        outcome.notes += [
            f"{len(lines):,} sentences of Multi30k in a random order, again and again, one a "
            f"request. Each was asked for once before; then {CLIENTS} clients asked for all of "
            f"them without a pause: {able.decoder:.1f} sentences a second of the decoder's own "
            f"time, {able.service:.1f} on the clock",
            f"requests arrive at {100 * SHARE:.0f}% of the former; a request's time counts from "
            "the moment at which it was due",
        ]
        errors = [*first.errors, *able.errors]
        rate = SHARE * able.decoder
        for way, whole in (("evenly", SECONDS), ("at random", SECONDS_AT_RANDOM)):
            seconds = 20 if setting.quick else whole
            say(f"  {kind}: {rate:.1f} requests a second {way} for {seconds} seconds")
            due = arrivals(rate, seconds, way == "at random")
            found = asyncio.run(steady(url, started.pid, lines, due, seconds))
            errors += found.errors
            outcome.rows.append(_row(found, way, seconds, able))
            outcome.claims += _claims(found, f"{kind}, {way}", seconds)
            outcome.notes.append(
                f"{way}: the load itself was late by {1000 * found.behind:.0f} ms at most"
            )
    outcome.notes += [f"errors: {', '.join(sorted(set(errors))[:5])}"] * bool(errors)
    outcome.notes += [
        "slowest: the decoder's throughput in the slowest five seconds, as a share of what was "
        "measured before. Where it is below the share of the load, a queue grows whatever the "
        "service does",
        f"memory of its own; {found.resident[-1][2] / 1e6:.0f} MB of mapped files come to it",
        f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores",
    ]
    return outcome


def _row(found: Loaded, way: str, seconds: float, able: Throughput) -> dict[str, Cell]:
    """Return what a load found."""
    ordered = sorted(found.seconds)
    speeds = found.speeds
    warm = _warm(found, seconds)
    return {
        "arrivals": way,
        "seconds": seconds,
        "requests": len(ordered),
        "requests/s": len(ordered) / seconds,
        "errors": len(found.errors),
        "p50, ms": 1000 * statistics.median(ordered),
        "p99, ms": 1000 * ordered[int(0.99 * (len(ordered) - 1))],
        "most, ms": 1000 * ordered[-1],
        "most waiting": max(each.waiting for each in found.figures),
        "decoder, sentences/s": _speed(found),
        "slowest, %": 100 * min(speeds) / able.decoder,
        "memory at start, MB": found.resident[0][1] / 1e6,
        "after a fifth, MB": statistics.mean(warm[:5]) / 1e6,
        "at the end, MB": statistics.mean(warm[-5:]) / 1e6,
    }


def _speed(found: Loaded) -> float:
    """Return sentences a second of the decoder's own time while the load lasted."""
    first, last = found.figures[0], found.figures[-1]
    return (last.sentences - first.sentences) / (last.busy - first.busy)


def _warm(found: Loaded, seconds: float) -> list[int]:
    """Return the memory of its own after the first fifth of the time."""
    return [own for at, own, _ in found.resident if at >= seconds / 5]


def _claims(found: Loaded, name: str, seconds: float) -> list[Claim]:
    warm = _warm(found, seconds)
    grown = 100 * (statistics.mean(warm[-5:]) / statistics.mean(warm[:5]) - 1)
    return [
        Claim(f"{name}: errors", float(len(found.errors)), 0, "at most"),
        Claim(f"{name}: memory grows after the first fifth by", grown, 5, "at most", "%"),
    ]


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
