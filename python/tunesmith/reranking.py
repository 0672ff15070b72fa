"""Apply weights to lists: the best hypothesis of each, or the lists in their new order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from os import PathLike, fspath

import numpy as np

from tunesmith.features import Weights
from tunesmith.formats import Skipped, detect, read_stream, write_nbest
from tunesmith.formats.nbest import NATIVE
from tunesmith.reading import File, Reading, read_lists
from tunesmith.spaces import Pools

# Sentences in memory at a time, where a format allows it.
STREAMED = 1000


def apply_lines(
    nbest: File, weights: Weights, reading: Reading, threads: int = 0
) -> tuple[Iterator[str], Callable[[], set[str]]]:
    """Return the best hypothesis of each list, one by one, and a function that tells, after the
    last, which weights met no feature."""
    met: set[str] = set()

    def lines() -> Iterator[str]:
        for part in _parts(nbest, reading):
            met.update(part.names)
            yield from part.outputs(part.best(weights, threads))

    return lines(), lambda: {name for name, value in weights.items() if value} - met


def apply_nbest(
    nbest: File,
    weights: Weights,
    target: str | PathLike[str],
    name: str,
    format: str | None,
    reading: Reading,
    threads: int = 0,
) -> tuple[list[str], list[Skipped]]:
    """Write the lists in their new order with the model's score under `name`.

    Returns the weights that met no feature, and what reading left out.
    """
    read = read_lists([nbest], (), None, reading)
    pools = read.pools
    scores = pools.core.dot(pools.vector(weights), threads)
    starts = pools.core.starts
    lists = np.repeat(np.arange(pools.sentences), np.diff(starts))
    # Stable: equal scores keep the order of the file.
    order = np.lexsort((np.arange(pools.hypotheses), -scores, lists))
    write_nbest(
        pools.core,
        target,
        format or reading.format or detect(nbest),
        order=order.astype(np.int64),
        scores={name: scores},
        first_id=reading.first_id,
        keyed=reading.keyed,
    )
    known = set(pools.names)
    return sorted(n for n, value in weights.items() if value and n not in known), read.skipped


def _parts(nbest: File, reading: Reading) -> Iterator[Pools]:
    """Yield the lists a thousand at a time where the format can be streamed, else all at once."""
    plain = Reading(format=reading.format, skip_bad=reading.skip_bad)
    if reading == plain and (reading.format or detect(nbest)) in NATIVE:
        for part in read_stream(
            fspath(nbest), reading.format, limit=STREAMED, skip_bad=reading.skip_bad
        ):
            yield Pools(part)
    else:
        yield read_lists([nbest], (), None, reading).pools
