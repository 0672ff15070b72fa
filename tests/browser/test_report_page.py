"""The report as a file: whole, escaped, and content with whatever a run has told."""

from __future__ import annotations

import html
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sample_runs import write_run
from twins.toy import POOR, make_world

from tunesmith.decode.translation import Model
from tunesmith.errors import InputError
from tunesmith.report import Follow, write_report
from tunesmith.report.chart import MEDIUM
from tunesmith.report.difference import marked
from tunesmith.report.scale import Scale, around, tick_places
from tunesmith.report.wording import aligned, brief, duration, fixed, probability, significance
from tunesmith.runs import RunDirectory, dump_weights
from tunesmith.sources import Live
from tunesmith.spaces import Pools
from tunesmith.tuning import tune

VOID = {"meta", "link", "input", "br", "wbr"}


class Checker(HTMLParser):
    """Refuses tags that do not close and anything that would leave the file."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href"):
                assert (value or "").startswith("data:"), (tag, value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(path: Path) -> str:
    page = path.read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert "://" not in re.sub(r'"http://www\.w3\.org/2000/svg"', "", page)
    for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL):
        ET.fromstring(svg)
        assert not re.search(r"\b(?:nan|inf)\b", svg)
    return page


def test_a_report_is_one_whole_file(dense_report: Path, sparse_report: Path) -> None:
    for path in (dense_report, sparse_report):
        assert path.name == "report.html"
        checked(path)


def test_the_summary_says_what_happened(dense_report: Path) -> None:
    page = checked(dense_report)
    words = re.sub(r"<[^>]+>", " ", page)
    for said in (
        "tuned for BLEU",
        "62.50",
        "66.33",
        "+3.83",
        "69.87",
        "Tuning beats the start, which is the best choice without tuning: very unlikely to be",
    ):
        assert said in words
    assert "nrefs:1|case:mixed" in words
    assert "9f2c" * 16 in words


def test_a_refused_run_says_so_first(tmp_path: Path) -> None:
    reason = "The tuned score is below the start."
    page = checked(write_report(write_run(tmp_path / "run", epochs=2, refused=reason)))
    assert page.index("This result was refused") < page.index("Learning curve")
    assert reason in page


def test_the_report_goes_where_it_is_told(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", epochs=2)
    assert write_report(run, tmp_path / "out.html") == tmp_path / "out.html"
    assert not (run / "report.html").exists()
    with pytest.raises(InputError, match="no such file or directory"):
        write_report(run, tmp_path / "absent" / "out.html")


def test_a_directory_without_a_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no run here"):
        write_report(tmp_path)


def test_a_run_that_has_told_nothing_yet_has_a_report(tmp_path: Path) -> None:
    RunDirectory(tmp_path / "run").create({}).close()
    assert "This run has not ended" in checked(write_report(tmp_path / "run"))


def test_only_an_unfinished_run_refreshes(tmp_path: Path) -> None:
    begun = write_run(tmp_path / "begun", epochs=2, ended=False)
    assert 'http-equiv="refresh" content="5"' in checked(write_report(begun, live=5))
    assert 'http-equiv="refresh"' not in checked(write_report(begun))
    ended = write_run(tmp_path / "ended", epochs=2)
    assert 'http-equiv="refresh"' not in checked(write_report(ended, live=5))


def test_a_torn_last_line_is_no_obstacle(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", epochs=3, ended=False)
    data = (run / "events.jsonl").read_bytes()
    (run / "events.jsonl").write_bytes(data[:-40])
    assert "3 epochs so far" in checked(write_report(run))


def test_unreadable_extras_become_notes(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", epochs=2)
    (run / "weights.toml").write_text("[weights]\nLM0 = nan\n")
    (run / "changes.jsonl").write_text("{}\nnonsense\n{}\n")
    page = checked(write_report(run))
    assert "weights.toml:2:" in page and "changes.jsonl:2:" in page
    assert "Final weights" in page


def test_lower_may_be_better(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run").create({}) as run:
        run.event("start", metric="ter", metric_higher=False, start=55.0, oracle=35.0)
        run.event("epoch", run=0, epoch=1, score=50.0)
        run.event("epoch", run=0, epoch=2, score=52.0)
        run.event("end", start=55.0, tuned=50.0, oracle=35.0, status="ok")
    page = checked(write_report(tmp_path / "run"))
    assert "lower is better" in page
    assert '<div class="change better"><dt>Change</dt><dd>−5.00</dd>' in page
    assert "25.0\u00a0%" in page


def test_folds_are_not_taken_for_runs(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "run").create({}) as run:
        run.event("start", metric="bleu", start=30.0, oracle=40.0, folds=2)
        run.event("epoch", run=0, epoch=1, score=31.0)
        run.event("epoch", run=0, epoch=2, score=32.0)
        for fold in range(2):
            run.event("epoch", fold=fold, epoch=1, score=91.3725)
            run.event("fold_end", fold=fold, epoch=1, score=91.3725)
        run.event(
            "end",
            start=30.0,
            tuned=32.0,
            heldout=31.5,
            heldout_start=30.0,
            significance={"on": "folds", "bootstrap": {"p": 0.02, "difference": 1.5}},
        )
    page = checked(write_report(tmp_path / "run"))
    assert "91.37" not in re.sub(r"<[^>]*>", " ", page)
    assert "2 folds" in page
    assert "30.00 → 31.50" in page
    assert "+1.50 BLEU on sentences its fold had not seen; p\u00a0=\u00a00.020" in page


INNER_KEYS = "mean sd p ci bootstrap on a<b"
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER_KEYS.split()), inner)
    ),
    max_leaves=5,
)
EVENT_KEYS = """
fold folds heldout_start
run epoch score heldout model oracle prediction spread nonzero updates seconds weights start
tuned status reason metric preset features options second_metric significance time weight_change
signature metric_higher sentences hypotheses
"""
ROW_KEYS = "sentence key source reference before after gain_before gain_after"
keys = st.sampled_from(EVENT_KEYS.split())
kinds = st.sampled_from(["start", "epoch", "run_end", "end", "news", ""])


@given(
    st.lists(st.tuples(kinds, st.dictionaries(keys, anything)), max_size=8),
    st.dictionaries(st.text(max_size=5) | st.just("inputs"), anything, max_size=3),
    st.lists(
        st.dictionaries(
            st.sampled_from(ROW_KEYS.split()),
            anything,
        ),
        max_size=3,
    ),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
def test_whatever_a_run_tells_the_report_is_written(
    tmp_path: Path,
    events: list[tuple[str, dict[str, Any]]],
    config: dict[str, Any],
    changes: list[dict[str, Any]],
) -> None:
    # What another program writes may hold NaN and lone surrogates; Python reads both.
    (tmp_path / "config.json").write_text(json.dumps(config))
    lines = [json.dumps({"event": kind, **fields}) for kind, fields in events]
    (tmp_path / "events.jsonl").write_text("".join(line + "\n" for line in lines))
    (tmp_path / "changes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in changes))
    page = write_report(tmp_path).read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []


@given(st.text(max_size=80), st.text(max_size=80))
def test_marks_lose_no_word(before: str, after: str) -> None:
    old, new = marked(before, after)
    for shown, text in ((old, before), (new, after)):
        bare = re.sub(r"</?(?:del|ins)>", "", shown)
        known = text.encode("utf-8", "replace").decode().replace("\0", "�")
        assert bare == html.escape(known)


def test_marks_show_the_words_that_differ() -> None:
    old, new = marked("the old house", "the new house")
    assert old == "the <del>old</del> house"
    assert new == "the <ins>new</ins> house"
    assert marked("私は本が好き", "私は海が好き")[1] == "私は<ins>海</ins>が好き"


@given(
    st.floats(-1e9, 1e9),
    st.floats(1e-6, 1e9),
    st.integers(2, 12),
    st.booleans(),
)
def test_ticks_are_few_and_inside(low: float, span: float, most: int, whole: bool) -> None:
    # Closer together than this, floats themselves run out.
    assume(span > 1e-7 * abs(low))
    scale = Scale(low, low + span, 0, 100)
    ticks = scale.ticks(most, whole)
    assert len(ticks) <= most + 1
    if len(ticks) > 1:
        assert all(scale.low - 1e-6 * span <= tick <= scale.high + 1e-6 * span for tick in ticks)
        if whole:
            assert all(tick == int(tick) for tick in ticks)


def test_numbers_read_well() -> None:
    assert fixed(-0.001) == "0.00"
    assert fixed(1234.5, 1, sign=True) == "+1,234.5"
    assert fixed(None) == "–"
    assert [brief(value) for value in (0.098512, -12.3456, 1e-9, 123456.0)] == [
        "0.09851",
        "−12.35",
        "1.000e−9",
        "123,456",
    ]
    assert [duration(value) for value in (0.0312, 0.5, 9.0, 61.0, 7260.0)] == [
        "31.2 ms",
        "500 ms",
        "9.00 s",
        "1 min 01 s",
        "2 h 01 min",
    ]
    assert aligned(0.0001, 0.5) == "0.00010"
    assert tick_places([0.0, 0.25]) == 2 and tick_places([10.0, 20.0]) == 0
    assert around([5.0]) != (5.0, 5.0)
    assert probability(0.0) == "p\u00a0<\u00a00.001"


@pytest.mark.parametrize(
    ("p", "difference", "against", "on", "said"),
    [
        (0.001, 1.0, "start", "folds", "Tuning beats the start, which is the best choice"),
        (0.001, 1.0, "+lm", "folds", "Tuning beats lm alone, the best choice without tuning: very"),
        (0.03, 1.0, "-lm", "heldout", "Tuning beats -lm alone, the best choice without tuning: un"),
        (0.2, 1.0, "consensus", "folds", "Tuning does not clearly beat consensus, the best"),
        (0.001, -1.0, "consensus", "folds", "Tuning is worse than consensus, the best choice"),
        (0.001, 1.0, "consensus", "lists", "On the lists it was tuned on, tuning beats consensus"),
        (0.001, 1.0, None, "text", "On the text it was tuned on, tuning beats the start; whether"),
        (0.001, -1.0, None, "text", "On the text it was tuned on, tuning is worse than the start;"),
        (0.001, 1.0, None, "folds", "Tuning beats the start: very unlikely to be chance"),
    ],
)
def test_significance_is_said_in_words(
    p: float, difference: float, against: str | None, on: str, said: str
) -> None:
    tests: dict[str, Any] = {"bootstrap": {"p": 0.0, "difference": difference}, "on": on}
    tests |= {"randomisation": {"p": p}, "against": against}
    found = significance(tests, "BLEU", 2)
    assert found is not None and found[0].startswith(said)
    assert ("--folds 5" in found[0]) == (on in ("lists", "text"))
    assert ("--heldout" in found[0]) == (on == "text")
    tests["bootstrap"]["difference"] *= -1
    assert significance(tests, "WER", 2, higher=False) is not None
    assert (significance(tests, "WER", 2, higher=False) or "")[0] == found[0]
    assert significance({}, "BLEU", 2) is None


def test_what_needs_no_tuning_stands_beside_what_was_tuned(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", epochs=2)
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    end = events[-1]
    end["baselines"] = {"start": 62.5, "consensus": 68.25, "+<b>": 64.0}
    end["significance"] |= {
        "against": "consensus",
        "on": "folds",
        "start": dict(end["significance"]),
    }
    end["significance"]["bootstrap"] = {"p": 0.001, "difference": -1.92, "ci": [-3.0, -1.0]}
    (run / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    page = checked(write_report(run))
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "Tuning is worse than consensus, the best choice without tuning" in words
    assert "Without tuning 68.25 at best: consensus" in words
    assert "consensus 68.25" in words and "&lt;b&gt; alone 64.00" in words


def test_features_are_ranked_by_what_they_move(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", epochs=2)
    weights = {"large": 9.0, "wide": -0.1, "still": 100.0}
    dump_weights(run / "weights.toml", weights, {"spread": {"wide": 100.0, "large": 0.5}})
    page = checked(write_report(run))
    rows = re.findall(r'<td class="name" data-v="(\w+)">', page)
    assert rows == ["wide", "large", "still"]
    assert "mean standard deviation of its values within lists" in page


def test_all_changes_are_counted_and_the_largest_shown(tmp_path: Path) -> None:
    rows = [
        {"sentence": i, "before": "a", "after": "b", "gain_before": 0.5, "gain_after": gain}
        for i, gain in enumerate([0.75] * 450 + [0.25] * 375)
    ]
    page = checked(write_report(write_run(tmp_path / "run", epochs=2, changes=rows)))
    words = re.sub(r"<[^>]+>", "", page)
    assert "changed for 825 held-out sentences: 450 better, 375 worse" in words
    assert "Shown are the largest changes only: 100 that are better or the same, 100" in words


def test_a_run_is_followed_and_its_last_page_stands_still(tmp_path: Path) -> None:
    pools = Pools.from_arrays(
        np.random.default_rng(1).normal(size=(40, 3)),
        range(0, 41, 4),
        ["a", "b", "c"],
        texts=[f"{'good ' * (i % 4)}word{i}" for i in range(40)],
        references=[[f"good good word{4 * i + 2}"] for i in range(10)],
    )
    run = tmp_path / "run"
    pages = []
    with Follow(run) as follow:

        def listen(event: dict[str, object]) -> None:
            follow(event)
            pages.append((event["event"], checked(run / "report.html")))

        tune(pools, "mira", "chrf", run=run, listen=listen, options={"passes": 3})
    assert [kind for kind, _ in pages][:2] == ["start", "epoch"]
    assert 'http-equiv="refresh"' in pages[0][1]
    assert "This run is going on" in pages[0][1]
    last = checked(run / "report.html")
    assert 'http-equiv="refresh"' not in last
    assert "going on" not in last
    assert last == checked(write_report(run, tmp_path / "again.html"))


def test_the_page_of_a_run_that_fails_stands_still_too(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), Follow(run) as follow:
        write_run(run, ended=False)
        follow({"event": "start"})
        assert "This run is going on" in checked(run / "report.html")
        raise KeyboardInterrupt
    assert "This run has not ended" in checked(run / "report.html")
    with pytest.raises(KeyboardInterrupt), Follow(tmp_path / "none"):
        raise KeyboardInterrupt
    assert not (tmp_path / "none").exists()


def test_live_tuning_tells_of_decoding_and_of_what_was_expected(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with RunDirectory(run).create({"preset": "mert"}) as directory:
        directory.event(
            "start", preset="mert", metric="bleu", sentences=9, hypotheses=90, start=30, oracle=40
        )
        for epoch in (1, 2):
            directory.event(
                "epoch",
                **{"run": 0, "epoch": epoch, "score": 30 + epoch, "projected": 33.25},
                **{"oracle_score": 44.5, "hypotheses": 90 * (epoch + 1), "seconds": 3},
                **{"decode_seconds": 2, "optimise_seconds": 1, "nonzero": 5},
                staleness={"mean": 1.5, "max": 3},
            )
    page = checked(write_report(run))
    for said in (
        *("270 hypotheses", "4.00 s decoding, 2.00 s optimising", "expected of the lists"),
        *("33.25", "44.50", "Staleness", "1.500", "Optimising"),
    ):
        assert said in page
    # A first-best decoding leaves no choice, so there is no oracle to tell of.
    single = tmp_path / "single"
    with RunDirectory(single).create({"preset": "mira"}) as directory:
        directory.event(
            "start", preset="mira", metric="bleu", sentences=9, hypotheses=9, start=30, oracle=None
        )
        directory.event("epoch", run=0, epoch=1, score=31)
    assert "Oracle" not in checked(write_report(single))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("world"))


def live(world: Path, name: str) -> Live:
    lines, references = (
        (world / f"{name}.{side}").read_text().splitlines() for side in ("src", "tgt")
    )
    model = Model.load(world / "model", "phrase")
    return Live(model, lines, [[reference] for reference in references], k=20)


def words_of(run: Path) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", checked(write_report(run))))


def test_without_held_out_text_a_live_run_speaks_of_its_own_text_only(
    world: Path, tmp_path: Path
) -> None:
    result = tune(
        live(world, "dev"),
        "mert",
        "bleu:tokenize=none",
        start=POOR["phrase"],
        iterations=1,
        run=tmp_path / "run",
    )
    assert result.significance["on"] == "text" and result.verdict == "better"
    words = words_of(tmp_path / "run")
    assert (
        "On the text it was tuned on, tuning beats the start; whether it helps elsewhere" in words
    )
    assert "--heldout SOURCE REFERENCE or --folds 5" in words
    assert f"{result.start:.2f} → Tuned {result.tuned:.2f}" in words
    # Nothing but the start was compared.
    assert "Without tuning" not in words and "Choices without tuning" not in words


def test_all_held_out_texts_of_a_live_run_are_shown(world: Path, tmp_path: Path) -> None:
    test = live(world, "test")
    result = tune(
        live(world, "dev"),
        "mira",
        "bleu:tokenize=none",
        start=POOR["phrase"],
        heldout=[test, test.subset(range(10))],
        iterations=2,
        run=tmp_path / "run",
    )
    assert len(result.heldout_all) == 2
    words = words_of(tmp_path / "run")
    for name, before, after in zip(
        ("Held out", "Held out 2"), result.heldout_start_all, result.heldout_all, strict=True
    ):
        assert f"{name} {before:.2f} → {after:.2f}" in words
    assert "on held-out sentences; p" in words and "it was tuned on" not in words


def test_time_that_threads_spend_side_by_side_stays_inside_its_chart(tmp_path: Path) -> None:
    with RunDirectory(tmp_path).create({"preset": "mira"}) as directory:
        directory.event("start", preset="mira", metric="bleu", sentences=9, start=30)
        for epoch in (1, 2):
            spent = {"seconds": 2, "decode_seconds": 3.5 + epoch, "optimise_seconds": 0.1}
            directory.event("epoch", run=0, epoch=epoch, score=31, **spent)
    page = checked(write_report(tmp_path))
    chart = page[page.index('id="seconds"') :].split("</figure>")[0]
    marks = [float(y) for y in re.findall(r'<circle cx="[^"]*" cy="([^"]*)"', chart)]
    assert len(marks) == 6
    assert min(marks) >= MEDIUM.top
    assert "summed over threads" in chart


@pytest.mark.parametrize(
    ("space", "said", "unsaid"),
    [
        ("list", ["270 hypotheses", "Hypotheses", "expected of the lists"], ["dges", "forest"]),
        ("forest", ["270 edges", "Edges", "expected of the forests"], ["ypotheses</", "list<"]),
        ("sentence", ["9 sentences"], ["90 hypotheses"]),
    ],
)
def test_lists_and_forests_are_counted_by_what_they_hold(
    tmp_path: Path, space: str, said: list[str], unsaid: list[str]
) -> None:
    with RunDirectory(tmp_path).create({"preset": "mert"}) as directory:
        sizes = {"sentences": 9, "hypotheses": 90, "space": space}
        directory.event("start", preset="mert", metric="bleu", start=30, oracle=40, **sizes)
        for epoch in (1, 2):
            grown = {"projected": 33.25, "hypotheses": 90 * (epoch + 1)}
            more = {} if space == "sentence" else grown
            directory.event("epoch", run=0, epoch=epoch, score=30 + epoch, **more)
    page = re.sub(r"<(style|pre).*?</", "", checked(write_report(tmp_path)), flags=re.DOTALL)
    assert all(text in page for text in said)
    assert not any(text in page for text in unsaid)


def test_inputs_are_named_by_what_they_are_for(tmp_path: Path) -> None:
    inputs = {
        "source": {"path": "dev.de", "size": 1234, "sha256": "ab12"},
        "model lm.tlm": {"path": "m/lm.tlm", "size": 99, "sha256_of_ends": "cd34"},
    }
    RunDirectory(tmp_path).create({"inputs": inputs}).close()
    page = checked(write_report(tmp_path))
    assert '<td>source</td><td class="name">dev.de</td><td class="n">1.2 kB</td>' in page
    assert "<td>model lm.tlm</td>" in page
    assert "<code>cd34 (of its ends)</code>" in page


def test_a_penalty_that_stays_does_not_press_the_bars_of_the_others(tmp_path: Path) -> None:
    run = tmp_path / "run"
    weights = {"unknown": -100.0, "lm": 1.5, "words": -0.75}
    with RunDirectory(run).create({"preset": "mert"}) as directory:
        directory.event("start", preset="mert", metric="bleu", features=2, start=30, oracle=40)
        directory.event("epoch", run=0, epoch=1, score=31, weights={**weights, "lm": 1, "words": 0})
        directory.event("epoch", run=0, epoch=2, score=32, weights=weights)
        directory.save_weights(weights, {})
    page = checked(write_report(run))
    assert re.findall(r'class="bar ([a-z ]+)" style="[a-z]+:50%;width:([0-9.]+)%"', page) == [
        ("minus beyond", "50.00"),
        ("plus", "50.00"),
        ("minus", "25.00"),
    ]
    assert "Bars that fade" in page
    assert "3 of 3 features carry weight" in page
