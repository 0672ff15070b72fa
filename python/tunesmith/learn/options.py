"""Options of presets: their allowed values, their meaning, and when they have an effect.

All three stand in an option's type: `Annotated[int, Range(1), Doc("passes over the sentences")]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin

from tunesmith.errors import InputError


@dataclass(frozen=True)
class Range:
    """The allowed numbers of an option; `open` excludes the least one."""

    least: float
    most: float = 1_000_000
    open: bool = False

    def __contains__(self, value: float) -> bool:
        return self.least <= value <= self.most and not (self.open and value == self.least)

    def __str__(self) -> str:
        return f"{'above' if self.open else 'from'} {self.least:g} up to {self.most:,}"


@dataclass(frozen=True)
class Doc:
    """The meaning of an option."""

    text: str


@dataclass(frozen=True)
class OnlyWith:
    """An option has an effect only if another option has one of these values."""

    option: str
    values: tuple[str | bool, ...]

    def __str__(self) -> str:
        return f"{self.option}={' or '.join(str(value).lower() for value in self.values)}"


Count = Annotated[int, Range(1)]
Whole = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0, open=True)]
Amount = Annotated[float, Range(0)]
Share = Annotated[float, Range(0, 1)]
# A factor that is not zero.
Part = Annotated[float, Range(0, 1, open=True)]
Bound = Annotated[float, Range(0, inf, open=True)]

Mark = TypeVar("Mark", Range, Doc, OnlyWith)

TRUE, FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


class Option(NamedTuple):
    """An option of a preset, in words."""

    default: Any
    allowed: str
    meaning: str


def meaning(kind: Any) -> str:
    """Return the meaning of an option of this type; empty if the type has none."""
    doc, only = _mark(kind, Doc), _mark(kind, OnlyWith)
    text = "" if doc is None else doc.text
    return text if only is None else f"{text} ({only})".strip()


def idle(
    kinds: Mapping[str, Any], known: Mapping[str, Any], given: Mapping[str, Any]
) -> Iterator[tuple[str, OnlyWith, Any]]:
    """Yield given options that differ from their default but have no effect with the others.

    Each comes with what it needs, and with the value that the option has which it depends on.
    """
    chosen = {**known, **given}
    for key, value in given.items():
        only = _mark(kinds[key], OnlyWith)
        if only is not None and value != known[key] and chosen[only.option] not in only.values:
            yield key, only, chosen[only.option]


def refuse_idle(
    name: str, kinds: Mapping[str, Any], known: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Raise if a given option differs from its default but has no effect with the others."""
    for key, only, other in idle(kinds, known, given):
        raise InputError(
            f"{name}.{key} has no effect with {only.option}={other}",
            remedy=f"leave it out, or use {only}",
        )


def typed(name: str, value: Any, kind: Any) -> Any:
    """Return a value converted to the type of its option; raise if it is not allowed."""
    plain, optional = _plain(kind)
    if optional and (value is None or str(value).lower() in ("none", "auto")):
        return None
    if get_origin(plain) is Literal:
        if str(value) not in get_args(plain):
            raise InputError(f"{name} is {value!r}", remedy=f"use one of {allowed(kind)}")
        return str(value)
    if plain is bool:
        word = str(value).lower()
        if word not in TRUE + FALSE:
            raise InputError(f"{name} is {value!r}", remedy=f"use {allowed(kind)}")
        return word in TRUE
    found = _number(value, plain, _mark(kind, Range))
    if found is None:
        raise InputError(f"{name} is {value!r}", remedy=f"give {allowed(kind)}")
    return found


def _number(value: Any, number: type[float], span: Range | None) -> float | None:
    """Return a value as a number, None if it is not one or not in the range (default: finite)."""
    try:
        found = number(value)
    except (TypeError, ValueError, OverflowError):
        return None
    cut = isinstance(value, float) and found != value
    inside = isfinite(found) if span is None else found in span
    return found if inside and not cut else None


def allowed(kind: Any) -> str:
    """Return the allowed values of an option in words."""
    plain, optional = _plain(kind)
    if get_origin(plain) is Literal:
        text = ", ".join(get_args(plain))
    elif plain is bool:
        text = "true or false"
    else:
        span = _mark(kind, Range)
        text = "a whole number" if plain is int else "a number"
        text += "" if span is None else f" {span}"
    return f"{text}, or auto" if optional else text


def _plain(kind: Any) -> tuple[Any, bool]:
    """Return the type of an option without its marks, and whether None is allowed."""
    if get_origin(kind) is Annotated:
        return _plain(get_args(kind)[0])
    if NoneType in get_args(kind):
        return _plain(next(each for each in get_args(kind) if each is not NoneType))[0], True
    if kind not in (int, float, bool) and get_origin(kind) is not Literal:
        raise TypeError(f"an option of a preset is int, float, bool or a Literal, not {kind}")
    return kind, False


def _mark(kind: Any, which: type[Mark]) -> Mark | None:
    """Return the mark of this class in a type, the outermost if there are several."""
    inner = get_args(kind)
    if get_origin(kind) is Annotated:
        found = [mark for mark in inner[1:] if isinstance(mark, which)]
        return found[-1] if found else _mark(inner[0], which)
    if NoneType in inner:
        return _mark(next(each for each in inner if each is not NoneType), which)
    return None
