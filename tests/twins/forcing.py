"""Which step of a search to correct, the obvious way."""

from __future__ import annotations

from collections.abc import Sequence

from tunesmith._core import Derivation

# Covered words, best scores of gold and of the beam, whether the beam holds gold, whether its best
# is gold.
Rung = tuple[int, float, float, bool, bool]


def step(update: str, rungs: Sequence[Rung]) -> int | None:
    """Return the covered words at the step that is corrected (Huang, Fayong & Guo 2012)."""
    if not rungs:
        return None
    last = rungs[-1]
    if update == "unchecked":
        return None if last[4] else last[0]
    if update == "standard":
        chosen = last
    elif update == "early":
        lost = [rung for rung in rungs if not rung[3]]
        chosen = lost[0] if lost else last
    else:
        wrong = [rung for rung in rungs if not rung[4]]
        if not wrong:
            return None
        chosen = max(wrong, key=lambda rung: rung[2] - rung[1])
    is_violated = not chosen[4] and chosen[2] >= chosen[1]
    return chosen[0] if is_violated else None


def stops(derivation: Derivation) -> set[int]:
    """Return the numbers of covered words that a derivation of phrases goes through."""
    covered, found = 0, set()
    for phrase in reversed(derivation.steps):
        covered += phrase.end - phrase.start
        found.add(covered)
    return found


def gold_steps(derivations: Sequence[Derivation], reference: str) -> list[int]:
    """Return the numbers of covered words at which there are gold derivations, given all."""
    gold = [each for each in derivations if each.text == reference]
    return sorted(set[int]().union(*(stops(each) for each in gold)))
