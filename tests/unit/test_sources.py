"""Sources: what decoders must be given, and what they must find."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from twins.toy import make_world

from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.sources import Command, Live


def command(tmp_path: Path, lines: list[str], found: list[int]) -> Command:
    listed = "".join(f"{number} ||| a house ||| f= 1 ||| 1\n" for number in found)
    (tmp_path / "lists").write_text(listed)
    return Command(f"cat {tmp_path / 'lists'} # {{weights}}", lines, [["a house"]] * len(lines))


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


def printing(tmp_path: Path, printed: bytes) -> Command:
    (tmp_path / "printed").write_bytes(printed)
    script = f"test -f {{weights}}; cat {tmp_path / 'printed'}"
    return Command(script, ["ein haus"], [["a house"]])


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (b"0 ||| a ||| f= 1 ||| 1\nrubbish\n", "line 2, 'rubbish': found 1 of the 4 fields"),
        (b"0 ||| a ||| f= x ||| 1\n", "line 1, '0 ||| a ||| f= x ||| 1': \"x\" is not a number"),
        (b"0 ||| a ||| f= 1 ||| 1\n0 ||| \xff ||| f= 1 |||\n", "line 2, '0 ||| \ufffd ||| f= 1"),
        (b"loading\n" + b"x" * 200, "line 1, 'loading': "),
        (b"", "no hypotheses"),
    ],
)
def test_lists_that_are_none_are_quoted(tmp_path: Path, printed: bytes, told: str) -> None:
    with pytest.raises(InputError) as refused:
        printing(tmp_path, printed).decode({"f": 1.0})
    said = str(refused.value)
    assert said.startswith(f"the decoder's lists cannot be read: {told}"), said
    assert re.search(r" \(\w.*; run it by hand: test -f \{weights\}", said), said
    assert tempfile.gettempdir() not in said.replace(str(tmp_path), "")


def test_a_decoder_that_writes_no_lists_is_told() -> None:
    with pytest.raises(InputError, match=r"wrote no lists into \{nbest\}.*by hand"):
        Command("true {weights} {nbest}", ["ein haus"], [["a house"]]).decode({"f": 1.0})


def test_a_decoder_may_speak_any_encoding_on_standard_error() -> None:
    speak = "printf 'caf\\351 is missing\\n' >&2; exit 3; {weights}"
    with pytest.raises(InputError, match="status 3: caf\ufffd is missing"):
        Command(speak, ["ein haus"], [["a house"]]).decode({"f": 1.0})


def test_a_command_without_weights_is_refused() -> None:
    with pytest.raises(InputError, match=r"takes no weights: moses < \{source\} \(write \{weights"):
        Command("moses < {source}", ["ein haus"], [["a house"]])


def test_all_that_a_command_prints_is_taken(tmp_path: Path) -> None:
    two = "echo '0 ||| a ||| f= 1 ||| 1'; echo '0 ||| b ||| f= 2 ||| 1'; test -f {weights}"
    assert Command(two, ["ein haus"], [["a house"]]).decode({"f": 1.0}).hypotheses == 2


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return Model.load(make_world(tmp_path_factory.mktemp("sources")) / "model", "phrase")


def test_a_decoder_ends_where_the_signal_comes_while_it_is_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun: list[int] = []

    class Slow(subprocess.Popen[str]):
        """Is interrupted before anybody has it at hand."""

        def __init__(self, *words: Any, **named: Any) -> None:
            super().__init__(*words, **named)
            begun.append(self.pid)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(subprocess, "Popen", Slow)
    decoder = Command("sleep 100; {weights} {source}", ["a b"], [["a b"]])
    with pytest.raises(KeyboardInterrupt):
        decoder.decode({"f": 1.0})
    with pytest.raises(ProcessLookupError):
        os.killpg(begun[0], 0)
