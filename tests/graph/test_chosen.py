"""What is chosen when the program runs: attributes, functions and classes by a name, values by their type."""

from __future__ import annotations

import pytest

from codemods.graph.model.values import Join, Tensor, Tuple
from tests.graph.tools import run, run_tree, unseen

HOLDER = """
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.part_a = nn.Linear(3, 3)
            self.part_b = nn.Linear(3, 3)
            self.other = w * 2
            for i in range(4):
                {put}
        def part_c(self, t):
            return t * w
        def {kept}(self, t):
            return t
    which = open("name").read()
    n = 3
    holder = Holder()
    out = {out}
"""


@pytest.mark.parametrize(
    "name",
    [
        "'part_{}'.format(which)",
        "'part_{:s}'.format(which)",
        "'part_{w}'.format(w=which)",
        "'part_%s' % which",
        "'part_%02d' % n",
        "f'part_{which}'",
        "'part_' + str(which)",
    ],
)
def test_an_attribute_by_a_name_that_is_put_together(name: str) -> None:
    found = run(HOLDER.format(out=f"getattr(holder, {name})(x)", put="pass", kept="more"))
    assert found.graph("out") == "attached"
    assert not unseen(found, "out")


def test_attributes_that_were_set_by_a_name_that_is_put_together() -> None:
    put = "setattr(self, f'block{i}', nn.Linear(3, 3))"
    found = run(HOLDER.format(out="getattr(holder, 'block%d' % n)(x)", put=put, kept="more"))
    assert found.graph("out") == "attached"
    assert not unseen(found, "out")


@pytest.mark.parametrize(
    ("name", "kept"),
    [("which", "more"), ("f'{which}'", "more"), ("f'head_{which}'", "more"), ("which.format(1)", "more")],
)
def test_a_name_that_says_nothing_leads_anywhere(name: str, kept: str) -> None:
    found = run(HOLDER.format(out=f"getattr(holder, {name})", put="pass", kept=kept))
    assert unseen(found, "out")


def test_all_that_bears_such_a_name_counts() -> None:
    found = run(HOLDER.format(out="getattr(holder, f'{which}er')", put="pass", kept="scatter"))
    assert found.graph("out") == "perhaps"
    assert isinstance(found.value("out"), Join)


def test_what_a_name_may_stand_for_can_be_too_much() -> None:
    parts = "\n            ".join(f"self.part_{i} = w * {i}" for i in range(20))
    found = run(HOLDER.format(out="getattr(holder, f'part_{which}')", put="pass", kept="x").replace("pass", parts))
    assert unseen(found, "out")


ZOO = {
    "zoo/__init__.py": "from .small import *\nfrom .large import Large\nsize = 3\n",
    "zoo/small.py": "import torch.nn as nn\ndef small():\n    return nn.Linear(3, 1)\ndef block(inner):\n    pass\n",
    "zoo/large.py": "import torch.nn as nn\nclass Large(nn.Module):\n"
    "    def __init__(self, wide=False):\n        super().__init__()\n        self.l = nn.Linear(3, 3)\n"
    "    def forward(self, t):\n        return self.l(t)\n",
}
START = "import torch\nimport sys\nimport zoo\nx = torch.ones(3)\n"


@pytest.mark.parametrize(
    "model", ["zoo.__dict__[sys.argv[1]]()", "getattr(zoo, sys.argv[1])()", "vars(zoo)[sys.argv[1]]()"]
)
def test_a_model_of_the_tree_chosen_by_its_name(model: str) -> None:
    found = run_tree({"main.py": f"{START}name = sys.argv[1]\nnet = {model}\nout = net(x)", **ZOO})
    assert found.graph("out") == "attached"
    assert not unseen(found, "out")


@pytest.mark.parametrize(
    "more",
    ["import torch\nheld = torch.nn.Parameter(torch.ones(1)) * 2\n", "\n".join(f"def f{i}(): pass" for i in range(40))],
)
def test_a_module_that_holds_graphs_or_too_much_is_not_followed(more: str) -> None:
    texts = {**ZOO, "zoo/__init__.py": ZOO["zoo/__init__.py"] + more}
    found = run_tree({"main.py": f"{START}net = zoo.__dict__[sys.argv[1]]()\nout = net(x)", **texts})
    assert unseen(found, "out")


@pytest.mark.parametrize(
    "model",
    [
        "models.__dict__[sys.argv[1]](pretrained=True)",
        "getattr(models, sys.argv[1])()",
        "getattr(nn, sys.argv[1])(3, 1)",
    ],
)
def test_a_model_of_a_library_chosen_by_its_name(model: str) -> None:
    found = run(f"import sys\nimport torchvision.models as models\nname = sys.argv[1]\nnet = {model}\nout = net(x)")
    assert found.graph("out") == "attached"
    assert not unseen(found, "out")


def test_an_optimizer_chosen_by_its_name() -> None:
    found = run("import sys\nopt = getattr(torch.optim, sys.argv[1])(net.parameters(), lr=0.1)\nopt.step()")
    assert found.trace.steps[0].leaves


@pytest.mark.parametrize("library", ["torch", "torch.nn.functional", "numpy", "elsewhere"])
def test_a_function_of_a_library_chosen_by_its_name_is_unseen(library: str) -> None:
    found = run(f"import sys\nimport numpy, elsewhere\nout = getattr({library}, sys.argv[1])")
    assert unseen(found, "out")


