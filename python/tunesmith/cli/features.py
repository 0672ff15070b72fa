"""`tunesmith features`: the templates of sparse features, and their features in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from tunesmith.cli import options as o
from tunesmith.cli.console import emit, note, out, table
from tunesmith.decode.templates import SETS, TEMPLATES, TemplateSet, TemplateText, template_of
from tunesmith.decode.translation import KINDS, Model
from tunesmith.errors import InputError

EXAMPLES = (
    "Examples:\n\n"
    "$ tunesmith features\n\n"
    "$ tunesmith features eidelman2013\n\n"
    '$ tunesmith features model rule-id bigrams --sentence "das haus ist alt"'
)


def features(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[MODEL] [TEMPLATE…]",
            help="A model directory; templates or sets (default: all).",
        ),
    ] = None,
    sentence: Annotated[
        str | None,
        o.option("--sentence -s", "TEXT", "Show the features of the model's best translation."),
    ] = None,
    kind: o.Kind = None,
    json: o.Json = False,
) -> None:
    """List the templates of sparse features, or show their features in a sentence."""
    o.one_of("kind", kind, tuple(KINDS))
    given = list(words or [])
    model = Path(given.pop(0)) if given and Path(given[0]).is_dir() else None
    templates, sets = _chosen(given)
    if sentence is None:
        if json:
            emit(
                {
                    "templates": [each._asdict() | {"wants": each.wants} for each in templates],
                    "sets": [each._asdict() for each in sets],
                }
            )
        else:
            _show(templates, sets, model)
        return
    if model is None:
        raise InputError("--sentence without a model", remedy="name the model directory first")
    if not given:
        # What was not asked for by name need not be there.
        lacking = [each for each in templates if not _there(each, model)]
        templates = [each for each in templates if each not in lacking]
        for each in lacking:
            note(f"{each.name} is left out: the model has no {each.wants}")
    names = [each.name for each in templates]
    loaded = Model.load(model, kind, named=names)  # type: ignore[arg-type]
    translator = loaded.translator()
    found = next(iter(translator.translate([sentence], details=1)))
    if not found.source or not found.derivations:
        raise InputError("the model has no translation", remedy="give a sentence with words")
    fired = {
        name: value
        for name, value in translator.features(found.derivations[0]).items()
        if template_of(name) in names
    }
    if json:
        emit({"translation": found.text, "features": fired})
        return
    rows = table(found.text, "feature", "value", "template")
    for name, value in sorted(fired.items(), key=lambda item: (template_of(item[0]), item[0])):
        rows.add_row(name, f"{value:g}", template_of(name))
    out.print(rows)


def _chosen(names: Sequence[str]) -> tuple[list[TemplateText], list[TemplateSet]]:
    """Return the templates and sets with these names, or all if there are no names."""
    templates = {known.name: known for known in TEMPLATES}
    sets = {known.name: known for known in SETS}
    for name in names:
        if name not in templates and name not in sets:
            raise InputError(
                f"no model directory, template or set named {name!r}",
                remedy=f"use one of {', '.join([*templates, *sets])}",
            )
    if not names:
        return TEMPLATES, SETS
    chosen = [sets[name] for name in names if name in sets]
    inside = {name for each in chosen for name in each.templates}
    return [known for known in TEMPLATES if known.name in {*names, *inside}], chosen


def _there(template: TemplateText, model: Path) -> bool:
    """Return whether a model has the file that a template reads."""
    return not template.wants or (model / template.wants).is_file()


def _show(
    templates: Sequence[TemplateText], sets: Sequence[TemplateSet], model: Path | None
) -> None:
    rows = table("", "template", "a feature", "what it is", "wants")
    for column in rows.columns[1:]:
        column.justify = "left"
    for each in templates:
        there = model is None or _there(each, model)
        about = each.about.removesuffix(f"; wants {each.wants}")
        wants = each.wants if there else f"{each.wants} (not in the model)"
        rows.add_row(each.name, each.example, about, wants)
    out.print(rows)
    if not sets:
        return
    rows = table("\nsets", "set", "templates", header=False)
    rows.columns[1].justify = "left"
    for known in sets:
        rows.add_row(known.name, ", ".join(known.templates))
    out.print(rows)
