"""Language models from Python: estimates, files, queries, bad input."""

from __future__ import annotations

import gzip
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from tunesmith.errors import InputError
from tunesmith.lm import LanguageModel, estimate, memory_bytes

SENTENCES = ["a b c", "b c a b", "c a", "", "d a b c d"] * 4


@pytest.fixture
def model() -> LanguageModel:
    return estimate(sentences=SENTENCES, order=3).model()


def test_every_form_of_the_same_text_gives_the_same_model(tmp_path: Path) -> None:
    text = "".join(f"{sentence}\n" for sentence in SENTENCES)
    half = len(SENTENCES) // 2
    (tmp_path / "plain").write_text(text)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(text.encode()))
    (tmp_path / "first").write_text("".join(f"{line}\r\n" for line in SENTENCES[:half]))
    (tmp_path / "second").write_text("\n".join(SENTENCES[half:]))
    written = []
    for number, options in enumerate(
        [
            {"sentences": SENTENCES},
            {"texts": tmp_path / "plain"},
            {"texts": [tmp_path / "packed.gz"], "threads": 1},
            {"texts": [tmp_path / "first", str(tmp_path / "second")], "memory": 0},
        ]
    ):
        path = tmp_path / f"{number}.arpa"
        estimate(order=3, **options).write_arpa(path)  # type: ignore[arg-type]
        written.append(path.read_bytes())
    assert len(set(written)) == 1


def test_a_model_is_the_same_from_memory_arpa_and_binary(tmp_path: Path) -> None:
    found = estimate(sentences=SENTENCES, order=4)
    found.write_arpa(tmp_path / "lm.arpa.zst")
    found.model().save(tmp_path / "lm.tlm")
    models = [found.model()]
    models += [LanguageModel.load(tmp_path / name) for name in ("lm.arpa.zst", "lm.tlm")]
    for sentence in [*SENTENCES, "x a b", "a  \t b"]:
        assert len({model.score(sentence) for model in models}) == 1
        assert len({tuple(model.full_scores(sentence)) for model in models}) == 1


def test_all_ways_to_ask_agree(model: LanguageModel) -> None:
    texts = ["a b x", "", "d d d d", "c"]
    many = model.score_many(texts)
    ids = [np.append(model.ids(text), np.uint32(model.end_id)) for text in texts]
    ends = np.cumsum([len(part) for part in ids])
    values, lengths = model.score_ids(np.concatenate(ids), ends)
    starts = [0, *ends[:-1]]
    for text, total, start, end in zip(texts, many, starts, ends, strict=True):
        scores = model.full_scores(text)
        assert model.score(text) == total == sum(score.log10 for score in scores)
        assert [score.log10 for score in scores] == values[start:end].tolist()
        assert [score.length for score in scores] == lengths[start:end].tolist()
        state = model.begin_state()
        for word, score in zip([*text.split(), "</s>"], scores, strict=True):
            (words,), (size,), (after,) = model.score_words(
                state, np.array([model.id(word)], dtype=np.uint32)
            )
            log10, state, length = model.score_word(state, word)
            assert (log10, length, state) == (score.log10, score.length, after)
            assert (words, size) == (score.log10, score.length)
            assert (word in model) == score.known


def test_states_are_values(model: LanguageModel) -> None:
    one = model.score_word(model.begin_state(), "a")[1]
    other = model.score_word(model.begin_state(), "a")[1]
    assert one == other
    assert hash(one) == hash(other)
    assert one != model.begin_state()
    assert len(model.empty_state()) == 0
    assert len(one) <= model.order - 1
    assert model.word(one.words[0]) == "a"


def test_perplexity_is_that_of_the_scores(model: LanguageModel, tmp_path: Path) -> None:
    texts = ["a b", "x", "c c c"]
    (tmp_path / "text").write_text("\n".join(texts))
    measured = model.measure(texts)
    assert measured == model.measure_file(tmp_path / "text")
    assert (measured.sentences, measured.tokens, measured.unknown) == (3, 9, 1)
    total = sum(model.score(text) for text in texts)
    assert model.perplexity(texts) == pytest.approx(10 ** (-total / 9))
    assert math.isnan(model.perplexity([]))


def test_a_tiny_text_says_that_its_discounts_are_assumed() -> None:
    found = estimate(sentences=["a"], order=2, fallback=(0.4, 0.8, 1.2))
    assert len(found.messages()) == 2
    assert "small or artificial" in found.messages()[0]
    assert found.orders[0].discounts == (0.4, 0.8, 1.2)
    assert found.model().score("a") < 0


