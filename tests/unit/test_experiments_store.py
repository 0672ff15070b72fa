"""Runs are kept by content, and only what changed is run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from twins.recipe import BASE, written

from tunesmith.errors import InputError
from tunesmith.experiments import Lab, read_recipe
from tunesmith.experiments.store import Store


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
