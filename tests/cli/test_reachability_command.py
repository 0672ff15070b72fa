"""`tunesmith reachability` and `tune -t maxforce` as one types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import tunesmith
from twins.toy import make_world

from tunesmith.runs import RunDirectory


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_world(tmp_path_factory.mktemp("reach"))
    for side in ("src", "tgt"):
        lines = (folder / f"dev.{side}").read_text().splitlines()
        (folder / f"few.{side}").write_text("".join(f"{line}\n" for line in lines[:15]))
    target = (folder / "few.tgt").read_text().splitlines()
    (folder / "other.tgt").write_text("".join(f"{line} zebra\n" for line in target))
    (folder / "blank.tgt").write_text("\n".join([*target[:3], "", *target[4:], ""]))
    return folder


def asked(world: Path, *more: object) -> list[object]:
    texts = ("--source", world / "few.src", "--reference", world / "few.tgt")
    return [world / "model", *texts, "-w", world / "phrase.toml", *more]


def test_references_are_counted_as_a_whole_and_by_length(world: Path) -> None:
    ran = tunesmith("reachability", *asked(world, "-r", world / "other.tgt"))
    assert ran.code == 0, ran.err
    assert "maxforce can use" in ran.out and "of 30 pairs" in ran.out
    assert "source words" in ran.out and "1-10" in ran.out
    found = tunesmith("reachability", *asked(world, "-r", world / "other.tgt", "--json")).object
    assert (found["pairs"], found["sentences"], found["whole"]) == (30, 15, 15)
    assert len(found["each"]) == 30
    assert found["used"] > found["whole"]
    assert sum(group["pairs"] for group in found["lengths"]) == 30
    strict = tunesmith(
        "reachability", *asked(world, "-r", world / "other.tgt", "--json", "--least", 1000)
    )
    assert strict.object["used"] == 15


def test_limits_of_the_search_are_limits_of_what_can_be_reached(world: Path) -> None:
    def whole(*settings: str) -> int:
        options = [word for setting in settings for word in ("--search", setting)]
        count = tunesmith("reachability", *asked(world, "--json", *options)).object["whole"]
        assert isinstance(count, int)
        return count

    assert whole() == 15
    assert whole("distortion_limit=0", "phrase_limit=1") < 15
    assert whole("table_limit=1") < 15
    ran = tunesmith("reachability", *asked(world, "--json", "--search", "force_limit=1"))
    assert (ran.object["given_up"], ran.object["used"]) == (15, 0)
    ran = tunesmith("reachability", *asked(world, "--search", "max_words=2"))
    assert "15 in sentences that are translated in pieces" in " ".join(ran.out.split())


def test_the_report_of_a_run_shows_what_can_be_reached(world: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    ran = tunesmith(
        *("tune", *asked(world), "-t", "maxforce", "--set", "rate=0.05"),
        *("--epochs", 2, "--run", run),
    )
    assert ran.code == 0, ran.err
    texts = ("-s", world / "few.src", "-r", world / "few.tgt", "-r", world / "other.tgt")
    for _ in range(2):
        ran = tunesmith("reachability", world / "model", *texts, "--run", run, "--least", 3)
        assert "shows it, too" in ran.err
    (entry,) = RunDirectory(run).analyses()
    assert entry["analysis"] == "reachability"
    assert (entry["total"]["pairs"], entry["total"]["whole"]) == (30, 15)
    assert sum(row["pairs"] for row in entry["rows"]) == 30
    tunesmith("report", run)
    page = (run / "report.html").read_text()
    assert "References that the search can reach" in page
    assert '<td class="n">15 (50\u00a0%)</td>' in page and "3 words on" in page
    tunesmith("reachability", world / "model", *texts, "--run", run, "--least", 4)
    assert [each["least"] for each in RunDirectory(run).analyses()] == [3, 4]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--run", "nowhere"], "nowhere"),
        (["--kind", "hiero"], "only a phrase-based decoder can be forced"),
        (["--moses", "moses.ini"], "one model is wanted"),
        (["--kind", "tree"], "--kind"),
        (["--least", "0"], "--least"),
        (["--search", "force_limit=-1"], "force_limit cannot be -1"),
    ],
)
def test_what_makes_no_sense_is_refused(world: Path, words: list[str], message: str) -> None:
    given = [word for word in asked(world, *words) if "phrase.toml" not in str(word)]
    ran = tunesmith("reachability", *(word for word in given if word != "-w"))
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_blank_references_are_refused_with_their_line(world: Path) -> None:
    ran = tunesmith(
        *("reachability", world / "model", "-s", world / "few.src", "-r", world / "blank.tgt")
    )
    assert ran.code == 2
    assert "blank.tgt" in ran.err and "4" in ran.err and "the reference is blank" in ran.err


def test_maxforce_tells_how_much_it_learns_from(world: Path) -> None:
    out = world / "tuned.toml"
    options = ("-t", "maxforce", "--set", "update=early", "--set", "rate=0.05", "--epochs", 3)
    ran = tunesmith("tune", *asked(world, *options, "-o", out))
    assert ran.code == 0, ran.err
    assert ran.err.count("learnt from 15 of 15 pairs (100%)") == 3
    assert out.is_file()
    for least, prefixes in ((1, 15), (1000, 0)):
        other = ("-r", world / "other.tgt", "--set", f"least={least}", "--json")
        counts = tunesmith("tune", *asked(world, *options, *other)).object["counts"]
        assert (counts["pairs"], counts["whole"]) == (30, 15)
        assert (counts["prefixes"], counts["unreachable"]) == (prefixes, 15 - prefixes)
        assert 0 < counts["wrong"] <= counts["used"] == 15 + prefixes


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kind", "hiero"], "a hierarchical decoder cannot be forced"),
        (["--merged"], "leave --merged out"),
        (["--set", "k=3"], "has no effect with learner=perceptron"),
    ],
)
def test_maxforce_refuses_what_it_cannot_learn_from(
    world: Path, words: list[str], message: str
) -> None:
    given = asked(world, "-t", "maxforce", *words)
    kept = [word for word in given if "phrase.toml" not in str(word) and word != "-w"]
    ran = tunesmith("tune", *kept)
    assert ran.code == 2
    assert message in " ".join(ran.err.split())


def test_maxforce_refuses_commands_and_saved_lists(world: Path) -> None:
    texts = ("--source", world / "few.src", "-r", world / "few.tgt", "-w", world / "phrase.toml")
    command = ("--command", "decoder {weights} {source}", "-t", "maxforce")
    ran = tunesmith("tune", *texts, *command)
    assert ran.code == 2
    assert "cannot be forced to a reference" in " ".join(ran.err.split())
    lists = world / "few.nbest"
    lists.write_text("".join(f"{n} ||| the house ||| lm= 1 ||| 1\n" for n in range(15)))
    ran = tunesmith("rerank", "tune", lists, "-r", world / "few.tgt", "-t", "maxforce")
    assert ran.code == 2
    assert "cannot be forced to a reference" in " ".join(ran.err.split())
