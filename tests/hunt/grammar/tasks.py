"""What is learned, and how: each task fills the slots of one training step."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tests.hunt.grammar import parts, routes
from tests.hunt.grammar.sketch import Sketch


class Turn(NamedTuple):
    """What a task leaves for what people add around it: names that hold in its slots from ``forward`` on."""

    loss: str
    output: str = ""
    """A matrix of 4 x 2, attached; empty where there is none."""


Task = Callable[[Sketch], Turn]
TASKS: dict[str, Task] = {}


def task(name: str) -> Callable[[Task], Task]:
    """Register a task under ``name``."""

    def register(function: Task) -> Task:
        TASKS[name] = function
        return function

    return register


def trained(sketch: Sketch) -> None:
    """A model and its optimizer, as ``sketch.model`` and ``sketch.optimizer``."""
    sketch.model, sketch.forward = parts.model(sketch)
    sketch.optimizer = parts.optimizer(sketch, sketch.model)


@task("supervised")
def supervised(s: Sketch) -> Turn:
    """One model, one loss."""
    trained(s)
    s.add("forward", f"out = {s.forward('x')}")
    out = routes.carried(s, "forward", "out", matrix=True)
    s.add("forward", f"loss = {routes.reduced(s, out)}")
    loss = routes.carried(s, "forward", "loss", most=1)
    parts.update(s, loss, [s.optimizer], [s.model])
    return Turn(loss, out)


@task("helper loss")
def helper_loss(s: Sketch) -> Turn:
    """The loss comes from a function, perhaps with its components beside it."""
    trained(s)
    s.add("forward", f"out = {s.forward('x')}")
    kind = s.choices.one(("value", "tuple", "dict", "generator", "list"))
    one, other = routes.reduced(s, "a", "b"), routes.reduced(s, "a", "b")
    body = f"first = {one}\nsecond = {other}\n"
    if kind == "value":
        call = s.helper("objective", {"a": "out", "b": "y"}, body + "return first + 0.1 * second")
        s.add("forward", f"loss = {call}")
    elif kind == "tuple":
        call = s.helper("objective", {"a": "out", "b": "y"}, body + "return first + second, first, second")
        s.add("forward", f"loss, first, second = {call}")
    elif kind == "dict":
        call = s.helper(
            "objective",
            {"a": "out", "b": "y"},
            body + 'return {"first": first, "second": second, "loss": first + second}',
        )
        s.add("forward", f"losses = {call}\nloss = " + s.choices.one(('losses["loss"]', "sum(losses.values())")))
    elif kind == "generator":
        call = s.helper("objective", {"a": "out", "b": "y"}, body + "return (term for term in (first, second))")
        s.add("forward", f"loss = sum({call})")
    else:
        call = s.helper("objective", {"a": "out", "b": "y"}, body + "return [first, second]")
        s.add("forward", f"terms = {call}\nloss = torch.stack(terms).{s.choices.one(('sum', 'mean'))}()")
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")


@task("two losses")
def two_losses(s: Sketch) -> Turn:
    """Two losses over one forward, each with a backward of its own or as a sum."""
    trained(s)
    s.add("forward", f"out = {s.forward('x')}\nfirst = {routes.reduced(s, 'out')}\nsecond = {routes.reduced(s, 'out')}")
    kind = s.choices.one(
        (
            "sum",
            "both",
            "both retained",
            "loop",
            "loop accumulated",
            "apart",
            "last forgotten",
            "conditional",
            "weighted list",
            "grad norm",
        )
    )
    s.features.append(f"losses {kind}")
    o = s.optimizer
    if kind == "sum":
        s.add("forward", "loss = first + second")
        parts.update(s, "loss", [o], [s.model])
        return Turn("loss", "out")
    s.add("forward", "loss = first")
    if kind in ("both", "both retained", "last forgotten"):
        last = "retain_graph=True" if kind == "both retained" else ""
        first = "" if kind == "last forgotten" else "retain_graph=True"
        s.add("update", f"{o}.zero_grad()\nfirst.backward({first})\nsecond.backward({last})\n{o}.step()")
    elif kind == "loop":
        flag = s.choices.one(("retain_graph=True", ""))
        s.add("update", f"{o}.zero_grad()\nfor term in [first, second]:\n    term.backward({flag})\n{o}.step()")
    elif kind == "loop accumulated":
        flag = s.choices.one(("retain_graph=True", ""))
        inside = s.choices.chance(60)
        line = f"    total.backward({flag})" if inside else f"total.backward({flag})"
        s.add(
            "update",
            f"{o}.zero_grad()\ntotal = 0\nfor term in (first, second):\n    total = total + term\n{line}\n{o}.step()",
        )
    elif kind == "apart":
        s.add(
            "update",
            f"{o}.zero_grad()\nfirst.backward(retain_graph=True)\n{o}.step()\n{o}.zero_grad()\n"
            f"second.backward({s.choices.one(('', 'retain_graph=True'))})\n{o}.step()",
        )
    elif kind == "conditional":
        s.add(
            "update",
            f"{o}.zero_grad()\nfirst.backward(retain_graph=True)\nif i % 2 == 0:\n"
            f"    second.backward({s.choices.one(('', 'retain_graph=True'))})\n{o}.step()",
        )
    elif kind == "weighted list":
        s.add(
            "update",
            f"weights = [1.0, 0.5]\n{o}.zero_grad()\n"
            "loss = sum(w * l for w, l in zip(weights, [first, second]))\n"
            f"loss.backward({s.choices.one(('', 'retain_graph=True'))})\n{o}.step()",
        )
    else:
        s.add(
            "update",
            f"{o}.zero_grad()\nnorms = [g.norm() for g in torch.autograd.grad(first, "
            f"list({s.model}.parameters()), retain_graph=True, allow_unused=True) if g is not None]\n"
            f"(first + second).backward({s.choices.one(('', 'retain_graph=True'))})\n{o}.step()",
        )
    return Turn("loss", "out")


@task("two models")
def two_models(s: Sketch) -> Turn:
    """An encoder and a head, trained by one optimizer or two."""
    s.model, s.forward = parts.model(s, "encoder")
    head = s.share("head", "nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 2))")
    both = s.choices.chance(50)
    s.optimizer = parts.optimizer(s, s.model, head) if not both else parts.optimizer(s, s.model)
    s.add("forward", f"code = {s.forward('x')}")
    code = routes.carried(s, "forward", "code", matrix=True)
    s.add("forward", f"out = {head}({code})")
    s.add("forward", f"loss = {routes.reduced(s, 'out')}")
    if not both:
        parts.update(s, "loss", [s.optimizer], [s.model, head])
        return Turn("loss", "out")
    other = parts.optimizer(s, head, stem="headopt")
    kind = s.choices.one(("together", "own losses", "own losses retained", "frozen", "step between"))
    s.features.append(f"two optimizers {kind}")
    if kind == "together":
        parts.update(s, "loss", [s.optimizer, other], [s.model, head])
    elif kind == "frozen":
        s.prepare(f"for p in {head}.parameters():\n    p.requires_grad_(False)")
        parts.update(s, "loss", [s.optimizer], [s.model, head])
    else:
        cut = s.choices.one((code, f"{code}.detach()"))
        flag = "retain_graph=True" if kind == "own losses retained" else ""
        s.add("forward", f"other = {routes.reduced(s, f'{head}({cut})')}")
        if kind == "step between":
            s.add(
                "update",
                f"{other}.zero_grad()\nother.backward({s.choices.one(('retain_graph=True', ''))})\n"
                f"{other}.step()\n{s.optimizer}.zero_grad()\nloss.backward({flag})\n{s.optimizer}.step()",
            )
        else:
            s.add(
                "update",
                f"{other}.zero_grad()\n{s.optimizer}.zero_grad()\nother.backward(retain_graph=True)\n"
                f"loss.backward({flag})\n{other}.step()\n{s.optimizer}.step()",
            )
    return Turn("loss", "out")


@task("adversarial")
def adversarial(s: Sketch) -> Turn:
    """A generator and a discriminator."""
    s.model = s.share("gen", "nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))")
    s.forward = lambda x: f"{s.model}({x})"
    norm = s.choices.one(("", "nn.BatchNorm1d(5), ", "nn.Dropout(0.2), "))
    d = s.share("disc", f"nn.Sequential(nn.Linear(2, 5), {norm}nn.LeakyReLU(0.2), nn.Linear(5, 1))")
    s.optimizer = g_opt = parts.optimizer(s, s.model, stem="gopt")
    d_opt = parts.optimizer(s, d, stem="dopt")
    style = s.choices.one(("bce", "wasserstein", "hinge"))
    real, fake, fool = {
        "bce": (
            "F.binary_cross_entropy_with_logits({}, torch.ones(4, 1))",
            "F.binary_cross_entropy_with_logits({}, torch.zeros(4, 1))",
            "F.binary_cross_entropy_with_logits({}, torch.ones(4, 1))",
        ),
        "wasserstein": ("-{}.mean()", "{}.mean()", "-{}.mean()"),
        "hinge": ("F.relu(1 - {}).mean()", "F.relu(1 + {}).mean()", "-{}.mean()"),
    }[style]
    s.add("forward", f"noise = torch.randn(4, 3)\nout = {s.forward('noise')}")
    moved = routes.carried(s, "forward", "out", matrix=True, most=1)
    cut = s.choices.one((f"{moved}.detach()", moved, f"{moved}.data", moved))
    flag = s.choices.one(("retain_graph=True", "", "retain_graph=True"))
    penalty = ""
    if s.choices.chance(25):
        inside = s.choices.one((f"{moved}.detach()", moved, f"{moved}.data"))
        s.add(
            "forward",
            f"alpha = torch.rand(4, 1)\nmixed = (alpha * y + (1 - alpha) * {inside}).requires_grad_(True)\n"
            f"slope = torch.autograd.grad({d}(mixed).sum(), mixed, create_graph=True)[0]\n"
            "penalty = ((slope.norm(2, 1) - 1) ** 2).mean()",
        )
        penalty = " + 0.1 * penalty"
    d_loss = f"d_loss = {real.format(f'{d}(y)')} + {fake.format(f'{d}({cut})')}{penalty}"
    g_loss = f"g_loss = {fool.format(f'{d}({moved})')}"
    order = s.choices.one(
        ("d then g", "g first", "both losses first", "two backwards", "new fake", "every second", "frozen generator")
    )
    s.features.append(f"gan {order}")
    last = s.choices.one(("", "", "retain_graph=True"))
    d_step = f"{d_opt}.zero_grad()\nd_loss.backward({flag})\n{d_opt}.step()"
    g_step = f"{g_opt}.zero_grad()\ng_loss.backward({last})\n{g_opt}.step()"
    if order == "g first":
        s.add(
            "update",
            f"{g_loss}\n{g_opt}.zero_grad()\ng_loss.backward({flag})\n{g_opt}.step()\n{d_loss}\n"
            f"{d_opt}.zero_grad()\nd_loss.backward({last})\n{d_opt}.step()\nloss = d_loss",
        )
    elif order == "both losses first":
        s.add("update", f"{d_loss}\n{g_loss}\n{d_step}\n{g_step}\nloss = d_loss")
    elif order == "two backwards":
        s.add(
            "update",
            f"{d_opt}.zero_grad()\nd_real = {real.format(f'{d}(y)')}\nd_real.backward({last})\n"
            f"d_fake = {fake.format(f'{d}({cut})')}\nd_fake.backward({flag})\n{d_opt}.step()\n"
            f"{g_loss}\n{g_step}\nloss = d_real + d_fake",
        )
    elif order == "new fake":
        s.add(
            "update",
            f"{d_loss}\n{d_step}\nout = {s.forward('torch.randn(4, 3)')}\n"
            f"g_loss = {fool.format(f'{d}(out)')}\n{g_step}\nloss = d_loss",
        )
    elif order == "every second":
        s.add(
            "update",
            f"{d_loss}\n{d_step}\nif i % 2 == 0:\n    g_loss = {fool.format(f'{d}({moved})')}\n    "
            + g_step.replace("\n", "\n    ")
            + "\nloss = d_loss",
        )
    elif order == "frozen generator":
        s.add(
            "update",
            f"{s.model}.requires_grad_(False)\n{d_loss}\n{d_step}\n{s.model}.requires_grad_(True)\n"
            f"out = {s.forward('noise')}\ng_loss = {fool.format(f'{d}(out)')}\n{g_step}\nloss = d_loss",
        )
    else:
        s.add("update", f"{d_loss}\n{d_step}\n{g_loss}\n{g_step}\nloss = d_loss")
    return Turn("loss", moved)


CELLS = {
    "gru cell": ("nn.GRUCell(3, 4)", "torch.zeros(4, 4)", "{h} = {r}(x, {h})\nfeature = {h}", "{h} = {h}.detach()"),
    "lstm cell": (
        "nn.LSTMCell(3, 4)",
        "(torch.zeros(4, 4), torch.zeros(4, 4))",
        "{h} = {r}(x, {h})\nfeature = {h}[0]",
        "{h} = tuple(part.detach() for part in {h})",
    ),
    "gru": (
        "nn.GRU(3, 4, batch_first=True)",
        "torch.zeros(1, 4, 4)",
        "seen, {h} = {r}(x.unsqueeze(1), {h})\nfeature = seen[:, -1]",
        "{h} = {h}.detach()",
    ),
    "lstm": (
        "nn.LSTM(3, 4, batch_first=True)",
        "None",
        "seen, {h} = {r}(x.unsqueeze(1), {h})\nfeature = seen.squeeze(1)",
        "{h} = [part.detach() for part in {h}]\n{h} = tuple({h})",
    ),
    "rnn": (
        "nn.RNN(3, 4, batch_first=True)",
        "None",
        "seen, {h} = {r}(x[:, None], {h})\nfeature = {h}[0]",
        "{h}.detach_()",
    ),
    "own": (
        "nn.Linear(7, 4)",
        "torch.zeros(4, 4)",
        "{h} = torch.tanh({r}(torch.cat([x, {h}], 1)))\nfeature = {h}",
        "{h} = {h}.data",
    ),
}


@task("recurrent")
def recurrent(s: Sketch) -> Turn:
    """A state that goes on from batch to batch, or does not."""
    kind = s.choices.one(tuple(CELLS))
    made, initial, line, cut = CELLS[kind]
    r = s.share("cell", made)
    s.model = s.share("readout", "nn.Linear(4, 2)")
    s.forward = lambda x: f"{s.model}(F.pad({x}, (0, 1)))"
    s.optimizer = parts.optimizer(s, r, s.model)
    h = s.share("state", initial, held=True)
    line, cut = line.format(h=h, r=r), cut.format(h=h)
    manner = s.choices.one(
        (
            "carried",
            "fresh each batch",
            "cut at the top",
            "cut at the end",
            "window",
            "whole epoch",
            "fresh each epoch",
            "cut in the call",
        )
    )
    s.features.append(f"state {manner}")
    if manner == "fresh each batch":
        s.add("turn_start", f"{h} = {initial}")
    elif manner == "cut at the top":
        s.add("turn_start", f"if {h} is not None:\n    " + cut.replace("\n", "\n    "))
    elif manner == "fresh each epoch":
        s.add("epoch_start", f"{h} = {initial}")
    s.add("forward", line)
    feature = routes.carried(s, "forward", "feature", most=1)
    s.add("forward", f"out = {s.model}({feature})\nloss = {routes.reduced(s, 'out')}")
    if manner == "window":
        window = s.share("window", "0")
        s.add(
            "update",
            f"{window} = {window} + loss\nif (i + 1) % 2 == 0:\n    {s.optimizer}.zero_grad()\n"
            f"    {window}.backward({s.choices.one(('', 'retain_graph=True'))})\n    {s.optimizer}.step()\n"
            f"    {window} = 0\n    " + cut.replace("\n", "\n    "),
        )
    elif manner == "whole epoch":
        losses = s.share("losses", "[]")
        s.add("epoch_start", f"{losses} = []\n{h} = {initial}")
        s.add("update", f"{losses}.append(loss)")
        s.add("epoch_end", f"{s.optimizer}.zero_grad()\nsum({losses}).backward()\n{s.optimizer}.step()")
    else:
        parts.update(s, "loss", [s.optimizer], [r, s.model])
        if manner == "cut at the end":
            s.add("turn_end", cut)
    return Turn("loss", "out")


STATEFUL = """
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 4)
        self.out = nn.Linear(4, 2)
        self.hidden = None

    def init_hidden(self):
        return torch.zeros(4, 4)

    def reset(self):
        self.hidden = self.init_hidden()

    def forward(self, x):
        {begin}
        self.hidden = self.cell(x, self.hidden)
        {end}
        return self.out(hidden)
