"""Reference texts: one file per reference, matched with the lists by line or by key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from tunesmith.errors import InputError
from tunesmith.formats.base import (
    TWICE,
    Options,
    Path,
    Report,
    Skipped,
    Source,
    keyed_line,
    shown,
    unpacked,
)
from tunesmith.formats.jsonl import record_of, references_of, source_of

BLANK_REFERENCE = "blank reference"

Row = tuple[int | None, list[str]]
"""Line number and texts of a sentence."""


@dataclass(slots=True)
class References:
    """References of every sentence, the sentences that have none, and what was left out."""

    texts: list[list[str]]
    blank: list[int]
    skipped: list[Skipped]


def carried_references(
    lists: Sequence[tuple[Path, Sequence[Sequence[str] | None] | None]],
    *,
    keys: Sequence[str] = (),
    skip_bad: bool = False,
    keep_blank: bool = False,
) -> References | None:
    """References that lists of the same sentences have in them; nothing where none has any.

    Refuses a sentence without references, or leaves it out, as ``read_references`` does, and files
    that differ in the references of a sentence.
    """
    report = Report(skip_bad)
    carrying = [(path, texts) for path, texts in lists if texts is not None and any(texts)]
    if not carrying:
        return None
    path = carrying[0][0]
    found: list[list[str]] = []
    for index, told in enumerate(zip(*(texts for _, texts in carrying), strict=True)):
        name = shown(keys[index]) if keys else str(index)
        given = [(file, texts) for (file, _), texts in zip(carrying, told, strict=True) if texts]
        for file, texts in given[1:]:
            if list(texts) != list(given[0][1]):
                raise InputError(
                    f"its references of sentence {name} are not those of {given[0][0]}",
                    str(file),
                    remedy="make them equal, or name files of references with --reference",
                )
        found.append([])
        for text in given[0][1] if given else [""]:
            if keep_blank or text.strip():
                found[-1].append(text)
            else:
                message = f"sentence {name} has no reference, or a blank one"
                remedy = "fill it in, use --skip-bad or --keep-blank, or name a --reference"
                report.bad(BLANK_REFERENCE, InputError(message, str(path), remedy=remedy))
    return _references(found, report)


def _references(texts: list[list[str]], report: Report) -> References:
    blank = [index for index, found in enumerate(texts) if not found]
    for index in blank:
        texts[index].append("")
    return References(texts, blank, list(report.skipped.values()))


def read_references(
    paths: Sequence[Path],
    *,
    sentences: int | None = None,
    keys: Sequence[str] = (),
    keyed: bool | None = None,
    skip_bad: bool = False,
    keep_blank: bool = False,
    sources: bool = False,
    remedy: str = "fill it in, or use --skip-bad or --keep-blank",
) -> References:
    """References from one or more files, sentence by sentence.

    A file holds one reference per line, or ``key text`` lines, which are matched with ``keys``
    (those of the lists), or JSONL lists whose ``references`` are taken, by key where all have
    one. ``keyed`` is found out where it is not given: a file is keyed if its first line begins
    with one of the keys, or if half of the keys begin a line.

    Refuses a number of lines other than ``sentences``, a key without a reference, and blank
    references. With ``skip_bad`` blank ones are left out and counted, and the sentences that
    then have none are in ``blank``, with one empty text; ``keep_blank`` takes them as they are.
    ``sources`` reads source texts in the same way: those of JSONL lists are their ``source``.
    ``remedy`` is what to say of blank ones where the caller has not both options.
    """
    report = Report(skip_bad)
    if not paths:
        raise InputError("no references are given", remedy="name at least one file of references")
    expected = len(keys) if keys else sentences
    texts: list[list[str]] | None = None
    for path in paths:
        source = Source(path, report, Options())
        streams = _read(source, keys, keyed, sources)
        if expected is None:
            expected = len(streams)
        if len(streams) != expected:
            source.line = min(len(streams), expected) + 1
            raise source.error(
                f"{expected} lists but {len(streams)} references",
                "give one reference per list, in the same order; for lists at the end that are "
                "empty, say with --sentences how many there are",
            )
        texts = [[] for _ in range(expected)] if texts is None else texts
        for index, (line, found) in enumerate(streams):
            for text in found or [""]:
                source.line = line
                if keep_blank or text.strip():
                    texts[index].append(text)
                else:
                    of = f" of {shown(keys[index])}" if keys else ""
                    message = f"the reference{of} is blank"
                    report.bad(BLANK_REFERENCE, source.error(message, remedy))
    assert texts is not None
    return _references(texts, report)


def _read(source: Source, keys: Sequence[str], keyed: bool | None, sources: bool) -> list[Row]:
    """The texts of a file, in the order of the keys where it has keys."""
    lines = [(source.line, line) for line in source.lines()]
    first = next((line for _, line in lines if line and line.strip()), "")
    if _is_jsonl(source, first):
        return _from_jsonl(source, lines, [] if keyed is False else keys, sources)
    pairs = [(number, *keyed_line(line or "")) for number, line in lines]
    found = [(key, (number, [text])) for number, key, text in pairs if key]
    if keyed or (keyed is None and _are_keys([key for key, _ in found], keys)):
        return _by_key(source, found, keys)
    return [(number, [line or ""]) for number, line in lines]


def _are_keys(words: Sequence[str], keys: Sequence[str]) -> bool:
    """Whether the first words of the lines are keys: the first of them, or half of the keys."""
    known = set(keys)
    return not known.isdisjoint(words[:1]) or 0 < len(known) <= 2 * len(known.intersection(words))


def _is_jsonl(source: Source, first: str) -> bool:
    """Whether the first line is that of a list, whatever the file is called; else it is text."""
    if not first.lstrip().startswith("{"):
        return False
    if unpacked(source.path).endswith(".jsonl"):
        return True
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return "references" in record or "hypotheses" in record


def _from_jsonl(
    source: Source,
    lines: Sequence[tuple[int | None, str | None]],
    keys: Sequence[str],
    sources: bool,
) -> list[Row]:
    """The texts that lists carry: by key where all that can be read have one, else line by line."""
    rows: list[Row] = []
    keyed: list[tuple[str, Row]] = []
    unread = 0
    for number, line in lines:
        source.line = number
        if line is not None and not line.strip():
            continue
        record = record_of(source, line)
        if record is None:
            unread += 1
            rows.append((number, []))
            continue
        text = source_of(source, record) if sources else None
        rows.append((number, [text or ""] if sources else references_of(source, record) or []))
        if record.get("key") is not None:
            keyed.append((record["key"], rows[-1]))
    if keys and keyed and len(keyed) + unread == len(rows):
        return _by_key(source, keyed, keys)
    return rows


def _by_key(source: Source, rows: Sequence[tuple[str, Row]], keys: Sequence[str]) -> list[Row]:
    """Those of the keys, in their order; refuses a key without one, and notes one without list."""
    table: dict[str, Row] = {}
    wanted = set(keys)
    for key, row in rows:
        source.line = row[0]
        if key in table:
            source.bad(TWICE, f"the key {shown(key)} is given twice", "give every key one line")
        elif key in wanted:
            table[key] = row
        else:
            error = source.error(f"no list has the key {shown(key)}", "nothing to do")
            source.report.note("reference without a list", error)
    missing = [key for key in keys if key not in table]
    if missing:
        source.line = None
        raise source.error(
            f"{len(keys)} lists but {len(table)} of their keys have a reference; "
            f"the first without is {shown(missing[0])}",
            "add the references, or take the lists out",
        )
    return [table[key] for key in keys]
