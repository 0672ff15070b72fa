"""`tunesmith structured`: train, apply and score taggers and parsers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import counter, emit, note, out, table, warn
from tunesmith.errors import InputError
from tunesmith.structured import (
    Model,
    Parser,
    Pass,
    Sentence,
    Tagger,
    Training,
    read_conllu,
)
from tunesmith.structured import score as score_texts
from tunesmith.structured import train as train_model
from tunesmith.structured.classes import write_tag_classes
from tunesmith.structured.conllu import BLANK
from tunesmith.structured.model import check_folder
from tunesmith.structured.settings import AVERAGES, METHODS, UPDATES
from tunesmith.structured.tasks import COLUMNS, NATIVE
from tunesmith.training.tags import LONGEST, Tagged, read_tagged, write_tags

app = typer.Typer(
    help="Train, apply and score taggers and dependency parsers (CoNLL-U).",
    no_args_is_help=True,
)
LEARNING = "Learning"


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith structured train tagger train.conllu --model tagger --dev dev.conllu\n\n"
    "$ tunesmith structured train parser train.conllu.gz --model parser --beam 16 --passes 15\n\n"
    "$ tunesmith structured train tagger train.conllu --model tagger --learner mira --batch 16 "
    "--threads 4",
)
def train(
    task: Annotated[str, typer.Argument(metavar="TASK", help="tagger or parser.")],
    text: Annotated[
        Path,
        typer.Argument(
            metavar="TRAIN", help="Tagged or parsed sentences in CoNLL-U; - is the input."
        ),
    ],
    model: Annotated[
        Path,
        typer.Option(
            "--model",
            metavar="DIR",
            help="Where the model goes: a new folder, or one with a model, which is replaced.",
        ),
    ],
    dev: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the pass that is best on this text, not the last."),
    ] = None,
    beam: Annotated[
        int, typer.Option(metavar="N", help="How many derivations survive a step.")
    ] = 8,
    exact: Annotated[
        bool, typer.Option("--exact", metavar="", help="Search without a beam (tagger).")
    ] = False,
    update: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Which step to update at: unchecked, standard, early or max-violation.",
            rich_help_panel=LEARNING,
        ),
    ] = "max-violation",
    learner: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="perceptron, mira or kbest-mira.", rich_help_panel=LEARNING
        ),
    ] = "perceptron",
    passes: Annotated[
        int, typer.Option(metavar="N", help="Passes over the text.", rich_help_panel=LEARNING)
    ] = 10,
    weights: Annotated[
        str, typer.Option(metavar="NAME", help="averaged or voted.", rich_help_panel=LEARNING)
    ] = "averaged",
    batch: Annotated[
        int, typer.Option(metavar="N", help="Sentences in one step.", rich_help_panel=LEARNING)
    ] = 1,
    shards: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Learners that are mixed after each pass.",
            rich_help_panel=LEARNING,
        ),
    ] = 1,
    c: Annotated[
        float, typer.Option(metavar="C", help="Largest step of MIRA.", rich_help_panel=LEARNING)
    ] = Training.c,
    k: Annotated[
        int,
        typer.Option(
            metavar="K",
            help="How many of the beam kbest-mira looks at.",
            rich_help_panel=LEARNING,
        ),
    ] = Training.k,
    column: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="upos or xpos: what a tagger learns, and what a parser looks at."
        ),
    ] = "upos",
    unlabelled: Annotated[
        bool, typer.Option("--unlabelled", metavar="", help="Learn heads without labels.")
    ] = False,
    seed: Annotated[int, typer.Option(metavar="N", help="Order of the sentences.")] = 1,
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Train a tagger or a parser.

    Sentences in which a word has no tag are counted and left out, and so are sentences with
    crossing arcs when a parser is trained.
    """
    if task not in NATIVE:
        raise InputError(f"no task is named {task!r}", remedy=f"use {' or '.join(NATIVE)}")
    for name, value, known in (
        ("update", update, UPDATES),
        ("learner", learner, METHODS),
        ("weights", weights, AVERAGES),
        ("column", column, COLUMNS),
    ):
        o.one_of(name, value, known)
    if unlabelled and task != Parser.NAME:
        raise InputError("--unlabelled is for parsers", remedy="leave it out")
    if exact and task == Parser.NAME:
        raise InputError(
            "--exact is for taggers: a sentence has too many different stacks of a parser",
            remedy="give a --beam",
        )
    training = Training(
        beam=None if exact else beam,
        update=update,  # type: ignore[arg-type]
        learner=learner,  # type: ignore[arg-type]
        passes=passes,
        weights=weights,  # type: ignore[arg-type]
        batch=batch,
        shards=shards,
        seed=seed,
        c=c,
        k=k,
    )
    check_folder(model)
    made: Tagger | Parser = (
        Tagger(column=column)  # type: ignore[arg-type]
        if task == Tagger.NAME
        else Parser(column=column, labelled=not unlabelled)  # type: ignore[arg-type]
    )
    examples = _examples(text, made)
    held = None if dev is None else _examples(dev, made)
    began = time.perf_counter()
    with counter() as bars:
        bar = bars.add_task("pass 1", total=len(examples))
        number = 1

        def told(seen: Pass) -> None:
            nonlocal number
            scored = "" if seen.dev is None else f", dev {seen.dev:.2f}"
            note(
                f"pass {number}: {seen.wrong:,} of {seen.examples:,} sentences wrong, "
                f"{seen.updates:,} updates{scored} ({seen.seconds:.2f} s)"
            )
            number += 1
            bars.update(bar, description=f"pass {number}", completed=0)

        found = train_model(
            made,
            examples,
            training,
            dev=held,
            threads=threads,
            progress=lambda _, done, total: bars.update(bar, completed=done, total=total),
            tell=told,
        )
    found.save(model)
    if found.skipped:
        warn(f"{found.skipped:,} of {len(examples):,} sentences left out: arcs cross")
    facts: dict[str, Any] = {
        "model": str(model),
        "task": task,
        "sentences": found.examples,
        "skipped": found.skipped,
        "features": len(found.weights),
        "kept": found.kept,
        "dev": found.history[found.kept - 1].dev,
        "passes": [asdict(each) for each in found.history],
        "seconds": time.perf_counter() - began,
    }
    if json:
        emit(facts)
    else:
        note(f"{model}: {facts['features']:,} features after pass {found.kept}")