"""


@task("stateful module")
def stateful(s: Sketch) -> Turn:
    """A module that keeps its own recurrent state."""
    begin = s.choices.one(
        (
            "if self.hidden is None:\n            self.hidden = self.init_hidden()",
            "self.hidden = self.init_hidden()",
            "if self.hidden is None:\n            self.reset()\n        self.hidden = self.hidden.detach()",
        )
    )
    end = s.choices.one(("hidden = self.hidden", "hidden, self.hidden = self.hidden, self.hidden.detach()"))
    name = s.fresh("Remembering")
    s.define(STATEFUL.format(name=name, begin=begin, end=end))
    s.model = s.share("model", f"{name}()")
    s.any_batch = False
    s.forward = lambda x: f"{s.model}({x})"
    s.optimizer = parts.optimizer(s, s.model)
    where = s.choices.one(("never", "turn", "epoch", "assigned", "detached outside"))
    if where in ("turn", "epoch"):
        s.add(f"{where}_start", f"{s.model}.reset()")
    elif where == "assigned":
        s.add("turn_start", f"{s.model}.hidden = {s.choices.one(('None', f'{s.model}.init_hidden()'))}")
    s.add("forward", f"out = {s.forward('x')}\nloss = {routes.reduced(s, 'out')}")
    parts.update(s, "loss", [s.optimizer], [s.model])
    if where == "detached outside":
        s.add("turn_end", f"{s.model}.hidden = {s.model}.hidden.detach()")
    return Turn("loss", "out")


@task("micro-batches")
def micro(s: Sketch) -> Turn:
    """Several batches before one step: gradients added up, or losses summed."""
    trained(s)
    s.batches = 4
    s.add("forward", f"out = {s.forward('x')}\nloss = {routes.reduced(s, 'out')}")
    kind = s.choices.one(("each", "summed", "list", "stacked", "never reset", "inner loop", "remainder"))
    s.features.append(f"micro {kind}")
    o = s.optimizer
    flag = s.choices.one(("", "", "retain_graph=True"))
    share = s.choices.one(("", " / 2"))
    if kind == "each":
        s.add("update", f"(loss{share}).backward({flag})\nif (i + 1) % 2 == 0:\n    {o}.step()\n    {o}.zero_grad()")
    elif kind in ("summed", "remainder"):
        total = s.share("summed", "0")
        every = "2" if kind == "summed" else "3"
        reset = s.choices.one((f"    {total} = 0", f"    {total} = 0.0"))
        s.add(
            "update",
            f"{total} = {total} + loss{share}\nif (i + 1) % {every} == 0:\n    {o}.zero_grad()\n"
            f"    {total}.backward({flag})\n    {o}.step()\n{reset}",
        )
    elif kind in ("list", "stacked"):
        losses = s.share("pending", "[]")
        how = f"torch.stack({losses}).mean()" if kind == "stacked" else f"sum({losses})"
        s.add(
            "update",
            f"{losses}.append(loss{share})\nif len({losses}) == 2:\n    {o}.zero_grad()\n"
            f"    {how}.backward({flag})\n    {o}.step()\n"
            + s.choices.one((f"    {losses} = []", f"    {losses}.clear()", f"    del {losses}[:]")),
        )
    elif kind == "never reset":
        total = s.share("summed", "0")
        s.add("update", f"{total} = {total} + loss\n{o}.zero_grad()\n{total}.backward({flag})\n{o}.step()")
    else:
        s.add(
            "update",
            f"{o}.zero_grad()\ntotal = 0\nfor k in range(2):\n"
            f"    total = total + F.mse_loss({s.forward('x * (k + 1)')}, y)\ntotal.backward({flag})\n{o}.step()",
        )
    return Turn("loss", "out")


@task("q learning")
def q_learning(s: Sketch) -> Turn:
    """Temporal differences with a target network, or without."""
    s.need("import copy")
    trained(s)
    target = s.share("target", f"copy.deepcopy({s.model})")
    tforward = lambda x: s.forward(x).replace(s.model, target)  # noqa: E731
    best = s.choices.one(
        (
            "{q}.max(1).values",
            "{q}.max(1)[0]",
            "torch.max({q}, 1).values",
            "{q}.max(dim=1)[0]",
            "{q}.amax(1)",
            "{q}.topk(1, 1).values.squeeze(1)",
            "{q}.sort(1, descending=True)[0][:, 0]",
            "torch.max({q}, dim=1)[0]",
            "{q}.gather(1, {q}.argmax(1, keepdim=True)).squeeze(1)",
        )
    )
    cut = s.choices.one(("no_grad", "detach", "none", "data", "own", "own detached"))
    source = s.forward if cut.startswith("own") else tforward
    s.features.append(f"target {cut}")
    value = best.format(q=source("x.roll(1, 0)"))
    if cut == "no_grad":
        s.add("forward", f"with torch.no_grad():\n    future = {value}")
    else:
        s.add(
            "forward",
            f"future = {value}" + {"detach": ".detach()", "own detached": ".detach()", "data": ".data"}.get(cut, ""),
        )
    future = routes.carried(s, "forward", "future", most=1)
    s.add(
        "forward",
        f"actions = torch.tensor([0, 1, 0, 1])\nout = {s.forward('x')}\n"
        "chosen = out.gather(1, actions.unsqueeze(1)).squeeze(1)\n"
        f"loss = {s.choices.one(('F.mse_loss', 'F.smooth_l1_loss'))}(chosen, y[:, 0] + 0.9 * {future})",
    )
    parts.update(s, "loss", [s.optimizer], [s.model])
    s.add(
        "turn_end",
        s.choices.one(
            (
                f"if i % 2 == 0:\n    {target}.load_state_dict({s.model}.state_dict())",
                f"for a, b in zip({target}.parameters(), {s.model}.parameters()):\n"
                "    a.data.copy_(0.9 * a.data + 0.1 * b.data)",
                f"with torch.no_grad():\n    for a, b in zip({target}.parameters(), {s.model}.parameters()):\n"
                "        a.mul_(0.9).add_(0.1 * b)",
            )
        ),
    )
    return Turn("loss", "out")


@task("policy gradient")
def policy_gradient(s: Sketch) -> Turn:
    """Actions are drawn, their log-probabilities kept until the episode is over."""
    trained(s)
    saved = s.share("saved", "[]", held=True)
    values = s.share("rewards", "[]")
    s.need("from torch.distributions import Categorical")
    act = s.helper(
        "select",
        {"net": s.model, "state": "x[:1]"},
        f"scores = {s.forward('state').replace(s.model, 'net')}\n"
        "choice = Categorical(logits=scores)\naction = choice.sample()\n"
        "return action.item(), choice.log_prob(action), choice.entropy()",
    )
    s.add(
        "forward",
        f"for k in range(2):\n    action, log_prob, entropy = {act}\n    {saved}.append(log_prob)\n"
        f"    {values}.append(float(action) + 0.5)",
    )
    s.add("forward", f"loss = -sum(p.sum() * r for p, r in zip({saved}, {values}))")
    if s.choices.chance(40):
        s.add("forward", "loss = loss - 0.01 * entropy.mean()")
    parts.update(s, "loss", [s.optimizer], [s.model])
    clear = s.choices.one(("new", "clear", "del", "forgotten"))
    if clear == "new":
        s.add("turn_end", f"{saved} = []\n{values} = []")
    elif clear == "clear":
        s.add("turn_end", f"{saved}.clear()\n{values}.clear()")
    elif clear == "del":
        s.add("turn_end", f"del {saved}[:]\ndel {values}[:]")
    return Turn("loss")


@task("actor critic")
def actor_critic(s: Sketch) -> Turn:
    """An actor whose loss goes through the critic, a critic whose target must not reach the actor."""
    trained(s)
    critic = s.share("critic", "nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 1))")
    c_opt = parts.optimizer(s, critic, stem="copt")
    cut = s.choices.one(("torch.no_grad", "detach", "none"))
    s.add(
        "forward",
        f"with torch.no_grad():\n    action = {s.forward('x')}"
        if cut == "torch.no_grad"
        else f"action = {s.forward('x')}" + (".detach()" if cut == "detach" else ""),
    )
    flag = s.choices.one(("", "", "retain_graph=True"))
    s.add(
        "forward",
        f"value = {critic}(torch.cat([x, action], 1))\n"
        f"critic_loss = F.mse_loss(value, y[:, :1])\n{c_opt}.zero_grad()\n"
        f"critic_loss.backward({flag})\n{c_opt}.step()",
    )
    out = routes.carried(s, "forward", s.forward("x"), matrix=True, most=1)
    s.add("forward", f"loss = -{critic}(torch.cat([x, {out}], 1)).mean()")
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss")


@task("penalised")
def penalised(s: Sketch) -> Turn:
    """Gradients by the inputs enter the loss."""
    trained(s)
    made = s.choices.one(
        (
            "x = x.clone().requires_grad_(True)",
            "x = x.detach().requires_grad_()",
            "x.requires_grad = True",
            "x = x.clone()\nx.requires_grad_()",
        )
    )
    s.add(
        "forward",
        f"{made}\nout = {s.forward('x')}\n"
        "slope = torch.autograd.grad(out.sum(), x, create_graph=True)[0]\n"
        f"loss = {routes.reduced(s, 'out')} + 0.1 * slope.pow(2).sum()",
    )
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")


@task("meta")
def meta(s: Sketch) -> Turn:
    """An inner step of gradient descent that the outer loss looks through."""
    s.model = s.share("model", "nn.Linear(3, 2)")
    s.forward = lambda x: f"{s.model}({x})"
    s.optimizer = parts.optimizer(s, s.model)
    first = s.choices.one(
        ("create_graph=True", "create_graph=False", "retain_graph=True", "create_graph=True, retain_graph=True")
    )
    s.add(
        "forward",
        f"inner = F.mse_loss({s.forward('x')}, y)\n"
        f"grads = torch.autograd.grad(inner, list({s.model}.parameters()), {first})\n"
        f"fast = [p - 0.1 * g for p, g in zip({s.model}.parameters(), grads)]\n"
        "out = F.linear(x, *fast)\n"
        f"loss = {routes.reduced(s, 'out')}",
    )
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")


@task("invariant")
def invariant(s: Sketch) -> Turn:
    """Something attached is made once, before the loop, and read in every turn."""
    trained(s)
    weight = s.share("scale", s.choices.one(("nn.Parameter(torch.ones(2))", "torch.ones(2, requires_grad=True)")))
    kind = s.choices.one(("leaf", "derived", "derived forward", "detached", "derived each turn", "no grad"))
    s.features.append(f"invariant {kind}")
    if kind == "leaf":
        gain = weight
    elif kind == "derived":
        gain = s.share(
            "gain",
            s.choices.one(
                (
                    f"torch.exp({weight})",
                    f"{weight} * 2",
                    f"F.softplus({weight})",
                    f"{weight}.sigmoid()",
                    f"{weight}.to(torch.float32)",
                )
            ),
            held=True,
        )
    elif kind == "derived forward":
        gain = s.share(
            "gain", f"{s.forward('torch.ones(1, 3)')}.mean(0)" if "[" not in s.forward("x") else "1.0", held=True
        )
    elif kind == "detached":
        gain = s.share("gain", f"torch.exp({weight}).detach()", held=True)
    elif kind == "no grad":
        s.prepare(f"with torch.no_grad():\n    fixed = torch.exp({weight})")
        gain = s.share("gain", "fixed")
    else:
        s.add("turn_start", f"gain = torch.exp({weight})")
        gain = "gain"
    s.add("forward", f"out = {s.forward('x')} * {gain}\nloss = {routes.reduced(s, 'out')}")
    parts.update(s, "loss", [s.optimizer], [s.model], flag=s.choices.chance(50))
    return Turn("loss", "out")


@task("variational")
def variational(s: Sketch) -> Turn:
    """A loss of two terms that a helper returns beside their sum."""
    enc = s.share("encoder", "nn.Linear(3, 4)")
    s.model = s.share("decoder", "nn.Linear(2, 2)")
    s.forward = lambda x: f"{s.model}({x}[:, :2])"
    s.optimizer = parts.optimizer(s, enc, s.model)
    call = s.helper(
        "elbo",
        {"out": "out", "y": "y", "mu": "mu", "logvar": "logvar"},
        "rec = F.mse_loss(out, y)\nkl = -0.5 * (1 + logvar - mu ** 2 - logvar.exp()).mean()\n"
        "return rec + 0.1 * kl, rec, kl",
    )
    s.add(
        "forward",
        f"mu, logvar = {enc}(x).chunk(2, 1)\nz = mu + torch.randn_like(mu) * (0.5 * logvar).exp()\n"
        f"out = {s.model}(z)\nloss, rec, kl = {call}",
    )
    parts.update(s, "loss", [s.optimizer], [enc, s.model])
    return Turn("loss", "out")


@task("contrastive")
def contrastive(s: Sketch) -> Turn:
    """A bank or queue of features of earlier batches."""
    trained(s)
    kind = s.choices.one(("list", "deque", "buffer", "mean", "previous", "dict"))
    kept = s.choices.one(("{v}", "{v}.detach()", "{v}.data", "{v}", "{v}.clone()", "{v}.clone().detach()"))
    s.features.append(f"bank {kind}")
    s.add("forward", f"out = {s.forward('x')}")
    out = routes.carried(s, "forward", "out", matrix=True, most=1)
    if kind in ("list", "deque"):
        s.need("import collections")
        bank = s.share("bank", "[]" if kind == "list" else "collections.deque(maxlen=2)", held=True)
        s.add(
            "forward",
            f"loss = {routes.reduced(s, out)}\nif {bank}:\n    loss = loss + 0.1 * F.mse_loss({out}, "
            + s.choices.one((f"{bank}[-1]", f"torch.stack(list({bank})).mean(0)", f"sum({bank}) / len({bank})"))
            + ")",
        )
        store = f"{bank}.append({kept.format(v=out)})"
    elif kind == "dict":
        bank = s.share("bank", "{}")
        s.add(
            "forward",
            f"loss = {routes.reduced(s, out)}\nif i in {bank}:\n    loss = loss + 0.1 * F.mse_loss({out}, {bank}[i])",
        )
        store = f"{bank}[i] = {kept.format(v=out)}"
    elif kind == "buffer":
        bank = s.share("bank", "torch.zeros(4, 2)", held=True)
        s.add("forward", f"loss = F.mse_loss({out}, {bank}) + {routes.reduced(s, out)}")
        store = s.choices.one(
            (
                f"{bank} = {kept.format(v=out)}",
                f"{bank}[:] = {kept.format(v=out)}",
                f"{bank} = {bank}.clone()\n{bank}[:2] = {kept.format(v=out)}[:2]",
            )
        )
    elif kind == "mean":
        bank = s.share("mean", "torch.zeros(2)", held=True)
        s.add(
            "forward",
            f"{bank} = 0.9 * {s.choices.one((bank, f'{bank}.detach()'))} + "
            f"0.1 * {kept.format(v=out)}.mean(0)\n"
            f"loss = ({out} - {bank}).pow(2).mean() + {routes.reduced(s, out)}",
        )
        store = "pass"
    else:
        bank = s.share("previous", "None", held=True)
        s.add(
            "forward",
            f"loss = {routes.reduced(s, out)}\nif {bank} is not None:\n"
            f"    loss = loss + 0.1 * ({out} - {bank}).pow(2).mean()",
        )
        store = f"{bank} = {kept.format(v=out)}"
    early = s.choices.chance(40)
    if early:
        s.add("forward", store)
    parts.update(s, "loss", [s.optimizer], [s.model])
    if not early:
        s.add("turn_end", store)
    return Turn("loss", out)


@task("distilled")
def distilled(s: Sketch) -> Turn:
    """A teacher, frozen or averaged or neither."""
    s.need("import copy")
    trained(s)
    teacher = s.share("teacher", f"copy.deepcopy({s.model})")
    call = s.forward("x").replace(s.model, teacher)
    kind = s.choices.one(("no_grad", "detach", "frozen", "attached", "trained too", "eval only"))
    s.features.append(f"teacher {kind}")
    if kind == "frozen":
        s.prepare(f"for p in {teacher}.parameters():\n    p.requires_grad = False")
    if kind == "eval only":
        s.prepare(f"{teacher}.eval()")
    if kind == "no_grad":
        s.add("forward", f"with torch.no_grad():\n    soft = {call}")
    else:
        s.add("forward", f"soft = {call}" + (".detach()" if kind == "detach" else ""))
    soft = routes.carried(s, "forward", "soft", matrix=True, most=1)
    s.add("forward", f"out = {s.forward('x')}\nloss = {routes.reduced(s, 'out')} + 0.5 * F.mse_loss(out, {soft})")
    if kind == "trained too":
        other = parts.optimizer(s, teacher, stem="topt")
        parts.update(s, "loss", [s.optimizer, other], [s.model, teacher])
    else:
        parts.update(s, "loss", [s.optimizer], [s.model])
        if s.choices.chance(50):
            s.add(
                "turn_end",
                "with torch.no_grad():\n    for a, b in zip("
                f"{teacher}.parameters(), {s.model}.parameters()):\n        a.lerp_(b, 0.1)",
            )
    return Turn("loss", "out")


@task("line search")
def line_search(s: Sketch) -> Turn:
    """LBFGS with its closure."""
    s.model, s.forward = parts.model(s)
    s.optimizer = s.share("opt", f"torch.optim.LBFGS({s.model}.parameters(), max_iter=3)")
    flag = s.choices.one(("", "retain_graph=True"))
    inside = s.choices.chance(80)
    lines = f"out = {s.forward('x')}\nloss = F.mse_loss(out, y)"
    s.add("forward", "loss = torch.zeros(())" if inside else lines)
    body = f"{s.optimizer}.zero_grad()\n" + (lines + "\n" if inside else "") + f"loss.backward({flag})\nreturn loss"
    s.add("update", "def closure():\n    " + body.replace("\n", "\n    ") + f"\nloss = {s.optimizer}.step(closure)")
    return Turn("loss")


@task("attacked")
def attacked(s: Sketch) -> Turn:
    """Inputs are moved along their own gradients before they are learned from."""
    trained(s)
    made = s.choices.one(
        (
            "x.clone().detach().requires_grad_(True)",
            "x.detach().clone().requires_grad_()",
            "torch.autograd.Variable(x.data, requires_grad=True)",
        )
    )
    body = (
        f"adv = {made}\nattack = F.mse_loss({s.forward('adv').replace(s.model, 'net')}, y)\n"
        + s.choices.one(
            (
                "attack.backward()\ngrad = adv.grad",
                "grad = torch.autograd.grad(attack, adv)[0]",
                "grad, = torch.autograd.grad(attack, [adv], retain_graph=True)",
            )
        )
        + "\nreturn (adv + 0.1 * grad.sign()).detach()"
    )
    s.add(
        "forward",
        f"x = {s.helper('perturb', {'net': s.model, 'x': 'x', 'y': 'y'}, body)}\n"
        f"out = {s.forward('x')}\nloss = {routes.reduced(s, 'out')}",
    )
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")
