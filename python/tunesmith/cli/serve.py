"""`tunesmith serve`: the HTTP service."""

from __future__ import annotations

import logging
from asyncio import CancelledError
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.logging import RichHandler

from tunesmith.cli import options as o
from tunesmith.cli.console import busy, emit, err, note, warn
from tunesmith.errors import InputError

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith serve model --weights w.toml\n\n"
    "$ tunesmith token new --store feedback && tunesmith serve model --store feedback --memory\n\n"
    "$ tunesmith serve model --local index --store feedback --feedback review\n\n"
    "$ curl localhost:5000/translate -d q='ein Haus' -d source=de -d target=en"
)
NETWORK = "Who may ask"
FEEDBACK = "Feedback"
LIMITS = "Limits"


def serve(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model directory.")],
    weights: Annotated[
        Path | None,
        o.option("--weights -w", "FILE", "Weights; else weights.toml of the model.", o.MODEL),
    ] = None,
    kind: o.Kind = None,
    search: o.Search = None,
    local: Annotated[
        Path | None,
        o.option(
            "--local",
            "INDEX",
            "Examples: each sentence gets weights of its own, and accepted corrections are added.",
            o.MODEL,
        ),
    ] = None,
    method: Annotated[
        str | None, o.option("--method", "NAME", "How local weights are learnt.", o.MODEL)
    ] = None,
    host: Annotated[
        str, o.option("--host", "NAME", "Address to listen on.", NETWORK)
    ] = "127.0.0.1",
    port: Annotated[
        int, o.option("--port", "N", "Port; 0: any free one.", NETWORK, min=0, max=65535)
    ] = 5000,
    private: Annotated[
        bool, o.flag("--private", "Translating needs a token, too.", NETWORK)
    ] = False,
    allow_origin: Annotated[
        list[str] | None,
        o.option("--allow-origin", "URL", "Web pages of this origin may ask (CORS).", NETWORK),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        o.option("--allow-host", "NAME", "A name of this service, behind a proxy.", NETWORK),
    ] = None,
    store: Annotated[
        Path | None,
        o.option("--store", "DIR", "Where feedback and tokens are kept; without: none.", FEEDBACK),
    ] = None,
    feedback: Annotated[
        str,
        o.option(
            "--feedback",
            "NAME",
            "accept: use corrections that pass the filters; review: approve each by hand.",
            FEEDBACK,
        ),
    ] = "accept",
    memory: Annotated[
        bool,
        o.flag("--memory", "Answer a corrected sentence with its correction, verbatim.", FEEDBACK),
    ] = False,
    open_feedback: Annotated[
        bool,
        o.flag("--open-feedback", "Feedback without tokens; only on this machine.", FEEDBACK),
    ] = False,
    rate: Annotated[
        int,
        o.option(
            "--rate", "N", "Corrections per minute and token; more are held.", FEEDBACK, min=1
        ),
    ] = 30,
    threads: o.Threads = 0,
    max_body: Annotated[
        int, o.option("--max-body", "BYTES", "Size of a request.", LIMITS, min=1000)
    ] = 1 << 20,
    max_sentences: Annotated[
        int, o.option("--max-sentences", "N", "Sentences of a request.", LIMITS, min=1)
    ] = 500,
    max_words: Annotated[
        int, o.option("--max-words", "N", "Words of a sentence.", LIMITS, min=1)
    ] = 200,
    long: Annotated[
        str, o.option("--long", "NAME", "Longer sentences: refuse or split.", LIMITS)
    ] = "refuse",
    max_requests: Annotated[
        int, o.option("--max-requests", "N", "Requests at the same time.", LIMITS, min=1)
    ] = 200,
    max_queue: Annotated[
        int, o.option("--max-queue", "N", "Sentences that wait for a thread.", LIMITS, min=1)
    ] = 5000,
    max_seconds: Annotated[
        float, o.option("--max-seconds", "S", "Time for a request.", LIMITS, min=0.1, max=86400)
    ] = 30.0,
    batch: Annotated[
        int, o.option("--batch", "N", "Most sentences translated at once.", LIMITS, min=1)
    ] = 16,
    json: Annotated[bool, o.flag("--json", "Print the address as a JSON object.")] = False,
) -> None:
    """Serve translations over HTTP, and learn from corrections.

    LibreTranslate's and DeepL's clients work with it; the page is at the address itself, the
    description of the API at /docs. Ctrl-C or SIGTERM stops it after the last answer.
    """
    try:
        from tunesmith.serve import Access, Feedback, Limits, Paths, Service, Settings, application
        from tunesmith.serve.server import LOOPBACK, bound, is_loopback, url_of
        from tunesmith.serve.server import serve as run
    except ModuleNotFoundError as error:
        raise InputError(
            f"the package {error.name} is missing", remedy="pip install 'tunesmith[serve]'"
        ) from None
    o.one_of("feedback", feedback, ("accept", "review"))
    o.one_of("long", long, ("refuse", "split"))
    here = is_loopback(host)
    if open_feedback and not here:
        raise InputError(
            f"--open-feedback on {host} would let anybody write",
            remedy="leave it out and use tunesmith token new, or listen on 127.0.0.1",
        )
    if (memory or open_feedback or private) and store is None:
        raise InputError(
            "--memory, --open-feedback and --private need a store", remedy="give --store DIR"
        )
    if feedback == "review" and store is None:
        raise InputError("--feedback review needs a store", remedy="give --store DIR")
    if method is not None and local is None:
        raise InputError("--method belongs to --local", remedy="give --local INDEX")
    origins = tuple(map(_origin, allow_origin or ()))
    names = tuple(map(_name, allow_host or ()))
    settings = Settings(
        Paths(model, weights, kind, o.numbers(search), local, method, store),  # type: ignore[arg-type]
        Limits(
            body=max_body,
            sentences=max_sentences,
            words=max_words,
            long=long,  # type: ignore[arg-type]
            requests=max_requests,
            queue=max_queue,
            batch=batch,
            seconds=max_seconds,
        ),
        Feedback(accept=feedback == "accept", memory=memory, open=open_feedback, rate=rate),
        Access(
            private=private,
            origins=origins,
            # Only names of this machine: a page elsewhere must not reach it under another name.
            hosts=(*LOOPBACK, host.lower(), *names) if here or names else None,
        ),
        threads,
    )
    listening = bound(host, port)
    _log()
    with busy("loading"):
        service = Service(settings)
    try:
        if service.store is not None and not open_feedback:
            valid = [each for each in service.store.tokens() if each.revoked is None]
            if not valid and private:
                raise InputError(
                    "--private, but there is no token", remedy="tunesmith token new --store DIR"
                )
            if not valid:
                note("no token yet: tunesmith token new --store DIR makes one for feedback")
        if not here and not private:
            warn(f"everybody who reaches {host} may translate; --private asks for tokens")
        app = application(service)
    except BaseException:
        service.close()
        raise
    engine = service.engine
    if weights is None and not engine.model.tuned:
        note("these weights are not tuned; --weights names better ones")

    def started() -> None:
        url = url_of(listening)
        facts: dict[str, Any] = {"url": url, "source": engine.source, "target": engine.target}
        if json:
            emit({**facts, "model": engine.fingerprint})
        note(f"{engine.source} to {engine.target} on {url} (API: {url}/docs; Ctrl-C stops)")

    run(app, listening, settings.limits, started)
    note("stopped")


def _origin(text: str) -> str:
    """Return an origin as browsers send it; raise if it is none."""
    parts = urlsplit(text)
    if text != "*" and not (parts.scheme and parts.netloc and parts.path in ("", "/")):
        raise InputError(
            f"--allow-origin {text} is no origin", remedy="write it as https://example.org"
        )
    return text if text == "*" else f"{parts.scheme}://{parts.netloc}".lower()


def _name(text: str) -> str:
    """Return a host's name as requests are compared with it; raise if it is none."""
    if "/" in text or text.rpartition(":")[2].isdigit():
        raise InputError(
            f"--allow-host {text} is no name of a host",
            remedy="write the name only, as example.org: any port is allowed",
        )
    return text.lower()


def _log() -> None:
    """Send what the service and the server report to standard error."""
    handler = RichHandler(console=err, show_path=False, rich_tracebacks=False)
    # A second Ctrl-C cancels requests: that is no failure.
    handler.addFilter(lambda each: not (each.exc_info and each.exc_info[0] is CancelledError))
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
