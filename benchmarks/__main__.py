"""Run benchmarks: Markdown on stdout, JSON in `benchmarks/results`, progress on stderr."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import (
    aligners_bench,
    forests_bench,
    hiero_bench,
    lm_bench,
    moses_lists,
    phrase_bench,
    reading,
    reranking,
    rules_bench,
    sparse,
    training_bench,
    tuning_bench,
)
from benchmarks.data import Setting
from benchmarks.harness import Claim, Outcome, Skip, machine, markdown, save, say
from benchmarks.yardstick import Yardstick, measure_yardstick

AGAINST_MOSES: dict[str, Callable[[Setting, Yardstick], Outcome]] = {
    "mert": moses_lists.mert,
    "kbmira": moses_lists.kbmira,
    "whole-way": moses_lists.whole_way,
    "lm-queries": lm_bench.queries,
    "lm-files": lm_bench.files,
    "lm-estimation": lm_bench.estimation,
    "hiero": hiero_bench.hiero,
    "phrase-speed": phrase_bench.speed,
    "tuning": tuning_bench.tuning,
}
ALONE: dict[str, Callable[[Setting], Outcome]] = {
    "presets": moses_lists.presets,
    "twin": moses_lists.twin,
    "sparse": sparse.sparse,
    "reading": reading.reading,
    "reranking": reranking.reranking,
    "aligners": aligners_bench.aligners,
    "rules": rules_bench.rules,
    "phrase-lists": phrase_bench.lists,
    "phrase-sparse": phrase_bench.sparse,
    "forest-mert": forests_bench.mert,
    "oracles": forests_bench.oracles,
    "training": training_bench.whole_training,
    "growth": training_bench.growth,
    "regimes": tuning_bench.regimes,
    "relative-margin": tuning_bench.relative_margin,
}
NAMES = ("yardstick", *AGAINST_MOSES, *ALONE)
RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks; return 1 where a claim is not kept."""
    parser = _parser()
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark named {unknown[0]!r}: there are {', '.join(NAMES)}")
    if options.list:
        print("\n".join(NAMES))
        return 0
    setting = Setting(quick=options.quick)
    if options.shared is not None:
        setting.shared = options.shared
    facts = machine()
    print(f"{facts['cores']} cores, load {facts['load']}, Python {facts['python']}\n")
    claims: list[Claim] = []
    for name, outcome in _run(options.names or NAMES, setting):
        if isinstance(outcome, Skip):
            print(f"### {name}\n\nskipped: {outcome}\n", flush=True)
            continue
        print(markdown(outcome), flush=True)
        save(options.results, name, outcome, options.quick)
        claims += outcome.claims
    broken = [claim for claim in claims if not claim.kept]
    say(f"{len(claims) - len(broken)} of {len(claims)} claims kept")
    for claim in broken:
        say(f"  not kept: {claim.text}: {claim.measured:.4g}, {claim.sense} {claim.target:.4g}")
    return 1 if broken else 0


def _run(names: Sequence[str], setting: Setting) -> Iterator[tuple[str, Outcome | Skip]]:
    """Yield what each benchmark found, or why it could not run."""
    yardstick: Yardstick | Skip | None = None
    if any(name == "yardstick" or name in AGAINST_MOSES for name in names):
        say("yardstick …")
        try:
            yardstick, outcome = measure_yardstick(setting)
            yield "yardstick", outcome
        except Skip as skip:
            yardstick = skip
            yield "yardstick", skip
    for name in NAMES[1:]:
        if name not in names:
            continue
        say(f"{name} …")
        began = time.perf_counter()
        try:
            if name in ALONE:
                yield name, ALONE[name](setting)
            elif isinstance(yardstick, Yardstick):
                yield name, AGAINST_MOSES[name](setting, yardstick)
            else:
                yield name, Skip(f"without its yardstick: {yardstick}")
        except Skip as skip:
            yield name, skip
        say(f"{name}: {time.perf_counter() - began:.0f} s")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"which, all if none: {', '.join(NAMES)}"
    )
    parser.add_argument("--quick", action="store_true", help="less of everything: a minute")
    parser.add_argument("--list", action="store_true", help="tell the names and stop")
    parser.add_argument("--shared", type=Path, help="folder that holds `data`")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for JSON files")
    return parser


if __name__ == "__main__":
    sys.exit(main())
