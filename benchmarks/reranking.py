"""Real re-ranking: speech, neural translation, outputs of many systems with two references."""

from __future__ import annotations

import numpy as np

from benchmarks.data import Setting
from benchmarks.harness import Outcome, say
from tunesmith import Pools, Result, read_pools, tune

TUNERS = ("mert", "kbmira", "pro", "risk")


def reranking(setting: Setting) -> Outcome:
    """Tune on some lists, tell the score on others."""
    outcome = Outcome("Re-ranking real lists, scores on what was not tuned on")
    tuners = TUNERS[:2] if setting.quick else TUNERS
    test = _speech(setting, "test_clean")
    for part in ("dev_clean", "dev_other"):
        lists = _speech(setting, part)
        for tuner in tuners:
            result = tune(lists, tuner, "wer", heldout=test, threads=1)
            _tell(outcome, f"speech, tuned on {part}", "test_clean", result)
    folder = "nbest-nmt"
    neural = with_places(
        read_pools(
            setting.file(folder, "fairseq7.dev.nbest.gz"),
            setting.file(folder, "fairseq7.dev.ref.en.gz"),
        )
    )
    systems = read_pools(
        setting.file(folder, "wmt21-systems.nbest.gz"),
        [setting.file(folder, f"wmt21-systems.ref.{name}.en.gz") for name in "AB"],
    )
    for tuner in tuners:
        result = tune(neural, tuner, "bleu:tokenize=none", folds=5, threads=1)
        _tell(outcome, "7 neural systems", "5 folds", result)
    for tuner in tuners:
        result = tune(systems, tuner, "bleu", folds=5, threads=1)
        _tell(outcome, "19 systems, 2 references", "5 folds", result)
    outcome.notes = [
        "Start: the first-ranked hypotheses. p: paired bootstrap on the held-out part. Seconds on "
        "the clock for everything, folds and significance tests included, one thread.",
        "The neural lists hold one output per system, always in the same order: the place in the "
        "list is a feature too, since no weights of the other features tell the systems apart.",
    ]
    return outcome


def with_places(pools: Pools) -> Pools:
    """Return the lists with one more feature for each place in a list, 1 where a hypothesis is."""
    rows, ids, values = pools.core.csr()
    starts = pools.core.starts
    sizes = np.diff(starts)
    width = len(pools.names)
    place = np.arange(pools.hypotheses) - np.repeat(starts[:-1], sizes)
    # The new id is larger than the others, so it goes to the end of its row.
    return Pools.from_arrays(
        (
            rows + np.arange(len(rows)),
            np.insert(ids.astype(np.int64), rows[1:], width + place),
            np.insert(values.astype(np.float64), rows[1:], 1.0),
        ),
        starts,
        [*pools.names, *(f"place{number}" for number in range(1, int(sizes.max()) + 1))],
        pools.core.texts(np.arange(pools.hypotheses)),
        pools.references,
        pools.core.scores,
    )


def _speech(setting: Setting, part: str) -> Pools:
    return read_pools(
        setting.file("nbest-asr", f"{part}.nbest.gz"), setting.file("nbest-asr", f"{part}.ref.gz")
    )


def _tell(outcome: Outcome, lists: str, heldout: str, result: Result) -> None:
    say(f"  {lists}, {result.tuner}: {result.heldout_start:.2f} -> {result.heldout:.2f}")
    outcome.rows.append(
        {
            "lists": lists,
            "metric": result.metric,
            "tuner": f"`{result.tuner}`",
            "start": result.start,
            "tuned": result.tuned,
            "oracle": result.oracle,
            "held out": heldout,
            "its start": result.heldout_start,
            "its score": result.heldout,
            "p": round(float(result.significance["bootstrap"]["p"]), 3),
            "s": result.seconds,
        }
    )
