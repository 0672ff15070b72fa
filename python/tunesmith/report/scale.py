"""Linear scales from values to positions, with ticks at round numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A linear map from [low, high] to [begin, end]."""

    low: float
    high: float
    begin: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the position of a value."""
        if self.high == self.low:
            return (self.begin + self.end) / 2
        share = (value - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    def ticks(self, most: int, whole: bool = False) -> list[float]:
        """Return at most `most` round values inside the scale, whole numbers if asked."""
        span = self.high - self.low
        if span <= 0 or not math.isfinite(span):
            return [self.low]
        step = _round_up(span / max(1, most), whole)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        ticks = [index * step for index in range(first, last + 1)]
        return ticks if len(ticks) <= most + 1 else ticks[::2]


def around(
    values: Iterable[float], zero: bool = False, margin: float = 0.08
) -> tuple[float, float]:
    """Return limits with a margin around the values, from zero if zero is meaningful."""
    known = list(values) + ([0.0] if zero else [])
    if not known:
        return 0.0, 1.0
    low, high = min(known), max(known)
    air = (high - low) * margin or abs(high) * 0.05 or 1.0
    return (
        low if zero and low == 0 else low - air,
        high if zero and high == 0 else high + air,
    )


def tick_places(ticks: list[float]) -> int:
    """Return the number of decimals that distinguishes these ticks and shows each exactly."""
    step = abs(ticks[1] - ticks[0]) if len(ticks) > 1 else 0.01
    for places in range(8):
        if abs(step * 10**places - round(step * 10**places)) < 1e-6 * step * 10**places:
            return places
    return 8


def _round_up(step: float, whole: bool) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    if whole and power < 1:
        return 1.0
    for factor in (1, 2, 2.5, 5, 10):
        rounded = factor * power
        if rounded >= step * (1 - 1e-9) and not (whole and rounded % 1):
            return rounded
    return 10 * power
