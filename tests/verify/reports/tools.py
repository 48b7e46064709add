"""Verifications built by hand: every shape that a report has to tell."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

from codemods.source.diffs import unified
from codemods.terms.findings import Finding, Promise, TrailStep
from codemods.terms.spans import Span
from verify.measured.records import Backward, Caught, Census, Forwards, Holder, Loss, Record, Step
from verify.measured.results import Comparison, Difference, Entry, Outcome, Rewrite, Run, Verdict, Verification, join
from verify.measured.values import Site, Trouble, Values
from verify.running.settings import Settings
from verify.running.standins import parse

MIB = 1 << 20
LINE = Site("train.py", 41, "train")
FREED = Trouble(
    "RuntimeError",
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward.",
    "freed",
)
TRACEBACK = """Traceback (most recent call last):
  File "train.py", line 41, in train
    loss.backward()
  File "torch/_tensor.py", line 630, in backward
    torch.autograd.backward(
RuntimeError: Trying to backward through the graph a second time
"""
ABOUT = {
    "version": 1,
    "pid": 4711,
    "process": "main",
    "python": "3.11.9",
    "torch": "2.13.0",
    "device": "cpu",
    "cuda": None,
    "threads": 1,
    "argv": ["train.py"],
}
BEFORE = """import torch


def train(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        total += loss
    return total / len(loader)
"""
AFTER = BEFORE.replace("backward(retain_graph=True)", "backward()").replace("total += loss", "total += loss.item()")


def record(
    steps: int = 20,
    *,
    loss: Callable[[int], float] = lambda index: 2.31 * 0.93**index,
    live: Callable[[int], int] = lambda index: 0,
    memory: Callable[[int], float] = lambda index: 48 * MIB,
    raised: Trouble | None = None,
    site: Site | None = LINE,
    optimizers: Sequence[str] = ("Adam",),
    end: str | None = "steps",
    **fields: Any,
) -> Record:
    """A training of ``steps`` steps; with ``raised`` one backward more, which raises it and ends the process."""
    backwards, made = [], []
    for index in range(steps + (raised is not None)):
        value = loss(index)
        last = index == steps
        backwards.append(
            Backward(
                index=index,
                site=site,
                call=index + 1,
                time=0.012 * index + 0.5,
                losses=(Loss(value, f"{index:08x}", 1),),
                rng=f"{index:04x}",
                retain=False,
                create=False,
                grad=False,
                nodes=152,
                live=live(index),
                seconds=0.004,
                bytes=int(memory(index)),
                peak=int(memory(index)) + 3 * MIB,
                error=raised if last else None,
                steps_before=len(made),
            )
        )
        for optimizer, name in enumerate(() if last else optimizers):
            made.append(
                Step(
                    optimizer=optimizer,
                    name=name,
                    call=index + 1,
                    site=Site("train.py", 42, "train"),
                    time=0.012 * index + 0.505,
                    live=live(index + 1),
                    params=Values(f"{index:016x}", 2),
                    rates=({"lr": value},),
                    bytes=int(memory(index + 1)),
                    peak=int(memory(index + 1)) + 3 * MIB,
                )
            )
    values: dict[str, Any] = {
        "about": dict(ABOUT),
        "backwards": backwards,
        "steps": made,
        "forwards": [Forwards(Site("train.py", 38, "train"), steps, steps, 1)],
        "census": Census(steps, {steps: 152}, False, ()),
        "overhead": 0.03,
        "end": end,
    }
    if raised is not None:
        values |= {"error": raised, "error_site": site, "traceback": TRACEBACK, "end": "raised"}
    return Record(**{**values, **fields})


def run(name: str, *records: Record, outcome: Outcome = Outcome.OK, **fields: Any) -> Run:
    """A run of ``train.py``."""
    values: dict[str, Any] = {
        "command": ("/opt/venv/bin/python", "train.py", "--epochs", "1"),
        "status": 0 if outcome is Outcome.OK else 1,
        "wall": 2.4,
        "peak": 412 * MIB,
        "records": records,
        "output": "epoch 0\n",
        "sandbox": "overlay",
    }
    return Run(name=name, outcome=outcome, **{**values, **fields})


def finding(
    rule: str = "surplus-retain-graph", line: int = 9, promise: Promise = Promise.EXACT, **fields: Any
) -> Finding:
    """A finding in ``train.py``."""
    values: dict[str, Any] = {
        "path": "train.py",
        "message": "retain_graph=True keeps the graph of this backward, and nobody walks it again",
        "remedy": "drop retain_graph=True",
        "trail": (TrailStep("model.py", 20, "the graph is produced here"), TrailStep("train.py", line, "freed here")),
    }
    return Finding(rule=rule, span=Span(line, 8, line, 40), promise=promise, **{**values, **fields})


def same(steps: int = 20, backwards: int | None = None) -> Comparison:
    """Two runs that computed the same."""
    return Comparison(Difference.IDENTICAL, "", 0.0, 0.0, steps, steps if backwards is None else backwards)


def entry(original: Run, rewritten: Run | None, rewrites: Sequence[Rewrite] = (), **fields: Any) -> Entry:
    """An entry whose original is deterministic, unless ``fields`` say otherwise."""
    values: dict[str, Any] = {
        "command": original.command,
        "again": dataclasses.replace(original, name="original again"),
        "repeatable": same(len(original.record.steps)),
        "comparison": None if rewritten is None else same(),
    }
    return Entry(original=original, rewritten=rewritten, rewrites=tuple(rewrites), **{**values, **fields})


def verification(*entries: Entry, **fields: Any) -> Verification:
    """A verification of ``entries``, judged unless ``fields`` say otherwise."""
    values: dict[str, Any] = {
        "root": "/home/ada/project",
        "rewrites": join([entry.rewrites for entry in entries]),
        "diff": unified("train.py", BEFORE.encode(), AFTER.encode()).decode(),
        "judged": True,
        "settings": Settings().told(),
    }
    values |= fields
    return Verification(entries=entries, **{"readable": values["diff"], **values})


def repaired() -> Verification:
    """The original raises at its second backward, the rewritten program does not; a second rewrite was not reached."""
    carried = finding(
        "carried-hidden-state", 33, Promise.REPAIR, message="the state of one batch is carried to the next"
    )
    rewrites = (
        Rewrite(
            (carried, finding("surplus-retain-graph", 41, Promise.EXACT)),
            Verdict.KEPT,
            "the error of the original (RuntimeError: Trying to backward through the graph a second time at "
            "train.py:41) is gone; the graph stays flat (0 nodes alive at the last step); the same bit for bit up to "
            "there (1 step and 1 backward)",
        ),
        Rewrite((finding("grad-in-evaluation", 88),), Verdict.NOT_REACHED, "lines 88 to 97 did not run"),
    )
    original = run("original", record(1, raised=FREED, census=None), outcome=Outcome.RAISED)
    rewritten = run("rewritten", record(), notes=("the network was out of reach",))
    return verification(entry(original, rewritten, rewrites, comparison=same(1)))


def exact() -> Verification:
    """A growing total and wasted forwards, both gone, all numbers the same."""
    wasted = Forwards(Site("eval.py", 12, "evaluate"), 60, 0, 20)
    holder = Holder("total", "train", 2888, 19)
    original = record(
        live=lambda step: 152 * step,
        memory=lambda step: 48 * MIB + 61_200 * step,
        forwards=[wasted],
        census=Census(20, dict.fromkeys(range(20), 152), True, (holder,)),
    )
    rewrites = (
        Rewrite(
            (finding("attached-loss-total", 11),),
            Verdict.KEPT,
            "bit for bit the same over 20 steps and 20 backwards; graph growth 152 nodes a step before, none after",
        ),
        Rewrite(
            (finding("grad-in-evaluation", 9, path="eval.py"),),
            Verdict.KEPT,
            "bit for bit the same over 20 steps and 20 backwards; forwards that built a graph for nothing: 60 "
            "before, 0 after",
        ),
    )
    return verification(entry(run("original", original), run("rewritten", record()), rewrites))


def broken() -> Verification:
    """A rewrite that changed what is learned, found by leaving it out; another one that held."""
    apart = Comparison(
        Difference.DIFFERENT,
        "loss of call 3 of the backward at train.py:41: 1.99791 and 2.14083",
        0.3127,
        0.0841,
        20,
        20,
        random_moved=True,
    )
    rewrites = (
        Rewrite(
            (finding("stored-graph", 7),),
            Verdict.BROKEN,
            "not the same (the random numbers moved): loss of call 3 of the backward at train.py:41: 1.99791 and "
            "2.14083",
            "without it the rest holds",
        ),
        Rewrite((finding(),), Verdict.KEPT, "bit for bit the same over 20 steps and 20 backwards"),
    )
    rewritten = run("rewritten", record(loss=lambda index: 2.31 * 0.93 ** (index if index < 2 else index * 0.7)))
    staged = (("surplus-retain-graph at train.py:9 alone", run("rewritten", record())),)
    return verification(entry(run("original", record()), rewritten, rewrites, comparison=apart, staged=staged))


def crashed() -> Verification:
    """The rewritten program raises where the original did not."""
    error = Trouble("NameError", "name 'criterion' is not defined", "other")
    rewritten = record(
        0, end="raised", error=error, error_site=Site("train.py", 7, "train"), traceback=TRACEBACK, census=None
    )
    rewrites = (
        Rewrite(
            (finding(),), Verdict.BROKEN, "the rewritten program raises NameError: name 'criterion' is not defined"
        ),
    )
    return verification(
        entry(run("original", record()), run("rewritten", rewritten, outcome=Outcome.RAISED), rewrites, comparison=None)
    )


def not_reached() -> Verification:
    """Nothing that was rewritten ran."""
    rewrites = (Rewrite((finding("grad-in-evaluation", 88),), Verdict.NOT_REACHED, "lines 88 to 97 did not run"),)
    return verification(entry(run("original", record()), run("rewritten", record()), rewrites))


def unjudged() -> Verification:
    """The script misses its data."""
    error = Trouble("FileNotFoundError", "[Errno 2] No such file or directory: 'data/train.bin'", "missing")
    trace = 'Traceback (most recent call last):\n  File "train.py", line 12, in <module>\n    open("data/train.bin")\n'
    gone = record(
        0,
        end="raised",
        error=error,
        error_site=Site("train.py", 12, "<module>"),
        traceback=trace + "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.bin'\n",
        missing="data/train.bin",
        census=None,
        forwards=[],
    )
    original = run("original", gone, outcome=Outcome.RAISED)
    rewrites = (Rewrite((finding(),), Verdict.NOT_JUDGED, "the original does not run"),)
    return verification(
        entry(original, None, rewrites, repeatable=None),
        judged=False,
        reason="the original stops before its first backward: FileNotFoundError: [Errno 2] No such file or directory: "
        "'data/train.bin'",
        advice=(
            "give the path of the data as arguments, or let a stand-in be made: --stand-in "
            "data/train.bin=float32:100,3,32,32",
        ),
    )


def no_torch() -> Verification:
    """Nothing was run at all."""
    reason = "/usr/bin/python3 has no torch; name an interpreter that has it with --python"
    return verification(judged=False, reason=reason, diff="")


def not_a_number() -> Verification:
    """Losses that stop being numbers, and parameters of which one side alone is finite."""
    loss: Callable[[int], float] = lambda index: 2.31 if index < 9 else math.nan if index < 15 else math.inf  # noqa: E731
    apart = Comparison(Difference.DIFFERENT, "parameters after step 12: largest difference nan", 0.0, math.nan, 20, 20)
    rewrites = (
        Rewrite((finding(),), Verdict.BROKEN, "not the same: parameters after step 12: largest difference nan"),
    )
    runs = (run("original", record(loss=loss)), run("rewritten", record(loss=lambda index: -math.inf)))
    return verification(entry(*runs, rewrites, comparison=apart))


def random() -> Verification:
    """A program that computes something else each time."""
    apart = Comparison(
        Difference.DIFFERENT, "loss of call 1 of the backward at train.py:41: 2.31 and 2.29", 0.02, 0.001, 20, 20
    )
    rewrites = (
        Rewrite((finding(),), Verdict.NOT_JUDGED, "not deterministic here: the original, run twice, differs"),
        Rewrite((finding("stored-graph", 7, Promise.REPAIR),), Verdict.KEPT, "the error of the original is gone"),
    )
    again = run("original again", record(loss=lambda index: 2.29 * 0.93**index))
    runs = (run("original", record()), run("rewritten", record(loss=lambda index: 2.3 * 0.92**index)))
    return verification(entry(*runs, rewrites, again=again, repeatable=apart, comparison=apart))


def nothing() -> Verification:
    """No rule found anything."""
    return verification(entry(run("original", record()), None), diff="")


def stand_ins() -> Verification:
    """No data, no GPU, capped loaders, a script that caught its errors, two optimizers."""
    limits: dict[str, Any] = {
        "standins": [{"what": "CIFAR10", "why": "data/cifar-10-batches-py is missing", "shape": [50000, 32, 32, 3]}],
        "devices": ["Tensor.cuda()", "torch.device('cuda:0')"],
        "capped": [
            {"site": ["train.py", 30, "main"], "length": 1563, "cap": 5},
            {"site": None, "length": None, "cap": 5},
        ],
        "caught": [Caught(Site("train.py", 41, "train"), FREED)] * 3,
        "notes": ["the steps of the class Sgd cannot be seen"],
        "seeds": [("torch", 1234)],
    }
    original = record(optimizers=("Adam", "Adam", "SGD"), **limits)
    rewrites = (Rewrite((finding(),), Verdict.KEPT, "bit for bit the same over 60 steps and 20 backwards"),)
    settings = Settings(steps=7, device="cpu", stand_ins=(parse("y.npz[labels]=int64:1000<10"),))
    return verification(
        entry(run("original", original), run("rewritten", original), rewrites, notes=("ran in 2 stages",)),
        settings=settings.told(),
    )


def many() -> Verification:
    """Three commands, one of which ran out of memory, one without any step, one on a card."""
    card = dict(ABOUT, device="NVIDIA H200", cuda="12.8")
    grown = record(
        14,
        memory=lambda step: 20_000 * MIB + 1_400 * MIB * step,
        live=lambda step: 5_000 * step,
        about=card,
        census=None,
        end=None,
        error=Trouble("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB.", "memory"),
        error_site=Site("gan.py", 77, "train"),
        traceback=TRACEBACK,
    )
    flat = record(memory=lambda step: 20_100 * MIB, about=card)
    stopped = record(4, census=None, end=None)
    manual = record(20, optimizers=(), end="backwards")
    rewrites = (Rewrite((finding(promise=Promise.REPAIR),), Verdict.KEPT, "the error of the original is gone"),)
    gan = ("/opt/venv/bin/torchrun", "--nproc-per-node", "2", "gan.py")
    return verification(
        entry(run("original", grown, outcome=Outcome.MEMORY, command=gan), run("rewritten", flat), rewrites),
        entry(run("original", manual), run("rewritten", manual), rewrites),
        entry(run("original", stopped, outcome=Outcome.TIMEOUT), run("rewritten", stopped, outcome=Outcome.KILLED), ()),
    )


def hostile() -> Verification:
    """Names, messages and code that try to leave the place where they are shown."""
    evil = "</style></pre><script>alert('x')</script><img src=x onerror=alert(1)>\x1b[31m\x07$\\frac{1}{0}$ {{ 7*7 }}"
    error = Trouble(f"Bad{evil}", f"{evil}\nsecond line", "other")
    where = Site(f"{evil}.py", 3, evil)
    wrong = record(3, raised=error, site=where, traceback=evil, notes=[evil], devices=[evil], optimizers=(evil,))
    wrong.standins = [{"what": evil, "why": evil, "shape": evil}]
    wrong.capped = [{"site": [evil, 1, evil], "length": 3, "cap": 1}]
    wrong.census = Census(20, {1: 3}, True, (Holder(evil, evil, 3, 1),))
    rewrite = Rewrite(
        (finding(evil, 9, path=evil, message=evil, trail=(TrailStep(evil, 1, evil),), remedy=evil),),
        Verdict.BROKEN,
        evil,
        evil,
    )
    apart = Comparison(Difference.DIFFERENT, evil, 1.0, 1.0, 1, 1)
    bad = run("original", wrong, outcome=Outcome.RAISED, command=("python", evil), output=evil, notes=(evil,))
    diff = f"--- a/{evil}\n+++ b/{evil}\n@@ -1,2 +1,2 @@ {evil}\n-old {evil}\n+new {evil}\n \x0c</pre>\n"
    return verification(
        entry(bad, bad, (rewrite,), comparison=apart, notes=(evil,), staged=((evil, bad),)),
        root=evil,
        diff=diff,
        reason=evil,
        advice=(evil,),
        settings={evil: evil, "python": evil},
    )


def wide() -> Verification:
    """Names in other alphabets, and names longer than any line."""
    long = "/".join(["a_rather_deeply_nested_package_of_somebody"] * 6) + "/train.py"
    names = (finding("carried-hidden-state", 123456, path=long), finding(path="学習/訓練スクリプト_🔥.py", line=7))
    rewrites = tuple(Rewrite((one,), Verdict.KEPT, "die Größen stimmen überein — бит в бит " * 6) for one in names)
    original = record(site=Site(long, 123456, "f" * 300), raised=None)
    failed = record(2, site=Site("学習/訓練.py", 7, "訓練"), raised=Trouble("例外", "x" * 500, "other"))
    command = ("/opt/venv/bin/python", long, "--name", "Füße 学習")
    return verification(
        entry(
            run("original", failed, outcome=Outcome.RAISED, command=command),
            run("rewritten", original, command=command),
            rewrites,
        )
    )


ALL = (
    repaired,
    exact,
    broken,
    crashed,
    not_reached,
    unjudged,
    no_torch,
    not_a_number,
    random,
    nothing,
    stand_ins,
    many,
    hostile,
    wide,
)
