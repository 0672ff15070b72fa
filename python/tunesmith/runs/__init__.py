"""Run directories: configuration, events, checkpoints and results of a run."""

from tunesmith.files.arrays import Checkpoint
from tunesmith.files.fingerprint import fingerprint
from tunesmith.formats.weights_file import dump_weights, load_weights
from tunesmith.runs.directory import RunDirectory
from tunesmith.runs.events import read_events

__all__ = [
    "Checkpoint",
    "RunDirectory",
    "dump_weights",
    "fingerprint",
    "load_weights",
    "read_events",
]
