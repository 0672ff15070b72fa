"""What docs/translate.md shows and lists is so."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest

from tunesmith.decode.translation import Model
from tunesmith.training.pipeline import Training, train

TEXT = (Path(__file__).parents[2] / "docs" / "translate.md").read_text(encoding="utf-8")


def test_examples_run_and_every_setting_and_feature_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("src").write_text("Das Haus ist klein .\nDas Buch ist alt .\nEin Haus .\n" * 10)
    Path("tgt").write_text("The house is small .\nThe book is old .\nA house .\n" * 10)
    train(Training(Path("src"), Path("tgt"), order=2), Path("model"), 1)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert blocks
    for block in blocks:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(block, "docs/translate.md", "exec"), {})
    for kind in ("phrase", "hiero"):
        decoder = Model.load("model", kind).decoder
        for name, about in decoder.settings:
            row = rf"\| `{name}` \| (?:[\d.]+|none) \| {re.escape(about)} \|"
            assert re.search(row, TEXT), name
    for name in ("lm", "words", "phrases", "unknown", "distortion", "glue", "lm-unknown", "given"):
        assert f"`{name}`" in TEXT


def test_every_option_is_described() -> None:
    for option in ("weights", "nbest", "nbest-out", "threads", "explain", "json", "search", "kind"):
        assert f"--{option}" in TEXT
    for option in ("markup", "moses", "cache", "input", "tokenized", "skip-bad"):
        assert f"--{option}" in TEXT
