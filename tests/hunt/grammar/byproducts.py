"""Forwards that leave something behind which a loss reads later: on a module, in a hook, on a wrapper, in a cache."""

from __future__ import annotations

from tests.hunt.grammar import parts, routes
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn, task, trained


def _regularised(s: Sketch, kept: str) -> None:
    """The loss, of which ``kept`` (a 4 x something) is a part, or is only looked at."""
    use = s.choices.one(
        ("loss = loss + 0.1 * {k}.pow(2).mean()", "print({k}.mean().item())", "loss += 0.1 * {k}.abs().sum()")
    )
    s.add("forward", f"loss = {routes.reduced(s, 'out')}\n{use.format(k=kept)}")


@task("hooked features")
def hooked(s: Sketch) -> Turn:
    """A forward hook appends what a layer gives."""
    s.model = s.share("model", "nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))")
    s.forward = lambda x: f"{s.model}({x})"
    s.optimizer = parts.optimizer(s, s.model)
    seen = s.share("features", s.choices.one(("[]", "{}")), held=True)
    keep = s.choices.one(("output", "output.detach()", "output", "output.clone()"))
    store = s.choices.one(("append", "item", "function"))
    if seen.endswith("]") or store == "function":
        s.prepare(f"{seen} = []")
        s.prepare(
            f"def remember(module, inputs, output):\n    {seen}.append({keep})\n"
            f"{s.model}[0].register_forward_hook(remember)"
        )
        last, clear = f"{seen}[-1]", f"{seen}.clear()"
    else:
        s.prepare(f"{seen} = {{}}")
        s.prepare(
            f"def remember(module, inputs, output):\n    {seen}['h'] = {keep}\n"
            f"{s.model}[0].register_forward_hook(remember)"
        )
        last, clear = f"{seen}['h']", f"{seen}.clear()"
    s.add("forward", f"out = {s.forward('x')}")
    _regularised(s, last)
    parts.update(s, "loss", [s.optimizer], [s.model])
    if s.choices.chance(60):
        s.add("turn_end", clear)
    return Turn("loss", "out")


POLICY = """
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(3, 2)
        self.log_std = nn.Parameter(torch.zeros(2))
        self.choice = None

    def forward(self, x):
        self.choice = torch.distributions.Normal(self.mean(x), self.log_std.exp())
        return self.choice

    def act(self, x):
        {act}

    def log_prob(self, action):
        return self.choice.log_prob(action).sum(-1)
"""


@task("distribution kept")
def distribution(s: Sketch) -> Turn:
    """The policy keeps the distribution of its last forward; the loss asks it for log-probabilities."""
    act = s.choices.one((
        "return self(x).sample()", "choice = self(x)\n        return choice.sample()",
        "with torch.no_grad():\n            return self(x).sample()", "return self(x).mean.detach()",
        "return self.forward(x).rsample().detach()", "return self.mean(x).detach()",
    ))  # fmt: skip
    name = s.fresh("Policy")
    module = s.choices.one((None, "policies"))
    s.define(POLICY.format(name=name, act=act), module)
    if module:
        s.need(f"from {module} import {name}")
    s.model = s.share("policy", f"{name}()")
    s.forward = lambda x: f"{s.model}({x}).mean"
    s.optimizer = parts.optimizer(s, s.model)
    s.add("forward", f"action = {s.model}.act(x)")
    if s.choices.chance(40) or "no_grad" in act or "self.mean(x)" in act:
        s.add("forward", f"{s.model}(x)")
    s.add("forward", f"loss = -({s.model}.log_prob(action) * y[:, 0]).mean()")
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss")


@task("kept by a wrapper")
def wrapped(s: Sketch) -> Turn:
    """A decorator keeps what the function returned."""
    trained(s)
    keep = s.choices.one(("result", "result.detach()", "result"))
    s.define(f"def keeping(function):\n    def wrapper(*args):\n        result = function(*args)\n"
             f"        wrapper.last = {keep}\n        return result\n    return wrapper")  # fmt: skip
    s.define(f"@keeping\ndef look(net, x):\n    return {s.forward('x').replace(s.model, 'net')}")
    s.add("forward", f"guess = look({s.model}, x)\nprint(guess.sum().item())\nout = {s.forward('x')}")
    _regularised(s, "look.last")
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")


