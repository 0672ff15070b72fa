"""Operations on the service itself: health, figures, reload."""

from __future__ import annotations

from dataclasses import asdict

from tunesmith import __version__
from tunesmith.serve.calls import Call
from tunesmith.serve.languages import name_of
from tunesmith.serve.measures import TYPE
from tunesmith.serve.operations import Operation, Reply
from tunesmith.serve.service import Service
from tunesmith.serve.settings import RequestError


async def about(service: Service, call: Call) -> Reply:
    """Answer with what the service can do."""
    settings, engine = service.settings, service.engine
    sides = {"source": engine.source, "target": engine.target}
    feedback = "off"
    if service.store is not None:
        feedback = "open" if settings.feedback.open else "token"
    return Reply(
        {
            "version": __version__,
            "model": engine.fingerprint,
            **{side: {"code": code, "name": name_of(code)} for side, code in sides.items()},
            "local": engine.local is not None,
            "feedback": feedback,
            "memory": settings.feedback.memory,
            "private": settings.access.private,
            "limits": asdict(settings.limits),
        }
    )


async def health(service: Service, call: Call) -> Reply:
    """Answer that the process is alive."""
    return Reply({"status": "ok"})


async def ready(service: Service, call: Call) -> Reply:
    """Answer whether requests can be answered."""
    if service.store is not None and service.store.writer.broken is not None:
        raise RequestError(503, "store_damaged", "the store is damaged: see the log of the service")
    waiting = service.batcher.waiting
    return Reply({"status": "ready", "model": service.engine.fingerprint, "waiting": waiting})


async def figures(service: Service, call: Call) -> Reply:
    """Answer with figures for Prometheus."""
    return Reply(service.measures.text(), media=TYPE)


async def reload(service: Service, call: Call) -> Reply:
    """Load model and weights again, from the paths of the command line."""
    return Reply(await service.reload())


OPERATIONS = (
    Operation("GET", "/v1/service", about, "What the service can do", "Service", scope="none"),
    Operation("GET", "/health", health, "Whether the process is alive", "Health", scope="none"),
    Operation("GET", "/ready", ready, "Whether requests are answered", "Ready", scope="none"),
    Operation("GET", "/metrics", figures, "Figures for Prometheus", None, media="text/plain"),
    Operation(
        *("POST", "/v1/reload", reload, "Load model and weights again", "Reloaded"),
        scope="review",
        late="the reload goes on, and /ready shows the new model when it is done",
    ),
)
