"""Weights of each test sentence: the systems of a recipe that have `local`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from threading import Lock
from typing import Any

from tunesmith.experiments.recipe import System
from tunesmith.experiments.worlds import Read, World
from tunesmith.local import Index, Local, LocalTranslator
from tunesmith.local.manifest import FILE, Manifest
from tunesmith.weights import Weights

OWN = ("examples", "text")
"""What `local` of a system has besides the arguments of `Local`."""

# Runs side by side may want the same index: one of them builds it.
_BUILDING = Lock()


def has_local() -> bool:
    """Whether the extra that local training needs is installed."""
    return find_spec("tantivy") is not None


def translated_locally(world: World, system: System, weights: Weights, read: Read) -> list[str]:
    """Translate a text with weights that are learnt for each sentence, from its neighbours.

    The neighbours come from an index of the training text, or of the tuning texts that `text`
    names; it is built once for a model and its weights. Sentences that equal the one to be
    translated are passed over.
    """
    assert system.local is not None
    live = world.live(read, system)
    translator = world.model(system.templates).translator(
        weights, live.settings, tokenized=world.task.tokenized
    )
    examples = _examples(world, system.local)
    folder = world.store.path(
        "indexes",
        {
            "model": world.model_digest,
            "weights": dict(weights),
            "settings": dict(live.settings),
            "text": examples.digest,
        },
    )
    with _BUILDING:
        path = folder / "index"
        if (path / FILE).exists() and Manifest.load(path).building is None:
            index = Index.open(path, translator)
        else:
            index = Index.build(path, translator, examples.lines, examples.references, threads=1)
    how = {key: value for key, value in system.local.items() if key not in OWN}
    # A test sentence that is among the examples must not retrieve itself.
    made = Local(**{"leave_out": True, **how})
    found = LocalTranslator(translator, index, made).translate(read.lines, threads=1)
    return [each.target for each in found]


def _examples(world: World, local: Mapping[str, Any]) -> Read:
    """Return what the index is built from."""
    if "text" not in local:
        found = world.training()
    else:
        parts = [world.tuning(str(name)) for name in local["text"]]
        found = Read(
            [line for part in parts for line in part.lines],
            [each for part in parts for each in part.references],
        )
    return found.spread(int(local.get("examples", 0)) or None)
