"""Tuners and their parts: selectors, gains, losses, updates, and the algorithms made of them."""
