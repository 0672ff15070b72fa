"""Feedback: on disk before it is acknowledged, filtered with reasons, undone, never lost."""

from __future__ import annotations

import json
import subprocess
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import COMMAND, Serving, killed_while_writing, serving, token_of

from tunesmith.serve import Feedback, Paths, Settings
from tunesmith.serve.store import Store
from tunesmith.serve.tokens import Token

SOURCE, BETTER = "Das Haus ist alt.", "The house is ancient."


def send(client: httpx.Client, source: str = SOURCE, translation: str = BETTER) -> dict[str, Any]:
    response = client.post("/v1/feedback", json={"source": source, "translation": translation})
    assert response.status_code == 201, response.text
    found = response.json()
    assert response.headers["location"] == f"/v1/feedback/{found['id']}"
    assert isinstance(found, dict)
    return found


def translated(client: httpx.Client, text: str = SOURCE) -> dict[str, Any]:
    found = client.post("/translate", json={"q": text, "source": "de", "target": "en"}).json()
    assert isinstance(found, dict)
    return found


def test_a_correction_is_used_verbatim_until_it_is_undone(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    token = token_of(store, "review")
    settings = Settings(Paths(model, store=store), feedback=Feedback(memory=True))
    with serving(settings) as served, served.client(token) as client:
        assert translated(client) == {"translatedText": "The house is old."}
        first = send(client)
        assert first["status"] == "accepted"
        assert translated(client) == {"translatedText": BETTER, "fromMemory": True}
        # The newest wins; a text with more sentences uses it, too.
        second = send(client, translation="The house is aged.")
        both = translated(client, f"  {SOURCE} Ein Haus.\n{SOURCE}")
        assert both["translatedText"] == "  The house is aged. A house.\nThe house is aged."
        about = client.post("/v1/translate", json={"text": SOURCE}).json()["translations"][0]
        assert about["sentences"][0]["memory"] == second["id"]
        without = client.post("/v1/translate", json={"text": SOURCE, "memory": False}).json()
        assert without["translations"][0]["text"] == "The house is old."
        undone = client.post(f"/v1/feedback/{second['id']}/undo").json()
        assert (undone["status"], undone["reasons"]) == ("held", ["undone in review"])
        assert translated(client)["translatedText"] == BETTER
        assert client.post(f"/v1/feedback/{second['id']}/approve").json()["status"] == "accepted"
        assert translated(client)["translatedText"] == "The house is aged."
        assert client.delete(f"/v1/feedback/{second['id']}").status_code == 204
        assert client.delete(f"/v1/feedback/{second['id']}").status_code == 404
        assert translated(client)["translatedText"] == BETTER
    # A restart loses nothing, and numbers are never given twice.
    with serving(settings) as served, served.client(token) as client:
        assert translated(client)["translatedText"] == BETTER
        assert send(client, "Ein Haus.", "One house.")["id"] > second["id"]


def test_a_whole_text_that_was_corrected_at_once_is_remembered(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    token = token_of(store)
    settings = Settings(Paths(model, store=store), feedback=Feedback(memory=True))
    with serving(settings) as served, served.client(token) as client:
        send(client, "Ein Haus. Ein Buch.", "A house, a book.")
        assert (
            translated(client, " Ein Haus. Ein Buch.\n")["translatedText"] == " A house, a book.\n"
        )
        assert translated(client, "Ein Haus. Ein Haus.")["translatedText"] == "A house. A house."


@pytest.mark.parametrize(
    ("source", "translation", "reason"),
    [
        ("Ein Haus.", "A house and " * 5, "15 words for 2: more than 3 times as many"),
        (
            "Das Haus ist klein und alt und hier.",
            "Small.",
            "1 words for 8: more than 3 times as few",
        ),
        (SOURCE, "Buy cheap pills online today", "the model expects 0 of its 5 words"),
        (SOURCE, "das Haus  ist alt.", "the translation is the source"),
    ],
)
def test_filters_hold_what_looks_wrong_and_say_why(
    shared: Serving, tokens: dict[str, str], source: str, translation: str, reason: str
) -> None:
    with shared.client(tokens["write"]) as client:
        held = send(client, source, translation)
    assert held["status"] == "held"
    assert any(each.startswith(reason) for each in held["reasons"]), held["reasons"]


def test_duplicates_and_floods_are_held_and_then_refused(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    token, other = token_of(store), token_of(store)
    settings = Settings(Paths(model, store=store), feedback=Feedback(rate=2))
    with serving(settings) as served, served.client(token) as client:
        assert send(client)["status"] == "accepted"
        assert send(client)["reasons"] == ["the same as correction 1"]
        third = send(client, "Ein Haus.", "One house.")
        assert third["reasons"] == ["more than 2 corrections in a minute from one token"]
        for _ in range(17):
            send(client)
        refused = client.post("/v1/feedback", json={"source": SOURCE, "translation": BETTER})
        assert refused.status_code == 429
        assert int(refused.headers["retry-after"]) > 0
        # Another token has a rate of its own.
        with served.client(other) as friend:
            assert send(friend, "Ein Buch.", "One book.")["status"] == "accepted"


def test_with_review_everything_waits(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    token, reviewer = token_of(store, name="Anna"), token_of(store, "review")
    settings = Settings(Paths(model, store=store), feedback=Feedback(accept=False, memory=True))
    with serving(settings) as served, served.client(token) as client:
        held = send(client)
        assert held["reasons"] == ["every correction is reviewed"]
        assert "fromMemory" not in translated(client)
        assert client.post(f"/v1/feedback/{held['id']}/approve").status_code == 403
        with served.client(reviewer) as other:
            (waiting,) = other.get("/v1/feedback", params={"status": "held"}).json()["feedback"]
            assert waiting["name"] == "Anna"
            other.post(f"/v1/feedback/{waiting['id']}/approve")
        assert translated(client)["fromMemory"]


def test_people_see_and_take_back_their_own_corrections(model: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    mine, yours, all_ = token_of(store), token_of(store), token_of(store, "review")
    with serving(Settings(Paths(model, store=store))) as served:
        with served.client(mine) as client:
            ids = [send(client, translation=f"{BETTER} {n}")["id"] for n in range(5)]
            pages: list[list[int]] = []
            after = None
            while after is not None or not pages:
                query = {"limit": 2} | ({} if after is None else {"before": after})
                found = client.get("/v1/feedback", params=query).json()
                pages.append([each["id"] for each in found["feedback"]])
                after = found["next"]
            assert pages == [ids[4:2:-1], ids[2:0:-1], ids[:1]]
        with served.client(yours) as client:
            assert client.get("/v1/feedback").json() == {"feedback": [], "next": None}
            assert client.get(f"/v1/feedback/{ids[0]}").status_code == 404
            assert client.delete(f"/v1/feedback/{ids[0]}").status_code == 404
        with served.client(all_) as client:
            assert client.get(f"/v1/feedback/{ids[0]}").json()["id"] == ids[0]
            assert client.delete(f"/v1/feedback/{ids[0]}").status_code == 204


def test_writes_that_wait_together_are_committed_together(tmp_path: Path) -> None:
    with Store(tmp_path / "store", 1000) as store:
        gate = threading.Event()
        # While the writer is busy with this one, others queue up.
        begun = threading.Event()

        def block(base: Any) -> bool:
            begun.set()
            return gate.wait(10)

        blocked = store.writer.submit(block)
        begun.wait(10)
        rules = Feedback(rate=1000)
        waiting = [
            store.add("a", f"b{n}", None, Token(None, "", "write"), [], rules) for n in range(50)
        ]
        gate.set()
        assert blocked.result()
        ids = [each.result().id for each in waiting]
        assert len(set(ids)) == 50
        assert store.writer.commits == 2


def test_one_write_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    def fail(base: Any) -> None:
        base.execute(
            "INSERT INTO tokens (name, scope, digest, created) VALUES ('x', 'read', x'', 0)"
        )
        raise RuntimeError("on purpose")

    with Store(tmp_path / "store", 1000) as store:
        gate = threading.Event()
        store.writer.submit(lambda base: gate.wait(10))
        bad = store.writer.submit(fail)
        good = store.add("a", "b", None, Token(None, "", "write"), [], Feedback())
        gate.set()
        assert good.result().status == "accepted"
        with pytest.raises(RuntimeError, match="on purpose"):
            bad.result()
        assert store.tokens() == []


def test_killed_services_lose_nothing_that_was_acknowledged(model: Path, tmp_path: Path) -> None:
    acknowledged, kept = killed_while_writing(model, tmp_path / "store", turns=3)
    assert len(acknowledged) >= 90
    assert {number: kept.get(number) for number in acknowledged} == acknowledged


def test_tokens_are_shown_once_kept_as_digests_and_revoked_at_once(
    model: Path, tmp_path: Path
) -> None:
    store = tmp_path / "store"

    def command(*words: object) -> str:
        ran = subprocess.run(
            [*COMMAND, "token", *map(str, words), "--store", str(store)],
            capture_output=True,
            text=True,
            check=True,
        )
        return ran.stdout

    token = command("new", "--name", "Anna").strip()
    assert (store / "service.sqlite").stat().st_mode & 0o077 == 0
    secret = token.split("_", 2)[2].encode()
    assert not any(secret in path.read_bytes() for path in store.iterdir())
    with serving(Settings(Paths(model, store=store))) as served, served.client(token) as client:
        send(client)
        # While the service runs.
        command("new", "--read")
        listed = json.loads(command("list", "--json"))["tokens"]
        assert [(each["name"], each["scope"]) for each in listed] == [
            ("Anna", "write"),
            ("", "read"),
        ]
        command("revoke", 1)
        refused = client.post("/v1/feedback", json={"source": SOURCE, "translation": BETTER})
        assert refused.status_code == 401
