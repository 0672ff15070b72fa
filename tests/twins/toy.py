"""A tiny language pair, and a model of it that takes a second to train."""

from __future__ import annotations

import random
from pathlib import Path

from tunesmith import Weights
from tunesmith.training.pipeline import Training, train

NOUNS = {"haus": "house", "buch": "book", "auto": "car", "kind": "child", "brot": "bread"}
ADJECTIVES = {"klein": "small", "alt": "old", "neu": "new", "rot": "red"}
# Said in more than one way, so that there is something to choose.
VERBS = {"sieht": ("sees", "is seeing"), "nimmt": ("takes", "is taking"), "hat": ("has", "has got")}
# Weights to begin with, from which there is much to gain.
POOR = {
    "phrase": {"lm": -0.3, "words": -1.0, "p(f|e)": 0.1, "distortion": 0.1, "unknown": -10.0},
    "hiero": {"lm": -0.1, "words": -0.5, "CountEF": 0.1, "glue": 1.0, "unknown": -10.0},
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


def make_world(folder: Path) -> Path:
    """Write `train`, `dev` and `test` (`.src`, `.tgt`), a model of both kinds, and poor weights."""
    for name, size, seed in (("train", 300, 1), ("dev", 40, 2), ("test", 40, 3)):
        made = pairs(size, seed)
        (folder / f"{name}.src").write_text("".join(f"{source}\n" for source, _ in made))
        (folder / f"{name}.tgt").write_text("".join(f"{target}\n" for _, target in made))
    given = Training(folder / "train.src", folder / "train.tgt", kind="both", order=3)
    train(given, folder / "model", 1)
    for kind, weights in POOR.items():
        Weights(weights).save(folder / f"{kind}.toml")
    return folder
