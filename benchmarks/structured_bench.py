"""The tagger and the parser: accuracy by beam and update, CRFsuite and NLTK on the same text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.data import Setting
from benchmarks.harness import Cell, Claim, Outcome, best_of, in_turn, say, several, timed
from benchmarks.structured_plot import plot
from tunesmith.structured import Model, Parser, Tagger, Training, read_conllu, train
from tunesmith.structured.settings import UPDATES, Pass
from tunesmith.structured.tasks import NLTK_TEMPLATES

BEAMS = (1, 2, 4, 8, 16, 32)
SEEDS = (1, 2, 3)
SLOW = {"parser": 16}
"""The beam from which on a task is learnt with one seed only."""
TAGGER_PASSES, PARSER_PASSES = 8, 6
CHOOSING = 10
"""Every tenth sentence of the training text chooses the pass."""
COMPARED_PASSES = 5
REPEATS = 3
CRF_L2 = (0.1, 0.3, 1.0)
PLOT = Path(__file__).resolve().parent.parent / "docs" / "structured-curves.svg"
PLOTTED = {"tagger": 2, "parser": 8}
Pairs = list[Any]


def _texts(setting: Setting, task: Tagger | Parser) -> tuple[Pairs, Pairs, Pairs]:
    """Return examples to learn from, to choose the pass by, and to report on."""
    files = [setting.file("pos", f"en_partut-ud-{part}.conllu.gz") for part in ("train", "dev")]
    whole, dev = ([task.example(each) for each in read_conllu(file)] for file in files)
    if setting.quick:
        whole, dev = whole[:200], dev[:40]
    learnt = [pair for number, pair in enumerate(whole) if number % CHOOSING]
    return learnt, whole[::CHOOSING], dev


def _accuracy(model: Model, pairs: Pairs, right: Callable[[Any, Any], tuple[int, int]]) -> float:
    found = model.predict([given for given, _ in pairs], threads=1)
    counts = [right(wanted, out) for (_, wanted), out in zip(pairs, found, strict=True)]
    return 100.0 * sum(ok for ok, _ in counts) / sum(all_ for _, all_ in counts)


def _grid(
    setting: Setting, task: Tagger | Parser, passes: int, measure: str
) -> tuple[list[dict[str, Cell]], dict[str, list[float]]]:
    """Return a row for each beam and update, and the curves of the plotted beam: means of seeds."""
    texts = _texts(setting, task)
    passes = 2 if setting.quick else passes
    rows: list[dict[str, Cell]] = []
    curves: dict[str, list[float]] = {}
    for beam in BEAMS[:2] if setting.quick else BEAMS:
        slow = beam >= SLOW.get(task.NAME, beam + 1)
        seeds = SEEDS[: setting.times(1 if slow else len(SEEDS))]
        for update in UPDATES:
            trainings = [
                Training(beam=beam, update=update, passes=passes, seed=seed) for seed in seeds
            ]
            found = [_trained(task, each, texts) for each in trainings]
            histories = [model.history for model, _, _ in found]
            scores = [accuracy for _, accuracy, _ in found]
            say(f"  beam {beam}, {update}: {several(scores)}")
            rows.append(
                {
                    "beam": beam,
                    "update": update,
                    f"{measure}, %": mean(scores),
                    "±": (max(scores) - min(scores)) / 2 if len(scores) > 1 else None,
                    "after pass 1, choosing": mean(each[0].dev or 0.0 for each in histories),
                    "best, choosing": mean(
                        model.history[model.kept - 1].dev or 0.0 for model, _, _ in found
                    ),
                    "updates": round(mean(_sum(each, "updates") for each in histories)),
                    "no violations": round(mean(_sum(each, "invalid") for each in histories)),
                    "CPU s per pass": min(spent for _, _, spent in found),
                }
            )
            if beam == PLOTTED[task.NAME]:
                curves[update] = [
                    mean(each.dev or 0.0 for each in same) for same in zip(*histories, strict=True)
                ]
    return rows, curves


def _trained(
    task: Tagger | Parser, training: Training, texts: tuple[Pairs, Pairs, Pairs]
) -> tuple[Model, float, float]:
    """Return a model, its accuracy on the dev file, and CPU seconds per pass."""
    learnt, choosing, dev = texts
    model, spent = timed(partial(train, task, learnt, training, dev=choosing, threads=1))
    return model, _accuracy(model, dev, task.right), spent.cpu / training.passes


def _sum(history: Sequence[Pass], name: str) -> int:
    return sum(getattr(each, name) for each in history)


def _best(rows: Sequence[dict[str, Cell]], update: str, key: str) -> float:
    return max(float(str(row[key])) for row in rows if row["update"] == update)


def _claims(outcome: Outcome) -> list[Claim]:
    key = "best, choosing"
    return [
        Claim(
            "max-violation against the standard update, best beam of each, choosing text",
            _best(outcome.rows, "max-violation", key) - _best(outcome.rows, "standard", key),
            0,
            "at least",
            "points",
        ),
        Claim("updates that are no violations, all but unchecked", _invalid(outcome), 0, "at most"),
    ]


def tagger(setting: Setting) -> Outcome:
    """Accuracy of the tagger by beam and update."""
    outcome = Outcome("Tagger: accuracy by beam and update (UPOS, English ParTUT)")
    outcome.rows, curves = _grid(setting, Tagger(), TAGGER_PASSES, "accuracy")
    _draw("tagger", curves, setting)
    outcome.claims = _claims(outcome)
    outcome.notes = [_about("accuracy")]
    return outcome


def parser(setting: Setting) -> Outcome:
    """Unlabelled attachment of the parser by beam and update."""
    outcome = Outcome("Parser: unlabelled attachment by beam and update (gold tags)")
    task = Parser(labelled=False)
    outcome.rows, curves = _grid(setting, task, PARSER_PASSES, "UAS")
    _draw("parser", curves, setting)
    outcome.claims = _claims(outcome)
    outcome.notes = [_about("UAS")]
    if not setting.quick:
        outcome.notes.append(_labelled(setting))
    return outcome


def _labelled(setting: Setting) -> str:
    """Return what a parser with labels does."""
    task = Parser()
    learnt, choosing, dev = _texts(setting, task)
    model = train(task, learnt, Training(passes=PARSER_PASSES), dev=choosing, threads=1)
    unlabelled = _accuracy(model, dev, replace(task, labelled=False).right)
    labelled = _accuracy(model, dev, task.right)
    return (
        f"With labels (beam 8, max-violation): UAS {unlabelled:.2f}, LAS {labelled:.2f}; "
        f"{model.skipped} of {len(learnt)} training sentences have crossing arcs and are left out."
    )


def _about(measure: str) -> str:
    return (
        f"{measure} on the dev file, mean of {len(SEEDS)} seeds (one seed where ± is empty); "
        "±: half of the range. Every tenth training sentence (choosing) is not learnt from and "
        "chooses the pass; times include predicting it."
    )


def _invalid(outcome: Outcome) -> float:
    checked = [row for row in outcome.rows if row["update"] != "unchecked"]
    return sum(float(str(row["no violations"])) for row in checked)


def _draw(name: str, curves: dict[str, list[float]], setting: Setting) -> None:
    """Replace one panel of the plot; the other is kept from the last run."""
    if curves and not setting.quick:
        plot(PLOT, name, curves, PLOTTED[name])


LEARNERS = {
    "perceptron": Training(),
    "perceptron, voted": Training(weights="voted"),
    "perceptron, batch 8": Training(batch=8),
    "perceptron, 2 shards": Training(shards=2),
    "MIRA, C 0.01": Training(learner="mira", c=0.01),
    "MIRA, C 0.1": Training(learner="mira", c=0.1),
    "MIRA, C 1": Training(learner="mira", c=1.0),
    "MIRA, C 0.01, batch 8": Training(learner="mira", c=0.01, batch=8),
    "8-best MIRA, C 0.01": Training(learner="kbest-mira", c=0.01, k=8),
}
LEARNERS_BEAM, LEARNERS_PASSES = 4, 6


def learners(setting: Setting) -> Outcome:
    """Learners and regimes of the tagger."""
    outcome = Outcome(f"Tagger: learners at beam {LEARNERS_BEAM}, max-violation")
    task = Tagger()
    texts = _texts(setting, task)
    passes = 2 if setting.quick else LEARNERS_PASSES
    for name, training in LEARNERS.items():
        training = replace(training, beam=LEARNERS_BEAM, passes=passes)
        found = [
            _trained(task, replace(training, seed=seed), texts)
            for seed in SEEDS[: setting.times(len(SEEDS))]
        ]
        scores = [accuracy for _, accuracy, _ in found]
        say(f"  {name}: {several(scores)}")
        outcome.rows.append(
            {
                "learner": name,
                "accuracy, %": mean(scores),
                "±": (max(scores) - min(scores)) / 2,
                "best, choosing": mean(
                    model.history[model.kept - 1].dev or 0.0 for model, _, _ in found
                ),
                "CPU s per pass": min(spent for _, _, spent in found),
            }
        )
    outcome.notes = [_about("accuracy")]
    return outcome


def rivals(setting: Setting) -> Outcome:
    """The tagger, CRFsuite and NLTK's averaged perceptron with the same templates."""
    outcome = Outcome("Tagger against CRFsuite and NLTK, same sentences and templates")
    task = Tagger(templates=NLTK_TEMPLATES)
    learnt, choosing, dev = _texts(setting, task)
    for beam in (1, 8):
        model = train(task, learnt, Training(beam=beam), dev=choosing, threads=1)
        accuracy = _accuracy(model, dev, task.right)
        training = Training(beam=beam, passes=COMPARED_PASSES)

        def ours(training: Training = training) -> float:
            return _cpu(lambda: train(task, learnt, training, threads=1)) / COMPARED_PASSES

        if beam == 1 and find_spec("nltk"):
            theirs, mine = in_turn(
                setting.times(REPEATS), lambda: _nltk_seconds(learnt, COMPARED_PASSES), ours
            )
            _add(outcome, "ours, beam 1", accuracy, mine, model.kept)
            _add(outcome, "NLTK", _nltk_accuracy(learnt, dev), theirs, COMPARED_PASSES)
            outcome.claims.append(
                Claim(
                    "CPU time per pass, NLTK / ours at beam 1, least of each",
                    min(theirs) / min(mine),
                    5,
                    "at least",
                    "times",
                )
            )
        else:
            times = [ours() for _ in range(setting.times(REPEATS))]
            _add(outcome, f"ours, beam {beam}", accuracy, times, model.kept)
    if find_spec("pycrfsuite"):
        accuracy, time_, passes = _crfsuite(learnt, choosing, dev, setting)
        _add(outcome, "CRFsuite", accuracy, [time_ / passes], passes)
        outcome.rows[-1]["CPU s to the kept model"] = time_
    missing = [name for name in ("nltk", "pycrfsuite") if not find_spec(name)]
    outcome.notes = [
        "Templates are those of NLTK. CRFsuite (L-BFGS) has the ten of them that look at words, "
        "and pairs of neighbouring tags; it cannot have the others.",
        f"CRFsuite's L2 is chosen from {', '.join(map(str, CRF_L2))} by the choosing text, as our "
        "pass is. NLTK has no way to choose: its model is that of the last pass.",
        f"Not installed: {', '.join(missing) or 'none'}.",
    ]
    return outcome


