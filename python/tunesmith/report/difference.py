"""Differences between two sentences, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from tunesmith.report.wording import escape

# Chinese and Japanese have no spaces: every character is a token.
_TOKEN = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+|\s+"
)
MOST_CHARACTERS = 3000
MOST_TOKENS = 600


def marked(before: str, after: str) -> tuple[str, str]:
    """Return both sentences as HTML, with their different words in `del` and `ins`.

    Very long sentences are cut, with a note on how much is missing.
    """
    old, old_rest = _tokens(before)
    new, new_rest = _tokens(after)
    left, right = [], []
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            left.append(escape("".join(old[a:b])))
            right.append(escape("".join(new[c:d])))
        else:
            left.append(_wrap("del", old[a:b]))
            right.append(_wrap("ins", new[c:d]))
    return "".join(left) + old_rest, "".join(right) + new_rest


def shortened(text: str) -> str:
    """Return a sentence as HTML, cut when it is very long."""
    tokens, rest = _tokens(text)
    return escape("".join(tokens)) + rest


def _tokens(text: str) -> tuple[list[str], str]:
    tokens = _TOKEN.findall(text[:MOST_CHARACTERS])[:MOST_TOKENS]
    hidden = len(text) - sum(map(len, tokens))
    return tokens, f' <span class="cut">… {hidden:,} more characters</span>' if hidden else ""


def _wrap(tag: str, tokens: list[str]) -> str:
    text = "".join(tokens)
    if not text.strip():
        return escape(text)
    # Spaces at the ends stay outside the mark.
    core = text.strip()
    head, _, tail = text.partition(core)
    return f"{head}<{tag}>{escape(core)}</{tag}>{tail}"
