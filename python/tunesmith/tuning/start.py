"""What tuning starts from: sources, weights within their limits, and what they choose."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tunesmith.errors import InputError
from tunesmith.metrics import Metric
from tunesmith.sources import Saved, Source
from tunesmith.sources.base import Choice
from tunesmith.tuning.limits import is_pattern, within
from tunesmith.tuning.setup import Setup
from tunesmith.weights import Vector, Weights


@dataclass(frozen=True)
class Start:
    """Sources, the weights to begin with, and what they choose where that is known already."""

    source: Source
    heldout: Sequence[Source]
    setup: Setup
    """With the limits that the source itself has."""
    weights: Weights
    choice: Choice | None = None
    heldout_choices: list[Choice] = field(default_factory=list)

    def digests(self, metric: Metric) -> dict[str, str]:
        """Return a hash of each input, so that a run is resumed with the same."""
        weights = repr(sorted(self.weights.items())).encode("utf-8", "surrogatepass")
        return {
            "source and references": self.source.digest(metric),
            "start weights": hashlib.sha256(weights).hexdigest(),
            **{
                f"held-out text {number}": each.digest(metric)
                for number, each in enumerate(self.heldout, 1)
            },
        }

    def resume_keys(self) -> dict[str, object]:
        """Return the settings of each source."""
        named = {"source": self.source}
        named |= {f"held-out {number}": each for number, each in enumerate(self.heldout, 1)}
        return {name: key for name, each in named.items() if (key := each.resume_key())}


def make_start(
    source: Source,
    heldout: Sequence[Source],
    given: Mapping[str, float] | Vector | None,
    setup: Setup,
) -> Start:
    """Return the start; raise if limits name no feature, or leave no weight free."""
    if isinstance(source, Saved):
        return _saved_start(source, heldout, given, setup)
    if not isinstance(given, Mapping):
        raise InputError("a decoder needs weights to start from", remedy="give start weights")
    known = source.named_features(
        [name for name in {**setup.bounds, **setup.fixed} if not is_pattern(name)]
    )
    setup = replace(setup, fixed={**source.kept_weights, **setup.fixed})
    weights = within(Weights(given), setup.bounds, setup.fixed, known)
    return Start(source, heldout, setup, weights)


def _saved_start(
    source: Saved,
    heldout: Sequence[Source],
    given: Mapping[str, float] | Vector | None,
    setup: Setup,
) -> Start:
    names = source.spaces.names
    task = setup.task(source.spaces, growing=False)
    if not task.free.any():
        raise InputError("every weight is fixed", remedy="leave at least one of them free")
    vector, choice = source.opening(given, setup.threads)
    aligned = [each.aligned(names) if isinstance(each, Saved) else each for each in heldout]
    begin = Weights.from_vector(names, vector)
    choices = [
        each.opening(None)[1]
        if isinstance(each, Saved) and given is None
        else each.choose(begin, setup.threads)
        for each in aligned
    ]
    weights = Weights.from_vector(names, task.clip(vector))
    return Start(source, aligned, setup, weights, choice, choices)
