"""`tunesmith demo`: everything on real text: train, tune three ways, test, report."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from tunesmith._core import Lines
from tunesmith.cli import options as o
from tunesmith.cli.compare import pair_tests
from tunesmith.cli.console import Watch, both, emit, note, out, table, warn
from tunesmith.cli.demo_lists import demo_lists, show_command, take
from tunesmith.cli.train import Bars
from tunesmith.decode.translation import Model
from tunesmith.demo.verses import NEW, OLD, PARTS, place, read_versions, write_verses
from tunesmith.metrics import Metric, get_metric
from tunesmith.metrics.base import Rows
from tunesmith.report import Follow
from tunesmith.sources import Live
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide
from tunesmith.tuning import Result, tune

EXAMPLES = (
    "Examples:\n\n$ tunesmith demo\n\n$ tunesmith demo --out demo\n\n$ tunesmith demo --lists"
)
NBEST = 100
SEARCH = {"pop_limit": 100.0}
LONGEST = 25
"""Maximum number of words of a verse that is shown."""


class Chosen(NamedTuple):
    """A tuner and its settings."""

    name: str
    epochs: int
    options: dict[str, str]


# Two tuners use the lists of several decodings, one decodes as it learns. The latter makes few
# steps, so its steps are large, and its gains are on the scale of the model's scores.
TUNERS = (
    Chosen("mert", 5, {"restarts": "5"}),
    Chosen("kbmira", 5, {}),
    Chosen("mira", 3, {"c": "0.01", "gain_scale": "length"}),
)


@dataclass(frozen=True)
class Tested:
    """The output of a system on the test verses, and its scores."""

    name: str
    texts: list[str]
    rows: Rows
    score: float


def demo(
    folder: Annotated[
        Path | None,
        o.option(
            "--out -o",
            "DIR",
            "Folder for the files; give it again to continue. Default: a new folder.",
        ),
    ] = None,
    lists: Annotated[
        bool, o.flag("--lists", "Re-rank sample lists instead: no text needed.")
    ] = False,
    verses: Annotated[
        int | None,
        o.option(
            "--verses", "N", "Maximum number of verses of each part, for a shorter demo.", min=20
        ),
    ] = None,
    threads: o.Threads = 0,
    json: o.Json = False,
) -> None:
    """Translate King James's English into that of today: train, tune three ways, test.

    Takes a minute or two. With the same folder, a stopped demo continues.
    """
    if lists:
        demo_lists(folder or _new(), threads, json)
        return
    began = time.perf_counter()
    versions = read_versions()
    take(folder := folder or _new(), known=f"train.{OLD}")
    parts = write_verses(folder, versions, verses)
    note("1. verses of two Bibles, of 1611 and of today, aligned by their numbers")
    for (name, part), use in zip(PARTS.items(), ("train", "tune", "test"), strict=True):
        note(f"   {len(parts[name]):>5,} to {use} on: {part}")
    note(f"   in {folder}")

    note("\n2. train a model on some")
    model = folder / "model"
    show_command(
        ["tunesmith train", folder / f"train.{OLD}", folder / f"train.{NEW}", "--model", model],
        ["--kind phrase --source-language en --target-language en"],
        ["--tokenize moses --case true --order 4"],
    )
    with Bars() as bars:
        train(_training(folder), model, threads, bars)
    loaded = Model.load(model)

    note("\n3. tune its weights on others, with the decoder in the loop, three ways")
    source, reference = folder / f"dev.{OLD}", folder / f"dev.{NEW}"
    references = [[line] for line in Lines(reference)]
    live = Live(loaded, list(Lines(source)), references, NBEST, settings=SEARCH, threads=threads)
    results = []
    for chosen in TUNERS:
        name = chosen.name
        show_command(
            ["tunesmith tune", model, "--source", source, "-r", reference],
            [f"-t {name} --epochs {chosen.epochs} --nbest {NBEST} --search pop_limit=100"]
            + [f"--set {key}={value}" for key, value in chosen.options.items()],
            ["--run", folder / name, "--out", folder / f"{name}.toml"],
        )
        results.append(_tuned(live, loaded, folder / name, chosen, threads))
    # The choice must not depend on the test verses.
    best = max(results, key=lambda result: result.tuned)

    note("\n4. translate unseen verses")
    test = folder / f"test.{OLD}", folder / f"test.{NEW}"
    metric = get_metric("bleu")
    systems = list(_tested(loaded, results, test, metric, threads))
    compared = [pair_tests(metric, systems[1].rows, system.rows) for system in systems[2:]]
    shown = [each for each in systems if each.name in (OLD, "untuned", best.tuner)]
    examples = _examples(metric, shown, list(Lines(test[1])), parts["test"])
    report = folder / best.tuner / "report.html"
    if json:
        emit(
            {
                "folder": str(folder),
                "report": str(report),
                "verses": {name: len(part) for name, part in parts.items()},
                "untranslated": systems[0].score,
                "untuned": systems[1].score,
                "tuners": {
                    result.tuner: {**result.to_json(), "test": system.score, **found}
                    for result, system, found in zip(results, systems[2:], compared, strict=True)
                },
                "best": best.tuner,
                "signature": metric.signature(),
                "examples": examples,
                "seconds": time.perf_counter() - began,
            }
        )
        return
    _show_scores(metric, results, systems, compared)
    _show_examples(examples, best.tuner)
    note("\n5. see how tuning went: open this file in a browser")
    print(report)
    _show_next(folder, best.tuner)


def _new() -> Path:
    return Path(tempfile.mkdtemp(prefix="tunesmith-demo-"))


def _training(folder: Path) -> Training:
    side = TextSide("en", "moses", "true")
    files = folder / f"train.{OLD}", folder / f"train.{NEW}"
    return Training(*files, side, side, "phrase", order=4)


def _tuned(live: Live, model: Model, run: Path, chosen: Chosen, threads: int) -> Result:
    with Watch() as watch, Follow(run) as follow:
        result = tune(
            live,
            chosen.name,
            "bleu:tokenize=none",
            start=model.weights,
            options=chosen.options,
            iterations=chosen.epochs,
            threads=threads,
            run=run,
            resume=run.is_dir(),
            listen=both(watch, follow),
        )
    if result.refused is not None:
        warn(f"{chosen.name}: {result.refused}")
    result.weights.save(run.with_suffix(".toml"))
    return result


def _tested(
    model: Model,
    results: Sequence[Result],
    test: tuple[Path, Path],
    metric: Metric,
    threads: int,
) -> Iterator[Tested]:
    """Yield results for the old text itself, its untuned translation, and each tuner's weights."""
    lines, references = list(Lines(test[0])), [[line] for line in Lines(test[1])]

    def tested(name: str, texts: list[str]) -> Tested:
        rows = metric.stats(texts, references)
        return Tested(name, texts, rows, metric.score(rows.sum(axis=0)))

    yield tested(OLD, lines)
    weights = {"untuned": model.weights} | {result.tuner: result.weights for result in results}
    for name, chosen in weights.items():
        translator = model.translator(chosen, SEARCH)
        translations = translator.translate(lines, threads=threads)
        yield tested(name, [each.text for each in translations])


