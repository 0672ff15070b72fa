"""`tunesmith simulate`: what a pass would take with many workers, before anybody rents them."""

from __future__ import annotations

import json as json_
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

from tunesmith.cli import options as o
from tunesmith.cli.console import busy, emit, note, out, table
from tunesmith.cli.tune import texts
from tunesmith.decode.translation import Model
from tunesmith.engines.simulation import REGIMES, Measurements, spread_of
from tunesmith.engines.simulation import simulate as predict
from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write
from tunesmith.files.fingerprint import read_object
from tunesmith.sources import Live
from tunesmith.tuning.measuring import default_tuner, measure, measured_run

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith simulate model -s dev.de -r dev.en --sentences 1000000 --save m.json\n\n"
    "$ tunesmith simulate --measurements m.json --workers 1..1000 --sentences 10000\n\n"
    "$ tunesmith simulate --run runs/mira --workers 1,2,4,8\n\n"
    "tunesmith tune --engine ray runs all of them: batch tuners, --regime shards=N, batch=N and "
    "delay=N,stale=gradient."
)


def simulate(
    model: o.Model = None,
    source: Annotated[
        Path | None, o.option("--source -s", "FILE", "Sentences to measure, with MODEL.")
    ] = None,
    reference: Annotated[
        list[Path] | None, o.option("--reference -r", "FILE", "Their references.")
    ] = None,
    measurements: Annotated[
        Path | None, o.option("--measurements", "FILE", "Measurements that --save wrote.")
    ] = None,
    run: Annotated[
        Path | None,
        o.option(
            "--run",
            "DIR",
            "A run with a live decoder, --threads 1 and no --heldout: the means of its epochs.",
        ),
    ] = None,
    workers: Annotated[
        str, o.option("--workers", "N..M", "Numbers of workers: 1..1000, or 1,2,8.")
    ] = "1..1000",
    sentences: Annotated[
        int | None,
        o.option("--sentences", "N", "Length of the text; default: as measured.", min=1),
    ] = None,
    regime: Annotated[
        list[str] | None, o.option("--regime", "NAME", f"{', '.join(REGIMES)}; default: all.")
    ] = None,
    cores: Annotated[
        int | None,
        o.option("--cores", "N", "Cores that all workers share; default: one for each.", min=1),
    ] = None,
    mix: Annotated[int, o.option("--mix", "N", "Mixings in a pass.", min=1)] = 20,
    batch: Annotated[
        int, o.option("--batch", "N", "Size of mini-batches; 0: four sentences a worker.", min=0)
    ] = 0,
    latency: Annotated[
        float | None, o.option("--latency", "SECONDS", "Of a message; default: 0.001.", min=0.0)
    ] = None,
    bandwidth: Annotated[
        float | None,
        o.option("--bandwidth", "BYTES", "Per second, of the driver; default: 1e8.", min=1.0),
    ] = None,
    save: Annotated[
        Path | None, o.option("--save", "FILE", "Write the measurements, as JSON.")
    ] = None,
    json: o.Json = False,
    moses: o.Moses = None,
    cache: o.Cache = None,
    tokenized: o.TokenizedText = False,
) -> None:
    """Predict the time of a pass, staleness and bytes moved for numbers of workers.

    Replays measured times of single sentences through each regime. Every worker
    has one thread of the measured machine; with --cores they share so many. A
    run that used several threads makes workers look as fast as all of them.
    """
    chosen = regime or list(REGIMES)
    for name in chosen:
        o.one_of("regime", name, tuple(REGIMES))
    if "mixing" not in chosen and mix != 20:
        raise InputError("--mix belongs to mixing", remedy="add --regime mixing, or leave it out")
    if "mini-batch" not in chosen and batch:
        raise InputError("--batch belongs to mini-batch", remedy="add --regime mini-batch")
    counts = spread_of(workers)
    if sum(each is not None for each in (model, moses, measurements, run)) != 1:
        raise InputError(
            "nothing to replay, or more than one",
            remedy="give one of MODEL or --moses with -s and -r, --measurements FILE, --run DIR",
        )
    if model is None and moses is None and (source is not None or reference or tokenized):
        raise InputError(
            "--source, --reference and --tokenized belong to a model", remedy="leave them out"
        )
    o.writable(save)
    if measurements is not None:
        read = read_object(measurements, remedy="write it with --save")
        known = Measurements.of(read, str(measurements))
    elif run is not None:
        known = measured_run(str(run))
    elif source is None or not reference:
        raise InputError("a model without text", remedy="give --source and --reference")
    else:
        with busy("measuring"):
            loaded = (
                Model.load(model) if model is not None else Model.of_moses(moses or "", cache, note)
            )
            live = Live(loaded, *texts(source, reference), tokenized=tokenized, threads=1)
            known = measure(live, loaded.weights, "bleu:tokenize=none", default_tuner())
    if latency is not None:
        known = replace(known, latency=latency)
    if bandwidth is not None:
        known = replace(known, bandwidth=bandwidth)
    if save is not None:
        with atomic_write(save) as stream:
            stream.write((json_.dumps(asdict(known)) + "\n").encode())
        note(f"measurements written to {save}")
    length = sentences or len(known.decode_seconds)
    options = {"mixing": {"mix": mix}, "mini-batch": {"batch": batch}}
    found = [
        predict(name, known, count, length, cores, **options.get(name, {}))
        for name in chosen
        for count in counts
    ]
    if json:
        shown = {**asdict(known), "decode_seconds": sum(known.decode_seconds)}
        shown["decoded"] = len(known.decode_seconds)
        emit({"sentences": length, "measured": shown, "predicted": [asdict(p) for p in found]})
        return
    heads = ("workers", "seconds", "efficiency", "staleness", "MB moved", "bottleneck")
    rows = table(f"a pass over {length:,} sentences", "regime", *heads)
    for each in found:
        rows.add_row(
            each.regime,
            f"{each.workers:,}",
            f"{each.seconds:,.1f}",
            f"{each.efficiency:.0%}",
            f"{each.staleness:,.1f}",
            f"{each.bytes_moved / 1e6:,.1f}",
            each.bottleneck,
        )
    out.print(rows)
