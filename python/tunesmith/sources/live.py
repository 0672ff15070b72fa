"""A decoder of ours, in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from math import inf
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tunesmith import _core
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.engines import THREADS, Crew, Engine, Pool, Worker, begins, reads
from tunesmith.errors import InputError, no_feature
from tunesmith.learn.selectors import Violations
from tunesmith.sources.base import LIST, Source, refuse_empty
from tunesmith.sources.pairs import Pairs
from tunesmith.spaces import Bins, Forests, Pools, Spaces, references_of
from tunesmith.spaces.bins import Partial, Ranked

SpaceName = Literal["list", "forest", "bins"]
BLOCK = 20
"""Sentences that a worker decodes at a time, at most."""
BLOCKS = 100
"""Blocks of a text, at least: at the end, workers wait for the last ones."""
DENSITY = 50.0
"""Edges of a forest that tuning sees for each word of its best string."""


@dataclass
class Live(Source):
    """A decoder in this process. The model is shared by all threads.

    References are prepared as the model's target text was, so that hypotheses can be compared with
    them word by word; with `tokenized` everything is taken as it is. Forests of all sentences are
    pruned to the best `density` edges for each word (None: not at all): those of several decodings
    are kept and joined, and their size is what MERT costs.

    With bins, `partial` says how partial translations are scored, `ranked` whether a bin is ranked
    by the score of what is translated or by the estimate that the search prunes by, and `ways` how
    many derivations of each hypothesis there are.
    """

    model: Model
    lines: Sequence[str]
    raw_references: Sequence[str | Sequence[str]]
    k: int | None = None
    """Length of lists; by default what the tuner wants, 100 where it does not say."""
    space: SpaceName | None = None
    """What tuners see of a sentence; by default what the tuner learns from, lists for most."""
    settings: Mapping[str, float] = field(default_factory=dict)
    tokenized: bool = False
    threads: int = 0
    density: float | None = DENSITY
    partial: Partial | str = Partial.POTENTIAL
    ranked: Ranked | str = Ranked.ESTIMATE
    ways: int = 1
    engine: Engine = THREADS
    """Whose workers decode the corpus."""

    follows = True
    spreads = True

    def __post_init__(self) -> None:
        refuse_empty(self.lines)
        if len(self.lines) != len(self.raw_references):
            raise InputError(
                f"{len(self.lines)} sentences, but references for {len(self.raw_references)}",
                remedy="give files of the same number of lines",
            )
        prepare = (lambda text: text) if self.tokenized else self.model.target.prepare
        self.references = [
            [prepare(text) for text in references_of(texts)] for texts in self.raw_references
        ]
        # Tuners change the size of weights, and with it what a difference of scores means. A
        # configuration of Moses has a threshold of its own, which whoever decodes with the tuned
        # weights will have too.
        known = [name for name, _ in self.model.decoder.settings]
        own = "threshold" not in known or "threshold" in self.model.settings
        wide = {} if own else {"threshold": inf}
        self.settings = {**wide, **self.settings}
        shown = self.model.translator(tokenized=self.tokenized)
        self.sources = shown.prepared(self.lines)

    @property
    def prunes(self) -> bool:
        """Whether weights of another size find other hypotheses: the beam has a threshold."""
        return {**self.model.settings, **self.settings}.get("threshold", inf) < inf

    def suited(self, space: str) -> Live:
        """Return the source with the kind of space that a tuner learns from."""
        if self.space not in (None, space):
            raise InputError(
                f"the tuner learns from {space}, not from {self.space}s",
                remedy=f"leave the space out, or give {space}",
            )
        return replace(self, space="bins" if space == "bins" else self.space)

    def dense(self) -> Live:
        """Return the source with the model's own features, without templates for tuning."""
        return replace(self, model=self.model.without_templates())

    def resume_key(self) -> dict[str, object]:
        """Return settings that must be the same when a run is resumed, apart from the sentences."""
        return {
            "k": self.k,
            "space": self.space or "list",
            "settings": dict(self.settings),
            "tokenized": self.tokenized,
            "density": self.density,
            "bins": [str(self.partial), str(self.ranked), self.ways],
            "templates": list(self.model.templates or ()),
        }

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        """Translate all sentences."""
        if self.engine is not THREADS:
            return self._decode_apart(weights, k)
        return self._decode(self._translator(weights), self.sources, self.references, k)

    def _translator(self, weights: Mapping[str, float]) -> Translator:
        return self.model.translator(weights, self.settings, tokenized=True, zero=True)

    def part(self, sentences: Sequence[int]) -> Live:
        """Return the prepared sentences with the same model, without the raw text."""
        found = copy(self)
        found.sources = [self.sources[i] for i in sentences]
        found.references = [self.references[i] for i in sentences]
        found.lines, found.raw_references = (), ()
        return found

    def decode_parts(
        self, weights: Mapping[str, float], ends: Sequence[int], pool: Pool
    ) -> list[Spaces]:
        """Translate blocks of sentences side by side."""
        translator = self._translator(weights)
        spans = [slice(start, end) for start, end in pairwise([0, *ends])]
        spans = spans or [slice(0, 0)]
        # Threads that blocks leave over work within blocks.
        within = copy(self)
        within.threads = -(-(pool.threads or os.cpu_count() or 1) // len(spans))

        def found(span: slice) -> Spaces:
            return within._decode(translator, self.sources[span], self.references[span], None)

        return list(pool.map(found, spans))

    def _decode(
        self,
        translator: Translator,
        lines: Sequence[str],
        references: Sequence[Sequence[str]],
        k: int | None,
    ) -> Spaces:
        chosen = k or self.k or LIST
        found = self._found(translator, lines, references, chosen, as_lists=k is not None)
        if self.density is None:
            return found
        return found.pruned(translator.weights, self.density, self.threads)

    def on(self, engine: Engine) -> Live:
        """Return the source with workers of an engine."""
        return self if engine is self.engine else replace(self, engine=engine)

    @cached_property
    def _crew(self) -> Crew:
        # Workers are sent sentences when they are to decode them.
        bare = copy(self)
        bare.lines, bare.raw_references, bare.sources, bare.references = (), (), [], []
        return self.engine.crew(bare, self.threads)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in self.__dict__.items() if name != "_crew"}
        # A worker decodes itself.
        return {**state, "engine": THREADS}

    def _decode_apart(self, weights: Mapping[str, float], k: int | None) -> Spaces:
        """Let workers decode blocks of sentences, and put these together."""
        # Once to each worker, not with each block: there may be millions.
        self._crew.ask_all(_take, [(dict(weights),)] * self._crew.size)
        size = min(max(len(self.sources) // BLOCKS, 1), BLOCK)
        blocks = [slice(at, at + size) for at in range(0, len(self.sources), size)]
        asked = [(k, self.sources[each], self.references[each]) for each in blocks]
        found = list(self._crew.map(_decode, asked))
        return type(found[0]).join(found)

    def thinned(self, kept: npt.NDArray[np.bool_]) -> Live:
        """Return as many sentences with the same model; those not kept are empty."""
        thin, nothing = copy(self), list[str]()
        both = list(zip(kept, self.sources, self.references, strict=True))
        thin.sources = [source if own else "" for own, source, _ in both]
        thin.references = [references if own else nothing for own, _, references in both]
        # What these were prepared from.
        thin.lines, thin.raw_references = (), ()
        return thin

    def subset(self, sentences: Sequence[int]) -> Live:
        """Return some of the sentences, with the same model."""
        return replace(
            self,
            lines=[self.lines[i] for i in sentences],
            raw_references=[self.raw_references[i] for i in sentences],
        )

    @property
    def kept_weights(self) -> Mapping[str, float]:
        """Weights that the model itself wants to stay."""
        return self.model.fixed

    def named_features(self, names: Sequence[str]) -> list[str]:
        """Return the model's dense features and the named ones; raise if a name is impossible."""
        dense = self.model.decoder.dense
        for name in self.model.absent:
            if name in names:
                raise no_feature(name, [each for each in dense if each not in self.model.absent])
        sparse = [name for name in names if name not in dense]
        unknown = {*self.model.unknown(dict.fromkeys(sparse, 1.0))}
        if self.model.templates is not None:
            # Only dense features have names without a prefix.
            unknown |= {name for name in sparse if ":" not in name}
        for name in sparse:
            if name in unknown:
                raise no_feature(name, dense)
        return [*dense, *names]

    @property
    def all_features(self) -> bool:
        """Templates may find more features in later decodings."""
        return False

    @property
    def always(self) -> frozenset[str]:
        """The dense features."""
        return frozenset(self.model.decoder.dense)

    def forced(self, wanted: Violations) -> Pairs:
        """Return a pair for each reference; raise for hierarchical models."""
        return Pairs(self, wanted)

    def following(self, learner: _core.Learner) -> Translator:
        """Return a translator with the weights that a learner has now."""
        return self.model.following(learner, self.settings)

    def found(self, translator: Translator, sentences: Sequence[int], k: int) -> Spaces:
        """Return what a translator that follows a learner makes of some sentences."""
        lines = [self.sources[i] for i in sentences]
        references = [self.references[i] for i in sentences]
        if not all(references):
            raise RuntimeError("a worker was asked for a sentence that another one holds")
        return self._found(translator, lines, references, self.k or k, as_lists=False)

    def _found(
        self,
        translator: Translator,
        lines: Sequence[str],
        references: Sequence[Sequence[str]],
        k: int,
        *,
        as_lists: bool,
    ) -> Spaces:
        if self.space == "forest" and not as_lists:
            forests = translator.forests(lines, threads=self.threads)
            return Forests(forests.core, references, lines)
        if self.space == "bins" and not as_lists:
            bins = translator.bins(
                lines, k, ways=self.ways, ranked=self.ranked, threads=self.threads
            )
            return Bins.of_lines(bins.core, references, lines, self.partial)
        lists = translator.nbest(lines, k, threads=self.threads)
        return Pools(lists.core, references, lines)


@begins
def _take(worker: Worker, weights: Mapping[str, float]) -> None:
    """Take the weights of the next decoding."""
    source: Live = worker.share
    worker.kept["translator"] = source._translator(weights)


@reads
def _decode(
    worker: Worker, k: int | None, lines: Sequence[str], references: Sequence[Sequence[str]]
) -> Spaces:
    """Decode a block of sentences."""
    source: Live = worker.share
    return source._decode(worker.kept["translator"], lines, references, k)
