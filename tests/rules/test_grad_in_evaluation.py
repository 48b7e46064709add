"""Code that only evaluates goes under no_grad, once, where it stands; whatever a backward may reach stays as it is."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from codemods.analysis.analyse import analyse
from codemods.proofs.observations import Decision
from codemods.rules import rule
from codemods.source.files import read_source
from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.graph.tools import run_tree
from tests.rules.tools import added, found, lines, mended

RULE = "grad-in-evaluation"

START = """\
import torch
from torch import nn
import torch.nn.functional as F
from torch.autograd import Variable

net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
teacher = nn.Sequential(nn.Linear(4, 1), nn.Tanh())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batches = [(torch.randn(9, 4), torch.randn(9, 1)) for _ in range(3)]
x, y = batches[0]
"""

TRAIN = """\
def learn():
    net.train()
    for x, y in batches:
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()

learn()
"""

DECORATED = {
    "a function": """
        def score():
            net.eval()
            total = 0.0
            for x, y in batches:
                total += F.mse_loss(net(x), y).item()
            return total
        print(score())
        """,
    "a function that nothing calls": """
        def score(model, loader):
            model.eval()
            for x, y in loader:
                print(F.mse_loss(model(x), y).item())
        """,
    "a function under a decorator that only measures": """
        from contextlib import contextmanager

        @contextmanager
        def timed():
            yield

        def score():
            net.eval()
            with timed():
                return [net(x).tolist() for x, _ in batches]
        print(score())
        """,
    "an object that calls what it notes as a tensor calls its own": """
        class Notes:
            pass
        def score():
            net.eval()
            notes = Notes()
            notes.grad, notes.requires_grad = [], True
            for x, y in batches:
                notes.grad.append(F.mse_loss(net(x), y).item())
            print(notes.grad, notes.requires_grad)
        score()
        """,
    "a generator": """
        def predictions(model):
            model.eval()
            for x, _ in batches:
                yield model(x).argmax(1)
        for prediction in predictions(net):
            print(prediction)
        """,
    "a helper of several evaluations": """
        def scores(x):
            net.eval()
            return net(x).softmax(1).tolist()
        def top(x):
            return max(scores(x))
        def worst(x):
            return min(scores(x))
        print(top(x), worst(x))
        """,
}


@pytest.mark.parametrize("name", DECORATED)
def test_what_only_evaluates_is_decorated(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, START, TRAIN, DECORATED[name])
    before = (tmp_path / "train.py").read_text()
    after = mended(tmp_path, findings)
    assert [f.promise for f in findings] == [Promise.EXACT]
    assert added(before, after) == ["@torch.no_grad()"]
    at = after.splitlines().index("@torch.no_grad()")
    assert after.splitlines()[at + 1].startswith("def ")


@pytest.mark.parametrize(
    ("ask", "wrapped"),
    [
        ("import inspect\nprint(inspect.getfullargspec(score).args)", True),
        ("from inspect import getfullargspec as spec\nprint(score.__code__.co_varnames)", True),
        ("print(score.__defaults__)", True),
        ("torch.jit.script(net)", True),
        ("from torch import jit\njit.script(score)", True),
        ("torch.jit.trace(net, torch.ones(1, 4))", False),
        # these follow __wrapped__, or copy it
        ("import inspect\nprint(inspect.signature(score))", False),
        ("print(score.__name__, score.__doc__)", False),
    ],
)
def test_a_function_of_which_wrappers_are_told_gets_none(tmp_path: Path, ask: str, wrapped: bool) -> None:
    code = """
        def score(model, loader):
            model.eval()
            for x, y in loader:
                print(criterion(model(x), y).item())

        learn()
        score(model, loader)
        """
    after = mended(tmp_path, found(tmp_path, RULE, START, dedent(code) + ask))
    assert ("\n    with torch.no_grad():\n        for x, y in loader:\n" in after) is wrapped
    assert ("@torch.no_grad()" in after) is not wrapped


@pytest.mark.parametrize(
    ("code", "block"),
    [
        (
            """
            def show(scale):
                import math
                title = "x" * scale
                first = net(x).argmax(1)
                print(title)
                second = net(2 * x).argmax(1)
                print(first, second)
                print(math.pi)
            """,
            ["with torch.no_grad():", "first = net(x).argmax(1)", "print(title)", "second = net(2 * x).argmax(1)"],
        ),
        (
            """
            def show(scale):
                out = net(x)
                out = out * scale
                print(out.mean().item())
                return scale
            """,
            ["with torch.no_grad():", "out = net(x)", "out = out * scale", "print(out.mean().item())"],
        ),
        (
            """
            def show(scale):
                if scale > 1:
                    print(net(x).argmax(1))
                print(scale)
            """,
            ["with torch.no_grad():", "if scale > 1:", "print(net(x).argmax(1))"],
        ),
    ],
)
def test_a_block_holds_what_records_a_graph_and_no_more(tmp_path: Path, code: str, block: list[str]) -> None:
    ends = "x = torch.ones(2, 4)\nlearn()\nshow(2)\nprint(show.__defaults__)"
    findings = found(tmp_path, RULE, START, TRAIN, dedent(code) + ends)
    before = (tmp_path / "train.py").read_text()
    assert [line.strip() for line in added(before, mended(tmp_path, findings))] == block


METHODS = """
    class Agent:
        def __init__(self):
            self.actor = nn.Linear(4, 2)
            self.opt = torch.optim.SGD(self.actor.parameters(), lr=0.1)

        def choose(self, state):
            return self.actor(state).cpu().data.numpy().argmax()

        @staticmethod
        def rate(model, states):
            model.eval()
            return model(states).mean().item()

        def learn(self, state):
            self.opt.zero_grad()
            self.actor(state).pow(2).mean().backward()
            self.opt.step()

    agent = Agent()
    for x, _ in batches:
        agent.choose(x)
        agent.learn(x)
        print(Agent.rate(agent.actor, x))
    """


def test_methods_are_decorated_below_what_decorates_them_already(tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, START, METHODS)
    after = mended(tmp_path, findings).splitlines()
    assert len(findings) == 2
    assert after[after.index("    def choose(self, state):") - 1] == "    @torch.no_grad()"
    at = after.index("    def rate(model, states):")
    assert after[at - 2 : at] == ["    @staticmethod", "    @torch.no_grad()"]


WRAPPED = {
    "a sum of numbers that has no loop of its own": (
        """
        print(sum(F.mse_loss(net(x), y).item() for x, y in batches))
        """,
        "with torch.no_grad():\n    print(sum(",
    ),
    "one loss that is a number at once": (
        """
        score = F.mse_loss(net(x), y).item()
        print(score)
        """,
        "with torch.no_grad():\n    score = ",
    ),
    "a forward whose outputs go through a call that cannot be seen": (
        """
        import unseen
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
            probe = net(x)
            print(unseen.decoded(probe))
        """,
        "    with torch.no_grad():\n        probe = net(x)\n    print(unseen",
    ),
    "a loop of the script": (
        """
        net.eval()
        for x, y in batches:
            print(F.mse_loss(net(x), y).item())
        """,
        "with torch.no_grad():\n    for x, y in batches:\n        print(",
    ),
    "the validation loop of a training function": (
        """
        def fit():
            for epoch in range(3):
                for x, y in batches:
                    opt.zero_grad()
                    F.mse_loss(net(x), y).backward()
                    opt.step()
                net.eval()
                for x, y in batches:
                    print(F.mse_loss(net(x), y).item())
                net.train()
        fit()
        """,
        "        with torch.no_grad():\n            for x, y in batches:\n                print(",
    ),
    "a single forward in eval mode after the step": (
        """
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
            net.eval()
            probe = net(x)
            error = F.mse_loss(probe, y)
            net.train()
            print(error.item())
        """,
        "    with torch.no_grad():\n        probe = net(x)\n        error = F.mse_loss(probe, y)\n    net.train()",
    ),
    "an action between the steps": (
        """
        for x, y in batches:
            values = net(x)
            action = values.argmax(1).cpu().numpy()
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
            print(action)
        """,
        "    with torch.no_grad():\n        values = net(x)\n",
    ),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_what_stands_among_training_is_wrapped(tmp_path: Path, name: str) -> None:
    code, expected = WRAPPED[name]
    findings = found(tmp_path, RULE, START, TRAIN, code)
    assert [f.promise for f in findings] == [Promise.EXACT]
    assert expected in mended(tmp_path, findings)


def test_a_loop_that_switches_gradients_off_by_the_statement_is_not_wrapped_as_a_whole(tmp_path: Path) -> None:
    code = """
        for round in range(3):
            for x, y in batches:
                with torch.no_grad():
                    action = net(x).argmax(1)
                novelty = (teacher(x) - y).pow(2).sum(1)
                print(action, novelty.tolist())
            learn()
        """
    after = mended(tmp_path, found(tmp_path, RULE, START, TRAIN, code))
    assert "    with torch.no_grad():\n            novelty = " in after
    assert "with torch.no_grad():\n        for" not in after


def test_results_of_one_loaded_forward_may_be_looked_at_by_their_indices_only(tmp_path: Path) -> None:
    code = """
        net.load_state_dict(torch.load("net.pt"))
        best = net(x).max(1)[1]
        print(best)
        """
    after = mended(tmp_path, found(tmp_path, RULE, START, code))
    assert "with torch.no_grad():\n    best = net(x).max(1)[1]\nprint(best)" in after


WHOLE = """
class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(x).relu())

