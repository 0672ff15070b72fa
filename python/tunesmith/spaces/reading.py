"""From files to lists with references, whatever the format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from tunesmith.errors import InputError
from tunesmith.formats import Along, Reading, Skipped, carried_references, read_references
from tunesmith.formats.weights import write_cdec, write_moses_ini
from tunesmith.spaces import Pools
from tunesmith.spaces.derived import with_derived
from tunesmith.weights import Weights

File = str | PathLike[str]


@dataclass(frozen=True)
class Read:
    """Lists as they were read, and what was left out."""

    pools: Pools
    skipped: list[Skipped]


def read_pools(
    nbest: File | Sequence[File],
    references: File | Sequence[File] | None = None,
    *,
    source: File | None = None,
    derived: Sequence[str] = (),
    **options: object,
) -> Pools:
    """Read n-best lists with their references; several files are merged sentence by sentence.

    Without files of references, those that JSONL lists have in them are taken; `()` takes none.
    `derived` names features that the lists themselves give (`spaces/derived.py`), as "agreement".
    Options are those of `Reading`: format, skip_bad, keep_blank, columns, features, per_sentence,
    keyed, first_id, sentences. Refuses bad input with file, line and remedy; with `skip_bad` bad
    lines, and sentences whose references are all blank, are left out.
    """
    reading = Reading(**options)  # type: ignore[arg-type]
    given = None if references is None else _files(references)
    return read_lists(_files(nbest), given, source, reading, derived).pools


def read_lists(
    nbest: Sequence[File],
    references: Sequence[File] | None = None,
    source: File | None = None,
    reading: Reading | None = None,
    derived: Sequence[str] = (),
) -> Read:
    """Read as `read_pools` does, and tell what was left out."""
    reading = reading or Reading()
    if not nbest:
        raise InputError("no n-best file is given", remedy="name at least one")
    skipped: list[Skipped] = []
    parts, carried = [], []
    for path in nbest:
        along = Along()
        found = reading.read(path, along)
        carried.append((path, along.references))
        skipped += found.skipped
        parts.append(Pools(found.pools))
        _has_columns(parts[-1], path, [name for name, at in reading.columns.items() if at is None])
    _same_sentences(parts, nbest)
    pools = parts[0] if len(parts) == 1 else Pools.merge(parts)
    texts = blank = told = None
    if references:
        told = read_references(
            references,
            sentences=pools.sentences,
            keys=pools.core.keys,
            skip_bad=reading.skip_bad,
            keep_blank=reading.keep_blank,
        )
    elif references is None:
        told = carried_references(
            carried,
            keys=pools.core.keys,
            skip_bad=reading.skip_bad,
            keep_blank=reading.keep_blank,
        )
    if told is not None:
        texts, blank = told.texts, told.blank
        skipped += told.skipped
    sources = None
    if source is not None:
        lines = read_references(
            [source], sentences=pools.sentences, keys=pools.core.keys, keep_blank=True, sources=True
        )
        sources = [text[0] for text in lines.texts]
    merged, pools = pools, Pools(pools.core, texts, sources)
    if len(parts) > 1:
        pools._origin = merged.origin
    if blank:
        left_out = set(blank)
        pools = pools.subset([i for i in range(pools.sentences) if i not in left_out])
    return Read(with_derived(pools, derived), skipped)


def read_outputs(
    outputs: Sequence[File], references: Sequence[File], keep_blank: bool = False
) -> tuple[list[list[str]], list[list[str]]]:
    """Return the lines of outputs, blank ones included, and the references of each line.

    Refuses files of unequal length, and blank references unless they are to be kept.
    """
    texts = [
        [lines[0] for lines in read_references([output], keep_blank=True).texts]
        for output in outputs
    ]
    remedy = "fill it in, or use --keep-blank"
    told = read_references(references, keep_blank=keep_blank, remedy=remedy).texts
    for output, lines in zip(outputs, texts, strict=True):
        if len(lines) != len(told):
            raise InputError(
                f"{len(lines)} lines, but {len(told)} references",
                str(output),
                min(len(lines), len(told)) + 1,
                remedy="give outputs and references of the same sentences, a line for each",
            )
    if not told:
        raise InputError("no references", str(references[0]), remedy="check the file")
    return texts, told


def read_weights(path: File) -> Weights:
    """Read weights as `Weights.load` does; refuses a file without any, too."""
    weights = Weights.load(path)
    if not weights:
        raise InputError(
            "no weights in the file", str(path), remedy="check that it is the right one"
        )
    return weights


def write_weights(weights: Weights, path: File, ini: File | None = None) -> None:
    """Write weights in the format that the name asks for, as `read_weights` reads it.

    `.toml`, or no ending, is ours, `.ini` a copy of the configuration `ini` of Moses with these
    weights, anything else lines of `name value`. Refuses `.ini` without one to copy.
    """
    check_copy(path, ini)
    ending = Path(path).suffix
    if ending in (".toml", ""):
        weights.save(Path(path))
    elif ending == ".ini":
        write_moses_ini(weights, path, ini)
    else:
        write_cdec(weights, path)


def check_copy(path: File, ini: File | None) -> None:
    """Refuse to write a configuration of Moses where there is none to copy."""
    if Path(path).suffix == ".ini" and ini is None:
        raise InputError(
            "there is no configuration of Moses to copy",
            str(path),
            remedy="name a .toml file; .ini is for --moses INI, or --weights INI of Moses' lists",
        )


def _files(given: File | Sequence[File]) -> list[File]:
    return [given] if isinstance(given, str | PathLike) else list(given)


def _has_columns(pools: Pools, path: File, names: Sequence[str]) -> None:
    for name in names:
        if np.isnan(pools.core.column(name)).all():
            others = [other for other in [*pools.core.columns, *pools.names] if other != name]
            shown = ", ".join(others[:12]) or "none"
            raise InputError(
                f"no hypothesis has a score called {name!r}", str(path), remedy=f"there are {shown}"
            )


def _same_sentences(parts: Sequence[Pools], nbest: Sequence[File]) -> None:
    first = parts[0]
    for part, path in zip(parts, nbest, strict=True):
        if part.sentences != first.sentences:
            raise InputError(
                f"{part.sentences} sentences, but {nbest[0]} has {first.sentences}",
                str(path),
                remedy="give lists of the same sentences; for lists at the end that are empty, "
                "say with --sentences how many there are",
            )
        if part.core.keys != first.core.keys:
            raise InputError(
                "its sentences are not those of the first file",
                str(path),
                remedy="give lists of the same sentences in the same order",
            )
