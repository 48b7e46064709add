"""What is left out: which expression, what it could be, and the text that stands there instead."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verify.measured.results import Outcome
from verify.measured.steered import Stop, Stopped
from verify.reaching.knobs import Knobs, Leaving, Unfit
from verify.reaching.leaving import Left, edits, next_one, twins
from verify.reaching.options import batch_sizes, smaller
from verify.reaching.texts import Text
from verify.reaching.values import wanted
from verify.running.runner import Runner
from verify.running.settings import Command, Settings

TEXT = """\
import gym
import torch


def load(path):
    text = open(path).read()
    return parse(text)


def train(model, env):
    s, _ = env.reset()
    loss = model(torch.from_numpy(s)).sum()
    loss.backward()


env = gym.make("x")
data = load("a.txt")
train(Net(env.space.n), env)
"""
TREES = {"train.py": ast.parse(TEXT)}


def spans(text: str, expression: str) -> list[tuple[int, int, int, int]]:
    return [
        (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.expr) and ast.unparse(node) == expression
    ]


def stop(expression: str, *hollow: tuple[str, str | None]) -> Stop:
    origins = [(name, None if made is None else ("train.py", *spans(TEXT, made)[0])) for name, made in hollow]
    return Stop("train.py", spans(TEXT, expression)[0], tuple(origins))


def following(
    *frames: Stop, missing: bool = False, graph: bool = False, walk: bool = False, known: tuple[Left, ...] = ()
) -> Any:
    return next_one(Stopped(frames, graph, missing, "why", walk=walk), TREES, [("train.py", 12)], known)


def left(expression: str, text: str = TEXT, **more: Any) -> Left:
    return Left("train.py", spans(text, expression)[0], **more)


def test_a_missing_file_is_a_call_less() -> None:
    new, known = following(stop("load('a.txt')"), missing=True)
    assert (new.place, new.span, new.deep, known) == ("train.py:17", spans(TEXT, "load('a.txt')")[0], False, ())


def test_a_missing_value_is_an_expression_less() -> None:
    new, _ = following(stop("env.space.n"), missing=True)
    assert new.span == spans(TEXT, "env.space.n")[0]


def test_what_only_gets_data_goes_as_a_whole() -> None:
    new, known = following(stop("open(path)"), stop("load('a.txt')"), missing=True)
    assert (new.place, new.deep, known) == ("train.py:17", True, ())
    # Not what makes models, nor what is called in a loop, nor what a run is to reach.
    for old, other in (("parse(text)", "nn.Linear(1, 2)"), ('data = load("a.txt")', 'for _ in x: load("a.txt")')):
        text = TEXT.replace(old, other)
        trees = {"train.py": ast.parse(text)}
        frames = [Stop("train.py", spans(text, each)[0], ()) for each in ("open(path)", "load('a.txt')")]
        found = next_one(Stopped(tuple(frames), False, True, "why"), trees, [("train.py", 12)], ())
        assert found is not None
        assert (found[0].span, found[0].deep) == (spans(text, "open(path)")[0], False)


AROUND = """\
from solver import Solver

def main(path):
    loader = get_loader(path)
    solver = {made}
    solver.train()

def get_loader(path):
    return open(path)

