"""Operations of the service: each is a row that makes a route and its description."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter
from typing import Any, Literal
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator
from starlette.requests import Request
from starlette.responses import Response

from tunesmith.serve.calls import JSON, Call, HungUpError, check, parsed, read_body
from tunesmith.serve.schemas import Schema, fields, requests
from tunesmith.serve.service import Service
from tunesmith.serve.settings import RequestError
from tunesmith.serve.tokens import Token

log = logging.getLogger("tunesmith.serve")
Scope = Literal["none", "read", "write", "review"]
ROUTE = "tunesmith.route"
"""Where the scope of a request keeps the path of its operation."""
# The connection of a request that was not read to its end cannot be used again.
UNREAD = (408, 413, 503)
# Bytes of a body that is checked in a thread, so that other requests need not wait.
LARGE = 1 << 16


@dataclass(frozen=True)
class Reply:
    """An answer: an object for JSON, or bytes of another type."""

    content: Any
    status: int = 200
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)

    def response(self) -> Response:
        """Return the answer as the server sends it."""
        content = self.content
        if self.status == 204:
            return Response(status_code=204, headers=dict(self.headers))
        if self.media == JSON:
            content = json.dumps(content, ensure_ascii=False, allow_nan=False).encode()
        return Response(content, self.status, dict(self.headers), self.media)


Handler = Callable[[Service, Call], Awaitable[Reply]]


@dataclass(frozen=True)
class Operation:
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    summary: str
    response: str | None
    """The name of the answer's schema; None if it has another type, or no content."""
    scope: Scope = "read"
    """The token that is needed; `read` is needed by private services only."""
    request: str | None = None
    """The name of the body's schema."""
    form: bool = False
    """Whether the body may be a form, too."""
    status: int = 200
    query: Mapping[str, Schema] = field(default_factory=dict)
    media: str = JSON
    deepl: bool = False
    """Whether errors have DeepL's shape."""
    late: str = "send fewer sentences"
    """What to do if the answer is not ready in time."""


