"""Imports, resolved as Python would from the folders of a tree."""

from __future__ import annotations

import pytest

from codemods.graph.python.machine import Machine
from tests.graph.tools import PRELUDE, REGISTRY, files_of, run, run_tree

NET = f"""{PRELUDE}
class Net(nn.Module):
    def forward(self, t):
        return t * w
def make():
    return Net()
weight = w
"""

REGISTERED = "from registry import NETS, register\n" + NET.replace("class Net", "@register('net')\nclass Net")
REGISTERED_BY_METHOD = "from registry import NETS\n" + NET.replace("class Net", "@NETS.register\nclass Net")

TREES: list[tuple[str, str, dict[str, str]]] = [
    # classes that their files put into a table when they are imported
    ("main.py", "import models\nfrom registry import MODELS\ny = MODELS['net']()(1)",
     {"models.py": REGISTERED, "registry.py": REGISTRY}),
    ("main.py", "import models\nfrom registry import MODELS\ny = MODELS.get(input())()(1)",
     {"models.py": REGISTERED, "registry.py": REGISTRY}),
    ("main.py", "from models import make\nfrom registry import NETS\ny = NETS.build(input())(1)",
     {"models.py": REGISTERED_BY_METHOD, "registry.py": REGISTRY}),
    ("main.py", "import models\nfrom registry import MODELS\ny = MODELS['net']()(1)",
     {"models/__init__.py": "from . import net", "models/net.py": REGISTERED, "registry.py": REGISTRY}),
    ("main.py", "import models\nfrom registry import MODELS\ny = MODELS['net']()(1)",
     {"models/__init__.py": "from .net import *", "models/net.py": REGISTERED, "registry.py": REGISTRY}),
    ("main.py", "from models import MODELS\ny = MODELS['net']()(1)",
     {"models/__init__.py": "from registry import MODELS\nfrom .net import weight", "models/net.py": REGISTERED,
      "registry.py": REGISTRY}),
    ("main.py", "from models import Net\ny = Net()(1)", {"models.py": NET}),
    ("main.py", "from models import *\ny = Net()(1)", {"models.py": NET}),
    ("main.py", "import models\ny = models.Net()(1)", {"models.py": NET}),
    ("main.py", "import models as m\ny = m.Net()(1)", {"models.py": NET}),
    ("main.py", "import models.net\ny = models.net.Net()(1)", {"models/__init__.py": "", "models/net.py": NET}),
    ("main.py", "import models.net as n\ny = n.Net()(1)", {"models/__init__.py": "", "models/net.py": NET}),
    ("main.py", "import models.net as n\ny = n.Net()(1)", {"models/net.py": NET}),
    ("main.py", "from models import net\ny = net.Net()(1)", {"models/__init__.py": "", "models/net.py": NET}),
    ("main.py", "from models import net\ny = net.Net()(1)", {"models/net.py": NET}),
    ("main.py", "from models.net import Net as N\ny = N()(1)", {"models/net.py": NET}),
    ("main.py", "from models import Net\n"
     "y = Net()(1)", {"models/__init__.py": "from .net import Net", "models/net.py": NET}),
    ("main.py", "from models import Net\n"
     "y = Net()(1)", {"models/__init__.py": "from .net import *", "models/net.py": NET}),
    ("main.py", "from models import *\ny = _Net()(1)", {"models.py": NET + "__all__ = ['_Net']\n_Net = Net\n"}),
    ("main.py", "from models import *\ny = Net()(1)", {"models.py": NET + "__all__ = ['N' + 'et']\n"}),
    ("main.py", "Net = None\nfrom models import *\nfrom other import *\ny = Net()(1)",
     {"models.py": NET, "other.py": "__all__ = ['more']\nNet = print\nmore = 1\n"}),
    ("main.py", "from models import *\ny = net.Net()(1)",
     {"models/__init__.py": "__all__ = ['net']", "models/net.py": NET}),
    ("main.py", "import models\n"
     "y = models.make()(1)", {"models/__init__.py": "from models.net import make", "models/net.py": NET}),
    ("pkg/main.py", "from .models import Net\ny = Net()(1)", {"pkg/__init__.py": "", "pkg/models.py": NET}),
    ("pkg/main.py", "from . import models\ny = models.Net()(1)", {"pkg/__init__.py": "", "pkg/models.py": NET}),
    ("pkg/main.py", "from models import Net\ny = Net()(1)", {"pkg/models.py": NET}),
    ("pkg/sub/main.py", "from ..models import Net\ny = Net()(1)", {"pkg/models.py": NET}),
    ("pkg/sub/main.py", "from .. import models\ny = models.Net()(1)", {"pkg/__init__.py": "", "pkg/models.py": NET}),
    ("pkg/sub/main.py", "from pkg.models import Net\ny = Net()(1)", {"pkg/models.py": NET}),
    ("scripts/main.py", "import sys\nsys.path.append('..')\nfrom models import Net\ny = Net()(1)", {"models.py": NET}),
    ("scripts/main.py", "from tool.models import Net\ny = Net()(1)", {"src/tool/models.py": NET}),
    ("a/main.py", "from models import Net\ny = Net()(1)", {"a/models.py": NET, "models.py": "Net = print"}),
    ("a/main.py", "from models import Net\ny = Net()(1)", {"a/src/models.py": NET, "b/src/models.py": "Net = print"}),
    ("a/main.py", "from models import Net\ny = Net()(1)", {"a/src/models.py": "Net = print", "models.py": NET}),
    ("a/b/main.py", "from models import Net\ny = Net()(1)", {"a/lib/models.py": NET, "src/models.py": "Net = print"}),
    ("main.py", "def f():\n    from models import Net\n    return Net()(1)\ny = f()", {"models.py": NET}),
    ("main.py", "try:\n    from nowhere import Net\nexcept ImportError:\n    from models import Net\n"
     "y = Net()(1)", {"models.py": NET}),
    ("main.py", "if True:\n    from models import weight\ny = weight", {"models.py": NET}),
    ("main.py", "from a import weight\n"
     "y = weight", {"a.py": "from b import weight", "b.py": "from c import weight", "c.py": NET}),
    ("main.py", "from models import Net\nclass Sub(Net):\n    pass\ny = Sub()(1)", {"models.py": NET}),
    ("main.py", "import models\nclass Sub(models.Net):\n    def forward(self, t):\n"
     "        return super().forward(t)\ny = Sub()(1)",
     {"models.py": NET}),
    ("main.py", "from helper import apply\nfrom models import Net\ny = apply(Net())",
     {"helper.py": "def apply(m):\n    return m(1)", "models.py": NET}),
]  # fmt: skip


