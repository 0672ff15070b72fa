"""The commands together: what one writes the next one reads, and the scores agree."""

from __future__ import annotations

import ast
import gzip
import inspect
import json
import re
import signal
import subprocess
import sys
import tomllib
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest
from running import COMMAND, Sample, process, refused, tunesmith
from twins.quick import ON_LISTS

from tunesmith.cli import rerank
from tunesmith.cli.options import reading_of
from tunesmith.formats import read_nbest, write_nbest
from tunesmith.weights import Weights

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"
DATA = Path(__file__).parents[3] / "shared" / "data"


def test_the_package_imports_only_what_an_installation_brings() -> None:
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *chain(*(extras[name] for name in extras.keys() - {"dev"}))]
    declared = {re.split("[>=]", package)[0].removeprefix("sil-") for package in wanted}
    allowed = {name.replace("-", "_") for name in declared} | sys.stdlib_module_names
    for path in (root / "python").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            found = {name.partition(".")[0] for name in names}
            assert found <= allowed | {"tunesmith", "_typeshed"}, path


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter", "wer"])
def test_tune_apply_and_score_agree(sample: Sample, tmp_path: Path, metric: str) -> None:
    weights, output = tmp_path / "w.toml", tmp_path / "out"
    heldout = "--heldout", sample.test[0], "--heldout-reference", sample.test[2]
    words = "rerank", "tune", *sample.dev, *heldout, "-m", metric, "-t", "mert", "-o", weights
    tuned = tunesmith(*words, "--json")
    assert tuned.code == 0, tuned.err
    for lists, key in ((sample.dev, "tuned"), (sample.test, "heldout")):
        applied = tunesmith("rerank", "apply", lists[0], "-w", weights)
        assert applied.err == ""
        output.write_text(applied.out)
        scored = tunesmith("score", output, *lists[1:], "-m", metric, "--json")
        assert scored.object == {metric: pytest.approx(tuned.object[key], abs=1e-9)}
    assert tomllib.loads(weights.read_text())["weights"] == tuned.object["weights"]


def test_start_is_the_first_of_each_list_or_what_given_weights_choose(
    sample: Sample, tmp_path: Path
) -> None:
    output, weights = tmp_path / "out", tmp_path / "w.toml"
    pools = read_nbest(sample.dev[0]).pools
    firsts = pools.texts(pools.starts[:-1])
    output.write_text("".join(f"{text}\n" for text in firsts))
    first = tunesmith("score", output, *sample.dev[1:], "-m", "bleu", "--json").object["bleu"]
    base = "rerank", "tune", *sample.dev, "-t", "mert", "--json"
    assert tunesmith(*base).object["start"] == pytest.approx(first, abs=1e-9)
    assert tunesmith("rerank", "check", *sample.dev, "--json").object["scores"][
        "first"
    ] == pytest.approx(first, abs=1e-9)
    weights.write_text("[weights]\nlm = 1.0\n")
    output.write_text(tunesmith("rerank", "apply", sample.dev[0], "-w", weights).out)
    given = tunesmith("score", output, *sample.dev[1:], "-m", "bleu", "--json").object["bleu"]
    assert given != first
    assert tunesmith(*base, "-w", weights).object["start"] == pytest.approx(given, abs=1e-9)


def test_weights_that_fit_the_tuning_lists_only_are_told(tmp_path: Path) -> None:
    def write(name: str, good: int) -> Path:
        (tmp_path / name).write_text(
            f"0 ||| a b c d ||| A= {good} B= 1 ||| 1\n0 ||| a x ||| A= {-good} B= 0 ||| 0\n"
            if good < 0
            else f"0 ||| a x ||| A= {-good} B= 1 ||| 1\n0 ||| a b c d ||| A= {good} B= 0 ||| 0\n"
        )
        return tmp_path / name

    (tmp_path / "ref").write_text("a b c d\n")
    dev, other = write("dev.nbest", 1), write("other.nbest", -1)
    heldout = "--heldout", other, "--heldout-reference", tmp_path / "ref"
    words = "rerank", "tune", dev, "-r", tmp_path / "ref", "-t", "mert", "-m", "chrf", *heldout
    ran = tunesmith(*words, "--fix", "B=0", "--json")
    assert ran.code == 0, ran.err
    assert ran.object["heldout"] < ran.object["heldout_start"] == 100.0
    assert "warning: on held-out lists the score went from 100.00 to" in ran.err


