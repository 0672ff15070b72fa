"""Tune against a decoder: decode, add what is new to the lists, optimise, again.

Every preset works here, on the merged lists of all iterations or on the union of their forests.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.drivers import Task, Tuner
from tunesmith.errors import InputError
from tunesmith.features import Vector, Weights
from tunesmith.jobs import SHOWN_WEIGHTS, Journal
from tunesmith.metrics import Metric, get_metric
from tunesmith.presets import make_tuner
from tunesmith.runs import RunDirectory
from tunesmith.runs.checkpoint import read_checkpoint, write_checkpoint
from tunesmith.sources import Source
from tunesmith.spaces import Forests, Pools, Spaces
from tunesmith.tuning import Bounds, Listener, limits, refusal

Keep = Literal["best", "last", "heldout"]


@dataclass(frozen=True)
class LiveResult:
    """What tuning found; scores are of whole decodings, on the metric's own scale."""

    tuner: str
    metric: str
    signature: str
    weights: Weights
    start: float
    tuned: float
    heldout: list[float]
    heldout_start: list[float]
    iterations: int
    seconds: float
    decode_seconds: float
    optimise_seconds: float
    nonzero: int
    refused: str | None = None
    curve: list[float] = field(default_factory=list)
    """The score after each iteration."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values, without the weights."""
        return {key: value for key, value in self.__dict__.items() if key != "weights"}


@dataclass
class _Clock:
    """Seconds by what they went to."""

    decode: float = 0.0
    optimise: float = 0.0


