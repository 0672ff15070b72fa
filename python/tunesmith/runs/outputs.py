"""What finished runs chose, read back for comparisons."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from tunesmith.errors import InputError
from tunesmith.runs.directory import RunDirectory


class Outputs(NamedTuple):
    """The output for each sentence that a run is judged on, with its references."""

    texts: list[str]
    references: list[list[str]]
    on: str
    """`heldout`, `folds`, or what was learnt from: `lists` or `text`."""


def read_run_outputs(path: Path | str) -> Outputs:
    """Return what the weights of a finished run choose; raise if the run has not ended."""
    run = RunDirectory(path)
    if not run.config_file.is_file():
        raise run.missing(
            "is a directory without a run",
            "give an output file, or the directory that was given to --run",
        )
    result = run.result()
    if result is None:
        raise InputError(
            "the run has not ended", str(path), remedy="wait for it, or go on with --resume"
        )
    rows = run.outputs()
    if not rows:
        raise InputError(
            "the run has no outputs.jsonl: an earlier version made it",
            str(path),
            remedy="translate or re-rank the test text with its weights, and give that output",
        )
    on = (result.get("significance") or {}).get("on", "text")
    try:
        texts = [str(row["output"]) for row in rows]
        references = [[str(each) for each in row["reference"]] for row in rows]
    except (KeyError, TypeError):
        raise InputError(
            "a line has no output or no reference",
            str(run.outputs_file),
            remedy="restore the file of the run",
        ) from None
    return Outputs(texts, references, str(on))
