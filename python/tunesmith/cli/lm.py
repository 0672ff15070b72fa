"""`tunesmith lm`: estimate, binarize and query language models."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tunesmith._core import Lines
from tunesmith.cli import options as o
from tunesmith.cli.console import busy, emit, note, out, table, warn
from tunesmith.errors import InputError
from tunesmith.lm import FALLBACK, Estimate, LanguageModel
from tunesmith.lm import estimate as estimate_model
from tunesmith.training.model import LM, text_sides

app = typer.Typer(
    help="Estimate, binarize and query n-gram language models.",
    no_args_is_help=True,
)

Model = Annotated[
    Path,
    typer.Argument(
        help="An ARPA file, a binary, or a model directory of tunesmith train, which also prepares "
        "the text.",
        show_default=False,
    ),
]
BINARY = ".tlm"
WORD = re.compile(r"[^ \t\r\n\0]+")


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith lm estimate train.en.gz --order 5 --out lm.arpa.gz\n\n"
    "$ tunesmith lm estimate news.*.zst --prune 0,0,1 --memory 4G --out news.tlm",
)
def estimate(
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="TEXT...",
            help="One sentence per line, plain, gzip or zstd; - is the standard input.",
            show_default=False,
        ),
    ],
    to: Annotated[
        Path,
        o.option(
            "--out -o",
            "FILE",
            "Where to write: ARPA, compressed if it ends in .gz or .zst; a binary if it ends "
            "in .tlm.",
            show_default=False,
        ),
    ],
    order: Annotated[int, o.option("--order", "N", "1 to 6.")] = 5,
    prune: Annotated[
        str,
        o.option(
            "--prune",
            "N,N,...",
            "For each order the count up to which n-grams are left out, as in 0,0,1; the last "
            "holds for higher orders.",
        ),
    ] = "0",
    vocab: Annotated[
        Path | None,
        o.option("--vocab", "FILE", "Words to keep; n-grams with other words are dropped."),
    ] = None,
    memory: o.Memory = "1G",
    temp: Annotated[Path | None, o.option("--temp", "FOLDER", "Where temporary files go.")] = None,
    skip_symbols: Annotated[
        bool, typer.Option("--skip-symbols", help="Skip <s>, </s> and <unk> in the text.")
    ] = False,
    fallback: Annotated[
        str,
        o.option(
            "--fallback",
            "D,D,D",
            "Discounts of counts 1, 2, 3+ if the text is too small to estimate them.",
        ),
    ] = ",".join(f"{value:g}" for value in FALLBACK),
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Estimate a model with interpolated modified Kneser-Ney smoothing."""
    low, middle, high = _numbers("--fallback", fallback, 3)
    thresholds = _numbers("--prune", prune)
    if any(value != int(value) for value in thresholds):
        raise InputError(f"--prune {prune}", remedy="give whole numbers, as in 0,0,1")
    _keep(texts if vocab is None else [*texts, vocab], to)
    with busy("reading") as status:
        found = estimate_model(
            texts,
            order=order,
            prune=[int(value) for value in thresholds],
            vocabulary=None if vocab is None else _words(vocab),
            memory=memory,
            folder=temp,
            skip_symbols=skip_symbols,
            fallback=(low, middle, high),
            threads=threads,
            progress=lambda stage, done, total: status.update(f"{stage}: {done:,}"),
        )
        status.update("writing")
        if to.suffix == BINARY:
            found.model().save(to)
        else:
            found.write_arpa(to)
    for message in found.messages():
        warn(message)
    if json:
        emit(_facts(found, order))
    elif str(to) != "-":
        _show(found, to)


