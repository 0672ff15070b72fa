"""Real re-ranking: speech, neural translation, outputs of many systems with two references."""

from __future__ import annotations

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
    neural = read_pools(
        setting.file(folder, "fairseq7.dev.nbest.gz"),
        setting.file(folder, "fairseq7.dev.ref.en.gz"),
        source=setting.file(folder, "fairseq7.dev.src.de.gz"),
    )
    systems = read_pools(
        setting.file(folder, "wmt21-systems.nbest.gz"),
        [setting.file(folder, f"wmt21-systems.ref.{name}.en.gz") for name in "AB"],
        source=setting.file(folder, "wmt21-systems.src.de.gz"),
    )
    for tuner in tuners:
        result = tune(neural, tuner, "bleu:tokenize=none", folds=5, threads=1)
        _tell(outcome, "7 neural systems", "5 folds", result)
    for tuner in tuners:
        result = tune(systems, tuner, "bleu", folds=5, threads=1)
        _tell(outcome, "19 systems, 2 references", "5 folds", result)
    outcome.notes = [
        "Start: the first-ranked hypotheses. p: paired bootstrap on the held-out part. Seconds on "
        "the clock for everything, folds and significance tests included, one thread."
    ]
    return outcome


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
