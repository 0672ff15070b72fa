"""Hierarchical decoding: speed, memory, threads, lists; beside cdec where `CDEC` names it.

Run it with `python -m benchmarks hiero`. The grammar, weights and language model are cdec's, for
the first 300 sentences of test 2016. Speeds are sentences per CPU second of one thread, of a fresh
translator's first pass: rules that were scored once are remembered, so that a second pass over the
same sentences is faster. A pop limit of ours counts against one of cdec's if the mean model score
is at least as good. Both read one grammar for all sentences; cdec's loading, measured in the same
turn with no sentences, is left out.
"""

from __future__ import annotations

import statistics
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.data import Setting, batched, text_lines
from benchmarks.fresh import in_fresh_process
from benchmarks.harness import Claim, Outcome, in_turn, less, say, several, side_by_side, timed
from benchmarks.plot import scatter
from benchmarks.rivals import Ran, run, totals
from tunesmith._core import Decoder, Translator
from tunesmith.lm import LanguageModel
from tunesmith.spaces.reading import read_weights
from tunesmith.training.rules import import_cdec

MEGA = 1e6
SENTENCES = 300
POP_LIMITS = (10, 30, 50, 100, 200, 400, 1000)
PART = 30
"""Sentences that are translated in one go where times of two things are compared."""
ROUNDING = 1e-5
"""What the last digit of cdec's scores hides."""
CDEC_POP_LIMITS = (30, 200, 1000)
DRAWING = Path(__file__).resolve().parent / "results" / "hiero-length.svg"


def translator(files: list[str], pop_limit: int) -> Translator:
    """Return cdec's model (table, language model, weights) with a pop limit."""
    table, lm, weights = files
    named = list(read_weights(Path(weights)).items())
    return Decoder.hiero(table, lm, cdec=True).translator(named, [("pop_limit", pop_limit)])


def decoded(files: list[str], text: str, sentences: int, pop_limit: int, keep: list[Any]) -> float:
    """Translate with one thread; return the mean model score."""
    found = translator(files, pop_limit).translate(text_lines(Path(text))[:sentences], threads=1)
    return sum(one.score or 0.0 for one in found) / len(found)


def hiero(setting: Setting) -> Outcome:
    """Decode with several pop limits, in turn with cdec where it is given."""
    grammar = setting.file("multi30k-cdec", "test_2016_flickr.grammar.gz")
    weights = str(setting.file("multi30k-cdec", "weights.mert"))
    text = setting.file("multi30k", "test_2016_flickr.de.gz")
    lines = text_lines(text)[: 60 if setting.quick else SENTENCES]
    outcome = Outcome(f"Hierarchical decoding, {len(lines)} sentences, one thread")
    with tempfile.TemporaryDirectory() as name:
        table, lm = str(Path(name) / "table"), str(Path(name) / "lm.tlm")
        import_cdec(grammar, Path(table))
        LanguageModel.load(setting.file("multi30k-moses", "lm.arpa.gz")).save(lm)
        files = [table, lm, weights]
        curve = _curve(setting, files, lines, outcome)
        for pop_limit in CDEC_POP_LIMITS:
            fresh = in_fresh_process(
                "benchmarks.hiero_bench:decoded",
                files=files,
                text=str(text),
                sentences=len(lines),
                pop_limit=pop_limit,
            )
            own = next(row for row in outcome.rows if row["pop limit"] == pop_limit)
            own["peak, MB"] = (fresh.peak - fresh.before) / MEGA
        if setting.rivals.cdec is None:
            outcome.notes.append("CDEC is not set: ours alone, nothing is said about cdec.")
        else:
            cdec = Cdec(setting, setting.rivals.cdec, Path(name), lines)
            _beside_cdec(setting, cdec, files, curve, outcome)
        _lists_and_threads(setting, files, lines, outcome)
    outcome.notes += [
        "Each run is the first pass of a fresh translator; loading is left out. A second pass is "
        "faster, because rules that were scored are remembered.",
        "Our memory is what the process needs beyond the interpreter, files mapped included; "
        "cdec's is that of its process.",
        f"What lists cost is measured {PART} sentences at a time, with and without lists in turn; "
        "of each part the least time of seven counts.",
        f"Cost by sentence length: {DRAWING.name}.",
    ]
    return outcome


class Cdec:
    """cdec's decoder with one grammar for all sentences."""

    def __init__(self, setting: Setting, program: Path, folder: Path, lines: list[str]) -> None:
        self.program, self.folder, self.lines = program, folder, lines
        self.grammar = setting.file("multi30k-cdec", "test_2016_flickr.grammar.gz")
        self.weights = setting.file("multi30k-cdec", "weights.mert")
        lm = setting.file("multi30k-moses", "lm.arpa.gz")
        (folder / "cdec.ini").write_text(
            "formalism=scfg\nadd_pass_through_rules=true\n"
            f"feature_function=WordPenalty\nfeature_function=KLanguageModel {lm}\n"
        )

    def _run(self, pop_limit: int, stdin: str, *more: str) -> Ran:
        files = ["-c", "cdec.ini", "-w", str(self.weights), "-g", str(self.grammar)]
        limit = ["--cubepruning_pop_limit", str(pop_limit)]
        return run(self.program, [*files, *limit, *more], self.folder, stdin)

    def decode(self, pop_limit: int, *more: str) -> Ran:
        """Decode, loading included."""
        return self._run(pop_limit, "".join(f"{line}\n" for line in self.lines), *more)

    def load(self, pop_limit: int) -> float:
        """Return the CPU seconds of loading."""
        return self._run(pop_limit, "").cpu

    def score(self, pop_limit: int) -> float:
        """Return the mean model score."""
        nbest = self.decode(pop_limit, "-k", "1", "-r").out
        return statistics.fmean(totals(nbest, len(self.lines)))


