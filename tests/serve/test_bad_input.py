"""Bad input: refused with a status of its own, and the service goes on."""

from __future__ import annotations

import json
import resource
import socket
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from serving import COMMAND, Serving, process, serving, token_of

from tunesmith.errors import InputError
from tunesmith.serve import Feedback, Paths, Settings
from tunesmith.serve.database import FILE
from tunesmith.serve.store import Store
from tunesmith.serve.tokens import Token

PATHS = ("/translate", "/detect", "/v1/translate", "/v1/choose", "/v2/translate", "/v1/feedback")
BODY = {"q": "Das Haus ist alt.", "source": "de", "target": "en"}
JSON = {"Content-Type": "application/json"}
NOBODY = Token(None, "", "write")


def goes_on(client: httpx.Client) -> bool:
    """Return whether the service still translates."""
    found = client.post("/translate", json=BODY)
    return bool(found.json() == {"translatedText": "The house is old."})


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "not_json"),
        (b"   ", "not_json"),
        (b"{", "not_json"),
        (b'{"q": "a",}', "not_json"),
        (b"{'q': 'a'}", "not_json"),
        (b'{"q": NaN}', "not_json"),
        (b'{"q": 1e999999}{', "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a":' * 50_000, "not_json"),
        (b'{"q": ' + b"9" * 10_000 + b"}", "not_json"),
        (b'"q"', "bad_request"),
        (b"[]", "bad_request"),
        (b"null", "bad_request"),
        (b"\xff\xfe{\x00}\x00", "not_utf8"),
        (b'{"q": "\xc3("}', "not_utf8"),
        (b'{"q": "\xed\xa0\x80"}', "not_utf8"),
        (b'\xef\xbb\xbf{"q": "a"}', "not_json"),
        (b'{"q": "a\x00b"}', "not_json"),
        (b'{"q": "a\nb"}', "not_json"),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_bodies_that_are_not_json(
    shared: Serving, tokens: dict[str, str], content: bytes, code: str
) -> None:
    with shared.client(tokens["review"]) as client:
        for path in PATHS:
            refused = client.post(path, content=content, headers=JSON)
            assert (refused.status_code, refused.json()["code"]) == (400, code), path
            # What was sent does not come back at length.
            assert len(refused.content) < 500
        assert goes_on(client)


@pytest.mark.parametrize(
    "value", [None, 1, True, {}, [1], [None], [["a"]], [], "\ud800", ["\udfff"]]
)
def test_values_of_the_wrong_type(shared: Serving, tokens: dict[str, str], value: Any) -> None:
    # Python writes lone surrogates as escapes, which are JSON but no text.
    bodies: list[tuple[str, dict[str, Any]]] = [
        ("/translate", {**BODY, "q": value}),
        ("/detect", {"q": value}),
        ("/v1/translate", {"text": value}),
        ("/v2/translate", {"text": value, "target_lang": "EN"}),
        ("/v1/feedback", {"source": value, "translation": "A house."}),
        ("/v1/feedback", {"source": "Ein Haus.", "translation": value}),
        ("/v1/choose", {"hypotheses": value}),
        ("/v1/choose", {"hypotheses": [{"features": {"lm": 1}, "text": value}]}),
    ]
    with shared.client(tokens["review"]) as client:
        for path, body in bodies:
            refused = client.post(path, content=json.dumps(body), headers=JSON)
            assert (refused.status_code, refused.json()["code"]) == (400, "bad_request"), body
        assert goes_on(client)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        # One error is enough: to find them all would hold up the service for seconds.
        ("/translate", {**BODY, "q": [1] * 200_000}, "q: 200,000 items, but the limit is 500"),
        ("/v1/choose", {"hypotheses": [{}] * 2000}, "hypotheses: 2,000 items, but"),
        ("/v1/choose", {"hypotheses": [{}]}, "hypotheses[0]: features is missing"),
        ("/translate", {"q": "Haus", "target": "en"}, "body: source is missing"),
        ("/translate", {**BODY, "q": []}, "q: the list is empty"),
        ("/translate", {**BODY, "q": ["a", 1]}, "q[1]: it must be of type string"),
        ("/translate", {**BODY, "target": "xx"}, "target: it must be en, the language of this"),
        ("/translate", {**BODY, "format": "xml"}, "format: it must be text or html"),
        ("/translate", {**BODY, "alternatives": 101}, "alternatives: it must be at most 100"),
        ("/v1/translate", {"text": "Haus", "nbst": 1}, "body: unknown field nbst"),
        ("/v2/translate", {"text": "a", "target_lang": "EN", "glossary_id": "x"}, "not supported"),
        ("/v1/feedback", {"source": "Haus", "translation": " "}, "translation: it must be a line"),
        (
            "/v1/feedback",
            {"source": "Haus", "translation": "x" * 5000},
            "translation: 5,000 characters, but the limit is 4,000",
        ),
    ],
)
def test_errors_name_the_field_and_what_it_must_be(
    shared: Serving, tokens: dict[str, str], path: str, body: dict[str, Any], said: str
) -> None:
    with shared.client(tokens["write"]) as client:
        refused = client.post(path, json=body)
        assert refused.status_code == 400
        assert said in (refused.json().get("error") or refused.json()["message"])


