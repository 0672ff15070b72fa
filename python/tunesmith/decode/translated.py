"""What a translator returns: translations, the rules behind them, derivations of references."""

from __future__ import annotations

from dataclasses import dataclass

from tunesmith._core import Derivation, Step
from tunesmith.spaces import Pools


@dataclass(frozen=True)
class Phrase:
    """A rule as it was used."""

    span: tuple[int, int]
    """The position of the first covered word, and of the first word after them."""
    source: str
    target: str
    origin: str
    """`table`, `unknown`, `given` (by markup) or `glue`."""


@dataclass(frozen=True)
class Translation:
    """The translation of a line."""

    text: str
    source: str
    """The words of the line as the model saw them."""
    target: str
    """The words of the translation as the model wrote them."""
    score: float | None
    """The model's score; None if there is no translation."""
    pieces: int
    """The number of parts that the sentence was cut into."""
    seconds: float
    derivations: list[Derivation]
    """The best derivations, as many as requested."""

    def phrases(self, derivation: Derivation) -> list[Phrase]:
        """Return the rules of a derivation in words, in the order of the translation.

        Hierarchical rules come top-down. If a sentence was cut, its parts come in source order.
        """
        words = self.source.split()
        steps = derivation.steps
        if self.pieces > 1:
            steps = sorted(steps, key=lambda step: step.start)
        elif not any(None in step.source for step in steps):
            steps = steps[::-1]

        def shown(step: Step) -> Phrase:
            source = ("[X]" if place is None else words[place] for place in step.source)
            return Phrase(
                (step.start, step.end), " ".join(source), " ".join(step.target), step.origin
            )

        return [shown(step) for step in steps]


@dataclass(frozen=True)
class Forced:
    """Derivations of references."""

    pools: Pools
    """A list for each line."""
    reached: list[int]
    """The number of words of the reference that the translations cover."""
    whole: list[bool]
    """Whether the reference is a translation of the whole line."""
