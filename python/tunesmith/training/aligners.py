"""Word alignment in both directions: by our own aligner or by other programs."""

from __future__ import annotations

import multiprocessing
import shutil
import subprocess
import sys
import sysconfig
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tunesmith import _core
from tunesmith._core import AtomicWriter, Lines
from tunesmith.errors import InputError
from tunesmith.training.stages import Progress

THOT = ("thot-fast_align", "hmm", "ibm1", "ibm2", "ibm3", "ibm4")
"""The models that sil-thot trains. Each one after `ibm1` starts from the one before it."""
ALIGNERS = ("fast_align", "eflomal", *THOT)


@dataclass(frozen=True)
class Aligned:
    """Files with one line of `source-target` links per sentence pair, one for each direction."""

    forward: Path
    backward: Path


@dataclass(frozen=True)
class FastAlign:
    """IBM model 2 with one parameter for its diagonal (Dyer, Chahuneau & Smith 2013)."""

    iterations: int = 5
    """Number of passes over the text; the last one finds the links."""
    alpha: float = 0.01
    """The prior count of every word pair."""
    null: float = 0.08
    """The probability that a word has no link."""
    tension: float = 4.0
    """How strongly links prefer the diagonal at the start; fitted from the second pass on."""
    max_words: int = 1000
    """Sentence pairs with a longer side get no links."""

    def __post_init__(self) -> None:
        if not (
            self.iterations > 0
            and self.alpha > 0
            and 0 < self.null < 1
            and self.tension > 0
            and 0 < self.max_words < 1 << 16
        ):
            raise InputError(
                f"options of fast_align: {self}",
                remedy="iterations, alpha, tension and max_words are positive, null lies between "
                "0 and 1, a sentence has at most 65,535 words",
            )


def align(
    source: Path,
    target: Path,
    out: Aligned,
    aligner: str = "fast_align",
    iterations: int = 5,
    *,
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Align two files of tokenised sentences and return facts about the alignment.

    `fast_align` is our own implementation. `hmm`, the IBM models and `thot-fast_align` come from
    sil-thot (the extra `thot`); `eflomal` is a separate program (the extra `eflomal`). Raise if the
    name is unknown or the program is not installed.
    """
    check_aligner(aligner)
    facts: dict[str, Any] = {"aligner": aligner}
    if aligner == "fast_align":
        options = FastAlign(iterations)
        facts |= fast_align(source, target, out, options, threads=threads, progress=progress)
    elif aligner == "eflomal":
        _eflomal(source, target, out)
    else:
        _thot(source, target, out, aligner.removeprefix("thot-"), iterations)
    return facts


def check_aligner(name: str) -> None:
    """Raise if a name is not in `ALIGNERS`."""
    if name not in ALIGNERS:
        raise InputError(f"no aligner named {name!r}", remedy=f"use one of {', '.join(ALIGNERS)}")


def fast_align(
    source: Path,
    target: Path,
    out: Aligned,
    options: FastAlign | None = None,
    *,
    threads: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Align two files; return the number of pairs, of pairs without links, and the tensions.

    Pairs without links are counted by reason. The links do not depend on `threads`. Raise if the
    files differ in length or are not UTF-8.
    """
    pairs, empty, long, tensions = _core.fast_align(
        source,
        target,
        out.forward,
        out.backward,
        **asdict(options or FastAlign()),
        threads=threads,
        progress=progress,
    )
    skipped = {"an empty side": empty, "too long": long}
    return {
        "pairs": pairs,
        "skipped": {reason: count for reason, count in skipped.items() if count},
        "tensions": list(tensions),
    }


def _thot(source: Path, target: Path, out: Aligned, model: str, iterations: int) -> None:
    if find_spec("thot") is None:
        raise InputError(
            f"{model} needs sil-thot", remedy="pip install 'tunesmith[thot]', or use fast_align"
        )
    jobs = [
        (source, target, out.forward, model, iterations, False),
        (target, source, out.backward, model, iterations, True),
    ]
    # Processes, not threads: the library holds the interpreter lock. Spawned, because a fork of a
    # process with threads may hang.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as workers:
        for job in [workers.submit(_one_direction, *arguments) for arguments in jobs]:
            job.result()


def _one_direction(
    given: Path, produced: Path, out: Path, model: str, iterations: int, flip: bool
) -> None:
    """Train a model of `produced` given `given` and write the best links, source first."""
    import thot.alignment as thot

    ladder: dict[str, list[Any]] = {
        "fast_align": [thot.FastAlignModel],
        "ibm1": [thot.Ibm1AlignmentModel],
        "ibm2": [thot.Ibm1AlignmentModel, thot.Ibm2AlignmentModel],
        "hmm": [thot.Ibm1AlignmentModel, thot.HmmAlignmentModel],
        "ibm3": [thot.Ibm1AlignmentModel, thot.HmmAlignmentModel, thot.Ibm3AlignmentModel],
        "ibm4": [thot.Ibm1AlignmentModel, thot.HmmAlignmentModel, thot.Ibm4AlignmentModel],
    }
    left = [line.split() for line in Lines(str(given))]
    right = [line.split() for line in Lines(str(produced))]
    trained: Any = None
    for stage in ladder[model]:
        trained = stage() if trained is None else stage(trained)
        if trained.num_sentence_pairs == 0:
            for pair in zip(left, right, strict=True):
                trained.add_sentence_pair(*pair)
        trained.variational_bayes = model == "fast_align"
        trained.start_training()
        for _ in range(iterations):
            trained.train()
        trained.end_training()
    with AtomicWriter(str(out)) as file:
        for _, matrix in trained.get_best_alignments(left, right):
            rows, columns = matrix.to_numpy().nonzero()
            links = zip(*((columns, rows) if flip else (rows, columns)), strict=True)
            file.write(" ".join(f"{i}-{j}" for i, j in sorted(links)) + "\n")


def _eflomal(source: Path, target: Path, out: Aligned) -> None:
    places = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    found = shutil.which("eflomal-align") or next(
        (path for place in places if (path := shutil.which("eflomal-align", path=place))), None
    )
    if found is None:
        raise InputError("eflomal is not installed", remedy="pip install 'tunesmith[eflomal]'")
    result = subprocess.run(
        [found, "-s", source, "-t", target, "-f", out.forward, "-r", out.backward, "--overwrite"],
        capture_output=True,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise InputError(
            f"eflomal failed: {result.stderr.strip().splitlines()[-1:]}",
            str(source),
            remedy="try fast_align",
        )
