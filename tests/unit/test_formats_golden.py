"""Every format as its program writes it, and the way through every writer and back."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from tunesmith import _core, formats
from tunesmith.errors import InputError
from tunesmith.formats import Along, Reading, detect, read_nbest, read_stream, write_nbest

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"
SCHEMA = Path(formats.__file__).with_name("nbest.schema.json")


def dump(pools: _core.Pools) -> list[list[dict[str, Any]]]:
    lists = []
    columns = {name: pools.column(name) for name in pools.columns}
    for first, last in zip(pools.starts[:-1], pools.starts[1:], strict=True):
        positions = np.arange(first, last, dtype=np.int64)
        texts = pools.texts(positions)
        lists.append(
            [
                {
                    "text": text,
                    "features": {name: round(value, 5) for name, value in pools.features(at)},
                    "score": None if math.isnan(pools.scores[at]) else float(pools.scores[at]),
                    "extra": pools.extra(at),
                    "columns": {
                        name: float(cells[at])
                        for name, cells in columns.items()
                        if not math.isnan(cells[at])
                    },
                }
                for at, text in zip(positions.tolist(), texts, strict=True)
            ]
        )
    return lists


def features(pools: _core.Pools) -> list[list[dict[str, float]]]:
    return [[hypothesis["features"] for hypothesis in listed] for listed in dump(pools)]


def texts(pools: _core.Pools) -> list[list[str]]:
    return [[hypothesis["text"] for hypothesis in listed] for listed in dump(pools)]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("moses.nbest", "moses"),
        ("unlabelled.nbest", "moses"),
        ("cdec.nbest", "cdec"),
        ("travatar.nbest", "travatar"),
        ("lists.jsonl", "jsonl"),
        ("fairseq.out", "fairseq"),
        ("espnet", "espnet"),
        ("espnet/output.1", "espnet"),
        ("espnet1.json", "espnet1"),
        ("nemo.jsonl", "nemo"),
        ("nemo.tsv", "nemo-tsv"),
        ("flat", "flat"),
        ("flat/hyps.txt", "flat"),
        ("kaldi", "kaldi"),
        ("kaldi/words_text", "kaldi"),
    ],
)
def test_the_format_is_told_by_the_content(name: str, format: str) -> None:
    assert detect(GOLDEN / name) == format


def test_moses() -> None:
    pools, skipped = read_nbest(GOLDEN / "moses.nbest")
    assert skipped == []
    assert texts(pools) == [["a group of men"] * 2 + ["a ||| b ||| men"], [], ["Männer & 猫"]]
    assert features(pools)[2][0] == {"LM0": -0.3, "WT_cat~猫": 1, "PP_a=b": 0.5, "dom_=_x": 2}
    dense = features(pools)[0][0]
    assert dense["LexicalReordering0_1"] == -1.68191
    assert dense["TranslationModel0_4"] == -3.32577
    assert len(dense) == 13
    assert dump(pools)[0][2]["extra"] == "0=0 1-2=1-4 ||| 0-0 1-1 2-4"
    assert dump(pools)[0][2]["score"] == -90.5


def test_moses_without_labels() -> None:
    pools, _ = read_nbest(GOLDEN / "unlabelled.nbest")
    assert features(pools) == [
        [{"F0": -1.5, "F1": -2, "F2": 0}, {"F0": -1, "F1": -2}],
        [{"d": -1, "lm": -2.5, "tm_1": -3, "tm_2": -4, "w": -1}],
    ]


def test_cdec() -> None:
    pools, _ = read_nbest(GOLDEN / "cdec.nbest")
    assert texts(pools) == [["a group of men", "a ||| group"], ["two"]]
    assert features(pools)[0][1] == {"Glue": 4, "LanguageModel": -19.6042, "RuleShape_X=Y": 1}
    assert dump(pools)[1][0]["extra"] == "0-0"


def test_travatar() -> None:
    pools, _ = read_nbest(GOLDEN / "travatar.nbest")
    assert texts(pools) == [["a group of men", "a ||| group"], ["two"]]
    assert features(pools)[0][1] == {"glue": 4.0, "lm": -19.6042, "rule_X=Y": 1.0}
    assert pools.scores.tolist() == [-7.7684, -8.06463, -3.0]
    assert [pools.extra(at) for at in range(3)] == ["", "(S (X a) (X group))", ""]


@pytest.mark.parametrize(
    "spelled",
    [
        "0|||a b|||lm= -1 tm= 2 3|||-2\n1|||c|||lm= -3 tm= 4 5|||-4\n",
        "0\t|||\ta b\t|||\tlm=\t-1\ttm= 2  3\t|||\t-2\n1\t|||\tc |||lm= -3 tm= 4 5|||  -4\n",
        "0 |||a b||| lm= -1 tm= 2 3 |||-2\n1 |||c||| lm= -3 tm= 4 5|||-4 \n",
    ],
)
def test_bars_need_no_space_around_them(tmp_path: Path, spelled: str) -> None:
    path, plain = tmp_path / "list", tmp_path / "plain"
    path.write_text(spelled)
    plain.write_text("0 ||| a b ||| lm= -1 tm= 2 3 ||| -2\n1 ||| c ||| lm= -3 tm= 4 5 ||| -4\n")
    assert detect(path) == "moses"
    assert dump(read_nbest(path).pools) == dump(read_nbest(plain).pools)
    assert dump(next(iter(read_stream(path, limit=2)))) == dump(read_nbest(plain).pools)


def test_glued_bars_in_the_other_formats(tmp_path: Path) -> None:
    path = tmp_path / "list"
    for line, format in [("0|||a b|||lm=-1|||-2", "cdec"), ("0|||a b|||-2|||lm=-1", "travatar")]:
        path.write_text(line + "\n")
        assert detect(path) == format
        (listed,) = dump(read_nbest(path).pools)
        assert (listed[0]["text"], listed[0]["features"]) == ("a b", {"lm": -1.0})
        assert listed[0]["score"] == -2.0
    path.write_text("some text with a|||b\n")
    assert detect(path) == "flat"


def test_jsonl() -> None:
    pools, _ = read_nbest(GOLDEN / "lists.jsonl")
    assert pools.keys == ["doc1-s1", "doc1-s2", "doc1-s3"]
    first, second = dump(pools)[0]
    assert first["features"] == {"lm": -3.25, "len": 2}
    assert first["columns"] == {"comet": 0.83}
    assert (first["score"], first["extra"]) == (-1.5, "0-0 1-1")
    assert (second["text"], second["score"]) == ("group\nbreak", None)
    assert dump(pools)[1:] == [
        [],
        [
            {
                "text": "drei",
                "features": {},
                "score": None,
                "extra": "",
                "columns": {"comet": 0.5, "bleurt": 0.25},
            }
        ],
    ]


def test_jsonl_keeps_to_its_schema(tmp_path: Path) -> None:
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    lines = (GOLDEN / "lists.jsonl").read_text().splitlines()
    for name in ("moses.nbest", "lists.jsonl", "fairseq.out"):
        path = tmp_path / f"{name}.jsonl"
        write_nbest(read_nbest(GOLDEN / name).pools, path, "jsonl", references=[["r"]] * 3)
        lines += path.read_text().splitlines()
    assert len(lines) > 6
    for line in lines:
        validator.validate(json.loads(line))


def test_fairseq() -> None:
    pools, skipped = read_nbest(GOLDEN / "fairseq.out")
    assert texts(pools) == [["one"], ["two words", "two terms"]]
    assert features(pools)[1] == [
        {"score": -0.4467, "length": 4, "logprob": -1.625, "logprob_min": -0.75},
        {"score": -0.6, "length": 3, "logprob": -1.75, "logprob_min": -1},
    ]
    assert [(skip.reason, skip.count) for skip in skipped] == [("other output", 3)]


def test_espnet() -> None:
    pools, _ = read_nbest(GOLDEN / "espnet")
    assert pools.keys == ["utt-a", "utt-b", "utt-c"]
    assert texts(pools) == [["THE CAT SAT", "THE CAT SET"], ["HELLO"], ["BYE"]]
    assert features(pools) == [
        [{"score": -3.5, "length": 4}, {"score": -4.25, "length": 4}],
        [{"score": -1.25, "length": 2}],
        [{"score": -0.5}],
    ]


def test_espnet_version_one() -> None:
    pools, _ = read_nbest(GOLDEN / "espnet1.json")
    assert pools.keys == ["utt-a", "utt-b"]
    assert texts(pools) == [["THE CAT SAT", "THE CAT SET"], ["HELLO"]]
    assert features(pools)[0][0] == {"score": -3.5, "length": 4}


def test_nemo() -> None:
    pools, _ = read_nbest(GOLDEN / "nemo.jsonl")
    assert pools.keys == ["/data/a.wav", "/data/b.wav#1.5", "/data/b.wav#2.5"]
    assert texts(pools) == [["the cat sat", "the cat set"], [], ["hello"]]
    assert features(pools)[0][1] == {"score": -4.25}


def test_nemo_candidates() -> None:
    pools, _ = read_nbest(GOLDEN / "nemo.tsv", per_sentence=2)
    assert texts(pools) == [["the cat sat", "the cat set"], ["hello", "hallo"]]
    with pytest.raises(InputError, match="--per-sentence 10"):
        read_nbest(GOLDEN / "nemo.tsv")
    with pytest.raises(InputError, match=r"nemo.tsv:4: 4 hypotheses are not a multiple of 3"):
        read_nbest(GOLDEN / "nemo.tsv", per_sentence=3)


def test_flat() -> None:
    pools, _ = read_nbest(GOLDEN / "flat", per_sentence=2)
    assert texts(pools) == [["one", "uno"], ["two", "to"]]
    assert features(pools)[1] == [{"lm": -3}, {"lm": -4.5}]
    assert [h["columns"] for listed in dump(pools) for h in listed] == [
        {"comet": 0.9},
        {"comet": 0.8},
        {},
        {"comet": 0.6},
    ]
    assert pools.scores.tolist() == [-10, -20, -30, -40]


def test_flat_with_files_named_by_the_caller() -> None:
    pools, _ = read_nbest(
        GOLDEN / "flat" / "hyps.txt",
        "flat",
        per_sentence=2,
        features={"language model": GOLDEN / "flat" / "lm.scores"},
        columns={"total": GOLDEN / "flat" / "total.scores"},
    )
    assert features(pools)[0][0] == {"language model": -1}
    assert pools.column("total").tolist() == [-10, -20, -30, -40]


def test_kaldi() -> None:
    pools, _ = read_nbest(GOLDEN / "kaldi")
    assert pools.keys == ["spk1-utt1", "spk1-utt2"]
    assert texts(pools) == [["THE CAT SAT", "THE CAT"], ["HELLO"]]
    assert features(pools) == [
        [{"acwt": -123.4, "lmwt.nolm": 12.5}, {"acwt": -124, "lmwt.nolm": 11}],
        [{"acwt": -50, "lmwt.nolm": 9}],
    ]
    plain, _ = read_nbest(
        GOLDEN / "kaldi" / "words_text", features={"ac": GOLDEN / "kaldi" / "acwt"}
    )
    assert features(plain)[0][0] == {"ac": -123.4}


@pytest.mark.parametrize("format", ["moses", "cdec", "travatar", "jsonl"])
@pytest.mark.parametrize("name", ["moses.nbest", "travatar.nbest", "espnet", "nemo.jsonl", "kaldi"])
@pytest.mark.parametrize("packing", ["", ".gz", ".zst"])
def test_what_is_written_is_read_again(
    tmp_path: Path, name: str, format: str, packing: str
) -> None:
    pools = read_nbest(GOLDEN / name).pools
    path = tmp_path / f"list{packing}"
    write_nbest(pools, path, format)
    assert detect(path) == format
    again = read_nbest(path).pools
    expected = dump(pools)
    if format != "jsonl":
        # A list always has totals: a missing one becomes 0.
        for hypothesis in (hypothesis for listed in expected for hypothesis in listed):
            hypothesis["score"] = hypothesis["score"] or 0
    assert dump(again) == expected
    if format == "jsonl":
        assert again.keys == pools.keys
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "format", "per_sentence"),
    [
        ("lists.jsonl", "jsonl", None),
        ("fairseq.out", "fairseq", None),
        ("espnet", "espnet", None),
        ("espnet1.json", "espnet1", None),
        ("nemo.jsonl", "nemo", None),
        ("nemo.tsv", "nemo-tsv", 2),
        ("flat", "flat", 2),
        ("kaldi", "kaldi", None),
    ],
)
def test_every_format_writes_what_it_reads(
    tmp_path: Path, name: str, format: str, per_sentence: int | None
) -> None:
    pools = read_nbest(GOLDEN / name, per_sentence=per_sentence).pools
    path = tmp_path / "written"
    write_nbest(pools, path, format)
    again = read_nbest(path, format, per_sentence=per_sentence).pools
    assert dump(again) == dump(pools)
    assert again.keys == pools.keys
    assert [entry.name for entry in tmp_path.iterdir()] == ["written"]


def test_sources_and_references_go_along(tmp_path: Path) -> None:
    along = Along()
    pools = read_nbest(GOLDEN / "lists.jsonl", along=along).pools
    assert along.sources == ["eine Gruppe", "leer", None]
    assert along.references == [["a group", "one group"], ["empty"], None]
    path = tmp_path / "list"
    write_nbest(pools, path, "jsonl", sources=along.sources, references=along.references)
    before, after = ((GOLDEN / "lists.jsonl").read_text(), path.read_text())
    assert [json.loads(line) for line in after.splitlines()] == [
        json.loads(line) for line in before.splitlines()
    ]
    path.write_text('{\n{"source": "s", "hypotheses": [{"text": "a"}]}\n')
    read_nbest(path, "jsonl", skip_bad=True, sentences=3, along=along)
    assert along == Along([None, "s", None], [None, None, None])
    native = Along()
    read_nbest(GOLDEN / "moses.nbest", along=native)
    assert native == Along()


def test_kaldi_has_a_value_for_every_hypothesis(tmp_path: Path) -> None:
    pools = read_nbest(GOLDEN / "cdec.nbest").pools
    write_nbest(pools, tmp_path / "list", "kaldi", lossy=True)
    again = features(read_nbest(tmp_path / "list").pools)
    rows = [(row, new) for old, now in zip(features(pools), again, strict=True)
            for row, new in zip(old, now, strict=True)]  # fmt: skip
    for row, new in rows:
        assert set(new) == set(pools.names)
        assert {name: value for name, value in new.items() if value} == row


def test_a_new_order_and_one_more_score(tmp_path: Path) -> None:
    pools = read_nbest(GOLDEN / "cdec.nbest").pools
    order = np.array([1, 0, 2])
    more = {"Tuned": np.array([0.5, 1.5, 2.5])}
    for format in ("moses", "cdec", "jsonl", "kaldi", "flat"):
        path = tmp_path / format
        if format in ("kaldi", "flat"):
            chosen = np.array([1, 2])
            write_nbest(pools, path, format, order=chosen, scores=more, lossy=True)
            again = read_nbest(path, format, per_sentence=1).pools
            assert [row[0]["Tuned"] for row in features(again)] == [1.5, 2.5]
            continue
        write_nbest(pools, path, format, order=order, scores=more)
        again = read_nbest(path).pools
        assert texts(again) == [["a ||| group", "a group of men"], ["two"]]
        assert [row["Tuned"] for row in features(again)[0]] == [1.5, 0.5]


def test_what_a_format_cannot_hold_is_refused_unless_the_loss_is_allowed(tmp_path: Path) -> None:
    pools = read_nbest(GOLDEN / "moses.nbest").pools
    for format in ("fairseq", "nemo", "espnet", "espnet1"):
        with pytest.raises(InputError, match="has no place for feature LexicalReordering0_1"):
            write_nbest(pools, tmp_path / format, format)
        assert not list(tmp_path.iterdir())
    for format in ("kaldi", "nemo"):
        write_nbest(pools, tmp_path / format, format, lossy=True)
    with pytest.raises(InputError, match="lists have 0 to 3 hypotheses"):
        write_nbest(pools, tmp_path / "flat", "flat", lossy=True)
    broken = read_nbest(GOLDEN / "lists.jsonl").pools
    for format in ("moses", "cdec", "fairseq", "kaldi", "espnet"):
        with pytest.raises(InputError):
            write_nbest(broken, tmp_path / "broken", format, lossy=True)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["kaldi", "nemo"]


def test_a_folder_in_place_is_not_overwritten(tmp_path: Path) -> None:
    pools = read_nbest(GOLDEN / "kaldi").pools
    write_nbest(pools, tmp_path / "list", "kaldi")
    with pytest.raises(InputError, match="is there already"):
        write_nbest(pools, tmp_path / "list", "kaldi")


def test_a_list_is_read_in_parts() -> None:
    parts = list(read_stream(GOLDEN / "moses.nbest", limit=1))
    assert [part.hypotheses for part in parts] == [3, 0, 1]
    with pytest.raises(InputError, match="only be read whole"):
        list(read_stream(GOLDEN / "kaldi", limit=1))


@pytest.mark.parametrize(
    ("name", "per_sentence"), [("lists.jsonl", None), ("nemo.jsonl", None), ("flat", 2)]
)
def test_parts_are_the_whole(name: str, per_sentence: int | None) -> None:
    reading = Reading(per_sentence=per_sentence, keep_blank=True)
    whole = reading.read(GOLDEN / name).pools
    for limit in (1, 2, 100):
        parts = list(reading.stream(GOLDEN / name, limit))
        assert [row for part in parts for row in dump(part)] == dump(whole)
        assert [key for part in parts for key in part.keys] == whole.keys
        assert all(part.sentences <= limit for part in parts)


def test_what_is_wrong_across_parts_is_still_refused(tmp_path: Path) -> None:
    path = tmp_path / "list"
    one, other = ('{"key": "a", "hypotheses": [{"text": "a"}]}\n', '{"hypotheses": []}\n')
    for text, message in (
        (one + one, '2: the key "a" is given twice'),
        (one + other, "some sentences have a key"),
        (other + other, "no hypotheses"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=message):
            list(Reading("jsonl").stream(path, 1))


def test_a_feature_is_taken_as_a_column() -> None:
    pools, _ = read_nbest(GOLDEN / "moses.nbest", columns=["LM0"])
    assert "LM0" not in pools.names
    assert pools.column("LM0").tolist() == [-44.1181, -44.1181, -40, -0.3]
    pools, _ = read_nbest(GOLDEN / "fairseq.out", columns=["score"])
    assert pools.column("score").tolist() == [-0.125, -0.4467, -0.6]


def test_columns_from_files_stay_in_step_with_skipped_lines(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers"
    numbers.write_text("1\n2\n3\n4\n")
    for format, good, bad in [
        ("moses", "0 ||| {} ||| A= 1 ||| 1", "0 ||| b ||| A= x ||| 1"),
        ("nemo-tsv", "{}\t1", "b\tx"),
    ]:
        path = tmp_path / format
        path.write_text("\n".join([good.format("a"), bad, good.format("c"), good.format("d")]))
        pools, skipped = read_nbest(
            path, format, skip_bad=True, per_sentence=4, columns={"n": numbers}
        )
        assert texts(pools) == [["a", "c", "d"]]
        assert pools.column("n").tolist() == [1, 3, 4]
        assert [skip.count for skip in skipped] == [1]


def test_a_new_format_is_a_few_lines(tmp_path: Path) -> None:
    def read(file: formats.TextFile) -> Any:
        for line in file:
            sentence, text, score = line.split(";")
            yield formats.Hypothesis(int(sentence), text, {"score": float(score)})

    formats.register(formats.Format("tiny", read))
    path = tmp_path / "list"
    path.write_text("1;b;2\n0;a;1\n")
    assert texts(read_nbest(path, "tiny").pools) == [["a"], ["b"]]
    with pytest.raises(InputError, match="can be read, not written"):
        write_nbest(read_nbest(path, "tiny").pools, tmp_path / "out", "tiny")
    with pytest.raises(InputError, match="no format is called"):
        read_nbest(path, "colons")


def test_packed_files_in_a_folder_are_found(tmp_path: Path) -> None:
    import gzip

    shutil.copytree(GOLDEN / "kaldi", tmp_path / "kaldi")
    plain = tmp_path / "kaldi" / "words_text"
    with gzip.open(tmp_path / "kaldi" / "words_text.gz", "wb") as out:
        out.write(plain.read_bytes())
    plain.unlink()
    expected = dump(read_nbest(GOLDEN / "kaldi").pools)
    assert dump(read_nbest(tmp_path / "kaldi").pools) == expected
