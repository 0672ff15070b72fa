"""From two small texts to a model directory, and what is refused on the way."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from twins.cutting import needs_moses

from tunesmith.decode.templates import TEMPLATES, template_of
from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.lm import LanguageModel
from tunesmith.training.model import read_model, rule_tables, text_sides
from tunesmith.training.pipeline import Training, train
from tunesmith.training.rules import find
from tunesmith.training.stages import News
from tunesmith.training.text import PairFilter, TextSide, paired

SOURCE = ["das haus ist klein", "das haus ist alt", "ein haus", "das buch ist klein", "ein buch"]
TARGET = ["the house is small", "the house is old", "a house", "the book is small", "a book"]
LINKS = ["0-0 1-1 2-2 3-3", "0-0 1-1 2-2 3-3", "0-0 1-1", "0-0 1-1 2-2 3-3", "0-0 1-1"]


def write(folder: Path, name: str, lines: list[str]) -> Path:
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def task(folder: Path, **options: object) -> Training:
    return Training(
        write(folder, "src", SOURCE),
        write(folder, "tgt", TARGET),
        alignment=write(folder, "links", LINKS),
        order=3,
        **options,  # type: ignore[arg-type]
    )


def test_a_model_holds_rules_and_a_language_model(tmp_path: Path) -> None:
    model = tmp_path / "model"
    summary = train(task(tmp_path), model)
    assert summary["stages"]["text"]["pairs"] == 5
    told = read_model(model)
    assert told["kind"] == "both"
    assert told["made_from"]["aligner"] == "given"
    assert [Path(item["path"]).name for item in told["made_from"]["inputs"]] == [
        "src",
        "tgt",
        "links",
    ]
    tables = rule_tables(model)
    assert set(tables) == {"phrases", "hiero"}
    assert [" ".join(rule.target) for rule in find(tables["phrases"], "das haus")] == ["the house"]
    assert any("[X,1]" in rule.target for rule in find(tables["hiero"], "das [X,1]"))
    assert LanguageModel.load(model / "lm.tlm").order == 3


def test_training_goes_on_after_its_last_finished_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tunesmith.training import pipeline

    whole = tmp_path / "whole"
    train(task(tmp_path), whole)

    class StoppedError(Exception):
        pass

    def stop(*arguments: object, **options: object) -> None:
        raise StoppedError

    model = tmp_path / "model"
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "make_hiero_table", stop)
        with pytest.raises(StoppedError):
            train(task(tmp_path), model)
    with pytest.raises(InputError, match=r"model\.toml is missing"):
        read_model(model)
    monkeypatch.setattr(pipeline, "make_phrase_table", stop)  # it is done: not called again
    train(task(tmp_path), model)
    for name in ("phrases.rules", "hiero.rules", "lm.tlm"):
        assert (model / name).read_bytes() == (whole / name).read_bytes()


def test_threads_and_memory_change_no_byte(tmp_path: Path) -> None:
    source = write(tmp_path, "src", SOURCE * 30)
    target = write(tmp_path, "tgt", TARGET * 30)
    folders = []
    for threads, memory in ((1, 1 << 30), (3, 1 << 16)):
        folders.append(tmp_path / f"model{threads}")
        train(Training(source, target, order=3, memory=memory), folders[-1], threads)
    made = ("phrases.rules", "hiero.rules", "lm.tlm", "frequent.txt", "classes.txt")
    for name in (*made, "work/forward", "work/backward"):
        assert (folders[0] / name).read_bytes() == (folders[1] / name).read_bytes()


def test_every_template_works_with_a_model_as_it_is_trained(tmp_path: Path) -> None:
    (tmp_path / "tagged").write_text(
        "".join(" ".join(f"{word}|{word[-1]}" for word in line.split()) + "\n" for line in TARGET)
    )
    train(replace(task(tmp_path), tagged=tmp_path / "tagged"), tmp_path / "model")
    told = read_model(tmp_path / "model")
    assert {"frequent.txt", "classes.txt", "tags.txt"} <= set(told["files"])
    names = [known.name for known in TEMPLATES]
    model = Model.load(tmp_path / "model", "phrase", named=names)
    found = next(model.translator().translate(["das haus"], details=1))
    seen = {template_of(name) for name in dict(found.derivations[0].features)}
    assert seen >= {"rule-id", "pairs", "contexts", "class-bigrams", "tag-bigrams"}


def test_every_stage_is_told(tmp_path: Path) -> None:
    told: list[News] = []
    for _ in range(2):
        train(task(tmp_path), tmp_path / "model", tell=told.append)
    stages = ["text", "lm", "words", "phrases", "hiero"]
    assert [news.stage for news in told if news.state == "begun"] == stages
    assert [news.stage for news in told if news.state == "done"] == stages
    assert [news.stage for news in told if news.state == "kept"] == stages
    assert all(news.done <= news.total or not news.total for news in told)


def test_other_text_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    train(task(tmp_path), model)
    changed = [*TARGET[:-1], "one book"]
    other = task(tmp_path)
    write(tmp_path, "tgt", changed)
    with pytest.raises(InputError, match="other text or with other options"):
        train(other, model)


def test_a_file_in_another_role_is_other_text(tmp_path: Path) -> None:
    texts = write(tmp_path, "src", SOURCE), write(tmp_path, "tgt", TARGET)
    more = write(tmp_path, "more", ["the house is new"])
    train(Training(*texts, kind="phrase", dev_target=more), tmp_path / "model")
    with pytest.raises(InputError, match="other text or with other options"):
        train(Training(*texts, kind="phrase", lm_texts=(more,)), tmp_path / "model")


def test_another_dev_set_is_measured_and_nothing_else_done_again(tmp_path: Path) -> None:
    told: list[News] = []
    dev = write(tmp_path, "dev", ["das haus"])
    other = write(tmp_path, "other", ["das haus ist neu"])
    covered = []
    for path in (dev, other, other):
        training = task(tmp_path, kind="phrase", dev=path)
        summary = train(training, tmp_path / "model", tell=told.append)
        covered.append((summary["stages"]["dev"]["covered"], summary["stages"]["dev"]["words"]))
    assert covered == [(2, 2), (3, 4), (3, 4)]
    begun = [news.stage for news in told if news.state == "begun"]
    assert begun == ["text", "lm", "words", "phrases", "dev", "dev"]
    assert "dev" not in train(task(tmp_path, kind="phrase"), tmp_path / "model")["stages"]


def test_a_mistake_in_the_first_stage_can_be_corrected(tmp_path: Path) -> None:
    model = tmp_path / "model"
    with pytest.raises(InputError, match="no sentence pair"):
        train(task(tmp_path, kind="phrase", longest=1), model)
    told = json.loads((model / "stages.json").read_text())
    assert told["config"]["longest"] == 1
    assert told["done"] == {}
    train(task(tmp_path, kind="phrase"), model)
    assert read_model(model)["made_from"]["pairs"] == 5


def test_what_a_killed_training_left_is_removed(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    first = model / ".stages.json.x1y2z3.part"
    first.write_text("{")
    train(task(tmp_path, kind="phrase"), model)
    left = [model / ".lm.tlm.a1b2c3.part", model / "work" / ".corpus.source.a1b2c3.part"]
    other = tmp_path / ".corpus.source.a1b2c3.part"
    for path in (*left, other):
        path.write_text("half")
    train(task(tmp_path, kind="phrase"), model)
    assert not any(path.exists() for path in (first, *left))
    assert other.exists()


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ("{}", "not a record of stages"),
        ('{"config": {}}', "not a record of stages"),
        ('{"config": {"inputs": [1]}, "done": {}}', "not a record of stages"),
        ('{"config": {"inputs": []}, "done": {"text": 1}}', "not a record of stages"),
    ],
)
def test_a_damaged_record_of_stages_is_named(tmp_path: Path, told: str, message: str) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "stages.json").write_text(told)
    with pytest.raises(InputError, match=message) as caught:
        train(task(tmp_path), tmp_path / "model")
    assert caught.value.file == str(tmp_path / "model" / "stages.json")
    assert "new folder" in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("cut", "message"),
    [
        ("[files]", r"there is no \[files\]"),
        ("[source]", r"there is no \[source\]"),
        ("[target]", r"there is no \[target\]"),
        ('language = "en"', r"\[target\] has no language"),
        ('case = "keep"', r"\[target\] has no case"),
    ],
)
def test_a_model_description_that_was_cut_off_is_named(
    tmp_path: Path, cut: str, message: str
) -> None:
    model = tmp_path / "model"
    sides = {"source_side": TextSide("de"), "target_side": TextSide("en")}
    train(task(tmp_path, kind="phrase", **sides), model)
    told = (model / "model.toml").read_text()
    (model / "model.toml").write_text(told[: told.rindex(cut)])
    with pytest.raises(InputError, match=message) as caught:
        text_sides(model)
    assert caught.value.file == str(model / "model.toml")
    assert "delete it" in str(caught.value.remedy)


def test_a_model_with_an_unknown_way_to_cut_text_is_named(tmp_path: Path) -> None:
    model = tmp_path / "model"
    train(task(tmp_path, kind="phrase"), model)
    told = (model / "model.toml").read_text()
    (model / "model.toml").write_text(told.replace('"none"', '"foo"', 1))
    with pytest.raises(InputError, match=r"model\.toml: \[source\]: tokenisation 'foo'"):
        text_sides(model)


@pytest.mark.parametrize(
    "options",
    [
        {"order": 9},
        {"order": 0},
        {"aligner": "giza"},
        {"heuristic": "shrink"},
        {"kind": "syntax"},
        {"longest": -1},
        {"ratio": 0.0},
        {"ratio": float("nan")},
    ],
)
def test_options_that_cannot_be_used_are_refused_at_once(options: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        Training(Path("src"), Path("tgt"), alignment=Path("links"), **options)  # type: ignore[arg-type]
    assert caught.value.remedy


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="not empty"):
        train(task(tmp_path), model)


def test_unequal_texts_are_refused_with_both_counts(tmp_path: Path) -> None:
    training = task(tmp_path)
    write(tmp_path, "tgt", TARGET[:3])
    with pytest.raises(InputError, match=r"tgt:4: it ends after 3 lines, but .*src has 5"):
        train(training, tmp_path / "model")


def test_pairs_that_teach_nothing_are_counted(tmp_path: Path) -> None:
    source = [*SOURCE, "", "lang " * 10_000, "eins zwei drei vier fünf sechs sieben acht neun zehn"]
    target = [*TARGET, "nothing", "long", "x"]
    training = Training(
        write(tmp_path, "src", source),
        write(tmp_path, "tgt", target),
        alignment=write(tmp_path, "links", [*LINKS, "", "0-0", "0-0"]),
        order=2,
        kind="phrase",
    )
    facts = train(training, tmp_path / "model")["stages"]["text"]
    assert facts["pairs"] == 5
    assert sum(facts["dropped"].values()) == 3


def test_no_usable_pair_is_refused(tmp_path: Path) -> None:
    training = Training(write(tmp_path, "src", ["", ""]), write(tmp_path, "tgt", ["a", "b"]))
    with pytest.raises(InputError, match="no sentence pair"):
        train(training, tmp_path / "model")


def test_invalid_utf8_names_file_and_line(tmp_path: Path) -> None:
    training = task(tmp_path)
    (tmp_path / "src").write_bytes(b"das haus\n\xff\xfe\n")
    with pytest.raises(InputError) as caught:
        train(training, tmp_path / "model")
    assert caught.value.line == 2


def test_fast_align_finds_the_words_of_a_tiny_text(tmp_path: Path) -> None:
    training = Training(
        write(tmp_path, "src", SOURCE * 20),
        write(tmp_path, "tgt", TARGET * 20),
        kind="phrase",
        order=2,
        dev=write(tmp_path, "dev", ["das haus ist neu"]),
    )
    summary = train(training, tmp_path / "model")
    assert summary["stages"]["dev"]["covered"] == 3
    found = find(rule_tables(tmp_path / "model")["phrases"], "haus")
    best = max(found, key=lambda rule: rule.scores["p(e|f)"])
    assert " ".join(best.target) == "house"


@needs_moses
def test_moses_tokens_come_back_as_text() -> None:
    side = TextSide("en", "moses", "keep")
    assert side.prepare("Hello,  world's end!") == "Hello , world 's end !"
    assert side.restore("Hello , world 's end !") == "Hello, world's end!"


def test_truecasing_keeps_names() -> None:
    side = TextSide("en", "none").learn_case(["We saw Paris", "Then we left Paris", "Paris is far"])
    assert side.prepare("We left") == "we left"
    assert side.prepare("Paris is far") == "Paris is far"
    assert side.restore("we left") == "We left"


def test_filter_and_pairs() -> None:
    keeper = PairFilter(longest=3, ratio=2.0)
    assert keeper.keep("a b", "c d")
    assert not keeper.keep("a b c d", "e")
    assert not keeper.keep("a b c", "e")
    assert not keeper.keep(" ", "e")
    assert sum(keeper.dropped.values()) == 3
    assert list(paired(["a"], ["b"], ("x", "y"))) == [("a", "b")]


def test_the_record_of_stages_is_plain_json(tmp_path: Path) -> None:
    train(task(tmp_path, kind="phrase"), tmp_path / "model")
    told = json.loads((tmp_path / "model" / "stages.json").read_text())
    assert set(told["done"]) == {"text", "lm", "words", "phrases"}


def test_only_one_training_writes_a_folder(tmp_path: Path) -> None:
    model = tmp_path / "model"

    def second(news: News) -> None:
        with pytest.raises(InputError, match=r"another process.* is writing this model") as caught:
            train(task(tmp_path), model)
        assert caught.value.file == str(model)

    train(task(tmp_path), model, tell=second)
    train(task(tmp_path), model)


@pytest.mark.parametrize(
    "name", ["phrases.rules", "hiero.rules", "lm.tlm", "classes.txt", "frequent.txt"]
)
def test_a_file_of_another_model_is_refused(tmp_path: Path, name: str) -> None:
    model, other = tmp_path / "model", tmp_path / "other"
    train(task(tmp_path), model)
    files = read_model(model)["files"]
    if name not in files:
        name = next(each for each in files if each.startswith(name.partition(".")[0]))
    (tmp_path / "more").mkdir()
    TARGET.append("house")
    SOURCE.append("haus")
    LINKS.append("0-0")
    try:
        train(task(tmp_path / "more"), other)
    finally:
        for lines in (TARGET, SOURCE, LINKS):
            lines.pop()
    own = (model / name).read_bytes()
    # Of the same size too, where only the digest differs.
    for content in (b"", (other / name).read_bytes(), own[:-1] + bytes([own[-1] ^ 1])):
        if content == own:
            continue
        (model / name).write_bytes(content)
        for load in (Model.load, rule_tables, text_sides):
            with pytest.raises(InputError, match="not the file that the model was made") as caught:
                load(model)
            assert caught.value.file == str(model / name) and caught.value.remedy
    (model / name).write_bytes(own)
    Model.load(model)


def test_a_model_that_was_made_before_there_were_digests_is_known_by_its_sizes(
    tmp_path: Path,
) -> None:
    model = tmp_path / "model"
    train(task(tmp_path), model)
    told = (model / "model.toml").read_text()
    before, _, after = told.partition("[digests]")
    (model / "model.toml").write_text(before + "[source]" + after.partition("[source]")[2])
    Model.load(model)
    (model / "lm.tlm").write_bytes((model / "lm.tlm").read_bytes() + bytes(64))
    with pytest.raises(InputError, match=r"lm\.tlm: .*its size differs"):
        Model.load(model)


@pytest.mark.parametrize("name", ["/etc/passwd", "../src", "a/../../src"])
def test_a_model_has_no_files_outside_its_folder(tmp_path: Path, name: str) -> None:
    model = tmp_path / "model"
    train(task(tmp_path, source_side=TextSide(case="true")), model)
    told = (model / "model.toml").read_text()
    for old in ('"lm.tlm"', '"case.source"'):
        (model / "model.toml").write_text(told.replace(old, f'"{name}"'))
        with pytest.raises(InputError, match=r"outside the model's folder") as caught:
            Model.load(model)
        assert caught.value.file == str(model / "model.toml")
