"""The service behind the routes: model, queue, store and figures, started and stopped together."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeVar

from tunesmith.errors import InputError
from tunesmith.serve.batching import Batcher, How
from tunesmith.serve.engine import Engine
from tunesmith.serve.measures import Measures
from tunesmith.serve.settings import RequestError, Settings, busy
from tunesmith.serve.spans import Answer, located
from tunesmith.serve.store import Correction, Store
from tunesmith.serve.text import Pieces, cut, from_html, to_html

log = logging.getLogger("tunesmith.serve")
Changed = TypeVar("Changed")


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
        self._reloading: Future[dict[str, Any]] | None = None
        self.measures = Measures(self._figures)
        self.batcher: Batcher[tuple[Engine, How], Answer] = Batcher(
            lambda lines, way: way[0].translate(lines, way[1]),
            workers=settings.workers or os.cpu_count() or 1,
            batch=limits.batch,
            queue=limits.queue,
            observe=self.measures.batch_done,
        )
        self._compare()

    def close(self) -> None:
        """Finish what was begun: translations, writes, changes of the index."""
        self.batcher.close()
        # What is written to the store is brought into the index.
        if self.store is not None:
            self.store.writer.close()
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
        limits, engine = self.settings.limits, self.engine
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
        answers, waited = await self._answers(asked, engine, how)
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

    async def _answers(
        self, lines: Sequence[str], engine: Engine, how: How
    ) -> tuple[list[Answer], float]:
        ticket = self.batcher.submit(lines, (engine, how))
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
        """Load the files of the command line again; requests go on with the old model meanwhile.

        It is finished even if the client does not wait for it.
        """
        if self._reloading is not None and not self._reloading.done():
            raise busy("reloading", "the model is being reloaded already", 409)
        self._reloading = self._indexing.submit(self._reload)
        return await asyncio.shield(asyncio.wrap_future(self._reloading))

    def _reload(self) -> dict[str, Any]:
        """Load the files again; in the thread that changes the index."""
        begun, old = perf_counter(), self.engine
        try:
            engine = Engine.load(self.settings.paths, old.local)
            if (engine.source, engine.target) != (old.source, old.target):
                raise RequestError(
                    409,
                    "other_languages",
                    "a model of other languages: start another service for it",
                )
            if old.local is not None and not old.local.shares(engine.local):
                # Searches in it go on.
                old.local.close()
            self.engine = engine
        except (InputError, OSError) as error:
            log.error("reload failed: %s", error)
            raise RequestError(
                500,
                "reload_failed",
                "the files cannot be loaded, and the old model goes on: see the log of the service",
            ) from None
        try:
            self._compare()
        except InputError:
            # The store has them: the next reload or start adds what is missing.
            log.exception("the index could not be compared with the store")
            self.measures.index_errors.inc()
        changed = engine.fingerprint != old.fingerprint
        return {"model": engine.fingerprint, "changed": changed, "seconds": perf_counter() - begun}

    def followed(self, change: Future[Changed], number: int | None = None) -> Future[Changed]:
        """Bring a change of the store into the index, also if its client does not wait for it.

        Without its number, the change is a new correction.
        """
        change.add_done_callback(lambda done: self._follow(done, number))
        return change

    def _follow(self, done: Future[Any], number: int | None) -> None:
        # Called in the thread of the writer, in the order of the changes on disk.
        if done.cancelled() or done.exception() is not None or not done.result():
            return
        found = done.result()
        change = found if isinstance(found, Correction) else None
        changed = number if change is None else change.id
        assert changed is not None
        self._indexing.submit(self._index, changed, change)

    def _index(self, number: int, change: Correction | None) -> None:
        """Bring a changed correction into the index, or out of it."""
        local = self.engine.local
        if local is None:
            return
        try:
            if change is not None and change.status == "accepted":
                local.add({number: (change.source, change.translation)})
            else:
                local.remove([number])
        except Exception:
            # The store has it: the next start adds what is missing.
            log.exception("correction %d: the index could not be changed", number)
            self.measures.index_errors.inc()

    def _compare(self) -> None:
        """Add to the index what only the store has, and remove what only the index has."""
        if self.engine.local is not None and self.store is not None:
            self.engine.local.compare(self.store.accepted())

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
