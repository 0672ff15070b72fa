"""Options that make every preset fast enough to be run many times."""

from __future__ import annotations

from typing import Any

# Presets that need a decoder that can be forced to references: lists are not enough for them.
FORCED = {"maxforce"}

QUICK: dict[str, dict[str, Any]] = {
    "mert": {"restarts": 4, "directions": 1},
    "pro": {"rounds": 4, "samples": 300, "interpolate": 0.5},
    "kbmira": {"passes": 6},
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
    "random": {"tries": 100},
    "grid": {"points": 5, "budget": 50, "rounds": 3},
}