@pytest.mark.parametrize(("script", "code", "others"), TREES)
def test_what_an_import_means(script: str, code: str, others: dict[str, str]) -> None:
    found = run_tree({script: code, **others}, script)
    assert found.trace.complete
    assert found.graph("y") == ("perhaps" if "nowhere" in code else "attached")


def test_an_import_cycle_ends() -> None:
    found = run_tree(
        {
            "main.py": "import a\ny = a.f()",
            "a.py": PRELUDE + "import b\ndef f():\n    return b.g()\ndef h():\n    return w",
            "b.py": "import a\ndef g():\n    return a.h()",
        }
    )
    assert found.trace.complete
    assert found.graph("y") == "attached"


def test_a_cycle_of_names_ends() -> None:
    found = run_tree({"main.py": "from a import f\ny = f", "a.py": "from b import f", "b.py": "from a import f"})
    assert found.trace.complete


@pytest.mark.parametrize("code", ["import main", "from main import *", "from main import y", "from . import main"])
def test_a_module_that_imports_itself(code: str) -> None:
    found = run(f"{code}\ny = w")
    assert found.trace.complete
    assert found.graph("y") == "attached"


def test_a_script_is_not_guarded_from_itself() -> None:
    code = "if __name__ == '__main__':\n    (w * x).sum().backward()"
    assert len(run(code).walks()) == 1
    assert run_tree({"main.py": "import other", "other.py": PRELUDE + code}).walks() == []


def test_a_module_of_the_standard_library_is_not_of_the_tree() -> None:
    found = run_tree({"main.py": PRELUDE + "y = torch.ones(3)", "torch.py": "def ones(n):\n    return nothing"})
    assert found.graph("y") == "free"


def test_a_module_that_does_not_parse_is_unknown() -> None:
    found = run("import broken\ny = broken.f(x) + w", broken="print 'old'")
    assert found.trace.complete
    assert found.graph("y") == "attached"


def test_globals_of_an_imported_module_are_shared() -> None:
    found = run_tree(
        {
            "main.py": PRELUDE + "import state\nimport reader\nstate.kept = w * 2\ny = reader.read()",
            "state.py": "kept = None",
            "reader.py": "import state\ndef read():\n    return state.kept",
        }
    )
    assert found.graph("y") == "attached"


def test_a_function_reads_the_globals_of_its_own_module() -> None:
    other = PRELUDE + "scale = w\ndef f():\n    return scale"
    found = run_tree({"main.py": PRELUDE + "from other import f\nscale = x\ny = f()", "other.py": other})
    assert found.graph("y") == "attached"


