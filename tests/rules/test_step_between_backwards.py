"""Later losses are back-propagated before what they were built through is stepped, or built after it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from codemods.terms.findings import Promise
from fixtures import cases
from tests.rules.tools import assert_mended, found, lines, marked, mended

RULE = "step-between-backwards"

GAN = """\
import torch
from torch import nn

G = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
D = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
bce = nn.BCEWithLogitsLoss()
opt_g = torch.optim.Adam(G.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(D.parameters(), lr=1e-3)
ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)

"""

SWAPS = {
    "the later block goes first": (
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            d_loss = bce(D(torch.randn(16, 2)), ones) + bce(D(fake.detach()), zeros)
            # the discriminator
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()  #

            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
            print(g_loss.item())
        """,
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            d_loss = bce(D(torch.randn(16, 2)), ones) + bce(D(fake.detach()), zeros)
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()

            # the discriminator
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()  #

            print(g_loss.item())
        """,
    ),
    "a clearing above the forwards moves along": (
        """
        for step in range(9):
            opt_d.zero_grad()
            opt_g.zero_grad()
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            d_loss = bce(D(fake.detach()), zeros)
            d_loss.backward()
            opt_d.step()  #
            g_loss.backward()
            opt_g.step()
        """,
        """
        for step in range(9):
            opt_g.zero_grad()
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            d_loss = bce(D(fake.detach()), zeros)
            g_loss.backward()
            opt_g.step()
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()  #
        """,
    ),
    "each clips its own gradients, and what is printed stays": (
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            d_loss = bce(D(fake.detach()), zeros)
            opt_d.zero_grad()
            d_loss.backward()
            nn.utils.clip_grad_norm_(D.parameters(), 1.0)
            opt_d.step()  #
            d_curve = d_loss.item()
            opt_g.zero_grad()
            g_loss.backward()
            nn.utils.clip_grad_norm_(G.parameters(), 1.0)
            opt_g.step()
            print(d_curve)
        """,
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            d_loss = bce(D(fake.detach()), zeros)
            opt_g.zero_grad()
            g_loss.backward()
            nn.utils.clip_grad_norm_(G.parameters(), 1.0)
            opt_g.step()
            opt_d.zero_grad()
            d_loss.backward()
            nn.utils.clip_grad_norm_(D.parameters(), 1.0)
            opt_d.step()  #
            d_curve = d_loss.item()
            print(d_curve)
        """,
    ),
    "updates in a helper, by a method": (
        """
        class Trainer:
            def __init__(self):
                self.d_optim = torch.optim.SGD(D.parameters(), lr=0.1)
                self.g_optim = torch.optim.SGD(G.parameters(), lr=0.1)

            def update(self, optim, loss):
                optim.zero_grad()
                loss.backward()
                optim.step()

            def train(self):
                fake = G(torch.randn(16, 4))
                g_loss = bce(D(fake), ones)
                d_loss = bce(D(fake.detach()), zeros)
                self.update(self.d_optim, d_loss)  #
                self.update(self.g_optim, g_loss)

        Trainer().train()
        """,
        """
        class Trainer:
            def __init__(self):
                self.d_optim = torch.optim.SGD(D.parameters(), lr=0.1)
                self.g_optim = torch.optim.SGD(G.parameters(), lr=0.1)

            def update(self, optim, loss):
                optim.zero_grad()
                loss.backward()
                optim.step()

            def train(self):
                fake = G(torch.randn(16, 4))
                g_loss = bce(D(fake), ones)
                d_loss = bce(D(fake.detach()), zeros)
                self.update(self.g_optim, g_loss)
                self.update(self.d_optim, d_loss)  #

        Trainer().train()
        """,
    ),
    "a later block under a condition": (
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            d_loss = bce(D(fake.detach()), zeros)
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()  #
            if step % 2 == 0:
                opt_g.zero_grad()
                g_loss.backward()
                opt_g.step()
        """,
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            d_loss = bce(D(fake.detach()), zeros)
            if step % 2 == 0:
                opt_g.zero_grad()
                g_loss.backward()
                opt_g.step()
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()  #
        """,
    ),
}

REBUILDS = {
    "gradients that nobody clears would mix": (
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            d_loss = bce(D(fake.detach()), zeros)
            judged = D(fake)
            g_loss = bce(judged, ones)
            d_loss.backward()
            opt_d.step()  #
            opt_d.zero_grad()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            d_loss = bce(D(fake.detach()), zeros)
            d_loss.backward()
            opt_d.step()  #
            judged = D(fake)
            g_loss = bce(judged, ones)
            opt_d.zero_grad()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
    ),
    "both losses share the generator's graph": (
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            d_loss = bce(D(fake), zeros)
            g_loss = bce(D(fake), ones)
            opt_d.zero_grad()
            d_loss.backward(retain_graph=True)
            opt_d.step()  #
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
        """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            d_loss = bce(D(fake), zeros)
            opt_d.zero_grad()
            d_loss.backward(retain_graph=True)
            opt_d.step()  #
            g_loss = bce(D(fake), ones)
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
    ),
}

