"""`tunesmith analyse`: what a decoder does with weights, and how runs spent their time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tunesmith.analysis import BEAMS, by_beam, of_bins, of_lists, spent
from tunesmith.cli import options as o
from tunesmith.cli.console import counter, emit, note, out, table
from tunesmith.cli.loading import check_model, load_model
from tunesmith.cli.tune import texts
from tunesmith.decode.model_weights import templates_of
from tunesmith.errors import InputError
from tunesmith.metrics import Metric, get_metric
from tunesmith.runs import RunDirectory
from tunesmith.sources import Live
from tunesmith.spaces.bins import Partial, Ranked
from tunesmith.spaces.reading import read_weights
from tunesmith.weights import Weights

app = typer.Typer(
    help="What a decoder does with weights: by beam size, in its lists, in its bins.",
    no_args_is_help=True,
)

Source = Annotated[
    Path, typer.Option("--source", "-s", metavar="FILE", help="Sentences to translate.")
]
References = Annotated[
    list[Path],
    typer.Option("--reference", "-r", metavar="FILE", help="Their references; repeat for several."),
]
WeightFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--weights",
        "-w",
        metavar="FILE",
        help="Weights; repeat to compare several. Default: the model's own, or those of --run.",
    ),
]
MetricName = Annotated[
    str, typer.Option("--metric", "-m", metavar="NAME", help="bleu:tokenize=none, chrf, ter …")
]
Tokenized = Annotated[
    bool,
    typer.Option(
        "--tokenized", metavar="", help="Source and references are already words of the model."
    ),
]
RunFolder = Annotated[
    Path | None,
    typer.Option(
        "--run",
        metavar="DIR",
        help="A finished run: its weights are taken, and its report shows the analysis.",
    ),
]


@dataclass
class Subject:
    """A decoder with a text, and the weights to compare."""

    live: Live
    weights: dict[str, Weights]
    metric: Metric
    source: Path
    run: RunDirectory | None

    def show(
        self,
        kind: str,
        json: bool,
        found: Callable[[Weights], Iterable[Mapping[str, Any]]],
        each: int = 1,
        **options: object,
    ) -> None:
        """Print a table with the rows that are found for each set of weights; `each` many.

        `options` are those of the analysis, for its report.
        """
        rows = []
        with counter() as bar:
            task = bar.add_task(kind, total=each * len(self.weights))
            for name, weights in self.weights.items():
                for row in found(weights):
                    rows.append({"weights": name, **row})
                    bar.advance(task)
        facts = {
            "source": str(self.source),
            "weights": list(self.weights),
            "metric": self.metric.name,
            "signature": self.metric.signature(_references(self.live)),
            "options": {**options, **self.live.settings},
            "rows": rows,
        }
        if self.run is not None:
            self.run.add_analysis(kind, facts)
        if json:
            emit({"analysis": kind, **facts})
            return
        tell(rows, self.metric.label)
        if self.run is not None:
            note(f"tunesmith report {self.run.path} shows it, too")


def subject_of(
    source: Source,
    reference: References,
    model: o.Model = None,
    weights: WeightFiles = None,
    metric: MetricName = "bleu:tokenize=none",
    moses: o.Moses = None,
    kind: o.Kind = None,
    search: o.Search = None,
    tokenized: Tokenized = False,
    cache: o.Cache = None,
    run: RunFolder = None,
    threads: o.Threads = 0,
) -> Subject:
    """Return what is analysed from the options; raise if there is not exactly one decoder."""
    check_model(model, moses, kind)
    measured = get_metric(metric)
    folder = None if run is None else RunDirectory(run).open()
    files = list(weights or ([] if folder is None else [folder.weights_file]))
    given = {str(file): read_weights(file) for file in files}
    templates = [name for each in given.values() for name in templates_of(each)]
    loaded = load_model(model, moses, kind, cache, templates)
    live = Live(
        loaded,
        *texts(source, reference),
        settings=o.numbers(search),
        tokenized=tokenized,
        threads=threads,
    )
    return Subject(live, given or {"the model's": loaded.weights}, measured, source, folder)


ANALYSED = o.made_from(subject_of, "subject")


def _references(live: Live) -> int:
    counts = {len(each) for each in live.references}
    return counts.pop() if len(counts) == 1 else -1


def tell(rows: list[dict[str, Any]], label: str) -> None:
    """Print rows as a table; what only one value has is left out of the columns."""
    heads = list(dict.fromkeys(key for row in rows for key in row))
    if len({row["weights"] for row in rows if "weights" in row}) < 2:
        heads = [head for head in heads if head != "weights"]
    shown = table(label, *(head.replace("_", " ") for head in heads))
    for row in rows:
        shown.add_row(*(_text(row.get(head)) for head in heads))
    out.print(shown)


def _text(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 1 else f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith analyse beams model -s test.de -r test.en -w mert.toml -w sa-mert.toml\n\n"
    "$ tunesmith analyse beams --moses moses.ini -s test.de -r test.en --beams 1,4,30 --json",
)
@ANALYSED
def beams(
    subject: Subject,
    beams: Annotated[
        str, typer.Option("--beams", metavar="N,…", help="Widths of the beam.")
    ] = ",".join(map(str, BEAMS)),
    json: o.Json = False,
) -> None:
    """Score the output by the width of the beam.

    The width is the size of a stack, or the pop limit of a hierarchical model. The mean score of
    the model shows search errors: with a wide enough beam it grows no more.
    """
    try:
        widths = [int(each) for each in beams.split(",")]
    except ValueError:
        raise InputError(f"--beams {beams}", remedy="give numbers such as 1,4,30") from None
    if min(widths) < 1:
        raise InputError(f"a beam of {min(widths)}", remedy="give numbers from 1 on")
    subject.show(
        "beams",
        json,
        lambda each: (asdict(row) for row in by_beam(subject.live, each, subject.metric, widths)),
        len(widths),
    )


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith analyse lists model -s test.de -r test.en -w mert.toml -w sa-mert.toml\n\n"
    "$ tunesmith analyse lists model -s test.de -r test.en --nbest 30 --grams 4",
)
@ANALYSED
def lists(
    subject: Subject,
    nbest: Annotated[
        int, typer.Option("--nbest", metavar="K", min=1, max=100_000, help="Length of lists.")
    ] = 100,
    grams: Annotated[
        int, typer.Option("--grams", metavar="N", min=1, max=9, help="n of the n-grams.")
    ] = 2,
    json: o.Json = False,
) -> None:
    """Score the best that lists hold, and tell how different their translations are.

    oracle is the best score that choosing from the lists can reach. diversity is the mean of d'
    over all pairs of a list: 0 where all are equal, 1 where no two share an n-gram. shared is the
    mean of d: minus the number of n-grams that two translations share.
    """
    subject.show(
        "lists",
        json,
        lambda each: [asdict(of_lists(subject.live, each, subject.metric, nbest, grams))],
        nbest=nbest,
        grams=grams,
    )


@app.command(
    epilog="Examples:\n\n"
    "$ tunesmith analyse bins model -s dev.de -r dev.en -w mert.toml -w sa-mert.toml",
)
@ANALYSED
def bins(
    subject: Subject,
    partial: Annotated[
        Partial, typer.Option("--partial", metavar="HOW", help="potential or bleu.")
    ] = Partial.POTENTIAL,
    ranked: Annotated[
        Ranked, typer.Option("--ranked", metavar="BY", help="score or estimate.")
    ] = Ranked.ESTIMATE,
    json: o.Json = False,
) -> None:
    """Score the output, and the best of all bins of the search.

    final is the score of the last bins, which is the output's; every that of all bins: search-aware
    tuners raise it.
    """
    subject.live.partial, subject.live.ranked = partial, ranked
    subject.show(
        "bins",
        json,
        lambda each: [asdict(of_bins(subject.live, each, subject.metric))],
        partial=partial.value,
        ranked=ranked.value,
    )


@app.command(
    epilog="Examples:\n\n$ tunesmith analyse time runs/mert runs/sa-mert",
)
def time(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Folders that --run made.")],
    json: o.Json = False,
) -> None:
    """Tell how runs spent their time: decoding, optimising."""
    rows = [asdict(spent(run)) for run in runs]
    if json:
        emit({"analysis": "time", "rows": rows})
        return
    tell(rows, "seconds")
