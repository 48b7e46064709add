"""A flag decides whether a loss is walked once more, and code sets it in a way that is hard to see."""

from __future__ import annotations

from tests.hunt.grammar import parts
from tests.hunt.grammar.sketch import Sketch
from tests.hunt.grammar.tasks import Turn, task

HOLDERS = (
    ("class {k}:\n    def __init__(self):\n        self.more = {v}\n        self.count = 0", "{k}()"),
    ("class {k}:\n    more = {v}\n    count = 0", "{k}()"),
    ("class {k}(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.more = {v}\n"
     "        self.count = 0", "{k}()"),
    ("class {k}:\n    def __init__(self, **given):\n        vars(self).update(given)", "{k}(more={v}, count=0)"),
    ("class {k}(dict):\n    __getattr__ = dict.__getitem__\n    __setattr__ = dict.__setitem__",
     "{k}(more={v}, count=0)"),
)  # fmt: skip
"""Classes whose objects have the flag, and how one is made."""

AT_ONCE = (
    "exec('it.more = {n}', {{'it': {h}}})",
    "eval('setattr(it, name, {n})', {{'it': {h}, 'name': 'more', 'setattr': setattr}})",
    "put = {h}.__setattr__\nput('more', {n})",
    "type({h}).__setattr__({h}, 'more', {n})",
    "operator.methodcaller('__setattr__', 'more', {n})({h})",
    "functools.partial(setattr, {h})('more', {n})",
    "for name, value in json.loads('{{\"more\": {j}}}').items():\n    setattr({h}, name, value)",
    "[put({h}, 'more', {n}) for put in (setattr,)]",
    "with contextlib.ExitStack() as stack:\n    stack.callback(setattr, {h}, 'more', {n})",
    "{h}.count = 1",
    "pass",
)
"""Statements that set the flag of ``{h}`` to ``{n}``, and some that do not."""

LATER = (
    "lambda *given: setattr({h}, 'more', {n})",
    "lambda *given: vars({h}).update(more={n})",
    "lambda *given: setattr({h}, 'count', {h}.count + 1)",
)
"""Functions that set it, or not, when they are called."""

CALLED = (
    ("map({f}, [1, 2, 3, 4])", "next({t}, None)"),
    ("({f}(v) for v in [1, 2, 3, 4])", "next({t}, None)"),
    ("threading.Thread(target={f})", "i or {t}.ident or {t}.start()"),
    ("{k}({f})", "print(len({t}))"),
    ("{k}({f})", "print(f'{{{t}}}')"),
    ("{k}({f})", "not {t}"),
    ("{k}({f})", "copy.copy({t})"),
    ("{m}.register_forward_hook({f})", "pass"),
    ("next(iter({m}.parameters())).register_hook({f})", "pass"),
)
"""What is made of such a function before the loops, and what calls it at the end of a turn."""

THING = """
class {k}:
    def __init__(self, act):
        self.act = act

    def __len__(self):
        self.act()
        return 1

    def __str__(self):
        self.act()
        return "thing"

    def __bool__(self):
        self.act()
        return True

    def __getstate__(self):
        self.act()
        return {{"act": self.act}}
"""


@task("switched")
def switched(s: Sketch) -> Turn:
    """A second walk behind a flag that something sets, at once or later, or nothing at all."""
    s.need("import contextlib, copy, functools, json, operator, threading")
    start = s.choices.chance(30)
    code, made = s.choices.one(HOLDERS)
    kind = s.fresh("Flags")
    s.define(code.format(k=kind, v=start))
    holder = s.share("flags", made.format(k=kind, v=start))
    s.model = s.share("model", "nn.Linear(3, 2)")
    s.forward = lambda x: f"{s.model}({x})"
    s.optimizer = parts.optimizer(s, s.model)
    given = {"h": holder, "n": not start, "j": str(not start).lower(), "m": s.model}
    if s.choices.chance(50):
        s.features.append("switched at once")
        s.add("turn_end", s.choices.one(AT_ONCE).format(**given))
    else:
        s.features.append("switched later")
        thing = s.fresh("Thing")
        s.define(THING.format(k=thing))
        given["f"] = s.share("flip", s.choices.one(LATER).format(**given))
        made, end = s.choices.one(CALLED)
        place = s.share("later", made.format(k=thing, **given))
        s.add("turn_end", end.format(t=place, **given))
    flag = s.choices.one(("retain_graph=True", "retain_graph=True", ""))
    s.add("forward", f"out = torch.tanh({s.forward('x')})\nloss = out.pow(2).mean()")
    test = f"{holder}.more" if not start else s.choices.one((f"{holder}.more", f"not {holder}.more"))
    s.add("update", f"{s.optimizer}.zero_grad()\nloss.backward({flag})\n"
                    f"if {test}:\n    out.exp().mean().backward()\n{s.optimizer}.step()")  # fmt: skip
    return Turn("loss", "out")