whole = Whole()
"""


@pytest.mark.parametrize("told", ['head.load_state_dict(torch.load("head.pt"))', "body.eval()", "body.train(False)"])
def test_a_model_whose_parts_were_loaded_evaluates(tmp_path: Path, told: str) -> None:
    code = f"""
        whole.{told}
        for x, y in batches:
            print(whole(x).argmax(1).tolist())
        """
    after = mended(tmp_path, found(tmp_path, RULE, START, WHOLE, code))
    assert "with torch.no_grad():\n    for x, y in batches:" in after


@pytest.mark.parametrize(
    "code",
    [
        "for x, y in batches:\n    print(whole(x).argmax(1).tolist())",
        "whole.head.load_state_dict(torch.load('head.pt'))\nprint(whole(x).shape)",
        "whole.head.load_state_dict(torch.load('head.pt'))\nfor x, y in batches:\n    whole(x).sum().backward()",
    ],
)
def test_a_model_that_is_tried_out_or_trains_is_left(tmp_path: Path, code: str) -> None:
    assert not lines(found(tmp_path, RULE, START, WHOLE, code))


# what is handed on


HANDED_ON = {
    "a list that a module calls its data": """
        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.data = []
                self.layer = nn.Linear(4, 1)
                self.opt = torch.optim.SGD(self.parameters(), lr=0.1)

            def forward(self, x):
                return self.layer(x).sigmoid()

            def put(self, item):
                self.data.append(item)

            def learn(self):
                self.opt.zero_grad()
                for reward, prob in self.data[::-1]:
                    (-torch.log(prob) * reward).mean().backward()
                self.opt.step()
                self.data = []

        policy = Policy()
        for epoch in range(3):
            for x, _ in batches:
                policy.put((1.0, policy(x)))
            policy.learn()
        """,
    "a container that cannot be seen": """
        from elsewhere import Memory
        memory = Memory()
        for x, y in batches:
            memory.put(out=net(x))
        memory.learn()
        """,
    "an item of an object that cannot be seen": """
        from elsewhere import Memory
        memory = Memory()
        for x, y in batches:
            memory["out"] = net(x)
        memory.learn()
        """,
    "unseen code that learns": """
        from elsewhere import Trainer
        trainer = Trainer(net)
        for x, y in batches:
            trainer.train_step(net(x), y)
        """,
    "unseen code that gets the optimizer too": """
        from elsewhere import Scaler
        scaler = Scaler()
        for x, y in batches:
            norm = scaler(F.mse_loss(net(x), y), opt, clip=1.0)
        """,
    "unseen code that gets the parameters too": """
        from elsewhere import Scaler
        scaler = Scaler()
        for x, y in batches:
            norm = scaler(F.mse_loss(net(x), y), parameters=net.parameters())
        """,
    "a method of a model that cannot be seen": """
        def steps(model, loader):
            model.eval()
            for x, y in loader:
                model.module.run(F.mse_loss(model(x), y))
        """,
}

LOOKED_AT = {
    "logged": ("import logging\nlog = logging.getLogger()", "log.info(F.mse_loss(net(x), y))"),
    "written": (
        "from torch.utils.tensorboard import SummaryWriter\nboard = SummaryWriter()",
        "board.add_scalar('loss', F.mse_loss(net(x), y), 1)",
    ),
    "saved": ("from torchvision.utils import save_image", "save_image(net(x), 'out.png')"),
    "plotted": ("import matplotlib.pyplot as plt", "plt.plot(net(x))"),
}


@pytest.mark.parametrize("name", LOOKED_AT)
def test_what_unseen_code_only_looks_at_is_evaluation(tmp_path: Path, name: str) -> None:
    imports, look = LOOKED_AT[name]
    code = f"{imports}\nnet.eval()\nfor x, y in batches:\n    {look}"
    assert [promise for _, promise in lines(found(tmp_path, RULE, START, TRAIN, code))] == ["exact"]


NAMES = ("save", "record", "evaluate", "process_batch", "log", "handle", "digest", "run_step", "optimism")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("imported", ["from elsewhere import {0}", "from elsewhere import box\n{0} = box.{0}"])
def test_the_name_of_unseen_code_proves_nothing(tmp_path: Path, name: str, imported: str) -> None:
    code = f"{imported.format(name)}\nnet.eval()\nfor x, y in batches:\n    {name}(net(x))"
    findings = found(tmp_path, RULE, START, TRAIN, code)
    assert [f.promise.value for f in findings] == ["advice"]
    assert "may back-propagate" in findings[0].message


@pytest.mark.parametrize("name", NAMES)
def test_a_method_of_something_unseen_may_do_anything(tmp_path: Path, name: str) -> None:
    code = f"from elsewhere import make\nnet.eval()\nfor x, y in batches:\n    make().{name}(net(x))"
    assert [f.promise.value for f in found(tmp_path, RULE, START, TRAIN, code)] == ["advice"]


@pytest.mark.parametrize("name", ["optimizer", "o", "sparkle"])
def test_an_optimizer_is_one_by_what_is_called_on_it(tmp_path: Path, name: str) -> None:
    code = f"""
        from elsewhere import walk
        def steps(model, loader, {name}):
            model.eval()
            for x, y in loader:
                {name}.zero_grad()
                norm = walk(F.mse_loss(model(x), y), {name})
        """
    assert found(tmp_path, RULE, START, TRAIN, code) == []


@pytest.mark.parametrize("name", HANDED_ON)
def test_what_is_handed_on_with_its_graph_stays(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, RULE, START, TRAIN, HANDED_ON[name]) == []


MESHES = """
    from mesh import batches, pooled, held_out

    class Solver(nn.Module):
        def __init__(self):
            super().__init__()
            self.lift = nn.Linear(4, 8)

        def forward(self, mesh):
            with mesh.scope():
                mesh.fields["heat"] = self.lift(mesh.fields["heat"]).relu()
                return pooled(mesh)

    solver = Solver()
    opt = torch.optim.SGD(solver.parameters(), lr=0.1)
    for epoch in range(3):
        for mesh, y in batches:
            opt.zero_grad()
            out = solver(mesh)
            loss = F.mse_loss(out, y)
            print(out)
            loss.backward()
            opt.step()
    """


def test_a_forward_whose_values_go_through_a_thing_that_cannot_be_seen_trains(tmp_path: Path) -> None:
    assert found(tmp_path, RULE, START, MESHES) == []


def test_beside_it_evaluation_is_still_seen(tmp_path: Path) -> None:
    code = """
        solver.eval()
        for mesh, y in held_out:
            print(F.mse_loss(solver(mesh), y).item())
        """
    after = mended(tmp_path, found(tmp_path, RULE, START, MESHES, code))
    assert added(START + dedent(MESHES) + dedent(code), after) == [
        "with torch.no_grad():",
        "for mesh, y in held_out:",
        "print(F.mse_loss(solver(mesh), y).item())",
    ]


# what training gave

LEFT_OUT = {
    "a loss in a function": (
        """
        smooth = nn.Conv1d(1, 1, 3)
        def roughness(out):
            return smooth(torch.cat((out, out), 1)[:, None]).pow(2).mean()
        for x, y in batches:
            out = net(x)
            extra = roughness(out)
            loss = F.mse_loss(out, y)  # + extra
            opt.zero_grad()
            loss.backward()
            opt.step()
            print(extra.item())
        """,
        "extra = roughness(out)",
    ),
    "a model in eval mode": (
        """
        for x, y in batches:
            out = net(x)
            teacher.eval()
            score = teacher(torch.cat([out] * 4, 1))
            opt.zero_grad()
            F.mse_loss(out, y).backward()
            opt.step()
            print(score.tolist())
        """,
        "score = teacher(torch.cat([out] * 4, 1))",
    ),
    "a second pass that is detached": (
        """
        for x, y in batches:
            code = net[0](x)
            opt.zero_grad()
            F.mse_loss(net[2](code), y).backward()
            opt.step()
            again = net[2](code).detach()
            print(again.tolist())
        """,
        "again = net[2](code).detach()",
    ),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_what_takes_the_graph_of_a_training_forward_is_advice_where_it_is_called(tmp_path: Path, name: str) -> None:
    code, line = LEFT_OUT[name]
    findings = found(tmp_path, RULE, START, code)
    assert [f.promise for f in findings] == [Promise.ADVICE]
    text = (tmp_path / "train.py").read_text().splitlines()
    assert text[findings[0].span.line - 1].strip() == line
    assert "takes a training output" in findings[0].message or "detached" in findings[0].message


def test_a_function_of_data_alone_is_decorated_though_training_calls_it(tmp_path: Path) -> None:
    code = """
        def probe():
            return net(x).argmax(1).tolist()
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
            print(probe())
        """
    assert "@torch.no_grad()\ndef probe" in mended(tmp_path, found(tmp_path, RULE, START, code))


def test_a_loss_of_what_evaluation_gave_is_not_reported_beside_it(tmp_path: Path) -> None:
    code = """
        ask = nn.MSELoss()
        for x, y in batches:
            opt.zero_grad()
            ask(net(x), y).backward()
            opt.step()
            net.eval()
            left = net(x)
            right = teacher(x)
            print(left.tolist(), right.tolist())
            print(ask(left, y).item())
            print(ask(right, y).item())
            net.train()
        """
    findings = found(tmp_path, RULE, START, code)
    text = (tmp_path / "train.py").read_text().splitlines()
    assert [text[f.span.line - 1].strip() for f in findings] == ["left = net(x)"]


# volatile


def test_volatile_goes_with_the_wrapped_block(tmp_path: Path) -> None:
    code = """
        for x, y in batches:
            out = net(Variable(x, volatile=True))
            print(F.mse_loss(out, Variable(y, volatile=True)).item())
        """
    after = mended(tmp_path, found(tmp_path, RULE, START, TRAIN, code))
    assert "with torch.no_grad():\n    for x, y in batches:\n        out = net(Variable(x))" in after


def test_a_flag_that_callers_hand_on_stays(tmp_path: Path) -> None:
    code = """
        def wrapped(x, volatile=False):
            return Variable(x, volatile=volatile)

        def score():
            net.eval()
            for x, y in batches:
                print(F.mse_loss(net(wrapped(x, volatile=True)), wrapped(y)).item())

        F.mse_loss(net(wrapped(x)), wrapped(y)).backward()
        score()
        """
    findings = found(tmp_path, RULE, START, TRAIN, code)
    before = (tmp_path / "train.py").read_text()
    assert added(before, mended(tmp_path, findings)) == ["@torch.no_grad()"]


# promises


def test_parts_of_a_transformer_choose_other_kernels_too(tmp_path: Path) -> None:
    code = """
        class Translator(nn.Module):
            def __init__(self):
                super().__init__()
                self.transformer = nn.Transformer(8, 2)
                self.out = nn.Linear(8, 5)

            def encode(self, x):
                return self.transformer.encoder(x)

        model = Translator()

        def best(x):
            model.eval()
            memory = model.encode(x)
            return model.out(memory).argmax(-1)

        print(best(torch.randn(3, 1, 8)))
        """
    findings = found(tmp_path, RULE, START, TRAIN, code)
    assert [f.promise for f in findings] == [Promise.EQUIVALENT]


WATCHED = """
    class Noisy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            {ask}
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient

    def evaluate():
        net.eval()
        print(Noisy.apply(net(x)).mean().item())

    {around}
    evaluate()
    """


@pytest.mark.parametrize(
    ("ask", "around", "number"),
    [
        ("pass", "pass", 1),
        ("if ctx.needs_input_grad[0]: x = x + torch.rand_like(x)", "pass", 0),
        ("pass", "torch.autograd.graph.saved_tensors_hooks(print, print).__enter__()", 0),
    ],
)
def test_what_sees_whether_it_is_recorded_is_left_alone(tmp_path: Path, ask: str, around: str, number: int) -> None:
    assert len(found(tmp_path, RULE, START, TRAIN, WATCHED.format(ask=ask, around=around))) == number


MASKED = """
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.one, self.encoder = layer, nn.TransformerEncoder(layer, 1)
            self.whole = nn.Transformer(8, 2)
            self.out = nn.Linear(8, 5)

        def forward(self, x, mask, **more):
            return self.out({call})

    model = Net()
    more = dict([("src_key_padding_mask", torch.zeros(3, 4).bool())])

    def evaluate():
        model.eval()
        print(model(torch.randn(3, 4, 8), torch.zeros(3, 4).bool(), **more).argmax(-1))

    evaluate()
    """


@pytest.mark.parametrize(
    ("call", "promise"),
    [
        ("self.encoder(x, src_key_padding_mask=mask)", Promise.ADVICE),
        ("self.encoder(x, None, mask)", Promise.ADVICE),
        ("self.encoder(x, **more)", Promise.ADVICE),
        ("self.whole(x, x, src_key_padding_mask=mask)", Promise.ADVICE),
        ("self.whole.encoder(x, src_key_padding_mask=mask)", Promise.ADVICE),
        ("self.encoder(x, src_key_padding_mask=None)", Promise.EXACT),
        ("self.encoder(x)", Promise.EXACT),
        ("self.one(x, None, mask)", Promise.EXACT),
    ],
)
def test_an_encoder_leaves_zeros_where_its_mask_says_padding(tmp_path: Path, call: str, promise: Promise) -> None:
    findings = found(tmp_path, RULE, START, MASKED.format(call=call))
    assert [f.promise for f in findings] == [promise]
    assert [f.likely for f in findings] == [None]


ADVICE = {
    "losses that a step may have been meant for": """
        losses = [F.mse_loss(net(x), y) for x, y in batches]
        print(sum(losses).item())
        """,
    "one such loss": """
        loss = F.mse_loss(net(x), y)
        print(loss.item())
        """,
    "a teacher whose output is detached": """
        for x, y in batches:
            target = teacher(x)
            loss = F.mse_loss(net(x), target.detach())
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
    "a function that trains and evaluates, as its loss says": """
        def epoch(train):
            net.train(train)
            total = 0.0
            for x, y in batches:
                loss = F.mse_loss(net(x), y)
                if train and loss > 0:
                    opt.zero_grad()
                    loss.backward()
                    opt.step()
                total += loss.item()
            return total
        for turn in range(3):
            epoch(True)
            print(epoch(False))
        """,
    "a forward whose loss was left out, by way of a call that cannot be seen": """
        import unseen
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            code = net[0](x)
            gap = net[2](unseen.reverse(code)).mean()
            opt.step()
            print(gap.item())
        """,
    "a forward whose loss was left out, by way of a function of one's own": """
        class Reverse(torch.autograd.Function):
            def __init__(self, factor):
                self.factor = factor
            def forward(self, x):
                return x.view_as(x)
            def backward(self, grad):
                return -self.factor * grad
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            code = net[0](x)
            gap = net[2](Reverse(1.0)(code)).mean()
            opt.step()
            print(gap.item())
        """,
    "a forward that nothing reads": """
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
            again = F.mse_loss(net(x), y)
        """,
}


