"""The model that a command names: a model directory, or a configuration of Moses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith.cli import options as o
from tunesmith.cli.console import busy, note
from tunesmith.decode.translation import KINDS, Model
from tunesmith.errors import InputError


def check_model(model: Path | None, moses: Path | None, kind: str | None) -> None:
    """Raise unless exactly one model is named, and for an unknown kind of rules."""
    if (model is None) == (moses is None):
        raise InputError("one model is wanted", remedy="name MODEL or --moses INI, one of them")
    o.one_of("kind", kind, tuple(KINDS))


def load_model(
    model: Path | None,
    moses: Path | None,
    kind: str | None,
    cache: Path | None,
    named: Sequence[str],
) -> Model:
    """Return the model; templates in `named` are turned on at once, so that files are read once."""
    with busy("loading"):
        if moses is not None:
            return Model.of_moses(moses, cache, note)
        assert model is not None
        return Model.load(model, kind, named=named)  # type: ignore[arg-type]
