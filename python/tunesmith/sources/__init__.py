"""Where hypotheses come from: saved lists, a decoder of ours, or any program."""

from tunesmith.sources.base import Source
from tunesmith.sources.command import Command
from tunesmith.sources.live import Live
from tunesmith.sources.saved import Saved

__all__ = ["Command", "Live", "Saved", "Source"]