ADVICE = {
    "one output of the critic serves both losses": """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            judged = D(fake)
            opt_d.zero_grad()
            bce(judged, zeros).backward(retain_graph=True)
            opt_d.step()  #
            opt_g.zero_grad()
            bce(judged, ones).backward()
            opt_g.step()
        """,
    "a parameter that belongs to both": """
        opt_g = torch.optim.Adam([*G.parameters(), *D.parameters()])
        for step in range(9):
            fake = G(torch.randn(16, 4))
            judged = D(fake)
            d_loss = bce(D(fake.detach()), zeros)
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()  #
            opt_g.zero_grad()
            print(judged.mean().item())
            bce(judged, ones).backward()
            opt_g.step()
        """,
    "all gradients are clipped together": """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            print(g_loss.item())
            d_loss = bce(D(fake.detach()), zeros)
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()  #
            opt_g.zero_grad()
            print(g_loss.item())
            g_loss.backward()
            nn.utils.clip_grad_norm_([*G.parameters(), *D.parameters()], 1.0)
            opt_g.step()
        """,
    "weights are clamped in place": """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            with torch.no_grad():
                for p in D.parameters():
                    p.clamp_(-0.1, 0.1)  #
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
}

ADVICE["a checkpoint is loaded between"] = """
        best = D.state_dict()
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = bce(D(fake), ones)
            D.load_state_dict(best)  #
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """

ADVICE["another backward frees what it needs as well"] = """
        learned = torch.optim.Adam(dict(G.named_parameters()).values())
        for step in range(9):
            fake = G(torch.randn(16, 4))
            d_loss = bce(D(fake), zeros) + bce(D(torch.randn(16, 2)), ones)
            g_loss = bce(D(fake), ones)
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()  #
            learned.zero_grad()
            g_loss.backward()
            learned.step()
        """

SILENT = {
    "built after the step": """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            opt_d.zero_grad()
            bce(D(fake.detach()), zeros).backward()
            opt_d.step()
            opt_g.zero_grad()
            bce(D(fake), ones).backward()
            opt_g.step()
        """,
    "both steps come last": """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss, d_loss = bce(D(fake), ones), bce(D(fake.detach()), zeros)
            opt_d.zero_grad()
            d_loss.backward()
            opt_g.zero_grad()
            g_loss.backward()
            opt_d.step()
            opt_g.step()
        """,
    "the later loss uses it detached": """
        log_alpha = torch.zeros(1, requires_grad=True)
        opt_a = torch.optim.Adam([log_alpha])
        for step in range(9):
            out = G(torch.randn(16, 4))
            loss = out.pow(2).mean()
            alpha_loss = -(log_alpha * out.detach()).mean()
            opt_g.zero_grad()
            loss.backward()
            opt_g.step()
            opt_a.zero_grad()
            alpha_loss.backward()
            opt_a.step()
        """,
    "the result of exp is kept, not the parameter": """
        log_alpha = torch.zeros(1, requires_grad=True)
        opt_a = torch.optim.Adam([log_alpha])
        for step in range(9):
            out = G(torch.randn(16, 4))
            loss = (log_alpha.exp() * out).mean()
            opt_a.zero_grad()
            (log_alpha * out.detach()).mean().backward()
            opt_a.step()
            opt_g.zero_grad()
            loss.backward()
            opt_g.step()
        """,
    "a first layer on plain input": """
        first = nn.Linear(4, 4)
        opt = torch.optim.SGD(first.parameters(), lr=0.1)
        for step in range(9):
            x = torch.randn(16, 4)
            a, b = first(x).mean(), first(x).pow(2).mean()
            opt.zero_grad()
            a.backward()
            opt.step()
            b.backward()
        """,
    "an embedding": """
        table = nn.Embedding(9, 4)
        opt = torch.optim.SGD(table.parameters(), lr=0.1)
        for step in range(9):
            codes = table(torch.randint(9, (16,)))
            a, b = codes.mean(), G(codes).pow(2).mean()
            opt.zero_grad()
            a.backward(retain_graph=True)
            opt.step()
            opt_g.zero_grad()
            b.backward()
            opt_g.step()
        """,
    "nothing was there to step with": """
        for step in range(9):
            g_loss = bce(D(G(torch.randn(16, 4))), ones)
            opt_d.zero_grad()
            opt_d.step()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
    "one or the other": """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss, d_loss = bce(D(fake), ones), bce(D(fake.detach()), zeros)
            if step % 2:
                opt_d.zero_grad()
                d_loss.backward()
                opt_d.step()
            else:
                opt_g.zero_grad()
                g_loss.backward()
                opt_g.step()
        """,
    "one or the other, by two conditions": """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss, d_loss = bce(D(fake), ones), bce(D(fake.detach()), zeros)
            if step % 2 == 0:
                opt_d.zero_grad()
                d_loss.backward()
                opt_d.step()
            if step % 2 == 1:
                opt_g.zero_grad()
                g_loss.backward()
                opt_g.step()
        """,
    "the branch that steps leaves the turn": """
        for step in range(9):
            fake = G(torch.randn(16, 4))
            warm = fake.pow(2).mean()
            if step < 3:
                opt_g.zero_grad()
                warm.backward()
                opt_g.step()
                continue
            g_loss = warm + bce(D(fake), ones)
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
    "a state that is carried from turn to turn": """
        cell = nn.GRUCell(4, 4)
        opt = torch.optim.SGD(cell.parameters(), lr=0.1)
        h = torch.zeros(16, 4)
        for step in range(9):
            h = cell(torch.randn(16, 4), h)
            opt.zero_grad()
            h.pow(2).mean().backward()
            opt.step()
        """,
    "written through .data": """
        for step in range(9):
            g_loss = bce(D(G(torch.randn(16, 4))), ones)
            for p in D.parameters():
                p.data.clamp_(-0.1, 0.1)
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
    "what may be attached is not seen": """
        def update(g_loss, d_loss):
            opt_d.zero_grad()
            d_loss.backward()
            opt_d.step()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """,
}


