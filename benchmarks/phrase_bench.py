"""The phrase-based decoder against Moses: speed at each of its model scores, lists, sparse weights.

Moses' four points were measured on the first 300 sentences of test 2016 with the weights of its
batch MIRA; the yardstick carries its times over to this machine. A setting of ours counts against a
point if its mean model score is at least as good (to the last digit that Moses' is known to).
"""

from __future__ import annotations

import gzip
import random
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import Setting, batched, text_lines
from benchmarks.fresh import in_fresh_process
from benchmarks.harness import Claim, Outcome, best_of, side_by_side
from benchmarks.peers import MOSES_DECODING, MOSES_MEMORY
from benchmarks.yardstick import Yardstick
from tunesmith import _core, moses
from tunesmith.translation import Model

SETTINGS = (
    (100, 100),
    (150, 100),
    (200, 100),
    (250, 100),
    (300, 100),
    (500, 100),
    (1000, 100),
    (1000, 200),
    (2000, 500),
    (5000, 1000),
)
"""Pop limits and stack sizes."""
SPARSE_WEIGHTS = 1_000_000
LAST_DIGIT = 5e-6
PART = 50
"""Sentences that are translated in one go where times of two things are compared."""


def _model(setting: Setting, cache: Path) -> Model:
    return Model.of_moses(setting.file("multi30k-moses", "moses.mira.ini"), cache)


def _lines(setting: Setting, count: int) -> list[str]:
    return text_lines(setting.file("multi30k", "test_2016_flickr.de.gz"))[:count]


def speed(setting: Setting, yardstick: Yardstick) -> Outcome:
    """Translate with one thread at several settings; compare at Moses' model scores."""
    lines = _lines(setting, 300)
    outcome = Outcome("Phrase-based decoding, 300 sentences, one thread")
    with tempfile.TemporaryDirectory() as folder:
        model = _model(setting, Path(folder))
        ours: list[tuple[float, float]] = []
        for pops, stack in SETTINGS:
            translator = model.translator(settings={"pop_limit": pops, "stack": stack})
            found, time = best_of(
                setting.times(3),
                partial(_scores, translator._core, lines),
            )
            score = statistics.fmean(found)
            ours.append((len(lines) / time.cpu, score))
            outcome.rows.append(
                {
                    "decoder": f"ours, pop {pops:,}, stack {stack:,}",
                    "sentences per CPU s": len(lines) / time.cpu,
                    "mean model score": f"{score:.5f}",
                }
            )
        for name, rate, score in MOSES_DECODING:
            here = rate / yardstick.middle
            good = [speed for speed, reached in ours if reached >= score - LAST_DIGIT]
            outcome.rows.append(
                {
                    "decoder": f"Moses, {name} (carried over)",
                    "sentences per CPU s": here,
                    "mean model score": f"{score:.5f}",
                    "ours / Moses": max(good, default=0.0) / here,
                }
            )
            outcome.claims.append(
                Claim(
                    f"speed at Moses' score with {name}, ours / Moses",
                    max(good, default=0.0) / here,
                    3.0,
                    "at least",
                )
            )
        many = _lines(setting, 1000)
        default = model.translator()
        both, alone = side_by_side(
            setting.times(5),
            [many],
            lambda part: default._core.translate(part, 2),
            lambda part: default._core.translate(part, 1),
        )
        outcome.claims.append(
            Claim("two threads against one, wall", alone.wall / both.wall, 1.8, "at least")
        )
        config = moses.read_config(setting.file("multi30k-moses", "moses.mira.ini"))
        table, lm = moses.converted(config, Path(folder), lambda _: None)
        _, load = best_of(5, lambda: _core.Decoder.phrase(table, lm))
        outcome.claims.append(Claim("loading the binary model", load.wall, 0.2, "at most", "s"))
        fresh = in_fresh_process(
            "benchmarks.phrase_bench:decode_once",
            table=str(table),
            lm=str(lm),
            weights=dict(config.weights),
            lines=many,
        )
    used = fresh.peak - fresh.before
    share = used / MOSES_MEMORY["filtered"]
    outcome.claims.append(
        Claim(
            "peak memory, the same unfiltered model, ours / Moses",
            used / MOSES_MEMORY["unfiltered"],
            0.5,
            "at most",
        )
    )
    outcome.notes.append(
        f"The process needed {used / 1e6:.0f} MB beyond the interpreter's "
        f"{fresh.before / 1e6:.0f} MB, mapped files included: {share:.2f} of what "
        "Moses needs for a model that was filtered to the test set beforehand."
    )
    return outcome


def _scores(translator: _core.Translator, lines: Sequence[str]) -> list[float]:
    return [each.score or 0.0 for each in translator.translate(lines, 1)]


