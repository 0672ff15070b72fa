"""Tables from Multi30k against those that Moses and cdec made from the same alignment."""

from __future__ import annotations

import gzip
import itertools
import os
from pathlib import Path

import pytest

from tunesmith.training.rules import (
    AlignedCorpus,
    HieroOptions,
    RuleTable,
    export_moses,
    export_reordering,
    find,
    import_cdec,
    import_moses,
    make_hiero_table,
    make_phrase_table,
    write_lexicon,
)

ROOT = Path(os.environ.get("TUNESMITH_SHARED", Path(__file__).parents[3] / "shared")) / "data"
MOSES, CDEC = ROOT / "multi30k-moses", ROOT / "multi30k-cdec"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not ROOT.is_dir(), reason=f"the shared data are not at {ROOT}"),
]


@pytest.fixture(scope="module")
def corpus() -> AlignedCorpus:
    text = ROOT / "multi30k"
    links = MOSES / "aligned.grow-diag-final-and.gz"
    return AlignedCorpus(text / "train.de.gz", text / "train.en.gz", links)


@pytest.fixture(scope="module")
def phrases(corpus: AlignedCorpus, tmp_path_factory: pytest.TempPathFactory) -> RuleTable:
    path = tmp_path_factory.mktemp("rules") / "phrases"
    made = make_phrase_table(corpus, path)
    assert (made.instances, made.entries) == (1_235_402, 791_348)
    return RuleTable(path)


def read(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def test_lexical_tables_are_equal(tmp_path: Path, corpus: AlignedCorpus) -> None:
    assert write_lexicon(corpus, tmp_path / "lex.e2f", tmp_path / "lex.f2e") == 54_108
    for name in ("lex.e2f", "lex.f2e"):
        ours, theirs = read(tmp_path / name), read(MOSES / f"{name}.gz")
        assert sorted(ours.splitlines()) == sorted(theirs.splitlines())


def test_phrase_table_is_equal_to_the_last_byte(tmp_path: Path, phrases: RuleTable) -> None:
    export_moses(phrases, tmp_path / "table")
    assert read(tmp_path / "table") == read(MOSES / "phrase-table.gz")


def test_reordering_table_is_equal_to_the_last_byte(tmp_path: Path, phrases: RuleTable) -> None:
    export_reordering(phrases, tmp_path / "table")
    assert read(tmp_path / "table") == read(MOSES / "reordering-table.gz")


def test_an_imported_table_holds_what_was_extracted(tmp_path: Path, phrases: RuleTable) -> None:
    reordering = MOSES / "reordering-table.gz"
    imported = import_moses(MOSES / "phrase-table.gz", tmp_path / "table", reordering)
    assert (imported.entries, imported.repeated, imported.missing) == (791_348, 0, 0)
    table = RuleTable(tmp_path / "table")
    assert table.sources == phrases.sources and table.columns == phrases.columns
    for source in ("ein mann", "zwei", ", der", "! &quot; ."):
        ours = {rule.target: rule for rule in find(phrases, source)}
        theirs = {rule.target: rule for rule in find(table, source)}
        assert ours.keys() == theirs.keys() and ours
        for target, rule in ours.items():
            assert rule.scores == pytest.approx(theirs[target].scores, rel=1e-5)
            assert rule.links == theirs[target].links


def test_every_rule_of_cdec_is_found_with_its_scores(tmp_path: Path, corpus: AlignedCorpus) -> None:
    # cdec's extractor looks at spans of fifteen words, and at 300 places of a source side at most.
    make_hiero_table(corpus, tmp_path / "ours", HieroOptions(max_span=15))
    ours = RuleTable(tmp_path / "ours")
    imported = import_cdec(CDEC / "val.grammar.gz", tmp_path / "theirs")
    assert imported.entries == 354_479
    table = RuleTable(tmp_path / "theirs")
    checked = 0
    lines = read(CDEC / "val.grammar.gz").decode().splitlines()
    for source in itertools.islice(
        dict.fromkeys(line.split(" ||| ")[1] for line in lines), 0, None, 9
    ):
        mine = {rule.target: rule.scores for rule in find(ours, source)}
        theirs = {rule.target: rule.scores for rule in find(table, source)}
        assert theirs.keys() <= mine.keys()
        sampled = round(10 ** next(iter(theirs.values()))["SampleCountF"] - 1) >= 299
        assert sampled or theirs.keys() == mine.keys()
        names = (
            ["MaxLexFgivenE", "MaxLexEgivenF"] if sampled else [name for name, _ in table.columns]
        )
        for target, scores in theirs.items():
            for name in names:
                assert mine[target][name] == pytest.approx(scores[name], abs=1e-5), (source, target)
            checked += 1
    assert checked > 30_000
