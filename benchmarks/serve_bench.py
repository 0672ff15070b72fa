"""The service measured: steady load for ten minutes, and processes killed while they write.

The load comes at times of its own, whether or not earlier requests were answered, so that a service
that is too slow is found out; the time of a request counts from the moment at which it was due. On
a machine that others use, what the decoder can do changes; the rate follows it: the service tells
how long its decoder took for how many sentences, and is asked for 90% of that.
"""

from __future__ import annotations

import asyncio
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
from benchmarks.harness import Claim, Outcome
from benchmarks.local_bench import KEPT, captions, captions_model, captions_translator

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
SHARE, SECONDS, CONNECTIONS = 0.9, 600, 100
LEAST = 20
"""Sentences that tell how fast the decoder is."""
TURNS = 100


@dataclass
class Loaded:
    """What clients saw, and what the service used."""

    seconds: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    resident: list[tuple[float, int]] = field(default_factory=list)
    """Time since the start, and bytes."""
    rates: list[float] = field(default_factory=list)
    """Sentences a second that the decoder could translate, every few seconds."""


class Client:
    """A connection that is kept, for one request at a time."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return status and body of the answer; POST where there is something to send."""
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
            return int(top[0].split()[1]), await reader.readexactly(int(fields["content-length"]))
        except BaseException:
            writer.close()
            self._streams = None
            raise

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()


def resident(process: int) -> int:
    """Return the resident memory of a process in bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return next(
        int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:")
    )


class Decoder:
    """What the decoder of a service can do, as its figures tell."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._before = (0.0, 0.0)

    async def rate(self) -> float | None:
        """Return sentences per second of decoding since the last call, None if there were few."""
        _, text = await self._client.ask("/metrics")
        figures = dict(line.split(" ", 1) for line in text.decode().splitlines() if line[0] != "#")
        now = tuple(
            float(figures[name])
            for name in ("tunesmith_sentences_total", "tunesmith_batch_seconds_sum")
        )
        count, spent = now[0] - self._before[0], now[1] - self._before[1]
        self._before = (now[0], now[1])
        return count / spent if count >= LEAST and spent > 0 else None


async def steady(
    url: str,
    process: int,
    lines: Sequence[str],
    rate: float,
    seconds: float,
    share: float | None = None,
) -> Loaded:
    """Ask for a sentence at a rate for some time; a share of what the decoder can do, if given."""
    address = urlsplit(url)
    assert address.hostname is not None and address.port is not None
    loaded = Loaded()
    idle = [Client(address.hostname, address.port) for _ in range(CONNECTIONS)]
    every = list(idle)
    running: set[asyncio.Task[None]] = set()
    begun = time.perf_counter()

    async def ask(client: Client, number: int, due: float) -> None:
        body = {"q": lines[number % len(lines)], "source": "de", "target": "en"}
        try:
            status, answer = await client.ask("/translate", json.dumps(body).encode())
            if status != 200 or not json.loads(answer)["translatedText"]:
                loaded.errors.append(f"status {status}")
        except (OSError, EOFError, ValueError, KeyError) as error:
            loaded.errors.append(repr(error))
        loaded.seconds.append(time.perf_counter() - due)
        idle.append(client)

    observer = Client(address.hostname, address.port)
    decoder = Decoder(observer)
    told, number, due = 0.0, -1, begun
    while due + 1e-9 < begun + seconds:
        number += 1
        while (wait := due - time.perf_counter()) > 0:
            await asyncio.sleep(wait)
        since = time.perf_counter() - begun
        if since >= told:
            loaded.resident.append((since, resident(process)))
            told += min(5.0, seconds / 20)
            if share is not None and (able := await decoder.rate()) is not None:
                loaded.rates.append(able)
                rate = share * able
        own, due = due, due + 1 / rate
        if not idle:
            # Everybody waits: the service is behind, and this request is turned away.
            loaded.errors.append("all connections are busy")
            continue
        task = asyncio.create_task(ask(idle.pop(), number, own))
        running.add(task)
        task.add_done_callback(running.discard)
        await asyncio.sleep(0)
    await asyncio.gather(*running)
    for client in (*every, observer):
        client.close()
    return loaded


def load(setting: Setting) -> Outcome:
    """Return errors, latency and memory at 90% of what the decoder can do."""
    from serving import process

    outcome = Outcome("The service under steady load, one worker thread, on loopback")
    seconds = 20 if setting.quick else SECONDS
    names = ("val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco")
    lines = [line for name in names for line in captions(setting, name)[0]]
    for kind in ("hiero",):
        captions_translator(setting, kind)
        words = ("--kind", kind, "--weights", KEPT / "captions" / f"{kind}.toml", "--threads", "1")
        with (
            tempfile.TemporaryDirectory() as store,
            process(captions_model(setting), *words, "--store", store) as (started, url),
        ):
            asyncio.run(steady(url, started.pid, lines, 10, 5))
            found = asyncio.run(steady(url, started.pid, lines, 20, seconds, SHARE))
        ordered = sorted(found.seconds)
        warm = [size for at, size in found.resident if at >= seconds / 5]
        grown = 100 * (statistics.mean(warm[-5:]) / statistics.mean(warm[:5]) - 1)
        outcome.rows.append(
            {
                "decoder": kind,
                "seconds": seconds,
                "decoder, sentences/s": statistics.mean(found.rates),
                "requests": len(ordered),
                "requests/s": len(ordered) / seconds,
                "errors": len(found.errors),
                "p50, ms": 1000 * statistics.median(ordered),
                "p99, ms": 1000 * ordered[int(0.99 * (len(ordered) - 1))],
                "most, ms": 1000 * ordered[-1],
                "memory at start, MB": found.resident[0][1] / 1e6,
                "after a fifth, MB": statistics.mean(warm[:5]) / 1e6,
                "at the end, MB": statistics.mean(warm[-5:]) / 1e6,
            }
        )
        outcome.claims += [
            Claim(f"{kind}: errors", float(len(found.errors)), 0, "at most"),
            Claim(f"{kind}: memory grows after the first fifth by", grown, 5, "at most", "%"),
        ]
        outcome.notes += [f"errors: {', '.join(sorted(set(found.errors))[:5])}"] * bool(
            found.errors
        )
    outcome.notes += [
        "one sentence of Multi30k a request, 90% of what the decoder did in the seconds before; a "
        "request's time counts from the moment at which it was due",
        f"load of the machine at the end: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores",
    ]
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
