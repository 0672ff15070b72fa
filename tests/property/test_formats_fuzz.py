"""Real files with small damage, thousands of times, through every parser: no crash, ever."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from tunesmith.decode.moses import read_config
from tunesmith.errors import InputError
from tunesmith.formats import read_nbest, read_references, weights
from tunesmith.runs import load_weights
from tunesmith.training.model import text_sides

GOLDEN = Path(__file__).parents[1] / "golden" / "formats"
ROUNDS = 2000

# What damage likes to be made of: the marks that the parsers look for.
PIECES = [
    b"|||", b" ||| ", b"=", b"= ", b"\t", b"\n", b"\r\n", b" ", b"-", b"nan", b"inf", b"1e999",
    b"-1e-400", b"\xff", b"\xc3", b"\x00", b"{", b"}", b"[", b"]", b'"', b":", b",", b"\\ud800",
    b"99999999999", b"-1", b"H-", b"D-0\t", b"P-0\t", b"tensor(", b")", b"_1= 2 3",
]  # fmt: skip

FILES = [
    ("moses.nbest", "moses"),
    ("unlabelled.nbest", "moses"),
    ("cdec.nbest", "cdec"),
    ("travatar.nbest", "travatar"),
    ("lists.jsonl", "jsonl"),
    ("fairseq.out", "fairseq"),
    ("espnet1.json", "espnet1"),
    ("nemo.jsonl", "nemo"),
    ("nemo.tsv", "nemo-tsv"),
    ("kaldi/words_text", "kaldi"),
    ("flat/hyps.txt", "flat"),
]
FOLDERS = [
    ("espnet", "espnet", "output.1/1best_recog/score"),
    ("espnet", "espnet", "output.1/1best_recog/text"),
    ("espnet", "espnet", "output.1/2best_recog/token"),
    ("kaldi", "kaldi", "acwt"),
    ("flat", "flat", "comet.columns"),
    ("flat", "flat", "lm.scores"),
]


def damage(content: bytes, chance: random.Random) -> bytes:
    """One to four cuts, copies, insertions or changed bytes."""
    work = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(work) + 1)
        end = min(len(work), at + chance.choice([1, 2, 5, 30]))
        match chance.randrange(5):
            case 0:
                del work[at:end]
            case 1:
                work[at:at] = work[at:end] * chance.randint(1, 3)
            case 2:
                work[at:at] = chance.choice(PIECES)
            case 3:
                work[at:end] = chance.choice(PIECES)
            case _:
                if work:
                    work[at % len(work)] = chance.randrange(256)
    return bytes(work)


def attempt(path: Path, format: str, skip_bad: bool) -> bool:
    try:
        pools, _ = read_nbest(path, format, per_sentence=2, skip_bad=skip_bad)
    except InputError as error:
        assert error.message
        assert error.remedy
        assert error.file
        return False
    assert pools.hypotheses > 0
    assert np.isfinite(pools.csr()[2]).all()
    return True


@pytest.mark.parametrize(("name", "format"), FILES)
def test_damaged_files(tmp_path: Path, name: str, format: str) -> None:
    content = (GOLDEN / name).read_bytes()
    path = tmp_path / "list"
    chance = random.Random(name)
    read = 0
    for _ in range(ROUNDS):
        path.write_bytes(damage(content, chance))
        strict = attempt(path, format, skip_bad=False)
        lenient = attempt(path, format, skip_bad=True)
        assert lenient or not strict, "what is read strictly is read leniently"
        read += lenient
    assert read > 0


@pytest.mark.parametrize(("name", "format", "inside"), FOLDERS)
def test_damaged_folders(tmp_path: Path, name: str, format: str, inside: str) -> None:
    shutil.copytree(GOLDEN / name, tmp_path / "list")
    path = tmp_path / "list" / inside
    content = path.read_bytes()
    chance = random.Random(inside)
    for _ in range(ROUNDS // 5):
        path.write_bytes(damage(content, chance))
        for skip_bad in (False, True):
            attempt(tmp_path / "list", format, skip_bad)


def test_damaged_descriptions(tmp_path: Path) -> None:
    chance = random.Random(11)
    description = """format = 1
[files]
"lm.tlm" = 3
[digests]
"lm.tlm" = "00"
[source]
language = "de"
tokenize = "none"
case = "true"
truecase = "case.source"
[target]
language = "en"
tokenize = "none"
case = "none"
[features]
templates = ["rule-id"]
"""
    configuration = """[input-factors]
0
[feature]
PhraseDictionaryMemory name=TM0 num-features=4 path=phrases.gz input-factor=0 output-factor=0
KENLM name=LM0 path=lm.arpa order=3 factor=0
Distortion
[weight]
TM0= 0.2 0.2 0.2 0.2
LM0= 0.5
"""
    ours = '[tunesmith]\ntuner = "rm"\n\n[weights]\n"a b" = 0.5\nc = -1e-3\n'
    for name, content, read in (
        ("model.toml", description, lambda: text_sides(tmp_path)),
        ("moses.ini", configuration, lambda: read_config(tmp_path / "moses.ini")),
        ("w.toml", ours, lambda: load_weights(tmp_path / "w.toml")),
    ):
        for _ in range(ROUNDS // 5):
            (tmp_path / name).write_bytes(damage(content.encode(), chance))
            try:
                read()
            except InputError as error:
                assert error.remedy and error.file


def test_damaged_references_and_weights(tmp_path: Path) -> None:
    chance = random.Random(7)
    path = tmp_path / "file.jsonl"
    shutil.copy(GOLDEN / "moses.sparse", tmp_path)
    for name in ("kaldi-references.txt", "lists.jsonl", "moses.ini", "cdec.weights"):
        content = (GOLDEN / name).read_bytes()
        for _ in range(ROUNDS // 5):
            path.write_bytes(damage(content, chance))
            for read in (
                lambda: read_references([path], skip_bad=True),
                lambda: read_references([path], keys=["spk1-utt1", "spk1-utt2"]),
                lambda: weights.read_cdec(path),
                lambda: weights.read_moses_ini(path),
            ):
                try:
                    read()
                except InputError as error:
                    assert error.remedy
