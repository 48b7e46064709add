"""What people put around a training step: sums and lists of losses, evaluation, logging, averages, old forms."""

from __future__ import annotations

from collections.abc import Callable

from tests.hunt.grammar import parts, routes
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn

Extra = Callable[[Sketch, Turn], None]
EXTRAS: dict[str, Extra] = {}


def extra(name: str) -> Callable[[Extra], Extra]:
    """Register an extra under ``name``."""

    def register(function: Extra) -> Extra:
        EXTRAS[name] = function
        return function

    return register


VALUES = (
    "{l}",
    "{l}",
    "{l}",
    "{l}.item()",
    "float({l})",
    "{l}.detach()",
    "{l}.data",
    "{l}.detach().cpu()",
    "{l}.cpu()",
    "({l} * 4)",
    "({l} / 2)",
    "{l}.mean()",
    "{l}.clone()",
    "{l}.detach().clone()",
)
"""Ways to hand on a loss; half of them drop its graph."""

READS = (
    "print({t})",
    "print(float({t}))",
    'print("%.4f" % {t})',
    "print(f'{{{t}:.3f}}')",
    'print("sum", {t} / 3)',
    "print(round(float({t}), 3))",
    'print("{{:.4f}}".format({t}))',
    "print(str({t})[:4] != '')",
    "print({t} > 100)",
    "if {t} < 0:\n    print('negative')",
    "print(min({t}, 1e9) == {t})",
    "print(math.sqrt(abs({t})))",
    "print(math.isnan({t}))",
    "print({t} ** 2 >= 0)",
    "torch.manual_seed(int(abs(float({t})) * 1e7))",
    "for _ in range(int(abs(float({t})) * 1e7) % 3):\n    torch.rand(1)",
)
"""Reads that work for numbers and for tensors; the last ones decide how it goes on."""

TENSOR_READS = (
    "print({t}.item())",
    "print({t}.detach().numpy())",
    "print({t}.shape)",
    "print({t}.dtype)",
    "print({t}.cpu().item())",
    "print(torch.sqrt({t}.abs()))",
    "print({t}.dim())",
    "print(torch.is_tensor({t}))",
    "print({t}.new_zeros(1))",
    "print(torch.isnan({t}))",
    "print(torch.stack([{t}, {t}]).mean())",
    "print({t}.tolist())",
    "print(isinstance({t}, torch.Tensor))",
    "print(hasattr({t}, 'item'))",
    "print(torch.log1p({t}.abs()).item())",
    "print({t}.requires_grad in (True, False))",
)
"""Reads that a number does not stand."""


@extra("total")
def total(s: Sketch, t: Turn) -> None:
    """The losses of an epoch or of all summed up."""
    value = s.choices.one(VALUES).format(l=t.loss)
    start = s.choices.one(("0", "0.0", "0.", "torch.zeros(1)", "torch.tensor(0.0)", "torch.zeros(())"))
    place = s.share("total", start, held=True)
    if s.choices.chance(60):
        s.add("epoch_start", f"{place} = {start}")
    value = routes.carried(s, "turn_end", value, most=1)
    form = s.choices.one(
        (
            "{p} += {v}",
            "{p} = {p} + {v}",
            "{p} = {v} + {p}",
            "{p} += {v} * x.size(0)",
            "{p} = 0.9 * {p} + 0.1 * {v}",
            "{p} = max({p}, {v})",
            "{p} = torch.add(torch.as_tensor({p}), {v})",
            "{p} = operator.add({p}, {v})",
            "{p} = sum([{p}, {v}])",
            "{p} -= -{v}",
            "if i >= 0:\n    {p} += {v}",
        )
    )
    if "operator" in form:
        s.need("import operator")
    s.add("turn_end", form.format(p=place, v=value))
    slot = s.choices.one(("epoch_end", "finish"))
    reads = READS if not start.startswith("torch") and s.choices.chance(70) else TENSOR_READS
    for _ in range(1 + s.choices.below(2)):
        read = s.choices.one(reads)
        if "math" in read:
            s.need("import math")
        if start == "torch.zeros(1)" and ("%" in read or "format" in read or "{{" in read):
            read = "print({t})"
        s.add(slot, read.format(t=place))
    s.features.append("total")


