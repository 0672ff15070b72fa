"""`tunesmith translate` as one types it."""

from __future__ import annotations

import gzip
import json
import os
import pty
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from running import COMMAND, Ran, process, tunesmith

from tunesmith import Weights
from tunesmith._core import Lines
from tunesmith.formats import read_nbest
from tunesmith.training.pipeline import Training, train
from tunesmith.training.rules import RuleTable, export_cdec
from tunesmith.training.text import TextSide

PAIRS = {
    "Das Haus ist klein.": "The house is small.",
    "Das Buch ist alt.": "The book is old.",
    "Ein Haus.": "A house.",
    "Ein Buch.": "A book.",
    "Hier ist das Haus.": "Here is the house.",
    "Hier ist ein Buch.": "Here is a book.",
}
NUMBERS = {"type": "object", "additionalProperties": {"type": "number"}}
SCHEMA = {
    "type": "object",
    "required": ["translation", "score", "features", "alignment", "seconds"],
    "additionalProperties": False,
    "properties": {
        "translation": {"type": "string"},
        "score": {"type": ["number", "null"]},
        "features": NUMBERS,
        "alignment": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        },
        "seconds": {"type": "number", "minimum": 0},
        "source": {"type": "string"},
        "target": {"type": "string"},
        "pieces": {"type": "integer", "minimum": 1},
        "derivations": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["target", "score", "contributions", "phrases"],
                "properties": {"contributions": NUMBERS},
            },
        },
    },
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("translate")
    (folder / "src").write_text("".join(f"{text}\n" for text in PAIRS) * 10)
    (folder / "tgt").write_text("".join(f"{text}\n" for text in PAIRS.values()) * 10)
    sides = TextSide("de", "moses", "true"), TextSide("en", "moses", "true")
    train(Training(folder / "src", folder / "tgt", *sides, order=3), folder / "model", 1)
    return folder / "model"


def translated(model: Path, text: str, *options: object) -> Ran:
    file = model.parent / "input"
    file.write_text(text)
    return tunesmith("translate", model, "--input", file, *options)


def objects(ran: Ran) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in ran.out.splitlines()]
    for each in found:
        jsonschema.validate(each, SCHEMA)
    return found


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_text_goes_in_and_text_comes_out(model: Path, kind: str) -> None:
    ran = translated(model, "Das Haus ist alt.\n\nein Buch\n", "--kind", kind)
    assert ran.code == 0, ran.err
    assert ran.out == "The house is old.\n\nA book\n"
    assert "not tuned" in ran.err


def test_words_stay_words_if_they_are_tokenised(model: Path) -> None:
    assert translated(model, "das Haus ist alt .\n", "--tokenized").out == "the house is old .\n"


def test_unknown_words_are_kept(model: Path) -> None:
    assert translated(model, "Ein Auto.\n").out == "A Auto.\n"


def test_order_is_kept_by_any_number_of_threads(model: Path) -> None:
    lines = [f"{'Ein Buch' if i % 3 else 'Das Haus ist klein'} {i}.\n" for i in range(350)]
    one, many = (translated(model, "".join(lines), "--threads", n) for n in (1, 4))
    assert one.out == many.out
    assert [line.split()[-1] for line in one.out.splitlines()] == [f"{i}." for i in range(350)]


def test_json_has_an_object_for_each_line(model: Path) -> None:
    first, empty, last = objects(translated(model, "Ein Haus.\n\nEin Auto.\n", "--json"))
    assert first["translation"] == "A house."
    assert (first["source"], first["target"]) == ("ein Haus .", "a house .")
    assert first["alignment"] == [[0, 0], [1, 1], [2, 2]]
    assert {"lm", "words", "distortion", "word-next-swap"} <= set(first["features"])
    assert empty["translation"] == ""
    assert last["features"]["unknown"] == 1


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_reasons_add_up_to_the_score(model: Path, kind: str) -> None:
    text = "Das Haus ist alt und klein.\n"
    (told,) = objects(translated(model, text, "--json", "--explain", "--kind", kind))
    best, *others = told["derivations"]
    # The hierarchical rules of this small model have many derivations of one string.
    assert len(others) == (kind == "phrase")
    assert told["score"] == best["score"]
    assert all(best["target"] != other["target"] for other in others)
    for each in (best, *others):
        assert sum(each["contributions"].values()) == pytest.approx(each["score"], 1e-6, 1e-5)
        assert each["score"] <= best["score"]
    covered = sorted(
        place
        for phrase in best["phrases"]
        if "[X" not in phrase["source"]
        for place in range(*phrase["span"])
    )
    assert covered == list(range(7)) or kind == "hiero"
    shown = translated(model, text, "--explain", "--kind", kind).out
    assert f"1: {told['translation']}" in shown
    assert f"{best['score']:.4f}" in shown
    assert "unknown" in shown
    assert ("next best: none" in shown) == (not others)
    for other in others:
        assert "next best:" in shown
        lost = sum(other["contributions"].values()) - sum(best["contributions"].values())
        assert f"{lost:+.4f}" in shown