@pytest.mark.parametrize("name", ADVICE)
def test_what_a_person_should_look_at_is_advice(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, START, TRAIN, ADVICE[name])
    assert [f.promise for f in findings] == [Promise.ADVICE]
    assert not findings[0].edits


def test_one_forward_of_which_only_the_shape_is_looked_at_is_not_rewritten(tmp_path: Path) -> None:
    code = """
        backbone = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        print(backbone(x).size())
        """
    assert lines(found(tmp_path, RULE, START, TRAIN, code)) == []


MODES = {
    "a context of its own, as a decorator": """
        @frozen()
        def score(loader):
            net.eval()
            return [net(x).tolist() for x, _ in loader]
        """,
    "the same, by its module": """
        @modes.frozen()
        def score(loader):
            net.eval()
            return [net(x).tolist() for x, _ in loader]
        """,
    "an object that decorates": """
        @modes.Quiet()
        def score(loader):
            net.eval()
            return [net(x).tolist() for x, _ in loader]
        """,
    "a context that is a class, as a decorator": """
        @Still()
        def score(loader):
            net.eval()
            return [net(x).tolist() for x, _ in loader]
        """,
    "a context of a module": """
        def score(loader):
            net.eval()
            with modes.frozen():
                return [net(x).tolist() for x, _ in loader]
        """,
    "a context that is a method": """
        class Judge:
            @contextmanager
            def still(self):
                with torch.no_grad():
                    yield

            def rate(self, loader):
                net.eval()
                with self.still():
                    return [net(x).tolist() for x, _ in loader]

        score = Judge().rate
        """,
    "an exit stack": """
        from contextlib import ExitStack

        def score(loader):
            net.eval()
            with ExitStack() as stack:
                stack.enter_context(torch.no_grad())
                return [net(x).tolist() for x, _ in loader]
        """,
}

