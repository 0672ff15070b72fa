"""The page: one HTML file with its style and script inside."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources


def rendered() -> tuple[str, str]:
    """Return the page and its content security policy: nothing but itself and this service."""
    style = _asset("report", "style.css") + _asset("serve", "page.css")
    script = _asset("serve", "page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; connect-src 'self'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    html = _asset("serve", "page.html")
    return html.replace("/* style */", style).replace("/* script */", script), policy


def _asset(package: str, name: str) -> str:
    return resources.files(f"tunesmith.{package}").joinpath(name).read_text(encoding="utf-8")
