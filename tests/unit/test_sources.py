"""Sources: what decoders must be given, and what they must find."""

from __future__ import annotations

from pathlib import Path

import pytest
from twins.toy import make_world

from tunesmith.errors import InputError
from tunesmith.sources import Command, Live
from tunesmith.translation import Model


def command(tmp_path: Path, lines: list[str], found: list[int]) -> Command:
    listed = "".join(f"{number} ||| a house ||| f= 1 ||| 1\n" for number in found)
    (tmp_path / "lists").write_text(listed)
    return Command(f"cat {tmp_path / 'lists'}", lines, [["a house"]] * len(lines))


@pytest.mark.parametrize(
    ("found", "missing"),
    [([0, 1], "line 3 of"), ([2], "line 1, 2 of"), ([8], "line 1, 2, 3, 5, 6 and 2 more of")],
)
def test_sentences_that_a_decoder_has_lost_are_named(
    tmp_path: Path, found: list[int], missing: str
) -> None:
    lines = ["ein haus"] * (max(*found, 2) + 1)
    if len(lines) > 3:
        lines[3] = " "
    with pytest.raises(InputError) as refused:
        command(tmp_path, lines, found).decode({"f": 1.0})
    assert f"no hypothesis for {missing} the source (let the decoder print" in str(refused.value)
    assert "run it by hand: cat" in str(refused.value)


def test_blank_lines_need_no_hypothesis(tmp_path: Path) -> None:
    found = command(tmp_path, ["", "ein haus", " "], [1]).decode({"f": 1.0})
    assert (found.sentences, found.hypotheses) == (3, 1)


def test_a_text_without_sentences_is_refused(tmp_path: Path, model: Model) -> None:
    with pytest.raises(InputError, match=r"no sentences.*give a source"):
        Live(model, [], [])
    with pytest.raises(InputError, match=r"no sentences.*give a source"):
        command(tmp_path, [], [])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model.load(make_world(tmp_path_factory.mktemp("sources")) / "model", "phrase")
