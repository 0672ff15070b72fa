"""`tunesmith train`: parallel text in, a model directory out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Self

import typer
from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn

from tunesmith._core import Lines
from tunesmith.cli import options as o
from tunesmith.cli.console import emit, err, note, out, progress, table, warn
from tunesmith.errors import InputError
from tunesmith.lm import memory_bytes
from tunesmith.training.detect import choose_sides
from tunesmith.training.pipeline import KINDS, Training
from tunesmith.training.pipeline import train as train_model
from tunesmith.training.rules import PhraseOptions
from tunesmith.training.stages import News
from tunesmith.training.text import CASES, TOKENIZERS

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith train train.de train.en --model model\n\n"
    "$ tunesmith train text.a text.b --model model --source-language de --target-language en "
    "--tokenize moses --case lower\n\n"
    "$ tunesmith train train.de.gz train.en.gz --model model --kind phrase --alignment links.gz"
)

REORDERINGS = {
    "none": PhraseOptions(reordering=False),
    "word": PhraseOptions(),
    "block": PhraseOptions(reordering=False, hierarchical_reordering=True),
    "sides": PhraseOptions(reordering=False, hierarchical_reordering=True, reordering_sides=True),
}


def train(
    source: Annotated[
        Path, typer.Argument(metavar="SRC", help="Source text, a sentence per line.")
    ],
    target: Annotated[Path, typer.Argument(metavar="TGT", help="Its translation, line by line.")],
    model: Annotated[Path, o.option("--model", "DIR", "Where the model goes.")],
    kind: Annotated[str, o.option("--kind", "NAME", "phrase, hiero or both.")] = "both",
    lm_text: Annotated[
        list[Path] | None, o.option("--lm-text", "FILE", "More target text for the language model.")
    ] = None,
    order: Annotated[int, o.option("--order", "N", "Order of the language model.")] = 5,
    alignment: Annotated[
        Path | None, o.option("--alignment", "FILE", "Word alignment made elsewhere (0-0 1-2 …).")
    ] = None,
    aligner: Annotated[
        str, o.option("--aligner", "NAME", "fast_align, eflomal, thot-fast_align, hmm, ibm1-ibm4.")
    ] = "fast_align",
    reordering: Annotated[
        str,
        o.option(
            "--reordering",
            "NAME",
            "Orientations of phrases: none, word, block (to blocks of any size), or sides, which "
            "also tells left from right.",
        ),
    ] = "word",
    source_language: Annotated[
        str | None,
        o.option("--source-language", "CODE", "As in de; by default the end of SRC's name."),
    ] = None,
    target_language: Annotated[
        str | None,
        o.option("--target-language", "CODE", "As in en; by default the end of TGT's name."),
    ] = None,
    tokenize: Annotated[
        str | None,
        o.option(
            "--tokenize",
            "NAME",
            f"{', '.join(TOKENIZERS[:-1])} or {TOKENIZERS[-1]}; by default moses for raw "
            "text, none for tokenised text.",
        ),
    ] = None,
    pieces: Annotated[
        int, o.option("--pieces", "N", "Pieces that sentencepiece and bpe cut text into.")
    ] = 8000,
    case: Annotated[
        str | None,
        o.option(
            "--case", "NAME", "keep, lower or true; by default true for raw text with capitals."
        ),
    ] = None,
    protected: Annotated[
        Path | None,
        o.option(
            "--protected",
            "FILE",
            "Regular expressions, one per line, of text that is kept unchanged, in place of "
            "those for addresses, paths, tags and numbers.",
        ),
    ] = None,
    longest: Annotated[
        int, o.option("--longest", "N", "Maximum number of words in a sentence.")
    ] = 100,
    ratio: Annotated[float, o.option("--ratio", "N", "Maximum length ratio.")] = 9.0,
    dev: Annotated[
        Path | None, o.option("--dev", "FILE", "Source text to report the coverage of.")
    ] = None,
    dev_target: Annotated[
        Path | None, o.option("--dev-target", "FILE", "Its translation: report the perplexity.")
    ] = None,
    tagged: Annotated[
        Path | None,
        o.option("--tagged", "FILE", "Target text as word|TAG, for the template tag-bigrams."),
    ] = None,
    memory: o.Memory = "1G",
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Train a model from two aligned texts: alignment, language model, rules.

    Tokenisation and case are detected from a sample and reported, unless options give them.

    A stopped training continues after its last finished stage when it is started again.
    """
    o.one_of("kind", kind, KINDS)
    o.one_of("tokenize", tokenize or "none", TOKENIZERS)
    o.one_of("case", case or "keep", CASES)
    o.one_of("reordering", reordering, tuple(REORDERINGS))
    if reordering != "word" and kind == "hiero":
        raise InputError(
            f"--reordering {reordering} of hierarchical rules",
            remedy="leave it out: only phrases have orientations",
        )
    chosen = choose_sides(
        source,
        target,
        languages=(source_language, target_language),
        tokenize=tokenize,  # type: ignore[arg-type]
        case=case,  # type: ignore[arg-type]
        pieces=pieces,
        aligned=alignment is not None,
        protected=None if protected is None else tuple(filter(None, Lines(protected))),
    )
    training = Training(
        source,
        target,
        chosen.source,
        chosen.target,
        kind,  # type: ignore[arg-type]
        tuple(lm_text or ()),
        order,
        aligner,
        alignment,
        longest=longest,
        ratio=ratio,
        phrases=REORDERINGS[reordering],
        dev=dev,
        dev_target=dev_target,
        tagged=tagged,
        memory=memory_bytes(memory),
    )
    began = time.perf_counter()
    if chosen.why:
        note(f"chosen: {chosen.why}")
    with Bars() as bars:
        summary = train_model(training, model, threads, bars)
    _warn(summary["stages"])
    summary["chosen"] = chosen.why
    summary["seconds"] = time.perf_counter() - began
    if json:
        emit(summary)
        return
    rows = table("Stages", "stage", "seconds", "facts")
    rows.columns[2].justify = "left"
    rows.columns[2].no_wrap = False
    for name, facts in summary["stages"].items():
        details = ", ".join(
            f"{key} {_shown(value)}"
            for key, value in facts.items()
            if key not in ("seconds", "messages") and value not in ({}, [], 0)
        )
        rows.add_row(name, f"{facts['seconds']:.2f}", details)
    out.print(rows)
    sizes = table("\nFiles", "file", "MB")
    for name, size in summary["files"].items():
        sizes.add_row(name, f"{size / 1e6:.1f}")
    out.print(sizes)
    note(f"model in {model}: see tunesmith translate {model}, tunesmith inspect {model} PHRASE")


