"""Sparse features of translation rules: templates by name, and templates of your own.

`TEMPLATES` lists all templates, `SETS` those that a paper used. A template of your own is a class
with a method `find`, which returns the features of a rule. It is called once for each rule of a
table; its features are weighted, tuned and shown like all others. Gaps of hierarchical rules are
the words `[X,1]` and `[X,2]`; links are pairs of positions, source first; scores are the columns of
the table, empty for words that the table does not have.

>>> class Numbers(Template):
...     def find(self, source, target, links, scores):
...         digits = [sum(word.isdigit() for word in side) for side in (source, target)]
...         return {"numbers:kept" if digits[0] == digits[1] else "numbers:changed": 1.0}
>>> class Copies(Template):
...     def find(self, source, target, links, scores):
...         same = sum(source[i] == target[j] for i, j in links)
...         return {"copies": same / len(target)} if same else {}
>>> templates = Templates(["rule-id", "deletions"], own=[Numbers(), Copies()])
>>> templates.find(["im", "jahr", "1984"], ["in", "1984"], [(0, 0), (2, 1)])
{'PT:im_jahr_1984~in_1984': 1.0, 'WD:jahr': 1.0, 'numbers:kept': 1.0, 'copies': 0.5}
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tunesmith import _core
from tunesmith._core import Templates
from tunesmith.training.model import OWN_TEMPLATES

__all__ = [
    "DENSE",
    "SETS",
    "TEMPLATES",
    "Group",
    "Template",
    "TemplateSet",
    "TemplateText",
    "Templates",
    "groups",
    "members_of",
    "register",
    "template_of",
]

DENSE = "dense"
"""The group of features that belong to no template."""


class TemplateText(NamedTuple):
    """The description of a template."""

    name: str
    example: str
    """An example of its features."""
    about: str

    @property
    def wants(self) -> str:
        """The file of a model directory that it reads; empty if it reads none."""
        return self.about.partition("; wants ")[2]


class TemplateSet(NamedTuple):
    """Templates under one name."""

    name: str
    templates: list[str]
    about: str


TEMPLATES = [TemplateText(*known) for known in _core.TEMPLATES]
SETS = [TemplateSet(*known) for known in _core.TEMPLATE_SETS]


# Prefixes of names: CX-1 and CX+1 belong to one template.
_PREFIX = re.compile(r"([^:]*?)(?:[-+]\d+)?:")
_BY_PREFIX = {known.example[:2]: known.name for known in TEMPLATES}


def template_of(name: str) -> str:
    """Return the template that a feature belongs to, by its name; `dense` if it has none.

    For features of other packages, the text before a colon is the template's name.

    >>> [template_of(name) for name in ("PT:das~the", "CX-1:haus~house~das", "numbers:kept", "lm")]
    ['rule-id', 'contexts', 'numbers', 'dense']
    """
    found = _PREFIX.match(name)
    if found is None or not found[1]:
        return DENSE
    return _BY_PREFIX.get(found[1], found[1])


def members_of(names: Iterable[str]) -> set[str]:
    """Return templates, with sets replaced by their members."""
    sets = {known.name: known.templates for known in SETS}
    return {each for name in names for each in sets.get(name, [name])}


class Group(NamedTuple):
    """The weights of a template."""

    name: str
    weights: int
    nonzero: int
    size: float
    """The sum of their magnitudes."""
    share: float
    """Its share of the sum of all magnitudes."""


def groups(weights: Mapping[str, float]) -> list[Group]:
    """Return the weights grouped by template: dense ones first, then by size.

    >>> for group in groups({"lm": 0.5, "PT:das~the": -0.25, "PT:a~b": 0.0, "TB:a~b": 0.25}):
    ...     print(*group)
    dense 1 1 0.5 0.5
    bigrams 1 1 0.25 0.25
    rule-id 2 1 0.25 0.25
    """
    parts: dict[str, list[float]] = {}
    for name, value in weights.items():
        parts.setdefault(template_of(name), []).append(abs(value))
    whole = sum(map(sum, parts.values())) or 1.0
    found = [
        Group(name, len(sizes), sum(map(bool, sizes)), sum(sizes), sum(sizes) / whole)
        for name, sizes in parts.items()
    ]
    return sorted(found, key=lambda group: (group.name != DENSE, -group.size, group.name))


def register(name: str, make: Callable[[], Template]) -> None:
    """Register a template under a name, so that --features NAME turns it on.

    Raise if the name is taken.
    """
    if name in {*(known[0] for known in (*TEMPLATES, *SETS)), *OWN_TEMPLATES}:
        raise ValueError(f"the template {name} is already registered")
    OWN_TEMPLATES[name] = make


class Template(ABC):
    """A template written in Python."""

    @abstractmethod
    def find(
        self,
        source: list[str],
        target: list[str],
        links: list[tuple[int, int]],
        scores: list[float],
    ) -> dict[str, float]:
        """Return the features of a rule by name.

        The same rule must always have the same features. Names must not contain spaces or `|||`;
        begin them with a prefix that no other template has, and a colon. Errors raised here are
        raised by the call that translates. A name of one of the model's own features is an error.
        """
