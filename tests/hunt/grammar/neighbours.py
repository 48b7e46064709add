"""Programs in which one output meets another: of the turn before, beside it in a list, of a copied model.

And totals that torch itself reads.
"""

from __future__ import annotations

from tests.hunt.grammar import routes
from tests.hunt.grammar.extras import VALUES, extra
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn, task, trained

COPIES = ("outs + []", "tuple(outs)", "[*outs]", "(*outs,)", "outs.copy()", "list(filter(torch.is_tensor, outs))",
          "(lambda *each: each)(*outs)", "list(map(lambda o: o * 2, outs))")  # fmt: skip
FLAGS = ("", "retain_graph=True", "retain_graph=True")


@task("turn before")
def turn_before(s: Sketch) -> Turn:
    """A loss between this turn's output and that of the turn before, which the first turn has not."""
    trained(s)
    last = s.share("last", "None", held=True)
    kept = s.choices.one(("out", "out", "out.detach()", "out.clone()"))
    flag, o = s.choices.one(FLAGS), s.optimizer
    backward = f"loss = F.mse_loss(out, {last})\n    loss.backward({flag})"
    steps = s.choices.one(("each", "each", "other", "end", "end"))
    body = f"    {o}.zero_grad()\n    {backward}\n    {o}.step()" if steps == "each" else f"    {backward}"
    form = s.choices.one(("if", "skip", "else"))
    s.features.append(f"turn before {form}")
    s.add("forward", f"out = {s.forward('x')}\nloss = out.pow(2).mean()")
    if form == "skip":
        s.add("update", f"if {last} is None:\n    {last} = {kept}\n    __skip__\n{body.replace('    ', '')}")
    elif form == "else":
        s.add("update", f"if {last} is None:\n    print('first')\nelse:\n{body}")
    else:
        s.add("update", f"if {last} is not None:\n{body}")
    s.add("update", f"{last} = {kept}")
    if s.choices.chance(50):
        s.add("epoch_start", f"{last} = None")
    if steps == "other":
        s.add("update", f"if i % 2 == 1:\n    {o}.step()\n    {o}.zero_grad()")
    if steps == "end":
        s.add("epoch_end", f"{o}.step()\n{o}.zero_grad()")
    return Turn("loss", "out")


@task("neighbours")
def neighbours(s: Sketch) -> Turn:
    """Losses between the elements of one list."""
    trained(s)
    out = s.forward("x * (k + 1)")
    pairs = s.choices.one((
        "for a, b in zip(outs, outs[1:]):",
        "for a, b in zip(outs[:-1], outs[1:]):",
        "for a, b in zip(outs[1:], outs):",
        "for a, b in itertools.pairwise(outs):",
        "for a, b in itertools.combinations(outs, 2):",
        "first, *others = outs\nfor a, b in zip([first] * 3, others):",
        "for k in range(1, len(outs)):\n    a, b = outs[k - 1], outs[k]",
        "for a, b in zip(outs, reversed(outs)):",
        "for a, b in zip(outs[::2], outs[1::2]):",
        "for a, b in zip(outs, [y, y, y, y]):",
    ))  # fmt: skip
    if "itertools" in pairs:
        s.need("import itertools")
    made = s.choices.one(("[{o} for k in range(4)]", "list({o} for k in range(4))", "[]"))
    s.add("forward", f"outs = {made.format(o=out)}")
    if made == "[]":
        s.add("forward", f"for k in range(4):\n    outs.append({out})")
    if s.choices.chance(50):
        s.add("forward", f"outs = {s.choices.one(COPIES)}")
    value, o = s.choices.one(("term", "term.detach()")), s.optimizer
    s.add("update", f"loss = torch.zeros(())\n{o}.zero_grad()\n{pairs}\n    term = F.mse_loss(a, b)\n"
                    f"    term.backward({s.choices.one(FLAGS)})\n    loss = loss + {value}\n{o}.step()")  # fmt: skip
    s.add("forward", "loss = torch.zeros(())")
    return Turn("loss")


@task("copied")
def copied(s: Sketch) -> Turn:
    """Two losses over one forward, beside a copy that is frozen, changed, or trained by itself."""
    s.need("import copy")
    trained(s)
    made = s.choices.one(("copy.deepcopy({m})", "copy.deepcopy({m}).requires_grad_(False)", "copy.copy({m})"))
    other = s.share("teacher", made.format(m=s.model))
    s.prepare(s.choices.one((
        f"for p in {other}.parameters():\n    p.requires_grad = False",
        f"for p in {s.model}.parameters():\n    p.requires_grad = True",
        f"{other}.eval()",
        f"{other}.requires_grad_({s.choices.one(('True', 'False'))})",
    )))  # fmt: skip
    call = s.forward("x").replace(s.model, other)
    o, flag = s.optimizer, s.choices.one(FLAGS)
    s.add("forward", f"out = {s.forward('x')}\nloss = {routes.reduced(s, 'out')}\nsoft = {call}")
    s.add("update", f"{o}.zero_grad()\nif out.requires_grad:\n    loss.backward({flag})\n"
                    f"    F.mse_loss(out, soft).backward()\n{o}.step()")  # fmt: skip
    return Turn("loss", "out")


@extra("total that torch reads")
def read_by_torch(s: Sketch, t: Turn) -> None:
    """A total that the function of a scheduler reads."""
    name = s.fresh("pace")
    s.define(
        f"class {name}:\n    value = 1.0\n\n"
        "    def factor(self, step):\n        return 1 / (1 + abs(float(self.value)))"
    )
    place = s.share("pace", f"{name}()")
    made = s.choices.one(
        (f"{place}.factor", f"lambda step: {place}.factor(step)", f"lambda step: float({place}.value)")
    )
    schedule = s.share("schedule", f"torch.optim.lr_scheduler.LambdaLR({s.optimizer}, {made})")
    value = s.choices.one(VALUES).format(l=t.loss)
    s.add("turn_end", f"{place}.value = 0.5 * {place}.value + 0.1 * {value}\n{schedule}.step()")


@extra("total that divides")
def divides(s: Sketch, t: Turn) -> None:
    """A total by which something is divided, and which may be zero."""
    place = s.share("whole", "0.0", held=True)
    value = s.choices.one(VALUES).format(l=t.loss)
    s.add("turn_end", f"{place} += {value} * {s.choices.one(('0', '1', '0.5'))}")
    s.add("finish", s.choices.one((f"print(3 / {place} if {place} else 0)", f"print(float({place}))")))
