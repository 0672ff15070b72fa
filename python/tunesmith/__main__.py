"""The entry of the command line, which can be interrupted before all of it is imported."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Run the command line."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        # Nothing is open yet. An exception in the middle of an import may be taken for another.
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    from tunesmith import cli

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