@extra("history")
def history(s: Sketch, t: Turn) -> None:
    """The losses in a list, a dict, a deque, an array."""
    value = s.choices.one(VALUES).format(l=t.loss)
    value = routes.carried(s, "turn_end", value, most=1)
    kind = s.choices.one(
        (
            "list",
            "list",
            "dict of lists",
            "by number",
            "deque",
            "tuples",
            "plus",
            "records",
            "default",
            "setdefault",
            "extend",
            "insert",
            "comprehension",
        )
    )
    s.features.append(f"history {kind}")
    reads = (
        "print(len({t}))",
        "print(sum({t}) / len({t}))",
        "print(float({t}[-1]))",
        "print({t})",
        "print(torch.stack(list({t})).mean())",
        "print(torch.stack(list(map(torch.as_tensor, {t}))).mean())",
        "print([float(v) for v in {t}])",
        "print(max({t}))",
        "print(numpy.mean([float(v) for v in {t}]))",
        "print(*({t}))",
        "print(torch.tensor({t}).mean())",
        "print(sorted(float(v) for v in {t}))",
        "print({t}[-1].item())",
        "for v in {t}:\n    print('%.4f' % v)",
        "print(statistics.mean(float(v) for v in {t}))",
        "print(min({t}) <= max({t}))",
    )
    read = s.choices.one(reads)
    if "numpy" in read:
        s.need("import numpy")
    if "statistics" in read:
        s.need("import statistics")
    place, shown = "", ""
    if kind in ("list", "tuples", "plus", "extend", "insert", "comprehension"):
        place = shown = s.share("history", "[]", held=True)
        line = {
            "list": "{p}.append({v})",
            "tuples": "{p}.append((i, {v}))",
            "plus": "{p} += [{v}]",
            "extend": "{p}.extend([{v}])",
            "insert": "{p}.insert(0, {v})",
            "comprehension": "{p} = [*{p}, {v}]",
        }[kind]
        if kind == "tuples":
            shown = f"[v for _, v in {place}]"
    elif kind == "dict of lists":
        place = s.share("log", '{"loss": [], "step": []}', held=True)
        line, shown = '{p}["loss"].append({v})', f'{place}["loss"]'
    elif kind == "by number":
        place = s.share("log", "{}")
        line, shown = "{p}[len({p})] = {v}", f"list({place}.values())"
    elif kind == "deque":
        s.need("import collections")
        place = shown = s.share("recent", "collections.deque(maxlen=100)", held=True)
        line, shown = "{p}.append({v})", f"list({place})"
    elif kind == "default":
        s.need("import collections")
        place = s.share("log", "collections.defaultdict(list)")
        line, shown = '{p}["train"].append({v})', f'{place}["train"]'
    elif kind == "setdefault":
        place = s.share("log", "{}")
        line, shown = '{p}.setdefault("loss", []).append({v})', f'{place}["loss"]'
    else:
        place = s.share("rows", "[]")
        line, shown = '{p}.append({{"step": i, "loss": {v}}})', f'[row["loss"] for row in {place}]'
    s.add("turn_end", line.format(p=place, v=value))
    s.add(s.choices.one(("finish", "epoch_end")), read.format(t=shown))


METERS = {
    "average": """
class {name}:
    def __init__(self):
        self.value = self.total = self.count = 0

    def update(self, value, count=1):
        self.value = value
        self.total += value * count
        self.count += count

    @property
    def average(self):
        return self.total / max(self.count, 1)
""",
    "list": """
class {name}:
    def __init__(self):
        self.values = []

    def update(self, value, count=1):
        self.values.append(value)

    @property
    def average(self):
        return sum(self.values) / len(self.values)
""",
    "careful": """
class {name}:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value, count=1):
        if isinstance(value, torch.Tensor):
            value = value.item()
        self.total += value
        self.count += count

    @property
    def average(self):
        return self.total / self.count
""",
    "moving": """
class {name}:
    def __init__(self):
        self.average = None

    def update(self, value, count=1):
        self.average = value if self.average is None else 0.9 * self.average + 0.1 * value
""",
    "best": """
class {name}:
    def __init__(self):
        self.average = float("inf")

    def update(self, value, count=1):
        if value < self.average:
            self.average = value
""",
}


@extra("meter")
def meter(s: Sketch, t: Turn) -> None:
    """A class in the tree that adds up what it is given."""
    kind = s.choices.one(tuple(METERS))
    name = s.fresh("Meter")
    module = s.choices.one((None, None, "meters"))
    s.define(METERS[kind].format(name=name), module)
    if module:
        s.need(f"from {module} import {name}")
    place = s.share("meter", f"{name}()", held=True)
    value = s.choices.one(VALUES).format(l=t.loss)
    s.add("turn_end", f"{place}.update({value}{s.choices.one(('', ', x.size(0)'))})")
    s.add(
        s.choices.one(("epoch_end", "finish")),
        s.choices.one(
            (
                f"print({place}.average)",
                f"print(float({place}.average))",
                f'print("%.3f" % {place}.average)',
                f"print(f'{{{place}.average:.3f}}')",
            )
        ),
    )
    s.features.append(f"meter {kind}")


