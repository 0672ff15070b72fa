"""Tables of rules from hand-made sentences."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from tunesmith import InputError
from tunesmith.training.rules import (
    AlignedCorpus,
    HieroOptions,
    PhraseOptions,
    RuleTable,
    export_cdec,
    export_moses,
    export_reordering,
    find,
    import_cdec,
    import_moses,
    log_scores,
    make_hiero_table,
    make_phrase_table,
    matches,
    write_glue,
    write_lexicon,
)

SOURCE = "das haus\ndas kleine haus\ndas haus ist klein\n"
TARGET = "the house\nthe small house\nthe house is small\n"
LINKS = "0-0 1-1\n0-0 1-1 2-2\n0-0 1-1 2-2 3-3\n"


def corpus(
    folder: Path, source: str = SOURCE, target: str = TARGET, links: str = LINKS
) -> AlignedCorpus:
    for name, text in (("source", source), ("target", target), ("links", links)):
        (folder / name).write_text(text)
    return AlignedCorpus(folder / "source", folder / "target", folder / "links")


@pytest.fixture
def phrases(tmp_path: Path) -> RuleTable:
    make_phrase_table(corpus(tmp_path), tmp_path / "phrases")
    return RuleTable(tmp_path / "phrases")


@pytest.fixture
def hiero(tmp_path: Path) -> RuleTable:
    make_hiero_table(corpus(tmp_path), tmp_path / "hiero")
    return RuleTable(tmp_path / "hiero")


def test_phrase_pairs_with_scores_counts_and_links(phrases: RuleTable) -> None:
    (rule,) = find(phrases, "das haus")
    assert rule.target == ("the", "house")
    assert rule.links == [(0, 0), (1, 1)]
    assert rule.scores["p(f|e)"] == rule.scores["p(e|f)"] == 1
    assert rule.scores["lex(e|f)"] == rule.scores["lex(f|e)"] == 1
    assert [rule.scores[f"count({name})"] for name in ("e", "f", "f,e")] == [2, 2, 2]
    # Both occurrences open the sentence; one ends it, the other goes on.
    assert rule.scores["word-previous-monotone"] == pytest.approx(2.5 / 3.5)
    assert rule.scores["word-next-monotone"] == pytest.approx(2.5 / 3.5)
    assert find(phrases, "haus das") == find(phrases, "unbekannt") == []


def test_a_trie_is_walked_word_by_word(phrases: RuleTable) -> None:
    das, haus = phrases.source_id("das"), phrases.source_id("haus")
    assert das is not None and haus is not None
    node = phrases.child(phrases.root, das)
    assert node is not None
    assert [phrases.target_word(target[0]) for target, _, _ in phrases.entries(node)] == ["the"]
    after = {phrases.source_word(symbol) for symbol, _ in phrases.children(node)}
    assert after == {"haus", "kleine"}
    assert phrases.child(node, das) is None
    assert phrases.entries((10**6, 1)) == []
    assert phrases.lookup([das, haus]) == phrases.entries(dict(phrases.children(node))[haus])
    with pytest.raises(ValueError, match="neither a word nor a gap"):
        phrases.child(node, -3)
    spans = [(start, len(rules[0].source)) for start, rules in matches(phrases, "das x das haus")]
    assert spans == [(0, 1), (2, 1), (2, 2), (3, 1)]


def test_words_without_links_at_the_edge_belong_to_both(tmp_path: Path) -> None:
    made = make_phrase_table(corpus(tmp_path, "a b\n", "x y\n", "0-0\n"), tmp_path / "t")
    table = RuleTable(tmp_path / "t")
    pairs = {(source, rule.target) for source in ("a", "a b", "b") for rule in find(table, source)}
    assert pairs == {
        ("a", ("x",)),
        ("a b", ("x",)),
        ("a", ("x", "y")),
        ("a b", ("x", "y")),
    }
    assert made.entries == made.instances == 4


def test_the_most_frequent_alignment_is_kept(tmp_path: Path) -> None:
    sentences = ("a b\n" * 3, "x y\n" * 3, "0-0 1-1\n0-0 1-1 1-0\n0-0 1-1 1-0\n")
    make_phrase_table(corpus(tmp_path, *sentences), tmp_path / "t")
    (rule,) = find(RuleTable(tmp_path / "t"), "a b")
    assert rule.links == [(0, 0), (1, 0), (1, 1)]


def test_hierarchical_rules_have_gaps_and_the_scores_of_cdec(hiero: RuleTable) -> None:
    assert hiero.kind == "hiero"
    (rule,) = find(hiero, "das [X,1]")
    assert rule.target == ("the", "[X,1]") and rule.links == [(0, 0)]
    # Three times "das", however far the gap reaches.
    assert rule.scores["CountEF"] == pytest.approx(math.log10(1 + 3))
    assert rule.scores["EgivenFCoherent"] == 0 and rule.scores["IsSingletonF"] == 0
    assert rule.scores["p(e|f)"] == 1
    assert find(hiero, "[X,1] [X,2]") == find(hiero, "[X,1]") == []
    assert find(hiero, "[X,1] haus [X,2]")[0].target == ("[X,1]", "house", "[X,2]")
    root = dict(hiero.children(hiero.root))
    assert -1 in root and -2 not in root


@pytest.mark.parametrize("source", ["[X] haus [X]", "[1] haus [2]", "[X,1] haus [X,2]"])
def test_gaps_are_found_in_every_form_in_which_they_are_shown(
    hiero: RuleTable, phrases: RuleTable, source: str
) -> None:
    (rule,) = find(hiero, source)
    assert rule.source == ("[X,1]", "haus", "[X,2]")
    assert rule.target == ("[X,1]", "house", "[X,2]")
    assert find(hiero, f"{source} [X]") == find(phrases, source) == []


def test_limits_of_hierarchical_rules_hold(tmp_path: Path) -> None:
    options = HieroOptions(max_symbols=2, max_gaps=1, max_span=2)
    made = make_hiero_table(corpus(tmp_path), tmp_path / "t", options)
    table = RuleTable(tmp_path / "t")
    assert made.entries == len(table)
    assert find(table, "das [X,1]") and not find(table, "das kleine haus")
    with pytest.raises(ValueError, match="two gaps"):
        make_hiero_table(corpus(tmp_path), tmp_path / "t", HieroOptions(max_gaps=3))


def test_rare_pairs_may_be_left_out_after_counting(tmp_path: Path) -> None:
    text = corpus(tmp_path, "a\na\na\n", "x\nx\ny\n", "0-0\n" * 3)
    make_phrase_table(text, tmp_path / "t", PhraseOptions(min_count=2))
    (rule,) = find(RuleTable(tmp_path / "t"), "a")
    assert rule.scores["p(e|f)"] == pytest.approx(2 / 3)


@pytest.mark.parametrize("smoothing", ["good-turing", "kneser-ney"])
def test_smoothing_takes_from_what_was_seen_once(tmp_path: Path, smoothing: str) -> None:
    text = corpus(tmp_path, "a\n" * 9, "x\n" * 6 + "y\ny\nz\n", "0-0\n" * 9)
    options = PhraseOptions(smoothing=smoothing)  # type: ignore[arg-type]
    make_phrase_table(text, tmp_path / "t", options)
    scores = {rule.target[0]: rule.scores for rule in find(RuleTable(tmp_path / "t"), "a")}
    assert 0 < scores["z"]["p(f|e)"] <= 1
    plain = {"x": 6 / 9, "y": 2 / 9, "z": 1 / 9}
    kept = {word: scores[word]["p(e|f)"] / plain[word] for word in plain}
    assert kept["x"] >= 0.75 and all(0 < value < 1.5 for value in kept.values())


def test_decoders_add_logarithms_of_probabilities(phrases: RuleTable) -> None:
    _, scores, _ = phrases.lookup([phrases.source_id("das") or 0])[0]
    logs = log_scores(phrases, scores)
    for (_, scale), score, log in zip(phrases.columns, scores, logs, strict=True):
        assert log == (math.log(score) if scale == "probability" else score)


def test_text_of_moses_and_back(tmp_path: Path, phrases: RuleTable) -> None:
    export_moses(phrases, tmp_path / "phrases.gz")
    export_reordering(phrases, tmp_path / "reordering")
    imported = import_moses(tmp_path / "phrases.gz", tmp_path / "again", tmp_path / "reordering")
    assert (imported.entries, imported.missing) == (len(phrases), 0)
    again = RuleTable(tmp_path / "again")
    assert again.columns == phrases.columns
    for source in ("das", "das haus", "haus ist klein"):
        for one, two in zip(find(phrases, source), find(again, source), strict=True):
            assert (one.target, one.links) == (two.target, two.links)
            assert two.scores == pytest.approx(one.scores, rel=1e-5)
    lines = (tmp_path / "reordering").read_text().splitlines()
    assert lines == sorted(lines) and lines[0].startswith("das haus ist klein ||| the house is")
    (tmp_path / "reordering").write_text("das ||| the ||| 1 2 3 4 5 6\n")
    imported = import_moses(tmp_path / "phrases.gz", tmp_path / "again", tmp_path / "reordering")
    assert imported.missing == len(phrases) - 1


def test_text_of_cdec_and_back(tmp_path: Path, hiero: RuleTable) -> None:
    export_cdec(hiero, tmp_path / "grammar.gz")
    assert import_cdec(tmp_path / "grammar.gz", tmp_path / "again").entries == len(hiero)
    again = RuleTable(tmp_path / "again")
    (one,), (two,) = find(hiero, "[X,1] haus"), find(again, "[X,1] haus")
    assert (one.target, one.links) == (two.target, two.links)
    assert two.scores["MaxLexEgivenF"] == pytest.approx(one.scores["MaxLexEgivenF"], rel=1e-5)
    assert two.scores["p(e|f)"] == pytest.approx(-math.log10(one.scores["p(e|f)"]), abs=1e-5)
    write_glue(tmp_path / "glue")
    assert (tmp_path / "glue").read_text().startswith("[S] ||| [X,1] |||")


def test_phrase_pairs_given_twice_have_the_same_orientations(tmp_path: Path) -> None:
    (tmp_path / "p").write_text(
        "das haus ||| the house ||| 0.5 0.5 0.5 0.5\n"
        "das haus ||| the house ||| 0.5 0.5 0.5 0.5\n"
        "das haus ||| the house ||| 0.1 0.2 0.3 0.4\n"
    )
    (tmp_path / "r").write_text("das haus ||| the house ||| 0.6 0.2 0.2 0.7 0.2 0.1\n")
    imported = import_moses(tmp_path / "p", tmp_path / "t", tmp_path / "r")
    assert (imported.entries, imported.repeated, imported.missing) == (2, 1, 0)
    one, two = find(RuleTable(tmp_path / "t"), "das haus")
    orders = [name for name in one.scores if name.startswith("word-")]
    assert len(orders) == 6
    assert [one.scores[name] for name in orders] == [two.scores[name] for name in orders]
    assert one.scores != two.scores


def test_a_grammar_written_by_hand(tmp_path: Path) -> None:
    (tmp_path / "g").write_text(
        "[X] ||| ne [X,1] pas [X,2] ||| [2] not [1] ||| A=0.5 B=-1 ||| 0-1 2-1\n"
        "[X] ||| ne [X,1] pas [X,2] ||| [2] not [1] ||| A=9\n"
        "[X] ||| oui ||| yes ||| B=2\n"
        "[X] ||| ne [X,1] pas [X,2] ||| [2] not [1] ||| B=-1 A=0.5\n"
        "[S] ||| [S,1] [X,2] ||| [1] [2] ||| Glue=1\n"
        "[S] ||| [X] ||| [1]  ||| Glue=0\n"
    )
    imported = import_cdec(tmp_path / "g", tmp_path / "t")
    assert (imported.entries, imported.repeated, imported.left_out) == (3, 1, 2)
    table = RuleTable(tmp_path / "t")
    rule, other = find(table, "ne [X,1] pas [X,2]")
    assert rule.target == ("[X,2]", "not", "[X,1]") and rule.links == [(0, 1), (2, 1)]
    assert (other.target, other.scores) == (rule.target, {"A": 9, "B": 0})
    assert find(table, "oui")[0].scores == {"A": 0, "B": 2}


@pytest.mark.parametrize(
    "sides",
    [
        "[X,1] . ||| [1] END",
        "[S,1] [X,2] ||| [2] [1]",
        "[S,1] [X,2] ||| [1] [2] [3]",
        "[S,1] [X,2] |||",
        "[X,1] [X,2] ||| [1] [2]",
        "[Xfoo,1] ||| [1]",
        "a ||| b",
    ],
)
def test_rules_of_the_start_that_are_not_glue_are_refused(tmp_path: Path, sides: str) -> None:
    (tmp_path / "g").write_text(f"[X] ||| oui ||| yes ||| B=2\n[S] ||| {sides} ||| B=1\n")
    with pytest.raises(InputError, match=r"g:2: a rule for .S. that is not glue"):
        import_cdec(tmp_path / "g", tmp_path / "t")


def test_lexical_tables_have_null(tmp_path: Path) -> None:
    count = write_lexicon(
        corpus(tmp_path, "a b\na\n", "x y\nz\n", "0-0\n0-0\n"), tmp_path / "e2f", tmp_path / "f2e"
    )
    assert count == 4
    assert (tmp_path / "f2e").read_text().splitlines() == [
        "y NULL 1.0000000",
        "x a 0.5000000",
        "z a 0.5000000",
        "NULL b 1.0000000",
    ]


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
def test_threads_and_memory_give_the_same_bytes(tmp_path: Path, kind: str) -> None:
    text = corpus(tmp_path, SOURCE * 40, TARGET * 40, LINKS * 40)
    make = make_phrase_table if kind == "phrase" else make_hiero_table
    files = []
    for threads, memory in ((1, 1 << 30), (2, 1 << 30), (4, 1 << 30), (2, 0), (1, 5000)):
        made = make(text, tmp_path / "t", threads=threads, memory=memory)
        assert (made.spilled > 0) == (memory < 1 << 30)
        files.append((tmp_path / "t").read_bytes())
    assert all(file == files[0] for file in files)
