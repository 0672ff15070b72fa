"""A decoder of the toy language pair, and tuning with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tunesmith import Result, tune
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import Model
from tunesmith.learn.online import Online
from tunesmith.sources import Live
from twins.toy import POOR

METRIC = "bleu:tokenize=none"


def source(world: Path, kind: Kind = "phrase", *templates: str, **more: Any) -> Live:
    model = Model.load(world / "model", kind, named=templates)
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    return Live(model, lines, [[text] for text in references], **more)


def learn(world: Path, tuner: Online, *templates: str, **more: Any) -> Result:
    threads = more.pop("threads", 0)
    start = POOR[more.get("kind", "phrase")]
    made = source(world, more.pop("kind", "phrase"), *templates, k=30, threads=threads)
    return tune(made, "mira", METRIC, start=start, tuner=tuner, threads=threads, **more)
