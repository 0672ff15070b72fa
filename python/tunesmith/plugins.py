"""Packages of users' own that add metrics, formats, presets and templates by entry points.

A package declares, for instance,

    [project.entry-points."tunesmith.metrics"]
    shouting = "shouting.metric"

and its module registers what it has when it is imported. See docs/plugins.md.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from tunesmith.errors import InputError

GROUPS = ("metrics", "formats", "presets", "templates")


@cache
def load(group: str) -> None:
    """Import the modules that installed packages have for a group; raise if one cannot be."""
    assert group in GROUPS
    for entry in entry_points(group=f"tunesmith.{group}"):
        try:
            entry.load()
        except Exception as error:
            package = entry.dist.name if entry.dist is not None else entry.value
            raise InputError(
                f"the plug-in {entry.name} of the package {package} cannot be loaded: {error}",
                remedy=f"mend it, or run: pip uninstall {package}",
            ) from error
