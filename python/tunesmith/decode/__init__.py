"""Models that translate."""

from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator

__all__ = ["Model", "Translator"]