@pytest.mark.parametrize("name", SWAPS)
def test_blocks_are_swapped(name: str, tmp_path: Path) -> None:
    before, after = SWAPS[name]
    assert_mended(tmp_path, RULE, "repair", GAN, before, after)


@pytest.mark.parametrize("name", REBUILDS)
def test_the_later_loss_is_built_after_the_step(name: str, tmp_path: Path) -> None:
    before, after = REBUILDS[name]
    assert_mended(tmp_path, RULE, "repair", GAN, before, after)


@pytest.mark.parametrize("name", ADVICE)
def test_what_can_not_be_mended_is_told(name: str, tmp_path: Path) -> None:
    program = GAN + dedent(ADVICE[name])
    findings = found(tmp_path, RULE, program)
    assert [(f.promise, f.span.line) for f in findings] == [(Promise.ADVICE, marked(program))]
    assert not findings[0].edits


TWO = """
for step in range(9):
    fake = G(torch.randn(16, 4))
    g_loss = bce(D(fake), ones)
    d_loss = bce(D(fake.detach()), zeros)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
"""


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (
            "g_loss.backward()",
            "taken = torch.autograd.grad(g_loss, G.parameters())",
            "autograd.grad needs the old values",
        ),
        ("\nfor", "G[0].weight.register_hook(lambda g: g * 2)\nfor", "gradient hooks run once per backward"),
        ("d_loss.backward()\n", "d_loss.backward()\n    rate = 3\n", "one block reads a name that the other assigns"),
        ("opt_d.step()\n", "opt_d.step()\n    if step > 3: continue\n", "does more than update parameters"),
        ("opt_d.step()\n", "opt_d.step()\n    for p in ones: print(p)\n", "does more than update parameters"),
        ("opt_g.step()\n", "opt_g.step()\n    print(G[0].weight.grad)\n", "gradients are read elsewhere"),
        ("    opt_g.zero_grad()\n", "", "are not cleared before its own backward"),
        (
            "    opt_d.step()\n    opt_g.zero_grad()\n",
            "    opt_g.zero_grad()\n    opt_d.step()\n",
            "are not cleared before its own backward",
        ),
    ],
)
def test_why_it_is_not_mended_is_told(tmp_path: Path, before: str, after: str, why: str) -> None:
    """The same without the change is mended."""
    program = TWO.replace(before, after)
    if "rate" in program:
        program = program.replace("g_loss.backward()\n", "g_loss.backward()\n    print(rate)\n")
    [whole] = {f.promise for f in found(tmp_path, RULE, GAN, TWO)}
    advised = found(tmp_path, RULE, GAN, program)
    assert (whole, [f.promise for f in advised]) == (Promise.REPAIR, [Promise.ADVICE])
    assert why in advised[0].message


