"""From parallel text to a model directory, stage by stage; a killed training goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from tunesmith import lm
from tunesmith._core import AtomicWriter, Lines
from tunesmith.errors import InputError
from tunesmith.runs import fingerprint
from tunesmith.training.aligners import Aligned, align
from tunesmith.training.alignment import symmetrise_files
from tunesmith.training.model import write_model
from tunesmith.training.rules import (
    AlignedCorpus,
    HieroOptions,
    PhraseOptions,
    RuleTable,
    make_hiero_table,
    make_phrase_table,
)
from tunesmith.training.text import PairFilter, TextSide, paired

Kind = Literal["phrase", "hiero", "both"]
Tell = Callable[[str, str], None]
PHRASES, HIERO = "phrases.rules", "hiero.rules"


@dataclass(frozen=True)
class Training:
    """What to train, and from what."""

    source: Path
    target: Path
    source_side: TextSide = field(default_factory=lambda: TextSide("de"))
    target_side: TextSide = field(default_factory=lambda: TextSide("en"))
    kind: Kind = "both"
    lm_texts: tuple[Path, ...] = ()
    order: int = 5
    aligner: str = "fast_align"
    alignment: Path | None = None
    heuristic: str = "grow-diag-final-and"
    longest: int = 100
    ratio: float = 9.0
    phrases: PhraseOptions = field(default_factory=PhraseOptions)
    hiero: HieroOptions = field(default_factory=HieroOptions)
    dev: Path | None = None
    memory: int = 1 << 30

    def config(self) -> dict[str, Any]:
        """Return everything that the result depends on, with fingerprints of the files."""
        files = [self.source, self.target, *self.lm_texts]
        files += [path for path in (self.alignment, self.dev) if path is not None]
        plain = {
            key: value
            for key, value in asdict(self).items()
            if key not in ("source", "target", "lm_texts", "alignment", "dev", "memory")
        }
        whole = {**plain, "inputs": [fingerprint(file) for file in files]}
        config: dict[str, Any] = json.loads(json.dumps(whole))
        return config


class Stages:
    """Which stages are done, kept beside the model so that a killed training goes on."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        self.file = folder / "stages.json"
        self.done: dict[str, Any] = {}
        if self.file.exists():
            try:
                kept = json.loads(self.file.read_text())
            except ValueError:
                kept = {}
            if _contents(kept.get("config", {})) != _contents(config):
                raise InputError(
                    "the folder holds a model trained from other text or with other options",
                    str(folder),
                    remedy="name a new folder, or remove this one",
                )
            self.done = kept["done"]
        elif any(folder.iterdir()):
            raise InputError("the folder is not empty", str(folder), remedy="name a new folder")
        self.config = config

    def run(self, name: str, outputs: Sequence[Path], work: Callable[[], dict[str, Any]]) -> None:
        """Do a stage, unless it is done and its outputs are there."""
        if name in self.done and all(output.exists() for output in outputs):
            return
        began = time.perf_counter()
        facts = work()
        self.done[name] = {**facts, "seconds": round(time.perf_counter() - began, 3)}
        with AtomicWriter(str(self.file)) as out:
            out.write(json.dumps({"config": self.config, "done": self.done}, indent=1))