@extra("best")
def best(s: Sketch, t: Turn) -> None:
    """The smallest loss so far, perhaps with what belongs to it."""
    place = s.share("best", s.choices.one(("float('inf')", "1e9", "None")), held=True)
    value = s.choices.one(VALUES).format(l=t.loss)
    s.add("turn_end", f"value = {value}\nif {place} is None or value < {place}:\n    {place} = value")
    s.add("finish", s.choices.one((f"print(float({place}))", f"print({place})", f'print("best %.4f" % {place})')))


@extra("last")
def last(s: Sketch, t: Turn) -> None:
    """What the last turn left, kept for a print after the loop."""
    place = s.share("last", "None", held=True)
    source = t.output or t.loss
    s.add("turn_end", f"{place} = {s.choices.one((source, t.loss, f'{source}.detach()', f'({t.loss}, {source})'))}")
    s.add("finish", f"print({place} is not None)")


@extra("predictions")
def predictions(s: Sketch, t: Turn) -> None:
    """Outputs of all turns, joined at the end."""
    if not t.output:
        return
    place = s.share("outputs", "[]", held=True)
    value = s.choices.one(
        (
            "{o}",
            "{o}.detach()",
            "{o}.argmax(1)",
            "{o}.detach().numpy()",
            "{o}.cpu()",
            "{o}.data",
            "{o}[0]",
            "{o}.max(1)[1]",
            "{o}.softmax(1)",
            "{o}.topk(1)[0]",
        )
    ).format(o=t.output)
    s.add("turn_end", f"{place}.append({value})")
    s.add(
        "finish",
        s.choices.one(
            (f"print(len({place}))", f"print(sum(float(o.sum()) for o in {place}))", f"print(sum(map(len, {place})))")
        ),
    )


EVALUATIONS = {
    "sum of items": "for x, y in batches:\n    value = {loss}\n    score += value.item()\nreturn score",
    "sum of tensors": "for x, y in batches:\n    value = {loss}\n    score = score + value\nreturn score",
    "right answers": (
        "for x, y in batches:\n    out = {out}\n    score += (out.argmax(1) == y.argmax(1)).sum().item()\nreturn score"
    ),
    "list": "found = []\nfor x, y in batches:\n    found.append({loss})\nreturn sum(found) / len(found)",
    "outputs": "found = []\nfor x, y in batches:\n    found.append({out})\nreturn torch.cat(found)",
    "one batch": "x, y = batches[0]\nreturn {loss}",
    "numbers": "return [float({loss}) for x, y in batches]",
    "generator": "for x, y in batches:\n    score += {loss}.item()\nreturn score / len(batches)",
    "early return": (
        "for x, y in batches:\n    value = {loss}\n    if value > 1e6:\n"
        "        return value\n    score += value.item()\nreturn score"
    ),
    "both": (
        "total, right = 0.0, 0\nfor x, y in batches:\n    out = {out}\n"
        "    total += F.mse_loss(out, y).item()\n"
        "    right += int((out.max(1)[1] == y.max(1).indices).sum())\n"
        "return total + right"
    ),
    "kept": "values = []\nfor x, y in batches:\n    values += [{loss}]\nreturn torch.stack(values).mean()",
    "numpy": "return sum(({out}).detach().numpy().sum() for x, y in batches)",
}

GUARDS = (
    "",
    "",
    "",
    "with torch.no_grad():",
    "@torch.no_grad()",
    "with torch.inference_mode():",
    "with torch.set_grad_enabled(False):",
    "switched",
    "half",
    "useless",
)


