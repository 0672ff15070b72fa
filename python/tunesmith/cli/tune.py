"""`tunesmith tune`: learn the weights of a translation model with its decoder in the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperCommand

from tunesmith._core import Lines
from tunesmith.cli import options as o
from tunesmith.cli.console import (
    Watch,
    both,
    emit,
    fail,
    note,
    out,
    show_weights,
    table,
    warn,
)
from tunesmith.cli.loading import load_model
from tunesmith.cli.translate import tell_unknown
from tunesmith.cli.verdict import show_verdict, tell_reports
from tunesmith.decode.markup import refuse_lattice
from tunesmith.decode.model_weights import WEIGHTS, Kind, templates_of
from tunesmith.decode.moses import read_config
from tunesmith.decode.reaching import in_words
from tunesmith.decode.templates import SETS
from tunesmith.decode.translation import KINDS
from tunesmith.engines import Engine
from tunesmith.errors import InputError
from tunesmith.files.fingerprint import CHECKED, fingerprint
from tunesmith.formats import read_references
from tunesmith.metrics import get_metric
from tunesmith.report import Follow
from tunesmith.runs.board import Board
from tunesmith.sources import Command, Live, Source
from tunesmith.sources.live import SpaceName
from tunesmith.spaces.bins import Partial, Ranked
from tunesmith.spaces.reading import check_copy, read_weights, write_weights
from tunesmith.training.model import check_templates, read_model
from tunesmith.tuning import Keep, Result
from tunesmith.tuning import tune as learn
from tunesmith.tuning.chain import stages_of
from tunesmith.weights import Weights

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith tune model --source dev.de --reference dev.en -t mert -o weights.toml\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t mert --space forest --run runs/mert\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t adagrad --features green2013 -o w.toml\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t mira --regime shards=2 -o w.toml\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t mira --regime shards=4 --engine ray "
    "--workers 4 -o w.toml\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t maxforce --set update=early -o w.toml\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en -t mert,mira --features green2013 -o w\n\n"
    "$ tunesmith tune model --source dev.de -r dev.en --as eidelman2013 -t rm -o w.toml\n\n"
    "$ tunesmith tune --moses moses.ini --source dev.de -r dev.en -t kbmira -o tuned.ini\n\n"
    "$ tunesmith tune --command 'cdec -c cdec.ini -w {weights} -k {k} -r < {source}' "
    "--source dev.de -r dev.en -w start.txt -o weights.txt\n\n"
    "tunesmith presets lists the tuners, tunesmith presets mert the options of one."
)
HELDOUT = "give both: --heldout SOURCE REFERENCE"
# Upper limit of --nbest and --epochs.
MOST = 1_000_000
# Templates that apply to only one kind of rules.
ONLY_FOR: dict[str, Kind] = {"order": "phrase", "distortion": "hiero"}


class PairsCommand(TyperCommand):
    """Lets `--heldout` take two files, repeatedly, which Typer cannot express."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert an option before the second file; raise for files without an option."""
        ctx.allow_extra_args = True
        left = super().parse_args(ctx, args if ctx.resilient_parsing else paired(args))
        if left and not ctx.resilient_parsing:
            raise InputError(
                f"no option takes {' '.join(left)}",
                remedy="give the option again for each file: -r ONE -r OTHER, or for references of "
                "held-out text --heldout SOURCE ONE --heldout SOURCE OTHER",
            )
        return left


CLASS = PairsCommand


def paired(args: Sequence[str]) -> list[str]:
    """Return words where `--heldout` takes one file and `--heldout-reference` the second.

    Raise if `--heldout` has no file.

    >>> paired(["tune", "--heldout=a", "b", "--heldout", "c", "d"])[1:5]
    ['--heldout', 'a', '--heldout-reference', 'b']
    """
    words = [
        part
        for word in args
        for part in (word.split("=", 1) if word.startswith("--heldout=") else [word])
    ]
    given: list[str] = []
    for place, word in enumerate(words):
        is_option = word.startswith("-") and word != "-"
        if is_option and words[max(place - 1, 0)] == "--heldout":
            raise InputError("--heldout without files", remedy=HELDOUT)
        if not is_option and place > 1 and words[place - 2] == "--heldout":
            given.append("--heldout-reference")
        given.append(word)
    if words[-1:] == ["--heldout"]:
        raise InputError("--heldout without files", remedy=HELDOUT)
    return given