@pytest.mark.parametrize("name", SILENT)
def test_nothing_is_found(name: str, tmp_path: Path) -> None:
    assert found(tmp_path, RULE, GAN + dedent(SILENT[name])) == []


def test_two_critics_that_step_too_early_are_mended_together(tmp_path: Path) -> None:
    program = GAN + dedent(
        """
        E = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
        opt_e = torch.optim.Adam(E.parameters())
        for step in range(9):
            fake = G(torch.randn(16, 4))
            g_loss = -torch.min(D(fake), E(fake)).mean()
            x = torch.randn(16, 2)
            opt_d.zero_grad()
            bce(D(x), ones).backward()
            opt_d.step()
            opt_e.zero_grad()
            bce(E(x), ones).backward()
            opt_e.step()
            opt_g.zero_grad()
            g_loss.backward()
            opt_g.step()
        """
    )
    findings = found(tmp_path, RULE, program)
    assert lines(findings) == [(20, "repair"), (23, "repair")]
    assert [f.partners for f in findings] == [((RULE, "train.py", 23),), ((RULE, "train.py", 20),)]
    first = mended(tmp_path, findings).partition("opt_d.zero_grad()")[0]
    assert first.splitlines()[-4:] == ["    opt_g.zero_grad()", "    g_loss.backward()", "    opt_g.step()", "    "]


def test_after_the_swap_both_gradients_are_those_before_any_step() -> None:
    torch = pytest.importorskip("torch")
    case = next(c for c in cases(RULE) if c.name == "gan-built-before-step")
    after = {name: text.decode() for name, text in case.after.items()}[case.entry]
    steps = after.partition("    # generator\n")[0]
    # the reference takes both gradients first, and only then steps
    reference = steps + "\n".join(
        [
            "    g_grads = torch.autograd.grad(errG, list(gen.parameters()))",
            "    d_grads = torch.autograd.grad(errD, list(dis.parameters()))",
            "    for net, grads in ((gen, g_grads), (dis, d_grads)):",
            "      for p, grad in zip(net.parameters(), grads):",
            "        p.grad = grad",
            "    optG.step()",
            "    optD.step()",
        ]
    )
    learned = []
    for program in (after, reference):
        names: dict[str, object] = {"print": lambda *args: None}
        exec(compile(program, "program", "exec"), names)
        nets = (names["gen"], names["dis"])
        learned.append([p.detach().clone() for net in nets for p in net.parameters()])  # type: ignore[attr-defined]
    assert all(torch.equal(a, b) for a, b in zip(*learned, strict=True))


@pytest.mark.parametrize(
    ("between", "promise"),
    [("", Promise.REPAIR), ("seen.append(3)", Promise.REPAIR), ("weights.append(zeros)", Promise.ADVICE)],
)
def test_a_loss_is_not_built_behind_what_changes_a_list_that_it_reads(
    tmp_path: Path, between: str, promise: Promise
) -> None:
    program = f"""
weights, seen = [ones], []
for step in range(9):
    fake = G(torch.randn(16, 4))
    d_loss = bce(D(fake.detach()), zeros)
    g_loss = bce(D(fake), ones) * len(weights)
    {between or "pass"}
    d_loss.backward()
    opt_d.step()
    opt_d.zero_grad()
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
"""
    assert [f.promise for f in found(tmp_path, RULE, GAN, program)] == [promise]