_MODES = """
    import torch
    from contextlib import ContextDecorator, contextmanager

    @contextmanager
    def frozen():
        with torch.no_grad():
            yield

    class Still(ContextDecorator):
        def __enter__(self):
            self.before = torch.is_grad_enabled()
            torch._C._set_grad_enabled(False)
            return self

        def __exit__(self, *error):
            torch._C._set_grad_enabled(self.before)

    class Quiet:
        def __call__(self, function):
            def run(*args):
                with torch.no_grad():
                    return function(*args)

            return run
    """


@pytest.mark.parametrize("name", MODES)
def test_contexts_and_decorators_of_the_tree_may_switch_gradients_off(tmp_path: Path, name: str) -> None:
    imports = "import modes\nfrom contextlib import contextmanager\nfrom modes import Still, frozen"
    findings = found(tmp_path, RULE, START, TRAIN, imports, MODES[name], "print(score(batches))", modes=_MODES)
    assert lines(findings) == []


def test_gradients_are_on_again_behind_an_exit_stack(tmp_path: Path) -> None:
    code = """
    from contextlib import ExitStack

    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        print(net(x).tolist())

    def score():
        net.eval()
        return [net(x).tolist() for x, _ in batches]
    print(score())
    """
    findings = found(tmp_path, RULE, START, TRAIN, code)
    assert [f.message.partition("(")[0] for f in findings] == ["score"]


BOUND = """
    class Coder(nn.Module):
        def __init__(self):
            super().__init__()
            self.into = nn.Linear(4, 4)
            self.out = nn.Linear(4, 4)

        def encode(self, x):
            return self.into(x), x.mean()

        def decode(self, h):
            return self.out(h)

    there, back = Coder(), Coder()
    there.load_state_dict(torch.load("there.pt"))
    there.eval()
    import sys
    encode = there.encode if len(sys.argv) > 1 else back.encode
    decode = back.decode if len(sys.argv) > 1 else there.decode
    for x, _ in batches:
        code, _ = encode(x)
        torch.save(decode(code).tolist(), "x.pt")
    """


def test_a_method_in_a_variable_is_a_forward_too(tmp_path: Path) -> None:
    findings = found(tmp_path, RULE, START, BOUND)
    assert [f.promise for f in findings] == [Promise.EXACT]
    assert "with torch.no_grad():\n    for x, _ in batches:\n        code, _" in mended(tmp_path, findings)


ACTORS = """
    import random

    class Player(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Linear(4, 2)
            self.scores = []

        def forward(self, x):
            return self.body(x)

        def play(self, x, chance):
            if random.random() < chance:
                return random.randrange(2)
            return self(x).max(1)[1].tolist()[0]

        def remember(self, x):
            score = self(x)
            self.scores.append(score[0])
            return score.max(1)[1].tolist()[0]

    player = Player()
    opt = torch.optim.SGD(player.parameters(), lr=0.1)
    """


def test_a_method_of_a_module_that_gives_no_graph_out_is_decorated(tmp_path: Path) -> None:
    code = """
    for x, _ in batches:
        move = player.play(x, 0.1)
        x, y = world.step(move)
        opt.zero_grad()
        F.mse_loss(player(x), y).backward()
        opt.step()
    """
    findings = found(tmp_path, RULE, START, ACTORS, code)
    assert [f.promise for f in findings] == [Promise.EXACT]
    after = mended(tmp_path, findings).splitlines()
    assert after[after.index("    def play(self, x, chance):") - 1] == "    @torch.no_grad()"


def test_where_the_caller_only_evaluates_its_decorator_is_enough(tmp_path: Path) -> None:
    watch = """
    def watch():
        player.eval()
        for x, y in batches:
            print(player.play(x, 0.1), F.mse_loss(player(x), y).item())

    watch()
    """
    train = """
    def train():
        for x, y in batches:
            player.play(x, 0.1)
            opt.zero_grad()
            F.mse_loss(player(x), y).backward()
            opt.step()

    train()
    """
    after = mended(tmp_path, found(tmp_path, RULE, START, ACTORS, watch))
    assert after.count("no_grad") == 1
    assert "@torch.no_grad()\ndef watch():" in after
    after = mended(tmp_path, found(tmp_path, RULE, START, ACTORS, watch, train))
    assert after.count("no_grad") == 2
    assert "@torch.no_grad()\n    def play(" in after


