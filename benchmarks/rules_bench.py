"""From aligned text to tables: time, memory and look-ups."""

from __future__ import annotations

import gzip
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.data import Setting
from benchmarks.fresh import Fresh, in_fresh_process
from benchmarks.harness import Claim, Outcome, Skip, best_of, markdown, save, say
from tunesmith.training.alignment import symmetrise_files
from tunesmith.training.rules import (
    AlignedCorpus,
    RuleTable,
    make_hiero_table,
    make_phrase_table,
)

MEGA = 1e6
THREADS = 2
LITTLE = 64 << 20
"""A memory limit that sends most records through the disk."""


def symmetrised(forward: str, backward: str, out: str, keep: list[Any]) -> int:
    """Symmetrise two alignments; return the number of lines."""
    return symmetrise_files(forward, backward, out, threads=THREADS)


def made(
    kind: str, files: list[str], out: str, keep: list[Any], memory: int = 1 << 30
) -> dict[str, int]:
    """Read a corpus and make a table; return what it holds."""
    corpus = AlignedCorpus(*files)
    make = make_phrase_table if kind == "phrase" else make_hiero_table
    done = make(corpus, out, threads=THREADS, memory=memory)
    return {"instances": done.instances, "entries": done.entries, "spilled": done.spilled}


def walked(path: str, text: str, keep: list[Any]) -> int:
    """Open a table and look up all phrases of a text; return how many rules were found."""
    table = RuleTable(path)
    keep.append(table)
    found = 0
    for line in gzip.decompress(Path(text).read_bytes()).decode().splitlines():
        ids = [table.source_id(word) for word in line.split()]
        for start in range(len(ids)):
            node: tuple[int, int] | None = table.root
            for word in ids[start : start + 7]:
                node = None if word is None or node is None else table.child(node, word)
                if node is None:
                    break
                found += len(table.entries(node))
    return found


def rules(setting: Setting) -> Outcome:
    """Symmetrise, make both tables with much and with little memory, open and look up."""
    text = [setting.file("multi30k", f"train.{side}.gz") for side in ("de", "en")]
    forward = setting.file("multi30k-moses", "fwd.align.gz")
    backward = setting.file("multi30k-moses", "rev.align.gz")
    test = setting.file("multi30k", "test_2016_flickr.de.gz")
    outcome = Outcome(f"Rules from Multi30k de-en, 29,000 pairs, {THREADS} threads")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        links = folder / "links"
        files = [*map(str, text), str(links)]
        first = in_fresh_process(
            "benchmarks.rules_bench:symmetrised",
            forward=str(forward),
            backward=str(backward),
            out=str(links),
        )
        _row(outcome, "symmetrise", first)
        runs: dict[str, Fresh] = {}
        for kind in ("phrase", "hiero"):
            for label, memory in ((kind, 1 << 30), (f"{kind}, 64 MiB of records", LITTLE)):
                path = folder / label.replace(" ", "_")
                runs[label] = in_fresh_process(
                    "benchmarks.rules_bench:made",
                    kind=kind,
                    files=files,
                    out=str(path),
                    memory=memory,
                )
                _row(outcome, label, runs[label], path)
            same = _same(folder / kind, folder / f"{kind},_64_MiB_of_records")
            outcome.notes.append(f"{kind}: the bounded run's table is {same}.")
            _, opened = best_of(setting.times(5), lambda kind=kind: RuleTable(folder / kind))  # type: ignore[misc]
            walk = in_fresh_process(
                "benchmarks.rules_bench:walked", path=str(folder / kind), text=str(test)
            )
            _row(outcome, f"{kind}, test 2016 looked up", walk)
            outcome.claims.append(
                Claim(f"{kind} table opens", 1000 * opened.wall, 200, "at most", "ms")
            )
    whole = runs["phrase"].wall + runs["hiero"].wall + first.wall
    peak = max(run.peak for run in runs.values()) / MEGA
    outcome.claims += [
        Claim("alignment to both tables", whole, 40, "at most", "s"),
        Claim("peak memory", peak, 2000, "at most", "MB"),
    ]
    return outcome


def _row(outcome: Outcome, label: str, run: Fresh, path: Path | None = None) -> None:
    value = run.value if isinstance(run.value, dict) else {}
    say(f"  {label}: {run.cpu:.1f} CPU s, {run.peak / MEGA:.0f} MB")
    outcome.rows.append(
        {
            "step": label,
            "CPU s": run.cpu,
            "s": run.wall,
            "peak, MB": run.peak / MEGA,
            "instances": value.get("instances"),
            "rules": value.get("entries"),
            "through the disk, MB": value["spilled"] / MEGA if value else None,
            "table, MB": path.stat().st_size / MEGA if path else None,
        }
    )


def _same(one: Path, two: Path) -> str:
    return "the same to the byte" if one.read_bytes() == two.read_bytes() else "DIFFERENT"


def main() -> int:
    """Run alone: Markdown on stdout, JSON in `benchmarks/results`."""
    try:
        outcome = rules(Setting())
    except Skip as skip:
        say(f"skipped: {skip}")
        return 0
    print(markdown(outcome))
    save(Path(__file__).resolve().parent / "results", "rules", outcome, quick=False)
    return 0 if all(claim.kept for claim in outcome.claims) else 1


if __name__ == "__main__":
    raise SystemExit(main())
