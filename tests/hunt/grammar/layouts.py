"""Where the statements of a sketch stand: at the top level, in functions, methods, closures, generators, callbacks."""

from __future__ import annotations

import re
from textwrap import indent

from tests.hunt.grammar.sketch import SKIP, Sketch, names_in

LAYOUTS = ("script", "main", "trainer", "step", "epoch", "closure", "arguments", "generator", "guard", "callback")

HEAD = ("import torch", "import torch.nn as nn", "import torch.nn.functional as F")


def files_of(sketch: Sketch) -> dict[str, str]:
    """Write the sketch down: the files of the program by path, ``main.py`` among them."""
    main = _main(sketch)
    heads = [*HEAD, *sketch.imports]
    local = tuple(f"{word} {name}" for name in (*sketch.modules, "pkg") for word in ("import", "from"))
    files = {}
    for name, parts in sketch.modules.items():
        outside = [line for line in heads if not line.startswith(local)]
        files[name.replace(".", "/") + ".py"] = "\n".join(outside) + "\n\n\n" + "\n\n\n".join(parts) + "\n"
        if "." in name:
            files["pkg/__init__.py"] = ""
    text = "\n".join(heads) + "\n\ntorch.manual_seed(0)\n\n"
    if sketch.definitions:
        text += "\n" + "\n\n\n".join(d for d in sketch.definitions if d) + "\n\n\n"
    files["main.py"] = text + main + "\n"
    return files