def _add(
    outcome: Outcome, program: str, accuracy: float, times: Sequence[float], passes: int
) -> None:
    say(f"  {program}: {accuracy:.2f}, {min(times):.3f} CPU s per pass")
    outcome.rows.append(
        {
            "program": program,
            "accuracy, %": accuracy,
            "CPU s per pass": several(times, 3),
            "passes": passes,
            "CPU s to the kept model": min(times) * passes,
        }
    )


def _cpu(work: Callable[[], object]) -> float:
    return best_of(1, work)[1].cpu


def _nltk(pairs: Pairs) -> tuple[Any, list[list[tuple[str, str]]]]:
    from nltk.tag.perceptron import PerceptronTagger

    return PerceptronTagger(load=False), [
        list(zip(forms, tags, strict=True)) for forms, tags in pairs
    ]


def _nltk_seconds(pairs: Pairs, passes: int) -> float:
    made, sentences = _nltk(pairs)
    return _cpu(lambda: made.train(sentences, nr_iter=passes)) / passes


def _nltk_accuracy(pairs: Pairs, dev: Pairs) -> float:
    made, sentences = _nltk(pairs)
    made.train(sentences, nr_iter=COMPARED_PASSES)
    right = total = 0
    for forms, tags in dev:
        found = [tag for _, tag in made.tag(list(forms))]
        right, total = right + sum(map(str.__eq__, tags, found)), total + len(tags)
    return 100.0 * right / total


