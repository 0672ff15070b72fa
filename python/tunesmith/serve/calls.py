"""A request as the service sees it: who asks, and the body, read within limits and checked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from starlette.requests import ClientDisconnect, Request

from tunesmith.serve.settings import RequestError
from tunesmith.serve.tokens import Token

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
# Fields of a form; a text of a batch is one.
FIELDS = 10_000
SHOWN = 200


@dataclass(frozen=True)
class Call:
    """A request that may be answered."""

    token: Token
    """Who asks; a token without number if none is needed."""
    body: dict[str, Any] = field(default_factory=dict)
    path: Mapping[str, int] = field(default_factory=dict)
    query: Mapping[str, Any] = field(default_factory=dict)
    begun: float = 0.0


class HungUpError(Exception):
    """The client closed the connection."""


async def read_body(request: Request, limit: int) -> bytes:
    """Return the body; raise if it is longer than the limit or the client hangs up."""
    too_large = RequestError(
        413, "body_too_large", f"the body is larger than {limit:,} bytes: send it in parts"
    )
    length = request.headers.get("content-length", "")
    if length.isdigit() and len(length) < 20 and int(length) > limit:
        raise too_large
    parts, size = [], 0
    try:
        async for part in request.stream():
            size += len(part)
            if size > limit:
                raise too_large
            parts.append(part)
    except ClientDisconnect:
        raise HungUpError from None
    return b"".join(parts)


def parsed(content: bytes, media: str, schema: Mapping[str, Any], *, form: bool) -> dict[str, Any]:
    """Return the object in a body; raise if it is neither JSON nor, if allowed, a form."""
    kind = media.partition(";")[0].strip().lower()
    if kind == FORM and form:
        return _form(content, schema)
    # Programs that send no type, and those of LibreTranslate, mean JSON.
    if kind not in ("", JSON):
        known = f"{JSON} or {FORM}" if form else JSON
        raise RequestError(415, "unknown_type", f"a body of type {_short(kind)}: send {known}")
    try:
        found = json.loads(content.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise RequestError(400, "not_utf8", f"the body is not UTF-8: {error.reason}") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise RequestError(
            400, "not_json", f"the body is not JSON: {error.msg} ({where})"
        ) from None
    except (ValueError, RecursionError) as error:
        raise RequestError(400, "not_json", f"the body is not JSON: {_short(str(error))}") from None
    if not isinstance(found, dict):
        raise RequestError(400, "bad_request", "the body is not a JSON object")
    return found


def check(value: Any, validator: Draft202012Validator) -> None:
    """Raise if a value does not fit its schema, or has text that is no Unicode."""
    # The first error: finding all of those in a large body would take many seconds.
    error = next(validator.iter_errors(value), None)
    if error is not None:
        where = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in error.path)
        where = _short(where.lstrip(".")) or "body"
        raise RequestError(400, "bad_request", f"{where}: {_short(_told(error))}")
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise RequestError(
            400, "bad_request", "the text has a lone surrogate: not Unicode"
        ) from None


def _told(error: ValidationError) -> str:
    """Return what is wrong, without what was sent: that may be long."""
    found: Any = error.instance
    wanted: Any = error.validator_value
    schema: Any = error.schema
    match error.validator:
        case "required":
            return f"{next(name for name in wanted if name not in found)} is missing"
        case "additionalProperties":
            known = schema["properties"]
            return f"unknown field {next(name for name in found if name not in known)}"
        case "type":
            kinds = [wanted] if isinstance(wanted, str) else wanted
            return f"it must be of type {' or '.join(kinds)}"
        case "enum":
            return f"it must be {' or '.join(wanted)}"
        case "pattern":
            return f"it must be {schema['description']}"
        case "minItems":
            return "the list is empty"
        case "maxItems":
            return f"{len(found):,} items, but the limit is {wanted:,}"
        case "maxLength":
            return f"{len(found):,} characters, but the limit is {wanted:,}"
        case "minimum":
            return f"it must be at least {wanted:,}"
        case "maximum":
            return f"it must be at most {wanted:,}"
    return "this field is not supported"


def _form(content: bytes, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a form, with numbers where the schema has them."""
    try:
        pairs = parse_qsl(
            content.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=FIELDS,
        )
    except UnicodeDecodeError:
        raise RequestError(400, "not_utf8", "the form is not UTF-8") from None
    except ValueError as error:
        raise RequestError(400, "bad_request", f"not a form: {_short(str(error))}") from None
    known = schema.get("properties", {})
    found: dict[str, Any] = {}
    for name, text in pairs:
        kind = known.get(name)
        value: Any = text
        if isinstance(kind, dict) and kind.get("type") == "integer":
            value = int(text) if re.fullmatch(r"-?[0-9]{1,9}", text) else text
        if isinstance(kind, dict) and kind.get("type") == "array":
            found.setdefault(name, []).append(value)
        elif name in found:
            held = found[name]
            found[name] = [*held, value] if isinstance(held, list) else [held, value]
        else:
            found[name] = value
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
