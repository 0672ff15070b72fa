"""The index of examples: built, searched, changed, killed, damaged."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from twins.toy import make_world, pairs

from tunesmith.decode.translation import Model
from tunesmith.decode.translator import Translator
from tunesmith.errors import InputError
from tunesmith.files.lock import Lock
from tunesmith.local import Index
from tunesmith.local import index as module
from tunesmith.local.index import FIRST_GIVEN, METRIC

pytest.importorskip("tantivy")

PAIRS = pairs(60, 5)
SOURCES, TARGETS = [source for source, _ in PAIRS], [target for _, target in PAIRS]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def translator(world: Path) -> Translator:
    return Model.load(world / "model", "phrase").translator(world / "phrase.toml")


@pytest.fixture
def index(tmp_path: Path, translator: Translator) -> Index:
    return Index.build(tmp_path / "index", translator, SOURCES, TARGETS, k=10, threads=1)


def found(index: Index, sentence: str, k: int = 5, exact: bool = True) -> list[tuple[int, float]]:
    return [(each.id, each.similarity) for each in index.near(sentence, k, exact=exact)]


def test_lists_are_those_of_the_decoder(index: Index, translator: Translator) -> None:
    pools = index.lists([7, 3], texts=True)
    wanted = translator.nbest([SOURCES[7], SOURCES[3]], 10, threads=1)
    assert pools.references == [[TARGETS[7]], [TARGETS[3]]]
    assert pools.sources == wanted.sources
    places = np.arange(pools.hypotheses)
    assert pools.core.texts(places) == wanted.core.texts(places)
    weights = translator.weights
    assert np.allclose(pools.core.dot(pools.vector(weights, partial=True)), wanted.core.scores)
    again = type(pools)(pools.core, pools.references)
    assert np.array_equal(pools.table(METRIC).rows(), again.table(METRIC).rows())


def test_candidates_hold_the_nearest(index: Index) -> None:
    for sentence in SOURCES[:10]:
        assert found(index, sentence, exact=False) == found(index, sentence)
        assert found(index, sentence)[0][1] == pytest.approx(1.0)


def test_a_sentence_need_not_find_itself(index: Index) -> None:
    near = index.near(SOURCES[4], 60, leave_out=True)
    assert near and all(each.source != SOURCES[4] for each in near)


@pytest.mark.parametrize("sentence", ["", "  ", "zzz qqq", "\x00", "\x1b[31m"])
def test_sentences_without_known_words_have_no_neighbours(index: Index, sentence: str) -> None:
    assert not index.near(sentence) and not index.near(sentence, exact=True)


def test_a_very_long_query(index: Index) -> None:
    assert len(index.near(" ".join(["das haus buch"] * 3500), 3)) == 3


def test_what_was_added_is_found_and_stays(index: Index, translator: Translator) -> None:
    own = index.add(translator, ["das haus brot"], ["the bread house"])
    given = index.add(translator, ["brot haus"], [["bread house", "house bread"]], [FIRST_GIVEN])
    assert own == [60] and given == [FIRST_GIVEN] and len(index) == 62
    assert index.near("brot haus", 1)[0].references == ["bread house", "house bread"]
    assert index.remove([3, 60, 999]) == 2
    index.close()
    again = Index.open(index.folder, translator)
    assert sorted(again.ids) == [*range(3), *range(4, 60), FIRST_GIVEN]
    assert found(again, "brot haus") == found(again, "brot haus", exact=False)
    assert 3 not in [id for id, _ in found(again, SOURCES[3], 60, exact=False)]
    with pytest.raises(KeyError):
        again.lists([3])
    # A number is never given twice, nor taken by two.
    assert again.add(translator, ["neu"], ["new"]) == [61]
    with pytest.raises(InputError, match="is there already"):
        again.add(translator, ["neu"], ["new"], [FIRST_GIVEN])
    again.close()


def test_many_small_files_become_one(
    index: Index, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = found(index, SOURCES[0], 60)
    for number in range(10):
        index.add(translator, [f"das rote auto {number}"], ["x"])
    assert len(index.manifest.parts) < module.MANY and len(index) == 70
    index.remove(list(range(60, 70)))
    assert found(index, SOURCES[0], 60) == before
    index.close()
    assert found(Index.open(index.folder), SOURCES[0], 60) == before
    assert len(list(index.folder.glob("*.seg"))) == len(index.manifest.parts)


def test_searches_beside_changes(index: Index, translator: Translator) -> None:
    failures: list[BaseException] = []
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            try:
                for sentence in SOURCES[:5]:
                    assert index.near(sentence, 20)
                    index.lists([each.id for each in index.near(sentence, 3, exact=True)][:1])
            except KeyError:
                pass  # removed between search and use
            except BaseException as error:
                failures.append(error)
                return

    threads = [threading.Thread(target=search) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(12):
        ids = index.add(translator, [f"das alte kind {number}"], ["x"])
        if number % 2:
            index.remove(ids)
    done.set()
    for thread in threads:
        thread.join()
    assert not failures and len(index) == 66


def test_a_stopped_build_goes_on(
    tmp_path: Path, translator: Translator, index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK", 7)
    whole = Index.build(tmp_path / "whole", translator, SOURCES, TARGETS, k=10)

    def stop(done: int, lines: int) -> None:
        if done == 28:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Index.build(tmp_path / "part", translator, SOURCES, TARGETS, k=10, progress=stop)
    with pytest.raises(InputError, match="28 of 60 lines"):
        Index.open(tmp_path / "part")
    with pytest.raises(InputError, match="other text or another k"):
        Index.build(tmp_path / "part", translator, SOURCES, TARGETS, k=9)
    resumed = Index.build(tmp_path / "part", translator, SOURCES, TARGETS, k=10)
    for one, other in zip(
        sorted(whole.folder.glob("*.seg")), sorted(resumed.folder.glob("*.seg")), strict=True
    ):
        assert one.read_bytes() == other.read_bytes()
    assert found(resumed, SOURCES[1]) == found(index, SOURCES[1])
    with pytest.raises(InputError, match="an index here already"):
        Index.build(tmp_path / "part", translator, SOURCES, TARGETS, k=10)


KILLED = """
import sys
from pathlib import Path
from tunesmith.decode.translation import Model
from tunesmith.local import Index
world, folder = Path(sys.argv[1]), sys.argv[2]
translator = Model.load(world / "model", "phrase").translator(world / "phrase.toml")
index = Index.open(folder, translator)
print("open", flush=True)
for number in range(10_000):
    ids = index.add(translator, [f"das alte kind {number}"], ["the old child"])
    print("added", ids[0], flush=True)
    if number % 3 == 2:
        index.remove(ids)
        print("removed", ids[0], flush=True)
