"""`tunesmith inspect`: a look inside a model, at weights, or at what two weights share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice, product
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.analysis.overlap import constants, differences, length, overlap
from tunesmith.cli import options as o
from tunesmith.cli.console import busy, effect, emit, note, out, table, tell_skipped, warn
from tunesmith.decode.templates import DENSE, groups, template_of
from tunesmith.decode.translation import KINDS
from tunesmith.errors import InputError
from tunesmith.formats import Reading
from tunesmith.runs import RunDirectory
from tunesmith.spaces.moments import spreads
from tunesmith.spaces.reading import read_lists, read_weights, write_weights
from tunesmith.training.model import read_model, rule_tables, text_sides
from tunesmith.training.rules import Rule, find
from tunesmith.training.text import TextSide
from tunesmith.weights import Weights

EXAMPLES = (
    "Examples:\n\n"
    '$ tunesmith inspect model "das haus"\n\n'
    "$ tunesmith inspect weights.toml --top 50\n\n"
    "$ tunesmith inspect weights.txt --lists dev.nbest.gz\n\n"
    "$ tunesmith inspect weights.toml --group rule-id --negative\n\n"
    "$ tunesmith inspect weights.toml --drop-zeros --out small.toml\n\n"
    "$ tunesmith inspect runs/mira runs/rm --group rule-id"
)
WEIGHTS = "Weights"
MOST_SPELLINGS = 1000


def inspect(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|WEIGHTS", help="A model directory, weights, or the directory of a run."
        ),
    ],
    phrase: Annotated[
        str | None,
        typer.Argument(
            metavar="PHRASE|WEIGHTS",
            help="Source words to look up in a model; or other weights, to compare with.",
        ),
    ] = None,
    top: Annotated[
        int,
        o.option("--top", "N", "Maximum number of rules, weights or differences to show.", min=1),
    ] = 20,
    json: o.Json = False,
    kind: o.Kind = None,
    group: Annotated[
        str | None, o.option("--group", "NAME", "Only those of a template, or dense.", WEIGHTS)
    ] = None,
    positive: Annotated[bool, o.flag("--positive", "Only above zero.", WEIGHTS)] = False,
    negative: Annotated[bool, o.flag("--negative", "Only below zero.", WEIGHTS)] = False,
    drop_zeros: Annotated[bool, o.flag("--drop-zeros", "Leave zeros out.", WEIGHTS)] = False,
    lists: Annotated[
        list[Path] | None,
        o.option(
            "--lists",
            "NBEST",
            "Lists for measuring the influence of each feature; without them, those that the "
            "weights were tuned on, if the file knows.",
            WEIGHTS,
        ),
    ] = None,
    format: o.Format = None,
    out_file: Annotated[
        Path | None,
        o.option(
            "--out -o",
            "FILE",
            "Write the weights that these options select; the suffix chooses the format.",
            WEIGHTS,
        ),
    ] = None,
) -> None:
    """Show a model's rules for a phrase, the most important weights, or how two weights differ.

    Weights are sorted by their influence on scores within a list: the weight
    times the spread, the mean standard deviation of the feature's values
    within lists. Weights without a known spread follow, by size.

    Two sets of weights are compared by template: how many features each of
    them has, how many both have, how many of these have opposite signs, and
    the cosine and correlation of the weights. Differences are those between
    weights of the same length: only the direction of weights decides.
    """
    if path.is_dir() and not _is_run(path):
        if RunDirectory(path).stages:
            raise RunDirectory(path).missing()
        if group or positive or negative or drop_zeros or lists or out_file:
            raise InputError(
                "a model has no such options",
                str(path),
                remedy="give them with a weights file, or a phrase with a model",
            )
        o.one_of("kind", kind, tuple(KINDS))
        _model(path, phrase, top, json, kind)
        return
    if kind is not None:
        raise InputError("--kind is for models", str(path), remedy="leave it out")
    if phrase is not None:
        if positive or negative or drop_zeros or lists or out_file or format:
            raise InputError(
                "two sets of weights are compared with --group and --top only",
                remedy="leave the other options out",
            )
        _compare(path, Path(phrase), group, top, json)
        return
    if positive and negative:
        raise InputError("--positive and --negative", remedy="give one of them")
    o.writable(out_file)
    if format is not None and not lists:
        raise InputError("--format without --lists", remedy="name the lists too")
    whole = _read(path)
    if lists:
        whole.meta["spread"] = _spread(whole, lists, format)
    _check_group(group, {each.name for each in groups(whole)}, path)
    # Zeros are neither positive nor negative.
    chosen = Weights(
        {
            name: value
            for name, value in whole.items()
            if (group is None or template_of(name) == group)
            and (not positive or value > 0)
            and (not negative or value < 0)
            and (not drop_zeros or value)
        },
        whole.meta,
    )
    if out_file is not None:
        _write(chosen, whole, out_file, path)
        note(f"{len(chosen):,} of {len(whole):,} weights written to {out_file}")
    if json:
        emit(
            {
                "weights": len(chosen),
                "nonzero": sum(map(bool, chosen.values())),
                "groups": [each._asdict() for each in groups(chosen)],
                "top": chosen.ranked(top),
                "influence": chosen.influence,
                "meta": whole.meta,
            }
        )
    else:
        _weights(chosen, path.name, top)


def _is_run(path: Path) -> bool:
    return RunDirectory(path).config_file.is_file()


def _read(path: Path) -> Weights:
    """Return the weights of a file, or those that a run ended with; raise if it has not ended."""
    if not path.is_dir():
        return read_weights(path)
    run = RunDirectory(path).open()
    if not run.weights_file.is_file():
        raise InputError(
            "the run has no weights yet",
            str(path),
            remedy=f"wait for it, or name a file of {path / 'weights'}",
        )
    return read_weights(run.weights_file)


def _check_group(group: str | None, known: set[str], path: Path) -> None:
    if group is not None and group not in known:
        raise InputError(
            f"no weights of {group}", str(path), remedy=f"there are {', '.join(sorted(known))}"
        )


def _compare(left: Path, right: Path, group: str | None, top: int, json: bool) -> None:
    """Print what two sets of weights have in common, by template, and where they differ most."""
    if not right.exists():
        raise InputError(
            "no such weights; a phrase is looked up in a model",
            str(right),
            remedy="name a file or a run to compare with, or a model directory before the phrase",
        )
    if right.is_dir() and not _is_run(right) and not RunDirectory(right).stages:
        raise InputError(
            "a model has no weights to compare with", str(right), remedy="name its weights.toml"
        )
    a, b = _read(left), _read(right)
    found, idle = overlap(a, b), constants(a, b)
    _check_group(group, {each.template for each in found}, left)
    found = [each for each in found if group in (None, each.template)]
    moved = {
        name: change
        for name, change in differences(a, b).items()
        if group in (None, template_of(name))
    }
    names = list(islice(moved, top))
    if json:
        emit(
            {
                "left": str(left),
                "right": str(right),
                "groups": [{**asdict(each), "share": each.share} for each in found],
                "left_out": sorted(idle),
                "differing": len(moved),
                "differences": [
                    {
                        "feature": name,
                        "template": template_of(name),
                        "left": a.get(name),
                        "right": b.get(name),
                        "difference": moved[name],
                    }
                    for name in names
                ],
            }
        )
        return
    heads = ["A", "B", "both", "share", "opposed", "cosine", "correlation"]
    rows = table(f"A: {left}\nB: {right}", "group", *heads)
    for each in found:
        rows.add_row(
            each.template,
            *(f"{count:,}" for count in (each.left, each.right, each.both)),
            f"{each.share:.1%}",
            f"{each.opposed:,}",
            *("" if v is None else f"{v:+.3f}" for v in (each.cosine, each.correlation)),
        )
    out.print(rows)
    out.print(
        "weights that are not zero; share: of the features of A or B, those of both; opposed: in "
        "both, with opposite signs; correlation: of the weights in both",
        style="dim",
    )
    if idle:
        out.print(
            f"cosine, correlation and differences leave {', '.join(sorted(idle))} out: equal in A "
            "and B, and so large that all else would be hidden",
            style="dim",
        )
    title = "\nLargest differences, both sets of weights scaled to length 1"
    shown = table(title, "feature", "A", "B", "B − A", "group")
    lengths = [length(side, idle) or 1.0 for side in (a, b)]
    for name in names:
        given = (
            f"{side[name] / size:+.4f}" if name in side else ""
            for side, size in zip((a, b), lengths, strict=True)
        )
        shown.add_row(name, *given, f"{moved[name]:+.4f}", template_of(name))
    out.print(shown)
    if len(moved) > top:
        out.print(f"… and {len(moved) - top:,} more (--top)", style="dim")


def _spread(weights: Weights, lists: Sequence[Path], format: str | None) -> dict[str, float]:
    """Return the spread of each weight's feature within lists; raise if no feature matches."""
    with busy("reading"):
        read = read_lists(lists, (), None, Reading(format=format))
    tell_skipped(read.skipped)
    read.pools.check_names(weights, learnt=True)
    known = set(read.pools.names)
    unknown = sum(1 for name, value in weights.items() if value and name not in known)
    if unknown:
        warn(f"weights without a feature in the lists: {unknown:,}")
    return spreads(read.pools, weights)