@app.command(epilog="Example: tunesmith lm binarize lm.arpa.gz lm.tlm")
def binarize(
    arpa: Annotated[Path, typer.Argument(help="An ARPA file.", show_default=False)],
    to: Annotated[
        Path, typer.Argument(metavar="OUT", help="The binary to write.", show_default=False)
    ],
    json: o.Json = False,
) -> None:
    """Turn an ARPA file into a binary that loads in milliseconds."""
    _keep([arpa], to)
    with busy("reading"):
        model = LanguageModel.load(arpa)
    with busy("writing"):
        model.save(to)
    if json:
        emit({"order": model.order, "counts": model.counts, "bytes": model.core.bytes})
    else:
        counts = ", ".join(f"{count:,}" for count in model.counts)
        note(f"{to}: {counts} n-grams in {model.core.bytes:,} bytes")


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith lm query lm.tlm < text\n\n"
    "$ echo 'a man rides' | tunesmith lm query lm.tlm --no-eos --json",
)
def query(
    model: Model,
    text: Annotated[
        Path, typer.Argument(help="One sentence per line; - is the standard input.")
    ] = Path("-"),
    bos: Annotated[bool, typer.Option(help="Lines begin a sentence.")] = True,
    eos: Annotated[bool, typer.Option(help="Lines end a sentence.")] = True,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object per sentence instead of columns.")
    ] = False,
) -> None:
    """Show each word with its log-probability (base 10) and the length of the n-gram found.

    Words that the model does not know are marked in a fourth column; a blank line ends a sentence.
    """
    asked, prepare = _load(model)
    for line in map(prepare, Lines(text)):
        words = WORD.findall(line) + (["</s>"] if eos else [])
        scores = asked.full_scores(line, bos, eos)
        if json:
            found = {
                "words": words,
                "log10": [round(score.log10, 6) for score in scores],
                "lengths": [score.length for score in scores],
                "known": [score.known for score in scores],
                "total": round(sum(score.log10 for score in scores), 6),
            }
            emit(found)
            continue
        for word, score in zip(words, scores, strict=True):
            mark = "" if score.known else "\tunknown"
            print(f"{word}\t{score.log10:.6f}\t{score.length}{mark}")
        print()


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith lm perplexity lm.tlm test.en\n\n"
    "$ tunesmith lm perplexity model test.en\n\n"
    "$ zcat test.en.gz | tunesmith lm perplexity lm.arpa.gz - --json",
)
def perplexity(
    model: Model,
    text: Annotated[
        Path,
        typer.Argument(
            help="One sentence per line, plain, gzip or zstd; - is the standard input.",
            show_default=False,
        ),
    ],
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Measure how well a model predicts a text, ends of sentences included."""
    asked, prepare = _load(model)
    with busy("measuring"):
        found = (
            asked.measure(map(prepare, Lines(text)))
            if model.is_dir()
            else asked.measure_file(text, threads)
        )
    if not found.tokens:
        raise InputError("the text is empty", str(text), remedy="give a text with sentences in it")
    facts = {
        "perplexity": found.perplexity,
        "perplexity_known": found.perplexity_known,
        "log10": found.log10,
        "sentences": found.sentences,
        "tokens": found.tokens,
        "unknown": found.unknown,
    }
    if json:
        emit(facts)
        return
    shown = table("", "", "", header=False)
    shown.add_row("perplexity", f"{found.perplexity:.3f}")
    shown.add_row("without unknown words", f"{found.perplexity_known:.3f}")
    shown.add_row("log10 probability", f"{found.log10:.3f}")
    for key in ("sentences", "tokens", "unknown"):
        shown.add_row(key, f"{facts[key]:,}")
    out.print(shown)


def _load(model: Path) -> tuple[LanguageModel, Callable[[str], str]]:
    """Return a language model and the preparation of its text."""
    with busy("reading the model"):
        if not model.is_dir():
            return LanguageModel.load(model), str
        _, target = text_sides(model)
        return LanguageModel.load(model / LM), target.prepare


def _facts(found: Estimate, order: int) -> dict[str, object]:
    return {
        "order": order,
        "sentences": found.sentences,
        "words": found.words,
        "skipped": found.skipped,
        "orders": [
            {
                "ngrams": each.ngrams,
                "before_pruning": each.before_pruning,
                "discounts": list(each.discounts),
                "fallback": each.fallback,
            }
            for each in found.orders
        ],
    }


def _show(found: Estimate, to: Path) -> None:
    title = f"{to}: {found.sentences:,} sentences, {found.words:,} words"
    rows = table(title, "order", "n-grams", "before pruning", "D1", "D2", "D3+")
    for number, order in enumerate(found.orders, 1):
        discounts = (f"{value:.4f}" for value in order.discounts)
        rows.add_row(str(number), f"{order.ngrams:,}", f"{order.before_pruning:,}", *discounts)
    out.print(rows)


def _keep(inputs: Sequence[Path], to: Path) -> None:
    """Raise if a file that is read would be overwritten."""
    for path in inputs:
        if path.exists() and to.exists() and path.samefile(to):
            raise InputError("it would be overwritten", str(path), remedy="write to another file")


def _words(path: Path) -> list[str]:
    words = [word for line in Lines(path) for word in WORD.findall(line)]
    if not words:
        raise InputError("no words to keep", str(path), remedy="list words, one per line")
    return words


def _numbers(option: str, text: str, count: int | None = None) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = []
    wanted = "numbers" if count is None else f"{count} numbers"
    if not found or (count is not None and len(found) != count) or not all(map(_finite, found)):
        raise InputError(f"{option} {text}", remedy=f"give {wanted} with commas between them")
    return found


def _finite(value: float) -> bool:
    return 0 <= value < 1e18