def test_another_method_is_told_the_right_one(shared: Serving) -> None:
    with shared.client() as client:
        refused = client.put("/translate")
        assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
        assert refused.json()["error"] == "PUT is not possible here: use POST"


@pytest.mark.parametrize("language", ["xx", "", "deu", "d", "../de", "de\x00", "zh"])
def test_languages_that_the_model_does_not_have(shared: Serving, language: str) -> None:
    with shared.client() as client:
        for path, body in (
            ("/translate", {**BODY, "source": language}),
            ("/translate", {**BODY, "target": language}),
            ("/v2/translate", {"text": "Ein Haus.", "target_lang": language}),
            ("/v2/translate", {"text": "Ein Haus.", "target_lang": "EN", "source_lang": language}),
        ):
            refused = client.post(path, json=body)
            assert refused.status_code == 400, (path, body, refused.text)
            assert refused.json()["code"] in ("unknown_language", "bad_request")
        assert goes_on(client)


@pytest.mark.parametrize(
    "form", [b"q=%ff&source=de&target=en", b"q=\xff&source=de&target=en", b"&" * 20_000]
)
def test_forms_that_are_not_utf8_or_have_too_many_fields(shared: Serving, form: bytes) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    with shared.client() as client:
        refused = client.post("/translate", content=form, headers=headers)
        assert refused.status_code == 400, refused.text
        assert goes_on(client)


@pytest.mark.parametrize(
    "text",
    [
        "Das \x00Haus",
        "Das\x07 Haus\x1b[31m ist alt.",
        "\x01\x02\x03",
        "Das Haus\u2028ist alt.",
        "Das\u200bHaus \u202eist alt.",
        "\ufeffDas Haus",
        "\U0010ffff\ufffe",
        "e\u0301" * 50,
        "a" + "\u0301" * 500,
        "Das Haus ||| ist |a| <alt> [X] &#124; @-@",
        "<s> </s> <unk> [X,1] __unk__",
        "\u0085 \u000b \u000c \u001c \u001d",
    ],
    ids=ascii,
)
def test_control_characters_and_markup_are_translated_and_not_obeyed(
    shared: Serving, tokens: dict[str, str], text: str
) -> None:
    lines = [text, "Das Haus ist alt."]
    with shared.client(tokens["write"]) as client:
        for given in (text, lines):
            answer = client.post("/translate", json={**BODY, "q": given})
            assert answer.status_code == 200, answer.text
        # A strange text does not touch its neighbour.
        assert answer.json()["translatedText"][1] == "The house is old."
        shown = client.post("/v1/translate", json={"text": text, "nbest": 3})
        assert shown.status_code == 200, shown.text
        html = client.post("/translate", json={**BODY, "q": text, "format": "html"})
        assert html.status_code == 200