def test_pruning_and_vocabulary_make_models_smaller() -> None:
    whole = estimate(sentences=SENTENCES, order=3)
    pruned = estimate(sentences=SENTENCES, order=3, prune=[0, 4])
    assert pruned.orders[2].ngrams < pruned.orders[2].before_pruning == whole.orders[2].ngrams
    limited = estimate(sentences=SENTENCES, order=3, vocabulary=["a", "b"]).model()
    assert ("a" in limited, "c" in limited, len(limited)) == (True, False, 5)


def test_special_words_are_refused_or_counted() -> None:
    with pytest.raises(InputError, match="<s>") as caught:
        estimate(sentences=["a", "b <s>"], order=2)
    assert (caught.value.line, caught.value.remedy is not None) == (2, True)
    found = estimate(sentences=["a", "b <s>"], order=2, skip_symbols=True)
    assert found.skipped == 1
    assert "skipped" in found.messages()[-1]


@pytest.mark.parametrize(
    "options",
    [
        {"order": 0},
        {"order": 7},
        {"order": -1},
        {"prune": [1, 0]},
        {"prune": [-1]},
        {"memory": "much"},
        {"fallback": (0.5, 1.0, 4.0)},
        {"sentences": None},
        {"texts": "also"},
        {"sentences": []},
        {"sentences": ["", " "]},
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        estimate(**({"sentences": SENTENCES} | options))  # type: ignore[arg-type]
    assert caught.value.remedy


def test_files_that_cannot_be_used_are_named(tmp_path: Path, model: LanguageModel) -> None:
    (tmp_path / "latin1").write_bytes(b"a\nb \xe9\n")
    with pytest.raises(InputError, match=r"latin1:2: invalid UTF-8"):
        estimate(tmp_path / "latin1")
    with pytest.raises(InputError, match=r"latin1:2: invalid UTF-8"):
        model.measure_file(tmp_path / "latin1")
    for name in ["absent", "."]:
        with pytest.raises(InputError):
            LanguageModel.load(tmp_path / name)
    model.save(tmp_path / "lm.tlm")
    sound = (tmp_path / "lm.tlm").read_bytes()
    (tmp_path / "lm.tlm").write_bytes(sound[: len(sound) // 2])
    with pytest.raises(InputError, match="truncated"):
        LanguageModel.load(tmp_path / "lm.tlm")
    with pytest.raises(InputError, match=r"\\data\\"):
        LanguageModel.load(tmp_path / "latin1")
    with pytest.raises(ValueError, match="ends of sentences"):
        model.score_ids(np.array([1, 2], dtype=np.uint32), np.array([3]))
    with pytest.raises(IndexError):
        model.word(1000)


def test_threads_share_a_model(model: LanguageModel) -> None:
    expected = model.score_many(SENTENCES).tolist()
    found: list[list[float]] = []

    def ask() -> None:
        for _ in range(50):
            found.append(model.score_many(SENTENCES, threads=2).tolist())

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 200


def test_progress_is_told_and_its_errors_stop_the_estimate() -> None:
    many = [f"w{number % 977} w{number % 613} w{number % 89}" for number in range(300_000)]
    told: list[tuple[str, int, int]] = []
    estimate(sentences=many, order=4, progress=lambda *step: told.append(step), threads=1)
    assert {stage for stage, _, _ in told} <= {
        "counting",
        "adjusting counts",
        "probabilities",
        "interpolating",
    }

    def refuse(stage: str, done: int, total: int) -> None:
        raise RuntimeError(stage)

    with pytest.raises(RuntimeError, match=r"count|prob|inter"):
        estimate(sentences=many * 3, order=5, progress=refuse, threads=1)


@pytest.mark.skipif(os.name != "posix", reason="signals as on Unix")
def test_the_keyboard_interrupts_an_estimate() -> None:
    code = "from tunesmith.lm import estimate; print(1, flush=True); estimate('-', order=3)"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdin is not None and running.stdout is not None
        running.stdout.readline()
        time.sleep(0.3)
        running.send_signal(signal.SIGINT)
        time.sleep(0.3)
        try:
            running.stdin.write(b"a b c\n" * 100_000)
            running.stdin.close()
        except BrokenPipeError:
            pass
        running.wait(20)
        assert running.stderr is not None
        assert b"KeyboardInterrupt" in running.stderr.read()


def test_amounts_of_memory() -> None:
    assert memory_bytes("1.5K") == 1536
    assert memory_bytes("2GiB") == memory_bytes("2g") == 2 << 30
    assert memory_bytes(12) == memory_bytes(" 12 b") == 12
    for much in ("20000000T", "9" * 400, 1 << 63):
        with pytest.raises(InputError, match="more memory than a machine can have"):
            memory_bytes(much)
