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
    Source,
    needed_total,
    one_line,
    parse_number,
    register,
)

_TAGGED = re.compile(r"([A-Z]+)-(\d{1,18})(?:\t|$)")
FEATURES = frozenset({"score", "length", "logprob", "logprob_min"})


def read(source: Source) -> Iterator[Hypothesis | None]:
    """``H-`` and ``D-`` lines give text and ``score``, ``P-`` lines the other features.

    The detokenised text of a ``D-`` line replaces that of the ``H-`` line before it. Sources,
    targets, alignments and log lines are passed over, the latter counted.
    """
    pending: Hypothesis | None = None
    detokenised = False
    for line in source:
        tagged = _TAGGED.match(line)
        if tagged is None:
            if line.strip():
                # Settings and summaries are part of every run's output.
                message = "not a line of a hypothesis"
                source.report.note("other output", source.error(message, "nothing to do"))
            continue
        tag, sentence = tagged[1], int(tagged[2])
        if tag in ("H", "D"):
            fields = line.split("\t", 2)
            if len(fields) < 3:
                source.bad(FIELDS, f"{tag} line without score or text", "separate them by tabs")
                yield None
                continue
            if tag == "D" and pending and pending.sentence == sentence and not detokenised:
                pending.text = fields[2]
                detokenised = True
                continue
            if pending is not None:
                yield pending
            score = source.number(fields[1].strip(), "score")
            pending, detokenised = None, tag == "D"
            if score is None:
                yield None
                continue
            pending = Hypothesis(sentence, fields[2], {"score": score}, score)
        elif tag == "P" and pending is not None and pending.sentence == sentence:
            _, _, extra = line.partition("\t")
            values = [source.number(token, "token's score") for token in extra.split()]
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
    """``S-``, ``T-``, ``H-``, ``D-`` and ``P-`` lines, the last from what is behind the score."""
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
