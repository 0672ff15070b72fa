"""Options of presets: which values they can have, what they mean, and when they have an effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

from tunesmith.errors import InputError


@dataclass(frozen=True)
class Range:
    """The numbers that an option can be; `open` leaves the least one out."""

    least: float
    most: float = 1_000_000
    open: bool = False

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most and not (self.open and value == self.least)

    def __str__(self) -> str:
        return f"{'above' if self.open else 'from'} {self.least:g} up to {self.most:,}"


Count = Annotated[int, Range(1)]
Whole = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0, open=True)]
Amount = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]
# A factor that leaves some of what it multiplies.
Part = Annotated[float, Range(0, 1, open=True)]
Bound = Annotated[float, Range(0, inf, open=True)]

# What options mean; where a preset means something else, its name stands before.
MEANINGS = {
    "alpha": "how sharply p ∝ exp(α s) prefers high scores",
    "anneal": "what alpha is multiplied by after each step",
    "average": "what is proposed: the mean of all passes, of the last, or the weights as they are",
    "batch": "sentences that see the same weights",
    "beta": "β, how much gains count beside scores where hopes are chosen",
    "bound": "B, which scores of a sentence may differ by at most",
    "budget": "points of a whole grid at most",
    "c": "C, the largest step; 0: as large as it takes",
    "coarse": "gain of a round on forests below which a search ends",
    "decay": "what the background is multiplied by after each sentence",
    "decrease": "what the learning rate is multiplied by after each pass",
    "directions": "random directions to search along, besides the axes",
    "epsilon": "violation below which no constraint is added",
    "epsilon_bound": "the same for the bounds",
    "eta": "η, the learning rate",
    "first": "pairs that are drawn in the first half of the rounds",
    "gain": "what a hypothesis is worth: alone, over a background, or within the corpus",
    "gain_scale": "what gains are multiplied by: 1, the sentence's length, or that with background",
    "history": "what goes to the background: the model's best, or y+",
    "interpolate": "ψ, how far the weights move towards each round's solution",
    "iterations": "steps of L-BFGS at each alpha at most",
    "k": "candidates of a sentence; 0: all of them",
    "adagrad.k": "length of the lists of a live decoder",
    "keep": "the most different pairs, which are kept",
    "l1": "λ of the L1 penalty, which makes weights zero",
    "l2": "strength of the L2 penalty",
    "learner": "the update: MIRA, or a perceptron",
    "linear": "the linearised form",
    "lists": "hopes against fears, or the model's, hopes and fears against the best hope",
    "loss": "of pairs, or the expected gain",
    "max_iter": "moves of each step at most",
    "mix": "times a pass that shards are averaged; 0: only what they propose",
    "n": "length of the lists of hopes and of fears",
    "objective": "mean gain of sentences, or gain of the corpus",
    "oracle": "y+: hope, lowest cost among the k best, lowest cost of all",
    "pairs": "pairs that are kept of each sentence",
    "passes": "passes over the sentences at most",
    "rampion.passes": "passes over the fears in each round",
    "points": "values to try for each weight",
    "prediction": "y-: fear, the model's best, highest cost",
    "price": "D, the largest step for the bounds",
    "r": "how slowly confidence grows",
    "rate": "the learning rate",
    "restarts": "points to search from, around the start and the best so far",
    "rounds": "rounds at most",
    "samples": "pairs that are drawn for each sentence",
    "scale_update": "multiply steps by the oracle's gain",
    "shards": "learners, each on its part of the sentences",
    "shuffle": "visit sentences in another order in each pass",
    "steps": "values of alpha, one after the other",
    "stop": "end when in three passes no weight moved by more",
    "threshold": "least difference in gain of a pair",
    "tolerance": "gain of a round below which a search ends",
    "tries": "random points",
    "variance": "of weights at the start",
}

_BACKGROUND = ("gain", ("background",))
_PAIRS = ("loss", ("logistic", "hinge"))
_MIRA = ("learner", ("mira",))
# Options that count only with some values of another, in presets that have both.
ONLY_WITH: dict[str, tuple[str, tuple[str, ...]]] = {
    "decay": _BACKGROUND,
    "history": _BACKGROUND,
    "samples": _PAIRS,
    "threshold": _PAIRS,
    "pairs": _PAIRS,
    "alpha": ("loss", ("expected",)),
    "beta": ("oracle", ("M-C",)),
    "c": _MIRA,
    "scale_update": _MIRA,
}


class Option(NamedTuple):
    """An option of a preset, for people."""

    default: Any
    allowed: str
    meaning: str


def meaning(name: str, key: str, known: Mapping[str, Any]) -> str:
    """Return what an option of a preset means; `known` are all that it has."""
    told = MEANINGS.get(f"{name}.{key}", MEANINGS[key])
    other, values = ONLY_WITH.get(key, ("", ()))
    return f"{told} ({other}={' or '.join(values)})" if other in known else told


def refuse_idle(name: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Refuse options that are not as they were anyway, and have no effect beside the others."""
    chosen = {**known, **given}
    for key, value in given.items():
        other, values = ONLY_WITH.get(key, ("", ()))
        if other in known and chosen[other] not in values and value != known[key]:
            raise InputError(
                f"{name}.{key} has no effect with {other}={chosen[other]}",
                remedy=f"leave it out, or use {other}={' or '.join(values)}",
            )


def typed(name: str, value: Any, kind: Any) -> Any:
    """Return a value read as the type of its option. Refuses what is not allowed."""
    if str(value).lower() == "none" and NoneType in get_args(kind):
        return None
    plain = _without_none(kind)
    if get_origin(plain) is Literal:
        if str(value) not in get_args(plain):
            raise InputError(f"{name} is {value!r}", remedy=f"use one of {allowed(kind)}")
        return str(value)
    if plain is bool:
        words = {
            "true": True,
            "1": True,
            "yes": True,
            "on": True,
            "false": False,
            "0": False,
            "no": False,
            "off": False,
        }
        if str(value).lower() not in words:
            raise InputError(f"{name} is {value!r}", remedy=f"use {allowed(kind)}")
        return words[str(value).lower()]
    found = _number(value, plain)
    if found is None:
        raise InputError(f"{name} is {value!r}", remedy=f"give {allowed(kind)}")
    return found


def _number(value: Any, kind: Any) -> float | None:
    """Read a value as a number within a range; None if it is no such number."""
    number, span = get_args(kind)
    try:
        found: float = number(value)
    except (TypeError, ValueError, OverflowError):
        return None
    cut = isinstance(value, float) and found != value
    return None if cut or found not in span else found


def allowed(kind: Any) -> str:
    """Return in words which values an option can have."""
    if NoneType in get_args(kind):
        return f"{allowed(_without_none(kind))}, or none"
    if get_origin(kind) is Literal:
        return ", ".join(get_args(kind))
    if kind is bool:
        return "true or false"
    number, span = get_args(kind)
    return f"{'a whole number' if number is int else 'a number'} {span}"


def _without_none(kind: Any) -> Any:
    """Return the type of an option that may be left open, where it is not."""
    if NoneType not in get_args(kind):
        return kind
    return next(each for each in get_args(kind) if each is not NoneType)
