"""Recipes are read strictly, runs are kept by content, and verdicts follow from the evidence."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from tunesmith.errors import InputError
from tunesmith.experiments import (
    SCALES,
    Evidence,
    Judged,
    Lab,
    find_recipe,
    find_task,
    overall,
    read_recipe,
    shipped,
    verdict,
)
from tunesmith.experiments.claims import (
    Difference,
    Status,
    _separate,
    compared_rows,
    could_differ,
)
from tunesmith.experiments.fields import at_scale
from tunesmith.experiments.plot import Point, draw, drawn_passes, plot_name
from tunesmith.experiments.recipe import MORE, Claim, System
from tunesmith.experiments.running import Found, kept, map_text, within
from tunesmith.experiments.sample import pairs, parsed
from tunesmith.experiments.store import Store
from tunesmith.experiments.tables import MORE as COLUMNS
from tunesmith.experiments.tables import Filled, Several
from tunesmith.experiments.tasks import find_tasks
from tunesmith.experiments.worlds import Data, World
from tunesmith.experiments.writing import evidence_text, latex, markdown, texts_of
from tunesmith.metrics import get_metric
from tunesmith.sources import Live

BASE = """
title = "Mine"
tasks = ["sample-lists"]
metrics = ["bleu:tokenize=none"]
seeds = 1

[[systems]]
name = "first"
preset = "none"

[[systems]]
name = "kbmira"
preset = "kbmira"

[[tables]]
kind = "scores"
title = "Scores"
baseline = "first"

[[claims]]
text = "Tuning helps"
claim = "kbmira > first on tests"
"""


def written(folder: Path, text: str = BASE) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return path


# -- verdicts ------------------------------------------------------------------------------


def evidence(*outcomes: Difference, by: float = 1.0) -> list[Evidence]:
    sign = {"higher": by, "unclear": 0.0, "lower": -by}
    return [Evidence("t", "a", "b", 1.0, 1.0, sign[each], each) for each in outcomes]


def judged(relation: str, *outcomes: Difference, within: float | None = None) -> Status:
    claim = Claim("", "a", relation, ("b",), within=within)
    return verdict(claim, evidence(*outcomes)).status


@pytest.mark.parametrize(
    ("relation", "outcomes", "wanted"),
    [
        (">", ("higher",), "confirmed"),
        (">", ("unclear",), "not confirmed"),
        (">", ("lower",), "not confirmed"),
        (">", ("higher", "higher", "unclear"), "confirmed"),
        (">", ("higher", "unclear"), "not confirmed"),
        (">", ("higher", "higher", "lower"), "not confirmed"),
        ("<", ("lower",), "confirmed"),
        ("<", ("higher",), "not confirmed"),
        (">=", ("unclear",), "confirmed"),
        (">=", ("higher", "lower"), "not confirmed"),
        ("<=", ("unclear", "lower"), "confirmed"),
        ("<=", ("higher",), "not confirmed"),
        ("~", ("unclear", "unclear"), "confirmed"),
        ("~", ("unclear", "higher"), "not confirmed"),
        ("~", ("lower",), "not confirmed"),
        (">", (), "not testable here"),
    ],
)
def test_a_claim_is_judged_by_its_evidence(
    relation: str, outcomes: tuple[Difference, ...], wanted: Status
) -> None:
    assert judged(relation, *outcomes) == wanted


def test_differences_within_a_margin_do_not_count() -> None:
    assert judged(">=", "lower", within=2.0) == "confirmed"
    assert judged(">=", "lower", within=0.5) == "not confirmed"
    assert judged("~", "higher", within=2.0) == "confirmed"
    assert judged("~", "higher", within=0.5) == "not confirmed"


def test_a_recipe_is_confirmed_if_no_claim_that_could_be_tested_is_not() -> None:
    def all_of(*states: Status) -> Status:
        return overall([Judged("", "", each, "") for each in states])

    yes, no, never = get_args(Status)
    assert all_of(yes, never) == yes
    assert all_of(yes, no, never) == no
    assert all_of(never) == never == all_of()


def test_scores_are_compared_over_sentences_and_lower_is_better_where_it_is() -> None:
    right = np.tile([1.0, 10.0], (60, 1))
    wrong = np.tile([4.0, 10.0], (60, 1))
    one = compared_rows("t", "a", "b", [right], [wrong], "wer")
    assert (one.outcome, one.left_value, one.right_value) == ("higher", 10.0, 40.0)
    assert one.p is not None and one.p < 0.05
    assert compared_rows("t", "b", "a", [wrong], [right], "wer").outcome == "lower"
    assert compared_rows("t", "a", "a", [right], [right], "wer").outcome == "unclear"


def test_a_test_that_can_show_nothing_is_no_evidence(tmp_path: Path) -> None:
    """One sentence of each has p = 1 whatever the outputs are, so `>=` would always hold."""
    assert not could_differ(5, 1, 1) and could_differ(6, 1, 1)
    assert not could_differ(2, 2, 2) and could_differ(3, 2, 2)
    for sentences in (5, 6):
        right, wrong = (np.tile([bad, 10.0], (sentences, 1)) for bad in (0.0, 9.0))
        found = compared_rows("t", "a", "b", [right], [wrong], "wer")
        assert found.p is not None and (found.p < 0.05) == could_differ(sentences, 1, 1)
    text = BASE.replace("kbmira > first on tests", "kbmira >= first on tests")
    (tmp_path / "a.src").write_text("a\n" * 5)
    (tmp_path / "a.tgt").write_text("b\n" * 5)
    mine = """
