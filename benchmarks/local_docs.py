"""Tables of `docs/local.md` and `docs/serve.md`: `python -m benchmarks.local_docs [EXPERIMENTS]`.

EXPERIMENTS is the folder that `tunesmith experiment run liu2012-choice liu2012-local --out` wrote,
by default `benchmarks/results/experiments`. What stands between the marks of a table is replaced; a
table whose results are missing stays as it is.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import Cell, say, table

HERE = Path(__file__).resolve().parent
RESULTS, DOCS = HERE / "results", HERE.parent / "docs"
TESTS = ("captions", "tatoeba", "help")
CURVE = "local-strength.svg"
Loaded = dict[str, Any]


def benchmark(name: str, *columns: str) -> Callable[[Path], str]:
    """Return what makes the table of a benchmark, of all or of some columns."""

    def made(experiments: Path) -> str:
        content = _read(RESULTS / f"{name}.json")
        rows = [{k: v for k, v in row.items() if k in (columns or row)} for row in content["rows"]]
        notes = "".join(f"\n- {note[0].upper()}{note[1:]}." for note in content["notes"])
        quick = "\n- **Measured with `--quick`**: less of everything, a first impression only."
        return f"{content['title']}.\n\n{table(rows)}\n{quick * bool(content['quick'])}{notes}"

    return made


def tested(experiments: Path) -> str:
    """Return test scores with significance for each test (Tables 3 and 5)."""
    outcome = _read(experiments / "liu2012-local" / "result.json")
    claims = {each["claim"]: each["evidence"][0] for each in outcome["claims"]}
    rows: list[dict[str, Cell]] = []
    for tuned in TESTS:
        for method in ("mert", "mbuu", "ebuu"):
            row: dict[str, Cell] = {"tuned on": tuned, "method": method}
            for test in TESTS:
                found = claims[
                    f"{'ebuu' if method == 'mert' else method} {tuned} > mert {tuned} on {test}"
                ]
                if method == "mert":
                    row[test] = f"{found['right_value']:.2f}"
                    continue
                sure = "*" if found["outcome"] != "unclear" else ""
                row[test] = f"{found['left_value']:.2f} ({found['difference']:+.2f}{sure})"
            rows.append(row)
    return table(rows)


def chosen(experiments: Path) -> str:
    """Return the scores that λ and K were chosen by (Table 7)."""
    outcome = _read(experiments / "liu2012-choice" / "result.json")
    left, right = (_by_system(each) for each in outcome["tables"][:2])
    rows: list[dict[str, Cell]] = []
    for name, row in left.items():
        other = right[name.replace("captions", "help")]
        told: dict[str, Cell] = {"system": name.replace(" captions", "").removesuffix(".0")}
        told |= {f"captions → {test}": _cell(row[test]) for test in (*TESTS, "mean")}
        told |= {f"help → {test}": _cell(other[test]) for test in (*TESTS, "mean")}
        rows.append(told)
    drawn = experiments / "liu2012-choice" / "options-examples-choice.svg"
    shutil.copyfile(drawn, DOCS / CURVE)
    return table(rows)


def alike(experiments: Path) -> str:
    """Return the similarity of tuning texts and tests (Table 4)."""
    outcome = _read(experiments / "liu2012-local" / "result.json")
    found = next(each for each in outcome["tables"] if each["kind"] == "similarity")
    names = {"development": "captions"}
    return table(
        [
            {
                "tuned on": names.get(row["system"], row["system"]),
                **{test: _cell(row[test]) for test in TESTS},
            }
            for row in found["rows"]
        ]
    )


def sentences(experiments: Path) -> str:
    """Return shares of sentences without BLEU and the better of two outputs (Tables 6 and 8)."""
    outcome = _read(experiments / "liu2012-local" / "result.json")
    found = next(each for each in outcome["tables"] if each["kind"] == "sentences")
    by_name = {row["system"]: row for row in found["rows"]}
    rows: list[dict[str, Cell]] = []
    for tuned in TESTS:
        both = by_name[f"better of mert {tuned} and ebuu {tuned}"]
        pooled = next(
            each["evidence"][0]
            for each in outcome["claims"]
            if each["claim"] == f"ebuu {tuned} > mert {tuned} on tests"
        )
        rows.append(
            {
                "tuned on": tuned,
                "zero, mert": f"{_cell(by_name[f'mert {tuned}']['zero, %']):.1f}%",
                "zero, ebuu": f"{_cell(by_name[f'ebuu {tuned}']['zero, %']):.1f}%",
                "BLEU, mert": pooled["right_value"],
                "BLEU, ebuu": pooled["left_value"],
                "BLEU, the better of both": _cell(both["oracle of two"]),
            }
        )
    return table(rows)


TABLES: dict[str, Callable[[Path], str]] = {
    "tested": tested,
    "chosen": chosen,
    "alike": alike,
    "sentences": sentences,
    "speed": benchmark("local-speed"),
    "million": benchmark("local-million"),
    "feedback": benchmark("feedback"),
    "load": benchmark("serve-load"),
    "kills": benchmark("serve-kills"),
}


def _read(path: Path) -> Loaded:
    content: Loaded = json.loads(path.read_text(encoding="utf-8"))
    return content


def _by_system(found: Loaded) -> dict[str, Loaded]:
    return {row["system"]: row for row in found["rows"]}


def _cell(value: Any) -> float:
    return float(value[0] if isinstance(value, list) else value)


def main() -> None:
    """Replace the tables for which there are results."""
    experiments = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS / "experiments"
    for name in ("local.md", "serve.md"):
        path = DOCS / name
        text = path.read_text(encoding="utf-8")
        for mark in re.findall(r"<!-- begin ([a-z]+) -->", text):
            try:
                made = TABLES[mark](experiments)
            except FileNotFoundError as missing:
                say(f"{name}: {mark} stays as it is: {missing}")
                continue
            begin, end = f"<!-- begin {mark} -->", f"<!-- end {mark} -->"
            before, _, rest = text.partition(begin)
            text = f"{before}{begin}\n{made}\n{end}{rest.partition(end)[2]}"
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