@o.runs_on_engine
def tune(
    source: Annotated[Path, o.option("--source -s", "FILE", "Sentences to translate.")],
    reference: Annotated[
        list[Path], o.option("--reference -r", "FILE", "Their references; repeat for several.")
    ],
    model: o.Model = None,
    tuner: o.Tuner = None,
    as_: o.As = None,
    out_file: Annotated[
        Path | None,
        o.option(
            "--out -o",
            "FILE",
            "Where to write the weights: .toml, .ini for a copy of the moses.ini they began "
            "with, another ending lines of name and value.",
        ),
    ] = None,
    metric: Annotated[
        str, o.option("--metric -m", "NAME", "bleu:tokenize=none if not given; chrf, ter …")
    ] = "bleu:tokenize=none",
    set_: o.TunerOptions = None,
    heldout: Annotated[
        list[Path] | None,
        o.option(
            "--heldout",
            "SOURCE REFERENCE",
            "Other sentences and their reference, decoded and scored after each epoch. "
            "Repeat it for other texts, or with the same source for more references.",
        ),
    ] = None,
    heldout_reference: Annotated[
        list[Path] | None,
        typer.Option("--heldout-reference", metavar="FILE", hidden=True),
    ] = None,
    epochs: Annotated[
        int | None,
        o.option(
            "--epochs",
            "N",
            "Maximum of decodings (batch tuners: 25) or passes (online: the preset's).",
            min=1,
            max=MOST,
        ),
    ] = None,
    regime: o.Regime = None,
    merged: Annotated[
        bool,
        o.flag(
            "--merged",
            "Online tuners pass over the merged lists of all decodings, as batch tuners do.",
        ),
    ] = False,
    threads: o.Threads = 0,
    json: o.Json = False,
    kind: o.Kind = None,
    space: Annotated[
        str | None,
        typer.Option(
            "--space",
            metavar="NAME",
            help="What the tuner learns from: list, forest, or bins, the beam step by step. "
            "Default: list; bins for the tuners sa-….",
            rich_help_panel=o.MODEL,
        ),
    ] = None,
    partial: Annotated[
        Partial,
        typer.Option(
            "--partial",
            metavar="HOW",
            help="Score of a partial translation in a bin: potential (completed by the best "
            "translation of the rest) or bleu (alone, with prorated reference length).",
            rich_help_panel=o.MODEL,
        ),
    ] = Partial.POTENTIAL,
    ranked: Annotated[
        Ranked,
        typer.Option(
            "--ranked",
            metavar="BY",
            help="Bins are ranked by the score of what is translated, or by the estimate that "
            "the search prunes by.",
            rich_help_panel=o.MODEL,
        ),
    ] = Ranked.ESTIMATE,
    ways: Annotated[
        int,
        typer.Option(
            "--ways",
            metavar="N",
            min=1,
            max=MOST,
            help="Derivations of each hypothesis in a bin: more than one shows what was "
            "recombined with a better one.",
            rich_help_panel=o.MODEL,
        ),
    ] = 1,
    nbest: Annotated[
        int | None,
        o.option(
            "--nbest",
            "K",
            "Length of lists; default: 100, or the length that an online tuner needs.",
            o.MODEL,
            min=1,
            max=MOST,
        ),
    ] = None,
    search: o.Search = None,
    features: Annotated[
        list[str] | None,
        o.option(
            "--features",
            "TEMPLATE",
            "Sparse features to turn on, such as rule-id or green2013; may be repeated.",
            o.MODEL,
        ),
    ] = None,
    weights: o.StartWeights = None,
    moses: o.Moses = None,
    cache: o.Cache = None,
    command: Annotated[
        str | None,
        o.option(
            "--command",
            "TEXT",
            "Any decoder instead of MODEL: {weights}, {source}, {nbest}, {k} are filled in.",
            o.MODEL,
        ),
    ] = None,
    tokenized: o.TokenizedText = False,
    bound: o.Bound = None,
    fix: o.Fix = None,
    keep: o.Kept = None,
    folds: o.Folds = 0,
    seeds: o.Seeds = 1,
    second_metric: o.SecondMetric = None,
    seed: o.Seed = 1,
    seconds: o.Seconds = None,
    run: o.Run = None,
    resume: o.Resume = False,
    tensorboard: o.Tensorboard = None,
    *,
    engine: Engine,
) -> None:
    """Learn weights with the decoder in the loop.

    Batch tuners (mert, pro, kbmira, rampion, risk, sa-…) decode, add to the lists,
    optimise, again; online tuners (mira, rm, adagrad, arow, …) decode sentence
    by sentence with the current weights.

    Ends when a decoding brings nothing new, or after --epochs; the weights whose
    own decoding scored best are kept. Weights that are unchanged, all zero or
    worse than the start are refused with exit code 1.
    """
    if sum(each is not None for each in (model, moses, command)) != 1:
        raise InputError(
            "no decoder, or more than one", remedy="give one of MODEL, --moses INI, --command TEXT"
        )
    if features and model is None:
        raise InputError("--features without MODEL", remedy="only our models have templates")
    if command is not None and (space in ("forest", "bins") or search):
        raise InputError(
            "a decoder that is a command has lists and settings of its own",
            remedy="leave --space and --search out",
        )
    o.resumable(run, resume)
    o.one_of("kind", kind, tuple(KINDS))
    if kind is not None and (command is not None or (moses is not None and kind != "phrase")):
        raise InputError(
            f"--kind {kind} of {'a command' if moses is None else 'a configuration of Moses'}",
            remedy="leave --kind out: it is for a MODEL that has both kinds of rules",
        )
    preset, paper = o.of_paper(as_, tuner, "mert")
    if paper.space is not None and command is None:
        space = space or paper.space
    o.one_of("space", space, get_args(SpaceName))
    held = held_out(heldout or [], heldout_reference or [])
    settings: dict[str, Any] = dict(o.settings(set_))
    if as_ is not None:
        settings, regime = paper.with_options(preset, settings), regime or paper.regime
    nbest = paper.nbest if nbest is None else nbest
    stages = stages_of(preset, settings, regime)
    binned = "bins" in {space, *(getattr(stage.tuner, "space", None) for stage in stages)}
    if not binned and (partial, ranked, ways) != (Partial.POTENTIAL, Ranked.ESTIMATE, 1):
        raise InputError(
            "--partial, --ranked and --ways are about bins",
            remedy="give --space bins, or a tuner such as sa-mert",
        )
    measured = get_metric(metric)
    o.writable(out_file)
    start = None if weights is None else read_weights(weights)
    given = weights if weights is not None and weights.suffix == ".ini" else None
    ini = given if command is not None else moses
    if out_file is not None:
        check_copy(out_file, ini)
    templates = [*(features or []), *([] if start is None else templates_of(start))]
    absent: Sequence[str] = ()

    if command is not None:
        if start is None:
            raise InputError(
                "a decoder that is a command has no weights of its own",
                remedy="give those to start from with --weights",
            )
        if "{source}" not in command:
            warn("the command has no {source}: it must know itself which sentences to translate")

        def corpus(text: Path, references: list[Path]) -> Source:
            return Command(command, *texts(text, references), nbest, ini)

    else:
        if moses is None:
            check_templates([] if start is None else templates_of(start), str(weights))
        loaded = load_model(model, moses, kind, cache, templates)
        absent = loaded.absent
        if start is None:
            start = paper.start_of(loaded.weights, loaded.fixed)
        templates = list(loaded.templates or [])
        tell_unknown(loaded.unknown(start), start.file, None if model is None else "--features")
        if model is not None:
            tell_without_effect(features or [], kind_of(model, kind))
        phrases = "distortion_limit" in dict(loaded.decoder.settings)
        found = {**(paper.search if phrases else {}), **o.numbers(search)}

        def corpus(text: Path, references: list[Path]) -> Source:
            return Live(
                loaded,
                *texts(text, references),
                k=nbest,
                space=space,  # type: ignore[arg-type]
                settings=found,
                tokenized=tokenized,
                threads=threads,
                partial=partial,
                ranked=ranked,
                ways=ways,
            )

    files = {
        **text_files(source, reference, held),
        **({} if weights is None else {"start weights": weights}),
        **decoder_files(model, kind, moses, weights is None),
    }
    with (
        Watch() as watch,
        Follow(run) as follow,
        Board(tensorboard) as board,
    ):
        result = learn(
            corpus(source, reference),
            preset,
            measured,
            start=start,
            options=settings,
            regime=regime,
            heldout=[corpus(text, references) for text, references in held.items()],
            folds=folds,
            seeds=seeds,
            second_metric=second_metric,
            iterations=paper.iterations if epochs is None else epochs,
            seconds=seconds,
            seed=seed,
            keep=keep or paper.keep or Keep.BEST,
            bounds=o.bounds(bound),
            fixed=o.fixed(fix),
            threads=threads,
            engine=engine,
            merged=merged,
            run=run,
            resume=resume,
            config={"inputs": {} if run is None else inputs(files)},
            meta={"templates": templates or None, "kind": model and kind_of(model, kind)},
            listen=both(watch, follow, board, lambda event: tell_event(event, start.file)),
        )
    if result.idle_limits:
        warn(
            f"limits without effect, because no feature is called {', '.join(result.idle_limits)} "
            "(correct the names)"
        )
    if out_file is not None and result.refused is None:
        write_weights(_to_write(result.weights, out_file, absent), out_file, ini)
    if json:
        emit(result.to_json())
    else:
        show(result, list(held))
        if out_file is not None and result.refused is None:
            note(f"weights written to {out_file}")
        elif run is None and result.refused is None:
            note("the weights are not saved (use --out FILE or --run DIR)")
        if run is not None:
            tell_reports(run)
    if result.refused is not None:
        fail(f"refused: {result.refused} (another tuner, start or option may help)", 1)


