"""The phrase-based decoder: speed by search setting, beside Moses where `MOSES` names its decoder.

Speeds are sentences per CPU second of one thread, of a fresh translator's first pass: rules that
were scored once are remembered, so that a second pass over the same sentences is faster. A setting
of ours counts against one of Moses' if its mean model score is at least as good. Moses reads tables
that were filtered to the sentences; its loading, measured in the same turn with no sentences, is
left out.
"""

from __future__ import annotations

import gzip
import random
import re
import statistics
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import Setting, batched, text_lines
from benchmarks.fresh import in_fresh_process
from benchmarks.harness import (
    Claim,
    Outcome,
    best_of,
    in_turn,
    less,
    say,
    several,
    side_by_side,
    timed,
)
from benchmarks.rivals import filtered, phrases, run, totals
from tunesmith import _core
from tunesmith.decode import moses
from tunesmith.decode.translation import Model

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
MOSES_SETTINGS = ((1, 300, 100), (1, 1000, 100), (1, 5000, 1000), (0, 0, 200))
"""Moses' search algorithm (1: cube pruning, 0: stacks), pop limit, stack size."""
LABELS = ("LM0", "TranslationModel0", 4, "LexicalReordering0")
SPARSE_WEIGHTS = 1_000_000
LAST_DIGIT = 5e-6
PART = 50
"""Sentences that are translated in one go where times of two things are compared."""


def _model(setting: Setting, cache: Path) -> Model:
    return Model.of_moses(setting.file("multi30k-moses", "moses.mira.ini"), cache)


def _lines(setting: Setting, count: int) -> list[str]:
    return text_lines(setting.file("multi30k", "test_2016_flickr.de.gz"))[:count]


class Ours:
    """Moses' model, converted: a new decoder for every pass."""

    def __init__(self, setting: Setting, folder: Path) -> None:
        config = moses.read_config(setting.file("multi30k-moses", "moses.mira.ini"))
        self.table, self.lm = moses.converted(config, folder, lambda _: None)
        self.weights = list(config.weights.items())

    def first_pass(self, lines: Sequence[str], pops: int, stack: int) -> tuple[float, float]:
        """Translate with a decoder that has seen nothing; return CPU seconds and mean score."""
        decoder = _core.Decoder.phrase(self.table, self.lm, moses=LABELS)
        ready = decoder.translator(self.weights, [("pop_limit", pops), ("stack", stack)])
        found, time = timed(lambda: ready.translate(lines, 1))
        return time.cpu, statistics.fmean(each.score or 0.0 for each in found)


class MosesDecoder:
    """Moses' decoder with tables that hold what some sentences need."""

    def __init__(self, setting: Setting, program: Path, folder: Path, lines: list[str]) -> None:
        self.program, self.folder, self.count = program, folder, len(lines)
        self.text = "".join(f"{line}\n" for line in lines)
        home = setting.file("multi30k-moses")
        needed = phrases(lines)
        for name in ("phrase-table", "reordering-table"):
            filtered(home / f"{name}.gz", needed, folder / name)
        text = (home / "moses.mira.ini").read_text(encoding="utf-8")
        text = re.sub(r"path=(phrase-table|reordering-table)\.gz", rf"path={folder}/\1", text)
        text = text.replace("path=lm.arpa.gz", f"path={home}/lm.arpa.gz")
        (folder / "moses.ini").write_text(text, encoding="utf-8")

    def _run(self, search: tuple[int, int, int], stdin: str, *more: str) -> float:
        algorithm, pops, stack = search
        arguments = f"-f moses.ini -threads 1 -search-algorithm {algorithm} -stack {stack}"
        arguments += f" -cube-pruning-pop-limit {pops}"
        return run(self.program, [*arguments.split(), *more], self.folder, stdin).cpu

    def decode(self, search: tuple[int, int, int]) -> float:
        """Return the CPU seconds of decoding, loading included."""
        return self._run(search, self.text)

    def load(self, search: tuple[int, int, int]) -> float:
        """Return the CPU seconds of loading."""
        return self._run(search, "")

    def score(self, search: tuple[int, int, int]) -> float:
        """Return the mean model score."""
        self._run(search, self.text, "-n-best-list", "nbest", "1")
        nbest = (self.folder / "nbest").read_text(encoding="utf-8")
        return statistics.fmean(totals(nbest, self.count))


