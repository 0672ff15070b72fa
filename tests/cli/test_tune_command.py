"""`tunesmith tune` as one types it: our decoders and others in the loop."""

from __future__ import annotations

import random
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from running import COMMAND, tunesmith

from tunesmith import Weights
from tunesmith.training.pipeline import Training, train

NOUNS = {"haus": "house", "buch": "book", "auto": "car", "kind": "child", "brot": "bread"}
ADJECTIVES = {"klein": "small", "alt": "old", "neu": "new", "rot": "red"}
# Said in more than one way, so that there is something to choose.
VERBS = {"sieht": ("sees", "is seeing"), "nimmt": ("takes", "is taking"), "hat": ("has", "has got")}
KEYS = {
    *("tuner", "start", "tuned", "heldout", "iterations", "seconds"),
    *("decode_seconds", "optimise_seconds", "nonzero"),
}


def pairs(count: int, seed: int) -> list[tuple[str, str]]:
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        (a, b), adjective = chance.sample(list(NOUNS), 2), chance.choice(list(ADJECTIVES))
        verb = chance.choice(list(VERBS))
        said = VERBS[verb][chance.random() < 0.3]
        # The verb comes last in one language and second in the other.
        source = f"das {adjective}e {a} ein {b} {verb}"
        found.append((source, f"the {ADJECTIVES[adjective]} {NOUNS[a]} {said} a {NOUNS[b]}"))
    return found


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune")
    for name, size, seed in (("train", 300, 1), ("dev", 40, 2), ("test", 40, 3)):
        made = pairs(size, seed)
        (folder / f"{name}.src").write_text("".join(f"{source}\n" for source, _ in made))
        (folder / f"{name}.tgt").write_text("".join(f"{target}\n" for _, target in made))
    given = Training(folder / "train.src", folder / "train.tgt", kind="both", order=3)
    train(given, folder / "model", 1)
    Weights({"lm": -0.3, "words": -1.0, "p(f|e)": 0.1, "distortion": 0.1, "unknown": -10.0}).save(
        folder / "phrase.toml"
    )
    Weights({"lm": -0.1, "words": -0.5, "CountEF": 0.1, "glue": 1.0, "unknown": -10.0}).save(
        folder / "hiero.toml"
    )
    return folder


def asked(world: Path, kind: str, *more: object) -> list[object]:
    texts = ("--source", world / "dev.src", "--reference", world / "dev.tgt")
    return ["tune", world / "model", *texts, "-w", world / f"{kind}.toml", "--kind", kind, *more]


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("space", ["list", "forest"])
def test_tuning_makes_translations_better(world: Path, kind: str, space: str) -> None:
    out = world / "tuned.toml"
    held = ("--heldout", world / "test.src", "--heldout-reference", world / "test.tgt")
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


@pytest.mark.parametrize("tuner", ["kbmira", "pro", "rampion", "risk", "mira", "rm", "adagrad"])
def test_every_kind_of_tuner_works_with_a_decoder(world: Path, tuner: str) -> None:
    ran = tunesmith(*asked(world, "phrase", "-t", tuner, "--epochs", 2, "--json"))
    assert ran.code == 0, ran.err
    assert ran.object["tuned"] > ran.object["start"] + 1


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


def test_a_killed_run_goes_on_to_the_same_weights(world: Path) -> None:
    options = ("--epochs", 4, "--set", "restarts=2", "--threads", 1)
    whole, killed = world / "whole", world / "killed"
    assert tunesmith(*asked(world, "phrase", *options, "--run", whole)).code == 0
    chance = random.Random(5)
    for _ in range(20):
        command = [*asked(world, "phrase", *options, "--run", killed)]
        if (killed / "config.json").exists():
            command.append("--resume")
        running = subprocess.Popen(
            [*COMMAND, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(chance.uniform(0.5, 1.5))
        running.send_signal(signal.SIGKILL)
        running.wait()
        if (killed / "result.json").exists():
            break
    ran = tunesmith(*asked(world, "phrase", *options, "--run", killed, "--resume"))
    assert ran.code == 0, ran.err
    assert Weights.load(killed / "weights.toml") == Weights.load(whole / "weights.toml")


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
