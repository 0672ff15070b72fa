"""`tunesmith tune` as one types it: our decoders and others in the loop."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from running import Ran, on_a_terminal, tunesmith
from twins.toy import make_world

from tunesmith import Result, Weights
from tunesmith._core import Lines
from tunesmith.cli.tune import seconds
from tunesmith.lm import estimate
from tunesmith.metrics import get_metric
from tunesmith.runs import RunDirectory, fingerprint
from tunesmith.spaces.reading import read_weights
from tunesmith.training.rules import RuleTable, export_moses

DOCS = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")
KEYS = {
    *("tuner", "start", "tuned", "heldout", "iterations", "seconds"),
    *("decode_seconds", "optimise_seconds", "nonzero"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_world(tmp_path_factory.mktemp("tune"))


def asked(world: Path, kind: str, *more: object) -> list[object]:
    texts = ("--source", world / "dev.src", "--reference", world / "dev.tgt")
    return ["tune", world / "model", *texts, "-w", world / f"{kind}.toml", "--kind", kind, *more]


@pytest.mark.parametrize("kind", ["phrase", "hiero"])
@pytest.mark.parametrize("space", ["list", "forest"])
def test_tuning_makes_translations_better(world: Path, kind: str, space: str) -> None:
    out = world / "tuned.toml"
    held = ("--heldout", world / "test.src", world / "test.tgt")
    options = ("--space", space, "--epochs", 4, "--set", "restarts=3", "--json")
    ran = tunesmith(*asked(world, kind, *held, *options, "-o", out))
    assert ran.code == 0, ran.err
    found = ran.object
    assert found.keys() >= KEYS
    assert found["tuned"] > found["start"] + 5
    assert found["heldout"] > found["heldout_start"] + 5
    assert 1 <= found["iterations"] <= 4
    ran = tunesmith(
        *("translate", world / "model", "-i", world / "test.src", "-w", out, "--kind", kind)
    )
    assert ran.code == 0, ran.err
    references = (world / "test.tgt").read_text().splitlines()
    right = sum(a == b for a, b in zip(ran.out.splitlines(), references, strict=True))
    assert right > 10


@pytest.mark.parametrize(
    ("tuner", "space", "sizes"),
    [
        ("mert", "forest", r"40 forests, [\d,]+ edges"),
        ("mert", "list", r"40 lists, [\d,]+ hypotheses"),
        ("mira", "list", "40 sentences"),
        ("mira", "forest", "40 sentences"),
    ],
)
def test_what_a_run_begins_with_has_its_own_name(
    world: Path, tuner: str, space: str, sizes: str
) -> None:
    ran = tunesmith(*asked(world, "phrase", "-t", tuner, "--space", space, "--epochs", 1))
    assert re.match(rf"{tuner} for bleu: {sizes}, \d+ features\n", ran.err), ran.err


@pytest.mark.parametrize("tuner", ["kbmira", "pro", "rampion", "risk", "mira", "rm", "adagrad"])
def test_every_kind_of_tuner_works_with_a_decoder(world: Path, tuner: str) -> None:
    ran = tunesmith(*asked(world, "phrase", "-t", tuner, "--epochs", 2, "--json"))
    assert ran.code == 0, ran.err
    assert ran.object["tuned"] > ran.object["start"] + 1


def test_held_out_texts_come_in_pairs(world: Path) -> None:
    pair = ("--heldout", world / "test.src", world / "test.tgt")
    twice = (*pair, "--heldout", world / "dev.src", world / "dev.tgt")
    ran = tunesmith(*asked(world, "phrase", *twice, "--epochs", 1, "--json", "-t", "kbmira"))
    assert ran.code == 0, ran.err
    found = ran.object["heldout_all"]
    assert len(found) == 2
    assert found[0] == ran.object["heldout"]
    assert found[1] == ran.object["tuned"]
    for bad in (
        ("--heldout", world / "test.src", "--json"),
        ("--heldout", "--epochs", 1),
        ("--epochs", 1, "--heldout"),
    ):
        ran = tunesmith(*asked(world, "phrase", *bad))
        assert ran.code == 2
        assert "(give both: --heldout SOURCE REFERENCE)" in ran.err
    joined = (f"--heldout={world / 'test.src'}", world / "test.tgt")
    again = tunesmith(*asked(world, "phrase", *joined, "--epochs", 1, "--json", "-t", "kbmira"))
    assert again.object["heldout_all"] == found[:1]


def test_a_regime_is_chosen_by_name(world: Path) -> None:
    options = ("-t", "mira", "--epochs", 1, "--json", "--regime")
    for regime in ("shards=2,mix=2", "batch=5", "delay=2,ordered=false"):
        ran = tunesmith(*asked(world, "phrase", *options, regime))
        assert ran.code == 0, ran.err
        assert ran.object["tuned"] > ran.object["start"]
    ran = tunesmith(*asked(world, "phrase", *options, "shards=0"))
    assert ran.code == 2
    assert "no part of a regime" in ran.err
    ran = tunesmith(*asked(world, "phrase", "-t", "mert", "--regime", "batch=2"))
    assert ran.code == 2
    assert "only online tuners" in ran.err


@pytest.mark.parametrize("option", ["batch", "shards", "mix", "delay"])
def test_a_regime_is_no_option_of_a_tuner(world: Path, option: str) -> None:
    ran = tunesmith(*asked(world, "phrase", "-t", "mira", "--set", f"{option}=2"))
    assert ran.code == 2
    told = f"mira has no option '{option}' (choose a regime with --regime {option}=2)"
    assert told in ran.err


def rows(out: str) -> dict[str, list[str]]:
    """Return the numbers of each line of the table of scores, by what the line is called."""
    table = out.partition("\nafter each decoding")[0].splitlines()[2:]
    return {
        name: numbers.split()
        for name, numbers in (re.split(r" {2,}", r, maxsplit=1) for r in table)
    }


def test_folds_are_scored_on_sentences_that_were_not_learnt_from(world: Path) -> None:
    words = asked(world, "phrase", "-t", "kbmira", "--epochs", 2, "--folds", 2)
    found = tunesmith(*words, "--json").object
    assert found["significance"]["on"] == "folds"
    assert found["heldout_all"] == [found["heldout"]]
    assert found["heldout_start"] == found["start"] < found["heldout"]
    assert found["heldout"] != found["tuned"]
    assert found["verdict"] == "better"
    ran = tunesmith(*words)
    assert ran.code == 0, ran.err
    told = [f"{found[key]:.2f}" for key in ("heldout_start", "heldout")]
    assert rows(ran.out)["held-out folds"] == told
    assert "Tuning beats the start: very unlikely to be chance." in ran.out
    assert "against the start, on held-out folds: +" in ran.out
    # An epoch of the run on all sentences, and of each fold.
    assert len(re.findall(r"^ +\d+ +\d+\.\d\d ", ran.err, re.M)) == 6
    for bad in (("--folds", 1), ("--folds", 41)):
        assert f"{bad[1]} folds of 40 sentences" in tunesmith(*asked(world, "phrase", *bad)).err
    held = ("--heldout", world / "test.src", world / "test.tgt")
    assert "both folds and held-out" in tunesmith(*words, *held).err


def test_seeds_are_runs_whose_weights_are_averaged(world: Path) -> None:
    words = asked(world, "phrase", "-t", "mira", "--set", "c=0.05", "--epochs", 2)
    one, two, both = (
        tunesmith(*words, "--json", *more).object
        for more in (("--seed", 1), ("--seed", 2), ("--seeds", 2))
    )
    assert both["runs"] == [one["tuned"], two["tuned"]]
    assert one["weights"] != two["weights"]
    assert both["curve"] == one["curve"]
    vectors = [Weights(each["weights"]) for each in (one, two)]
    norms = [sum(value**2 for value in each.values()) ** 0.5 for each in vectors]
    for name, value in both["weights"].items():
        mean = (
            sum(each.get(name, 0.0) / norm for each, norm in zip(vectors, norms, strict=True)) / 2
        )
        assert value == pytest.approx(mean * sum(norms) / 2, abs=1e-9)
    shown = rows(tunesmith(*words, "--seeds", 2).out)
    assert shown["runs"] == [f"{score:.2f}" for score in both["runs"]]


def test_a_second_metric_is_scored_beside_the_first(world: Path) -> None:
    words = asked(world, "phrase", "-t", "kbmira", "--epochs", 1)
    assert tunesmith(*words, "--json").object["second"]["name"] == "chrf"
    words += ["--second-metric", "ter"]
    found = tunesmith(*words, "--json").object["second"]
    assert found["name"] == "ter" and "tok:tercom" in found["signature"]
    ran = tunesmith(
        "translate", world / "model", "-i", world / "dev.src", "-w", world / "phrase.toml"
    )
    references = [[line] for line in Lines(world / "dev.tgt")]
    start = get_metric("ter").corpus_score(ran.out.splitlines(), references)
    assert found["start"] == pytest.approx(start)
    shown = rows(tunesmith(*words).out)
    assert shown["ter, not tuned"] == [f"{found[key]:.2f}" for key in ("start", "tuned")]
    bad = tunesmith(*words, "--second-metric", "nix").err
    assert "unknown metric 'nix'" in bad and "epoch" not in bad


@pytest.mark.parametrize("where", ["text", "heldout"])
def test_a_verdict_says_what_it_is_about(world: Path, where: str) -> None:
    held = ("--heldout", world / "test.src", world / "test.tgt") if where == "heldout" else ()
    words = asked(world, "phrase", "-t", "kbmira", "--epochs", 1, *held)
    found = tunesmith(*words, "--json").object
    tests, changed = found["significance"], found["changed"]
    assert (tests["on"], tests["against"], found["verdict"]) == (where, "start", "better")
    start, tuned = ("heldout_start", "heldout") if held else ("start", "tuned")
    assert tests["bootstrap"]["difference"] == pytest.approx(found[tuned] - found[start])
    assert found["baselines"] == {"start": found[start]}
    out = " ".join(tunesmith(*words).out.split())
    assert ("whether it helps elsewhere is open (--heldout" in out) is (where == "text")
    assert f"output changed for {changed['changed']} of 40 sentences" in out
    assert f"{tests['bootstrap']['difference']:+.2f} [" in out
    assert f"p = {tests['randomisation']['p']:.3g} (approximate randomisation)" in out


def test_sparse_features_are_tuned_kept_and_used(world: Path) -> None:
    out = world / "sparse.toml"
    options = ("-t", "kbmira", "--epochs", 2, "--features", "rule-id", "--features", "bigrams")
    ran = tunesmith(*asked(world, "phrase", *options, "--json", "-o", out))
    assert ran.code == 0, ran.err
    assert ran.object["nonzero"] > 50
    weights = Weights.load(out)
    assert weights.meta["templates"] == ["rule-id", "bigrams"]
    assert weights.meta["kind"] == "phrase"
    assert any(name.startswith("PT:") for name in weights)
    ran = tunesmith(*("translate", world / "model", "-i", world / "dev.src", "-w", out, "--json"))
    assert "TB:" in ran.out.splitlines()[0]


def test_what_docs_show_works(world: Path) -> None:
    block, _ = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(block, "docs/tuning.md", "exec"), names)
    lines, references = (
        (world / f"dev.{side}").read_text().splitlines()[:5] for side in ("src", "tgt")
    )
    assert names["learn"](world / "model", lines, references)["lm"] != 0


def test_the_toy_decoder_of_the_docs_is_tuned(tmp_path: Path) -> None:
    _, script = re.findall(r"```python\n(.*?)```", DOCS, re.DOTALL)
    (tmp_path / "toy.py").write_text(script)
    (commands,) = re.findall(r"```sh\n(.*?)```", DOCS, re.DOTALL)
    ours = f"{sys.executable} -c 'from tunesmith.cli import main; main()'"
    commands = commands.replace("tunesmith ", f"{ours} ").replace("python3", sys.executable)
    ran = subprocess.run(
        ["sh", "-ec", commands], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    assert re.search(r"tuning +\d+\.\d+ +100\.00", ran.stdout)
    assert (tmp_path / "tuned.txt").read_text().startswith("first -")


def test_every_key_of_the_result_is_in_the_docs(world: Path) -> None:
    ran = tunesmith(*asked(world, "phrase", "--epochs", 1, "--json"))
    assert all(f"`{key}`" in DOCS for key in ran.object)


MOSES = """import sys
from pathlib import Path

