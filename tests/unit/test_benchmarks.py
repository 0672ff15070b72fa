"""The benchmarks run, on tiny lists, and tell what they should; nothing here is timed."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import moses_lists, numpy_twin, reading, sparse
from benchmarks.__main__ import NAMES, main
from benchmarks.data import Setting
from benchmarks.harness import Claim, Outcome, best_of, markdown, save, show
from benchmarks.reranking import with_places
from benchmarks.tuners import tune_once
from benchmarks.yardstick import Yardstick

WORDS = [
    "a",
    "man",
    "rides",
    "the",
    "red",
    "bike",
    "down",
    "street",
    "while",
    "two",
    "dogs",
    "play",
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight lists of ten sentences in the layout of the real data."""
    root = tmp_path_factory.mktemp("shared")
    moses = root / "data" / "multi30k-moses"
    (moses / "nbest").mkdir(parents=True)
    (root / "data" / "multi30k").mkdir()
    rng = np.random.default_rng(1)
    references = [rng.choice(WORDS, 8).tolist() for _ in range(10)]
    with gzip.open(root / "data" / "multi30k" / "val.en.gz", "wt") as file:
        file.writelines(" ".join(words) + "\n" for words in references)
    for run in range(1, 9):
        with gzip.open(moses / "nbest" / f"run{run}.best100.out.gz", "wt") as file:
            for number, words in enumerate(references):
                for _ in range(6):
                    wrong = rng.random(8) < 0.3
                    text = [w if not bad else "x" for w, bad in zip(words, wrong, strict=True)]
                    lm, noise = -wrong.sum() + rng.normal(), rng.normal()
                    file.write(
                        f"{number} ||| {' '.join(text)} ||| LM0= {lm:.4f} Distortion0= {noise:.4f}"
                        f" ||| {noise:.4f}\n"
                    )
    (moses / "moses.untuned.ini").write_text("[weight]\nLM0= 0.1\nDistortion0= 1\n")
    return root


@pytest.fixture(scope="module")
def setting(shared: Path) -> Setting:
    return Setting(quick=True, shared=shared)


def test_every_list_benchmark_fills_its_table(setting: Setting) -> None:
    yardstick = Yardstick(0.9, 1.1)
    for run in (moses_lists.mert, moses_lists.kbmira, moses_lists.whole_way):
        outcome = run(setting, yardstick)
        assert outcome.rows and outcome.claims
        assert outcome.title in markdown(outcome)


def test_the_preset_table_has_every_preset(setting: Setting) -> None:
    from tunesmith import PRESETS

    outcome = moses_lists.presets(setting)
    assert [row["preset"] for row in outcome.rows] == [f"`{name}`" for name in PRESETS]


def test_the_numpy_twins_do_the_same_work(setting: Setting) -> None:
    task = setting.task()
    lists = numpy_twin.Lists.of(task.pools, task.metric)
    climbed = numpy_twin.mert(lists, setting.start, seed=1)
    ours = tune_once(task, "mert", setting.start, options={"restarts": 0})
    assert 100 * lists.score(climbed) == pytest.approx(ours.score, abs=0.5)
    passed = numpy_twin.kbmira(lists, setting.start, seed=1, passes=3)
    ours = tune_once(task, "kbmira", setting.start, options={"passes": 3})
    np.testing.assert_allclose(passed, ours.weights, rtol=1e-6)


@pytest.mark.parametrize("law", ["uniform", "Zipf"])
def test_sparse_ids_are_distinct_ascending_and_within_the_width(law: sparse.Law) -> None:
    ids = sparse.sparse_ids(50, 20, 1000, law, np.random.default_rng(1))
    assert (np.diff(ids, axis=1) > 0).all()
    assert ids.min() >= 0 and ids.max() < 1000


def test_a_sparse_pass_updates(setting: Setting) -> None:
    pools = sparse.sparse_pools(sparse.Shape(4, 30, 20), 500, "Zipf")
    _, updates = sparse.adagrad_pass(pools, 1)
    assert updates > 0


def test_reading_reports_what_the_file_holds(setting: Setting) -> None:
    outcome = reading.reading(setting)
    assert [row["file"] for row in outcome.rows] == ["plain", "gzip"]
    assert outcome.rows[0]["numbers, MB"] == outcome.rows[1]["numbers, MB"]


def test_places_become_features(setting: Setting) -> None:
    pools = with_places(setting.pools)
    assert pools.hypotheses == setting.pools.hypotheses
    start = int(pools.core.starts[1])
    assert ("place1", 1.0) in pools.core.features(start)
    assert ("place2", 1.0) in pools.core.features(start + 1)
    assert np.array_equal(pools.best({"place1": 1.0}), pools.first())


def test_absent_data_and_kenlm_are_told_and_skipped(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--shared", str(tmp_path), "--results", str(tmp_path / "out"), "mert", "reading"])
    told = capsys.readouterr().out
    assert code == 0
    assert "### mert\n\nskipped" in told and "### reading\n\nskipped" in told


def test_names_are_listed_and_unknown_ones_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(NAMES)
    with pytest.raises(SystemExit):
        main(["no-such-benchmark"])


def test_results_are_written_and_claims_judged(tmp_path: Path) -> None:
    outcome = Outcome("T", [{"a": 1, "b": 0.5, "c": "x"}])
    outcome.claims = [Claim("fast", 1.0, 2.0, "at most"), Claim("good", 1.0, 2.0, "at least")]
    content = json.loads(save(tmp_path, "t", outcome, quick=True).read_text())
    assert [claim["kept"] for claim in content["claims"]] == [True, False]
    assert "| 1 | 0.50 | x |" in markdown(outcome)
    assert best_of(3, lambda: 7)[0] == 7
    assert [show(value) for value in (None, 0.01234, 12345.6, 1234)] == [
        "",
        "0.012",
        "12,346",
        "1,234",
    ]
