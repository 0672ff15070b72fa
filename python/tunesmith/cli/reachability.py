"""`tunesmith reachability`: which references a decoder could produce."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import counter, emit, note, out, table
from tunesmith.cli.loading import check_model, load_model
from tunesmith.cli.tune import texts
from tunesmith.decode import reaching
from tunesmith.decode.model_weights import templates_of
from tunesmith.runs import RunDirectory
from tunesmith.spaces.reading import read_weights

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith reachability model --source dev.de --reference dev.en\n\n"
    "$ tunesmith reachability model -s train.de -r train.en --json > reached.json\n\n"
    "$ tunesmith reachability model -s dev.de -r dev.en --run runs/maxforce\n\n"
    "$ tunesmith reachability --moses moses.ini -s dev.de -r dev.en --search table_limit=0\n\n"
    "tunesmith tune … -t maxforce learns from references that can be reached."
)


def reachability(
    source: Annotated[
        Path, typer.Option("--source", "-s", metavar="FILE", help="Sentences to translate.")
    ],
    reference: Annotated[
        list[Path],
        typer.Option(
            "--reference", "-r", metavar="FILE", help="Their references; repeat for several."
        ),
    ],
    model: Annotated[
        Path | None, typer.Argument(metavar="MODEL", help="A model directory of tunesmith train.")
    ] = None,
    least: Annotated[
        int,
        typer.Option(
            "--least",
            metavar="N",
            min=1,
            help="Words that count as a part of a reference that cannot be reached as a whole.",
        ),
    ] = 5,
    threads: o.Threads = 0,
    json: o.Json = False,
    kind: o.Kind = None,
    search: o.Search = None,
    weights: Annotated[
        Path | None,
        typer.Option(
            "--weights",
            "-w",
            metavar="FILE",
            help="The table limit depends on them; else those of --run, or of the model.",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            metavar="DIR",
            help="A finished run: its weights are taken, and its report shows the counts.",
        ),
    ] = None,
    moses: o.Moses = None,
    cache: o.Cache = None,
    tokenized: o.TokenizedText = False,
) -> None:
    """Count the references that a phrase-based decoder could produce.

    The decoder is forced to each reference within the limits of its search
    (distortion_limit, phrase_limit, table_limit). If a reference cannot be
    reached, its longest reachable part from the beginning is counted.
    """
    check_model(model, moses, kind)
    settings = o.numbers(search)
    folder = None if run is None else RunDirectory(run).open()
    file = weights if weights is not None or folder is None else folder.weights_file
    given = None if file is None else read_weights(file)
    lines, references = texts(source, reference)
    named = [] if given is None else templates_of(given)
    loaded = load_model(model, moses, kind, cache, named)
    translator = loaded.translator(given, settings, tokenized=tokenized)
    with counter(hidden=json) as bar:
        task = bar.add_task("forcing", total=sum(map(len, references)))
        found = reaching.reachability(
            translator,
            lines,
            references,
            threads=threads,
            tell=lambda done: bar.update(task, completed=done),
        )
    if folder is not None:
        folder.add_analysis(
            "reachability",
            {
                "source": str(source),
                "least": least,
                "options": settings,
                "rows": found.by_length(least),
                "total": found.summary(least),
            },
        )
    if json:
        emit(found.to_json(least))
        return
    show(found, least)
    if folder is not None:
        note(f"tunesmith report {folder.path} shows it, too")


def show(found: reaching.Reachability, least: int) -> None:
    """Print counts for all sentences, and by their length."""
    total = found.summary(least)
    rows = table("", "source words", "pairs", "whole", f"{least} words on", "words", *WORDS)
    for group in found.by_length(least):
        rows.add_row(f"{group['from']}-{group['to']}", *_cells(group))
    rows.add_row("all", *_cells(total), style="bold")
    out.print(rows)
    out.print(
        "states: hypotheses that lead to the reference, derivations: ways to it (medians)",
        style="dim",
    )
    out.print(f"maxforce can use {reaching.in_words(total)}")


WORDS = ("states", "derivations", "given up")


def _cells(counts: Mapping[str, Any]) -> list[str]:
    pairs, words = max(counts["pairs"], 1), max(counts["words"], 1)
    return [
        f"{counts['pairs']:,}",
        f"{counts['whole']:,} ({100 * counts['whole'] / pairs:.0f}%)",
        f"{counts['used']:,} ({100 * counts['used'] / pairs:.0f}%)",
        f"{100 * counts['used_words'] / words:.0f}%",
        f"{counts['states']:,.0f}",
        f"{counts['derivations']:,.0f}",
        f"{counts['given_up'] + counts['too_long']:,}",
    ]