@pytest.mark.parametrize(
    "text", ["a\x00b", "a\nb", "a\x1bb", "a\u2028b", " ", "", "\x85"], ids=ascii
)
def test_feedback_takes_no_control_characters(
    shared: Serving, tokens: dict[str, str], text: str
) -> None:
    with shared.client(tokens["write"]) as client:
        for body in (
            {"source": text, "translation": "A house."},
            {"source": "Ein Haus.", "translation": text},
        ):
            assert client.post("/v1/feedback", json=body).status_code == 400


def test_ten_thousand_words_and_more(shared: Serving, tokens: dict[str, str]) -> None:
    long = "Haus " * 10_000
    with shared.client(tokens["write"]) as client:
        for path, body in (
            ("/translate", {**BODY, "q": long}),
            ("/translate", {**BODY, "q": "x" * 50_000}),
            ("/translate", {**BODY, "q": long, "format": "html"}),
            ("/v1/translate", {"text": ["Ein Haus.", long]}),
            ("/v2/translate", {"text": long, "target_lang": "EN"}),
            ("/detect", {"q": long}),
        ):
            refused = client.post(path, json=body)
            assert refused.status_code == 422, path
            assert refused.json()["code"] == "sentence_too_long"
        feedback = client.post("/v1/feedback", json={"source": long, "translation": long})
        assert feedback.status_code == 400
        shorter = "Haus " * 250
        body = {"source": shorter, "translation": shorter}
        assert client.post("/v1/feedback", json=body).json()["code"] == "sentence_too_long"
        assert goes_on(client)


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<a ",
        "<!--",
        "<pre>",
        "<pre",
        "</pre ",
        ".",
        "。",
        ".'",
        ". (",
        "\n",
        "\r",
        " ",
        "&amp",
    ],
)
def test_no_text_makes_the_service_think_for_long(shared: Serving, unit: str) -> None:
    # An expression that tries every way through such a text would not end before the time is up.
    text = unit * (300_000 // len(unit))
    with shared.client() as client:
        for form in ("text", "html"):
            answer = client.post("/translate", json={**BODY, "q": text, "format": form})
            assert answer.status_code in (200, 422), unit
            if answer.status_code == 422:
                assert answer.json()["code"] in ("sentence_too_long", "too_many_sentences")


def test_no_correction_makes_the_service_think_for_long(
    shared: Serving, tokens: dict[str, str]
) -> None:
    with shared.client(tokens["write"]) as client:
        for text in ("a" * 900_000 + "\x00", " " * 900_000, "a " * 400_000 + "\x00"):
            body = {"source": text, "translation": "A house."}
            assert client.post("/v1/feedback", json=body).status_code == 400


@pytest.mark.parametrize(
    "head",
    [
        b"nonsense\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
    ids=lambda value: repr(value[:40]),
)
def test_what_is_not_http_is_answered_with_an_error(shared: Serving, head: bytes) -> None:
    address = urlsplit(shared.url)
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        try:
            connection.sendall(head)
            answer = connection.recv(1000)
        except ConnectionError:
            answer = b""
        assert not answer or answer.startswith(b"HTTP/1.1 4"), answer
    with shared.client() as client:
        assert goes_on(client)


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/%2e%2e/x", "/v1/feedback/0", "/v1/feedback/9" + "9" * 30, "/%00"],
)
def test_addresses_that_are_not_there(shared: Serving, tokens: dict[str, str], path: str) -> None:
    with shared.client(tokens["review"]) as client:
        assert client.get(path).status_code == 404


def test_a_full_disk_acknowledges_nothing_and_stops_nothing(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    token = token_of(store, "review")
    kept: list[str] = []
    refused: list[str] = []
    with (
        process(model, "--store", store, "--rate", 100_000) as (started, url),
        httpx.Client(
            base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=30
        ) as client,
    ):

        def send(count: int) -> httpx.Response:
            text = f"The house {count} " + "is old " * 50
            sent = client.post("/v1/feedback", json={"source": BODY["q"], "translation": text})
            (kept if sent.status_code == 201 else refused).append(text.strip())
            return sent

        assert send(0).status_code == 201
        # No file of the process may grow beyond this: a disk that gets full.
        unlimited = resource.RLIM_INFINITY
        resource.prlimit(started.pid, resource.RLIMIT_FSIZE, (200_000, unlimited))
        for count in range(1, 200):
            full = send(count)
            if full.status_code != 201:
                break
        assert (full.status_code, full.json()["code"]) == (507, "store_full")
        assert int(full.headers["retry-after"]) > 0
        assert send(200).status_code == 507
        # Taking back needs the disk, too; reading and translating do not.
        assert client.delete("/v1/feedback/1").status_code == 507
        assert client.get("/v1/feedback/1").json()["translation"] == kept[0]
        assert goes_on(client)
        assert client.get("/ready").status_code == 200
        resource.prlimit(started.pid, resource.RLIMIT_FSIZE, (unlimited, unlimited))
        assert send(201).status_code == 201
        found = client.get("/v1/feedback", params={"limit": 500}).json()["feedback"]
        assert {each["translation"] for each in found} == set(kept)
    assert refused
    with Store(store, 10) as again:
        found = again.corrections(1000, None, None, None)
    assert {each.translation for each in found} == set(kept)


def _filled(folder: Path) -> Path:
    """Return the database of a store with many corrections, all in the file itself."""
    with Store(folder, 1000) as store:
        for count in range(300):
            text = f"The house {count} " + "is old " * 20
            store.add("Ein Haus.", text, None, NOBODY, [], Feedback(rate=10_000)).result()
    path = folder / FILE
    assert path.stat().st_size > 50_000
    return path


def _damage(path: Path) -> None:
    """Overwrite all pages but the first."""
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)


def _half(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 100])


