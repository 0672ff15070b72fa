"""The application: routes, pages, and the guard around them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import perf_counter
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tunesmith.serve import correcting, openapi, page, running, translating
from tunesmith.serve.calls import JSON
from tunesmith.serve.operations import ROUTE, Endpoint, Operation, refusal
from tunesmith.serve.service import Service
from tunesmith.serve.settings import RequestError, busy

log = logging.getLogger("tunesmith.serve")
OPERATIONS: tuple[Operation, ...] = (
    *translating.OPERATIONS,
    *correcting.OPERATIONS,
    *running.OPERATIONS,
)
# Answered whatever the load, so that a busy service is not taken for a dead one.
ALWAYS = ("/health", "/ready", "/metrics")
HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
NOTHING = "default-src 'none'; frame-ancestors 'none'"
STYLED = f"{NOTHING}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def application(service: Service) -> Starlette:
    """Return the ASGI application of a service, which it closes at its end."""

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        try:
            yield
        except asyncio.CancelledError:
            # A second SIGINT waits for nothing.
            return
        await asyncio.to_thread(service.close)

    described = openapi.document(service, OPERATIONS)
    main, policy = page.rendered()
    fixed = {
        "/": (main.encode(), "text/html; charset=utf-8", policy),
        "/docs": (openapi.page(described).encode(), "text/html; charset=utf-8", STYLED),
        "/openapi.json": (json.dumps(described).encode(), JSON, NOTHING),
    }
    # One route for each path, so that another method is answered with those that there are.
    endpoints: dict[str, dict[str, Endpoint]] = {}
    for operation in OPERATIONS:
        methods = endpoints.setdefault(operation.path, {})
        methods[operation.method] = Endpoint(service, operation)
    routes = [
        *(Route(path, _page(path, *content), methods=["GET"]) for path, content in fixed.items()),
        *(Route(path, _chosen(found), methods=list(found)) for path, found in endpoints.items()),
    ]
    settings = service.settings
    middleware = [Middleware(Guard, service=service)]
    if settings.access.origins:
        middleware.append(
            Middleware(
                CORSMiddleware,
                allow_origins=list(settings.access.origins),
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["authorization", "content-type"],
            )
        )
    return Starlette(
        routes=routes,
        middleware=middleware,
        lifespan=lifespan,
        exception_handlers={HTTPException: _http_error, Exception: _failure},
    )


class Guard:
    """What every request passes: the host's name, the number of requests, headers, figures."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service
        self._active = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = perf_counter()
        status = 500

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in {**HEADERS, "content-security-policy": NOTHING}.items():
                    headers.setdefault(name, value)
            await send(message)

        # Whoever watches the service must not take the place of a client.
        counted = scope["path"] not in ALWAYS
        self._active += counted
        try:
            refused = self._refused(scope)
            if refused is None:
                await self._app(scope, receive, sent)
            else:
                await refusal(refused).response()(scope, receive, sent)
        finally:
            self._active -= counted
            route = scope.get(ROUTE, "other")
            measures = self._service.measures
            measures.requests.labels(route, str(status)).inc()
            measures.seconds.labels(route).observe(perf_counter() - begun)

    def _refused(self, scope: Scope) -> RequestError | None:
        settings = self._service.settings
        if settings.access.hosts is not None:
            host = Headers(scope=scope).get("host", "")
            name = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
            if name.lower() not in settings.access.hosts:
                message = "the request addresses another host (--allow-host)"
                return RequestError(421, "other_host", message)
        if self._active > settings.limits.requests and scope["path"] not in ALWAYS:
            message = f"more than {settings.limits.requests:,} requests at the same time"
            return busy("too_many_requests", message)
        return None


def _page(path: str, content: bytes, media: str, policy: str) -> Any:
    async def answer(request: Request) -> Response:
        request.scope[ROUTE] = path
        return Response(content, 200, {"content-security-policy": policy}, media)

    return answer


def _chosen(endpoints: dict[str, Endpoint]) -> Any:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        return await endpoints[method](request)

    return answer


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow", "another method")
    known = {
        404: "there is nothing here: GET /docs lists what there is",
        405: f"{request.method} is not possible here: use {allowed}",
    }
    message = known.get(error.status_code, str(error.detail))
    code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "bad_request")
    deepl = request.url.path.startswith("/v2/")
    reply = refusal(RequestError(error.status_code, code, message, error.headers), deepl=deepl)
    return reply.response()


async def _failure(request: Request, error: Exception) -> Response:
    log.error("%s %s failed", request.method, request.scope.get(ROUTE, "other"), exc_info=error)
    return refusal(RequestError(500, "failed", "the service failed: see its log")).response()
