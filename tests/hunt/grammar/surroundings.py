"""What surrounds a step and is not written in it: hooks, handlers, caches, flags, methods that Python calls itself."""

from __future__ import annotations

import re
from textwrap import indent

from tests.hunt.grammar.extras import extra
from tests.hunt.grammar.sketch import SKIP, Sketch
from tests.hunt.grammar.tasks import Turn
from tests.rules.test_readers_of_totals import NUMBERS, TENSORS

_OF_ONE_SCOPE = re.compile(r"\b(?:globals|vars|eval|exec|net|opt)\b|^def show\(total=")

READERS = tuple(reader for reader in (*NUMBERS, *TENSORS) if not _OF_ONE_SCOPE.search(reader))
"""Ways to read a total that work in any function."""


@extra("read by python")
def read_by_python(s: Sketch, t: Turn) -> None:
    """A total that goes through Python's own functions and statements before it is looked at."""
    place = s.share("sum", "0", held=True)
    s.add("turn_end", f"{place} += {t.loss}")
    reader = s.choices.one(READERS)
    s.add("finish", s.helper("look", {"total": place}, f"{reader}\nreturn None"))


@extra("hooks")
def hooks(s: Sketch, t: Turn) -> None:
    """Something is counted whenever a gradient comes, a step is taken or a forward runs."""
    calls = s.share("calls", "[]")
    forms = [
        "for p in {m}.parameters():\n    p.register_hook(lambda grad: {c}.append(1))",
        "for p in {m}.parameters():\n    p.register_post_accumulate_grad_hook(lambda p: {c}.append(1))",
        "{m}.register_full_backward_hook(lambda module, given, out: {c}.append(1))",
        "torch.autograd.graph.register_multi_grad_hook(list({m}.parameters()), lambda grads: {c}.append(1))",
        "{m}.register_forward_pre_hook(lambda module, given: {c}.append(torch.is_grad_enabled()))",
    ]
    if s.optimizer:
        forms += [
            "{o}.register_step_post_hook(lambda *rest: {c}.append(1))",
            "{o}.register_step_pre_hook(lambda *rest: {c}.append(1))",
        ]
    s.prepare(s.choices.one(tuple(forms)).format(m=s.model, o=s.optimizer, c=calls))
    s.add("finish", f"print(sum({calls}))")


@extra("handler")
def handler(s: Sketch, t: Turn) -> None:
    """What goes wrong in an update is caught, or let through."""
    update = "\n".join(s.slots["update"])
    if not update or SKIP in update:
        return
    caught = s.choices.one(("RuntimeError", "Exception", "KeyboardInterrupt", "(RuntimeError, ValueError)"))
    answer = s.choices.one(("print('skipped')", "print('skipped')\n    raise", "pass"))
    s.slots["update"] = [f"try:\n{indent(update, '    ')}\nexcept {caught}:\n    {answer}"]


@extra("flags on parameters")
def flags_on_parameters(s: Sketch, t: Turn) -> None:
    """Parameters are asked for gradients by what is only known when it runs."""
    flag = s.choices.one(("i >= 0", "i < 100", "True", "len(x) > 0", "bool(i + 1)"))
    form = s.choices.one(
        ("for p in {m}.parameters():\n    p.requires_grad_({f})", "{m}.requires_grad_({f})",
         "for p in {m}.parameters():\n    p.requires_grad = {f}")
    )  # fmt: skip
    s.add("turn_start", form.format(m=s.model, f=flag))


@extra("cached value")
def cached_value(s: Sketch, t: Turn) -> None:
    """A number of the weights that is computed once, by whoever asks first."""
    if not t.loss.isidentifier():
        return
    s.need("import functools")
    value = f"lambda: next(iter({s.model}.parameters())).sum()"
    place = s.share("center", f"functools.lru_cache(maxsize=None)({value})")
    if s.choices.chance(60):
        s.add("epoch_start", f"print(round(float({place}()), 2))")
    s.slots["forward"].append(f"{t.loss} = {t.loss} + 0.1 * {place}()")


@extra("special methods")
def special_methods(s: Sketch, t: Turn) -> None:
    """An object around a loss that Python asks for a text, a truth, a length or an order."""
    method, result, use = s.choices.one(
        (
            ("__str__", "str(self.value.item() > 0)", "print(str({c}({l})))"),
            ("__repr__", "repr(self.value.shape)", "print({c}({l}))"),
            ("__format__", "str(self.value.dtype)", "print(f'{{{c}({l})}}')"),
            ("__bool__", "bool(self.value > 0)", "print('positive' if {c}({l}) else 'not')"),
            ("__len__", "self.value.dim() + 1", "print(len({c}({l})))"),
            ("__float__", "self.value.item()", "print(float({c}({l})) > 0)"),
            ("__contains__", "self.value.item() > rest[0]", "print(0 in {c}({l}))"),
            ("__lt__", "self.value.item() < rest[0].value.item()", "print({c}({l}) < {c}({l}))"),
            ("__hash__", "hash(self.value.item() > 0)", "print(len({{{c}({l}): 1}}))"),
        )
    )
    name = s.fresh("Around")
    s.define(
        f"class {name}:\n    def __init__(self, value):\n        self.value = value\n\n"
        f"    def {method}(self, *rest):\n        return {result}"
    )
    s.add("turn_end", use.format(c=name, l=t.loss))
