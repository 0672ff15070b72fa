"""`tunesmith structured` as one types it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import pytest
from running import COMMAND, listing, on_a_terminal, process, refused, tunesmith

from tunesmith.structured import Model, read_conllu
from tunesmith.training.classes import read_classes

WORDS = {
    "the": "DET",
    "a": "DET",
    "dog": "NOUN",
    "cat": "NOUN",
    "sees": "VERB",
    "sleeps": "VERB",
}


def sentence(words: str) -> str:
    """Return subject, verb, object as a tree."""
    forms = words.split()
    verb = next(n for n, form in enumerate(forms, 1) if WORDS[form] == "VERB")
    rows = []
    for number, form in enumerate(forms, 1):
        tag = WORDS[form]
        noun = "nsubj" if number < verb else "obj"
        head, label = {
            "DET": (number + 1, "det"),
            "NOUN": (verb, noun),
            "VERB": (0, "root"),
        }[tag]
        rows.append(f"{number}\t{form}\t_\t{tag}\t_\t_\t{head}\t{label}\t_\t_")
    return "\n".join(["# text = " + words, *rows, "", ""])


TEXT = "".join(
    map(
        sentence, ["the dog sees a cat", "a cat sleeps", "the cat sees the dog", "a dog sees a dog"]
    )
)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    (tmp_path / "train.conllu").write_text(TEXT, encoding="utf-8")
    return tmp_path / "train.conllu"


def test_train_apply_score(text: Path, tmp_path: Path) -> None:
    for task in ("tagger", "parser"):
        ran = tunesmith(
            *("structured", "train", task, text, "--model", tmp_path / task, "--dev", text),
            *("--beam", 4, "--passes", 6, "--json"),
        )
        assert ran.code == 0, ran.err
        assert "pass 6: " in ran.err and "dev 100.00" in ran.err
        assert ran.object["sentences"] == 4 and ran.object["dev"] == 100
        assert len(ran.object["passes"]) == 6
    blank = tmp_path / "blank.conllu"
    blank.write_text(
        "\n".join(
            line if line[:1] in ("", "#") else "\t".join([*line.split("\t")[:2], *"________"])
            for line in TEXT.split("\n")
        ),
        encoding="utf-8",
    )
    tagged = tunesmith("structured", "apply", tmp_path / "tagger", blank)
    assert tagged.code == 0, tagged.err
    (tmp_path / "tagged").write_text(tagged.out)
    parsed = tunesmith("structured", "apply", tmp_path / "parser", tmp_path / "tagged", "--beam", 2)
    assert parsed.out == TEXT
    (tmp_path / "parsed").write_text(parsed.out)
    found = tunesmith("structured", "score", text, tmp_path / "parsed", "--json").object
    assert (found["upos"], found["uas"], found["las"], found["exact"]) == (100, 100, 100, 100)
    assert found["xpos"] is None and found["sentences"] == 4
    found = tunesmith("structured", "score", text, tmp_path / "tagged", "--json").object
    assert (found["upos"], found["uas"]) == (100, None)
    assert "UPOS" in tunesmith("structured", "score", text, tmp_path / "parsed").out


def test_a_pipe_of_tagger_and_parser(text: Path, tmp_path: Path) -> None:
    tunesmith("structured", "train", "tagger", text, "--model", tmp_path / "tagger")
    with text.open() as stream:
        ran = process("structured", "apply", tmp_path / "tagger", stdin=stream)
    assert ran.code == 0 and ran.out == TEXT


@pytest.mark.parametrize(
    "options",
    [
        ("--learner", "mira", "--batch", 2),
        ("--learner", "kbest-mira", "--k", 2, "--c", 0.5),
        ("--shards", 2, "--update", "early"),
        ("--weights", "voted"),
        ("--exact", "--update", "standard"),
        ("--update", "unchecked", "--seed", 3),
    ],
)
def test_every_option_is_recorded(text: Path, tmp_path: Path, options: tuple[object, ...]) -> None:
    words = ("structured", "train", "tagger", text, "--model")
    assert tunesmith(*words, tmp_path / "one", *options, "--threads", 1).code == 0
    assert tunesmith(*words, tmp_path / "two", *options, "--threads", 2).code == 0
    one, two = (Model.load(tmp_path / name) for name in ("one", "two"))
    assert one.weights == two.weights and one.training == two.training
    for name, value in pairwise(options):
        if str(name).startswith("--") and name != "--exact":
            assert getattr(one.training, str(name)[2:]) == value
    assert (one.training.beam is None) == ("--exact" in options)


def test_sentences_that_cannot_be_learnt_from_are_counted(text: Path, tmp_path: Path) -> None:
    crossing = "\n".join(
        f"{n}\tw\t_\tX\t_\t_\t{head}\td\t_\t_" for n, head in enumerate((3, 4, 0, 3), 1)
    )
    untagged = sentence("a dog sleeps").replace("NOUN", "_")
    text.write_text(f"{TEXT}{crossing}\n\n{untagged}", encoding="utf-8")
    ran = tunesmith("structured", "train", "parser", text, "--model", tmp_path / "m", "--json")
    assert ran.code == 0, ran.err
    assert "1 of 6 sentences left out: a word has no UPOS tag" in ran.err
    assert "1 of 5 sentences left out: arcs cross" in ran.err
    assert (ran.object["sentences"], ran.object["skipped"]) == (4, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train", "chunker", "{t}", "--model", "{d}/m"), "no task is named 'chunker'"),
        (("train", "tagger", "{t}", "--model", "{d}/m", "--beam", "0"), "beam is 0"),
        (("train", "tagger", "{t}", "--model", "{d}/m", "--update", "late"), "--update late"),
        (("train", "tagger", "{t}", "--model", "{d}/m", "--column", "feats"), "--column feats"),
        (("train", "tagger", "{t}", "--model", "{d}/m", "--unlabelled"), "is for parsers"),
        (("train", "parser", "{t}", "--model", "{d}/m", "--exact"), "--exact is for taggers"),
        (("train", "tagger", "{t}", "--model", "{d}/m", "--column", "xpos"), "has no XPOS tag"),
        (("train", "tagger", "{t}", "--model", "{d}"), "other files than a model"),
        (("train", "tagger", "{d}/none", "--model", "{d}/m"), "no such file"),
        (("train", "parser", "{d}/bad", "--model", "{d}/m"), "bad:2: the heads form a cycle"),
        (("train", "tagger", "{d}/empty", "--model", "{d}/m"), "there are no sentences"),
        (("apply", "{d}", "{t}"), "there is no model here"),
        (("score", "{t}", "{d}/bad"), "stands here"),
    ],
)
def test_bad_input_is_refused(
    text: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    (tmp_path / "empty").write_text("")
    rows = [f"{n}\tw\t_\tX\t_\t_\t{head}\td\t_\t_" for n, head in enumerate((0, 3, 2), 1)]
    (tmp_path / "bad").write_text("\n".join(rows))
    filled = [word.format(t=text, d=tmp_path) for word in words]
    ran = refused(tmp_path, "structured", *filled)
    assert message in ran.err.replace("\n", " ")


def test_a_parser_needs_tags(text: Path, tmp_path: Path) -> None:
    tunesmith("structured", "train", "parser", text, "--model", tmp_path / "m")
    text.write_text(TEXT.replace("\tDET\t", "\t_\t"), encoding="utf-8")
    ran = refused(tmp_path, "structured", "apply", tmp_path / "m", text)
    assert f"{text}:2: the word 'the' has no UPOS tag (tag the text first" in ran.err


def test_a_killed_training_leaves_no_model(text: Path, tmp_path: Path) -> None:
    words = ("structured", "train", "tagger", text, "--model", tmp_path / "m")
    assert tunesmith(*words).code == 0
    before = listing(tmp_path)
    for how in (signal.SIGINT, signal.SIGKILL):
        with subprocess.Popen(
            [*COMMAND, *map(str, words), "--passes", "100000000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as running:
            assert running.stderr is not None
            until = time.monotonic() + 60
            while "pass 1:" not in running.stderr.readline():
                assert running.poll() is None and time.monotonic() < until
            running.send_signal(how)
            _, err = running.communicate(timeout=60)
        assert running.returncode == (130 if how == signal.SIGINT else -how)
        assert "Traceback" not in err
        assert listing(tmp_path) == before


def test_a_bar_on_a_terminal(text: Path, tmp_path: Path) -> None:
    shown = on_a_terminal("structured", "train", "tagger", text, "--model", tmp_path / "m")
    assert "pass 1" in shown and (tmp_path / "m" / "model.toml").exists()


@pytest.mark.parametrize("command", ["train", "apply", "score"])
def test_help_has_examples(command: str) -> None:
    assert f"$ tunesmith structured {command}" in tunesmith("structured", command, "--help").out


ROOT = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared"))
SHARED = ROOT / "data" / "pos"


@pytest.mark.shared
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data are not there")
def test_real_text_is_tagged_well_and_comes_back_whole(tmp_path: Path) -> None:
    learnt, dev = (SHARED / f"en_partut-ud-{part}.conllu.gz" for part in ("train", "dev"))
    words = ("structured", "train", "tagger", learnt, "--model", tmp_path / "m", "--passes", 2)
    assert tunesmith(*words, "--beam", 2).code == 0
    ran = tunesmith("structured", "apply", tmp_path / "m", dev)
    (tmp_path / "out").write_text(ran.out, encoding="utf-8")
    found = tunesmith("structured", "score", dev, tmp_path / "out", "--json").object
    assert found["upos"] > 91 and found["words"] == 2722
    pairs = zip(read_conllu(dev), read_conllu(tmp_path / "out"), strict=True)
    assert all(len(one.parts) == len(other.parts) for one, other in pairs)


def test_tags_become_classes_of_words(tmp_path: Path) -> None:
    """The most frequent tag of a word counts, whatever its case if that is asked for."""
    rows = ["1\tBank\t_\tNOUN\t_", "2\tbank\t_\tVERB\t_", "3\tbank\t_\tNOUN\t_", "4\tx\t_\t_\t_"]
    text = tmp_path / "tagged.conllu"
    text.write_text("".join(f"{row}\t_\t_\t_\t_\t_\n" for row in rows) + "\n")
    out = tmp_path / "classes.txt"
    command = ("structured", "classes", text, "--out", out)
    assert tunesmith(*command, "--lower").code == 0
    assert read_classes(out) == {"bank": "NOUN"}
    assert tunesmith(*command).code == 0
    assert read_classes(out) == {"Bank": "NOUN", "bank": "NOUN"}
    assert "no word has a tag (xpos)" in refused(tmp_path, *command, "--column", "xpos").err


def test_tags_of_words_in_their_phrases_are_written(tmp_path: Path) -> None:
    rows = [("the", "DET"), ("Can", "NOUN"), ("can", "AUX"), ("can", "AUX"), ("x", "_")]
    text = tmp_path / "tagged.conllu"
    columns = [f"{place}\t{word}\t_\t{tag}" for place, (word, tag) in enumerate(rows, 1)]
    text.write_text("".join(f"{each}\t_\t_\t_\t_\t_\t_\n" for each in columns) + "\n")
    out = tmp_path / "tags.txt"
    command = ("structured", "tags", text, "--out", out)
    ran = tunesmith(*command, "--lower", "--longest", "2")
    assert ran.code == 0 and "words 2, phrases with other tags 1" in ran.err
    assert read_classes(out) == {"can": "AUX", "the": "DET", "the can": "DET NOUN"}
    bars = tmp_path / "bars"
    bars.write_text("the|DET can|NOUN\n")
    ran = tunesmith("structured", "tags", bars, "--format", "bar", "--out", out)
    assert ran.code == 0 and read_classes(out) == {"can": "NOUN", "the": "DET"}
    assert "is no word with a tag" in refused(tmp_path, *command, "--format", "bar").err
