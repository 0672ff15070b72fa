"""Local training measured: what it adds to decoding, a million examples, corrections of a stream.

Models and indexes are kept in `benchmarks/results/local`, so that a measurement that was stopped
goes on; delete the folder to make them anew.
"""

from __future__ import annotations

import random
import shutil
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.data import METRIC, Setting, batched, text_lines
from benchmarks.harness import Cell, Claim, Outcome, say
from tunesmith import _core
from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.experiments.plot import Point, draw
from tunesmith.local import Index, Local, LocalTranslator
from tunesmith.local.candidates import Candidates
from tunesmith.local.identity import identity
from tunesmith.local.index import METRIC as KEPT_METRIC
from tunesmith.local.manifest import Manifest, Part
from tunesmith.local.weights import learn
from tunesmith.metrics import Metric, get_metric
from tunesmith.metrics.significance import compare_both
from tunesmith.sources import Live
from tunesmith.spaces import Pools
from tunesmith.training.pipeline import Training, train
from tunesmith.training.text import TextSide
from tunesmith.tuning import tune

KEPT = Path(__file__).resolve().parent / "results" / "local"
K, FEWER = 100, 40
ADDED, MILLISECONDS = 15.0, 50.0
"""Targets: per cent of the decoding time, and milliseconds with a million examples."""
MILLION, PART, SHORT = 1_000_000, 10_000, 10
STREAM, FROM, EVERY = 3000, 20_000, 10
"""Lines of the stream, where it begins, and which of them are corrected."""
DOCS = Path(__file__).resolve().parent.parent / "docs"
SEED = 1


def captions(setting: Setting, name: str, count: int | None = None) -> tuple[list[str], list[str]]:
    """Return a text of Multi30k."""
    source, target = (
        text_lines(setting.file("multi30k", f"{name}.{side}.gz"))[:count] for side in ("de", "en")
    )
    return source, target


def captions_model(setting: Setting) -> Path:
    """Return a model of Multi30k, phrase-based and hierarchical, trained at the first call."""
    folder = KEPT / "captions" / "model"
    if not (folder / "model.toml").exists():
        say("  training on captions")
        folder.parent.mkdir(parents=True, exist_ok=True)
        for side, lines in zip(("de", "en"), captions(setting, "train"), strict=True):
            (folder.parent / f"train.{side}").write_text("\n".join([*lines, ""]))
        de, en = (TextSide(each, tokenize="none") for each in ("de", "en"))
        files = folder.parent / "train.de", folder.parent / "train.en"
        train(Training(*files, de, en, "both"), folder)
    return folder


def captions_translator(setting: Setting, kind: Any) -> Translator:
    """Return a translator with the settings that `translate` has, tuned on val."""
    model = Model.load(captions_model(setting), kind)
    file = KEPT / "captions" / f"{kind}.toml"
    if not file.exists():
        say(f"  tuning the {kind} model")
        source, target = captions(setting, "val", 300)
        live = Live(model, source, [[each] for each in target], tokenized=True)
        tune(live, "kbmira", METRIC, start=model.weights, iterations=3).weights.save(file)
    return model.translator(file, tokenized=True)


def captions_index(setting: Setting, translator: Translator) -> Index:
    """Return the index of the captions of training, built at the first call.

    The hierarchical lists are decoded at a lower pop limit than `translate` has, to save time: they
    are as long, and only how long it takes to read and to learn from them is measured.
    """
    model = translator.model
    source, target = captions(setting, "train", 1000 if setting.quick else None)
    search = {**translator.settings, **({"pop_limit": 30} if model.kind == "hiero" else {})}
    faster = model.translator(translator.weights, search, tokenized=True)
    folder = KEPT / "captions" / f"{model.kind}-{len(source)}"
    if not (folder / "index.json").exists() or Manifest.load(folder).building is not None:
        say(f"  building the {model.kind} index")
        Index.build(folder, faster, source, target, k=K).close()
    return Index.open(folder, faster)


def stages(
    index: Index, translator: Translator, how: Local, lines: Sequence[str]
) -> dict[str, float]:
    """Return CPU seconds: finding neighbours, reading their lists, training, decoding.

    Sentences are decoded with their own weights and with the common ones, each by a fresh
    translator, one thread, in turn batch by batch.
    """
    tuner, base = how.tuner(), translator.weights
    model = translator.model
    own, plain = (model.translator(base, translator.settings, tokenized=True) for _ in range(2))
    spent = dict.fromkeys(("search", "lists", "training", "own", "common"), 0.0)

    def timed(name: str, work: Any, parts: Sequence[Any]) -> list[Any]:
        begun = time.process_time()
        found = [work(part) for part in parts]
        spent[name] += time.process_time() - begun
        return found

    for part in batched(lines, 50):
        near = timed("search", lambda words: index.near(words, how.k), translator.prepared(part))
        ids = [[each.id for each in found] for found in near]
        blocks = timed("lists", index.blocks, [each for each in ids if each])
        changed = iter(
            timed(
                "training",
                lambda lists: learn(tuner, lists, index.metric, base, translator.fixed),
                blocks,
            )
        )
        changes = [next(changed) if each else {} for each in ids]
        timed(
            "own", lambda batch: own.batch(batch[0], threads=1, changes=batch[1]), [(part, changes)]
        )
        timed("common", lambda batch: plain.batch(batch, threads=1), [part])
    return spent


