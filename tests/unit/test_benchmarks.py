"""The benchmarks run, on tiny lists, and tell what they should; nothing here is timed."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import (
    beams_plot,
    hiero_bench,
    local_bench,
    moses_lists,
    numpy_twin,
    phrase_bench,
    reading,
    rivals,
    sparse,
    structured_bench,
    structured_plot,
)
from benchmarks.__main__ import NAMES, main
from benchmarks.data import Setting
from benchmarks.harness import (
    Claim,
    Outcome,
    RivalFailed,
    best_of,
    in_turn,
    less,
    markdown,
    save,
    show,
)
from benchmarks.reranking_bench import Lists, single_feature
from benchmarks.rivals import Rivals, filtered, phrases, totals
from benchmarks.tuners import tune_once
from tunesmith.metrics import get_metric

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
    for run in (moses_lists.mert, moses_lists.kbmira, moses_lists.whole_way):
        outcome = run(setting)
        assert outcome.rows
        assert outcome.title in markdown(outcome)


def test_without_rivals_nothing_is_claimed_about_them(setting: Setting) -> None:
    for run in (moses_lists.mert, moses_lists.kbmira, moses_lists.whole_way):
        outcome = run(setting)
        assert outcome.claims == []
        assert any("MOSES_MERT is not set" in note for note in outcome.notes)
        assert not any("Moses" in str(row["program"]) for row in outcome.rows)


FAKE = """\
#!{python}
import sys
import time
from pathlib import Path
name, words = Path(sys.argv[0]).name, sys.argv[1:]
after = lambda option: words[words.index(option) + 1]
if name == "extractor":
    assert Path(after("-n")).exists() and Path(after("-r")).exists()
    Path(after("--scfile")).write_text("scores")
    Path(after("--ffile")).write_text("features")
elif name == "mert":
    assert all(Path(file).exists() for file in after("--ffile").split(","))
    print("Data loaded : [Wall 0.1 CPU 0.0] seconds.", file=sys.stderr)
    Path("weights.txt").write_text("1 0\\n")
elif name == "kbmira":
    assert words.count("--ffile") == 8 and Path(after("--dense-init")).exists()
    if after("-J") != "0":
        # Longer than starting up, however busy the machine is.
        while time.process_time() < 1.0:
            pass
        Path(after("-o")).write_text("F0 1\\nF1 0\\n")
else:
    lines = sys.stdin.read().splitlines()
    lists = "".join(f"{{n}} ||| {{x}} ||| LM0= 1 ||| -{{n}}.5\\n" for n, x in enumerate(lines))
    if "-n-best-list" in words:
        Path(after("-n-best-list")).write_text(lists)
    elif "-k" in words:
        print(lists, end="")
    else:
        print("\\n".join(lines))
"""


@pytest.fixture
def fakes(tmp_path: Path) -> Path:
    """Programs that take the options of Moses' and cdec's, and write what they would."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("mert", "kbmira", "extractor", "moses", "cdec"):
        (folder / name).write_text(FAKE.format(python=sys.executable))
        (folder / name).chmod(0o755)
    return folder


def test_given_tuners_run_in_turn_with_ours(shared: Path, fakes: Path) -> None:
    setting = Setting(quick=True, shared=shared, rivals=Rivals.named({"MOSES_MERT": str(fakes)}))
    for run in (moses_lists.mert, moses_lists.kbmira, moses_lists.whole_way):
        outcome = run(setting)
        programs = [str(row["program"]).split(",")[0] for row in outcome.rows]
        assert {"ours", "Moses"} <= set(programs)
        assert [claim.text for claim in outcome.claims] == ["CPU time, Moses / ours, least of each"]
        assert not any("not set" in note for note in outcome.notes)


def test_weights_of_rivals_are_scored_by_our_metric(shared: Path, fakes: Path) -> None:
    setting = Setting(quick=True, shared=shared, rivals=Rivals.named({"MOSES_MERT": str(fakes)}))
    wanted = setting.pools.score(setting.metric, setting.pools.best({"LM0": 1.0}))
    scores = [row["BLEU"] for row in moses_lists.mert(setting).rows if "Moses" in row["program"]]  # type: ignore[operator]
    assert scores == [round(wanted, 3)]


