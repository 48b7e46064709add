"""What the next turn computes with: a loss, a state, what is built when it is first asked for. And graphs that a hook
walks."""

from __future__ import annotations

from tests.hunt.grammar import parts, routes
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn, task, trained

_TERMS = (
    ("0.0", "total = loss - 0.1 * {p}"),
    ("torch.zeros(())", "total = loss + ({p} - loss).abs()"),
    ("None", "total = loss if {p} is None else loss + 0.5 * (loss - {p}).pow(2)"),
    ("None", "total = loss\nif {p} is not None:\n    total = total + torch.relu(loss - {p})"),
    ("1.0", "total = loss / {p}"),
    ("None", "total = loss * (1 if {p} is None else {p}.detach())"),
)
"""What the old loss is at first, and what it does to the new one."""


@task("carried loss")
def carried_loss(s: Sketch) -> Turn:
    """The loss of the turn before is a term of this one's, as it is, cut, or as the sum that was walked."""
    trained(s)
    s.add("forward", f"out = {s.forward('x')}")
    s.add("forward", f"loss = {routes.reduced(s, 'out')}")
    first, term = s.choices.one(_TERMS)
    place = s.share("last", first, held=True)
    s.add("forward", term.format(p=place))
    parts.update(s, "total", [s.optimizer], [s.model])
    kept = s.choices.one(("loss", "loss", "loss", "total", "loss.detach()", "(loss)"))
    s.add("turn_end", f"{place} = {kept}")
    return Turn("loss", "out")


_WHEN = (
    "if {c} is None:\n    {c} = {made}",
    "if {c} is None:\n    {c} = {made}",
    "{c} = {made} if {c} is None else {c}",
    "if {c} is None or i % 2 == 0:\n    {c} = {made}",
    "if {c} is not None:\n    pass\nelse:\n    {c} = {made}",
)
_USES = ("+ (out - {c}).pow(2).mean()", "+ F.mse_loss(out, {c}) + 0.1 * {c}.abs().mean()", "* {c}.pow(2).mean()")


@task("built when asked for")
def built_when_asked_for(s: Sketch) -> Turn:
    """Outputs of the model for what is there before the loop, which the first turn computes and the others find."""
    trained(s)
    data = s.share("anchor", "torch.randn(4, 3)")
    place = s.share("built", "None", held=True)
    made = s.forward(data) + s.choices.one(("", "", "", ".detach()", ".clone()"))
    s.add("forward", f"out = {s.forward('x')}")
    s.add("forward", s.choices.one(_WHEN).format(c=place, made=made))
    s.add("forward", f"loss = {routes.reduced(s, 'out')} {s.choices.one(_USES).format(c=place)}")
    update, o = s.choices.one(("loss.backward()", "loss.backward()", "loss.backward(retain_graph=True)")), s.optimizer
    s.add("update", f"{o}.zero_grad()\n{update}\n{o}.step()")
    if s.choices.chance(30):
        s.add("epoch_start", f"{place} = None")
    return Turn("loss", "out")


_HOOKS = (
    "out.register_hook(implicit)",
    "if out.requires_grad:\n    out.register_hook(implicit)",
    "out.grad_fn.register_prehook(lambda grads: (implicit(grads[0]),))",
    "out.register_hook(Calling(implicit))",
    "out.register_hook(functools.partial(Calling.run, implicit))",
)


@task("walked by a hook")
def walked_by_a_hook(s: Sketch) -> Turn:
    """A layer whose gradient is that of a fixed point: a hook walks another graph, which has a leaf of its own."""
    trained(s)
    s.need("import functools")
    s.define(
        """
        class Calling:
            def __init__(self, function):
                self.function = function

            def __call__(self, grad):
                return self.function(grad)

            @staticmethod
            def run(function, grad):
                return function(grad)
        """
    )
    inner = s.share("inner", "nn.Linear(2, 2)")
    turns, flag = s.choices.one(("1", "3")), s.choices.one((", retain_graph=True", ", retain_graph=True", ""))
    walk = f"torch.autograd.grad(again, point, grad{flag if turns == '1' else ', retain_graph=True'})[0]"
    s.add(
        "forward",
        f"out = {s.forward('x')}\n"
        "point = out.detach().requires_grad_()\n"
        f"again = torch.tanh({inner}(point))\n"
        f"def implicit(grad):\n    for k in range({turns}):\n        grad = 0.5 * {walk} + grad\n    return grad",
    )
    s.add("forward", s.choices.one(_HOOKS))
    s.add("forward", f"loss = {routes.reduced(s, 'out')}")
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")


