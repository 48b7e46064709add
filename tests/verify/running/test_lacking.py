"""Scripts that lack something, from end to end: named once, run once, and without the states that nobody has."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from codemods.cli._choices import settle_choices
from codemods.terms.findings import Promise
from tests.commands import codemod
from tests.verify.judging.test_verdicts import changed, rewritten, verdicts
from tests.verify.zygote import ForkedPlace, warm
from verify.running import rewriting
from verify.running.settings import Settings, script_command
from verify.verification import verify

pytestmark = pytest.mark.slow

#: Without them what a program lacks is left out, with made-up values.
NO_WAY = ("--reach", "0")

LOOP = """
total = 0
for step in range(8):
    loss = model(torch.randn(3, 2)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(total)
"""
MODEL = """
import torch
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
"""


@pytest.fixture(name="warm")
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs are forked from one that has torch."""
    warm(monkeypatch)


def verified(folder: Path, text: str, *arguments: str) -> dict[str, Any]:
    """The report on ``train.py`` with this text."""
    (folder / "train.py").write_text(dedent(text))
    report: dict[str, Any] = json.loads(codemod("verify", "--format", "json", "train.py", *arguments).stdout)
    return report


def test_what_is_missing_is_named_together_and_the_script_run_once(folder: Path) -> None:
    text = "import nowhere_one\nimport nowhere_two as two\n" + MODEL + "open('data/x.txt').read()\n" + LOOP
    report = verified(folder, text, "--no-data")
    (entry,) = report["entries"]
    assert entry["again"] is None
    assert entry["rewritten"] is None
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["not reached"]
    assert report["status"] == 3
    modules, file = report["advice"]
    assert "lacks modules nowhere_one, nowhere_two: " in modules
    assert file == "it also names what is missing: data/x.txt"


@pytest.mark.usefixtures("warm")
def test_texts_and_modules_that_do_nothing_are_stood_in_for(folder: Path) -> None:
    (folder / "src").mkdir()
    (folder / "src" / "mine.py").write_text("width = 3\n")
    text = (
        "import nowhere_one.parts as parts\nfrom nowhere_two import Writer, count\nimport mine\n"
        + MODEL
        + "open('data/x.txt').read()\nparts.show(width=mine.width)\nwriter = Writer('runs')\n"
        + LOOP.replace("range(8)", "count(range(8))").replace(
            "    total", "    writer.add('loss', loss, step)\n    total"
        )
    )
    report = verified(folder, text)
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["kept"]
    assert [len(report["limits"]), len(report["entries"][0]["original"]["records"][0]["steps"])] == [4, 8]
    words = {word.rstrip(",") for limit in report["limits"] for word in limit.split()}
    assert {"nowhere_one", "nowhere_two", "data/x.txt"} <= words


#: Asks for an argument, and stops then at what torch no longer has.
OLD = (
    "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--name', required=True)\n"
    "name = parser.parse_args().name\n" + MODEL + "{line}\n" + LOOP
)


def test_what_it_lacked_it_keeps_where_it_had_no_time(folder: Path) -> None:
    text = "import nowhere_log as log\nimport time\nlog.begin()\ntime.sleep(60)\n" + MODEL + LOOP
    report = verified(folder, text, "--timeout", "6", *NO_WAY)
    (entry,) = report["entries"]
    assert entry["original"]["outcome"] == "timed out"
    assert "nowhere_log" in " ".join(report["limits"])
    assert {each["verdict"] for each in report["rewrites"]} == {"not reached"}


@pytest.mark.usefixtures("warm")
def test_what_one_command_lacks_does_not_stand_in_for_it_in_another(folder: Path) -> None:
    (folder / "shown.py").write_text("import nowhere_one\nnowhere_one.show()\n" + MODEL + LOOP)
    without = "try:\n    import nowhere_one\nexcept ImportError:\n    model.weight.data.fill_(0.5)\n"
    (folder / "train.py").write_text(MODEL + without + LOOP)
    settings = Settings(reach=0.0)
    commands = [script_command(name, [], settings.python) for name in ("train.py", "shown.py")]
    options = settle_choices(".", **dict.fromkeys(("config", "select", "ignore", "exclude"))).options
    found = verify(commands, options=options, settings=settings, jobs=1, place=ForkedPlace)
    assert [(each.finding.path, each.verdict.value) for each in found.rewrites] == [
        ("shown.py", "kept"),
        ("train.py", "kept"),
    ]


@pytest.mark.usefixtures("warm")
def test_what_is_made_up_stays_where_the_next_error_is_one_that_a_rule_mends(folder: Path) -> None:
    report = verified(folder, OLD.format(line="print(torch.matrix_rank(model.weight.detach()))"), *NO_WAY)
    assert {rewrite["verdict"] for rewrite in report["rewrites"]} == {"kept"}, report["rewrites"]


@pytest.mark.usefixtures("warm")
def test_what_is_made_up_goes_where_the_next_error_is_another(folder: Path) -> None:
    report = verified(folder, OLD.format(line="open('../' + name).read()"), *NO_WAY)
    assert {rewrite["verdict"] for rewrite in report["rewrites"]} == {"not reached"}
    assert "give the arguments" in str(report["advice"])


@pytest.mark.usefixtures("warm")
def test_a_folder_that_is_written_to_is_made(folder: Path) -> None:
    report = verified(folder, MODEL + "log = open('logs/first/run.log', 'w')\n" + LOOP + "print(step, file=log)\n")
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["kept"]
    assert "logs/first: the folder is not there, and is made" in str(report["entries"])
    assert not (folder / "logs").exists()


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("path", ["../elsewhere/x.bin", "../elsewhere/run.log"])
def test_nothing_is_made_outside(folder: Path, path: str) -> None:
    mode = "rb" if path.endswith("bin") else "w"
    report = verified(folder, MODEL + f"file = open({path!r}, {mode!r})\n" + LOOP, *NO_WAY)
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["not reached"]
    assert "is not there, and is made" not in str(report["entries"])


def test_a_module_that_is_computed_with_is_not_stood_in_for(folder: Path) -> None:
    report = verified(
        folder, MODEL + "import nowhere_one\nmodel = torch.nn.Linear(nowhere_one.width(), 1)\n" + LOOP, *NO_WAY
    )
    assert "lacks the module nowhere_one: " in report["advice"][0]
    assert report["status"] == 3


@pytest.mark.usefixtures("warm")
def test_a_missing_variable_is_named_and_given(folder: Path) -> None:
    text = MODEL + "import os\nlr = float(os.environ['MY_RATE'])\n" + LOOP
    report = verified(folder, text, *NO_WAY)
    assert report["advice"] == [
        "it asks for the variable MY_RATE: pass yours on with --env MY_RATE, or --env MY_RATE=VALUE"
    ]
    assert verified(folder, text, "--env", "MY_RATE=0.1")["status"] == 0


@pytest.mark.usefixtures("warm")
def test_states_that_are_not_there_are_those_of_what_loads_them(folder: Path) -> None:
    text = (
        MODEL
        + """
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 3)
checkpoint = torch.load("pretrained/model.pth", map_location="cpu")
print(model.load_state_dict(checkpoint["model"] if "model" in checkpoint else checkpoint, strict=False))
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint.get("scheduler"))
start, best = checkpoint["epoch"] + 1, checkpoint["best"]
print(f"from {start}, best {best:.2f}", 0.5 > best, range(start), int(best))
"""
        + LOOP
    )
    report = verified(folder, text)
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["kept"]
    assert any("stand-in data for pretrained/model.pth" in limit for limit in report["limits"])
    assert "All keys matched successfully" in report["entries"][0]["original"]["output"]
    assert "from 1, best 0.00 True range(0, 1) 0" in report["entries"][0]["original"]["output"]
    assert verified(folder, text, "--no-data")["status"] == 3


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize(
    "use",
    [
        "data = [x for x in torch.load('../data.pt')]",
        "data = torch.load('../data.pt').items()",
        "data = torch.utils.data.TensorDataset(*torch.load('../data.pt'))",
        "model = torch.load('../data.pt'); model.eval()",
        "data = torch.tensor(torch.load('../data.pt')['x'])",
        "model(torch.load('../data.pt')[0])",
    ],
)
def test_data_that_is_not_there_is_no_state(folder: Path, use: str) -> None:
    report = verified(folder, MODEL + use + LOOP, *NO_WAY)
    assert "FileNotFoundError" in report["reason"]
    assert report["advice"][0].startswith("../data.pt is not there: ")


@pytest.mark.usefixtures("warm")
def test_a_script_that_goes_on_without_its_checkpoint_is_run_as_it_is(folder: Path) -> None:
    text = MODEL + "try:\n    torch.load('x.pt')\nexcept FileNotFoundError:\n    print('a fresh start 1')\n" + LOOP
    report = verified(folder, text)
    assert "a fresh start 1" in report["entries"][0]["original"]["output"]
    assert report["status"] == 0
    assert not any("x.pt" in limit for limit in report["limits"])


@pytest.mark.usefixtures("warm")
def test_one_command_of_two_that_lacks_something_says_so(folder: Path) -> None:
    (folder / "other.py").write_text("import nowhere_one\nimport train\n")
    report = verified(folder, MODEL + LOOP, "--entry", "other.py", "--no-data")
    assert report["status"] == 0
    assert report["judged"]
    assert any("lacks the module nowhere_one: " in note for note in report["notes"])


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("import time; time.sleep(60)", ("--timeout", "4"), "timed out, within --timeout 4"),
        ("x = bytearray(900_000_000); import time; time.sleep(9)", ("--memory", "500M"), "limit is 500 MiB (--memory)"),
        (
            "open('big', 'wb').write(bytes(90_000_000)); import time; time.sleep(9)",
            ("--disk", "20M"),
            "limit is 20 MiB (--disk)",
        ),
    ],
)
def test_limits_have_words_of_their_own(folder: Path, text: str, options: tuple[str, ...], words: str) -> None:
    report = verified(folder, f"import torch\n{text}\n" + MODEL + LOOP, *options)
    assert words in report["reason"], report["reason"]
    assert options[0] in report["advice"][0]


