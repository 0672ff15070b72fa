"""Filters of feedback: the reasons why a correction waits for review.

>>> lengths("ein kleines Haus", "a small house", ratio=3.0)
>>> lengths("ein Haus", "one two three four five six seven", ratio=3.0)
'7 words for 2: more than 3 times as many'
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tunesmith._core import RuleTable
from tunesmith.decode.model_weights import Kind
from tunesmith.decode.translation import KINDS
from tunesmith.decode.translator import Translator
from tunesmith.serve.settings import Feedback

# Differences of so few words say nothing.
SLACK = 3
CHARACTERS = 40
# The model knows too little to judge shorter translations.
JUDGED = 4
# Words of a source phrase that is looked up, and rules of a phrase that are looked at.
PHRASE = 4
RULES = 200


def lengths(source: str, translation: str, ratio: float) -> str | None:
    """Return the reason to hold a translation of this length, None if there is none."""
    if len(translation) > 2 * ratio * len(source) + CHARACTERS:
        return f"{len(translation)} characters for {len(source)}"
    first, second = len(source.split()), len(translation.split())
    short, long = sorted((first, second))
    if long - short <= SLACK or long <= ratio * short:
        return None
    more = "more" if second > first else "fewer"
    return f"{second} words for {first}: more than {ratio:g} times as {_MANY[more]}"


_MANY = {"more": "many", "fewer": "few"}


class Expected:
    """The words that a model's rules offer for a sentence."""

    def __init__(self, model: Path, kind: Kind) -> None:
        # The decoder has verified the same file.
        self._rules = RuleTable(model / KINDS[kind][0], verify=False)

    def words(self, source: Sequence[str]) -> set[str]:
        """Return the words on the target sides of rules for phrases of the sentence.

        Words of the sentence itself are among them: names and numbers stay.
        """
        known = [self._rules.source_id(word) for word in source]
        found = set(source)
        for start in range(len(known)):
            node = self._rules.root
            for symbol in known[start : start + PHRASE]:
                child = None if symbol is None else self._rules.child(node, symbol)
                if child is None:
                    break
                node = child
                for target, _, _ in self._rules.entries(node)[:RULES]:
                    found.update(map(self._word, target))
        return found

    def _word(self, symbol: int) -> str:
        # Gaps of hierarchical rules are no words.
        return (self._rules.target_word(symbol) or "") if symbol >= 0 else ""


def coverage(
    expected: Expected, translator: Translator, source: str, translation: str
) -> tuple[int, int]:
    """Return how many words of a translation the model expects, and how many there are."""
    words = translator.prepared_references([translation])[0].split()
    # Case and punctuation make no difference.
    wanted = {word.casefold() for word in expected.words(translator.prepared([source])[0].split())}
    counted = [word.casefold() for word in words if any(map(str.isalnum, word))]
    return sum(word in wanted for word in counted), len(counted)


def reasons(
    expected: Expected, translator: Translator, source: str, translation: str, rules: Feedback
) -> list[str]:
    """Return why a correction is held: its length, and words that the model does not expect."""
    found = [lengths(source, translation, rules.ratio)]
    if key(source) == key(translation):
        found.append("the translation is the source")
    known, total = coverage(expected, translator, source, translation)
    if total >= JUDGED and known < rules.coverage * total:
        found.append(f"the model expects {known} of its {total} words for this source")
    return [reason for reason in found if reason is not None]


def key(text: str) -> str:
    """Return a text without differences of case and spaces."""
    return " ".join(text.casefold().split())
