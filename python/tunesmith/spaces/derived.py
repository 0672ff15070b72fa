"""Features that hypotheses have by their place in a list, found without references.

Their names begin with `list:`. Weights that name them are enough to apply them: whoever applies
weights to lists adds the features first. A new one is a function of lists that returns a value for
each hypothesis:

>>> from tunesmith.spaces import Pools, derived
>>> derived.FEATURES["letters"] = lambda pools, threads: np.array(
...     [len(text) for text in pools.core.texts(np.arange(pools.hypotheses))], float
... )
>>> pools = Pools.from_arrays([[-1.0], [-2.0]], [0, 2], ["lm"], texts=["a b c", "a b"])
>>> derived.with_derived(pools, ["first", "letters"]).names
['lm', 'list:first', 'list:letters']
>>> del derived.FEATURES["letters"]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tunesmith.errors import InputError
from tunesmith.spaces.pools import Pools
from tunesmith.weights import Vector

PREFIX = "list:"
# Agreement varies by tenths within a list; tuners with a step size do best with features that vary
# by about one.
TIMES = 10.0


def _first(pools: Pools, threads: int) -> Vector:
    """Return 1 for the first hypothesis of each list."""
    del threads
    marks = np.zeros(pools.hypotheses)
    marks[pools.core.starts[:-1][np.diff(pools.core.starts) > 0]] = 1.0
    return marks


def _words(pools: Pools, threads: int) -> Vector:
    """Return the number of words."""
    del threads
    texts = pools.core.texts(np.arange(pools.hypotheses))
    return np.array([len(text.split()) for text in texts], float)


def _agreement(pools: Pools, threads: int) -> Vector:
    """Return ten times BLEU+1 against the mean of the other hypotheses' n-gram counts."""
    return TIMES * pools.core.agreement(True, threads)


def _agreement_chrf(pools: Pools, threads: int) -> Vector:
    """Return ten times chrF against the mean of the other hypotheses' n-gram counts."""
    return TIMES * pools.core.agreement(False, threads)


FEATURES: dict[str, Callable[[Pools, int], Vector]] = {
    "first": _first,
    "agreement": _agreement,
    "agreement-chrf": _agreement_chrf,
    "words": _words,
}


def with_derived(pools: Pools, names: Sequence[str], threads: int = 0) -> Pools:
    """Return lists with these features, given without prefix.

    Raises for names that are not in `FEATURES`, and where the lists have such a feature already.
    """
    chosen = list(dict.fromkeys(names))
    for name in chosen:
        if name not in FEATURES:
            raise InputError(
                f"no feature of lists is called {name!r}",
                remedy=f"use one of {', '.join(FEATURES)}",
            )
    if not chosen:
        return pools
    columns = [(PREFIX + name, FEATURES[name](pools, threads)) for name in chosen]
    core = pools.core.extended([(name, values.astype(np.float32)) for name, values in columns])
    found = Pools(core, pools.references, pools.sources)
    # The scores in the lists were made without these features.
    found._origin = pools.origin
    return found


def derived_in(weights: Iterable[str]) -> list[str]:
    """Return the features of this kind that weights name, without prefix."""
    return [name.removeprefix(PREFIX) for name in weights if name.startswith(PREFIX)]
