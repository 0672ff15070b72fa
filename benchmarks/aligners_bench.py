"""Word aligners side by side: time, memory, links shared with fast_align's, and BLEU."""

from __future__ import annotations

import gzip
import resource
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import sacrebleu

from benchmarks.data import METRIC, Setting, text_lines
from benchmarks.fresh import Fresh, in_fresh_process
from benchmarks.harness import Cell, Claim, Outcome, say
from tunesmith import read_pools, tune
from tunesmith.decode.translation import Model
from tunesmith.formats import NbestWriter
from tunesmith.training.aligners import Aligned, align
from tunesmith.training.alignment import symmetrise_files
from tunesmith.training.pipeline import Training, train

MEGA = 1e6
THREADS = 2
ROUNDS = 3
"""Of decoding and tuning."""
TESTS = ("val", "test_2016_flickr", "test_2017_flickr")
OURS = "fast_align"
OTHERS = {"thot-fast_align": "thot", "eflomal": "eflomal"}
"""What else to measure, and the module that shows that it is installed."""


def aligned(
    aligner: str, texts: list[str], outs: list[str], threads: int, keep: list[Any]
) -> float:
    """Align with both directions at once; return the CPU seconds of helping processes."""
    before = _children()
    source, target, forward, backward = map(Path, (*texts, *outs))
    align(source, target, Aligned(forward, backward), aligner, threads=threads)
    return _children() - before


def translated(
    texts: list[str], links: str, tests: dict[str, list[str]], folder: str, keep: list[Any]
) -> dict[str, list[float]]:
    """Train a phrase model from given links and tune it on the first test set; return the BLEU of
    all of them, untuned and tuned."""
    home = Path(folder)
    training = Training(Path(texts[0]), Path(texts[1]), kind="phrase", alignment=Path(links))
    train(training, home / "model", THREADS)
    model = Model.load(home / "model", "phrase")
    sources, references = (
        [text_lines(Path(files[side])) for files in tests.values()] for side in (0, 1)
    )

    def scores(weights: Any) -> list[float]:
        translator = model.translator(weights)
        return [
            sacrebleu.corpus_bleu(
                [each.text for each in translator.batch(lines, threads=THREADS)],
                [reference],
                tokenize="none",
                force=True,
            ).score
            for lines, reference in zip(sources, references, strict=True)
        ]

    untuned = scores(None)
    weights: Any = None
    lists: list[Path] = []
    for number in range(ROUNDS):
        lists.append(home / f"{number}.nbest")
        with NbestWriter(lists[-1]) as out:
            out.add(model.translator(weights).nbest(sources[0], 100, threads=THREADS).core)
        pools = read_pools(lists, [Path(next(iter(tests.values()))[1])])
        weights = tune(pools, "kbmira", METRIC, threads=THREADS, start=weights).weights
    return {"untuned": untuned, "tuned": scores(weights)}


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def aligners(setting: Setting) -> Outcome:
    """Align Multi30k with every aligner that is installed."""
    outcome = Outcome("Word alignment of Multi30k de-en, 29,000 pairs, both directions")
    packed = [setting.file("multi30k", f"train.{side}.gz") for side in ("de", "en")]
    reference = [
        _links(setting.file("multi30k-moses", f"{name}.align.gz")) for name in ("fwd", "rev")
    ]
    cpu: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = [folder / "source", folder / "target"]
        for path, text in zip(texts, packed, strict=True):
            path.write_bytes(gzip.decompress(text.read_bytes()))
        runs = [(OURS, 1), (OURS, 2)]
        runs += [(other, 2) for other, module in OTHERS.items() if find_spec(module)]
        for aligner, threads in runs:
            outs = [folder / f"{aligner}.{threads}.{side}" for side in ("f", "b")]
            run = in_fresh_process(
                "benchmarks.aligners_bench:aligned",
                aligner=aligner,
                texts=list(map(str, texts)),
                outs=list(map(str, outs)),
                threads=threads,
            )
            taken = run.cpu + float(run.value)
            cpu.setdefault(aligner, taken)
            _row(outcome, aligner, threads, taken, run, [_links(out) for out in outs], reference)
            if (aligner, threads) != (OURS, 1) and not setting.quick:
                outcome.rows[-1] |= _quality(setting, texts, outs, folder / f"{aligner}.quality")
        same = [
            (folder / f"{OURS}.1.{side}").read_bytes() == (folder / f"{OURS}.2.{side}").read_bytes()
            for side in ("f", "b")
        ]
        outcome.claims.append(
            Claim("files that are the same with one thread and two", sum(same), 2, "at least")
        )
    shared = [float(str(outcome.rows[0][key])) for key in ("forward links, %", "backward links, %")]
    outcome.claims.append(
        Claim("links shared with the authors' program", min(shared), 99, "at least", "%")
    )
    if "thot-fast_align" in cpu:
        outcome.claims.append(
            Claim(
                "CPU time against sil-thot's fast_align",
                cpu["thot-fast_align"] / cpu[OURS],
                3,
                "at least",
                "times as fast",
            )
        )
    outcome.notes += [
        "Links are compared with those of the authors' fast_align (-d -o -v): twice the common "
        "ones by all.",
        f"Not installed: {', '.join(o for o, m in OTHERS.items() if not find_spec(m)) or 'none'}.",
        "Peak memory is that of the calling process; sil-thot and eflomal work in others.",
        "BLEU of phrase-based systems that differ in their links alone: with untuned weights, and "
        f"after {ROUNDS} rounds of kbmira on val (one seed).",
    ]
    return outcome