GRAY = """
import torch
from torchvision import datasets, transforms

class Own:
    def __call__(self, image):
        {own}
        return image

steps = [transforms.ToTensor(), transforms.Normalize({means}, (0.5, 0.5, 0.5)), Own()]
data = datasets.MNIST("d", download=True, transform=transforms.Compose(steps))
loader = torch.utils.data.DataLoader(data, batch_size=64)
model = torch.nn.Linear(784, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for step, (x, y) in enumerate(loader):
    if len(x) != 64:
        continue
    loss = model(x.view(64, -1)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(total)
"""
RGB = "(0.5, 0.5, 0.5)"


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed")
@pytest.mark.usefixtures("warm")
def test_a_transform_that_fits_no_made_up_image_is_left_out(folder: Path) -> None:
    report = verified(folder, GRAY.format(means=RGB, own="pass"), "--batches", "8", *NO_WAY)
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["kept"]
    assert any("transforms.Normalize (left out, it does not fit" in limit for limit in report["limits"])
    # What the program wrote itself raises what it raises.
    report = verified(folder, GRAY.format(means=RGB, own="raise ValueError('odd')"), *NO_WAY)
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["not reached"]
    assert "(RuntimeError), before train.py" in report["rewrites"][0]["why"]


@pytest.mark.skipif(importlib.util.find_spec("torchvision") is None, reason="torchvision is not installed")
@pytest.mark.usefixtures("warm")
def test_a_change_to_what_is_left_out_is_not_kept(folder: Path) -> None:
    text = GRAY.format(means="tuple(means)", own="pass").replace("\nsteps", "\nmeans = [0.5] * 3\nsteps")
    result = changed(folder, text, text.replace("tuple(means)", "tuple(each / 2 for each in means)"), Promise.EXACT)
    assert "kept" not in verdicts(result).values(), [each.why for each in result.rewrites]


