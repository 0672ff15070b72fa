"""NeMo: manifests with beams, and the tab-separated candidates of its beam-search evaluation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tunesmith._core import AtomicWriter
from tunesmith.formats.base import (
    FIELDS,
    Empty,
    End,
    Format,
    Hypothesis,
    Item,
    Lists,
    TextFile,
    needed_total,
    one_line,
    register,
)
from tunesmith.formats.flat import fixed, fixed_size, per_sentence
from tunesmith.formats.jsonl import decode, numbers

FEATURES = frozenset({"score"})


def read(file: TextFile) -> Iterator[Item]:
    """Read lines with `"beams": [["text", score], …]`; the key is audio file and offset."""
    index = 0
    keyed: bool | None = None
    for line in file.lines():
        if line is not None and not line.strip():
            continue
        record = None if line is None else decode(file, line)
        audio = None if record is None else record.get("audio_filepath")
        if keyed is None:
            keyed = isinstance(audio, str)
        sentence: int | str = index
        if keyed:
            offset = "" if record is None or not record.get("offset") else f"#{record['offset']}"
            sentence = f"{audio}{offset}" if isinstance(audio, str) else f"line {file.line}"
        index += 1
        yield Empty(sentence)
        if record is None:
            continue
        beams = record.get("beams")
        if not isinstance(beams, list):
            file.bad(FIELDS, "no beams", "decode with return_best_hypothesis=false")
            continue
        for beam in beams:
            yield _hypothesis(file, sentence, beam)
        yield End()


def _hypothesis(file: TextFile, sentence: int | str, beam: Any) -> Hypothesis | None:
    if not isinstance(beam, list) or len(beam) != 2 or not isinstance(beam[0], str):
        file.bad(FIELDS, "a beam is not text and score", 'write beams as ["text", score]')
        return None
    score = numbers(file, {"score": beam[1]}, "score")
    return None if score is None else Hypothesis(sentence, beam[0], score, score["score"])


def write(lists: Lists, path: str) -> None:
    with AtomicWriter(path) as out:
        for sentence in lists:
            beams = [[hypothesis.text, needed_total(sentence, hypothesis, path)]
                     for hypothesis in sentence.hypotheses]  # fmt: skip
            record: dict[str, Any] = {"audio_filepath": sentence.key}
            if sentence.references:
                record["text"] = sentence.references[0]
            record["pred_text"] = beams[0][0] if beams else ""
            record["beams"] = beams
            out.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")


def read_tsv(file: TextFile) -> Iterator[Item]:
    """Read lines `text<tab>score`, the same number for every sentence."""
    size = per_sentence(file)
    count = 0
    for line in file.lines():
        sentence = count // size
        count += 1
        if line is None:
            yield None
            continue
        text, tab, digits = line.rpartition("\t")
        if not tab:
            file.bad(FIELDS, "no score behind a tab", "write text, tab, score")
            yield None
            continue
        score = file.number(digits.strip(), "score")
        yield None if score is None else Hypothesis(sentence, text, {"score": score}, score)
        if count % size == 0:
            yield End()
    fixed(file, count, size)


def write_tsv(lists: Lists, path: str) -> None:
    fixed_size(lists, path)
    with AtomicWriter(path) as out:
        for sentence in lists:
            for hypothesis in sentence.hypotheses:
                one_line(sentence, path, hypothesis.text)
                score = needed_total(sentence, hypothesis, path)
                out.write(f"{hypothesis.text}\t{score!r}\n")


register(Format("nemo", read, write, features=FEATURES, ends=True))
register(Format("nemo-tsv", read_tsv, write_tsv, features=FEATURES, ends=True))
