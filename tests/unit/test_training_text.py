"""Text on its way into a model and out again."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from twins.cutting import CUTS, needs_moses, needs_pieces

from tunesmith._core import Lines
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.training.detect import Found, choose_sides, language_of
from tunesmith.training.model import read_model, rule_tables, text_sides
from tunesmith.training.pipeline import Training, train
from tunesmith.training.protect import PROTECTED
from tunesmith.training.text import TextSide, read_case

SOURCE = ["Das Haus ist klein.", "Das alte Haus!", "Ein Buch, ein Haus.", "Das Buch ist alt."]
TARGET = ["The house is small.", "The old house!", "A book, a house.", "The book is old."]
CHINESE = ["这 是一本书。", "那是一所房子。", "书很旧。", "房子很旧，iPhone 12 很新。"]


def write(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def trained(
    folder: Path, tokenize: str, case: str = "keep", source: list[str] = SOURCE, **options: object
) -> Path:
    training = Training(
        write(folder, "src", source * 10),
        write(folder, "tgt", TARGET * 10),
        TextSide("de", tokenize, case, pieces=40),  # type: ignore[arg-type]
        TextSide("en", tokenize, case, pieces=40),  # type: ignore[arg-type]
        order=3,
        **{"kind": "phrase", **options},  # type: ignore[arg-type]
    )
    train(training, folder / "model", 1)
    return folder / "model"


@pytest.mark.parametrize("case", ["keep", "lower", "true"])
@pytest.mark.parametrize("tokenize", CUTS)
def test_a_model_knows_how_its_text_was_made(tmp_path: Path, tokenize: str, case: str) -> None:
    model = trained(tmp_path, tokenize, case)
    source, target = text_sides(model)
    corpus = (model / "work" / "corpus.target").read_text(encoding="utf-8").splitlines()
    assert [target.prepare(line) for line in TARGET] == corpus[:4]
    expected = [line.lower() for line in TARGET] if case == "lower" else TARGET
    assert [target.restore(line) for line in corpus[:4]] == expected
    table = rule_tables(model)["phrases"]
    words = source.prepare(SOURCE[0]).split()
    assert all(table.source_id(word) is not None for word in words)
    assert (source.language, target.language) == ("de", "en")
    files = read_model(model)["files"]
    assert ("case.source" in files) == (case == "true")
    assert ("pieces.target.model" in files) == (tokenize in ("sentencepiece", "bpe"))
    assert all((model / name).stat().st_size == size for name, size in files.items())


NOT_LANGUAGE = [
    "https://Foo.example/A_b?q=1&r=2",
    "Max.Muster@uni.example",
    "/usr/Local/bin",
    "1.234,56",
    "17.11.2026",
    "&nbsp;",
]


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("case", ["keep", "lower", "true"])
@pytest.mark.parametrize("tokenize", CUTS)
def test_what_is_not_language_is_translated_as_it_is(
    tmp_path: Path, tokenize: str, case: str, kind: Kind
) -> None:
    folder = trained(tmp_path, tokenize, case, kind=kind)
    made = Model.load(folder, kind).translator()
    for span in NOT_LANGUAGE:
        (found,) = made.batch([f"Das Haus {span} ist klein."], threads=1)
        assert span in found.text.split() or (tokenize == "char" and span in found.text)
        (found,) = made.batch([f"{span} ist alt."], threads=1)
        assert found.text.startswith(span)


@needs_moses
def test_tags_and_emphasis_keep_their_places(tmp_path: Path) -> None:
    made = Model.load(trained(tmp_path, "moses", "true")).translator()
    lines = ["Das <b>Haus</b> ist klein.", "**Das Haus** ist klein."]
    found = [each.text for each in made.batch(lines, threads=1)]
    assert found == ["The <b>house</b> is small.", "**The house** is small."]


@needs_moses
def test_a_model_without_protected_text_behaves_as_before(tmp_path: Path) -> None:
    model = trained(tmp_path, "moses", "lower")
    file = model / "model.toml"
    recorded = text_sides(model)[0]
    assert recorded.protected == PROTECTED
    assert recorded.prepare("Siehe https://A.de") == "siehe https://A.de"
    told = file.read_text(encoding="utf-8")
    file.write_text(re.sub(r"protected = \[\n(    .*\n)*\]\n", "", told), encoding="utf-8")
    before = text_sides(model)[0]
    assert before.protected == ()
    assert before.prepare("Siehe https://A.de") == "siehe https : / / a.de"
    assert before.restore("<b>\uffed 5 & 6") == "<b>\uffed 5 & 6"


def test_bad_patterns_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"'\(' is not a regular expression"):
        TextSide(protected=("(",))
    model = trained(tmp_path, "none")
    file = model / "model.toml"
    told = file.read_text(encoding="utf-8")
    file.write_text(told.replace("protected = [", 'protected = ["[",', 1), encoding="utf-8")
    with pytest.raises(InputError, match=r"model\.toml: \[source\]: '\[' is not a regular"):
        text_sides(model)
    file.write_text(re.sub(r"(?s)protected = \[.*?\n\]", "protected = 3", told))
    with pytest.raises(InputError, match="is not a list of strings"):
        text_sides(model)


@needs_moses
def test_a_text_of_your_own_is_protected_by_your_patterns() -> None:
    side = TextSide("en", "moses", protected=(r"\{\w+\}", r"x*"))
    assert side.prepare("Hi {name}, https://a") == "Hi {name} , https : / / a"
    assert side.restore("Hi {name} ,") == "Hi {name},"


def test_text_is_recognised_by_its_look() -> None:
    def look(*lines: str) -> tuple[str, bool]:
        found = Found.of(lines)
        return found.look, found.cased

    assert look(*SOURCE) == ("raw", True)
    assert look("Quoi ? Ah, non !", "Il dit : oui.") == ("raw", True)
    assert look("das haus , das alt ist .", "z.B. ein Haus .") == ("tokenised", True)
    assert look("ein haus.", "das haus, alt.") == ("raw", False)
    assert look("das haus ist alt") == ("unclear", False)
    assert look(*CHINESE) == ("unspaced", True)
    assert look("这 是 一 本 书 。", "那 是 一 所 房子 。") == ("tokenised", False)
    assert look("", " ") == ("unclear", False)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("train.de", "de"),
        ("raw.train.en.gz", "en"),
        ("a.de-en.de.zst", "de"),
        ("train.fr.tok.txt", "fr"),
        ("train.src", "unknown"),
        ("de", "unknown"),
    ],
)
def test_languages_are_taken_from_file_names(name: str, code: str) -> None:
    assert language_of(Path("some.en") / name) == code


@needs_moses
def test_sides_are_chosen_by_the_text_unless_they_are_given(tmp_path: Path) -> None:
    raw, tokenised = write(tmp_path, "a.de", SOURCE), write(tmp_path, "b", ["the house ."])

    def kinds(**options: object) -> list[tuple[str, str, str]]:
        chosen = choose_sides(raw, tokenised, **options)  # type: ignore[arg-type]
        return [
            (side.language, side.tokenize, side.case) for side in (chosen.source, chosen.target)
        ]

    assert kinds() == [("de", "moses", "true"), ("unknown", "none", "keep")]
    assert kinds(tokenize="none") == [("de", "none", "keep"), ("unknown", "none", "keep")]
    assert kinds(tokenize="moses", case="lower", languages=("nl", "en")) == [
        ("nl", "moses", "lower"),
        ("en", "moses", "lower"),
    ]
    # Links count the words of the files.
    assert kinds(aligned=True)[0] == ("de", "none", "keep")
    why = choose_sides(raw, tokenised).why
    assert "a.de: raw text: --tokenize moses --case true" in why
    assert "target language unknown" in why
    given = {"tokenize": "moses", "case": "keep", "languages": ("de", "en")}
    assert choose_sides(raw, tokenised, **given).why == ""  # type: ignore[arg-type]


def test_chinese_is_cut_into_characters_and_put_together_again(tmp_path: Path) -> None:
    source = text_sides(trained(tmp_path, "char", source=CHINESE))[0]
    assert source.prepare(CHINESE[0]) == "这 是 一 本 书 。"
    assert source.restore(source.prepare(CHINESE[0])) == "这是一本书。"
    assert source.restore(source.prepare(CHINESE[3])) == CHINESE[3]


@needs_pieces
def test_pieces_made_elsewhere_are_kept_with_the_model(tmp_path: Path) -> None:
    side = TextSide("de", "bpe", pieces=30)
    given = tmp_path / "given.model"
    given.write_bytes(side.learn_pieces(SOURCE))
    training = Training(
        write(tmp_path, "src", SOURCE),
        write(tmp_path, "tgt", TARGET),
        TextSide("de", "bpe", model=str(given)),
        kind="phrase",
        order=2,
    )
    train(training, tmp_path / "model")
    assert (tmp_path / "model" / "pieces.source.model").read_bytes() == given.read_bytes()
    given.unlink()
    assert text_sides(tmp_path / "model")[0].prepare("Das Haus").startswith("▁")


@needs_pieces
def test_what_is_no_model_of_pieces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such model of pieces"):
        TextSide(tokenize="bpe", model=str(tmp_path / "absent")).prepare("a")
    (tmp_path / "bad").write_bytes(b"not a model")
    with pytest.raises(InputError, match="not a model of sentencepiece"):
        TextSide(tokenize="bpe", model=str(tmp_path / "bad")).prepare("a")
    with pytest.raises(InputError, match="no pieces can be learnt"):
        TextSide(tokenize="sentencepiece").learn_pieces(["", " "])


@needs_pieces
@pytest.mark.parametrize("tokenize", ["sentencepiece", "bpe"])
def test_text_and_numbers_that_give_no_pieces_are_told_plainly(
    tmp_path: Path, tokenize: str
) -> None:
    (tmp_path / "bad").write_bytes(b"ein haus\n\xff\n")
    side = TextSide(tokenize=tokenize)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"bad:2: invalid UTF-8") as caught:
        side.learn_pieces(Lines(tmp_path / "bad"))
    assert (caught.value.file, caught.value.line) == (str(tmp_path / "bad"), 2)
    with pytest.raises(InputError, match="5 pieces are too few") as caught:
        replace(side, pieces=5).learn_pieces(SOURCE)
    wanted = re.search(r"--pieces (\d+) or more", str(caught.value.remedy))
    assert wanted is not None
    assert replace(side, pieces=int(wanted[1])).learn_pieces(SOURCE)


def test_choices_are_told() -> None:
    with pytest.raises(InputError, match="tokenisation 'words'") as caught:
        TextSide(tokenize="words")  # type: ignore[arg-type]
    assert "sentencepiece" in str(caught.value.remedy)
    with pytest.raises(InputError, match="case 'upper'"):
        TextSide(case="upper")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="0 pieces"):
        TextSide(pieces=0)


@pytest.mark.parametrize("line", ["a\u00a0b", "a\u3000b", "a▁b"])
def test_other_spaces_come_back_as_plain_ones(line: str) -> None:
    side = TextSide(tokenize="char")
    assert side.restore(side.prepare(line)) == "a b"


def test_a_broken_truecasing_table_is_named(tmp_path: Path) -> None:
    table = write(tmp_path, "case", ["paris\tParis", "oops"])
    with pytest.raises(InputError, match=r"case:2: .*no tab"):
        read_case(TextSide(case="true"), table)


@given(line=st.text(max_size=30))
def test_prepared_text_has_single_spaces_and_no_control_characters(line: str) -> None:
    for tokenize in ("none", "char"):
        side = TextSide(tokenize=tokenize)
        prepared = side.prepare(line)
        assert prepared == " ".join(prepared.split())
        assert not any(ord(character) < 32 for character in prepared)
        assert side.prepare(side.restore(prepared)) == prepared or "▁" in line
