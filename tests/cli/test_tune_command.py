"""`tunesmith tune` as one types it: our decoders and others in the loop."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from running import tunesmith
from twins.toy import make_world

from tunesmith import Weights

KEYS = {
    *("tuner", "start", "tuned", "heldout", "iterations", "seconds"),
    *("decode_seconds", "optimise_seconds", "nonzero"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("tune"))


def asked(world: Path, kind: str, *more: object) -> list[object]:
    texts = ("--source", world / "dev.src", "--reference", world / "dev.tgt")
    return ["tune", world / "model", *texts, "-w", world / f"{kind}.toml", "--kind", kind, *more]


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("space", ["list", "forest"])
def test_tuning_makes_translations_better(world: Path, kind: str, space: str) -> None:
    out = world / "tuned.toml"
    held = ("--heldout", world / "test.src", world / "test.tgt")
    options = ("--space", space, "--epochs", 4, "--set", "restarts=3", "--json")
    ran = tunesmith(*asked(world, kind, *held, *options, "-o", out))
    assert ran.code == 0, ran.err
    found = ran.object
    assert found.keys() >= KEYS
    assert found["tuned"] > found["start"] + 5
    assert found["heldout"][0] > found["heldout_start"][0] + 5
    assert 1 <= found["iterations"] <= 4
    ran = tunesmith(
        *("translate", world / "model", "-i", world / "test.src", "-w", out, "--kind", kind)
    )
    assert ran.code == 0, ran.err
    references = (world / "test.tgt").read_text().splitlines()
    right = sum(a == b for a, b in zip(ran.out.splitlines(), references, strict=True))
    assert right > 10


@pytest.mark.parametrize(
    ("tuner", "space", "sizes"),
    [
        ("mert", "forest", r"40 forests, [\d,]+ edges"),
        ("mert", "list", r"40 lists, [\d,]+ hypotheses"),
        ("mira", "list", "40 sentences"),
        ("mira", "forest", "40 sentences"),
    ],
)
def test_what_a_run_begins_with_has_its_own_name(
    world: Path, tuner: str, space: str, sizes: str
) -> None:
    ran = tunesmith(*asked(world, "phrase", "-t", tuner, "--space", space, "--epochs", 1))
    assert re.match(rf"{tuner} for bleu: {sizes}, \d+ features\n", ran.err), ran.err


@pytest.mark.parametrize("tuner", ["kbmira", "pro", "rampion", "risk", "mira", "rm", "adagrad"])
def test_every_kind_of_tuner_works_with_a_decoder(world: Path, tuner: str) -> None:
    ran = tunesmith(*asked(world, "phrase", "-t", tuner, "--epochs", 2, "--json"))
    assert ran.code == 0, ran.err
    assert ran.object["tuned"] > ran.object["start"] + 1


def test_held_out_texts_come_in_pairs(world: Path) -> None:
    pair = ("--heldout", world / "test.src", world / "test.tgt")
    twice = (*pair, "--heldout", world / "dev.src", world / "dev.tgt")
    ran = tunesmith(*asked(world, "phrase", *twice, "--epochs", 1, "--json", "-t", "kbmira"))
    assert ran.code == 0, ran.err
    assert len(ran.object["heldout"]) == 2
    assert ran.object["heldout"][1] == ran.object["tuned"]
    ran = tunesmith(*asked(world, "phrase", "--heldout", world / "test.src", "--json"))
    assert ran.code == 2
    assert "--heldout SOURCE REFERENCE" in ran.err


def test_a_regime_is_chosen_by_name(world: Path) -> None:
    options = ("-t", "mira", "--epochs", 1, "--json", "--regime")
    for regime in ("shards=2,mix=2", "batch=5", "delay=2,ordered=false"):
        ran = tunesmith(*asked(world, "phrase", *options, regime))
        assert ran.code == 0, ran.err
        assert ran.object["tuned"] > ran.object["start"]
    ran = tunesmith(*asked(world, "phrase", *options, "shards=0"))
    assert ran.code == 2
    assert "no part of a regime" in ran.err
    ran = tunesmith(*asked(world, "phrase", "-t", "mert", "--regime", "batch=2"))
    assert ran.code == 2
    assert "only online tuners" in ran.err


def test_sparse_features_are_tuned_kept_and_used(world: Path) -> None:
    out = world / "sparse.toml"
    options = ("-t", "kbmira", "--epochs", 2, "--features", "rule-id", "--features", "bigrams")
    ran = tunesmith(*asked(world, "phrase", *options, "--json", "-o", out))
    assert ran.code == 0, ran.err
    assert ran.object["nonzero"] > 50
    weights = Weights.load(out)
    assert weights.meta["templates"] == ["rule-id", "bigrams"]
    assert any(name.startswith("PT:") for name in weights)
    ran = tunesmith(*("translate", world / "model", "-i", world / "dev.src", "-w", out, "--json"))
    assert "TB:" in ran.out.splitlines()[0]


def test_what_docs_show_works(world: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "docs/tuning.md", "exec"), names)
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines()[:5] for side in ("src", "tgt")
    )
    assert names["learn"](world / "model", lines, references)["lm"] != 0


def test_a_run_is_resumed_only_as_it_was(world: Path) -> None:
    options = ("--run", world / "other", "--epochs", 1)
    features = ("--features", "rule-id", "-t", "kbmira")
    assert tunesmith(*asked(world, "phrase", *options, *features)).code == 0
    assert Weights.load(world / "other" / "weights.toml").meta["templates"] == ["rule-id"]
    for changed in (("--nbest", 7), ("--space", "forest"), ("--search", "stack=3")):
        ran = tunesmith(*asked(world, "phrase", *options, *features, *changed, "--resume"))
        assert ran.code == 2
        assert "another configuration" in ran.err


def test_any_decoder_can_be_tuned(world: Path) -> None:
    """A toy decoder, which chooses between two fixed translations by two weights."""
    script = world / "toy.py"
    script.write_text(
        "import sys\n"
        "weights = dict(line.split() for line in open(sys.argv[1]))\n"
        "for number, line in enumerate(open(sys.argv[2])):\n"
        "    made = []\n"
        "    for text, good in ((line.strip(), 0.0), (f'{line.strip()} end', 1.0)):\n"
        "        score = good * float(weights['good']) + float(weights['noise']) * (1 - good)\n"
        "        made.append((score, text, good))\n"
        "    for score, text, good in sorted(made, reverse=True):\n"
        "        print(f'{number} ||| {text} ||| good= {good} noise= {1 - good} ||| {score}')\n"
    )
    source = world / "toy.src"
    source.write_text("a b c d\ne f g h\n")
    (world / "toy.ref").write_text("a b c d end\ne f g h end\n")
    start = world / "toy.toml"
    Weights({"good": 0.0, "noise": 1.0}).save(start)
    ran = tunesmith(
        *("tune", "--command", f"python3 {script} {{weights}} {{source}}", "-w", start),
        *("--source", source, "-r", world / "toy.ref", "--json"),
    )
    assert ran.code == 0, ran.err
    assert ran.object["start"] < 80
    assert ran.object["tuned"] == pytest.approx(100.0)
    ran = tunesmith(
        *("tune", "--command", "false {weights} {source}", "-w", start),
        *("--source", source, "-r", world / "toy.ref"),
    )
    assert ran.code == 2
    assert "status 1" in ran.err


def test_blank_references_are_refused_by_line_with_what_can_be_done(world: Path) -> None:
    blank = world / "blank.tgt"
    lines = (world / "dev.tgt").read_text().splitlines()
    blank.write_text("\n".join([*lines[:4], "", *lines[5:], ""]))
    ran = tunesmith("tune", world / "model", "-s", world / "dev.src", "-r", blank)
    assert ran.code == 2
    remedy = "fill it in, or take the line out of source and references"
    assert f"{blank}:5: the reference is blank ({remedy})" in ran.err


def test_what_does_not_fit_is_refused(world: Path) -> None:
    assert "one decoder" in tunesmith(*asked(world, "phrase", "--command", "x")).err
    assert "--resume without" in tunesmith(*asked(world, "phrase", "--resume")).err
    short = world / "short"
    short.write_text("only one\n")
    ran = tunesmith("tune", world / "model", "-s", world / "dev.src", "-r", short)
    assert ran.code == 2
    assert "short" in ran.err
    assert "no features are named" in tunesmith(*asked(world, "phrase", "--features", "nix")).err
    given = ("-s", short, "-r", short, "-w", world / "phrase.toml")
    assert "--features" in tunesmith("tune", "--command", "x", *given, "--features", "bigrams").err
    assert "--space" in tunesmith("tune", "--command", "x", *given, "--space", "forest").err
    assert "no setting" in tunesmith(*asked(world, "phrase", "--search", "nix=1")).err
    shutil.rmtree(world / "nowhere", ignore_errors=True)
    assert tunesmith("tune", world / "nowhere", "-s", short, "-r", short).code == 2
