"""`tunesmith serve` and `token`, as users get them wrong."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import tunesmith


@pytest.mark.parametrize(
    "words, said",
    [
        (["--method", "mbuu"], "--method belongs to --local"),
        (["--feedback", "review"], "--feedback review needs a store"),
        (["--memory"], "need a store"),
        (["--open-feedback", "--host", "0.0.0.0", "--store", "x"], "would let anybody write"),
        (["--max-seconds", "inf"], "less than or equal to 86400"),
        (["--max-seconds", "nan"], "Invalid value for"),
        (["--allow-origin", "example.org"], "is no origin"),
        (["--allow-origin", "https://example.org/page"], "write it as https://example.org"),
        (["--allow-host", "example.org:80"], "any port is allowed"),
        (["--allow-host", "http://example.org"], "is no name of a host"),
        (["--host", "256.1.1.1"], "cannot listen"),
    ],
)
def test_options_that_would_do_nothing_or_harm_are_refused(
    tmp_path: Path, words: list[str], said: str
) -> None:
    # Refused before the model is read: there is none.
    ran = tunesmith("serve", tmp_path / "model", "--port", 0, *words)
    assert ran.code == 2 and said in " ".join(ran.err.replace("│", " ").split()), ran.err
    assert not (tmp_path / "x").exists()


def test_a_token_of_a_new_store_says_so(tmp_path: Path) -> None:
    first, second = (tunesmith("token", "new", "--store", tmp_path / "store") for _ in range(2))
    assert first.code == second.code == 0
    assert "is a new store" in " ".join(first.err.split()) and "new store" not in second.err
    assert first.out.startswith("tsm_1_") and second.out.startswith("tsm_2_")
