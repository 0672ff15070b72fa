"""Learn the weights of linear models that choose among structured outputs."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tunesmith._core import __version__
    from tunesmith.errors import InputError
    from tunesmith.metrics import get_metric
    from tunesmith.presets import PRESETS
    from tunesmith.spaces import Bins, Forests, Pools
    from tunesmith.spaces.reading import read_pools
    from tunesmith.tuning import Result, tune
    from tunesmith.weights import Weights

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

_PLACES = {
    "PRESETS": "presets",
    "Bins": "spaces",
    "Forests": "spaces",
    "InputError": "errors",
    "Pools": "spaces",
    "Result": "tuning",
    "Weights": "weights",
    "__version__": "_core",
    "get_metric": "metrics",
    "read_pools": "spaces.reading",
    "tune": "tuning",
}


def __getattr__(name: str) -> object:
    """Import a name on first use, so that the command line can handle Ctrl-C before that."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
