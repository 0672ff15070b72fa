"""Models that translate."""

from tunesmith.decode.translation import Model, Translator

__all__ = ["Model", "Translator"]
