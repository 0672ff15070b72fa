"""Generated text that ships as code, for smoke tests: two languages, two domains, tags, trees.

The source language has words of its own, verbs at the end and adjectives behind nouns; some of its
words have two translations, of which one is more usual. Every sentence has two references. The same
seed gives the same text.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tunesmith.structured import Tree

# Source word: usual translation, and perhaps another.
_NOUNS = {
    "home": {
        "baka": ("baker",),
        "lera": ("teacher", "tutor"),
        "kinu": ("child", "kid"),
        "pano": ("bread", "loaf"),
        "hoza": ("clock",),
        "tisa": ("table",),
        "fena": ("window",),
        "gato": ("cat",),
    },
    "office": {
        "fima": ("firm", "company"),
        "boro": ("office", "bureau"),
        "tafa": ("chart", "table"),
        "sela": ("cell", "field"),
        "doku": ("document", "file"),
        "menu": ("menu",),
        "progo": ("program", "programme"),
        "fena": ("window",),
    },
}
_ADJECTIVES = {
    "home": {"mala": ("small", "little"), "rota": ("red",), "visa": ("old",), "nuva": ("new",)},
    "office": {
        "lega": ("empty", "blank"),
        "akta": ("active",),
        "nuva": ("new",),
        "prima": ("first",),
    },
}
_VERBS = {
    "home": {"vidu": ("sees", "is seeing"), "toma": ("takes",), "pingi": ("paints", "is painting")},
    "office": {"open": ("opens",), "klosa": ("closes", "shuts"), "mosta": ("shows", "displays")},
}
_PLACES = {
    "home": {"in domo": ("in the house", "at home"), "po via": ("on the road",)},
    "office": {"in lista": ("in the list",), "po sito": ("on the page", "on the sheet")},
}
DOMAINS = tuple(_NOUNS)
_RARE = 0.25
"""How often the less usual translation is meant."""


@dataclass(frozen=True)
class Pair:
    """A source sentence with its references; tags are those of the first reference."""

    source: str
    references: tuple[str, str]
    tags: tuple[str, ...]


def pairs(count: int, seed: int, domain: str) -> list[Pair]:
    """Return sentence pairs of a domain."""
    chance = random.Random(f"{seed} {domain}")
    return [_pair(chance, domain) for _ in range(count)]


def _pair(chance: random.Random, domain: str) -> Pair:
    def word(table: dict[str, tuple[str, ...]]) -> tuple[str, str, str]:
        source = chance.choice(list(table))
        usual, *others = table[source]
        other = others[0] if others else usual
        return (source, other, usual) if chance.random() < _RARE else (source, usual, other)

    subject, thing = word(_NOUNS[domain]), word(_NOUNS[domain])
    adjective, verb = word(_ADJECTIVES[domain]), word(_VERBS[domain])
    # Two of three sentences say where.
    place = word(_PLACES[domain]) if chance.random() < 0.67 else None
    source = f"la {subject[0]} {adjective[0]} un {thing[0]} "
    source += f"{place[0]} {verb[0]}" if place else verb[0]
    said = []
    for form in (1, 2):
        text = f"the {adjective[form]} {subject[form]} {verb[form]} a {thing[form]}"
        said.append(f"{text} {place[form]}" if place else text)
    return Pair(source, (said[0], said[1]), tuple(_tags(said[0].split())))


def _tags(words: Sequence[str]) -> list[str]:
    known = {
        **{w: "ADJ" for t in _ADJECTIVES.values() for e in t.values() for w in e},
        **{w: "NOUN" for t in _NOUNS.values() for e in t.values() for w in e},
        **{w: "VERB" for t in _VERBS.values() for e in t.values() for p in e for w in p.split()},
        **{"the": "DET", "a": "DET", "in": "ADP", "on": "ADP", "at": "ADP", "is": "AUX"},
    }
    return [known.get(word, "NOUN") for word in words]


def parsed(count: int, seed: int) -> list[tuple[Any, Tree]]:
    """Return the sentences of `tagged` with their trees: words and tags, heads."""
    return [
        ((words, tags), Tree(_heads(tags), ("",) * len(tags)))
        for words, tags in tagged(count, seed)
    ]


def _heads(tags: Sequence[str]) -> tuple[int, ...]:
    """Return heads from one: nouns hang on the verb, what precedes a noun hangs on it."""
    verb = tags.index("VERB") + 1
    heads = []
    for place, tag in enumerate(tags, 1):
        nouns = [n for n in range(place + 1, len(tags) + 1) if tags[n - 1] == "NOUN"]
        if place == verb:
            heads.append(0)
        elif tag in ("DET", "ADJ", "ADP") and nouns and not place < verb < nouns[0]:
            heads.append(nouns[0])
        else:
            heads.append(verb)
    return tuple(heads)


def tagged(count: int, seed: int) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return sentences with their tags, of both domains; a few words are misspelt."""
    found, chance = [], random.Random(seed)
    for domain in DOMAINS:
        for pair in pairs(count // len(DOMAINS), seed, domain):
            words = [
                word[:-1] if len(word) > 3 and chance.random() < 0.1 else word
                for word in pair.references[0].split()
            ]
            found.append((tuple(words), pair.tags))
    return found
