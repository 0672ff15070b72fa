"""Learn the weights of linear models that choose among structured outputs."""

from tunesmith._core import __version__
from tunesmith.errors import InputError
from tunesmith.features import Weights
from tunesmith.metrics import get_metric
from tunesmith.presets import PRESETS
from tunesmith.reading import read_pools
from tunesmith.spaces import Bins, Forests, Pools
from tunesmith.tuning import Result, tune

__all__ = [
    "PRESETS",
    "Bins",
    "Forests",
    "InputError",
    "Pools",
    "Result",
    "Weights",
    "__version__",
    "get_metric",
    "read_pools",
    "tune",
]
