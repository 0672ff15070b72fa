"""What experiments write: tables, plots, and the page of all recipes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from twins.recipe import BASE, written

from tunesmith.experiments import Lab, find_recipe, read_recipe
from tunesmith.experiments.plot import Point, draw, drawn_passes, plot_name
from tunesmith.experiments.recipe import MORE
from tunesmith.experiments.running import Found
from tunesmith.experiments.tables import MORE as COLUMNS
from tunesmith.experiments.tables import Filled, Several
from tunesmith.experiments.writing import latex, markdown, texts_of


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


def test_the_overview_has_a_row_for_each_recipe_and_each_claim(tmp_path: Path) -> None:
    lab = Lab(tmp_path / "out")
    outcome = lab.run(read_recipe(written(tmp_path), "smoke"))
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    confirmed = sum(claim["status"] == "confirmed" for claim in outcome["claims"])
    row = f"| [mine](mine/README.md) | smoke | {outcome['verdict']} | {confirmed} of 1 |"
    assert row in text
    assert f"| mine | Tuning helps | {outcome['claims'][0]['status']} |" in text
    assert f"{outcome['machine']}.\n" in text


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