def decode_once(
    table: str, lm: str, weights: dict[str, float], lines: list[str], keep: list[Any]
) -> int:
    """Translate in a process of its own."""
    labels = ("LM0", "TranslationModel0", 4, "LexicalReordering0")
    decoder = _core.Decoder.phrase(table, lm, moses=labels)
    keep.append(decoder)
    return len(decoder.translator(list(weights.items()), []).translate(lines, 1))


def lists(setting: Setting) -> Outcome:
    """What lists of 500 and of 50,000 cost on top of decoding."""
    lines = _lines(setting, 1000)
    outcome = Outcome("Lists from phrase-based decoding, one thread")
    with tempfile.TemporaryDirectory() as folder:
        model = _model(setting, Path(folder))
        for pops, stack in ((300, 100), (1000, 200), (5000, 1000)):
            part = lines[: 200 if pops > 1000 else 1000]
            translator = model.translator(settings={"pop_limit": pops, "stack": stack})._core
            listed = translator.nbest(part, 500, True, 1).hypotheses
            one, lists = side_by_side(
                setting.times(7),
                batched(part, PART),
                partial(translator.translate, threads=1),
                partial(translator.nbest, k=500, unique=True, threads=1),
            )
            outcome.rows.append(
                {
                    "search": f"pop {pops:,}, stack {stack:,}",
                    "1-best, CPU s": one.cpu,
                    "500 unique, CPU s": lists.cpu,
                    "hypotheses": listed,
                    "on top": lists.cpu / one.cpu - 1.0,
                }
            )
        outcome.notes.append(
            f"Both are done {PART} sentences at a time and in turn; of each part the least time of "
            "seven counts."
        )
        for row, limit in zip(outcome.rows, ("300", "1,000"), strict=False):
            outcome.claims.append(
                Claim(
                    f"500 unique on top of 1-best, pop {limit}",
                    float(row["on top"] or 0.0),
                    0.3,
                    "at most",
                )
            )
        translator = model.translator(settings={"pop_limit": 1000, "stack": 200})._core
        long = max(lines[:100], key=lambda line: len(line.split()))
        found, huge = best_of(3, lambda: translator.nbest([long], 50_000, True, 1))
        outcome.claims.append(
            Claim(f"{found.hypotheses:,} unique of one sentence", huge.cpu, 2.0, "at most", "s")
        )
    return outcome


def sparse(setting: Setting) -> Outcome:
    """What a million weights of sparse features cost."""
    lines = _lines(setting, 1000)
    outcome = Outcome("A million sparse features in phrase-based decoding, one thread")
    with tempfile.TemporaryDirectory() as folder:
        model = _model(setting, Path(folder))
        config = moses.read_config(setting.file("multi30k-moses", "moses.mira.ini"))
        table, lm = moses.converted(config, Path(folder), lambda _: None)
        labels = ("LM0", "TranslationModel0", 4, "LexicalReordering0")
        named = _sparse_names(setting.file("multi30k-moses", "phrase-table.gz"))
        base: float | None = None
        for title, templates in (
            ("none", []),
            ("rule-id, order", ["rule-id", "order"]),
            ("green2013", ["green2013"]),
            ("green2013, bigrams", ["green2013", "bigrams"]),
        ):
            decoder = _core.Decoder.phrase(table, lm, moses=labels, templates=templates)
            chance = random.Random(1)
            extra = [(name, chance.gauss(0.0, 0.001)) for name in named] if templates else []
            translator = decoder.translator([*model.weights.items(), *extra], [])
            _, first = best_of(1, partial(translator.translate, lines, 1))
            _, again = best_of(setting.times(3), partial(translator.translate, lines, 1))
            base = again.cpu if base is None else base
            outcome.rows.append(
                {
                    "templates": title,
                    "weights": len(extra),
                    "first 1,000 sentences, CPU s": first.cpu,
                    "once more, CPU s": again.cpu,
                    "speed lost": 1.0 - base / again.cpu,
                }
            )
        outcome.claims.append(
            Claim(
                "speed lost to a million sparse features",
                float(outcome.rows[2]["speed lost"] or 0.0),
                0.25,
                "at most",
            )
        )
    return outcome


def _sparse_names(phrases: Path) -> list[str]:
    """Names that the phrase pairs of the table have."""
    found: list[str] = []
    with gzip.open(phrases, "rt", encoding="utf-8") as lines:
        for line in lines:
            source, target = (side.replace(" ", "_") for side in line.split(" ||| ")[:2])
            pair = f"{source}~{target}"
            found += [f"PT:{pair}", f"LO:previous-monotone:{pair}"]
            if len(found) >= SPARSE_WEIGHTS:
                break
    return found[:SPARSE_WEIGHTS]
