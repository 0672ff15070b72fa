"""The charts of the report: how scores, gains, weights and costs went from epoch to epoch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle

from tunesmith.report.chart import LARGE, LOW, MEDIUM, NARROW, Chart, Point, Size, legend_items
from tunesmith.report.scale import around
from tunesmith.report.story import Story, Trial, number, table
from tunesmith.report.wording import (
    brief,
    count,
    decimals,
    duration,
    fixed,
    metric_name,
    plural,
    time_unit,
)

Text = Callable[[float], str]

CHART_WEIGHTS = 12
MOST_BARS = 60
COLOURS = ("blue", "red", "green", "purple", "amber", "sky")
HELDOUT = ("red", "purple", "green", "sky")
# The parts of an epoch's time; summed over threads, so they may exceed the whole.
PARTS = (("decode_seconds", "decoding", "blue"), ("optimise_seconds", "optimising", "green"))


def learning_curve(story: Story) -> str:
    """Return the chart of scores by epoch, on the lists and held out, for all runs."""
    best = story.best
    start, oracle = story.figure("start"), story.oracle
    if best is None:
        return ""
    scores = [e.score for trial in story.trials for e in trial.epochs if e.score is not None]
    texts = list(zip(story.heldout.items(), cycle(HELDOUT)))
    held = [
        score
        for trial in story.trials
        for (key, _), _ in texts
        for _, score in _points(trial, key)
        if score is not None
    ]
    if not scores and not held:
        return ""
    expected = [e.projected for e in best.epochs if e.projected is not None]
    inside = scores + held + expected + ([] if start is None else [start])
    low, high = around(inside)
    far = oracle is not None and not low - (high - low) <= oracle <= high + (high - low)
    if oracle is not None and not far:
        low, high = around([*inside, oracle])
    places = decimals(*inside)
    name = metric_name(story.start.get("metric", "score"))
    first = 0 if start is not None else _first(story.trials)
    chart = Chart(
        "learning-curve",
        "Learning curve",
        MEDIUM,
        _epochs(story.trials, first),
        (low, high),
        note=f"{name} of the model’s choices after each epoch; "
        f"{'higher' if story.higher else 'lower'} is better. {_which(story)}".strip(),
    )

    def formatted(value: float) -> str:
        return fixed(value, places)

    begin: list[Point] = [] if start is None else [(0.0, start)]
    for trial in story.trials:
        if trial is not best:
            chart.line(
                f"run {trial.index + 1}",
                begin + _points(trial, "score"),
                "blue",
                formatted,
                faint=True,
            )
            for (key, _), colour in texts:
                chart.line(
                    f"run {trial.index + 1}",
                    _points(trial, key),
                    colour,
                    formatted,
                    dashed=True,
                    faint=True,
                )
    if start is not None:
        chart.rule(start, f"start {formatted(start)}", above=story.higher is False)
    if oracle is not None:
        if far:
            chart.beyond(f"oracle {formatted(oracle)}", upwards=oracle > high)
        else:
            chart.rule(oracle, f"oracle {formatted(oracle)}")
    chart.line(
        f"expected of the {story.space}s",
        _points(best, "projected"),
        "amber",
        formatted,
        dashed=True,
    )
    chart.line(
        "decoded" if expected or best.epochs[0].decode_seconds is not None else "on the lists",
        begin + _points(best, "score"),
        "blue",
        formatted,
        extra=_range(story, "score", formatted),
    )
    for (key, title), colour in texts:
        chart.line(
            title,
            _points(best, key),
            colour,
            formatted,
            dashed=True,
            extra=_range(story, key, formatted),
        )
    for epoch in best.epochs:
        if epoch.epoch == best.best_epoch and epoch.score is not None:
            chart.ring(epoch.epoch, epoch.score, "blue")
    return chart.figure()


def gain_bars(story: Story) -> str:
    """Return the chart of the mean gain of oracle, model and prediction per epoch, as bars."""
    best = story.best
    if best is None:
        return ""
    # Too many bars are unreadable: show every k-th epoch.
    every = -(-len(best.epochs) // MOST_BARS)
    epochs = best.epochs[:: max(1, every)]
    series = [
        (name, [(float(e.epoch), e.value(name)) for e in epochs], colour)
        for name, colour in (("oracle", "green"), ("model", "blue"), ("prediction", "amber"))
    ]
    groups = [one for one in series if any(y is not None for _, y in one[1])]
    if not groups:
        return ""
    values = [y for _, points, _ in groups for _, y in points if y is not None]
    low, high = _epochs([best], _first([best]))
    chart = Chart(
        "gains",
        "Gains of chosen hypotheses",
        MEDIUM,
        (low - 0.6 * max(1, every), high + 0.6 * max(1, every)),
        around(values, zero=True),
        note="Mean sentence gain in each pass: of the model’s best, and of the tuner’s "
        "example (oracle) and counter-example (prediction)."
        + (f" One epoch in {every} is shown." if every > 1 else ""),
    )
    chart.bars(groups, lambda value: fixed(value, 4))
    return chart.figure()


def weight_lines(story: Story) -> str:
    """Return the chart of the largest weights over the epochs of the best run."""
    best = story.best
    epochs = [epoch for epoch in best.epochs if epoch.weights] if best else []
    if len(epochs) < 2 or best is None:
        return ""
    last = epochs[-1].weights
    moved = best.moved
    names = story.ranked({name: last[name] for name in moved or last})[:CHART_WEIGHTS]
    names.sort(key=lambda name: -last[name])
    values = [e.weights[name] for e in epochs for name in names if name in e.weights]
    first = _first([best])
    chart = Chart(
        "weights-over-time",
        "Weights over time",
        LARGE,
        (first, float(epochs[-1].epoch)),
        around(values),
        note=f"The {len(names)} {'that matter most' if story.spread else 'largest by magnitude'}"
        + (" of those that move" if moved else "")
        + (f", run {best.index + 1}, the best." if len(story.trials) > 1 else "."),
    )
    if min(values) < 0 < max(values):
        chart.rule(0.0, "")
    for order, name in enumerate(names):
        chart.line(
            name,
            [(float(e.epoch), e.weights.get(name)) for e in epochs],
            COLOURS[order % len(COLOURS)],
            brief,
            dashed=order >= len(COLOURS),
            value=brief(last[name]),
        )
    side = f'<ul class="legend column">{legend_items(chart.legend)}</ul>'
    return chart.figure("wide", side)


def spread_ribbon(story: Story, best: Trial, size: Size) -> str:
    """Return the chart of mean and standard deviation of the spread, with the bound if any."""
    known = [epoch for epoch in best.epochs if epoch.spread is not None]
    band = [
        (float(e.epoch), (e.spread or 0) - (e.spread_sd or 0), (e.spread or 0) + (e.spread_sd or 0))
        for e in known
    ]
    options = table(story.start.get("options")) or table(story.config.get("options"))
    bound = number(options.get("bound", options.get("B")))
    values = [edge for _, low, high in band for edge in (low, high)]
    reach = max(values) - min(values)
    near = bound is not None and min(values) - reach <= bound <= max(values) + reach
    chart = Chart(
        "spread",
        "Spread",
        size,
        _epochs([best], _first([best])),
        around([*values, bound] if near and bound is not None else values),
        note="Score of the oracle minus that of the worst, mean ± standard deviation.",
    )
    chart.band(band, "purple")
    deviations = {e.epoch: e.spread_sd for e in known}
    if near and bound is not None:
        chart.rule(bound, f"bound {bound:g}", above=False)

    def deviation(x: float) -> str:
        found = deviations.get(int(x))
        return "" if found is None else f" ± {brief(found)}"

    chart.line("spread", _points(best, "spread"), "purple", brief, extra=deviation)
    return chart.figure()


def small_charts(story: Story) -> list[str]:
    """Return the charts of spread, non-zero features, weight change and time, if known."""
    best = story.best
    # One epoch is not a curve; its numbers are in the table.
    if best is None or len(best.epochs) < 2:
        return []
    known = [
        key
        for key in ("spread", "nonzero", "weight_change", "staleness", "hypotheses", "seconds")
        if any(epoch.value(key) is not None for epoch in best.epochs)
    ]
    size = NARROW if len(known) == 3 else LOW
    most = max((epoch.seconds or 0.0 for epoch in best.epochs), default=0.0)
    unit, seconds = time_unit(most)

    def on_axis(value: float) -> str:
        return f"{value / seconds:.4g} {unit}"

    drawn: dict[str, tuple[str, str, Text, Text | None]] = {
        "nonzero": ("Non-zero features", "green", count, count),
        "weight_change": ("Change of the weights", "blue", brief, None),
        "staleness": ("Staleness", "red", brief, None),
        "hypotheses": (story.parts.capitalize(), "sky", count, count),
        "seconds": ("Time per epoch", "amber", duration, on_axis),
    }
    return [
        spread_ribbon(story, best, size)
        if key == "spread"
        else _small(story, best, size, key, *drawn[key])
        for key in known
    ]


def _small(
    story: Story,
    best: Trial,
    size: Size,
    key: str,
    title: str,
    colour: str,
    text: Text,
    axis: Text | None,
) -> str:
    points = _points(best, key)
    values = [y for _, y in points if y is not None]
    parts = PARTS if key == "seconds" else ()
    drawn = [_points(trial, key) for trial in story.trials]
    drawn += [_points(best, part) for part, _, _ in parts]
    everywhere = [y for line in drawn for _, y in line if y is not None]
    chart = Chart(
        key.replace("_", "-"),
        title,
        size,
        _epochs(story.trials, _first(story.trials)),
        around(everywhere, zero=True),
        note=_note(key, values, best, story),
        y_text=axis,
        whole_y=key in ("nonzero", "hypotheses"),
    )
    for trial in story.trials:
        if trial is not best:
            chart.line(f"run {trial.index + 1}", _points(trial, key), colour, text, faint=True)
    chart.area(points, colour)
    chart.line(title.lower(), points, colour, text, extra=_range(story, key, text))
    for part, name, hue in parts:
        chart.line(name, _points(best, part), hue, text)
    return chart.figure()


def _note(key: str, values: Sequence[float], best: Trial, story: Story) -> str:
    if key == "nonzero":
        of = f" of {count(story.features)}" if story.features is not None else ""
        return f"{count(values[-1])}{of} at the end."
    if key == "seconds":
        total = f"{duration(sum(values))} for {plural(len(values), 'epoch')}."
        parts = any(epoch.value(part) is not None for epoch in best.epochs for part, _, _ in PARTS)
        return f"{total} Decoding and optimising are summed over threads." if parts else total
    if key == "staleness":
        return "Steps between the weights that decoded a sentence and those that learnt from it."
    if key == "hypotheses":
        return f"{count(values[-1])} in the {story.space}s of all decodings."
    updates = sum(epoch.updates or 0 for epoch in best.epochs)
    return "Length of the step in each epoch" + (
        f"; {plural(updates, 'update')} in all." if updates else "."
    )


def _points(trial: Trial, key: str) -> list[Point]:
    return [(float(epoch.epoch), epoch.value(key)) for epoch in trial.epochs]


def _first(trials: Sequence[Trial]) -> float:
    return float(min((trial.epochs[0].epoch for trial in trials if trial.epochs), default=1))


def _epochs(trials: Sequence[Trial], first: float) -> tuple[float, float]:
    last = max((trial.epochs[-1].epoch for trial in trials if trial.epochs), default=1)
    # A single epoch is drawn in the middle, not at the edge.
    return (first, float(last)) if last > first else (first - 1, last + 1.0)


def _range(story: Story, key: str, text: Text) -> Text | None:
    """Return a function that adds the range over several runs to a tooltip; None for one run."""
    if len(story.trials) < 2:
        return None
    by_epoch: dict[int, list[float]] = {}
    for trial in story.trials:
        for epoch in trial.epochs:
            value = epoch.value(key)
            if value is not None:
                by_epoch.setdefault(epoch.epoch, []).append(value)

    def range_at(x: float) -> str:
        values = by_epoch.get(int(x), [])
        return f" ({text(min(values))} to {text(max(values))})" if len(values) > 1 else ""

    return range_at


def _which(story: Story) -> str:
    best = story.best
    ring = "the epoch that was kept" if story.end else "the best epoch so far"
    if best is None or len(story.trials) < 2:
        return f"The ring marks {ring}."
    return (
        f"{len(story.trials)} runs with different seeds; run {best.index + 1}, the best, is "
        f"drawn strong, and the ring marks {ring}."
    )
