"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunesmith.errors import InputError
from tunesmith.formats import names
from tunesmith.metrics import metric_names
from tunesmith.reading import Reading

References = Annotated[
    list[Path] | None,
    typer.Option(
        "--reference", "-r", help="References, one per line; repeat for several per sentence."
    ),
]
MetricName = Annotated[
    str,
    typer.Option(
        "--metric",
        "-m",
        help="bleu, chrf, chrf++, ter, wer, cer, column:NAME; options as in bleu:tokenize=none.",
    ),
]
Format = Annotated[
    str | None,
    typer.Option("--format", help=f"Format of the lists: {', '.join(names())}; found out if left."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Leave out bad lines and count them instead of stopping.")
]
KeepBlank = Annotated[
    bool, typer.Option("--keep-blank", help="Take blank hypotheses and references as they are.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="NAME: a feature of the lists that is a score to tune for (column:NAME), not a "
        "feature; NAME=FILE: such scores from a file, one per hypothesis.",
    ),
]
Features = Annotated[
    list[str] | None,
    typer.Option("--feature", help="NAME=FILE: one more feature, a number per hypothesis."),
]
PerSentence = Annotated[
    int | None,
    typer.Option("--per-sentence", help="Hypotheses per sentence, for formats that do not say."),
]
FirstId = Annotated[int, typer.Option("--first-id", help="Number of the first sentence.")]
Keyed = Annotated[bool, typer.Option("--keyed", help="Sentence ids are labels, not numbers.")]
Threads = Annotated[
    int, typer.Option("--threads", "-j", help="Threads; 0: one per core. Results do not depend.")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object as the last line of stdout.")]


def reading(
    format: str | None,
    skip_bad: bool,
    keep_blank: bool,
    columns: list[str] | None,
    features: list[str] | None,
    per_sentence: int | None,
    first_id: int,
    keyed: bool,
) -> Reading:
    """Return how to read lists, from the options as they were given."""
    named = {name: file or None for name, file in (_pair(text) for text in columns or [])}
    files = {}
    for name, file in (_pair(text) for text in features or []):
        if not file:
            raise InputError(f"--feature {name} names no file", remedy="write NAME=FILE")
        files[name] = file
    return Reading(format, skip_bad, keep_blank, named, files, per_sentence, keyed, first_id)


def settings(pairs: list[str] | None) -> dict[str, str]:
    """Read `key=value` options."""
    found = {}
    for text in pairs or []:
        key, value = _pair(text)
        if "=" not in text:
            raise InputError(f"--set {text}", remedy="write key=value")
        found[key] = value
    return found


def fixed(pairs: list[str] | None) -> dict[str, float]:
    """Read `NAME=VALUE` weights."""
    return {name: _number(f"--fix {name}", value) for name, value in map(_pair, pairs or [])}


def bounds(pairs: list[str] | None) -> dict[str, tuple[float, float]]:
    """Read `NAME=LOW:HIGH` bounds; either side may be left out."""
    found = {}
    for name, value in map(_pair, pairs or []):
        low, colon, high = value.partition(":")
        if not colon:
            raise InputError(f"--bound {name}={value}", remedy="write NAME=LOW:HIGH, as LM0=0:")
        found[name] = (
            _number(f"--bound {name}", low or "-inf"),
            _number(f"--bound {name}", high or "inf"),
        )
    return found


def metric_list(text: str) -> list[str]:
    """Split `bleu:tokenize=none,lowercase=1,chrf`: a part that names no metric is an option."""
    found: list[str] = []
    for part in text.split(","):
        known = part.partition(":")[0].strip().lower() in metric_names()
        if known or not found:
            found.append(part.strip())
        else:
            found[-1] += f",{part}"
    return found


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.rpartition("=") if text.count("=") > 1 else text.partition("=")
    return name, value


def _number(what: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if value != value:
        raise InputError(f"{what} is {text!r}", remedy="give a number")
    return value
