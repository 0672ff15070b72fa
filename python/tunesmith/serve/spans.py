"""Which words of a translation come from which words of the source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tunesmith._core import Derivation, Step
from tunesmith.decode.translated import Translation
from tunesmith.decode.translator import Translator
from tunesmith.local import Neighbour
from tunesmith.serve.examples import correction_of

JOINERS = "￭▁"


def phrases(found: Translation, derivation: Derivation) -> list[dict[str, Any]]:
    """Return the phrases of a derivation, in the order of the translation.

    `source` and `target` have the positions of their words. Rules that only glue others together
    are left out.
    """
    words, output = found.source.split(), derivation.text.split()
    steps = [step for step in derivation.steps if step.origin != "glue"]
    places = _places(derivation) or _linked(derivation, steps)
    described = [
        {
            "source": [place for place in step.source if place is not None],
            "target": targets,
            "source_text": " ".join("…" if at is None else words[at] for at in step.source),
            "target_text": " ".join(output[at] for at in targets),
            "origin": step.origin,
        }
        for step, targets in zip(steps, places, strict=True)
    ]
    return sorted(described, key=lambda each: min(each["target"], default=len(output)))


def _places(derivation: Derivation) -> list[list[int]] | None:
    """Return the positions of the words that each rule but glue wrote, None if it is unclear."""
    steps = derivation.steps
    order = steps if any(None in step.source for step in steps) else steps[::-1]
    remaining = iter(enumerate(order))
    written: list[tuple[str, int]] = []
    for at, step in remaining:
        written += _expanded(at, step, remaining)
    if [word for word, _ in written] != derivation.text.split():
        return None
    places: list[list[int]] = [[] for _ in order]
    for place, (_, at) in enumerate(written):
        places[at].append(place)
    if order is not steps:
        places.reverse()
    return [each for each, step in zip(places, steps, strict=True) if step.origin != "glue"]


def _expanded(at: int, step: Step, remaining: Iterator[tuple[int, Step]]) -> list[tuple[str, int]]:
    """Return the words below a rule with the rules that wrote them; rules come top-down."""
    parts = []
    for place in step.source:
        if place is None:
            below = next(remaining)
            parts.append(_expanded(below[0], below[1], remaining))
    words: list[tuple[str, int]] = []
    for word in step.target:
        gap = {f"[X,{number}]": number for number in range(1, len(parts) + 1)}.get(word)
        words += [(word, at)] if gap is None else parts[gap - 1]
    return words


def _linked(derivation: Derivation, steps: Sequence[Step]) -> list[list[int]]:
    """Return the positions of words by the word alignment."""
    owner = {
        place: at for at, step in enumerate(steps) for place in step.source if place is not None
    }
    places: list[list[int]] = [[] for _ in steps]
    for source, target in sorted(derivation.links, key=lambda link: link[1]):
        if source in owner and target not in places[owner[source]]:
            places[owner[source]].append(target)
    return places


def alternatives(
    best: Sequence[dict[str, Any]], others: Sequence[Sequence[dict[str, Any]]], most: int = 8
) -> list[list[str]]:
    """Return, for each phrase, what other derivations have for the same source words."""
    found: list[list[str]] = []
    for phrase in best:
        texts = dict.fromkeys(
            other["target_text"]
            for each in others
            for other in each
            if other["source"] == phrase["source"]
        )
        texts.pop(phrase["target_text"], None)
        found.append(list(texts)[:most])
    return found


def located(words: Sequence[str], text: str) -> list[list[int]] | None:
    """Return where words of a model stand in a text, None if one of them is not there.

    >>> located(["das", "Haus", "."], "Das Haus.")
    [[0, 3], [4, 8], [8, 9]]
    """
    folded = text.lower()
    if len(folded) != len(text):
        return None
    places: list[list[int]] = []
    end = 0
    for word in words:
        plain = word.strip(JOINERS).replace("▁", " ").lower()
        start = folded.find(plain, end)
        # Only spaces may stand between words.
        if start < 0 or text[end:start].strip():
            return None
        end = start + len(plain)
        places.append([start, end])
    return places if not text[end:].strip() else None


@dataclass(frozen=True)
class Answer:
    """A translation with the translator that made it, and what moved its weights."""

    found: Translation
    translator: Translator
    neighbours: Sequence[Neighbour] = ()
    moved: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds of retrieval and training."""

    @property
    def texts(self) -> list[str]:
        """The texts of the derivations, best first, each once."""
        restored = (self.translator.restored(each.text) for each in self.found.derivations)
        return list(dict.fromkeys([self.found.text, *restored]))

    def described(self, nbest: int) -> dict[str, Any]:
        """Return everything about the translation, with its `nbest` best derivations."""
        found = self.found
        target = found.target.split()
        lists = [phrases(found, each) for each in found.derivations]
        best = [dict(phrase) for phrase in lists[0]] if lists else []
        for phrase, others in zip(best, alternatives(best, lists[1:]), strict=True):
            phrase["alternatives"] = others
        return {
            "text": found.text,
            "score": found.score,
            "words": found.source.split(),
            "target_words": target,
            "target_places": located(target, found.text),
            "alignment": [list(link) for link in found.derivations[0].links] if lists else [],
            "phrases": best,
            "pieces": found.pieces,
            "nbest": [
                {
                    "text": self.translator.restored(each.text),
                    "score": each.score,
                    "features": self.translator.features(each),
                    "phrases": parts,
                }
                for each, parts in zip(found.derivations[:nbest], lists, strict=False)
            ],
            "neighbours": [
                {**asdict(each), "feedback": correction_of(each.id)} for each in self.neighbours
            ],
            "moved": dict(self.moved),
            "seconds": {"decoding": found.seconds, **self.seconds},
        }
