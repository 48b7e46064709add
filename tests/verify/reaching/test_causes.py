"""Why lines did not run, in a sentence, and what would open the way."""

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from tests.verify.builders import OTHER, record, run
from verify.measured.results import Outcome
from verify.measured.values import Site
from verify.reaching.causes import INNER, OUTER, Cause, Causes, asked, heads
from verify.reaching.knobs import Bound, Cap
from verify.reaching.options import arguments, declared, together

TRAIN = """\
import argparse
from tools import report

def evaluate(model):
    return model(1)

def train(args, model):
    for epoch in range(args.epochs):
        for x in args.data:
            model(x).backward()
        if epoch % 10 == 0:
            report(model)
        if args.kind == "lstm":
            model.cell()
        if args.test and not args.quiet:
            evaluate(model)
        if model.strange:
            model.odd()
        try:
            model.save()
        except OSError:
            model.again()
    model.after()

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int)
parser.add_argument("--kind", default="gru")
parser.add_argument("-t", "--test-it", dest="test", action="store_true")
parser.add_argument("--quiet", action="store_true")
parser.add_argument("folder")
train(parser.parse_args(), None)
"""
TOOLS = "def report(model):\n    model.draw()\n\ndef unused(model):\n    model.draw()\n"
TREES = {"train.py": ast.parse(TRAIN), "tools.py": ast.parse(TOOLS), "other.py": ast.parse(TRAIN)}
#: Everything up to the inner loop has run, and in an earlier turn each condition was asked.
BEGUN = {("train.py", line) for line in (8, 9, 10, 11, 13, 15, 17)}
#: The body of the outer loop has come to its end.
TURNED = BEGUN | {("train.py", 20)}


def cause(path: str, line: int, *, turned: bool = False, **more: object) -> Cause:
    """Why ``line`` did not run, where the run was ended in line 10 (``turned``: in a later turn of the outer loop)."""
    made = record([1.0, 2.0], end="steps")
    made.reached = TURNED if turned else BEGUN
    made.loaded = ("train.py", "tools.py")
    made.stack = (Site("train.py", 10, "train"), Site("train.py", 30, "<module>"))
    return Causes(replace(run(made), **more), TREES).of(path, line)  # type: ignore[arg-type]


def test_behind_the_loop_that_was_running() -> None:
    found = cause("train.py", 23)
    assert found.text == "train.py:23 comes after train.py:10, where the run was ended after 2 steps"
    assert found.advice == "-- --epochs 1 would end that loop"
    assert found.caps == (Cap("train.py", 8, OUTER), Cap("train.py", 9, INNER))
    assert found.bounds == ()


@pytest.mark.parametrize(("steps", "turns"), [(0, 1), (2, 1), (9, 3), (90, INNER)])
def test_fewer_turns_where_there_was_no_time(steps: int, turns: int) -> None:
    made = record([1.0] * steps, end="watchdog")
    made.reached, made.loaded, made.stack = BEGUN, ("train.py",), (Site("train.py", 10, "train"),)
    found = Causes(run(made, outcome=Outcome.TIMEOUT), TREES).of("train.py", 23)
    assert found.caps == (Cap("train.py", 8, 1), Cap("train.py", 9, turns))
    assert "the run was out of time" in found.text


def test_a_bound_behind_the_inner_loop() -> None:
    found = cause("train.py", 12)
    assert found.text == "the condition `epoch % 10 == 0` at train.py:11 was never true"
    assert found.bounds == (Bound("train.py", 11),)
    assert found.caps == (Cap("train.py", 9, INNER),)


def test_what_is_left_out_is_said_to_be() -> None:
    gone = {"span": ["train.py", 31, 0, 31, 9], "why": "FileNotFoundError: data"}
    made = replace(record([]), loaded=["train.py"], reached={("train.py", 24)}, left=[gone])
    found = Causes(run(made), TREES).of("train.py", 8)
    assert found.text == (
        "train (line 7 of train.py) was never called: train.py:31 is left out, because the program stops there "
        "(FileNotFoundError)"
    )


def test_a_function_is_followed_to_the_call_of_it() -> None:
    found = cause("tools.py", 2)
    assert found.text.startswith("report (line 1 of tools.py) was never called: the condition `epoch % 10 == 0`")
    assert found.bounds == (Bound("train.py", 11),)


def test_options_that_open_a_condition() -> None:
    assert cause("train.py", 14).arguments == ("--kind", "lstm")
    assert cause("train.py", 14).advice == "-- --kind lstm may make it so"
    assert cause("train.py", 5).arguments == ("--test-it",)


