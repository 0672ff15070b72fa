"""Figures of the documentation: `python -m benchmarks.docs [EXPERIMENTS]`.

Every table of figures stands in a block, between `<!-- begin NAME -->` and `<!-- end NAME -->`, and
comes from a result that is kept in `docs/results/benchmarks`. The command copies new results there
and fills all blocks again:

- what `python -m benchmarks` left in `benchmarks/results`, unless it ran with `--quick` or no block
  shows it;
- what `make torture` left in `target/torture/results`, if it ran to its end;
- the pages of EXPERIMENTS, a folder that `tunesmith experiment all --scale small --out` wrote, with
  plots and verdicts; the tables of `liu2012-local` and `liu2012-choice` are in docs/local.md, too.

NAME is that of a view below, or of a kept result, which is then shown whole.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.__main__ import BENCHMARKS, RESULTS
from benchmarks.harness import Cell, claims_table, say, show, table

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
KEPT = DOCS / "results" / "benchmarks"
TORTURE = ROOT / "target" / "torture" / "results"
BLOCK = re.compile(r"<!-- begin ([\w-]+) -->\n(.*?)<!-- end \1 -->", re.DOTALL)
EXPERIMENTS = DOCS / "results"
INDEX = "README.md"
CURVE = "local-strength.svg"
TESTS = ("captions", "tatoeba", "help")
Loaded = dict[str, Any]
Row = dict[str, Cell]
Shape = Callable[[list[Row]], list[Row]]


@dataclass(frozen=True)
class View:
    """What a block shows of a kept result."""

    result: str
    shape: Shape | None = None
    """Returns the rows to show; all of them by default."""
    every_claim: bool = False
    """Whether claims that were kept are shown beside those that were not."""
    bare: bool = False
    """Whether the table stands alone, without title, notes, claims and origin."""


def without_tests(rows: list[Row]) -> list[Row]:
    """Return the times and links of aligners."""
    return [{k: v for k, v in row.items() if not k.startswith("BLEU")} for row in rows]


def only_tests(rows: list[Row]) -> list[Row]:
    """Return the scores of the systems that were made with the links of aligners."""
    return [
        {"aligner": row["aligner"], **{k[5:]: v for k, v in row.items() if k.startswith("BLEU")}}
        for row in rows
        if any(name.startswith("BLEU") for name in row)
    ]


def by_size(rows: list[Row]) -> list[Row]:
    """Return CPU seconds and memory of each stage, a column for each size of text."""
    found: dict[str, Row] = {}
    for row in rows:
        stage = found.setdefault(str(row["stage"]), {"stage": row["stage"]})
        stage[str(row["text"])] = f"{show(row['CPU s'])} s, {_whole(row['peak, MB'])} MB"
    return list(found.values())


def search_aware(rows: list[Row]) -> list[Row]:
    """Return a row for each plain tuner, with its search-aware forms beside it."""
    found: list[Row] = []
    for row in rows:
        name = str(row["tuner"])
        if not name.startswith("sa-"):
            found.append({key: row[key] for key in ("task", "beam", "tuner")})
            kind = "plain"
        else:
            kind = "score" if "score" in name else "estimate"
        found[-1][f"development: {kind}"] = row["development"]
        p = row.get("p")
        told = show(row["mean"])
        found[-1][f"tests: {kind}"] = told if p is None else f"{told} ({float(p):.3f})"
    kinds = [f"{text}: {kind}" for text in ("development", "tests") for kind in _KINDS]
    return [{name: row[name] for name in ("task", "beam", "tuner", *kinds)} for row in found]


def of_the_readme(rows: list[Row]) -> list[Row]:
    """Return the part of the re-ranking table that the README shows."""
    features = "docs/formats.md#what-all-formats-share"
    names = {
        "first-ranked": "first-ranked",
        "untuned consensus": "untuned consensus",
        "`kbmira`": "tuned (`kbmira`)",
        "`kbmira`, list features": f"tuned, with [list features]({features})",
        "oracle": "oracle",
    }
    heads = {
        "19 translation systems, BLEU": "19 systems, two references, BLEU",
        "speech, WER": "speech, 10-best, WER",
        "7 neural systems, BLEU": "7 neural systems, BLEU",
    }
    shown: list[Row] = []
    for row in rows:
        if row[""] in names:
            scores = {new: str(row[old]).split()[0] for new, old in heads.items()}
            shown.append({"": names[str(row[""])], **scores})
    return shown


_KINDS = ("plain", "score", "estimate")
VIEWS: dict[str, View] = {
    "readme": View("reranking", of_the_readme, bare=True),
    "search-aware": View("search-aware", search_aware),
    "search-aware-time": View("search-aware-time", every_claim=True),
    "aligner-times": View("aligners", without_tests),
    "aligner-scores": View("aligners", only_tests, bare=True),
    "growth": View("growth", by_size, every_claim=True),
    **{
        name: View(name, every_claim=True)
        for name in (
            *("mert", "kbmira", "reading", "sparse", "regimes", "rules", "local-million"),
            *("phrase-speed", "phrase-lists", "phrase-sparse", "hiero", "serve-load"),
            *("ray-overhead", "ray-simulation", "ray-bitext", "structured-rivals", "torture"),
            *("local-speed", "serve-kills", "forest-mert", "oracles", "online-sparse"),
        )
    },
}


def kept(name: str) -> Loaded | None:
    """Return a kept result, or None where there is none."""
    path = KEPT / f"{name}.json"
    return _read(path) if path.exists() else None


def block(name: str) -> str:
    """Return what stands between the marks of a block; raise KeyError for unknown names."""
    view = VIEWS.get(name) or View(name)
    found = kept(view.result)
    if found is None:
        if view.result not in BENCHMARKS and view.result != "torture":
            raise KeyError(name)
        return f"Not measured yet: `{_command(view.result, {})}`.\n"
    rows = view.shape(found["rows"]) if view.shape else found["rows"]
    if view.bare:
        return f"{table(rows)}\n"
    parts = [f"{found['title']}.", table(rows)]
    parts += ["\n".join(f"- {_sentence(note)}" for note in found["notes"])]
    claims = [claim for claim in found["claims"] if view.every_claim or not claim["kept"]]
    parts += [claims_table(claims), f"*{_origin(view.result, found)}*"]
    return "\n\n".join(part for part in parts if part) + "\n"


def filled(text: str) -> str:
    """Return a page with all blocks as the kept results have them."""
    return BLOCK.sub(
        lambda match: f"<!-- begin {match[1]} -->\n{block(match[1])}<!-- end {match[1]} -->", text
    )


def pages() -> list[Path]:
    """Return the pages that may have blocks."""
    return [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]


def _command(name: str, found: Loaded) -> str:
    if name == "torture":
        return "make torture"
    if "recipe" in found:
        return f"tunesmith experiment run {found['recipe']} --scale small"
    return f"python -m benchmarks {name}"


def _origin(name: str, found: Loaded) -> str:
    """Return how and when a result was measured, and on what."""
    if "by_hand" in found:
        return f"Not made by a command: {found['by_hand']}"
    command = f"`{_command(name, found)}`"
    if "transcribed" in found:
        return f"{command}; from this page as it was on {found['transcribed']}."
    machine = found.get("machine") or {}
    told = [found["date"], found.get("commit") and f"commit {found['commit']}"]
    told.append(machine and f"{machine['cores']} cores")
    if machine.get("load") is not None:
        told.append(f"load {machine['load']:.1f} at the end")
    return f"{command}: {', '.join(each for each in told if each)}."


def _sentence(note: str) -> str:
    return f"{note[:1].upper()}{note[1:]}".rstrip(".") + "."


def _whole(value: Cell) -> str:
    return f"{value:,.0f}" if isinstance(value, int | float) else str(value)


def _read(path: Path) -> Loaded:
    content: Loaded = json.loads(path.read_text(encoding="utf-8"))
    return content


def written(content: Mapping[str, Any]) -> str:
    """Return a result as JSON with a row on each line."""
    parts = []
    for key, value in content.items():
        if isinstance(value, list) and value:
            lines = ",\n".join(f"  {json.dumps(each, ensure_ascii=False)}" for each in value)
            parts.append(f' "{key}": [\n{lines}\n ]')
        else:
            parts.append(f' "{key}": {json.dumps(value, ensure_ascii=False)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def shown() -> set[str]:
    """Return the results that blocks show."""
    names = {match[1] for path in pages() for match in BLOCK.finditer(path.read_text("utf-8"))}
    return {VIEWS[name].result if name in VIEWS else name for name in names}


def measured(results: Path) -> Iterator[tuple[str, Loaded]]:
    """Yield what benchmarks left in a folder, if a block shows it and it was not a quick run."""
    for name in sorted(BENCHMARKS.keys() & shown()):
        path = results / f"{name}.json"
        if path.exists() and not (content := _read(path))["quick"]:
            changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
            yield name, {**content, "date": content.get("date", changed)}


def tortured(folder: Path) -> Iterator[tuple[str, Loaded]]:
    """Yield what `make torture` did, if all of its parts came to their end."""
    parts = [_read(path) for path in sorted(folder.glob("*.json"))]
    if not parts:
        return
    missing = {"readers", "tests", "soak"} - {part["part"] for part in parts}
    if missing:
        say(f"torture: not copied, because there is nothing of {', '.join(sorted(missing))}")
        return
    order = ("readers", "tests", "soak")
    parts.sort(key=lambda part: order.index(part["part"]))
    about = {key: parts[-1][key] for key in ("machine", "date", "commit")}
    yield (
        "torture",
        {
            "title": "What `make torture` did",
            "rows": [row for part in parts for row in part["rows"]],
            "claims": [claim for part in parts for claim in part["claims"]],
            "notes": [note for part in parts for note in part["notes"]],
            "quick": False,
            **about,
        },
    )


def experiments(folder: Path) -> Iterator[tuple[str, Loaded]]:
    """Yield the tables that docs/local.md shows of two recipes, and copy the plot."""
    for name, (recipe, title, made, notes) in RECIPES.items():
        path = folder / recipe / "result.json"
        if path.exists():
            date = datetime.fromtimestamp(path.stat().st_mtime, UTC).date().isoformat()
            rows = made(_read(path))
            told = {"title": title, "rows": rows, "claims": [], "notes": notes, "quick": False}
            yield name, {**told, "recipe": recipe, "date": date}
    drawn = folder / "liu2012-choice" / "options-examples-choice.svg"
    if drawn.exists():
        shutil.copyfile(drawn, DOCS / CURVE)


def copy_pages(folder: Path) -> None:
    """Copy the pages and plots of recipes, and the verdicts of all.

    Nothing is copied if a recipe that has a page was not run, or one not at small scale.
    """
    made = sorted(folder.glob("*/result.json"))
    wrong = [each.parent.name for each in made if _read(each)["scale"] != "small"]
    had = {page.parent.name for page in EXPERIMENTS.glob(f"*/{INDEX}")}
    if wrong := [*wrong, *sorted(had - {each.parent.name for each in made})]:
        say(f"pages not copied: {', '.join(wrong)} not run at small scale in {folder}")
        return
    for result in made:
        place = EXPERIMENTS / result.parent.name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for each in (result.with_name(INDEX), *result.parent.glob("*.svg")):
            shutil.copyfile(each, place / each.name)
    verdicts = (folder / INDEX).read_text(encoding="utf-8").partition("\n")[2].strip()
    told = f"<!-- begin verdicts -->\n{verdicts}\n<!-- end verdicts -->"
    index = EXPERIMENTS / INDEX
    text = index.read_text(encoding="utf-8")
    index.write_text(BLOCK.sub(lambda _: told, text), encoding="utf-8")


def _tested(outcome: Loaded) -> list[Row]:
    """Return test scores with significance for each test (Tables 3 and 5)."""
    claims = {each["claim"]: each["evidence"][0] for each in outcome["claims"]}
    rows: list[Row] = []
    for tuned in TESTS:
        for method in ("mert", "mbuu", "ebuu"):
            row: Row = {"tuned on": tuned, "method": method}
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
    return rows


def _chosen(outcome: Loaded) -> list[Row]:
    """Return the scores that λ and K were chosen by (Table 7)."""
    left, right = (_by_system(each) for each in outcome["tables"][:2])
    rows: list[Row] = []
    for name, row in left.items():
        other = right[name.replace("captions", "help")]
        told: Row = {"system": name.replace(" captions", "").removesuffix(".0")}
        told |= {f"captions → {test}": _cell(row[test]) for test in (*TESTS, "mean")}
        told |= {f"help → {test}": _cell(other[test]) for test in (*TESTS, "mean")}
        rows.append(told)
    return rows


def _alike(outcome: Loaded) -> list[Row]:
    """Return the similarity of tuning texts and tests (Table 4)."""
    found = next(each for each in outcome["tables"] if each["kind"] == "similarity")
    names = {"development": "captions"}
    return [
        {"tuned on": names.get(row["system"], row["system"])}
        | {test: _cell(row[test]) for test in TESTS}
        for row in found["rows"]
    ]


def _sentences(outcome: Loaded) -> list[Row]:
    """Return shares of sentences without BLEU and the better of two outputs (Tables 6 and 8)."""
    found = next(each for each in outcome["tables"] if each["kind"] == "sentences")
    by_name = {row["system"]: row for row in found["rows"]}
    rows: list[Row] = []
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
                "BLEU, mert": round(pooled["right_value"], 2),
                "BLEU, ebuu": round(pooled["left_value"], 2),
                "BLEU, the better of both": round(_cell(both["oracle of two"]), 2),
            }
        )
    return rows


Made = Callable[[Loaded], list[Row]]
RECIPES: dict[str, tuple[str, str, Made, list[str]]] = {
    "local-tested": (
        "liu2012-local",
        "BLEU on three tests by the text that was tuned on, mean of two seeds",
        _tested,
        [
            "In brackets the difference to `mert`, with a star if it is significant (p < 0.05 by "
            "both tests of [experiments.md](experiments.md))"
        ],
    ),
    "local-sentences": (
        "liu2012-local",
        "Sentences without a matching 4-gram over all three tests, and the score if the better of "
        "two outputs were chosen for each sentence",
        _sentences,
        [],
    ),
    "local-alike": (
        "liu2012-local",
        "How much the tests are like the texts that were tuned on: mean cosine with the most "
        "similar sentence",
        _alike,
        [],
    ),
    "local-chosen": (
        "liu2012-choice",
        "λ, K and the source of the examples, on other text than the tests: BLEU",
        _chosen,
        [
            '"captions → help": tuned on captions, measured on help texts',
            "K is 100 and λ is 2 where nothing else is said",
        ],
    ),
}
"""The recipe, the title, what makes the rows, and what a reader must know."""


def _by_system(found: Loaded) -> dict[str, Loaded]:
    return {row["system"]: row for row in found["rows"]}


def _cell(value: Any) -> float:
    """Return a figure, of several seeds the mean."""
    return float(fmean(value) if isinstance(value, list) else value)


def keep(found: Iterable[tuple[str, Loaded]]) -> None:
    """Write results that are not older than those that are kept."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for name, content in found:
        path = KEPT / f"{name}.json"
        before = _read(path) if path.exists() else {}
        if "transcribed" not in before and before.get("date", "") > content["date"]:
            say(f"{name}: the kept result is newer")
            continue
        if (text := written(content)) != (path.read_text(encoding="utf-8") if before else ""):
            path.write_text(text, encoding="utf-8")
            say(f"{name}: kept")


def main(arguments: Sequence[str] | None = None) -> None:
    """Copy new results and fill all blocks."""
    words = sys.argv[1:] if arguments is None else arguments
    keep(measured(RESULTS))
    keep(tortured(TORTURE))
    if words:
        keep(experiments(Path(words[0])))
        copy_pages(Path(words[0]))
    for path in pages():
        before = path.read_text(encoding="utf-8")
        if (after := filled(before)) != before:
            path.write_text(after, encoding="utf-8")
            say(f"{path.relative_to(ROOT)}: filled")


if __name__ == "__main__":
    main()