@app.command(
    "apply",
    epilog="Examples:\n\n"
    "$ tunesmith structured apply tagger raw.conllu > tagged.conllu\n\n"
    "$ tunesmith structured apply tagger raw.conllu | tunesmith structured apply parser - "
    "> parsed.conllu",
)
def apply_model(
    model: Annotated[Path, typer.Argument(metavar="DIR", help="A trained model.")],
    text: Annotated[Path, typer.Argument(metavar="IN", help="CoNLL-U; - is the input.")] = Path(
        "-"
    ),
    beam: Annotated[
        int | None, typer.Option(metavar="N", help="Instead of the beam of the training.")
    ] = None,
    threads: o.Threads = 0,
) -> None:
    """Tag or parse sentences: CoNLL-U in, CoNLL-U out.

    A tagger fills in tags, a parser heads and relations; all else stays as it is, multiword tokens,
    empty nodes and comments too. A parser needs tags.
    """
    found = Model.load(model)
    task = found.task
    assert isinstance(task, Tagger | Parser)
    sentences = _sentences(text)
    given = [task.given(sentence) for sentence in sentences]
    with counter() as bars:
        bar = bars.add_task("sentences", total=len(given))
        outputs = found.predict(
            given,
            beam=beam,
            threads=threads,
            progress=lambda _, done, total: bars.update(bar, completed=done, total=total),
        )
    for sentence, output in zip(sentences, outputs, strict=True):
        print(task.written(sentence, output).text(), end="")


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith structured score gold.conllu tagged.conllu\n\n"
    "$ tunesmith structured apply parser test.conllu | tunesmith structured score test.conllu - "
    "--json",
)
def score(
    gold: Annotated[Path, typer.Argument(metavar="GOLD", help="The right tags and heads.")],
    text: Annotated[Path, typer.Argument(metavar="OUT", help="The text to score; - is the input.")],
    json: o.Json = False,
) -> None:
    """Count right tags (UPOS, XPOS), heads (UAS), and heads with relations (LAS), in percent.

    A column counts if both texts have it; words without it in GOLD are left out.
    """
    found = score_texts(_sentences(gold), _sentences(text))
    facts = asdict(found)
    if json:
        emit(facts)
        return
    rows = table(
        f"{found.sentences:,} sentences, {found.words:,} words", "", "% right", header=False
    )
    for name in ("upos", "xpos", "uas", "las"):
        if facts[name] is not None:
            rows.add_row(name.upper(), f"{facts[name]:.2f}")
    rows.add_row("whole sentences", f"{found.exact:.2f}")
    out.print(rows)


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith structured apply tagger target.conllu > tagged.conllu\n\n"
    "$ tunesmith structured classes tagged.conllu --out model/classes.txt --lower\n\n"
    "$ tunesmith tune model -s dev.de -r dev.en -t mira --features class-bigrams -o w.toml",
)
def classes(
    text: Annotated[Path, typer.Argument(metavar="TAGGED", help="CoNLL-U; - is the input.")],
    out_file: Annotated[Path, o.option("--out -o", "FILE", "Where to write word and class.")],
    column: Annotated[str, o.option("--column", "NAME", "The tags: upos or xpos.")] = "upos",
    lower: Annotated[bool, o.flag("--lower", "Lower-case the words, as the model's are.")] = False,
) -> None:
    """Write the most frequent tag of each word as its class, for the template class-bigrams."""
    o.one_of("column", column, COLUMNS)
    o.writable(out_file)
    words = write_tag_classes(_sentences(text), out_file, column=column, lower=lower)
    note(f"classes of {words:,} words written to {out_file}")


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith structured apply tagger target.conllu > tagged.conllu\n\n"
    "$ tunesmith structured tags tagged.conllu --out model/tags.txt --lower\n\n"
    "$ tunesmith tune model -s dev.de -r dev.en -t mira --features tag-bigrams -o w.toml",
)
def tags(
    text: Annotated[
        Path, typer.Argument(metavar="TAGGED", help="The target text of the model; - is the input.")
    ],
    out_file: Annotated[Path, o.option("--out -o", "FILE", "Where to write phrases and tags.")],
    format_: Annotated[
        str, o.option("--format", "NAME", "conllu, or bar: lines of word|TAG.")
    ] = "conllu",
    column: Annotated[str, o.option("--column", "NAME", "The tags: upos or xpos.")] = "upos",
    lower: Annotated[bool, o.flag("--lower", "Lower-case the words, as the model's are.")] = False,
    longest: Annotated[int, o.option("--longest", "N", "Words of a phrase at most.")] = LONGEST,
) -> None:
    """Write the tags of words and phrases, for the template tag-bigrams.

    Words must be those of the model: text as it was prepared for training.
    """
    o.one_of("column", column, COLUMNS)
    o.one_of("format", format_, ("conllu", "bar"))
    o.writable(out_file)
    sentences: Iterable[Tagged] = read_tagged(text)
    if format_ == "conllu":
        sentences = (
            [
                (word.form, "" if word.tag(column) == BLANK else word.tag(column))
                for word in sentence.words
            ]
            for sentence in _sentences(text)
        )
    made = write_tags(sentences, out_file, longest=longest, fold=str.lower if lower else str)
    note(f"written to {out_file}: words {made.words:,}, phrases with other tags {made.phrases:,}")


def _sentences(path: Path) -> list[Sentence]:
    """Return the sentences of a file; raise if there are none."""
    found = list(read_conllu(path))
    if not found:
        raise InputError("there are no sentences", str(path), remedy="give a text in CoNLL-U")
    return found


def _examples(path: Path, task: Tagger | Parser) -> list[Any]:
    """Return the sentences of a file as examples; warn of those without tags."""
    sentences = _sentences(path)
    tagged = [sentence for sentence in sentences if sentence.has_tags(task.column)]
    if missing := len(sentences) - len(tagged):
        warn(
            f"{path}: {missing:,} of {len(sentences):,} sentences left out: a word has no "
            f"{task.column.upper()} tag"
        )
    # If none has tags, the first one says what is wrong.
    return [task.example(sentence) for sentence in tagged or sentences]