def _to_write(weights: Weights, path: Path, absent: Sequence[str]) -> Weights:
    """Return the weights without those that have no feature in a configuration of Moses."""
    if path.suffix != ".ini" or not absent:
        return weights
    return Weights({name: weight for name, weight in weights.items() if name not in absent})


def tell_event(event: Mapping[str, Any], file: str | None) -> None:
    """Tell what of an event is news: weights and limits without a feature in a command's lists,
    and how many references a forced decoder could reach in a pass."""
    if "counts" in event:
        note(f"      learnt from {in_words(event['counts'])}")
    if event["event"] == "start":
        tell_unknown(event.get("idle_weights", []), file, None)
        if names := event.get("idle_limits"):
            warn(f"limits of {', '.join(names)}: no list has such a feature so far")


def held_out(sources: Sequence[Path], references: Sequence[Path]) -> dict[Path, list[Path]]:
    """Return the references of each held-out source; raise if a source has none."""
    if len(sources) != len(references):
        raise InputError(
            f"{len(sources)} held-out sources and {len(references)} references",
            remedy=HELDOUT,
        )
    found: dict[Path, list[Path]] = {}
    for source, reference in zip(sources, references, strict=True):
        found.setdefault(source, []).append(reference)
    return found


def kind_of(model: Path, kind: str | None) -> Kind:
    """Return the kind of rules that is used of a model."""
    held = read_model(model)["files"]
    return next(
        name for name, (rules, _) in KINDS.items() if kind in (None, name) and rules in held
    )


