"""Run directories: what was asked, what happened, where it stood, and what came out."""

from tunesmith.runs.checkpoint import Checkpoint
from tunesmith.runs.config import fingerprint
from tunesmith.runs.directory import RunDirectory
from tunesmith.runs.events import read_events
from tunesmith.runs.weights_file import dump_weights, load_weights

__all__ = [
    "Checkpoint",
    "RunDirectory",
    "dump_weights",
    "fingerprint",
    "load_weights",
    "read_events",
]