def _write(chosen: Weights, whole: Weights, to: Path, read: Path) -> None:
    """Write the chosen weights; raise if there are none."""
    if not chosen:
        raise InputError("no weights are left", str(read), remedy="choose others")
    ini = read if read.suffix == ".ini" else None
    if ini is not None and to.suffix == ".ini":
        # Moses needs a value for each label; a copy of the configuration would keep the old one.
        zeros = {name: 0.0 for name, old in whole.items() if old and template_of(name) == DENSE}
        chosen = Weights({**zeros, **chosen}, chosen.meta)
    write_weights(chosen, to, ini)


def _weights(weights: Weights, title: str, top: int) -> None:
    """Print the number of weights by template, the dense ones, and the largest others."""
    found = groups(weights)
    counts = table(title, "group", "weights", "not zero", "sum of |w|", "share")
    for each in found:
        counts.add_row(
            each.name,
            f"{each.weights:,}",
            f"{each.nonzero:,}",
            f"{each.size:.4g}",
            f"{each.share:.1%}",
        )
    sums = (sum(column) for column in zip(*(each[1:3] for each in found), strict=True))
    if len(found) > 1:
        counts.add_row("all", *(f"{each:,}" for each in sums), "", "", style="bold")
    out.print(counts)
    spread, influence = weights.spread, weights.influence
    heads = ["spread", "product"] if spread else []
    for name, part in _parts(weights):
        grouped = ["group"] if name != DENSE else []
        shown = table(f"\n{name}", "feature", "weight", *heads, *grouped)
        for feature, value in part.ranked(top).items():
            group = [template_of(feature)] if name != DENSE else []
            shown.add_row(feature, f"{value:+.4g}", *effect(feature, spread, influence), *group)
        out.print(shown)
        if len(part) > top:
            out.print(f"… and {len(part) - top:,} more (--top)", style="dim")
    if spread:
        out.print("\nspread: mean standard deviation of the feature within lists", style="dim")
    else:
        out.print("\nby size, which says little about influence (use --lists NBEST)", style="dim")


