"""The service's use of local training: the index of examples, joined with the store of feedback.

Feedback is true in the store. The index holds the accepted corrections under numbers of their own;
at the start the two are compared, and only differences are added or removed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunesmith.decode.translation import Translator
from tunesmith.errors import InputError
from tunesmith.local import Index, Local, LocalTranslation, LocalTranslator
from tunesmith.local.translating import UNCHANGED, LocalWeights
from tunesmith.serve.spans import Answer

log = logging.getLogger("tunesmith.serve")
FIRST = 1 << 40
"""Examples of feedback have numbers from here on; the number of the correction is added."""


class Joined:
    """An index with the translator that uses it."""

    def __init__(self, index: Index, translator: Translator, local: Local) -> None:
        self._index, self._translator, self._chosen = index, translator, local
        self._local = LocalTranslator(translator, index, local)
        self.unread = 0
        """Sentences that got the common weights because their examples could not be read."""

    @classmethod
    def open(cls, folder: Path, translator: Translator, method: str | None) -> Joined:
        """Open an index; raise if it is damaged or was made with something else."""
        local = Local() if method is None else Local(method)
        return cls(Index.open(folder, translator), translator, local)

    def again(self, translator: Translator) -> Joined:
        """Return the same index with a model that was loaded again; raise if it is another."""
        self._index.check(translator)
        return Joined(self._index, translator, self._chosen)

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

    def add(self, corrections: Mapping[int, tuple[str, str]]) -> None:
        """Add accepted corrections by number: source and translation."""
        self._index.add(
            self._translator,
            [source for source, _ in corrections.values()],
            [[translation] for _, translation in corrections.values()],
            [FIRST + number for number in corrections],
        )

    def remove(self, numbers: Sequence[int]) -> None:
        """Remove corrections by number; those that are not there are passed over."""
        self._index.remove([FIRST + number for number in numbers])

    def held(self) -> set[int]:
        """Return the numbers of corrections in the index."""
        return {number - FIRST for number in self._index.ids if number >= FIRST}


def _answer(found: LocalTranslation, translator: Translator) -> Answer:
    return Answer(
        found,
        translator,
        found.neighbours,
        found.moved,
        {"retrieval": found.retrieval_seconds, "training": found.training_seconds},
    )
