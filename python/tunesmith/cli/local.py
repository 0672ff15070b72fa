"""`tunesmith local`: examples that are similar to a sentence, for local training."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import busy, counter, emit, note, out, sentences, table
from tunesmith.cli.loading import check_model, load_model
from tunesmith.cli.tune import texts
from tunesmith.decode.model_weights import templates_of
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.engines import Engine
from tunesmith.local import Index
from tunesmith.local.index import LENGTH
from tunesmith.spaces.reading import read_weights

app = typer.Typer(
    help="Examples that are similar to a sentence, for local training.",
    no_args_is_help=True,
)
Folder = Annotated[Path, typer.Argument(metavar="INDEX", help="The folder of an index.")]
Data = Annotated[
    tuple[Path, Path],
    typer.Option(
        "--data", metavar="SRC TGT", help="Source text and its translation, line by line."
    ),
]
Tokenized = Annotated[
    bool, o.flag("--tokenized", "All text is already words of the model.", o.MODEL)
]


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith local build model --data held.de held.en --weights tuned.toml --out index\n\n"
    "$ tunesmith local build --moses moses.ini --data held.de held.en --out index\n\n"
    "Text that the model was trained on has better lists than new text will have: keep some of "
    "the parallel text out of training and build the index from it."
)
@o.runs_on_engine
def build(
    out_: Annotated[Path, o.option("--out -o", "INDEX", "Folder to make.")],
    data: Data,
    model: o.Model = None,
    k: Annotated[int, o.option("--k", "K", "Length of the lists.", min=1)] = LENGTH,
    threads: o.Threads = 0,
    json: o.Json = False,
    kind: o.Kind = None,
    search: o.Search = None,
    weights: o.DecoderWeights = None,
    moses: o.Moses = None,
    cache: o.Cache = None,
    tokenized: Tokenized = False,
    *,
    engine: Engine,
) -> None:
    """Decode parallel text once and keep the K best translations of each line.

    A build that was stopped goes on when the same command is given again.
    """
    sources, references = texts(data[0], [data[1]])
    translator = _translator(model, moses, kind, weights, search, cache, tokenized)
    with counter(hidden=json) as bar:
        task = bar.add_task("decoding", total=len(sources))
        index = Index.build(
            out_,
            translator,
            sources,
            references,
            k=k,
            threads=threads,
            engine=engine,
            progress=lambda done, lines: bar.update(task, completed=done, total=lines),
        )
    _tell(index, json)
    index.close()


@app.command(
    epilog="Examples:\n\n$ tunesmith local add index model --data new.de new.en -w tuned.toml"
)
def add(
    index: Folder,
    data: Data,
    model: o.Model = None,
    threads: o.Threads = 0,
    json: o.Json = False,
    kind: o.Kind = None,
    search: o.Search = None,
    weights: o.DecoderWeights = None,
    moses: o.Moses = None,
    cache: o.Cache = None,
    tokenized: Tokenized = False,
) -> None:
    """Add parallel text to an index; model and weights must be those that it was built with."""
    sources, references = texts(data[0], [data[1]])
    translator = _translator(model, moses, kind, weights, search, cache, tokenized)
    opened = Index.open(index, translator)
    with busy("decoding"):
        ids = opened.add(translator, sources, references, threads=threads)
    opened.close()
    if json:
        emit({"ids": ids, "examples": len(opened)})
        return
    left = len(sources) - len(ids)
    note(f"{len(ids):,} examples added, {left:,} lines left out (no source or no reference)")


@app.command(epilog="Examples:\n\n$ tunesmith local remove index 12 40")
def remove(
    index: Folder,
    ids: Annotated[list[int], typer.Argument(metavar="ID…", help="Numbers of examples.", min=0)],
    json: o.Json = False,
) -> None:
    """Take examples back."""
    opened = Index.open(index)
    removed = opened.remove(ids)
    opened.close()
    if json:
        emit({"removed": removed, "examples": len(opened)})
    else:
        note(f"{removed:,} of {len(ids):,} removed")


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith local query index 'ein mann mit hut' -k 5\n\n"
    "$ tunesmith local query index 'Ein Mann mit Hut.' --model model --json\n\n"
    "Without --model the sentence must be words of the model, as the index shows them."
)
def query(
    index: Folder,
    sentence: Annotated[str, typer.Argument(metavar="SENTENCE", help="What to look for.")],
    k: Annotated[int, o.option("-k --k", "K", "How many examples.", min=1)] = 10,
    model: Annotated[
        Path | None,
        typer.Option("--model", metavar="MODEL", help="Prepares the sentence as its text."),
    ] = None,
    exact: Annotated[bool, o.flag("--exact", "Compare with every example.")] = False,
    leave_one_out: Annotated[
        bool, o.flag("--leave-one-out", "Pass over examples of the very same sentence.")
    ] = False,
    json: o.Json = False,
) -> None:
    """Show the examples that are most similar to a sentence."""
    words = " ".join(sentence.split())
    if model is not None:
        words = Model.load(model).source.prepare(sentence)
    found = Index.open(index).near(words, k, exact=exact, leave_out=leave_one_out)
    if json:
        emit({"words": words, "neighbours": [asdict(each) for each in found]})
        return
    if not found:
        note(f"no example shares a word with: {words}")
        return
    rows = sentences(table("", "id", "similarity", "source", "reference"), 2, 3)
    for each in found:
        rows.add_row(
            str(each.id), f"{each.similarity:.3f}", each.source, " / ".join(each.references)
        )
    out.print(rows)


@app.command(epilog="Examples:\n\n$ tunesmith local info index --json")
def info(index: Folder, json: o.Json = False) -> None:
    """Tell what an index holds."""
    _tell(Index.open(index), json)


def _tell(index: Index, json: bool) -> None:
    manifest = index.manifest
    size = sum(part.bytes for part in manifest.parts)
    told = {
        "examples": len(index),
        "k": manifest.k,
        "metric": manifest.metric,
        "bytes": size,
        "files": len(manifest.parts),
        "skipped": dict(manifest.skipped),
        "fingerprint": dict(manifest.fingerprint),
    }
    if json:
        emit(told)
        return
    skipped = "".join(f", {count:,} left out ({why})" for why, count in manifest.skipped.items())
    note(f"{len(index):,} examples with lists of {manifest.k}, {size / 1e6:.1f} MB{skipped}")


def _translator(
    model: Path | None,
    moses: Path | None,
    kind: str | None,
    weights: Path | None,
    search: list[str] | None,
    cache: Path | None,
    tokenized: bool,
) -> Translator:
    check_model(model, moses, kind)
    settings = o.numbers(search)
    given = None if weights is None else read_weights(weights)
    named = [] if given is None else templates_of(given)
    loaded = load_model(model, moses, kind, cache, named)
    if given is None and not loaded.tuned:
        note("these weights are not tuned; --weights names better ones")
    return loaded.translator(given, settings, tokenized=tokenized)