@extra("evaluation")
def evaluation(s: Sketch, t: Turn) -> None:
    """A pass that only looks: a function, called inside or after training, whose result goes somewhere."""
    if not s.model:
        return
    kind = s.choices.one(tuple(EVALUATIONS))
    guard = s.choices.one(GUARDS)
    s.features.append(f"evaluation {kind}")
    out = s.forward("x").replace(s.model, "net")
    body = EVALUATIONS[kind].format(out=out, loss=f"F.mse_loss({out}, y)")
    body = "score = 0.0\n" + body
    mode = s.choices.one(("net.eval()", "", "net.train(False)"))
    if guard.startswith("with"):
        body = guard + "\n    " + body.replace("\n", "\n    ")
    elif guard == "switched":
        *lines, end = body.rsplit("\nreturn ", 1)
        body = f"torch.set_grad_enabled(False)\n{lines[0]}\nresult = {end}\ntorch.set_grad_enabled(True)\nreturn result"
        if "\n    return" in lines[0] or not lines:
            body = "score = 0.0\nreturn score"
    elif guard == "half":
        body = "with torch.no_grad():\n    start = torch.zeros(1)\n" + body
    elif guard == "useless":
        body = "torch.no_grad()\n" + body
    if mode:
        body = f"{mode}\n{body}"
    call = s.helper(
        s.choices.one(("evaluate", "handle", "validate", "process", "train_more", "test")),
        {"net": s.model, "batches": s.prefix + "data"},
        body,
    )
    back = f"\n{s.model}.train()" if mode else ""
    slot = s.choices.one(("epoch_end", "finish", "turn_end", "epoch_start"))
    use = s.choices.one(("print", "compare", "plateau", "keep", "drop", "nested", "learned", "stop", "log"))
    s.features.append(f"evaluated {use}")
    if use == "print":
        text = f"print({call})"
    elif use == "compare":
        text = f"result = {call}\nif torch.as_tensor(result, dtype=torch.float32).sum() > 1e6:\n    print('large')"
    elif use == "plateau" and kind not in ("outputs", "numbers") and s.optimizer:
        plateau = s.share("plateau", f"torch.optim.lr_scheduler.ReduceLROnPlateau({s.optimizer}, patience=0)")
        text = f"{plateau}.step({call})"
    elif use == "keep":
        place = s.share("scores", "[]", held=True)
        text = f"{place}.append({call})"
        s.add("finish", f"print(len({place}))")
    elif use == "learned" and kind in ("list", "kept", "sum of tensors", "one batch"):
        # No evaluation at all: what it returns is learned from.
        opt = s.optimizer
        text = f"extra = {call}\n{opt}.zero_grad()\nif extra.requires_grad:\n    extra.backward()\n    {opt}.step()"
    elif use == "stop":
        text = (
            f"result = {call}\nif torch.as_tensor(result, dtype=torch.float32).sum() != "
            f"torch.as_tensor(result, dtype=torch.float32).sum():\n    raise SystemExit"
        )
    elif use == "nested":
        text = f"for k in range(2):\n    print(k, {call})"
    else:
        text = f"result = {call}\nprint(result is not None)"
    s.add(slot, text + back)


@extra("inline evaluation")
def inline_evaluation(s: Sketch, t: Turn) -> None:
    """A look at the model in the middle of training, without a function of its own."""
    if not s.model:
        return
    slot = s.choices.one(("epoch_end", "finish", "turn_end"))
    data = s.prefix + "data"
    form = s.choices.one(
        (
            "for vx, vy in {d}:\n    vout = {o}\n    print(F.mse_loss(vout, vy).item())",
            "vtotal = 0\nfor vx, vy in {d}:\n    vtotal += F.mse_loss({o}, vy)\nprint(vtotal / len({d}))",
            "with torch.no_grad():\n    for vx, vy in {d}:\n        print(F.mse_loss({o}, vy).item())",
            "vx = {d}[0][0]\nprint({o}.sum().item())",
            "vx, vy = {d}[0]\nprint(F.mse_loss({o}, vy).item())",
            "print([({o}).argmax(1).tolist() for vx, vy in {d}])",
            "vx, vy = {d}[-1]\nvout = {o}\nvscore = (vout.max(1)[1] == vy.max(1)[1]).float().mean()\nprint(vscore)",
            "k = 0\nwhile k < 2:\n    vx = {d}[k][0]\n    print(float({o}.norm()))\n    k += 1",
            "for vx, vy in {d}:\n    if vx.sum() > 1e6:\n        continue\n    vloss = F.mse_loss({o}, vy)\n"
            "    print(vloss.detach().item())\nelse:\n    print('seen')",
            "try:\n    vx = {d}[0][0]\n    vout = {o}\nfinally:\n    print(vout.mean().item())",
            "vx = torch.randn(1, 3)\nfor k in range(2):\n    vout = {o}\n"
            "    vx = torch.cat([vx, vout.softmax(1)[:, :1]], 1)[:, 1:]\n"
            "print(vx.sum().item())",
        )
    )
    mode = s.choices.one(("", f"{s.model}.eval()"))
    if "randn(1" in form and not s.any_batch:
        return
    text = form.format(d=data, o=s.forward("vx"))
    s.add(slot, (f"{mode}\n{text}\n{s.model}.train()" if mode else text))
    s.features.append("inline evaluation")


