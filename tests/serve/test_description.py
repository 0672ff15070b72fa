"""The OpenAPI description: another program tries what it says."""

from __future__ import annotations

import subprocess
import sys

from serving import Serving

from tunesmith.serve.app import OPERATIONS


def test_schemathesis_finds_nothing(shared: Serving, tokens: dict[str, str]) -> None:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{shared.url}/openapi.json"),
            *("--header", f"Authorization: Bearer {tokens['review']}"),
            *("--max-examples", "10", "--seed", "1", "--no-color"),
            *("--suppress-health-check", "all"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-1000:]
    # Routes are made from the same table: nothing is left out.
    assert f"Tested: {len(OPERATIONS)}" in ran.stdout


def test_the_pages_need_no_network(shared: Serving) -> None:
    with shared.client() as client:
        for path in ("/", "/docs"):
            answer = client.get(path)
            assert answer.headers["content-type"].startswith("text/html")
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            assert "://" not in answer.text.replace("://localhost", "")
