"""legacy-call: calls that today's PyTorch refuses or warns about."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest
import torch

from codemods.checking.check import check
from codemods.checking.groups import older
from codemods.graph.model.facts.outdated import REMOVED_CALLS, RENAMED_CALLS
from codemods.source.files import read_source
from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import MAIN, found, mended

RULE = "legacy-call"

HEAD = """
"x"
import torch
import torch.nn as nn
import torch.nn.functional as F
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader([])
print(net)
x = torch.rand(3, 4)
mask = x > 0
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("r = torch.matrix_rank(x, symmetric=True)", "r = torch.linalg.matrix_rank(x, hermitian=True)"),
        (
            "it = iter(loader) if len(x) else iter(loader)\nx = it.next()",
            "it = iter(loader) if len(x) else iter(loader)\nx = next(it)",
        ),
        (
            "try:\n    r = torch.matrix_rank(x)\nexcept ValueError:\n    r = 0",
            "try:\n    r = torch.linalg.matrix_rank(x)\nexcept ValueError:\n    r = 0",
        ),
        (
            "try:\n    r = 1\nexcept RuntimeError:\n    r = torch.matrix_rank(x)",
            "try:\n    r = 1\nexcept RuntimeError:\n    r = torch.linalg.matrix_rank(x)",
        ),
        (
            "try:\n    c = nn.MSELoss(size_average=False)\nexcept TypeError:\n    c = None",
            'try:\n    c = nn.MSELoss(reduction="sum")\nexcept TypeError:\n    c = None',
        ),
        ("x = x.cuda(async=True)", "x = x.cuda(non_blocking=True)"),
        ("x = x.cuda(0, async = True)", "x = x.cuda(0, non_blocking = True)"),
        ("def f(y):\n    return y.cuda(async=True)", "def f(y):\n    return y.cuda(non_blocking=True)"),
        ("if False:\n    x.copy_(x, async=True)", "if False:\n    x.copy_(x, non_blocking=True)"),
        ("x = x.cuda(device_id=0)", "x = x.cuda(device=0)"),
        ("nn.utils.clip_grad_norm(net.parameters(), 1)", "nn.utils.clip_grad_norm_(net.parameters(), 1)"),
        ("torch.nn.init.xavier_uniform(net.weight)", "torch.nn.init.xavier_uniform_(net.weight)"),
        ("nn.init.constant(net.bias, val=0)", "nn.init.constant_(net.bias, val=0)"),
        ("c = nn.MSELoss(size_average=False)", 'c = nn.MSELoss(reduction="sum")'),
        ("c = nn.MSELoss(False)", 'c = nn.MSELoss(reduction="sum")'),
        ("c = nn.CrossEntropyLoss(None, False)", 'c = nn.CrossEntropyLoss(None, reduction="sum")'),
        ("c = nn.NLLLoss(ignore_index=0, size_average=True)", 'c = nn.NLLLoss(ignore_index=0, reduction="mean")'),
        ("c = nn.BCELoss(reduce=False)", 'c = nn.BCELoss(reduction="none")'),
        ("c = nn.BCELoss(size_average=False, reduce=True)", 'c = nn.BCELoss(reduction="sum")'),
        ("c = nn.BCELoss(size_average=True, reduce=False)", 'c = nn.BCELoss(reduction="none")'),
        ("c = F.mse_loss(net(x), x[:, :1], size_average=False)", 'c = F.mse_loss(net(x), x[:, :1], reduction="sum")'),
        ("batch = iter(loader).next()", "batch = next(iter(loader))"),
        ("it = iter(loader)\nx, y = it.next()", "it = iter(loader)\nx, y = next(it)"),
        ("y = x.masked_fill(mask.byte(), 0)", "y = x.masked_fill(mask.bool(), 0)"),
        ("x.masked_fill_((x > 1).byte(), 0)", "x.masked_fill_((x > 1).bool(), 0)"),
        ("y = x.masked_select(mask.byte())", "y = x.masked_select(mask.bool())"),
        (
            "s = torch.optim.lr_scheduler.StepLR(optimizer, 1, verbose=True)",
            "s = torch.optim.lr_scheduler.StepLR(optimizer, 1)",
        ),
        ("r = torch.matrix_rank(x)", "r = torch.linalg.matrix_rank(x)"),
        (
            "from torchvision import transforms as T\nt = T.Compose([T.Scale(64), T.RandomSizedCrop(32)])",
            "from torchvision import transforms as T\nt = T.Compose([T.Resize(64), T.RandomResizedCrop(32)])",
        ),
        (
            "from torchvision.transforms import transforms\nclass Small(transforms.Scale):\n    pass",
            "from torchvision.transforms import transforms\nclass Small(transforms.Resize):\n    pass",
        ),
        (
            "import torchvision.transforms as T\nclass Crop(object, T.RandomSizedCrop):\n    size = 4",
            "import torchvision.transforms as T\nclass Crop(object, T.RandomResizedCrop):\n    size = 4",
        ),
    ],
)
def test_becomes(tmp_path: Path, before: str, after: str) -> None:
    findings = found(tmp_path, RULE, HEAD, before)
    runs = any(word in before for word in ("clip_grad_norm", "init.", "xavier_", "size_average", "reduce=", "Loss("))
    assert [f.promise for f in findings] == [Promise.EXACT if runs else Promise.REPAIR]
    assert mended(tmp_path, findings).strip().endswith(after)


