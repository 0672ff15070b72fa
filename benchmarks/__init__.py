"""What the README claims, measured: `python -m benchmarks --help`."""
