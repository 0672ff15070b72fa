"""Reference texts: one file per reference, matched with the lists by line or by key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import fspath

from tunesmith.errors import InputError
from tunesmith.formats.base import FIELDS, TWICE, Options, Path, Report, Skipped, Source, shown
from tunesmith.formats.jsonl import decode

BLANK_REFERENCE = "blank reference"


@dataclass(slots=True)
class References:
    """References of every sentence, the sentences that have none, and what was left out."""

    texts: list[list[str]]
    blank: list[int]
    skipped: list[Skipped]


def read_references(
    paths: Sequence[Path],
    *,
    sentences: int | None = None,
    keys: Sequence[str] = (),
    keyed: bool | None = None,
    skip_bad: bool = False,
    keep_blank: bool = False,
    remedy: str = "fill it in, skip bad lines, or keep blank ones by option",
) -> References:
    """References from one or more files, sentence by sentence.

    A file holds one reference per line, or ``key text`` lines, which are matched with ``keys``
    (those of the lists), or JSONL lists whose ``references`` are taken. ``keyed`` is found out
    where it is not given: a file is keyed if its first line begins with one of the keys.

    Refuses a number of lines other than ``sentences``, a key without a reference, and blank
    references. With ``skip_bad`` blank ones are left out and counted, and the sentences that
    then have none are in ``blank``, with one empty text; ``keep_blank`` takes them as they are.
    ``remedy`` is what to say of blank ones where the caller has not both options.
    """
    report = Report(skip_bad)
    if not paths:
        raise InputError("no references are given", remedy="name at least one file of references")
    expected = len(keys) if keys else sentences
    texts: list[list[str]] | None = None
    for path in paths:
        source = Source(path, report, Options())
        streams = _read(source, keys, keyed)
        if expected is None:
            expected = len(streams)
        if len(streams) != expected:
            source.line = min(len(streams), expected) + 1
            raise source.error(
                f"{expected} lists but {len(streams)} references",
                "give one reference per list, in the same order; for lists at the end that are "
                "empty, say how many sentences there are",
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
    blank = [index for index, found in enumerate(texts) if not found]
    for index in blank:
        texts[index].append("")
    return References(texts, blank, list(report.skipped.values()))


def _read(
    source: Source, keys: Sequence[str], keyed: bool | None
) -> list[tuple[int | None, list[str]]]:
    """Line number and texts of every reference in a file."""
    found: list[tuple[int | None, list[str]]] = []
    lines = [(source.line, line) for line in source.lines()]
    first = next((line for _, line in lines if line), "")
    if first.lstrip().startswith("{") and ".jsonl" in fspath(source.path):
        for number, line in lines:
            source.line = number
            if line is None or line.strip():
                found.append((number, _from_json(source, line)))
        return found
    if keyed is None:
        keyed = bool(keys) and first.split(" ", 1)[0] in set(keys)
    if not keyed:
        return [(number, [line or ""]) for number, line in lines]
    return _by_key(source, lines, keys)


def _from_json(source: Source, line: str | None) -> list[str]:
    record = None if line is None else decode(source, line)
    texts = [] if record is None else record.get("references", [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        source.bad(FIELDS, "references are not a list of texts", 'write "references": ["…"]')
        return []
    return texts


def _by_key(
    source: Source, lines: Sequence[tuple[int | None, str | None]], keys: Sequence[str]
) -> list[tuple[int | None, list[str]]]:
    table: dict[str, tuple[int | None, list[str]]] = {}
    wanted = set(keys)
    for number, line in lines:
        source.line = number
        key, _, text = (line or "").strip().partition(" ")
        if key in table:
            source.bad(TWICE, f"the key {shown(key)} is given twice", "give every key one line")
        elif key in wanted:
            table[key] = (number, [text.strip()])
        elif key:
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