@pytest.mark.parametrize("preset", ON_LISTS)
def test_every_tuner_does_no_worse_than_the_start(sample: Sample, preset: str) -> None:
    ran = tunesmith("rerank", "tune", *sample.dev, "-t", preset, "--json")
    assert ran.code == 0, ran.err
    assert ran.object["tuned"] >= ran.object["start"]


def untimed(result: dict[str, Any]) -> dict[str, Any]:
    """Return what must be the same however long it took."""
    return {key: value for key, value in result.items() if not key.endswith("seconds")}


@pytest.mark.parametrize("preset", ["mert", "kbmira", "pro"])
def test_the_number_of_threads_changes_nothing(sample: Sample, preset: str) -> None:
    words = "rerank", "tune", *sample.dev, "-t", preset, "--folds", 2, "--seeds", 2, "--json"
    one, two = (untimed(tunesmith(*words, "--threads", threads).object) for threads in (1, 2))
    assert one == two


@pytest.mark.parametrize("suffix", ["nbest", "nbest.gz", "nbest.zst", "jsonl"])
def test_reordered_lists_read_again_give_the_same_choices(
    sample: Sample, tmp_path: Path, suffix: str
) -> None:
    weights, new = tmp_path / "w.toml", tmp_path / f"new.{suffix}"
    weights.write_text("[weights]\nlm = 1.0\nwords = 2.5\n")
    format = "jsonl" if suffix == "jsonl" else "moses"
    words = "--nbest-out", new, "--name", "model", "--out-format", format
    ran = tunesmith("rerank", "apply", sample.dev[0], "-w", weights, *words)
    assert (ran.code, ran.out) == (0, "")
    old, pools = read_nbest(sample.dev[0]).pools, read_nbest(new).pools
    assert pools.names == [*old.names, "model"]
    assert (pools.sentences, pools.hypotheses) == (old.sentences, old.hypotheses)
    scores = [dict(pools.features(at))["model"] for at in range(pools.hypotheses)]
    starts = pools.starts
    for begin, end in pairwise(starts):
        part = scores[begin:end]
        assert part == sorted(part, reverse=True)
    chosen = tunesmith("rerank", "apply", sample.dev[0], "-w", weights).out
    assert pools.texts(starts[:-1]) == chosen.splitlines()
    # The new score alone says as much, and a second pass changes nothing.
    weights.write_text("[weights]\nmodel = 1.0\n")
    assert tunesmith("rerank", "apply", new, "-w", weights).out == chosen


def test_reordered_lists_keep_sources_references_and_the_totals_of_the_decoder(
    tmp_path: Path,
) -> None:
    weights, new = tmp_path / "w.toml", tmp_path / "new.jsonl"
    weights.write_text("[weights]\nlm = -1.0\n")
    ran = tunesmith("rerank", "apply", GOLDEN / "lists.jsonl", "-w", weights, "--nbest-out", new)
    assert ran.code == 0, ran.err
    old, lists = (
        [json.loads(line) for line in file.read_text().splitlines()]
        for file in (GOLDEN / "lists.jsonl", new)
    )
    for name in ("key", "source", "references"):
        assert [each.get(name) for each in lists] == [each.get(name) for each in old]
    assert [each["text"] for each in lists[0]["hypotheses"]] == ["group\nbreak", "a group"]
    assert [each.get("score") for each in lists[0]["hypotheses"]] == [None, -1.5]