MAKERS = """
    def plain():
        return x
    def learned(inner, scale=1):
        return inner * w
    def kind(*, way):
        return w
    def any_of(*args, **options):
        return w
    make = {{"a": {first}, "b": {second}}}[open("name").read()]
    out = make({given})
"""


@pytest.mark.parametrize(
    ("first", "second", "given", "expected"),
    [
        ("plain", "learned", "", "free"),
        ("plain", "learned", "x", "attached"),
        ("plain", "learned", "inner=x", "attached"),
        ("plain", "kind", "", "free"),
        ("plain", "kind", "way=1", "attached"),
        ("plain", "learned", "x, 2, 3", "perhaps"),
        ("plain", "any_of", "", "perhaps"),
        ("plain", "learned", "*given()", "perhaps"),
        ("learned", "any_of", "x, 2, 3", "attached"),
    ],
)
def test_a_call_goes_to_those_that_take_its_arguments(first: str, second: str, given: str, expected: str) -> None:
    code = MAKERS.format(first=first, second=second, given=given)
    assert run(f"from elsewhere import given\n{code}".replace("\n    ", "\n")).graph("out") == expected


@pytest.mark.parametrize(
    ("test", "then", "otherwise"),
    [
        ("isinstance(h, torch.Tensor)", [Tensor], [Tuple]),
        ("isinstance(h, tuple)", [Tuple], [Tensor]),
        ("isinstance(h, (list, tuple))", [Tuple], [Tensor]),
        ("not isinstance(h, (tuple, list))", [Tensor], [Tuple]),
        ("isinstance(h, tuple) and x.any()", [Tuple], [Tensor, Tuple]),
        ("isinstance(h, tuple) or x.any()", [Tensor, Tuple], [Tensor]),
        ("isinstance(h, unseen)", [Tensor, Tuple], [Tensor, Tuple]),
        ("isinstance(h, (tuple, unseen))", [Tensor, Tuple], [Tensor]),
        ("seems(h, tuple)", [Tensor, Tuple], [Tensor, Tuple]),
    ],
)
def test_a_branch_knows_the_type_that_it_asked_for(test: str, then: list[type], otherwise: list[type]) -> None:
    code = f"""
        from elsewhere import seems, unseen
        h = w * 2 if x.sum() > 0 else (x, x)
        if {test}:
            then = h
        else:
            otherwise = h
    """
    found = run(code)
    for name, expected in (("then", then), ("otherwise", otherwise)):
        value = found.value(name)
        kinds = {type(option) for option in (value.options if isinstance(value, Join) else (value,))}
        assert kinds == set(expected)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("nn.ModuleDict({'a': net, 'b': nn.Identity()}).a(x)", "attached"),
        ("nn.ModuleDict({'a': net, 'b': nn.Identity()})['a'](x)", "attached"),
        ("nn.ModuleDict({'a': net, 'b': nn.Identity()}).b(x)", "free"),
        ("nn.ModuleDict(dict(a=nn.ModuleList([net]))).a[0](x)", "attached"),
        ("nn.Sequential(collections.OrderedDict([('a', nn.Identity()), ('b', net)])).b(x)", "attached"),
        ("nn.Sequential(collections.OrderedDict([('a', nn.Identity()), ('b', net)])).a(x)", "free"),
        ("torchvision.models.vgg16().features[3](x)", "attached"),
        ("apex.amp.initialize(net, opt)[0](x)", "attached"),
        ("apex.amp.initialize(models=net)(x)", "attached"),
        ("nn.Embedding.from_pretrained(x)(x)", "attached"),
        ("next(net.parameters()).new_zeros(3)", "free"),
        ("next(net.parameters()).new_tensor([1.0])", "free"),
        ("next(net.parameters()).abs()", "attached"),
    ],
)
def test_parts_of_modules(made: str, expected: str) -> None:
    found = run(f"import apex, collections, torchvision\nopt = torch.optim.SGD(net.parameters(), 1)\nout = {made}")
    assert found.graph("out") == expected
    assert not unseen(found, "out")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("pass", "free"),
        ("parts['a'] = net", "attached"),
        ("parts['c'] = net", "free"),
        ("parts.add_module('a', net)", "attached"),
        ("parts.update({'a': net})", "attached"),
        ("parts.update({'c': net})", "free"),
        ("parts['a'] = net if x.any() else nn.Identity()", "perhaps"),
        ("if x.any():\n    parts['a'] = net", "perhaps"),
        ("if x.any():\n    parts['a'] = net\nelse:\n    parts['b'] = net", "perhaps"),
        ("parts[open('name').read()] = net", "perhaps"),
        ("parts.update([('a', net)])", "perhaps"),
        ("parts.update({open('name').read(): net})", "perhaps"),
    ],
)
def test_a_part_by_its_name_is_known_until_something_comes_under_another(change: str, expected: str) -> None:
    code = f"parts = nn.ModuleDict({{'a': nn.Identity(), 'b': nn.ReLU()}})\n{change}\nout = parts['a'](x)"
    assert run(code).graph("out") == expected


@pytest.mark.parametrize("made", ["ast.literal_eval('1')", "ctypes.CDLL('lib').total()"])
def test_what_libraries_give_that_know_no_tensors(made: str) -> None:
    found = run(f"import ast, ctypes\nout = {made} * x")
    assert found.graph("out") == "free"
    assert not unseen(found, "out")
