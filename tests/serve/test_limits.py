"""Limits: each has its own status, and none of them costs the others their answer."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock
from urllib.parse import urlsplit

import httpx
import pytest
from serving import Serving, process, serving, token_of

from tunesmith.serve import Access, Feedback, Limits, Paths, Service, Settings
from tunesmith.serve.app import Guard
from tunesmith.serve.batching import Batcher, How
from tunesmith.serve.measures import Measures
from tunesmith.serve.settings import RequestError

BODY = {"q": "Das Haus ist alt.", "source": "de", "target": "en"}


class Gate:
    """Holds the workers of a service until it is opened, so that requests wait."""

    def __init__(self, service: Service) -> None:
        self.entered, self.open = threading.Semaphore(0), threading.Event()
        translate: Callable[..., Any] = service.batcher._translate

        def held(lines: Sequence[str], how: Any) -> Any:
            self.entered.release()
            assert self.open.wait(30)
            return translate(lines, how)

        service.batcher._translate = held


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, response.json()["code"]


def in_thread(work: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    return thread, found


def test_bodies_and_requests_that_are_too_large(model: Path) -> None:
    limits = Limits(body=5000, sentences=10)
    with serving(Settings(Paths(model), limits)) as served, served.client() as client:
        large = {**BODY, "q": "x" * 6000}
        assert code(client.post("/translate", json=large)) == (413, "body_too_large")

        def parts() -> Any:
            for _ in range(100):
                yield b" " * 100

        # Nobody said how long it would be.
        assert code(client.post("/translate", content=parts())) == (413, "body_too_large")
        many = {**BODY, "q": "Ein Haus.\n" * 11}
        assert code(client.post("/translate", json=many)) == (422, "too_many_sentences")
        assert client.post("/translate", json=BODY).status_code == 200


def test_a_full_queue_and_too_many_requests_are_told_apart(model: Path) -> None:
    limits = Limits(queue=3, requests=4, batch=1)
    with serving(Settings(Paths(model), limits, workers=1)) as served:
        gate = Gate(served.service)

        def post() -> httpx.Response:
            with served.client() as client:
                return client.post("/translate", json=BODY)

        busy = [in_thread(post)]
        gate.entered.acquire()
        with served.client() as client:
            # Four sentences do not fit into a queue of three.
            refused = client.post("/translate", json={**BODY, "q": ["Ein Haus."] * 4})
            assert code(refused) == (503, "queue_full")
            assert refused.headers["retry-after"] == "1"
            busy += [in_thread(post) for _ in range(3)]
            while served.service.batcher.waiting < 3:
                time.sleep(0.01)
            assert code(client.post("/translate", json=BODY)) == (503, "too_many_requests")
            # A busy service is not a dead one.
            assert client.get("/health").json() == {"status": "ok"}
            assert client.get("/ready").json()["waiting"] == 3
        gate.open.set()
        for thread, _ in busy:
            thread.join()
        assert [found[0].status_code for _, found in busy] == [200] * 4


def test_watching_the_service_takes_no_client_s_place() -> None:
    settings = Settings(Paths(Path("model")), Limits(requests=1))
    service: Any = SimpleNamespace(settings=settings, measures=Measures(dict))
    answered: list[str] = []

    async def run() -> None:
        gate = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] != "/translate":
                await gate.wait()
            answered.append(scope["path"])

        guard = Guard(app, service)

        async def ask(path: str) -> None:
            scope = {"type": "http", "path": path, "headers": []}
            await guard(scope, AsyncMock(), AsyncMock())

        watching = asyncio.create_task(ask("/metrics"))
        await asyncio.sleep(0)
        await ask("/translate")
        gate.set()
        await watching

    asyncio.run(run())
    assert answered == ["/translate", "/metrics"]


def test_a_request_that_takes_too_long_leaves_the_queue(model: Path) -> None:
    settings = Settings(Paths(model), Limits(seconds=0.3, batch=1), workers=1)
    with serving(settings) as served, served.client() as client:
        gate = Gate(served.service)
        late = client.post("/translate", json={**BODY, "q": ["Ein Haus."] * 5})
        assert code(late) == (504, "out_of_time")
        assert served.service.batcher.waiting == 0
        gate.open.set()
        assert client.post("/translate", json=BODY).status_code == 200


def test_a_client_that_hangs_up_leaves_the_queue(model: Path) -> None:
    with serving(Settings(Paths(model), Limits(batch=1), workers=1)) as served:
        gate = Gate(served.service)
        address = urlsplit(served.url)
        body = b'{"q":["Ein Haus.","Ein Buch."],"source":"de","target":"en"}'
        head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(head.encode() + body)
            gate.entered.acquire()
            assert served.service.batcher.waiting == 1
        until = time.monotonic() + 20
        while served.service.batcher.waiting:
            assert time.monotonic() < until
            time.sleep(0.01)
        # Half a request, and then nothing more.
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(head.encode() + body[:10])
        gate.open.set()
        with served.client() as client:
            assert client.post("/translate", json=BODY).status_code == 200
            assert "tunesmith_hung_up_total" in client.get("/metrics").text


def test_a_body_that_does_not_come_is_not_waited_for(model: Path) -> None:
    with serving(Settings(Paths(model), Limits(seconds=0.3))) as served:
        address = urlsplit(served.url)
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            assert b" 408 " in connection.recv(1000).splitlines()[0]


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n",
        # Refused at once; the body that follows is not waited for.
        b"PUT /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999\r\n\r\n",
    ],
    ids=["nothing", "half a head", "no body"],
)
def test_connections_without_a_request_are_closed(model: Path, head: bytes) -> None:
    with process(model, "--max-seconds", 1) as (_, url):
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port), timeout=20) as connection:
            connection.sendall(head)
            try:
                # A byte now and then is no request either.
                for _ in range(40):
                    connection.sendall(b"X")
                    time.sleep(0.1)
            except ConnectionError:
                return
            pytest.fail("the connection was not closed")


def test_two_interrupts_stop_the_service_at_once_and_quietly(model: Path) -> None:
    with process(model) as (started, url):
        address = urlsplit(url)
        # Half a body holds up a graceful stop.
        with socket.create_connection((address.hostname, address.port)) as connection:
            head = b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{"
            connection.sendall(head)
            time.sleep(0.3)
            started.send_signal(signal.SIGINT)
            time.sleep(0.3)
            started.send_signal(signal.SIGINT)
            assert started.wait(20) == 0
        assert started.stderr is not None
        said = started.stderr.read()
        assert "Traceback" not in said and "stopped" in said


def test_many_sentences_of_one_client_do_not_make_another_wait() -> None:
    order: list[str] = []
    gate = threading.Event()

    def translate(lines: Sequence[str], how: How) -> list[str]:
        gate.wait(10)
        order.extend(lines)
        return list(lines)

    batcher: Batcher[How, str] = Batcher(translate, workers=1, batch=2, queue=100)
    first = batcher.submit(["begin"], How())
    large = batcher.submit([f"large {n}" for n in range(20)], How())
    small = batcher.submit(["small"], How())
    other = batcher.submit(["other"], How(details=3))
    gate.set()
    assert small.future.result() == ["small"]
    assert large.future.result() == [f"large {n}" for n in range(20)]
    assert (first.future.result(), other.future.result()) == (["begin"], ["other"])
    assert order.index("small") <= 3
    assert order.index("other") < 21
    batcher.close()


@pytest.mark.parametrize(("each", "most"), [(0.0, 8), (0.02, 1)])
def test_batches_of_slow_sentences_are_small(each: float, most: int) -> None:
    sizes: list[int] = []
    gate = threading.Event()

    def translate(lines: Sequence[str], how: How) -> list[str]:
        gate.wait(10)
        time.sleep(each * len(lines))
        return list(lines)

    batcher: Batcher[How, str] = Batcher(
        translate,
        workers=1,
        batch=8,
        queue=100,
        seconds=0.01 if each else 10.0,
        observe=lambda size, seconds: sizes.append(size),
    )
    tickets = [batcher.submit([f"line {n}"], How()) for n in range(30)]
    gate.set()
    assert [ticket.future.result() for ticket in tickets] == [[f"line {n}"] for n in range(30)]
    batcher.close()
    assert (sum(sizes), max(sizes)) == (30, most)


def test_a_sentence_that_fails_fails_its_own_request_only() -> None:
    class Panic(BaseException):
        """As the core raises it."""

    gate = threading.Event()

    def translate(lines: Sequence[str], how: How) -> list[str]:
        gate.wait(10)
        if "bad" in lines:
            raise Panic("on purpose")
        return list(lines)

    batcher: Batcher[How, str] = Batcher(translate, workers=1, batch=8, queue=100)
    tickets = [batcher.submit([line], How()) for line in ("first", "good", "bad", "fine")]
    gate.set()
    assert tickets[1].future.result() == ["good"]
    assert tickets[3].future.result() == ["fine"]
    with pytest.raises(RequestError, match="on purpose"):
        tickets[2].future.result()
    assert batcher.submit(["again"], How()).future.result() == ["again"]
    batcher.close()
    with pytest.raises(RequestError, match="stopping"):
        batcher.submit(["late"], How())


@pytest.mark.parametrize("signal_name", ["SIGTERM", "SIGINT"])
def test_a_stop_lets_requests_finish(model: Path, tmp_path: Path, signal_name: str) -> None:
    with process(model, "--threads", 1) as (started, url):
        text = "\n".join(["Das Haus ist klein und alt."] * 60)

        def post() -> httpx.Response:
            return httpx.post(f"{url}/v1/translate", json={"text": text, "nbest": 20}, timeout=60)

        thread, found = in_thread(post)
        while "tunesmith_sentences_total 0" in httpx.get(f"{url}/metrics").text:
            time.sleep(0.005)
        started.send_signal(getattr(signal, signal_name))
        thread.join()
        assert len(found[0].json()["translations"][0]["sentences"]) == 60
        assert started.wait(30) == 0
        assert started.stderr is not None
        assert "stopped" in started.stderr.read()


def test_tokens_permit_what_they_say(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    read, write = token_of(store, "read"), token_of(store, "write")
    settings = Settings(Paths(model, store=store), access=Access(private=True))
    with serving(settings) as served:
        feedback = {"source": "Ein Haus.", "translation": "One house."}
        with served.client() as client:
            assert code(client.post("/translate", json=BODY)) == (401, "no_token")
            assert client.get("/metrics").status_code == 401
            assert client.get("/health").status_code == 200
            # As clients of LibreTranslate and DeepL send it.
            assert client.post("/translate", json={**BODY, "api_key": read}).status_code == 200
            key = {"Authorization": f"DeepL-Auth-Key {read}"}
            deepl = {"text": ["x"], "target_lang": "EN"}
            assert client.post("/v2/translate", json=deepl, headers=key).status_code == 200
            wrong = [read[:-1], f"{read}x", "tsm_1_", "tsm_99_x", "x", "tsm_²_x", "tsm_1"]
            for text in wrong:
                headers = {b"Authorization": f"Bearer {text}".encode()}
                assert client.post("/translate", json=BODY, headers=headers).status_code == 401
                body = {**BODY, "api_key": text}
                assert client.post("/translate", json=body).status_code == 401
        with served.client(read) as client:
            assert client.post("/translate", json=BODY).status_code == 200
            assert code(client.post("/v1/feedback", json=feedback)) == (403, "not_permitted")
        with served.client(write) as client:
            assert client.post("/v1/feedback", json=feedback).status_code == 201
            assert code(client.post("/v1/reload")) == (403, "not_permitted")


def test_pages_of_other_origins_neither_write_nor_read(model: Path, tmp_path: Path) -> None:
    paths = Paths(model, store=tmp_path / "store")
    feedback = {"source": "Ein Haus.", "translation": "One house."}
    access = Access(hosts=("127.0.0.1",))
    settings = Settings(paths, feedback=Feedback(open=True), access=access)
    with serving(settings) as served, served.client() as client:
        evil = {"Origin": "https://evil.example"}
        assert code(client.post("/v1/feedback", json=feedback, headers=evil))[1] == "other_origin"
        assert "access-control-allow-origin" not in client.get("/languages", headers=evil).headers
        # A name that was bent to this address.
        rebound = {"Host": "evil.example"}
        assert code(client.get("/languages", headers=rebound)) == (421, "other_host")
        # A form needs no permission of the browser, so feedback is no form.
        form = client.post("/v1/feedback", data=feedback)
        assert code(form) == (415, "unknown_type")
        own = {"Origin": served.url}
        assert client.post("/v1/feedback", json=feedback, headers=own).status_code == 201
    friends = Access(origins=("https://friend.example",))
    with serving(Settings(Paths(model), access=friends)) as served, served.client() as client:
        friend = {"Origin": "https://friend.example"}
        answer = client.get("/languages", headers=friend)
        assert answer.headers["access-control-allow-origin"] == "https://friend.example"


def test_names_and_origins_are_compared_as_browsers_send_them(model: Path) -> None:
    words = ("--allow-host", "Tune.Example", "--allow-origin", "https://Friend.Example/")
    with process(model, *words) as (_, url), httpx.Client(base_url=url) as client:
        headers = {"Host": "tune.example:80", "Origin": "https://friend.example"}
        answer = client.get("/languages", headers=headers)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == "https://friend.example"


def test_a_service_without_a_store_says_so(model: Path) -> None:
    with serving(Settings(Paths(model))) as served, served.client("tsm_1_x") as client:
        assert client.get("/v1/service").status_code == 401
    with serving(Settings(Paths(model))) as served, served.client() as client:
        assert client.get("/v1/service").json()["feedback"] == "off"
        assert code(client.get("/v1/feedback")) == (404, "no_store")


def test_figures_count_what_happened(shared: Serving) -> None:
    with shared.client() as client:
        client.post("/translate", json={**BODY, "target": "fr"})
        text = client.get("/metrics").text
    assert 'tunesmith_requests_total{route="/translate",status="400"}' in text
    assert "tunesmith_batch_sentences_bucket" in text
    assert "process_resident_memory_bytes" in text