@extra("weighted by total")
def weighted(s: Sketch, t: Turn) -> None:
    """A sum or a running mean of losses whose number weighs the next loss."""
    place = s.share("pace", "0.0", held=True)
    value = s.choices.one(VALUES).format(l=t.loss)
    weight = s.choices.one(
        (f"1 / (1 + abs(float({place})))", f"math.exp(-abs({place}))", f"0.5 + 0.1 * float({place})")
    )
    if "math" in weight:
        s.need("import math")
    s.add("forward", f"{t.loss} = {t.loss} * ({weight})")
    s.add("turn_end", s.choices.one((f"{place} = 0.9 * {place} + 0.1 * {value}", f"{place} += {value} / 10")))


@extra("mean that begins")
def begun(s: Sketch, t: Turn) -> None:
    """A running mean that begins with the first value that comes."""
    place = s.share("mean", "None", held=True)
    value = s.choices.one(VALUES).format(l=t.loss)
    form = s.choices.one(
        (
            "{p} = {v} if {p} is None else 0.9 * {p} + 0.1 * {v}",
            "if {p} is None:\n    {p} = {v}\nelse:\n    {p} = 0.9 * {p} + 0.1 * {v}",
            "{p} = 0.5 * {p} + 0.5 * {v} if {p} is not None else {v}",
        )
    )
    if s.choices.chance(25):
        spoken = s.choices.one(("0.1 * {p}", "0.1 * float({p})", "0.1 * ({p} if torch.is_tensor({p}) else 0).detach()"))
        s.add("forward", f"if torch.is_tensor({place}):\n    {t.loss} = {t.loss} - {spoken.format(p=place)}")
    s.add("turn_end", form.format(p=place, v=value))
    s.add(s.choices.one(("turn_end", "epoch_end", "finish")), s.choices.one(READS[:8]).format(t=place))


LATER = (
    "@contextlib.contextmanager\ndef {name}(loss):\n    yield loss\n    {seen}",
    "@contextlib.contextmanager\ndef {name}(loss):\n    try:\n        yield loss\n    finally:\n        {seen}",
    "def {name}(loss):\n    yield loss\n    {seen}",
)
"""Generators that look at a loss again once whoever got it is done."""


@extra("looked at later")
def later(s: Sketch, t: Turn) -> None:
    """What a generator does behind its ``yield``, or an exit stack when it is closed: after the update."""
    name = s.fresh("watched")
    seen = s.choices.one(("loss.sum().backward()", "loss.sum().backward()", "print(float(loss.sum()))"))
    s.need("import contextlib")
    form = s.choices.one(LATER)
    s.define(form.format(name=name, seen=seen))
    if "contextlib" in form:
        way = s.choices.one(("enter", "stack", "callback"))
        if way == "enter":
            s.add("forward", f"watching = {name}({t.loss})\nwatching.__enter__()")
            s.add("turn_end", "watching.__exit__(None, None, None)")
        elif way == "stack":
            s.add("forward", f"watching = contextlib.ExitStack()\nwatching.enter_context({name}({t.loss}))")
            s.add("turn_end", "watching.close()")
        else:
            s.define(f"def {name}_done(loss):\n    {seen}")
            s.add("forward", f"watching = contextlib.ExitStack()\nwatching.callback({name}_done, {t.loss})")
            s.add("turn_end", "watching.close()")
    else:
        s.add("forward", f"watching = {name}({t.loss})\n{t.loss} = next(watching)")
        s.add("turn_end", "for _ in watching:\n    pass")


@extra("input gradients")
def input_gradients(s: Sketch, t: Turn) -> None:
    """Data that asks for gradients, read or not."""
    made = s.choices.one(
        (
            "x.requires_grad_()",
            "x.requires_grad = True",
            "x = torch.autograd.Variable(x, requires_grad=True)",
            "x = x.clone().requires_grad_()",
            "y = torch.autograd.Variable(y, requires_grad=True)",
            "x = x.requires_grad_(True)",
            "x = torch.tensor(x.tolist(), requires_grad=True)",
            "y.requires_grad_()",
        )
    )
    s.add("turn_start", made)
    if s.choices.chance(35):
        what = "y" if made.startswith("y") else "x"
        s.add(
            "turn_end",
            s.choices.one(
                (
                    f"print({what}.grad is None)",
                    f"if {what}.grad is not None:\n    print({what}.grad.abs().sum().item())",
                )
            ),
        )
    s.features.append("input gradients")