def test_imported_names(tmp_path: Path) -> None:
    code = "from torch.nn.utils import clip_grad_norm\nclip_grad_norm(net.parameters(), 1)\n"
    text = mended(tmp_path, found(tmp_path, RULE, HEAD, code))
    assert "torch.nn.utils.clip_grad_norm_(net.parameters(), 1)" in text
    assert "import clip_grad_norm" not in text
    code = "from torch._six import container_abcs, inf\nprint(inf, container_abcs.Mapping)\n"
    text = mended(tmp_path, found(tmp_path, RULE, code, "import torch"))
    assert text.startswith("import collections.abc as container_abcs\nfrom torch import inf\n")


@pytest.mark.parametrize(
    "code",
    [
        "p = F.sigmoid(F.tanh(x))",
        "options = {'size_average': False}\nc = nn.MSELoss(**options)",
        "options = (False,)\nc = nn.MSELoss(*options)",
        "c = nn.MSELoss(size_average=False, reduction='none')",
        "it = iter(loader)\nx = it.next(3)",
        "it = iter(loader) if len(x) else open('rows')\nx = it.next()",
        "y = x.masked_fill(mask.byte(3), 0)",
        "def top():\n    from torch._six import inf",
        "try:\n    y = x.masked_fill(mask.byte(), 0)\nexcept RuntimeError:\n    y = x",
        "try:\n    y = torch.matrix_rank(x)\nexcept Exception:\n    y = 4",
        "it = iter(loader)\ntry:\n    x = it.next()\nexcept (AttributeError, StopIteration):\n    x = next(it)",
        "import contextlib\nwith contextlib.suppress(TypeError):\n    x = x.cuda(device_id=0)",
        "try:\n    x = x.cuda(device_id=0)\nexcept:\n    pass",
        "class Loss:\n    def __init__(self, size_average=True):\n        pass\nc = Loss(size_average=False)",
        "def total(x, size_average=True):\n    return x\nc = total(x, size_average=False)",
        "import sys\nflag = len(sys.argv) > 1\nc = nn.MSELoss(size_average=flag)",
        'c = nn.MSELoss(reduction="sum")',
        "class It:\n    def next(self):\n        return 1\nIt().next()",
        "def f(source):\n    return source.next()",
        "y = mask.byte().sum()",
        "y = x.masked_fill(mask, 0)",
        "class Step:\n    def __init__(self, verbose=False):\n        pass\nStep(verbose=True)",
        "from pool import run\nrun(x, verbose=True)",
        "def clip_grad_norm(p, n):\n    return n\nclip_grad_norm(net.parameters(), 1)",
        "nn.utils.clip_grad_norm_(net.parameters(), 1)",
        "class transforms:\n    def Scale(self, size):\n        return size\ntransforms().Scale(64)",
        "from torchvision import transforms\nt = transforms.Resize(64)",
        "from torchvision import transforms\nclass Scale(transforms.Resize):\n    pass",
        "class own:\n    class Scale:\n        pass\nclass Small(own.Scale):\n    pass",
        "import drawing\nclass Small(drawing.Scale):\n    pass",
    ],
)
def test_stays(tmp_path: Path, code: str) -> None:
    assert not found(tmp_path, RULE, HEAD, code)


