"""Checks of lists: their content, problems in them, and the possible gain."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tunesmith.learn.untuned import CONSENSUS, Untuned, untuned_choices
from tunesmith.metrics import Metric
from tunesmith.spaces import Pools
from tunesmith.spaces.moments import Within, recover_weights

Array = npt.NDArray[np.float64]


def check_pools(pools: Pools, metric: Metric | None = None, threads: int = 0) -> dict[str, Any]:
    """Return counts, scores, a table of features, and findings that deserve attention.

    Scores are those of the best, first and worst choices and of choices that need no tuning
    (consensus, each feature alone). The table has each feature's correlation with the metric
    within lists.
    """
    starts = pools.core.starts
    sizes = np.diff(starts)
    full = sizes[sizes > 0]
    gains = simple = None
    scores: dict[str, Any] = {}
    if metric is not None:
        gains = metric.native.sentence_gains(pools.table(metric, threads).rows())
        begin = pools.vector(recover_weights(pools.origin) or {}, partial=True)
        simple = untuned_choices(pools, metric, pools.first(), begin, threads)
        first = simple.scores["start"]
        oracle = pools.score(metric, pools.oracle(metric))
        scores = {
            "metric": metric.name,
            "signature": pools.signature(metric),
            "worst": pools.score(metric, pools.oracle(metric, best=False)),
            "first": first,
            "oracle": oracle,
            "headroom": abs(oracle - first),
            CONSENSUS: simple.scores.get(CONSENSUS),
            **_best_alone(simple),
        }
    distinct = pools.core.distinct_texts
    features = _features(pools, gains)
    alone = {} if simple is None else simple.alone
    for row in features:
        for sign in "+-":
            if (score := alone.get(sign + row["name"])) is not None:
                row |= {"alone": score, "sign": sign}
    found: dict[str, Any] = {
        "sentences": pools.sentences,
        "hypotheses": pools.hypotheses,
        "distinct_texts": distinct,
        "features": len(features),
        "empty_lists": int((sizes == 0).sum()),
        "single_lists": int((sizes == 1).sum()),
        "shortest": int(full.min(initial=pools.hypotheses)),
        "median": int(np.median(full)) if len(full) else 0,
        "longest": int(full.max(initial=0)),
        "columns": pools.core.columns,
        "scores": scores,
        "feature_table": features,
    }
    return {**found, "findings": _findings(pools, found)}


def _best_alone(simple: Untuned) -> dict[str, Any]:
    """Return the score of the best single feature and its name, with + or - in front."""
    if not simple.alone:
        return {"best_alone": None, "best_alone_name": None}
    name, score = next(iter(simple.alone.items()))
    return {"best_alone": score, "best_alone_name": name}


def _features(pools: Pools, gains: Array | None) -> list[dict[str, Any]]:
    """Return a row per feature: frequency, range, lists where it varies, correlation with the gain.

    The correlation is that of differences from the means of the list.
    """
    names = pools.names
    width, count = len(names), pools.hypotheses
    _, ids, values = pools.core.csr()
    exact = values.astype(np.float64)
    present = np.bincount(ids, minlength=width)
    sums = np.bincount(ids, exact, width)
    lowest, highest = np.full(width, np.inf), np.full(width, -np.inf)
    np.minimum.at(lowest, ids, exact)
    np.maximum.at(highest, ids, exact)
    missing = present < count
    lowest = np.where(missing, np.minimum(lowest, 0.0), lowest)
    highest = np.where(missing, np.maximum(highest, 0.0), highest)

    within = Within(pools)
    varies = within.varying() / max((within.sizes > 1).sum(), 1)
    correlation: list[float | None] = [None] * width
    if gains is not None:
        centred = within.centre(gains)
        scale = np.sqrt(within.variances() * (centred @ centred))
        correlation = [
            float(np.clip(top / bottom, -1.0, 1.0)) if bottom > 1e-12 else None
            for top, bottom in zip(within.covariances(gains), scale, strict=True)
        ]
    table = [
        {
            "name": names[i],
            "coverage": float(present[i] / max(count, 1)),
            "lowest": float(lowest[i]) if present[i] else 0.0,
            "mean": float(sums[i] / max(count, 1)),
            "highest": float(highest[i]) if present[i] else 0.0,
            "varies": float(varies[i]),
            "correlation": correlation[i],
        }
        for i in range(width)
    ]
    return sorted(table, key=lambda row: -row["coverage"])


def _findings(pools: Pools, found: dict[str, Any]) -> list[str]:
    """Return findings that deserve attention, each with a remedy."""
    findings = []
    if found["empty_lists"]:
        findings.append(f"empty lists: {found['empty_lists']}; they count as blank outputs")
    if found["single_lists"] > pools.sentences / 2:
        findings.append(
            f"lists of a single hypothesis: {found['single_lists']}; nothing can be learnt there"
        )
    twins = pools.hypotheses - found["distinct_texts"]
    if twins > pools.hypotheses / 2:
        findings.append(
            f"{twins} of {pools.hypotheses} hypotheses repeat the text of another in their list"
        )
    still = [row["name"] for row in found["feature_table"] if row["varies"] == 0.0]
    if still:
        shown = ", ".join(still[:5]) + ("…" if len(still) > 5 else "")
        findings.append(
            f"features that never vary within a list and cannot matter: {len(still)} ({shown})"
        )
    scores = pools.core.scores
    if len(scores) and not np.isnan(scores).any():
        starts = pools.core.starts
        rises = np.flatnonzero(np.diff(scores) > 1e-6) + 1
        unsorted = np.setdiff1d(rises, starts)
        if len(unsorted):
            lists = len(np.unique(np.searchsorted(starts, unsorted, side="right")))
            findings.append(
                f"lists not sorted by their own score: {lists}; the first-ranked "
                "hypothesis is still the first in the file"
            )
    headroom = found["scores"].get("headroom")
    if headroom is not None and headroom < 0.5:
        findings.append(
            f"the headroom is {headroom:.2f}: re-ranking can hardly help; make longer lists"
        )
    return findings