def _row(
    outcome: Outcome,
    aligner: str,
    threads: int,
    cpu: float,
    run: Fresh,
    links: list[list[set[bytes]]],
    reference: list[list[set[bytes]]],
) -> None:
    shared = [100 * _shared(one, other) for one, other in zip(links, reference, strict=True)]
    say(f"  {aligner}: {cpu:.1f} CPU s, {run.wall:.1f} s, links {shared[0]:.2f}%")
    outcome.rows.append(
        {
            "aligner": aligner,
            "threads": threads,
            "CPU s": cpu,
            "s": run.wall,
            "peak, MB": run.peak / MEGA if aligner == OURS else None,
            "forward links, %": shared[0],
            "backward links, %": shared[1],
        }
    )


def _quality(
    setting: Setting, texts: list[Path], outs: list[Path], folder: Path
) -> dict[str, Cell]:
    """Return the BLEU of a system made from both directions' links, tuned and untuned."""
    folder.mkdir()
    symmetrise_files(outs[0], outs[1], folder / "links")
    tests = {
        test: [str(setting.file("multi30k", f"{test}.{side}.gz")) for side in ("de", "en")]
        for test in TESTS
    }
    run = in_fresh_process(
        "benchmarks.aligners_bench:translated",
        texts=list(map(str, texts)),
        links=str(folder / "links"),
        tests=tests,
        folder=str(folder),
    )
    say(f"    BLEU untuned {run.value['untuned']}, tuned {run.value['tuned']}")
    return {
        f"BLEU {test}": f"{before:.2f} → {after:.2f}"
        for test, before, after in zip(TESTS, run.value["untuned"], run.value["tuned"], strict=True)
    }


def _links(path: Path) -> list[set[bytes]]:
    content = path.read_bytes()
    text = gzip.decompress(content) if path.suffix == ".gz" else content
    return [set(line.split()) for line in text.splitlines()]


def _shared(ours: list[set[bytes]], theirs: list[set[bytes]]) -> float:
    common = sum(len(one & other) for one, other in zip(ours, theirs, strict=True))
    return 2 * common / sum(len(one) + len(other) for one, other in zip(ours, theirs, strict=True))
