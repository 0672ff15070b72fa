"""Weights on disk: TOML that people can read and edit, exact to the last bit."""

from __future__ import annotations

import json
import math
import re
import sys
import tomllib
from collections.abc import Mapping
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tomli_w

from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write
from tunesmith.files.text import cannot_read, read_whole

_HEADER = "# Weights of a linear model: a hypothesis scores the sum of weight times feature.\n\n"
# JSON escapes everything TOML wants escaped, apart from DEL. The others break lines in
# some editors, which would shift the line numbers of our messages.
_NEEDS_ESCAPE = re.compile(r'["\\\x00-\x1f\x7f\x85\u2028\u2029]')
_ALSO_ESCAPED = {code: f"\\u{code:04X}" for code in (0x7F, 0x85, 0x2028, 0x2029)}

# One line as `dump_weights` writes it. tomllib needs 14 seconds for a million weights;
# lines of this form are read here, and a file with any other line goes to tomllib.
_LINE = re.compile(
    r'^(?:"([^"\\\x00-\x1f\x7f]*'
    r'(?:\\(?:["\\bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4})[^"\\\x00-\x1f\x7f]*)*)"'
    r"|([A-Za-z0-9_-]+))"
    r" = ([+-]?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:e[+-]?[0-9]+)?|e[+-]?[0-9]+))$",
    re.MULTILINE,
)


def dump_weights(
    path: Path | str,
    weights: Mapping[str, float],
    meta: Mapping[str, object],
    order: Literal["magnitude", "given"] = "magnitude",
    durable: bool = True,
) -> None:
    """Write weights and data about them, atomically.

    Every float is written with the fewest digits that read back as the same float. The
    largest magnitude comes first, equal ones by name, or all in the order given. `meta`
    may hold text, numbers, booleans, lists and tables; None is left out. Raise for NaN,
    infinities and names that are not Unicode.
    """
    path = Path(path)
    items = _checked(weights, path)
    if order == "magnitude":
        # Two stable sorts by one key each take half the time of one by pairs.
        items.sort(key=itemgetter(0))
        items.sort(key=lambda item: -abs(item[1]))
    try:
        text = "".join(
            [
                _HEADER,
                tomli_w.dumps({"tunesmith": _plain(meta)}),
                "\n[weights]\n",
                # By hand: tomli_w takes three times as long for a million weights.
                *[f"{_quoted(name)} = {value!r}\n" for name, value in items],
            ]
        ).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"the feature name {error.object[max(0, error.start - 20) : error.end]!r} "
            "is not valid Unicode",
            file=str(path),
            remedy="rename the feature in the n-best lists",
        ) from error
    with atomic_write(path, durable=durable) as stream:
        stream.write(text)


def load_weights(path: Path | str) -> tuple[dict[str, float], dict[str, Any]]:
    """Return weights in the file's order and the table `[tunesmith]`.

    Raise an `InputError` with file, line and remedy if the file is not TOML in UTF-8, has no
    table `[weights]`, or has a weight that is not a finite number.
    """
    path = Path(path)
    text = _read(path)
    parsed = _fast(text)
    if parsed is not None:
        return parsed
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"not TOML: {_without_place(str(error))}",
            file=str(path),
            line=_line_of_error(str(error), text),
            remedy='write each weight as "name" = number',
        ) from error
    except ValueError:  # an integer with more digits than Python converts
        raise InputError(
            "a whole number with thousands of digits",
            file=str(path),
            line=_line_of_digits(text),
            remedy="write weights as decimal numbers, for instance 0.5",
        ) from None
    table = document.get("weights")
    if not isinstance(table, dict):
        raise InputError(
            "there is no table [weights]",
            file=str(path),
            remedy='put the line [weights] before lines of the form "name" = number',
        )
    meta = document.get("tunesmith", {})
    if not isinstance(meta, dict):
        raise InputError(
            "tunesmith is not a table", file=str(path), remedy="remove it or write [tunesmith]"
        )
    return {name: _number(name, value, path, text) for name, value in table.items()}, meta


def _fast(text: str) -> tuple[dict[str, float], dict[str, Any]] | None:
    """Read a file of the form we write, or return None and leave it to tomllib."""
    head, mark, body = text.partition("\n[weights]\n")
    if not mark:
        return None
    weights: dict[str, float] = {}
    lines = 0
    for quoted, bare, number in _LINE.findall(body):
        name = bare or (json.loads(f'"{quoted}"') if "\\" in quoted else quoted)
        weights[name] = float(number)
        lines += 1
    # A line that did not match, or a name given twice, shows in the counts.
    if lines != len(weights) or lines != body.count("\n") or body[-1:] not in ("", "\n"):
        return None
    if not np.isfinite(np.fromiter(weights.values(), np.float64, len(weights))).all():
        return None
    try:
        document = tomllib.loads(head)
    except (ValueError, RecursionError):
        return None
    meta = document.get("tunesmith", {})
    if "weights" in document or not isinstance(meta, dict):
        return None
    return weights, meta


def _read(path: Path) -> str:
    try:
        data = read_whole(path)
    except OSError as error:
        raise cannot_read(path, error) from error
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(
            "not UTF-8",
            file=str(path),
            line=data.count(b"\n", 0, error.start) + 1,
            remedy="save the file as UTF-8",
        ) from error


def _checked(weights: Mapping[str, float], path: Path) -> list[tuple[str, float]]:
    items = [(name, float(value)) for name, value in weights.items()]
    for name, value in items:
        if not math.isfinite(value):
            raise InputError(
                f"the weight of {name!r} is {value}, and a weight must be finite",
                file=str(path),
                remedy="look for NaN or huge values of this feature in the lists",
            )
    return items


def _number(name: str, value: object, path: Path, text: str) -> float:
    remedy = "give a finite number"
    if isinstance(value, dict):
        remedy = "put quotation marks around a name with a dot in it"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    kind = {dict: "a table", list: "a list", str: "text", bool: "true or false"}.get(
        type(value), "not a finite number" if isinstance(value, int | float) else "a date or time"
    )
    raise InputError(
        f"the weight of {name!r} is {kind}",
        file=str(path),
        line=_line_of_name(name, text),
        remedy=remedy,
    )


def _line_of_name(name: str, text: str) -> int | None:
    """Return the line that begins with this name in one of the ways to write it."""
    ways = (_quoted(name), f"'{name}'", name)
    for number, line in enumerate(text.split("\n"), start=1):
        if any(
            line.lstrip().startswith(way)
            and line.lstrip()[len(way) :].lstrip().startswith(("=", "."))
            for way in ways
        ):
            return number
    return None


def _line_of_error(message: str, text: str) -> int | None:
    found = re.search(r"at line (\d+)", message)
    if found:
        return int(found[1])
    return text.count("\n") + 1 if "end of document" in message else None


def _line_of_digits(text: str) -> int | None:
    found = re.search(rf"(?:\d_?){{{sys.get_int_max_str_digits() + 1}}}", text)
    return None if found is None else text.count("\n", 0, found.start()) + 1


def _without_place(message: str) -> str:
    return re.sub(r" \(at [^)]*\)$", "", message)


# -- TOML ----------------------------------------------------------------------------------


def _quoted(text: str) -> str:
    if not _NEEDS_ESCAPE.search(text):
        return f'"{text}"'
    return json.dumps(text, ensure_ascii=False).translate(_ALSO_ESCAPED)


def _plain(value: object) -> Any:
    """Return meta data in the types of TOML, without None."""
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value if item is not None]
    return value
