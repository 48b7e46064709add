"""Programs that are built otherwise: many models, classes that do it all, generators, coroutines, time steps."""

from __future__ import annotations

from tests.hunt.grammar import parts, routes
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn, task, trained


@task("ensemble")
def ensemble(s: Sketch) -> Turn:
    """Several models in a list or dict, each with an optimizer of its own."""
    held = s.choices.one(("list", "dict", "module list", "zip"))
    flag = s.choices.one(("", "", "retain_graph=True"))
    value = s.choices.one(("loss", "loss.item()", "loss.detach()", "float(loss)"))
    if held == "dict":
        nets = s.share("nets", '{"a": nn.Linear(3, 2), "b": nn.Linear(3, 2)}')
        opts = s.share("opts", f"{{k: torch.optim.SGD(m.parameters(), lr=0.1) for k, m in {nets}.items()}}")
        s.model = f"{nets}['a']"
        head, opt, net = f"for key, net in {nets}.items():", f"{opts}[key]", "net"
    elif held == "module list":
        nets = s.share("nets", "nn.ModuleList([nn.Linear(3, 2) for _ in range(2)])")
        opts = s.share("opts", f"torch.optim.Adam({nets}.parameters(), lr=0.01)")
        s.model, head, opt, net = f"{nets}[0]", f"for net in {nets}:", opts, "net"
    else:
        nets = s.share("nets", "[nn.Linear(3, 2) for _ in range(2)]")
        opts = s.share("opts", f"[torch.optim.SGD(m.parameters(), lr=0.1) for m in {nets}]")
        s.model, head, opt, net = f"{nets}[0]", f"for net, one in zip({nets}, {opts}):", "one", "net"
    s.forward = lambda x: f"{s.model}({x})"
    s.optimizer = s.share("opt", f"torch.optim.SGD({s.model}.parameters(), lr=0.01)")
    s.add("forward", "losses = []\nloss = torch.zeros(())")
    s.add("update", f"{head}\n    loss = F.mse_loss({net}(x), y)\n    {opt}.zero_grad()\n    loss.backward({flag})\n"
                    f"    {opt}.step()\n    losses.append({value})\nprint(sum(losses))")  # fmt: skip
    return Turn("loss")


ENGINE = """
class {name}:
    def __init__(self):
        self.gen = nn.Linear(3, 2)
        self.disc = nn.Sequential(nn.Linear(2, 4), nn.LeakyReLU(0.2), nn.Linear(4, 1))
        self.gen_opt = torch.optim.Adam(self.gen.parameters(), lr=0.01)
        self.disc_opt = torch.optim.Adam(self.disc.parameters(), lr=0.01)
        self.loss_names = ["loss_d", "loss_g"]
        {extra}

    def set_input(self, x, y):
        self.x, self.y = x, y

    def forward(self):
        self.fake = self.gen(self.x)

    def backward_d(self):
        real = self.disc(self.y)
        fake = self.disc({cut})
        self.loss_d = F.softplus(-real).mean() + F.softplus(fake).mean()
        self.loss_d.backward({flag})

    def backward_g(self):
        self.loss_g = F.softplus(-self.disc(self.fake)).mean()
        self.loss_g.backward({last})

    def optimize(self):
        self.forward()
        {freeze}self.disc_opt.zero_grad()
        self.backward_d()
        self.disc_opt.step()
        self.gen_opt.zero_grad()
        self.backward_g()
        self.gen_opt.step()

    def losses(self):
        return {{n: {read} for n in self.loss_names}}
"""


@task("engine class")
def engine(s: Sketch) -> Turn:
    """A class with inputs, outputs and losses on itself, and a method for each backward."""
    name = s.fresh("Engine")
    module = s.choices.one((None, "engines"))
    s.define(ENGINE.format(
        name=name, cut=s.choices.one(("self.fake.detach()", "self.fake", "self.pool(self.fake)", "self.fake.data")),
        flag=s.choices.one(("", "retain_graph=True")), last=s.choices.one(("", "retain_graph=True")),
        freeze=s.choices.one(("", "self.gen_opt.zero_grad()\n        ")),
        read=s.choices.one(("getattr(self, n)", "float(getattr(self, n))", "getattr(self, n).item()")),
        extra=s.choices.one(("self.pool = lambda fake: fake.detach()", "self.pool = lambda fake: fake")),
    ), module)  # fmt: skip
    if module:
        s.need(f"from {module} import {name}")
    place = s.share("engine", f"{name}()", held=True)
    s.model, s.forward = f"{place}.gen", lambda x: f"{place}.gen({x})"
    s.optimizer = f"{place}.gen_opt"
    s.add("update", f"{place}.set_input(x, y)\n{place}.optimize()\nlosses = {place}.losses()\nloss = losses['loss_d']\n"
                    "print(sorted(losses))")  # fmt: skip
    return Turn(f"{place}.loss_d")