def test_given_decoders_are_asked_for_scores_and_times(tmp_path: Path, fakes: Path) -> None:
    moses, cdec = tmp_path / "data" / "multi30k-moses", tmp_path / "data" / "multi30k-cdec"
    moses.mkdir(parents=True)
    cdec.mkdir()
    for name in ("phrase-table.gz", "reordering-table.gz"):
        with gzip.open(moses / name, "wt") as file:
            file.write("das haus ||| the house ||| 1\nein ||| a ||| 1\n")
    for path in (moses / "lm.arpa.gz", cdec / "weights.mert", cdec / "test_2016_flickr.grammar.gz"):
        path.write_bytes(b"")
    (moses / "moses.mira.ini").write_text("path=phrase-table.gz\npath=lm.arpa.gz order=5\n")
    setting = Setting(shared=tmp_path)
    theirs = phrase_bench.MosesDecoder(setting, fakes / "moses", tmp_path, ["das haus", "ein"])
    assert theirs.score((1, 300, 100)) == pytest.approx(-1.0)
    assert theirs.decode((1, 300, 100)) > 0.0
    assert theirs.load((1, 300, 100)) > 0.0
    assert f"path={tmp_path}/phrase-table\n" in (tmp_path / "moses.ini").read_text()
    other = hiero_bench.Cdec(setting, fakes / "cdec", tmp_path, ["das haus", "ein", "ein"])
    assert other.score(30) == pytest.approx(-1.5)
    assert other.decode(30).peak > 0


def test_rivals_that_are_not_there_or_fail_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=r"MOSES: .*nowhere is no program"):
        Rivals.named({"MOSES": str(tmp_path / "nowhere")})
    with pytest.raises(ValueError, match=r"MOSES_MERT: .*/mert is no program"):
        Rivals.named({"MOSES_MERT": str(tmp_path)})
    assert Rivals.named({"MOSES": "", "CDEC": ""}) == Rivals()
    monkeypatch.setenv("CDEC", str(tmp_path / "nowhere"))
    with pytest.raises(SystemExit):
        main(["reading"])
    assert "CDEC" in capsys.readouterr().err
    bad = tmp_path / "bad"
    bad.write_text("#!/bin/sh\necho no model >&2\nexit 3\n")
    bad.chmod(0o755)
    with pytest.raises(RivalFailed, match="ended with 3: no model"):
        rivals.run(bad, [], tmp_path)
    with pytest.raises(RivalFailed, match="1 of 2 sentences"):
        totals("0 ||| a ||| f= 1 ||| -1\n", 2)


def test_a_table_is_filtered_to_the_phrases_of_a_text(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "table.gz", "wt") as file:
        file.write("das haus ||| the house ||| 1\nhaus das ||| x ||| 1\nhaus ||| house ||| 1\n")
    filtered(tmp_path / "table.gz", phrases(["das haus"]), tmp_path / "table")
    kept = (tmp_path / "table").read_text().splitlines()
    assert [line.split(" ||| ")[0] for line in kept] == ["das haus", "haus"]


def test_works_take_turns() -> None:
    order: list[str] = []

    def work(name: str) -> float:
        order.append(name)
        return float(len(order))

    assert in_turn(2, lambda: work("a"), lambda: work("b")) == [[1.0, 3.0], [2.0, 4.0]]
    assert order == ["a", "b", "a", "b"]


def test_loading_is_left_out_and_never_more_than_the_whole() -> None:
    assert less([3.0, 2.5], [1.5, 1.0]) == [2.0, 1.5]
    with pytest.raises(RivalFailed, match="too busy"):
        less([1.0, 2.0], [1.0, 1.1])


def test_the_single_feature_is_chosen_on_what_is_not_scored(setting: Setting) -> None:
    lists = Lists("lists", "bleu:tokenize=none", setting.pools)
    score, names = single_feature(lists.splits(), setting.metric)
    assert names == "(+LM0)"
    assert score == pytest.approx(
        setting.pools.score(setting.metric, setting.pools.best({"LM0": 1.0}))
    )


def test_the_preset_table_has_every_preset(setting: Setting) -> None:
    from tunesmith import PRESETS

    outcome = moses_lists.presets(setting)
    assert [row["preset"] for row in outcome.rows] == [f"`{name}`" for name in PRESETS]


