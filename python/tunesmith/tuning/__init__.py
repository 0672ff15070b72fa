"""The loop around every tuner: seeds, folds, held-out text, checkpoints, and whether it helped."""

from tunesmith.tuning.limits import Bounds
from tunesmith.tuning.loop import tune
from tunesmith.tuning.result import Result
from tunesmith.tuning.standing import Keep

__all__ = ["Bounds", "Keep", "Result", "tune"]
