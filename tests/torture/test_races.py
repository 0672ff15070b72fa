"""Real threads in a race: no sentence is lost or seen twice, and runs end."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from commands import Record, seconds
from twins.toy import POOR

from tunesmith import tune
from tunesmith.decode.translation import Model
from tunesmith.learn.master import Master
from tunesmith.learn.online import with_regime
from tunesmith.presets import make_tuner
from tunesmith.runs import RunDirectory
from tunesmith.sources import Live
from tunesmith.tuning.rounds import Following

pytestmark = pytest.mark.torture
SPAN = seconds("RACE_SECONDS", 20)
EPOCHS = 3


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, list[int]]]:
    """The pass and the sentences of every step that learners take."""
    taken: list[tuple[int, list[int]]] = []
    step = Following._step

    def noted(
        self: Following, learner: Any, found: Any, spent: float, batch: Any, epoch: int
    ) -> Any:
        taken.append((epoch, batch.tolist()))
        return step(self, learner, found, spent, batch, epoch)

    late = Master._walk_late

    def noted_late(self: Master, online: Any, batches: Any, epoch: int) -> Any:
        own = self._step

        def stepped(answers: Any, batch: Any) -> Any:
            taken.append((epoch, batch.tolist()))
            return own(answers, batch)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self, "_step", stepped, raising=False)
            return late(self, online, batches, epoch)

    monkeypatch.setattr(Following, "_step", noted)
    monkeypatch.setattr(Master, "_walk_late", noted_late)
    return taken


@pytest.mark.parametrize(
    "regime",
    [
        "delay=3,ordered=false",
        "batch=3,delay=4,ordered=false",
        "batch=7,delay=1,ordered=false",
        "delay=8",
        "shards=3,mix=2",
        "delay=3,ordered=false,stale=gradient",
        "batch=3,delay=4,ordered=false,stale=gradient",
    ],
)
def test_every_sentence_is_visited_once_in_each_pass(
    world: Path,
    tmp_path: Path,
    steps: list[tuple[int, list[int]]],
    regime: str,
    record_property: Record,
) -> None:
    model = Model.load(world / "model", "phrase")
    lines = (world / "dev.src").read_text().splitlines()
    references = [[text] for text in (world / "dev.tgt").read_text().splitlines()]
    until = time.monotonic() + SPAN
    runs = 0
    while time.monotonic() < until or runs == 0:
        threads = 1 + runs % 8
        source = Live(model, lines, references, k=20, threads=threads)
        tuner = with_regime(make_tuner("mira"), regime)
        events: list[dict[str, Any]] = []
        steps.clear()
        tune(
            source,
            "mira",
            "bleu:tokenize=none",
            start=POOR["phrase"],
            tuner=tuner,
            iterations=EPOCHS,
            threads=threads,
            run=tmp_path / str(runs),
            listen=events.append,
        )
        epochs = [event for event in events if event["event"] == "epoch"]
        assert [event["epoch"] for event in epochs] == list(range(1, EPOCHS + 1))
        assert {event["visits"] for event in epochs} == {len(lines)}
        visits = Counter((epoch, line) for epoch, batch in steps for line in batch)
        assert set(visits.values()) == {1}, visits.most_common(3)
        assert len(visits) == EPOCHS * len(lines)
        kept = RunDirectory(tmp_path / str(runs)).open().events()
        assert [event["event"] for event in kept] == [event["event"] for event in events]
        runs += 1
    record_property("times", runs)
    print(f"{regime}: {runs} runs of {EPOCHS} passes over {len(lines)} sentences")
