"""Slow, obvious second implementations of the learning core, for the tests only."""
