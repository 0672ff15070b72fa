"""`tunesmith translate`: text in, text out, line by line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from time import perf_counter
from typing import Annotated, Any

import typer
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from tunesmith._core import Derivation
from tunesmith.cli import options as o
from tunesmith.cli.console import (
    busy,
    emit,
    note,
    out,
    progress,
    sentences,
    table,
    tell_skipped,
    warn,
)
from tunesmith.cli.loading import load_model
from tunesmith.decode.batches import Pace
from tunesmith.decode.markup import MARKUP
from tunesmith.decode.model_weights import templates_of, without_effect
from tunesmith.decode.spread import SHARES, Spread
from tunesmith.decode.translated import Translation
from tunesmith.decode.translation import KINDS, Model
from tunesmith.decode.translator import Translator
from tunesmith.engines import THREADS, Engine
from tunesmith.errors import InputError, WithoutEffect
from tunesmith.formats import NbestWriter
from tunesmith.formats.base import Report
from tunesmith.formats.streams import batches
from tunesmith.local import Index, Local, LocalTranslation, LocalTranslator
from tunesmith.spaces import Positions, Spaces
from tunesmith.spaces.reading import read_weights

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith translate model < text.de > text.en\n\n"
    "$ tunesmith translate model --weights w.toml --nbest 100 --nbest-out dev.nbest.gz < dev.de\n\n"
    "$ echo 'ein kleines haus' | tunesmith translate model --explain\n\n"
    "$ tunesmith translate model -w w.toml --local index --method mbuu < text.de\n\n"
    "$ tunesmith translate --moses moses.ini --search pop_limit=1000 --input test.de.gz\n\n"
    "$ tunesmith translate --cdec-grammar g.gz --lm lm.arpa.gz --cdec-weights w --threads 4"
)
TEXT = "The text"
LOCAL = "Weights for each sentence"
SHOWN = 10
STDIN = Path("-")


@o.runs_on_engine
def translate(
    model: o.Model = None,
    input: Annotated[Path, o.option("--input -i", "FILE", "Text; - is standard input.")] = STDIN,
    explain: Annotated[
        bool,
        o.flag(
            "--explain",
            "Show the phrases used, the contribution of each feature, and why the next-best "
            "translation lost.",
        ),
    ] = False,
    nbest: Annotated[int, o.option("--nbest", "K", "Write the K best translations …", min=0)] = 0,
    nbest_out: Annotated[
        Path | None, o.option("--nbest-out", "FILE", "… to this file, in Moses' format.")
    ] = None,
    threads: o.Threads = 0,
    json: Annotated[bool, o.flag("--json", "One JSON object per line of text.")] = False,
    weights: o.DecoderWeights = None,
    kind: o.Kind = None,
    search: o.Search = None,
    set_: Annotated[list[str] | None, typer.Option("--set", hidden=True)] = None,
    moses: o.Moses = None,
    cache: o.Cache = None,
    cdec_grammar: Annotated[
        Path | None,
        o.option("--cdec-grammar", "FILE", "A grammar of cdec, in place of MODEL …", o.MODEL),
    ] = None,
    lm: Annotated[Path | None, o.option("--lm", "FILE", "… its language model …", o.MODEL)] = None,
    cdec_weights: Annotated[
        Path | None, o.option("--cdec-weights", "FILE", "… and its weights.", o.MODEL)
    ] = None,
    mbr: Annotated[
        str | None,
        o.option(
            "--mbr",
            "METRIC",
            "bleu: take the translation that agrees most with all others in the forest; with "
            "--nbest K, with those of the list.",
        ),
    ] = None,
    alpha: Annotated[
        float | None,
        o.option(
            "--alpha",
            "X",
            "With --mbr: probabilities are as exp(X · score); without, X is chosen by the "
            "spread of each sentence's scores.",
            min=0.0,
        ),
    ] = None,
    local: Annotated[
        Path | None,
        o.option(
            "--local",
            "INDEX",
            "Learn weights for each sentence from similar examples (tunesmith local build).",
            LOCAL,
        ),
    ] = None,
    method: Annotated[
        str, o.option("--method", "NAME", "How: ebuu, mbuu, or another tuner.", LOCAL)
    ] = "ebuu",
    k: Annotated[int, o.option("--k", "K", "Number of examples.", LOCAL, min=1)] = 100,
    strength: Annotated[
        float | None,
        o.option(
            "--lambda",
            "X",
            "How far weights may move; 0: not at all. By default the method's own.",
            LOCAL,
            min=0.0,
        ),
    ] = None,
    leave_one_out: Annotated[
        bool,
        o.flag("--leave-one-out", "Pass over examples of the very same sentence.", LOCAL),
    ] = False,
    tokenized: Annotated[
        bool, o.flag("--tokenized", "Input and output are words of the model.", TEXT)
    ] = False,
    markup: Annotated[
        str | None,
        o.option(
            "--markup",
            "NAME",
            "What tags in the text mean: none, exclusive, inclusive or ignore.",
            TEXT,
        ),
    ] = None,
    skip_bad: Annotated[
        bool,
        o.flag(
            "--skip-bad",
            "Give an empty line for a bad one and count it, instead of stopping.",
            TEXT,
        ),
    ] = False,
    *,
    engine: Engine,
) -> None:
    """Translate text, a sentence per line, in order, as it comes.

    Input and output are raw text: the model's preparation is applied and reversed.
    """
    if set_:
        raise InputError("--set is for options of tuners", remedy=f"write --search {set_[0]}")
    if sum(each is not None for each in (model, moses, cdec_grammar)) != 1:
        raise InputError(
            "no model, or more than one",
            remedy="give one of MODEL, --moses INI, --cdec-grammar FILE",
        )
    if cdec_grammar is None and (lm is not None or cdec_weights is not None):
        raise InputError(
            "--lm and --cdec-weights belong to a grammar", remedy="give --cdec-grammar"
        )
    if cdec_weights is not None and weights is not None:
        raise InputError("both --weights and --cdec-weights", remedy="give one of them")
    o.one_of("mbr", mbr, ("bleu",))
    if alpha is not None and mbr is None:
        raise InputError("--alpha belongs to --mbr", remedy="give --mbr bleu, or leave --alpha out")
    if mbr is not None and (json or explain):
        raise InputError("--mbr gives text only", remedy="leave --json and --explain out")
    if (nbest > 0) != (nbest_out is not None) and not (mbr is not None and nbest_out is None):
        raise InputError("--nbest and --nbest-out go together", remedy="give both or none")
    if str(nbest_out) == "-":
        raise InputError(
            "--nbest-out - would mix lists with the translations on standard output",
            remedy="name a file",
        )
    if local is None and (method, k, strength, leave_one_out) != ("ebuu", 100, None, False):
        raise InputError(
            "--method, --k, --lambda and --leave-one-out belong to --local",
            remedy="give --local INDEX, or leave them out",
        )
    if local is not None and (nbest or mbr is not None):
        raise InputError(
            "--local gives the best translation only",
            remedy="leave --nbest and --mbr out; --explain shows the next-best translation",
        )
    if engine is not THREADS and (json or explain or mbr is not None or local is not None):
        raise InputError(
            "workers of --engine ray give translations and lists only",
            remedy="leave --json, --explain, --mbr and --local out, or the engine",
        )
    o.one_of("kind", kind, tuple(KINDS))
    if model is None and kind not in (None, "hiero" if moses is None else "phrase"):
        raise InputError(
            f"--kind {kind} of {'a grammar' if moses is None else 'a configuration of Moses'}",
            remedy="leave --kind out: it is for a MODEL that has both kinds of rules",
        )
    o.one_of("markup", markup, MARKUP)
    o.writable(nbest_out)
    settings = o.numbers(search)
    given = None if weights is None else read_weights(weights)
    if cdec_grammar is not None:
        chosen = cdec_weights or weights
        if lm is None or chosen is None:
            raise InputError(
                "a grammar alone does not translate", remedy="give --lm and --cdec-weights too"
            )
        with busy("loading"):
            loaded = Model.of_cdec(cdec_grammar, lm, read_weights(chosen), cache, note)
    else:
        named = [] if given is None else templates_of(given)
        loaded = load_model(model, moses, kind, cache, named)
    if given is None and not loaded.tuned:
        note("these weights are not tuned; --weights names better ones")
    used = loaded.weights if given is None else given
    where = "templates in [features] of model.toml" if model is not None else None
    tell_unknown(loaded.unknown(used), used.file, where)
    translator = loaded.translator(given, settings, tokenized=tokenized)
    learner = None
    if local is not None:
        learnt = Local(method, k, strength, leave_one_out)
        learner = LocalTranslator(translator, Index.open(local, translator), learnt)
    spread = None if engine is THREADS else Spread(translator, engine, threads)
    report = Lost(skip_bad)
    how: dict[str, Any] = {
        "threads": threads,
        "markup": markup or loaded.markup,
        "file": "standard input" if str(input) == "-" else str(input),
        "report": report,
    }
    with ExitStack() as stack:
        lists = None
        if nbest_out is not None:
            lists = stack.enter_context(NbestWriter(nbest_out))
        answers = Answers(
            translator, how, lists, nbest, mbr is not None, alpha, json, explain, learner, spread
        )
        pace = Pace(threads if spread is None else SHARES * spread.workers, nbest)
        for first, lines in _watched(batches(input, lambda: pace.size, report)):
            begun = perf_counter()
            answers.give(first, lines)
            pace.took(len(lines), perf_counter() - begun)
    tell_skipped(list(report.skipped.values()))
    if answers.seconds:
        times = zip(*answers.seconds, strict=True)
        retrieval, training, decoding = (1000 * fmean(each) for each in times)
        note(
            f"milliseconds per line: retrieval {retrieval:.1f}, training {training:.1f}, "
            f"decoding {decoding:.1f}"
        )


@dataclass(slots=True)
class Lost(Report):
    """A report that keeps the numbers of bad lines."""

    lines: set[int | None] = field(default_factory=set)

    def note(self, reason: str, error: InputError) -> None:
        """Count a line."""
        self.lines.add(error.line)
        Report.note(self, reason, error)


@dataclass(frozen=True)
class Answers:
    """Prints and writes the translations of lines."""

    translator: Translator
    how: dict[str, Any]
    lists: NbestWriter | None
    nbest: int
    mbr: bool
    alpha: float | None
    json: bool
    explain: bool
    local: LocalTranslator | None = None
    spread: Spread | None = None
    seconds: list[tuple[float, float, float]] = field(default_factory=list)
    """Of each line with weights of its own: retrieval, training, decoding."""

    def give(self, first: int, lines: list[str]) -> None:
        """Translate lines from this number on; print those before a bad one, too."""
        try:
            self._give(first, lines)
        except InputError as error:
            if error.file == self.how["file"] and error.line is not None and error.line > first:
                self._give(first, lines[: error.line - first])
            raise

    def _give(self, first: int, lines: list[str]) -> None:
        how = {**self.how, "first": first}
        if self.lists is not None:
            nbest = self.translator.nbest if self.spread is None else self.spread.nbest
            pools = nbest(lines, self.nbest, links=True, **how)
            self.lists.add(pools.core)
            # Bad lines are already counted: do not count them again.
            how["report"] = Report(how["report"].skip_bad)
        if self.mbr:
            sources = self._agreed(lines, how)
        elif self.lists is None or self.json or self.explain:
            sources = self._found(lines, how)
        else:
            sources = self._printed(pools, pools.first())
        sys.stdout.flush()
        for number, source in enumerate(sources, first):
            if len(source.split()) > self.translator.max_words:
                warn(
                    f"{how['file']}:{number}: a long sentence, translated in pieces of at most "
                    f"{self.translator.max_words:g} words (--search max_words=N changes that)"
                )

    def _agreed(self, lines: list[str], how: dict[str, Any]) -> Sequence[str]:
        """Print the consensus translations, and return the words of the lines."""
        translator = self.translator
        agreed: Spaces = (
            translator.nbest(lines, self.nbest, **how)
            if self.nbest
            else translator.forests(lines, **how)
        )
        # A few lines have only few of the sparse features with weights.
        weights = agreed.vector(translator.weights, partial=True)
        chosen = agreed.consensus(weights, self.alpha, how["threads"])
        return self._printed(agreed, chosen)

    def _found(self, lines: list[str], how: dict[str, Any]) -> Sequence[str]:
        """Print the best translations in the requested form; return as `_agreed` does."""
        details = 2 if self.explain else int(self.json)
        chosen = self.spread or self.local or self.translator
        found: Sequence[Translation] = chosen.batch(lines, details=details, unique=True, **how)
        lost = self.how["report"].lines
        for number, each in enumerate(found, how["first"]):
            if isinstance(each, LocalTranslation):
                self.seconds.append((each.retrieval_seconds, each.training_seconds, each.seconds))
            if number in lost:
                each = replace(each, score=None)
            if self.json:
                emit(described(each, self.translator, self.explain))
            elif self.explain:
                show(number, each, self.translator)
            else:
                print(each.text)
        return [each.source for each in found]

    def _printed(self, spaces: Spaces, chosen: Positions) -> Sequence[str]:
        for text in spaces.outputs(chosen):
            print(self.translator.restored(text))
        return spaces.sources or []


def tell_unknown(names: list[str], file: str | None, where: str | None) -> None:
    """Warn of weights without effect; `where` says where to turn templates on, if possible."""
    if names:
        warn(without_effect(names, file, where))
        # Do not repeat the warning whenever such weights are used.
        warnings.simplefilter("ignore", WithoutEffect)


def _watched(parts: Iterator[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield batches with the numbers of their first lines; show progress on a terminal."""
    columns = (SpinnerColumn(), TextColumn("{task.completed:,} lines"), TimeElapsedColumn())
    # Translations on the same terminal show enough progress.
    with progress(*columns, hidden=sys.stdout.isatty()) as bar:
        task = bar.add_task("", total=None)
        first = 1
        for lines in parts:
            yield first, lines
            first += len(lines)
            bar.update(task, completed=first - 1)