_STATES = (
    ("nn.GRUCell(3, 4)", "torch.zeros(4, 4)", "new"),
    ("nn.GRUCell(3, 4)", "None", "new"),
    ("nn.LSTMCell(3, 4)", "None", "new[0]"),
)
"""The cell, the state it begins with, and what of its result the loss is computed from."""


@task("taken over")
def taken_over(s: Sketch) -> Turn:
    """The state of a turn gets the name under which the next one reads it where the step is over."""
    made, start, out = s.choices.one(_STATES)
    cell, s.model = s.share("cell", made), s.share("readout", "nn.Linear(4, 2)")
    s.forward = lambda x: f"{s.model}(F.pad({x}, (0, 1)))"
    s.optimizer = parts.optimizer(s, cell, s.model)
    state = s.share("state", start, held=True)
    s.add("forward", f"new = {cell}(x, {state})\nout = {s.model}({out})\nloss = {routes.reduced(s, 'out')}")
    parts.update(s, "loss", [s.optimizer], [cell, s.model])
    kept = [
        "{s} = new",
        "{s} = new",
        "{s}, _ = new, i",
        "if i % 2 == 0:\n    {s} = new",
        "{s} = new if i < 2 else None",
    ]
    if out == "new":
        kept += ["{s} = new.detach()", "{s} = 0.5 * new", "{s} = (new.data)", "if loss < 1e9:\n    {s} = new"]
        cut = ("if i > 0:\n    {s} = {s}.detach()", "if torch.is_tensor({s}):\n    {s} = {s}.detach()")
        s.add(
            "turn_start", s.choices.one(("", "", *cut, "if {s} is not None and i:\n    {s} = {s}.data")).format(s=state)
        )
    s.add("turn_end", s.choices.one(tuple(kept)).format(s=state))
    return Turn("loss", "out")


MEMBRANE = """
class {name}(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 2)
        self.charge = {start}

    def begin(self):
        self.charge = {start}

    def forward(self, x):
        self.charge = {update}
        fired = torch.sigmoid(5 * (self.charge - 0.5))
        self.charge = {reset}
        return {result}
"""


@task("membrane")
def membrane(s: Sketch) -> Turn:
    """A neuron that charges over the time steps of a turn, and is discharged by what it gives."""
    name, choices = s.fresh("Neuron"), s.choices
    s.define(
        MEMBRANE.format(
            name=name,
            start=choices.one(("0.0", "torch.zeros(4, 2)", "torch.zeros(1)")),
            update=choices.one(("0.9 * self.charge + self.layer(x)", "torch.tanh(self.charge + self.layer(x))")),
            reset=choices.one(("self.charge - 0.5 * fired", "self.charge * (1 - fired)", "self.charge - fired.detach()",
                               "self.charge.detach() - fired")),
            result=choices.one(("fired", "self.charge", "fired + self.charge")),
        )
    )  # fmt: skip
    s.model = s.share("neuron", f"{name}()")
    s.forward = lambda x: f"{s.model}({x})"
    s.optimizer = parts.optimizer(s, s.model)
    begin = choices.one(
        (
            "",
            "",
            "{m}.begin()",
            "if i % 2 == 0:\n    {m}.begin()",
            "if torch.is_tensor({m}.charge):\n    {m}.charge = {m}.charge.detach()",
            "if i > 0:\n    {m}.charge = {m}.charge.detach()",
            "{m}.charge = torch.as_tensor({m}.charge).detach()",
        )
    )
    s.add("turn_start", begin.format(m=s.model))
    line = choices.one(
        (
            "out = 0\nfor _ in range(3):\n    out = out + {f}",
            "out = sum([{f} for _ in range(2)])",
            "out = {f}\nout = {f}",
        )
    )
    s.add("forward", f"{line.format(f=s.forward('x'))}\nloss = {routes.reduced(s, 'out')}")
    parts.update(s, "loss", [s.optimizer], [s.model])
    return Turn("loss", "out")