def test_a_method_that_leaves_a_graph_behind_is_not_decorated(tmp_path: Path) -> None:
    code = """
    for x, _ in batches:
        move = player.remember(x)
        x, y = world.step(move)
        opt.zero_grad()
        torch.stack(player.scores).pow(2).sum().backward()
        opt.step()
        player.scores.clear()
    """
    assert lines(found(tmp_path, RULE, START, ACTORS, code)) == []


KEPT = {
    "the caller is under no_grad": """
        def score():
            net.eval()
            return [net(x).tolist() for x, _ in batches]
        with torch.no_grad():
            print(score())
        """,
    "decorated already": """
        @torch.no_grad()
        def score():
            net.eval()
            return [net(x).tolist() for x, _ in batches]
        print(score())
        """,
    "gradients are switched off by a statement": """
        torch.set_grad_enabled(False)
        net.eval()
        for x, _ in batches:
            print(net(x).tolist())
        """,
    "adversarial evaluation": """
        def robust(x, y):
            net.eval()
            x = x.clone().requires_grad_(True)
            F.mse_loss(net(x), y).backward()
            moved = x + 0.1 * x.grad.sign()
            return F.mse_loss(net(moved), y).item()
        print(robust(x, y))
        """,
    "a parameter of a class of its own whose gradient is written": """
        class Weight(nn.Parameter):
            pass
        weight = Weight(torch.zeros(9, 4))
        def probe():
            net.eval()
            for x, y in batches:
                weight.grad = x
                print(net(x).sum().item())
        probe()
        """,
    "a saliency map by autograd.grad": """
        def saliency(x):
            net.eval()
            x.requires_grad_()
            return torch.autograd.grad(net(x).sum(), x)[0]
        print(saliency(x))
        """,
    "the phases of a loop": """
        for phase in ["train", "val"]:
            net.train(phase == "train")
            for x, y in batches:
                with torch.set_grad_enabled(phase == "train"):
                    loss = F.mse_loss(net(x), y)
                    if phase == "train":
                        opt.zero_grad()
                        loss.backward()
                        opt.step()
                print(loss.item())
        """,
    "a caller walks the result": """
        def error(x, y):
            net.eval()
            return F.mse_loss(net(x), y)
        error(x, y).backward()
        """,
    "one of two callers walks the result": """
        def error(x, y):
            return F.mse_loss(net(x), y)
        def show():
            print(float(error(x, y)))
        error(x, y).backward()
        """,
    "a coroutine has nothing to do with a with": """
        async def answer(queue):
            async for x in queue:
                with torch.no_grad():
                    await queue.put(net(x).tolist())
        """,
    "every parameter is frozen": """
        frozen = nn.Linear(4, 1)
        for p in frozen.parameters():
            p.requires_grad = False
        frozen.eval()
        for x, _ in batches:
            print(frozen(x).tolist())
        """,
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_needed_or_done_already_stays(tmp_path: Path, name: str) -> None:
    assert lines(found(tmp_path, RULE, START, TRAIN, KEPT[name])) == []


def test_a_coroutine_is_never_wrapped_around_what_it_awaits(tmp_path: Path) -> None:
    code = """
        async def serve(queue):
            net.eval()
            while True:
                x = await queue.get()
                await queue.put(net(x).tolist())
        """
    after = mended(tmp_path, found(tmp_path, RULE, START, TRAIN, code))
    assert "with torch.no_grad():\n    while" not in after
    assert "with torch.no_grad():\n        x = await" not in after
    assert "with torch.no_grad():\n        await" not in after


MODEL = """\
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, pretrained=False):
        super().__init__()
        self.layer = nn.Linear(4, 2)
        if pretrained:
            self.load_state_dict(torch.load("net.pt"))

    def forward(self, x):
        return self.layer(x)


if __name__ == "__main__":
"""


@pytest.mark.parametrize(
    "test",
    [
        "    print(Net()(torch.randn(2, 4)).size())\n",
        "    net = Net(pretrained=True)\n    out = net(torch.randn(2, 4))\n    print(out.shape, out.size())\n",
    ],
)
def test_a_self_test_at_the_end_of_a_models_file_is_no_evaluation(tmp_path: Path, test: str) -> None:
    assert found(tmp_path, RULE, "from net import Net", net=MODEL + test) == []


def test_one_forward_whose_result_nobody_takes_is_no_evaluation(tmp_path: Path) -> None:
    calibrate = """
        def prepare(model, example):
            model.eval()
            model.fuse()
            {}
            return model.convert()
    """
    assert found(tmp_path, RULE, START, TRAIN, dedent(calibrate).format("model(example)")) == []
    many = dedent(calibrate).format("for x in example: model(x)")
    assert lines(found(tmp_path, RULE, START, TRAIN, many)) == [(25, "exact")]


def test_a_forward_that_a_hook_watches_is_no_evaluation(tmp_path: Path) -> None:
    code = """
        def inputs_of(whole, part, example):
            whole.eval()
            caught = None
            def catch(module, inputs):
                nonlocal caught
                caught = inputs
            handle = part.register_forward_pre_hook(catch)
            whole(*example)
            handle.remove()
            return caught
    """
    assert found(tmp_path, RULE, START, TRAIN, code) == []


def test_a_forward_is_not_read_by_what_it_does_itself(tmp_path: Path) -> None:
    code = """
        class Gate(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)

            def forward(self, x):
                h = self.layer(x)
                return h * 2 if h.sum() > 0 else h

        def prepare():
            model = Gate()
            model.eval()
            model(torch.randn(2, 4))
            return torch.jit.freeze(model)
        prepare()
    """
    assert found(tmp_path, RULE, START, TRAIN, code) == []


def test_a_method_that_raises_does_not_end_the_next_one(tmp_path: Path) -> None:
    stage = """
        class Stage:
            def __init__(self, net):
                self.net = net

            def describe(self):
                raise NotImplementedError

            def forward_once(self, *args):
                if self.several:
                    with self.net.no_sync():
                        out = self.net(*args)
                else:
                    out = self.net(*args)
                return out

            def clear(self):
                for p in self.net.parameters():
                    p.grad = None

            def back(self, loss):
                loss.backward()
    """
    assert found(tmp_path, RULE, START, stage) == []


def test_unit_tests_are_left_alone(tmp_path: Path) -> None:
    text = START + "\ndef test_range():\n    net.eval()\n    assert net(x).max().item() < 9\n"
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tests").mkdir()
    targets = []
    for name in ("tests/test_net.py", "check.py"):
        (tmp_path / name).write_text(text)
        targets.append(read_source(tmp_path / name, name))
    findings = analyse(targets, options=Options(select=(RULE,)), jobs=1).findings
    assert [f.path for f in findings] == ["check.py"]


def test_a_script_beside_unit_tests_is_none(tmp_path: Path) -> None:
    text = START + "\ndef test(batches):\n    net.eval()\n    for x, y in batches:\n        print(net(x).argmax(1))\n"
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "testing").mkdir()
    targets = []
    ends = {"net": "\ntest(batches)\n", "more": "", "all": "\ntest(batches)\nassert len(batches) == 3\n"}
    for name, end in ((f"testing/test_{stem}.py", end) for stem, end in ends.items()):
        (tmp_path / name).write_text(text + end)
        targets.append(read_source(tmp_path / name, name))
    findings = analyse(targets, options=Options(select=(RULE,)), jobs=1).findings
    assert [f.path for f in findings] == ["testing/test_net.py"]