def _examples(
    metric: Metric, systems: Sequence[Tested], references: Sequence[str], verses: Sequence[int]
) -> list[dict[str, Any]]:
    """Return the verses that gained most by tuning, and the one that lost most."""
    old, before, after = systems
    gains = metric.native.sentence_gains(after.rows) - metric.native.sentence_gains(before.rows)
    short = [i for i, text in enumerate(old.texts) if len(text.split()) <= LONGEST]
    order = sorted(short, key=lambda i: -gains[i])
    return [
        {
            "verse": place(verses[i]),
            "gain": float(gains[i]),
            OLD: old.texts[i],
            "untuned": before.texts[i],
            "tuned": after.texts[i],
            NEW: references[i],
        }
        for i in [*order[:3], *order[3:][-1:]]
        if gains[i]
    ]


def _show_scores(
    metric: Metric,
    results: Sequence[Result],
    systems: Sequence[Tested],
    compared: Sequence[Mapping[str, Any]],
) -> None:
    rows = table("", "", "tuned on", "test", "gain", "95%", "p", "seconds")
    rows.add_row("King James's words unchanged", "", f"{systems[0].score:.2f}", "", "", "", "")
    start = results[0].start
    rows.add_row("untuned", f"{start:.2f}", f"{systems[1].score:.2f}", "", "", "", "")
    for result, system, found in zip(results, systems[2:], compared, strict=True):
        rows.add_row(
            result.tuner,
            f"{result.tuned:.2f}",
            f"{system.score:.2f}",
            f"{found['difference']:+.2f}",
            f"[{found['ci'][0]:+.2f}, {found['ci'][1]:+.2f}]",
            f"{max(found['p_bootstrap'], found['p_randomisation']):.3f}",
            f"{result.seconds:.1f}",
        )
    out.print()
    out.print(rows)
    out.print(f"BLEU against the Bible of today; test: {metric.signature()}", style="dim")
    out.print("p: the larger of bootstrap's and randomisation's, against untuned", style="dim")


def _show_examples(examples: Sequence[Mapping[str, Any]], tuner: str) -> None:
    out.print(f"\nverses that gained most from {tuner}, and one that lost", style="bold")
    styles = {OLD: "dim", "untuned": "red", "tuned": "green", NEW: "dim"}
    for example in examples:
        out.print(f"{example['verse']} ({100 * example['gain']:+.0f})", style="bold")
        for name, style in styles.items():
            out.print(f"  {name:<8} {example[name]}", style=style)


def _show_next(folder: Path, tuner: str) -> None:
    model, weights = folder / "model", folder / f"{tuner}.toml"
    dev: list[str | Path] = ["--source", folder / f"dev.{OLD}", "-r", folder / f"dev.{NEW}"]
    note("\nwhat to try next")
    show_command(
        ['echo "Thou shalt not covet thy neighbour\'s house." |'],
        ["tunesmith translate", model, "-w", weights, "--explain"],
    )
    show_command(["tunesmith inspect", model, '"thou shalt"'])
    show_command(
        ["tunesmith tune", model, *dev],
        ["-t adagrad --features green2013 --epochs 5 --out", folder / "sparse.toml"],
    )
