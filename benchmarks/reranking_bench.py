"""Real re-ranking against honest baselines: what tuning brings on lists that it did not see.

Every figure is held out: tuned, or chosen, on some lists and scored on others. Speech is tuned on
dev-clean and scored on test-clean; the others have five folds, the same for tuners and baselines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.data import METRIC, Setting
from benchmarks.harness import Outcome, say
from tunesmith import Pools, read_pools, tune
from tunesmith.metrics import Metric, get_metric
from tunesmith.spaces.derived import with_derived
from tunesmith.tuning.loop import fold_parts
from tunesmith.weights import Vector

TUNERS = ("mert", "kbmira", "risk")
# Whether a hypothesis is the first of its list, and how far the others agree with it.
LIST_FEATURES = ("first", "agreement")
FOLDS = 5


@dataclass(frozen=True)
class Lists:
    """Lists to tune on and, where folds do not do it, others to score."""

    title: str
    metric: str
    dev: Pools
    test: Pools | None = None

    @property
    def scored(self) -> Pools:
        """The lists that are scored."""
        return self.dev if self.test is None else self.test

    def with_list_features(self) -> Lists:
        """Return the same lists with features that they give themselves."""
        return replace(
            self,
            dev=with_derived(self.dev, LIST_FEATURES),
            test=None if self.test is None else with_derived(self.test, LIST_FEATURES),
        )

    def splits(self) -> list[tuple[Pools, Pools]]:
        """Return what is learnt from and what is scored, as `tune` has it."""
        if self.test is not None:
            return [(self.dev, self.test.aligned(self.dev.names))]
        parts = fold_parts(self.dev.sentences, FOLDS, seed=1)
        every = np.arange(self.dev.sentences)
        return [
            (self.dev.subset(np.setdiff1d(every, part).tolist()), self.dev.subset(part.tolist()))
            for part in parts
        ]


def reranking(setting: Setting) -> Outcome:
    """Score the baselines and the tuners on lists that were not tuned on."""
    outcome = Outcome("Re-ranking real lists, scores on lists that were not tuned on")
    names = ["first-ranked", "best single feature", "untuned consensus"]
    names += [f"`{tuner}`" for tuner in TUNERS]
    names += [f"`{tuner}`, list features" for tuner in TUNERS]
    names += ["oracle"]
    for name in names:
        outcome.rows.append({"": name})
    found = [_neural(setting), _systems(setting), _speech(setting)]
    if not setting.quick:
        found.append(Lists("Moses' 8 merged lists", METRIC, setting.pools))
    for lists in found:
        metric = get_metric(lists.metric)
        column = f"{lists.title}, {lists.metric.partition(':')[0].upper()}"
        for row, (score, note) in zip(outcome.rows, _column(lists, metric), strict=True):
            say(f"  {column}, {row['']}: {score:.2f} {note}")
            row[column] = f"{score:.2f} {note}".strip()
    outcome.notes = [
        "Speech (LibriSpeech) is tuned on dev-clean and scored on test-clean. The others have "
        "folds, the same for tuners and baselines.",
        "Best single feature: the one feature, with the better of both signs, that is best on the "
        "lists that may be learnt from. Untuned consensus: the hypothesis of highest BLEU against "
        "the n-grams of its list, all hypotheses alike (`Pools.consensus` with zero weights). "
        "Tuners have their defaults and one seed; p is that of a paired bootstrap against the "
        "first-ranked. Oracle: the best choice in the lists that are scored.",
        "List features: `rerank tune --list-features first,agreement`. Names and scale were chosen "
        "on half of the lists of the neural and the 19 systems, and on speech dev-clean. The 7 "
        "neural systems are in the same order in every list, the best one first, and no other "
        "feature tells them apart.",
    ]
    return outcome


def _column(lists: Lists, metric: Metric) -> list[tuple[float, str]]:
    scored = lists.scored
    zero = np.zeros(len(scored.names))
    column = [
        (scored.score(metric, scored.first()), ""),
        single_feature(lists.splits(), metric),
        (scored.score(metric, scored.consensus(zero, threads=1)), ""),
    ]
    for seen in (lists, lists.with_list_features()):
        for tuner in TUNERS:
            result = tune(
                seen.dev,
                tuner,
                metric,
                heldout=[] if seen.test is None else seen.test,
                folds=FOLDS if seen.test is None else 0,
                threads=1,
            )
            assert result.heldout is not None
            p = float(result.significance["start"]["bootstrap"]["p"])
            column.append((result.heldout, f"(p {p:.3f})"))
    return [*column, (scored.score(metric, scored.oracle(metric, zero)), "")]


def single_feature(splits: Sequence[tuple[Pools, Pools]], metric: Metric) -> tuple[float, str]:
    """Return the score of each split's best feature on what is held out, and which they are."""
    rows, names = [], []
    for dev, test in splits:
        units = _units(dev.names)
        gains = {name: _gain(metric, dev, unit) for name, unit in units.items()}
        best = max(gains, key=lambda name: gains[name])
        names.append(best)
        rows.append(test.statistics(metric, test.best(units[best])))
    return metric.score(np.concatenate(rows).sum(axis=0)), f"({', '.join(dict.fromkeys(names))})"


def _units(names: Sequence[str]) -> dict[str, Vector]:
    """Return a vector for each feature and sign."""
    eye = np.eye(len(names))
    return {
        f"{sign}{name}": factor * eye[place]
        for place, name in enumerate(names)
        for sign, factor in (("+", 1.0), ("-", -1.0))
    }


def _gain(metric: Metric, pools: Pools, weights: Vector) -> float:
    """Return how good the choice is; of an error rate less is better."""
    score = pools.score(metric, pools.best(weights))
    return score if metric.higher_is_better else -score


def _neural(setting: Setting) -> Lists:
    pools = read_pools(
        setting.file("nbest-nmt", "fairseq7.dev.nbest.gz"),
        setting.file("nbest-nmt", "fairseq7.dev.ref.en.gz"),
    )
    return Lists("7 neural systems", METRIC, pools)


def _systems(setting: Setting) -> Lists:
    references = [setting.file("nbest-nmt", f"wmt21-systems.ref.{name}.en.gz") for name in "AB"]
    pools = read_pools(setting.file("nbest-nmt", "wmt21-systems.nbest.gz"), references)
    return Lists("19 systems, two references", "bleu", pools)


def _speech(setting: Setting) -> Lists:
    dev, test = (
        read_pools(
            setting.file("nbest-asr", f"{part}.nbest.gz"),
            setting.file("nbest-asr", f"{part}.ref.gz"),
        )
        for part in ("dev_clean", "test_clean")
    )
    return Lists("speech, 10-best", "wer", dev, test)
