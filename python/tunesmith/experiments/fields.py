"""Tables of a TOML file that are read key by key; what is wrong is told with file and key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, overload

from tunesmith.errors import InputError

SCALES = ("smoke", "small", "full")
Choice = TypeVar("Choice", bound=str)
_MISSING: Any = object()
_TYPES = {
    str: "a text",
    list: "a list",
    bool: "true or false",
    dict: "a table",
    int: "a whole number",
}


def at_scale(value: Any, scale: str) -> Any:
    """Return a value with the entries of one scale in place of tables of scales."""
    if isinstance(value, list):
        return [at_scale(each, scale) for each in value]
    if not isinstance(value, Mapping):
        return value
    if value and value.keys() <= set(SCALES):
        wanted = SCALES[: SCALES.index(scale) + 1]
        found = [name for name in wanted if name in value] or [
            name for name in SCALES if name in value
        ][:1]
        return at_scale(value[found[-1]], scale)
    return {key: at_scale(each, scale) for key, each in value.items()}


class Fields:
    """One table: every key is taken once, and those that nobody takes are refused."""

    def __init__(self, values: Mapping[str, Any], file: str, place: str = "") -> None:
        self.values, self.file, self.place = dict(values), file, place
        self._taken: set[str] = set()

    def wrong(self, key: str, message: str, remedy: str) -> InputError:
        """Return an error about a key."""
        where = f"{self.place}.{key}" if self.place else key
        return InputError(f"{where}: {message}", self.file, remedy=remedy)

    def _take(self, key: str, default: Any) -> Any:
        self._taken.add(key)
        if key in self.values:
            return self.values[key]
        if default is _MISSING:
            raise self.wrong(key, "is missing", f"add {key} = …")
        return default

    def of_type(self, key: str, wanted: type) -> Any:
        """Return a value of a type."""
        value = self._take(key, _MISSING)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            raise self.wrong(key, f"{value!r} is not {_TYPES[wanted]}", f"give {_TYPES[wanted]}")
        return value

    @overload
    def text(self, key: str, default: str = ..., choices: Sequence[str] = ...) -> str: ...
    @overload
    def text(self, key: str, default: None, choices: Sequence[str] = ...) -> str | None: ...
    def text(self, key: str, default: Any = _MISSING, choices: Sequence[str] = ()) -> str | None:
        """Return a text, one of the choices if there are any."""
        value = self._take(key, default)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.wrong(key, f"{value!r} is not a text", "put it in quotes")
        if choices and value not in choices:
            raise self.wrong(key, f"{value!r} is unknown", f"use one of {', '.join(choices)}")
        return value

    @overload
    def one_of(self, key: str, choices: Sequence[Choice], default: Choice) -> Choice: ...
    @overload
    def one_of(self, key: str, choices: Sequence[Choice], default: None) -> Choice | None: ...
    def one_of(self, key: str, choices: Sequence[Choice], default: Choice | None) -> Choice | None:
        """Return one of the choices, with their type."""
        value = self.text(key, default, choices)
        return next((each for each in choices if each == value), None)

    def texts(self, key: str, default: Sequence[str] = _MISSING) -> list[str]:
        """Return a list of texts; a single text is a list of one."""
        value = self._take(key, default)
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list | tuple) or not all(isinstance(e, str) for e in found):
            raise self.wrong(key, f"{value!r} is not a list of texts", 'write ["…", "…"]')
        return list(found)

    @overload
    def whole(self, key: str, default: int = ..., *, least: int = ...) -> int: ...
    @overload
    def whole(self, key: str, default: int | None, *, least: int = ...) -> int | None: ...
    def whole(self, key: str, default: Any = _MISSING, *, least: int = 0) -> int | None:
        """Return a whole number."""
        value = self._take(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise self.wrong(
                key, f"{value!r} is not a whole number from {least} on", "correct the number"
            )
        return value

    def number(
        self, key: str, default: Any = _MISSING, *, least: float = -math.inf
    ) -> float | None:
        """Return a number."""
        value = self._take(key, default)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise self.wrong(key, f"{value!r} is not a number", "give a number")
        if value < least:
            raise self.wrong(key, f"{value!r} is below {least:g}", "correct the number")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """Return true or false."""
        value = self._take(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, f"{value!r} is not true or false", "write true or false")
        return value

    def table(self, key: str, default: Mapping[str, Any] = _MISSING) -> Fields:
        """Return an inner table."""
        value = self._take(key, default)
        if not isinstance(value, Mapping):
            raise self.wrong(key, f"{value!r} is not a table", f"write [{key}], or {{ … }}")
        return Fields(value, self.file, f"{self.place}.{key}" if self.place else key)

    def tables(self, key: str, default: Sequence[Any] = _MISSING) -> list[Fields]:
        """Return a list of inner tables."""
        value = self._take(key, default)
        if not isinstance(value, list | tuple) or not all(isinstance(e, Mapping) for e in value):
            raise self.wrong(key, "is not a list of tables", f"write [[{key}]]")
        return [Fields(each, self.file, f"{key}[{place}]") for place, each in enumerate(value, 1)]

    def finish(self, known: str = "") -> None:
        """Raise if a key was not taken."""
        for key in self.values:
            if key not in self._taken:
                raise self.wrong(
                    key,
                    "unknown key",
                    known or f"there are {', '.join(sorted(self._taken))}",
                )
