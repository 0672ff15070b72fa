"""What translates: a model with weights, loaded whole and replaced whole."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from tunesmith.decode.model_weights import templates_of
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.errors import InputError
from tunesmith.serve.batching import How
from tunesmith.serve.filters import Expected
from tunesmith.serve.joined import Joined
from tunesmith.serve.settings import Paths
from tunesmith.serve.spans import Answer
from tunesmith.spaces.reading import read_weights
from tunesmith.training.model import read_model


@dataclass(frozen=True, eq=False)
class Engine:
    """A loaded model. Requests that began with one end with it, whatever is loaded meanwhile."""

    model: Model
    translator: Translator
    expected: Expected
    fingerprint: str
    local: Joined | None = None
    loaded: float = field(default_factory=time.time)

    @classmethod
    def load(cls, paths: Paths, held: Joined | None = None) -> Engine:
        """Load model, weights and index; raise if one is unusable or they do not fit together.

        An index that is `held` stays open.
        """
        given = None if paths.weights is None else read_weights(paths.weights)
        named = [] if given is None else templates_of(given)
        model = Model.load(paths.model, paths.kind, named=named)
        assert model.kind is not None
        for side in (model.source, model.target):
            if not side.language.isalpha():
                raise InputError(
                    "the model does not say its languages",
                    str(paths.model / "model.toml"),
                    remedy='write language = "de", for instance, into [source] and [target]',
                )
        translator = model.translator(given, paths.search)
        # The first sentence imports what prepares text: no request should wait for that.
        translator.batch(["1"], threads=1)
        local = None
        if held is not None:
            local = held.again(translator)
        elif paths.local is not None:
            local = Joined.open(paths.local, translator, paths.method)
        digests = read_model(paths.model).get("digests", {})
        return cls(
            model,
            translator,
            Expected(paths.model, model.kind),
            _fingerprint([digests, model.kind, dict(translator.weights), dict(paths.search)]),
            local,
        )

    @property
    def source(self) -> str:
        """The code of the source language."""
        return self.model.source.language.lower()

    @property
    def target(self) -> str:
        """The code of the target language."""
        return self.model.target.language.lower()

    def translate(self, lines: Sequence[str], how: How) -> list[Answer]:
        """Return the translations of lines; called by several threads."""
        if how.local and self.local is not None:
            return self.local.translate(lines, how.details)
        found = self.translator.batch(lines, threads=1, details=how.details, unique=True)
        return [Answer(each, self.translator) for each in found]


def _fingerprint(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