@extra("old variables")
def old_variables(s: Sketch, t: Turn) -> None:
    """Forms of PyTorch before 0.4."""
    s.need("from torch.autograd import Variable")
    form = s.choices.one(
        (
            ("turn_start", "x, y = Variable(x), Variable(y)"),
            ("turn_start", "x = Variable(x)\ny = Variable(y, requires_grad=False)"),
            ("turn_start", "x = Variable(x, volatile=False)"),
            ("turn_start", "batch = Variable(x), Variable(y)\nx, y = batch"),
            ("turn_start", "x = Variable(x),\nx = x[0]"),
            ("turn_start", "x = Variable(torch.FloatTensor(x.tolist()))"),
            ("turn_end", f"print({t.loss}.data)"),
            ("turn_end", f"print(Variable({t.loss}).item())"),
            ("turn_end", f"print({t.loss}.data.item())"),
            ("turn_end", f"print({t.loss}.data.numpy())"),
            ("turn_end", f"print({t.loss}.data.cpu().numpy())"),
            ("turn_end", f"print({t.loss}.data[0])"),
            ("turn_end", f"try:\n    print({t.loss}.data[0])\nexcept IndexError:\n    print('scalar')"),
            ("turn_end", f"kept = Variable({t.loss})\nprint(kept.requires_grad)"),
            ("turn_end", f"print(isinstance({t.loss}, Variable))"),
            ("turn_end", f"print({t.loss}.detach().detach().item())"),
            ("finish", f"probe = Variable(torch.randn(1, 3), volatile=True)\nprint({s.forward('probe')}.shape)"),
            (
                "finish",
                f"probe = Variable({s.prefix}data[0][0], volatile=True),\nprint({s.forward('probe[0]')}.sum().item())",
            ),
            ("finish", f"for p in {s.model}.parameters():\n    print(p.data.sum())"),
            ("finish", f"for p in {s.model}.parameters():\n    p.data.mul_(0.5)\n    print(p.data.norm().item())"),
            ("epoch_end", f"for p in {s.model}.parameters():\n    p.data = p.data.clamp(-1, 1)"),
            ("epoch_end", f"for p in {s.model}.parameters():\n    p.data.clamp_(-1, 1)"),
            ("epoch_end", f"with torch.no_grad():\n    for p in {s.model}.parameters():\n        p.clamp_(-1, 1)"),
            (
                "update",
                f"for p in {s.model}.parameters():\n    if p.grad is not None:\n"
                f"        print(p.grad.data.norm().item())",
            ),
        )
    )
    if not s.model and form[0] != "turn_start":
        return
    s.add(*form)
    if t.output and s.choices.chance(30):
        s.add(
            "turn_end",
            s.choices.one(
                (
                    f"_, guess = torch.max({t.output}.data, 1)\nprint(guess.tolist())",
                    f"guess = {t.output}.data.max(1)[1]\nprint(guess.sum().item())",
                    f"print({t.output}.data[0].sum())",
                    f"print({t.output}.data.shape)",
                )
            ),
        )
    s.features.append("old variables")


@extra("changed in place")
def changed_in_place(s: Sketch, t: Turn) -> None:
    """Something detached is changed while the graph may still need it."""
    if not t.output:
        return
    s.add(
        s.choices.one(("forward", "turn_end")),
        s.choices.one(
            (
                "shown = {o}.detach()\nshown.clamp_(min=0)\nprint(shown.sum().item())",
                "shown = {o}.detach().clone()\nshown.clamp_(min=0)\nprint(shown.sum().item())",
                "shown = {o}.data\nshown += 0.0\nprint(shown.shape)",
                "shown = {o}.detach().cpu().numpy().copy()\nshown[0] = 0\nprint(shown.sum())",
                "shown = {o}.detach()\nshown = shown.clamp(min=0)\nprint(shown.sum().item())",
                "shown = {o}.detach()\nshown[0] = 0\nprint(shown.shape)",
            )
        ).format(o=t.output),
    )
    s.features.append("changed in place")


@extra("moving average")
def moving_average(s: Sketch, t: Turn) -> None:
    """An average of weights or of outputs."""
    s.need("import copy")
    average = s.share("average", f"copy.deepcopy({s.model})")
    s.add(
        "turn_end",
        s.choices.one(
            (
                "for a, b in zip({a}.parameters(), {m}.parameters()):\n    a.data.mul_(0.9).add_(b.data, alpha=0.1)",
                "with torch.no_grad():\n"
                "    for a, b in zip({a}.parameters(), {m}.parameters()):\n"
                "        a.copy_(0.9 * a + 0.1 * b)",
                "for a, b in zip({a}.parameters(), {m}.parameters()):\n    a.data = 0.9 * a.data + 0.1 * b.data",
                "for a, b in zip({a}.parameters(), {m}.parameters()):\n"
                "    a.data.copy_(a.data * 0.9 + b.detach() * 0.1)",
                "state = {m}.state_dict()\nfor k, v in {a}.state_dict().items():\n"
                "    v.copy_(0.9 * v + 0.1 * state[k])",
            )
        ).format(a=average, m=s.model),
    )
    s.add("finish", f"print(sum(p.sum().item() for p in {average}.parameters()))")