[task.mine]
kind = "phrase"
tokenized = true
train = { texts = [{ source = "a.src", references = ["a.tgt"] }], order = 2 }
development = { source = "a.src", references = ["a.tgt"] }
tests.five = { source = "a.src", references = ["a.tgt"] }
"""
    path = written(tmp_path, text.replace('"sample-lists"', '"mine"') + mine)
    outcome = Lab(tmp_path / "out", jobs=1).run(read_recipe(path, "smoke"))
    assert outcome["verdict"] == "not testable here"
    assert "too short to show a difference" in outcome["claims"][0]["reason"]


def test_figures_that_do_not_overlap_have_the_p_of_the_rank_test() -> None:
    apart = _separate("t", "a", "b", [3.0, 4.0], [1.0, 2.0], higher=True)
    assert apart.outcome == "higher" and apart.p == pytest.approx(1 / 3)
    assert "no overlap, which has p = 0.333 by chance" in evidence_text(apart)
    near = _separate("t", "a", "b", [3.0, 1.5], [1.0, 2.0], higher=True)
    assert (near.outcome, near.p) == ("unclear", None)
    four = _separate("t", "a", "b", [1.0] * 4, [2.0] * 4, higher=True)
    assert four.outcome == "lower" and four.p == pytest.approx(2 / 70)
    one = _separate("t", "a", "b", [9.0], [1.0], higher=True)
    assert (one.outcome, one.p) == ("unclear", None)
    assert "any two figures differ by chance" in evidence_text(one)


# -- recipes -------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", shipped())
def test_every_recipe_of_the_package_can_be_read(name: str, scale: str) -> None:
    recipe = read_recipe(find_recipe(name), scale)
    assert recipe.claims and recipe.tables
    assert all(find_task(recipe, task).name == task for task in recipe.tasks)
    assert recipe.reproduces or "No paper" in recipe.about


def test_recipes_are_files_of_the_package() -> None:
    folder = resources.files("tunesmith.experiments")
    names = {each.name for each in (folder / "recipes").iterdir()}
    assert {f"{name}.toml" for name in shipped()} <= names
    assert len(shipped()) >= 18
    assert (folder / "tasks.toml").is_file()


def test_a_scale_without_a_value_takes_that_of_the_next_smaller_one() -> None:
    given = {"seeds": {"smoke": 1, "small": 3}, "k": [{"full": 9}], "other": {"a": 1}}
    assert at_scale(given, "smoke") == {"seeds": 1, "k": [9], "other": {"a": 1}}
    assert at_scale(given, "full") == {"seeds": 3, "k": [9], "other": {"a": 1}}


def test_varied_systems_have_names_and_options_of_their_own(tmp_path: Path) -> None:
    text = BASE.replace('name = "kbmira"\n', 'name = "kbmira {c}"\nvary = { c = [0.1, 0.01] }\n')
    text = text.replace("kbmira > first", "kbmira * > first")
    systems = read_recipe(written(tmp_path, text), "smoke").systems[1:]
    assert [each.name for each in systems] == ["kbmira 0.1", "kbmira 0.01"]
    assert [each.options for each in systems] == [{"c": 0.1}, {"c": 0.01}]


BAD = {
    "test that is not there": (
        "kbmira > first on tests",
        "kbmira > first on news",
        "claims: no test of sample-lists is called 'news'",
        "use tests, development or one of test",
    ),
    "column of a text": (
        "kbmira > first on tests",
        "kbmira > first on development in swing",
        "claims: `kbmira > first on development in swing` names a text, but a column belongs to",
        "leave `on development` out",
    ),
    "claim about itself": (
        "kbmira > first on tests",
        "kbmira > kbmira, kbm* on tests",
        "compares a system with itself",
        "name another",
    ),
    "margin below zero": (
        'claim = "kbmira > first on tests"',
        'claim = "kbmira >= first on tests"\nwithin = -0.2',
        "claims[1].within: -0.2 is below 0",
        "correct",
    ),
    "time below zero": (
        "seeds = 1",
        "seeds = 1\nseconds = -1",
        "seconds: -1 is below 0",
        "correct",
    ),
    "start from oneself": (
        'preset = "kbmira"',
        'preset = "kbmira"\nafter = "kbmira"',
        "systems: kbmira starts from its own weights: kbmira after kbmira",
        "let the first",
    ),
    "unknown template": (
        'preset = "kbmira"',
        'preset = "kbmira"\ntemplates = ["rule-idd"]',
        'systems[2].templates: no features are named "rule-idd"',
        "tunesmith features",
    ),
    "unknown key": ("seeds = 1", "seeds = 1\nseed = 2", "seed: unknown key", "there are"),
    "unknown key of a system": (
        'preset = "kbmira"',
        'preset = "kbmira"\nlike = "cherry2012"',
        "systems[2].like: unknown key",
        "there are",
    ),
    "unknown preset": (
        'preset = "kbmira"',
        'preset = "mire"',
        "systems[2].preset: no tuner named 'mire'",
        "choose one of none,",
    ),
    "unknown option": (
        'preset = "kbmira"',
        'preset = "kbmira"\noptions = { see = 1 }',
        "systems[2].options: kbmira has no option 'see'",
        "it has c,",
    ),
    "no seeds": ("seeds = 1\n", "", "seeds: is missing", "add seeds ="),
    "zero seeds": ("seeds = 1", "seeds = 0", "seeds: 0 is not a whole number from 1", "correct"),
    "text for a number": ("seeds = 1", 'seeds = "1"', "seeds: '1' is not a whole", "correct"),
    "number for a text": ('title = "Mine"', "title = 3", "title: 3 is not a text", "quotes"),
    "unknown metric": ("bleu:tokenize=none", "blue", "metrics: ", "bleu"),
    "unknown table": ('"scores"', '"score"', "tables[1].kind: 'score' is unknown", "use one of"),
    "unknown column": (
        'baseline = "first"',
        'more = ["speed"]',
        "tables[1].more: 'speed' is unknown",
        "use features",
    ),
    "gains of nothing": (
        'kind = "scores"',
        'kind = "gains"\n\n[[tables]]\nkind = "scores"',
        "tables[1].baseline: is missing",
        "whose gains",
    ),
    "no weights at the top": (
        'kind = "scores"',
        'kind = "weights"\ntop = 0\n\n[[tables]]\nkind = "scores"',
        "tables[1].top: 0 is not a whole number",
        "correct",
    ),
    "unknown system in a claim": (
        "> first on",
        "> last on",
        "claims: no system is called 'last'",
        "there are first, kbmira",
    ),
    "unknown regime": (
        'preset = "kbmira"',
        'preset = "kbmira"\nregime = "shards=x"',
        "systems[2].regime: 'shards=x' is no part of a regime",
        "give batch=N",
    ),
    "unknown metric of a system": (
        'preset = "kbmira"',
        'preset = "kbmira"\nmetric = "blue"',
        "systems[2].metric: unknown metric 'blue'",
        "choose one of bleu",
    ),
    "plot over nothing": (
        "[[claims]]",
        '[[plots]]\nkind = "options"\n\n[[claims]]',
        "plots[1].x: is missing",
        "name the option",
    ),
    "plot over an option that nothing has": (
        "[[claims]]",
        '[[plots]]\nkind = "options"\nx = "cc"\n\n[[claims]]',
        "plots: no system has a number for 'cc'",
        "name an option",
    ),
    "plot of passes over an option": (
        "[[claims]]",
        '[[plots]]\nkind = "passes"\nx = "c"\n\n[[claims]]',
        "plots[1].x: a plot of passes has none",
        "leave it out",
    ),
    "no claim": ("kbmira > first on tests", "kbmira", "claims[1].claim: 'kbmira' is no", "write"),
    "two of a name": ('name = "first"', 'name = "kbmira"', "two systems are called", "its own"),
    "not TOML": ("seeds = 1", "seeds =", "not TOML: ", "correct the file"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_recipe_is_refused_with_file_key_and_remedy(name: str, tmp_path: Path) -> None:
    old, new, message, remedy = BAD[name]
    assert old in BASE
    path = written(tmp_path, BASE.replace(old, new, 1))
    with pytest.raises(InputError) as told:
        find_tasks(read_recipe(path, "smoke"))
    assert told.value.file == str(path)
    assert message in told.value.message
    assert told.value.remedy is not None and remedy in told.value.remedy


@pytest.mark.parametrize(
    ("more", "metric", "told"),
    [
        ("", " in ter", "first has no ter on the tuning text, only bleu:tokenize=none"),
        ('metric = "ter"', "", "kbmira has no bleu:tokenize=none on the tuning text, only ter"),
        ('development = "large"', "", "kbmira and first are tuned on different texts"),
    ],
)
def test_tuning_scores_of_other_metrics_and_texts_are_not_compared(
    more: str, metric: str, told: str, tmp_path: Path
) -> None:
    text = BASE.replace('["bleu:tokenize=none"]', '["bleu:tokenize=none", "ter"]')
    text = text.replace('preset = "kbmira"', f'preset = "kbmira"\n{more}')
    text = text.replace("kbmira > first on tests", f"kbmira > first on development{metric}")
    with pytest.raises(InputError) as refused:
        read_recipe(written(tmp_path, text), "smoke")
    assert told in refused.value.message and refused.value.remedy == "claim it on tests"


def test_a_table_says_which_development_scores_are_of_another_metric(tmp_path: Path) -> None:
    text = BASE.replace('preset = "kbmira"', 'preset = "kbmira"\nmetric = "ter"')
    outcome = Lab(tmp_path / "out", jobs=1).run(read_recipe(written(tmp_path, text), "smoke"))
    (table,) = outcome["tables"]
    assert any(
        note.startswith("tuned for another metric") and "kbmira (TER)" in note
        for note in table["notes"]
    )


@pytest.mark.parametrize(("metric", "best"), [("ter", min), ("bleu:tokenize=none", max)])
def test_the_best_is_the_lowest_where_lower_is_better(
    metric: str, best: Any, tmp_path: Path
) -> None:
    text = BASE.replace("bleu:tokenize=none", metric).replace(
        'baseline = "first"',
        'sort = true\n[[tables]]\nkind = "spread"\ntitle = "Spread"\nsystems = ["kbmira"]',
    )
    text = text.replace('preset = "kbmira"', 'preset = "kbmira"\noptions = { c = 0.5, passes = 6 }')
    lab = Lab(tmp_path / "out", jobs=1)
    scores, spread = lab.run(read_recipe(written(tmp_path, text), "smoke"))["tables"]
    means = [row["mean"][0] for row in scores["rows"]]
    assert means[0] != means[1] and means[0] == best(means)
    assert [row["rank"] for row in scores["rows"]] == [1, 2]
    (found,) = (
        entry["found"]
        for file in lab.store.folder.glob("runs/*/found.json")
        if (entry := json.loads(file.read_text("utf-8")))["found"]["epochs"]
    )
    chosen = best(found["epochs"], key=lambda epoch: epoch["score"])
    assert len({epoch["score"] for epoch in found["epochs"]}) > 1
    assert spread["rows"][0]["spread"] == [chosen["spread"]["mean"]]


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


# -- runs are kept by content --------------------------------------------------------------


def test_an_entry_is_made_once_and_depends_on_the_whole_key(tmp_path: Path) -> None:
    asked: list[Any] = []

    def find(store: Store, **key: Any) -> Any:
        def make(path: Path) -> dict[str, Any]:
            asked.append(key)
            return {"answer": key["a"]}

        return store.kept("things", key, make)["answer"]

    store = Store(tmp_path)
    assert [find(store, a=1, b=2), find(store, b=2, a=1), find(store, a=1, b=3)] == [1, 1, 1]
    assert asked == [{"a": 1, "b": 2}, {"a": 1, "b": 3}]
    assert find(Store(tmp_path), a=1, b=2) == 1
    assert len(asked) == 2


def test_an_entry_that_could_not_be_made_is_made_again(tmp_path: Path) -> None:
    def fail(path: Path) -> dict[str, Any]:
        (path / "half").write_text("half")
        raise RuntimeError

    def go_on(path: Path) -> dict[str, Any]:
        return {"was": (path / "half").read_text()}

    with pytest.raises(RuntimeError):
        Store(tmp_path).kept("things", {"a": 1}, fail)
    assert Store(tmp_path).kept("things", {"a": 1}, go_on)["was"] == "half"


def test_only_what_changed_is_run_again(tmp_path: Path) -> None:
    def run(text: str) -> tuple[int, int]:
        lab = Lab(tmp_path / "out", jobs=2)
        lab.run(read_recipe(written(tmp_path, text), "smoke"))
        return lab.store.made, lab.store.hits

    assert run(BASE) == (2, 0)
    # Names and words are not content.
    renamed = BASE.replace("Mine", "Ours").replace('name = "kbmira"', 'name = "tuned"')
    assert run(renamed.replace("kbmira > first", "tuned > first")) == (0, 2)
    assert run(BASE.replace('preset = "kbmira"', 'preset = "kbmira"\noptions = { c = 0.5 }')) == (
        1,
        1,
    )
    # A second seed; the system that is not tuned has no randomness.
    assert run(BASE.replace("seeds = 1", "seeds = 2")) == (1, 3)


def test_equal_tasks_are_run_once_though_they_run_at_the_same_time(tmp_path: Path) -> None:
    # Both stand for the same sample lists at smoke scale.
    text = BASE.replace('["sample-lists"]', '["neural", "combination"]')
    lab = Lab(tmp_path / "out", jobs=4)
    outcome = lab.run(read_recipe(written(tmp_path, text), "smoke"))
    assert (lab.store.made, lab.store.hits) == (2, 2)
    assert [table["title"] for table in outcome["tables"]] == [
        "Scores (neural)",
        "Scores (combination)",
    ]


# -- what is written -----------------------------------------------------------------------


def test_columns_that_recipes_may_ask_for_are_those_that_there_are() -> None:
    assert set(MORE) == set(COLUMNS)


def test_tables_are_escaped_and_show_deviations() -> None:
    filled = Filled(
        "scores",
        "A & B",
        ["task", "system", "|A|", "p"],
        [{"task": "t", "system": "a_b", "|A|": Several((1.0, 2.0)), "p": 0.01}],
    )
    assert texts_of(filled) == (["system", "|A|", "p"], [["a_b", "1.50 ± 0.71", "0.010"]])
    assert markdown(*texts_of(filled)).splitlines()[0] == r"| system | \|A\| | p |"
    made = latex(*texts_of(filled), filled.title)
    assert r"a\_b & 1.50 $\pm$ 0.71 & 0.010 \\" in made
    assert r"\caption{A \& B}" in made


def test_a_plot_has_a_line_for_each_system_and_even_steps_on_request() -> None:
    line = [Point(0.0, 1.0), Point(0.001, 3.0, 2.0, 4.0), Point(1.0, 2.0)]
    made = draw("a < b", "x", "BLEU", {"one": line, "two": line[:1]}, even=True)
    assert made.count("<circle") == 4
    assert "a &lt; b" in made
    places = [float(part.split('"')[0]) for part in made.split('<circle cx="')[1:4]]
    assert places[1] - places[0] == pytest.approx(places[2] - places[1])


# -- the documentation ---------------------------------------------------------------------

PAGE = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")


def test_bars_are_the_corpus_scores_of_the_oracle_and_the_prediction() -> None:
    def run(seed: int, scores: list[float]) -> Found:
        epochs = [
            {"score": score, "corpus": {"model": 1.0, "oracle": 40.0 + seed, "prediction": 20.0}}
            for score in scores
        ]
        return Found("t", "s", seed, {"epochs": epochs})

    points = drawn_passes([run(1, [30.0, 31.0]), run(2, [32.0])], bars=True)
    assert points == [Point(1.0, 31.0, 20.0, 41.5), Point(2.0, 31.0, 20.0, 41.0)]
    # Without them, the seeds.
    plain = drawn_passes([run(1, [30.0]), run(2, [32.0])], bars=False)
    assert plain == [Point(1.0, 31.0, 30.0, 32.0)]


def test_plots_of_one_kind_have_names_of_their_own() -> None:
    recipe = read_recipe(find_recipe("eidelman2012-strategies"), "smoke")
    names = [plot_name(recipe, each, "captions") for each in recipe.plots]
    assert names == [f"passes-{number}-captions.svg" for number in (1, 2, 3)]
    recipe = read_recipe(find_recipe("hasler2011-start"), "smoke")
    assert [plot_name(recipe, each, "t") for each in recipe.plots] == ["passes-t.svg"]


def test_sample_trees_are_projective_and_have_one_root() -> None:
    for (words, tags), tree in parsed(60, 1):
        assert len(words) == len(tags) == len(tree.heads)
        assert tree.heads.count(0) == 1
        arcs = [sorted((child, head)) for child, head in enumerate(tree.heads, 1) if head]
        crossing = [(a, b) for a in arcs for b in arcs if a[0] < b[0] < a[1] < b[1]]
        assert crossing == []
    assert map_text([tree, ("A", "B")]) == [" ".join(map(str, tree.heads)), "A B"]


def test_the_page_lists_every_recipe_with_what_it_reproduces() -> None:
    for name, path in shipped().items():
        recipe = read_recipe(path, "smoke")
        told = "; ".join(recipe.reproduces) or f"{recipe.title} (in no paper)"
        assert f"| `{name}` | {told} |" in PAGE


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


def test_weights_of_each_sentence_have_no_score_on_the_tuning_text(tmp_path: Path) -> None:
    text = BASE.replace('"sample-lists"', '"sample-examples"')
    text = text.replace("seeds = 1", "seeds = 1\niterations = 1").replace(
        'name = "first"\npreset = "none"',
        'name = "first"\npreset = "none"\nafter = "kbmira"\n'
        'local = { method = "mbuu", k = 3, text = ["more captions"] }',
    )
    outcome = Lab(tmp_path / "out", jobs=1).run(read_recipe(written(tmp_path, text), "smoke"))
    (table,) = outcome["tables"]
    local, tuned = table["rows"]
    assert local["development"] is None and tuned["development"]
    assert "empty where each test sentence has weights of its own" in table["notes"][0]


def test_own_text_is_no_sample_text(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        for side in ("src", "tgt"):
            (tmp_path / f"{name}.{side}").write_text("a b\nc d\ne f\n", encoding="utf-8")
    own = """
