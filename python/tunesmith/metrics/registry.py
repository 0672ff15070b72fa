"""Metrics by name: `bleu`, `bleu:tokenize=none,lowercase=1`, `chrf++`, `column:-COST`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tunesmith.errors import InputError
from tunesmith.metrics.base import Metric

Factory = Callable[..., Metric]

_FACTORIES: dict[str, Factory] = {}
_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def register(name: str, factory: Factory) -> None:
    """Make a metric known by name. Keyword arguments of `factory` become its options.

    An argument without a default takes what follows the colon: `column:NAME`.
    """
    _FACTORIES[name.lower()] = factory


def metric_names() -> list[str]:
    """Return the names that `get_metric` knows."""
    return sorted(_FACTORIES)


def get_metric(metric: str | Metric, **options: Any) -> Metric:
    """Return a metric by name, with options from the name and from keywords.

    A metric that is one already comes back as it is. Refuses names and options that do not exist
    and values that do not fit.

    >>> get_metric("bleu:tokenize=none,lowercase=1")
    Bleu(tokenize='none', lowercase=True, max_order=4, length='closest')
    >>> get_metric("chrf++", beta=3).label
    'chrF3++'
    """
    if isinstance(metric, Metric):
        if options:
            raise InputError(f"options for {metric!r}", remedy="set them where it is made")
        return metric
    name, _, rest = metric.partition(":")
    factory = _FACTORIES.get(name.strip().lower())
    if factory is None:
        names = ", ".join(metric_names())
        raise InputError(f"unknown metric {name!r}", remedy=f"choose one of {names}")
    arguments = inspect.signature(factory).parameters
    target = [key for key, value in arguments.items() if value.default is inspect.Parameter.empty]
    given: dict[str, Any] = {}
    for part in _parts(rest):
        key, equals, value = part.partition("=")
        known = bool(equals) and key.strip() in arguments
        if not known and target and target[0] not in given:
            given[target[0]] = part
        elif not known:
            raise _unknown(metric, part, list(arguments))
        else:
            given[key.strip()] = value.strip()
    for key in options:
        if key not in arguments:
            raise _unknown(metric, key, list(arguments))
    given |= options
    if target and target[0] not in given:
        raise InputError(f"{metric!r} names no {target[0]}", remedy=f"write {name}:NAME")
    for key, value in given.items():
        given[key] = _fit(metric, key, value, arguments[key].default)
    return factory(**given)


def _parts(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth = [""], 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += char
    return [part.strip() for part in parts if part.strip()]


def _unknown(metric: str, part: str, known: list[str]) -> InputError:
    options = ", ".join(f"{key}=…" for key in known) or "no options"
    return InputError(f"{metric!r} has no option {part!r}", remedy=f"it takes {options}")


def _fit(metric: str, key: str, value: Any, default: Any) -> Any:
    """Return an option's value with the type of its default."""
    try:
        if isinstance(default, bool):
            return _WORDS[str(value).lower()]
        if isinstance(default, int):
            return int(str(value))
        if isinstance(default, float):
            return float(value)
    except (KeyError, TypeError, ValueError):
        kind = {bool: "yes or no", int: "a whole number", float: "a number"}[type(default)]
        raise InputError(
            f"option {key} of {metric!r} is {value!r}", remedy=f"give {kind}"
        ) from None
    return value