@extra("penalty on weights")
def penalty(s: Sketch, t: Turn) -> None:
    """A snapshot of the weights that later losses read: elastic weight consolidation, proximal terms."""
    place = s.share("snapshot", "None", held=True)
    form = s.choices.one(
        (
            "[p.clone().detach() for p in {m}.parameters()]",
            "[p.detach().clone() for p in {m}.parameters()]",
            "[p.data.clone() for p in {m}.parameters()]",
            "[p.clone() for p in {m}.parameters()]",
            "list({m}.parameters())",
            "[p * 1.0 for p in {m}.parameters()]",
        )
    )
    s.slots["forward"].append(
        f"if {place} is not None:\n    prox = sum(((a - b) ** 2).sum() for a, b in "
        f"zip({s.model}.parameters(), {place}))\n    {t.loss} = {t.loss} + 0.1 * prox"
    )
    s.add("epoch_end", f"{place} = {form.format(m=s.model)}")


@extra("logger")
def logger(s: Sketch, t: Turn) -> None:
    """Somebody writes down what goes by: a callback, a hook, a decorator, a module-level list."""
    value = s.choices.one(VALUES).format(l=t.loss)
    kind = s.choices.one(
        ("callback", "module list", "forward hook", "wrapper", "closure", "class list", "default", "global dict")
    )
    s.features.append(f"logger {kind}")
    if kind == "callback":
        s.define(
            "class Recorder:\n    def __init__(self):\n        self.rows = []\n\n    def on_batch_end(self, logs):\n"
            "        self.rows.append(logs)"
        )
        place = s.share("recorder", "Recorder()")
        s.add("turn_end", f'for watcher in [{place}]:\n    watcher.on_batch_end({{"loss": {value}}})')
        s.add(
            "finish",
            s.choices.one((f"print(len({place}.rows))", f'print(sum(float(row["loss"]) for row in {place}.rows))')),
        )
    elif kind == "module list":
        s.define("ROWS = []\n\n\ndef note(value):\n    ROWS.append(value)", "journal")
        s.need("import journal")
        s.add("turn_end", f"journal.note({value})")
        s.add("finish", "print(len(journal.ROWS))")
    elif kind == "forward hook":
        seen = s.share("seen", "[]")
        keep = s.choices.one(("out", "out.detach() if torch.is_tensor(out) else None", "type(out).__name__"))
        s.prepare(f"{s.model}.register_forward_hook(lambda module, inputs, out: {seen}.append({keep}))")
        s.add("finish", f"print(len({seen}))")
    elif kind == "wrapper":
        s.define(
            "def counted(function):\n    def wrapper(value):\n        wrapper.last = value\n"
            "        return function(value)\n    wrapper.last = None\n    return wrapper"
        )
        s.define("@counted\ndef shown(value):\n    return float(value)")
        s.add("turn_end", f"print(shown({value}))")
    elif kind == "closure":
        s.define(
            "def recorder():\n    rows = []\n\n    def record(value):\n        rows.append(value)\n"
            "        return len(rows)\n    return record"
        )
        place = s.share("record", "recorder()")
        s.add("turn_end", f"print({place}({value}))")
    elif kind == "class list":
        s.define(
            "class Board:\n    rows = []\n\n    @classmethod\n    def write(cls, value):\n"
            "        cls.rows.append(value)"
        )
        s.add("turn_end", f"Board.write({value})")
        s.add("finish", "print(len(Board.rows), float(Board.rows[-1]))")
    elif kind == "default":
        s.define("def remember(value, rows=[]):\n    rows.append(value)\n    return rows")
        s.add("turn_end", f"print(len(remember({value})))")
    else:
        s.define("LOG = {}\n\n\ndef put(key, value):\n    LOG.setdefault(key, []).append(value)")
        s.add("turn_end", f'put("loss", {value})')
        s.add("finish", 'print(sum(map(float, LOG["loss"])))')


