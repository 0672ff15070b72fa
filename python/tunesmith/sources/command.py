"""Any program that reads weights and writes n-best lists."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tunesmith.errors import InputError
from tunesmith.files.fingerprint import fingerprint
from tunesmith.formats.weights import write_cdec, write_moses_ini
from tunesmith.sources.base import LIST, Source, refuse_empty
from tunesmith.spaces import Pools
from tunesmith.spaces.reading import read_pools

# Lines that an error names, and characters of a line that it quotes, at most.
SHOWN = 5
QUOTED = 80
# Bytes that are read at a time where a line may be endless.
LONG = 1 << 16
# Seconds that a decoder is given to end before it is killed.
GRACE = 2.0


@dataclass
class Command(Source):
    """Any decoder that is a command: it reads weights and source and writes n-best lists.

    In `command`, `{weights}`, `{source}` and `{nbest}` are replaced by files, `{k}` by a number;
    what it prints goes to where the lists are expected if `{nbest}` is not in it. Weights are
    written as lines of name and value (`plain`), or into a copy of a `template` moses.ini. Refuses
    a command that does not take the weights. It has no standard input, and ends with this process.

    >>> Command("decoder -w {weights} < {source}", ["ein haus"], [["a house"]]).command
    'decoder -w {weights} < {source}'
    """

    command: str
    sources: list[str]
    references: list[list[str]]
    k: int | None = None
    template: Path | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        refuse_empty(self.sources)
        if "{weights}" not in self.command:
            raise InputError(
                f"the command takes no weights: {self.command}",
                remedy="write {weights} where it has the name of their file",
            )

    @property
    def prunes(self) -> bool:
        """True, because most decoders have a beam's threshold."""
        return True

    def resume_key(self) -> dict[str, object]:
        """Return settings that must be the same when a run is resumed, apart from the sentences."""
        template = None if self.template is None else fingerprint(self.template)
        return {"command": self.command, "k": self.k, "template": template, "format": self.format}

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Pools:
        """Run the command. Refuses a failure, and lists that are none or do not fit the sentences.

        A sentence may go without a list only where its line is blank.
        """
        with _signals_raise(), tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = {part: folder / part for part in ("weights", "source", "nbest")}
            files["source"].write_text("".join(f"{line}\n" for line in self.sources), "utf-8")
            if self.template is None:
                write_cdec(weights, files["weights"])
            else:
                write_moses_ini(weights, files["weights"], self.template)
            filled = self.command.replace("{k}", str(k or self.k or LIST))
            for part, path in files.items():
                filled = filled.replace(f"{{{part}}}", shlex.quote(str(path)))
            printed = Path(os.devnull) if "{nbest}" in self.command else files["nbest"]
            status, said = _run(filled, printed)
            if status:
                last = said.strip().splitlines()[-1:] or ["it said nothing"]
                raise InputError(
                    f"the decoder ended with status {status}: {last[0]}",
                    remedy=f"run it by hand: {self.command}",
                )
            found = self._read(files["nbest"])
        self._refuse_missing(found)
        return Pools(found.core, self.references, self.sources)

    def subset(self, sentences: Sequence[int]) -> Command:
        """Return some of the sentences; raise if the command does not take its source from us."""
        if "{source}" not in self.command:
            raise InputError(
                "the command has no {source}: it cannot translate a part of the sentences",
                remedy="write {source} where it has the name of the file",
            )
        return replace(
            self,
            sources=[self.sources[i] for i in sentences],
            references=[self.references[i] for i in sentences],
        )

    def _read(self, lists: Path) -> Pools:
        """Return the lists. Errors quote the line: nobody finds the file any more."""
        by_hand = f"run it by hand: {self.command}"
        if not lists.is_file():
            raise InputError("the decoder wrote no lists into {nbest}", remedy=by_hand)
        try:
            return read_pools(lists, (), format=self.format, sentences=len(self.sources))
        except InputError as error:
            remedy = "let it print lines such as 0 ||| a house ||| lm= -2.5 ||| -2.5"
            if error.line is not None and error.remedy is not None:
                remedy = error.remedy
            raise InputError(
                "the decoder's lists cannot be read: "
                f"{_quoted(lists, error.line or 1)}{error.message}",
                remedy=f"{remedy}; {by_hand}",
            ) from error

    def _refuse_missing(self, found: Pools) -> None:
        sizes = np.diff(found.core.starts).tolist()
        missing = [
            str(number)
            for number, (line, size) in enumerate(zip(self.sources, sizes, strict=True), 1)
            if line.strip() and not size
        ]
        if missing:
            more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
            raise InputError(
                f"no hypothesis for line {', '.join(missing[:SHOWN])}{more} of the source",
                remedy="let the decoder print one for every line that is not blank; "
                f"run it by hand: {self.command}",
            )


def _run(command: str, printed: Path) -> tuple[int, str]:
    """Return the status of a command and what it said on standard error; the rest goes to a file.

    It has a process group of its own, which is ended whenever this does not come to its end.
    """
    with printed.open("wb") as file, ExitStack() as starting:
        starting.enter_context(_signals_wait())
        with subprocess.Popen(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as process:
            try:
                starting.close()
                _, said = process.communicate()
            except BaseException:
                _end(process)
                raise
    return process.returncode, said


def _end(process: subprocess.Popen[str]) -> None:
    """End a command and all that it has started."""
    if sys.platform == "win32":
        process.kill()
        return
    # Nobody is left in the group when a signal finds nobody.
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        until = time.monotonic() + GRACE
        while time.monotonic() < until:
            process.poll()
            os.killpg(process.pid, 0)
            time.sleep(0.02)
        os.killpg(process.pid, signal.SIGKILL)


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Let signals that end this process at once raise instead, so that nothing is left behind.

    Only while a command runs: our own decoders would not hear of it before they are done.
    """
    with _handled(("SIGTERM", "SIGHUP"), lambda old: old is signal.SIG_DFL, _leave):
        yield


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let signals wait that would come between the start of a process and our knowing of it."""
    came: list[int] = []
    try:
        with _handled(("SIGINT", "SIGTERM", "SIGHUP"), callable, lambda n, _: came.append(n)):
            yield
    finally:
        for number in came:
            signal.raise_signal(number)


@contextmanager
def _handled(
    names: Sequence[str], wanted: Callable[[Any], bool], handler: Callable[[int, Any], object]
) -> Iterator[None]:
    """Handle signals whose present handler is wanted; only the main thread can."""
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in names:
            number = getattr(signal, name, None)
            if number is not None and wanted(signal.getsignal(number)):
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def _leave(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


def _quoted(file: Path, line: int) -> str:
    """Return a line of a file as an error quotes it, nothing where there is none."""
    # The line may be the one that is too long to be read.
    with file.open("rb") as lines:
        for _ in range(line - 1):
            while not (part := lines.readline(LONG)).endswith(b"\n") and part:
                pass
        text = lines.readline(LONG).decode(errors="replace").strip()
    shown = text if len(text) <= QUOTED else f"{text[:QUOTED]}…"
    return f"line {line}, '{shown}': " if shown else ""
