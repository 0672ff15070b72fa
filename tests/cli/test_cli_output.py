"""What a person or a program reads: help, tables, JSON, messages, and where they go."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from running import Sample, on_a_terminal, process, tunesmith

from tunesmith.presets import PRESETS

COMMANDS = [
    ["demo"],
    ["rerank"],
    ["rerank", "check"],
    ["rerank", "tune"],
    ["rerank", "apply"],
    ["score"],
    ["compare"],
    ["report"],
    ["presets"],
    ["inspect"],
    ["features"],
]
SCORES = ("start", "tuned", "oracle", "heldout", "seconds")


@pytest.mark.parametrize("words", [[], *COMMANDS], ids=" ".join)
def test_every_command_explains_itself_within_80_columns(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = tunesmith(*words, "--help")
    assert ran.code == 0
    assert ran.err == ""
    lines = ran.out.splitlines()
    assert max(map(len, lines)) <= 80
    if words not in ([], ["rerank"]):
        assert any(line.startswith(f" $ tunesmith {' '.join(words)}") for line in lines)
    assert not re.search(r"--(json|resume|skip-bad|force)\s.*<bool>", ran.out)


def test_the_help_lists_every_command_and_the_tuners(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    commands = re.findall(r"^│ ([a-z]+)  ", tunesmith("--help").out, re.MULTILINE)
    assert {"demo", "rerank", "score", "compare", "report", "presets"} <= set(commands)
    told = tunesmith("rerank", "tune", "--help").out
    for name in PRESETS:
        assert re.search(rf"\b{name}\b", told)


def test_without_a_command_the_help_is_shown() -> None:
    ran = tunesmith()
    assert ran.code == 2
    assert "Usage: tunesmith" in ran.out + ran.err


def test_the_version_is_told() -> None:
    assert re.fullmatch(r"tunesmith \d+\.\d+\.\d+\n", tunesmith("--version").out)


def test_presets_lists_every_tuner_and_explains_each() -> None:
    lines = tunesmith("presets").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(PRESETS)
    assert list(tunesmith("presets", "--json").object) == list(PRESETS)
    for name in PRESETS:
        ran = tunesmith("presets", name)
        assert ran.code == 0
        options = tunesmith("presets", name, "--json").object[name]
        for key, told in options.items():
            listed = ran.out.partition("\nOptions")[2]
            (line,) = re.findall(rf"^{key} .*$", listed, re.MULTILINE)
            assert told.keys() == {"default", "allowed", "meaning"}
            assert told["allowed"] in line and told["meaning"] in line
    ran = tunesmith("presets", "merd")
    assert ran.code == 2
    assert "no tuner named 'merd'" in ran.err


def test_tune_ends_with_one_json_object_and_nothing_else(sample: Sample) -> None:
    heldout = "--heldout", sample.test[0], "--heldout-reference", sample.test[2]
    ran = tunesmith("rerank", "tune", *sample.dev, "-t", "mert", *heldout, "--json")
    assert ran.code == 0, ran.err
    assert ran.out.count("\n") == 1
    found = ran.object
    assert (found["tuner"], found["metric"]) == ("mert", "bleu")
    for key in SCORES:
        assert isinstance(found[key], float)
    assert 0 <= found["start"] < found["tuned"] <= found["oracle"] <= 100
    assert set(found["weights"]) == {"channel", "lm", "words", "unknown", "noise"}
    assert found["second"]["name"] == "chrf"
    assert 0 < found["significance"]["bootstrap"]["p"] < 1
    assert found["significance"]["on"] == "heldout"
    assert found["refused"] is None
    assert found["skipped"] == {}


def test_tune_without_held_out_lists_says_null(sample: Sample) -> None:
    ran = tunesmith("rerank", "tune", *sample.dev, "-t", "mert", "--json")
    assert ran.object["heldout"] is None
    folded = tunesmith("rerank", "tune", *sample.dev, "-t", "mert", "--folds", 2, "--json")
    assert isinstance(folded.object["heldout"], float)
    assert folded.object["significance"]["on"] == "folds"
    assert folded.object["weights"] == ran.object["weights"]


def test_messages_go_to_stderr_and_results_to_stdout(sample: Sample, tmp_path: Path) -> None:
    out, run = tmp_path / "w.toml", tmp_path / "run"
    ran = tunesmith("rerank", "tune", *sample.dev, "-t", "mert", "--out", out, "--run", run)
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "mert for bleu: 40 lists, 400 hypotheses, 5 features",
        ran.err.splitlines()[1],
        f"weights written to {out}",
        f"{run}/report.html shows the run",
    ]
    for told in ("start", "tuned", "oracle", "chrf, not tuned", "paired bootstrap", "lm"):
        assert told in ran.out
    assert "\x1b" not in ran.out + ran.err


def test_tables_are_whole_in_a_file_however_long_the_names(tmp_path: Path) -> None:
    long = "Very" + "Long" * 40 + "Name"
    nbest = tmp_path / "long.nbest"
    nbest.write_text(f"0 ||| a b ||| {long}= 1 ||| 1\n0 ||| a c ||| {long}= 2 ||| 0\n")
    ref = tmp_path / "ref"
    ref.write_text("a c\n")
    ran = process("rerank", "check", nbest, "-r", ref)
    row = next(line for line in ran.out.splitlines() if line.startswith("Very"))
    assert row.split() == [long, "100%", "1", "1.5", "2", "100%", "+1.000", "+", "0.00"]
    ran = process("score", ref, "-r", ref, "--confidence", env={**os.environ, "COLUMNS": "30"})
    assert [line.split()[:2] for line in ran.out.splitlines()[:4]] == [
        ["metric", "score"],
        ["BLEU", "0.00"],
        ["chrF2", "100.00"],
        ["TER", "0.00"],
    ]
    assert "BLEU: nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in ran.out


@pytest.mark.parametrize("name", ["[red]x", "[/bold]", ":smile:", "a\\[b]", "[link=x]y[/link]"])
def test_names_are_printed_as_they_are(tmp_path: Path, name: str) -> None:
    nbest = tmp_path / "odd.nbest"
    nbest.write_text(f"0 ||| a b ||| {name}= 1 ||| 1\n0 ||| a c ||| {name}= 2 ||| 0\n")
    (tmp_path / "ref").write_text("a c\n")
    ran = tunesmith("rerank", "check", nbest)
    assert any(line.startswith(f"{name} ") for line in ran.out.splitlines())
    ran = tunesmith("rerank", "tune", nbest, "-r", tmp_path / "ref", "-m", "chrf", "-t", "mert")
    assert any(line.startswith(f"{name} ") for line in ran.out.splitlines())
    ran = tunesmith("rerank", "check", tmp_path / name)
    assert f"{tmp_path / name}: " in ran.err


def test_a_terminal_sees_progress_and_colours(sample: Sample) -> None:
    words = "rerank", "tune", *sample.dev, "-t", "mert", "--set", "restarts=100"
    shown = on_a_terminal(*words)
    assert "run 1" in shown
    assert "/101" in shown
    assert "━" in shown
    assert "\x1b[1m" in shown
    plain = on_a_terminal(*words, NO_COLOR="1")
    assert not re.search(r"\x1b\[[0-9;]*3[0-9][0-9;]*m", plain), "no colour was asked for"


def test_a_narrow_terminal_folds_long_names_instead_of_cutting_them(tmp_path: Path) -> None:
    long = "LexicalReordering0ThatIsVeryLong"
    nbest = tmp_path / "long.nbest"
    nbest.write_text(f"0 ||| a b ||| {long}= 1 ||| 1\n0 ||| a c ||| {long}= 2 ||| 0\n")
    shown = on_a_terminal("rerank", "check", nbest, columns=80)
    rows = shown.replace("\r", "").split("\n")
    at = next(number for number, row in enumerate(rows) if row.startswith("Lexical"))
    assert rows[at].split()[0] + rows[at + 1].split()[0] == long
    assert "…" not in shown
