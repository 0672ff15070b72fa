"""`tunesmith lm` as one types it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from running import process, refused, tunesmith

TEXT = "a b c\nb c a b\nc a\n\nd a b c d\n" * 3


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text"
    path.write_text(TEXT)
    return path


def test_from_text_to_perplexity(text: Path, tmp_path: Path) -> None:
    arpa, binary = tmp_path / "lm.arpa.gz", tmp_path / "lm.tlm"
    ran = tunesmith("lm", "estimate", text, "--order", 3, "--out", arpa)
    assert ran.code == 0, ran.err
    assert "15 sentences" in ran.out
    assert "discounts 0.5, 1, 1.5 are used instead" in ran.err
    assert gzip.decompress(arpa.read_bytes()).startswith(b"\\data\\\nngram 1=7\n")
    assert tunesmith("lm", "binarize", arpa, binary).code == 0
    found = [
        tunesmith("lm", "perplexity", model, text, "--json").object for model in (arpa, binary)
    ]
    assert found[0] == found[1]
    assert (found[0]["sentences"], found[0]["tokens"], found[0]["unknown"]) == (15, 57, 0)
    assert "perplexity" in tunesmith("lm", "perplexity", binary, text).out


def test_estimates_tell_their_facts_as_json(text: Path, tmp_path: Path) -> None:
    direct = tmp_path / "direct.tlm"
    ran = tunesmith(
        *("lm", "estimate", text, text, "--order", 2, "--prune", "0,1", "--memory", "10K"),
        *("--out", direct, "--json", "--fallback", "0.4,0.5,0.6"),
    )
    assert ran.object["sentences"] == 30
    assert [order["discounts"] for order in ran.object["orders"]] == [[0.4, 0.5, 0.6]] * 2
    assert tunesmith("lm", "query", direct, text).code == 0


def test_a_vocabulary_limits_the_words(text: Path, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("a b\nc")
    ran = tunesmith(
        *("lm", "estimate", text, "--order", 2, "--vocab", tmp_path / "words", "--json"),
        *("--out", tmp_path / "lm.arpa"),
    )
    assert [ran.object["orders"][0][key] for key in ("ngrams", "before_pruning")] == [6, 7]


def test_queries_show_words(text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "lm.tlm"
    tunesmith("lm", "estimate", text, "--order", 3, "--out", model)
    (tmp_path / "asked").write_text("a b x\n\n")
    ran = tunesmith("lm", "query", model, tmp_path / "asked")
    rows = [line.split("\t") for line in ran.out.splitlines()]
    assert [row[0] for row in rows] == ["a", "b", "x", "</s>", "", "</s>", ""]
    assert rows[2][2:] == ["1", "unknown"]
    ran = tunesmith("lm", "query", model, tmp_path / "asked", "--json", "--no-eos")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert found[0]["words"] == ["a", "b", "x"]
    assert found[0]["known"] == [True, True, False]
    assert found[0]["total"] == pytest.approx(sum(found[0]["log10"]), abs=1e-5)
    assert found[1]["words"] == []


def test_arpa_goes_to_standard_output_alone(text: Path) -> None:
    ran = process("lm", "estimate", text, "--order", "2", "--out", "-")
    assert ran.code == 0
    assert ran.out.startswith("\\data\\")
    assert ran.out.endswith("\\end\\\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--order", "9"], "order 9"),
        (["--prune", "1,0"], "ascending"),
        (["--prune", "0.5"], "whole numbers"),
        (["--prune", "x"], "with commas"),
        (["--memory", "lots"], "amount of memory"),
        (["--fallback", "1,2"], "3 numbers"),
        (["--fallback", "1,2,nan"], "3 numbers"),
        (["--vocab", "/no/such/file"], "no such file"),
        (["--temp", "/no/such/place", "--memory", "0"], "/no/such/place"),
    ],
)
def test_bad_options_end_with_code_2(
    text: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    ran = tunesmith("lm", "estimate", text, "--out", tmp_path / "lm.arpa", *words)
    assert ran.code == 2
    assert message in ran.err
    assert not (tmp_path / "lm.arpa").exists()


def test_bad_files_end_with_code_2(text: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.arpa").write_text("\\data\\\nngram 1=1\n\\1-grams:\nnan\ta\n\\end\\\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "marked").write_text("a\nb </s> c\n")
    model = tmp_path / "lm.tlm"
    assert tunesmith("lm", "estimate", text, "--order", 2, "--out", model).code == 0
    cases = {
        ("binarize", tmp_path / "bad.arpa", tmp_path / "x.tlm"): "bad.arpa:4:",
        ("binarize", tmp_path / "absent", tmp_path / "x.tlm"): "no such file",
        ("perplexity", model, tmp_path / "empty"): "empty",
        ("perplexity", text, text): "\\data\\",
        (
            "estimate",
            tmp_path / "empty",
            "--out",
            tmp_path / "x.arpa",
        ): "empty: the text has no words",
        ("estimate", tmp_path / "marked", "--out", tmp_path / "x.arpa"): "marked:2:",
    }
    for words, message in cases.items():
        ran = tunesmith("lm", *words)
        assert ran.code == 2, words
        assert message in ran.err
    assert not list(tmp_path.glob("x.*"))
    skipped = ("estimate", tmp_path / "marked", "--skip-symbols", "--out", tmp_path / "x.arpa")
    assert tunesmith("lm", *skipped).code == 0


def test_no_command_writes_over_what_it_reads(text: Path, tmp_path: Path) -> None:
    arpa, words, link = tmp_path / "lm.arpa", tmp_path / "words", tmp_path / "link"
    assert tunesmith("lm", "estimate", text, "--order", 2, "--out", arpa).code == 0
    words.write_text("a b\n")
    link.symlink_to(text)
    for command, named in [
        (("estimate", text, "--out", text), text),
        (("estimate", text, "--out", link), text),
        (("estimate", text, "--vocab", words, "--out", words), words),
        (("binarize", arpa, arpa), arpa),
    ]:
        ran = refused(tmp_path, "lm", *command)
        assert f"{named}: it would be overwritten" in ran.err


def test_every_command_has_help_with_an_example() -> None:
    for command in ("estimate", "binarize", "query", "perplexity"):
        ran = tunesmith("lm", command, "--help")
        assert ran.code == 0
        assert "tunesmith lm " + command in " ".join(ran.out.split())