BLOCKS = """
class Trainer:
    def __init__(self):
        self.count, self.scale, self.other = 1, 2.0, 3.0

    def first(self, loss):
        opt_d.zero_grad()
        {first}.backward()
        opt_d.step()
        {behind}

    def second(self, loss):
        opt_g.zero_grad()
        {second}.backward()
        opt_g.step()

def more():
    global scale
    scale += 1.0

scale, kept, numbers = 1.0, [], iter([1.0] * 99)
trainer = Trainer()
for step in range(9):
    fake = G(torch.randn(16, 4))
    g_loss = bce(D(fake), ones)
    d_loss = bce(D(fake.detach()), zeros)
    {calls}
"""
CALLS = "trainer.first(d_loss)\n    trainer.second(g_loss)"
INLINE = """opt_d.zero_grad()
    {first}.backward()
    opt_d.step()
    {behind}
    opt_g.zero_grad()
    {second}.backward()
    opt_g.step()"""


@pytest.mark.parametrize(
    ("first", "behind", "second", "promise"),
    [
        # what the other block reads
        ("loss", "self.scale += 1", "(loss * self.scale)", "advice"),
        ("loss", "more()", "(loss * scale)", "advice"),
        ("loss", "kept.append(1)", "(loss * len(kept))", "advice"),
        ("loss", "setattr(self, 'scale', 3.0)", "(loss * self.scale)", "advice"),
        ("loss", "self.count += 1", "(loss * self.scale)", "repair"),
        ("(loss * self.other)", "kept.append(1)", "(loss * self.scale)", "repair"),
        # values of parameters
        ("loss", "kept.append(1)", "(loss * D[0].weight.detach().norm())", "advice"),
        ("(loss * G[0].weight.detach().norm())", "kept.append(1)", "loss", "advice"),
        ("loss", "kept.append(1)", "(loss * ones.norm())", "repair"),
        # an order that matters
        ("(loss * torch.rand(()))", "kept.append(1)", "(loss * torch.rand(()))", "advice"),
        ("(loss * next(numbers))", "kept.append(1)", "(loss * next(numbers))", "advice"),
        ("(loss * torch.rand(()))", "kept.append(1)", "(loss * abs(scale))", "repair"),
    ],
)
@pytest.mark.parametrize("inline", [False, True])
def test_blocks_are_swapped_only_where_their_order_does_not_matter(
    tmp_path: Path, first: str, behind: str, second: str, promise: str, inline: bool
) -> None:
    parts = {"first": first, "behind": behind, "second": second}
    if inline:
        own = INLINE.format(**parts).replace("self", "trainer")
        own = own.replace("loss", "d_loss", 1)[::-1].replace("loss"[::-1], "g_loss"[::-1], 1)[::-1]
        parts = {"first": "loss", "behind": "pass", "second": "loss", "calls": own}
    program = GAN + BLOCKS.format(**{"calls": CALLS, **parts})
    assert [f.promise.value for f in found(tmp_path, RULE, program)] == [promise]


@pytest.mark.parametrize(("drawn", "promise"), [("torch.randn_like(p)", "advice"), ("torch.ones_like(p)", "repair")])
def test_steps_that_draw_stay_in_their_order(tmp_path: Path, drawn: str, promise: str) -> None:
    noisy = f"""
class Noisy(torch.optim.SGD):
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                p.grad.add_({drawn})
        return super().step(closure)

opt_g, opt_d = Noisy(G.parameters(), lr=0.1), Noisy(D.parameters(), lr=0.1)
"""
    program = BLOCKS.format(first="loss", behind="kept.append(1)", second="loss", calls=CALLS)
    assert [f.promise.value for f in found(tmp_path, RULE, GAN + noisy + program)] == [promise]


def test_what_sets_the_optimizer_that_steps_later_stays_before_it(tmp_path: Path) -> None:
    parts = {"first": "d_loss", "behind": 'opt_g.param_groups[0]["lr"] *= 0.5', "second": "g_loss"}
    program = BLOCKS.format(first="loss", behind="pass", second="loss", calls=INLINE.format(**parts))
    assert [f.promise for f in found(tmp_path, RULE, GAN + program)] == [Promise.ADVICE]


def test_what_sets_the_optimizer_that_has_stepped_stays_with_it(tmp_path: Path) -> None:
    parts = {"first": "d_loss", "behind": 'opt_d.param_groups[0]["lr"] *= 0.5', "second": "g_loss"}
    program = BLOCKS.format(first="loss", behind="pass", second="loss", calls=INLINE.format(**parts))
    assert [f.promise for f in found(tmp_path, RULE, GAN + program)] == [Promise.REPAIR]