def test_what_nothing_opens() -> None:
    odd = cause("train.py", 18)
    assert (odd.text, odd.bounds, odd.arguments) == (
        "the condition `model.strange` at train.py:17 was never true", (), ()
    )  # fmt: skip
    assert cause("train.py", 22, turned=True).text == "the error that train.py:21 waits for did not come"
    assert cause("tools.py", 5) == Cause("unused (line 4 of tools.py) was never called: nothing in sight calls it")
    assert cause("missing.py", 1) == Cause("missing.py:1 did not run")


def test_a_file_that_was_not_loaded() -> None:
    assert cause("other.py", 23).advice == "--entry 'other.py' would run it"
    made = record([], error=OTHER)
    found = Causes(run(made, outcome=Outcome.RAISED), TREES).of("tools.py", 2)
    assert found == Cause("tools.py was not loaded: the run stops at train.py:8 (ValueError)")


def test_an_error_in_front() -> None:
    made = record([1.0], error=OTHER)
    made.reached, made.loaded = {("train.py", 8)}, ("train.py", "tools.py")
    found = Causes(run(made, outcome=Outcome.RAISED), TREES).of("train.py", 23)
    assert found == Cause("the run stops at train.py:8 (ValueError), before train.py:23")


@pytest.mark.parametrize(("test", "wanted", "words"), [
    ("args.test", True, ("--test-it",)),
    ("args.test", False, ()),
    ("not args.test", False, ("--test-it",)),
    ("args.kind == 'lstm'", True, ("--kind", "lstm")),
    ("args.kind != 'lstm'", False, ("--kind", "lstm")),
    ("args.kind != 'lstm'", True, ()),
    ("args.kind in ('lstm',)", True, ()),
    ("args.test or args.quiet", True, ("--test-it",)),
    ("args.test and args.quiet", True, ("--test-it", "--quiet")),
    ("args.other", True, ()),
    ("args.folder == 'x'", True, ()),
    ("compute(args.test)", True, ()),
])  # fmt: skip
def test_arguments(test: str, wanted: bool, words: tuple[str, ...]) -> None:
    assert arguments(TREES, ast.parse(test, mode="eval").body, wanted) == words


@pytest.mark.parametrize(("declared", "test", "wanted", "words"), [
    ("type=bool, default=True", "args.gpu", False, ("--gpu", "")),
    ("type=bool, default=True", "not args.gpu", True, ("--gpu", "")),
    ("type=bool", "self.gpu", True, ("--gpu", "1")),
    ("type=int, default=1", "args.gpu", False, ("--gpu", "0")),
    ("type=float", "args.gpu", True, ("--gpu", "1")),
    ("type=str2bool", "args.gpu", False, ("--gpu", "False")),
    # any text is true, and the empty one is none that anybody gives
    ("type=str, default='a'", "args.gpu", False, ()),
    ("default=True", "args.gpu", False, ()),
    ("action='store_false'", "args.gpu", False, ("--gpu",)),
    ("action='store_false'", "not args.gpu", True, ("--gpu",)),
    ("action='store_false'", "args.gpu", True, ()),
    ("action=argparse.BooleanOptionalAction", "args.gpu", True, ("--gpu",)),
    ("action=argparse.BooleanOptionalAction", "args.gpu", False, ("--no-gpu",)),
    ("action='count'", "args.gpu", True, ()),
    ("action=Fancy", "args.gpu", True, ()),
])  # fmt: skip
def test_options_that_are_true_or_not(declared: str, test: str, wanted: bool, words: tuple[str, ...]) -> None:
    trees = {"a.py": ast.parse(f"parser.add_argument('--gpu', {declared})")}
    assert arguments(trees, ast.parse(test, mode="eval").body, wanted) == words


def test_an_option_that_switches_something_off_is_called_by_another_name() -> None:
    trees = {"a.py": ast.parse("parser.add_argument('--no-gpus', action='store_false', dest='gpu')")}
    for test, wanted, words in (
        ("args.gpu", False, ("--no-gpus",)),
        ("args.gpu", True, ()),
        ("args.no_gpus", True, ()),
    ):
        assert arguments(trees, ast.parse(test, mode="eval").body, wanted) == words


@pytest.mark.parametrize(("sets", "given", "found"), [
    ([("--test",), ("--every", "1")], [], ("--test", "--every", "1")),
    ([("--kind", "gru"), ("--kind", "lstm"), ("--test",)], [], ("--kind", "gru", "--test")),
    ([("--kind", "gru"), ("--test",)], ["--kind=lstm"], ("--test",)),
    ([("--test", "--kind", "gru"), ("--kind", "lstm")], [], ("--test", "--kind", "gru")),
    ([("--rate", "-1"), ("--test",)], [], ("--rate", "-1", "--test")),
    ([], ["--test"], ()),
])  # fmt: skip
def test_arguments_for_several_conditions_at_once(
    sets: list[tuple[str, ...]], given: list[str], found: tuple[str, ...]
) -> None:
    assert together(sets, given) == found