def _join(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def _slot(sketch: Sketch, *names: str) -> str:
    return _join(*(text for name in names for text in sketch.slots[name]))


def _skip(text: str, statement: str) -> str:
    return re.sub(rf"\b{SKIP}\b", statement, text)


def _main(sketch: Sketch) -> str:
    turn = _slot(sketch, "turn_start", "forward", "update", "turn_end")
    setup = _join(*sketch.setup)
    layout = sketch.layout
    finish = _slot(sketch, "finish")
    if layout == "trainer":
        return _trainer(sketch, setup, turn, finish)
    if layout in ("step", "closure", "callback"):
        return _step(sketch, setup, turn, finish)
    if layout == "epoch":
        body = _epoch(sketch, _skip(turn, "continue"))
        text = _function("train_epoch", ["epoch"], _declared(sketch, body, "global") + body)
        return _join(text, setup, f"for epoch in range({sketch.epochs}):\n    train_epoch(epoch)", finish)
    if layout == "arguments":
        return _arguments(sketch, setup, turn, finish)
    if layout == "generator":
        return _generator(sketch, setup, turn, finish)
    loops = f"for epoch in range({sketch.epochs}):\n" + indent(_epoch(sketch, _skip(turn, "continue")), "    ")
    whole = _join(setup, loops, finish)
    if layout == "main":
        return _function("main", [], whole) + "\n\nmain()"
    if layout == "guard":
        return 'if __name__ == "__main__":\n' + indent(whole, "    ")
    return whole


def _function(name: str, parameters: list[str], body: str) -> str:
    return f"def {name}({', '.join(parameters)}):\n{indent(body, '    ')}\n"


def _declared(sketch: Sketch, body: str, word: str) -> str:
    names = sorted(names_in(body)[1] & sketch.plain)
    return f"{word} {', '.join(names)}\n" if names else ""


def _epoch(sketch: Sketch, turn: str) -> str:
    return _join(_slot(sketch, "epoch_start"), _loop(sketch, turn), _slot(sketch, "epoch_end"))


def _loop(sketch: Sketch, turn: str) -> str:
    """The loop over batches, which binds ``i``, ``x`` and ``y``."""
    kind = sketch.choices.one(
        ("enumerate", "plain", "range", "while", "else", "iterator", "try", "zip", "endless", "nested")
    )
    sketch.features.append(f"loop {kind}")
    data = sketch.prefix + "data"
    body = indent(turn, "    ")
    if kind == "plain" and not re.search(r"\bi\b", turn):
        return f"for x, y in {data}:\n{body}"
    if kind == "range":
        return f"for i in range(len({data})):\n    x, y = {data}[i]\n{body}"
    if kind == "while":
        return f"i = -1\nwhile i + 1 < len({data}):\n    i += 1\n    x, y = {data}[i]\n{body}"
    if kind == "else":
        return f"for i, (x, y) in enumerate({data}):\n{body}\nelse:\n    print('done')"
    if kind == "iterator":
        return f"batches = iter({data})\nfor i in range({sketch.batches}):\n    x, y = next(batches)\n{body}"
    if kind == "try":
        return (
            f"for i, (x, y) in enumerate({data}):\n    try:\n{indent(body, '    ')}\n"
            "    except KeyboardInterrupt:\n        break\n    finally:\n        pass"
        )
    if kind == "zip":
        return f"for i, x, y in zip(range(9), [a for a, _ in {data}], [b for _, b in {data}]):\n{body}"
    if kind == "endless" and "continue" not in turn:
        return f"i = 0\nwhile True:\n    x, y = {data}[i]\n{body}\n    i += 1\n    if i >= len({data}):\n        break"
    if kind == "nested":
        return f"for i, batch in enumerate({data}):\n    for x, y in [batch]:\n{indent(body, '    ')}"
    return f"for i, (x, y) in enumerate({data}):\n{body}"


def _trainer(sketch: Sketch, setup: str, turn: str, finish: str) -> str:
    """A class with everything on ``self``."""
    loops = f"for epoch in range({sketch.epochs}):\n"
    parts = [_function("__init__", ["self"], setup)]
    if sketch.choices.chance(60):
        step = _skip(turn, "return")
        parts.append(_function("step", ["self", "i", "x", "y"], step))
        loops += indent(_epoch(sketch, "self.step(i, x, y)"), "    ")
    else:
        loops += indent(_epoch(sketch, _skip(turn, "continue")), "    ")
    parts += [_function("fit", ["self"], _join(loops, finish)), *sketch.methods]
    base = sketch.choices.one(("", "(object)"))
    return f"class Trainer{base}:\n" + indent("\n".join(parts), "    ") + "\n\ntrainer = Trainer()\ntrainer.fit()"


def _step(sketch: Sketch, setup: str, turn: str, finish: str) -> str:
    """A function for one batch: at the top level with ``global``, or inside another with ``nonlocal``."""
    inside = sketch.layout != "step"
    body = _skip(turn, "return")
    body = _declared(sketch, body, "nonlocal" if inside else "global") + body
    step = _function("step", ["i", "x", "y"], body)
    call = "step(i, x, y)"
    if sketch.layout == "callback":
        step += "\ncallbacks = [step]\n"
        call = "for callback in callbacks:\n    callback(i, x, y)"
    loops = f"for epoch in range({sketch.epochs}):\n" + indent(_epoch(sketch, call), "    ")
    if inside:
        return _function("main", [], _join(setup, "", step, loops, finish)) + "\n\nmain()"
    return _join(step, setup, loops, finish)


def _arguments(sketch: Sketch, setup: str, turn: str, finish: str) -> str:
    """An epoch in a function that gets everything as arguments and gives back what it rebinds."""
    body = _epoch(sketch, _skip(turn, "continue"))
    read, bound = names_in(body)
    names = sorted(read & sketch.plain)
    back = sorted(bound & sketch.plain)
    if back:
        body += f"\nreturn {', '.join(back)}"
    text = _function("train_epoch", ["epoch", *names], body)
    call = (f"{', '.join(back)} = " if back else "") + f"train_epoch({', '.join(['epoch', *names])})"
    return _join(text, setup, f"for epoch in range({sketch.epochs}):\n    {call}", finish)


def _generator(sketch: Sketch, setup: str, turn: str, finish: str) -> str:
    """The training loop is a generator that somebody else drives."""
    body = _epoch(sketch, _skip(turn, "continue") + "\nyield i")
    text = _function("training", ["epoch"], _declared(sketch, body, "global") + body)
    drive = f"for epoch in range({sketch.epochs}):\n    for number in training(epoch):\n        print(number)"
    return _join(text, setup, drive, finish)
