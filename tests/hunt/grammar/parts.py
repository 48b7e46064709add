"""What training programs are made of: data, modules, optimizers, schedulers, and the lines that update."""

from __future__ import annotations

from collections.abc import Callable

from tests.hunt.grammar.sketch import Sketch

Forward = Callable[[str], str]

PLAIN = """
class {name}(nn.Module):
    def __init__(self, width=5):
        super().__init__()
        self.inner = nn.Linear(3, width)
        self.outer = nn.Linear(width, 2)

    def forward(self, x):
        h = torch.tanh(self.inner(x))
        {end}
"""

ENDS: dict[str, tuple[str, str]] = {
    "tensor": ("return self.outer(h)", "{call}"),
    "tuple": ("return self.outer(h), h", "{call}[0]"),
    "dict": ('return {{"out": self.outer(h), "hidden": h}}', '{call}["out"]'),
    "list": ("return [h, self.outer(h)]", "{call}[-1]"),
    "namespace": ("return types.SimpleNamespace(out=self.outer(h), hidden=h)", "{call}.out"),
    "named tuple": ("return Output(self.outer(h), h)", "{call}.out"),
    "dataclass": ("return Answer(out=self.outer(h))", "{call}.out"),
    "kept": ("self.hidden = h\n        return self.outer(h)", "{call}"),
    "kept detached": ("self.hidden = h.detach()\n        return self.outer(h)", "{call}"),
    "cached": ("self.cache = {{'h': h}}\n        return self.outer(self.cache['h'])", "{call}"),
    "early return": (
        "if not self.training:\n            return self.outer(h)\n        return self.outer(h) * 1.0",
        "{call}",
    ),
    "dropout": ("return self.outer(F.dropout(h, 0.3, self.training))", "{call}"),
    "max": ("return self.outer(h + torch.max(h, 1, keepdim=True).values)", "{call}"),
    "loop": (
        "out = 0\n        for k in range(2):\n            out = out + self.outer(h)\n        return out",
        "{call}",
    ),
}

HEADS = {
    "namespace": ("import types",),
    "named tuple": ("from collections import namedtuple",),
    "dataclass": ("import dataclasses",),
}

DEFINED = {
    "named tuple": 'Output = namedtuple("Output", "out hidden")',
    "dataclass": "@dataclasses.dataclass\nclass Answer:\n    out: object\n    extra: object = None",
}

LAYERS = (
    "nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))",
    "nn.Linear(3, 2)",
    "nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Dropout(0.2), nn.Linear(6, 2))",
    "nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Sigmoid(), nn.Linear(4, 2))",
    "nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 2))",
    "nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)), nn.ELU(), nn.Linear(4, 2))",
)


def model(sketch: Sketch, stem: str = "model") -> tuple[str, Forward]:
    """A module from 4 x 3 to 4 x 2: the expression for it, and from inputs to its plain output."""
    if sketch.choices.chance(55):
        kind = sketch.choices.one(tuple(ENDS))
        sketch.features.append(f"model {kind}")
        end, form = ENDS[kind]
        name = sketch.fresh("Net")
        sketch.need(*HEADS.get(kind, ()))
        module = sketch.choices.one((None, None, "models", "pkg.networks"))
        if kind in DEFINED:
            sketch.define(DEFINED[kind], module)
        sketch.define(PLAIN.format(name=name, end=end.format()), module)
        if module is not None:
            sketch.need(f"from {module} import {name}")
        place = sketch.share(stem, f"{name}()")
        return place, lambda x: form.format(call=f"{place}({x})")
    layers = sketch.choices.one(LAYERS)
    sketch.any_batch = "BatchNorm" not in layers
    place = sketch.share(stem, layers)
    return place, lambda x: f"{place}({x})"


OPTIMIZERS = (
    "torch.optim.SGD({p}, lr=0.05)",
    "torch.optim.Adam({p}, lr=0.01)",
    "torch.optim.SGD({p}, lr=0.05, momentum=0.9)",
    "torch.optim.AdamW({p})",
    "torch.optim.RMSprop({p}, lr=0.01)",
    "torch.optim.Adagrad({p}, lr=0.05)",
)