def _beside_cdec(
    setting: Setting,
    cdec: Cdec,
    files: list[str],
    curve: dict[int, tuple[float, float]],
    outcome: Outcome,
) -> None:
    """Run cdec at its pop limits, and ours at the fastest with at least its score, in turn."""
    lines = cdec.lines
    for pop_limit in CDEC_POP_LIMITS[: 1 if setting.quick else None]:
        score = cdec.score(pop_limit)
        good = [at for at, (_, mean) in curve.items() if mean >= score - ROUNDING]
        at = max(good, key=lambda at: curve[at][0], default=POP_LIMITS[-1])
        peaks: list[int] = []

        def decode(pop_limit: int = pop_limit, peaks: list[int] = peaks) -> float:
            ran = cdec.decode(pop_limit)
            peaks.append(ran.peak)
            return ran.cpu

        mine, whole, loading = in_turn(
            setting.times(2 if pop_limit > 200 else 3),
            lambda at=at: _first_pass(files, at, lines)[1],  # type: ignore[misc]
            decode,
            partial(cdec.load, pop_limit),
        )
        theirs = [len(lines) / cpu for cpu in less(whole, loading)]
        ours = [len(lines) / cpu for cpu in mine]
        _row(outcome, "cdec", pop_limit, theirs, score)
        outcome.rows[-1]["peak, MB"] = max(peaks) / MEGA
        _row(outcome, "tunesmith in turn", at, ours, curve[at][1])
        quotient = max(ours) / max(theirs) if good else 0.0
        outcome.claims.append(
            Claim(f"speed at cdec's score with pop limit {pop_limit:,}", quotient, 1.0, "at least")
        )


def _first_pass(files: list[str], pop_limit: int, lines: list[str]) -> tuple[Any, float]:
    """Translate with a decoder that has seen nothing; return what was found and CPU seconds."""
    ready = translator(files, pop_limit)
    found, time = timed(lambda: ready.translate(lines, threads=1))
    return found, time.cpu


def _row(outcome: Outcome, program: str, pop_limit: int, rates: list[float], mean: float) -> None:
    say(f"  {program}, pop limit {pop_limit}: {several(rates, 1)}/s, {mean:.5f}")
    outcome.rows.append(
        {
            "program": program,
            "pop limit": pop_limit,
            "per CPU s": max(rates),
            "runs": several(rates, 1),
            "mean score": f"{mean:.5f}",
        }
    )


def _curve(
    setting: Setting, files: list[str], lines: list[str], outcome: Outcome
) -> dict[int, tuple[float, float]]:
    """Speed and mean score by pop limit; draws the cost of each sentence."""
    curve: dict[int, tuple[float, float]] = {}
    costs = {}
    for pop_limit in POP_LIMITS:
        runs = [_first_pass(files, pop_limit, lines) for _ in range(setting.times(3))]
        found = runs[0][0]
        mean = statistics.fmean(one.score or 0.0 for one in found)
        rates = [len(lines) / cpu for _, cpu in runs]
        curve[pop_limit] = max(rates), mean
        _row(outcome, "tunesmith", pop_limit, rates, mean)
        if pop_limit in CDEC_POP_LIMITS:
            costs[f"pop limit {pop_limit}"] = [
                (float(len(line.split())), 1000 * one.seconds)
                for line, one in zip(lines, found, strict=True)
            ]
    scatter(DRAWING, "Cost of decoding by sentence length", ("words", "ms"), costs)
    return curve


def _lists_and_threads(
    setting: Setting, files: list[str], lines: list[str], outcome: Outcome
) -> None:
    """500-best lists on top of decoding, and two threads against one, at pop limit 200."""
    ready = translator(files, 200)
    times = setting.times(7)
    alone, lists = side_by_side(
        times,
        batched(lines, PART),
        lambda part: ready.translate(part, threads=1),
        lambda part: ready.nbest(part, 500, threads=1),
    )
    more = 100 * (lists.cpu / alone.cpu - 1)
    both, one = side_by_side(
        times,
        [lines],
        lambda part: ready.translate(part, threads=2),
        lambda part: ready.translate(part, threads=1),
    )
    outcome.rows += [
        {
            "program": "tunesmith, 500-best unique",
            "pop limit": 200,
            "per CPU s": len(lines) / lists.cpu,
        },
        {
            "program": "tunesmith, two threads",
            "pop limit": 200,
            "per CPU s": len(lines) / both.cpu,
            "per s": len(lines) / both.wall,
        },
    ]
    outcome.claims += [
        Claim("500-best on top of decoding, pop limit 200", more, 20, "at most", "%"),
        Claim("two threads against one", one.wall / both.wall, 1.8, "at least"),
    ]