@task("cached by evaluation")
def cached(s: Sketch) -> Turn:
    """A function that looks like an evaluation leaves what a later loss reads."""
    trained(s)
    cache = s.share("cache", "{}", held=True)
    keep = s.choices.one(("out", "out.detach()", "out.mean(0)", "out.max(1).values", "out.argmax(1).float()"))
    body = f"out = {s.forward('x').replace(s.model, 'net')}\ncache['seen'] = {keep}\nreturn out.sum().item()"
    call = s.helper(s.choices.one(("evaluate", "score", "prepare")), {"net": s.model, "x": "x", "cache": cache}, body)
    s.add("forward", f"print({call})\nout = {s.forward('x')}")
    _regularised(s, f"{cache}['seen']")
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")


@task("proximal policy")
def proximal(s: Sketch) -> Turn:
    """A rollout, then several epochs over it: old log-probabilities against new ones."""
    trained(s)
    cut = s.choices.one((".detach()", "", ".detach()", ".data"))
    guard = s.choices.chance(40)
    line = f"old = F.log_softmax({s.forward('x')}, 1)[:, 0]{cut}"
    s.add("forward", f"with torch.no_grad():\n    {line}" if guard else line)
    flag = s.choices.one(("", "retain_graph=True", ""))
    s.add("forward", "loss = torch.zeros(())")
    s.add("update", f"for k in range(2):\n    new = F.log_softmax({s.forward('x')}, 1)[:, 0]\n"
                    "    ratio = (new - old).exp()\n    loss = -(ratio * y[:, 0]).mean()\n"
                    f"    {s.optimizer}.zero_grad()\n    loss.backward({flag})\n    {s.optimizer}.step()")  # fmt: skip
    return Turn("loss")


@task("features first")
def features(s: Sketch) -> Turn:
    """Another network gives inputs: trained, frozen, under no_grad or cut afterwards."""
    body = s.share("body", s.choices.one(("nn.Linear(3, 3)", "nn.Sequential(nn.Linear(3, 3), nn.Tanh())")))
    s.model, s.forward = parts.model(s)
    kind = s.choices.one(("trained", "not trained", "frozen", "no_grad", "detached", "read only", "through max"))
    s.features.append(f"features {kind}")
    s.optimizer = parts.optimizer(s, s.model, *([body] if kind in ("trained", "through max") else []))
    if kind == "frozen":
        s.prepare(
            s.choices.one(
                (f"{body}.requires_grad_(False)", f"for p in {body}.parameters():\n    p.requires_grad = False")
            )
        )
    if kind == "no_grad":
        s.add("forward", f"with torch.no_grad():\n    seen = {body}(x)")
    elif kind == "through max":
        s.add("forward", f"seen = {body}(x)\nseen = seen - " + s.choices.one((
            "seen.max(1, keepdim=True).values", "torch.max(seen, 1, keepdim=True)[0]", "seen.min(1, True)[0]",
            "seen.topk(1).values", "seen.median(1, True)[0]", "seen.sort(1)[0][:, :1]")))  # fmt: skip
    else:
        s.add("forward", f"seen = {body}(x)" + (".detach()" if kind == "detached" else ""))
    seen = routes.carried(s, "forward", "seen", most=2)
    s.add("forward", f"out = {s.forward('x' if kind == 'read only' else seen)}")
    if kind == "read only":
        s.add("forward", f"print({seen}.sum().item())")
    s.add("forward", f"loss = {routes.reduced(s, 'out')}")
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")


@task("own labels")
def own_labels(s: Sketch) -> Turn:
    """Targets come from the model itself."""
    trained(s)
    made = s.choices.one(("{o}.argmax(1)", "{o}.max(1)[1]", "{o}.detach().argmax(1)", "{o}.topk(1)[1].squeeze(1)"))
    s.add("forward", f"labels = {made.format(o=s.forward('x'))}\nout = {s.forward('x + 0.1')}\n"
                     "loss = F.cross_entropy(out, labels)")  # fmt: skip
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")