def _contents(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without the places of its files: those may move."""
    inputs = [
        {key: value for key, value in item.items() if key not in ("path", "file")}
        for item in config.get("inputs", [])
    ]
    return {**config, "inputs": inputs}


def train(
    training: Training, folder: Path, threads: int = 0, tell: Tell | None = None
) -> dict[str, Any]:
    """Train a model directory and return what is in it.

    `tell(stage, state)` hears of every stage, before ("begun") and after ("done"). A training that
    was stopped goes on after its last finished stage. Refuses text of unequal length, text without
    a usable pair, and a folder that holds something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stages = Stages(folder, training.config())
    work = folder / "work"
    work.mkdir(exist_ok=True)
    corpus = work / "corpus.source", work / "corpus.target"
    links = work / "alignment"
    hear = tell or (lambda stage, state: None)

    def stage(name: str, outputs: Sequence[Path], job: Callable[[], dict[str, Any]]) -> None:
        hear(name, "begun")
        stages.run(name, outputs, job)
        hear(name, "done")

    cases = folder / "case.source", folder / "case.target"
    wanted = [
        path
        for path, side in zip(cases, (training.source_side, training.target_side), strict=True)
        if side.case == "true"
    ]
    given = () if training.alignment is None else (links,)
    stage("text", [*corpus, *wanted, *given], lambda: _prepare(training, corpus, cases, links))
    if training.alignment is None:
        sides = Aligned(work / "forward", work / "backward")
        stage("align", [sides.forward, sides.backward], lambda: _align(training, corpus, sides))
        stage(
            "symmetrise",
            [links],
            lambda: {
                "lines": symmetrise_files(
                    sides.forward, sides.backward, links, training.heuristic, threads=threads
                )
            },
        )
    stage("lm", [folder / "lm.tlm"], lambda: _language_model(training, corpus, folder, threads))
    names = {"phrase": [PHRASES], "hiero": [HIERO], "both": [PHRASES, HIERO]}[training.kind]
    tables = [folder / name for name in names]
    for out in tables:
        stage(out.stem, [out], partial(_rules, training, corpus, links, out, threads))
    if training.dev is not None:
        stage("dev", [], lambda: _dev(training, folder, tables))
    summary = {"stages": stages.done, "files": {path.name: path.stat().st_size for path in tables}}
    summary["files"]["lm.tlm"] = (folder / "lm.tlm").stat().st_size
    write_model(folder, training.config(), summary)
    return summary


def _side(side: TextSide, table: Path) -> TextSide:
    """Return the side with the truecasing table that was learnt for it."""
    if side.case != "true":
        return side
    pairs = (line.split("\t", 1) for line in Lines(str(table)))
    return TextSide(side.language, side.tokenize, "true", side.model, dict(pairs))


def _prepare(
    training: Training, corpus: tuple[Path, Path], cases: tuple[Path, Path], links: Path
) -> dict[str, Any]:
    files = training.source, training.target
    sides = [training.source_side, training.target_side]
    for number, side in enumerate(sides):
        if side.case == "true":
            learnt = side.learn_case(Lines(str(files[number])))
            with AtomicWriter(str(cases[number])) as out:
                out.write("".join(f"{lower}\t{form}\n" for lower, form in learnt.truecase.items()))
            sides[number] = learnt
    keeper = PairFilter(training.longest, training.ratio)
    alignment: Iterable[str] = () if training.alignment is None else Lines(str(training.alignment))
    given = iter(alignment)
    names = str(files[0]), str(files[1])
    with AtomicWriter(str(corpus[0])) as one, AtomicWriter(str(corpus[1])) as other:
        kept_links = []
        for left, right in paired(Lines(names[0]), Lines(names[1]), names):
            source, target = sides[0].prepare(left), sides[1].prepare(right)
            line = next(given, None)
            if training.alignment is not None and line is None:
                raise InputError(
                    "the alignment ends before the text",
                    str(training.alignment),
                    remedy="give one line of links per sentence pair",
                )
            if keeper.keep(source, target):
                one.write(source + "\n")
                other.write(target + "\n")
                kept_links.append(line or "")
        if keeper.kept == 0:
            raise InputError(
                "no sentence pair can be learnt from",
                names[0],
                remedy="check the text, --longest and --ratio",
            )
    if training.alignment is not None:
        with AtomicWriter(str(links)) as out:
            out.write("".join(f"{line}\n" for line in kept_links))
    return {"pairs": keeper.kept, "dropped": dict(keeper.dropped)}


def _align(training: Training, corpus: tuple[Path, Path], sides: Aligned) -> dict[str, Any]:
    align(*corpus, sides, training.aligner)
    return {"aligner": training.aligner}


def _language_model(
    training: Training, corpus: tuple[Path, Path], folder: Path, threads: int
) -> dict[str, Any]:
    side = _side(training.target_side, folder / "case.target")
    more = [side.prepare(line) for text in training.lm_texts for line in Lines(str(text))]
    if more:
        made = lm.estimate(
            sentences=[*Lines(str(corpus[1])), *more],
            order=training.order,
            memory=training.memory,
            threads=threads,
            skip_symbols=True,
        )
    else:
        made = lm.estimate(
            corpus[1],
            order=training.order,
            memory=training.memory,
            threads=threads,
            skip_symbols=True,
        )
    made.model().save(folder / "lm.tlm")
    return {
        "order": training.order,
        "sentences": made.sentences,
        "words": made.words,
        "ngrams": [order.ngrams for order in made.orders],
        "messages": made.messages(),
    }


def _rules(
    training: Training, corpus: tuple[Path, Path], links: Path, out: Path, threads: int
) -> dict[str, Any]:
    """Extract phrase pairs or hierarchical rules, by the name of the table."""
    aligned = AlignedCorpus(*corpus, links, skip_bad=True)
    if out.name == PHRASES:
        made = make_phrase_table(
            aligned, out, training.phrases, memory=training.memory, threads=threads
        )
    else:
        made = make_hiero_table(
            aligned, out, training.hiero, memory=training.memory, threads=threads
        )
    return asdict(made) | {"skipped": {reason: count for reason, count, _ in aligned.skipped}}


def _dev(training: Training, folder: Path, tables: Sequence[Path]) -> dict[str, Any]:
    """Return the share of the dev set's words that some rule translates."""
    assert training.dev is not None
    side = _side(training.source_side, folder / "case.source")
    table = RuleTable(tables[0])
    words = covered = 0
    for line in Lines(str(training.dev)):
        sentence = side.prepare(line).split()
        words += len(sentence)
        covered += len(_covered(table, sentence))
    return {"words": words, "covered": covered, "coverage": covered / max(words, 1)}


def _covered(table: RuleTable, sentence: Sequence[str]) -> set[int]:
    """Return the places of a sentence that lie under the source side of some rule."""
    ids = [table.source_id(word) for word in sentence]
    places: set[int] = set()
    for start in range(len(ids)):
        node = table.root
        for end in range(start, len(ids)):
            word = ids[end]
            child = None if word is None else table.child(node, word)
            if child is None:
                break
            node = child
            # A single word is asked for its rules only where no longer source covers it.
            if end not in places or start not in places:
                places.update(range(start, end + 1) if table.entries(node) else ())
    return places