@task("losses yielded")
def yielded(s: Sketch) -> Turn:
    """A generator makes the losses, or several terms of one; who asks it walks them."""
    trained(s)
    out = s.forward("x").replace(s.model, "net")
    body = s.choices.one((
        f"out = {out}\nyield F.mse_loss(out, y)\nyield F.l1_loss(out, y)",
        f"for part in (x, -x):\n    x = part\n    yield F.mse_loss({out}, y)",
        f"out = {out}\nyield from (F.mse_loss(out, y), out.pow(2).mean())",
    ))  # fmt: skip
    s.define("def terms(net, x, y):\n    " + body.replace("\n", "\n    "))
    flag = s.choices.one(("", "retain_graph=True"))
    o = s.optimizer
    s.add("forward", "loss = torch.zeros(())")
    s.add("update", s.choices.one((
        f"{o}.zero_grad()\nloss = sum(terms({s.model}, x, y))\nloss.backward({flag})\n{o}.step()",
        f"{o}.zero_grad()\nfor term in terms({s.model}, x, y):\n    loss = loss + term\nloss.backward({flag})\n"
            f"{o}.step()",
        f"{o}.zero_grad()\nfor term in terms({s.model}, x, y):\n    term.backward({flag})\n{o}.step()",
        f"first, second = terms({s.model}, x, y)\n{o}.zero_grad()\nloss = first\n"
            f"(first + second).backward({flag})\n{o}.step()",
        f"{o}.zero_grad()\nloss, *rest = terms({s.model}, x, y)\nloss = loss + sum(rest)\n"
            f"loss.backward({flag})\n{o}.step()",
    )))  # fmt: skip
    return Turn("loss")


@task("coroutine")
def coroutine(s: Sketch) -> Turn:
    """The step is a coroutine."""
    s.need("import asyncio")
    trained(s)
    out = s.forward("x").replace(s.model, "net")
    flag = s.choices.one(("", "retain_graph=True"))
    s.define(f"async def objective(net, x, y):\n    return F.mse_loss({out}, y)")
    s.define(
        "async def learn(net, opt, x, y):\n    loss = await objective(net, x, y)\n    opt.zero_grad()\n"
        f"    loss.backward({flag})\n    opt.step()\n    return loss{s.choices.one(('', '.item()', '.detach()'))}"
    )
    s.add("update", f"loss = asyncio.run(learn({s.model}, {s.optimizer}, x, y))\nloss = torch.as_tensor(loss)")
    return Turn("loss")


@task("time steps")
def time_steps(s: Sketch) -> Turn:
    """A sequence inside one batch: one backward after it, one in each step, or windows."""
    cell = s.share("cell", s.choices.one(("nn.GRUCell(3, 4)", "nn.RNNCell(3, 4)")))
    s.model = s.share("readout", "nn.Linear(4, 2)")
    s.forward = lambda x: f"{s.model}(F.pad({x}, (0, 1)))"
    s.optimizer = o = parts.optimizer(s, cell, s.model)
    kind = s.choices.one(("after", "each retained", "each cut", "window", "each own state", "list", "accumulated"))
    s.features.append(f"time {kind}")
    flag = s.choices.one(("", "", "retain_graph=True"))
    head = (
        f"h = torch.zeros(4, 4)\nloss = torch.zeros(())\n{o}.zero_grad()\nfor t in range(3):\n    "
        f"h = {cell}(x * (t + 1), h)\n"
    )
    term = f"F.mse_loss({s.model}(h), y)"
    if kind == "after":
        text = head + f"    loss = loss + {term}\nloss.backward({flag})\n{o}.step()"
    elif kind == "list":
        whole = s.choices.one(("sum(losses)", "torch.stack(losses).mean()"))
        text = f"losses = []\n{head}    losses.append({term})\nloss = {whole}\nloss.backward({flag})\n{o}.step()"
    elif kind == "each retained":
        text = head + f"    loss = {term}\n    loss.backward(retain_graph=True)\n{o}.step()"
    elif kind == "each cut":
        text = head + f"    loss = {term}\n    loss.backward({flag})\n    h = h.detach()\n{o}.step()"
    elif kind == "window":
        text = head + (
            f"    loss = loss + {term}\n    if t % 2 == 1:\n        loss.backward({flag})\n        {o}.step()\n"
            f"        {o}.zero_grad()\n        loss = torch.zeros(())\n        h = h.detach()"
        )
    elif kind == "accumulated":
        text = head + f"    loss = loss + {term}\n    loss.backward(retain_graph=True)\n{o}.step()"
    else:
        text = (
            head.replace(f"h = {cell}(x * (t + 1), h)", f"h = {cell}(x * (t + 1))")
            + f"    loss = {term}\n    loss.backward({flag})\n{o}.step()"
        )
    s.add("update", text)
    s.slots["forward"].append("loss = torch.zeros(())")
    return Turn("loss")