def speed(setting: Setting) -> Outcome:
    """Translate with one thread at several settings; in turn with Moses where it is given."""
    lines = _lines(setting, 300)
    outcome = Outcome("Phrase-based decoding, 300 sentences, one thread")
    outcome.notes.append(FIRST_PASS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours = Ours(setting, folder)
        reached: dict[tuple[int, int], tuple[float, float]] = {}
        for pops, stack in SETTINGS:
            runs = [ours.first_pass(lines, pops, stack) for _ in range(setting.times(3))]
            rates = [len(lines) / cpu for cpu, _ in runs]
            reached[pops, stack] = max(rates), runs[0][1]
            _speed_row(outcome, f"ours, pop {pops:,}, stack {stack:,}", rates, runs[0][1])
        if setting.rivals.moses is None:
            outcome.notes.append("MOSES is not set: ours alone, nothing is said about Moses.")
        else:
            _beside_moses(setting, ours, reached, lines, folder, outcome)
        _threads_and_memory(setting, ours, folder, outcome)
    return outcome


FIRST_PASS = (
    "Each run is the first pass of a fresh translator; loading is left out. A second pass is "
    "faster, because rules that were scored are remembered."
)


def _beside_moses(
    setting: Setting,
    ours: Ours,
    reached: dict[tuple[int, int], tuple[float, float]],
    lines: list[str],
    folder: Path,
    outcome: Outcome,
) -> None:
    """Run Moses at its settings, and ours at the fastest with at least its score, in turn."""
    assert setting.rivals.moses is not None
    theirs = MosesDecoder(setting, setting.rivals.moses, folder, lines)
    for search in MOSES_SETTINGS[: 1 if setting.quick else None]:
        score = theirs.score(search)
        label = f"Moses, search {search[0]}, pop {search[1]:,}, stack {search[2]:,}"
        good = [at for at, (_, mean) in reached.items() if mean >= score - LAST_DIGIT]
        pops, stack = max(good, key=lambda at: reached[at][0], default=SETTINGS[-1])
        mine, whole, loading = in_turn(
            setting.times(3),
            lambda at=(pops, stack): ours.first_pass(lines, *at)[0],  # type: ignore[misc]
            partial(theirs.decode, search),
            partial(theirs.load, search),
        )
        decoding = less(whole, loading)
        rates = [[len(lines) / cpu for cpu in runs] for runs in (decoding, mine)]
        _speed_row(outcome, label, rates[0], score)
        here = f"ours in turn, pop {pops:,}, stack {stack:,}"
        _speed_row(outcome, here, rates[1], reached[pops, stack][1])
        quotient = max(rates[1]) / max(rates[0]) if good else 0.0
        outcome.claims.append(
            Claim(f"speed at the score of {label}, ours / Moses", quotient, 1.0, "at least")
        )


def _speed_row(outcome: Outcome, decoder: str, rates: list[float], score: float) -> None:
    say(f"  {decoder}: {several(rates, 1)}, {score:.5f}")
    outcome.rows.append(
        {
            "decoder": decoder,
            "sentences per CPU s": max(rates),
            "runs": several(rates, 1),
            "mean model score": f"{score:.5f}",
        }
    )


def _threads_and_memory(setting: Setting, ours: Ours, folder: Path, outcome: Outcome) -> None:
    many = _lines(setting, 1000)
    default = _model(setting, folder).translator()
    both, alone = side_by_side(
        setting.times(5),
        [many],
        lambda part: default._core.translate(part, 2),
        lambda part: default._core.translate(part, 1),
    )
    _, load = best_of(5, lambda: _core.Decoder.phrase(ours.table, ours.lm))
    outcome.claims += [
        Claim("two threads against one, wall", alone.wall / both.wall, 1.8, "at least"),
        Claim("loading the binary model", load.wall, 0.2, "at most", "s"),
    ]
    fresh = in_fresh_process(
        "benchmarks.phrase_bench:decode_once",
        table=str(ours.table),
        lm=str(ours.lm),
        weights=dict(ours.weights),
        lines=many,
    )
    outcome.notes.append(
        f"The process needed {(fresh.peak - fresh.before) / 1e6:.0f} MB beyond the interpreter's "
        f"{fresh.before / 1e6:.0f} MB, mapped files included; the table is not filtered."
    )


def decode_once(
    table: str, lm: str, weights: dict[str, float], lines: list[str], keep: list[Any]
) -> int:
    """Translate in a process of its own."""
    decoder = _core.Decoder.phrase(table, lm, moses=LABELS)
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
        named = _sparse_names(setting.file("multi30k-moses", "phrase-table.gz"))
        base: float | None = None
        for title, templates in (
            ("none", []),
            ("rule-id, order", ["rule-id", "order"]),
            ("green2013", ["green2013"]),
            ("green2013, bigrams", ["green2013", "bigrams"]),
        ):
            decoder = _core.Decoder.phrase(table, lm, moses=LABELS, templates=templates)
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
