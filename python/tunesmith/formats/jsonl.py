"""JSONL, the canonical format: one object per sentence, see `nbest.schema.json`."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from tunesmith._core import AtomicWriter
from tunesmith.formats.base import (
    FIELDS,
    INFINITE,
    NUMBER,
    TWICE,
    Empty,
    End,
    Format,
    Hypothesis,
    Item,
    Lists,
    TextFile,
    register,
    shown,
)


def decode(file: TextFile, line: str) -> dict[str, Any] | None:
    """Return the object on a line, or `None` after reporting that there is none."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            raise _TwiceError(next(name for name in names if names.count(name) > 1))
        return record

    try:
        record = json.loads(line, object_pairs_hook=distinct)
    except _TwiceError as error:
        file.bad(TWICE, f"{shown(error.args[0])} is given twice", "give every name one value")
        return None
    except (ValueError, RecursionError) as error:
        file.bad(FIELDS, f"not JSON: {json_reason(error)}", "write one JSON object per line")
        return None
    if not isinstance(record, dict):
        file.bad(FIELDS, "not a JSON object", "write one JSON object per line")
        return None
    return record


def json_reason(error: Exception) -> str:
    """Return why text is not JSON."""
    if isinstance(error, json.JSONDecodeError | RecursionError):
        return str(error)
    return "a whole number with thousands of digits"


class _TwiceError(Exception):
    """A name occurs twice in an object."""


def numbers(file: TextFile, record: Any, what: str) -> dict[str, float] | None:
    """Return finite numbers by name, or `None` after reporting that one is not."""
    if record is None:
        return {}
    if not isinstance(record, dict):
        file.bad(FIELDS, f"the {what} are not an object", f"write the {what} as name: number")
        return None
    for name, value in record.items():
        if not is_number(value):
            file.bad(NUMBER, f"{shown(name)} has no number", "give every name a number")
            return None
        if not _finite(value):
            file.bad(INFINITE, f"{shown(name)} is not a finite number", "leave out unknown values")
            return None
    return {name: float(value) for name, value in record.items()}


def is_number(value: Any) -> bool:
    """Return whether a JSON value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def read(file: TextFile) -> Iterator[Item]:
    unread: list[int] = []
    keyed = False
    lines = (line for line in file.lines() if line is None or line.strip())
    for index, line in enumerate(lines):
        record = record_of(file, line)
        if record is None:
            unread.append(index)
            continue
        sentence: int | str = index
        keyed = record.get("key") is not None
        if keyed:
            sentence = record["key"]
        yield Empty(sentence, source_of(file, record), references_of(file, record))
        listed = record.get("hypotheses")
        if not isinstance(listed, list):
            file.bad(FIELDS, "no list of hypotheses", 'write "hypotheses": [{"text": …}]')
            continue
        for item in listed:
            yield _hypothesis(file, sentence, item)
        yield End()
    if not keyed:
        # An unreadable line still counts as a sentence, or all later ones would shift.
        yield from map(Empty, unread)


def record_of(file: TextFile, line: str | None) -> dict[str, Any] | None:
    """Return the record on a line, or `None` after reporting a bad record or key."""
    record = None if line is None else decode(file, line)
    key = None if record is None else record.get("key")
    if key is not None and not isinstance(key, str):
        file.bad(FIELDS, "the key is not text", 'write it in quotation marks: "key": "1"')
        return None
    return record


def references_of(file: TextFile, record: dict[str, Any]) -> list[str] | None:
    """Return the references of a list; `None` if missing, or bad and reported."""
    texts = record.get("references")
    if texts is None:
        return None
    if not isinstance(texts, list) or not all(map(_is_text, texts)):
        file.bad(FIELDS, "references are not a list of texts", 'write "references": ["…"]')
        return None
    return texts


def source_of(file: TextFile, record: dict[str, Any]) -> str | None:
    """Return the source of a list; `None` if missing, or bad and reported."""
    text = record.get("source")
    if text is not None and not _is_text(text):
        file.bad(FIELDS, "the source is not text", 'write "source": "…"')
        return None
    return text


def _is_text(value: Any) -> bool:
    """Return whether a value is text without lone surrogates, which JSON can escape."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _hypothesis(file: TextFile, sentence: int | str, item: Any) -> Hypothesis | None:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        file.bad(FIELDS, "a hypothesis without text", 'write {"text": "…", "features": {…}}')
        return None
    features = numbers(file, item.get("features"), "features")
    columns = numbers(file, item.get("columns"), "columns")
    given = item.get("score")
    score = numbers(file, None if given is None else {"score": given}, "score")
    extra = item.get("extra", "")
    if not isinstance(extra, str):
        file.bad(FIELDS, "extra is not text", "write extra as text")
        return None
    if features is None or columns is None or score is None:
        return None
    return Hypothesis(sentence, item["text"], features, score.get("score"), extra, columns)


def write(lists: Lists, path: str) -> None:
    with AtomicWriter(path) as out:
        keyed = bool(lists.pools.keys)
        for sentence in lists:
            record: dict[str, Any] = {"key": sentence.key} if keyed else {}
            if sentence.source is not None:
                record["source"] = sentence.source
            if sentence.references is not None:
                record["references"] = list(sentence.references)
            record["hypotheses"] = [_record(hypothesis) for hypothesis in sentence.hypotheses]
            out.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def _record(hypothesis: Hypothesis) -> dict[str, Any]:
    record: dict[str, Any] = {"text": hypothesis.text}
    if hypothesis.score is not None:
        record["score"] = hypothesis.score
    if hypothesis.features:
        record["features"] = hypothesis.features
    if hypothesis.columns:
        record["columns"] = hypothesis.columns
    if hypothesis.extra:
        record["extra"] = hypothesis.extra
    return record


register(Format("jsonl", read, write, columns=True, extra=True, ends=True))
