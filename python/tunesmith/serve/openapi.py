"""The description of the service for programs, and the same as a page for people."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from importlib import resources
from typing import Any

from tunesmith import __version__
from tunesmith.serve.calls import FORM, JSON
from tunesmith.serve.operations import Operation
from tunesmith.serve.schemas import ID, RESPONSES, requests
from tunesmith.serve.service import Service

ERRORS = {
    400: "The body is not JSON, or a field is missing, wrong or of an unknown language.",
    401: "A token is needed, or the token is not valid.",
    403: "The token does not permit this.",
    404: "There is no such correction, or the service keeps no feedback.",
    408: "The request did not arrive in time.",
    409: "The request does not fit the state of the service.",
    413: "The body is too large.",
    415: "The body is of another type.",
    421: "The request addresses another host.",
    422: "A sentence is too long, there are too many, or the text cannot be translated.",
    429: "Too much feedback from one token.",
    500: "The service failed.",
    503: "The service is busy or stopping: send the request again later.",
    504: "The answer was not ready in time.",
    507: "The disk of the store is full: nothing was saved.",
}


def document(service: Service, operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI description of a service."""
    engine = service.engine
    schemas = {**RESPONSES, **requests(engine.source, engine.target, service.settings.limits)}
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        path = re.sub(r":int\}", "}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _described(service, operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tunesmith",
            "version": __version__,
            "description": f"Translation from {engine.source} into {engine.target}, with feedback.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(service: Service, operation: Operation) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "Done."}
    if operation.response is not None:
        good["content"] = {JSON: {"schema": _named(operation.response)}}
    elif operation.status != 204:
        good["content"] = {operation.media: {"schema": {"type": "string"}}}
    error = {JSON: {"schema": _named("DeepLError" if operation.deepl else "Error")}}
    made: dict[str, Any] = {
        "summary": operation.summary,
        "operationId": operation.handler.__name__,
        "responses": {
            str(operation.status): good,
            **{
                str(status): {"description": text, "content": error}
                for status, text in ERRORS.items()
            },
        },
    }
    if operation.scope in ("write", "review") or (
        operation.scope == "read" and service.settings.access.private
    ):
        made["security"] = [{"token": []}]
        if service.settings.feedback.open:
            made["security"].append({})
    if operation.request is not None:
        kinds = (JSON, FORM) if operation.form else (JSON,)
        schema = _named(operation.request)
        content = {kind: {"schema": schema} for kind in kinds}
        made["requestBody"] = {"required": True, "content": content}
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()
    ]
    if "{id" in operation.path:
        parameters.append({"name": "id", "in": "path", "required": True, "schema": ID})
    if parameters:
        made["parameters"] = parameters
    return made


def _named(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def page(described: dict[str, Any]) -> str:
    """Return the description as HTML that needs neither scripts nor network."""
    style = resources.files("tunesmith.report").joinpath("style.css").read_text(encoding="utf-8")
    sections = []
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            sections.append(_section(path, method, operation, described["components"]["schemas"]))
    rows = "".join(
        f"<tr><td>{status}</td><td class=name>{escape(text)}</td></tr>"
        for status, text in ERRORS.items()
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'
        f"<title>Tunesmith: the API</title><style>{style}</style></head><body><main>"
        f'<h1>The API</h1><p class="lead">{escape(described["info"]["description"])} '
        'The same for programs: <a href="openapi.json">openapi.json</a>. '
        'The page: <a href="./">translate</a>.</p>'
        f"{''.join(sections)}<section><h2>Errors</h2><p class=lead>An error is an object with "
        "<code>error</code>, the message, and <code>code</code>, a word for programs; DeepL’s has "
        "<code>message</code>.</p><table><thead><tr><th>status</th><th>meaning</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></section></main></body></html>\n"
    )


def _section(path: str, method: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    token = "<p class=more>Needs a token.</p>" if operation.get("security") else ""
    parts = [f"<section><h2><code>{method.upper()} {escape(path)}</code></h2>"]
    parts.append(f'<p class="lead">{escape(operation["summary"])}.</p>{token}')
    for parameter in operation.get("parameters", []):
        schema = escape(json.dumps(parameter["schema"]))
        parts.append(f"<p><code>{escape(parameter['name'])}</code>: <code>{schema}</code></p>")
    if "requestBody" in operation:
        kinds = operation["requestBody"]["content"]
        parts.append(_schema(f"Request: {' or '.join(kinds)}", next(iter(kinds.values())), schemas))
    good = next(iter(operation["responses"].items()))
    content = next(iter(good[1].get("content", {}).values()), None)
    parts.append(
        f"<p class=more>Answer: {good[0]}, no content.</p>"
        if content is None
        else _schema(f"Answer: {good[0]}", content, schemas)
    )
    return "".join(parts) + "</section>"


def _schema(title: str, content: dict[str, Any], schemas: dict[str, Any]) -> str:
    schema = content["schema"]
    shown = schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    text = escape(json.dumps(shown, indent=2, ensure_ascii=False))
    return f"<details><summary>{escape(title)}</summary><pre>{text}</pre></details>"
