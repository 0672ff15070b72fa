"""What is not language comes out of every tokeniser as it went in."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from twins.cutting import CUTS

from tunesmith.training.protect import PROTECTED, protector_of
from tunesmith.training.text import TextSide

LEARNT = ["Das alte Haus ist klein, aber schön.", "Ein Buch (von vielen) und größere Fische!"]

LETTERS = "ABCXYZabcxyzäÖ"
names = st.text("ABCxyz", min_size=1, max_size=4)
digits = st.text("0123456789", min_size=1, max_size=4)
words = st.text(LETTERS, min_size=2, max_size=6)
dirs = st.lists(st.text("ABxyÖ09_%+-", max_size=4).map("d{}z".format), min_size=1, max_size=3)
URLS = st.builds(
    "{}{}.de/{}{}".format,
    st.sampled_from(["https://", "http://www.", "ftp://", "HTTPS://", "www."]),
    names,
    dirs.map("/".join),
    st.sampled_from(["", "/", "?a=B&c=1,2", "#Top", ".html", "_(Ort)", "/a;b=c:d"]),
)
SPANS = st.one_of(
    URLS,
    st.builds("{}.{}+x@{}.co.uk".format, names, names, names),
    st.builds("{}/{}".format, st.sampled_from(["", "~", ".", "..", "/usr"]), dirs.map("/".join)),
    st.builds("{}/{}.txt".format, names, dirs.map("/".join)),
    st.builds("C:\\{}".format, dirs.map("\\".join)),
    st.builds("<{} href='{} {}'>".format, names, names, names),
    st.builds("<{}/>".format, names),
    st.sampled_from(["&nbsp;", "&amp;", "&#39;", "&lt;", "@url@", "foo_bar", "<!-- Ein Satz. -->"]),
    st.builds("{}.234,{}".format, digits, digits),
    st.builds("{}:{}".format, digits, digits),
    st.sampled_from(["17.11.2026", "2026-11-17", "1'000'000", "-5,5", "3/4", "1,234.56"]),
)
MARKS = st.sampled_from([("<b>", "</b>"), ("**", "**"), ("*", "*"), ("_", "_"), ("<i><b>", "</b>")])
PARTS = st.one_of(
    words,
    SPANS,
    st.builds("({})".format, SPANS),
    st.builds("{}{}".format, SPANS, st.sampled_from([",", ".", ":", "!", "?"])),
    st.builds("{0[0]}{1}{0[1]}".format, MARKS, words),
    st.builds("{0[0]}{1} {2}{0[1]}".format, MARKS, words, SPANS),
)
TEXTS = st.lists(PARTS, min_size=1, max_size=6).map(" ".join)


@cache
def side(tokenize: str, case: str) -> TextSide:
    made = TextSide("de", tokenize, case, pieces=60)  # type: ignore[arg-type]
    if tokenize in ("sentencepiece", "bpe"):
        model = Path(mkdtemp()) / "pieces"
        model.write_bytes(made.learn_pieces(LEARNT))
        made = TextSide("de", tokenize, case, str(model))  # type: ignore[arg-type]
    return made


@pytest.mark.parametrize("tokenize", CUTS)
@settings(max_examples=50)
@given(text=TEXTS)
def test_words_and_protected_spans_come_back_exactly(tokenize: str, text: str) -> None:
    kept = side(tokenize, "keep")
    assert kept.restore(kept.prepare(text)) == text


@pytest.mark.parametrize("tokenize", CUTS)
@pytest.mark.parametrize("case", ["lower", "true"])
@settings(max_examples=50)
@given(span=SPANS, before=st.lists(words, max_size=2), after=words)
def test_spans_keep_their_case(
    tokenize: str, case: str, span: str, before: list[str], after: str
) -> None:
    folded = side(tokenize, case)
    text = " ".join([*before, span, after])
    back = folded.restore(folded.prepare(text))
    assert span in back
    assert back.lower() == text.lower()


@pytest.mark.parametrize("tokenize", CUTS[1:])
@settings(max_examples=50)
@given(span=SPANS.filter(lambda span: " " not in span), before=words, after=words)
def test_a_span_is_one_word_of_the_model(tokenize: str, span: str, before: str, after: str) -> None:
    prepared = side(tokenize, "keep").prepare(f"{before} {span} {after}").split()
    assert span in [word.removeprefix("▁") for word in prepared]


@settings(max_examples=50)
@given(text=st.text(max_size=40))
def test_any_text_can_be_masked_and_unmasked(text: str) -> None:
    from tunesmith.training.protect import unmask

    assert unmask(*protector_of(PROTECTED).mask(text)) == text