def test_phrases_come_in_the_order_of_the_translation(model: Path) -> None:
    (told,) = objects(translated(model, "Das Haus ist alt.\n", "--json", "--explain"))
    for each in told["derivations"]:
        assert " ".join(phrase["target"] for phrase in each["phrases"]) == each["target"]


@pytest.mark.parametrize("name", ["lists", "lists.gz"])
def test_lists_have_every_feature_of_every_hypothesis(
    model: Path, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    text = "Das Haus ist alt.\nEin Auto.\n" * 60
    ran = translated(model, text, "--nbest", 5, "--nbest-out", file)
    assert (file.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
    assert ran.out == "The house is old.\nA Auto.\n" * 60
    fields = [line.split(" ||| ") for line in Lines(file)]
    assert {len(each) for each in fields} == {5}
    assert fields[0][4] == "0-0 1-1 2-2 3-3 4-4"
    pools = read_nbest(file).pools
    assert pools.sentences == 120
    assert max(np.diff(pools.starts)) == 5
    assert "word-next-swap" in pools.names
    assert pools.nonzeros == pools.hypotheses * len(pools.names)
    texts = pools.texts(np.arange(5))
    assert len(set(texts)) == 5
    assert texts[0] == "the house is old ."
    assert np.all(np.diff(pools.scores[:5]) <= 0)


def test_lists_and_objects_go_together(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "lists"
    ran = translated(model, "Ein Haus.\n", "--nbest", 2, "--nbest-out", file, "--json")
    (told,) = objects(ran)
    assert read_nbest(file).pools.scores[0] == pytest.approx(told["score"], abs=1e-5)


def test_weights_are_the_given_ones_or_the_models_own(model: Path, tmp_path: Path) -> None:
    (told,) = objects(translated(model, "Ein Haus.\n", "--json"))
    given = Weights({"lm": 1.0, "words": 2.0})
    given.save(tmp_path / "w.toml")
    (tmp_path / "w.txt").write_text("lm 1\nwords 2\n")
    wanted = told["features"]["lm"] + 2 * told["features"]["words"]
    for name in ("w.toml", "w.txt"):
        ran = translated(model, "Ein Haus.\n", "--json", "--weights", tmp_path / name)
        assert objects(ran)[0]["score"] == pytest.approx(wanted, abs=1e-4)
        assert "not tuned" not in ran.err
    own = shutil.copytree(model, tmp_path / "model")
    given.save(own / "weights.toml")
    ran = translated(own, "Ein Haus.\n", "--json")
    assert objects(ran)[0]["score"] == pytest.approx(wanted, abs=1e-4)
    assert "not tuned" not in ran.err


def test_templates_are_declared_with_the_model(model: Path, tmp_path: Path) -> None:
    own = shutil.copytree(model, tmp_path / "model")
    told = (own / "model.toml").read_text()
    assert "templates = []" in told
    (own / "model.toml").write_text(told.replace("templates = []", 'templates = ["rule-id"]'))
    (found,) = objects(translated(own, "Ein Haus.\n", "--json"))
    assert any(name.startswith("PT:") for name in found["features"])


@pytest.mark.parametrize(
    ("templates", "message"),
    [
        ("[3]", "templates in [features] is not a list of names (write templates = ["),
        ('"rule-id"', "templates in [features] is not a list of names"),
        ('["rule-id", "rule"]', 'no features are named "rule" (correct the name'),
    ],
)
def test_templates_that_there_are_not_are_refused(
    model: Path, tmp_path: Path, templates: str, message: str
) -> None:
    own = shutil.copytree(model, tmp_path / "model")
    told = (own / "model.toml").read_text()
    (own / "model.toml").write_text(told.replace("= []", f"= {templates}"))
    ran = translated(own, "Ein Haus.\n")
    assert ran.code == 2
    assert f"{own / 'model.toml'}: {message}" in ran.err
    (own / "model.toml").write_text("features = 3\n" + told.replace("[features]", "[other]"))
    assert "templates in [features] is not a list" in translated(own, "Ein Haus.\n").err


def test_templates_of_weights_are_refused_by_their_file(model: Path, tmp_path: Path) -> None:
    own = shutil.copytree(model, tmp_path / "model")
    weights = Weights({"lm": 1.0}, {"templates": ["rule"]})
    for file, options in (
        (tmp_path / "w.toml", ("--weights", tmp_path / "w.toml")),
        (own / "weights.toml", ()),
    ):
        weights.save(file)
        ran = translated(own, "Ein Haus.\n", *options)
        assert ran.code == 2
        assert f'{file}: no features are named "rule"' in ran.err


def test_weights_without_effect_are_told(model: Path, tmp_path: Path) -> None:
    own = shutil.copytree(model, tmp_path / "model")
    file = tmp_path / "w"
    names = "lm 1\nwords 1\ngiven 1\nPT:ein~a 9\nPT:ein~one 9\nTB:one~house 0\n"
    file.write_text(names + "CX-1:a~b~c 1\nlmm 1\n")
    ran = translated(own, "ein Haus.\n", "--weights", file, "--json")
    message = "weights without effect, because the model has no such features: 1, lmm (correct the"
    assert ran.code == 0 and f"{file}: {message} names)" in ran.err
    # Names tell which templates the weights are of.
    assert objects(ran)[0]["features"]["PT:ein~a"] == 1
    file.write_text(names)
    assert "without effect" not in translated(own, "Ein Haus.\n", "--weights", file).err
    assert "without effect" not in translated(model, "Ein Haus.\n").err
    # Unless somebody says which they are of.
    given = Weights({"lm": 1.0, "lmm": 1.0, "PT:ein~a": 1.0}, {"templates": ["contexts"]})
    given.save(own / "weights.toml")
    ran = translated(own, "Ein Haus.\n")
    assert f"{own / 'weights.toml'}: weights without effect" in ran.err
    assert "2, PT:ein~a, lmm (correct the names, or add rule-id to templates in" in ran.err


def test_markup_gives_translations(model: Path) -> None:
    text = '<np translation="The Big House">Das Haus</np> ist alt.\n'
    ran = translated(model, text, "--markup", "exclusive", "--json", "--explain")
    (told,) = objects(ran)
    assert told["translation"] == "The Big House is old."
    assert told["source"] == "das Haus ist alt ."
    assert {"given", "table"} == {p["origin"] for p in told["derivations"][0]["phrases"]}
    assert translated(model, text, "--markup", "ignore").out == "The house is old.\n"
    assert "translation" in translated(model, text).out


def test_what_is_given_counts_with_its_probability(model: Path) -> None:
    text = '<n translation="one||two" prob="0.1||0.9">Haus</n>\n'
    (told,) = objects(translated(model, text, "--markup", "exclusive", "--json", "--explain"))
    assert told["translation"] == "Two"
    assert told["derivations"][0]["contributions"]["given"] == pytest.approx(np.log(0.9))


def test_bad_markup_is_refused_or_skipped(model: Path) -> None:
    text = "Ein Haus.\n" * 150 + "<np>Ein Haus\nEin Buch.\n"
    ran = translated(model, text, "--markup", "inclusive")
    assert ran.code == 2
    assert "input:151: the markup cannot be read: <np> is never closed" in ran.err
    ran = translated(model, text, "--markup", "inclusive", "--skip-bad")
    assert ran.code == 0
    assert ran.out.splitlines()[149:] == ["A house.", "", "A book."]
    assert "bad markup: 1" in ran.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("((('a',1.0,1),),(('b',0.5,1),('c',0.5,1),),)", "a word lattice, not a sentence"),
        ('<seg grammar="g.gz" id="0"> ein haus </seg>', "a sentence with a grammar of its own"),
    ],
)
def test_input_of_other_decoders_is_refused_or_skipped(
    model: Path, line: str, message: str
) -> None:
    text = f"Ein Haus.\n{line}\n(Ein Buch.)\n"
    for options in ((), ("--tokenized",), ("--mbr", "bleu"), ("--markup", "ignore")):
        ran = translated(model, text, *options)
        assert ran.code == 2
        assert f"input:2: {message} (give " in ran.err
    ran = translated(model, text, "--skip-bad")
    assert ran.out.splitlines()[:2] == ["A house.", ""]
    assert "no plain text: 1" in ran.err


@pytest.mark.parametrize("name", ["phrases.rules", "lm.tlm", "model.toml", "weights.toml"])
def test_pipes_are_no_files_of_a_model(model: Path, tmp_path: Path, name: str) -> None:
    own = shutil.copytree(model, tmp_path / "model")
    (own / name).unlink(missing_ok=True)
    os.mkfifo(own / name)
    ran = translated(own, "Ein Haus.\n")
    assert ran.code == 2
    assert f"{name}: not a regular file (give a file on a disk)" in ran.err


def test_bad_lines_have_no_score(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"Ein <b\n\nEin \xff\nEin Haus.\n")
    ran = tunesmith("translate", model, "-i", file, "--json", "--skip-bad", "--markup", "ignore")
    scores = [each["score"] for each in objects(ran)]
    assert scores[:3] == [None, 0.0, None] and scores[3] is not None


def test_weights_of_the_other_kind_of_rules_are_told(model: Path, tmp_path: Path) -> None:
    own = shutil.copytree(model, tmp_path / "model")
    Weights({"lm": 1.0, "words": 1.0}, {"kind": "phrase"}).save(own / "weights.toml")
    assert translated(own, "Ein Haus.\n").err == ""
    ran = translated(own, "Ein Haus.\n", "--kind", "hiero")
    assert ran.out == "A house.\n" and "not tuned" in ran.err
    assert f"warning: {own / 'weights.toml'}: these weights were tuned for phrase rules" in ran.err
    ran = translated(own, "Ein Haus.\n", "--kind", "hiero", "--weights", own / "weights.toml")
    assert ran.code == 2 and "weights for phrase rules, but the model is of kind hiero" in ran.err


def test_lists_of_empty_lines_say_how_they_are_read(model: Path, tmp_path: Path) -> None:
    lists, references = tmp_path / "lists", tmp_path / "references"
    translated(model, "\nEin Haus.\n", "--nbest", 2, "--nbest-out", lists)
    references.write_text("x\nA house .\n")
    ran = tunesmith("rerank", "check", lists, "-r", references)
    assert ran.code == 2 and "use --skip-bad or --keep-blank" in ran.err
    for option in ("--keep-blank", "--skip-bad"):
        ran = tunesmith("rerank", "check", lists, "-r", references, option)
        assert ran.code == 0, ran.err


def test_lines_before_a_bad_one_are_answered(model: Path, tmp_path: Path) -> None:
    text = "Ein Haus.\n" * 103 + "<np>Ein Haus\nEin Buch.\n<np>\n"
    lists = tmp_path / "lists"
    for options in ((), ("--nbest", 2, "--nbest-out", lists)):
        ran = translated(model, text, "--markup", "inclusive", *options)
        assert ran.code == 2
        assert "input:104: the markup" in ran.err
        assert ran.out == "A house.\n" * 103
    assert not lists.exists()


@pytest.mark.parametrize("option", ["--json", "--explain", "--mbr"])
def test_a_bad_line_is_counted_once(model: Path, tmp_path: Path, option: str) -> None:
    lists = ("--nbest", 2, "--nbest-out", tmp_path / "lists")
    bad = ("--markup", "inclusive", "--skip-bad")
    options = (option, "bleu") if option == "--mbr" else (option,)
    ran = translated(model, "Ein Haus.\n<np>Ein Haus\n", *bad, *lists, *options)
    assert ran.code == 0, ran.err
    assert "bad markup: 1, first" in ran.err


def test_long_sentences_are_cut_and_told(model: Path, tmp_path: Path) -> None:
    text = "Ein Haus.\n" + "Das Haus ist alt, " * 5 + "\n"
    ran = translated(model, text, "--search", "max_words=6", "--json", "--explain")
    short, long = objects(ran)
    assert short["pieces"] == 1
    assert long["pieces"] > 1
    assert "input:2: a long sentence" in ran.err
    spans = [phrase["span"] for phrase in long["derivations"][0]["phrases"]]
    assert spans == sorted(spans)
    lists = ("--nbest", 2, "--nbest-out", tmp_path / "lists")
    assert "input:2: a long" in translated(model, text, "--search", "max_words=6", *lists).err


def test_text_may_be_compressed(model: Path, tmp_path: Path) -> None:
    with gzip.open(tmp_path / "text.gz", "wt") as file:
        file.write("Ein Haus.")
    assert tunesmith("translate", model, "-i", tmp_path / "text.gz").out == "A house.\n"


def test_invalid_text_is_refused_or_skipped(model: Path, tmp_path: Path) -> None:
    bad = b"Ein Haus.\r\n\xff\nEin Buch."
    (tmp_path / "bad").write_bytes(bad)
    for words, place in ((("-i", tmp_path / "bad"), tmp_path / "bad"), ((), "standard input")):
        with (tmp_path / "bad").open("rb") as file:
            ran = process("translate", model, *words, stdin=file)
            assert ran.code == 2
            assert f"{place}:2: invalid UTF-8: byte 0xff at offset 0" in ran.err
            file.seek(0)
            ran = process("translate", model, "--skip-bad", *words, stdin=file)
            assert ran.out == "A house.\n\nA book.\n"
            assert "invalid UTF-8: 1" in ran.err


def test_a_line_is_answered_before_the_next_one_comes(model: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "translate", str(model)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        bufsize=1,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for source, target in (("Ein Haus.", "A house."), ("", ""), ("Ein Buch.", "A book.")):
            running.stdin.write(source + "\n")
            running.stdin.flush()
            assert running.stdout.readline() == target + "\n"
        running.stdin.close()
        assert running.wait(timeout=60) == 0


def test_progress_on_a_terminal_leaves_a_redirected_output_alone(
    model: Path, tmp_path: Path
) -> None:
    (tmp_path / "text").write_text("Ein Haus.\n" * 250)
    ours, theirs = pty.openpty()
    with (
        (tmp_path / "out").open("wb") as out,
        subprocess.Popen(
            [*COMMAND, "translate", str(model), "--input", str(tmp_path / "text")],
            stdout=out,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm"},
        ) as running,
    ):
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:
            pass  # the other side is closed
        assert running.wait(timeout=60) == 0
    os.close(ours)
    assert (tmp_path / "out").read_text() == "A house.\n" * 250
    assert b"lines" in shown
    assert b"A house" not in shown


def test_an_interrupted_translation_ends_quietly(model: Path, tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    with subprocess.Popen(
        [*COMMAND, "translate", str(model), "--nbest", "2", "--nbest-out", str(lists)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdin.write("Ein Haus.\n")
        running.stdin.flush()
        assert running.stdout.readline() == "A house.\n"
        time.sleep(0.2)
        running.send_signal(signal.SIGINT)
        assert running.wait(timeout=60) == 130
        assert "Traceback" not in running.stderr.read()
    assert not lists.exists()


@pytest.mark.parametrize(
    "options", [[], ["--json"], ["--nbest", "2", "--nbest-out", "lists"], ["--mbr", "bleu"]]
)
def test_an_interruption_is_heard_within_a_sentence(
    model: Path, tmp_path: Path, options: list[str]
) -> None:
    # A search that would take years.
    endless = [f"--search={name}" for name in ("stack=0", "pop_limit=0", "distortion_limit=-1")]
    with subprocess.Popen(
        [*COMMAND, "translate", str(model), *endless, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
    ) as running:
        try:
            assert running.stdin is not None and running.stdout is not None
            running.stdin.write("Ein Haus.\n")
            running.stdin.flush()
            running.stdout.readline()
            running.stdin.write(" ".join(f"w{i} Haus" for i in range(50)) + "\n")
            running.stdin.flush()
            time.sleep(0.5)
            running.send_signal(signal.SIGINT)
            assert running.wait(timeout=60) == 130
        finally:
            running.kill()
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("option", ["--threads=1", "--json", "--explain"])
def test_a_reader_that_leaves_is_no_error(model: Path, option: str) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        ran = process("translate", model, option, input="Ein Haus.\n" * 300, stdout=closed)
    assert ran.code == 141
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kind", "syntax"], "use one of phrase, hiero"),
        (["--markup", "xml"], "use one of none, exclusive, inclusive, ignore"),
        (["--nbest", "3"], "--nbest and --nbest-out go together"),
        (["--nbest-out", "x"], "--nbest and --nbest-out go together"),
        (["--set", "stack=3"], "--set is for options of tuners (write --search stack=3)"),
        (["--search", "beam"], "--search beam (write key=value)"),
        (["--search", "beam=3"], "those of a phrase-based decoder are stack, pop_limit"),
        (["--search", "stack=many"], "--search stack=many (give a number)"),
        (["--search", "stack=-1"], "stack cannot be -1 (give a whole number that is at least 0"),
        (["--search", "threshold=-1"], "(give a number that is not negative, or inf)"),
        (["--search", "distortion_limit=2.5"], "at least 0, or -1 for any number)"),
        (
            ["--search", "pop_limit=1e30"],
            "pop_limit cannot be 1e30 (give a number below 4294967295)",
        ),
        (
            ["--search", "phrase_limit=0"],
            "phrase_limit cannot be 0 (give a whole number that is at",
        ),
        (["--nbest", "3", "--nbest-out", "-"], "would mix lists with the translations on standard"),
        (
            ["--search", "max_words=0"],
            "max_words cannot be 0 (give a whole number that is at least 2",
        ),
        (
            ["--search", "max_words=1"],
            "max_words cannot be 1 (give a whole number that is at least 2",
        ),
        (["--moses", "moses.ini"], "give one of MODEL, --moses INI, --cdec-grammar FILE"),
        (["--nbest", "3", "--nbest-out", "absent/x"], "there is no such directory"),
        (["--weights", "absent"], "absent: no such file or directory"),
        (["--input", "absent"], "absent: no such file or directory"),
    ],
)
def test_options_that_cannot_be_used_say_what_can(
    model: Path, options: list[str], message: str
) -> None:
    ran = tunesmith("translate", model, *options)
    assert ran.code == 2
    assert message in ran.err
    assert ran.out == ""


def test_models_that_cannot_be_used_say_why(model: Path, tmp_path: Path) -> None:
    ran = tunesmith("translate", tmp_path)
    assert ran.code == 2
    assert "model.toml is missing" in ran.err
    (tmp_path / "model.toml").write_text("format = \n")
    ran = tunesmith("translate", tmp_path)
    assert "model.toml: not a model description: Invalid value (at line 1" in ran.err
    assert "(correct it, or delete it and start the training again" in ran.err
    file = tmp_path / "w"
    file.write_text("LM0 1\n")
    ran = tunesmith("translate", model, "--weights", file)
    assert f"{file}: no weight is for a feature of this model (its features are lm, p(f" in ran.err
    for text, remedy in (("much", "number (write a number)"), ("inf", "(write a finite number)")):
        file.write_text(f"lm 1\nwords {text}\n")
        ran = tunesmith("translate", model, "--weights", file)
        assert f'{file}:2: the weight "{text}" is not a' in ran.err
        assert remedy in ran.err
    part = shutil.copytree(model, tmp_path / "part")
    told = (part / "model.toml").read_text()
    (part / "model.toml").write_text(told.replace('"hiero.rules"', '"other.rules"'))
    ran = tunesmith("translate", part, "--kind", "hiero")
    assert "the model has no rules of kind hiero (use phrase, or train" in ran.err


def test_a_grammar_of_cdec_is_used_as_it_is(model: Path) -> None:
    grammar, weights = model.parent / "grammar.gz", model.parent / "cdec.weights"
    export_cdec(RuleTable(model / "hiero.rules"), grammar)
    weights.write_text("LanguageModel 0.5\nEgivenFCoherent -1\nGlue 0.01\nPassThrough -10\n")
    file = model.parent / "input"
    file.write_text("das Haus ist alt .\n")
    given = ("--cdec-grammar", grammar, "--lm", model / "lm.tlm", "--cdec-weights", weights)
    cache = ("--cache", model.parent / "cache")
    os.mkfifo(model.parent / "pipe")
    ran = tunesmith("translate", "--cdec-grammar", model.parent / "pipe", *given[2:])
    assert "pipe: not a regular file" in ran.err
    ran = tunesmith("translate", *given, *cache, "-i", file, "--tokenized", "--json")
    assert ran.code == 0, ran.err
    (found,) = objects(ran)
    assert found["translation"] == "the house is old ."
    assert {"LanguageModel", "EgivenFCoherent", "Glue", "PassThrough"} <= set(found["features"])
    told = tunesmith("translate", "--cdec-grammar", grammar, "-i", file)
    assert told.code == 2
    assert "--lm" in told.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--moses", "absent.ini", "--kind", "hiero"], "--kind hiero of a configuration of Moses"),
        (["--cdec-grammar", "absent", "--kind", "phrase"], "--kind phrase of a grammar"),
    ],
)
def test_a_kind_that_others_do_not_have_is_refused(options: list[str], message: str) -> None:
    ran = tunesmith("translate", *options)
    assert ran.code == 2
    assert f"{message} (leave --kind out" in ran.err
    absent = tunesmith("translate", "--moses", "absent.ini", "--kind", "phrase")
    assert "absent.ini: no such file" in absent.err


def test_consensus_is_one_of_the_best(model: Path) -> None:
    for options in (["--nbest", 20], [], ["--alpha", 10]):
        ran = translated(model, "Das Haus ist alt.\n\n", "--mbr", "bleu", *options)
        assert ran.code == 0, ran.err
        assert ran.out == "The house is old.\n\n"
    assert "use one of bleu" in translated(model, "x\n", "--mbr", "nix").err
    assert "text only" in translated(model, "x\n", "--mbr", "bleu", "--json").err
    assert "--cdec-grammar" in translated(model, "x\n", "--lm", model / "lm.tlm").err


def test_lines_before_one_that_is_not_utf8_come_out(model: Path) -> None:
    file = model.parent / "latin"
    file.write_bytes(b"Ein Haus.\nEin Buch.\nein \xff\n")
    ran = tunesmith("translate", model, "--input", file)
    assert ran.code != 0 and ran.out == "A house.\nA book.\n"
    assert f"{file}:3: invalid UTF-8" in ran.err
    with file.open("rb") as text:
        piped = process("translate", model, stdin=text)
    assert piped.out == ran.out and "standard input:3: invalid UTF-8" in piped.err


def test_options_that_would_do_nothing_are_refused(model: Path) -> None:
    assert "--alpha belongs to --mbr" in translated(model, "a\n", "--alpha", 2).err
    weights = model.parent / "weights.txt"
    weights.write_text("lm 1\n")
    both = ("--cdec-weights", weights, "--weights", weights, "--lm", model / "lm.tlm")
    ran = tunesmith("translate", "--cdec-grammar", weights, *both)
    assert "both --weights and --cdec-weights" in ran.err
    weights.write_text("lm 0\nfoo 1\n")
    assert "are zero" in translated(model, "a\n", "--weights", weights).err
    grammar = model.parent / "empty.grammar"
    grammar.write_text("[S] ||| [X,1] ||| [X,1] ||| Glue=0\n")
    weights.write_text("LanguageModel 1\n")
    ran = tunesmith("translate", "--cdec-grammar", grammar, *both[:2], *both[4:])
    assert f"{grammar}: the grammar has no rules" in ran.err


def test_an_endless_line_of_the_standard_input_is_refused(model: Path) -> None:
    """What came before it is translated."""
    limit = {**os.environ, "TUNESMITH_LINE_LIMIT": "100000"}
    text = "das haus\n" + "haus " * 50000
    ran = process("translate", model, input=text, env=limit)
    assert ran.code == 2
    assert len(ran.out.splitlines()) == 1
    assert "standard input:2: the line is longer than 100000 bytes" in ran.err