def test_the_numpy_twins_do_the_same_work(setting: Setting) -> None:
    task = setting.task()
    lists = numpy_twin.Lists.of(setting.pools, task.metric)
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


def test_lists_get_their_own_features_where_they_are_tuned_and_scored(setting: Setting) -> None:
    lists = Lists("t", "bleu", setting.pools, setting.pools).with_list_features()
    assert lists.test is not None
    for pools in (lists.dev, lists.test):
        assert {"list:first", "list:agreement"} <= {*pools.names}
        assert np.array_equal(pools.best({"list:first": 1.0}), pools.first())


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


def test_the_structured_benchmarks_fill_their_tables(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "pos"
    folder.mkdir(parents=True)
    tags = {"the": "DET", "dog": "NOUN", "cat": "NOUN", "sees": "VERB", "hears": "VERB"}
    rows = []
    for noun, verb in (("dog", "sees"), ("cat", "hears"), ("cat", "sees")) * 8:
        for number, (word, head) in enumerate(
            (("the", 2), (noun, 3), (verb, 0), ("the", 5), ("dog", 3)), 1
        ):
            rows.append(f"{number}\t{word}\t_\t{tags[word]}\t_\t_\t{head}\td\t_\t_")
        rows.append("")
    for part in ("train", "dev"):
        with gzip.open(folder / f"en_partut-ud-{part}.conllu.gz", "wt") as file:
            file.write("\n".join(rows) + "\n")
    setting = Setting(quick=True, shared=tmp_path)
    for run, count in (
        (structured_bench.tagger, 8),
        (structured_bench.parser, 8),
        (structured_bench.learners, len(structured_bench.LEARNERS)),
    ):
        outcome = run(setting)
        assert len(outcome.rows) == count and outcome.title in markdown(outcome)
    programs = [row["program"] for row in structured_bench.rivals(setting).rows]
    assert programs[0] == "ours, beam 1"


def test_learning_curves_are_drawn_panel_by_panel(tmp_path: Path) -> None:
    path = tmp_path / "curves.svg"
    for name in ("tagger", "parser"):
        curves = {
            update: [1.0, 2.0 + place] for place, update in enumerate(structured_plot.COLOURS)
        }
        structured_plot.plot(path, name, curves, 2)
    drawn = path.read_text()
    assert drawn.count('class="line"') == 8 and "Tagger" in drawn and "Parser" in drawn


def test_the_beam_curve_has_a_line_for_each_row(tmp_path: Path) -> None:
    rows = [
        {"task": task, "tuned at": beam, "tuner": tuner, "1": 30.0 + beam, "100": 40.0}
        for task in ("captions", "verses")
        for beam in (4, 30)
        for tuner in beams_plot.COLOURS
    ]
    beams_plot.plot(tmp_path / "beams.svg", rows)
    drawn = (tmp_path / "beams.svg").read_text()
    assert drawn.count('class="line"') == 16 and drawn.count('class="title"') == 2
    assert "tuned at beam 30" in drawn


def test_recombined_sentences_are_of_one_corpus_and_repeatable() -> None:
    corpora = [[["a", "b", "c", "d"], ["e", "f"]], [["x", "y"], ["z", "w", "v"]]]
    made = list(local_bench.recombined(corpora, 200, seed=1))
    assert made == list(local_bench.recombined(corpora, 200, seed=1))
    assert len({tuple(each) for each in made}) > 20
    for number, words in enumerate(made):
        own = {word for each in corpora[number % 2] for word in each}
        assert words and set(words) <= own


def test_a_stream_is_scored_by_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_bench, "KEPT", tmp_path)
    metric = get_metric("bleu:tokenize=none")
    right, wrong = "a b c d e", "a b c x y"
    names = ("local, without", "local, with corrections")
    rows = {
        name: metric.stats(texts, [[right]] * 4)
        for name, texts in zip(names, ([wrong] * 4, [wrong, wrong, right, right]), strict=True)
    }
    outcome = local_bench._stream(Setting(quick=True), rows, 2, 1, metric)
    first, second, whole = outcome.rows
    assert first[names[0]] == first[names[1]]
    assert second[names[1]] == pytest.approx(100.0)
    assert whole["sentences"] == "all"
    assert (tmp_path / "feedback.svg").read_text().startswith("<svg")
