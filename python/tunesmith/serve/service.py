"""The service behind the routes: model, queue, store and figures, started and stopped together."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any

from tunesmith.errors import InputError
from tunesmith.serve.batching import Batcher, How
from tunesmith.serve.engine import Engine
from tunesmith.serve.measures import Measures
from tunesmith.serve.settings import RequestError, Settings, busy
from tunesmith.serve.spans import Answer, located
from tunesmith.serve.store import Correction, Store
from tunesmith.serve.text import Pieces, cut, from_html, to_html

log = logging.getLogger("tunesmith.serve")


@dataclass(frozen=True)
class Sentence:
    """A sentence of a request with its answer: from the model, or from a correction."""

    source: str
    text: str
    answer: Answer | None
    memory: int | None = None

    def described(self, nbest: int) -> dict[str, Any]:
        """Return everything about the sentence."""
        if self.answer is None:
            blank: dict[str, list[Any]] = {
                name: []
                for name in ("words", "target_words", "alignment", "phrases", "nbest", "neighbours")
            }
            return {
                **blank,
                **{"source": self.source, "text": self.text, "memory": self.memory, "score": None},
                **{"source_places": None, "target_places": None, "pieces": 0},
                **{"moved": {}, "seconds": {}},
            }
        made = self.answer.described(nbest)
        places = located(made["words"], self.source)
        return {**made, "source": self.source, "memory": None, "source_places": places}


@dataclass(frozen=True)
class Text:
    """A text of a request, translated."""

    pieces: Pieces
    sentences: list[Sentence]
    html: bool

    def filled(self, choose: Callable[[Sentence], str]) -> str:
        """Return the text with a translation chosen for each sentence."""
        chosen = [choose(each) for each in self.sentences]
        return self.pieces.filled([to_html(each) for each in chosen] if self.html else chosen)

    @property
    def text(self) -> str:
        """The translation of the text."""
        return self.filled(lambda sentence: sentence.text)

    def alternatives(self, count: int) -> list[str]:
        """Return other translations of the text: the next best of each sentence, in turn."""
        made = []
        for rank in range(1, count + 1):
            lists = [[s.text] if s.answer is None else s.answer.texts for s in self.sentences]
            if all(len(each) <= rank for each in lists):
                break
            texts = iter(each[min(rank, len(each) - 1)] for each in lists)
            made.append(self.filled(lambda _, texts=texts: next(texts)))  # type: ignore[misc]
        return made


class Service:
    """All parts of a running service.

    The constructor loads everything, and raises if something is unusable. Methods run in the event
    loop, except `close`.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.engine = Engine.load(settings.paths)
        limits = settings.limits
        self.store: Store | None = None
        if settings.paths.store is not None:
            self.store = Store(settings.paths.store, limits.writes)
        # One thread changes the index, in the order of the changes in the store.
        self._indexing = ThreadPoolExecutor(1, "index")
        self._reloading = False
        self.measures = Measures(self._figures)
        self.batcher: Batcher[Answer] = Batcher(
            lambda lines, how: self.engine.translate(lines, how),
            workers=settings.workers or os.cpu_count() or 1,
            batch=limits.batch,
            queue=limits.queue,
            observe=self.measures.batch_done,
        )
        self._compare()

    def close(self) -> None:
        """Finish what was begun: translations, writes, changes of the index."""
        self.batcher.close()
        self._indexing.shutdown()
        if self.engine.local is not None:
            self.engine.local.close()
        if self.store is not None:
            self.store.close()

    async def translate(
        self,
        texts: Sequence[str],
        how: How,
        *,
        html: bool = False,
        memory: bool = True,
    ) -> tuple[list[Text], float]:
        """Return texts translated, and the seconds that they waited for a worker."""
        limits = self.settings.limits
        known: list[tuple[int, str] | None] = [None] * len(texts)
        memory = memory and self.settings.feedback.memory and self.store is not None
        if memory and not html:
            # A whole text may have been corrected at once.
            known = self._remembered([text.strip() for text in texts])
        cuts = []
        for text, whole in zip(texts, known, strict=True):
            if whole is not None:
                core = text.strip()
                head, _, tail = text.partition(core)
                cuts.append(Pieces((core,), (head, tail)))
            else:
                cuts.append(cut(text, limits, html=html))
        total = sum(len(each.sentences) for each in cuts)
        if total > limits.sentences:
            raise RequestError(
                422,
                "too_many_sentences",
                f"{total:,} sentences, but the limit is {limits.sentences:,}: send them in parts",
            )
        sources = [from_html(s) if html else s for each in cuts for s in each.sentences]
        known = self._remembered(sources) if memory else [None] * total
        asked = [source for source, found in zip(sources, known, strict=True) if found is None]
        answers, waited = await self._answers(asked, how)
        self.measures.memory.inc(total - len(asked))
        rest = iter(answers)
        sentences = iter(
            [
                _sentence(source, next(rest))
                if found is None
                else Sentence(source, found[1], None, found[0])
                for source, found in zip(sources, known, strict=True)
            ]
        )
        made = [Text(each, [next(sentences) for _ in each.sentences], html) for each in cuts]
        return made, waited

    async def _answers(self, lines: Sequence[str], how: How) -> tuple[list[Answer], float]:
        ticket = self.batcher.submit(lines, how)
        try:
            return await asyncio.wrap_future(ticket.future), ticket.waited or 0.0
        except asyncio.CancelledError:
            # The time is up or the client is gone: the rest need not be translated.
            self.batcher.cancel(ticket)
            raise

    def _remembered(self, sources: Sequence[str]) -> list[tuple[int, str] | None]:
        assert self.store is not None
        return self.store.remembered(sources)

    async def reload(self) -> dict[str, Any]:
        """Load the files of the command line again; requests go on with the old model meanwhile."""
        if self._reloading:
            raise busy("reloading", "the model is being reloaded already", 409)
        self._reloading = True
        begun = perf_counter()
        try:
            engine = await asyncio.to_thread(Engine.load, self.settings.paths, self.engine.local)
        except (InputError, OSError) as error:
            log.error("reload failed: %s", error)
            raise RequestError(
                500,
                "reload_failed",
                "the files cannot be loaded, and the old model goes on: see the log of the service",
            ) from None
        finally:
            self._reloading = False
        if (engine.source, engine.target) != (self.engine.source, self.engine.target):
            raise RequestError(
                409, "other_languages", "a model of other languages: start another service for it"
            )
        changed = engine.fingerprint != self.engine.fingerprint
        self.engine = engine
        self._compare()
        return {"model": engine.fingerprint, "changed": changed, "seconds": perf_counter() - begun}

    def index(self, change: Correction | None, number: int) -> None:
        """Bring a changed correction into the index, or out of it."""
        local = self.engine.local
        if local is None:
            return
        accepted = change is not None and change.status == "accepted"
        pair = (change.source, change.translation) if change is not None else ("", "")

        def work() -> None:
            try:
                if accepted:
                    local.add({number: pair})
                else:
                    local.remove([number])
            except Exception:
                # The store has it: the next start adds what is missing.
                log.exception("correction %d: the index could not be changed", number)
                self.measures.index_errors.inc()

        self._indexing.submit(work)

    def _compare(self) -> None:
        """Add to the index what only the store has, and remove what only the index has."""
        local = self.engine.local
        if local is None or self.store is None:
            return
        wanted, held = self.store.accepted(), local.held()
        if gone := sorted(held - wanted.keys()):
            local.remove(gone)
        if missing := {number: pair for number, pair in wanted.items() if number not in held}:
            local.add(missing)

    def _figures(self) -> dict[str, tuple[str, float]]:
        figures = {
            "tunesmith_waiting_sentences": ("Sentences in the queue.", float(self.batcher.waiting)),
            "tunesmith_model_loaded_seconds": ("When the model was loaded.", self.engine.loaded),
        }
        if self.engine.local is not None:
            figures["tunesmith_unread_examples"] = (
                "Sentences translated with the common weights: their examples are damaged.",
                float(self.engine.local.unread),
            )
        if self.store is not None:
            counts: dict[str, int] = {}
            # Figures are wanted most when something is damaged.
            with suppress(RequestError):
                counts = self.store.counts()
            for status, count in counts.items():
                figures[f"tunesmith_corrections_{status}"] = ("Corrections kept.", float(count))
        return figures


def _sentence(source: str, answer: Answer) -> Sentence:
    return Sentence(source, answer.found.text, answer)
