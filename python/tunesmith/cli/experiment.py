"""`tunesmith experiment`: tables and figures of the papers, run again and judged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, note, out, progress, table, warn
from tunesmith.engines import Engine
from tunesmith.errors import InputError
from tunesmith.experiments import SCALES, Lab, Recipe, find_recipe, read_recipe, shipped
from tunesmith.experiments.tasks import described, find_tasks
from tunesmith.report.wording import plural

app = typer.Typer(
    help="Run tables and figures of the papers again: recipes, verdicts, plots.",
    no_args_is_help=True,
)

Scale = Annotated[
    str,
    o.option("--scale", "NAME", "smoke (sample text, minutes), small (hours), full."),
]
Out = Annotated[
    Path,
    o.option(
        "--out -o", "DIR", "Folder for results and what is kept of runs; give it again to go on."
    ),
]
DataFolder = Annotated[
    Path | None,
    o.option(
        "--data",
        "DIR",
        "Folder of the texts and lists that recipes name; default: $TUNESMITH_DATA.",
    ),
]
Jobs = Annotated[
    int,
    o.option("--jobs", "N", "Runs at a time, one thread each; 0: one per core.", min=0, max=1024),
]
Latex = Annotated[bool, o.flag("--latex", "Write the tables in LaTeX, too.")]


@app.command("list", epilog="Examples:\n\n$ tunesmith experiment list")
def list_(json: o.Json = False) -> None:
    """List the recipes and what they reproduce."""
    recipes = [read_recipe(path, "smoke") for path in shipped().values()]
    if json:
        emit(
            {
                "recipes": [
                    {"name": r.name, "title": r.title, "reproduces": list(r.reproduces)}
                    for r in recipes
                ]
            }
        )
        return
    rows = table("", "recipe", "reproduces")
    rows.columns[1].justify = "left"
    for each in recipes:
        rows.add_row(each.name, "; ".join(each.reproduces) or each.title)
    out.print(rows)


@app.command(epilog="Examples:\n\n$ tunesmith experiment show eidelman2013-rm --scale small")
def show(
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="A name, or a TOML file.")],
    scale: Scale = "small",
    json: o.Json = False,
) -> None:
    """Show what a recipe runs at a scale: tasks, systems, claims."""
    o.one_of("scale", scale, SCALES)
    read = read_recipe(find_recipe(recipe), scale)
    tasks = [described(task) for task in find_tasks(read)]
    if json:
        emit(
            {
                "name": read.name,
                "file": read.file,
                "title": read.title,
                "reproduces": list(read.reproduces),
                "seeds": read.seeds,
                "metrics": list(read.metrics),
                "tasks": tasks,
                "systems": {each.name: each.preset for each in read.systems},
                "tables": [each.kind for each in read.tables],
                "claims": {each.text: str(each) for each in read.claims},
            }
        )
        return
    out.print(read.title, style="bold")
    for each in read.reproduces:
        out.print(f"reproduces {each}")
    if read.about:
        out.print(read.about)
    seeds = plural(read.seeds, "seed")
    out.print(f"scale {scale}: {seeds}, metrics {', '.join(read.metrics)}")
    rows = table("\ntasks", "task", "about", "tuning", "tests")
    for task in tasks:
        rows.add_row(
            task["task"], task["about"], ", ".join(task["tuning"]), ", ".join(task["tests"])
        )
    out.print(rows)
    rows = table("\nsystems", "system", "preset", "options", "features")
    for system in read.systems:
        given = {**system.options, **system.changed}
        options = " ".join(f"{key}={value}" for key, value in given.items())
        rows.add_row(system.name, system.preset, options, " ".join(system.templates))
    out.print(rows)
    out.print("\nclaims", style="bold")
    for claim in read.claims:
        out.print(f"{claim.text}: {claim}")
    out.print(f"\n{read.file}", style="dim")


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith experiment run eidelman2013-rm --scale smoke\n\n"
    "$ tunesmith experiment run my.toml --scale small --data texts --out results",
)
@o.runs_on_engine
def run(
    recipes: Annotated[
        list[str], typer.Argument(metavar="RECIPE...", help="Names, or TOML files.")
    ],
    scale: Scale = "small",
    folder: Out = Path("experiments"),
    data: DataFolder = None,
    jobs: Jobs = 0,
    latex: Latex = False,
    json: o.Json = False,
    *,
    engine: Engine,
) -> None:
    """Run recipes; what was run before with the same content is not run again.

    A stopped experiment goes on where it was: give the same --out.
    """
    _run([find_recipe(name) for name in recipes], scale, folder, data, engine, jobs, latex, json)


@app.command("all", epilog="Examples:\n\n$ tunesmith experiment all --scale smoke --out results")
@o.runs_on_engine
def all_(
    scale: Scale = "small",
    folder: Out = Path("experiments"),
    data: DataFolder = None,
    jobs: Jobs = 0,
    latex: Latex = False,
    json: o.Json = False,
    *,
    engine: Engine,
) -> None:
    """Run all recipes of the package."""
    _run([*shipped().values()], scale, folder, data, engine, jobs, latex, json)


def _run(
    paths: list[Path],
    scale: str,
    folder: Path,
    data: Path | None,
    engine: Engine,
    jobs: int,
    latex: bool,
    json: bool,
) -> None:
    o.one_of("scale", scale, SCALES)
    given = data if data is not None else _environment()
    if given is not None and not given.is_dir():
        raise InputError("no such folder", str(given), remedy="check --data")
    # All are read before the first is run.
    recipes: list[Recipe] = [read_recipe(path, scale) for path in paths]
    for recipe in recipes:
        find_tasks(recipe)
    outcomes: list[dict[str, Any]] = []
    bars = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with progress(*bars) as bar:
        shown = bar.add_task("", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(shown, description=what, completed=done, total=total)

        lab = Lab(folder, given, jobs, engine, latex, tell, warn)
        for recipe in recipes:
            outcome = lab.run(recipe)
            outcomes.append(outcome)
            reason = f": {outcome['reason']}" if outcome["reason"] else ""
            note(f"{recipe.name}: {outcome['verdict']}{reason} ({outcome['seconds']:.0f} s)")
    if lab.store.other_builds:
        note(
            f"{lab.store.other_builds} results come from another build of the program "
            f"(remove {folder / 'cache'} to make them anew)"
        )
    if json:
        emit({"folder": str(folder), "outcomes": outcomes})
        return
    rows = table("", "recipe", "verdict", "claims confirmed", "seconds")
    for outcome in outcomes:
        confirmed = sum(each["status"] == "confirmed" for each in outcome["claims"])
        rows.add_row(
            outcome["recipe"],
            outcome["verdict"],
            f"{confirmed} of {len(outcome['claims'])}",
            f"{outcome['seconds']:.0f}",
        )
    out.print(rows)
    if any(outcome["sampled"] for outcome in outcomes):
        out.print("sample text was used, which proves nothing about a claim", style="dim")
    print(folder / "README.md")


def _environment() -> Path | None:
    """Return the folder of data that the environment names."""
    if found := os.environ.get("TUNESMITH_DATA"):
        return Path(found)
    shared = os.environ.get("TUNESMITH_SHARED")
    return Path(shared) / "data" if shared else None