def speed(setting: Setting) -> Outcome:
    """Return what retrieval and training add to decoding (their Table 2)."""
    outcome = Outcome("Local training on Multi30k: CPU milliseconds a sentence")
    count = 100 if setting.quick else 300
    warm, test = captions(setting, "val", count)[0], captions(setting, "test_2016_flickr", count)[0]
    for kind in ("hiero", "phrase"):
        translator = captions_translator(setting, kind)
        index = captions_index(setting, translator)
        for method, k in (("ebuu", K), ("mbuu", K), ("ebuu", FEWER)):
            how = Local(method, k=k)
            stages(index, translator, how, warm)
            rounds = [stages(index, translator, how, test) for _ in range(setting.times(3))]
            shares = [100 * _added(each) / each["common"] for each in rounds]
            middle = rounds[shares.index(statistics.median_low(shares))]
            row: dict[str, Cell] = {"decoder": kind, "method": method, "K": k}
            row["examples"] = len(index)
            names = {"search": "neighbours", "lists": "their lists", "training": "training"}
            row |= {names[key]: 1000 * middle[key] / len(test) for key in names}
            row["decoding"] = 1000 * middle["common"] / len(test)
            row["with own weights"] = 1000 * middle["own"] / len(test)
            added = 100 * _added(middle) / middle["common"]
            row["added, %"] = added
            outcome.rows.append(row)
            if (method, k) == ("ebuu", K):
                text = f"{kind}: retrieval and training add to decoding"
                outcome.claims.append(Claim(text, added, ADDED, "at most", "%"))
        index.close()
    outcome.notes += [
        f"{len(test)} sentences of test 2016 after as many of val; one thread, batches of 50; "
        "settings of `translate`; the middle of three rounds",
        "examples of the hierarchical decoder have lists of a search with pop limit 30",
        "with own weights: decoding with the weights that were learnt for the sentence",
        "added: neighbours, lists and training together, relative to decoding with common weights",
    ]
    return outcome


def _added(spent: dict[str, float]) -> float:
    return spent["search"] + spent["lists"] + spent["training"]


# -- a million examples --------------------------------------------------------------------


def mixed_texts(setting: Setting) -> list[list[list[str]]]:
    """Return the words of the sentences of three corpora, in lower case."""
    files = ("tatoeba", "de-en.de.gz"), ("lohelp", "de-en.de.gz"), ("bible", "bible.es.gz")
    return [
        [
            words
            for line in text_lines(setting.file(*file))
            if len(words := line.lower().split()) > 1
        ]
        for file in files
    ]