def test_options_as_they_are_declared() -> None:
    assert [(each.name, each.target, each.flag) for each in declared(TREES["train.py"])] == [
        ("--epochs", "epochs", False), ("--kind", "kind", False),
        ("--test-it", "test", True), ("--quiet", "quiet", True),
    ]  # fmt: skip


def test_the_heads_of_blocks() -> None:
    assert heads(ast.parse('def f():\n    """Text."""\n    global x\n    x = 1\n    if x:\n        pass\n')) == {4, 6}


def test_a_function_is_no_reason_for_itself() -> None:
    trees = {"a.py": ast.parse("def train(model):\n    model.train()\n    model(1)\nload()\ntrain(2)\n")}
    made = replace(record([]), loaded=["a.py"], reached=set())
    found = Causes(run(made), trees).of("a.py", 3)
    assert found.text.count("was never called") == 1


LOOPS = """\
def batches():
    return open("data")

def train(model, go):
    if go:
        return
    if model.ready:
        for x in batches():
            model(x)
    while go:
        model.step()

train(load(), True)
"""


def of(line: int, seen: set[int], *stack: tuple[int, str], error: bool = False) -> Cause:
    """Why ``line`` of LOOPS did not run, where ``seen`` did, and the run was over in ``stack``."""
    made = record([], **({"error": OTHER} if error else {}))
    made.reached, made.loaded = {("train.py", each) for each in seen}, ("train.py",)
    made.stack = tuple(Site("train.py", *each) for each in stack)
    outcome = Outcome.RAISED if error else Outcome.OK
    return Causes(run(made, outcome=outcome), {"train.py": ast.parse(LOOPS)}).of("train.py", line)


@pytest.mark.parametrize(("line", "seen", "text"), [
    # Nobody came to the loop, nor to the condition.
    (9, {5, 6}, "train.py:9 did not run: control left before it"),
    (11, {5, 6}, "train.py:11 did not run: control left before it"),
    (9, {5, 7}, "the condition `model.ready` at train.py:7 was never true"),
    (9, {5, 7, 8}, "the loop at train.py:8 made no turn"),
    (11, {5, 7, 10}, "the loop at train.py:10 made no turn"),
])  # fmt: skip
def test_what_was_come_to(line: int, seen: set[int], text: str) -> None:
    assert of(line, seen).text == text


def test_an_error_in_what_a_loop_goes_over() -> None:
    found = of(9, {2, 5, 7, 8}, (2, "batches"), (8, "train"), (13, "<module>"), error=True)
    assert "made no turn" not in found.text
    assert found.text.startswith("the run stops at ")


def test_watched_are_heads_and_what_stands_before_them() -> None:
    tree = ast.parse(LOOPS)
    assert asked(tree) == heads(tree) | {5, 7, 8, 10}
    assert asked(ast.parse("for x in (\n    1,\n):\n    pass\n")) == {1, 2, 3, 4}


def test_a_condition_behind_the_end_that_was_never_asked() -> None:
    made = record([1.0, 2.0], end="steps")
    made.reached, made.loaded = {("train.py", line) for line in (8, 9, 10)}, ("train.py",)
    made.stack = (Site("train.py", 10, "train"),)
    found = Causes(run(made), TREES).of("train.py", 12)
    assert found.text == "train.py:12 comes after train.py:10, where the run was ended after 2 steps"
    assert (found.bounds, found.caps) == ((Bound("train.py", 11),), (Cap("train.py", 9, INNER),))


@pytest.mark.parametrize(("text", "led"), [
    ("import tools\n", True),
    ("def f():\n    from tools import report\n", True),
    ("import between\n", True),
    ("from . import tools as t\n", True),
    ("import json\n", False),
    ("tools = 1\n", False),
])  # fmt: skip
def test_a_file_that_nothing_leads_to(text: str, led: bool) -> None:
    trees = {"main.py": ast.parse(text), "between.py": ast.parse("import tools\n"), "tools.py": ast.parse("run()\n")}
    made = replace(record([], error=OTHER), loaded=["main.py"])
    found = Causes(run(made, outcome=Outcome.RAISED), trees).of("tools.py", 1)
    assert found.text.startswith("tools.py was not loaded: " + ("the run stops" if led else "nothing that ran"))
    assert ("--entry" in found.advice) is not led


def test_a_forward_is_not_called_where_its_class_is_not() -> None:
    text = (
        "import argparse\nclass Net:\n    def forward(self, x):\n        return x\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument('--mlp', action='store_true')\n"
        "opt = parser.parse_args()\nif opt.mlp:\n    net = Net()\nnet(1)\n"
    )
    made = replace(record([1.0]), loaded=["train.py"], reached={("train.py", 8)})
    found = Causes(run(made), {"train.py": ast.parse(text)}).of("train.py", 4)
    assert found.text.startswith("forward (line 3 of train.py) was never called: the condition `opt.mlp`")
    assert found.arguments == ("--mlp",)


