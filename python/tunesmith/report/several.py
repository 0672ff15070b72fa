"""Several runs on one page: learning curves in one chart each, and a table of what was reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice

from tunesmith.report.chart import LOW, MEDIUM, Chart, Point, Size
from tunesmith.report.charts import COLOURS, Text
from tunesmith.report.scale import around
from tunesmith.report.story import Story, number, text
from tunesmith.report.wording import (
    brief,
    count,
    decimals,
    duration,
    escape,
    fixed,
    metric_name,
    plural,
)

Stories = Mapping[str, Story]
# What is drawn below the scores: title, explanation, text of a value, whether it is counted.
SMALL: Mapping[str, tuple[str, str, Text, bool]] = {
    "spread": ("Spread", "From the score of y+ to the lowest of its list, mean.", brief, False),
    "nonzero": ("Non-zero features", "Weights that are not zero.", count, True),
    "weight_change": ("Change of the weights", "The largest of an epoch.", brief, False),
    "seconds": ("Time per epoch", "In seconds.", duration, False),
}
# Starts that lie further from the curves than these are high, times this, are not drawn.
FAR = 2.0


def body(stories: Stories) -> str:
    """Return the page of several runs, without its frame."""
    looks = dict(zip(stories, _looks(len(stories)), strict=True))
    parts = [_header(stories), _status(stories), _table(stories)]
    for place, (metric, chosen) in enumerate(_by_metric(stories).items()):
        drawn = _scores(metric, chosen, looks, place)
        if drawn:
            parts.append(
                f'<section id="curves-{place}"><h2>{escape(metric_name(metric))} epoch by epoch'
                f'</h2><div class="pair">{"".join(drawn)}</div></section>'
            )
    small = [
        chart
        for key, (title, note, say, whole) in SMALL.items()
        if (
            chart := _overlaid(
                stories, looks, key, key, title, LOW, say, note, zero=True, whole=whole
            )
        )
    ]
    if small:
        columns = 3 if len(small) == 3 else 2
        parts.append(
            f'<section id="costs"><h2>Weights and time</h2>'
            f'<div class="small-charts in-{columns}">{"".join(small)}</div></section>'
        )
    return "\n".join(part for part in parts if part)


def _looks(amount: int) -> list[tuple[str, bool]]:
    """Return a colour for each run, and whether its line is dashed: after the first round."""
    colours = list(islice(cycle(COLOURS), amount))
    return [(colour, place >= len(COLOURS)) for place, colour in enumerate(colours)]


def _by_metric(stories: Stories) -> dict[str, dict[str, Story]]:
    """Return the runs by metric: scores of two metrics have no common axis."""
    found: dict[str, dict[str, Story]] = {}
    for name, story in stories.items():
        metric = text(story.start.get("metric")) or text(story.config.get("metric")) or "score"
        found.setdefault(metric, {})[name] = story
    return found


def _header(stories: Stories) -> str:
    sentences = {count(number(story.start.get("sentences"))) for story in stories.values()}
    seeds = sum(len(story.trials) for story in stories.values())
    facts = ["one seed each" if seeds <= len(stories) else plural(seeds, "seed")]
    if len(sentences) == 1:
        facts.append(f"{sentences.pop()} sentences each")
    listed = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    return (
        '<header><p class="eyebrow">Tunesmith report</p>'
        f"<h1>{plural(len(stories), 'run')} side by side</h1>"
        f'<ul class="facts">{listed}</ul></header>'
    )


def _status(stories: Stories) -> str:
    """Return banners: runs that have not ended, refused results, unreadable files."""
    banners = []
    going = [name for name, story in stories.items() if story.end is None]
    if going:
        banners.append(f"Not ended: {', '.join(going)}. Their best score so far is shown.")
    for name, story in stories.items():
        if story.end is not None and story.end.get("status") not in (None, "ok"):
            reason = text(story.end.get("reason")) or "no reason was given"
            banners.append(f"{name}: this result was refused: {reason}")
        banners += [f"{name}: {note}" for note in story.notes]
    return "".join(
        f'<div class="banner note" role="status"><p>{escape(banner)}</p></div>'
        for banner in banners
    )


def _table(stories: Stories) -> str:
    """Return what each run reached."""
    heads = ["Run", "Tuner", "Metric", "Start", "Tuned", "Change"]
    held = any(number((story.end or {}).get("heldout")) is not None for story in stories.values())
    heads += ["Held out, start", "Held out, tuned"] if held else []
    heads += ["Oracle", "Epochs", "Kept", "Non-zero", "Time", "Verdict"]
    rows = "".join(f"<tr>{''.join(_cells(n, story, held))}</tr>" for n, story in stories.items())
    css = [' class="n"' if 2 < place < len(heads) - 1 else "" for place in range(len(heads))]
    head = "".join(
        f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(heads, css, strict=True)
    )
    return (
        '<section id="runs"><h2>What was reached</h2>'
        '<p class="lead">Of several seeds, the best is shown. The verdict is that of each run: '
        "against the best choice without tuning, on held-out sentences if there are any.</p>"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        "</div></section>"
    )


def _cells(name: str, story: Story, held: bool) -> list[str]:
    end = story.end or {}
    start, tuned, oracle = story.figure("start"), story.tuned, story.oracle
    before, after = number(end.get("heldout_start")), number(end.get("heldout"))
    places = decimals(start, tuned, oracle, before, after)
    change = None if start is None or tuned is None else tuned - start
    best = story.best
    epochs = best.epochs if best is not None else []
    seconds = number(end.get("seconds")) or story.total("seconds")
    numbers = [fixed(start, places), fixed(tuned, places), fixed(change, places, sign=True)]
    numbers += [fixed(before, places), fixed(after, places)] if held else []
    numbers += [
        fixed(oracle, places),
        str(len(epochs)),
        "–" if best is None or best.best_epoch is None else str(best.best_epoch),
        count(epochs[-1].nonzero if epochs else None),
        duration(seconds),
    ]
    preset = text(story.start.get("preset")) or text(story.config.get("preset")) or "–"
    metric = metric_name(story.start.get("metric") or story.config.get("metric") or "–")
    verdict = text(end.get("verdict")) or "–"
    return [
        f'<td class="name"><bdi>{escape(name)}</bdi></td><td>{escape(preset)}</td>'
        f"<td>{escape(metric)}</td>",
        *(f'<td class="n">{escape(each)}</td>' for each in numbers),
        f"<td>{escape(verdict)}</td>",
    ]


def _scores(
    metric: str, stories: Stories, looks: Mapping[str, tuple[str, bool]], place: int
) -> list[str]:
    """Return the learning curves of runs with the same metric: tuned on, and held out."""
    known = [
        epoch.value(key)
        for story in stories.values()
        for trial in story.trials
        for epoch in trial.epochs
        for key in ("score", "heldout")
    ]
    places = decimals(*known)
    higher = all(story.higher for story in stories.values())
    better = f"{'higher' if higher else 'lower'} is better"

    def say(value: float) -> str:
        return fixed(value, places)

    kinds = {
        "score": ("On what was tuned", f"{metric_name(metric)} after each epoch; {better}. "
                  "Faint lines are other seeds, the ring marks the epoch that was kept."),
        "heldout": ("Held out", f"On sentences that were not learnt from; {better}."),
    }  # fmt: skip
    return [
        chart
        for key, (title, note) in kinds.items()
        if (chart := _overlaid(stories, looks, f"{key}-{place}", key, title, MEDIUM, say, note))
    ]


def _overlaid(
    stories: Stories,
    looks: Mapping[str, tuple[str, bool]],
    name: str,
    key: str,
    title: str,
    size: Size,
    say: Text,
    note: str = "",
    *,
    zero: bool = False,
    whole: bool = False,
) -> str:
    """Return a chart with a line for each run; nothing if no run has two values."""
    lines: dict[str, list[Sequence[Point]]] = {}
    begins = _begins(stories) if key == "score" else {}
    if key == "score" and not begins and note:
        note = f"{note} Starts are not drawn: they lie far from the rest (table above)."
    for run, story in stories.items():
        best = story.best
        if best is None:
            continue
        # The best seed last: it is drawn over the others.
        trials = [trial for trial in story.trials if trial is not best] + [best]
        begin = begins.get(run)
        points = [
            ([] if begin is None else [(0.0, begin)])
            + [(float(epoch.epoch), epoch.value(key)) for epoch in trial.epochs]
            for trial in trials
        ]
        if any(y is not None for line in points for _, y in line):
            lines[run] = list(points)
    flat = [(x, y) for run in lines.values() for line in run for x, y in line if y is not None]
    places = {x for x, _ in flat}
    if len(places) < 2:
        return ""
    chart = Chart(
        name.replace("_", "-"),
        title,
        size,
        (min(places), max(places)),
        around([y for _, y in flat], zero=zero),
        note=note,
        whole_y=whole,
    )
    for run, trials_of in lines.items():
        colour, dashed = looks[run]
        *others, strong = trials_of
        for line in others:
            chart.line(run, line, colour, say, faint=True)
        chart.line(run, strong, colour, say, dashed=dashed)
        best = stories[run].best
        if key == "score" and best is not None:
            for epoch in best.epochs:
                if epoch.epoch == best.best_epoch and epoch.score is not None:
                    chart.ring(epoch.epoch, epoch.score, colour)
    return chart.figure()


def _begins(stories: Stories) -> dict[str, float]:
    """Return the scores at the start; nothing if one is so far off that it would hide the rest."""
    scores = [
        epoch.score
        for story in stories.values()
        for trial in story.trials
        for epoch in trial.epochs
        if epoch.score is not None
    ]
    begins = {run: story.figure("start") for run, story in stories.items()}
    found = {run: begin for run, begin in begins.items() if begin is not None}
    if not scores or len(set(scores)) < 2:
        return found
    low, high = min(scores), max(scores)
    reach = FAR * (high - low)
    near = all(low - reach <= begin <= high + reach for begin in found.values())
    return found if near else {}