def recombined(
    corpora: Sequence[Sequence[Sequence[str]]], count: int, seed: int
) -> Iterator[list[str]]:
    """Yield sentences: the halves of two sentences of a corpus, every tenth word replaced."""
    rng = random.Random(seed)
    every = [(corpus, [word for words in corpus for word in words]) for corpus in corpora]
    for number in range(count):
        corpus, running = every[number % len(every)]
        one, other = rng.choice(corpus), rng.choice(corpus)
        words = [*one[: (len(one) + 1) // 2], *other[len(other) // 2 :]]
        yield [rng.choice(running) if rng.random() < 0.1 else word for word in words]


def large_index(setting: Setting, translator: Translator, count: int, length: int) -> Index:
    """Return an index of recombined sentences; their lists are those of some captions, in turn."""
    folder = KEPT / f"index-{count}"
    if (folder / "index.json").exists() and Manifest.load(folder).building is None:
        return Index.open(folder, translator)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    say(f"  making {count:,} examples")
    source, target = captions(setting, "train", 1000)
    lists = translator.nbest(source, length)
    pools = Pools(lists.core, [[each] for each in target], lists.sources)
    pools.table(KEPT_METRIC)
    corpora = [[w for n, w in enumerate(each) if n % 500] for each in mixed_texts(setting)]
    sentences = recombined(corpora, count, SEED)
    rng = random.Random(SEED)
    manifest = Manifest(identity(translator), length, repr(KEPT_METRIC), "words")
    texts: list[str] = []
    while len(texts) < count:
        size = min(PART, count - len(texts))
        chosen = [rng.randrange(pools.sentences) for _ in range(size)]
        part = pools.subset(chosen)
        lines = [" ".join(next(sentences)) for _ in range(size)]
        ids = range(len(texts), len(texts) + size)
        name = manifest.next_part
        found = _core.Examples.write(
            folder / name,
            list(ids),
            lines,
            part.references or [],
            part.core,
            part.table(KEPT_METRIC),
            KEPT_METRIC.native,
        )
        manifest = manifest.with_part(Part(name, *found))
        texts += lines
    Candidates.create(folder / "words", enumerate(texts)).close()
    Manifest(**{**vars(manifest), "next_id": count}).save(folder)
    return Index.open(folder, translator)


def million(setting: Setting) -> Outcome:
    """Return the time of retrieval, training and adding with a million examples, and recall."""
    count = 20_000 if setting.quick else MILLION
    outcome = Outcome(f"Local training with {count:,} examples, K = {K}: milliseconds a sentence")
    translator = captions_translator(setting, "phrase")
    index = large_index(setting, translator, count, SHORT)
    long = captions_index(setting, translator)
    held = [words for each in mixed_texts(setting) for words in each[::500]]
    random.Random(SEED).shuffle(held)
    asked = [" ".join(words) for words in held[: 40 if setting.quick else 300]]
    tuner = Local("ebuu", k=K).tuner()
    spent: dict[str, list[float]] = {"neighbours": [], "their lists": [], "training": []}

    def step(name: str, work: Any, given: Any) -> Any:
        begun = time.process_time()
        found = work(given)
        spent[name].append(1000 * (time.process_time() - begun))
        return found

    own = translator.prepared(captions(setting, "test_2016_flickr", len(asked))[0])
    for words, caption in zip(asked, own, strict=True):
        step("neighbours", lambda words: index.near(words, K), words)
        ids = [each.id for each in long.near(caption, K)]
        lists = step("their lists", long.blocks, ids)
        step(
            "training",
            lambda lists: learn(tuner, lists, index.metric, translator.weights, translator.fixed),
            lists,
        )
    long.close()
    whole = [sum(each) for each in zip(*spent.values(), strict=True)]
    for name, times in (*spent.items(), ("together", whole)):
        outcome.rows.append({"step": name, **_quantiles(times)})
    adding = []
    source, target = captions(setting, "val", 20)
    for line, reference in zip(source, target, strict=True):
        begun = time.perf_counter()
        ids = index.add(translator, [line], [reference], threads=1)
        adding.append(1000 * (time.perf_counter() - begun))
        index.remove(ids)
    outcome.rows.append({"step": "adding one example (on the clock)", **_quantiles(adding)})
    recall = []
    for words in asked[: 10 if setting.quick else 40]:
        exact = {each.id for each in index.near(words, K, exact=True)}
        recall.append(len(exact & {each.id for each in index.near(words, K)}) / len(exact))
    index.close()
    outcome.notes += [
        "halves of two sentences of tatoeba, lohelp or the Bible (in lower case, words as they "
        "stand between spaces), every tenth word replaced; to save time and disk their lists are "
        f"those of 1,000 captions, {SHORT} long, dealt at random",
        f"lists and training: of captions with lists of {K}, as in `local-speed`",
        f"{len(asked)} sentences of the same texts that were not used; CPU time, one thread",
        f"of the {K} nearest of an exact search, {100 * statistics.mean(recall):.1f}% are found "
        f"({len(recall)} sentences, the worst {100 * min(recall):.0f}%)",
    ]
    outcome.claims += [
        Claim("retrieval and training, mean", statistics.mean(whole), MILLISECONDS, "at most", "ms")
    ]
    return outcome


def _quantiles(times: Sequence[float]) -> dict[str, Cell]:
    ordered = sorted(times)
    return {
        "mean": statistics.mean(ordered),
        "median": statistics.median(ordered),
        "99%": ordered[int(0.99 * (len(ordered) - 1))],
    }


# -- corrections ---------------------------------------------------------------------------


def stream_model(setting: Setting, stream: set[str]) -> tuple[Translator, Path]:
    """Return a translator of captions, short sentences and other help texts, tuned on captions.

    The second part is the folder that it lies in. Both are made at the first call.
    """
    kept = KEPT / f"stream{'-quick' if setting.quick else ''}"
    folder, file = kept / "model", kept / "weights.toml"

    def raw(name: str) -> list[tuple[str, str]]:
        sides = (text_lines(setting.file("multi30k", f"raw.{name}.{s}.gz")) for s in ("de", "en"))
        return list(zip(*sides, strict=True))

    if not (folder / "model.toml").exists():
        say("  training for the stream")
        pairs = raw("train")
        for name, step in (("tatoeba", 3), ("lohelp", 1)):
            files = (setting.file(name, f"de-en.{side}.gz") for side in ("de", "en"))
            both = list(zip(*map(text_lines, files), strict=True))[::step]
            pairs += [each for each in both if each[0] not in stream]
        pairs = pairs[:: 20 if setting.quick else 1]
        kept.mkdir(parents=True, exist_ok=True)
        for place, side in enumerate(("de", "en")):
            (kept / f"train.{side}").write_text("".join(f"{pair[place]}\n" for pair in pairs))
        de, en = (TextSide(each, "moses", "lower") for each in ("de", "en"))
        train(Training(kept / "train.de", kept / "train.en", de, en, "phrase"), folder)
    model = Model.load(folder, "phrase")
    val = raw("val")
    if not file.exists():
        say("  tuning for the stream")
        source, target = zip(*val[: 50 if setting.quick else 400], strict=True)
        live = Live(model, list(source), [[each] for each in target])
        tune(live, "mert", METRIC, start=model.weights, iterations=4).weights.save(file)
    translator = model.translator(file)
    source, target = zip(*val[400:], strict=True)
    if not (kept / "index" / "index.json").exists():
        Index.build(kept / "index", translator, source, target, k=K).close()
    return translator, kept


def feedback(setting: Setting) -> Outcome:
    """Return the quality of a stream of help texts of which every tenth sentence is corrected."""
    count, window = (200, 50) if setting.quick else (STREAM, 300)
    files = (setting.file("lohelp", f"de-en.{side}.gz") for side in ("de", "en"))
    pairs = list(zip(*map(text_lines, files), strict=True))[FROM:]
    pairs = [each for each in pairs if 0 < len(each[0].split()) <= 40 and each[1].strip()][:count]
    translator, kept = stream_model(setting, {source for source, _ in pairs})
    learning = kept / "learning"
    shutil.rmtree(learning, ignore_errors=True)
    shutil.copytree(kept / "index", learning)
    still, growing = (Index.open(each, translator) for each in (kept / "index", learning))
    outputs: dict[str, list[str]] = {}
    ways = {"without": still, "with corrections": growing}
    adapted = {name: LocalTranslator(translator, index) for name, index in ways.items()}
    known: dict[str, str] = {}
    for start in range(0, len(pairs), EVERY):
        part = pairs[start : start + EVERY]
        lines = [source for source, _ in part]
        found = {"common weights": [each.target for each in translator.batch(lines)]}
        for name, local in adapted.items():
            found[f"local, {name}"] = [each.target for each in local.batch(lines)]
        found["corrections verbatim, too"] = [
            known.get(line, text)
            for line, text in zip(lines, found["local, with corrections"], strict=True)
        ]
        for name, texts in found.items():
            outputs.setdefault(name, []).extend(texts)
        source, target = part[-1]
        growing.add(translator, [source], [target])
        known[source] = translator.prepared_references([target])[0]
    for index in ways.values():
        index.close()
    references = [translator.prepared_references([target]) for _, target in pairs]
    metric = get_metric(METRIC)
    rows = {name: metric.stats(texts, references) for name, texts in outputs.items()}
    return _stream(setting, rows, window, len(known), metric)


def _stream(
    setting: Setting, rows: dict[str, Any], window: int, corrected: int, metric: Metric
) -> Outcome:
    """Return scores by window and of all, and draw the scores up to each sentence."""
    outcome = Outcome("A stream of help texts, every tenth sentence corrected: BLEU")
    names = list(rows)
    total = len(rows[names[0]])
    curves: dict[str, list[Point]] = {name: [] for name in names}
    for start in range(0, total, window):
        end = min(start + window, total)
        row: dict[str, Cell] = {"sentences": f"{start + 1} to {end}"}
        row |= {name: metric.score(rows[name][start:end].sum(axis=0)) for name in names}
        outcome.rows.append(row)
        for name in names:
            curves[name].append(Point(end, metric.score(rows[name][:end].sum(axis=0))))
    whole: dict[str, Cell] = {"sentences": "all"}
    whole |= {name: metric.score(rows[name].sum(axis=0)) for name in names}
    outcome.rows.append(whole)
    base = rows["local, without"]
    for name in names:
        if name != "local, without":
            p = compare_both(metric, [base], [rows[name]], 1000).p
            outcome.notes.append(f"{name}: p = {p:.3f} against local, without")
    outcome.notes += [
        f"{total} lines of lohelp in order, not trained on; weights tuned on captions; examples at "
        f"the start: 614 captions; {corrected} different sentences corrected with their references",
        "verbatim: a sentence that was corrected before has its correction (`serve --memory`)",
    ]
    drawn = draw(
        "Corrections of every tenth sentence", "sentences so far", "BLEU of all so far", curves
    )
    (KEPT if setting.quick else DOCS).joinpath("feedback.svg").write_text(drawn, encoding="utf-8")
    return outcome
