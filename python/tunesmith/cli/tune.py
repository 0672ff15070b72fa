"""`tunesmith tune`: learn the weights of a translation model with its decoder in the loop."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tunesmith._core import Lines
from tunesmith.cli import options as o
from tunesmith.cli.console import Watch, both, busy, emit, fail, note, out, table
from tunesmith.drivers import with_regime
from tunesmith.errors import InputError
from tunesmith.formats import read_references
from tunesmith.live import Keep, LiveResult, tune_live
from tunesmith.metrics import get_metric
from tunesmith.presets import make_tuner
from tunesmith.reading import read_weights
from tunesmith.report import Follow
from tunesmith.runs.board import Board
from tunesmith.sources import Command, Live, Source, SpaceName
from tunesmith.translation import KINDS, Model, templates_of

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith tune model --source dev.de --reference dev.en -t mert -o weights.toml\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t mert --space forest --run runs/mert\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t adagrad --features green2013 -o w.toml\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t mira --regime shards=2 -o w.toml\n\n"
    "$ tunesmith tune --moses moses.ini --source dev.de -r dev.en -t kbmira --search stack=200\n\n"
    "$ tunesmith tune --command 'cdec -c cdec.ini -w {weights} -k {k} -r < {source}' "
    "--source dev.de -r dev.en -w start.txt -o weights.txt\n\n"
    "tunesmith presets lists the tuners, tunesmith presets mert the options of one."
)


class PairsCommand(TyperCommand):
    """Lets `--heldout` be followed by two files, which Typer has no words for."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put an option before the second of the two."""
        given: list[str] = []
        for place, word in enumerate(args):
            if args[max(place - 2, 0)] == "--heldout" and place > 1 and not word.startswith("-"):
                given.append("--heldout-reference")
            given.append(word)
        return super().parse_args(ctx, given)


