"""The service's use of local training: the index of examples, joined with the store of feedback.

Feedback is true in the store. The index holds the accepted corrections as examples whose numbers
are made of the correction's number and text, so that an index that was used with another store is
recognised. At the start store and index are compared, and only differences are added or removed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunesmith.decode.translator import Translator
from tunesmith.errors import InputError
from tunesmith.local import Index, Local, LocalTranslation, LocalTranslator
from tunesmith.local.translating import UNCHANGED, LocalWeights
from tunesmith.serve.examples import correction_of, example_of
from tunesmith.serve.spans import Answer

log = logging.getLogger("tunesmith.serve")


class Joined:
    """An index with the translator that uses it."""

    def __init__(self, index: Index, translator: Translator, local: Local) -> None:
        self._index, self._translator, self._chosen = index, translator, local
        self._local = LocalTranslator(translator, index, local)
        # The examples of corrections.
        self._held = {number: each for each in index.ids if (number := correction_of(each))}
        self.unread = 0
        """Sentences that got the common weights because their examples could not be read."""

    @classmethod
    def open(cls, folder: Path, translator: Translator, method: str | None) -> Joined:
        """Open an index; raise if it is damaged or was made with something else."""
        local = Local() if method is None else Local(method)
        return cls(Index.open(folder, translator), translator, local)

    def again(self, translator: Translator) -> Joined:
        """Return the index for a model that was loaded again; raise if they do not fit.

        An index that was built again is opened; the old one is then closed by the caller.
        """
        if not self._index.is_current():
            return Joined(Index.open(self._index.folder, translator), translator, self._chosen)
        self._index.check(translator)
        return Joined(self._index, translator, self._chosen)

    def shares(self, other: Joined | None) -> bool:
        """Return whether another one uses the same open index."""
        return other is not None and self._index is other._index

    def close(self) -> None:
        """Let others write the index."""
        self._index.close()

    def translate(self, lines: Sequence[str], details: int) -> list[Answer]:
        """Return translations of lines, each with weights of its own.

        A sentence whose examples cannot be read has the common weights.
        """
        learnt = [self._learnt(line) for line in lines]
        found = self._local.batch(lines, threads=1, details=details, unique=True, learnt=learnt)
        return [_answer(each, self._translator) for each in found]

    def _learnt(self, line: str) -> LocalWeights:
        try:
            return self._local.learn([line], threads=1)[0]
        except InputError as error:
            # If it is the text that is bad, translating it says so.
            log.error("no weights were learnt for a sentence: %s", error)
            self.unread += 1
            return UNCHANGED

    def compare(self, wanted: Mapping[int, tuple[str, str]]) -> None:
        """Hold these corrections, by number: source and translation; and no others."""
        kept = {number: example_of(number, *pair) for number, pair in wanted.items()}
        if gone := [number for number, each in self._held.items() if kept.get(number) != each]:
            self.remove(gone)
        if missing := {number: pair for number, pair in wanted.items() if number not in self._held}:
            self.add(missing)

    def add(self, corrections: Mapping[int, tuple[str, str]]) -> None:
        """Add accepted corrections by number; those that are there are passed over."""
        new = {number: pair for number, pair in corrections.items() if number not in self._held}
        made = {number: example_of(number, *pair) for number, pair in new.items()}
        added = self._index.add(
            self._translator,
            [source for source, _ in new.values()],
            [[translation] for _, translation in new.values()],
            list(made.values()),
        )
        # A correction without a word of the model makes no example.
        there = set(added)
        self._held |= {number: each for number, each in made.items() if each in there}

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove corrections by number; those that are not there are passed over."""
        there = [number for number in numbers if number in self._held]
        self._index.remove([self._held[number] for number in there])
        for number in there:
            del self._held[number]


def _answer(found: LocalTranslation, translator: Translator) -> Answer:
    return Answer(
        found,
        translator,
        found.neighbours,
        found.moved,
        {"retrieval": found.retrieval_seconds, "training": found.training_seconds},
    )