def _foreign(path: Path) -> None:
    path.unlink()
    base = sqlite3.connect(path)
    base.execute("CREATE TABLE other (a)")
    base.commit()
    base.close()


def _later(path: Path) -> None:
    base = sqlite3.connect(path)
    base.execute("PRAGMA user_version = 99")
    base.commit()
    base.close()


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_damage, "damaged"),
        (_half, "damaged"),
        (lambda path: path.write_bytes(b"not a database, but long enough " * 1000), "damaged"),
        (_foreign, "another program"),
        (_later, "format 99"),
    ],
    ids=["pages", "half", "text", "foreign", "later"],
)
def test_a_store_that_cannot_be_trusted_is_refused(
    model: Path, tmp_path: Path, harm: Callable[[Path], object], said: str
) -> None:
    path = _filled(tmp_path / "store")
    harm(path)
    before = path.read_bytes()
    for words in (("serve", model, "--port", 0), ("token", "list")):
        ran = subprocess.run(
            [*COMMAND, *map(str, words), "--store", str(tmp_path / "store")],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 2, ran.stderr
        assert said in ran.stderr
        assert "Traceback" not in ran.stderr
    # Nothing was changed: it may be repaired.
    assert path.read_bytes() == before
    with pytest.raises(InputError, match=said) as raised:
        Store(tmp_path / "store", 10)
    assert raised.value.remedy


def test_a_store_that_is_damaged_while_it_is_used(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    path = _filled(store)
    token = token_of(store, "review")
    settings = Settings(Paths(model, store=store), feedback=Feedback(open=True))
    with serving(settings) as served, served.client() as client:
        base = sqlite3.connect(path)
        base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        base.close()
        with path.open("r+b") as file:
            file.seek(4096)
            file.write(b"\xa5" * (path.stat().st_size - 4096))
        damaged = client.get("/v1/feedback")
        assert (damaged.status_code, damaged.json()["code"]) == (500, "store_damaged")
        sent = client.post("/v1/feedback", json={"source": "Ein Haus.", "translation": "A house."})
        assert (sent.status_code, sent.json()["code"]) == (500, "store_damaged")
        assert client.get("/ready").status_code == 503
        headers = {"Authorization": f"Bearer {token}"}
        assert client.get("/v1/feedback", headers=headers).status_code == 500
        assert client.get("/metrics").status_code == 200
        assert goes_on(client)
