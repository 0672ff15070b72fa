"""Metrics by name: `bleu`, `bleu:tokenize=none,lowercase=1`, `chrf++`, `column:-COST`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tunesmith import plugins
from tunesmith.errors import InputError
from tunesmith.metrics.base import Metric

Factory = Callable[..., Metric]

_FACTORIES: dict[str, Factory] = {}
_WORDS = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}


def register(name: str, factory: Factory) -> None:
    """Register a metric under a name; keyword arguments of `factory` become its options.

    An argument without a default takes the text after the colon: `column:NAME`.
    """
    _FACTORIES[name.lower()] = factory


def metric_names() -> list[str]:
    """Return the names that `get_metric` knows."""
    plugins.load("metrics")
    return sorted(_FACTORIES)


def get_metric(metric: str | Metric, **options: Any) -> Metric:
    """Return a metric by name, with options from the name and from keywords.

    A `Metric` is returned unchanged. Raise for unknown names and options, and for values of the
    wrong type.

    >>> get_metric("bleu:tokenize=none,lowercase=1")
    Bleu(tokenize='none', lowercase=True, max_order=4, length='closest')
    >>> get_metric("chrf++", beta=3).label
    'chrF3++'
    """
    if isinstance(metric, Metric):
        if options:
            raise InputError(
                f"options for {metric!r}", remedy="set them when you create the metric"
            )
        return metric
    name, _, rest = metric.partition(":")
    known = name.strip().lower()
    if known not in _FACTORIES:
        plugins.load("metrics")
    factory = _FACTORIES.get(known)
    if factory is None:
        names = ", ".join(metric_names())
        raise InputError(f"unknown metric {name!r}", remedy=f"choose one of {names}")
    arguments = inspect.signature(factory).parameters
    target = [key for key, value in arguments.items() if value.default is inspect.Parameter.empty]
    given: dict[str, Any] = {}
    for part in _parts(rest):
        key, equals, value = part.partition("=")
        is_option = bool(equals) and key.strip() in arguments
        if not is_option and target and target[0] not in given:
            given[target[0]] = part
        elif not is_option:
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