@pytest.mark.usefixtures("warm")
@pytest.mark.parametrize("test", ["args.mode == 'fast'", "args.mode in ('fast', 'slow')"])
def test_a_required_text_is_one_that_it_is_compared_with(folder: Path, test: str) -> None:
    parse = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--mode', required=True)\n"
    parse += f"args = parser.parse_args()\nif {test}:\n    turns = 8\nelse:\n    raise ValueError(args.mode)\n"
    report = verified(folder, parse + MODEL + LOOP.replace("range(8)", "range(turns)"), *NO_WAY)
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["kept"]


@pytest.mark.usefixtures("warm")
def test_required_arguments_are_made_up(folder: Path) -> None:
    parse = "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--name', required=True)\n"
    parse += "parser.add_argument('count', type=int)\nargs = parser.parse_args()\n"
    report = verified(folder, parse + MODEL + LOOP.replace("range(8)", "range(args.count * 4)"), *NO_WAY)
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["kept"]
    assert any("the argument count" in limit for limit in report["limits"])
    report = verified(folder, parse + MODEL + LOOP, "--no-data")
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["not reached"]
    assert report["advice"] == ["give the arguments that it asks for after --: --name, count"]


POLICY = """
import gym
import numpy as np
import torch

env = gym.make("CartPole-v0")
policy = torch.nn.Linear(env.observation_space.shape[0], env.action_space.n)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)
total = 0
for episode in range(6):
    state, done, logs, rewards = env.reset(), False, [], []
    while not done:
        spread = torch.distributions.Categorical(logits=policy(torch.from_numpy(state)))
        action = spread.sample()
        state, reward, done, _ = env.step(np.int(action.item()))
        logs.append(spread.log_prob(action))
        rewards.append(reward)
    loss = -torch.stack(logs).sum() * {factor}sum(rewards)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(total)
"""