ini = Path(sys.argv[1]).read_text()
assert Path(ini.partition("path=")[2].split()[0]).is_file(), "Moses reads paths from where it runs"
weights = dict(line.split("= ") for line in ini.splitlines() if "= " in line)
for number, line in enumerate(sys.stdin):
    made = []
    for text, good in ((line.strip(), 0.0), (f"{line.strip()} end", 1.0)):
        score = good * float(weights["Good0"]) + float(weights["Noise0"]) * (1 - good)
        made.append(f"{number} ||| {text} ||| Good0= {good} Noise0= {1 - good} ||| {score}\\n")
    lists = sorted(made, key=lambda line: -float(line.split()[-1]))
    with open(sys.argv[2], "a") as out:
        out.writelines(lists)
"""


@pytest.fixture
def moses(tmp_path: Path) -> Path:
    """A stand-in for Moses, with its configuration in a folder of its own."""
    (tmp_path / "moses.py").write_text(MOSES)
    (tmp_path / "dev.src").write_text("a b c d\ne f g h\n")
    (tmp_path / "dev.tgt").write_text("a b c d end\ne f g h end\n")
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "phrases.gz").write_bytes(b"")
    (folder / "moses.ini").write_text(
        "[feature]\nPhraseDictionaryMemory name=Good0 path=phrases.gz\n\n"
        "[weight]\nGood0= 0\nNoise0= 1\n"
    )
    return tmp_path


def tuned_by_command(folder: Path, out: str) -> Ran:
    script = f"{sys.executable} {folder / 'moses.py'} {{weights}} {{nbest}} < {{source}}"
    texts = ("--source", folder / "dev.src", "-r", folder / "dev.tgt")
    start = folder / "model" / "moses.ini"
    return tunesmith("tune", "--command", script, *texts, "-w", start, "-o", folder / out)


def test_tuned_weights_go_back_to_the_decoder_that_was_tuned(moses: Path) -> None:
    for out in ("tuned.ini", "model/tuned.ini"):
        assert tuned_by_command(moses, out).code == 0
        text = (moses / out).read_text()
        place = "phrases.gz" if out.startswith("model") else str(moses / "model" / "phrases.gz")
        assert f" path={place}\n" in text
        weights = read_weights(moses / out)
        assert weights["Good0"] > weights["Noise0"]
    for out in ("tuned.txt", "tuned", "tuned.toml"):
        assert tuned_by_command(moses, out).code == 0
        assert read_weights(moses / out) == weights
    assert (moses / "tuned.txt").read_text().startswith("Good0 ")
    assert all("[tunesmith]" in (moses / name).read_text() for name in ("tuned", "tuned.toml"))


INI = """\
[feature]
UnknownWordPenalty
WordPenalty
PhraseDictionaryMemory name=TM0 num-features=4 path=table.gz
Distortion tuneable=false
KENLM name=LM0 path=lm.arpa
[distortion-limit]
3
[weight]
WordPenalty0= 0.5
TM0= -0.1 0.1 -0.1 0.1
Distortion0= 0.1
LM0= -0.1
"""


@pytest.fixture
def ini(world: Path, tmp_path: Path) -> Path:
    """A model of Moses with poor weights, without a phrase penalty."""
    export_moses(RuleTable(world / "model" / "phrases.rules"), tmp_path / "table.gz")
    estimate([world / "train.tgt"], order=3).write_arpa(tmp_path / "lm.arpa")
    (tmp_path / "moses.ini").write_text(INI)
    return tmp_path / "moses.ini"


@pytest.mark.parametrize("tuner", ["mert", "mira"])
def test_a_tuned_configuration_of_moses_gives_the_tuned_score_again(
    world: Path, ini: Path, tuner: str
) -> None:
    texts = ("--source", world / "dev.src", "-r", world / "dev.tgt")
    tuned, cache = ini.with_name("tuned.ini"), ("--cache", ini.parent / "cache")
    options = ("-t", tuner, "--epochs", 3, "--json", *cache, "-o", tuned)
    ran = tunesmith("tune", "--moses", ini, *texts, *options)
    assert ran.code == 0, ran.err
    found = ran.object
    assert found["tuned"] > found["start"]

    def without_weights(path: Path) -> list[str]:
        return [line.split("=")[0] if "= " in line else line for line in Lines(path)]

    assert without_weights(tuned) == without_weights(ini)
    assert not list(ini.parent.glob("*.sparse"))
    assert "Distortion0= 0.1" in tuned.read_text()
    assert found["weights"]["PhrasePenalty0"] == 0
    assert found["weights"]["UnknownWordPenalty0"] == 1
    Weights(found["weights"]).save(ini.with_name("tuned.toml"))
    source = ("-i", world / "dev.src", *cache)
    ran = tunesmith("translate", "--moses", tuned, *source)
    lines = ran.out.splitlines()
    same = tunesmith("translate", "--moses", ini, "-w", ini.with_name("tuned.toml"), *source)
    assert lines == same.out.splitlines()
    references = [[line] for line in Lines(world / "dev.tgt")]
    score = get_metric("bleu:tokenize=none").corpus_score(lines, references)
    assert score == pytest.approx(found["tuned"], abs=1e-9)


def test_features_that_a_configuration_has_not_have_no_limits(world: Path, ini: Path) -> None:
    texts = ("--source", world / "dev.src", "-r", world / "dev.tgt")
    ran = tunesmith("tune", "--moses", ini, *texts, "--fix", "PhrasePenalty0=0.2")
    assert ran.code == 2
    assert "PhrasePenalty0" in ran.err


def test_lattices_are_no_sentences_to_tune_on(world: Path, tmp_path: Path) -> None:
    (tmp_path / "src").write_text("a\n((('a',1.0,1),),)\n")
    (tmp_path / "tgt").write_text("a\nb\n")
    ran = tunesmith("tune", world / "model", "-s", tmp_path / "src", "-r", tmp_path / "tgt")
    assert ran.code == 2
    assert "src:2: a word lattice, not a sentence" in ran.err


def test_a_configuration_of_moses_is_not_made_from_nothing(world: Path) -> None:
    ran = tunesmith(*asked(world, "phrase", "-o", world / "none.ini"))
    assert ran.code == 2
    assert "none.ini: there is no configuration of Moses to copy (name a .toml" in ran.err
    assert "epoch" not in ran.err


def test_every_epoch_has_a_line(world: Path) -> None:
    pairs = [
        ("--heldout", world / f"{name}.src", world / f"{name}.tgt") for name in ("test", "dev")
    ]
    words = asked(world, "phrase", "-t", "mira", "--epochs", 2, *pairs[0], *pairs[1])
    ran = tunesmith(*words, "--json")
    _, _, heads, *lines = ran.err.splitlines()
    assert heads.split() == [
        *("epoch", "score", "held-out", "held-out", "2", "model", "oracle", "prediction"),
        *("spread", "non-zero", "decode", "optimise"),
    ]
    assert [line.split()[0] for line in lines] == ["1", "2"]
    assert {len(line) for line in lines} == {len(heads)}
    assert lines[0].split()[1] == f"{ran.object['curve'][1]:.2f}" == lines[0].split()[3]
    # Batch tuners know what they expect, and gains where they look at single sentences.
    for tuner, gains in (
        ("mert", []),
        ("kbmira", ["model", "oracle", "prediction", "spread"]),
    ):
        ran = tunesmith(*asked(world, "phrase", "--epochs", 1, "--json", "-t", tuner))
        wanted = ["epoch", "score", "projected", *gains, "non-zero", "decode", "optimise"]
        assert ran.err.splitlines()[2].split() == wanted
    assert "prediction" in on_a_terminal(*words, columns=120)


def test_weights_that_are_written_nowhere_are_printed(world: Path, tmp_path: Path) -> None:
    words = asked(world, "phrase", "--epochs", 1)
    weights = tmp_path / "w.toml"
    told = tunesmith(*words, "--out", weights)
    assert "not saved" not in told.err
    ran = tunesmith(*words)
    assert "the weights are not saved (use --out FILE or --run DIR" in ran.err
    shown = ran.out.partition("\nWeights, most important first\n")[2]
    found = dict(re.findall(r"^(\S+) +([-+]\d\S*)", shown, re.M))
    assert found == {name: f"{value:+.6g}" for name, value in Weights.load(weights).items()}
    assert tunesmith(*words, "--json").object["weights"] == Weights.load(weights)


@pytest.mark.parametrize("option", ["--nbest", "--epochs"])
def test_numbers_have_a_limit(world: Path, option: str) -> None:
    ran = tunesmith(*asked(world, "phrase", option, 1_000_001))
    assert ran.code == 2
    assert f"'{option}'" in ran.err and "1000000" in ran.err


def test_parts_that_are_more_than_the_whole_are_told_as_sums() -> None:
    result = Result(
        tuner="mira",
        metric="bleu",
        signature="",
        weights=Weights({}),
        start=1.0,
        tuned=2.0,
        oracle=None,
        heldout=None,
        heldout_start=None,
        heldout_all=[],
        heldout_start_all=[],
        runs=[2.0],
        curve=[1.0, 2.0],
        second=None,
        significance={},
        seconds=1.2,
        decode_seconds=1.3,
        optimise_seconds=0.1,
    )
    assert seconds(result) == "1.2; summed over threads, 1.3 decoding, 0.1 optimising"
    told = seconds(replace(result, decode_seconds=1.0))
    assert told == "1.2, 1.0 of them decoding, 0.1 optimising"


def test_all_held_out_texts_are_in_events_and_report(world: Path, tmp_path: Path) -> None:
    pairs = [
        ("--heldout", world / f"{name}.src", world / f"{name}.tgt") for name in ("test", "dev")
    ]
    run = ("--run", tmp_path / "run", "--epochs", 2, "-t", "kbmira", "--json")
    ran = tunesmith(*asked(world, "phrase", *pairs[0], *pairs[1], *run))
    assert ran.code == 0, ran.err
    events = RunDirectory(tmp_path / "run").events()
    for event in events:
        if event["event"] == "epoch":
            assert event["heldout_all"] == [event["heldout"], event["score"]]
    assert events[-1]["heldout_all"] == ran.object["heldout_all"]
    assert events[-1]["heldout_start_all"] == ran.object["heldout_start_all"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<dt>Held out 2</dt>" in page
    assert '<th scope="col" class="n">Held out 2</th>' in page
    assert '<g class="series" data-name="held out 2"' in page


def test_a_chain_names_the_runs_of_its_tuners(world: Path, tmp_path: Path) -> None:
    run = tmp_path / "chain"
    options = ("--set", "mert.restarts=1", "--epochs", 1, "--run", run)
    ran = tunesmith(*asked(world, "phrase", "-t", "mert,mira", *options))
    assert ran.code in (0, 1), ran.err
    parts = [run / "1-mert", run / "2-mira"]
    for part in parts:
        assert (part / "report.html").is_file()
        assert f"{part / 'report.html'} shows the run" in ran.err
    assert f"{run / 'report.html'} shows" not in ran.err
    for words in (("report", run), ("inspect", run), ("inspect", parts[0], run)):
        ran = tunesmith(*words)
        assert ran.code == 2
        assert "each tuner of a chain has a run of its own" in ran.err
        assert f"give one of {parts[0]}, {parts[1]}" in ran.err
    ran = tunesmith("compare", parts[0], run)
    assert ran.code == 2 and f"give one of {parts[0]}, {parts[1]}" in ran.err


def test_a_held_out_source_again_has_another_reference(world: Path) -> None:
    held = ("--heldout", world / "test.src")
    twice = (*held, world / "test.tgt", *held, world / "dev.tgt")
    ran = tunesmith(*asked(world, "phrase", *twice, "--epochs", 1, "--json"))
    assert ran.code == 0, ran.err
    once = tunesmith(*asked(world, "phrase", *twice[:3], "--epochs", 1, "--json"))
    assert len(ran.object["heldout_all"]) == 1
    assert ran.object["heldout_start"] > once.object["heldout_start"]
    ran = tunesmith(*asked(world, "phrase", *held, world / "test.tgt", world / "dev.tgt"))
    assert ran.code == 2
    assert f"no option takes {world / 'dev.tgt'} (" in ran.err
    assert "--heldout SOURCE ONE --heldout SOURCE OTHER" in ran.err


def test_what_has_no_effect_is_told(world: Path, tmp_path: Path) -> None:
    for kind, features, idle in (
        ("hiero", "order", "order"),
        ("phrase", "eidelman2013", "distortion"),
        ("phrase", "order", None),
    ):
        words = asked(world, kind, "--features", features, "--epochs", 1, "-t", "kbmira")
        told = re.search(r"warning: the template (\S+) adds nothing", tunesmith(*words).err)
        assert (told and told[1]) == idle
    odd = tmp_path / "odd.toml"
    Weights({**Weights.load(world / "phrase.toml"), "none": 1.0}).save(odd)
    ran = tunesmith(*asked(world, "phrase", "--epochs", 1, "-w", odd))
    assert f"warning: {odd}: weights without effect" in ran.err
    assert "none" in ran.err
    assert "warning" not in tunesmith(*asked(world, "phrase", "--epochs", 1)).err


@pytest.mark.parametrize(
    ("decoder", "kind", "what"),
    [("--moses", "hiero", "a configuration of Moses"), ("--command", "phrase", "a command")],
)
def test_a_kind_is_for_models_of_ours(world: Path, decoder: str, kind: str, what: str) -> None:
    texts = ("--source", world / "dev.src", "-r", world / "dev.tgt")
    ran = tunesmith("tune", decoder, "x", *texts, "--kind", kind)
    assert ran.code == 2
    assert f"--kind {kind} of {what} (leave --kind out" in ran.err


def test_a_run_is_resumed_only_with_its_inputs(world: Path, tmp_path: Path) -> None:
    for name in ("model", "dev.src", "dev.tgt", "test.src", "test.tgt", "phrase.toml"):
        copy = shutil.copytree if (world / name).is_dir() else shutil.copy
        copy(world / name, tmp_path / name)
    held = ("--heldout", tmp_path / "test.src", tmp_path / "test.tgt")
    words = asked(tmp_path, "phrase", *held, "--run", tmp_path / "run", "--epochs", 1)
    assert tunesmith(*words).code == 0
    told = json.loads((tmp_path / "run" / "config.json").read_text())
    assert told["version"]
    assert told["inputs"]["source"] == fingerprint(tmp_path / "dev.src")
    names = {"held-out 1 source", "held-out 1 reference 1", "reference 1", "start weights"}
    assert told["inputs"].keys() >= {*names, "model phrases.rules", "model lm.tlm"}
    assert "model hiero.rules" not in told["inputs"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert all(str(tmp_path / name) in page for name in ("dev.src", "dev.tgt", "test.src"))

    def resumed(*words: object) -> str:
        return tunesmith(*words, "--resume").err

    model = (tmp_path / "model" / "model.toml").read_text()
    shutil.copytree(tmp_path / "model", tmp_path / "moved")
    assert "another configuration" not in resumed("tune", tmp_path / "moved", *words[2:])
    for name, said in (
        ("dev.tgt", "source and references changed; input reference 1 ("),
        ("test.tgt", "held-out text 1 changed; input held-out 1 reference 1 ("),
        ("phrase.toml", "start weights changed; input start weights ("),
        ("model/lm.tlm", "input model lm.tlm ("),
    ):
        file = tmp_path / name
        before = file.read_bytes()
        if name.endswith(".toml"):
            Weights({**Weights.load(file), "lm": 0.125}).save(file)
        elif name.endswith(".tlm"):
            other = make_lm(tmp_path)
            own = model.replace(f'"lm.tlm" = {len(before)}', f'"lm.tlm" = {other.stat().st_size}')
            # As somebody does who replaces it on purpose.
            (tmp_path / "model" / "model.toml").write_text(
                re.sub('"lm.tlm" = "[0-9a-f]+"\n', "", own)
            )
            shutil.copy(other, file)
        else:
            file.write_bytes(before.replace(b"house", b"hut"))
        err = resumed(*words)
        assert f"another configuration: {said}{file}) changed (resume with" in err, err
        file.write_bytes(before)
    (tmp_path / "model" / "model.toml").write_text(model)
    assert "another configuration" not in resumed(*words)


def make_lm(folder: Path) -> Path:
    """Return another language model."""
    out = folder / "other.tlm"
    ran = tunesmith("lm", "estimate", folder / "dev.tgt", "--order", 2, "--out", out)
    assert ran.code == 0, ran.err
    return out


def test_a_run_is_resumed_only_as_it_was(world: Path) -> None:
    options = ("--run", world / "other", "--epochs", 1)
    features = ("--features", "rule-id", "-t", "kbmira")
    assert tunesmith(*asked(world, "phrase", *options, *features)).code == 0
    assert Weights.load(world / "other" / "weights.toml").meta["templates"] == ["rule-id"]
    for changed in (("--nbest", 7), ("--space", "forest"), ("--search", "stack=3")):
        ran = tunesmith(*asked(world, "phrase", *options, *features, *changed, "--resume"))
        assert ran.code == 2
        assert "another configuration" in ran.err


def test_any_decoder_can_be_tuned(world: Path) -> None:
    """A toy decoder, which chooses between two fixed translations by two weights."""
    script = world / "toy.py"
    script.write_text(
        "import sys\n"
        "weights = dict(line.split() for line in open(sys.argv[1]))\n"
        "for number, line in enumerate(open(sys.argv[2])):\n"
        "    made = []\n"
        "    for text, good in ((line.strip(), 0.0), (f'{line.strip()} end', 1.0)):\n"
        "        score = good * float(weights['good']) + float(weights['noise']) * (1 - good)\n"
        "        made.append((score, text, good))\n"
        "    for score, text, good in sorted(made, reverse=True):\n"
        "        print(f'{number} ||| {text} ||| good= {good} noise= {1 - good} ||| {score}')\n"
    )
    source = world / "toy.src"
    source.write_text("a b c d\ne f g h\n")
    (world / "toy.ref").write_text("a b c d end\ne f g h end\n")
    start = world / "toy.toml"
    Weights({"good": 0.0, "noise": 1.0}).save(start)
    ran = tunesmith(
        *("tune", "--command", f"python3 {script} {{weights}} {{source}}", "-w", start),
        *("--source", source, "-r", world / "toy.ref", "--json"),
    )
    assert ran.code == 0, ran.err
    assert ran.object["start"] < 80
    assert ran.object["tuned"] == pytest.approx(100.0)
    ran = tunesmith(
        *("tune", "--command", "false {weights} {source}", "-w", start),
        *("--source", source, "-r", world / "toy.ref"),
    )
    assert ran.code == 2
    assert "status 1" in ran.err


def test_blank_references_are_refused_by_line_with_what_can_be_done(world: Path) -> None:
    blank = world / "blank.tgt"
    lines = (world / "dev.tgt").read_text().splitlines()
    blank.write_text("\n".join([*lines[:4], "", *lines[5:], ""]))
    ran = tunesmith("tune", world / "model", "-s", world / "dev.src", "-r", blank)
    assert ran.code == 2
    remedy = "fill it in, or remove the line from source and references"
    assert f"{blank}:5: the reference is blank ({remedy})" in ran.err
    ran = tunesmith("tune", world / "model", "-s", world / "dev.src", "-r", blank, "-r", blank)
    assert f"{blank}:5: all references are blank ({remedy})" in ran.err


def test_a_sentence_may_have_fewer_references_than_others(world: Path) -> None:
    some, lines = world / "some.tgt", (world / "dev.tgt").read_text().splitlines()
    some.write_text("\n".join([*(["other words"] * 4), *([""] * (len(lines) - 4)), ""]))
    for order in ([world / "dev.tgt", some], [some, world / "dev.tgt"]):
        both = [word for file in order for word in ("-r", file)]
        texts = ("-s", world / "dev.src", *both, "-w", world / "phrase.toml")
        ran = tunesmith("tune", world / "model", *texts, "--epochs", 1, "--json")
        assert ran.code == 0, ran.err
        assert ran.object["signature"].startswith("nrefs:var|")


def test_limits_that_nothing_has_are_told(world: Path) -> None:
    ran = tunesmith(*asked(world, "phrase", "--epochs", 1, "--fix", "XX*=1"))
    assert "warning: limits without effect, because no feature is called XX* (correct" in ran.err
    assert "XX" not in tunesmith(*asked(world, "phrase", "--epochs", 1, "--fix", "lm=1")).err


def test_what_a_command_has_no_features_for_is_told(moses: Path) -> None:
    start = moses / "start.txt"
    start.write_text("Good0 0\nNoise0 1\nnone 2\n")
    script = f"{sys.executable} {moses / 'plain.py'} {{weights}} {moses / 'dev.src'}"
    (moses / "plain.py").write_text(
        "import sys\n"
        "for number, line in enumerate(open(sys.argv[2])):\n"
        "    print(f'{number} ||| {line.strip()} ||| Good0= 0 Noise0= 1 ||| 0')\n"
        "    print(f'{number} ||| {line.strip()} end ||| Good0= 1 Noise0= 0 ||| -1')\n"
    )
    texts = ("--source", moses / "dev.src", "-r", moses / "dev.tgt", "-w", start)
    ran = tunesmith("tune", "--command", script, *texts, "--bound", "Godo0=0:", "--epochs", 1)
    assert "warning: the command has no {source}" in ran.err
    assert f"warning: {start}: weights without effect" in ran.err and "none" in ran.err
    assert "warning: limits of Godo0: no list has such a feature so far" in ran.err


def test_a_mistake_leaves_the_run_directory_free(world: Path, tmp_path: Path) -> None:
    start = tmp_path / "start.txt"
    start.write_text("f 1\n")
    texts = ("--source", world / "dev.src", "-r", world / "dev.tgt", "-w", start)
    run = ("--run", tmp_path / "run")
    for command in ("false {weights} {source}", "echo rubbish {weights} {source}"):
        ran = tunesmith("tune", "--command", command, *texts, *run)
        assert ran.code == 2
        assert "already holds a run" not in ran.err
    for bad in (("--bound", "lm=2:1"), ("--fix", "nosuch=1")):
        assert tunesmith(*asked(world, "phrase", *bad, *run)).code == 2
    ran = tunesmith(*asked(world, "phrase", "--epochs", 1, *run))
    assert ran.code == 0, ran.err


def test_what_does_not_fit_is_refused(world: Path) -> None:
    both = tunesmith(*asked(world, "phrase", "--command", "x"))
    assert "no decoder, or more than one" in both.err
    assert "--resume without" in tunesmith(*asked(world, "phrase", "--resume")).err
    short = world / "short"
    short.write_text("only one\n")
    ran = tunesmith("tune", world / "model", "-s", world / "dev.src", "-r", short)
    assert ran.code == 2
    assert "short" in ran.err
    assert "no features are named" in tunesmith(*asked(world, "phrase", "--features", "nix")).err
    given = ("-s", short, "-r", short, "-w", world / "phrase.toml")
    assert "--features" in tunesmith("tune", "--command", "x", *given, "--features", "bigrams").err
    assert "--space" in tunesmith("tune", "--command", "x", *given, "--space", "forest").err
    assert "no setting" in tunesmith(*asked(world, "phrase", "--search", "nix=1")).err
    shutil.rmtree(world / "nowhere", ignore_errors=True)
    assert tunesmith("tune", world / "nowhere", "-s", short, "-r", short).code == 2
