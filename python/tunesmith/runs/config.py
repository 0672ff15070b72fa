"""What a run was asked to do, and whether a resumed run is asked the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from tunesmith.errors import InputError
from tunesmith.runs.atomic import atomic_write
from tunesmith.runs.plain import plain, pretty

Config = dict[str, Any]

# A number of threads never changes a result, so a run may resume on another machine.
FREE = frozenset({"threads"})


def fingerprint(path: Path | str) -> dict[str, Any]:
    """Return path, size and SHA-256 of an input, by which a resumed run knows it again."""
    try:
        with Path(path).open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
            return {"path": str(path), "size": stream.tell(), "sha256": digest}
    except OSError as error:
        raise InputError(
            f"cannot read: {error.strerror or error}", file=str(path), remedy="check the path"
        ) from error


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
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(
            f"cannot read: {error.strerror or error}", file=str(path), remedy=remedy
        ) from error
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
    differences = [
        difference
        for difference in _differences(read_config(path), plain(config), "")
        if difference[0].split(".")[0] not in free and not _is_place(difference[0])
    ]
    if not differences:
        return
    said = "; ".join(f"{key} was {old}, now {new}" for key, old, new in differences[:3])
    more = f"; and {len(differences) - 3} more" if len(differences) > 3 else ""
    raise InputError(
        f"this run was started with another configuration: {said}{more}",
        file=str(path),
        remedy="resume with the same settings and inputs, or start a new run directory",
    )


def _is_place(key: str) -> bool:
    parts = key.split(".")
    return parts[0] == "inputs" and parts[-1] == "path"


def _differences(old: object, new: object, key: str) -> Iterator[tuple[str, str, str]]:
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{key}.{name}" if key else str(name)
            if name not in old or name not in new:
                yield inner, _shown(old, name), _shown(new, name)
            else:
                yield from _differences(old[name], new[name], inner)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from _differences(before, after, f"{key}.{index}")
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield key, _short(old), _short(new)


def _shown(table: dict[str, Any], name: str) -> str:
    return _short(table[name]) if name in table else "not given"


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