@pytest.mark.skipif(importlib.util.find_spec("gym") is not None, reason="gym is installed")
@pytest.mark.usefixtures("warm")
def test_an_old_script_that_learns_in_an_environment(folder: Path) -> None:
    report = verified(folder, POLICY.format(factor=""), *NO_WAY)
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["kept"], report
    assert any("CartPole-v0" in limit for limit in report["limits"])
    assert any("numpy.int (no longer there" in limit for limit in report["limits"])
    # What a policy learns from a made-up environment is compared as with a real one.
    result = changed(folder, POLICY.format(factor=""), POLICY.format(factor="0.5 * "), Promise.EXACT)
    assert "kept" not in verdicts(result).values(), [each.why for each in result.rewrites]
    report = verified(folder, POLICY.format(factor=""), "--no-data")
    assert [rewrite["verdict"] for rewrite in report["rewrites"]] == ["not reached"]


@pytest.mark.usefixtures("warm")
def test_files_are_analysed_once_where_a_rewrite_mends_what_ends_a_run(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain: list[int] = []
    analyse = rewriting.analyse

    def counted(targets: Any, **how: Any) -> Any:
        plain.extend([len(targets)] * (not how.get("overlay")))
        return analyse(targets, **how)

    monkeypatch.setattr(rewriting, "analyse", counted)
    loop = LOOP.replace("    optimizer.zero_grad()\n", "    print(loss.data[0])\n    optimizer.zero_grad()\n")
    report = verified(folder, "import nowhere_one\n" + MODEL + loop, *NO_WAY)
    verdicts = {each["findings"][0]["rule"]: each["verdict"] for each in report["rewrites"]}
    assert verdicts["legacy-variable"] in ("kept", "partly reached")
    assert len(plain) == 1


FILED = """
import os
import torch
model = torch.nn.Linear(2, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
assert os.path.exists("data"), "no data"
rows = [line.split(",") for line in open(os.path.join("data", "rows.csv"))]
total = 0
for row in rows * 4:
    loss = torch.nn.functional.cross_entropy(model(torch.ones(1, 2)), torch.tensor([int(row[1])]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss
print(total)
"""


@pytest.mark.usefixtures("warm")
def test_files_are_made_by_trial_and_told(folder: Path) -> None:
    (rewrite,) = rewritten(folder, FILED).rewrites
    assert rewrite.verdict.value == "kept"
    assert any("data/rows.csv: text" in each for each in rewrite.made)


@pytest.mark.usefixtures("warm")
def test_a_wrong_change_does_not_pass_for_files_that_were_made(folder: Path) -> None:
    wrong = changed(folder, FILED, FILED.replace("int(row[1])", "int(row[0]) // 2"))
    assert set(verdicts(wrong).values()) == {"broken"}
    right = changed(folder, FILED, FILED.replace("torch.ones(1, 2)", "torch.ones((1, 2))"))
    assert set(verdicts(right).values()) == {"kept"}


@pytest.mark.usefixtures("warm")
def test_files_are_not_made_where_the_program_does_not_come_to_train(folder: Path) -> None:
    report = rewritten(folder, FILED.replace("total = 0", "raise KeyError(rows[0][0])\ntotal = 0"))
    assert not any(record.made for entry in report.entries for record in entry.original.records)
