"""Where work runs: workers hold sentences and answer questions about them; drivers add up."""

from tunesmith.engines.base import Crew, Dealt, Engine, Worker, begins, grows, reads
from tunesmith.engines.pool import Pool
from tunesmith.engines.threads import THREADS, Threads

__all__ = [
    "THREADS",
    "Crew",
    "Dealt",
    "Engine",
    "Pool",
    "Threads",
    "Worker",
    "begins",
    "grows",
    "reads",
]