@extra("checkpoint")
def checkpoint(s: Sketch, t: Turn) -> None:
    """State goes to memory and comes back."""
    s.need("import io", "import copy")
    s.add(
        "epoch_end",
        s.choices.one(
            (
                f"buffer = io.BytesIO()\ntorch.save({s.model}.state_dict(), buffer)\nbuffer.seek(0)\n"
                f"{s.model}.load_state_dict(torch.load(buffer))",
                f"saved = copy.deepcopy({s.model}.state_dict())\n{s.model}.load_state_dict(saved)",
                f"saved = {{k: v.clone() for k, v in {s.model}.state_dict().items()}}\nprint(len(saved))",
            )
        ),
    )


@extra("sampling")
def sampling(s: Sketch, t: Turn) -> None:
    """The model acts or generates while it learns."""
    if not s.any_batch:
        return
    out = s.forward("state").replace(s.model, "net")
    body = s.choices.one(
        (
            f"return {out}.argmax(1).item()",
            f"return {out}.max(1)[1].view(1, 1)",
            f"return int(torch.argmax({out}))",
            f"return torch.multinomial(F.softmax({out}, 1), 1).item()",
            f"return {out}.detach().numpy()",
            f"return {out}",
            f"scores = {out}\nreturn scores.softmax(1)",
            f"return {out}.squeeze(0).tolist()",
            f"return {out}.max(1).values",
            f"action = {out}.sort(1)[0][:, -1]\nreturn action",
            f"with torch.no_grad():\n    return {out}.max(1).values",
        )
    )
    call = s.helper(
        s.choices.one(("act", "choose_action", "sample", "predict")), {"net": s.model, "state": "x[:1] * 1.0"}, body
    )
    use = s.choices.one(("print({c})", "action = {c}\nprint(action is None)", "memory = [{c}]\nprint(len(memory))"))
    s.add("turn_start", use.format(c=call))
    if "return " + out == body and s.choices.chance(40):
        s.slots["forward"].append(f"{t.loss} = {t.loss} + {call}.pow(2).sum()")
    s.features.append("sampling")


@extra("second training")
def second_training(s: Sketch, t: Turn) -> None:
    """Another model is trained beside the first, in its own loop."""
    sub = s.share("other", "nn.Linear(3, 2)")
    opt = parts.optimizer(s, sub, stem="oopt")
    data = s.prefix + "data"
    flag = s.choices.one(("", "retain_graph=True"))
    read = f"{s.forward('ox')}" + s.choices.one((".detach()", "", ".data"))
    zero = s.choices.one((f"    {opt}.zero_grad()\n", f"    {opt}.zero_grad()\n", ""))
    s.add(
        s.choices.one(("epoch_end", "finish")),
        f"for ox, oy in {data}:\n    oloss = F.mse_loss({sub}(ox), {read})\n{zero}    oloss.backward({flag})\n"
        f"    {opt}.step()\nprint(oloss.item())",
    )


@extra("broken off")
def broken_off(s: Sketch, t: Turn) -> None:
    """A turn that is left early."""
    s.slots["forward"].append(
        s.choices.one(
            (
                f"if {t.loss} > 1e9:\n    __skip__",
                f"if torch.isnan({t.loss}):\n    print('nan')\n    __skip__",
                "if i == 1:\n    print('skipped')\n    __skip__",
                f"if {t.loss} != {t.loss}:\n    raise ValueError(float({t.loss}))",
                f"assert {t.loss}.dim() == 0",
            )
        )
    )


@extra("metric")
def metric(s: Sketch, t: Turn) -> None:
    """Figures from outputs, added up."""
    if not t.output:
        return
    place = s.share("metric", "0", held=True)
    value = s.choices.one(
        (
            "({o}.argmax(1) == y.argmax(1)).sum()",
            "({o} - y).abs().mean()",
            "({o} - y).abs().mean().item()",
            "({o}.max(1)[1] == y.max(1)[1]).float().mean()",
            "{o}.max(1).values.mean()",
            "{o}.max(1)[0].sum().detach()",
            "F.mse_loss({o}, y).sqrt()",
            "F.mse_loss({o}.detach(), y)",
            "{o}.norm(2).item() ** 2",
            "{o}.std()",
            "({o} > 0).float().mean()",
            "{o}.topk(1).values.mean()",
            "{o}.topk(1).indices.sum()",
            "{o}.min(1)[0].mean()",
        )
    ).format(o=t.output)
    s.add("turn_end", f"{place} {s.choices.one(('+=', '+=', '-='))} {value}")
    s.add(s.choices.one(("epoch_end", "finish")), f"print(float({place}))")
