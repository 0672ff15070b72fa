"""What a run was asked to do, and whether a resumed run is asked the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass
from os import SEEK_END
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

from tunesmith.errors import InputError
from tunesmith.limits import read_whole
from tunesmith.runs.atomic import atomic_write
from tunesmith.runs.plain import plain, pretty

Config = dict[str, Any]

# A number of threads never changes a result, so a run may resume on another machine; a new version
# is no reason to lose a long run.
FREE = frozenset({"threads", "version"})
# Large files of ours, by their suffix, have a checksum of the rest at one of their ends.
CHECKED = (".rules", ".tlm")
END = 4096


def fingerprint(path: Path | str, *, ends: bool = False) -> dict[str, Any]:
    """Return path, size and SHA-256 of an input, by which a resumed run knows it again.

    With `ends`, the hash is of both ends only: for large files that hold a checksum there.
    """
    try:
        with Path(path).open("rb") as stream:
            digest = _ends(stream) if ends else hashlib.file_digest(stream, "sha256")
            size = stream.seek(0, SEEK_END)
            of = "sha256_of_ends" if ends else "sha256"
            return {"path": str(path), "size": size, of: digest.hexdigest()}
    except OSError as error:
        raise InputError(
            f"cannot read: {error.strerror or error}", file=str(path), remedy="check the path"
        ) from error


def _ends(stream: BinaryIO) -> hashlib._Hash:
    digest = hashlib.sha256(stream.read(END))
    stream.seek(max(stream.seek(0, SEEK_END) - END, 0))
    digest.update(stream.read())
    return digest


def settings_of(thing: object) -> Config:
    """Return the fields of a dataclass that can be written down, those of dataclasses in it too.

    Of anything else nothing is known.
    """
    found: Config = {}
    for field in fields(thing) if is_dataclass(thing) else ():
        value = getattr(thing, field.name)
        try:
            found[field.name] = settings_of(value) if is_dataclass(value) else plain(value)
        except TypeError:
            # A part written in Rust, or a function: whoever made it has its options.
            continue
    return found


def write_config(path: Path, config: Mapping[str, object]) -> None:
    """Write the configuration as JSON that people can read."""
    with atomic_write(path) as stream:
        stream.write(pretty(config))


def read_config(path: Path) -> Config:
    """Return the configuration, or refuse a file that is none."""
    return read_object(path, remedy="start a new run directory")


def read_object(path: Path, remedy: str) -> dict[str, Any]:
    """Return the one JSON object in `path`; anything else is refused."""
    try:
        value = json.loads(read_whole(path))
    except OSError as error:
        raise InputError(
            f"cannot read: {error.strerror or error}", file=str(path), remedy=remedy
        ) from error
    except InputError:
        raise
    except json.JSONDecodeError as error:
        raise InputError(
            f"not JSON: {error.msg}", file=str(path), line=error.lineno, remedy=remedy
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}", file=str(path), remedy=remedy) from error
    if not isinstance(value, dict):
        raise InputError("not a JSON object", file=str(path), remedy=remedy)
    return value


def refuse_difference(
    path: Path, config: Mapping[str, object], free: Collection[str] = FREE
) -> None:
    """Refuse to go on when `config` asks for something else than the one stored in `path`.

    Inputs are the same when their content is, wherever they lie now. Keys in `free` may
    differ.
    """
    said = [
        text
        for key, text in _differences(read_config(path), plain(config), "")
        if key.split(".")[0] not in free
    ]
    if not said:
        return
    more = f"; and {len(said) - 3} more" if len(said) > 3 else ""
    raise InputError(
        f"this run was started with another configuration: {'; '.join(said[:3])}{more}",
        file=str(path),
        remedy="resume with the same settings and inputs, or start a new run directory",
    )


def _differences(old: object, new: object, key: str) -> Iterator[tuple[str, str]]:
    """Yield the keys of what is not the same, and what to say of it."""
    if _is_input(old) and _is_input(new):
        if {**old, "path": ""} != {**new, "path": ""}:
            yield key, f"{key.replace('inputs.', 'input ', 1)} ({new['path']}) changed"
    elif isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{key}.{name}" if key else str(name)
            if name in old and name in new:
                yield from _differences(old[name], new[name], inner)
            elif key == "digest" or _is_input(old.get(name, new.get(name))):
                # A hash says less than the name of what it is of.
                yield inner, f"{name} {'is missing' if name in old else 'is new'}"
            else:
                yield inner, f"{inner} was {_shown(old, name)}, now {_shown(new, name)}"
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, f"{key}.{index}")
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        if key.startswith("digest."):
            # Two hashes say less than the name of what they are of.
            yield key, f"{key.removeprefix('digest.')} changed"
        else:
            yield key, f"{key} was {_short(old)}, now {_short(new)}"


def _is_input(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a fingerprint."""
    return isinstance(value, dict) and {"path", "size"} <= value.keys()


def _shown(table: dict[str, Any], name: str) -> str:
    return _short(table[name]) if name in table else "not given"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