@task("same graph twice")
def same_graph(s: Sketch) -> Turn:
    """One forward, walked several times."""
    trained(s)
    s.add("forward", f"out = {s.forward('x')}\nloss = {routes.reduced(s, 'out')}")
    o = s.optimizer
    s.add("update", s.choices.one((
        f"for k in range(2):\n    {o}.zero_grad()\n    loss.backward(retain_graph=True)\n{o}.step()",
        f"{o}.zero_grad()\nloss.backward(retain_graph=True)\nloss.backward()\n{o}.step()",
        f"{o}.zero_grad()\nloss.backward()\nloss.backward()\n{o}.step()",
        f"{o}.zero_grad()\nloss.backward(retain_graph=True)\n"
            f"first = [p.grad.clone() for p in {s.model}.parameters() if p.grad is not None]\n"
        f"{o}.zero_grad()\n(loss * 2).backward()\n{o}.step()",
        f"{o}.zero_grad()\ngrads = [torch.autograd.grad(out[k].sum(), out, retain_graph=True)[0] for k in range(2)]\n"
        f"loss.backward(retain_graph=True)\n{o}.step()",
        f"{o}.zero_grad()\nfor k in range(4):\n    F.mse_loss(out[k], y[k]).backward(retain_graph=k < 3)\n{o}.step()",
        f"{o}.zero_grad()\nfor k in range(4):\n    F.mse_loss(out[k], y[k]).backward(retain_graph=True)\n{o}.step()",
        f"def again(retain=True):\n    loss.backward(retain_graph=retain)\n{o}.zero_grad()\nagain()\n"
            f"again(False)\n{o}.step()",
    )))  # fmt: skip
    return Turn("loss", "out")


@task("loss on demand")
def on_demand(s: Sketch) -> Turn:
    """The loss is a property, a cached property or a method that is called more than once."""
    trained(s)
    kind = s.choices.one(("property", "functools.cached_property", "method"))
    s.need("import functools")
    name = s.fresh("Problem")
    out = s.forward("self.x").replace(s.model, "self.net")
    head = "" if kind == "method" else f"    @{kind}\n"
    s.define(f"class {name}:\n    def __init__(self, net, x, y):\n        self.net, self.x, self.y = net, x, y\n\n"
             f"{head}    def loss(self):\n        return F.mse_loss({out}, self.y)")  # fmt: skip
    read = "problem.loss()" if kind == "method" else "problem.loss"
    flag = s.choices.one(("", "retain_graph=True"))
    s.add("update", f"problem = {name}({s.model}, x, y)\nprint({read}.item())\n{s.optimizer}.zero_grad()\n"
                    f"{read}.backward({flag})\n{s.optimizer}.step()")  # fmt: skip
    s.add("forward", "loss = torch.zeros(())")
    return Turn("loss")


@task("saliency")
def saliency(s: Sketch) -> Turn:
    """Training, and a look at gradients by the input beside it."""
    trained(s)
    out = s.forward("probe").replace(s.model, "net")
    body = s.choices.one((
        f"probe = x.clone().requires_grad_()\n{out}.sum().backward()\nreturn float(probe.grad.abs().sum())",
        f"probe = x.clone().requires_grad_()\nreturn torch.autograd.grad({out}.sum(), probe)[0].norm().item()",
        f"probe = torch.autograd.Variable(x, requires_grad=True)\nscore = {out}.max(1)[0].sum()\nscore.backward()\n"
        "return probe.grad.sum().item()",
        f"with torch.enable_grad():\n    probe = x.clone().requires_grad_()\n    score = {out}.norm()\n"
        "return torch.autograd.grad(score, probe, retain_graph=True)[0].sum().item()",
    ))  # fmt: skip
    s.add("forward", f"out = {s.forward('x')}\nloss = {routes.reduced(s, 'out')}")
    parts.update(s, "loss", [s.optimizer], [s.model])
    call = s.helper(s.choices.one(("saliency", "evaluate", "explain")), {"net": s.model, "x": "x"}, body)
    s.add("turn_end", f"print({call})\n{s.model}.zero_grad()")
    return Turn("loss", "out")