def test_a_script_that_stops_before_torch_is_there_was_loaded() -> None:
    made = replace(record([], error=OTHER), loaded=[], stack=(Site("train.py", 2, "<module>"),))
    found = Causes(run(made, outcome=Outcome.RAISED), TREES).of("train.py", 30)
    assert found.text == "the run stops at train.py:8 (ValueError), before train.py:30"


NESTED = """\
def attack(model, kind):
    if kind == "one":
        for _ in range(40):
            model.backward()
    elif kind == "two":
        model.other()
    model.train()

def train(model):
    for x in data:
        attack(model, "one")

def main():
    for epoch in range(100):
        train(model)
        test(model)

def test(model):
    model.eval()

main()
"""


def nested(line: int, end: str = "watchdog") -> Cause:
    """Why ``line`` did not run, where the run was over in the innermost of three loops, each in a function."""
    made = record([1.0] * 9, end=end)
    made.reached = {("train.py", each) for each in (2, 3, 4, 10, 11, 14, 15)}
    made.loaded = ("train.py", "twin.py")
    made.stack = tuple(
        Site("train.py", *each) for each in [(4, "attack"), (11, "train"), (15, "main"), (21, "<module>")]
    )
    trees = {"train.py": ast.parse(NESTED), "twin.py": ast.parse("def test(model):\n    pass\n\ntest(1)\n")}
    outcome = Outcome.TIMEOUT if end == "watchdog" else Outcome.OK
    return Causes(run(made, outcome=outcome), trees).of("train.py", line)


@pytest.mark.parametrize(("end", "turns"), [("watchdog", (1, 3)), ("steps", (OUTER, INNER))])
def test_loops_of_what_was_running_stand_in_front(end: str, turns: tuple[int, int]) -> None:
    found = nested(19, end)
    assert "train.py:16 comes after train.py:15" in found.text
    assert found.caps == (Cap("train.py", 10, turns[0]), Cap("train.py", 3, turns[1]))


def test_the_other_way_of_a_condition_does_not_come_after() -> None:
    assert nested(6).text == "the condition `kind == 'two'` at train.py:5 was never true"
    assert nested(7).text.startswith("train.py:7 comes after train.py:4")


def test_a_function_of_the_same_name_elsewhere_is_another_one() -> None:
    assert "twin.py" not in nested(19).text


CHOSEN = """\
class One:
    def __init__(self):
        self.x = 1

    def train(self):
        self.net.train()

class Two:
    def __init__(self):
        self.x = 2

    def train(self):
        self.net.train()

if args.kind == "one":
    trainer = One()
elif args.kind == "two":
    trainer = Two()
elif args.kind == "three":
    trainer = None
else:
    trainer = 0
trainer.train()
parser.add_argument("--kind")
"""


@pytest.mark.parametrize(("line", "text", "words"), [
    (13, "train (line 12 of train.py) was never called, because no Two was made: the condition `args.kind == 'two'` "
     "at train.py:17 was never true", ("--kind", "two")),
    (20, "the condition `args.kind == 'three'` at train.py:19 was never true", ("--kind", "three")),
    (22, "the condition `args.kind == 'three'` at train.py:19 was never false", ()),
])  # fmt: skip
def test_of_several_conditions_the_one_that_decides(line: int, text: str, words: tuple[str, ...]) -> None:
    made = replace(record([1.0]), loaded=["train.py"], reached={("train.py", each) for each in (3, 6, 15, 16)})
    found = Causes(run(made), {"train.py": ast.parse(CHOSEN)}).of("train.py", line)
    assert (found.text, found.arguments) == (text, words)
    value = "--kind two" if line == 13 else "--kind three" if words else "--kind VALUE"
    assert found.advice == f"-- {value} may make it so"


@pytest.mark.parametrize(
    ("outcome", "status", "text"),
    [
        (Outcome.NOT_STARTED, None, "tools.py was not loaded: the program could not be started"),
        # A launcher tells of the error in its own way.
        (Outcome.RAISED, 2, "tools.py was not loaded: the run ended (status 2)"),
        (Outcome.MEMORY, None, "tools.py was not loaded: the run ended (out of memory)"),
        (Outcome.OK, 0, "tools.py was not loaded: nothing that ran imports it"),
    ],
)
def test_what_a_program_that_failed_would_have_loaded(outcome: Outcome, status: int | None, text: str) -> None:
    made = replace(run(replace(record([]), loaded=[], end=None), outcome=outcome), status=status)
    assert Causes(made, TREES).of("tools.py", 2).text == text
