"""ESPnet: folders `1best_recog`, `2best_recog`… of version 2, and the JSON of version 1."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any

from tunesmith._core import AtomicWriter
from tunesmith.errors import InputError
from tunesmith.formats.base import (
    AS_JSONL,
    FIELDS,
    TWICE,
    Empty,
    Format,
    Hypothesis,
    Lists,
    TextFile,
    keyed_line,
    one_line,
    plain_key,
    register,
    shown,
    total,
)
from tunesmith.formats.folder import entries, new_folder
from tunesmith.formats.jsonl import decode, numbers

_RANK = re.compile(r"(\d+)best_recog")
# ESPnet writes a score as PyTorch prints it.
_TENSOR = re.compile(r"tensor\(([^,)]*).*\)")
FEATURES = frozenset({"score", "length"})

Table = dict[str, Hypothesis | None]
"""The hypotheses of one rank by utterance; `None` for one that was reported as bad."""


def read(file: TextFile) -> Iterator[Hypothesis | Empty | None]:
    """Read a folder of `Nbest_recog` folders, or of `output.1`, `output.2`… with them inside.

    `score` is the total and a feature. Other files whose names end in `score` are features. The
    number of tokens is the feature `length`. Raise if a hypothesis lacks a score that others
    have: it would count as zero.
    """
    root = FilePath(file.path)
    if not root.is_dir():
        raise InputError(
            "is not a folder", file.path, remedy="name the folder that holds 1best_recog"
        )
    shards = sorted(root.glob("output.*"), key=lambda path: (len(path.name), path.name)) or [root]
    tables = [{rank: _table(file, rank) for rank in _ranks(shard)} for shard in shards]
    if not any(tables):
        raise InputError("no 1best_recog in the folder", file.path, remedy="name the folder above")
    _refuse_missing(file, {rank: table for shard in tables for rank, table in shard.items()})
    for shard in tables:
        for key in dict.fromkeys(key for table in shard.values() for key in table):
            yield Empty(key)
            for table in shard.values():
                if key in table:
                    yield table[key]


def _ranks(folder: FilePath) -> list[FilePath]:
    """Return the folders `1best_recog`, `2best_recog`… in order."""
    found = {path: _RANK.fullmatch(path.name) for path in folder.iterdir() if path.is_dir()}
    ranks = {path: int(name[1]) for path, name in found.items() if name}
    return sorted(ranks, key=ranks.__getitem__)


def _table(file: TextFile, folder: FilePath) -> Table:
    """Return the hypotheses of one rank, with their scores and tokens."""
    files = entries(folder)
    if "text" not in files:
        raise InputError("no file text in the folder", str(folder), remedy="decode again")
    table: Table = {}
    for _, key, text in _keyed(file.open(files["text"])):
        table[key] = Hypothesis(key, text)
    for name in sorted(name for name in files if name.endswith("score")):
        for lines, key, text in _keyed(file.open(files[name])):
            tensor = _TENSOR.fullmatch(text)
            value = lines.number(tensor[1].strip() if tensor else text, "score")
            hypothesis = table.get(key)
            if value is None:
                table[key] = None
            elif hypothesis is not None:
                hypothesis.features[name] = value
                if name == "score":
                    hypothesis.score = value
    if "token" in files:
        for _, key, text in _keyed(file.open(files["token"])):
            hypothesis = table.get(key)
            if hypothesis is not None:
                hypothesis.extra = text
                hypothesis.features["length"] = float(len(text.split()))
    return table


def _refuse_missing(file: TextFile, tables: Mapping[FilePath, Table]) -> None:
    """Report and remove hypotheses that lack a score that others have."""
    good = [hypothesis for table in tables.values() for hypothesis in table.values() if hypothesis]
    names = {name for hypothesis in good for name in hypothesis.features} - {"length"}
    for folder, table in tables.items():
        for key, hypothesis in table.items():
            missing = sorted(names - hypothesis.features.keys()) if hypothesis else []
            if missing:
                scores = file.open(folder / missing[0])
                scores.bad(FIELDS, f"no score for {shown(key)}", "add it, or decode again")
                table[key] = None


def _keyed(file: TextFile) -> Iterator[tuple[TextFile, str, str]]:
    """Yield file, key and value of `key value` lines; report keys given twice."""
    seen = set()
    for line in file:
        key, value = keyed_line(line)
        if key in seen:
            file.bad(TWICE, f"the key {shown(key)} is given twice", "give every key one line")
        elif key:
            seen.add(key)
            yield file, key, value


def write(lists: Lists, path: str) -> None:
    """Write `Nbest_recog/text`, `score` and, if hypotheses have tokens, `token`.

    Raise if some hypotheses have a score and some have none, as `read` does.
    """
    # Files are ordered by rank, lists by sentence.
    sentences = list(lists)
    keys = [plain_key(sentence, path) for sentence in sentences]
    if len({total(each) is None for sentence in sentences for each in sentence.hypotheses}) > 1:
        raise InputError("some hypotheses have a score and some have none", path, remedy=AS_JSONL)
    depth = max(lists.sizes(), default=0)
    with new_folder(path) as folder:
        for rank in range(depth):
            place = folder / f"{rank + 1}best_recog"
            place.mkdir()
            with (
                AtomicWriter(place / "text") as texts,
                AtomicWriter(place / "score") as scores,
                AtomicWriter(place / "token") as tokens,
            ):
                for key, sentence in zip(keys, sentences, strict=True):
                    for hypothesis in sentence.hypotheses[rank : rank + 1]:
                        one_line(sentence, path, hypothesis.text, hypothesis.extra)
                        texts.write(f"{key} {hypothesis.text}\n")
                        score = total(hypothesis)
                        if score is not None:
                            scores.write(f"{key} {score!r}\n")
                        if hypothesis.extra:
                            tokens.write(f"{key} {hypothesis.extra}\n")


def read_json(file: TextFile) -> Iterator[Hypothesis | Empty | None]:
    """Read `{"utts": {key: {"output": [{"rec_text": …, "score": …}, …]}}}` of ESPnet 1."""
    record = decode(file, "\n".join(file))
    utterances = {} if record is None else record.get("utts")
    if not isinstance(utterances, dict):
        raise InputError(
            "no utts in the file", file.path, remedy="name the data.json of a decoding"
        )
    for key, utterance in utterances.items():
        yield Empty(key)
        output = utterance.get("output") if isinstance(utterance, dict) else None
        if not isinstance(output, list):
            file.bad(FIELDS, f"no output for {shown(key)}", "decode again")
            continue
        for item in output:
            yield _hypothesis(file, key, item)


def _hypothesis(file: TextFile, key: str, item: Any) -> Hypothesis | None:
    if not isinstance(item, dict) or not isinstance(item.get("rec_text"), str):
        file.bad(FIELDS, f"no rec_text for {shown(key)}", "name the data.json of a decoding")
        return None
    given = item.get("score")
    features = numbers(file, None if given is None else {"score": given}, "score")
    if features is None:
        return None
    score = features.get("score")
    tokens = item.get("rec_token", "")
    extra = tokens if isinstance(tokens, str) else ""
    if extra:
        features["length"] = float(len(extra.split()))
    text = item["rec_text"].replace("<eos>", "")
    return Hypothesis(key, text, features, score, extra)


def write_json(lists: Lists, path: str) -> None:
    utterances = {}
    for sentence in lists:
        output: list[dict[str, Any]] = []
        for rank, hypothesis in enumerate(sentence.hypotheses, 1):
            record: dict[str, Any] = {"name": f"target1[{rank}]", "rec_text": hypothesis.text}
            if hypothesis.extra:
                record["rec_token"] = hypothesis.extra
            score = total(hypothesis)
            if score is not None:
                record["score"] = score
            if sentence.references:
                record["text"] = sentence.references[0]
            output.append(record)
        utterances[sentence.key] = {"output": output}
    with AtomicWriter(path) as out:
        text = json.dumps({"utts": utterances}, ensure_ascii=False, allow_nan=False, indent=4)
        out.write(text + "\n")


register(Format("espnet", read, write, features=FEATURES, extra=True))
register(Format("espnet1", read_json, write_json, features=FEATURES, extra=True))