PENALISED = """\
def penalty(x):
    x = x.clone().requires_grad_()
    slope, = torch.autograd.grad(net(x).sum(), x, create_graph=True)
    return slope.pow(2).mean()

def learn():
    for step, (x, y) in enumerate(batches):
        opt.zero_grad()
        (F.mse_loss(net(x), y) + penalty(x)).backward()
        opt.step()
        if step % 2:
            drawn = teacher(x)
            drawn = drawn * 0.5
            print(drawn.data.cpu())
learn()
"""


def test_a_picture_beside_a_gradient_penalty(tmp_path: Path) -> None:
    after = mended(tmp_path, found(tmp_path, RULE, START, PENALISED))
    assert "            with torch.no_grad():\n                drawn = teacher(x)\n" in after
    assert after.count("no_grad") == 1


def test_a_look_into_an_attack_that_steps_nothing_is_its_own(tmp_path: Path) -> None:
    attack = """
    def attack(x, y):
        x = x.clone().requires_grad_()
        F.mse_loss(net(x), y).backward()
        moved = x + 0.1 * x.grad.sign()
        print(net(moved).max(1)[1])
        return moved.detach()
    def learn():
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(attack(x, y)), y).backward()
            opt.step()
    learn()
    """
    assert lines(found(tmp_path, RULE, START, attack)) == []


def test_no_grad_around_the_inputs_only(tmp_path: Path) -> None:
    code = """
    def learn():
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
        scores = []
        for x, y in batches:
            x = torch.Tensor(x)
            with torch.no_grad():
                plain = Variable(x.cuda())
            scores.append(-net(plain).mean().cpu().data.numpy())
        print(scores)
    learn()
    """
    after = mended(tmp_path, found(tmp_path, RULE, START, code))
    assert "        with torch.no_grad():\n            scores.append(-net(plain).mean().cpu().data.numpy())" in after


def test_no_grad_around_some_forwards_of_a_loop_is_the_authors_choice(tmp_path: Path) -> None:
    code = """
    def learn():
        for x, y in batches:
            opt.zero_grad()
            F.mse_loss(net(x), y).backward()
            opt.step()
        scores = []
        for x, y in batches:
            with torch.no_grad():
                wanted = teacher(x)
            scores.append(F.mse_loss(net(x), wanted).cpu().data.numpy())
        print(scores)
    learn()
    """
    after = mended(tmp_path, found(tmp_path, RULE, START, code))
    assert "with torch.no_grad():\n        for" not in after


def test_parts_of_a_model_that_is_switched_to_evaluation(tmp_path: Path) -> None:
    code = """
    class Reader(nn.Module):
        def __init__(self):
            super().__init__()
            self.words = nn.Embedding(9, 4)
            self.cell = nn.Linear(4, 9)
    class Decoder:
        def __init__(self, path):
            self.model = Reader()
            self.model.load_state_dict(torch.load(path))
        def read(self, tokens):
            return self.model.cell(self.model.words(tokens)).max(1)[1].tolist()
    print(Decoder("weights.pt").read(torch.arange(3)))
    """
    before = (START + dedent(code)).replace("net", "unused")
    findings = found(tmp_path, RULE, before)
    assert added(before, mended(tmp_path, findings)) == ["@torch.no_grad()"]


@pytest.mark.parametrize("script", [False, True])
def test_half_of_an_evaluation_that_took_too_long_to_follow(script: bool) -> None:
    code = """
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.l = nn.Linear(4, 4)
        def forward(self, t):
            for _ in range(2):
                t = self.l(t)
            return t
    deep = Deep()
    def rate(out):
        return out.max(1)[1]
    """
    learn = """
    for x, y in batches:
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()
    for x, y in batches:
        first = deep(x)
        print(first.max(1)[1])
        second = deep(x + 1)
        print(rate(second))
    """
    learn = dedent(learn) if script else "def learn():" + indent(dedent(learn), "    ") + "learn()\n"
    text = START + dedent(code) + learn
    line = text[: text.index("first = ")].count("\n")
    seen = []
    for budget in range(100, 500, 4):
        followed = run_tree({"main.py": text}, budget=budget)
        if followed.trace.complete:
            decision = Decision({"main.py": followed.file}.get, Options())
            observations = list(rule(RULE).observe(followed.trace))
            seen.append([f.span.line for f in rule(RULE).decide(observations, decision)])
    assert seen[-1] == [line]
    assert all(lines in ([], [line]) for lines in seen)
    assert [] in seen


_SCORING = """
    def score(model, loader):
        model.eval()
        total = 0.0
        for x, y in loader:
            total += ((model(x) - y) ** 2).mean().item()
        return total

    def both(model, first, second):
        return score(model, first) + score(model, second)
    """

UNCOVERED = {
    "a training loop that evaluates": """
        import torch
        import scoring

        def learn(model, loader, held, optimizer):
            for x, y in loader:
                optimizer.zero_grad()
                ((model(x) - y) ** 2).mean().backward()
                optimizer.step()
                print(scoring.score(model, held))
        """,
    "the same through another function": """
        import torch
        import scoring

        def learn(model, loader, held, optimizer):
            for x, y in loader:
                optimizer.zero_grad()
                ((model(x) - y) ** 2).mean().backward()
                optimizer.step()
                print(scoring.both(model, held, held))
        """,
    "a script": """
        import torch
        import scoring

        model = torch.nn.Linear(2, 2)
        model.load_state_dict(torch.load("model.pt"))
        print(scoring.score(model, [(torch.ones(2), torch.ones(2))]))
        """,
}

COVERED = {
    "a script": """
        import torch
        import scoring

        with torch.no_grad():
            print(scoring.both(torch.nn.Linear(2, 2), [], []))
        """,
    "a function": """
        import torch
        import scoring

        @torch.no_grad()
        def report(model, held):
            print(scoring.score(model, held), scoring.both(model, held, held))
        """,
    "a function that calls another one": """
        import torch
        import scoring

        def report(model, held):
            with torch.no_grad():
                print(scoring.both(model, held, held))
        """,
}


@pytest.mark.parametrize("name", UNCOVERED)
@pytest.mark.parametrize("other", COVERED)
def test_one_caller_that_switches_gradients_off_does_not_speak_for_another(
    tmp_path: Path, name: str, other: str
) -> None:
    findings = found(tmp_path, RULE, UNCOVERED[name], scoring=_SCORING, other=COVERED[other])
    assert [f.message.partition("(")[0] for f in findings] == ["score"]


@pytest.mark.parametrize("name", COVERED)
def test_where_every_caller_switches_gradients_off_nothing_is_said(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, RULE, COVERED[name], scoring=_SCORING) == []


_NESTED = """
    class Level(nn.Module):
        def __init__(self, inner=None):
            super().__init__()
            self.inner = inner
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(x) if self.inner is None else x + self.inner(self.layer(x))

    class Halves(nn.Module):
        def __init__(self, depth):
            super().__init__()
            if depth == 1:
                self.first = nn.Linear(4, 4)
                self.second = nn.Linear(4, 4)
            else:
                self.first = Halves(depth=depth - 1)
                self.second = Halves(depth=depth - 1)

        def forward(self, x):
            return self.second(self.first(x))

    class Glass(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(5)])

        def down(self, n, x):
            low = self.layers[n](x)
            if n > 0:
                low = self.down(n - 1, low)
            return x + low

        def forward(self, x):
            return self.down(4, x)

    class Fed(nn.Module):
        def __init__(self, inner=None):
            super().__init__()
            self.inner = inner
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            if self.inner is None:
                kept.append(x)
                return self.layer(x)
            return self.inner(self.layer(x))

    class Word:
        def __init__(self, words):
            self.words = words

    class Parser(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x, tree):
            for word in tree.words:
                x = self(self.layer(x), word)
            return x

    kept = []
    """