def optimizer(sketch: Sketch, *models: str, stem: str = "opt") -> str:
    """An optimizer for all of ``models``."""
    if len(models) == 1:
        parameters = sketch.choices.one(
            (
                "{m}.parameters()",
                "list({m}.parameters())",
                "[p for p in {m}.parameters() if p.requires_grad]",
                '[{{"params": {m}.parameters()}}]',
                "filter(lambda p: True, {m}.parameters())",
                "dict({m}.named_parameters()).values()",
            )
        )
        parameters = parameters.format(m=models[0])
    else:
        parameters = sketch.choices.one(("[{}]", "list(itertools.chain({}))", "nn.ModuleList([{}]).parameters()"))
        if parameters.startswith("nn."):
            parameters = parameters.format(", ".join(models))
        elif parameters.startswith("list"):
            sketch.need("import itertools")
            parameters = parameters.format(", ".join(f"{m}.parameters()" for m in models))
        else:
            parameters = parameters.format(", ".join(f"*{m}.parameters()" for m in models))
    return sketch.share(stem, sketch.choices.one(OPTIMIZERS).format(p=parameters))


def data(sketch: Sketch) -> None:
    """Batches ``(x, y)`` of 4 x 3 and 4 x 2 under the name ``data``."""
    sketch.batches = 2 + sketch.choices.below(2)
    if not sketch.prefix:
        sketch.plain.add("data")
    count = sketch.batches
    kind = sketch.choices.one(("list", "list", "loader", "class", "slices", "inputs kept"))
    sketch.features.append(f"data {kind}")
    place = sketch.prefix + "data"
    if kind == "loader":
        sketch.need("from torch.utils.data import DataLoader, TensorDataset")
        size = count * 4
        sketch.prepare(
            f"loader = DataLoader(TensorDataset(torch.randn({size}, 3), torch.randn({size}, 2)), batch_size=4)"
        )
        sketch.prepare(f"{place} = list(loader)")
    elif kind == "class":
        sketch.define(BATCHES)
        sketch.prepare(f"{place} = Batches({count})")
    elif kind == "slices":
        sketch.prepare(f"inputs, targets = torch.randn({count * 4}, 3), torch.randn({count * 4}, 2)")
        sketch.prepare(f"{place} = [(inputs[k:k + 4], targets[k:k + 4]) for k in range(0, {count * 4}, 4)]")
    elif kind == "inputs kept":
        sketch.prepare(f"{place} = list(zip(torch.randn({count}, 4, 3), torch.randn({count}, 4, 2)))")
    else:
        sketch.prepare(f"{place} = [(torch.randn(4, 3), torch.randn(4, 2)) for _ in range({count})]")


BATCHES = """
class Batches:
    def __init__(self, count):
        self.inputs = torch.randn(count, 4, 3)
        self.targets = torch.randn(count, 4, 2)

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, index):
        if index >= len(self.inputs):
            raise IndexError(index)
        return self.inputs[index], self.targets[index]
"""


