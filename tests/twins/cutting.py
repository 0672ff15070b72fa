"""Ways to cut text into words; those that want a package are skipped without it."""

from __future__ import annotations

import importlib.util

import pytest

needs_pieces = pytest.mark.skipif(
    importlib.util.find_spec("sentencepiece") is None, reason="sentencepiece is not installed"
)
needs_moses = pytest.mark.skipif(
    importlib.util.find_spec("sacremoses") is None, reason="sacremoses is not installed"
)
CUTS = [
    "none",
    pytest.param("moses", marks=needs_moses),
    "char",
    pytest.param("sentencepiece", marks=needs_pieces),
    pytest.param("bpe", marks=needs_pieces),
]
