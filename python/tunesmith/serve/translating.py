"""Operations that translate: LibreTranslate's, DeepL's, and our own with everything."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from time import perf_counter
from typing import Any

import numpy as np

from tunesmith.errors import InputError
from tunesmith.serve.batching import How
from tunesmith.serve.calls import Call
from tunesmith.serve.languages import name_of
from tunesmith.serve.operations import Operation, Reply
from tunesmith.serve.service import Service, Text
from tunesmith.serve.settings import RequestError
from tunesmith.spaces import Pools
from tunesmith.spaces.derived import PREFIX, derived_in, with_derived

# Length of the list that alternatives of phrases come from.
LISTED = 20


def _texts(given: str | list[str]) -> list[str]:
    return [given] if isinstance(given, str) else given


def _local(service: Service, wanted: bool = True) -> bool:
    return wanted and service.engine.local is not None


async def translate(service: Service, call: Call) -> Reply:
    """Answer as LibreTranslate does."""
    body = call.body
    html = body.get("format") == "html"
    # LibreTranslate gives no alternatives of HTML either.
    wanted = 0 if html else int(body.get("alternatives", 0))
    how = How(details=wanted + 1 if wanted else 0, local=_local(service))
    made, _ = await service.translate(_texts(body["q"]), how, html=html)
    one = isinstance(body["q"], str)

    def shaped(each: list[Any]) -> Any:
        return each[0] if one else each

    answer: dict[str, Any] = {"translatedText": shaped([each.text for each in made])}
    if wanted:
        answer["alternatives"] = shaped([each.alternatives(wanted) for each in made])
    if body["source"] == "auto":
        detected = {"language": service.engine.source, "confidence": 100}
        answer["detectedLanguage"] = shaped([detected for _ in made])
    if any(sentence.memory is not None for each in made for sentence in each.sentences):
        answer["fromMemory"] = True
    return Reply(answer)


async def detect(service: Service, call: Call) -> Reply:
    """Answer with the one source language, and the share of words that the model knows."""
    made, _ = await service.translate([call.body["q"]], How(details=1), memory=False)
    phrases = [
        phrase
        for sentence in made[0].sentences
        if sentence.answer is not None
        for phrase in sentence.answer.described(0)["phrases"]
    ]
    words = sum(len(phrase["source"]) for phrase in phrases)
    known = sum(len(phrase["source"]) for phrase in phrases if phrase["origin"] != "unknown")
    share = round(100 * known / words, 1) if words else 0.0
    return Reply([{"language": service.engine.source, "confidence": share}])


async def languages(service: Service, call: Call) -> Reply:
    """Answer with the two languages of the model."""
    source, target = service.engine.source, service.engine.target
    pairs: dict[str, list[str]] = {target: [], source: [target]}
    found = [
        {"code": code, "name": name_of(code), "targets": targets}
        for code, targets in reversed(pairs.items())
    ]
    return Reply(found)


async def frontend(service: Service, call: Call) -> Reply:
    """Answer with what pages made for LibreTranslate ask for."""
    settings, engine = service.settings, service.engine
    sides = {
        side: {"code": code, "name": name_of(code)}
        for side, code in (("source", engine.source), ("target", engine.target))
    }
    return Reply(
        {
            "apiKeys": settings.access.private,
            "keyRequired": settings.access.private,
            "charLimit": settings.limits.body,
            "batchLimit": settings.limits.sentences,
            "frontendTimeout": 1000,
            "language": sides,
            "suggestions": False,
            "supportedFilesFormat": [],
        }
    )


async def deepl(service: Service, call: Call) -> Reply:
    """Answer as DeepL does."""
    html = call.body.get("tag_handling") == "html"
    made, _ = await service.translate(
        _texts(call.body["text"]), How(local=_local(service)), html=html
    )
    language = service.engine.source.upper()
    found = [{"detected_source_language": language, "text": each.text} for each in made]
    return Reply({"translations": found})


async def translate_all(service: Service, call: Call) -> Reply:
    """Answer with everything about each sentence."""
    body = call.body
    nbest = int(body.get("nbest", 1))
    local = bool(body.get("local", True))
    if body.get("local") and service.engine.local is None:
        raise RequestError(
            409, "no_index", "the service has no index: it was started without --local"
        )
    engine = service.engine
    # Alternatives of phrases come from the list, so it is longer than what is shown.
    how = How(min(max(nbest, LISTED), service.settings.limits.nbest), _local(service, local))
    made, waited = await service.translate(
        _texts(body["text"]),
        how,
        html=body.get("format") == "html",
        memory=bool(body.get("memory", True)),
    )
    return Reply(
        {
            "translations": [_described(each, nbest) for each in made],
            "model": engine.fingerprint,
            "local": how.local,
            "seconds": {"waiting": waited, "total": perf_counter() - call.begun},
        }
    )


def _described(text: Text, nbest: int) -> dict[str, Any]:
    sentences = [sentence.described(nbest) for sentence in text.sentences]
    return {"text": text.text, "sentences": sentences}


async def choose(service: Service, call: Call) -> Reply:
    """Answer with the order of hypotheses under weights of the request or of the service."""
    weights = call.body.get("weights") or service.engine.translator.weights
    # Large lists take a second, and other requests need not wait.
    return await asyncio.to_thread(_ordered, call.body["hypotheses"], weights)


def _ordered(hypotheses: Sequence[Mapping[str, Any]], weights: Mapping[str, float]) -> Reply:
    described = _with_derived(hypotheses, weights)
    names = {name for each in described for name in each}
    if names and not any(weights.get(name) for name in names):
        raise RequestError(
            409,
            "no_known_feature",
            "no feature of the hypotheses has a weight: send weights with the request",
        )
    try:
        scores = [
            math.fsum(float(value) * float(weights.get(name, 0.0)) for name, value in each.items())
            for each in described
        ]
    except (OverflowError, ValueError):
        scores = [math.inf]
    if not all(map(math.isfinite, scores)):
        raise RequestError(
            422, "too_large", "a feature, a weight or a score is too large for a number"
        )
    # Equal scores keep the order of the request.
    order = sorted(range(len(scores)), key=lambda at: -scores[at])
    return Reply(
        {
            "order": order,
            "scores": scores,
            "best": order[0],
            "text": hypotheses[order[0]].get("text"),
            "unknown": sorted(name for name in names if name not in weights),
        }
    )


def _with_derived(
    hypotheses: Sequence[Mapping[str, Any]], weights: Mapping[str, float]
) -> list[dict[str, float]]:
    """Return the features of hypotheses, with those of the list itself that the weights name."""
    wanted = derived_in(name for name, value in weights.items() if value)
    own = [each["features"] for each in hypotheses]
    if not wanted:
        return own
    if not all("text" in each for each in hypotheses):
        raise RequestError(
            422,
            "text_missing",
            f"the weights name {PREFIX}{wanted[0]}, which needs the text of every hypothesis",
        )
    texts = [each["text"] for each in hypotheses]
    bare = Pools.from_arrays(np.zeros((len(texts), 0)), [0, len(texts)], [], texts=texts)
    try:
        lists = with_derived(bare, wanted, threads=1)
    except InputError as error:
        raise RequestError(422, "unknown_feature", f"{error.message}: {error.remedy}") from None
    return [{**dict(lists.core.features(place)), **features} for place, features in enumerate(own)]


OPERATIONS = (
    Operation(
        *("POST", "/translate", translate, "Translate, as LibreTranslate does", "Translated"),
        request="Translate",
        form=True,
    ),
    Operation("GET", "/languages", languages, "List the languages", "Languages"),
    Operation(
        *("POST", "/detect", detect, "Say how much of a text the model knows", "Detected"),
        request="Detect",
        form=True,
    ),
    Operation(
        "GET",
        "/frontend/settings",
        frontend,
        "Settings for pages made for LibreTranslate",
        "FrontendSettings",
        scope="none",
    ),
    Operation(
        *("POST", "/v2/translate", deepl, "Translate, as DeepL does", "DeepLTranslated"),
        request="DeepL",
        form=True,
        deepl=True,
    ),
    Operation(
        "POST",
        "/v1/translate",
        translate_all,
        "Translate, with phrases, alignment, n-best lists, neighbours and timing",
        "TranslatedAll",
        request="TranslateAll",
    ),
    Operation(
        "POST",
        "/v1/choose",
        choose,
        "Order hypotheses by their features: the re-ranker as a service",
        "Chosen",
        request="Choose",
        late="send fewer hypotheses",
    ),
)
