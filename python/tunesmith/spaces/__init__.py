"""What the sentences of a corpus could become: lists, forests, beam bins."""

from tunesmith.spaces.base import Positions, References, Spaces, check_range, references_of
from tunesmith.spaces.bins import Bins
from tunesmith.spaces.files import load_spaces
from tunesmith.spaces.forests import Forests
from tunesmith.spaces.pools import Pools

__all__ = [
    "Bins",
    "Forests",
    "Pools",
    "Positions",
    "References",
    "Spaces",
    "check_range",
    "load_spaces",
    "references_of",
]