def tune(
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
    tuner: o.Tuner = "mert",
    out_file: o.OutFile = None,
    metric: Annotated[
        str,
        typer.Option(
            "--metric", "-m", metavar="NAME", help="bleu:tokenize=none if not given; chrf, ter …"
        ),
    ] = "bleu:tokenize=none",
    set_: o.TunerOptions = None,
    heldout: Annotated[
        list[Path] | None,
        typer.Option(
            "--heldout",
            metavar="SOURCE REFERENCE",
            help="Other sentences and their reference, decoded and scored after each epoch; "
            "may be repeated.",
        ),
    ] = None,
    heldout_reference: Annotated[
        list[Path] | None,
        typer.Option("--heldout-reference", metavar="FILE", hidden=True),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(
            "--epochs",
            metavar="N",
            min=1,
            help="Decodings of a batch tuner (25), passes of an online one (the preset's) at most.",
        ),
    ] = None,
    regime: Annotated[
        str | None,
        typer.Option(
            "--regime",
            metavar="TEXT",
            help="How an online tuner uses threads: batch=20, shards=2,mix=5, delay=3 or "
            "delay=3,ordered=false.",
        ),
    ] = None,
    merged: Annotated[
        bool,
        typer.Option(
            "--merged",
            metavar="",
            help="Online tuners pass over the merged lists of all decodings, as batch tuners do.",
        ),
    ] = False,
    threads: o.Threads = 0,
    json: o.Json = False,
    kind: o.Kind = None,
    space: Annotated[
        str,
        typer.Option(
            "--space",
            metavar="NAME",
            help="What the tuner sees of all decodings: their lists, or their forests.",
            rich_help_panel=o.MODEL,
        ),
    ] = "list",
    nbest: Annotated[
        int | None,
        typer.Option(
            "--nbest",
            metavar="K",
            min=1,
            help="Length of lists: 100, or what an online tuner asks for.",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    search: Annotated[
        list[str] | None,
        typer.Option(
            "--search",
            metavar="NAME=VALUE",
            help="A setting of the search, such as pop_limit=1000.",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    features: Annotated[
        list[str] | None,
        typer.Option(
            "--features",
            metavar="TEMPLATE",
            help="Sparse features to turn on, such as rule-id or green2013; may be repeated.",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    weights: o.StartWeights = None,
    moses: o.Moses = None,
    command: Annotated[
        str | None,
        typer.Option(
            "--command",
            metavar="TEXT",
            help="Any decoder in place of MODEL: {weights}, {source}, {nbest}, {k} are filled in.",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    tokenized: Annotated[
        bool,
        typer.Option(
            "--tokenized",
            metavar="",
            help="Source and references are in the model's words already.",
            rich_help_panel=o.MODEL,
        ),
    ] = False,
    bound: o.Bound = None,
    fix: o.Fix = None,
    keep: Annotated[
        str,
        typer.Option("--keep", metavar="WHICH", help="Decoding to keep: best, last or heldout."),
    ] = "best",
    seed: o.Seed = 1,
    run: o.Run = None,
    resume: o.Resume = False,
    tensorboard: o.Tensorboard = None,
) -> None:
    """Learn weights with the decoder in the loop.

    Batch tuners (mert, pro, kbmira, rampion, risk) decode, add to the lists,
    optimise, again; online tuners (mira, rm, adagrad, arow, …) decode sentence
    by sentence with the weights of the moment.

    Ends when a decoding brings nothing new, or after --epochs; the weights whose
    own decoding scored best are kept. Weights that are no good (unchanged, all
    zero, worse than the start) are refused with exit code 1.
    """
    if sum(each is not None for each in (model, moses, command)) != 1:
        raise InputError(
            "one decoder is wanted", remedy="name MODEL, --moses INI or --command TEXT, one of them"
        )
    if features and model is None:
        raise InputError("--features without MODEL", remedy="only our models have templates")
    if command is not None and (space == "forest" or search):
        raise InputError(
            "a decoder that is a command has lists and settings of its own",
            remedy="leave --space and --search out",
        )
    if resume and run is None:
        raise InputError("--resume without --run", remedy="name the run directory")
    o.one_of("kind", kind, tuple(KINDS))
    o.one_of("space", space, ("list", "forest"))
    o.one_of("keep", keep, ("best", "last", "heldout"))
    held, held_references = heldout or [], heldout_reference or []
    if len(held) != len(held_references):
        raise InputError(
            f"{len(held)} held-out sources and {len(held_references)} references",
            remedy="give both: --heldout SOURCE REFERENCE",
        )
    settings = o.settings(set_)
    algorithm = with_regime(make_tuner(tuner, settings), regime)
    measured = get_metric(metric)
    o.writable(out_file)
    start = None if weights is None else read_weights(weights)

    if command is not None:
        if start is None:
            raise InputError(
                "a decoder that is a command has no weights of its own",
                remedy="give those to start from with --weights",
            )
        template = weights if weights is not None and weights.suffix == ".ini" else None

        def corpus(text: Path, references: list[Path]) -> Source:
            return Command(command, *texts(text, references), nbest, template)

    else:
        with busy("loading"):
            if moses is not None:
                loaded = Model.of_moses(moses, None, note)
            else:
                assert model is not None
                named = [*(features or []), *([] if start is None else templates_of(start))]
                loaded = Model.load(model, kind, named=named)  # type: ignore[arg-type]
        start = loaded.weights if start is None else start
        found = o.numbers(search, "--search")

        def corpus(text: Path, references: list[Path]) -> Source:
            chosen: SpaceName = "forest" if space == "forest" else "list"
            return Live(
                loaded,
                *texts(text, references),
                nbest,
                chosen,
                found,
                tokenized,
                threads,
            )

    templates = list(dict.fromkeys([*templates_of(start), *(features or [])]))
    kept: Keep = keep  # type: ignore[assignment]
    with (
        Watch() as watch,
        Follow(run) as follow,
        Board(tensorboard) as board,
    ):
        result = tune_live(
            corpus(source, reference),
            start,
            tuner,
            measured,
            options=settings,
            tuner=algorithm,
            heldout=[corpus(text, [ref]) for text, ref in zip(held, held_references, strict=True)],
            iterations=epochs,
            seed=seed,
            keep=kept,
            bounds=o.bounds(bound),
            fixed=o.fixed(fix),
            threads=threads,
            merged=merged,
            run=run,
            resume=resume,
            config={
                "measure": metric,
                "fix": fix or [],
                "bound": bound or [],
                "templates": templates,
                "decoder": command or str(moses or model),
                "kind": kind,
                "regime": regime,
                "space": space,
                "nbest": nbest,
                "search": search or [],
            },
            meta={"templates": templates} if templates else None,
            listen=both(watch, follow, board),
        )
    if out_file is not None and result.refused is None:
        result.weights.save(out_file)
    if json:
        emit(result.to_json())
    else:
        show(result, held)
        if out_file is not None and result.refused is None:
            note(f"weights written to {out_file}")
        if run is not None:
            note(f"{run / 'report.html'} shows the run")
    if result.refused is not None:
        fail(f"refused: {result.refused} (another tuner, start or option may help)", 1)


def texts(source: Path, references: list[Path]) -> tuple[list[str], list[list[str]]]:
    """Return sentences and their references."""
    lines = list(Lines(source))
    remedy = "fill it in, or take the line out of source and references"
    found = read_references(references, remedy=remedy).texts
    if len(found) != len(lines):
        raise InputError(
            f"{len(found)} references for the {len(lines)} sentences of {source}",
            str(references[0]),
            remedy="give files of the same number of lines",
        )
    return lines, found


def show(result: LiveResult, heldout: list[Path]) -> None:
    """Print what was found."""
    rows = table(f"{result.tuner} for {result.metric}", "text", "start", "tuned")
    rows.add_row("tuning", f"{result.start:.2f}", f"{result.tuned:.2f}", style="bold")
    for path, before, after in zip(heldout, result.heldout_start, result.heldout, strict=True):
        rows.add_row(path.name, f"{before:.2f}", f"{after:.2f}")
    out.print(rows)
    curve = " ".join(f"{score:.2f}" for score in result.curve)
    facts: dict[str, Any] = {
        "after each decoding": curve,
        "weights that are not zero": f"{result.nonzero:,}",
        "seconds": f"{result.seconds:.1f}, {result.decode_seconds:.1f} of them decoding, "
        f"{result.optimise_seconds:.1f} optimising",
    }
    for name, value in facts.items():
        out.print(f"{name}: {value}", style="dim")
