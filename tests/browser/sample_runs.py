"""Sample runs for the report: a small hope/fear tuner on made-up lists, run for real."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith.runs import RunDirectory

DENSE = [
    "Distortion0",
    "LM0",
    "LexicalReordering0_0",
    "LexicalReordering0_1",
    "LexicalReordering0_2",
    "LexicalReordering0_3",
    "LexicalReordering0_4",
    "LexicalReordering0_5",
    "PhrasePenalty0",
    "TranslationModel0_0",
    "TranslationModel0_1",
    "TranslationModel0_2",
    "TranslationModel0_3",
    "WordPenalty0",
]
SUBJECTS = "a young woman|two men|the old farmer|a group of children|a brown dog|three tourists"
VERBS = "is walking|are standing|sits quietly|are talking|runs quickly|is waiting"
PLACES = "along the river|in front of a shop|near the red bridge|on a crowded street|by the sea"
ENDS = "while it is raining|on a sunny day|with a small umbrella|next to a parked bicycle|at night"
SWAPS = {
    "young": "little",
    "woman": "lady",
    "walking": "going",
    "street": "road",
    "shop": "store",
    "near": "at",
    "quickly": "fast",
    "small": "tiny",
    "the": "a",
    "crowded": "full",
    "parked": "stopped",
    "is": "are",
}


@dataclass
class Lists:
    """Hypotheses with features and gains, and the words behind them."""

    features: np.ndarray[Any, Any]
    gains: np.ndarray[Any, Any]
    texts: list[list[str]]
    references: list[str]
    names: list[str] = field(default_factory=lambda: list(DENSE))


def make_lists(seed: int, sentences: int = 120, size: int = 24, sparse: int = 0) -> Lists:
    """Return lists whose features know something, but not everything, about the gains."""
    words, noise = random.Random(seed), np.random.default_rng(seed)
    names = DENSE + [f"PT:wort_{i}~word_{i}" for i in range(sparse)]
    direction = np.concatenate([noise.normal(0, 0.5, len(DENSE)), np.zeros(sparse)])
    direction[1], direction[13] = 2.0, -0.8
    features = noise.normal(0, 1, (sentences, size, len(names)))
    features[:, :, len(DENSE) :] *= noise.random((sentences, size, sparse)) < 0.03
    gains, texts, references = np.zeros((sentences, size)), [], []
    for i in range(sentences):
        parts = [words.choice(part.split("|")) for part in (SUBJECTS, VERBS, PLACES, ENDS)]
        reference = " ".join(parts).split()
        references.append(" ".join(reference) + " .")
        rows = []
        for j in range(size):
            rate = words.uniform(0.05, 0.6)
            row = [SWAPS.get(w, w) if words.random() < rate else w for w in reference]
            row = [w for w in row if words.random() > rate / 4]
            rows.append(" ".join(row) + " .")
            overlap = sum(min(row.count(w), reference.count(w)) for w in set(row))
            gains[i, j] = max(0.0, 2 * overlap / (len(row) + len(reference)) - 0.3)
        centred = gains[i] - gains[i].mean()
        features[i] += 2.0 * centred[:, None] * direction[None, :]
        # A decoder sorts its list by some model already.
        order = np.argsort(-features[i, :, 1] - 0.3 * noise.normal(size=size))
        features[i], gains[i] = features[i][order], gains[i][order]
        texts.append([rows[k] for k in order])
    return Lists(features, gains, texts, references, names)


def tune(
    lists: Lists, seed: int, epochs: int, shrink: float = 0.0
) -> tuple[list[dict[str, Any]], np.ndarray[Any, Any]]:
    """Return the epoch events and weights of 1-best hope/fear MIRA with an L1 pull."""
    rng = np.random.default_rng((seed, 7))
    train = len(lists.texts) * 3 // 4
    w = rng.normal(0, 0.02, len(lists.names))
    history = []
    for epoch in range(1, epochs + 1):
        begin, before, updates = time.perf_counter(), w.copy(), 0
        chosen: list[tuple[float, float, float, float]] = []
        for i in rng.permutation(train):
            f, g = lists.features[i], lists.gains[i]
            s = f @ w
            hope, fear = int(np.argmax(s + g)), int(np.argmax(s - g))
            chosen.append((g[np.argmax(s)], g[hope], g[fear], s[hope] - s.min()))
            loss = (s[fear] - s[hope]) + (g[hope] - g[fear])
            difference = f[hope] - f[fear]
            if loss > 0 and (norm := float(difference @ difference)) > 0:
                w = w + min(0.01, loss / norm) * difference
                updates += 1
        if shrink:
            w = np.sign(w) * np.maximum(np.abs(w) - shrink, 0)
        model, oracle, prediction, spread = np.array(chosen).T
        picks = [int(np.argmax(f @ w)) for f in lists.features]
        reached = np.array([g[k] for g, k in zip(lists.gains, picks, strict=True)])
        history.append(
            {
                "run": seed,
                "epoch": epoch,
                "score": 100 * reached[:train].mean(),
                "heldout": 100 * reached[train:].mean(),
                "heldout_all": [100 * reached[train:].mean()],
                "model": model.mean(),
                "oracle": oracle.mean(),
                "prediction": prediction.mean(),
                "spread": {"mean": spread.mean(), "sd": spread.std()},
                "nonzero": int(np.count_nonzero(w)),
                "updates": updates,
                "weight_change": float(np.linalg.norm(w - before)),
                "seconds": time.perf_counter() - begin,
                "weights": largest(lists.names, w),
            }
        )
    return history, w


def largest(names: list[str], w: np.ndarray[Any, Any], count: int = 50) -> dict[str, float]:
    order = np.argsort(-np.abs(w))[:count]
    return {names[k]: float(w[k]) for k in order if w[k]}


def write_run(
    path: Path,
    *,
    seeds: int = 1,
    epochs: int = 15,
    sparse: int = 0,
    sentences: int = 120,
    ended: bool = True,
    refused: str | None = None,
    changes: Sequence[Mapping[str, Any]] | None = None,
    start: Mapping[str, Any] | None = None,
) -> Path:
    """Write a whole run directory as the tuner would and return its path."""
    lists = make_lists(11, sentences, sparse=sparse)
    train = sentences * 3 // 4
    first, best = lists.gains[:, 0], lists.gains.max(axis=1)
    options = {"C": 0.01, "bound": 1.0, "oracle": "hope", "prediction": "fear", "epochs": epochs}
    signature = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
    config = {
        "preset": "rm",
        "metric": "bleu",
        "seed": 0,
        "seeds": seeds,
        "options": options,
        "inputs": [
            {"path": "lists/dev.nbest.gz", "size": 5_312_877, "sha256": "9f2c" * 16},
            {"path": "lists/dev.en", "size": 61_542, "sha256": "07be" * 16},
        ],
        "version": "0.1.0",
    }
    with RunDirectory(path).create(config) as run:
        run.event(
            "start",
            **{
                "preset": "rm",
                "metric": "bleu",
                "signature": signature,
                "metric_higher": True,
                "features": len(lists.names),
                "sentences": train,
                "hypotheses": lists.gains[:train].size,
                "start": 100 * first[:train].mean(),
                "oracle": 100 * best[:train].mean(),
                "worst": 100 * lists.gains[:train].min(axis=1).mean(),
                "options": options,
                **(start or {}),
            },
        )
        results = []
        for seed in range(seeds):
            history, w = tune(lists, seed, epochs, shrink=0.0012 if sparse else 0.0)
            for event in history:
                run.event("epoch", **event)
            top = max(history, key=lambda event: event["score"])
            run.event("run_end", run=seed, epoch=top["epoch"], score=top["score"])
            results.append((top["score"], top["heldout"], w))
        if not ended:
            return path
        score, heldout, _ = max(results, key=lambda result: result[0])
        w = np.mean([w for _, _, w in results], axis=0)
        picks = [int(np.argmax(f @ w)) for f in lists.features]
        rows: list[Mapping[str, Any]] = [
            {
                "sentence": i,
                "key": None,
                "source": None,
                "reference": [lists.references[i]],
                "before": lists.texts[i][0],
                "after": lists.texts[i][picks[i]],
                "gain_before": lists.gains[i, 0],
                "gain_after": lists.gains[i, picks[i]],
            }
            for i in range(train)
            if lists.texts[i][0] != lists.texts[i][picks[i]]
        ]
        run.save_changes(rows if changes is None else changes)
        begun, unseen = 100 * first[:train].mean(), 100 * first[train:].mean()
        tuned = begun - 0.4 if refused else score
        gained = [row["gain_after"] - row["gain_before"] for row in rows]
        tests = {
            "bootstrap": {
                "p": 0.41 if refused else 0.001,
                "ci": [tuned - begun - 1.1, tuned - begun + 1.2],
                "difference": tuned - begun,
            },
            "randomisation": {"p": 0.43 if refused else 0.0008},
        }
        run.event(
            "end",
            start=begun,
            tuned=tuned,
            oracle=100 * best[:train].mean(),
            heldout=heldout,
            heldout_start=unseen,
            heldout_all=[heldout],
            heldout_start_all=[unseen],
            baselines={"start": unseen, "consensus": unseen - 0.5},
            verdict="unclear" if refused else "better",
            changed={
                "sentences": train,
                "changed": len(rows),
                "better": sum(gain > 0 for gain in gained),
                "worse": sum(gain < 0 for gain in gained),
            },
            second_metric={
                "name": "chrf",
                "signature": "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0",
                "start": 61.22,
                "tuned": 62.05,
            },
            significance={
                **tests,
                "against": "start",
                "start": tests,
                "on": "heldout",
                "chosen_there": False,
            },
            seconds=3.4,
            weights=largest(lists.names, w),
            status="refused" if refused else "ok",
            reason=refused,
        )
        weights = {name: float(value) for name, value in zip(lists.names, w, strict=True) if value}
        run.save_weights(weights, {"tuner": "rm", "metric": "bleu"})
        run.finish({"tuned": tuned})
    return path


def add_analyses(path: Path) -> None:
    """Add to a run what `tunesmith analyse beams` and `tunesmith reachability` would."""
    run = RunDirectory(path).open()
    names = ("models/tuned.on.development.text.at.beam.4/weights.toml", "other.toml")
    rows = [
        {"weights": name, "beam": beam, "score": 40.0 + 10 * place, "seconds": 0.1 * beam}
        for place, name in enumerate(names)
        for beam in (1, 4, 30, 100)
    ]
    facts = {"source": "dev.de", "metric": "bleu", "signature": "nrefs:1|" * 12, "rows": rows}
    run.add_analysis("beams", facts)
    counts: dict[str, float] = {
        "pairs": 40,
        "whole": 10,
        "used": 24,
        "words": 400,
        "used_words": 100,
    }
    counts |= {"states": 9, "derivations": 12.5, "given_up": 1, "too_long": 1}
    row = {"from": 1, "to": 10, **counts}
    found = {"source": "dev.de", "least": 5, "rows": [row], "total": counts}
    run.add_analysis("reachability", found)
