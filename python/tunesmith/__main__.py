"""The entry point of the command line; Ctrl-C works even while modules are imported."""

from __future__ import annotations

import os
import signal

from tunesmith.errors import out_of_memory


def main() -> None:
    """Run the command line."""
    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if usual:
        # No file is open yet. During an import, a KeyboardInterrupt could be mistaken for an error.
        signal.signal(signal.SIGINT, lambda number, frame: os._exit(130))
    try:
        from tunesmith import _core, cli
    except (MemoryError, ImportError) as error:
        if not out_of_memory(error):
            raise
        os.write(2, b"error: out of memory: not even the program can be loaded\n")
        os._exit(2)

    _core.tell_bus_errors()
    if usual:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    cli.main()


if __name__ == "__main__":
    main()
