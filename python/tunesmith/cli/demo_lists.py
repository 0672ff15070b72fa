"""`tunesmith demo --lists`: re-ranking on sample lists, in a few seconds."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from tunesmith.cli.console import Watch, emit, note, out, table
from tunesmith.cli.rerank import epochs
from tunesmith.demo.sample import sentences, write_sample
from tunesmith.errors import InputError
from tunesmith.metrics import Metric, get_metric
from tunesmith.report import write_report
from tunesmith.spaces import Pools
from tunesmith.spaces.reading import read_pools
from tunesmith.tuning import Result, tune

TUNERS = ("mert", "kbmira", "rm")
REFERENCES = "dev.ref"
SENTENCES, SEED = 300, 1


def demo_lists(folder: Path, threads: int, json: bool) -> None:
    """Make sample lists, tune weights in three ways, apply them, and show the changes."""
    take(folder, known=REFERENCES if _made_here(folder) else None)
    note("1. sample lists: 300 sentences × 30 hypotheses for tuning, as many for testing")
    note(f"   in {folder}")
    write_sample(folder, SENTENCES, seed=SEED)
    lists = folder / "dev.nbest.gz", folder / REFERENCES
    heldout = folder / "test.nbest.gz", folder / "test.ref"
    dev, test = read_pools(*lists), read_pools(*heldout)
    metric = get_metric("bleu")

    note("\n2. tune their weights for BLEU, three ways")
    results = []
    for name in TUNERS:
        run, weights = folder / name, folder / f"{name}.toml"
        show_command(
            ["tunesmith rerank tune", lists[0], "-r", lists[1], "--tuner", name],
            ["--heldout", heldout[0], "--heldout-reference", heldout[1]],
            ["--run", run, "--out", weights],
        )
        with Watch(epochs(name, {})) as watch:
            result = tune(
                dev,
                name,
                metric,
                heldout=test,
                threads=threads,
                run=run,
                resume=run.is_dir(),
                listen=watch,
            )
        result.weights.save(weights)
        results.append(result)
    best = max(results, key=lambda result: result.heldout or 0.0)
    if not json:
        _show_results(results)

    note("\n3. apply the best weights to unseen lists")
    show_command(["tunesmith rerank apply", heldout[0], "-w", folder / f"{best.tuner}.toml"])
    if not json:
        _show_changes(test, metric, best, threads)

    note("\n4. see how it went: open this file in a browser")
    show_command(["tunesmith report", folder / best.tuner])
    report = write_report(folder / best.tuner)
    if json:
        tuners = {result.tuner: result.to_json() for result in results}
        emit({"folder": str(folder), "report": str(report), "tuners": tuners})
    else:
        print(report)


def take(folder: Path, known: str | None = None) -> None:
    """Make the folder; raise if it is not empty, unless it holds the `known` file."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise InputError("not a folder", str(folder), remedy="name a new one") from error
    ours = known is not None and (folder / known).is_file()
    if not ours and any(folder.iterdir()):
        raise InputError("the folder is not empty", str(folder), remedy="name a new one")


def _made_here(folder: Path) -> bool:
    """Return whether the folder's references are the sample's; other files are not overwritten."""
    ours = "".join(f"{text}\n" for text in sentences(SENTENCES, SEED))
    file = folder / REFERENCES
    return file.is_file() and file.read_bytes() == ours.encode()


def show_command(*lines: Sequence[str | Path]) -> None:
    """Show the equivalent command."""
    shown = [
        " ".join(shlex.quote(str(word)) if isinstance(word, Path) else word for word in line)
        for line in lines
    ]
    note("   $ " + " \\\n       ".join(shown))


def _show_results(results: list[Result]) -> None:
    heads = ["start", "tuned", "oracle", "unseen start", "unseen tuned", "unseen, best untuned"]
    rows = table("", "", *heads, "p", "seconds")
    for result in results:
        scores = [result.start, result.tuned, result.oracle, result.heldout_start, result.heldout]
        scores.append(result.baselines[result.significance["against"]])
        rows.add_row(
            result.tuner,
            *(f"{score:.2f}" for score in scores),
            f"{result.significance['bootstrap']['p']:.3f}",
            f"{result.seconds:.2f}",
        )
    out.print()
    out.print(rows)
    out.print(results[0].signature, style="dim")


def _show_changes(test: Pools, metric: Metric, best: Result, threads: int) -> None:
    """Print the weights and the sentences that gained most."""
    weights = table(f"\nwhat {best.tuner} learnt", "feature", "weight", header=False)
    for feature, value in best.weights.top(10).items():
        weights.add_row(feature, f"{value:+.4f}")
    out.print(weights)
    out.print("\nbefore and after", style="bold")
    first, chosen = test.first(), test.best(best.weights, threads)
    before, after = test.outputs(first), test.outputs(chosen)
    gain = metric.native.sentence_gains(test.statistics(metric, chosen))
    gain -= metric.native.sentence_gains(test.statistics(metric, first))
    for i in sorted(range(test.sentences), key=lambda i: -gain[i])[:3]:
        out.print(f"- {before[i]}", style="red")
        out.print(f"+ {after[i]}", style="green")