def test_names_imported_from_torchvision_are_told(tmp_path: Path) -> None:
    code = (
        "from torchvision import transforms\nfrom torchvision.transforms import Scale\ntransforms.Scale(1), Scale(2)\n"
    )
    (finding,) = (f for f in found(tmp_path, RULE, HEAD, code) if f.promise is Promise.ADVICE)
    assert finding.remedy == "import Resize from torchvision.transforms"


def test_a_base_that_was_imported_by_name_is_told(tmp_path: Path) -> None:
    code = (
        "from torchvision.transforms import Scale\nimport torchvision.transforms as T\nclass A(Scale, T.Scale): pass\n"
    )
    advice, fix = found(tmp_path, RULE, HEAD, code)
    assert (advice.promise, advice.remedy) == (Promise.ADVICE, "import Resize from torchvision.transforms")
    assert (fix.promise, fix.remedy) == (Promise.REPAIR, "write `T.Resize`")


def test_a_name_of_torch_that_is_not_torch(tmp_path: Path) -> None:
    text = mended(tmp_path, found(tmp_path, RULE, "import torch as t\n", "print(t.matrix_rank(t.ones(2, 2)))\n"))
    assert "t.linalg.matrix_rank(" in text


@pytest.mark.parametrize("name", sorted(REMOVED_CALLS))
def test_removed_calls_are_named_with_their_successor(tmp_path: Path, name: str) -> None:
    (finding,) = found(tmp_path, RULE, "import torch\na = torch.rand(3, 3)\n", f"print({name}(a))\n")
    assert finding.promise is Promise.ADVICE
    assert REMOVED_CALLS[name] in finding.message


@pytest.mark.parametrize("name", sorted(REMOVED_CALLS))
def test_they_are_removed(name: str) -> None:
    """The facts, by the installed torch."""
    call = getattr(torch, name.removeprefix("torch."), None)
    if call is not None:
        square = torch.eye(2)
        given = (square, square) if name in ("torch.solve", "torch.lstsq") else (square,)
        with pytest.raises(RuntimeError, match="removed"):
            call(*given)
    head, _, last = REMOVED_CALLS[name].rpartition(".")
    assert hasattr(importlib.import_module(head), last)


@pytest.mark.parametrize("name", sorted(RENAMED_CALLS))
def test_new_names_are_there(name: str) -> None:
    head, _, last = RENAMED_CALLS[name].rpartition(".")
    if head == "torchvision.transforms":
        # Read, not imported: that takes operators which not every build of torchvision has.
        spec = importlib.util.find_spec("torchvision")
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).with_name("transforms").joinpath("transforms.py").read_text(encoding="utf-8")
        assert f"class {last}(" in source
        assert f"class {name.rpartition('.')[2]}(" not in source
    else:
        assert hasattr(importlib.import_module(head), last)


def test_older_torch_keeps_what_it_understands(tmp_path: Path) -> None:
    code = "nn.utils.clip_grad_norm(net.parameters(), 1)\nb = iter(loader).next()\nc = nn.MSELoss(False)\n"
    found(tmp_path, RULE, HEAD, code)
    targets = [read_source(tmp_path / MAIN, MAIN)]

    def fixable(version: str) -> list[bool]:
        result = check(targets, options=Options(select=(RULE,), target_torch=version), jobs=1)
        return [reported.fixable for reported in result.findings]

    assert fixable("current") == [True, True, True]
    assert fixable("2.1.0+cu118") == [True, True, True]
    assert fixable("0.4.0") == [True, True, False]
    assert fixable("0.3.1.post2") == [False, True, False]


