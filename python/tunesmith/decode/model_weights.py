"""Weights of translation models: default weights, and the kind of model that weights fit."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from math import log
from pathlib import Path
from typing import Literal

from tunesmith.decode.templates import TEMPLATES, template_of
from tunesmith.errors import WithoutEffect, check_regular
from tunesmith.training.model import check_templates
from tunesmith.weights import Weights

Kind = Literal["phrase", "hiero"]

# Default weights by the ends of names: Moses' for phrases, cdec's for hierarchical rules. cdec's
# columns are costs.
_UNTUNED: dict[Kind, dict[str, float]] = {
    "phrase": {
        "lm": 0.5,
        "|e)": 0.2,
        "|f)": 0.2,
        "words": 1.0,
        "phrases": 0.2,
        "unknown": -100.0,
        "distortion": 0.3,
        "monotone": 0.3,
        "swap": 0.3,
        "discontinuous": 0.3,
    },
    "hiero": {
        "lm": 0.1 / log(10),
        "lm-unknown": -1.0,
        "EgivenFCoherent": -0.1,
        "SampleCountF": -0.1,
        "CountEF": 0.1,
        "MaxLexFgivenE": -0.1,
        "MaxLexEgivenF": -0.1,
        "IsSingletonF": -0.01,
        "IsSingletonFE": -0.01,
        "glue": 0.01,
        "unknown": -0.1,
    },
}


# Features that only models of one kind have.
_MARKS: dict[Kind, tuple[str, ...]] = {
    "phrase": ("phrases", "distortion"),
    "hiero": ("lm-unknown", "glue"),
}
WEIGHTS = "weights.toml"
"""The weights file in a model directory, used if no other weights are given."""
SHOWN_NAMES = 3
"""Maximum number of names in a message."""


def untuned(names: Iterable[str], kind: Kind = "phrase") -> Weights:
    """Return default weights for a model with these features.

    >>> dict(untuned(["lm", "p(e|f)", "words", "count"]))
    {'lm': 0.5, 'p(e|f)': 0.2, 'words': 1.0, 'count': 0.0}
    """
    ends = _UNTUNED[kind]
    return Weights(
        {name: next((ends[end] for end in ends if name.endswith(end)), 0.0) for name in names}
    )


def templates_of(weights: Weights) -> list[str]:
    """Return the templates whose features the weights were tuned with.

    If the weights do not record them, the names of the features decide. Raise if one is unknown.

    >>> templates_of(Weights({"lm": 0.5, "PT:das~the": 1.0, "WP:das~the": -0.1}))
    ['pairs', 'rule-id']
    """
    found = weights.meta.get("templates")
    if isinstance(found, list):
        names = [str(name) for name in found]
        check_templates(names, weights.file or "weights")
        return names
    heads = {name.partition(":")[0] for name in weights if ":" in name}
    known = {each.name for each in TEMPLATES}
    return sorted({template_of(f"{head}:") for head in heads} & known)


def kind_of(weights: Weights) -> Kind | None:
    """Return the kind of rules that weights were tuned for, `None` if unknown.

    If the weights do not record it, features that only one kind has decide.

    >>> kind_of(Weights({"lm": 0.5, "glue": -1.0})), kind_of(Weights({"lm": 0.5}))
    ('hiero', None)
    """
    recorded = weights.meta.get("kind")
    found = [kind for kind, names in _MARKS.items() if any(name in weights for name in names)]
    return next(
        (kind for kind in _MARKS if kind == recorded), found[0] if len(found) == 1 else None
    )


def without_effect(names: Sequence[str], file: str | None, where: str | None) -> str:
    """Return a warning about weights without effect; `where` says where to turn templates on."""
    known = {each.name for each in TEMPLATES} if where else set()
    off = sorted({template_of(name) for name in names} & known)
    remedy = "correct the names"
    if off:
        remedy += f", or add {', '.join(off)} to {where}"
    place = "" if file is None else f"{file}: "
    more = ", …" if len(names) > SHOWN_NAMES else ""
    return (
        f"{place}weights without effect, because the model has no such features: {len(names):,}, "
        f"{', '.join(names[:SHOWN_NAMES])}{more} ({remedy})"
    )


def own_weights(folder: Path, kind: Kind) -> Weights | None:
    """Return the weights in a model directory, or None if there are none for this kind of rules."""
    path = folder / WEIGHTS
    check_regular(path)
    if not path.is_file():
        return None
    weights = Weights.load(path)
    found = kind_of(weights)
    if found in (None, kind):
        return weights
    warnings.warn(
        f"{path}: these weights were tuned for {found} rules and are not used for {kind} rules "
        f"(tune for {kind} rules, too, and name the weights)",
        WithoutEffect,
        stacklevel=3,
    )
    return None
