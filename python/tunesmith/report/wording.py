"""Numbers and findings as text: aligned, signed, in plain words."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import Any

from tunesmith.learn.untuned import START, described
from tunesmith.metrics.significance import Verdict, verdict
from tunesmith.report.story import number, table

METRICS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "chrf++": "chrF++",
    "chrf2": "chrF2",
    "ter": "TER",
    "wer": "WER",
    "cer": "CER",
    "comet": "COMET",
}
MISSING = "–"
PLACES = {
    "lists": "on the lists it was tuned on",
    "text": "on the text it was tuned on",
    "heldout": "on held-out sentences",
    "folds": "on sentences its fold had not seen",
}

# How to test on other sentences than those that were tuned on.
LEARNT = {
    "lists": "--folds 5 tests on held-out sentences",
    "text": "--heldout SOURCE REFERENCE or --folds 5 tests on held-out sentences",
}


def escape(value: object) -> str:
    """Return text that is safe in HTML, also inside an attribute's quotation marks."""
    # A lone surrogate or a NUL cannot be part of an HTML file.
    known = str(value).encode("utf-8", "replace").decode("utf-8").replace("\0", "�")
    return html.escape(known, quote=True)


def metric_name(name: object) -> str:
    """Return a metric's name as papers write it; an unknown name stays unchanged."""
    return METRICS.get(str(name).lower(), str(name))


def decimals(*values: float | None) -> int:
    """Return the number of decimals for these scores: two for BLEU, four for 0 to 1."""
    known = [abs(value) for value in values if value is not None]
    return 4 if known and max(known) <= 1.5 else 2


def fixed(value: float | None, places: int = 2, sign: bool = False) -> str:
    """Return a number with a set number of decimals and a true minus sign."""
    if value is None:
        return MISSING
    text = f"{value:{'+' if sign else ''},.{places}f}"
    # A number that rounds to zero has no sign.
    if float(text.replace(",", "")) == 0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def count(value: float | None) -> str:
    """Return a whole number with separators."""
    return MISSING if value is None else f"{int(value):,}".replace("-", "−")


def brief(value: float | None) -> str:
    """Return a number with four significant digits, for weights of any size."""
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    size = math.floor(math.log10(abs(value)))
    if -5 < size < 7:
        return fixed(value, max(0, 3 - size))
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "−")


def aligned(value: float, largest: float) -> str:
    """Return a number for a column whose largest value is `largest`, with aligned decimals."""
    places = 5 if largest < 1 else 4 if largest < 100 else 2
    # Only exact zeros may look like zero.
    if not 1e-6 <= largest < 1e9 or (value and abs(value) < 0.5 * 10**-places):
        return brief(value)
    return fixed(value, places)


def percent(value: float | None) -> str:
    """Return a share as a percentage with one decimal."""
    return MISSING if value is None else f"{fixed(100 * value, 1)}\u00a0%"


def duration(seconds: float | None) -> str:
    """Return a time in the unit that suits it."""
    if seconds is None:
        return MISSING
    if seconds < 0.9995:
        places = 0 if seconds >= 0.0995 else 1
        return f"{fixed(1000 * seconds, places)} ms"
    if seconds < 59.95:
        return f"{fixed(seconds, 1 if seconds >= 9.995 else 2)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def time_unit(most: float) -> tuple[str, float]:
    """Return the unit for an axis up to `most` seconds, and its length in seconds."""
    for name, seconds in (("h", 3600.0), ("min", 60.0), ("s", 1.0)):
        if most >= 2 * seconds:
            return name, seconds
    return "ms", 0.001


def plural(amount: float, noun: str) -> str:
    """Return a counted noun."""
    return f"{count(amount)} {noun}{'' if amount == 1 else 's'}"


def size(value: float | None) -> str:
    """Return a number of bytes in the unit that suits it."""
    if value is None:
        return MISSING
    for unit in ("bytes", "kB", "MB", "GB"):
        if value < 1000:
            return f"{fixed(value, 0 if unit == 'bytes' else 1)} {unit}"
        value /= 1000
    return f"{fixed(value, 1)} TB"


def probability(value: float) -> str:
    """Return a p-value; very small ones become "p < …"."""
    if value < 0.001:
        return "p\u00a0<\u00a00.001"
    return f"p\u00a0=\u00a0{fixed(value, 3 if value < 0.1 else 2)}"


def significance(
    tests: Mapping[str, Any], metric: str, places: int, higher: bool = True
) -> tuple[str, str] | None:
    """Return a verdict and its grounds, or None without a test."""
    found = _p_values(tests)
    if not found:
        return None
    difference = number(table(tests.get("bootstrap")).get("difference"))
    gain = 0.0 if difference is None else difference if higher else -difference
    against = tests.get("against")
    sentence = headline(
        verdict(gain, *found.values()), against, tests.get("on"), max(found.values())
    )
    grounds = [_grounds(tests, metric, places, PLACES.get(str(tests.get("on"))))]
    if tests.get("chosen_there"):
        grounds.append(
            "The epoch was chosen on the same sentences, which favours the tuned weights."
        )
    start = table(tests.get("start"))
    if against not in (None, START) and _p_values(start):
        grounds.append(f"Against the start: {_grounds(start, metric, places)}")
    return sentence, " ".join(grounds)


def headline(found: Verdict, against: object, on: object, p: float) -> str:
    """Return the verdict on the tuned weights as a sentence without a full stop.

    `against` is the best of several choices without tuning, or None if the start is the only one;
    `on` names the sentences of the test; `p` is the larger p-value.
    """
    other = described(str(against or START))
    if against not in (None, START):
        other += ", the best choice without tuning"
    elif against is not None:
        other += ", which is the best choice without tuning"
    what = {
        "better": "beats",
        "unclear": "does not clearly beat",
        "worse": "is worse than",
    }[found]
    if on in LEARNT:
        return (
            f"On the {on} it was tuned on, tuning {what} {other}; whether it helps elsewhere is "
            f"open ({LEARNT[str(on)]})"
        )
    sentence = f"Tuning {what} {other}"
    if found == "unclear":
        return sentence
    return f"{sentence}: {'very ' if p < 0.01 else ''}unlikely to be chance"


def _p_values(tests: Mapping[str, Any]) -> dict[str, float]:
    named = (("paired bootstrap", "bootstrap"), ("approximate randomisation", "randomisation"))
    found = {name: number(table(tests.get(key)).get("p")) for name, key in named}
    return {name: p for name, p in found.items() if p is not None}


def _grounds(tests: Mapping[str, Any], metric: str, places: int, place: str | None = None) -> str:
    """Return a difference, its interval and the tests' p-values."""
    grounds = ", ".join(f"{probability(p)} by {name}" for name, p in _p_values(tests).items())
    bootstrap = table(tests.get("bootstrap"))
    difference = number(bootstrap.get("difference"))
    about = f"{fixed(difference, places, sign=True)} {metric}" if difference is not None else ""
    interval = bootstrap.get("ci")
    if isinstance(interval, list) and len(interval) == 2:
        low, high = number(interval[0]), number(interval[1])
        if low is not None and high is not None:
            about += (
                f" (95\u00a0% interval {fixed(low, places, sign=True)}"
                f" to {fixed(high, places, sign=True)})"
            )
    parts = [part for part in (about.strip(), place) if part]
    return f"{' '.join(parts)}; {grounds}." if parts else f"{grounds}."
