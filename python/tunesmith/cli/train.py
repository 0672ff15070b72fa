"""`tunesmith train`: parallel text in, a model directory out; and `inspect`, a look inside."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import busy, emit, note, out, table
from tunesmith.errors import InputError
from tunesmith.training.model import read_model, rule_tables
from tunesmith.training.pipeline import Training
from tunesmith.training.pipeline import train as train_model
from tunesmith.training.rules import find
from tunesmith.training.text import TextSide

TRAIN_EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith train train.de train.en --model model --tokenize moses --case lower\n\n"
    "$ tunesmith train train.de.gz train.en.gz --model model --kind phrase --alignment links.gz"
)
INSPECT_EXAMPLES = 'Examples:\n\n$ tunesmith inspect model "das haus"'
KINDS = ("phrase", "hiero", "both")
TOKENIZERS = ("none", "moses", "char", "sentencepiece")
CASES = ("keep", "lower", "true")


def _one_of(name: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InputError(f"--{name} {value}", remedy=f"use one of {', '.join(choices)}")
    return value


def train(
    source: Annotated[
        Path, typer.Argument(metavar="SRC", help="Source text, a sentence per line.")
    ],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Its translation, line by line.")],
    model: Annotated[Path, typer.Option("--model", metavar="DIR", help="Where the model goes.")],
    kind: Annotated[str, typer.Option(metavar="NAME", help="phrase, hiero or both.")] = "both",
    lm_text: Annotated[
        list[Path] | None,
        typer.Option("--lm-text", metavar="FILE", help="More target text for the language model."),
    ] = None,
    order: Annotated[int, typer.Option(metavar="N", help="Order of the language model.")] = 5,
    alignment: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Word alignment made elsewhere (0-0 1-2 …)."),
    ] = None,
    aligner: Annotated[
        str,
        typer.Option(metavar="NAME", help="fast_align, eflomal, thot-fast_align, hmm, ibm1-ibm4."),
    ] = "fast_align",
    source_language: Annotated[str, typer.Option(metavar="CODE", help="As in de.")] = "de",
    target_language: Annotated[str, typer.Option(metavar="CODE", help="As in en.")] = "en",
    tokenize: Annotated[
        str, typer.Option(metavar="NAME", help="none, moses, char or sentencepiece.")
    ] = "none",
    case: Annotated[str, typer.Option(metavar="NAME", help="keep, lower or true.")] = "keep",
    longest: Annotated[int, typer.Option(metavar="N", help="Words in a sentence at most.")] = 100,
    ratio: Annotated[float, typer.Option(metavar="N", help="Length ratio at most.")] = 9.0,
    dev: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Source text to tell the coverage of.")
    ] = None,
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Train a model from two aligned texts: alignment, language model, rules.

    A training that was stopped goes on after its last finished stage when it is started again.
    """
    _one_of("kind", kind, KINDS)
    _one_of("tokenize", tokenize, TOKENIZERS)
    _one_of("case", case, CASES)
    training = Training(
        source,
        target,
        TextSide(source_language, tokenize, case),  # type: ignore[arg-type]
        TextSide(target_language, tokenize, case),  # type: ignore[arg-type]
        kind,  # type: ignore[arg-type]
        tuple(lm_text or ()),
        order,
        aligner,
        alignment,
        longest=longest,
        ratio=ratio,
        dev=dev,
    )
    began = time.perf_counter()
    with busy("training"):
        summary = train_model(
            training,
            model,
            threads,
            lambda stage, state: note(f"{stage}: {state}") if state == "done" else None,
        )
    summary["seconds"] = time.perf_counter() - began
    if json:
        emit(summary)
        return
    rows = table("Stages", "stage", "seconds", "facts")
    rows.columns[2].justify = "left"
    rows.columns[2].no_wrap = False
    for name, facts in summary["stages"].items():
        told = ", ".join(
            f"{key} {value}"
            for key, value in facts.items()
            if key not in ("seconds", "messages") and value not in ({}, [], 0)
        )
        rows.add_row(name, f"{facts['seconds']:.2f}", told)
    out.print(rows)
    sizes = table("\nFiles", "file", "MB")
    for name, size in summary["files"].items():
        sizes.add_row(name, f"{size / 1e6:.1f}")
    out.print(sizes)
    note(f"model in {model}; tunesmith inspect {model} PHRASE shows its rules")


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model directory.")],
    phrase: Annotated[
        str | None, typer.Argument(metavar="PHRASE", help="Source words to look up.")
    ] = None,
    top: Annotated[int, typer.Option(metavar="N", help="Rules to show.")] = 20,
    json: o.Json = False,
) -> None:
    """Show the rules of a model for a phrase, with their scores; or what the model is."""
    told = read_model(model)
    tables = rule_tables(model)
    if phrase is None:
        if json:
            emit(told)
            return
        rows = table(str(model), "table", "rules", "sources", "MB")
        for name, held in tables.items():
            rows.add_row(name, f"{len(held):,}", f"{held.sources:,}", f"{held.bytes / 1e6:.1f}")
        out.print(rows)
        return
    found = {name: find(held, phrase) for name, held in tables.items()}
    if json:
        emit(
            {
                name: [
                    {"target": " ".join(r.target), "scores": r.scores, "links": r.links}
                    for r in rules
                ]
                for name, rules in found.items()
            }
        )
        return
    for name, rules in found.items():
        if not rules:
            out.print(f"{name}: no rule for {phrase!r}", markup=False)
            continue
        columns = list(rules[0].scores)
        rows = table(f"\n{name}: {phrase}", "target", *columns)
        best = columns[2] if len(columns) > 2 else columns[0]
        for rule in sorted(rules, key=lambda r: -r.scores[best])[:top]:
            rows.add_row(" ".join(rule.target), *(f"{rule.scores[c]:.4g}" for c in columns))
        out.print(rows)
        if len(rules) > top:
            out.print(f"… and {len(rules) - top} more (--top)", style="dim")