NESTED = {
    "modules within modules": "net = Level(Level(Level(Level(Level()))))",
    "a module made of itself": "net = Halves(4)",
    "a function that goes down by a number": "net = Glass()",
}

NESTED_AND_KEPT = {
    "the innermost keeps what it gets": "net = Fed(Fed(Fed(Fed(Fed()))))",
    "how far it goes is in the data": """
        parser = Parser()
        net = lambda x: parser(x, trees.pop())
        """,
}

_EVALUATED = """
    opt = torch.optim.SGD(parameters, lr=0.1)

    def learn():
        for x, _ in batches:
            opt.zero_grad()
            (net(x).sum() + sum(k.sum() for k in kept)).backward()
            opt.step()

    def score():
        for x, _ in batches:
            print(net(x).sum().item())

    for _ in range(3):
        learn()
        score()
    """


@pytest.mark.parametrize("name", NESTED)
def test_what_calls_itself_on_other_objects_or_with_other_numbers_is_followed(tmp_path: Path, name: str) -> None:
    findings = found(tmp_path, RULE, START, _NESTED, NESTED[name], "parameters = net.parameters()", _EVALUATED)
    assert [f.message.partition("(")[0] for f in findings] == ["score"]


@pytest.mark.parametrize("name", NESTED_AND_KEPT)
def test_what_is_kept_deep_inside_may_be_walked(tmp_path: Path, name: str) -> None:
    parameters = "from data import trees\nparameters = (parser if 'parser' in globals() else net).parameters()"
    assert found(tmp_path, RULE, START, _NESTED, NESTED_AND_KEPT[name], parameters, _EVALUATED) == []


_EITHER = """
    from elsewhere import cached

    net = nn.Linear(4, 4)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)

    def squared(x):
        out = net(x) if len(x) > 3 else cached(x)
        WRITE
        return out

    def score():
        for x, _ in batches:
            print(squared(x).argmax(1).tolist())

    for x, y in batches:
        opt.zero_grad()
        F.mse_loss(net(x), y).backward()
        opt.step()
    score()
    """

WRITTEN_TO_ITSELF = {
    "a sum that grows": "out[:, 2:] *= out[:, :2]",
    "an assignment": "out[:, 0] = out[:, 1] - out[:, 2] / 2",
}

WRITTEN_INTO_OTHERS = {
    "what is computed of something else": "out[:, 0] = net(x)[:, 1]",
    "a part of it by another name": "half = out[:, 2:]; half[:] = out[:, :2]; cached(half)",
}


@pytest.mark.parametrize("name", WRITTEN_TO_ITSELF)
def test_what_is_computed_of_a_tensor_is_not_written_into_what_stands_for_it_elsewhere(
    tmp_path: Path, name: str
) -> None:
    findings = found(tmp_path, RULE, START, _EITHER.replace("WRITE", WRITTEN_TO_ITSELF[name]))
    assert [f.message.partition("(")[0] for f in findings] == ["score"]


@pytest.mark.parametrize("name", WRITTEN_INTO_OTHERS)
def test_what_is_written_into_something_unseen_may_be_walked(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, RULE, START, _EITHER.replace("WRITE", WRITTEN_INTO_OTHERS[name])) == []


def test_a_single_forward_at_the_end_of_what_is_covered_elsewhere_is_left(tmp_path: Path) -> None:
    showing = """
    def show(model, x):
        model.eval()
        print(model(x).tolist())
    """
    code = """
    import torch
    from showing import show

    model = torch.nn.Linear(2, 2)
    for _ in range(3):
        with torch.no_grad():
            show(model, torch.ones(2))
    show(model, torch.ones(2))
    """
    assert found(tmp_path, RULE, code, showing=showing) == []
    code = code.replace("with torch.no_grad():", "if True:")
    assert [f.message.partition("(")[0] for f in found(tmp_path, RULE, code, showing=showing)] == ["show"]


_APART = """
    from elsewhere import spread

    kept = []

    class Tools:
        def apart(self, x):
            if isinstance(x, (list, tuple)):
                return [self.apart(v) for v in x]
            return x.cpu()

    BODY

    def learn():
        for x, y in batches:
            opt.zero_grad()
            loss = F.mse_loss(net(x), y) + sum(k.sum() for k in kept)
            loss.backward()
            opt.step()

    def score():
        net.eval()
        for x, _ in batches:
            for v in apart(spread(net(x))):
                print(v.tolist())

    for _ in range(3):
        learn()
        score()
    """

TAKEN_APART = {
    "a comprehension": """
    def apart(x):
        if isinstance(x, (list, tuple)):
            return [apart(v) for v in x]
        return x.cpu()
    """,
    "a dict that is filled": """
    def apart(x):
        if isinstance(x, dict):
            found = {}
            for key, value in x.items():
                found[key] = apart(value)
            return found
        if isinstance(x, list):
            found = []
            for value in x:
                found.append(apart(value))
            return found
        return x.detach() if torch.is_tensor(x) else x.cpu()
    """,
    "a method": "apart = Tools().apart",
}

TAKEN_APART_AND_KEPT = {
    "it keeps what it gets": """
    def apart(x):
        if isinstance(x, (list, tuple)):
            return [apart(v) for v in x]
        kept.append(x)
        return x
    """,
    "it fills what it is given": """
    def apart(x, found=kept):
        if isinstance(x, (list, tuple)):
            return [apart(v, found) for v in x]
        found.append(x)
        return x
    """,
    "it walks it": """
    def apart(x):
        if isinstance(x, (list, tuple)):
            return [apart(v) for v in x]
        x.sum().backward()
        return x
    """,
    "it calls what cannot be seen": """
    def apart(x):
        if isinstance(x, (list, tuple)):
            return [apart(v) for v in x]
        spread(x)
        return x
    """,
}


@pytest.mark.parametrize("name", TAKEN_APART)
def test_what_takes_its_argument_apart_keeps_nothing(tmp_path: Path, name: str) -> None:
    code = dedent(_APART).replace("BODY", dedent(TAKEN_APART[name]))
    findings = found(tmp_path, RULE, START, code)
    assert [f.message.partition("(")[0] for f in findings] == ["score"]


@pytest.mark.parametrize("name", TAKEN_APART_AND_KEPT)
def test_what_takes_its_argument_apart_and_keeps_it(tmp_path: Path, name: str) -> None:
    code = dedent(_APART).replace("BODY", dedent(TAKEN_APART_AND_KEPT[name]))
    assert [f for f in found(tmp_path, RULE, START, code) if f.promise is not Promise.ADVICE] == []


FUNCTIONAL = """
import torch
from torch import nn

w = nn.Parameter(torch.randn(2, 1))
opt = torch.optim.SGD([w], lr=0.1)
criterion = nn.BCEWithLogitsLoss()
x, y = torch.randn(9, 2), torch.ones(9, 1)

def model(x):
    return x.mm(w)

def train():
    for _ in range(3):
        opt.zero_grad()
        criterion(model(x), y).backward()
        opt.step()

{code}
train()
"""


@pytest.mark.parametrize(
    ("code", "promises"),
    [
        # the graph of what the loss is made of would stay
        ("out = model(x)\nloss = criterion(out, y)\nprint(loss.item())", [Promise.ADVICE]),
        ("out = torch.tanh(model(x))\nprint(criterion(out, y).item())", [Promise.ADVICE]),
        ("train()\nout = model(x)\nloss = criterion(out, y)\nprint(loss.item())", [Promise.ADVICE]),
        # all of it comes under no_grad
        ("for _ in range(2):\n    out = model(x)\n    print(criterion(out, y).item())", [Promise.EXACT]),
        ("def test():\n    out = model(x)\n    print(criterion(out, y).item())\ntest()", [Promise.EXACT]),
        ("print(criterion(x, y).item())", []),
        ("with torch.no_grad():\n    out = model(x)\nprint(criterion(out, y).item())", []),
    ],
)
def test_a_loss_alone_is_no_evaluation(tmp_path: Path, code: str, promises: list[Promise]) -> None:
    assert [f.promise for f in found(tmp_path, RULE, FUNCTIONAL.format(code=code))] == promises


