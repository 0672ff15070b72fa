"""Ways to make the system refuse what a command asks of it."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

COMMAND = (sys.executable, "-c", "from tunesmith.__main__ import main; main()")
# A run that takes longer hangs.
PATIENCE = 120
ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@dataclass(frozen=True)
class Ended:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    def check_clear(self, *, codes: Sequence[int] = (2,)) -> None:
        """Assert that the command ended with one line that says why, and with nothing else."""
        assert self.code in codes, f"ended with {self.code}: {self.err}"
        assert "Traceback" not in self.err, self.err
        assert "panicked" not in self.err, self.err
        told = [line for line in self.err.splitlines() if line.startswith("error: ")]
        assert len(told) == 1, self.err


def run(
    words: Sequence[object],
    before: Callable[[], None] | None = None,
    patience: float = PATIENCE,
    **env: str,
) -> Ended:
    """Run a command in a process of its own, in which `before` is called first."""
    ended = subprocess.run(
        [*COMMAND, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=patience,
        preexec_fn=before,
        env={**os.environ, **env},
    )
    return Ended(ended.returncode, ended.stdout, ended.stderr)


@contextmanager
def small_disk(place: Path, size: int) -> Iterator[Callable[[str], None]]:
    """Mount a disk of `size` bytes at `place`; yield a function that changes its options."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)], check=True)

    def remount(options: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{options}", str(place)], check=True)

    try:
        yield remount
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def can_mount(place: Path) -> bool:
    """Return whether this process may mount a disk."""
    if not ROOT or shutil.which("mount") is None:
        return False
    place.mkdir(exist_ok=True)
    tried = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4096", "tmpfs", str(place)], capture_output=True
    )
    if tried.returncode == 0:
        subprocess.run(["umount", str(place)], check=True)
    return tried.returncode == 0


def limited(which: int, most: int) -> Callable[[], None]:
    """Return a function that limits a resource of the process that calls it."""
    return lambda: resource.setrlimit(which, (most, most))


def without_privileges() -> None:
    """Let a process of root obey the permissions of files."""
    if not ROOT:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    # What is not in the bounding set is gone after the next exec.
    drop = 24
    for capability in range(64):
        if libc.prctl(drop, capability, 0, 0, 0) != 0:
            break


# The time of day jumps by up to a day at every call, forwards and backwards.
JUMPING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static unsigned long long state = 88172645463325252ULL;
static long jump(void) {
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (long)(state % 172800) - 86400;
}
int clock_gettime(clockid_t clock, struct timespec *out) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int ended = real(clock, out);
    if (clock == CLOCK_REALTIME) out->tv_sec += jump();
    return ended;
}
time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *out, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    out->tv_sec = now.tv_sec;
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}
"""


def jumping_clock(folder: Path) -> Path | None:
    """Return a library under which the clock jumps; None where there is no compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(JUMPING)
    subprocess.run(
        [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True
    )
    return library
