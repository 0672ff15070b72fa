"""The parts of the page around the charts: summary, tables, sentences, configuration."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

from tunesmith.learn.untuned import described, is_alone
from tunesmith.report.difference import marked, shortened
from tunesmith.report.story import Story, number, numbers, table, text
from tunesmith.report.wording import (
    LEARNT,
    PLACES,
    aligned,
    brief,
    count,
    decimals,
    duration,
    escape,
    fixed,
    metric_name,
    percent,
    plural,
    significance,
    size,
)

REPORT_WEIGHTS = 100
SHOWN_SENTENCES = 100
SHOWN_EPOCHS = 500
# Right-aligned columns of the table of weights.
NUMBERS = ("Weight", "Spread", "Weight × spread", "Between runs")


def header(story: Story) -> str:
    """Return the title, the tuner, the metric and the data."""
    preset = text(story.start.get("preset")) or text(story.config.get("preset")) or "a run"
    metric = story.start.get("metric") or story.config.get("metric")
    goal = (
        f" {'tuned' if story.end else 'tuning'} for {escape(metric_name(metric))}" if metric else ""
    )
    sizes = {"features": story.features, "sentences": number(story.start.get("sentences"))}
    if story.space != "sentence":
        grown = [epoch.hypotheses for trial in story.trials for epoch in trial.epochs]
        begun = number(story.start.get("hypotheses"))
        sizes[story.parts] = max(filter(None, grown), default=begun)
    facts = [f"{count(value)} {key}" for key, value in sizes.items() if value is not None]
    if len(story.trials) > 1:
        facts.append(f"{len(story.trials)} runs")
    folds = number(story.start.get("folds"))
    if folds:
        facts.append(plural(folds, "fold"))
    epochs = max((len(trial.epochs) for trial in story.trials), default=0)
    if epochs:
        facts.append(plural(epochs, "epoch"))
    seconds = number((story.end or {}).get("seconds"))
    if seconds is not None:
        facts.append(duration(seconds))
    decoding, optimising = story.total("decode_seconds"), story.total("optimise_seconds")
    if decoding is not None and optimising is not None:
        facts.append(f"{duration(decoding)} decoding, {duration(optimising)} optimising")
    began = text(story.start.get("time"))
    if began:
        facts.append(began[:16].replace("T", " ") + (" UTC" if began.endswith("+00:00") else ""))
    listed = "".join(f"<li>{escape(fact)}</li>" for fact in facts)
    return (
        '<header><p class="eyebrow">Tunesmith report</p>'
        f'<h1><em>{escape(preset)}</em>{goal}</h1><ul class="facts">{listed}</ul></header>'
    )


def status(story: Story, live: float | None = None) -> str:
    """Return the banners at the top: a refusal, an unfinished run, an unreadable file."""
    banners = []
    end = story.end
    if end is not None and end.get("status") not in (None, "ok"):
        reason = text(end.get("reason")) or "No reason was given."
        banners.append(
            '<div class="banner refused" role="alert"><h2>This result was refused</h2>'
            f"<p>{escape(reason)}</p></div>"
        )
    if end is None:
        epochs = sum(len(trial.epochs) for trial in story.trials)
        title, rest = "This run has not ended", "If it was stopped, "
        if live is not None:
            title = "This run is going on"
            rest = f"The page loads itself again every {round(live)} s. Should the run be stopped, "
        banners.append(
            f'<div class="banner running" role="status"><h2>{title}</h2>'
            f"<p>{plural(epochs, 'epoch')} so far. {rest}"
            "<code>--resume</code> goes on from its last checkpoint.</p></div>"
        )
    banners += [
        f'<div class="banner note" role="status"><p>{escape(note)}</p></div>'
        for note in story.notes
    ]
    return "".join(banners)


def summary(story: Story) -> str:
    """Return the main numbers: start, tuned, held out, oracle, significance."""
    start, tuned, oracle = story.figure("start"), story.tuned, story.oracle
    if start is None and tuned is None:
        return ""
    places = decimals(start, tuned, oracle)
    metric = metric_name(story.start.get("metric", ""))
    change = tuned - start if tuned is not None and start is not None else None
    better = change is not None and (change > 0) == story.higher and change != 0
    mark = "" if change is None else "better" if better else "worse" if change else "same"
    label = "Tuned" if story.end else "Best so far"
    main = (
        f'<div class="main"><dl><div><dt>Start</dt><dd>{fixed(start, places)}</dd></div>'
        '<div class="arrow" aria-hidden="true">→</div>'
        f'<div class="tuned"><dt>{label}</dt><dd>{fixed(tuned, places)}</dd></div>'
    )
    if change is not None:
        main += (
            f'<div class="change {mark}"><dt>Change</dt>'
            f"<dd>{fixed(change, places, sign=True)}</dd></div>"
        )
    main += f"</dl>{_ruler(story, places)}</div>"
    others = []
    if oracle is not None:
        others.append(("Oracle", fixed(oracle, places), f"the best choice in every {story.space}"))
    for name, begun, reached in _heldout(story):
        shown = fixed(reached, places)
        if begun is not None:
            shown = f"{fixed(begun, places)} → {shown}"
        others.append((name, shown, "sentences the tuner did not see"))
    if oracle is not None:
        others.append(("Headroom used", percent(story.headroom_used), "of the way to the oracle"))
    second = table((story.end or {}).get("second_metric"))
    if second:
        before, after = number(second.get("start")), number(second.get("tuned"))
        digits = decimals(before, after)
        others.append(
            (
                metric_name(second.get("name", "second metric")),
                f"{fixed(before, digits)} → {fixed(after, digits)}",
                "a metric that was not tuned",
            )
        )
    tests = table((story.end or {}).get("significance"))
    baselines = numbers((story.end or {}).get("baselines"))
    if len(baselines) < 2:
        tests = {**tests, "against": None}
    if against := text(tests.get("against")):
        best = baselines.get(against)
        others.append(("Without tuning", fixed(best, places), f"at best: {described(against)}"))
    tiles = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd><p>{escape(note)}</p></div>"
        for name, value, note in others
    )
    found = significance(tests, metric, places, story.higher)
    verdict = (
        f'<p class="verdict"><strong>{escape(found[0])}.</strong> {escape(found[1])}</p>'
        if found
        else ""
    )
    return (
        f'<section class="summary">{main}<dl class="tiles">{tiles}</dl>{verdict}'
        f"{_untuned(story, metric, places)}</section>"
    )


def _untuned(story: Story, metric: str, places: int) -> str:
    """Return the scores of choices without tuning, on the sentences of the significance tests.

    With a decoder there is only the start, which the summary shows.
    """
    end = story.end or {}
    scores = numbers(end.get("baselines"))
    if len(scores) < 2:
        return ""
    on = table(end.get("significance")).get("on")
    ours = story.tuned if on in LEARNT else number(end.get("heldout"))
    rows = [(described(name), score, "") for name, score in scores.items()]
    if ours is not None:
        rows.append(("tuned", ours, ' class="kept"'))
    rows.sort(key=lambda row: -row[1] if story.higher else row[1])
    body = "".join(
        f'<tr{css}><td class="name"><bdi>{escape(name)}</bdi></td>'
        f'<td class="n">{fixed(score, places)}</td></tr>'
        for name, score, css in rows
    )
    tried = sum(map(is_alone, scores))
    features = number(story.start.get("features"))
    some = (
        f" Of {count(features)} features, {count(tried)} were tried alone: those that at least half"
        " of the lists have."
        if features is not None and tried < features
        else ""
    )
    return (
        f'<details class="untuned"><summary>Choices without tuning</summary>'
        f'<p class="lead">{escape(metric)} {PLACES.get(str(on), "")}. Consensus is the hypothesis '
        "that the others of its list agree with most. A feature alone chooses its highest value, "
        f"with − its lowest, whichever scores better.{some} The best of these was known only after "
        "scoring, which favours it in the comparison.</p>"
        '<div class="scroll"><table><thead><tr><th scope="col">Choice</th>'
        f'<th scope="col" class="n">{escape(metric)}</th></tr></thead><tbody>{body}</tbody>'
        "</table></div></details>"
    )


def _heldout(story: Story) -> Iterator[tuple[str, float | None, float]]:
    """Yield the name of each held-out text, its score at the start and at the end."""
    begun, reached = (_scores(story.end or {}, key) for key in ("heldout_start", "heldout"))
    for name, before, after in zip(story.heldout.values(), begun, reached, strict=False):
        if after is not None:
            yield name.capitalize(), before, after


def _scores(end: dict[str, Any], key: str) -> list[float | None]:
    """Return the scores of all held-out texts, or of the only one."""
    listed = end.get(f"{key}_all")
    several = listed if listed and isinstance(listed, list) else [end.get(key)]
    return [number(each) for each in several]


def _ruler(story: Story, places: int) -> str:
    """Return a ruler from the start to the oracle with the part that tuning reached."""
    start, tuned, oracle = story.figure("start"), story.tuned, story.oracle
    if start is None or tuned is None or oracle is None or oracle == start:
        return ""
    # A tuned score below the start lengthens the ruler to the left.
    direction = math.copysign(1, oracle - start)
    left = start if direction * (tuned - start) >= 0 else tuned
    right = oracle if direction * (oracle - tuned) >= 0 else tuned

    def at(value: float) -> str:
        return f"{100 * (value - left) / (right - left):.2f}%"

    begin, end = sorted((start, tuned), key=lambda value: direction * value)
    worse = " worse" if left == tuned and tuned != start else ""
    return (
        f'<div class="ruler{worse}" role="img" aria-label="Of the way from start '
        f"{fixed(start, places)} to oracle {fixed(oracle, places)}, "
        f'{percent(story.headroom_used)} was made">'
        f'<span class="made" style="left:{at(begin)};right:calc(100% - {at(end)})"></span>'
        f'<span class="pin" style="left:{at(tuned)}"></span>'
        f'<span class="tick" style="left:{at(start)}"></span>'
        f'<span class="tick" style="left:{at(oracle)}"></span>'
        f'<span class="end" style="left:{at(start)}">start</span>'
        f'<span class="end last">oracle {fixed(oracle, places)}</span></div>'
    )


def weights_table(story: Story) -> str:
    """Return the final weights with a bar each, and their deviation over runs."""
    if not story.weights:
        return ""
    spread = story.spread
    ranked = story.ranked(story.weights)
    shown = [(name, story.weights[name]) for name in ranked[:REPORT_WEIGHTS]]
    largest = max(abs(value) for _, value in shown) or 1.0
    moved = story.best.moved if story.best else set()
    # Bars show the influence on scores within lists, if known.
    length = {name: abs(value) * (spread.get(name, 0.0) if spread else 1) for name, value in shown}
    longest = max(length.values()) or 1.0
    widest = longest
    if not spread:
        widest = max((length[name] for name, _ in shown if name in moved), default=0.0) or longest
    finals = [trial.epochs[-1].weights for trial in story.trials if trial.epochs]
    several = len(finals) > 1
    rows = []
    for name, value in shown:
        share = min(50 * length[name] / widest, 50)
        side = f"left:50%;width:{share:.2f}%" if value >= 0 else f"right:50%;width:{share:.2f}%"
        sign = ("plus" if value >= 0 else "minus") + (" beyond" if length[name] > widest else "")
        rows.append(
            f'<tr><td class="name" data-v="{escape(name)}"><bdi>{escape(name)}</bdi></td>'
            f'<td class="n" data-v="{value!r}" title="{value!r}">{aligned(value, largest)}</td>'
            + (_spread(spread.get(name), length[name], longest) if spread else "")
            + f'<td class="cell" data-v="{length[name]!r}"><span class="axis"></span>'
            f'<span class="bar {sign}" style="{side}"></span></td>'
            + (_agreement([f[name] for f in finals if name in f], largest) if several else "")
            + "</tr>"
        )
    active = sum(1 for value in story.weights.values() if value)
    of = f" of {count(story.features)}" if story.features is not None else ""
    rest = len(ranked) - len(shown)
    note = (
        f'<p class="more">{count(rest)} other weights are in <code>weights.toml</code>.</p>'
        if rest
        else ""
    )
    beyond = " Bars that fade are longer than they are drawn." if longest > widest else ""
    order = (
        "those that matter most come first. What matters is how far a feature moves scores within "
        "a list: weight × spread, the mean standard deviation of its values within lists."
        if spread
        else "the largest come first."
    )
    spreads = (
        _column("Spread", "number", "mean standard deviation within lists")
        + _column("Weight × spread", "number", "how far the feature moves scores within a list")
        if spread
        else ""
    )
    runs = _column("Between runs", "number", "standard deviation") if several else ""
    return (
        f'<section id="weights"><h2>{"Final weights" if story.end else "Weights so far"}</h2>'
        f'<p class="lead">{count(active)}{of} features carry weight; {order}'
        f"{beyond}</p>"
        '<div class="scroll"><table class="sortable weights"><thead><tr>'
        f"{_column('Feature', 'text')}{_column('Weight', 'number')}"
        f"{spreads}{_column('Effect' if spread else 'Magnitude', 'number')}{runs}"
        f'</tr></thead><tbody id="weight-rows">{"".join(rows)}</tbody></table></div>'
        f"{_all('weight-rows', len(rows))}{note}</section>"
    )


def _all(rows: str, amount: int) -> str:
    return f'<button type="button" class="all" data-rows="{rows}">Show all {count(amount)}</button>'


def _column(name: str, kind: str, title: str = "") -> str:
    hint = f' title="{escape(title)}"' if title else ""
    css = ' class="n"' if name in NUMBERS else ""
    return f'<th scope="col" data-kind="{kind}"{css}{hint}>{escape(name)}</th>'


def _spread(spread: float | None, moves: float, largest: float) -> str:
    if spread is None:
        return '<td class="n" data-v="-1">–</td><td class="n" data-v="-1">–</td>'
    return (
        f'<td class="n" data-v="{spread!r}">{brief(spread)}</td>'
        f'<td class="n" data-v="{moves!r}">{aligned(moves, largest)}</td>'
    )


def _agreement(values: list[float], largest: float) -> str:
    if len(values) < 2:
        return '<td class="n" data-v="-1">–</td>'
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return f'<td class="n" data-v="{deviation!r}">± {aligned(deviation, largest)}</td>'


def epochs_table(story: Story) -> str:
    """Return a table of all epochs, also for screen readers."""
    rows = [(trial, epoch) for trial in story.trials for epoch in trial.epochs]
    if not rows:
        return ""
    several = len(story.trials) > 1
    places = decimals(*(epoch.score for _, epoch in rows))
    columns: list[tuple[str, str, Callable[[float | None], str]]] = [
        ("Score", "score", lambda value: fixed(value, places)),
        *(
            (name.capitalize(), key, lambda value: fixed(value, places))
            for key, name in story.heldout.items()
        ),
        ("All bins", "score_bins", lambda value: fixed(value, places)),
        ("Expected", "projected", lambda value: fixed(value, places)),
        ("Oracle score", "oracle_score", lambda value: fixed(value, places)),
        (story.parts.capitalize(), "hypotheses", count),
        ("Model", "model", lambda value: fixed(value, 4)),
        ("Oracle", "oracle", lambda value: fixed(value, 4)),
        ("Prediction", "prediction", lambda value: fixed(value, 4)),
        ("Spread", "spread", brief),
        ("Non-zero", "nonzero", count),
        ("Updates", "updates", count),
        ("Change", "weight_change", brief),
        ("Staleness", "staleness", brief),
        ("Decoding", "decode_seconds", duration),
        ("Optimising", "optimise_seconds", duration),
        ("Time", "seconds", duration),
    ]
    used = [column for column in columns if any(e.value(column[1]) is not None for _, e in rows)]
    head = ('<th scope="col">Run</th>' if several else "") + '<th scope="col">Epoch</th>'
    head += "".join(f'<th scope="col" class="n">{name}</th>' for name, _, _ in used)
    body = "".join(
        "<tr"
        + (' class="kept"' if epoch.epoch == trial.best_epoch else "")
        + ">"
        + (f"<td>{trial.index + 1}</td>" if several else "")
        + f"<td>{epoch.epoch}</td>"
        + "".join(f'<td class="n">{show(epoch.value(key))}</td>' for _, key, show in used)
        + "</tr>"
        for trial, epoch in rows[:SHOWN_EPOCHS]
    )
    rest = len(rows) - SHOWN_EPOCHS
    more = (
        f'<p class="more">{count(rest)} more are in <code>events.jsonl</code>.</p>'
        if rest > 0
        else ""
    )
    return (
        '<details class="epochs"><summary>Every epoch in numbers</summary>'
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody>'
        f"</table></div>{more}</details>"
    )


def sentences(story: Story) -> str:
    """Return the sentences whose output changed, largest changes first."""
    rows = [row for row in story.changes if isinstance(row, dict)]
    if not rows:
        return ""
    changes = [_change(row) for row in rows]
    better = sum(1 for change in changes if change is not None and change > 0)
    worse = sum(1 for change in changes if change is not None and change < 0)
    ranked = sorted(zip(rows, changes, strict=True), key=lambda pair: -abs(pair[1] or 0.0))
    kept = [
        *[pair for pair in ranked if (pair[1] or 0.0) >= 0][:SHOWN_SENTENCES],
        *[pair for pair in ranked if (pair[1] or 0.0) < 0][:SHOWN_SENTENCES],
    ]
    kept.sort(key=lambda pair: -abs(pair[1] or 0.0))
    same = len(rows) - better - worse
    shares = "".join(
        f'<span class="{kind}" style="flex-grow:{amount}"></span>'
        for kind, amount in (("better", better), ("same", same), ("worse", worse))
        if amount
    )
    hidden = len(rows) - len(kept)
    down = sum(1 for _, change in kept if (change or 0.0) < 0)
    more = (
        f" Shown are the largest changes only: {count(len(kept) - down)} that are better or the "
        f"same, {count(down)} that are worse; <code>changes.jsonl</code> has all."
        if hidden
        else ""
    )
    place = table((story.end or {}).get("significance")).get("on")
    total = number(story.start.get("sentences")) if place != "heldout" else None
    of = f" of {count(total)}" if total is not None and total >= len(rows) else ""
    kind = "held-out sentences" if place in ("heldout", "folds") else "sentences"
    return (
        '<section id="sentences"><h2>Sentences that changed</h2>'
        f'<p class="lead">The choice changed for {count(len(rows))}{of} {kind}: '
        f'<b class="better">{count(better)} better</b>, <b class="worse">{count(worse)} worse</b>, '
        f"{count(same)} with the same gain.{more}</p>"
        f'<div class="shares" aria-hidden="true">{shares}</div>'
        '<div class="controls"><label>Find <input type="search" id="filter" '
        'placeholder="a word or a number" autocomplete="off" spellcheck="false"></label>'
        '<label>Order <select id="order"><option value="size">largest change</option>'
        '<option value="better">better first</option><option value="worse">worse first</option>'
        '<option value="sentence">as in the file</option></select></label>'
        f'<output id="found">{count(len(kept))} shown</output></div>'
        f'<ol class="sentences" id="sentence-rows">{"".join(_sentence(*pair) for pair in kept)}'
        f"</ol>{_all('sentence-rows', len(kept))}</section>"
    )


def _change(row: dict[str, Any]) -> float | None:
    before, after = number(row.get("gain_before")), number(row.get("gain_after"))
    return None if before is None or after is None else after - before


def _sentence(row: dict[str, Any], change: float | None) -> str:
    place = number(row.get("sentence"))
    title = str(row["key"]) if row.get("key") is not None else f"{count(place)}"
    kind = "same" if not change else "better" if change > 0 else "worse"
    before, after = marked(str(row.get("before") or ""), str(row.get("after") or ""))
    lines = list(_lines(row, before, after))
    return (
        f'<li data-change="{change or 0.0!r}" data-sentence="{-1 if place is None else place!r}">'
        f'<div class="side"><span class="number">{escape(title)}</span>'
        f'<b class="{kind}">{fixed(change, 3, sign=True)}</b>'
        f'<span class="gains">{fixed(number(row.get("gain_before")), 3)} → '
        f"{fixed(number(row.get('gain_after')), 3)}</span></div>"
        f"<dl>{''.join(lines)}</dl></li>"
    )


def _lines(row: dict[str, Any], before: str, after: str) -> Iterator[str]:
    if row.get("source") is not None:
        yield _line("Source", shortened(str(row["source"])), "source")
    references = row.get("reference")
    if isinstance(references, str):
        references = [references]
    for reference in references if isinstance(references, list) else []:
        yield _line("Reference", shortened(str(reference)), "reference")
    yield _line("Before", before, "before")
    yield _line("After", after, "after")


def _line(name: str, content: str, css: str) -> str:
    # dir=auto sets Arabic and Hebrew right to left without changing the page.
    shown = content or '<span class="cut">(empty)</span>'
    return f'<div class="{css}"><dt>{name}</dt><dd dir="auto">{shown}</dd></div>'


def configuration(story: Story) -> str:
    """Return the configuration that reproduces the run."""
    rows = []
    second = table((story.end or {}).get("second_metric"))
    for name, value in (
        ("Signature", story.start.get("signature")),
        (f"Signature of {metric_name(second.get('name'))}", second.get("signature")),
    ):
        if text(value):
            rows.append((name, f"<code>{escape(value)}</code>"))
    inputs = story.config.get("inputs")
    shown_above = {"inputs", "signature"} if story.start.get("signature") else {"inputs"}
    for key, value in _flat({k: v for k, v in story.config.items() if k not in shown_above}):
        rows.append((key, f"<code>{escape(value)}</code>"))
    listed = "".join(
        f'<div class="{"long" if len(value) > 48 else "brief"}">'
        f"<dt>{escape(key).replace('.', '.<wbr>')}</dt><dd>{value}</dd></div>"
        for key, value in rows
    )
    whole = escape(json.dumps(story.config, ensure_ascii=False, indent=2))
    return (
        '<section id="configuration"><h2>To do it again</h2>'
        f'<dl class="settings">{listed}</dl>{_inputs(inputs)}'
        f"<details><summary>config.json</summary><pre>{whole}</pre></details></section>"
    )


def _inputs(inputs: object) -> str:
    named = isinstance(inputs, dict)
    listed = inputs if isinstance(inputs, list) else []
    entries = inputs.items() if isinstance(inputs, dict) else enumerate(listed)
    files = [(name, entry) for name, entry in entries if isinstance(entry, dict)]
    if not files:
        return ""
    rows = "".join(
        f"<tr>{f'<td>{escape(name)}</td>' if named else ''}"
        f'<td class="name">{escape(entry.get("path", ""))}</td>'
        f'<td class="n">{size(number(entry.get("size")))}</td>'
        f'<td class="hash"><code>{escape(_hash(entry))}</code></td></tr>'
        for name, entry in files
    )
    what = '<th scope="col">Input</th>' if named else ""
    return (
        f'<h3>Inputs</h3><div class="scroll"><table><thead><tr>{what}<th scope="col">File</th>'
        '<th scope="col" class="n">Size</th><th scope="col">SHA-256</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _hash(entry: dict[str, Any]) -> str:
    if "sha256_of_ends" in entry:
        return f"{entry['sha256_of_ends']} (of its ends)"
    return str(entry.get("sha256", ""))


def _flat(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, item in value.items():
        name = f"{prefix}{key}"
        if isinstance(item, dict) and item:
            yield from _flat(item, f"{name}.")
        else:
            text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            yield name, text if len(text) <= 400 else text[:400] + "…"