def test_runs_do_not_disturb_each_other() -> None:
    # modules are loaded once for all runs over a tree: what one run leaves in them is not there for the next
    from tests.graph.tools import files_of

    files = files_of(
        {
            "bank.py": PRELUDE + "kept = []\nbase = w * 2",
            "one.py": "import bank\nbank.kept.append(bank.w * 2)\nbank.base.sum().backward()",
        }
    )
    file = files.file("one.py")
    assert file is not None
    for _ in range(2):
        machine = Machine(files)
        trace = machine.run_script(file)
        assert [bool(walk.again) for walk in trace.walks] == [False]
        kept = machine.get_attribute(machine.run.s.get((trace.frames[0].module_globals, "bank")), "kept", file.tree)
        assert len(machine.run.elements(kept)) == 1


def test_class_attributes_do_not_outlive_a_run() -> None:
    from tests.graph.tools import files_of

    files = files_of(
        {
            "bank.py": PRELUDE + "class Bank:\n    kept = x",
            "one.py": "from bank import Bank, w\nBank.kept = Bank.kept * w\nBank.kept.sum().backward()",
        }
    )
    file = files.file("one.py")
    assert file is not None
    for _ in range(2):
        assert [bool(walk.again) for walk in Machine(files).run_script(file).walks] == [False]


def test_what_is_learned_of_a_module_does_not_outlive_a_run() -> None:
    from tests.graph.tools import files_of

    files = files_of(
        {
            "bank.py": PRELUDE + "import somewhere\nmodel = somewhere.make()\nloss = somewhere.loss(w)",
            "one.py": "import bank\nbank.model.eval()\ny = bank.model(bank.x)\nbank.loss.backward()\nz = bank.loss + 1",
            "two.py": "import bank\ny = bank.model(bank.x)\nz = bank.loss + 1",
        }
    )

    def graphs(name: str) -> list[bool]:
        file = files.file(name)
        assert file is not None
        machine = Machine(files)
        fid = machine.run_script(file).frames[0].module_globals
        return [any(n.certain for n in machine.run.nodes_of(machine.run.s.get((fid, v)))) for v in "yz"]

    assert graphs("two.py") == [False, False]
    assert graphs("one.py") == [True, True]
    assert graphs("two.py") == [False, False]


def test_what_cannot_fill_a_table_is_not_parsed_for_it() -> None:
    script = "import helpers\nimport models\nfrom registry import MODELS\ny = MODELS['net']()(1)"
    texts = {"main.py": script, "helpers.py": NET, "models.py": REGISTERED, "registry.py": REGISTRY}
    assert run_tree(texts).machine.importer.parsed.keys() == {"main.py", "models.py", "registry.py"}  # type: ignore[attr-defined]


FILLING = {
    "by a decorator": "from registry import register\n" + NET.replace("class Net", "@register('net')\nclass Net"),
    "by an item": f"from registry import MODELS\n{NET}MODELS['net'] = Net\n",
    "by an item of an attribute": f"import registry\n{NET}registry.MODELS['net'] = Net\n",
    "by update": f"from registry import MODELS\n{NET}MODELS.update(net=Net)\n",
    "by setdefault": f"from registry import MODELS\n{NET}MODELS.setdefault('net', Net)\n",
    "by what it imports": "import registry\nfrom nets import Net\nNet()\n",
}


@pytest.mark.parametrize("models", FILLING.values(), ids=FILLING)
def test_what_fills_nothing_is_not_loaded_again_to_see_whether_it_does(models: str) -> None:
    script = "import helpers\nimport models\nimport registry\ny = registry.MODELS['net']()(1)"
    helpers = "from registry import MODELS\n" + NET
    texts = {"main.py": script, "helpers.py": helpers, "models.py": models, "registry.py": REGISTRY}
    files = files_of({**texts, "nets.py": FILLING["by an item"]})
    seen = []
    for _ in range(2):
        file = files.file("main.py")
        assert file is not None
        machine = Machine(files)
        fid = machine.run_script(file).frames[0].module_globals
        assert [node.certain for node in machine.run.nodes_of(machine.run.s.get((fid, "y")))] == [True]
        seen.append((machine.run.looked_at, machine.passed))
        loaded = set(files.modules.loaded)
        assert files.trim(0)
    assert seen[0] == seen[1]
    assert "models.py" in loaded
    assert "helpers.py" not in loaded
    assert "helpers.py" in files.quiet
