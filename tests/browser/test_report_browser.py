"""The report in a real browser: complete without the network, alive under the pointer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from sample_runs import write_run

from tunesmith.report import write_comparison, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

EVIL = "<script>window.hurt=1</script>\"'><img src=x onerror=window.hurt=2><b onclick=1>"


@contextmanager
def opened(browser: Browser, path: Path, **context: Any) -> Iterator[Page]:
    """Open a page and promise that it was silent: no errors, no requests but its own."""
    view = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **context})
    page = view.new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    try:
        yield page
        assert said == []
        assert [url for url in asked if not url.startswith("data:")] == [path.as_uri()]
    finally:
        view.close()


def texts(page: Page, selector: str) -> list[str]:
    return page.locator(selector).all_inner_texts()


def test_charts_hold_one_point_per_epoch(browser: Browser, dense_report: Path) -> None:
    with opened(browser, dense_report) as page:
        curve = "#learning-curve .series[data-name='{}'] circle"
        # The start is epoch 0 of the score.
        assert page.locator(curve.format("on the lists")).count() == 16
        assert page.locator(curve.format("held out")).count() == 15
        for name in ("oracle", "model", "prediction"):
            assert page.locator(f"#gains .series[data-name='{name}'] rect").count() == 15
        assert page.locator("#weights-over-time .series").count() == 12
        assert page.locator("#weights-over-time .legend li").count() == 12
        assert page.locator("#spread .band").count() == 1
        for name in ("nonzero", "weight-change", "seconds"):
            assert page.locator(f"#{name} .series circle").count() == 15


def test_several_runs_lie_over_each_other(browser: Browser, sparse_report: Path) -> None:
    with opened(browser, sparse_report) as page:
        # Three runs with two curves each; the best run alone is drawn strong.
        assert page.locator("#learning-curve .series .line").count() == 6
        assert page.locator("#learning-curve .series .line.faint").count() == 4
        assert page.locator("#nonzero .series .line").count() == 3
        assert "Between runs" in page.locator("table.weights thead").inner_text()


def test_every_chart_stays_inside_its_frame(browser: Browser, sparse_report: Path) -> None:
    with opened(browser, sparse_report) as page:
        outside = page.evaluate(
            """() => [...document.querySelectorAll(".plot svg")].flatMap((svg) => {
              const frame = svg.getBoundingClientRect();
              return [...svg.querySelectorAll(".series, .axes text, .band")].filter((part) => {
                const box = part.getBoundingClientRect();
                return box.left < frame.left - 4 || box.right > frame.right + 4
                  || box.top < frame.top - 4 || box.bottom > frame.bottom + 4;
              }).map((part) => svg.parentNode.parentNode.id + ": " + part.outerHTML);
            })"""
        )
        assert outside == []


def test_the_pointer_brings_the_values_of_an_epoch(browser: Browser, dense_report: Path) -> None:
    with opened(browser, dense_report) as page:
        tip = page.locator("#learning-curve .tip")
        assert not tip.is_visible()
        third = page.locator("#learning-curve .series[data-name='held out'] circle").nth(2)
        third.hover(force=True)
        assert tip.is_visible()
        lines = [line.strip() for line in tip.inner_text().split("\n") if line.strip()]
        assert lines[0] == "epoch 3"
        assert "on the lists" in lines and "held out" in lines
        page.mouse.move(0, 0)
        assert not tip.is_visible()


def test_the_arrow_keys_bring_them_too(browser: Browser, dense_report: Path) -> None:
    with opened(browser, dense_report) as page:
        page.locator("#gains svg").focus()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#gains .tip p").inner_text() == "epoch 15"
        page.keyboard.press("ArrowLeft")
        assert page.locator("#gains .tip p").inner_text() == "epoch 14"
        page.keyboard.press("Escape")
        assert not page.locator("#gains .tip").is_visible()


def test_the_legend_tells_all_weights_at_the_pointer(browser: Browser, dense_report: Path) -> None:
    with opened(browser, dense_report) as page:
        last = texts(page, "#weights-over-time .legend b")
        page.locator("#weights-over-time svg").hover(position={"x": 90, "y": 150})
        assert page.locator("#weights-over-time .tip div").count() == 1
        assert page.locator("#weights-over-time .legend .near").count() == 1
        assert texts(page, "#weights-over-time .legend b") != last
        page.mouse.move(0, 0)
        assert texts(page, "#weights-over-time .legend b") == last


def test_analyses_have_a_curve_by_beam_and_tables(browser: Browser, sparse_report: Path) -> None:
    with opened(browser, sparse_report) as page:
        curve = page.locator("#analyses figure.chart")
        assert curve.locator(".series .line").count() == 2
        curve.locator(".series circle").nth(2).hover(force=True)
        lines = [line.strip() for line in curve.locator(".tip").inner_text().split("\n")]
        assert lines[0] == "beam 30" and "other.toml" in lines
        reached = texts(page, "#analyses .analysis:last-child .sum td")
        assert reached[:5] == ["all", "40", "10 (25\u00a0%)", "24 (60\u00a0%)", "25\u00a0%"]
        assert reached[-1] == "2"


def test_the_weights_sort_by_any_column(browser: Browser, dense_report: Path) -> None:
    with opened(browser, dense_report) as page:
        names = "table.weights tbody td.name"
        assert texts(page, names)[0] == "LM0"
        page.get_by_role("button", name="Feature").click()
        assert texts(page, names) == sorted(texts(page, names), key=str.lower)
        assert page.locator("table.weights th").first.get_attribute("aria-sort") == "ascending"
        page.get_by_role("button", name="Weight").click()
        values = page.locator("table.weights td:nth-child(2)").evaluate_all(
            "cells => cells.map((cell) => Number(cell.dataset.v))"
        )
        assert values == sorted(values, reverse=True)
        page.get_by_role("button", name="Weight").click()
        assert texts(page, names)[-1] == "LM0"


def test_long_lists_begin_short(browser: Browser, sparse_report: Path) -> None:
    with opened(browser, sparse_report) as page:
        rows = page.locator("table.weights tbody tr:visible")
        assert rows.count() == 20
        page.locator("#weights button.all").click()
        assert rows.count() == page.locator("table.weights tbody tr").count() > 20


def test_the_filter_finds_words_and_the_order_turns(browser: Browser, dense_report: Path) -> None:
    with opened(browser, dense_report) as page:
        shown = page.locator("ol.sentences > li:visible")
        everything = page.locator("ol.sentences > li").count()
        assert shown.count() == 20
        page.locator("#filter").fill("UMBRELLA")
        found = texts(page, "ol.sentences > li:visible")
        assert 0 < len(found) < everything
        assert all("umbrella" in text for text in found)
        assert page.locator("#found").inner_text() == f"{len(found)} of {everything}"
        page.locator("#filter").fill("no such word")
        assert shown.count() == 0
        page.locator("#filter").fill("")
        assert shown.count() == 20

        def changes() -> list[float]:
            found: list[float] = page.locator("ol.sentences > li").evaluate_all(
                "items => items.map((item) => Number(item.dataset.change))"
            )
            return found

        assert changes() == sorted(changes(), key=lambda change: -abs(change))
        page.locator("#order").select_option("worse")
        assert changes() == sorted(changes()) and changes()[0] < 0
        page.locator("#order").select_option("better")
        assert changes() == sorted(changes(), reverse=True) and changes()[0] > 0


def test_the_dark_page_is_dark(browser: Browser, dense_report: Path) -> None:
    def brightness(page: Page, selector: str, what: str) -> float:
        colour = page.locator(selector).first.evaluate(
            f"element => getComputedStyle(element).{what}"
        )
        return sum(int(part) for part in colour[colour.index("(") + 1 : -1].split(",")[:3])

    with opened(browser, dense_report, color_scheme="light") as page:
        assert brightness(page, "body", "backgroundColor") > 600
        assert brightness(page, "body", "color") < 200
    with opened(browser, dense_report, color_scheme="dark") as page:
        assert brightness(page, "body", "backgroundColor") < 150
        assert brightness(page, "body", "color") > 500
        assert brightness(page, "svg text", "fill") > 350


@pytest.mark.parametrize("width", [320, 390, 768, 1280])
def test_no_width_needs_sideways_scrolling(
    browser: Browser, sparse_report: Path, width: int
) -> None:
    with opened(browser, sparse_report, viewport={"width": width, "height": 800}) as page:
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # Letters of a chart stay readable when the chart shrinks.
        sizes = page.locator("svg .axes text:not(.unit)").evaluate_all(
            "texts => texts.map((text) => text.getBoundingClientRect().height)"
        )
        assert min(sizes) > 9


def test_the_essentials_need_no_script(browser: Browser, dense_report: Path) -> None:
    with opened(browser, dense_report, java_script_enabled=False) as page:
        assert page.locator("#learning-curve .series circle").count() == 31
        assert page.locator("ol.sentences > li:visible").count() > 20
        assert page.locator("table.weights tbody tr:visible").count() == 14
        for gone in (".controls", "button.all"):
            assert page.locator(gone).first.is_hidden()


def test_hostile_text_is_shown_and_never_runs(browser: Browser, tmp_path: Path) -> None:
    changes: list[dict[str, Any]] = [
        {
            "sentence": 1,
            "key": EVIL,
            "source": "שלום עולם " + EVIL,
            "reference": ["مرحبا بالعالم", EVIL],
            "before": "👩‍👩‍👧 " + EVIL,
            "after": "\u202egnorw</li></ol>]]><!--",
            "gain_before": 0.1,
            "gain_after": 0.5,
        },
        {"sentence": 2, "before": "x" * 9000, "after": "y " * 9000},
        {"before": None, "after": 7, "reference": {"a": 1}, "gain_after": "much"},
    ]
    start = {"preset": EVIL, "metric": EVIL, "signature": EVIL, "features": EVIL}
    run = write_run(tmp_path / "run", epochs=3, changes=changes, start=start, refused=EVIL)
    events = (run / "events.jsonl").read_text(encoding="utf-8")
    evil = EVIL.replace('"', '\\"')
    (run / "events.jsonl").write_text(events.replace("LM0", evil), encoding="utf-8")
    page_file = write_report(run)
    with opened(browser, page_file) as page:
        assert page.evaluate("window.hurt") is None
        assert page.locator("img, b[onclick]").count() == 0
        assert page.locator("h1 em").inner_text() == EVIL
        assert page.locator(".banner.refused p").inner_text() == EVIL
        assert page.locator(".sentences .number").first.inner_text().endswith(EVIL)
        # The right-to-left source runs its own way, and the page does not.
        source = page.locator(".sentences .source dd").first
        assert source.evaluate("element => getComputedStyle(element).direction") == "rtl"
        assert page.locator("body").evaluate("e => getComputedStyle(e).direction") == "ltr"
        # Tooltip and legend are made from the same names.
        page.locator("#weights-over-time svg").hover(position={"x": 200, "y": 60})
        assert EVIL in texts(page, "#weights-over-time .legend span")
        assert page.evaluate("window.hurt") is None
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_a_live_page_loads_itself_again_until_the_run_ends(
    browser: Browser, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", epochs=2, ended=False)
    page_file = write_report(run, live=1)
    page = browser.new_page()
    page.goto(page_file.as_uri())
    assert page.locator("#learning-curve .series[data-name='held out'] circle").count() == 2
    whole = write_run(tmp_path / "whole", epochs=5)
    write_report(whole, page_file, live=1)
    page.locator(".banner.running").wait_for(state="detached", timeout=10_000)
    assert page.locator("#learning-curve .series[data-name='held out'] circle").count() == 5
    assert page.locator("meta[http-equiv=refresh]").count() == 0
    page.close()


def test_several_runs_are_drawn_in_one_chart(browser: Browser, tmp_path: Path) -> None:
    for name, seeds in (("one", 1), (EVIL.replace("/", ""), 3)):
        write_run(tmp_path / name, seeds=seeds, epochs=8)
    runs = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    with opened(browser, write_comparison(runs, tmp_path / "both.html")) as page:
        # The start and eight epochs; two more seeds are faint and have no points.
        assert page.locator("#score-0 .series circle").count() == 2 * 9
        assert page.locator("#score-0 .series .faint").count() == 2
        assert page.locator("#score-0 .ring").count() == 2
        assert page.locator("#heldout-0 .series circle").count() == 2 * 8
        assert len(texts(page, "#runs tbody tr")) == 2
        assert sorted(texts(page, "#score-0 .legend li")) == sorted(path.name for path in runs)
        assert page.evaluate("window.hurt") is None
        page.locator("#score-0 svg").hover()
        assert page.locator("#score-0 .tip").is_visible()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 1280
