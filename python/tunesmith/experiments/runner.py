"""Runs recipes: worlds, runs, tables, plots, verdicts; all of it resumable."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tunesmith import _core
from tunesmith.engines import THREADS, Engine
from tunesmith.errors import InputError
from tunesmith.experiments.claims import UNTESTABLE, Judged, judge, overall
from tunesmith.experiments.local import has_local
from tunesmith.experiments.plot import plots
from tunesmith.experiments.recipe import Recipe, System
from tunesmith.experiments.running import Found, Job, made
from tunesmith.experiments.store import Store, build
from tunesmith.experiments.tables import Context, Filled, fill
from tunesmith.experiments.tasks import find_tasks
from tunesmith.experiments.worlds import Data, UntestableError, World
from tunesmith.experiments.writing import SHOWN, latex, overview, page, plain_table, texts_of
from tunesmith.files.atomic import atomic_write
from tunesmith.files.fingerprint import read_object
from tunesmith.files.plain import pretty

INDEX = "README.md"
Tell = Callable[[str, int, int], None]


class _StoppedError(Exception):
    """Ends a run of another thread after an interruption."""


@dataclass
class Lab:
    """Where recipes are run, and with what."""

    out: Path
    data: Path | None = None
    jobs: int = 0
    """Runs at a time, of one thread each; 0: one per core."""
    engine: Engine = THREADS
    latex: bool = False
    tell: Tell = lambda what, done, total: None
    warn: Callable[[str], None] = lambda message: None
    store: Store = field(init=False)
    _stop: threading.Event = field(default_factory=threading.Event)
    _worlds: dict[str, World] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store = Store(self.out / "cache")

    def run(self, recipe: Recipe) -> dict[str, Any]:
        """Run a recipe, write its page, table and plots, and return the outcome."""
        began = time.perf_counter()
        left_out: dict[str, str] = {}
        overlaps: list[str] = []
        try:
            if recipe.wants is not None:
                _check_part(recipe.wants)
            worlds = self._ready(recipe, left_out)
            overlaps = self._overlaps(recipe, worlds)
            found = self._runs(recipe, worlds, left_out)
            context = Context(recipe, worlds, found, self.store)
            tables = [table for asked in recipe.tables for table in fill(context, asked)]
            judged = [judge(recipe, claim, found, tables) for claim in recipe.claims]
            drawn: dict[str, str] = {}
            for asked in recipe.plots:
                drawn |= plots(context, asked, tables)
            reason = "" if found else "; ".join(dict.fromkeys(left_out.values()))
        except UntestableError as untested:
            found, tables, judged, drawn = {}, [], [], {}
            reason = str(untested)
        verdict = overall(judged) if found and judged else UNTESTABLE
        if found and not recipe.claims:
            reason = "the recipe claims nothing"
        outcome = {
            "recipe": recipe.name,
            "title": recipe.title,
            "reproduces": list(recipe.reproduces),
            "about": recipe.about,
            "scale": recipe.scale,
            "sampled": [task.name for task in find_tasks(recipe) if task.sampled],
            "seeds": recipe.seeds,
            "verdict": verdict,
            "reason": reason,
            "left_out": left_out if found else {},
            "overlaps": overlaps,
            "claims": [each.to_json() for each in judged],
            "tables": [plain_table(table) for table in tables],
            "plots": sorted(drawn),
            "systems": {
                name: runs[0].facts["tuner"]
                for (_, name), runs in sorted(found.items(), key=lambda item: item[0][1])
            },
            "machine": machine(),
            "version": _core.__version__,
            "build": build(),
            "seconds": round(time.perf_counter() - began, 1),
        }
        self._write(recipe.name, outcome, tables, judged, drawn)
        return outcome

    def _ready(self, recipe: Recipe, left_out: dict[str, str]) -> dict[str, World]:
        """Return the worlds of a recipe's tasks; those without data are left out."""
        found: dict[str, World] = {}
        for number, task in enumerate(find_tasks(recipe)):
            name = task.name
            self.tell(f"{recipe.name}: {name}", number, len(recipe.tasks))
            own = Path(recipe.file).parent
            data = Data(
                (own, self.data) if self.data is not None else (own,),
                name,
                recipe.file if task.file == recipe.file else None,
            )
            # Recipes share worlds: a model is loaded once.
            known = self._worlds.setdefault(f"{data!r} {task!r}", World(task, data, self.store))
            try:
                if task.lists:
                    _ = known.lists
                elif task.structured is not None:
                    known.examples()
                else:
                    _ = known.tests, known.tuning("development"), known.model_digest
            except UntestableError as untested:
                left_out[name] = str(untested)
                continue
            found[name] = known
        return found

    def _overlaps(self, recipe: Recipe, worlds: Mapping[str, World]) -> list[str]:
        """Return what of the tests was learnt from, in words; warn if it is much."""
        found = []
        for name, world in worlds.items():
            systems = [each for each in recipe.systems if not each.tasks or name in each.tasks]
            for each in world.overlaps(systems):
                found.append(f"{name}: {each}")
                if each.much:
                    self.warn(f"{recipe.name}: {found[-1]}")
        return found

    def _runs(
        self, recipe: Recipe, worlds: Mapping[str, World], left_out: dict[str, str]
    ) -> dict[tuple[str, str], list[Found]]:
        """Make all runs; systems that start from another one's weights come after it."""
        found: dict[tuple[str, str], list[Found]] = {}
        pending = [
            (task, system)
            for task in worlds
            for system in recipe.systems
            if not system.tasks or task in system.tasks
        ]
        total, done = len(pending) * recipe.seeds, 0
        while pending:
            ready = [p for p in pending if _can_begin(p, found)]
            if not ready:
                names = ", ".join(sorted({system.name for _, system in pending}))
                left_out[names] = "what they start from could not be run"
                break
            pending = [each for each in pending if each not in ready]
            jobs = [
                (task, system, seed)
                for seed in range(1, recipe.seeds + 1)
                for task, system in ready
            ]
            results = self._side_by_side(
                [
                    Job(
                        worlds[task],
                        (system.on_lists or system) if worlds[task].task.lists else system,
                        seed,
                        recipe.metrics,
                        found[task, system.after][seed - 1].facts if system.after else None,
                    )
                    for task, system, seed in jobs
                ],
                1 if recipe.alone else self.jobs,
                partial(self._told, recipe.name, total, done),
            )
            done += len(jobs)
            for (task, system, _), result in zip(jobs, results, strict=True):
                if isinstance(result, UntestableError):
                    left_out[f"{task}, {system.name}"] = str(result)
                else:
                    found.setdefault((task, system.name), []).append(result)
        return found

    def _told(self, recipe: str, total: int, before: int, number: int, label: str) -> None:
        self.tell(f"{recipe}: {label}", before + number, total)

    def _side_by_side(
        self, jobs: Sequence[Job], workers: int, tell: Callable[[int, str], None]
    ) -> list[Found | UntestableError]:
        """Return what each job found; one that cannot be tested gives its reason."""
        counted = 0
        lock = threading.Lock()

        def listen(event: Mapping[str, Any]) -> None:
            if self._stop.is_set():
                raise _StoppedError

        def work(job: Job) -> Found | UntestableError:
            nonlocal counted
            if self._stop.is_set():
                raise _StoppedError
            try:
                result: Found | UntestableError = made(job, self.store, self.engine, listen)
            except UntestableError as untested:
                result = untested
            with lock:
                counted += 1
                tell(counted, job.label)
            return result

        workers = workers or os.cpu_count() or 1
        if workers == 1:
            # On the main thread, which alone receives Ctrl-C.
            return [work(job) for job in jobs]
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(work, job) for job in jobs]
            try:
                return [future.result() for future in futures]
            except BaseException:
                self._stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                self._stop.clear()
                raise

    # -- what is written -------------------------------------------------------------------

    def _write(
        self,
        name: str,
        outcome: Mapping[str, Any],
        tables: Sequence[Filled],
        judged: Sequence[Judged],
        drawn: Mapping[str, str],
    ) -> None:
        folder = self.out / name
        folder.mkdir(parents=True, exist_ok=True)
        for plot, text in drawn.items():
            _write(folder / plot, text)
        if self.latex:
            parts = [latex(*texts_of(table), table.title) for table in tables]
            _write(folder / "tables.tex", "\n".join(parts))
        _write(folder / INDEX, page(outcome, tables, judged))
        # Last: what reads it finds everything else there.
        with atomic_write(folder / "result.json") as stream:
            stream.write(pretty(outcome))
        self._index()

    def _index(self) -> None:
        """Write a page with the verdicts of all recipes that were run here, and their claims."""
        files = sorted(self.out.glob("*/result.json"))
        _write(self.out / INDEX, overview([_result(file) for file in files]))


