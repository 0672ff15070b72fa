"""Detection of a file's format: by its content, then by its name."""

from __future__ import annotations

import json
import re
from itertools import islice
from os import fspath
from pathlib import Path as FilePath

from tunesmith.errors import InputError
from tunesmith.formats.base import (
    Options,
    Path,
    Report,
    TextFile,
    is_stream,
    parse_number,
    without_compression,
)

_FAIRSEQ = re.compile(r"[STHDPA]-\d+\t")
_KALDI = re.compile(r"\S+-\d+(\s|$)")
_BARS = re.compile(r"(?:^|(?<=[ \t]))\|\|\|(?=[ \t]|$)")
# Bars that touch their fields; a fourth bar could belong to either side.
_GLUED_BARS = re.compile(r"(?<!\|)\|\|\|(?!\|)")


def detect(path: Path) -> str:
    """Return the name of a file's format; raise for pipes and for folders of unknown layout."""
    name = fspath(path)
    if is_stream(name):
        what = "the standard input" if name == "-" else "a pipe"
        raise InputError(
            f"the format of {what} cannot be detected",
            None if name == "-" else name,
            remedy="name it with --format",
        )
    folder = FilePath(name)
    if folder.is_dir():
        return _detect_folder(folder)
    # A long head: fairseq prints its settings before the first hypothesis.
    # Lines that are not UTF-8 are left to the reader, which may skip them.
    lines = TextFile(name, Report(skip_bad=True), Options())
    head = [line for line in islice(lines, 200) if line.strip()]
    if not head:
        raise InputError(
            "no hypotheses: the file is empty",
            name,
            remedy="check that the program that writes the list succeeded",
        )
    found = _detect_lines(head)
    if found is None:
        found = {".jsonl": "jsonl", ".json": "espnet1", ".tsv": "nemo-tsv"}.get(
            FilePath(without_compression(name)).suffix, "flat"
        )
    return found


def _detect_folder(folder: FilePath) -> str:
    inside = [path.name for path in folder.iterdir()]
    if any(re.fullmatch(r"\d+best_recog|output\.\d+", name) for name in inside):
        return "espnet"
    stems = [without_compression(name) for name in inside]
    if "words_text" in stems:
        return "kaldi"
    if "hyps.txt" in stems:
        return "flat"
    raise InputError(
        "is a directory of unknown layout",
        str(folder),
        remedy="name a file inside it, or a directory with 1best_recog, words_text or hyps.txt",
    )


def _detect_lines(head: list[str]) -> str | None:
    first = head[0].strip()
    if first.startswith("{"):
        return _detect_json(first, head)
    if any(" ||| " in line for line in head[:5]):
        return _detect_bars(head)
    if any(_FAIRSEQ.match(line) for line in head):
        return "fairseq"
    if any(len(_fields(line)) >= 4 for line in head[:5]):
        return _detect_bars(head)
    if all(_KALDI.match(line) for line in head) and re.match(r"\S+-1(\s|$)", head[0]):
        return "kaldi"
    if all(parse_number(line.rsplit("\t", 1)[-1]) is not None and "\t" in line for line in head):
        return "nemo-tsv"
    return None


def _detect_json(first: str, head: list[str]) -> str:
    if any('"utts"' in line for line in head[:3]):
        return "espnet1"
    try:
        record = json.loads(first)
    except (ValueError, RecursionError):
        return "jsonl"
    if isinstance(record, dict) and ("beams" in record or "audio_filepath" in record):
        return "nemo"
    return "jsonl"


def _fields(line: str) -> list[str]:
    """Return the fields of a `|||` line as the core splits it: at glued bars if it must."""
    fields = _BARS.split(line)
    return fields if len(fields) >= 4 else _GLUED_BARS.split(line)


def _detect_bars(head: list[str]) -> str:
    """Return which `|||` format the lines are in.

    cdec and Travatar write `name=value`, Moses writes `name= value`; Travatar puts the score first.
    """
    for line in head:
        fields = [field.strip() for field in _fields(line)]
        for at, field in enumerate(fields[2:], 2):
            tokens = field.split()
            if any(token.endswith("=") and len(token) > 1 for token in tokens):
                return "moses"
            pairs = [token.rpartition("=") for token in tokens]
            # A segmentation looks the same, but has word counts instead of names.
            if pairs and all(
                name and not name[0].isdigit() and parse_number(value) is not None
                for name, _, value in pairs
            ):
                before, behind = fields[at - 1], "".join(fields[at + 1 : at + 2])
                scored = at > 2 and parse_number(before) is not None
                return "travatar" if scored and parse_number(behind) is None else "cdec"
    return "moses"