class Endpoint:
    """An operation of a service, called by the server for each request."""

    def __init__(self, service: Service, operation: Operation) -> None:
        self.service, self.operation = service, operation

    @cached_property
    def _schema(self) -> Schema:
        engine = self.service.engine
        made = requests(engine.source, engine.target, self.service.settings.limits)
        return made[self.operation.request or ""]

    @cached_property
    def _validator(self) -> Draft202012Validator:
        return Draft202012Validator(self._schema)

    @cached_property
    def _query(self) -> Draft202012Validator:
        return Draft202012Validator(fields({}, dict(self.operation.query)))

    async def __call__(self, request: Request) -> Response:
        """Answer a request, within its time, as long as the client waits."""
        request.scope[ROUTE] = self.operation.path
        try:
            reply = await self._within(request)
        except RequestError as refused:
            reply = refusal(refused, deepl=self.operation.deepl)
        except HungUpError:
            self.service.measures.hung_up.inc()
            # Nobody reads this; the status is for the figures.
            reply = Reply(b"", 499, "text/plain")
        return reply.response()

    async def _within(self, request: Request) -> Reply:
        begun, limit = perf_counter(), self.service.settings.limits.seconds
        try:
            async with asyncio.timeout(limit):
                call = await self._call(request, begun)
        except TimeoutError:
            message = f"the request did not arrive within {limit:g} seconds"
            raise RequestError(408, "too_slow", message) from None
        work = asyncio.ensure_future(self.operation.handler(self.service, call))
        gone = asyncio.ensure_future(_hung_up(request))
        try:
            left = limit - (perf_counter() - begun)
            await asyncio.wait({work, gone}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                return work.result()
            if gone.done():
                raise HungUpError
            raise RequestError(
                504,
                "out_of_time",
                f"the answer was not ready within {limit:g} seconds: {self.operation.late}",
            )
        finally:
            work.cancel()
            gone.cancel()
            # What was cancelled must end before the next request of the connection.
            await asyncio.gather(work, gone, return_exceptions=True)

    async def _call(self, request: Request, begun: float) -> Call:
        operation = self.operation
        token = self._known(request)
        content = await read_body(request, self.service.settings.limits.body)
        body: dict[str, Any] = {}
        if operation.request is not None:
            media = request.headers.get("content-type", "")
            body = parsed(content, media, self._schema, form=operation.form)
        if token is None:
            # LibreTranslate's clients send their key with the text.
            key = body.get("api_key") if operation.form else None
            token = self._token(key) if isinstance(key, str) else None
        if token is None:
            raise _no_token(f"a token to {operation.scope} is needed")
        if operation.request is not None and len(content) > LARGE:
            await asyncio.to_thread(check, body, self._validator)
        elif operation.request is not None:
            check(body, self._validator)
        return Call(token, body, request.path_params, self._asked(request), begun)

    def _known(self, request: Request) -> Token | None:
        """Return who asks, None if only the body can say; raise if the token is not enough."""
        operation, settings = self.operation, self.service.settings
        if operation.scope in ("write", "review"):
            _check_origin(request, settings.access.origins)
            if self.service.store is None:
                message = "the service keeps no feedback: it was started without --store"
                raise RequestError(404, "no_store", message)
        public = operation.scope == "none"
        public |= operation.scope == "read" and not settings.access.private
        scheme, _, secret = request.headers.get("authorization", "").partition(" ")
        # DeepL's clients always send a key, also where none is needed.
        if scheme and not (public and scheme.lower() == "deepl-auth-key"):
            token = self._token(secret.strip())
            if token is None or scheme.lower() not in ("bearer", "deepl-auth-key"):
                raise _no_token("the token is not valid")
        elif settings.feedback.open:
            token = Token(None, "", "review")
        elif public:
            token = Token(None, "", "read")
        else:
            return None
        if operation.scope != "none" and not token.permits(operation.scope):
            message = f"this token permits to {token.scope}, not to {operation.scope}"
            raise RequestError(403, "not_permitted", message)
        return token

    def _token(self, text: str) -> Token | None:
        return None if self.service.store is None else self.service.store.token(text)

    def _asked(self, request: Request) -> dict[str, Any]:
        """Return the checked parameters of the address."""
        if not self.operation.query:
            return {}
        found: dict[str, Any] = {}
        for name, text in request.query_params.multi_items():
            if name in found:
                raise RequestError(400, "bad_request", f"{name}: given twice")
            whole = self.operation.query.get(name, {}).get("type") == "integer"
            number = whole and re.fullmatch(r"-?[0-9]{1,19}", text)
            found[name] = int(text) if number else text
        check(found, self._query)
        return found


def refusal(refused: RequestError, *, deepl: bool = False) -> Reply:
    """Return the answer for an error, in the shape of LibreTranslate or DeepL."""
    content = {"message" if deepl else "error": refused.message, "code": refused.code}
    headers = dict(refused.headers)
    if refused.status in UNREAD:
        headers["Connection"] = "close"
    return Reply(content, refused.status, headers=headers)


async def _hung_up(request: Request) -> None:
    """Return when the client has closed the connection."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _no_token(message: str) -> RequestError:
    remedy = "send Authorization: Bearer TOKEN; tunesmith token new makes one"
    return RequestError(401, "no_token", f"{message}: {remedy}", {"WWW-Authenticate": "Bearer"})


def _check_origin(request: Request, origins: tuple[str, ...]) -> None:
    """Raise if a page of another origin writes."""
    origin = request.headers.get("origin")
    if origin is None or "*" in origins or origin in origins:
        return
    if urlsplit(origin).netloc != request.headers.get("host"):
        raise RequestError(
            403, "other_origin", "pages of other origins may not write (--allow-origin)"
        )
