"""JSONL, the canonical format: one object per sentence, see ``nbest.schema.json``."""

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
    Source,
    register,
    shown,
)


def decode(source: Source, line: str) -> dict[str, Any] | None:
    """The object of a line; ``None``, and reported, where it is none."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(pairs)
        if len(record) < len(pairs):
            names = [name for name, _ in pairs]
            raise _TwiceError(next(name for name in names if names.count(name) > 1))
        return record

    try:
        record = json.loads(line, object_pairs_hook=distinct)
    except _TwiceError as error:
        source.bad(TWICE, f"{shown(error.args[0])} is given twice", "give every name one value")
        return None
    except (ValueError, RecursionError) as error:
        source.bad(FIELDS, f"not JSON: {json_reason(error)}", "write one JSON object per line")
        return None
    if not isinstance(record, dict):
        source.bad(FIELDS, "not a JSON object", "write one JSON object per line")
        return None
    return record


def json_reason(error: Exception) -> str:
    """Return why text is not JSON."""
    if isinstance(error, json.JSONDecodeError | RecursionError):
        return str(error)
    return "a whole number with thousands of digits"


class _TwiceError(Exception):
    """A name occurs twice in an object."""


def numbers(source: Source, record: Any, what: str) -> dict[str, float] | None:
    """Named finite numbers; ``None``, and reported, where they are none."""
    if record is None:
        return {}
    if not isinstance(record, dict):
        source.bad(FIELDS, f"the {what} are not an object", f"write the {what} as name: number")
        return None
    for name, value in record.items():
        if not is_number(value):
            source.bad(NUMBER, f"{shown(name)} has no number", "give every name a number")
            return None
        if not _finite(value):
            source.bad(
                INFINITE, f"{shown(name)} is not a finite number", "leave out what is unknown"
            )
            return None
    return {name: float(value) for name, value in record.items()}


def is_number(value: Any) -> bool:
    """JSON's true and false are no numbers, though Python's are."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def _finite(value: int | float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def read(source: Source) -> Iterator[Item]:
    unread: list[int] = []
    keyed = False
    lines = (line for line in source.lines() if line is None or line.strip())
    for index, line in enumerate(lines):
        record = record_of(source, line)
        if record is None:
            unread.append(index)
            continue
        sentence: int | str = index
        keyed = record.get("key") is not None
        if keyed:
            sentence = record["key"]
        yield Empty(sentence, source_of(source, record), references_of(source, record))
        listed = record.get("hypotheses")
        if not isinstance(listed, list):
            source.bad(FIELDS, "no list of hypotheses", 'write "hypotheses": [{"text": …}]')
            continue
        for item in listed:
            yield _hypothesis(source, sentence, item)
        yield End()
    if not keyed:
        # A line that cannot be read still counts as a sentence, or all others would shift.
        yield from map(Empty, unread)


def record_of(source: Source, line: str | None) -> dict[str, Any] | None:
    """The list of a line, its key text or not there; ``None``, and reported, where it is none."""
    record = None if line is None else decode(source, line)
    key = None if record is None else record.get("key")
    if key is not None and not isinstance(key, str):
        source.bad(FIELDS, "the key is not text", 'write it in quotation marks: "key": "1"')
        return None
    return record


def references_of(source: Source, record: dict[str, Any]) -> list[str] | None:
    """The references of a list; ``None`` where there are none, or, reported, they are no texts."""
    texts = record.get("references")
    if texts is None:
        return None
    if not isinstance(texts, list) or not all(map(_is_text, texts)):
        source.bad(FIELDS, "references are not a list of texts", 'write "references": ["…"]')
        return None
    return texts


def source_of(source: Source, record: dict[str, Any]) -> str | None:
    """The source of a list; ``None`` where there is none, or, reported, it is no text."""
    text = record.get("source")
    if text is not None and not _is_text(text):
        source.bad(FIELDS, "the source is not text", 'write "source": "…"')
        return None
    return text


def _is_text(value: Any) -> bool:
    """Half a character, as JSON's escapes can write it, is none."""
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _hypothesis(source: Source, sentence: int | str, item: Any) -> Hypothesis | None:
    if not isinstance(item, dict) or not isinstance(item.get("text"), str):
        source.bad(FIELDS, "a hypothesis without text", 'write {"text": "…", "features": {…}}')
        return None
    features = numbers(source, item.get("features"), "features")
    columns = numbers(source, item.get("columns"), "columns")
    given = item.get("score")
    score = numbers(source, None if given is None else {"score": given}, "score")
    extra = item.get("extra", "")
    if not isinstance(extra, str):
        source.bad(FIELDS, "extra is not text", "write extra as text")
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
