"""What forests hold, and MERT on them: against lists of the same decodings.

Run it with `python -m benchmarks forest-mert oracles`. A hierarchical model is trained from
Multi30k first; pop limit 30.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.harness import Claim, Outcome, Time, best_of, say, timed
from tunesmith import _core
from tunesmith.decode.translation import Model
from tunesmith.sources import Live
from tunesmith.sources.live import SpaceName
from tunesmith.spaces import Forests, Spaces
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide
from tunesmith.tuning import tune

SEARCH = {"pop_limit": 30.0}
ITERATIONS = 5
THREADS = 2
LISTS = (1, 500, 50_000, 100_000)


@contextmanager
def hierarchical(setting: Setting) -> Iterator[Model]:
    """Train on Multi30k."""
    source, target = (setting.file("multi30k", f"train.{side}.gz") for side in ("de", "en"))
    german, english = (TextSide(name, tokenize="none", case="keep") for name in ("de", "en"))
    with tempfile.TemporaryDirectory() as name:
        say("  training")
        folder = Path(name) / "model"
        train(Training(source, target, german, english, "hiero"), folder, THREADS)
        yield Model.load(folder, "hiero")


def corpus(
    setting: Setting, model: Model, name: str, space: SpaceName, count: int | None, **options: Any
) -> Live:
    """Return sentences and references to decode."""
    source, target = (
        text_lines(setting.file("multi30k", f"{name}.{side}.gz"))[:count] for side in ("de", "en")
    )
    references = [[line] for line in target]
    return Live(model, source, references, 100, space, SEARCH, tokenized=True, **options)


def per_direction(spaces: Spaces, model: Model, setting: Setting) -> Time:
    """Return the mean time of a search along an axis, one thread."""
    table = spaces.table(setting.metric, 1)
    every = list(range(len(spaces.names)))
    search = _core.LineSearch(spaces.core, table, setting.metric.native, every, 1)
    walker = search.walker(spaces.vector(model.weights))

    def axes() -> None:
        for axis in every:
            walker.axis(axis, -np.inf, np.inf)

    _, time = best_of(setting.times(3), axes)
    return Time(time.cpu / len(every), time.wall / len(every))


def mert(setting: Setting) -> Outcome:
    """Tune on val with lists and with forests, as many decodings each."""
    count = 60 if setting.quick else None
    iterations, seeds = (2, (1,)) if setting.quick else (ITERATIONS, (1, 2, 3))
    outcome = Outcome(f"MERT on lists and on forests, {iterations} iterations, pop limit 30")
    reached: dict[str, list[float]] = {}
    apart = 0.0
    with hierarchical(setting) as model:
        test = corpus(setting, model, "test_2016_flickr", "list", count)
        spaces: tuple[SpaceName, ...] = ("list", "forest")
        for space in spaces:
            dev = corpus(setting, model, "val", space, count)
            found = dev.decode(model.weights)
            direction = per_direction(found, model, setting)
            if isinstance(found, Forests):
                apart = _apart(found, model, setting)

            def run(seed: int, dev: Live = dev) -> Any:
                return tune(
                    dev,
                    "mert",
                    METRIC,
                    start=model.weights,
                    heldout=[test],
                    iterations=iterations,
                    seed=seed,
                )

            scores = []
            for seed in seeds:
                result, time = timed(partial(run, seed))
                scores.append([result.tuned, result.heldout])
                say(f"  {space}: {result.tuned:.2f}, {result.heldout:.2f}, {time.cpu:.0f} CPU s")
                outcome.rows.append(
                    {
                        "space": space,
                        "seed": seed,
                        "hypotheses or edges": found.hypotheses,
                        "ms a direction": 1000 * direction.cpu,
                        "val": result.tuned,
                        "test 2016": result.heldout,
                        "CPU s, decoding too": time.cpu,
                        "val after each decoding": " ".join(f"{each:.2f}" for each in result.curve),
                    }
                )
            reached[space] = np.mean(scores, axis=0).tolist()
    outcome.claims.append(Claim("projected and decoded BLEU apart", apart, 1e-9, "at most"))
    if not setting.quick:
        val, lists = reached["forest"][0], reached["list"][0]
        outcome.claims.append(Claim("val, forests against lists, means", val, lists, "at least"))
    return outcome


def _apart(forests: Forests, model: Model, setting: Setting) -> float:
    """Return the greatest difference of what a step projects and what is decoded there."""
    metric, start = setting.metric, forests.vector(model.weights)
    assert forests.references is not None
    search = _core.LineSearch(
        forests.core, forests.table(metric), metric.native, list(range(len(start)))
    )
    most = 0.0
    for axis in range(len(start)):
        step, gain = search.walker(start).axis(axis, -np.inf, np.inf)
        there = start.copy()
        there[axis] += step
        outputs = forests.outputs(forests.best(there))
        score = metric.corpus_score(outputs, forests.references)
        most = max(most, abs(score - 100 * gain))
    return most


def oracles(setting: Setting) -> Outcome:
    """The best BLEU that lists of growing length hold, and the forest."""
    lengths = LISTS[:2] if setting.quick else LISTS
    outcome = Outcome("Oracle BLEU on val, pop limit 30")
    with hierarchical(setting) as model:
        count = 10 if setting.quick else None
        found = corpus(setting, model, "val", "forest", count, density=None).decode(model.weights)
        assert isinstance(found, Forests)
        weights, metric = found.vector(model.weights), setting.metric
        scores = []
        for k in lengths:
            lists, time = timed(lambda k=k: found.kbest(weights, k))  # type: ignore[misc]
            scores.append(lists.score(metric, lists.oracle(metric)))
            say(f"  {k}: {scores[-1]:.2f}")
            mean = lists.hypotheses / lists.sentences
            outcome.rows.append(
                {"space": f"{k:,}-best", "strings": mean, "BLEU": scores[-1], "CPU s": time.cpu}
            )
        chosen, time = timed(lambda: found.oracle(metric, weights))
        whole = found.score(metric, chosen)
        outcome.rows.append({"space": "forest", "BLEU": whole, "CPU s": time.cpu})
    outcome.claims = [Claim("the forest against its longest list", whole, scores[-1], "at least")]
    outcome.notes = [
        "Lists are unique by string; `strings` is how many there are on average. The oracle of "
        "the forest is what a search finds, a lower bound; CPU s are those of the list, or of "
        "this search."
    ]
    return outcome
