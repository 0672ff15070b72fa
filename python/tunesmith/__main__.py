"""The entry point of the command line; Ctrl-C works even while modules are imported."""

from __future__ import annotations

import os
import signal


def main() -> None:
    """Run the command line."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        # No file is open yet. During an import, a KeyboardInterrupt could be mistaken for an error.
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    from tunesmith import cli

    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
