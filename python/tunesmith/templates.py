"""Sparse features of translation rules: templates by name, and templates of your own.

`TEMPLATES` says which there are, `SETS` which a paper used. A template of your own is a class with
a method `find`, which says what a rule has; it is asked once for each rule of a table, and its
features are weighted, tuned and shown as all others. Gaps of hierarchical rules are the words
`[X,1]` and `[X,2]`; links are pairs of places, source first; scores are the columns of the table,
none for words that it does not have.

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

from abc import ABC, abstractmethod
from typing import NamedTuple

from tunesmith import _core
from tunesmith._core import Templates

__all__ = ["SETS", "TEMPLATES", "Template", "TemplateSet", "TemplateText", "Templates"]


class TemplateText(NamedTuple):
    """What is to be known of a template."""

    name: str
    example: str
    """One of its features."""
    about: str


class TemplateSet(NamedTuple):
    """Templates under one name."""

    name: str
    templates: list[str]
    about: str


TEMPLATES = [TemplateText(*known) for known in _core.TEMPLATES]
SETS = [TemplateSet(*known) for known in _core.TEMPLATE_SETS]


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

        The same rule must always have the same features. Names are without spaces; choose a
        prefix that no other template has. An error raised here is raised by the call that
        translates.
        """
