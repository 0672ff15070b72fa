"""Learning the weights of a task."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.structured.model import Model, Progress
from tunesmith.structured.settings import Pass, Training
from tunesmith.structured.tasks import Parser, Tagger, Task
from tunesmith.structured.weights import Weights

__all__ = ["Pass", "Training", "train"]
Tell = Callable[[Pass], object]


def train(
    task: Tagger | Parser | Task,
    examples: Iterable[tuple[Any, Any]],
    training: Training | None = None,
    *,
    dev: Iterable[tuple[Any, Any]] | None = None,
    threads: int = 0,
    progress: Progress | None = None,
    tell: Tell | None = None,
) -> Model:
    """Return a model learnt from examples: pairs of an input and its right output.

    The weights are those after the last pass, or with `dev` after the pass that is best there
    (right tags, heads with labels, or outputs). `progress` is called with stage, examples done and
    all examples; `tell` after each pass. Examples without a gold derivation are counted and left
    out. Raise an `InputError` if there are no others, or if nothing was learnt.
    """
    training = training or Training()
    pairs = list(examples)
    if not pairs:
        raise InputError("there are no examples", remedy="give at least one")
    if isinstance(task, Tagger | Parser):
        task = task.fitted(pairs)
        kernel, rows = task.kernel(), task.rows(pairs)
    else:
        kernel, rows = _core.StructuredTask.python(task), pairs
    learner = kernel.learner(
        rows,
        beam=training.beam,
        update=training.update,
        method=training.learner,
        c=training.c,
        k=training.k,
        batch=training.batch,
        voters=training.voters if training.weights == "voted" else 0,
        seed=training.seed,
    )
    skipped = sum(learner.skipped)
    if skipped == len(pairs):
        raise InputError(
            "no example has a gold derivation",
            remedy="check is_gold: some derivation must be gold up to its end"
            if not isinstance(task, Tagger | Parser)
            else "give projective trees",
        )
    held = None if dev is None else list(dev)
    history: list[Pass] = []
    kept: tuple[int, Weights] | None = None
    for number in range(1, training.passes + 1):
        began = time.perf_counter()
        # One learner needs no mixing.
        shards = training.shards if training.shards > 1 else 0
        seen = learner.run_pass(number, shards, threads, progress)
        seconds = time.perf_counter() - began
        weights = Weights.of(learner.weights()) if held is not None else None
        accuracy = None
        if held is not None and weights is not None:
            accuracy = _accuracy(Model(task, training, weights), held, threads)
            best = max((each.dev or 0.0 for each in history), default=-1.0)
            if accuracy > best:
                kept = number, weights
        history.append(Pass(*seen, seconds=seconds, dev=accuracy))
        if tell is not None:
            tell(history[-1])
    place, weights = kept or (training.passes, Weights.of(learner.weights()))
    if not len(weights):
        raise InputError(
            "nothing was learnt: no example needs weights, or features tell no actions apart",
            remedy="give examples with different outputs, and features of the actions",
        )
    return Model(task, training, weights, tuple(history), place, len(pairs) - skipped, skipped)


def _accuracy(model: Model, pairs: Sequence[tuple[Any, Any]], threads: int) -> float:
    """Return the percentage of right parts of outputs, or of right outputs."""
    found = model.predict([given for given, _ in pairs], threads=threads)
    task = model.task
    right = total = 0
    for (_, wanted), output in zip(pairs, found, strict=True):
        one = task.right(wanted, output) if isinstance(task, Tagger | Parser) else None
        ours, all_ = one or (int(wanted == output), 1)
        right, total = right + ours, total + all_
    return 100.0 * right / total if total else 0.0
