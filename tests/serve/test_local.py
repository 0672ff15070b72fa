"""Corrections become examples: the next translation learns from them, and a restart keeps them."""

from __future__ import annotations

import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import COMMAND, PAIRS, serving, token_of, write_model

from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.local import Index
from tunesmith.local.manifest import Manifest
from tunesmith.serve import Feedback, Paths, Service, Settings
from tunesmith.serve.examples import example_of
from tunesmith.serve.store import Store
from tunesmith.serve.tokens import Token
from tunesmith.weights import Weights

pytest.importorskip("tantivy")
SOURCE, BETTER = "Das Haus ist alt.", "The house is ancient."


@pytest.fixture
def index(model: Path, tmp_path: Path) -> Path:
    translator = Model.load(model).translator()
    pairs = PAIRS[:4]
    made = Index.build(tmp_path / "index", translator, *zip(*pairs, strict=True), k=20)
    made.close()
    return tmp_path / "index"


def sentence(client: httpx.Client, **more: Any) -> dict[str, Any]:
    answer = client.post("/v1/translate", json={"text": SOURCE, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()["translations"][0]["sentences"][0]
    return found


def correct(client: httpx.Client, translation: str) -> None:
    sent = client.post("/v1/feedback", json={"source": SOURCE, "translation": translation})
    assert sent.status_code == 201, sent.text


def ids(client: httpx.Client, wanted: set[int]) -> bool:
    """Return whether exactly these corrections are neighbours, soon."""
    for _ in range(200):
        near = {each["feedback"] for each in sentence(client)["neighbours"]}
        if near - {None} == wanted:
            return True
        time.sleep(0.05)
    return False


def test_a_correction_is_an_example_until_it_is_taken_back(
    model: Path, index: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    token = token_of(store, "review")
    settings = Settings(Paths(model, store=store, local=index))
    with serving(settings) as served, served.client(token) as client:
        before = sentence(client)
        assert before["neighbours"] and before["moved"]
        assert {"retrieval", "training", "decoding"} <= before["seconds"].keys()
        assert sentence(client, local=False)["neighbours"] == []
        sent = client.post("/v1/feedback", json={"source": SOURCE, "translation": BETTER}).json()
        assert ids(client, {sent["id"]})
        assert sentence(client)["neighbours"][0]["similarity"] == pytest.approx(1.0)
    # A restart keeps it; what the index lost in between is added again.
    other = Index.open(index)
    assert other.remove([example_of(sent["id"], SOURCE, BETTER)]) == 1
    other.close()
    with serving(settings) as served, served.client(token) as client:
        assert ids(client, {sent["id"]})
        assert client.post("/v1/reload").json()["changed"] is False
        assert ids(client, {sent["id"]})
        assert client.delete(f"/v1/feedback/{sent['id']}").status_code in (200, 204)
        assert ids(client, set())


def test_an_index_of_other_weights_is_refused(model: Path, index: Path, tmp_path: Path) -> None:
    weights = tmp_path / "other.toml"
    Model.load(model).weights.replaced({"lm": 0.123}).save(weights)
    with pytest.raises(InputError, match="other weights"):
        Service(Settings(Paths(model, weights=weights, local=index)))


def test_an_index_of_another_model_is_refused(index: Path, tmp_path: Path) -> None:
    other = write_model(tmp_path / "other", PAIRS[:6])
    with pytest.raises(InputError, match="another model"):
        Service(Settings(Paths(other, local=index)))


def test_a_damaged_index_is_refused_at_the_start(model: Path, index: Path) -> None:
    (file,) = index.glob("*.seg")
    file.write_bytes(file.read_bytes()[:-40])
    ran = subprocess.run(
        [*COMMAND, "serve", str(model), "--local", str(index), "--port", "0"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 2
    assert file.name in ran.stderr.replace("\n", "") and "Traceback" not in ran.stderr


def test_a_sentence_whose_examples_are_damaged_has_the_common_weights(
    model: Path, index: Path
) -> None:
    # Lists are checked when they are first read, so this index opens.
    (file,) = index.glob("*.seg")
    content = bytearray(file.read_bytes())
    content[200] ^= 0x40
    file.write_bytes(content)
    with serving(Settings(Paths(model, local=index))) as served, served.client() as client:
        found = sentence(client)
        assert (found["neighbours"], found["moved"]) == ([], {})
        plain = sentence(client, local=False)
        assert found["text"] == plain["text"]
        assert "tunesmith_unread_examples 1.0" in client.get("/metrics").text
        # A text that is bad itself is still refused.
        long = client.post("/v1/translate", json={"text": "Haus " * 10_000})
        assert long.json()["code"] == "sentence_too_long"


def test_a_correction_that_the_index_cannot_take_is_kept(
    model: Path, index: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    token = token_of(store, "review")
    settings = Settings(Paths(model, store=store, local=index))
    # A folder stands where the next file of the index belongs: it cannot be written.
    blocked = index / Manifest.load(index).next_part
    blocked.mkdir()
    with serving(settings) as served, served.client(token) as client:
        sent = client.post("/v1/feedback", json={"source": SOURCE, "translation": BETTER})
        assert sent.status_code == 201
        for _ in range(200):
            if "tunesmith_index_errors_total 1.0" in client.get("/metrics").text:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the error of the index was not counted")
        assert sentence(client)["neighbours"]
        assert ids(client, set())
    blocked.rmdir()
    with serving(settings) as served, served.client(token) as client:
        assert ids(client, {sent.json()["id"]})


@pytest.mark.parametrize("method", ["POST", "DELETE"])
def test_the_index_follows_the_store_though_the_client_hung_up(
    model: Path, index: Path, tmp_path: Path, method: str
) -> None:
    store = tmp_path / "store"
    token = token_of(store, "review")
    body = {"source": SOURCE, "translation": BETTER}
    with serving(Settings(Paths(model, store=store, local=index))) as served:
        assert served.service.store is not None
        with served.client(token) as client:
            client.post(
                "/v1/feedback", json={"source": SOURCE, "translation": "The house is aged."}
            )
            assert ids(client, {1})
            # The change is being written when the client hangs up.
            begun, written = threading.Event(), threading.Event()
            submit = served.service.store.writer.submit

            def held(write: Any) -> Any:
                def slow(base: Any) -> Any:
                    begun.set()
                    assert written.wait(30)
                    return write(base)

                return submit(slow)

            served.service.store.writer.submit = held  # type: ignore[method-assign]
            with served.client(token) as hasty, ThreadPoolExecutor(1) as pool:
                path = "/v1/feedback" if method == "POST" else "/v1/feedback/1"
                content = body if method == "POST" else None

                def send() -> None:
                    with pytest.raises(httpx.ReadTimeout):
                        hasty.request(method, path, json=content, timeout=0.5)

                sent = pool.submit(send)
                assert begun.wait(30)
                sent.result()
            while "tunesmith_hung_up_total 1.0" not in client.get("/metrics").text:
                time.sleep(0.01)
            written.set()
            assert ids(client, {1, 2} if method == "POST" else set())


def test_what_is_approved_twice_is_one_example(model: Path, index: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    token = token_of(store, "review")
    settings = Settings(Paths(model, store=store, local=index))
    with serving(settings) as served, served.client(token) as client:
        correct(client, BETTER)
        for action in ("approve", "approve", "undo", "undo", "approve"):
            assert client.post(f"/v1/feedback/1/{action}").status_code == 200
        assert ids(client, {1})
        assert "tunesmith_index_errors_total 0.0" in client.get("/metrics").text


def test_an_index_that_was_used_with_another_store_is_put_right(
    model: Path, index: Path, tmp_path: Path
) -> None:
    rules, nobody = Feedback(), Token(None, "", "write")
    for name, better in (("one", BETTER), ("two", "The house is aged.")):
        with Store(tmp_path / name, 10) as store:
            store.add(SOURCE, better, None, nobody, [], rules).result()
        settings = Settings(Paths(model, store=tmp_path / name, local=index))
        with serving(settings) as served, served.client() as client:
            (near,) = [each for each in sentence(client)["neighbours"] if each["feedback"]]
            assert near["feedback"] == 1
            assert near["references"][0].split()[-2] == better.split()[-1][:-1]


def test_a_reload_takes_new_weights_with_an_index_that_was_built_with_them(
    model: Path, index: Path, tmp_path: Path
) -> None:
    weights, store = tmp_path / "w.toml", tmp_path / "store"
    own = Model.load(model).translator().weights
    base = {name: value for name, value in own.items() if name != "given"}
    Weights(base).save(weights)
    token = token_of(store, "review")
    settings = Settings(Paths(model, weights, store=store, local=index))
    with serving(settings) as served, served.client(token) as client:
        correct(client, BETTER)
        assert ids(client, {1})
        new = Weights({name: 2 * value for name, value in base.items()})
        new.save(weights)
        assert client.post("/v1/reload").status_code == 500
        translator = Model.load(model).translator(new)
        pairs = PAIRS[4:8]
        Index.build(tmp_path / "new", translator, *zip(*pairs, strict=True), k=20).close()
        index.rename(tmp_path / "old")
        (tmp_path / "new").rename(index)
        assert client.post("/v1/reload").json()["changed"] is True
        # Corrections are examples of the new index.
        assert ids(client, {1})
        client.post("/v1/feedback", json={"source": SOURCE, "translation": "The house is aged."})
        assert ids(client, {1, 2})
        near = {each["source"] for each in sentence(client)["neighbours"]}
        assert near >= {"Hier ist das Haus ."} and "Das Buch ist alt ." not in near
