"""Draw an HTML file with headless Chromium: `python tests/browser/render.py page.html out.png`."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def find_chromium() -> str | None:
    """Return the browser's path, or None when there is none on this machine."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    return None


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser and close it at the end of the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


def render(
    page: Path, out: Path, *, width: int = 1280, height: int = 900, dark: bool = False
) -> None:
    """Write a picture of the whole page at the given window width."""
    with chromium() as browser:
        view = browser.new_page(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
        )
        view.goto(page.resolve().as_uri())
        view.screenshot(path=out, full_page=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=1280)
    parser.add_argument("--dark", action="store_true")
    given = parser.parse_args()
    render(given.page, given.out, width=given.width, dark=given.dark)