KEPT_INPUT = """
class Mixing(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.randn(4, 4)){moved}
        self.last = nn.Linear(4, 2)

    def forward(self, x):
        return self.last(x @ torch.relu(self.table))

mixing = Mixing()
{before}
opt = torch.optim.SGD(mixing.parameters(), lr=0.1)
for x, y in batches:
    opt.zero_grad()
    out = mixing(x)
    F.mse_loss(out, y).backward()
    opt.step()
    {between}
mixing.eval()
for x, y in batches:
    score = mixing({given})
    print(F.mse_loss(score, y).item())
"""


def test_a_parameter_that_was_moved_is_no_output_of_training(tmp_path: Path) -> None:
    code = KEPT_INPUT.format(moved=".to(torch.device(input()))", before="", between="pass", given="x")
    assert [f.promise for f in found(tmp_path, RULE, START, code)] == [Promise.EXACT]


def test_what_a_training_forward_keeps_is_one(tmp_path: Path) -> None:
    code = KEPT_INPUT.format(moved="", before="", between="kept = torch.cat([out, out], 1)", given="kept")
    assert [f.promise for f in found(tmp_path, RULE, START, code)] == [Promise.ADVICE]


ONE_OF_A_LOOP = {
    "what acts": """
        score = 0
        for x, _ in batches:
            score += 1
            action = int(net(x).mean() > 0)  #
            print(score, action)
        """,
    "in a branch": """
        for x, _ in batches:
            print(x)
            if len(x) > 3:
                print("long")
                print(net(x).sum().item())  #
        """,
    "in a loop in a loop": """
        for x, _ in batches:
            print(x)
            for row in x:
                print(row)
                print(net(row).item())  #
        """,
    "what a branch asks": """
        for x, _ in batches:
            print(x)
            if net(x).sum() > 0:  #
                print("more")
        """,
}

WHOLE_LOOPS = {
    "several": """
        for x, y in batches:  #
            out = net(x)
            print(F.mse_loss(out, y).item())
        """,
    "nothing beside it": """
        for x, y in batches:  #
            print(net(x).sum().item())
        """,
    "its own condition": """
        left = batches[0][0]
        while net(left).sum() > 0:  #
            left = left - 1
            print(net(left).sum().item())
        """,
    "two in branches": """
        for x, y in batches:  #
            print(x)
            if len(x) > 3:
                print(net(x).sum().item())
            else:
                print(net(y.expand(-1, 4)).sum().item())
        """,
}


@pytest.mark.parametrize("name", [*ONE_OF_A_LOOP, *WHOLE_LOOPS])
def test_of_a_loop_the_one_statement_that_records_or_all_of_it(tmp_path: Path, name: str) -> None:
    code = dedent(ONE_OF_A_LOOP.get(name) or WHOLE_LOOPS[name])
    program = START + TRAIN + code
    after = mended(tmp_path, found(tmp_path, RULE, program)).splitlines()
    (at,) = (i for i, line in enumerate(after) if line.strip() == "with torch.no_grad():")
    assert after[at + 1].endswith("  #")
    assert len(after) == len(program.splitlines()) + 1


ASKED_FOR_THEIR_SHAPE = {
    "a check": """
        def check():
            out = net(torch.randn(3, 4))
            assert out.shape == (3, 1)
        check()
        """,
    "in a loop": """
        for n in (1, 2, 3):
            out = net(torch.randn(n, 4))
            assert list(out.size()) == [n, 1]
        """,
    "printed": """
        for n in (1, 2, 3):
            print(net(torch.randn(n, 4)).size())
        """,
}

ASKED_FOR_MORE = {
    "its values as well": """
        def check():
            out = net(torch.randn(3, 4))
            assert out.shape == (3, 1)
            print(out.sum().item())
        check()
        """,
    "another forward beside it": """
        def check():
            assert net(torch.randn(3, 4)).shape == (3, 1)
            print(net(torch.randn(3, 4)).sum().item())
        check()
        """,
    "nothing: it runs for what it does": """
        for x, _ in batches:
            net(x)
        """,
    "within the model": """
        class Flat(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(4, 1)
            def forward(self, x):
                out = self.layer(x)
                return out.view(out.shape[0], -1)
        flat = Flat()
        for x, _ in batches:
            flat(x)
        """,
}


@pytest.mark.parametrize("name", [*ASKED_FOR_THEIR_SHAPE, *ASKED_FOR_MORE])
def test_a_forward_of_which_only_the_shape_is_asked_for_is_likely_a_check(tmp_path: Path, name: str) -> None:
    more = name in ASKED_FOR_MORE
    (finding,) = found(tmp_path, RULE, START, TRAIN, ASKED_FOR_MORE[name] if more else ASKED_FOR_THEIR_SHAPE[name])
    expected = (Promise.EXACT, None) if more else (Promise.ADVICE, Promise.EXACT)
    assert (finding.promise, finding.likely) == expected
    assert finding.edits


INDICES_OF_A_LOSS = {
    "the action that a target is read at": "best = teacher(x).argmax(1, keepdim=True)",
    "by the index of a maximum": "best = teacher(x).max(1, keepdim=True)[1]",
    "by a function": "best = torch.argmax(teacher(x), 1, keepdim=True)",
    "by a field": "best = torch.max(teacher(x), 1, keepdim=True).indices",
    "after a detach": "best = teacher(x).detach().argmax(1, keepdim=True)",
    "by the best few": "best = teacher(x).topk(1).indices",
    "by an order": "best = torch.argsort(teacher(x), 1)[:, :1]",
    "a mask": "best = (teacher(x) > 0).long() * 0",
}


@pytest.mark.parametrize("name", INDICES_OF_A_LOSS)
@pytest.mark.parametrize("learned", [True, False])
def test_an_index_that_a_loss_is_read_at_says_what_is_learned(tmp_path: Path, name: str, learned: bool) -> None:
    code = f"""
    def learn():
        for x, y in batches:
            {INDICES_OF_A_LOSS[name]}
            print(best)
            opt.zero_grad()
            F.mse_loss(net(x){".gather(1, best)" if learned else ""}, y).backward()
            opt.step()
    learn()
    """
    (finding,) = found(tmp_path, RULE, START, code)
    assert finding.promise is (Promise.ADVICE if learned else Promise.EXACT)


HANDING_OUT = """
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Linear(3, 4)
            self.out = nn.Linear(4, 5)

    def begin(model, x):
        encoded = model.encoder(x)
        first = model.out(encoded).argmax(1).item()
        return encoded, first

    def search(model, x):
        encoded, first = begin(model, x)
        for _ in range(5):
            first = model.out(encoded).argmax(1).item() + first
        return first

    model = Model()
    model.eval()
    for x in torch.randn(4, 1, 3):
        print(search(model, x))
    {more}
    """


@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_runs_in_a_function_that_is_decorated_needs_no_block(tmp_path: Path, elsewhere: bool) -> None:
    program = dedent(HANDING_OUT.format(more="print(begin(model, x)[1])" if elsewhere else "pass"))
    told = [program.splitlines()[f.span.line - 1].strip() for f in found(tmp_path, RULE, program)]
    assert "def search(model, x):" in told
    assert ("first = model.out(encoded).argmax(1).item()" in told) is elsewhere
