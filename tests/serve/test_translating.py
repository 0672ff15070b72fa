"""Translation over HTTP: the shapes of LibreTranslate and DeepL, and our own."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from libretranslatepy import LibreTranslateAPI
from serving import Serving, serving, token_of

from tunesmith import Weights
from tunesmith.decode import Model
from tunesmith.serve import Limits, Paths, Settings
from tunesmith.serve.schemas import RESPONSES

OLD = "Das Haus ist alt."


def ask(served: Serving, path: str, **body: Any) -> dict[str, Any]:
    with served.client() as client:
        response = client.post(path, json=body)
    assert response.status_code == 200, response.text
    found = response.json()
    assert isinstance(found, dict)
    return found


def all_about(served: Serving, text: str, **body: Any) -> list[dict[str, Any]]:
    found = ask(served, "/v1/translate", text=text, **body)
    jsonschema.validate(found, RESPONSES["TranslatedAll"])
    sentences = found["translations"][0]["sentences"]
    assert isinstance(sentences, list)
    return sentences


def test_a_client_of_libretranslate_works_unchanged(shared: Serving) -> None:
    client = LibreTranslateAPI(shared.url)
    assert client.translate(OLD, "de", "en") == "The house is old."
    assert client.translate(OLD, "auto", "en") == "The house is old."
    codes = {each["code"]: each["targets"] for each in client.languages()}
    assert codes == {"de": ["en"], "en": []}
    assert client.detect("Das Haus") == [{"language": "de", "confidence": 100.0}]
    assert client.detect("This text")[0]["confidence"] < 50


@pytest.mark.parametrize("form", [True, False])
def test_libretranslates_answer_has_the_shape_of_its_question(shared: Serving, form: bool) -> None:
    body = {"q": ["Ein Haus.", "Ein Buch."], "source": "de", "target": "en", "alternatives": 2}
    with shared.client() as client:
        sent = client.post("/translate", **{"data" if form else "json": body})  # type: ignore[arg-type]
    found = sent.json()
    assert found["translatedText"] == ["A house.", "A book."]
    assert all(1 <= len(each) <= 2 for each in found["alternatives"])
    assert not {"A house.", "A book."} & {text for each in found["alternatives"] for text in each}
    one = ask(shared, "/translate", q="Ein Haus.", source="auto", target="EN")
    assert one["translatedText"] == "A house."
    assert one["detectedLanguage"]["language"] == "de"


@pytest.mark.parametrize("form", [True, False])
def test_deepls_clients_are_answered_as_deepl_does(shared: Serving, form: bool) -> None:
    body = {"text": ["Ein Haus.", "Ein Buch."], "target_lang": "EN-GB", "source_lang": "DE"}
    key = {"Authorization": "DeepL-Auth-Key any:fx"}
    with shared.client() as client:
        sent = client.post("/v2/translate", headers=key, **{"data" if form else "json": body})  # type: ignore[arg-type]
        refused = client.post("/v2/translate", json={"text": ["x"], "target_lang": "FR"})
    texts = [each["text"] for each in sent.json()["translations"]]
    assert texts == ["A house.", "A book."]
    assert {each["detected_source_language"] for each in sent.json()["translations"]} == {"DE"}
    assert refused.status_code == 400
    assert "message" in refused.json()


def test_lines_and_the_spaces_between_sentences_are_kept(shared: Serving) -> None:
    text = "  Ein Haus.  Ein Buch.\n\n\tHier ist das Haus. \r\nDr. Ott ist alt."
    found = ask(shared, "/translate", q=text, source="de", target="en")["translatedText"]
    assert found == "  A house.  A book.\n\n\tHere is the house. \r\nDr. Ott is old."
    for blank in ("", " ", "\n\n", "\t"):
        assert (
            ask(shared, "/translate", q=blank, source="de", target="en")["translatedText"] == blank
        )


def test_tags_of_html_stay_where_they_are(shared: Serving) -> None:
    text = "<p class='x'>Ein Haus.</p><!-- Ein Buch. --><script>Ein</script> Ein Buch &amp; Xy<br>"
    found = ask(shared, "/translate", q=text, source="de", target="en", format="html")
    assert found["translatedText"] == (
        "<p class='x'>A house.</p><!-- Ein Buch. --><script>Ein</script> A book &amp; Xy<br>"
    )


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_everything_about_a_sentence_fits_together(model: Path, kind: Any) -> None:
    with serving(Settings(Paths(model, kind=kind))) as served:
        (found,) = all_about(served, "Das Buch ist alt.", nbest=3)
    alone = Model.load(model, kind).translator().batch(["Das Buch ist alt."], details=1)[0]
    assert (found["text"], found["score"]) == (alone.text, pytest.approx(alone.score))
    assert found["nbest"][0]["text"] == found["text"]
    assert len({each["text"] for each in found["nbest"]}) == len(found["nbest"]) > 1
    scores = [each["score"] for each in found["nbest"]]
    assert scores == sorted(scores, reverse=True)
    # Every word of both sides belongs to one phrase, and stands in the text where it is said to.
    for side, words in (("source", "words"), ("target", "target_words")):
        covered = [place for phrase in found["phrases"] for place in phrase[side]]
        assert sorted(covered) == list(range(len(found[words])))
        text = found["source" if side == "source" else "text"]
        places = found[f"{side}_places"]
        shown = [text[start:end].lower() for start, end in places]
        assert shown == [word.lower() for word in found[words]]


def test_alternatives_of_a_phrase_are_translations_of_the_same_words(shared: Serving) -> None:
    (found,) = all_about(shared, "Das Buch ist alt.")
    best = next(phrase for phrase in found["phrases"] if 3 in phrase["source"])
    assert best["source"] == [3]
    assert {best["target_text"], *best["alternatives"]} >= {"old", "ancient"}


def test_long_sentences_are_refused_or_cut(shared: Serving, model: Path) -> None:
    text = "Ein Haus, " * 5000 + "ein Buch."
    shorter = "Ein Haus, " * 100 + "ein Buch."
    with shared.client() as client:
        refused = client.post("/translate", json={"q": text, "source": "de", "target": "en"})
    assert refused.status_code == 422
    assert refused.json()["code"] == "sentence_too_long"
    assert "10,002 words" in refused.json()["error"]
    limits = Limits(long="split", words=40, sentences=1000)
    with serving(Settings(Paths(model), limits)) as served:
        found = all_about(served, shorter)
        assert all(len(each["source"].split()) <= 40 for each in found)
        assert " ".join(each["source"] for each in found).split() == shorter.split()
        # Cut after clauses, not inside them.
        assert all(each["source"].endswith((",", ".")) for each in found)
        # Text without spaces is long, too.
        assert len(all_about(served, "字" * 1700)) > 1


def test_hypotheses_are_ordered_by_weights_of_the_request_or_the_service(shared: Serving) -> None:
    names = shared.service.engine.translator.weights
    lm = names["lm"]
    hypotheses = [
        {"text": "b", "features": {"lm": -2.0, "mine": 5}},
        {"text": "a", "features": {"lm": -1.0}},
        {"text": "c", "features": {"lm": -2.0}},
    ]
    found = ask(shared, "/v1/choose", hypotheses=hypotheses)
    assert found["order"] == [1, 0, 2]
    assert found["scores"] == pytest.approx([-2 * lm, -lm, -2 * lm])
    assert (found["text"], found["unknown"]) == ("a", ["mine"])
    found = ask(shared, "/v1/choose", hypotheses=hypotheses, weights={"mine": 1, "lm": 0.5})
    assert (found["best"], found["scores"]) == (0, [4.0, -0.5, -1.0])


def test_features_of_the_list_itself_are_added_where_weights_name_them(shared: Serving) -> None:
    hypotheses = [
        {"text": text, "features": {"lm": score}}
        for text, score in (("x y", -1.0), ("a b c d", -2.0), ("a b c e", -2.0))
    ]
    weights = {"lm": 0.1, "list:agreement": 1.0}
    found = ask(shared, "/v1/choose", hypotheses=hypotheses, weights=weights)
    assert found["order"] == [1, 2, 0]
    weights = {"list:first": 1.0}
    found = ask(shared, "/v1/choose", hypotheses=hypotheses, weights=weights)
    assert (found["best"], found["scores"]) == (0, [1.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"hypotheses": [{"features": {"nothing": 1}}]}, 409, "no_known_feature"),
        ({"hypotheses": [{"features": {"a": 1e308}}], "weights": {"a": 1e308}}, 422, "too_large"),
        ({"hypotheses": [{"features": {"a": 10**400}}], "weights": {"a": 1}}, 422, "too_large"),
        (
            {"hypotheses": [{"features": {"a": 1}}], "weights": {"list:first": 1}},
            422,
            "text_missing",
        ),
        (
            {"hypotheses": [{"text": "b", "features": {"a": 1}}], "weights": {"list:other": 1}},
            422,
            "unknown_feature",
        ),
        ({"hypotheses": []}, 400, "bad_request"),
        ({"hypotheses": [{"features": {"a": "1"}}]}, 400, "bad_request"),
    ],
)
def test_what_cannot_be_ordered_is_refused(
    shared: Serving, body: dict[str, Any], status: int, code: str
) -> None:
    with shared.client() as client:
        refused = client.post("/v1/choose", json=body)
    assert (refused.status_code, refused.json()["code"]) == (status, code)


def test_a_reload_changes_the_weights_and_drops_no_request(model: Path, tmp_path: Path) -> None:
    weights = tmp_path / "w.toml"
    own = Model.load(model).translator().weights
    base = {name: value for name, value in own.items() if name != "given"}
    Weights(base).save(weights)
    store = tmp_path / "store"
    token = token_of(store, "review")
    with serving(Settings(Paths(model, weights=weights, store=store))) as served:
        codes: list[int] = []
        stop = threading.Event()

        def load() -> None:
            with served.client() as client:
                while not stop.is_set():
                    body = {"q": OLD, "source": "de", "target": "en"}
                    codes.append(client.post("/translate", json=body).status_code)

        thread = threading.Thread(target=load)
        thread.start()
        before = all_about(served, OLD)[0]["score"]
        with served.client(token) as client:
            assert client.post("/v1/reload").json()["changed"] is False
            Weights({name: 2 * value for name, value in base.items()}).save(weights)
            assert client.post("/v1/reload").json()["changed"] is True
            assert all_about(served, OLD)[0]["score"] == pytest.approx(2 * before)
            # A broken file leaves the old model in place.
            weights.write_text("not weights")
            failed = client.post("/v1/reload")
            assert (failed.status_code, failed.json()["code"]) == (500, "reload_failed")
            assert str(tmp_path) not in failed.text
            assert all_about(served, OLD)[0]["score"] == pytest.approx(2 * before)
        stop.set()
        thread.join()
        assert set(codes) == {200}


def test_a_request_ends_with_the_model_that_it_began_with(model: Path, tmp_path: Path) -> None:
    weights, store = tmp_path / "w.toml", tmp_path / "store"
    own = Model.load(model).translator().weights
    base = {name: value for name, value in own.items() if name != "given"}
    Weights(base).save(weights)
    token = token_of(store, "review")
    with serving(Settings(Paths(model, weights=weights, store=store))) as served:
        before = all_about(served, OLD)[0]["score"]
        gate, entered = threading.Event(), threading.Event()
        translate = served.service.batcher._translate

        def held(lines: Any, way: Any) -> Any:
            entered.set()
            assert gate.wait(30)
            return translate(lines, way)

        served.service.batcher._translate = held
        with ThreadPoolExecutor(1) as pool, served.client(token) as client:
            found = pool.submit(all_about, served, "\n".join([OLD] * 30))
            assert entered.wait(30)
            Weights({name: 2 * value for name, value in base.items()}).save(weights)
            assert client.post("/v1/reload").json()["changed"] is True
            gate.set()
            scores = [each["score"] for each in found.result()]
        assert scores == pytest.approx([before] * 30)
        assert all_about(served, OLD)[0]["score"] == pytest.approx(2 * before)
