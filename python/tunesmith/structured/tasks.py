"""Tasks: what states, actions and features are, and which actions are right.

A task of your own has the methods of `Task`. A state holds what actions, features and `is_gold`
look at, and is hashable: the search merges equal states. `examples/transliteration.py` is one with
hidden variables.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.structured.conllu import Sentence

Column = Literal["upos", "xpos"]
COLUMNS: tuple[Column, ...] = ("upos", "xpos")

NLTK_TEMPLATES = (
    *("bias", "word", "word-1", "word-2", "word+1", "word+2"),
    *("suffix3", "prefix1", "suffix3-1", "suffix3+1"),
    *("tag-1", "tag-2", "tag-2,tag-1", "tag-1,word"),
)
"""The templates of NLTK's averaged perceptron."""
TEMPLATES: tuple[str, ...] = tuple(_core.TAGGER_TEMPLATES)
"""All templates of the tagger."""
SHIFT = "shift"


class Task(Protocol):
    """An output that is built by actions, one after the other.

    `given` is an input, `wanted` the right output, `state` anything hashable, `action` anything.
    """

    def start(self, given: Any, /) -> Hashable:
        """Return the state before the first action."""

    def is_end(self, given: Any, state: Any, /) -> bool:
        """Return whether the output is complete."""

    def actions(self, given: Any, state: Any, /) -> Iterable[Any]:
        """Return what can be done in a state that is not an end: at least one action."""

    def apply(self, given: Any, state: Any, action: Any, /) -> Hashable:
        """Return the state after an action."""

    def features(
        self, given: Any, state: Any, action: Any, /
    ) -> Iterable[str] | Mapping[str, float]:
        """Return the names of what speaks for or against an action, or names with values."""

    def is_gold(self, given: Any, wanted: Any, state: Any, action: Any, /) -> bool:
        """Return whether a derivation of `wanted` may continue with the action.

        Several actions may be right, and some of them may lead nowhere: what cannot be finished is
        not gold. The last action must complete the output.
        """

    def output(self, given: Any, actions: Sequence[Any], /) -> Any:
        """Return the output that actions build; compared with `wanted` by `==`."""


@dataclass(frozen=True)
class Tree:
    """Heads (from one; 0 for the root) and labels of all words."""

    heads: tuple[int, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Tagger:
    """A part-of-speech tagger: words in, a tag for each out.

    `tags` is found in training. `templates` names what features look at.
    """

    column: Column = "upos"
    templates: tuple[str, ...] = TEMPLATES
    tags: tuple[str, ...] = ()

    NAME: ClassVar[str] = "tagger"
    KERNEL: ClassVar[str] = "core/structured/src/tagger.rs"

    def kernel(self) -> _core.StructuredTask:
        """Return the task of the core."""
        return _core.StructuredTask.tagger(list(self.tags), list(self.templates))

    def example(self, sentence: Sentence) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a sentence as the task takes it in training."""
        return sentence.forms(), sentence.tags(self.column)

    def given(self, sentence: Sentence) -> tuple[str, ...]:
        """Return a sentence as the task takes it."""
        return sentence.forms()

    def fitted(self, examples: Sequence[Any]) -> Tagger:
        """Return the tagger with the tags of all examples."""
        return replace(self, tags=tuple(sorted({tag for _, tags in examples for tag in tags})))

    def rows(self, examples: Sequence[Any]) -> list[Any]:
        """Return examples as the core takes them."""
        return [(list(forms), list(tags)) for forms, tags in examples]

    def inputs(self, given: Sequence[Any]) -> list[Any]:
        """Return inputs as the core takes them."""
        return [list(forms) for forms in given]

    def outputs(self, found: Sequence[Any]) -> list[tuple[str, ...]]:
        """Return what the core found."""
        return [tuple(tags) for tags in found]

    def right(self, wanted: Sequence[str], found: Sequence[str]) -> tuple[int, int]:
        """Return the number of right tags, and of all."""
        return sum(map(str.__eq__, wanted, found)), len(wanted)

    def written(self, sentence: Sentence, found: Sequence[str]) -> Sentence:
        """Return a sentence with these tags."""
        tagged = zip(sentence.words, found, strict=True)
        return sentence.with_words([word.with_tag(self.column, tag) for word, tag in tagged])

    def actions(self) -> tuple[str, ...]:
        """Return the names of the actions."""
        return self.tags


@dataclass(frozen=True)
class Parser:
    """An arc-standard dependency parser: words and tags in, a projective `Tree` out.

    `transitions` is found in training. `column` has the tags that features look at.
    """

    column: Column = "upos"
    labelled: bool = True
    transitions: tuple[str, ...] = ()

    NAME: ClassVar[str] = "parser"
    KERNEL: ClassVar[str] = "core/structured/src/parser.rs"

    def kernel(self) -> _core.StructuredTask:
        """Return the task of the core."""
        return _core.StructuredTask.parser(list(self.transitions))

    def example(self, sentence: Sentence) -> tuple[Any, Tree]:
        """Return a sentence as the task takes it in training."""
        labels = sentence.labels() if self.labelled else ("",) * len(sentence.words)
        return self.given(sentence), Tree(sentence.heads(), labels)

    def given(self, sentence: Sentence) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return a sentence as the task takes it."""
        return sentence.forms(), sentence.tags(self.column)

    def fitted(self, examples: Sequence[Any]) -> Parser:
        """Return the parser with the transitions that the trees of all examples need."""
        found = {
            f"{'left' if head > child else 'right'} {label}".strip()
            for _, tree in examples
            for child, (head, label) in enumerate(self._arcs(tree), 1)
            if head
        }
        if not found:
            raise InputError(
                "no sentence has two words", remedy="train on sentences of two words or more"
            )
        return replace(self, transitions=(SHIFT, *sorted(found)))

    def _arcs(self, tree: Tree) -> list[tuple[int, str]]:
        labels = tree.labels if self.labelled else ("",) * len(tree.heads)
        return list(zip(tree.heads, labels, strict=True))

    def rows(self, examples: Sequence[Any]) -> list[Any]:
        """Return examples as the core takes them."""
        return [
            (
                list(forms),
                list(tags),
                list(tree.heads),
                [label for _, label in self._arcs(tree)],
            )
            for (forms, tags), tree in examples
        ]

    def inputs(self, given: Sequence[Any]) -> list[Any]:
        """Return inputs as the core takes them."""
        return [(list(forms), list(tags)) for forms, tags in given]

    def outputs(self, found: Sequence[Any]) -> list[Tree]:
        """Return what the core found."""
        trees = [Tree(tuple(heads), tuple(labels)) for heads, labels in found]
        if self.labelled:
            return trees
        return [replace(tree, labels=("",) * len(tree.heads)) for tree in trees]

    def right(self, wanted: Tree, found: Tree) -> tuple[int, int]:
        """Return the number of right heads (with their labels, if there are any), and of all."""
        pairs = zip(self._arcs(wanted), self._arcs(found), strict=True)
        return sum(one == other for one, other in pairs), len(wanted.heads)

    def written(self, sentence: Sentence, found: Tree) -> Sentence:
        """Return a sentence with this tree."""
        attached = zip(sentence.words, found.heads, found.labels, strict=True)
        return sentence.with_words([word.with_head(head, label) for word, head, label in attached])

    def actions(self) -> tuple[str, ...]:
        """Return the names of the actions."""
        return self.transitions


NATIVE: dict[str, type[Tagger] | type[Parser]] = {Tagger.NAME: Tagger, Parser.NAME: Parser}
