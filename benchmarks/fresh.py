"""Run a function in a process of its own: peak memory belongs to nobody else there.

`in_fresh_process("benchmarks.reading:read_once", path="x")` imports the function, notes the memory
in use, calls it with the keyword arguments and returns its value with time and memory. Beside its
arguments the function is given a list `keep`: what it puts there is still held when the memory
after the call is read.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import peak_bytes, resident_bytes, timed


@dataclass(frozen=True)
class Fresh:
    """What a function returned, and what it took."""

    value: Any
    cpu: float
    wall: float
    before: int
    after: int
    peak: int


def in_fresh_process(function: str, **arguments: Any) -> Fresh:
    """Call `module:function` in a new interpreter; arguments and value must fit into JSON."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.fresh", function, json.dumps(arguments)],
        check=True,
        cwd=Path(__file__).resolve().parent.parent,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Fresh(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Be the new interpreter."""
    module, name = sys.argv[1].split(":")
    function = getattr(importlib.import_module(module), name)
    before = resident_bytes()
    kept: list[Any] = []
    value, time = timed(lambda: function(**json.loads(sys.argv[2]), keep=kept))
    told = {
        "value": value,
        "cpu": time.cpu,
        "wall": time.wall,
        "before": before,
        "after": resident_bytes(),
        "peak": peak_bytes(),
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main()
