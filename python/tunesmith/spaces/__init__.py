"""What the sentences of a corpus could become: lists, forests, beam bins."""

from tunesmith.spaces.base import References, Spaces, check_range, references_of
from tunesmith.spaces.bins import Bins
from tunesmith.spaces.files import load_spaces
from tunesmith.spaces.forests import Forests
from tunesmith.spaces.outline import Elsewhere, Outline, Positions
from tunesmith.spaces.pools import Pools

__all__ = [
    "Bins",
    "Elsewhere",
    "Forests",
    "Outline",
    "Pools",
    "Positions",
    "References",
    "Spaces",
    "check_range",
    "load_spaces",
    "references_of",
]
