"""From parallel text to a model directory, stage by stage; a killed training can be resumed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

from tunesmith import lm
from tunesmith._core import AtomicWriter, Lines
from tunesmith.errors import InputError
from tunesmith.files.atomic import atomic_write
from tunesmith.files.fingerprint import fingerprint
from tunesmith.training.aligners import Aligned, align, check_aligner
from tunesmith.training.alignment import HEURISTICS, parse_links, symmetrise_files
from tunesmith.training.classes import CLASSES, make_classes
from tunesmith.training.frequent import FREQUENT, write_frequent
from tunesmith.training.model import HIERO, LM, PHRASES, SIDES, case_file, pieces_file, write_model
from tunesmith.training.rules import (
    AlignedCorpus,
    HieroOptions,
    PhraseOptions,
    RuleTable,
    make_hiero_table,
    make_phrase_table,
)
from tunesmith.training.stages import Progress, Stages, Tell, counted
from tunesmith.training.tags import TAGS, read_tagged, write_tags
from tunesmith.training.text import (
    PIECES,
    PairFilter,
    TextSide,
    check_choice,
    paired,
    read_case,
    spaced,
    write_case,
)

Kind = Literal["phrase", "hiero", "both"]
KINDS: tuple[Kind, ...] = ("phrase", "hiero", "both")
TAGGED_SHARE = 0.5
"""Tagged text in which fewer of the target words occur has other words than the model."""


@dataclass(frozen=True)
class Training:
    """The data and options of a training."""

    source: Path
    target: Path
    source_side: TextSide = field(default_factory=TextSide)
    """How text is prepared; `choose_sides` detects it from a sample."""
    target_side: TextSide = field(default_factory=TextSide)
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
    """Source text to report the coverage of."""
    dev_target: Path | None = None
    """Its translation, to report the perplexity of."""
    tagged: Path | None = None
    """Target text with a tag behind each word, for the template `tag-bigrams`."""
    memory: int = 1 << 30

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, KINDS)
        check_choice("heuristic", self.heuristic, HEURISTICS)
        check_aligner(self.aligner)
        lm.check_order(self.order)
        PairFilter(self.longest, self.ratio)

    def inputs(self) -> list[tuple[str, Path]]:
        """Return the input files, each with its role."""
        given = [
            ("source", self.source),
            ("target", self.target),
            *(("lm_text", path) for path in self.lm_texts),
            ("alignment", self.alignment),
            ("dev", self.dev),
            ("dev_target", self.dev_target),
            ("tagged", self.tagged),
            ("source_pieces", Path(self.source_side.model) if self.source_side.model else None),
            ("target_pieces", Path(self.target_side.model) if self.target_side.model else None),
        ]
        return [(role, path) for role, path in given if path is not None]

    def config(self) -> dict[str, Any]:
        """Return everything that the result depends on, with fingerprints of the files."""
        texts = ("source", "target", "lm_texts", "alignment", "dev", "dev_target", "tagged")
        places = (*texts, "memory")
        plain = {key: value for key, value in asdict(self).items() if key not in places}
        for side in SIDES:
            plain[f"{side}_side"]["model"] = ""
        inputs = [{"role": role, **fingerprint(path)} for role, path in self.inputs()]
        whole = {**plain, "inputs": inputs}
        config: dict[str, Any] = json.loads(json.dumps(whole))
        return config


def train(
    training: Training, folder: Path, threads: int = 0, tell: Tell | None = None
) -> dict[str, Any]:
    """Train a model directory and return its description.

    `tell` is called for every stage: when it begins, as it progresses, when it is done, or when it
    was kept from an earlier training. A stopped training continues after its last finished stage.
    Raise if the texts differ in length, if they give no usable pair or no rule, or if the folder
    holds something else.
    """
    config = training.config()
    _check_texts(training)
    folder.mkdir(parents=True, exist_ok=True)
    with Stages(folder, config, tell or (lambda news: None)) as stages:
        return _train(training, folder, stages, threads)


def _train(training: Training, folder: Path, stages: Stages, threads: int) -> dict[str, Any]:
    work = folder / "work"
    work.mkdir(exist_ok=True)
    corpus = work / "corpus.source", work / "corpus.target"
    links = work / "alignment"
    learnt = _learn(training, folder, stages)
    sides = _sides(training, folder)
    given = () if training.alignment is None else (links,)
    stages.run("text", [*corpus, *given], partial(_prepare, training, sides, corpus, links))
    if training.alignment is None:
        directed = Aligned(work / "forward", work / "backward")
        outputs = [directed.forward, directed.backward]
        stages.run("align", outputs, partial(_align, training, corpus, directed, threads))
        stages.run("symmetrise", [links], partial(_symmetrise, training, directed, links, threads))
    model = folder / LM
    stages.run("lm", [model], partial(_language_model, training, sides[1], corpus, model, threads))
    words = [folder / FREQUENT, folder / CLASSES]
    stages.run("words", words, partial(_words, corpus, links, words, threads))
    if training.tagged is not None:
        tags = folder / TAGS
        stages.run("tags", [tags], partial(_tags, training.tagged, sides[1], corpus[1], tags))
        words.append(tags)
    names = {"phrase": [PHRASES], "hiero": [HIERO], "both": [PHRASES, HIERO]}[training.kind]
    tables = [folder / name for name in names]
    for out in tables:
        stages.run(out.stem, [out], partial(_rules, training, corpus, links, out, threads))
    if training.dev is not None or training.dev_target is not None:
        stages.run("dev", [], partial(_dev, training, sides, tables[0], model))
    files = [*tables, model, *words, *learnt]
    summary = {
        "text": {name: _recorded(side) for name, side in zip(SIDES, sides, strict=True)},
        "stages": stages.facts,
        "files": {path.name: path.stat().st_size for path in files},
    }
    write_model(folder, stages.config, summary)
    return summary


def _recorded(side: TextSide) -> dict[str, str]:
    return {"language": side.language, "tokenize": side.tokenize, "case": side.case}


def _check_texts(training: Training) -> None:
    """Raise early, before any work, for text that a later stage could not use."""
    for text in training.lm_texts:
        for _ in Lines(text):
            pass
    dev = [path for path in (training.dev, training.dev_target) if path is not None]
    texts = [list(Lines(path)) for path in dev]
    for path, lines in zip(dev, texts, strict=True):
        if not any(map(spaced, lines)):
            raise InputError("the dev set is empty", str(path), remedy="give text, or no dev set")
    if len(dev) == 2:
        for _ in paired(texts[0], texts[1], (str(dev[0]), str(dev[1]))):
            pass


def _learn(training: Training, folder: Path, stages: Stages) -> list[Path]:
    """Learn truecasing and pieces if requested; return their files."""
    texts = (training.source, training.target)
    sides = list(zip(SIDES, (training.source_side, training.target_side), texts, strict=True))
    cased = {folder / case_file(name): (side, text) for name, side, text in sides if _cased(side)}
    cut = {
        folder / pieces_file(name): (side, folder / case_file(name), text)
        for name, side, text in sides
        if side.tokenize in PIECES
    }

    def learn_case(progress: Progress) -> dict[str, Any]:
        words = {}
        for path, (side, text) in cased.items():
            learnt = side.learn_case(counted(Lines(text), path.name, progress))
            write_case(learnt, path)
            words[path.name] = len(learnt.truecase)
        return {"words": words}

    def learn_pieces(progress: Progress) -> dict[str, Any]:
        for path, (side, table, text) in cut.items():
            if side.model:
                content = Path(side.model).read_bytes()
            else:
                ready = read_case(side, table) if _cased(side) else side
                content = ready.learn_pieces(counted(Lines(text), path.name, progress))
            with atomic_write(path) as out:
                out.write(content)
        return {}

    if cased:
        stages.run("case", list(cased), learn_case)
    if cut:
        stages.run("pieces", list(cut), learn_pieces)
    return [*cased, *cut]


def _cased(side: TextSide) -> bool:
    return side.case == "true"


def _sides(training: Training, folder: Path) -> tuple[TextSide, TextSide]:
    """Return both sides with the truecasing and pieces learnt for them."""

    def ready(name: str, side: TextSide) -> TextSide:
        if side.tokenize in PIECES:
            side = replace(side, model=str(folder / pieces_file(name)))
        return read_case(side, folder / case_file(name)) if _cased(side) else side

    return ready(SIDES[0], training.source_side), ready(SIDES[1], training.target_side)


def _prepare(
    training: Training,
    sides: tuple[TextSide, TextSide],
    corpus: tuple[Path, Path],
    links: Path,
    progress: Progress,
) -> dict[str, Any]:
    names = str(training.source), str(training.target)
    keeper = PairFilter(training.longest, training.ratio)
    lines = counted(Lines(names[0]), "preparing", progress)
    pairs: Iterable[tuple[str, str]] = paired(lines, Lines(names[1]), names)
    with ExitStack() as stack:
        one, other = (stack.enter_context(AtomicWriter(path)) for path in corpus)
        if training.alignment is None:
            aligned: Iterable[tuple[tuple[str, str], str]] = zip(pairs, repeat(""))
        else:
            kept = stack.enter_context(AtomicWriter(links))
            aligned = _with_links(pairs, training.alignment, names[0])
        for (left, right), given in aligned:
            source, target = sides[0].prepare(left), sides[1].prepare(right)
            if keeper.keep(source, target):
                one.write(source + "\n")
                other.write(target + "\n")
                if training.alignment is not None:
                    kept.write(given + "\n")
        if keeper.kept == 0:
            raise InputError(
                "no sentence pair can be learnt from",
                names[0],
                remedy="check the text, --longest and --ratio",
            )
    return {"pairs": keeper.kept, "dropped": dict(keeper.dropped)}


def _with_links(
    pairs: Iterable[tuple[str, str]], alignment: Path, text: str
) -> Iterable[tuple[tuple[str, str], str]]:
    """Yield pairs with their links; raise for malformed links and a wrong number of lines."""
    links = iter(Lines(alignment))
    count = 0
    for count, pair in enumerate(pairs, 1):
        given = next(links, None)
        if given is None:
            raise InputError(
                f"the alignment ends after {count - 1} lines, but {text} goes on",
                str(alignment),
                count,
                "give one line of links per sentence pair",
            )
        try:
            parse_links(given)
        except InputError as error:
            remedy = "give links such as 0-0 1-2, source first"
            raise InputError(error.message, str(alignment), count, remedy) from None
        yield pair, given
    if next(links, None) is not None:
        raise InputError(
            f"the alignment goes on, but {text} ends after {count} lines",
            str(alignment),
            count + 1,
            "give one line of links per sentence pair",
        )


def _align(
    training: Training,
    corpus: tuple[Path, Path],
    out: Aligned,
    threads: int,
    progress: Progress,
) -> dict[str, Any]:
    return align(*corpus, out, training.aligner, threads=threads, progress=progress)


def _symmetrise(
    training: Training, directed: Aligned, links: Path, threads: int, progress: Progress
) -> dict[str, Any]:
    lines = symmetrise_files(
        directed.forward, directed.backward, links, training.heuristic, threads=threads
    )
    return {"lines": lines}


def _language_model(
    training: Training,
    side: TextSide,
    corpus: tuple[Path, Path],
    out: Path,
    threads: int,
    progress: Progress,
) -> dict[str, Any]:
    texts = [corpus[1]]
    if training.lm_texts:
        more = corpus[1].with_name("more.target")
        with AtomicWriter(more) as file:
            for text in training.lm_texts:
                for line in counted(Lines(text), "preparing", progress):
                    file.write(side.prepare(line) + "\n")
        texts.append(more)
    made = lm.estimate(
        texts,
        order=training.order,
        memory=training.memory,
        threads=threads,
        skip_symbols=True,
        progress=progress,
    )
    made.model().save(out)
    return {
        "order": training.order,
        "sentences": made.sentences,
        "words": made.words,
        "ngrams": [order.ngrams for order in made.orders],
        "messages": made.messages(),
    }


def _words(
    corpus: tuple[Path, Path],
    links: Path,
    out: Sequence[Path],
    threads: int,
    progress: Progress,
) -> dict[str, Any]:
    """Write the files that sparse templates need: frequent words and word classes."""
    frequent, classes = out
    progress("counting", 0, 0)
    aligned = AlignedCorpus(*corpus, links, skip_bad=True)
    pairs, source, target = write_frequent(aligned, frequent, threads=threads)
    progress("classes", 0, 0)
    return {
        "pairs": pairs,
        "unlinked": source + target,
        "classified": make_classes(corpus[1], classes),
    }


def _tags(
    tagged: Path, side: TextSide, corpus: Path, out: Path, progress: Progress
) -> dict[str, Any]:
    """Write the tags of words and phrases; raise if most words of the text have none."""
    progress("tags", 0, 0)
    fold = str.lower if side.case == "lower" else str
    sentences = [[(fold(word), tag) for word, tag in each] for each in read_tagged(tagged)]
    known = {word for each in sentences for word, _ in each}
    found = [word in known for line in Lines(corpus) for word in line.split()]
    share = sum(found) / max(len(found), 1)
    if share < TAGGED_SHARE:
        raise InputError(
            f"only {share:.0%} of the words of the target text have a tag",
            str(tagged),
            remedy=f"tag the words as the model has them: those of {corpus}",
        )
    made = write_tags(sentences, out)
    return {"words": made.words, "phrases": made.phrases, "tagged": f"{share:.1%}"}


def _rules(
    training: Training,
    corpus: tuple[Path, Path],
    links: Path,
    out: Path,
    threads: int,
    progress: Progress,
) -> dict[str, Any]:
    """Extract phrase pairs or hierarchical rules, by the name of the table."""
    progress("reading", 0, 0)
    aligned = AlignedCorpus(*corpus, links, skip_bad=True)
    if out.name == PHRASES:
        make = partial(make_phrase_table, options=training.phrases)
    else:
        make = partial(make_hiero_table, options=training.hiero)
    made = make(aligned, out, memory=training.memory, threads=threads, progress=progress)
    if not made.entries:
        out.unlink()
        raise InputError(
            "no rule can be extracted",
            str(links if training.alignment is None else training.alignment),
            remedy="check that the lines of the texts and their links belong together",
        )
    return asdict(made) | {
        "skipped": {reason: count for reason, count, _ in aligned.skipped},
        "messages": [f"{reason}, the first at {error}" for reason, _, error in aligned.skipped],
    }


def _dev(
    training: Training,
    sides: tuple[TextSide, TextSide],
    rules: Path,
    model: Path,
    progress: Progress,
) -> dict[str, Any]:
    """Return the dev set's coverage by the rules and the perplexity of its translation."""
    facts: dict[str, Any] = {}
    texts: list[list[str]] = []
    for path, side in zip((training.dev, training.dev_target), sides, strict=True):
        lines = [] if path is None else counted(Lines(path), path.name, progress)
        texts.append([side.prepare(line) for line in lines])
    source, target = texts
    if training.dev is not None:
        table = RuleTable(rules)
        words = sum(len(line.split()) for line in source)
        covered = sum(len(_covered(table, line.split())) for line in source)
        facts |= {"words": words, "covered": covered, "coverage": covered / max(words, 1)}
    if training.dev_target is not None:
        found = lm.LanguageModel.load(model).measure(target)
        facts |= {
            "perplexity": found.perplexity,
            "perplexity_known": found.perplexity_known,
            "tokens": found.tokens,
            "unknown": found.unknown,
        }
    return facts


def _covered(table: RuleTable, sentence: Sequence[str]) -> set[int]:
    """Return the positions of a sentence that the source side of some rule covers."""
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
            # Look up the rules of a single word only if no longer source side covers it.
            if end not in places or start not in places:
                places.update(range(start, end + 1) if table.entries(node) else ())
    return places
