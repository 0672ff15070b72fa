"""Whatever is wrong with the input: a message with file, line and remedy, exit code 2, no trace."""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import Ran, Sample, refused, tunesmith

GOOD = "0 ||| a b c ||| A= 1 B= 2 ||| 3\n0 ||| a b d ||| A= 2 B= 1 ||| 2\n"
MORE = "1 ||| x y z ||| A= 1 B= 2 ||| 3\n1 ||| x y ||| A= 2 B= 1 ||| 2\n"
REFERENCES = "a b d\nx y z\n"

# What is wrong, the second line of the list, part of the message.
BAD_LINES = {
    "missing fields": (b"0 ||| a b d ||| A= 2", "found 3 of the 4 fields"),
    "text for a number": (b"0 ||| a b d ||| A= two B= 1 ||| 2", '"two" is not a number'),
    "text for an id": (b"zero ||| a b d ||| A= 2 B= 1 ||| 2", '"zero"'),
    "NaN": (b"0 ||| a b d ||| A= nan B= 1 ||| 2", "not a finite number"),
    "infinity": (b"0 ||| a b d ||| A= 2 B= 1 ||| -inf", "not a finite number"),
    "a feature twice": (b"0 ||| a b d ||| A= 2 A= 1 ||| 2", "given twice"),
    "blank hypothesis": (b"0 |||  ||| A= 2 B= 1 ||| 2", "has no text"),
    "invalid UTF-8": (b"0 ||| a \xff d ||| A= 2 B= 1 ||| 2", "invalid UTF-8"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with good lists, references and weights, where commands are run."""
    (tmp_path / "good.nbest").write_text(GOOD + MORE)
    (tmp_path / "ref").write_text(REFERENCES)
    (tmp_path / "w.toml").write_text("[weights]\nA = 1.0\nB = 0.5\n")
    return tmp_path


def three_ways(folder: Path, nbest: Path, *more: object) -> list[Ran]:
    """Check, tune and apply lists that must be refused."""
    out = folder / "out.toml", folder / "run", folder / "out.nbest"
    references = "-r", folder / "ref"
    weights = "-w", folder / "w.toml"
    return [
        refused(folder, "rerank", "check", nbest, *references, *more),
        refused(
            *(folder, "rerank", "tune", nbest, *references, "-t", "mert"),
            *("--out", out[0], "--run", out[1], *more),
        ),
        refused(folder, "rerank", "apply", nbest, *weights, *more),
        refused(folder, "rerank", "apply", nbest, *weights, "--nbest-out", out[2], *more),
    ]


@pytest.mark.parametrize("kind", BAD_LINES)
def test_a_bad_line_is_named_with_file_line_and_remedy(folder: Path, kind: str) -> None:
    line, message = BAD_LINES[kind]
    nbest = folder / "bad.nbest"
    nbest.write_bytes(GOOD.split("\n")[0].encode() + b"\n" + line + b"\n" + MORE.encode())
    for ran in three_ways(folder, nbest):
        assert ran.err.startswith(f"error: {nbest}:2: ")
        assert message in ran.err
        assert ran.err.rstrip().endswith(")"), "a remedy in brackets"


@pytest.mark.parametrize("kind", BAD_LINES)
def test_skip_bad_leaves_a_bad_line_out_and_counts_it(folder: Path, kind: str) -> None:
    line, _ = BAD_LINES[kind]
    nbest = folder / "bad.nbest"
    nbest.write_bytes(GOOD.encode() + line + b"\n" + MORE.encode())
    ran = tunesmith("rerank", "check", nbest, "-r", folder / "ref", "--skip-bad", "--json")
    assert ran.code == 0, ran.err
    assert ran.object["hypotheses"] == 4
    assert list(ran.object["skipped"].values()) == [1]
    assert f": 1, first {nbest}:3: " in ran.err
    ran = tunesmith("rerank", "apply", nbest, "-w", folder / "w.toml", "--skip-bad")
    assert ran.out == "a b d\nx y\n"
    assert f": 1, first {nbest}:3: " in ran.err


def test_a_command_without_skip_bad_says_nothing_about_good_lists(folder: Path) -> None:
    ran = tunesmith("rerank", "apply", folder / "good.nbest", "-w", folder / "w.toml")
    assert (ran.code, ran.out, ran.err) == (0, "a b d\nx y\n", "")


@pytest.mark.parametrize(("lines", "told"), [(1, "2 lists but 1"), (3, "2 lists but 3")])
def test_unequal_numbers_of_lists_and_references_are_refused(
    folder: Path, lines: int, told: str
) -> None:
    short = folder / "other.ref"
    short.write_text("a\n" * lines)
    for command in ("check", "tune"):
        ran = refused(folder, "rerank", command, folder / "good.nbest", "-r", short)
        assert f"{short}:{min(2, lines) + 1}: {told} references" in ran.err


def test_lists_missing_at_the_end_are_empty_when_the_number_of_sentences_is_given(
    folder: Path,
) -> None:
    (folder / "three.ref").write_text(REFERENCES + "q\n")
    words = folder / "good.nbest", "--sentences", 3
    ran = tunesmith("rerank", "check", *words, "-r", folder / "three.ref", "--json")
    assert (ran.object["sentences"], ran.object["empty_lists"]) == (3, 1)
    ran = tunesmith("rerank", "apply", *words, "-w", folder / "w.toml")
    assert ran.out == "a b d\nx y\n\n"
    ran = refused(folder, "rerank", "check", folder / "good.nbest", "--sentences", 1)
    assert f"{folder / 'good.nbest'}:3: " in ran.err


def test_files_to_merge_must_have_the_same_number_of_sentences(folder: Path) -> None:
    (folder / "one.nbest").write_text(GOOD)
    ran = refused(folder, "rerank", "check", folder / "good.nbest", folder / "one.nbest")
    assert "1 sentences, but" in ran.err
    both = folder / "good.nbest", folder / "one.nbest", "--sentences", 2
    assert tunesmith("rerank", "check", *both).code == 0


def test_blank_references_are_refused_or_left_out_or_kept(folder: Path) -> None:
    blank = folder / "blank.ref"
    blank.write_text("a b d\n\n")
    words = "rerank", "check", folder / "good.nbest", "-r", blank
    ran = refused(folder, *words)
    assert f"{blank}:2: the reference is blank" in ran.err
    ran = tunesmith(*words, "--skip-bad", "--json")
    assert ran.object["sentences"] == 1
    assert ran.object["skipped"] == {"blank reference": 1}
    assert tunesmith(*words, "--keep-blank", "--json").object["sentences"] == 2
    output = folder / "ref"
    assert f"{blank}:2" in refused(folder, "score", output, "-r", blank).err
    assert f"{blank}:2" in refused(folder, "compare", output, output, "-r", blank).err
    assert tunesmith("score", output, "-r", blank, "--keep-blank").code == 0


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_lists_without_hypotheses_are_refused(folder: Path, content: str) -> None:
    nbest = folder / "empty.nbest"
    nbest.write_text(content)
    for ran in three_ways(folder, nbest):
        assert f"error: {nbest}: no hypotheses" in ran.err
    for ran in three_ways(folder, nbest, "--format", "moses"):
        assert f"error: {nbest}: no hypotheses" in ran.err


def test_lists_with_nothing_but_bad_lines_are_refused_even_when_bad_lines_are_skipped(
    folder: Path,
) -> None:
    nbest = folder / "bad.nbest"
    nbest.write_text("0 ||| a ||| A= x ||| 1\n")
    for ran in three_ways(folder, nbest, "--skip-bad"):
        assert "no hypotheses" in ran.err
        assert f"{nbest}:1" in ran.err


def test_hypotheses_without_features_are_refused_for_tuning(folder: Path) -> None:
    nbest = folder / "bare.jsonl"
    nbest.write_text('{"hypotheses": [{"text": "a"}, {"text": "b"}]}\n')
    (folder / "one.ref").write_text("a\n")
    ran = refused(folder, "rerank", "tune", nbest, "-r", folder / "one.ref")
    assert "no features" in ran.err


def test_a_truncated_archive_is_refused(folder: Path) -> None:
    whole = gzip.compress((GOOD + MORE).encode() * 50)
    nbest = folder / "cut.nbest.gz"
    nbest.write_bytes(whole[: len(whole) // 2])
    for ran in three_ways(folder, nbest, "--skip-bad"):
        assert str(nbest) in ran.err
        assert "truncated" in ran.err or "damaged" in ran.err or "corrupt" in ran.err
    reference = folder / "cut.ref.gz"
    reference.write_bytes(gzip.compress(os.urandom(2000))[:1000])
    ran = refused(folder, "rerank", "check", folder / "good.nbest", "-r", reference)
    assert str(reference) in ran.err


def test_a_directory_in_place_of_a_file_is_refused(folder: Path) -> None:
    place = folder / "folder"
    place.mkdir()
    good = folder / "good.nbest"
    for ran in [
        *three_ways(folder, place),
        refused(folder, "rerank", "tune", good, "-r", place),
        refused(folder, "rerank", "tune", good, "-r", folder / "ref", "-o", place),
        refused(folder, "rerank", "apply", good, "-w", place),
        refused(folder, "score", place, "-r", folder / "ref"),
        refused(folder, "compare", folder / "ref", place, "-r", folder / "ref"),
    ]:
        assert f"{place}: is a directory" in ran.err
    assert "no run here" in refused(folder, "report", place).err


def test_weights_in_a_pipe_are_refused(folder: Path) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, (folder / "w.toml").read_bytes())
    os.close(theirs)
    pipe = f"/dev/fd/{ours}"
    ran = refused(folder, "rerank", "apply", folder / "good.nbest", "-w", pipe)
    os.close(ours)
    assert f"{pipe}: weights cannot be read from a pipe (write them to a file first)" in ran.err


OPTIONS: dict[str, tuple[str, list[object]]] = {
    "--skip-bad or --keep-blank": ('{"hypotheses": [{"text": ""}]}\n', []),
    "--per-sentence 10": ("a\nb\n", []),
    "check --per-sentence": ("a\nb\n", ["--per-sentence", 3]),
    "--out-format jsonl": ("0 ||| a ||| A= 1 ||| 1\n", ["--out-format", "fairseq"]),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_remedies_name_options(folder: Path, option: str) -> None:
    content, more = OPTIONS[option]
    nbest = folder / "list"
    nbest.write_text(content)
    out = "--nbest-out", folder / "out"
    ran = refused(folder, "rerank", "apply", nbest, "-w", folder / "w.toml", *out, *more)
    assert option in ran.err.rpartition("(")[2]


def test_a_missing_file_is_refused(folder: Path) -> None:
    missing = folder / "missing"
    good = folder / "good.nbest"
    for ran in [
        *three_ways(folder, missing),
        refused(folder, "rerank", "tune", good, "-r", missing),
        refused(folder, "rerank", "tune", good, "-r", folder / "ref", "-w", missing),
        refused(folder, "rerank", "apply", good, "-w", folder / "missing.toml"),
        refused(folder, "rerank", "apply", good, "-w", folder / "missing.ini"),
        refused(folder, "score", missing, "-r", folder / "ref"),
        refused(folder, "compare", folder / "ref", missing, "-r", folder / "ref"),
    ]:
        assert f"{missing}" in ran.err
        assert "no such file" in ran.err.lower()
    nowhere = missing / "w.toml"
    for ran in [
        refused(folder, "rerank", "tune", good, "-r", folder / "ref", "-o", nowhere),
        refused(folder, "rerank", "apply", good, "-w", folder / "w.toml", "--nbest-out", nowhere),
    ]:
        assert f"{missing}: there is no such directory" in ran.err
    assert str(missing) in refused(folder, "report", missing).err


@pytest.fixture
def nobody() -> Iterator[None]:
    """Root may read anything, so somebody else has to try."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    yield
    if root:
        os.seteuid(0)


def test_an_unreadable_file_is_refused(folder: Path, request: pytest.FixtureRequest) -> None:
    closed = folder / "closed.nbest"
    closed.write_text(GOOD + MORE)
    closed.chmod(0)
    # Once with a good list, for what is imported late.
    assert tunesmith("rerank", "check", folder / "good.nbest").code == 0
    request.getfixturevalue("nobody")
    ran = tunesmith("rerank", "check", closed)
    assert ran.code == 2, ran.err
    assert ran.err.startswith(f"error: {closed}: ")
    assert "ermission denied" in ran.err


def test_unequal_outputs_and_references_are_refused(folder: Path) -> None:
    (folder / "three").write_text(REFERENCES + "q\n")
    ref = folder / "ref"
    ran = refused(folder, "score", folder / "three", "-r", ref)
    assert f"{folder / 'three'}:3: 3 lines, but 2 references" in ran.err
    ran = refused(folder, "compare", ref, folder / "three", "-r", ref)
    assert f"{folder / 'three'}:3: 3 lines, but 2 references" in ran.err
    ran = refused(folder, "score", ref, "-r", ref, "-r", folder / "three")
    assert str(folder / "three") in ran.err


WRONG_OPTIONS = {
    "tuner": (["-t", "merd"], "no tuner named 'merd' (choose one of mert, "),
    "metric": (["-m", "blue"], "unknown metric 'blue' (choose one of bleu, "),
    "option of a metric": (["-m", "bleu:order=3"], "has no option"),
    "second metric": (["--second-metric", "blue"], "unknown metric 'blue'"),
    "option of a tuner": (["-t", "rm", "--set", "boundary=2"], "rm has no option 'boundary'"),
    "value of an option": (["-t", "rm", "--set", "bound=two"], "rm.bound is 'two'"),
    "option without value": (["--set", "bound"], "--set bound (write key=value)"),
    "format": (["--format", "mosses"], "mosses"),
    "feature in --fix": (["--fix", "C=1"], "no feature is called 'C' (there are A, B)"),
    "feature in --bound": (["--bound", "C*=0:"], "no feature is called 'C*'"),
    "number in --fix": (["--fix", "A=one"], "--fix A=one (write NAME=VALUE"),
    "infinity in --fix": (["--fix", "A=inf"], "--fix A=inf"),
    "--fix without value": (["--fix", "A"], "--fix A (write NAME=VALUE"),
    "number in --bound": (["--bound", "A=low:"], "--bound A=low: (write NAME=LOW:HIGH"),
    "--bound without colon": (["--bound", "A=1"], "--bound A=1 (write NAME=LOW:HIGH"),
    "--bound the wrong way": (["--bound", "A=2:1"], "give the lower one first"),
    "--keep without held-out": (["--keep", "heldout"], "held-out lists"),
    "--resume without --run": (["--resume"], "--resume without --run (name the run directory)"),
    "one fold": (["--folds", "1"], "give 2 or more"),
    "too many folds": (["--folds", "3"], "3 folds of 2 sentences"),
    "--feature without file": (["--feature", "lm"], "write NAME=FILE"),
    "column": (["-m", "column:COMET"], "called 'COMET' (there are A, B)"),
    "held-out references only": (["--heldout-reference", "ref"], "without --heldout"),
}


@pytest.mark.parametrize("kind", WRONG_OPTIONS)
def test_a_wrong_option_is_refused_with_what_there_is(folder: Path, kind: str) -> None:
    words, message = WRONG_OPTIONS[kind]
    base = "rerank", "tune", folder / "good.nbest", "-r", folder / "ref"
    ran = refused(folder, *base, "--out", folder / "o.toml", *words)
    assert ran.err.startswith("error: ")
    assert message in ran.err


USAGE = {
    "unknown option": (["rerank", "tune", "x", "--tunr", "mert"], "--tuner"),
    "unknown command": (["rerank", "tun"], "No such command 'tun'"),
    "text for a number": (["rerank", "tune", "x", "--folds", "many"], "integer"),
    "negative folds": (["rerank", "tune", "x", "--folds", "-1"], "--folds"),
    "negative seed": (["rerank", "tune", "x", "--seed", "-1"], "--seed"),
    "no seeds": (["rerank", "tune", "x", "--seeds", "0"], "--seeds"),
    "unknown round to keep": (["rerank", "tune", "x", "--keep", "first"], "'best', 'last'"),
    "negative threads": (["rerank", "tune", "x", "--threads", "-1"], "--threads"),
    "no samples": (["compare", "x", "y", "--samples", "0"], "--samples"),
    "no lists": (["rerank", "check"], "NBEST"),
}


@pytest.mark.parametrize("kind", USAGE)
def test_wrong_usage_is_told_on_stderr_with_exit_code_2(tmp_path: Path, kind: str) -> None:
    words, message = USAGE[kind]
    ran = refused(tmp_path, *words)
    # The message stands in a frame that breaks its lines.
    assert message in " ".join(ran.err.replace("│", " ").split())
    assert "Usage: tunesmith" in ran.err
    assert "Try 'tunesmith" in ran.err


def test_references_are_asked_for_where_a_metric_needs_them(folder: Path) -> None:
    good, ref = folder / "good.nbest", folder / "ref"
    ran = refused(folder, "rerank", "tune", good)
    assert "bleu needs references (name them with --reference FILE, or put them into" in ran.err
    ran = refused(folder, "rerank", "tune", good, "-r", ref, "--heldout", good)
    assert "--heldout-reference FILE" in ran.err
    for command in (("score", ref), ("compare", ref, ref)):
        assert "bleu needs references" in refused(folder, *command).err


def test_folds_and_held_out_lists_together_are_refused(folder: Path) -> None:
    good, ref = folder / "good.nbest", folder / "ref"
    heldout = "--heldout", good, "--heldout-reference", ref
    ran = refused(folder, "rerank", "tune", good, "-r", ref, "--folds", 2, *heldout)
    assert "choose one of the two" in ran.err


def test_only_one_system_is_refused(folder: Path) -> None:
    ran = refused(folder, "compare", folder / "ref", "-r", folder / "ref")
    assert "at least one system" in ran.err


BROKEN_WEIGHTS = {
    "no TOML": ("w.toml", "[weights]\nA = \n", ":2: "),
    "no table": ("w.toml", "A = 1.0\n", "no table [weights]"),
    "text": ("w.toml", '[weights]\n"A" = "one"\n', ":2: the weight of 'A' is text"),
    "NaN": ("w.toml", "[weights]\nA = nan\n", ":2: the weight of 'A' is not a finite number"),
    "nothing": ("w.toml", "[weights]\n", "no weights in the file"),
    "pairs": ("w.txt", "A 1.0\nB\n", ":2: "),
    "ini": ("moses.ini", "[feature]\n", "weight"),
}


@pytest.mark.parametrize("kind", BROKEN_WEIGHTS)
def test_broken_weights_are_refused(folder: Path, kind: str) -> None:
    name, content, message = BROKEN_WEIGHTS[kind]
    (folder / "broken").mkdir()
    weights = folder / "broken" / name
    weights.write_text(content)
    good, ref = folder / "good.nbest", folder / "ref"
    for words in (["rerank", "apply", good], ["rerank", "tune", good, "-r", ref]):
        ran = refused(folder, *words, "-w", weights)
        assert ran.err.startswith(f"error: {weights}")
        assert message in ran.err


def test_weights_of_features_that_no_list_has_are_told(folder: Path) -> None:
    weights = folder / "more.toml"
    weights.write_text("[weights]\nA = 1.0\nC = 2.0\nD = 0.0\n")
    good = folder / "good.nbest"
    told = "warning: weights without a feature in the lists: 1 (C)\n"
    ran = tunesmith("rerank", "apply", good, "-w", weights)
    assert (ran.code, ran.out, ran.err) == (0, "a b d\nx y\n", told)
    out = folder / "out.nbest"
    assert told in tunesmith("rerank", "apply", good, "-w", weights, "--nbest-out", out).err
    tuned = tunesmith("rerank", "tune", good, "-r", folder / "ref", "-t", "mert", "-w", weights)
    assert told in tuned.err
    weights.write_text("[weights]\nC = 2.0\n")
    ran = tunesmith("rerank", "apply", good, "-w", weights)
    assert "no weight has a feature in the lists" in ran.err


def test_refused_weights_end_with_exit_code_1_and_are_not_written(folder: Path) -> None:
    (folder / "still.nbest").write_text("0 ||| a ||| A= 1 ||| 1\n0 ||| b ||| A= 1 ||| 1\n")
    (folder / "one.ref").write_text("b\n")
    out = folder / "out.toml"
    words = "rerank", "tune", folder / "still.nbest", "-r", folder / "one.ref", "-t", "mert"
    ran = tunesmith(*words, "--out", out, "--json")
    assert ran.code == 1
    assert ran.object["refused"]
    assert f"error: refused: {ran.object['refused']}" in ran.err
    assert not out.exists()
    ran = tunesmith(*words, "--out", out, "--json", "--force")
    assert ran.code == 0
    assert f"warning: weights that would be refused: {ran.object['refused']}" in ran.err
    assert out.exists()


def test_a_file_of_numbers_is_refused_for_several_lists(folder: Path) -> None:
    (folder / "lm").write_text("1\n2\n3\n4\n")
    words = "rerank", "tune", folder / "good.nbest", "-r", folder / "ref", "-t", "mert"
    more = "--feature", f"lm={folder / 'lm'}"
    assert "lm" in tunesmith(*words, *more, "--json", "--force").object["weights"]
    heldout = "--heldout", folder / "good.nbest", "--heldout-reference", folder / "ref"
    assert "the file of lm belongs to one" in refused(folder, *words, *more, *heldout).err
    ran = refused(folder, *words, folder / "good.nbest", *more)
    assert "the file of lm belongs to one" in ran.err


def test_a_run_directory_that_holds_something_is_left_alone(folder: Path, sample: Sample) -> None:
    place = folder / "run"
    place.mkdir()
    (place / "thesis.tex").write_text("mine")
    ran = refused(folder, "rerank", "tune", *sample.dev, "-t", "mert", "--run", place)
    assert "the run directory is not empty: it holds thesis.tex" in ran.err
    ran = refused(folder, "rerank", "tune", *sample.dev, "--run", place, "--resume")
    assert "no run here" in ran.err
    ran = refused(folder, "rerank", "tune", *sample.dev, "--run", folder / "new", "--resume")
    assert "no run to resume here" in ran.err


def test_a_run_of_another_configuration_is_not_resumed(folder: Path, sample: Sample) -> None:
    place = folder / "run"
    words = "rerank", "tune", *sample.dev, "-t", "mert", "--set", "restarts=2"
    assert tunesmith(*words, "--run", place).code == 0
    ran = refused(folder, *words, "--run", place)
    assert "already holds a run" in ran.err
    changed: list[tuple[list[object], str]] = [
        (["--seed", 7], "seed was 1, now 7"),
        (["-m", "chrf"], 'metric was "bleu", now "chrf"'),
        (["--set", "tolerance=1"], "options.tolerance"),
        (["--fix", "words=1"], "fix"),
        (["--keep-blank"], "reading.keep_blank was not given, now true"),
        (["--first-id", 0, "-r", sample.folder / "test.ref"], "inputs"),
    ]
    for change, told in changed:
        ran = refused(folder, *words, *change, "--run", place, "--resume")
        assert "another configuration" in ran.err
        assert told in ran.err
    assert tunesmith(*words, "--run", place, "--resume").code == 0
