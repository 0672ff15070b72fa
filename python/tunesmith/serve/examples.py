"""Numbers of the examples that are made of corrections.

>>> example = example_of(7, "Ein Haus.", "One house.")
>>> correction_of(example), correction_of(12)
(7, None)
>>> example == example_of(7, "Ein Haus.", "A house.")
False
"""

from __future__ import annotations

import hashlib

BITS = 32
"""Of an example's number, those that are the number of the correction; above them is a digest."""
FIRST = 1 << 40
"""Examples of feedback have numbers from here on, below 2**53: JSON readers keep them exact."""


def example_of(number: int, source: str, translation: str) -> int:
    """Return the number of the example that is made of a correction."""
    digest = hashlib.sha256(f"{source}\n{translation}".encode()).digest()
    least, most = FIRST >> BITS, 1 << (52 - BITS)
    return (least + int.from_bytes(digest[:8]) % (most - least) << BITS) + number


def correction_of(example: int) -> int | None:
    """Return the number of the correction that an example was made of, None if it is another."""
    return example % (1 << BITS) if example >= FIRST else None
