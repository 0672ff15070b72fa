"""Options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from math import isfinite, isnan
from pathlib import Path
from typing import Annotated, Any

import typer

from tunesmith.cli.console import note
from tunesmith.engines import THREADS, Engine
from tunesmith.engines.ray import TIMEOUT, Ray
from tunesmith.errors import InputError
from tunesmith.formats import Reading, names
from tunesmith.metrics import Metric, get_metric, metric_names
from tunesmith.papers import PAPERS, Settings, find_paper, settings_of
from tunesmith.presets import PRESETS
from tunesmith.spaces import Pools, derived
from tunesmith.spaces.reading import File
from tunesmith.tuning import Keep

Command = Callable[..., None]

LISTS = "Reading the lists"
WEIGHTS = "Weights"
RUNS = "Runs"
MEASURE = "Is it better?"
MODEL = "The model"
WHERE = "Where it runs"
ENGINES = ("threads", "ray")


def option(names: str, value: str, help: str, panel: str | None = None, **more: Any) -> Any:
    """Return an option; `value` stands for its value in the help, `panel` groups it there."""
    return typer.Option(*names.split(), metavar=value, help=help, rich_help_panel=panel, **more)


def flag(names: str, help: str, panel: str | None = None) -> Any:
    """Return an option without a value."""
    return option(names, "", help, panel)


# A metric reads text, or columns: scores that come with the hypotheses.
METRICS = "bleu, chrf, chrf++, ter, ter-bleu, wer, cer or column:NAME"

Nbest = Annotated[
    list[Path], typer.Argument(metavar="NBEST", help="N-best lists; several are merged.")
]
References = Annotated[
    list[Path] | None,
    option("--reference -r", "FILE", "References, one per line; repeat for several per sentence."),
]
ListReferences = Annotated[
    list[Path] | None,
    option(
        "--reference -r",
        "FILE",
        "References, one per line; repeat for several per sentence. Not needed if JSONL "
        "lists have them.",
    ),
]
MetricName = Annotated[
    str, option("--metric -m", "NAME", f"{METRICS}; with options: bleu:tokenize=none.")
]
MetricNames = Annotated[str, option("--metric -m", "NAMES", "One or more, separated by commas.")]
Format = Annotated[
    str | None, option("--format", "NAME", f"{', '.join(names())}; detected if not given.", LISTS)
]
SkipBad = Annotated[
    bool, flag("--skip-bad", "Skip and count bad lines instead of stopping.", LISTS)
]
KeepBlank = Annotated[bool, flag("--keep-blank", "Keep blank hypotheses and references.", LISTS)]
BlankReferences = Annotated[bool, flag("--keep-blank", "Keep blank references.")]
Columns = Annotated[
    list[str] | None,
    option(
        "--column",
        "NAME[=FILE]",
        "Scores to tune for, such as COMET: a feature of the lists, or a file with one "
        "number per hypothesis.",
        LISTS,
    ),
]
Features = Annotated[
    list[str] | None,
    option(
        "--feature",
        "NAME=FILE",
        "One more feature, from a file with one number per hypothesis.",
        LISTS,
    ),
]
Derived = Annotated[
    str | None,
    option(
        "--list-features",
        "NAMES",
        "More features, which the lists themselves give, with commas between them: "
        f"{', '.join(derived.FEATURES)}. The weights then name them as list:NAME.",
        LISTS,
    ),
]
PerSentence = Annotated[
    int | None,
    option(
        "--per-sentence",
        "N",
        "Hypotheses per sentence, for formats without sentence ids.",
        LISTS,
        min=1,
    ),
]
Sentences = Annotated[
    int | None,
    option(
        "--sentences", "N", "Number of sentences: lists missing at the end are empty.", LISTS, min=1
    ),
]
FirstId = Annotated[int, option("--first-id", "N", "Number of the first sentence.", LISTS, min=0)]
Keyed = Annotated[bool, flag("--keyed", "Sentence ids are labels, not numbers.", LISTS)]
Threads = Annotated[
    int, option("--threads -j", "N", "0: one per core. Never changes a result.", min=0, max=1024)
]
Json = Annotated[bool, flag("--json", "One JSON object as the last line of stdout.")]
Tuner = Annotated[
    str | None,
    option(
        "--tuner -t",
        "NAME",
        f"{', '.join(PRESETS)}; NAME,NAME: one after the other, sparse features with the last.",
    ),
]
As = Annotated[
    str | None, option("--as", "PAPER", f"All settings of a paper: {', '.join(PAPERS)}.")
]
OutFile = Annotated[Path | None, option("--out -o", "FILE", "Where to write the weights (TOML).")]
TunerOptions = Annotated[
    list[str] | None,
    option("--set", "KEY=VALUE", "An option of the tuner; TUNER.KEY=VALUE of one of several."),
]
StartWeights = Annotated[
    Path | None,
    option(
        "--weights -w",
        "FILE",
        "Weights to start from: TOML, moses.ini, or lines of name and value.",
        WEIGHTS,
    ),
]
Bound = Annotated[
    list[str] | None,
    option("--bound", "NAME=LOW:HIGH", "Limits of a weight; patterns as in 'LM*=0:'.", WEIGHTS),
]
Fix = Annotated[
    list[str] | None, option("--fix", "NAME=VALUE", "A weight that must not move.", WEIGHTS)
]
Run = Annotated[
    Path | None,
    option("--run", "DIR", "Where to keep events, checkpoints and weights of each epoch.", RUNS),
]
Resume = Annotated[bool, flag("--resume", "Continue an interrupted --run.", RUNS)]
Tensorboard = Annotated[
    Path | None,
    option("--tensorboard", "DIR", "Write the numbers of each epoch for TensorBoard, too.", RUNS),
]
Seeds = Annotated[
    int, option("--seeds", "N", "Runs with different seeds, to be averaged.", RUNS, min=1)
]
Folds = Annotated[
    int,
    option("--folds", "K", "Hold out each of K parts of the sentences in turn.", MEASURE, min=0),
]
SecondMetric = Annotated[
    str | None,
    option("--second-metric", "NAME", "A second metric that is reported, not tuned.", MEASURE),
]
Kept = Annotated[
    Keep | None, option("--keep", "WHICH", "Round to keep: best (default), last, heldout.", WEIGHTS)
]
Regime = Annotated[
    str | None,
    option(
        "--regime",
        "TEXT",
        "How an online tuner spreads sentences: batch=20, or shards=2,mix=5; with a live "
        "decoder also delay=3 or delay=3,stale=gradient,ordered=false.",
    ),
]
Seed = Annotated[int, option("--seed", "N", "Seed of the first run.", RUNS, min=0)]
Seconds = Annotated[
    float | None,
    option(
        "--seconds",
        "N",
        "Begin no further round when a run or fold has taken so long; the result then depends on "
        "the machine.",
        RUNS,
        min=0.001,
    ),
]
Memory = Annotated[
    str, option("--memory", "SIZE", "For sorting, as in 500M; the rest goes to disk.")
]
Model = Annotated[
    Path | None, typer.Argument(metavar="MODEL", help="A model directory of tunesmith train.")
]
Kind = Annotated[
    str | None,
    option("--kind", "NAME", "phrase or hiero, for a model that has both kinds of rules.", MODEL),
]
Moses = Annotated[
    Path | None, option("--moses", "INI", "A configuration of Moses, in place of MODEL.", MODEL)
]
DecoderWeights = Annotated[
    Path | None,
    option(
        "--weights -w",
        "FILE",
        "TOML, moses.ini, or lines of name and value; else weights.toml of the model.",
        MODEL,
    ),
]
TokenizedText = Annotated[
    bool,
    flag("--tokenized", "Source and references are already words of the model.", MODEL),
]
Search = Annotated[
    list[str] | None,
    option("--search", "KEY=VALUE", "A setting of the search, such as pop_limit=1000.", MODEL),
]
Cache = Annotated[
    Path | None,
    option(
        "--cache",
        "DIR",
        "Folder for converted files of Moses or cdec; default: the user's cache.",
        MODEL,
    ),
]

EngineName = Annotated[
    str,
    option("--engine", "NAME", "threads of this process, or ray. Never changes a result.", WHERE),
]
Address = Annotated[
    str | None,
    option(
        "--address",
        "HOST:PORT",
        "With --engine ray: head of a cluster, or auto; without it, processes of this machine.",
        WHERE,
    ),
]
Workers = Annotated[
    int | None,
    option(
        "--workers",
        "N",
        "With --engine ray: their number; default: one per node of the cluster, or one per core "
        "of this machine. --threads are those of each.",
        WHERE,
        min=1,
        max=10_000,
    ),
]
Timeout = Annotated[
    float | None,
    option(
        "--timeout",
        "SECONDS",
        f"With --engine ray: how long an answer of a worker may take; default: {TIMEOUT:g}.",
        WHERE,
        min=1.0,
    ),
]


def engine_of(
    engine: EngineName = "threads",
    address: Address = None,
    workers: Workers = None,
    timeout: Timeout = None,
) -> Engine:
    """Return an engine from the options; raise for those that it does not have."""
    one_of("engine", engine, ENGINES)
    if engine == "ray":
        return Ray(workers, address, timeout=TIMEOUT if timeout is None else timeout)
    given = {"--address": address, "--workers": workers, "--timeout": timeout}
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"{name} without --engine ray", remedy="add it; --threads is for this process"
            )
    return THREADS


def reading_of(
    format: Format = None,
    skip_bad: SkipBad = False,
    keep_blank: KeepBlank = False,
    column: Columns = None,
    feature: Features = None,
    per_sentence: PerSentence = None,
    sentences: Sentences = None,
    first_id: FirstId = 0,
    keyed: Keyed = False,
) -> Reading:
    """Return a `Reading` from the options."""
    columns = {name: file or None for name, _, file in (c.partition("=") for c in column or [])}
    features = {}
    for name, _, file in (text.partition("=") for text in feature or []):
        if not name or not file:
            raise InputError(f"--feature {name} does not name a file", remedy="write NAME=FILE")
        features[name] = file
    return Reading(
        format=format,
        skip_bad=skip_bad,
        keep_blank=keep_blank,
        columns=columns,
        features=features,
        per_sentence=per_sentence,
        keyed=keyed,
        first_id=first_id,
        sentences=sentences,
    )


def made_from(
    make: Callable[..., Any], parameter: str, without: Sequence[str] = ()
) -> Callable[[Command], Command]:
    """Replace a command's parameter by the options from which `make` makes its value."""

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)
        options = inspect.signature(make, eval_str=True).parameters
        more = {name: each for name, each in options.items() if name not in without}

        @wraps(command)
        def run(**given: Any) -> None:
            value = make(**{name: given.pop(name) for name in more})
            command(**given, **{parameter: value})

        kept = [each for name, each in own.parameters.items() if name != parameter]
        taken = [*kept, *more.values()]
        # Those that must be given come first.
        taken.sort(key=lambda each: (each.kind, each.default is not each.empty))
        run.__annotations__ = {each.name: each.annotation for each in taken}
        run.__signature__ = own.replace(parameters=taken)  # type: ignore[attr-defined]
        return run

    return decorate


