"""Where hypotheses come from: a decoder of ours, or any program that writes n-best lists.

A source has the sentences of a corpus, with references, and decodes them with whatever weights it
is given. To add one, write a class with `references`, `sources` and `decode(weights)`; with a
method `told()`, too, where a run may only be resumed with the same settings.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal, NoReturn, Protocol

import numpy as np

from tunesmith import _core
from tunesmith.errors import InputError
from tunesmith.formats.weights import write_cdec, write_moses_ini
from tunesmith.reading import read_pools
from tunesmith.runs import fingerprint
from tunesmith.spaces import Forests, Pools, Spaces, references_of
from tunesmith.translation import Model, Translator

SpaceName = Literal["list", "forest"]
# Length of lists where nobody asks for another.
LIST = 100
# Lines that an error names, and characters of a line that it quotes, at most.
SHOWN = 5
QUOTED = 80
# Bytes that are read at a time where a line may be endless.
LONG = 1 << 16
# Seconds that a decoder has to end in, when it is asked to, before it is made to.
GRACE = 2.0
DENSITY = 50.0
"""Edges of a forest for each word of its best string, of which tuning sees no more."""


class Source(Protocol):
    """Sentences, and a way to translate them."""

    @property
    def references(self) -> list[list[str]]:
        """The references of each sentence, in the words that hypotheses have."""

    @property
    def sources(self) -> list[str]:
        """The sentences."""

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        """Return what the sentences could become, found with the weights, best first.

        With `k`, lists of that length are enough.
        """


@dataclass
class Live:
    """A decoder in this process. The model is shared by all threads.

    References are prepared as the model's target text was, so that hypotheses can be compared with
    them word by word; with `tokenized` everything is taken as it is. Forests of all sentences are
    pruned to the best `density` edges for each word (None: not at all): those of several decodings
    are kept and joined, and their size is what MERT costs.
    """

    model: Model
    lines: Sequence[str]
    raw_references: Sequence[str | Sequence[str]]
    k: int | None = None
    """Length of lists; by default what the tuner wants, 100 where it does not say."""
    space: SpaceName = "list"
    settings: Mapping[str, float] = field(default_factory=dict)
    tokenized: bool = False
    threads: int = 0
    density: float | None = DENSITY

    def __post_init__(self) -> None:
        _refuse_empty(self.lines)
        if len(self.lines) != len(self.raw_references):
            raise InputError(
                f"{len(self.lines)} sentences, but references for {len(self.raw_references)}",
                remedy="give files of the same number of lines",
            )
        prepare = (lambda text: text) if self.tokenized else self.model.target.prepare
        self.references = [
            [prepare(text) for text in references_of(texts)] for texts in self.raw_references
        ]
        # Tuners change the size of weights, and with it what a difference of scores means. A
        # configuration of Moses has a threshold of its own, which whoever decodes with the tuned
        # weights will have too.
        known = [name for name, _ in self.model.decoder.settings]
        own = "threshold" not in known or "threshold" in self.model.settings
        wide = {} if own else {"threshold": inf}
        self.settings = {**wide, **self.settings}
        shown = self.model.translator(tokenized=self.tokenized)
        self.sources = shown.prepared(self.lines)

    def told(self) -> dict[str, object]:
        """Return what must be the same when a run is resumed, apart from the sentences."""
        return {
            "k": self.k,
            "space": self.space,
            "settings": dict(self.settings),
            "tokenized": self.tokenized,
            "density": self.density,
            "templates": list(self.model.templates or ()),
        }

    def decode(self, weights: Mapping[str, float], k: int | None = None) -> Spaces:
        """Translate all sentences."""
        translator = self.model.translator(weights, self.settings, tokenized=True)
        every = range(len(self.sources))
        found = self.found(translator, every, k or self.k or LIST, k is not None)
        if isinstance(found, Forests) and self.density is not None:
            vector = found.vector(translator.weights, partial=True)
            return found.prune(vector, density=self.density, threads=self.threads)
        return found

    def following(self, learner: _core.Learner) -> Translator:
        """Return a translator with the weights that a learner has now."""
        return self.model.following(learner, self.settings)

    def found(
        self, translator: Translator, sentences: Iterable[int], k: int, as_lists: bool = False
    ) -> Spaces:
        """Translate some of the sentences."""
        chosen = list(sentences)
        lines = [self.sources[i] for i in chosen]
        references = [self.references[i] for i in chosen]
        if self.space == "forest" and not as_lists:
            forests = translator.forests(lines, threads=self.threads)
            return Forests(forests.core, references, lines)
        lists = translator.nbest(lines, k, threads=self.threads)
        return Pools(lists.core, references, lines)


@dataclass
class Command:
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
        _refuse_empty(self.sources)
        if "{weights}" not in self.command:
            raise InputError(
                f"the command takes no weights: {self.command}",
                remedy="write {weights} where it has the name of their file",
            )

    def told(self) -> dict[str, object]:
        """Return what must be the same when a run is resumed, apart from the sentences."""
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
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, _leave)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let signals wait that would come between the start of a process and our knowing of it."""
    came: list[int] = []
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and callable(signal.getsignal(number)):
                before[number] = signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in came:
            signal.raise_signal(number)


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


def _refuse_empty(lines: Sequence[str]) -> None:
    if not lines:
        raise InputError("the text has no sentences", remedy="give a source that has some")
