"""Tune against a decoder: every preset, on lists or forests.

Batch tuners decode, add what is new to the lists, optimise, again; online tuners decode each batch
of sentences with the weights of the moment. The loops are in `loops`.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tunesmith import _core
from tunesmith.drivers import Online, State, Tuner
from tunesmith.errors import InputError
from tunesmith.features import Weights
from tunesmith.jobs import SHOWN_WEIGHTS, Journal
from tunesmith.loops import Batch, Loop, Passes, Setup
from tunesmith.metrics import Metric, get_metric
from tunesmith.moments import spreads
from tunesmith.presets import make_tuner
from tunesmith.runs import RunDirectory
from tunesmith.runs.checkpoint import (
    file_digest,
    packed,
    read_checkpoint,
    unpacked,
    write_checkpoint,
)
from tunesmith.runs.config import settings_of
from tunesmith.sources import Live, Source
from tunesmith.spaces import Forests, Pools, Spaces
from tunesmith.tuning import (
    Bounds,
    Keep,
    Listener,
    changes,
    check_limits,
    check_request,
    count_changes,
    idle_limits,
    is_pattern,
    no_feature,
    refusal,
    same_direction,
    within,
)

# Decodings of a batch tuner, where nobody says.
ITERATIONS = 25
# Decodings in a row that are no better than the best so far, after which a batch tuner gives up.
PATIENCE = 5


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
    idle_limits: list[str] = field(default_factory=list)
    """Names and patterns of bounds and fixed weights that no feature had."""
    changed: dict[str, int] | None = None
    """How many of the `sentences` have `changed` translations, and how many of these are `better`
    and `worse`; None for metrics that read no text."""

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain values, without the weights."""
        return {key: value for key, value in self.__dict__.items() if key != "weights"}


@dataclass
class _Clock:
    """Seconds by what they went to, of all processes that had a part in the run."""

    began: float
    decode: float = 0.0
    optimise: float = 0.0
    before: float = 0.0
    """All that passed in processes before this one."""

    @property
    def total(self) -> float:
        """All that passed."""
        return self.before + time.perf_counter() - self.began