[task.mine]
kind = "phrase"
tokenized = true
train = { texts = [{ source = "train.src", references = ["train.tgt"] }], order = 2 }
development = { source = "dev.src", references = ["dev.tgt"] }
tests.news = { source = "test.src", references = ["test.tgt"] }
"""
    text = BASE.replace('["sample-lists"]', '["mine"]') + own
    outcome = Lab(tmp_path / "out", jobs=1).run(read_recipe(written(tmp_path, text), "smoke"))
    assert outcome["sampled"] == []
    page = tmp_path / "out" / "mine" / "README.md"
    assert "Sample text" not in page.read_text(encoding="utf-8")
    outcome = Lab(tmp_path / "out", jobs=1).run(read_recipe(written(tmp_path), "small"))
    assert outcome["sampled"] == ["sample-lists"]
    assert "stands for sample-lists" in page.read_text(encoding="utf-8")


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


def test_the_overview_has_a_row_for_each_recipe_and_each_claim(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "out")
    outcome = lab.run(read_recipe(written(tmp_path), "smoke"))
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    confirmed = sum(claim["status"] == "confirmed" for claim in outcome["claims"])
    row = f"| [mine](mine/README.md) | smoke | {outcome['verdict']} | {confirmed} of 1 |"
    assert row in text
    assert f"| mine | Tuning helps | {outcome['claims'][0]['status']} |" in text
    assert f"{outcome['machine']}.\n" in text


def test_results_that_cannot_be_read_are_named_with_what_to_do(tmp_path: Path) -> None:
    out = tmp_path / "out"
    Lab(out, jobs=1).run(read_recipe(written(tmp_path), "smoke"))
    other = out / "other" / "result.json"
    other.parent.mkdir()
    other.write_text('{"recipe": "other", "verdict": "confirmed"}')
    with pytest.raises(InputError, match="lacks claims") as told:
        Lab(out, jobs=1).run(read_recipe(written(tmp_path), "smoke"))
    assert told.value.file == str(other) and "run the recipe again" in str(told.value.remedy)
    other.unlink()
    rows = next(out.glob("cache/runs/*/rows.npz"))
    rows.write_bytes(b"rows")
    with pytest.raises(InputError) as told:
        Lab(out, jobs=1).run(read_recipe(written(tmp_path), "smoke"))
    assert told.value.file == str(rows)
    assert told.value.remedy == "remove its folder; it is made again"


def test_consensus_needs_saved_lists(tmp_path: Path) -> None:
    text = BASE.replace('"sample-lists"', '"sample"').replace("kbmira", "consensus")
    with pytest.raises(InputError, match="consensus chooses from saved lists"):
        Lab(tmp_path / "out").run(read_recipe(written(tmp_path, text), "smoke"))


def test_evidence_of_an_error_rate_says_better_not_higher() -> None:
    ours, theirs = [np.array([[0.0, 10.0]] * 20)], [np.array([[5.0, 10.0]] * 20)]
    found = compared_rows("t", "a", "b", ours, theirs, "wer")
    assert (found.outcome, found.said) == ("higher", "better")
    assert replace(found, scored=False).said == "higher"