main("data")
"""
SOLVER = "class Solver:\n    def train(self):\n        self.x.step()\n\nclass Plain:\n    pass\n"


@pytest.mark.parametrize(("made", "line", "gone"), [
    ("Solver(loader)", 3, "get_loader(path)"), ("Plain(loader)", 3, "main('data')"),
    ("Solver(loader)", 9, "main('data')"), ("nn.Linear(2, 1)", 9, "get_loader(path)"),
])  # fmt: skip
def test_what_comes_to_the_lines_by_way_of_others_stays(made: str, line: int, gone: str) -> None:
    text = AROUND.format(made=made)
    trees = {"main.py": ast.parse(text), "solver.py": ast.parse(SOLVER)}
    frames = [Stop("main.py", spans(text, each)[-1], ()) for each in ("open(path)", "get_loader(path)", "main('data')")]
    found = next_one(Stopped(tuple(frames), False, True, "why"), trees, [("solver.py", line)], ())
    assert found is not None
    assert found[0].span == spans(text, gone)[-1]


def test_other_calls_of_what_goes_as_a_whole_go_with_it() -> None:
    text = (
        "def main():\n    a = load('a')\n    b = load('b', 2)\n    for _ in x:\n        c = load('c')\n"
        "    d = tools.load('d')\ndef other():\n    load('e')\n"
    )
    trees = {"a.py": ast.parse(text)}
    one = Left("a.py", spans(text, "load('a')")[0], {}, True, "why")
    here = Stopped((Stop("a.py", one.span, ()),), False, True, "why")
    assert [each.span for each in twins(one, here, trees, ())] == [spans(text, "load('b', 2)")[0]]
    assert not list(twins(replace(one, deep=False), here, trees, ()))
    assert not list(twins(one, here, trees, [replace(one, span=spans(text, "load('b', 2)")[0])]))


def test_other_calls_of_what_does_nothing_go_with_it() -> None:
    text = (
        "def forward(self, x):\n    x = self.one(x)\n    x = relu(x)\n    x = self.two(x)\n    self.log(x)\n"
        "    for _ in x:\n        x = self.two(x)\n    return self.linear(x)\n"
    )
    trees = {"a.py": ast.parse(text)}
    one = Left("a.py", spans(text, "self.one(x)")[0], {}, False, "why")
    absent = (("self.one", None), ("self.two", None), ("self.log", None))
    here = Stopped((Stop("a.py", spans(text, "relu(x)")[0], absent),), False, True, "why")
    assert [each.span for each in twins(one, here, trees, ())] == [spans(text, "self.two(x)")[0]]
    present = Stopped((Stop("a.py", spans(text, "relu(x)")[0], absent[1:]),), False, True, "why")
    assert not list(twins(one, present, trees, ()))


def test_what_is_asked_of_something_absent() -> None:
    new, _ = following(stop("Net(env.space.n)", ("env", "gym.make('x')"), ("gym", None)))
    assert new.span == spans(TEXT, "env.space.n")[0]


def test_what_a_bare_name_came_from() -> None:
    new, _ = following(stop("torch.from_numpy(s)", ("s", "env.reset()")))
    assert new.span == spans(TEXT, "env.reset()")[0]


def test_where_made_up_values_are_no_use_the_function_around_goes() -> None:
    known = (left("open(path)", recipe={"is": "text"}),)
    new, rest = following(stop("parse(text)"), stop("load('a.txt')"), known=known)
    assert (new.span, new.deep, rest) == (spans(TEXT, "load('a.txt')")[0], True, ())


@pytest.mark.parametrize(
    ("frames", "chosen"),
    [
        ((stop("loss.backward()"), stop("train(Net(env.space.n), env)")), {"missing": True, "graph": True}),
        ((stop("model(torch.from_numpy(s))"),), {}),
        ((stop("model(torch.from_numpy(s))"),), {"graph": True}),
        ((), {"missing": True}),
        # The function around holds a line that is to be reached.
        ((stop("loss.backward()"), stop("train(Net(env.space.n), env)")), {"known": (left("env.reset()"),)}),
    ],
    ids=["graph", "plain error", "error of the model", "no place", "what is wanted"],
)
def test_what_is_never_left_out(frames: tuple[Stop, ...], chosen: dict[str, Any]) -> None:
    assert following(*frames, **chosen) is None


def test_a_backward_that_cannot_be_walked_is_a_call_less() -> None:
    known = (left("env.reset()", recipe={"is": "array"}),)
    new, rest = following(stop("loss.backward()"), graph=True, walk=True, known=known)
    assert (new.span, new.recipe, rest) == (spans(TEXT, "loss.backward()")[0], {"is": "value", "value": None}, known)


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("loss.backward()", [("train.py", 3)]),
        ("done = loss.backward()", []),
        ("walk(loss)", []),
        ("loss.backward() if True else None", []),
    ],
    ids=["what is wanted", "used", "another name", "part of more"],
)
def test_walks_that_stay(line: str, lines: list[tuple[str, int]]) -> None:
    text = f"import torch\nloss = torch.ones(())\n{line}\n"
    call = "walk(loss)" if "walk" in line else "loss.backward()"
    stopped = Stopped((Stop("train.py", spans(text, call)[0], ()),), True, False, "why", walk=True)
    assert next_one(stopped, {"train.py": ast.parse(text)}, lines, ()) is None


def test_what_did_nothing_and_does_not_do_is_chosen_anew() -> None:
    known = (left("env.reset()", recipe={"is": "hollow"}),)
    new, rest = following(stop("torch.from_numpy(s)", ("s", "env.reset()")), known=known)
    assert (new.span, rest) == (known[0].span, ())
    assert "hollow" not in new.form["roles"]
    settled = (left("env.reset()", recipe={"is": "array"}),)
    assert following(stop("torch.from_numpy(s)", ("s", "env.reset()")), known=settled) is None


EDITED = [
    ("a = np.load(p, x)\n", "np.load(p, x)", "a = __codemod_left__(0, (np))(p, x)\n"),
    ("a = f(p)\n", "f(p)", "a = __codemod_left__(0, None)(p)\n"),
    ("n = env.space.n\n", "env.space.n", "n = __codemod_left__(0, (env.space))()\n"),
    ("n = sizes['a'] + 1\n", "sizes['a']", "n = __codemod_left__(0, (sizes))() + 1\n"),
    ("a = b(1)(2)\n", "b(1)(2)", "a = __codemod_left__(0, (b(1)))(2)\n"),
    ("a = (np\n  .load)(p)\nb = 1\n", "np.load(p)", "a = (__codemod_left__(0, (np))\n)(p)\nb = 1\n"),
    ("for x in data:\n    f(x)\n", "data", "for x in __codemod_left__(0, None)():\n    f(x)\n"),
    ("for x in a.data:\n    f(x)\n", "a.data", "for x in __codemod_left__(0, (a))():\n    f(x)\n"),
    ("ä = é.load(p)\n", "é.load(p)", "ä = __codemod_left__(0, (é))(p)\n"),
]


@pytest.mark.parametrize(("text", "expression", "edited"), EDITED, ids=[each[1] for each in EDITED])
def test_the_text(text: str, expression: str, edited: str) -> None:
    found = Text(text).edited(edits(0, left(expression, text), text, text))
    assert found == edited
    ast.parse(found)
    assert found.count("\n") == text.count("\n")


def test_one_within_the_other() -> None:
    text = "a = env.make(1).step(2)\n"
    both = [left("env.make(1)", text), left("env.make(1).step(2)", text)]
    found = [edit for number, each in enumerate(both) for edit in edits(number, each, text, text)]
    assert Text(text).edited(found) == "a = __codemod_left__(1, (__codemod_left__(0, (env))(1)))(2)\n"


def test_in_a_rewritten_text_it_is_found_or_refused() -> None:
    old = "x = 1\na = np.load(p, x)\nb = np.load(q, x)\n"
    knobs = Knobs(left=(left("np.load(q, x)", old),))
    new = "x = 1\ny = 2\na = np.load(p, x)\nb = np.load(q, y)\n"
    assert "b = __codemod_left__(0, (np))(q, y)" in knobs._within("train.py", old, new)
    with pytest.raises(Unfit):
        knobs._within("train.py", old, old.replace("b = np.load(q, x)", "b = other(q, x)"))


ROLES = [
    ("x = f()\ny = torch.from_numpy(x)", "array"),
    ("x = f()\nwhile not x: pass", "bool"),
    ("for a, b in f(): pass", "loader"),
    ("x = f()\nfor a, b in x: pass", "loader"),
    ("x = f()\nloader = DataLoader(x)", "samples"),
    ("torch.zeros(f())", "int"),
    ("f()", "hollow"),
    ("if f(): pass", "bool"),
    ("a, b = f()", "parts"),
    ("x = y = f()\nx.view(2)", "tensor"),
]


@pytest.mark.parametrize(("text", "first"), ROLES, ids=[each[0] for each in ROLES])
def test_what_it_could_be(text: str, first: str) -> None:
    tree = ast.parse(text)
    node = next(each for each in ast.walk(tree) if isinstance(each, ast.Call) and ast.unparse(each) == "f()")
    roles = wanted(node, tree, {"a.py": tree})["roles"]
    assert first in roles[:3], roles


def test_what_it_is_taken_apart_into() -> None:
    tree = ast.parse("s, (r, done), *_ = 1\ns, done = f()\nwhile not done: torch.from_numpy(s)")
    node = next(each for each in ast.walk(tree) if isinstance(each, ast.Call) and ast.unparse(each) == "f()")
    form = wanted(node, tree, {"a.py": tree})
    assert [part["roles"][0] for part in form["parts"]] == ["array", "bool"]


@pytest.mark.parametrize("over", ["data", "self.data", "enumerate(data)"])
@pytest.mark.parametrize("whole", [True, False])
def test_a_loop_that_gets_no_batch_goes_over_something_else(over: str, whole: bool) -> None:
    text = f"def train(self, data, net):\n    for x in {over}:\n        net(x)\n"
    trees = {"a.py": ast.parse(text)}
    loop = next(node for node in ast.walk(trees["a.py"]) if isinstance(node, ast.For))
    place = loop if whole else loop.iter
    span = (place.lineno, place.col_offset, place.end_lineno or 0, place.end_col_offset or 0)

    def following(missing: bool) -> Any:
        return next_one(Stopped((Stop("a.py", span, ()),), False, missing, "why"), trees, [("a.py", 3)], ())

    new, _ = following(True)
    assert new.span == (2, 13, 2, 13 + len(over))
    assert new.form["roles"] == ["loader", "samples"]
    assert following(False) is None


HANDED = """\
def train(model, loader, criterion):
    for step, (x, y) in enumerate(loader):
        criterion(model(x), y.long())