def tune_live(
    source: Source,
    start: Mapping[str, float],
    preset: str | None = None,
    metric: str | Metric = "bleu:tokenize=none",
    *,
    options: Mapping[str, Any] | None = None,
    tuner: Tuner | None = None,
    heldout: Sequence[Source] = (),
    iterations: int | None = None,
    stop: float = 1e-5,
    seed: int = 1,
    keep: Keep = "best",
    bounds: Bounds | None = None,
    fixed: Mapping[str, float] | None = None,
    threads: int = 0,
    merged: bool = False,
    run: str | Path | None = None,
    resume: bool = False,
    config: Mapping[str, Any] | None = None,
    meta: Mapping[str, Any] | None = None,
    listen: Listener | None = None,
) -> LiveResult:
    """Learn the weights with which the decoder's own output scores highest.

    With a `tuner` of your own, `preset` is only what it is called.

    Batch tuners: at most `iterations` times (25) optimise on all lists so far and decode with the
    new weights; ends early when a decoding brings nothing new, no weight moves by more than `stop`,
    or five decodings in a row were no better. Online tuners: at most `iterations` passes (as many
    as the preset has) in which every batch of sentences is decoded with the weights of the moment,
    and after each pass all sentences for the score. With `merged`, or where the decoder is a
    command, online tuners make their passes over the lists of all decodings as batch tuners do.

    `bounds` and `fixed` take feature names or patterns (`"PT:*"`), and hold from the start on. A
    name that no feature of our own models can have is refused.

    The weights of the iteration whose decoding scored best are returned (`keep="last"`: the last;
    `"heldout"`: the best on the first held-out corpus). With `run` every iteration is written down,
    and `resume` goes on after the last that was finished, to the same result; refuses, by name,
    whatever is not as it was, of which `config` may hold more. `meta` is written down with the
    weights.
    """
    clock = _Clock(time.perf_counter())
    measure = get_metric(metric)
    name = preset or ("mert" if tuner is None else type(tuner).__name__)
    algorithm = tuner if tuner is not None else make_tuner(name, options)
    _check(seed, threads, keep, heldout, iterations)
    directory = None if run is None else RunDirectory(run)
    held = {**_held(source, fixed or {}, bounds or {}), **(fixed or {})}
    setup = Setup(measure, bounds or {}, held, threads, seed)
    named = _named(source, setup)
    loop: Loop
    if isinstance(algorithm, Online) and algorithm.live and isinstance(source, Live) and not merged:
        iterations = algorithm.passes if iterations is None else iterations
        loop = Passes(replace(algorithm, passes=iterations), source, setup)
    else:
        if isinstance(algorithm, Online):
            algorithm.check_at_hand()
        iterations = ITERATIONS if iterations is None else iterations
        loop = Batch(algorithm, setup)
    settings = {
        "preset": name,
        "metric": measure.name,
        "options": dict(options or {}),
        "seed": seed,
        "keep": keep,
        "iterations": iterations,
        "stop": stop,
        "merged": merged,
        "fixed": setup.fixed,
        "bounds": setup.bounds,
        "digest": _digests(source, heldout, start),
        "measure": settings_of(measure),
        "tuner": settings_of(algorithm),
        **_told(source, heldout),
        **dict(config or {}),
    }

    start = within(Weights(start), setup.bounds, setup.fixed, named)

    def decode(where: Source, weights: Mapping[str, float], k: int | None) -> Spaces:
        before = time.perf_counter()
        found = where.decode(weights, k)
        clock.decode += time.perf_counter() - before
        return found

    def output(found: Spaces, weights: Mapping[str, float]) -> tuple[float, list[str]]:
        chosen = (
            found.first()
            if isinstance(found, Pools)
            else found.best(found.vector(weights, partial=True), threads)
        )
        return found.score(measure, chosen), found.outputs(chosen)

    def scored(weights: Mapping[str, float]) -> list[float]:
        return [output(decode(other, weights, 1), weights)[0] for other in heldout]

    with Journal(directory, settings, resume, listen) as journal:
        weights, done, best, curve = start, 0, dict[str, Any](), list[float]()
        texts: dict[str, list[str]] = {}
        decoded: dict[str, str] = {}
        if journal.point is not None:
            assert directory is not None, "only a run directory has checkpoints"
            arrays, state = journal.point.arrays, journal.point.state
            done, best, curve = state["done"], dict(state["best"]), list(state["curve"])
            clock.decode, clock.optimise, clock.before = state["clock"]
            decoded = dict(state.get("decoded", {}))
            for number in range(done + 1 if loop.k is None else 1):
                loop.add(_load(directory, number, source, decoded))
            loop.restore(weights, _part(arrays, "loop"))
            weights = _weights(arrays, "weights")
            best["weights"] = _weights(arrays, "best")
        else:
            found = decode(source, weights, loop.k)
            loop.add(found)
            score, texts["before"] = output(found, weights)
            texts["after"] = texts["before"]
            curve = [score]
            others = scored(weights)
            best = {"iteration": 0, "score": score, "heldout": others, "weights": weights}
            best |= {"start": score, "heldout_start": others, "ended": False}
            best |= {"peak": others[0] if keep == "heldout" else score, "peaked": 0}
            decoded |= _save(directory, 0, found)
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
            # Passes begin with one translation of each sentence, which has no other choice.
            space="sentence" if loop.k == 1 else spaces.what,
            start=best["start"],
            oracle=None
            if loop.k == 1
            else spaces.score(
                measure, spaces.oracle(measure, spaces.vector(weights, partial=True))
            ),
            epochs=iterations,
            options=settings["options"],
            runs=1,
            folds=0,
            **_idle(source, setup, start, spaces),
        )
        if journal.point is None and directory is not None:
            _checkpoint(journal, 0, weights, best, curve, clock, {}, decoded)
        for number in range(done + 1, iterations + 1):
            if best["ended"]:
                break
            epoch_began = time.perf_counter()
            old, before = weights, replace(clock)
            step = loop.step(old)
            if not step.facts:
                break
            weights = step.weights
            clock.optimise += step.optimise_seconds
            clock.decode += step.decode_seconds
            found = decode(source, weights, loop.k)
            if loop.k is None:
                decoded |= _save(directory, number, found)
            loop.add(found)
            (score, shown), others = output(found, weights), scored(weights)
            curve.append(score)
            moved = weights.change(old)
            rank = others[0] if keep == "heldout" else score
            better = rank > best["peak"] if measure.higher_is_better else rank < best["peak"]
            if better:
                best |= {"peak": rank, "peaked": number}
            if better or keep == "last":
                best |= {"iteration": number, "score": score, "heldout": others, "weights": weights}
                texts["after"] = shown
            tired = loop.k is None and number - best["peaked"] >= PATIENCE
            best["ended"] = step.last or moved <= stop or tired
            journal.event(
                "epoch",
                run=0,
                epoch=number,
                score=score,
                heldout=others[0] if others else None,
                heldout_all=others,
                nonzero=weights.nonzero,
                weight_change=moved,
                decode_seconds=clock.decode - before.decode,
                optimise_seconds=clock.optimise - before.optimise,
                seconds=time.perf_counter() - epoch_began,
                weights=weights.top(SHOWN_WEIGHTS),
                **step.facts,
            )
            if directory is not None:
                directory.save_epoch_weights(number, weights, {"epoch": number})
                _checkpoint(journal, number, weights, best, curve, clock, step.state, decoded)
        final: Weights = best["weights"]
        journal.event("run_end", run=0, epoch=best["iteration"], score=best["score"])
        changed, before_and_after = None, list[list[str]]()
        if journal.finished and directory is not None:
            changed = (directory.result() or {}).get("changed")
        elif not measure.columns:
            # A run that was resumed has not seen what came before.
            for part, chosen in (("before", start), ("after", final)):
                if part not in texts:
                    texts[part] = output(decode(source, chosen, 1), chosen)[1]
            before_and_after = [texts["before"], texts["after"]]
            rows = [measure.stats(each, source.references) for each in before_and_after]
            changed = count_changes(measure, rows, before_and_after)
        result = LiveResult(
            tuner=settings["preset"],
            metric=measure.name,
            signature=spaces.signature(measure),
            weights=final,
            start=best["start"],
            tuned=best["score"],
            heldout=best["heldout"],
            heldout_start=best["heldout_start"],
            iterations=len(curve) - 1,
            seconds=clock.total,
            decode_seconds=clock.decode,
            optimise_seconds=clock.optimise,
            nonzero=final.nonzero,
            refused=_refused(measure, start, final, weights, best, keep),
            curve=curve,
            idle_limits=idle_limits(loop.names, setup.bounds, setup.fixed),
            changed=changed,
        )
        final.meta.update(
            tuner=result.tuner,
            metric=measure.name,
            signature=result.signature,
            start=result.start,
            tuned=result.tuned,
            version=_core.__version__,
            # Passes see each list only once, under weights that are gone by the end.
            spread=spreads(loop.spaces, final, threads) if loop.k is None else None,
            **dict(meta or {}),
        )
        journal.event(
            "end",
            start=result.start,
            tuned=result.tuned,
            heldout=result.heldout[0] if result.heldout else None,
            heldout_start=result.heldout_start[0] if result.heldout_start else None,
            heldout_all=result.heldout,
            heldout_start_all=result.heldout_start,
            changed=result.changed,
            seconds=result.seconds,
            weights=final.top(SHOWN_WEIGHTS),
            status="refused" if result.refused else "ok",
            reason=result.refused,
        )
        if directory is not None and not journal.finished:
            directory.save_weights(final, final.meta)
            if before_and_after:
                directory.save_changes(changes(measure, rows, before_and_after, spaces))
            directory.finish(result.to_json())
    return result


