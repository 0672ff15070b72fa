"""What users say about their text, and what else a translator gives: bins, forced derivations."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
import pytest

from tunesmith import InputError, tune
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide

PAIRS = {
    "er hat @num@ Hunde .": "he has got exactly @num@ of the dogs .",
    "@num@ Hunde": "@num@ dogs",
    "@num@ Katzen": "the cats",
    "und": "and",
    "das Haus ist alt .": "the house is old .",
    "das Haus": "the house",
    "3 < 5 & 6": "3 < 5 & 6",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("markup")
    (folder / "src").write_text("".join(f"{text}\n" for text in PAIRS) * 10)
    (folder / "tgt").write_text("".join(f"{text}\n" for text in PAIRS.values()) * 10)
    train(Training(folder / "src", folder / "tgt", TextSide(), TextSide()), folder / "model", 1)
    return folder / "model"


def translator(folder: Path, kind: Kind = "phrase", **settings: float) -> Translator:
    return Model.load(folder, kind).translator(settings=settings)


def one(made: Translator, text: str, markup: str = "exclusive") -> str:
    return made.batch([text], threads=1, markup=markup)[0].text


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("markup", ["exclusive", "inclusive"])
def test_placeholders_are_translated_and_come_out_as_their_entities(
    folder: Path, kind: Kind, markup: str
) -> None:
    made = translator(folder, kind)
    num = '<ne translation="@num@" entity="{}">@num@</ne>'
    text = f"er hat {num.format(100)} Hunde ."
    assert one(made, text, markup) == "he has got exactly 100 of the dogs ."
    # Each where it belongs, and never lost, though the table has a phrase that loses it.
    both = f"{num.format(3)} Hunde und {num.format('4 &amp; 5')} Katzen"
    found = one(made, both, markup).split()
    assert found[:3] == ["3", "dogs", "and"] and "4 & 5" in " ".join(found[3:])
    # What the model never saw stands for itself, and so does what it translates by other words.
    assert "K.-H." in one(made, 'das <ne entity="K.-H.">@name@</ne>', markup).split()
    assert "Villa" in one(made, 'das <ne entity="Villa">Haus</ne> ist alt .', markup).split()
    lists = made.nbest([text], 50, threads=1, markup=markup)
    texts = lists.core.texts(np.arange(lists.hypotheses))
    assert len(texts) > 1 and all("100" in text.split() for text in texts)
    # Features are those of the placeholder.
    (plain,) = made.batch(["er hat @num@ Hunde ."], threads=1, details=1)
    (marked,) = made.batch([text], threads=1, details=1, markup=markup)
    assert marked.score == pytest.approx(plain.score)


def test_escapes_are_characters_and_tags_that_are_none_are_refused(folder: Path) -> None:
    made = translator(folder)
    assert one(made, "3 &lt; 5 &amp; 6") == "3 < 5 & 6"
    assert made.batch(["3 &lt; 5"], markup="exclusive")[0].source == "3 < 5"
    assert one(made, "das <n translation='a > b &amp; c'>Haus</n>").endswith("a > b & c")
    assert one(made, "3 < 5 & 6", "none") == "3 < 5 & 6"
    with pytest.raises(InputError, match="not closed by >"):
        one(made, "3 < 5")
    for bad in ('<ne entity="">a</ne>', '<ne entity="1" translation="a b">a</ne>'):
        with pytest.raises(InputError, match=r"is empty|is not one word"):
            one(made, bad)
    with pytest.raises(InputError, match="more than 1000 words"):
        one(made, f"<zone> {'a ' * 1001} </zone>")


def test_placeholders_are_not_cut_into_words(folder: Path, tmp_path: Path) -> None:
    for name in ("src", "tgt"):
        (tmp_path / name).write_text((folder.parent / name).read_text())
    sides = TextSide("de", "moses"), TextSide("en", "moses")
    train(Training(tmp_path / "src", tmp_path / "tgt", *sides), tmp_path / "model", 1)
    made = translator(tmp_path / "model")
    (line,) = made.prepared(
        ['Er zahlt <ne translation="@num@" entity="5,5">@num@</ne>.'], "inclusive"
    )
    assert line.split(">")[1].startswith(" @num@ <")
    assert one(made, 'Er zahlt <ne entity="5,5">@num@</ne>.').endswith("5,5.")


URL = "https://Foo.example/A_b/?q=1&r=2,3#Top"


@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("case", ["lower", "true"])
def test_what_a_placeholder_stands_for_comes_out_unbroken(
    folder: Path, tmp_path: Path, case: str, recorded: bool
) -> None:
    pytest.importorskip("sacremoses")
    protected = None if recorded else ()
    source, target = (
        TextSide(name, "moses", case, protected=protected)  # type: ignore[arg-type]
        for name in ("de", "en")
    )
    texts = folder.parent / "src", folder.parent / "tgt"
    train(Training(*texts, source, target, "phrase"), tmp_path / "model", 1)
    made = translator(tmp_path / "model")
    for entity in (URL, "foo :: Bar(x,y)", "K.-H. & Co", "</b>"):
        given = escape(entity, {'"': "&quot;"})
        line = f'das Haus <ne translation="@url@" entity="{given}">@url@</ne> ist alt .'
        assert f" {entity} " in one(made, line), entity


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("markup", ["exclusive", "inclusive"])
def test_no_sentence_is_lost_to_walls_and_zones(folder: Path, kind: Kind, markup: str) -> None:
    made = translator(folder, kind, pop_limit=1)
    rng = np.random.default_rng(1)
    words = f"{' '.join(PAIRS)} new unknown words".split()
    for _ in range(60):
        text = [words[i] for i in rng.integers(0, len(words), 12) if words[i] not in "<&"]
        for tag in ("zone", 'n translation="X"'):
            start, stop = np.sort(rng.choice(len(text), 2, replace=False))
            if not any("<" in word for word in text[start:stop]):
                text[start] = f"<{tag}> {text[start]}"
                text[stop - 1] = f"{text[stop - 1]} </{tag.split()[0]}>"
        text.insert(int(rng.integers(0, len(text))), "<wall/>")
        line = " ".join(text)
        assert one(made, line, markup), line
    assert one(made, 'das <n translation="x y">new <wall/> words</n> Haus', markup)


def test_given_translations_survive_cuts(folder: Path) -> None:
    made = translator(folder, max_words=4)
    given = '<n translation="BIG THING">Hunde und Katzen das Haus</n>'
    assert "BIG THING" in one(made, f"das {given} und das Haus ist alt .")


def test_beams_and_references(folder: Path) -> None:
    made = translator(folder)
    lines = ["das Haus ist alt .", "@num@ Hunde und"]
    references = ["the house is old .", "@num@ dogs and more"]
    forced = made.force(lines, references)
    assert (forced.reached, forced.whole) == ([5, 2], [True, False])
    assert forced.pools.outputs(forced.pools.first()) == ["the house is old .", "@num@ dogs"]
    bins = made.bins(lines)
    assert (bins.groups.tolist(), bins.lines) == ([0] * 5 + [1] * 3, 2)
    firsts = bins.first().tolist()
    covered = [sum(end - start for start, end in bins.covered(at)) for at in firsts]
    assert covered == [1, 2, 3, 4, 5, 1, 2, 3]
    assert (bins.sources or [])[5] == lines[1]
    (part,), (whole,) = bins.core.texts(np.array([0])), bins.core.wholes(np.array([0]))
    assert whole == f"{part} {bins.surroundings(0)[1]}".strip() and whole != part
    assert bins.outputs(bins.first())[0] == whole
    # Every bin is a list: tuning on all of them is search-aware tuning.
    with pytest.raises(InputError, match="bins of 2 lines, but 1 references"):
        bins.against([["a"]])
    ready = bins.against([[each] for each in references])
    result = tune(ready, "mert", "bleu:tokenize=none", start=made.weights, options={"restarts": 2})
    assert result.tuned >= result.start
    marked = ['<ne translation="@num@" entity="7">@num@</ne> Hunde']
    assert made.force(marked, ["7 dogs"], markup="exclusive").whole == [True]
    assert made.force(marked, ["@num@ dogs"], markup="exclusive").whole == [False]
    steps = made.bins(lines, forced=references)
    texts = steps.core.texts(np.arange(steps.hypotheses))
    assert {"the house is old .", "@num@ dogs"} <= set(texts)
    assert all(
        any(text and f"{each} ".startswith(f"{text} ") for each in references) for text in texts
    )


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_damaged_tables_are_refused(folder: Path, tmp_path: Path, kind: Kind) -> None:
    bad = shutil.copytree(folder, tmp_path / "model")
    file = bad / ("phrases.rules" if kind == "phrase" else "hiero.rules")
    table = bytearray(file.read_bytes())
    table[len(table) // 3] ^= 0x55
    file.write_bytes(table)
    # Of a large file only the ends have a digest.
    with pytest.raises(InputError, match=f"{file.name}.*its (digest|checksum) differs"):
        Model.load(bad, kind)
    # A model without digests has the checksums of its tables.
    told = (bad / "model.toml").read_text()
    digest = re.compile(rf'^"{re.escape(file.name)}" = "[0-9a-f]+"\n', re.MULTILINE)
    assert len(digest.findall(told)) == 1
    (bad / "model.toml").write_text(digest.sub("", told))
    with pytest.raises(InputError, match="checksum differs"):
        Model.load(bad, kind)