def described(found: Translation, translator: Translator, explain: bool) -> dict[str, Any]:
    """Return a translation as `--json` prints it."""
    best = found.derivations[0] if found.derivations else None
    record: dict[str, Any] = {
        "translation": found.text,
        "score": found.score,
        "features": {} if best is None else translator.features(best),
        "alignment": [] if best is None else best.links,
        "seconds": found.seconds,
        "source": found.source,
        "target": found.target,
        "pieces": found.pieces,
    }
    if isinstance(found, LocalTranslation):
        record["local"] = {
            "neighbours": [asdict(each) for each in found.neighbours],
            "moved": found.moved,
            "retrieval_seconds": found.retrieval_seconds,
            "training_seconds": found.training_seconds,
        }
    if explain:
        record["derivations"] = [
            {
                "target": each.text,
                "score": each.score,
                "contributions": translator.contributions(each, weights_of(found, translator)),
                "phrases": [asdict(phrase) for phrase in found.phrases(each)],
            }
            for each in found.derivations
        ]
    return record


def weights_of(found: Translation, translator: Translator) -> Mapping[str, float]:
    """Return the weights that a line was translated with."""
    if isinstance(found, LocalTranslation):
        return {**translator.weights, **found.changed}
    return translator.weights


def show_local(found: LocalTranslation) -> None:
    """Print the examples that weights were learnt from, and which weights moved."""
    if not found.neighbours:
        if found.source:
            out.print("no example shares a word with this line", style="dim")
        return
    rows = sentences(table("", "similarity", "example", "reference"), 1, 2)
    for each in found.neighbours[:SHOWN]:
        rows.add_row(f"{each.similarity:.3f}", each.source, " / ".join(each.references))
    if len(found.neighbours) > SHOWN:
        rows.add_row("", f"… {len(found.neighbours) - SHOWN} more", "", style="dim")
    out.print(rows)
    out.print()
    moved = table("", "weight", "moved by")
    for name in sorted(found.moved, key=lambda name: -abs(found.moved[name]))[:SHOWN]:
        moved.add_row(name, f"{found.moved[name]:+.5f}")
    out.print(moved)
    out.print()


