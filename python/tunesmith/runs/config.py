"""The configuration of a run, and the check that a resumed run has the same one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from inspect import getclosurevars
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeGuard

import numpy as np

from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write
from tunesmith.files.fingerprint import read_object
from tunesmith.files.plain import plain, pretty

Config = dict[str, Any]

# A number of threads never changes a result, so a run may resume on another machine; a new version
# is no reason to lose a long run.
FREE = frozenset({"threads", "version"})
# Types of immutable values, which a function cannot change.
CONSTANTS = (bool, int, float, str, tuple, np.generic)


def settings_of(thing: object) -> Any:
    """Return a value in JSON types.

    A part becomes its name and all its fields; a function its name, code and the values it was made
    with; any other object its class and attributes. Every setting in which two runs can differ is
    included, so that an error can name it. Lists, tables and objects that a function closes over
    are left out, because the function may change them.
    """
    return _settings(thing, ())


def _settings(thing: object, around: tuple[int, ...]) -> Any:
    """Return settings; `around` has the ids of the objects that contain this one."""
    if id(thing) in around:
        return "itself"
    inner = partial(_settings, around=(*around, id(thing)))
    kind = type(thing)
    if is_dataclass(thing) and not isinstance(thing, type):
        held = {field.name: inner(getattr(thing, field.name)) for field in fields(thing)}
        return {"is": kind.__name__, **held}
    if isinstance(thing, Mapping):
        return {str(key): inner(value) for key, value in thing.items()}
    if isinstance(thing, list | tuple):
        return [inner(value) for value in thing]
    if isinstance(thing, set | frozenset):
        return sorted((inner(value) for value in thing), key=repr)
    try:
        return plain(thing)
    except TypeError:
        pass
    if isinstance(thing, type):
        return _name(thing)
    if isinstance(thing, FunctionType):
        return {"is": _name(thing), "code": _digest(thing.__code__), **inner(_made_with(thing))}
    if isinstance(thing, partial):
        return {"is": "partial", **inner({"of": thing.func, "with": [thing.args, thing.keywords]})}
    if isinstance(thing, MethodType):
        return {"is": "method", **inner({"of": thing.__func__, "with": thing.__self__})}
    slots = [name for each in kind.__mro__ for name in _slots(each) if hasattr(thing, name)]
    held = {name: getattr(thing, name) for name in slots} | getattr(thing, "__dict__", {})
    return {"is": _name(kind), **inner(held)}


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"


def _slots(kind: type) -> list[str]:
    """Return the names of `__slots__`, which may be a single one."""
    slots = kind.__dict__.get("__slots__", ())
    return [name for name in ([slots] if isinstance(slots, str) else slots) if name != "__dict__"]


def _made_with(function: FunctionType) -> dict[str, object]:
    """Return the defaults of a function, and the constants that it reads from outside."""
    seen = getclosurevars(function)
    around = {**seen.globals, **seen.nonlocals}
    made = {
        "defaults": [*(function.__defaults__ or ())],
        "named": function.__kwdefaults__ or {},
        "reads": {name: each for name, each in around.items() if isinstance(each, CONSTANTS)},
        "calls": {n: each for n, each in seen.nonlocals.items() if isinstance(each, FunctionType)},
    }
    return {name: value for name, value in made.items() if value}


def _digest(code: CodeType) -> str:
    """Return a hash of a function's code; line numbers and names of variables do not change it."""
    made = hashlib.sha256(code.co_code)
    made.update(repr(code.co_names).encode("utf-8", "surrogatepass"))
    made.update(_constant(code.co_consts).encode("utf-8", "surrogatepass"))
    return made.hexdigest()[:16]


def _constant(value: object) -> str:
    """Return a constant as text that is the same in every process."""
    if isinstance(value, CodeType):
        return _digest(value)
    if isinstance(value, tuple):
        return f"({','.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_constant, value)))}}}"
    return repr(value)


def write_config(path: Path, config: Mapping[str, object]) -> None:
    """Write the configuration as JSON that people can read."""
    with atomic_write(path) as stream:
        stream.write(pretty(config))


def read_config(path: Path) -> Config:
    """Return the configuration; raise if the file is not one."""
    return read_object(path, remedy="start a new run directory")


def refuse_difference(
    path: Path, config: Mapping[str, object], free: Collection[str] = FREE
) -> None:
    """Raise if `config` differs from the configuration stored in `path`.

    Inputs are compared by content, not by path. Keys in `free` may differ.
    """
    differences = [
        text
        for key, text in _differences(read_config(path), plain(config), "")
        if key.split(".")[0] not in free
    ]
    if not differences:
        return
    more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
    raise InputError(
        f"this run was started with another configuration: {'; '.join(differences[:3])}{more}",
        file=str(path),
        remedy="resume with the same settings and inputs, or start a new run directory",
    )


def _differences(old: object, new: object, key: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of different settings, each with a message."""
    if _is_input(old) and _is_input(new):
        if {**old, "path": ""} != {**new, "path": ""}:
            yield key, f"{key.replace('inputs.', 'input ', 1)} ({new['path']}) changed"
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{key}.{name}" if key else str(name)
            if name in old and name in new:
                yield from _differences(old[name], new[name], inner)
            elif key == "digest" or _is_input(old.get(name, new.get(name))):
                # The name says more than its hash.
                yield inner, f"{name} {'is missing' if name in old else 'is new'}"
            else:
                yield inner, f"{inner} was {_shown(old, name)}, now {_shown(new, name)}"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, f"{key}.{index}")
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        if key.startswith("digest."):
            # The name says more than two hashes.
            yield key, f"{key.removeprefix('digest.')} changed"
        else:
            yield key, f"{key} was {_short(old)}, now {_short(new)}"


def _is_input(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a fingerprint."""
    return isinstance(value, dict) and {"path", "size"} <= value.keys()


def _shown(table: dict[str, Any], name: str) -> str:
    return _short(table[name]) if name in table else "not given"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