def _parts(weights: Weights) -> Iterator[tuple[str, Weights]]:
    """Yield the dense and the sparse weights, unless empty."""
    parts: dict[str, dict[str, float]] = {DENSE: {}, "sparse": {}}
    for name, value in weights.items():
        parts[DENSE if template_of(name) == DENSE else "sparse"][name] = value
    yield from ((name, Weights(part, weights.meta)) for name, part in parts.items() if part)


def _model(model: Path, phrase: str | None, top: int, json: bool, kind: str | None) -> None:
    """Print the rules for a phrase, or the number of rules."""
    description = read_model(model)
    wanted = [file for name, (file, _) in KINDS.items() if kind in (None, name)]
    tables = {name: held for name, held in rule_tables(model).items() if f"{name}.rules" in wanted}
    if not tables:
        raise InputError(
            f"the model has no rules of kind {kind}", str(model), remedy="leave --kind out"
        )
    if phrase is None:
        if json:
            emit(description)
            return
        rows = table(str(model), "table", "rules", "sources", "MB")
        for name, held in tables.items():
            rows.add_row(name, f"{len(held):,}", f"{held.sources:,}", f"{held.bytes / 1e6:.1f}")
        out.print(rows)
        return
    asked = phrase
    for phrase in _spellings(asked, text_sides(model)[0]):
        found = {name: find(held, phrase) for name, held in tables.items()}
        if any(found.values()):
            break
    else:
        phrase = asked
    if phrase != asked:
        note(f"{asked!r} is not there: these are the rules for {phrase!r}")
    shown = {name: _best_first(rules)[:top] for name, rules in found.items()}
    if json:
        emit(
            {
                name: [
                    {"target": " ".join(r.target), "scores": r.scores, "links": r.links}
                    for r in rules
                ]
                for name, rules in shown.items()
            }
        )
        return
    for name, rules in found.items():
        if not rules:
            out.print(f"{name}: no rule for {phrase!r}", markup=False)
            continue
        columns = list(rules[0].scores)
        rows = table(f"\n{name}: {phrase}", "target", *columns)
        for rule in shown[name]:
            rows.add_row(" ".join(rule.target), *(f"{rule.scores[c]:.4g}" for c in columns))
        out.print(rows)
        if len(rules) > top:
            out.print(f"… and {len(rules) - top} more (--top)", style="dim")


def _best_first(rules: Sequence[Rule]) -> list[Rule]:
    """Return rules sorted by their third score, or by the first if there are fewer than three."""

    def score(rule: Rule) -> list[float]:
        scores = list(rule.scores.values())
        return scores[2:3] or scores[:1]

    return sorted(rules, key=score, reverse=True)


def _spellings(phrase: str, side: TextSide) -> Iterator[str]:
    """Yield a phrase unchanged, then tokenised as by the model, with and without capitals."""
    yield phrase
    for cut in (str, side.prepare):
        forms = (
            dict.fromkeys([word, side.truecase.get(low, word), low, word[:1].upper() + word[1:]])
            for word in cut(phrase).split()
            for low in [word.lower()]
        )
        yield from islice(map(" ".join, product(*forms)), MOST_SPELLINGS)