def test_lists_in_a_pipe_have_their_format_named(sample: Sample, tmp_path: Path) -> None:
    whole = tunesmith("rerank", "tune", *sample.dev, "-t", "mert", "--json").object
    with gzip.open(sample.dev[0], "rt") as stream:
        lists = stream.read()
    words = "rerank", "tune", "/dev/stdin", *sample.dev[1:], "-t", "mert", "--json"
    ran = process(*words, input=lists)
    assert ran.code == 2
    assert "/dev/stdin: the format of a pipe cannot be detected (name it with --format)" in ran.err
    run = tmp_path / "run"
    ran = process(*words, "--format", "moses", "--run", run, input=lists)
    assert ran.object["weights"] == whole["weights"]
    # What is gone cannot be looked at again.
    assert "/dev/stdin" not in (run / "config.json").read_text()


def listed(format: str, number: int) -> str:
    """Return the lines of a list of two hypotheses; the second has the higher feature."""
    a, b = f"a{number}", f"b{number}"
    spelled = {
        "moses": f"{number} ||| {a} ||| f= 1 ||| 0\n{number} ||| {b} ||| f= 2 ||| 0\n",
        "jsonl": json.dumps({"hypotheses": [{"text": a}, {"text": b, "features": {"f": 2}}]})
        + "\n",
        "nemo-tsv": f"{a}\t1\n{b}\t2\n",
    }
    return spelled[format]