@pytest.mark.parametrize(
    ("version", "other", "expected"),
    [
        ("0.3.1", "0.4", True),
        ("0.4", "0.4", False),
        ("0.4.0", "0.4", False),
        ("1.10", "1.9", False),
        ("2", "1.8", False),
    ],
)
def test_older(version: str, other: str, expected: bool) -> None:
    assert older(version, other) is expected


OWN = """
def spread(w):
    with torch.no_grad():
        w.fill_(0.5)

def summed(a, b, size_average=True):
    return (a - b).sum()
"""


@pytest.mark.parametrize(
    "calls",
    [
        "for start in (spread, nn.init.orthogonal):\n    start(net.weight)",
        "for start in (nn.init.orthogonal, spread):\n    start(net.weight)",
        "def begin(start):\n    start(net.weight)\nbegin(spread)\nbegin(nn.init.orthogonal)",
        "def begin(start):\n    start(net.weight)\nbegin(nn.init.orthogonal)",
        "start = nn.init.orthogonal if x.sum() > 0 else spread\nstart(net.weight)",
        "for start in (nn.init.orthogonal, nn.init.xavier_uniform):\n    start(net.weight)",
        "table = {'a': nn.init.orthogonal, 'b': spread}\nfor key in table:\n    table[key](net.weight)",
        "for loss in (F.mse_loss, summed):\n    loss(net(x), x[:, :1], size_average=False)",
        "class Body:\n    def __init__(self, start):\n        self.start = start\n        self.start(net.weight)\n"
        "Body(nn.init.orthogonal)\nBody(spread)",
    ],
)
def test_what_may_be_another_function_keeps_its_name(tmp_path: Path, calls: str) -> None:
    assert found(tmp_path, RULE, HEAD, OWN, calls) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("for w in (net.weight,):\n    nn.init.orthogonal(w)", "for w in (net.weight,):\n    nn.init.orthogonal_(w)"),
        (
            "from torch.nn import init\ninit.orthogonal(net.weight)",
            "from torch.nn import init\ninit.orthogonal_(net.weight)",
        ),
        (
            "loss = F.mse_loss\nloss(net(x), x[:, :1], size_average=False)",
            'loss = F.mse_loss\nloss(net(x), x[:, :1], reduction="sum")',
        ),
    ],
)
def test_what_is_one_function_has_its_name_of_today(tmp_path: Path, before: str, after: str) -> None:
    findings = found(tmp_path, RULE, HEAD, before)
    assert mended(tmp_path, findings).endswith(after)


OWN_ITERATOR = """
class Turns:
    def __iter__(self):
        return self

    def next(self):
        return x

class Own(torch.utils.data.DataLoader):
    def __iter__(self):
        return Turns()

def make():
    return torch.utils.data.DataLoader([])
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a = make().__iter__().next()", "a = next(make().__iter__())"),
        ("turns = loader.__iter__()\na = turns.next()", "turns = loader.__iter__()\na = next(turns)"),
    ],
)
def test_the_iterator_of_a_loader_by_its_method(tmp_path: Path, before: str, after: str) -> None:
    findings = found(tmp_path, RULE, HEAD, OWN_ITERATOR, before)
    assert [f.promise for f in findings] == [Promise.REPAIR]
    assert mended(tmp_path, findings).endswith(after)


@pytest.mark.parametrize(
    "before",
    [
        "a = Turns().__iter__().next()",
        "a = Own([]).__iter__().next()",
        "import feeder\na = feeder.loader().__iter__().next()",
        "a = (Turns() if x.sum() > 0 else loader).__iter__().next()",
    ],
)
def test_another_iterator_may_have_a_next_of_its_own(tmp_path: Path, before: str) -> None:
    assert found(tmp_path, RULE, HEAD, OWN_ITERATOR, before) == []