def tell_without_effect(features: Sequence[str], kind: Kind) -> None:
    """Warn of templates that are turned on but have no features in rules of this kind."""
    sets = {known.name: known.templates for known in SETS}
    for name in dict.fromkeys(each for given in features for each in sets.get(given, [given])):
        if ONLY_FOR.get(name, kind) != kind:
            warn(
                f"the template {name} adds nothing to a {kind} model: it is for {ONLY_FOR[name]} "
                "models (--kind chooses where a model has both kinds of rules)"
            )


def text_files(
    source: Path, references: Sequence[Path], heldout: Mapping[Path, Sequence[Path]]
) -> dict[str, Path]:
    """Return the text files by role."""
    files = {"source": source, **_numbered("reference", references)}
    for number, (text, others) in enumerate(heldout.items(), 1):
        name = f"held-out {number}"
        files |= {f"{name} source": text, **_numbered(f"{name} reference", others)}
    return files


def _numbered(name: str, paths: Sequence[Path]) -> dict[str, Path]:
    return {f"{name} {place}": path for place, path in enumerate(paths, 1)}


def decoder_files(
    model: Path | None, kind: str | None, moses: Path | None, own: bool
) -> dict[str, Path]:
    """Return the files that a decoder reads; with `own`, including the model's weights.

    The files that a command reads are unknown.
    """
    if moses is not None:
        config = read_config(moses)
        parts = (config.phrases, config.lm, config.reordering)
        files = {f"moses {part.label}": part.path for part in parts if part is not None}
        return {"moses": moses, **files}
    if model is None:
        return {}
    others = {rules for name, (rules, _) in KINDS.items() if name != kind_of(model, kind)}
    names = [*read_model(model)["files"], *([WEIGHTS] if own else [])]
    return {f"model {name}": model / name for name in names if name not in others}


