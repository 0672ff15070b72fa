"""`tunesmith features`: every template is told, and found where it fires."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import refused, tunesmith

from tunesmith.decode.templates import SETS, TEMPLATES
from tunesmith.training.pipeline import Training, train


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("features")
    (folder / "src").write_text("das haus ist klein\ndas buch ist alt\nein haus\nein buch\n" * 10)
    (folder / "tgt").write_text("the house is small\nthe book is old\na house\na book\n" * 10)
    train(Training(folder / "src", folder / "tgt", order=3), folder / "model", 1)
    return folder / "model"


def test_all_templates_and_sets_are_listed() -> None:
    ran = tunesmith("features")
    for known in TEMPLATES:
        row = next(line for line in ran.out.splitlines() if line.startswith(f"{known.name} "))
        assert known.example in row
        assert row.rstrip().endswith(".txt") == bool(known.wants)
    assert all(known.name in ran.out for known in SETS)
    told = tunesmith("features", "eidelman2012", "rule-id", "--json").object
    names = {each["name"] for each in told["templates"]}
    assert names == {"pairs", "insertions", "bigrams", "rule-id"}
    assert [each["name"] for each in told["sets"]] == ["eidelman2012"]


def test_what_the_model_lacks_is_told(model: Path, tmp_path: Path) -> None:
    assert "not in the model" in tunesmith("features", tmp_path).out
    lacking = [line for line in tunesmith("features", model).out.splitlines() if "not in" in line]
    assert [line.split()[0] for line in lacking] == ["tag-bigrams"]
    ran = tunesmith("features", model, "--sentence", "das haus", "--json")
    assert "tag-bigrams is left out: the model has no tags.txt" in ran.err
    assert "WP:haus~house" in ran.object["features"]


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_a_sentence_shows_what_fires(model: Path, kind: str) -> None:
    words = "features", model, "pairs", "class-bigrams", "--sentence", "das haus", "--kind", kind
    told = tunesmith(*words, "--json").object
    assert told["translation"] == "the house"
    assert told["features"]["WP:haus~house"] == 1.0
    assert {name[:3] for name in told["features"]} == {"WP:", "TC:"}
    assert "WP:haus~house" in tunesmith(*words).out


def test_what_is_not_known_is_refused(model: Path, tmp_path: Path) -> None:
    assert "rule-id" in refused(tmp_path, "features", "rule-ids").err
    assert "name the model" in refused(tmp_path, "features", "pairs", "-s", "das haus").err
    assert "no translation" in refused(tmp_path, "features", model, "-s", " ").err
