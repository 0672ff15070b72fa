"""Verdicts follow from the evidence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from twins.recipe import BASE, written

from tunesmith.experiments import Evidence, Judged, Lab, overall, read_recipe, verdict
from tunesmith.experiments.claims import Difference, Status, _separate, compared_rows, could_differ
from tunesmith.experiments.recipe import Claim
from tunesmith.experiments.writing import evidence_text


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


def test_evidence_of_an_error_rate_says_better_not_higher() -> None:
    ours, theirs = [np.array([[0.0, 10.0]] * 20)], [np.array([[5.0, 10.0]] * 20)]
    found = compared_rows("t", "a", "b", ours, theirs, "wer")
    assert (found.outcome, found.said) == ("higher", "better")
    assert replace(found, scored=False).said == "higher"
