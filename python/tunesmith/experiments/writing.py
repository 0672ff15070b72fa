"""Tables for people, papers and programs: Markdown, LaTeX, JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tunesmith.experiments.claims import CONFIRMED, Evidence, Judged
from tunesmith.experiments.tables import Cell, Filled, Several

_NEGATIVE = re.compile(r"-[0-9]")
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "|": r"\textbar{}",
    "∩": r"$\cap$",
    "Δ": r"$\Delta$",
    "λ": r"$\lambda$",
    "−": "$-$",
    "±": r"$\pm$",
    ">": r"\textgreater{}",
    "<": r"\textless{}",
}


def cell_text(value: Cell, column: str = "") -> str:
    """Return a cell as text: means with deviations where there are several seeds."""
    if value is None:
        return ""
    if isinstance(value, Several):
        if len(value.values) == 1 and value.mean.is_integer():
            # A count.
            return f"{value.mean:,.0f}"
        mean = _number(value.mean)
        # As many decimals as the mean has.
        places = 0 if abs(value.mean) >= 1000 else 3 if abs(value.mean) < 1 and value.mean else 2
        return f"{mean} ± {value.deviation:,.{places}f}" if len(value.values) > 1 else mean
    if isinstance(value, float) and column.startswith("p"):
        return f"{value:.3f}"
    return _number(value) if isinstance(value, float | int) else value


def _number(value: float) -> str:
    if abs(value) >= 1000 or (float(value).is_integer() and abs(value) >= 100):
        return f"{value:,.0f}"
    if abs(value) < 1 and value:
        return f"{value:.3f}"
    return f"{value:,.0f}" if isinstance(value, int) else f"{value:.2f}"


def markdown(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [
        f"| {' | '.join(_bar(each) for each in headers)} |",
        f"| {' | '.join('---' for _ in headers)} |",
        *(f"| {' | '.join(_bar(each) for each in row)} |" for row in rows),
    ]
    return "\n".join(lines) + "\n"


def _bar(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _in_latex(cell: str) -> str:
    """Return a cell; a minus sign is not a hyphen."""
    sign, rest = ("$-$", cell[1:]) if _NEGATIVE.match(cell) else ("", cell)
    return sign + "".join(_LATEX.get(char, char) for char in rest)


def latex(headers: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """Return a table in LaTeX, for the package booktabs."""

    def line(cells: Sequence[str]) -> str:
        return " & ".join(map(_in_latex, cells)) + r" \\"

    said = "".join(_LATEX.get(char, char) for char in caption)
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'r' * (len(headers) - 1)}}}",
            r"\toprule",
            line(headers),
            r"\midrule",
            *(line(row) for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
            *([rf"\caption{{{said}}}"] if caption else []),
            r"\end{table}",
            "",
        ]
    )


def texts_of(table: Filled) -> tuple[list[str], list[list[str]]]:
    """Return the heads and the cells of a table as text; a task that never changes is left out."""
    columns = [name for name in table.columns if name != "task"]
    return columns, [[cell_text(row.get(name), name) for name in columns] for row in table.rows]


def plain_table(table: Filled) -> dict[str, Any]:
    """Return a table in JSON types: several seeds as a list."""
    return {
        "kind": table.kind,
        "title": table.title,
        "columns": table.columns,
        "rows": [
            {k: list(v.values) if isinstance(v, Several) else v for k, v in row.items()}
            for row in table.rows
        ],
        "notes": table.notes,
    }


def page(outcome: Mapping[str, Any], tables: Sequence[Filled], judged: Sequence[Judged]) -> str:
    """Return the page of a recipe in Markdown."""
    parts = [f"# {outcome['title']}", ""]
    if outcome["reproduces"]:
        parts += [f"Reproduces {'; '.join(outcome['reproduces'])}.", ""]
    if outcome["about"]:
        parts += [outcome["about"], ""]
    parts += [f"**{outcome['verdict']}**{_reason(outcome)}", ""]
    facts = f"Scale {outcome['scale']}, {outcome['seeds']} seed{'s' * (outcome['seeds'] != 1)}"
    parts += [f"{facts}; {outcome['machine']}.", ""]
    if outcome["sampled"]:
        parts += [
            f"Sample text of a few sentences stands for {', '.join(outcome['sampled'])}: it shows "
            "that the recipe runs, nothing more.",
            "",
        ]
    for each in judged:
        parts += [f"- **{each.status}**: {each.text} (`{each.claim}`): {each.reason}"]
        parts += [f"  - {evidence_text(one)}" for one in each.evidence]
    parts += [""] if judged else []
    for table in tables:
        parts += [f"## {table.title}", "", markdown(*texts_of(table))]
        parts += [f"{'; '.join(table.notes)}.", ""] if table.notes else []
    for plot in outcome["plots"]:
        parts += [f"![{plot}]({plot})", ""]
    if outcome["overlaps"]:
        parts += ["Of the tests, these sentences were learnt from:", ""]
        parts += [*(f"- {each}" for each in outcome["overlaps"]), ""]
    for task, reason in outcome["left_out"].items():
        parts += [f"Left out: {task}: {reason}", ""]
    if outcome["systems"]:
        parts += ["## Systems", ""]
        parts += [f"- {name}: `{tuner}`" for name, tuner in outcome["systems"].items()]
    return "\n".join(parts) + "\n"


def _reason(outcome: Mapping[str, Any]) -> str:
    return f": {outcome['reason']}" if outcome["reason"] else ""


def evidence_text(one: Evidence) -> str:
    """Return in a line what two systems have on a task."""
    said = (
        f"{one.task}: {one.left} {_number(one.left_value)}, {one.right} "
        f"{_number(one.right_value)}: {one.said}"
    )
    if one.p_bootstrap is None or one.ci is None or one.p is None:
        if one.p is not None:
            how = f"no overlap, which has p = {one.p:.3f} by chance"
        elif one.seeds == 1:
            how = "any two figures differ by chance"
        else:
            how = "values that overlap are unclear"
        return f"{said} ({one.seeds} seed{'s' * (one.seeds != 1)}; {how})"
    return (
        f"{said} (randomisation p = {one.p:.3f}, bootstrap p = {one.p_bootstrap:.3f}, 95% of "
        f"differences [{one.ci[0]:+.2f}, {one.ci[1]:+.2f}], {one.seeds} "
        f"seed{'s' * (one.seeds != 1)})"
    )


SHOWN = ("recipe", "claims", "scale", "verdict", "reproduces", "seeds", "seconds", "machine")
"""What an overview shows of each outcome."""


def overview(outcomes: Sequence[Mapping[str, Any]]) -> str:
    """Return a page with the verdicts of recipes, and of each of their claims."""
    recipes, claims = [], []
    for each in outcomes:
        name, judged = each["recipe"], each["claims"]
        confirmed = sum(claim["status"] == CONFIRMED for claim in judged)
        recipes.append(
            [
                f"[{name}]({name}/README.md)",
                each["scale"],
                each["verdict"],
                f"{confirmed} of {len(judged)}",
                "; ".join(each["reproduces"]),
                str(each["seeds"]),
                f"{each['seconds']:.0f}",
            ]
        )
        claims += [[name, claim["text"], claim["status"], claim["reason"]] for claim in judged]
    heads = ["recipe", "scale", "verdict", "claims confirmed", "reproduces", "seeds", "seconds"]
    parts = ["# Experiments", "", markdown(heads, recipes)]
    parts += [f"{each}.\n" for each in sorted({str(each["machine"]) for each in outcomes})]
    if claims:
        parts += ["## Claims", "", markdown(["recipe", "claim", "verdict", "comparisons"], claims)]
    return "\n".join(parts)
