"""Slow twin of the structured perceptron: beam search, gold derivations, the four updates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from tunesmith import _core

Path = tuple[tuple[Any, Any], ...]
"""States, and the actions that were taken in them."""


@dataclass(frozen=True)
class Maze:
    """A random task: the last action takes two letters, and several derivations may be gold.

    A `given` is a word; a `wanted` is a seed of which actions are gold after which.
    """

    actions_: int = 4
    share: float = 0.4

    def start(self, given: str) -> tuple[int, int]:
        return 0, 0

    def is_end(self, given: str, state: tuple[int, int]) -> bool:
        return state[0] == len(given)

    def actions(self, given: str, state: tuple[int, int]) -> list[int]:
        last = self.actions_ if len(given) - state[0] > 1 else self.actions_ - 1
        return list(range(last))

    def apply(self, given: str, state: tuple[int, int], action: int) -> tuple[int, int]:
        return state[0] + (2 if action == self.actions_ - 1 else 1), action

    def features(self, given: str, state: tuple[int, int], action: int) -> dict[str, float]:
        letter = given[state[0]]
        return {
            f"{letter} {action}": 1.0,
            f"{state[1]} {action}": 1.0,
            f"{letter} {state[1]} {action}": 2.0,
        }

    def is_gold(self, given: str, wanted: int, state: tuple[int, int], action: int) -> bool:
        return Random(f"{wanted} {state} {action}").random() < self.share

    def output(self, given: str, actions: Sequence[int]) -> tuple[int, ...]:
        return tuple(actions)


def total(task: Any, given: Any, path: Path) -> Counter[str]:
    """Return the features of a derivation, added up."""
    found: Counter[str] = Counter()
    for state, action in path:
        for name, value in task.features(given, state, action).items():
            found[name] += value
    return found


def score(task: Any, given: Any, path: Path, weights: dict[str, float]) -> float:
    return sum(weights.get(name, 0.0) * value for name, value in total(task, given, path).items())


def can_finish(task: Any, given: Any, wanted: Any, state: Any) -> bool:
    """Return whether gold actions lead from a state to an end."""
    return task.is_end(given, state) or any(
        can_finish(task, given, wanted, task.apply(given, state, action))
        for action in task.actions(given, state)
        if task.is_gold(given, wanted, state, action)
    )


def gold_steps(task: Any, given: Any, wanted: Any, weights: dict[str, float]) -> list[Path]:
    """Return the best gold derivation after each step; complete ones wait."""
    layer: dict[Any, Path] = {task.start(given): ()}
    best: list[Path] = []
    while not all(task.is_end(given, state) for state in layer):
        following: dict[Any, Path] = {}
        for state, path in layer.items():
            if task.is_end(given, state):
                moves = [(state, path)]
            else:
                moves = [
                    (after, (*path, (state, action)))
                    for action in task.actions(given, state)
                    if task.is_gold(given, wanted, state, action)
                    and can_finish(task, given, wanted, after := task.apply(given, state, action))
                ]
            for after, longer in moves:
                known = following.get(after)
                if known is None or score(task, given, longer, weights) > score(
                    task, given, known, weights
                ):
                    following[after] = longer
        layer = following
        best.append(max(layer.values(), key=lambda path: score(task, given, path, weights)))
    return best


def is_gold(task: Any, given: Any, wanted: Any, path: Path) -> bool:
    return all(
        task.is_gold(given, wanted, state, action)
        and can_finish(task, given, wanted, task.apply(given, state, action))
        for state, action in path
    )


def beam_steps(
    task: Any, given: Any, wanted: Any, weights: dict[str, float], beam: int
) -> list[list[Path]]:
    """Return what a beam holds after each step, best first."""
    held: list[tuple[Any, Path]] = [(task.start(given), ())]
    steps = []
    while not all(task.is_end(given, state) for state, _ in held):
        grown = []
        for state, path in held:
            if task.is_end(given, state):
                grown.append((state, path))
                continue
            for action in task.actions(given, state):
                grown.append((task.apply(given, state, action), (*path, (state, action))))
        grown.sort(key=lambda pair: -score(task, given, pair[1], weights))
        held = []
        seen = set()
        for state, path in grown:
            key = state, is_gold(task, given, wanted, path)
            if key not in seen and len(held) < beam:
                seen.add(key)
                held.append((state, path))
        steps.append([path for _, path in held])
    return steps


def chosen_step(
    update: str, margins: list[float], held: list[bool], right: list[bool]
) -> int | None:
    """Return the step to update at, if any."""
    last = len(margins) - 1
    violated = [not ok and margin >= 0 for ok, margin in zip(right, margins, strict=True)]
    if update == "unchecked":
        return None if right[last] else last
    if update == "standard":
        return last if violated[last] else None
    if update == "early":
        at = held.index(False) if False in held else last
        return at if violated[at] else None
    worst = [at for at in range(last + 1) if violated[at]]
    return max(worst, key=lambda at: margins[at]) if worst else None


def learn(
    task: Any,
    examples: Sequence[tuple[Any, Any]],
    *,
    update: str,
    beam: int,
    passes: int,
    seed: int,
) -> dict[str, float]:
    """Return the averaged weights of the perceptron."""
    usable = [pair for pair in examples if can_finish(task, *pair, task.start(pair[0]))]
    weights: dict[str, float] = {}
    sums: dict[str, float] = {}
    steps = 0
    for number in range(1, passes + 1):
        for place in _core.permutation(seed, number, len(usable)):
            given, wanted = usable[place]
            golds = gold_steps(task, given, wanted, weights)
            beams = beam_steps(task, given, wanted, weights, beam)
            # Whoever ends first waits for the other.
            length = max(len(golds), len(beams))
            golds += golds[-1:] * (length - len(golds))
            beams += beams[-1:] * (length - len(beams))
            gold = [[is_gold(task, given, wanted, path) for path in held] for held in beams]
            margins = [
                score(task, given, held[0], weights) - score(task, given, best, weights)
                for held, best in zip(beams, golds, strict=True)
            ]
            held, right = [any(each) for each in gold], [each[0] for each in gold]
            at = chosen_step(update, margins, held, right)
            if at is not None:
                for path, sign in ((golds[at], 1), (beams[at][0], -1)):
                    for name, value in total(task, given, path).items():
                        weights[name] = weights.get(name, 0.0) + sign * value
            for name, weight in weights.items():
                sums[name] = sums.get(name, 0.0) + weight
            steps += 1
    return {name: weight / steps for name, weight in sums.items() if weight}