def inputs(files: Mapping[str, Path]) -> dict[str, Any]:
    """Return fingerprints by which a resumed run recognises its inputs; pipes have none."""
    return {
        name: fingerprint(path, ends=path.suffix in CHECKED)
        for name, path in files.items()
        if path.is_file()
    }


def texts(source: Path, references: list[Path]) -> tuple[list[str], list[list[str]]]:
    """Return sentences and their references, without blank ones.

    Raise if all references of a sentence are blank, or if files differ in length.
    """
    lines = list(Lines(source))
    for number, line in enumerate(lines, 1):
        refuse_lattice(line, str(source), number)
    found = [
        [text for text in each if text.strip()]
        for each in read_references(references, keep_blank=True).texts
    ]
    if [] in found:
        raise InputError(
            "the reference is blank" if len(references) == 1 else "all references are blank",
            str(references[0]),
            found.index([]) + 1,
            remedy="fill it in, or remove the line from source and references",
        )
    if len(found) != len(lines):
        raise InputError(
            f"{len(found)} references for the {len(lines)} sentences of {source}",
            str(references[0]),
            remedy="give files of the same number of lines",
        )
    return lines, found


def show(result: Result, heldout: list[Path]) -> None:
    """Print the result."""
    rows = table(f"{result.tuner} for {result.metric}", "text", "start", "tuned")
    rows.add_row("tuning", f"{result.start:.2f}", f"{result.tuned:.2f}", style="bold")
    if not heldout and result.heldout is not None:
        rows.add_row("held-out folds", f"{result.heldout_start:.2f}", f"{result.heldout:.2f}")
    if len(result.runs) > 1:
        rows.add_row("runs", "", " ".join(f"{score:.2f}" for score in result.runs))
    if result.second is not None:
        second = result.second
        label = f"{second['name']}, not tuned"
        rows.add_row(label, f"{second['start']:.2f}", f"{second['tuned']:.2f}")
    if heldout:
        scores = zip(heldout, result.heldout_start_all, result.heldout_all, strict=True)
        for path, before, after in scores:
            rows.add_row(path.name, f"{before:.2f}", f"{after:.2f}")
    out.print(rows)
    for stage in result.stages:
        nothing = "" if stage["refused"] is None else f", not used: {stage['refused']}"
        change = f"{stage['start']:.2f} to {stage['tuned']:.2f}"
        out.print(f"{stage['tuner']}: {change}{nothing}", style="dim")
    curve = " ".join(f"{score:.2f}" for score in result.curve)
    facts: dict[str, Any] = {
        "after each decoding": curve,
        "weights that are not zero": f"{result.weights.nonzero:,}",
        "seconds": seconds(result),
    }
    for name, value in facts.items():
        out.print(f"{name}: {value}", style="dim")
    show_verdict(result)
    show_weights(result.weights)


def seconds(result: Result) -> str:
    """Return the time of a run and of its parts; parts of parallel threads add up to more."""
    decode, optimise = result.decode_seconds, result.optimise_seconds
    if decode + optimise > result.seconds:
        return (
            f"{result.seconds:.1f}; summed over threads, {decode:.1f} decoding, "
            f"{optimise:.1f} optimising"
        )
    return f"{result.seconds:.1f}, {decode:.1f} of them decoding, {optimise:.1f} optimising"