def attributes(forms: Sequence[str]) -> list[list[str]]:
    """Return for each word what NLTK's templates see of the words around it."""
    padded = ["<none>", "<none>", *map(_normal, forms), "<none>", "<none>"]
    return [
        [
            "bias",
            *(f"word{shift:+d}={padded[at + 2 + shift]}" for shift in range(-2, 3)),
            f"suffix3={form[-3:]}",
            f"prefix1={form[:1]}",
            f"suffix3-1={padded[at + 1][-3:]}",
            f"suffix3+1={padded[at + 3][-3:]}",
        ]
        for at, form in enumerate(forms)
    ]


def _normal(form: str) -> str:
    if "-" in form and not form.startswith("-"):
        return "!HYPHEN"
    if form.isdigit() and len(form) == 4:
        return "!YEAR"
    return "!DIGITS" if form[:1].isdigit() else form.lower()


def _crfsuite(
    learnt: Pairs, choosing: Pairs, dev: Pairs, setting: Setting
) -> tuple[float, float, int]:
    """Return accuracy on dev, CPU seconds and iterations of the model that is best on the
    choosing text."""
    import pycrfsuite

    best: tuple[float, float, float, int] | None = None
    with TemporaryDirectory() as folder:
        for l2 in CRF_L2:
            trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
            for forms, tags in learnt:
                trainer.append(attributes(forms), list(tags))
            trainer.set_params(
                {"c1": 0.0, "c2": l2, "max_iterations": 10 if setting.quick else 200}
            )
            path = str(Path(folder) / f"{l2}.crf")
            spent = _cpu(lambda trainer=trainer, path=path: trainer.train(path))  # type: ignore[misc]
            made = pycrfsuite.Tagger()
            made.open(path)
            chosen, reported = (_tagged(made, pairs) for pairs in (choosing, dev))
            say(f"  CRFsuite, L2 {l2}: {chosen:.2f} choosing ({spent:.1f} CPU s)")
            if best is None or chosen > best[0]:
                passes = int(trainer.logparser.last_iteration["num"])
                best = chosen, reported, spent, passes
    assert best is not None
    return best[1:]


def _tagged(made: Any, pairs: Pairs) -> float:
    right = total = 0
    for forms, tags in pairs:
        found = made.tag(attributes(forms))
        right, total = right + sum(map(str.__eq__, tags, found)), total + len(tags)
    return 100.0 * right / total
