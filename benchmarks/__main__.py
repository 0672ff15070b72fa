"""Run benchmarks: Markdown on stdout, JSON in `benchmarks/results`, progress on stderr.

`python -m benchmarks.docs` takes the results into the documentation.
`MOSES`, `MOSES_MERT` and `CDEC` in the environment name programs that run in turn with ours.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import (
    aligners_bench,
    bitext_bench,
    forced_bench,
    forests_bench,
    hiero_bench,
    lm_bench,
    local_bench,
    moses_lists,
    online_bench,
    phrase_bench,
    ray_bench,
    reading,
    reranking_bench,
    rules_bench,
    searchaware_bench,
    serve_bench,
    sparse,
    structured_bench,
    training_bench,
    tuning_bench,
)
from benchmarks.data import Setting
from benchmarks.harness import Claim, Outcome, RivalFailed, Skip, machine, markdown, save, say
from benchmarks.rivals import Rivals

BENCHMARKS: dict[str, Callable[[Setting], Outcome]] = {
    "mert": moses_lists.mert,
    "kbmira": moses_lists.kbmira,
    "whole-way": moses_lists.whole_way,
    "lm-queries": lm_bench.queries,
    "lm-files": lm_bench.files,
    "lm-estimation": lm_bench.estimation,
    "hiero": hiero_bench.hiero,
    "phrase-speed": phrase_bench.speed,
    "tuning": tuning_bench.tuning,
    "presets": moses_lists.presets,
    "twin": moses_lists.twin,
    "sparse": sparse.sparse,
    "reading": reading.reading,
    "reranking": reranking_bench.reranking,
    "aligners": aligners_bench.aligners,
    "rules": rules_bench.rules,
    "phrase-lists": phrase_bench.lists,
    "phrase-sparse": phrase_bench.sparse,
    "forest-mert": forests_bench.mert,
    "oracles": forests_bench.oracles,
    "training": training_bench.whole_training,
    "growth": training_bench.growth,
    "regimes": tuning_bench.regimes,
    "online": online_bench.online,
    "online-settings": online_bench.settings,
    "online-tests": online_bench.tests,
    "shrink": online_bench.shrink,
    "online-sparse": online_bench.margins,
    "relative-margin": tuning_bench.relative_margin,
    "search-aware": searchaware_bench.main_table,
    "search-aware-hiero": searchaware_bench.hierarchical,
    "search-aware-bins": searchaware_bench.analyses,
    "search-aware-beams": searchaware_bench.beams,
    "search-aware-forced": forced_bench.forced,
    "search-aware-updates": forced_bench.updates,
    "search-aware-time": searchaware_bench.optimisers,
    "local-speed": local_bench.speed,
    "local-million": local_bench.million,
    "feedback": local_bench.feedback,
    "serve-load": serve_bench.load,
    "serve-kills": serve_bench.kills,
    "ray-overhead": ray_bench.overhead,
    "ray-simulation": ray_bench.simulation,
    "ray-scale": ray_bench.scale,
    "ray-bitext": bitext_bench.bitext,
    "structured-rivals": structured_bench.rivals,
    "structured-tagger": structured_bench.tagger,
    "structured-learners": structured_bench.learners,
    "structured-parser": structured_bench.parser,
}
NAMES = tuple(BENCHMARKS)
RESULTS = Path(__file__).resolve().parent / "results"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen benchmarks; return 1 where a claim is not kept or a rival's program fails."""
    parser = _parser()
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no benchmark named {unknown[0]!r}: there are {', '.join(NAMES)}")
    if options.list:
        print("\n".join(NAMES))
        return 0
    try:
        setting = Setting(quick=options.quick, rivals=Rivals.named())
    except ValueError as error:
        parser.error(str(error))
    if options.shared is not None:
        setting.shared = options.shared
    facts = machine()
    print(f"{facts['cores']} cores, load {facts['load']}, Python {facts['python']}\n")
    claims: list[Claim] = []
    failed = 0
    for name, outcome in _run(options.names or NAMES, setting):
        if isinstance(outcome, Skip):
            print(f"### {name}\n\nskipped: {outcome}\n", flush=True)
            continue
        if isinstance(outcome, RivalFailed):
            print(f"### {name}\n\nfailed: {outcome}\n", flush=True)
            failed += 1
            continue
        print(markdown(outcome), flush=True)
        save(options.results, name, outcome, options.quick)
        claims += outcome.claims
    broken = [claim for claim in claims if not claim.kept]
    say(f"{len(claims) - len(broken)} of {len(claims)} claims kept")
    for claim in broken:
        say(f"  not kept: {claim.text}: {claim.measured:.4g}, {claim.sense} {claim.target:.4g}")
    return 1 if broken or failed else 0


def _run(
    names: Sequence[str], setting: Setting
) -> Iterator[tuple[str, Outcome | Skip | RivalFailed]]:
    """Yield what each benchmark found, or why it could not run."""
    for name, work in BENCHMARKS.items():
        if name not in names:
            continue
        say(f"{name} …")
        began = time.perf_counter()
        try:
            yield name, work(setting)
        except (Skip, RivalFailed) as reason:
            yield name, reason
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
