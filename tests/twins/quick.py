"""Options that make every preset fast enough to be run many times."""

from __future__ import annotations

from typing import Any

from tunesmith.learn.online import Online
from tunesmith.presets import PRESETS, make_tuner

FORCED = {"maxforce"}
"""Presets that need a decoder that can be forced to references."""
ON_LISTS = sorted(
    name for name in PRESETS if not hasattr(make_tuner(name), "space") and name not in FORCED
)
"""Presets that learn from any space; the others want what only a search has."""
FOLLOWING = [
    name
    for name in PRESETS
    if isinstance(tuner := make_tuner(name), Online) and tuner.follow and name not in FORCED
]
"""Presets whose weights a decoder can follow."""

QUICK: dict[str, dict[str, Any]] = {
    "mert": {"restarts": 4, "directions": 1},
    "pro": {"rounds": 4, "samples": 300, "interpolate": 0.5},
    "kbmira": {"passes": 6},
    "sa-mert": {"restarts": 4, "directions": 1},
    "sa-mira": {"passes": 6},
    "sa-pro": {"rounds": 4, "samples": 300, "interpolate": 0.5, "shorter": 0},
    "mira": {"passes": 5},
    "mira-hildreth": {"passes": 5, "n": 3, "decrease": 0.9},
    "mira-cp": {"passes": 4},
    "rm": {"passes": 5},
    "rm-cp": {"passes": 4},
    "adagrad": {"passes": 5, "samples": 300, "l1": 0.01, "eta": 0.1},
    "arow": {"passes": 5},
    "perceptron": {"passes": 5},
    "maxforce": {"passes": 3},
    "rampion": {"rounds": 4, "passes": 2},
    "risk": {"steps": 3, "iterations": 10},
    # Far enough to matter on a dozen lists.
    "mbuu": {"strength": 5.0},
    "ebuu": {"strength": 50.0},
    "random": {"tries": 100},
    "grid": {"points": 5, "budget": 50, "rounds": 3},
}
