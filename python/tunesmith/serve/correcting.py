"""Operations on feedback: send, list, approve, undo, take back."""

from __future__ import annotations

import asyncio
from typing import Any

from tunesmith.serve.calls import Call
from tunesmith.serve.filters import reasons
from tunesmith.serve.operations import Operation, Reply
from tunesmith.serve.schemas import ID
from tunesmith.serve.service import Service
from tunesmith.serve.settings import RequestError
from tunesmith.serve.store import Correction, Status, Store

PAGE, MOST = 50, 500


def _store(service: Service) -> Store:
    # The endpoint refuses operations that need a store if there is none.
    assert service.store is not None
    return service.store


async def send(service: Service, call: Call) -> Reply:
    """Keep a correction; answer when it is on the disk."""
    body, engine, rules = call.body, service.engine, service.settings.feedback
    source, translation = body["source"].strip(), body["translation"].strip()
    words, limit = max(len(source.split()), len(translation.split())), service.settings.limits.words
    if words > limit:
        message = f"a sentence of {words:,} words, but the limit is {limit:,}"
        raise RequestError(422, "sentence_too_long", message)
    why = await asyncio.to_thread(
        reasons, engine.expected, engine.translator, source, translation, rules
    )
    added = _store(service).add(source, translation, body.get("suggestion"), call.token, why, rules)
    made = await asyncio.wrap_future(service.followed(added))
    service.measures.feedback.labels(made.status).inc()
    return Reply(made.described(), 201, headers={"Location": f"/v1/feedback/{made.id}"})


async def index(service: Service, call: Call) -> Reply:
    """Answer with a page of corrections, newest first: one's own, or all for reviewers."""
    limit = call.query.get("limit", PAGE)
    own = None if call.token.permits("review") else call.token.id
    found = _store(service).corrections(
        limit + 1, call.query.get("before"), call.query.get("status"), own
    )
    after = found[limit - 1].id if len(found) > limit else None
    return Reply({"feedback": [each.described() for each in found[:limit]], "next": after})


async def show(service: Service, call: Call) -> Reply:
    """Answer with one correction."""
    return Reply(_own(service, call).described())


async def approve(service: Service, call: Call) -> Reply:
    """Use a correction that was held."""
    return await _change(service, call, "accepted")


async def undo(service: Service, call: Call) -> Reply:
    """Hold a correction that was used."""
    return await _change(service, call, "held")


async def take_back(service: Service, call: Call) -> Reply:
    """Delete a correction."""
    number = _own(service, call).id
    removed = service.followed(_store(service).remove(number), number)
    if not await asyncio.wrap_future(removed):
        raise _absent(number)
    return Reply(None, 204)


async def _change(service: Service, call: Call, status: Status) -> Reply:
    number = _own(service, call).id
    change = service.followed(_store(service).change(number, status), number)
    changed = await asyncio.wrap_future(change)
    if changed is None:
        raise _absent(number)
    return Reply(changed.described())


def _own(service: Service, call: Call) -> Correction:
    """Return the correction that is asked for; raise if it is another's and nobody reviews."""
    number = call.path["id"]
    found = None if number > ID["maximum"] else _store(service).find(number)
    if found is None or not (call.token.permits("review") or found.token == call.token.id):
        raise _absent(number)
    return found


def _absent(number: int) -> RequestError:
    return RequestError(404, "no_correction", f"there is no correction {str(number)[:20]}")


_ONE: dict[str, Any] = {"response": "Correction", "late": "GET /v1/feedback shows what is kept"}
OPERATIONS = (
    Operation(
        *("POST", "/v1/feedback", send, "Send a correction; 201 when it is on the disk"),
        **_ONE,
        scope="write",
        request="Feedback",
        status=201,
    ),
    Operation(
        *("GET", "/v1/feedback", index, "List corrections, newest first", "Corrections"),
        scope="write",
        late="ask for fewer",
        query={
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST},
            "before": ID,
            "status": {"type": "string", "enum": ["accepted", "held"]},
        },
    ),
    Operation("GET", "/v1/feedback/{id:int}", show, "Show a correction", **_ONE, scope="write"),
    Operation(
        *("POST", "/v1/feedback/{id:int}/approve", approve, "Use a correction that was held"),
        **_ONE,
        scope="review",
    ),
    Operation(
        *("POST", "/v1/feedback/{id:int}/undo", undo, "Hold a correction that was used"),
        **_ONE,
        scope="review",
    ),
    Operation(
        *("DELETE", "/v1/feedback/{id:int}", take_back, "Take a correction back", None),
        scope="write",
        status=204,
        late="GET /v1/feedback shows what is kept",
    ),
)
