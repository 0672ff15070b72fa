"""Where files are kept that can be made or fetched again."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path:
    """Return our folder in the user's cache."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification says to ignore relative paths.
    known = Path(base) if Path(base).is_absolute() else Path.home() / ".cache"
    return known / "tunesmith"