class Bars:
    """Shows a bar for each stage on a terminal, elsewhere a line when it is done."""

    def __init__(self) -> None:
        self._progress = progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[step]}", markup=False),
            TimeElapsedColumn(),
        )
        self._bars: dict[str, TaskID] = {}

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def __call__(self, news: News) -> None:
        """Show the progress of a stage."""
        if news.stage not in self._bars:
            self._bars[news.stage] = self._progress.add_task(news.stage, total=None, step="")
        bar = self._bars[news.stage]
        if news.state == "going":
            share = f"{news.done:,} of {news.total:,}" if news.total else f"{news.done:,}"
            step = f"{news.step} {share}" if news.done else news.step
            self._progress.update(bar, completed=news.done, total=news.total or None, step=step)
        elif news.state in ("done", "kept"):
            self._progress.update(bar, completed=1, total=1, step=news.state)
            self._progress.stop_task(bar)
            if not err.is_terminal:
                note(f"{news.stage}: {news.state}")


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_shown(each)}" for key, each in value.items())
    if isinstance(value, list):
        return " ".join(map(_shown, value))
    return f"{value:,}" if isinstance(value, int) else str(_rounded(value))


def _rounded(value: object) -> object:
    return f"{value:.4g}" if isinstance(value, float) else value


def _warn(stages: dict[str, dict[str, Any]]) -> None:
    """Warn of sentence pairs that stages skipped and of values that they assumed."""
    for name, facts in stages.items():
        for message in facts.get("messages", []):
            warn(f"{name}: {message}")
        for reason, count in {**facts.get("dropped", {}), **facts.get("skipped", {})}.items():
            warn(f"{name}: {count:,} sentence pairs left out: {reason}")