def update(sketch: Sketch, loss: str, optimizers: list[str], models: list[str], *, flag: bool | None = None) -> None:
    """Clear, ``loss.backward()``, step, in one of the ways people write that."""
    choose = sketch.choices
    clear = _clearing(sketch, optimizers, models)
    if flag is None:
        flag = choose.chance(35)
    if flag:
        sketch.features.append("surplus flag")
    call = choose.one(
        (
            "{l}.backward({f})",
            "torch.autograd.backward({l}{c}{f})",
            "{l}.backward({f})",
            "torch.autograd.backward([{l}]{c}{f})",
            "{l}.backward({g})",
        )
    )
    form = call.format(
        l=loss, f="retain_graph=True" if flag else "", c=", " if flag else "", g="None, True" if flag else ""
    )
    kind = choose.one(
        (
            "plain",
            "plain",
            "plain",
            "clip",
            "norm read",
            "scaler",
            "conditional",
            "helper",
            "after",
            "closure",
            "hook",
            "grad",
            "scheduler",
            "finite",
        )
    )
    sketch.features.append(f"update {kind}")
    steps = [f"{o}.step()" for o in optimizers]
    lines = [*clear, form, *steps]
    if kind == "clip":
        lines = [*clear, form, *(f"torch.nn.utils.clip_grad_norm_({m}.parameters(), 1.0)" for m in models), *steps]
    elif kind == "norm read":
        lines = [
            *clear,
            form,
            *(f"print(sum(float(p.grad.norm()) for p in {m}.parameters() if p.grad is not None))" for m in models),
            *steps,
        ]
    elif kind == "scaler":
        lines = [*clear, *_scaled(sketch, form, loss, optimizers, flag=flag)]
    elif kind == "conditional":
        lines = [*clear, form, "if i >= 0:", *(f"    {s}" for s in steps)]
    elif kind == "helper":
        body = "\n".join(["opt.zero_grad()", form.replace(loss, "value"), "opt.step()", "return value.item()"])
        if len(optimizers) == 1:
            lines = [sketch.helper("learn", {"value": loss, "opt": optimizers[0]}, body)]
    elif kind == "after":
        lines = [form, *steps, *clear]
    elif kind == "closure" and len(optimizers) == 1 and not flag:
        # The closure runs once for these optimizers; the loss stands outside.
        lines = [*clear, f"def closure():\n    {form}\n    return {loss}", f"{optimizers[0]}.step(closure)"]
    elif kind == "hook":
        sketch.prepare(
            f"for parameter in {models[0]}.parameters():\n    parameter.register_hook(lambda grad: grad * 0.5)"
        )
    elif kind == "grad":
        lines = _by_grad(sketch, loss, optimizers[:1], models[:1], flag=flag)
    elif kind == "scheduler":
        lines = [*lines, f"{_scheduler(sketch, optimizers[0])}.step()"]
    elif kind == "finite":
        lines = [f"if not torch.isfinite({loss}):", "    __skip__", *lines]
    sketch.add("update", "\n".join(lines))


def _by_grad(sketch: Sketch, loss: str, optimizers: list[str], models: list[str], *, flag: bool) -> list[str]:
    inner = sketch.choices.one(("retain_graph=True", "")) if flag else ""
    lines = []
    for m, o in zip(models, optimizers, strict=True):
        lines += [
            f"grads = torch.autograd.grad({loss}, list({m}.parameters()){', ' if inner else ''}{inner},"
            " allow_unused=True)",
            f"for p, g in zip({m}.parameters(), grads):\n    p.grad = g",
            f"{o}.step()",
        ]
    return lines


def _scheduler(sketch: Sketch, optimizer: str) -> str:
    made = sketch.choices.one(
        ("StepLR({o}, 2)", "LambdaLR({o}, lambda n: 0.9 ** n)", "ExponentialLR({o}, 0.9)", "CosineAnnealingLR({o}, 5)")
    ).format(o=optimizer)
    return sketch.share("scheduler", f"torch.optim.lr_scheduler.{made}")


def _clearing(sketch: Sketch, optimizers: list[str], models: list[str]) -> list[str]:
    choose = sketch.choices
    clear = [
        choose.one(("{o}.zero_grad()", "{o}.zero_grad(set_to_none=True)", "{o}.zero_grad(set_to_none=False)")).format(
            o=o
        )
        for o in optimizers
    ]
    if choose.chance(15):
        clear = [f"{m}.zero_grad()" for m in models]
    if choose.chance(6):
        clear = [f"for p in {m}.parameters():\n    p.grad = None" for m in models]
    return clear


def _scaled(sketch: Sketch, form: str, loss: str, optimizers: list[str], *, flag: bool) -> list[str]:
    scaler = sketch.share(
        "scaler",
        sketch.choices.one(('torch.amp.GradScaler("cpu", enabled=False)', "torch.cuda.amp.GradScaler(enabled=False)")),
    )
    form = form.replace(f"{loss}.backward", f"{scaler}.scale({loss}).backward")
    if "autograd" in form:
        form = f"{scaler}.scale({loss}).backward({'retain_graph=True' if flag else ''})"
    return [form, *(f"{scaler}.step({o})" for o in optimizers), f"{scaler}.update()"]
