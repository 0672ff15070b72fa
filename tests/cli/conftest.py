"""Lists that all tests of commands may read."""

from __future__ import annotations

import pytest
from running import Sample

from tunesmith.demo.sample import write_sample


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    folder = tmp_path_factory.mktemp("sample")
    write_sample(folder, count=40, size=10)
    return Sample(folder)
