"""`tunesmith local` and `translate --local`, as users run them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import tunesmith
from twins.toy import make_world

pytest.importorskip("tantivy")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_world(tmp_path_factory.mktemp("world"))
    data = ("--data", folder / "dev.src", folder / "dev.tgt")
    weights = ("--weights", folder / "phrase.toml")
    built = tunesmith(
        *("local", "build", folder / "model", *data, *weights, "--k", 20),
        *("--out", folder / "index", "--json"),
    )
    assert built.code == 0, built.err
    assert built.object["examples"] == 40 and built.object["k"] == 20
    return folder


def translate(world: Path, *more: object) -> list[str]:
    ran = tunesmith(
        *("translate", world / "model", "--weights", world / "phrase.toml"),
        *("--input", world / "test.src", "--threads", 1, *more),
    )
    assert ran.code == 0, ran.err
    return ran.out.splitlines()


def test_neighbours_are_shown(world: Path) -> None:
    sentence = (world / "dev.src").read_text().splitlines()[0]
    found = tunesmith("local", "query", world / "index", sentence, "-k", 3, "--json").object
    near = found["neighbours"]
    assert len(near) == 3 and near[0]["similarity"] == pytest.approx(1.0)
    assert near[0]["source"] == sentence
    left = tunesmith(
        *("local", "query", world / "index", sentence, "-k", 3, "--json", "--leave-one-out")
    ).object["neighbours"]
    assert all(each["source"] != sentence for each in left)
    shown = tunesmith("local", "query", world / "index", sentence)
    assert shown.code == 0 and "similarity" in shown.out
    nothing = tunesmith("local", "query", world / "index", "zzz")
    assert nothing.code == 0 and "no example shares a word" in nothing.err


def test_lambda_decides_how_far_weights_move(world: Path) -> None:
    plain = translate(world)
    local = ("--local", world / "index", "--k", 10)
    for method in ("mbuu", "ebuu"):
        assert translate(world, *local, "--method", method, "--lambda", 0) == plain
        moved = translate(world, *local, "--method", method, "--lambda", 50)
        assert moved != plain
    records = [json.loads(line) for line in translate(world, *local, "--json", "--lambda", 50)]
    assert all(len(each["local"]["neighbours"]) == 10 for each in records)
    assert all(each["local"]["moved"] for each in records)
    assert [each["translation"] for each in records] == moved


def test_explanations_use_the_weights_of_the_sentence(world: Path) -> None:
    options = ("--local", world / "index", "--lambda", 50, "--explain")
    (record, *_) = [json.loads(line) for line in translate(world, *options, "--json")]
    best = record["derivations"][0]
    assert sum(best["contributions"].values()) == pytest.approx(best["score"], rel=1e-3)
    shown = "\n".join(translate(world, *options))
    assert "similarity" in shown and "moved by" in shown


def test_examples_come_and_go(world: Path, tmp_path: Path) -> None:
    for side, text in (("src", "das haus\n"), ("tgt", "the house\n")):
        (tmp_path / side).write_text(text)
    added = tunesmith(
        *("local", "add", world / "index", world / "model", "--weights", world / "phrase.toml"),
        *("--data", tmp_path / "src", tmp_path / "tgt", "--json"),
    )
    assert added.object == {"ids": [40], "examples": 41}
    assert tunesmith("local", "info", world / "index", "--json").object["examples"] == 41
    removed = tunesmith("local", "remove", world / "index", 40, 99, "--json")
    assert removed.object == {"removed": 1, "examples": 40}


def test_a_build_leaves_the_files_of_others_alone(world: Path, tmp_path: Path) -> None:
    notes = tmp_path / "words" / "notes"
    notes.parent.mkdir()
    notes.write_text("mine")
    ran = tunesmith(
        *("local", "build", world / "model", "--data", world / "dev.src", world / "dev.tgt"),
        *("--weights", world / "phrase.toml", "--out", tmp_path),
    )
    assert ran.code == 2 and "the folder is not empty: it has words" in " ".join(ran.err.split())
    assert notes.read_text() == "mine" and [*tmp_path.iterdir()] == [notes.parent]


@pytest.mark.parametrize(
    "words, said",
    [
        (["--method", "mbuu"], "belong to --local"),
        (["--local", "index", "--nbest", "5", "--nbest-out", "x"], "the best translation only"),
        (["--local", "index", "--mbr", "bleu"], "the best translation only"),
        (["--local", "nowhere"], "no index here"),
        (["--local", "index", "--method", "nothing"], "nothing"),
        (["--local", "index", "--method", "mira", "--lambda", "1"], "has no strength"),
        (["--local", "index", "--search", "stack=3"], "other settings"),
    ],
)
def test_bad_options(
    world: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(world)
    ran = tunesmith("translate", "model", "--weights", "phrase.toml", "-i", "test.src", *words)
    assert ran.code == 2 and said in " ".join(ran.err.split())


def test_another_model_is_refused(world: Path) -> None:
    ran = tunesmith(
        *("translate", world / "model", "--kind", "hiero", "--weights", world / "hiero.toml"),
        *("--input", world / "test.src", "--local", world / "index"),
    )
    assert ran.code == 2 and "another model" in ran.err