@pytest.mark.parametrize("format", ["moses", "jsonl", "nemo-tsv"])
def test_a_list_is_answered_before_the_next_one_comes(tmp_path: Path, format: str) -> None:
    (tmp_path / "w.txt").write_text("f 1\nscore 1\n")
    words = ["-w", str(tmp_path / "w.txt"), "--format", format, "--per-sentence", "2"]
    # Only the next id says that a list with ids is complete.
    late = int(format == "moses")
    answers = [f"b{number}\n" for number in range(4)]
    with subprocess.Popen(
        [*COMMAND, "rerank", "apply", "-", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for number in range(4):
            running.stdin.write(listed(format, number))
            running.stdin.flush()
            if number >= late:
                assert running.stdout.readline() == answers[number - late]
        running.stdin.close()
        assert running.stdout.readlines() == answers[4 - late :]
        assert running.wait(timeout=60) == 0


def test_a_filter_that_waits_can_be_interrupted() -> None:
    with subprocess.Popen(
        [*COMMAND, "rerank", "apply", "-", "--format", "jsonl"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as running:
        try:
            assert running.stdin is not None
            assert running.stdout is not None
            running.stdin.write(listed("jsonl", 0))
            running.stdin.flush()
            assert running.stdout.readline() == "a0\n"
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=60) == -signal.SIGINT
        finally:
            running.kill()


def test_commands_that_read_lists_share_their_options() -> None:
    wanted = inspect.signature(reading_of, eval_str=True).parameters
    for command, columns in ((rerank.check, True), (rerank.tune, True), (rerank.apply, False)):
        found = inspect.signature(command).parameters
        assert "reading" not in found
        for name, option in wanted.items():
            if name == "column" and not columns:
                assert name not in found
            else:
                assert found[name] == option


def with_references(folder: Path, name: str, lists: Path, references: Path) -> Path:
    """Write lists as JSONL with their references inside."""
    pools = read_nbest(lists).pools
    texts = [[line] for line in references.read_text().splitlines()]
    write_nbest(pools, folder / name, "jsonl", references=texts)
    return folder / name


def test_references_inside_the_lists_are_enough(sample: Sample, tmp_path: Path) -> None:
    dev = with_references(tmp_path, "dev", sample.dev[0], sample.dev[2])
    test = with_references(tmp_path, "test", sample.test[0], sample.test[2])
    pairs = [
        (("check", *sample.dev), ("check", dev)),
        (
            (
                "tune",
                *sample.dev,
                "--heldout",
                sample.test[0],
                "--heldout-reference",
                sample.test[2],
            ),
            ("tune", dev, "--heldout", test),
        ),
    ]
    for apart, inside in pairs:
        told, found = (
            untimed(tunesmith("rerank", *words, "--json").object) for words in (apart, inside)
        )
        assert found == told
        assert "bleu" in str(found).lower()


FORMATS = {
    "moses.nbest": [],
    "cdec.nbest": [],
    "travatar.nbest": [],
    "lists.jsonl": ["--keep-blank"],
    "fairseq.out": [],
    "espnet": ["--keep-blank"],
    "espnet1.json": [],
    "nemo.jsonl": ["--keep-blank"],
    "nemo.tsv": ["--per-sentence", "2"],
    "flat": ["--per-sentence", "2"],
    "kaldi": ["--keep-blank"],
}


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_checked_applied_and_rewritten(tmp_path: Path, name: str) -> None:
    lists = GOLDEN / name, *FORMATS[name]
    found = tunesmith("rerank", "check", *lists, "--json")
    assert found.code == 0, found.err
    feature = found.object["feature_table"][0]["name"]
    weights = tmp_path / "w.toml"
    weights.write_text(f'[weights]\n"{feature}" = 1.0\n')
    applied = tunesmith("rerank", "apply", *lists, "-w", weights)
    assert applied.code == 0, applied.err
    assert applied.out.count("\n") == found.object["sentences"]
    new = tmp_path / "new.jsonl"
    words = "--nbest-out", new, "--out-format", "jsonl"
    written = tunesmith("rerank", "apply", *lists, "-w", weights, *words)
    assert written.code == 0, written.err
    again = tunesmith("rerank", "check", new, "--keep-blank", "--json")
    assert again.object["hypotheses"] == found.object["hypotheses"]
    assert tunesmith("rerank", "apply", new, "--keep-blank", "-w", weights).out == applied.out


def test_lists_in_a_folder_can_be_tuned_with_a_run_directory(tmp_path: Path) -> None:
    (tmp_path / "ref").write_text("the cat sat\nhello there\n")
    found = tunesmith("rerank", "check", GOLDEN / "flat", "--per-sentence", 2, "--json").object
    assert found["sentences"] == 2
    base = "rerank", "tune", GOLDEN / "flat", "--per-sentence", 2, "-r", tmp_path / "ref"
    words = *base, "-t", "mert", "-m", "chrf", "--run", tmp_path / "run", "--json"
    first = tunesmith(*words, "--force")
    assert first.code == 0, first.err
    again = tunesmith(*words, "--force", "--resume")
    assert again.object["weights"] == first.object["weights"]


def test_ready_made_scores_are_tuned_for_by_the_name_of_their_column(tmp_path: Path) -> None:
    nbest = tmp_path / "comet.nbest"
    nbest.write_text(
        "0 ||| a ||| lm= 1 len= 3 COMET= 0.5 ||| 2\n0 ||| b ||| lm= 2 len= 1 COMET= 0.9 ||| 1\n"
        "1 ||| c ||| lm= 1 len= 2 COMET= 0.2 ||| 2\n1 ||| d ||| lm= 3 len= 1 COMET= 0.4 ||| 1\n"
    )
    words = "rerank", "tune", nbest, "-t", "mert", "-m", "column:COMET", "--json"
    found = tunesmith(*words).object
    assert set(found["weights"]) == {"lm", "len"}
    assert found["start"] == pytest.approx(35.0)
    assert found["tuned"] == pytest.approx(found["oracle"]) == pytest.approx(65.0)
    (tmp_path / "human").write_text("1\n2\n3\n4\n")
    other = "--column", f"human={tmp_path / 'human'}", "-m", "column:human"
    found = tunesmith("rerank", "tune", nbest, "-t", "mert", *other, "--json").object
    assert set(found["weights"]) == {"lm", "len", "COMET"}


def test_score_reads_the_standard_input(sample: Sample) -> None:
    ref = sample.dev[2]
    with ref.open() as stream:
        ran = process("score", "-", "-r", ref, "-m", "chrf++,wer", "--json", stdin=stream)
    assert ran.object == {"chrf++": 100.0, "wer": 0.0}


def test_score_takes_options_of_metrics_and_intervals(sample: Sample) -> None:
    ref = sample.dev[2]
    names = "bleu:tokenize=none,lowercase=1", "chrf"
    ran = tunesmith("score", ref, "-r", ref, "-m", ",".join(names), "--confidence", "--json")
    assert set(ran.object) == {*names, "confidence"}
    assert ran.object[names[0]] == pytest.approx(100.0)
    assert ran.object["confidence"]["chrf"] == [100.0, 100.0]


@pytest.fixture
def outputs(sample: Sample, tmp_path: Path) -> list[Path]:
    """The first, second and third of each list, and the references themselves."""
    pools = read_nbest(sample.dev[0]).pools
    files = []
    for rank in range(3):
        files.append(tmp_path / f"rank{rank}")
        texts = pools.texts(pools.starts[:-1] + rank)
        files[-1].write_text("".join(f"{text}\n" for text in texts))
    return [*files, sample.dev[2]]


def test_compare_tells_difference_interval_and_two_tests(
    sample: Sample, outputs: list[Path]
) -> None:
    base, other, perfect = outputs[0], outputs[1], outputs[3]
    words = "compare", base, other, perfect, *sample.dev[1:], "-m", "bleu,ter"
    found = tunesmith(*words, "--json").object
    for metric in ("bleu", "ter"):
        scores = [
            tunesmith("score", file, *sample.dev[1:], "-m", metric, "--json").object[metric]
            for file in (base, other, perfect)
        ]
        rows = found[metric]
        assert [row["system"] for row in rows] == [str(base), str(other), str(perfect)]
        assert [row["score"] for row in rows] == pytest.approx(scores)
        assert rows[2]["difference"] == pytest.approx(scores[2] - scores[0])
        assert rows[2]["ci"][0] <= rows[2]["difference"] <= rows[2]["ci"][1]
        assert rows[2]["p_bootstrap"] < 0.01
        assert rows[2]["p_randomisation"] < 0.01
    assert tunesmith(*words, "--json").object == found, "the same twice"
    shown = tunesmith(*words).out
    assert len(re.findall(rf"^{re.escape(str(perfect))} ", shown, re.MULTILINE)) == 2


def test_compare_takes_several_runs_per_system(sample: Sample, outputs: list[Path]) -> None:
    base, system = f"{outputs[0]},{outputs[1]}", f"{outputs[2]},{outputs[3]}"
    words = "compare", base, system, *sample.dev[1:], "-m", "chrf"
    row = tunesmith(*words, "--json").object["chrf"][1]
    assert len(row["runs"]) == len(row["baseline_runs"]) == 2
    assert row["score"] == pytest.approx(sum(row["runs"]) / 2)
    assert row["difference"] == pytest.approx(row["score"] - sum(row["baseline_runs"]) / 2)
    assert row["s_test"] > row["baseline_s_test"] > 0
    assert row["s_sel"] > 0
    shown = tunesmith(*words)
    assert shown.code == 0
    assert "s_sel" in shown.out
    mixed = tunesmith("compare", outputs[0], system, outputs[1], *sample.dev[1:], "-m", "chrf")
    assert mixed.code == 0, mixed.err
    low, high = row["ci"]
    assert low <= row["difference"] <= high
    assert (row["p_bootstrap"] < 0.05) == (not low <= 0.0 <= high)


def test_the_start_of_a_paper_is_said_not_to_be_that_of_lists(sample: Sample) -> None:
    words = "rerank", "tune", *sample.dev, "--as"
    said = " ".join(tunesmith(*words, "hasler2011", "--keep", "best").err.split())
    assert "the paper's start (all weights 0.1) is for decoders" in said
    assert "start" not in tunesmith(*words, "cherry2012").err.partition("oracle")[2]


def test_compare_refuses_runs_and_names_that_are_there_twice(
    sample: Sample, outputs: list[Path]
) -> None:
    """The same run twice would halve the variance of nothing."""
    one, other = outputs[:2]
    for words, told in (
        ((f"{one},{one}", other), "has the same run twice"),
        ((f"A={one}", f"A={other}"), "two systems are called 'A'"),
    ):
        ran = tunesmith("compare", *words, *sample.dev[1:])
        assert ran.code == 2 and told in " ".join(ran.err.split())


def test_compare_writes_a_table_for_a_paper(sample: Sample, outputs: list[Path]) -> None:
    systems = f"base={outputs[0]},{outputs[1]}", f"new_one={outputs[2]},{outputs[3]}"
    words = "compare", *systems, *sample.dev[1:], "-m", "chrf,ter"
    found = tunesmith(*words, "--json").object
    lines = tunesmith(*words, "--markdown").out.splitlines()
    assert lines[0] == "| system | chrF2 | Δ chrF2 | p chrF2 | TER | Δ TER | p TER |"
    row = found["chrf"][1]
    scores = row["runs"]
    deviation = abs(scores[0] - scores[1]) / 2**0.5
    cells = [cell.strip() for cell in lines[3].strip("|").split("|")]
    assert cells[0] == "new_one"
    assert cells[1] == f"{row['score']:.2f} ± {deviation:.2f}"
    assert cells[2] == f"{row['difference']:+.2f}"
    assert cells[3] == f"{max(row['p_randomisation'], row['p_bootstrap']):.3f}"
    assert "against base" in lines[-1]
    tex = tunesmith(*words, "--latex").out
    assert r"new\_one & " in tex
    assert r"$\Delta$ chrF2" in tex
    assert tex.count(r"\\") == 3
    one = tunesmith("compare", *outputs[:2], *sample.dev[1:], "-m", "chrf", "--markdown").out
    assert "±" not in one
    ran = tunesmith(*words, "--latex", "--json")
    assert ran.code == 2
    assert "more than one form" in ran.err


def test_compare_takes_runs_and_their_references(sample: Sample, tmp_path: Path) -> None:
    held = "--heldout", sample.test[0], "--heldout-reference", sample.test[2]
    for tuner, seed in (("mert", 1), ("mert", 2), ("pro", 1), ("pro", 2)):
        words = "rerank", "tune", *sample.dev, *held, "-t", tuner, "--seed", seed
        assert tunesmith(*words, "--run", tmp_path / f"{tuner}{seed}").code == 0
    result = json.loads((tmp_path / "mert1" / "result.json").read_text())
    systems = [f"{t}={tmp_path / t}1,{tmp_path / t}2" for t in ("mert", "pro")]
    found = tunesmith("compare", *systems, "-m", "bleu", "--json").object["bleu"]
    assert [row["system"] for row in found] == ["mert", "pro"]
    assert found[0]["runs"][0] == pytest.approx(result["heldout"])
    # An output of the same sentences beside a run.
    chosen = tunesmith("rerank", "apply", sample.test[0], "-w", tmp_path / "pro1" / "weights.toml")
    (tmp_path / "pro.out").write_text(chosen.out)
    both = "compare", tmp_path / "pro1", tmp_path / "pro.out", "-m", "bleu"
    for references in ([], [*sample.test[1:]]):
        row = tunesmith(*both, *references, "--json").object["bleu"][1]
        assert row["difference"] == 0.0
    assert "were tuned on" not in tunesmith(*both).err

    assert tunesmith("rerank", "tune", *sample.dev, "--run", tmp_path / "dev").code == 0
    ran = refused(tmp_path, "compare", tmp_path / "dev", tmp_path / "mert1", "-m", "bleu")
    assert "are not those of" in ran.err
    ran = tunesmith("compare", tmp_path / "dev", tmp_path / "dev", "-m", "bleu")
    assert ran.code == 0
    assert "the text they were tuned on" in ran.err
    (tmp_path / "short").write_text("one line\n")
    assert "1 lines" in refused(tmp_path, "compare", tmp_path / "dev", tmp_path / "short").err
    (tmp_path / "dev" / "outputs.jsonl").unlink()
    ran = refused(tmp_path, "compare", tmp_path / "dev", tmp_path / "mert1", "-m", "bleu")
    assert "outputs.jsonl" in ran.err
    (tmp_path / "dev" / "result.json").unlink()
    ran = refused(tmp_path, "compare", tmp_path / "dev", tmp_path / "mert1", "-m", "bleu")
    assert "has not ended" in ran.err


def test_a_report_of_several_runs_is_one_page(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    held = "--heldout", sample.test[0], "--heldout-reference", sample.test[2]
    for tuner, metric in (("kbmira", "bleu"), ("mira", "bleu"), ("rm", "ter")):
        words = "rerank", "tune", *sample.dev, *held, "-t", tuner, "-m", metric, "--force"
        tunesmith(*words, "--run", tmp_path / tuner, "--seeds", 2)
    ran = tunesmith("report", "kbmira", "mira", "rm")
    assert ran.out == "runs.html\n", ran.err
    page = (tmp_path / "runs.html").read_text()
    assert page.count("<h1>3 runs side by side</h1>") == 1
    for name in ("kbmira", "mira", "rm"):
        assert f"<bdi>{name}</bdi>" in page
    # Runs for another metric have charts of their own.
    curve = re.search(r'id="score-0".*?</figure>', page, re.DOTALL)
    assert curve is not None
    assert len(re.findall(r'class="series" data-name="(?:kbmira|mira)"', curve[0])) == 4
    assert 'data-name="rm"' not in curve[0]
    assert 'id="heldout-0"' in page
    assert 'id="score-1"' in page
    assert 'id="nonzero"' in page
    ran = refused(tmp_path, "report", "mira", "mira/../mira")
    assert "the same run twice" in ran.err
    assert "config.json is missing" in refused(tmp_path, "report", "mira", tmp_path).err
    (tmp_path / "other").mkdir()
    (tmp_path / "mira").rename(tmp_path / "other" / "kbmira")
    assert tunesmith("report", "kbmira", "other/kbmira", "-o", "two.html").out == "two.html\n"
    assert "<bdi>other/kbmira</bdi>" in (tmp_path / "two.html").read_text()


def test_a_report_is_written_into_the_run_or_where_it_is_wanted(
    sample: Sample, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = "rerank", "tune", *sample.dev, "-t", "mert", "--folds", 2, "--seeds", 2
    assert tunesmith(*words, "--run", run).code == 0
    ran = tunesmith("report", run)
    assert ran.out == f"{run / 'report.html'}\n"
    page = (run / "report.html").read_text()
    assert page.startswith("<!doctype html>") or page.startswith("<!DOCTYPE html>")
    assert "mert" in page
    other = tmp_path / "other.html"
    assert tunesmith("report", run, "--out", other, "--json").object == {"report": str(other)}
    assert other.read_text() == page


@pytest.mark.shared
@pytest.mark.skipif(not DATA.exists(), reason="no ../shared/data here")
def test_real_lists_with_two_references_and_real_speech(tmp_path: Path) -> None:
    nmt, asr = DATA / "nbest-nmt", DATA / "nbest-asr"
    references = "-r", nmt / "wmt21-systems.ref.A.en.gz", "-r", nmt / "wmt21-systems.ref.B.en.gz"
    ran = tunesmith("rerank", "check", nmt / "wmt21-systems.nbest.gz", *references, "--json")
    assert ran.object["scores"]["signature"].startswith("nrefs:2|")
    assert ran.object["hypotheses"] == 19000
    ran = tunesmith(
        *("rerank", "tune", asr / "dev_clean.nbest.gz", "-r", asr / "dev_clean.ref.gz"),
        *("--heldout", asr / "test_clean.nbest.gz"),
        *("--heldout-reference", asr / "test_clean.ref.gz", "-m", "wer", "-t", "mert", "--json"),
    )
    found = ran.object
    assert (round(found["start"], 2), round(found["oracle"], 2)) == (6.12, 4.04)
    assert found["tuned"] < found["start"]
    assert found["heldout"] < found["heldout_start"] == pytest.approx(6.42, abs=0.005)


def test_tuned_weights_have_the_form_that_their_name_asks_for(tmp_path: Path) -> None:
    lists, references = tmp_path / "dev.nbest", tmp_path / "dev.ref"
    lists.write_text("0 ||| a b ||| lm= -1 tm= 2 ||| 1\n0 ||| a c ||| lm= -3 tm= 1 ||| 0\n")
    references.write_text("a c\n")
    tune = ("rerank", "tune", lists, "-r", references, "-t", "mert", "-m", "wer", "--force", "-o")
    assert tunesmith(*tune, tmp_path / "w.txt").code == 0
    assert all(len(line.split()) == 2 for line in (tmp_path / "w.txt").read_text().splitlines())
    ran = tunesmith(*tune, tmp_path / "w.ini")
    assert ran.code != 0 and "no configuration of Moses to copy" in ran.err
    start = tmp_path / "start.ini"
    start.write_text("[feature]\nKENLM name=lm\n\n[weight]\nlm= 0.5\ntm= 0.5\n")
    assert tunesmith(*tune, tmp_path / "w.ini", "--weights", start).code == 0
    assert "[feature]" in (tmp_path / "w.ini").read_text()


def test_a_start_far_below_does_not_hide_the_curves_of_several_runs(
    sample: Sample, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second runs begin where the first ended."""
    monkeypatch.chdir(tmp_path)
    pages = {}
    for start in ("poor", "good"):
        for tuner in ("kbmira", "mert"):
            first = ("--weights", "good.toml") if start == "good" else ()
            words = "rerank", "tune", *sample.dev, "-t", tuner, *first
            tunesmith(*words, "--force", "--run", f"{start}-{tuner}", "-o", f"{tuner}.toml")
        Weights.load("kbmira.toml").save("good.toml")
        tunesmith("report", f"{start}-kbmira", f"{start}-mert", "-o", "page.html")
        pages[start] = Path("page.html").read_text()
    assert "one seed each" in pages["poor"]
    assert "Starts are not drawn" in pages["poor"]
    assert "Starts are not drawn" not in pages["good"]


def test_list_features_are_tuned_and_applied_without_being_named_again(
    sample: Sample, tmp_path: Path
) -> None:
    weights = tmp_path / "w.toml"
    words = ["rerank", "tune", *sample.dev, "-o", weights, "--force"]
    ran = tunesmith(*words, "--list-features", "first, agreement", "--json")
    assert {"list:first", "list:agreement"} <= ran.object["weights"].keys()
    plain = tunesmith("rerank", "apply", sample.test[0], "-w", weights)
    assert plain.code == 0 and "without a feature" not in plain.err
    lists = tmp_path / "new.jsonl"
    out = ("--nbest-out", lists, "--out-format", "jsonl")
    assert tunesmith("rerank", "apply", sample.test[0], "-w", weights, *out).code == 0
    first = [json.loads(line)["hypotheses"][0] for line in lists.read_text().splitlines()]
    assert [each["text"] for each in first] == plain.out.splitlines()
    assert "list:agreement" in first[0]["features"]
    # Start weights that name them want them, too.
    again = tunesmith(*words, "-w", weights, "--json")
    assert "list:agreement" in again.object["weights"]
    bad = tunesmith("rerank", "check", *sample.dev, "--list-features", "agreemnt")
    assert bad.code == 2 and "use one of first, agreement" in bad.err
