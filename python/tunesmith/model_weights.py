"""Weights of models that translate: where tuning starts, and what weights were tuned for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from typing import Literal

from tunesmith.features import Weights
from tunesmith.templates import TEMPLATES, template_of
from tunesmith.training.model import check_templates

Kind = Literal["phrase", "hiero"]

# Where tuning starts: Moses' weights for phrases, cdec's for hierarchical rules, by the ends of
# names. Columns of cdec are costs.
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


# Features that models of one kind have and those of the other have not.
_MARKS: dict[Kind, tuple[str, ...]] = {
    "phrase": ("phrases", "distortion"),
    "hiero": ("lm-unknown", "glue"),
}
SHOWN = 3
"""Names that a message holds at most."""


def untuned(names: Iterable[str], kind: Kind = "phrase") -> Weights:
    """Return sensible weights for a model of which nothing is known but its features.

    >>> dict(untuned(["lm", "p(e|f)", "words", "count"]))
    {'lm': 0.5, 'p(e|f)': 0.2, 'words': 1.0, 'count': 0.0}
    """
    ends = _UNTUNED[kind]
    return Weights(
        {name: next((ends[end] for end in ends if name.endswith(end)), 0.0) for name in names}
    )


def templates_of(weights: Weights) -> list[str]:
    """Return the templates whose features the weights were tuned with.

    Where nobody wrote them down the names of the features tell. Refuses templates that there are
    not.

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
    """Return the kind of rules that weights were tuned for, `None` where they do not tell.

    Where nobody wrote it down, features tell that only one kind has.

    >>> kind_of(Weights({"lm": 0.5, "glue": -1.0})), kind_of(Weights({"lm": 0.5}))
    ('hiero', None)
    """
    told = weights.meta.get("kind")
    found = [kind for kind, names in _MARKS.items() if any(name in weights for name in names)]
    return next((kind for kind in _MARKS if kind == told), found[0] if len(found) == 1 else None)


def without_effect(names: Sequence[str], file: str | None, where: str | None) -> str:
    """Return the message for weights without effect; `where` says how templates are turned on."""
    known = {each.name for each in TEMPLATES} if where else set()
    off = sorted({template_of(name) for name in names} & known)
    remedy = "correct the names"
    if off:
        remedy += f", or add {', '.join(off)} to {where}"
    place = "" if file is None else f"{file}: "
    more = ", …" if len(names) > SHOWN else ""
    return (
        f"{place}weights without effect, for this model has no such features: {len(names):,}, "
        f"{', '.join(names[:SHOWN])}{more} ({remedy})"
    )
