"""`tunesmith tune` as one types it: our decoders and others in the loop."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from running import Ran, on_a_terminal, tunesmith
from twins.toy import make_world

from tunesmith import Weights
from tunesmith.reading import read_weights
from tunesmith.runs import RunDirectory, fingerprint

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
    assert found["heldout"][0] > found["heldout_start"][0] + 5
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
    assert len(ran.object["heldout"]) == 2
    assert ran.object["heldout"][1] == ran.object["tuned"]
    ran = tunesmith(*asked(world, "phrase", "--heldout", world / "test.src", "--json"))
    assert ran.code == 2
    assert "--heldout SOURCE REFERENCE" in ran.err


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
    # Batch tuners know neither gains nor spread.
    ran = tunesmith(*asked(world, "phrase", "--epochs", 1, "--json"))
    assert ran.err.splitlines()[2].split() == ["epoch", "score", "non-zero", "decode", "optimise"]
    assert "prediction" in on_a_terminal(*words, columns=120)


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
    assert events[-1]["heldout_all"] == ran.object["heldout"]
    assert events[-1]["heldout_start_all"] == ran.object["heldout_start"]
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<dt>Held out 2</dt>" in page
    assert '<th scope="col" class="n">Held out 2</th>' in page
    assert '<g class="series" data-name="held out 2"' in page


def test_a_held_out_source_again_has_another_reference(world: Path) -> None:
    held = ("--heldout", world / "test.src")
    twice = (*held, world / "test.tgt", *held, world / "dev.tgt")
    ran = tunesmith(*asked(world, "phrase", *twice, "--epochs", 1, "--json"))
    assert ran.code == 0, ran.err
    once = tunesmith(*asked(world, "phrase", *twice[:3], "--epochs", 1, "--json"))
    assert len(ran.object["heldout"]) == 1
    assert ran.object["heldout_start"][0] > once.object["heldout_start"][0]
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

    shutil.copytree(tmp_path / "model", tmp_path / "moved")
    assert "another configuration" not in resumed("tune", tmp_path / "moved", *words[2:])
    for name, said in (
        ("dev.tgt", "references changed; input reference 1 ("),
        ("test.tgt", "held-out text 1 changed; input held-out 1 reference 1 ("),
        ("phrase.toml", "start weights changed; input start weights ("),
        ("model/lm.tlm", "input model lm.tlm ("),
    ):
        file = tmp_path / name
        before = file.read_bytes()
        if name.endswith(".toml"):
            Weights({**Weights.load(file), "lm": 0.125}).save(file)
        elif name.endswith(".tlm"):
            shutil.copy(make_lm(tmp_path), file)
        else:
            file.write_bytes(before.replace(b"house", b"hut"))
        err = resumed(*words)
        assert f"another configuration: {said}{file}) changed (resume with" in err, err
        file.write_bytes(before)
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
    remedy = "fill it in, or take the line out of source and references"
    assert f"{blank}:5: the reference is blank ({remedy})" in ran.err


def test_what_does_not_fit_is_refused(world: Path) -> None:
    assert "one decoder" in tunesmith(*asked(world, "phrase", "--command", "x")).err
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
