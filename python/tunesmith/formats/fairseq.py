"""The output of fairseq-generate and fairseq-interactive: tagged lines, sentences in any order."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tunesmith._core import AtomicWriter
from tunesmith.formats.base import (
    FIELDS,
    Format,
    Hypothesis,
    Lists,
    TextFile,
    needed_total,
    one_line,
    parse_number,
    register,
)

_TAGGED = re.compile(r"([A-Z]+)-(\d{1,18})(?:\t|$)")
FEATURES = frozenset({"score", "length", "logprob", "logprob_min"})


def read(file: TextFile) -> Iterator[Hypothesis | None]:
    """Read `H-` and `D-` lines for text and `score`, `P-` lines for the other features.

    The detokenised text of a `D-` line replaces that of the `H-` line before it. Sources,
    targets, alignments and log lines are skipped; log lines are counted.
    """
    pending: Hypothesis | None = None
    detokenised = False
    for line in file:
        tagged = _TAGGED.match(line)
        if tagged is None:
            if line.strip():
                # Every run prints its settings and a summary.
                message = "not a line of a hypothesis"
                file.report.note("other output", file.error(message, "nothing to do"))
            continue
        tag, sentence = tagged[1], int(tagged[2])
        if tag in ("H", "D"):
            fields = line.split("\t", 2)
            if len(fields) < 3:
                file.bad(FIELDS, f"{tag} line without score or text", "separate them by tabs")
                yield None
                continue
            if tag == "D" and pending and pending.sentence == sentence and not detokenised:
                pending.text = fields[2]
                detokenised = True
                continue
            if pending is not None:
                yield pending
            score = file.number(fields[1].strip(), "score")
            pending, detokenised = None, tag == "D"
            if score is None:
                yield None
                continue
            pending = Hypothesis(sentence, fields[2], {"score": score}, score)
        elif tag == "P" and pending is not None and pending.sentence == sentence:
            _, _, extra = line.partition("\t")
            values = [file.number(token, "token's score") for token in extra.split()]
            known = [value for value in values if value is not None]
            if len(known) < len(values):
                pending = None
                yield None
            elif known:
                pending.extra = " ".join(extra.split())
                pending.features |= {
                    "length": float(len(known)),
                    "logprob": sum(known),
                    "logprob_min": min(known),
                }
    if pending is not None:
        yield pending


def write(lists: Lists, path: str) -> None:
    """Write `S-`, `T-`, `H-`, `D-` and `P-` lines; `P-` lines hold `extra`."""
    with AtomicWriter(path) as out:
        for sentence in lists:
            index = sentence.index
            one_line(sentence, path, sentence.source, *(sentence.references or ()))
            if sentence.source is not None:
                out.write(f"S-{index}\t{sentence.source}\n")
            for reference in (sentence.references or ())[:1]:
                out.write(f"T-{index}\t{reference}\n")
            for hypothesis in sentence.hypotheses:
                one_line(sentence, path, hypothesis.text, hypothesis.extra)
                score = needed_total(sentence, hypothesis, path)
                for tag in "HD":
                    out.write(f"{tag}-{index}\t{score!r}\t{hypothesis.text}\n")
                tokens = hypothesis.extra.split()
                if tokens and all(parse_number(token) is not None for token in tokens):
                    out.write(f"P-{index}\t{' '.join(tokens)}\n")


register(Format("fairseq", read, write, features=FEATURES, extra=True))