def runs_on_engine(command: Command) -> Command:
    """Replace a command's parameter `engine` by the options of `engine_of`; close it at the end."""

    @wraps(command)
    def run(engine: Engine, **given: Any) -> None:
        try:
            command(engine=engine, **given)
        finally:
            engine.close()
            if isinstance(engine, Ray) and engine.replaced:
                note(f"workers that were lost or late, and replaced: {engine.replaced}")

    return made_from(engine_of, "engine")(run)


def reads_lists(*, columns: bool = True) -> Callable[[Command], Command]:
    """Replace a command's parameter `reading` by the options of `reading_of`."""
    return made_from(reading_of, "reading", () if columns else ("column",))


def with_columns(reading: Reading, *metrics: Metric) -> Reading:
    """Return a `Reading` with the columns that these metrics need."""
    named: dict[str, File | None] = dict.fromkeys(name for m in metrics for name in m.columns)
    return replace(reading, columns={**named, **reading.columns})


def one_list(reading: Reading, lists: Sequence[Path], heldout: Sequence[Path] = ()) -> Reading:
    """Return a `Reading` for held-out lists; raise for files of numbers that fit one list."""
    files = [*reading.features, *(name for name, file in reading.columns.items() if file)]
    if files and len(lists) + len(heldout) > 1:
        raise InputError(
            f"{len(lists) + len(heldout)} lists, but the file of {files[0]} belongs to one",
            remedy="put its numbers into each list: tunesmith rerank apply --feature … --nbest-out",
        )
    return replace(reading, sentences=None)


