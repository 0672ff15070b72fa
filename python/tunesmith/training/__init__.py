"""From parallel text to a model directory: text, alignment, rules."""
