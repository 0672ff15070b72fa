"""What docs/benchmarks.md reports, measured: `python -m benchmarks --help`."""