def tune_live(
    source: Source,
    start: Mapping[str, float],
    preset: str = "mert",
    metric: str | Metric = "bleu:tokenize=none",
    *,
    options: Mapping[str, Any] | None = None,
    tuner: Tuner | None = None,
    heldout: Sequence[Source] = (),
    iterations: int = 25,
    stop: float = 1e-5,
    seed: int = 1,
    keep: Keep = "best",
    bounds: Bounds | None = None,
    fixed: Mapping[str, float] | None = None,
    threads: int = 0,
    run: str | Path | None = None,
    resume: bool = False,
    config: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    listen: Listener | None = None,
) -> LiveResult:
    """Learn the weights with which the decoder's own output scores highest.

    At most `iterations` times: optimise on all lists so far, decode with the new weights. Ends
    early when a decoding brings nothing new or no weight moves by more than `stop`. The weights of
    the iteration whose decoding scored best are returned (`keep="last"`: the last; `"heldout"`: the
    best on the first held-out corpus). With `run` every iteration is written down, and `resume`
    goes on after the last that was finished, to the same result; `config` is what else must be the
    same then. `meta` is written down with the weights.
    """
    began = time.perf_counter()
    measure = get_metric(metric)
    algorithm = tuner if tuner is not None else make_tuner(preset, options)
    if keep == "heldout" and not heldout:
        raise InputError(
            "weights are to be chosen on held-out text, but there is none",
            remedy="give a held-out source and its references",
        )
    directory = None if run is None else RunDirectory(run)
    settings = {
        "preset": preset if tuner is None else type(tuner).__name__,
        "metric": measure.name,
        "options": dict(options or {}),
        "seed": seed,
        "keep": keep,
        "iterations": iterations,
        "digest": _digest(source, heldout, start),
        **dict(config or {}),
    }
    clock = _Clock()

    def decode(where: Source, weights: Mapping[str, float]) -> Spaces:
        before = time.perf_counter()
        found = where.decode(weights)
        clock.decode += time.perf_counter() - before
        return found

    def output_score(found: Spaces, weights: Mapping[str, float]) -> float:
        chosen = found.first() if isinstance(found, Pools) else found.best(weights, threads)
        return found.score(measure, chosen)

    def scored(where: Source, weights: Mapping[str, float]) -> float:
        return output_score(decode(where, weights), weights)

    with Journal(directory, settings, resume, listen) as journal:
        loop = _Loop(algorithm, measure, bounds or {}, dict(fixed or {}), threads, seed)
        weights, done, best, curve = Weights(start), 0, dict[str, Any](), list[float]()
        if journal.point is not None:
            state = journal.point.state
            done, best, curve = state["done"], dict(state["best"]), list(state["curve"])
            clock = _Clock(*state["clock"])
            assert directory is not None, "only a run directory has checkpoints"
            for number in range(done + 1):
                loop.add(_load(directory, number, source))
            weights = _unpacked(journal.point.arrays, "weights")
            best["weights"] = _unpacked(journal.point.arrays, "best")
        else:
            found = decode(source, weights)
            loop.add(found)
            score = output_score(found, weights)
            curve = [score]
            others = [scored(other, weights) for other in heldout]
            best = {"iteration": 0, "score": score, "heldout": others, "weights": weights}
            best |= {"start": score, "heldout_start": others, "ended": False}
            _save(directory, 0, found)
        spaces = loop.spaces
        journal.event(
            "start",
            preset=settings["preset"],
            metric=measure.name,
            signature=spaces.signature(measure),
            metric_higher=measure.higher_is_better,
            features=len(spaces.names),
            sentences=spaces.sentences,
            hypotheses=spaces.hypotheses,
            start=best["start"],
            oracle=spaces.score(measure, spaces.oracle(measure, spaces.vector(weights))),
            options=settings["options"],
            runs=1,
            folds=0,
        )
        if journal.point is None:
            _checkpoint(journal, 0, weights, best, curve, clock)
        for number in range(done + 1, iterations + 1):
            if best["ended"]:
                break
            epoch_began = time.perf_counter()
            old, known = weights, loop.spaces.hypotheses
            weights, projected = loop.optimise(old)
            clock.optimise += time.perf_counter() - epoch_began
            found = decode(source, weights)
            _save(directory, number, found)
            loop.add(found)
            score = output_score(found, weights)
            others = [scored(other, weights) for other in heldout]
            curve.append(score)
            moved = max((abs(weights.get(n, 0.0) - old.get(n, 0.0)) for n in weights), default=0.0)
            nothing_new = isinstance(found, Pools) and loop.spaces.hypotheses == known
            rank = others[0] if keep == "heldout" else score
            reached = best["heldout"][0] if keep == "heldout" else best["score"]
            better = rank > reached if measure.higher_is_better else rank < reached
            if better or keep == "last":
                best |= {"iteration": number, "score": score, "heldout": others, "weights": weights}
            best["ended"] = nothing_new or moved <= stop
            journal.event(
                "epoch",
                run=0,
                epoch=number,
                score=score,
                heldout=others[0] if others else None,
                projected=projected,
                oracle_score=loop.spaces.score(
                    measure, loop.spaces.oracle(measure, loop.spaces.vector(weights))
                ),
                hypotheses=loop.spaces.hypotheses,
                nonzero=sum(value != 0.0 for value in weights.values()),
                weight_change=moved,
                seconds=time.perf_counter() - epoch_began,
                weights=weights.top(SHOWN_WEIGHTS),
            )
            if directory is not None:
                directory.save_epoch_weights(number, weights, {"epoch": number})
            _checkpoint(journal, number, weights, best, curve, clock)
        final: Weights = best["weights"]
        journal.event("run_end", run=0, epoch=best["iteration"], score=best["score"])
        result = LiveResult(
            tuner=settings["preset"],
            metric=measure.name,
            signature=loop.spaces.signature(measure),
            weights=final,
            start=best["start"],
            tuned=best["score"],
            heldout=best["heldout"],
            heldout_start=best["heldout_start"],
            iterations=len(curve) - 1,
            seconds=time.perf_counter() - began,
            decode_seconds=clock.decode,
            optimise_seconds=clock.optimise,
            nonzero=sum(value != 0.0 for value in final.values()),
            refused=_refused(measure, start, final, best),
            curve=curve,
        )
        final.meta.update(
            tuner=result.tuner,
            metric=measure.name,
            signature=result.signature,
            start=result.start,
            tuned=result.tuned,
            version=_core.__version__,
            **dict(meta or {}),
        )
        journal.event(
            "end",
            start=result.start,
            tuned=result.tuned,
            heldout=result.heldout[0] if result.heldout else None,
            heldout_start=result.heldout_start[0] if result.heldout_start else None,
            seconds=result.seconds,
            weights=final.top(SHOWN_WEIGHTS),
            status="refused" if result.refused else "ok",
            reason=result.refused,
        )
        if directory is not None and not journal.finished:
            directory.save_weights(final, final.meta)
            directory.finish(result.to_json())
    return result


class _Loop:
    """The lists so far, and the tuner that works on them."""

    def __init__(
        self,
        tuner: Tuner,
        metric: Metric,
        bounds: Bounds,
        fixed: Mapping[str, float],
        threads: int,
        seed: int,
    ) -> None:
        self._tuner = tuner
        self._metric = metric
        self._limits = (bounds, fixed)
        self._threads = threads
        self._seed = seed
        self._added = 0
        self._spaces: Spaces | None = None

    @property
    def spaces(self) -> Spaces:
        assert self._spaces is not None, "nothing has been decoded yet"
        return self._spaces

    def add(self, found: Spaces) -> None:
        """Take what a decoding found: lists are merged, and so are forests."""
        self._added += 1
        if isinstance(found, Pools) and isinstance(self._spaces, Pools):
            self._spaces = Pools.merge([self._spaces, found])
        elif isinstance(found, Forests) and isinstance(self._spaces, Forests):
            self._spaces = Forests.merge([self._spaces, found], self._threads)
        else:
            self._spaces = found

    def optimise(self, weights: Weights) -> tuple[Weights, float]:
        """Return the weights of the tuner's best epoch, and their score on the lists."""
        names = self.spaces.names
        lower, upper = limits(names, *self._limits)
        task = Task(self.spaces, self._metric, lower, upper, self._threads)
        start = task.clip(self.spaces.vector(weights))
        chosen, best, score = start, *reversed(task.evaluate(start))
        for epoch in self._tuner.epochs(task, start, self._seed + self._added, None):
            reached, gain = task.evaluate(epoch.weights)
            if gain > best:
                chosen, best, score = epoch.weights, gain, reached
        chosen = self._scaled(task, chosen, start, best)
        # A feature that no hypothesis has any more keeps its weight.
        return Weights({**weights, **Weights.from_vector(names, chosen)}), score

    def _scaled(self, task: Task, weights: Vector, start: Vector, gain: float) -> Vector:
        """Return weights as large as those at the start, where only their direction was tuned.

        A decoder's beam is wide or narrow by the size of scores, so sizes must not run away.
        """
        free = task.free
        size = float(np.abs(weights[free]).sum())
        if not getattr(self._tuner, "scale_free", False) or size == 0.0:
            return weights
        scaled = weights.copy()
        scaled[free] *= float(np.abs(start[free]).sum()) / size
        scaled = task.clip(scaled)
        # Weights that are fixed or bounded may give sizes a meaning.
        return scaled if task.evaluate(scaled)[1] >= gain - 1e-9 else weights


