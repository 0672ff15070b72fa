"""Translate, tune and serve in turn for a given time; the memory of the process must stay flat.

python tests/torture/soak.py --seconds 600
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from recording import write
from serving import serving
from twins.toy import POOR, make_world

from tunesmith import Weights, tune
from tunesmith.decode.translation import Model
from tunesmith.presets import make_tuner
from tunesmith.serve import Feedback, Paths, Settings
from tunesmith.sources import Live

# The first part of the time is for caches and arenas to fill.
WARM = 0.25
# Growth of the median from the second to the last quarter of the time.
MOST = 1.10
SLACK = 8 << 20


def resident() -> int:
    """Return the bytes of this process that are in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def handles() -> int:
    """Return how many files are open."""
    return len(list(Path("/proc/self/fd").iterdir()))


def translate(world: Path, kind: str) -> None:
    """Load a model and translate a text with it, with lists."""
    translator = Model.load(world / "model", kind).translator(POOR[kind])  # type: ignore[arg-type]
    lines = (world / "test.src").read_text().splitlines()
    assert len(list(translator.translate(lines))) == len(lines)


def tuned(world: Path, preset: str) -> None:
    """Tune with a decoder, in a run directory."""
    model = Model.load(world / "model", "phrase")
    lines = (world / "dev.src").read_text().splitlines()
    references = [[text] for text in (world / "dev.tgt").read_text().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        tune(
            Live(model, lines, references, k=20, threads=2),
            preset,
            "bleu:tokenize=none",
            start=POOR["phrase"],
            tuner=make_tuner(preset),
            iterations=2,
            threads=2,
            run=Path(folder) / "run",
        )


def served(world: Path, store: Path, turn: int) -> None:
    """Start a service, translate and correct, and stop it."""
    Weights(POOR["phrase"]).save(world / "served.toml")
    paths = Paths(world / "model", weights=world / "served.toml", kind="phrase", store=store)
    settings = Settings(paths, feedback=Feedback(open=True, rate=10**6, memory=True))
    with serving(settings) as running, running.client() as client:
        for number in range(30):
            answer = client.post("/v1/translate", json={"text": "das kleine haus ein buch sieht"})
            assert answer.status_code == 200, answer.text
            told = {
                "source": "das kleine haus ein buch sieht",
                "translation": f"the small house sees a book {turn % 5} {number % 7}",
            }
            answer = client.post("/v1/feedback", json=told)
            assert answer.status_code in (201, 429), answer.text


def soak(seconds: float, out: Path) -> int:
    """Work until the time is over; return 1 if memory or open files grew."""
    world = make_world(out)
    began = time.monotonic()
    rows: list[tuple[float, int, int]] = []
    turn = 0
    print(f"{'turn':>6} {'seconds':>8} {'MB':>8} {'files':>6}", flush=True)
    while time.monotonic() - began < seconds:
        for kind in ("phrase", "hiero"):
            translate(world, kind)
        for preset in ("mira", "mert"):
            tuned(world, preset)
        # A store of its own for some turns: it grows with what is sent.
        served(world, out / f"store-{turn // 50}", turn)
        gc.collect()
        turn += 1
        rows.append((time.monotonic() - began, resident(), handles()))
        if turn % 10 == 1:
            spent, bytes_, files = rows[-1]
            print(f"{turn:>6} {spent:>8.0f} {bytes_ / 1e6:>8.1f} {files:>6}", flush=True)
    warm = [row for row in rows if row[0] >= WARM * seconds] or rows[-1:]
    third = max(len(warm) // 3, 1)
    early, late = (
        statistics.median(row[1] for row in part) for part in (warm[:third], warm[-third:])
    )
    opened = warm[0][2], warm[-1][2]
    print(f"{turn} turns: {early / 1e6:.1f} MB, then {late / 1e6:.1f} MB; open files {opened}")
    grew = late > MOST * early and late > early + SLACK
    failed = grew or opened[1] > opened[0] + 4
    write("soak", [_told(turn, rows[-1][0], (early, late), opened, failed)])
    return 1 if failed else 0


def _told(
    turns: int, spent: float, medians: tuple[float, float], opened: tuple[int, int], failed: bool
) -> dict[str, object]:
    megabytes = ", then ".join(f"{each / 1e6:.1f} MB" for each in medians)
    files = " and ".join(map(str, opened))
    return {
        "what": "memory and open files do not grow while translating, tuning and serving",
        "cases": 1,
        "times": turns,
        "s": round(spent),
        "outcome": f"{'failed' if failed else 'passed'}: {megabytes}; {files} open files",
    }


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=600)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        sys.exit(soak(asked.seconds, Path(folder)))


if __name__ == "__main__":
    main()