def measured(name: str, references: Sequence[Path] | None, option: str = "--reference") -> Metric:
    """Return a metric; raise if it needs references and there are none."""
    metric = get_metric(name)
    if not metric.columns and not references:
        raise InputError(f"{metric.name} needs references", remedy=f"name them with {option} FILE")
    return metric


def referenced(metric: Metric, lists: Pools, option: str = "--reference") -> None:
    """Raise if a metric needs references and the lists have none."""
    if not metric.columns and lists.references is None:
        raise InputError(
            f"{metric.name} needs references",
            remedy=f"name them with {option} FILE, or put them into JSONL lists",
        )


def comma_list(text: str | None) -> list[str]:
    """Split names at commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def metric_list(text: str) -> list[str]:
    """Split `bleu:tokenize=none,lowercase=1,chrf`: a part that is not a metric is an option."""
    found: list[str] = []
    for part in text.split(","):
        known = part.partition(":")[0].strip().lower() in metric_names()
        if known or not found:
            found.append(part.strip())
        else:
            found[-1] += f",{part}"
    return found


def one_of(name: str, value: str | None, choices: Sequence[str]) -> None:
    """Raise if a value is given and is not one of the choices."""
    if value is not None and value not in choices:
        raise InputError(f"--{name} {value}", remedy=f"use one of {', '.join(choices)}")


def of_paper(paper: str | None, tuner: str | None, default: str) -> tuple[str, Settings]:
    """Return the tuner that was asked for, or else the paper's own, and the paper's settings."""
    if paper is None:
        return tuner or default, Settings()
    if tuner is not None and "," in tuner:
        raise InputError(
            f"--as {paper} with a chain of tuners",
            remedy="run one after the other, with --weights from the run before",
        )
    chosen = tuner or next(iter(find_paper(paper).tuners))
    return chosen, settings_of(paper, chosen)


def settings(pairs: list[str] | None, option: str = "--set") -> dict[str, str]:
    """Read `key=value` options."""
    found = {}
    for text in pairs or []:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise InputError(f"{option} {text}", remedy="write key=value")
        found[key] = value
    return found


def numbers(pairs: list[str] | None, option: str = "--search") -> dict[str, float]:
    """Read `name=number` options."""
    found = {}
    for name, text in settings(pairs, option).items():
        found[name] = _number(text)
        if isnan(found[name]):
            raise InputError(f"{option} {name}={text}", remedy="give a number")
    return found


def fixed(pairs: list[str] | None) -> dict[str, float]:
    """Read `NAME=VALUE` weights; the name may hold further equal signs."""
    found = {}
    for text in pairs or []:
        name, _, value = text.rpartition("=")
        number = _number(value)
        if not name or not isfinite(number):
            raise InputError(f"--fix {text}", remedy="write NAME=VALUE with a finite number")
        found[name] = number
    return found


def bounds(pairs: list[str] | None) -> dict[str, tuple[float, float]]:
    """Read `NAME=LOW:HIGH` bounds; either side may be left out."""
    found = {}
    for text in pairs or []:
        name, _, value = text.rpartition("=")
        low, colon, high = value.partition(":")
        sides = _number(low or "-inf"), _number(high or "inf")
        if not name or not colon or isnan(sides[0]) or isnan(sides[1]):
            raise InputError(f"--bound {text}", remedy="write NAME=LOW:HIGH, for instance LM0=0:")
        found[name] = sides
    return found


def resumable(run: Path | None, resume: bool) -> None:
    """Raise if a run is to be resumed and there is no directory of one."""
    if resume and run is None:
        raise InputError("--resume without --run", remedy="name the run directory")


def writable(target: Path | None, *, folder: bool = False) -> None:
    """Raise early if a path cannot be written; some formats write a folder."""
    if target is None:
        return
    if target.is_dir() and not folder:
        raise InputError("is a directory", str(target), remedy="name a file inside it")
    if not target.parent.is_dir():
        raise InputError("there is no such directory", str(target.parent), remedy="make it first")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