def show(number: int, found: Translation, translator: Translator) -> None:
    """Print how a translation was derived."""
    out.print(f"{number}: {found.text}", style="bold")
    if isinstance(found, LocalTranslation):
        show_local(found)
    weights = weights_of(found, translator)
    if not found.derivations:
        out.print("no translation\n" if found.score is None else "", style="dim")
        return
    best, *others = found.derivations
    show_phrases(found, best)
    rows = table("", "feature", "value", "weight", "contribution")
    values = dict(best.features)
    for name, share in translator.contributions(best, weights).items():
        weight = weights.get(name, 0.0)
        rows.add_row(name, f"{values[name]:.4f}", f"{weight:.4f}", f"{share:.4f}")
    rows.add_row("score", "", "", f"{best.score:.4f}", style="bold")
    out.print(rows)
    out.print()
    if not others:
        out.print("next best: none, all derivations found give this translation\n", style="dim")
    for other in others:
        out.print(f"next best: {translator.restored(other.text)}", style="bold")
        show_phrases(found, other)
        show_loss(translator.contributions(best, weights), translator.contributions(other, weights))


def show_phrases(found: Translation, derivation: Derivation) -> None:
    """Print the rules of a derivation."""
    rows = table("", "words", "source", "target", "")
    for column in rows.columns:
        column.justify = "left"
    for phrase in found.phrases(derivation):
        start, end = phrase.span
        words = str(start) if end == start + 1 else f"{start}-{end - 1}"
        origin = "" if phrase.origin == "table" else phrase.origin
        rows.add_row(words, phrase.source, phrase.target, origin)
    out.print(rows)
    out.print()


def show_loss(best: dict[str, float], other: dict[str, float]) -> None:
    """Print how much a derivation lost or gained by each feature."""
    names = dict.fromkeys([*best, *other])
    lost = {name: other.get(name, 0.0) - best.get(name, 0.0) for name in names}
    rows = table("", "lost by", "contribution")
    for name in sorted(names, key=lambda name: -abs(lost[name])):
        if abs(lost[name]) >= 0.00005:
            rows.add_row(name, f"{lost[name]:+.4f}")
    rows.add_row("score", f"{sum(lost.values()):+.4f}", style="bold")
    out.print(rows)
    out.print()
