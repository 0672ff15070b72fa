"""The page of the service in a real browser, with a real service behind it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from serving import Serving, serving, token_of, write_model

from tunesmith.serve import Feedback, Paths, Settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

pytestmark = pytest.mark.browser
OLD = "Das Buch ist alt."
EVIL = "<img src=x onerror=alert(1)><script>alert(2)</script>"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("page"))


@pytest.fixture
def served(model: Path, tmp_path: Path) -> Iterator[Serving]:
    settings = Settings(Paths(model, store=tmp_path / "store"), feedback=Feedback(memory=True))
    with serving(settings) as running:
        yield running


@contextmanager
def opened(browser: Browser, served: Serving, **options: Any) -> Iterator[Page]:
    """Yield the page; what its console says, and what leaves the service, fails the test."""
    page = browser.new_page(**options)
    page.set_default_timeout(20_000)
    problems: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        problems.append("a dialog")
        dialog.dismiss()

    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", dismiss)
    page.on("console", lambda said: problems.append(said.text) if said.type != "log" else None)
    page.on(
        "request",
        lambda sent: (
            None if sent.url.startswith((served.url, "data:")) else problems.append(sent.url)
        ),
    )
    try:
        page.goto(served.url)
        page.get_by_role("heading", name="German to English").wait_for()
        yield page
        assert problems == []
    finally:
        page.close()


def translate(page: Page, text: str) -> None:
    page.get_by_label("Text in German").fill(text)
    page.get_by_label("Text in German").press("Control+Enter")
    page.get_by_text("translated.", exact=False).wait_for()


def translation(page: Page) -> str:
    return page.locator("#sentences .to").first.inner_text()


def test_phrases_are_coloured_and_light_up_with_their_source(
    browser: Browser, served: Serving
) -> None:
    with opened(browser, served) as page:
        translate(page, OLD)
        assert translation(page) == "The book is old."
        targets = page.locator("#sentences .to [data-phrase]")
        assert targets.count() > 1
        colours = targets.evaluate_all("all => all.map(e => getComputedStyle(e).backgroundColor)")
        assert len(set(colours)) == len(colours)
        for place in range(targets.count()):
            targets.nth(place).focus()
            phrase = targets.nth(place).get_attribute("data-phrase")
            lit = page.locator("#sentences .near")
            assert (
                lit.evaluate_all("all => all.map(e => e.dataset.phrase)") == [phrase] * lit.count()
            )
            assert page.locator("#sentences .from .near").count() >= 1
            own = targets.nth(place).evaluate("e => getComputedStyle(e).getPropertyValue('--c')")
            source = page.locator("#sentences .from .near").first
            assert source.evaluate("e => getComputedStyle(e).getPropertyValue('--c')") == own


def test_what_stands_there_is_no_alternative_to_itself(browser: Browser, served: Serving) -> None:
    with opened(browser, served) as page:
        translate(page, "Die Bank.")
        page.locator("#sentences .to .has").first.click()
        # The model's word is "the bench"; it stands there with a capital.
        assert page.locator(".choices button").all_inner_texts() == ["the bank"]
        page.locator(".choices button").click()
        assert translation(page) == "The bank."
        page.locator("#sentences .to .has").first.click()
        assert page.locator(".choices button").all_inner_texts() == ["the bench"]


@pytest.mark.parametrize("keyboard", [True, False])
def test_another_translation_of_a_phrase_becomes_a_correction_and_is_taken_back(
    browser: Browser, served: Serving, keyboard: bool
) -> None:
    store = served.service.settings.paths.store
    assert store is not None
    token = token_of(store)
    with opened(browser, served) as page:
        page.locator("#token").fill(token)
        page.locator("#token").press("Enter")
        page.get_by_text("None yet.").wait_for()
        translate(page, OLD)
        phrase = page.locator("#sentences .to .has", has_text="old").first
        if keyboard:
            phrase.focus()
            page.keyboard.press("Enter")
            # Escape closes the choices and returns to the phrase.
            page.locator(".choices button").first.wait_for()
            page.keyboard.press("Escape")
            assert page.locator(".choices").is_hidden()
            page.keyboard.press("Enter")
            while page.evaluate("document.activeElement.textContent") != "ancient":
                page.keyboard.press("Tab")
            page.keyboard.press("Enter")
        else:
            phrase.click()
            page.locator(".choices").get_by_role("button", name="ancient", exact=True).click()
        assert translation(page) == "The book is ancient."
        area = page.get_by_label("Correct it")
        assert area.input_value() == "The book is ancient."
        page.get_by_role("button", name="Send the correction").click()
        page.get_by_text("Correction 1 is kept and used from now on.").wait_for()
        translate(page, OLD)
        page.get_by_text("from correction 1, verbatim").wait_for()
        assert translation(page) == "The book is ancient."
        page.get_by_role("button", name="Take back correction 1").click()
        page.get_by_text("Correction 1 is taken back.").wait_for()
        page.get_by_text("None yet.").wait_for()
        translate(page, OLD)
        assert translation(page) == "The book is old."
    assert served.service.store is not None
    assert served.service.store.counts() == {"accepted": 0, "held": 0}


def test_a_correction_without_a_token_asks_for_one_and_goes_on(
    browser: Browser, served: Serving
) -> None:
    store = served.service.settings.paths.store
    assert store is not None
    token = token_of(store)
    page = browser.new_page(viewport={"width": 360, "height": 740})
    page.set_default_timeout(20_000)
    try:
        page.goto(served.url)
        page.get_by_role("heading", name="German to English").wait_for()
        # With the keyboard alone, from the field that has the focus at the start.
        page.keyboard.type(OLD)
        page.keyboard.press("Control+Enter")
        page.get_by_text("translated.", exact=False).wait_for()
        while page.evaluate("document.activeElement.textContent") != "Send the correction":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.get_by_text("A correction needs a token").wait_for()
        assert page.evaluate("document.activeElement.id") == "token"
        page.keyboard.type(token)
        page.keyboard.press("Enter")
        page.get_by_text("The token is good.").wait_for()
        page.keyboard.press("Enter")
        said = page.get_by_text("Correction 1 is kept and used from now on.")
        said.wait_for()
        # What is said is in sight, though the button is far below.
        place = said.bounding_box()
        assert page.evaluate("scrollY") > 0 and place is not None and 0 <= place["y"] < 740
    finally:
        page.close()


def test_markup_stays_text(browser: Browser, served: Serving) -> None:
    store = served.service.settings.paths.store
    assert store is not None
    token = token_of(store)
    with opened(browser, served) as page:
        page.locator("#token").fill(token)
        page.locator("#token").press("Enter")
        translate(page, f"{EVIL} Haus")
        page.get_by_label("Correct it").first.fill(f"{EVIL} house")
        page.get_by_role("button", name="Send the correction").first.click()
        page.get_by_text("Correction 1 is kept").wait_for()
        page.locator("#corrections li").first.wait_for()
        assert EVIL in page.locator("#corrections").inner_text()
        assert page.locator("main img, main script").count() == 0
        page.reload()
        page.locator("#corrections li").first.wait_for()
        assert page.locator("main img, main script").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_needs_no_sideways_scrolling(
    browser: Browser, served: Serving, scheme: Any
) -> None:
    view = {"width": 360, "height": 740}
    with opened(browser, served, viewport=view, color_scheme=scheme) as page:
        translate(page, f"{OLD} {'Haus' * 60} ist klein.\nHier ist das Haus.")
        page.locator("#sentences .has").first.click()
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360

        # Text and ground differ enough, in the light and in the dark.
        def light(selector: str, name: str) -> float:
            rule = f"e => getComputedStyle(e).{name}.match(/[0-9.]+/g).slice(0, 3).map(Number)"
            red, green, blue = page.locator(selector).first.evaluate(rule)
            return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)

        ground, ink = light("body", "backgroundColor"), light("#sentences .to", "color")
        assert (ground < 60 and ink > 170) if scheme == "dark" else (ground > 200 and ink < 80)