def _checkpoint(
    journal: Journal,
    done: int,
    weights: Weights,
    best: Mapping[str, Any],
    curve: list[float],
    clock: _Clock,
) -> None:
    arrays = {f"weights.{name}": array for name, array in _packed(weights).items()}
    arrays |= {f"best.{name}": array for name, array in _packed(best["weights"]).items()}
    kept = {key: value for key, value in best.items() if key != "weights"}
    seconds = [clock.decode, clock.optimise]
    state = {"done": done, "best": kept, "curve": curve, "clock": seconds}
    journal.checkpoint(arrays, state, now=True)


def _refused(
    metric: Metric, start: Mapping[str, float], weights: Weights, best: Mapping[str, Any]
) -> str | None:
    names = list(dict.fromkeys([*start, *weights]))
    before, after = Weights(start).vector(names), weights.vector(names)
    return refusal(metric, before, after, best["start"], best["score"])


def _digest(source: Source, heldout: Sequence[Source], start: Mapping[str, float]) -> str:
    """Return a fingerprint of what is learnt from, so that a run is resumed with the same."""
    made = hashlib.sha256(repr(sorted(start.items())).encode())
    for each in (source, *heldout):
        made.update(repr((each.sources, each.references)).encode("utf-8", "surrogatepass"))
    return made.hexdigest()


def _packed(weights: Weights) -> dict[str, Any]:
    return {"names": _bytes(list(weights)), "values": np.array(list(weights.values()), np.float64)}


def _unpacked(arrays: Mapping[str, Any], prefix: str) -> Weights:
    names = _texts(arrays[f"{prefix}.names"])
    return Weights(dict(zip(names, arrays[f"{prefix}.values"].tolist(), strict=True)))


def _bytes(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    return np.frombuffer("".join(f"{text}\n" for text in texts).encode("utf-8"), np.uint8)


def _texts(packed: npt.NDArray[np.uint8]) -> list[str]:
    return packed.tobytes().decode("utf-8").split("\n")[:-1]


def _file(directory: RunDirectory, number: int) -> Path:
    return directory.path / "decoded" / f"{number:04d}"


def _save(directory: RunDirectory | None, number: int, found: Spaces) -> None:
    """Keep what an iteration decoded."""
    if directory is None:
        return
    path = _file(directory, number)
    path.parent.mkdir(exist_ok=True)
    if isinstance(found, Forests):
        found.save(path.with_suffix(".forests"))
    elif isinstance(found, Pools):
        rows, ids, values = found.core.csr()
        texts = found.core.texts(np.arange(found.hypotheses))
        write_checkpoint(
            path.with_suffix(".npz"),
            {
                "starts": found.core.starts,
                "rows": rows,
                "ids": ids,
                "values": values,
                "texts": _bytes(texts),
                "names": _bytes(found.names),
                "scores": found.core.scores,
            },
            {},
            0,
            0,
        )


def _load(directory: RunDirectory, number: int, source: Source) -> Spaces:
    """Return what an iteration decoded."""
    path = _file(directory, number)
    forests = path.with_suffix(".forests")
    if forests.is_file():
        return Forests.load(forests, source.references, source.sources)
    kept = read_checkpoint(path.with_suffix(".npz"))
    if kept is None:
        raise InputError(
            "what was decoded is missing", str(path), remedy="start the run anew in another folder"
        )
    part = kept.arrays
    core = _core.Pools.from_arrays(
        part["starts"],
        _texts(part["texts"]),
        part["rows"],
        part["ids"].astype(np.int64),
        part["values"].astype(np.float64),
        _texts(part["names"]),
        part["scores"],
    )
    return Pools(core, source.references, source.sources)
