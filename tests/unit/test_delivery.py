"""Files reach a machine that lacks them, once, and are compared with their checksum."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tunesmith.engines.delivery import FOLDER, Described, Files, Own, describe, located
from tunesmith.errors import InputError


class Far(Own):
    """A sender whose files lie under another path than it says: a machine that is not this one."""

    def __init__(self, folder: Path, size: int = 5) -> None:
        self._folder, self._size = folder, size
        self.sent: list[str] = []

    def digests(self, paths: Sequence[str]) -> list[str]:
        return super().digests([str(self._there(path)) for path in paths])

    def pieces(self, path: str) -> Iterator[bytes]:
        self.sent.append(Path(path).name)
        content = self._there(path).read_bytes()
        for start in range(0, len(content), self._size):
            yield content[start : start + self._size]

    def _there(self, path: str) -> Path:
        return self._folder / Path(path).relative_to("/absent")


CONTENT = {"model.toml": b"format = 1\n", "lm.tlm": bytes(range(256)) * 40, "deep/words": b""}


@pytest.fixture
def far(tmp_path: Path) -> Far:
    for name, content in CONTENT.items():
        path = tmp_path / "far" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return Far(tmp_path / "far")


@pytest.fixture
def wanted(far: Far, tmp_path: Path) -> list[Described]:
    found = describe(Files({name: tmp_path / "far" / name for name in CONTENT}))
    return [Described(e.name, f"/absent/{e.name}", e.size, e.sha256) for e in found]


def read(files: Files) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in files.paths.items()}


def test_files_that_are_here_stay_where_they_are(far: Far, tmp_path: Path) -> None:
    files = Files({name: tmp_path / "far" / name for name in CONTENT})
    assert located(describe(files), far, tmp_path / "cache") == files
    assert not far.sent and not (tmp_path / "cache").exists()


def test_absent_files_are_fetched_once(far: Far, wanted: list[Described], tmp_path: Path) -> None:
    first = located(wanted, far, tmp_path)
    assert read(first) == CONTENT
    assert located(wanted, far, tmp_path) == first
    assert sorted(far.sent) == ["lm.tlm", "model.toml", "words"]
    assert not list((tmp_path / FOLDER).glob(".*"))


def test_files_that_differ_are_fetched(far: Far, wanted: list[Described], tmp_path: Path) -> None:
    other = tmp_path / "model.toml"
    other.write_bytes(b"format = 2\n")
    changed = [Described("model.toml", str(other), wanted[0].size, wanted[0].sha256)]
    far._there = lambda path: tmp_path / "far" / "model.toml"  # type: ignore[method-assign]
    assert read(located(changed, far, tmp_path)) == {"model.toml": CONTENT["model.toml"]}
    assert other.read_bytes() == b"format = 2\n"


@pytest.mark.parametrize("damage", ["middle", "short", "gone"])
def test_a_damaged_copy_is_fetched_again(
    far: Far, wanted: list[Described], tmp_path: Path, damage: str
) -> None:
    path = located(wanted, far, tmp_path).paths["lm.tlm"]
    content = bytearray(CONTENT["lm.tlm"])
    if damage == "gone":
        path.unlink()
    elif damage == "short":
        path.write_bytes(content[:-1])
    else:
        # Neither end shows it.
        content[5000] ^= 1
        path.write_bytes(content)
    assert read(located(wanted, far, tmp_path)) == CONTENT
    assert far.sent.count("lm.tlm") == 2


def test_leftovers_of_a_killed_worker_go(far: Far, wanted: list[Described], tmp_path: Path) -> None:
    place = located(wanted, far, tmp_path).paths["model.toml"].parent
    half = place.with_name(f".{place.name}.0.part")
    place.rename(half)
    assert read(located(wanted, far, tmp_path)) == CONTENT
    assert not half.exists()


def test_a_file_that_changes_on_its_way_is_refused(
    far: Far, wanted: list[Described], tmp_path: Path
) -> None:
    (tmp_path / "far" / "model.toml").write_bytes(b"format = 3\n")
    with pytest.raises(InputError, match=r"^/absent/model\.toml: .*changed while it was sent"):
        located(wanted, far, tmp_path)
    assert not [path for path in (tmp_path / FOLDER).iterdir() if path.suffix != ".lock"]


def test_without_a_sender_changed_files_are_refused(wanted: list[Described]) -> None:
    with pytest.raises(InputError, match="no longer the file that the work began with"):
        located(wanted, None)


def test_a_cache_that_cannot_be_written_is_named(
    far: Far, wanted: list[Described], tmp_path: Path
) -> None:
    (tmp_path / FOLDER).write_text("in the way")
    with pytest.raises(InputError, match=r"cannot be kept here.*XDG_CACHE_HOME"):
        located(wanted, far, tmp_path)


def test_workers_of_a_machine_share_one_copy(
    far: Far, wanted: list[Described], tmp_path: Path
) -> None:
    found: list[Files] = []
    threads = [
        threading.Thread(target=lambda: found.append(located(wanted, far, tmp_path)))
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 6 and all(each == found[0] for each in found)
    assert far.sent.count("lm.tlm") == 1