def _check(
    seed: int, threads: int, keep: Keep, heldout: Sequence[Source], iterations: int | None
) -> None:
    check_request(seed, threads, keep)
    if keep == "heldout" and not heldout:
        raise InputError(
            "weights are to be chosen on held-out text, but there is none",
            remedy="give a held-out source and its references",
        )
    if iterations is not None and iterations < 1:
        raise InputError(f"{iterations} iterations", remedy="give at least one")


def _held(source: Source, fixed: Mapping[str, float], bounds: Bounds) -> Mapping[str, float]:
    """Return the weights that the model itself wants to stay; refuse limits for absent features."""
    if not isinstance(source, Live):
        return {}
    model = source.model
    for name in model.absent:
        if name in fixed or name in bounds:
            raise no_feature(
                name, [each for each in model.decoder.dense if each not in model.absent]
            )
    return model.fixed


def _named(source: Source, setup: Setup) -> list[str]:
    """Return the features that have a weight from the start because of their limits.

    Refuses limits that cannot be, and names that no feature of the model can have. What a command
    may find is not known, so its limits wait for the features.
    """
    check_limits(setup.bounds, setup.fixed)
    if not isinstance(source, Live):
        return []
    dense = source.model.decoder.dense
    names = [name for name in {**setup.bounds, **setup.fixed} if not is_pattern(name)]
    sparse = [name for name in names if name not in dense]
    unknown = {*source.model.unknown(dict.fromkeys(sparse, 1.0))}
    if source.model.templates is not None:
        # Only dense features have names without a prefix.
        unknown |= {name for name in sparse if ":" not in name}
    for name in sparse:
        if name in unknown:
            raise no_feature(name, dense)
    return [*dense, *names]


def _idle(source: Source, setup: Setup, start: Weights, spaces: Spaces) -> dict[str, list[str]]:
    """Return weights and limits without a feature so far; of our own models more may come."""
    if isinstance(source, Live):
        return {}
    known = set(spaces.names)
    return {
        "idle_weights": [name for name, value in start.items() if value and name not in known],
        "idle_limits": idle_limits([*start, *spaces.names], setup.bounds, setup.fixed),
    }


