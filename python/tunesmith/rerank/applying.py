"""Application of weights to lists: the best hypothesis of each, or the lists re-ordered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike

import numpy as np

from tunesmith.formats import Along, Reading, Skipped, write_nbest
from tunesmith.formats.base import is_stream
from tunesmith.spaces import Pools
from tunesmith.spaces.derived import derived_in, with_derived
from tunesmith.spaces.reading import File
from tunesmith.weights import Weights

# Maximum number of sentences in memory, for formats that allow streaming.
STREAMED = 1000


@dataclass(frozen=True)
class Applied:
    """The lines that were skipped and the features that occurred while weights were applied."""

    skipped: list[Skipped] = field(default_factory=list)
    features: set[str] = field(default_factory=set)

    def unknown(self, weights: Weights) -> list[str]:
        """Return the names of non-zero weights without a feature in the lists."""
        return sorted(
            name for name, value in weights.items() if value and name not in self.features
        )


def apply_lines(
    nbest: File, weights: Weights, reading: Reading, applied: Applied, threads: int = 0
) -> Iterator[str]:
    """Yield the best hypothesis of each list, from a pipe as soon as the list is complete.

    Features of the lists themselves are added where the weights name them.
    """
    limit = 1 if is_stream(nbest) else STREAMED
    derived = derived_in(weights)
    for read in reading.stream(nbest, limit, applied.skipped):
        part = with_derived(Pools(read), derived, threads)
        applied.features.update(part.names)
        yield from part.outputs(part.best(part.vector(weights, partial=True), threads))


def apply_nbest(
    nbest: File,
    weights: Weights,
    target: str | PathLike[str],
    name: str,
    format: str | None,
    reading: Reading,
    threads: int = 0,
) -> Applied:
    """Write the re-ordered lists with the model's score as `name`.

    The total stays the decoder's; sources and references are kept, and so are features of the lists
    themselves that the weights name.
    """
    along = Along()
    read = reading.read(nbest, along)
    pools = with_derived(Pools(read.pools), derived_in(weights), threads)
    scores = pools.core.dot(pools.vector(weights, partial=True), threads)
    starts = pools.core.starts
    lists = np.repeat(np.arange(pools.sentences), np.diff(starts))
    # Stable: equal scores keep the order of the file.
    order = np.lexsort((np.arange(pools.hypotheses), -scores, lists))
    write_nbest(
        pools.core,
        target,
        format or reading.format_of(nbest),
        order=order.astype(np.int64),
        scores={name: scores},
        sources=along.sources,
        references=along.references,
        first_id=reading.first_id,
        keyed=reading.keyed,
    )
    return Applied(read.skipped, set(pools.names))
