"""Files that are never half-written: atomic writes, arrays, locks."""