def _checkpoint(
    journal: Journal,
    done: int,
    weights: Weights,
    best: Mapping[str, Any],
    curve: list[float],
    clock: _Clock,
    loop: State,
    decoded: Mapping[str, str],
) -> None:
    parts = {"weights": _arrays(weights), "best": _arrays(best["weights"]), "loop": loop}
    arrays = {f"{part}.{name}": a for part, named in parts.items() for name, a in named.items()}
    kept = {key: value for key, value in best.items() if key != "weights"}
    seconds = [clock.decode, clock.optimise, clock.total]
    state = {"done": done, "best": kept, "curve": curve, "clock": seconds, "decoded": decoded}
    journal.checkpoint(arrays, state, now=True)


def _refused(
    metric: Metric,
    start: Mapping[str, float],
    weights: Weights,
    last: Weights,
    best: Mapping[str, Any],
    keep: Keep,
) -> str | None:
    names = list(dict.fromkeys([*start, *weights, *last]))
    before, after, tried = (Weights(each).vector(names) for each in (start, weights, last))
    if same_direction(after, before) and not same_direction(tried, before):
        on = " on held-out text" if keep == "heldout" else ""
        return f"no decoding with other weights scored better{on} than the start, which was kept"
    return refusal(metric, before, after, best["start"], best["score"])


def _digests(
    source: Source, heldout: Sequence[Source], start: Mapping[str, float]
) -> dict[str, str]:
    """Return a hash of each input, so that a run is resumed with the same or told which is not."""
    inputs: dict[str, object] = {
        "source": source.sources,
        "references": source.references,
        "start weights": sorted(start.items()),
    }
    for number, each in enumerate(heldout, 1):
        inputs[f"held-out text {number}"] = (each.sources, each.references)
    return {
        name: hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()
        for name, value in inputs.items()
    }


def _told(source: Source, heldout: Sequence[Source]) -> dict[str, object]:
    """Return what each source tells of its settings."""
    named = {"source": source} | {f"held-out {n}": each for n, each in enumerate(heldout, 1)}
    return {name: each.told() for name, each in named.items() if hasattr(each, "told")}


def _arrays(weights: Weights) -> State:
    return {"names": packed(list(weights)), "values": np.array(list(weights.values()), np.float64)}


def _part(arrays: Mapping[str, Any], part: str) -> dict[str, Any]:
    return {
        name.removeprefix(f"{part}."): array
        for name, array in arrays.items()
        if name.startswith(f"{part}.")
    }


def _weights(arrays: Mapping[str, Any], part: str) -> Weights:
    found = _part(arrays, part)
    return Weights(dict(zip(unpacked(found["names"]), found["values"].tolist(), strict=True)))


def _file(directory: RunDirectory, number: int) -> Path:
    return directory.path / "decoded" / f"{number:04d}"


def _save(directory: RunDirectory | None, number: int, found: Spaces) -> dict[str, str]:
    """Keep what an iteration decoded, and return the file's name with its digest."""
    if directory is None:
        return {}
    path = _file(directory, number)
    path.parent.mkdir(exist_ok=True)
    if isinstance(found, Forests):
        path = path.with_suffix(".forests")
        found.save(path)
    elif isinstance(found, Pools):
        path = path.with_suffix(".npz")
        rows, ids, values = found.core.csr()
        texts = found.core.texts(np.arange(found.hypotheses))
        write_checkpoint(
            path,
            {
                "starts": found.core.starts,
                "rows": rows,
                "ids": ids,
                "values": values,
                "texts": packed(texts),
                "names": packed(found.names),
                "scores": found.core.scores,
            },
            {},
            0,
            0,
        )
    return {path.name: file_digest(path)}


def _load(
    directory: RunDirectory, number: int, source: Source, decoded: Mapping[str, str]
) -> Spaces:
    """Return what an iteration decoded; refuses a file other than the one in the checkpoint."""
    path = _file(directory, number)
    path = next((path.with_name(name) for name in decoded if Path(name).stem == path.name), path)
    remedy = "start the run anew in another folder"
    if not path.is_file():
        raise InputError("what was decoded is missing", str(path), remedy=remedy)
    if file_digest(path) != decoded.get(path.name):
        raise InputError(
            "this is not the file that the run decoded: its digest differs from the checkpoint's",
            str(path),
            remedy=f"put the run's own file back, or {remedy}",
        )
    if path.suffix == ".forests":
        return Forests.load(path, source.references, source.sources)
    kept = read_checkpoint(path)
    assert kept is not None, "the file is there"
    part = kept.arrays
    core = _core.Pools.from_arrays(
        part["starts"],
        unpacked(part["texts"]),
        part["rows"],
        part["ids"].astype(np.int64),
        part["values"].astype(np.float64),
        unpacked(part["names"]),
        part["scores"],
    )
    return Pools(core, source.references, source.sources)
