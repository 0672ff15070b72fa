"""Recipes are run: on texts and lists, without a tuner, with settings of papers, in a budget."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from twins.recipe import BASE, written

from tunesmith.errors import InputError
from tunesmith.experiments import Lab, find_recipe, find_task, read_recipe
from tunesmith.experiments.recipe import System
from tunesmith.experiments.running import kept, map_text, within
from tunesmith.experiments.sample import pairs, parsed
from tunesmith.experiments.store import Store
from tunesmith.experiments.tasks import find_tasks
from tunesmith.experiments.worlds import Data, World
from tunesmith.metrics import get_metric
from tunesmith.sources import Live

OWN = """
[task.mine]
kind = "phrase"
train = { texts = [{ source = "train.src", references = ["train.tgt"] }] }
development = { source = "dev.src", references = ["dev.tgt"] }
tests.test = { source = "test.src", references = ["test.tgt"] }
"""


def test_a_file_that_a_recipe_names_must_be_there(tmp_path: Path) -> None:
    path = written(tmp_path, BASE.replace("sample-lists", "mine") + OWN)
    with pytest.raises(
        InputError, match=r"task\.mine: there is no test\.src .*relative to"
    ) as told:
        Lab(tmp_path / "out").run(read_recipe(path, "smoke"))
    assert told.value.file == str(path)


def test_without_the_data_of_a_task_nothing_can_be_tested(tmp_path: Path) -> None:
    recipe = read_recipe(find_recipe("hasler2011-start"), "small")
    outcome = Lab(tmp_path / "out").run(recipe)
    assert outcome["verdict"] == "not testable here"
    assert "there is no multi30k/" in outcome["reason"]


@pytest.mark.parametrize(
    ("system", "line", "message"),
    [
        ("first", "options = { c = 1 }", "options without a tuner: c"),
        ("kbmira", "beam = 3", "beam of saved lists"),
        ("kbmira", 'templates = ["rule-id"]', "templates of saved lists"),
        ("kbmira", "iterations = 3", "are not decoded again"),
    ],
)
def test_what_would_change_nothing_is_refused(
    system: str, line: str, message: str, tmp_path: Path
) -> None:
    text = BASE.replace(f'name = "{system}"\n', f'name = "{system}"\n{line}\n')
    with pytest.raises(InputError, match=message):
        Lab(tmp_path / "out", jobs=1).run(read_recipe(written(tmp_path, text), "smoke"))


def test_held_out_text_chooses_the_round_and_some_references_are_enough(tmp_path: Path) -> None:
    recipe = read_recipe(find_recipe("hasler2011-mira"), "smoke")
    task = find_task(recipe, "captions")
    world = World(task, Data((tmp_path,)), Store(tmp_path / "cache"))
    every, one = world.tuning("development"), world.tuning("one reference")
    assert every.lines == one.lines
    assert {len(each) for each in every.references} == {2}
    assert one.references == [each[:1] for each in every.references]
    mert, mira = recipe.systems[:2]
    assert (mert.keep, mira.keep) == ("best", "heldout")
    assert world.heldout(mert) == []
    (heldout,) = world.heldout(mira)
    assert heldout.sources == world.tuning("heldout").lines
    assert not {*heldout.sources} & {*every.lines}
    digests = [world.digests(each, get_metric("bleu")) for each in (mert, mira)]
    assert digests[1]["heldout"] == world.tuning("heldout").digest
    assert "heldout" not in digests[0]
    without = World(
        replace(task, tuning={"development": task.tuning["development"]}),
        Data((tmp_path,)),
        Store(tmp_path / "cache"),
    )
    with pytest.raises(InputError, match="has no held-out text"):
        without.heldout(mira)


PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")


def test_sample_trees_are_projective_and_have_one_root() -> None:
    for (words, tags), tree in parsed(60, 1):
        assert len(words) == len(tags) == len(tree.heads)
        assert tree.heads.count(0) == 1
        arcs = [sorted((child, head)) for child, head in enumerate(tree.heads, 1) if head]
        crossing = [(a, b) for a in arcs for b in arcs if a[0] < b[0] < a[1] < b[1]]
        assert crossing == []
    assert map_text([tree, ("A", "B")]) == [" ".join(map(str, tree.heads)), "A B"]


def test_the_recipe_of_the_page_runs_on_text_of_ones_own(tmp_path: Path) -> None:
    for name, size, seed in (("train", 200, 1), ("dev", 15, 2), ("test", 15, 3)):
        made = pairs(size, seed, "home")
        for ending, lines in (
            ("src", [each.source for each in made]),
            ("tgt", [each.references[0] for each in made]),
        ):
            (tmp_path / f"{name}.{ending}").write_text("".join(f"{line}\n" for line in lines))
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    outcome = Lab(tmp_path / "out").run(read_recipe(written(tmp_path, text), "smoke"))
    assert outcome["verdict"] in ("confirmed", "not confirmed")
    (claim,) = outcome["claims"]
    assert {each["left"] for each in claim["evidence"]} == {
        "kbmira dense C=0.02",
        "kbmira dense C=0.002",
    }
    assert outcome["plots"] == ["passes-mine.svg"]


def test_a_system_may_have_the_settings_of_a_paper(tmp_path: Path) -> None:
    text = BASE.replace(
        'name = "kbmira"\npreset = "kbmira"',
        'name = "kbmira"\npreset = "kbmira"\nas = "cherry2012"\noptions = { passes = 5 }',
    )
    recipe = read_recipe(written(tmp_path, text), "smoke")
    system = next(each for each in recipe.systems if each.name == "kbmira")
    assert (system.options["c"], system.options["passes"]) == (0.01, 5)
    assert system.options["history"] == "oracle"
    with pytest.raises(InputError, match=r"och2003 has no settings for kbmira"):
        read_recipe(written(tmp_path, text.replace("cherry2012", "och2003")), "smoke")


def test_the_settings_of_a_paper_are_all_taken_where_a_recipe_gives_none(tmp_path: Path) -> None:
    text = BASE.replace('"sample-lists"', '"sample"').replace(
        'name = "kbmira"\npreset = "kbmira"',
        'name = "kbmira"\npreset = "{preset}"\nas = "{paper}"{more}',
    )

    def system(preset: str, paper: str, more: str = "") -> System:
        given = text.format(preset=preset, paper=paper, more=more)
        read = read_recipe(written(tmp_path, given), "smoke")
        return next(each for each in read.systems if each.name == "kbmira")

    green = system("adagrad", "green2013")
    assert (green.start, green.nbest) == ("equal", None)
    assert green.search == {"distortion_limit": 5, "phrase_limit": 7}
    assert green.on_lists is not None
    assert (green.on_lists.start, green.on_lists.search) == (None, {})
    assert system("mira-hildreth", "hasler2011", "\nstart = 0.5").start == 0.5
    assert system("pro", "hopkins2011").iterations == 30
    assert system("pro", "hopkins2011", "\niterations = 2").iterations == 2
    given = text.format(preset="adagrad", paper="green2013", more="\niterations = 1")
    lab = Lab(tmp_path / "out", jobs=1)
    recipe = read_recipe(written(tmp_path, given), "smoke")
    world = World(find_tasks(recipe)[0], Data((tmp_path,), "sample", None), lab.store)
    found = world.source(green)
    assert isinstance(found, Live)
    # The task's own limits count before the paper's.
    assert {**green.search, **world.task.search}.items() <= found.settings.items()
    assert lab.run(recipe)["verdict"] in ("confirmed", "not confirmed")


def test_on_saved_lists_a_paper_has_neither_decodings_nor_delays(tmp_path: Path) -> None:
    text = BASE.replace(
        'name = "kbmira"\npreset = "kbmira"',
        'name = "kbmira"\npreset = "{preset}"\nas = "{paper}"',
    )
    for preset, paper, options, regime in (
        ("pro", "hopkins2011", {"rounds": 30, "samples": 9}, None),
        ("adagrad", "green2013", {"samples": 9}, "batch=20"),
    ):
        given = text.format(preset=preset, paper=paper) + "\n"
        given = given.replace(f'as = "{paper}"', f'as = "{paper}"\noptions = {{ samples = 9 }}')
        recipe = read_recipe(written(tmp_path, given), "smoke")
        system = next(each for each in recipe.systems if each.name == "kbmira")
        assert system.on_lists is not None
        assert (system.on_lists.nbest, system.on_lists.regime) == (None, regime)
        assert system.on_lists.options.items() >= options.items()
        outcome = Lab(tmp_path / "out", jobs=1).run(recipe)
        assert outcome["verdict"] in ("confirmed", "not confirmed")


def test_sentences_of_tests_that_were_learnt_from_are_told(tmp_path: Path) -> None:
    texts = {"train": "a b\nc d\n", "dev": "e f\ng h\n", "test": "e f\nc d\ni j\n"}
    for name, lines in texts.items():
        (tmp_path / f"{name}.src").write_text(lines)
        (tmp_path / f"{name}.tgt").write_text(lines)
    path = written(tmp_path, BASE.replace("sample-lists", "mine") + OWN)
    said: list[str] = []
    lab = Lab(tmp_path / "out", jobs=1, warn=said.append)
    outcome = lab.run(read_recipe(path, "smoke"))
    assert outcome["overlaps"] == [
        "mine: 1 of 3 sentences of the test test are in the tuning text development",
        "mine: 1 of 3 sentences of the test test are in the training text",
    ]
    assert not said
    assert outcome["overlaps"][0] in (tmp_path / "out" / "mine" / "README.md").read_text("utf-8")
    path = written(
        tmp_path, path.read_text().replace("test.src", "dev.src").replace("test.tgt", "dev.tgt")
    )
    Lab(tmp_path / "out", jobs=1, warn=said.append).run(read_recipe(path, "smoke"))
    (warning,) = said
    assert (
        warning
        == "mine: mine: 2 of 2 sentences of the test test are in the tuning text development"
    )
    same = LISTS.replace('"lists"', '"dev"').replace('"references"', '"dev.tgt"')
    (tmp_path / "dev").write_text("0 ||| e f ||| a= 1 ||| 1\n1 ||| g h ||| a= 1 ||| 1\n")
    path = written(tmp_path, BASE.replace("sample-lists", "mine") + same)
    Lab(tmp_path / "out", jobs=1, warn=said.append).run(read_recipe(path, "smoke"))
    assert "2 of 2 sentences of the test test are in the lists that are tuned on" in said[-1]


@pytest.mark.parametrize(
    ("metric", "keep", "budget", "wanted"),
    [
        ("bleu", "best", 2.5, 1),
        ("ter", "best", 2.5, 2),
        ("bleu", "last", 2.5, 2),
        ("bleu", "heldout", 2.5, 2),
        ("bleu", "best", 9.0, 3),
        ("bleu", "last", 0.5, 1),
    ],
)
def test_within_a_budget_the_round_counts_that_counts_without_one(
    metric: str, keep: str, budget: float, wanted: int
) -> None:
    scores = [(30.0, 10.0), (20.0, 20.0), (40.0, 0.0)]
    events = [
        {"epoch": epoch, "seconds": 1.0, "score": score, "heldout": heldout}
        for epoch, (score, heldout) in enumerate(scores, 1)
    ]
    assert kept(within(budget, events), keep, get_metric(metric))["epoch"] == wanted


LISTS = """
[task.mine]
lists.development = { lists = ["lists"], references = ["references"] }
lists.test = { lists = ["lists"], references = ["references"] }
"""


def test_systems_without_a_tuner_choose_by_position_agreement_or_one_feature(
    tmp_path: Path,
) -> None:
    # The first of each list has neither the best score nor the most friends.
    texts = ["k l m x", "e f g h", "e f g i", "e f g j", "k l m n"]
    scores = [(0.1, 0.2), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1), (0.2, 0.3)]
    (tmp_path / "lists").write_text(
        "".join(
            f"{line} ||| {text} ||| x= {x} y= {y} ||| {x}\n"
            for line in range(2)
            for text, (x, y) in zip(texts, scores, strict=True)
        )
    )
    (tmp_path / "references").write_text("k l m n\n" * 2)
    made = BASE.replace('"sample-lists"', '"mine"').replace("kbmira", "consensus") + LISTS
    more = '\n[[systems]]\nname = "alone"\npreset = "best-feature"\n'
    path = written(tmp_path, made.replace("\n[[tables]]", f"{more}\n[[tables]]"))
    outcome = Lab(tmp_path / "out").run(read_recipe(path, "small"))
    rows = {row["system"]: row for row in outcome["tables"][0]["rows"]}
    found = {name: round(row["test"][0]) for name, row in rows.items()}
    assert found["consensus"] < found["first"] < found["alone"] == 100


def test_consensus_needs_saved_lists(tmp_path: Path) -> None:
    text = BASE.replace('"sample-lists"', '"sample"').replace("kbmira", "consensus")
    with pytest.raises(InputError, match="consensus chooses from saved lists"):
        Lab(tmp_path / "out").run(read_recipe(written(tmp_path, text), "smoke"))
