"""Values of a run as strict JSON: no NaN, no NumPy, nothing that other readers reject."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np


def plain(value: object) -> object:
    """Return `value` in JSON types; NaN becomes null and an infinity the text "inf" or "-inf".

    Infinities are kept because an option may be one (RM with no bound is MIRA).
    """
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if math.isfinite(value):
            return float(value)
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"a run holds numbers, text, lists and tables, not {type(value).__name__}")


def one_line(value: object) -> bytes:
    """Return `value` as one line of JSON with its newline."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
    # A lone surrogate (from a file name that is not UTF-8) cannot be encoded in UTF-8.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def pretty(value: object) -> bytes:
    """Return `value` as JSON for people to read, with a final newline."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=2)
    return text.encode("utf-8", "backslashreplace") + b"\n"