class Trainer:
    def __init__(self, batches):
        self.first = batches.lower()
        again(batches)

def again(it):
    for each in it:
        again(each)

a, b = f()
train(net, a, criterion=loss)
Trainer(batches=b)
"""


def test_it_is_followed_into_functions_that_it_is_handed_to() -> None:
    tree = ast.parse(HANDED)
    node = next(each for each in ast.walk(tree) if isinstance(each, ast.Call) and ast.unparse(each) == "f()")
    one, other = wanted(node, tree, {"a.py": tree})["parts"]
    assert one["roles"][0] == "loader"
    assert [part["name"] for part in one["item"]["parts"]] == ["x", "y"]
    assert other["roles"][0] == "text"


def test_what_an_object_keeps_its_methods_use() -> None:
    text = (
        "class Solver:\n    def __init__(self, config, batches):\n        self.batches = batches\n"
        "    def train(self):\n        for i, (images, truth) in enumerate(self.batches):\n            images.view(2)\n"
        "a = f()\nsolver = Solver(1, a)\n"
    )
    tree = ast.parse(text)
    node = next(each for each in ast.walk(tree) if isinstance(each, ast.Call) and ast.unparse(each) == "f()")
    form = wanted(node, tree, {"a.py": tree})
    assert form["roles"][0] == "loader"
    assert [part["name"] for part in form["item"]["parts"]] == ["images", "truth"]


@pytest.mark.parametrize(("text", "given", "sizes"), [
    ("DataLoader(data, batch_size=32)", (), [32]),
    ("data.DataLoader(data, 32, True)", (), [32]),
    ("DataLoader(data, args.bs)", (), [48]),
    ("DataLoader(data, batch_size=args.bs)", ("--bs", "16"), [16]),
    ("DataLoader(data, batch_size=args.bs)", ("--bs=16", "--other"), [16]),
    ("DataLoader(data, batch_size=args.bs)", ("--bs",), [48]),
    ("DataLoader(data)", (), []),
    ("DataLoader(data, batch_size=1)", (), []),
    ("DataLoader(data, batch_size=100000)", (), []),
    ("DataLoader(data, batch_size=settings['size'])", (), []),
    ("DataLoader(data, batch_size=size)", (), []),
    ("Loader(data, batch_size=32)", (), []),
])  # fmt: skip
def test_sizes_of_batches(text: str, given: tuple[str, ...], sizes: list[int]) -> None:
    tree = ast.parse(f"parser.add_argument('--bs', type=int, default=48)\n{text}\n")
    assert batch_sizes({"a.py": tree}, given) == sizes


@pytest.mark.parametrize(
    ("text", "given", "words"),
    [
        ('p.add_argument("--batch-size")\nDataLoader(d, batch_size=args.batch_size)', (), ("--batch-size", "4")),
        ('p.add_argument("-b", "--bs", dest="size")\nDataLoader(d, args.size)', (), ("--bs", "4")),
        ('p.add_argument("-n")\ndef load(n):\n    return DataLoader(d, batch_size=n)', (), ("-n", "4")),
        # whoever gives it has a reason
        ('p.add_argument("--batch-size")\nDataLoader(d, batch_size=args.batch_size)', ("--batch-size=64",), ()),
        ('p.add_argument("--batch-size")\nDataLoader(d, batch_size=args.batch_size)', ("--batch-size", "64"), ()),
        # no option tells it
        ('p.add_argument("--batch-size")\nDataLoader(d, batch_size=64)', (), ()),
        ('p.add_argument("--size")\nDataLoader(d, batch_size=args.batch_size)', (), ()),
        ('p.add_argument("--size", action="store_true")\nDataLoader(d, batch_size=args.size)', (), ()),
        ('p.add_argument("--batch-size")\nSampler(d, batch_size=args.batch_size)', (), ()),
    ],
)
def test_the_option_that_makes_batches_smaller(text: str, given: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert smaller({"a.py": ast.parse(text)}, given, 4) == words


def test_a_whole_run_does_without_what_its_tree_lacks(tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("x = load(p)\nuse(x)\n", encoding="utf-8")
    leaving = Leaving(tmp_path, (Left("t.py", (1, 4, 1, 11)),))
    plain = leaving.over({})
    assert not isinstance(plain, str)
    assert plain["t.py"].decode().endswith("(p)\nuse(x)\n")
    assert plain["t.py"] != b"x = load(p)\nuse(x)\n"
    # A change keeps its place, and other files stay as they are.
    changed = leaving.over({"t.py": b"a = 1\nx = load(p)\nuse(x + a)\n", "u.py": b"b = 2\n"})
    assert not isinstance(changed, str)
    assert changed["u.py"] == b"b = 2\n"
    assert changed["t.py"].decode().splitlines()[1] == plain["t.py"].decode().splitlines()[0]
    assert leaving.configuration()["left"][0]["place"] == "t.py:1"


@pytest.mark.parametrize("text", ["use(x)\n", "x = read(p)\nuse(x)\n", "x = load(\n"])
def test_a_change_of_what_is_left_out_makes_no_program(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("x = load(p)\nuse(x)\n", encoding="utf-8")
    leaving = Leaving(tmp_path, (Left("t.py", (1, 4, 1, 11)),))
    assert isinstance(leaving.over({"t.py": text.encode()}), str)
    runner = Runner(tmp_path, Settings())
    runner.leaving = leaving
    run = runner.run("rewritten", Command(("python", "t.py"), tmp_path, "t.py"), files={"t.py": text.encode()})
    assert run.outcome is Outcome.NOT_STARTED
    assert run.notes