"""


@pytest.mark.parametrize("lines", [3, 8, 21])
def test_a_killed_process_loses_nothing_it_told_of(
    index: Index, translator: Translator, world: Path, lines: int
) -> None:
    index.close()
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(world), str(index.folder)],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        told = [process.stdout.readline().split() for _ in range(lines)]
        os.kill(process.pid, signal.SIGKILL)
        told += [line.split() for line in process.stdout if line.endswith("\n")]
    again = Index.open(index.folder, translator)
    added = {int(words[1]) for words in told if words[0] == "added"}
    removed = {int(words[1]) for words in told if words[0] == "removed"}
    held = set(again.ids)
    assert added - removed - held <= {max(added)}, "only the last may be in the middle of removal"
    assert not removed & held and set(range(60)) <= held
    assert again.add(translator, ["neu"], ["new"])[0] not in added
    for sentence in SOURCES[:3]:
        assert found(again, sentence, exact=False) == found(again, sentence)
    again.close()


def test_only_one_process_writes(index: Index, translator: Translator, world: Path) -> None:
    index.add(translator, ["das haus"], ["the house"])
    finished = subprocess.run(
        [sys.executable, "-c", KILLED, str(world), str(index.folder)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "another process" in finished.stderr and "added" not in finished.stdout


def test_another_model_or_other_weights_are_refused(
    index: Index, world: Path, tmp_path: Path
) -> None:
    model = Model.load(world / "model", "phrase")
    for translator, what in (
        (model.translator({"lm": 1.0, "words": -1.0}), "other weights"),
        (model.translator(world / "phrase.toml", {"stack": 3}), "other settings"),
        (Model.load(world / "model", "hiero").translator(world / "hiero.toml"), "another model"),
    ):
        with pytest.raises(InputError, match=what) as error:
            Index.open(index.folder, translator)
        assert error.value.remedy


def damage(file: Path, at: float = 0.5) -> None:
    content = bytearray(file.read_bytes())
    content[int(at * (len(content) - 1))] ^= 0x40
    file.write_bytes(content)


def test_damage_is_found_or_repaired(index: Index, tmp_path: Path) -> None:
    wanted = found(index, SOURCES[0], exact=False)
    index.close()
    for name, hurt in (
        ("index.json", damage),
        ("index.json", lambda file: file.write_text("{}")),
        ("index.json", lambda file: file.unlink()),
        ("examples-000001.seg", lambda file: file.write_bytes(file.read_bytes()[:-40])),
        ("examples-000001.seg", lambda file: file.unlink()),
    ):
        copy = tmp_path / "copy"
        shutil.copytree(index.folder, copy)
        hurt(copy / name)
        with pytest.raises(InputError):
            Index.open(copy)
        shutil.rmtree(copy)
    # What retrieval searches can be made again from the examples.
    for file in (index.folder / "words").iterdir():
        if file.name.startswith("."):
            continue
        copy = tmp_path / "copy"
        shutil.copytree(index.folder, copy)
        damage(copy / "words" / file.name)
        opened = Index.open(copy)
        assert found(opened, SOURCES[0], exact=False) == wanted
        opened.close()
        shutil.rmtree(copy)


def test_bad_arguments(tmp_path: Path, translator: Translator, index: Index) -> None:
    def build(sources: Sequence[str], targets: Sequence[str], k: int = 5) -> Index:
        return Index.build(tmp_path / "bad", translator, sources, targets, k=k)

    with pytest.raises(InputError, match="2 sources, but references for 1"):
        build(["a", "b"], ["a"])
    with pytest.raises(InputError, match="no examples"):
        build([], [])
    with pytest.raises(InputError, match="k is 0"):
        build(["das"], ["the"], 0)
    with pytest.raises(InputError, match="no line has a source and a reference"):
        build([""], ["x"])
    with pytest.raises(InputError, match="k is 0"):
        index.near("das", 0)
    with pytest.raises(InputError, match="given by the index"):
        index.add(translator, ["das"], ["the"], [5])
    with pytest.raises(InputError, match="no index here"):
        Index.open(tmp_path / "nowhere")


def test_lines_that_teach_nothing_are_counted(tmp_path: Path, translator: Translator) -> None:
    made = Index.build(tmp_path / "index", translator, ["das", "", "haus"], ["the", "x", " "], k=5)
    assert made.ids == [0] and sum(made.manifest.skipped.values()) == 2
    assert json.loads((made.folder / "index.json").read_text())["next_id"] == 3


def test_an_index_is_opened_while_another_process_changes_it(index: Index) -> None:
    folder = index.folder
    index.close()
    # As a reader finds it between two steps of a writer.
    lock = Lock(folder, "index")
    (folder / "words" / "meta.json").rename(folder / "meta.json")

    def finish() -> None:
        (folder / "meta.json").rename(folder / "words" / "meta.json")

    writer = threading.Timer(0.3, finish)
    writer.start()
    try:
        assert len(Index.open(folder)) == len(SOURCES)
    finally:
        writer.join()
        lock.release()
