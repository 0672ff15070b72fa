"""Corrections become examples: the next translation learns from them, and a restart keeps them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import PAIRS, serving, token_of

from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.local import Index
from tunesmith.serve import Paths, Service, Settings
from tunesmith.serve.joined import FIRST

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


def ids(client: httpx.Client, wanted: set[int]) -> bool:
    """Return whether exactly these corrections are neighbours, soon."""
    for _ in range(200):
        near = {each["id"] - FIRST for each in sentence(client)["neighbours"]}
        if {each for each in near if each >= 0} == wanted:
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
    other.remove([FIRST + sent["id"]])
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
