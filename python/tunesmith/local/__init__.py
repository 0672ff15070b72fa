"""Local training: examples that are similar to a sentence, and weights learnt from them."""

from tunesmith.local.index import Index, Neighbour
from tunesmith.local.translating import LocalTranslation, LocalTranslator
from tunesmith.local.weights import Local

__all__ = ["Index", "Local", "LocalTranslation", "LocalTranslator", "Neighbour"]