def _result(file: Path) -> dict[str, Any]:
    """Return what a recipe came to; raise if a file of another version lacks something."""
    remedy = "remove the file, and run the recipe again"
    found = read_object(file, remedy=remedy)
    for key in SHOWN:
        if key not in found:
            raise InputError(
                f"not a result of this version: it lacks {key}", str(file), remedy=remedy
            )
    return found


def _can_begin(one: tuple[str, System], found: Mapping[tuple[str, str], Sequence[Found]]) -> bool:
    task, system = one
    return system.after is None or (task, system.after) in found


def _check_part(name: str) -> None:
    """Raise `UntestableError` if this program lacks a part that a recipe wants."""
    if name == "local" and not has_local():
        raise UntestableError("the extra is not installed: pip install 'tunesmith[local]'")
    if name != "local":
        raise InputError(f"wants: {name!r} is no part of Tunesmith", remedy="use local")


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as stream:
        stream.write(text.encode("utf-8"))


def machine() -> str:
    """Return a description of the machine."""
    model = ""
    info = Path("/proc/cpuinfo")
    if info.is_file():
        lines = info.read_text(encoding="utf-8", errors="replace").splitlines()
        named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        model = f" ({named[0]})" if named else ""
    return (
        f"{os.cpu_count()} cores{model}, {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}"
    )
