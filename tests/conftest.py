"""Makes the slow twins importable from every folder of tests, Ctrl-C heard, and time no matter."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A suite started in the background of a shell inherits a deaf ear for Ctrl-C, and so would the
# programs that the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine only.
settings.register_profile("tunesmith", deadline=None)
settings.load_profile("tunesmith")
