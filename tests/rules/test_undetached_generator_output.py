"""The fake is detached where the gradients of the generator are cleared unread, and nowhere that they are used."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from codemods.source.options import Options
from codemods.terms.findings import Promise
from tests.rules.tools import added, analysed, found, lines, mended

RULE = "undetached-generator-output"

START = """\
import torch
from torch import nn
import torch.nn.functional as F


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))

    def forward(self, z):
        return torch.tanh(self.body(z))


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 8)
        self.last = nn.Linear(8, 1)

    def forward(self, x):
        return self.last(torch.relu(self.first(x.view(-1, 6))))


netG, netD = Generator(), Critic()
optG = torch.optim.Adam(netG.parameters(), lr=1e-3)
optD = torch.optim.Adam(netD.parameters(), lr=1e-3)
data = [torch.randn(5, 6) for _ in range(9)]


def noise():
    return torch.randn(5, 4)
"""

HITS = {
    "retained for the generator": (
        """
        for real in data:
            optD.zero_grad()
            fake = netG(noise())
            loss_d = F.softplus(-netD(real)).mean() + F.softplus(netD(fake)).mean()
            loss_d.backward(retain_graph=True)
            optD.step()
            optG.zero_grad()
            F.softplus(-netD(fake)).mean().backward()
            optG.step()
        """,
        [
            "loss_d = F.softplus(-netD(real)).mean() + F.softplus(netD(fake.detach())).mean()",
            "loss_d.backward()",
        ],
        "exact",
    ),
    "the generator runs again": (
        """
        for real in data:
            fake = netG(noise())
            loss_d = netD(fake).mean() - netD(real).mean()
            optD.zero_grad()
            loss_d.backward()
            optD.step()
            loss_g = -netD(netG(noise())).mean()
            optG.zero_grad()
            loss_g.backward()
            optG.step()
        """,
        ["loss_d = netD(fake.detach()).mean() - netD(real).mean()"],
        "exact",
    ),
    "the call of the generator stands in the call": (
        """
        for real in data:
            optD.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            optD.step()
            optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
        ["(netD(netG(noise()).detach()).mean() - netD(real).mean()).backward()"],
        "exact",
    ),
    "without the flag it raises": (
        """
        for real in data:
            optD.zero_grad()
            fake = netG(noise())
            (netD(fake).mean() - netD(real).mean()).backward()
            optD.step()
            optG.zero_grad()
            (-netD(fake)).mean().backward()
            optG.step()
        """,
        ["(netD(fake.detach()).mean() - netD(real).mean()).backward()"],
        "repair",
    ),
    "the generator steps first": (
        """
        for real in data:
            optG.zero_grad()
            fake = netG(noise())
            loss_g = -netD(fake).mean()
            loss_g.backward(retain_graph=True)
            optG.step()
            optD.zero_grad()
            loss_d = netD(fake).mean() - netD(real).mean()
            loss_d.backward()
            optD.step()
        """,
        [
            "loss_g.backward()",
            "loss_d = netD(fake.detach()).mean() - netD(real).mean()",
        ],
        "repair",
    ),
    "two places in one loss": (
        """
        auto = nn.Sequential(nn.Linear(6, 3), nn.Tanh(), nn.Linear(3, 6))
        optA = torch.optim.Adam(auto.parameters())
        for real in data:
            optA.zero_grad()
            fake = netG(noise())
            out = auto(fake)
            gap = torch.mean(torch.abs(out - fake))
            (torch.mean(torch.abs(auto(real) - real)) - 0.3 * gap).backward()
            optA.step()
            optG.zero_grad()
            fake = netG(noise())
            torch.mean(torch.abs(auto(fake) - fake)).backward()
            optG.step()
        """,
        ["out = auto(fake.detach())", "gap = torch.mean(torch.abs(out - fake.detach()))"],
        "exact",
    ),
    "concatenated with a condition": (
        """
        wide = nn.Sequential(nn.Linear(9, 8), nn.ReLU(), nn.Linear(8, 1))
        optW = torch.optim.Adam(wide.parameters())
        for real in data:
            label = torch.randn(5, 3)
            fake = netG(noise())
            optW.zero_grad()
            pair = torch.cat([fake, label], 1)
            (wide(pair).mean() - wide(torch.cat([real, label], 1)).mean()).backward()
            optW.step()
            optG.zero_grad()
            (-wide(torch.cat([netG(noise()), label], 1))).mean().backward()
            optG.step()
        """,
        ["(wide(pair.detach()).mean() - wide(torch.cat([real, label], 1)).mean()).backward()"],
        "exact",
    ),
    "several critic steps per generator step": (
        """
        for step, real in enumerate(data):
            optD.zero_grad()
            loss_d = netD(netG(noise())).mean() - netD(real).mean()
            loss_d.backward()
            optD.step()
            if step % 5 == 0:
                optG.zero_grad()
                loss_g = -netD(netG(noise())).mean()
                loss_g.backward()
                optG.step()
        """,
        ["loss_d = netD(netG(noise()).detach()).mean() - netD(real).mean()"],
        "exact",
    ),
    "cleared through the modules": (
        """
        for real in data:
            netD.zero_grad()
            fake = netG(noise())
            netD(real).mean().neg().backward()
            netD(fake).mean().backward(retain_graph=True)
            optD.step()
            netG.zero_grad()
            netD(fake).mean().neg().backward()
            optG.step()
        """,
        ["netD(fake.detach()).mean().backward()"],
        "exact",
    ),
    "methods of a trainer": (
        """
        class Trainer:
            def __init__(self):
                self.G, self.D = Generator(), Critic()
                self.g_opt = torch.optim.Adam(self.G.parameters())
                self.d_opt = torch.optim.Adam(self.D.parameters())

            def reset(self):
                self.d_opt.zero_grad()
                self.g_opt.zero_grad()

            def step_d(self, real):
                loss = self.D(self.fake).mean() - self.D(real).mean()
                self.reset()
                loss.backward(retain_graph=True)
                self.d_opt.step()

            def step_g(self):
                loss = -self.D(self.fake).mean()
                self.reset()
                loss.backward()
                self.g_opt.step()

            def train(self):
                for real in data:
                    self.fake = self.G(noise())
                    self.step_d(real)
                    self.step_g()

        Trainer().train()
        """,
        ["loss = self.D(self.fake.detach()).mean() - self.D(real).mean()"],
        "exact",
    ),
    "a helper for both losses": (
        """
        def adversarial(critic, images, sign):
            return sign * critic(images).mean()

        for real in data:
            fake = netG(noise())
            optD.zero_grad()
            (adversarial(netD, fake, 1.0) + adversarial(netD, real, -1.0)).backward(retain_graph=True)
            optD.step()
            optG.zero_grad()
            adversarial(netD, fake, -1.0).backward()
            optG.step()
        """,
        ["(adversarial(netD, fake.detach(), 1.0) + adversarial(netD, real, -1.0)).backward()"],
        "exact",
    ),
    "gradient penalty on an attached interpolation": (
        """
        for real in data:
            optD.zero_grad()
            fake = netG(noise())
            a = torch.rand(5, 1)
            mixed = a * real + (1 - a) * fake
            slope = torch.autograd.grad(netD(mixed).sum(), mixed, create_graph=True)[0]
            loss_d = netD(fake).mean() - netD(real).mean() + (slope.norm(2, dim=1) - 1).pow(2).mean()
            loss_d.backward(retain_graph=True)
            optD.step()
            optG.zero_grad()
            (-netD(fake)).mean().backward()
            optG.step()
        """,
        [
            "mixed = a * real + (1 - a) * fake.detach()",
            "mixed.requires_grad_()",
            "loss_d = netD(fake.detach()).mean() - netD(real).mean() + (slope.norm(2, dim=1) - 1).pow(2).mean()",
            "loss_d.backward()",
        ],
        "exact",
    ),
    "gradient penalty that asks already": (
        """
        def penalty(critic, real, fake):
            a = torch.rand(5, 1)
            mixed = a * real + (1 - a) * fake
            mixed.requires_grad_(True)
            slope = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
            return (slope.norm(2, dim=1) - 1).pow(2).mean()

        for real in data:
            optD.zero_grad()
            fake = netG(noise())
            loss_d = netD(fake).mean() - netD(real).mean() + penalty(netD, real, fake)
            loss_d.backward()
            optD.step()
            optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
        [
            "mixed = a * real + (1 - a) * fake.detach()",
            "loss_d = netD(fake.detach()).mean() - netD(real).mean() + penalty(netD, real, fake)",
        ],
        "exact",
    ),
    "gradient penalty that asks where it is made": (
        """
        for real in data:
            optD.zero_grad()
            fake = netG(noise())
            a = torch.rand(5, 1)
            mixed = (a * real + (1 - a) * fake).requires_grad_(True)
            slope = torch.autograd.grad(netD(mixed).sum(), mixed, create_graph=True)[0]
            loss_d = netD(fake).mean() - netD(real).mean() + (slope.norm(2, dim=1) - 1).pow(2).mean()
            loss_d.backward()
            optD.step()
            optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
        [
            "mixed = (a * real + (1 - a) * fake.detach()).requires_grad_(True)",
            "loss_d = netD(fake.detach()).mean() - netD(real).mean() + (slope.norm(2, dim=1) - 1).pow(2).mean()",
        ],
        "exact",
    ),
    "optimizers by name, joined": (
        """
        import sys
        def make(net):
            if len(sys.argv) > 1:
                return torch.optim.SGD(net.parameters(), lr=0.1)
            return torch.optim.Adam(net.parameters())

        first, second = make(netD), make(netG)
        for real in data:
            first.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            first.step()
            second.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            second.step()
        """,
        ["(netD(netG(noise()).detach()).mean() - netD(real).mean()).backward()"],
        "exact",
    ),
}


@pytest.mark.parametrize("name", HITS)
def test_the_fake_is_detached(tmp_path: Path, name: str) -> None:
    body, new, promise = HITS[name]
    findings = found(tmp_path, RULE, START, body)
    mine = [f for f in findings if f.rule == RULE]
    assert [f.promise.value for f in mine] == [promise]
    text = mended(tmp_path, findings)
    assert added((tmp_path / "train.py").read_text(), text) == new
    assert {f.rule for f in findings} <= {RULE, "surplus-retain-graph"}


def test_the_flag_and_the_fake_name_each_other(tmp_path: Path) -> None:
    findings = analysed(tmp_path, Options(), START, HITS["retained for the generator"][0])
    by_rule = {f.rule: f for f in findings}
    assert set(by_rule) == {RULE, "surplus-retain-graph"}
    cut, flag = by_rule[RULE], by_rule["surplus-retain-graph"]
    assert cut.partners == (flag.key,)
    assert flag.partners == (cut.key,)
    assert [step.note for step in cut.trail] == [
        "graph produced here",
        "taken into this loss here",
        "walked here, down to what made it",
        "used again here",
        "the gradients are cleared here",
    ]


def test_the_flag_goes_even_if_its_rule_is_ignored(tmp_path: Path) -> None:
    options = Options(ignore=("surplus-retain-graph",))
    findings = analysed(tmp_path, options, START, HITS["retained for the generator"][0])
    assert [f.rule for f in findings] == [RULE]
    assert "retain_graph" not in mended(tmp_path, findings)


NOOPS = {
    "detached already": """
        for real in data:
            fake = netG(noise())
            optD.zero_grad()
            (netD(fake.detach()).mean() - netD(real).mean()).backward()
            optD.step()
            optG.zero_grad()
            (-netD(fake)).mean().backward()
            optG.step()
        """,
    "the generator's gradients are cleared too early": """
        for real in data:
            optD.zero_grad()
            optG.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            optD.step()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
    "never cleared": """
        for real in data:
            optD.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            optD.step()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
    "cleared under a condition only": """
        for step, real in enumerate(data):
            optD.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            optD.step()
            if step % 2:
                optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
    "cleared where an error may pass it by": """
        import contextlib

        for real in data:
            fake = netG(noise())
            optD.zero_grad()
            (netD(fake).mean() - netD(real).mean()).backward(retain_graph=True)
            optD.step()
            with contextlib.suppress(ValueError):
                float(input())
                optG.zero_grad()
            (-netD(fake).mean()).backward()
            optG.step()
    """,
    "clipped together": """
        both = [*netG.parameters(), *netD.parameters()]
        for real in data:
            optD.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            torch.nn.utils.clip_grad_norm_(both, 0.1)
            optD.step()
            optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
    "the generator's gradients are logged": """
        for real in data:
            optD.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            optD.step()
            print(sum(p.grad.norm() for p in netG.parameters()))
            optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
    "a shared embedding behind the fake": """
        embed = nn.Linear(4, 4)
        optD = torch.optim.Adam([*netD.parameters(), *embed.parameters()])
        for real in data:
            optD.zero_grad()
            (netD(netG(embed(noise()))).mean() - netD(real).mean()).backward()
            optD.step()
            optG.zero_grad()
            (-netD(netG(embed(noise())))).mean().backward()
            optG.step()
        """,
    "frozen for this step": """
        def learns(net, flag):
            for p in net.parameters():
                p.requires_grad = flag

        for real in data:
            learns(netG, False)
            optD.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            optD.step()
            learns(netG, True)
            optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
    "a domain loss that is meant to reach the features": """
        features = nn.Linear(6, 6)
        optF = torch.optim.Adam(features.parameters())
        for real in data:
            optD.zero_grad()
            optF.zero_grad()
            hidden = features(real)
            netD(hidden).mean().backward(retain_graph=True)
            optD.step()
            hidden.pow(2).mean().backward()
            optF.step()
        """,
    "one optimizer for both": """
        opt = torch.optim.Adam([*netG.parameters(), *netD.parameters()])
        for real in data:
            opt.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            opt.step()
        """,
    "the actor's loss goes through the critic": """
        actor, value = Generator(), Critic()
        opt_actor = torch.optim.Adam(actor.parameters())
        opt_value = torch.optim.Adam(value.parameters())
        for real in data:
            opt_value.zero_grad()
            (value(real) - 1).pow(2).mean().backward()
            opt_value.step()
            opt_actor.zero_grad()
            (-value(actor(noise()))).mean().backward()
            opt_actor.step()
        """,
    "features of real images in the generator's loss": """
        for real in data:
            optD.zero_grad()
            (netD(netG(noise()).detach()).mean() - netD(real).mean()).backward()
            optD.step()
            optG.zero_grad()
            F.mse_loss(netD(netG(noise())), netD(real)).backward()
            optG.step()
        """,
    "a list of fakes": """
        class Scales(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 6), nn.Linear(4, 6)

            def forward(self, z):
                return [self.a(z), self.b(z)]

        class Judge(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(6, 1)

            def forward(self, images):
                return sum(self.body(image).mean() for image in images)

        scales, judge = Scales(), Judge()
        opt_s, opt_j = torch.optim.Adam(scales.parameters()), torch.optim.Adam(judge.parameters())
        for real in data:
            fakes = scales(noise())
            opt_j.zero_grad()
            judge(fakes).backward()
            opt_j.step()
            opt_s.zero_grad()
            (-judge(scales(noise()))).backward()
            opt_s.step()
        """,
    "zeros instead of no gradients": """
        for real in data:
            optD.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            optD.step()
            optG.zero_grad(set_to_none=False)
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
    "a hook on the generator's gradients": """
        for p in netG.parameters():
            p.register_hook(lambda g: g.clamp(-1, 1))
        for real in data:
            optD.zero_grad()
            (netD(netG(noise())).mean() - netD(real).mean()).backward()
            optD.step()
            optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """,
    "optimizers that cannot be seen": """
        def epoch(generator, critic, opt_g, opt_d):
            for real in data:
                opt_d.zero_grad()
                (critic(generator(noise())).mean() - critic(real).mean()).backward()
                opt_d.step()
                opt_g.zero_grad()
                (-critic(generator(noise()))).mean().backward()
                opt_g.step()
        """,
    "an encoder learns from the critic in another turn": """
        for epoch in range(2):
            for real in data:
                optD.zero_grad()
                (netD(netG(noise())).mean() - netD(real).mean()).backward()
                optD.step()
            optG.step()
            optG.zero_grad()
        """,
}


HOOKED = """
        for real in data:
            fake = netG(noise())
            {inside}
            optD.zero_grad()
            (netD(fake).mean() - netD(real).mean()).backward()
            optD.step()
            optG.zero_grad()
            (-netD(netG(noise()))).mean().backward()
            optG.step()
        """


@pytest.mark.parametrize(
    "hook",
    [
        "for p in netG.parameters(): p.register_post_accumulate_grad_hook(print)",
        "torch.autograd.graph.register_multi_grad_hook(list(netG.parameters()), print)",
        "torch.nn.modules.module.register_module_full_backward_hook(print)",
        "netG.register_full_backward_pre_hook(print)",
        "fake.register_hook(print)",
        "fake.grad_fn.register_hook(print)",
        "fake.grad_fn.register_prehook(print)",
    ],
)
def test_what_sees_each_gradient_keeps_it(tmp_path: Path, hook: str) -> None:
    assert lines(found(tmp_path, RULE, START, HOOKED.format(inside=hook))) == []
    assert lines(found(tmp_path, RULE, START, HOOKED.format(inside="pass"))) != []


@pytest.mark.parametrize("name", NOOPS)
def test_the_fake_stays_attached(tmp_path: Path, name: str) -> None:
    assert lines(found(tmp_path, RULE, START, NOOPS[name])) == []


def test_the_messages_speak_of_no_network_that_is_not_there(tmp_path: Path) -> None:
    shared = """
        import torch
        from torch import nn
        table = nn.Parameter(torch.randn(20, 8))
        head, topic = nn.Linear(8, 5), nn.Linear(8, 3)
        optA = torch.optim.Adam([table, *head.parameters()])
        optB = torch.optim.Adam(topic.parameters())
        for step in range(5):
            e = table[torch.randint(0, 20, (6,))].tanh()
            optB.zero_grad()
            topic(e).pow(2).mean().backward(retain_graph=True)
            optB.step()
            optA.zero_grad()
            head(e).pow(2).mean().backward()
            optA.step()
        """
    findings = found(tmp_path, RULE, shared)
    assert sorted(f.rule for f in findings) == ["surplus-retain-graph", RULE]
    for finding in findings:
        said = " ".join((finding.message, finding.remedy, *(step.note for step in finding.trail)))
        assert not any(word in said.lower() for word in ("network", "generator", "discriminator", "gan "))


def test_one_output_for_both_losses_is_advice(tmp_path: Path) -> None:
    body = """
        for real in data:
            z = netG(noise())
            score = netD(z)
            optG.zero_grad()
            (z.pow(2).mean() - score.mean()).backward(retain_graph=True)
            optG.step()
            optD.zero_grad()
            (score.mean() - netD(real).mean()).backward()
            optD.step()
        """
    findings = [f for f in found(tmp_path, RULE, START, body) if f.rule == RULE]
    assert [(f.promise, f.edits) for f in findings] == [(Promise.ADVICE, ())]
    assert "second forward" in findings[0].message
    assert (tmp_path / "train.py").read_text().splitlines()[findings[0].span.line - 1].strip() == "score = netD(z)"


def test_a_script_that_trains_both_together_keeps_the_fake(tmp_path: Path) -> None:
    """The same method serves two scripts: what one of them needs is not cut for the other."""
    model = """
        from nets import Critic, Generator

        class Pair:
            def __init__(self):
                self.G, self.D = Generator(), Critic()

            def gap(self, real, z):
                return self.D(self.G(z)).mean() - self.D(real).mean()
    """
    apart = """
        import torch
        from pair import Pair
        p = Pair()
        optD = torch.optim.Adam(p.D.parameters())
        optG = torch.optim.Adam(p.G.parameters())
        for _ in range(4):
            optD.zero_grad()
            p.gap(torch.randn(5, 6), torch.randn(5, 4)).backward()
            optD.step()
            optG.zero_grad()
            (-p.D(p.G(torch.randn(5, 4)))).mean().backward()
            optG.step()
    """
    together = """
        import torch
        from pair import Pair
        p = Pair()
        opt = torch.optim.Adam([*p.D.parameters(), *p.G.parameters()])
        for _ in range(4):
            opt.zero_grad()
            p.gap(torch.randn(5, 6), torch.randn(5, 4)).backward()
            opt.step()
    """
    nets = START.split("netG, netD")[0]
    alone = tmp_path / "alone"
    alone.mkdir()
    assert lines(found(alone, RULE, apart, pair=model, nets=nets)) != []
    assert lines(found(tmp_path, RULE, apart, pair=model, nets=nets, together=together)) == []


_FACTORY = """
    from zoo import build

    made = build("generator")
    opt = torch.optim.Adam(made.parameters(), lr=1e-3)

    for real in data:
        fake = made(noise())
        opt.zero_grad()
        (-netD(fake)).mean().backward()
        opt.step()
        optD.zero_grad()
        (netD(fake).mean() - netD(real).mean()).backward()
        optD.step()
    """

SHOWN = {
    "it is detached elsewhere": ("optD.zero_grad()", "optD.zero_grad()\n        print(fake.detach().mean())"),
    "a loss is computed of it": ("(-netD(fake)).mean()", "((-netD(fake)).mean() + F.l1_loss(fake, real))"),
    "arithmetic": ("(-netD(fake)).mean()", "((-netD(fake)).mean() + (fake - real).abs().mean())"),
}


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_taken_as_a_tensor_elsewhere_is_detached(tmp_path: Path, name: str) -> None:
    code = _FACTORY.replace(*SHOWN[name])
    findings = [f for f in found(tmp_path, RULE, START, code) if f.rule == RULE]
    assert [f.promise for f in findings] == [Promise.REPAIR]
    assert "(netD(fake.detach()).mean() - netD(real).mean()).backward()" in mended(tmp_path, findings)


def test_a_fake_that_nothing_shows_to_be_a_tensor_is_advice(tmp_path: Path) -> None:
    findings = [f for f in found(tmp_path, RULE, START, _FACTORY) if f.rule == RULE]
    assert [(f.promise, f.edits) for f in findings] == [(Promise.ADVICE, ())]
    assert "if it is a tensor" in findings[0].message


NO_FAKE = {
    "its gradients are used": ("optD.step()", "optD.step()\n        opt.step()"),
    "the critic's optimizer owns it too": (
        "    for real in data:\n",
        "    optD = torch.optim.Adam([*netD.parameters(), *made.parameters()])\n\n    for real in data:\n",
    ),
}


@pytest.mark.parametrize("name", NO_FAKE)
def test_a_fake_of_an_unseen_model_whose_gradients_may_be_used_is_left(tmp_path: Path, name: str) -> None:
    code = _FACTORY.replace(*NO_FAKE[name])
    assert [f for f in found(tmp_path, RULE, START, code) if f.rule == RULE] == []


NAMED_PARTS = {
    "by item": """
        def __init__(self):
            super().__init__()
            parts = nn.ModuleDict()
            for i in range(3):
                parts[f"part{i}"] = nn.Linear(6, 1)
            self.parts = parts

        def forward(self, x):
            return sum(part(x) for key, part in self.parts.items())
        """,
    "by update": """
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict()
            self.parts.update({"first": nn.Linear(6, 1), "second": nn.Linear(6, 1)})

        def forward(self, x):
            return sum(part(x) for part in self.parts.values())
        """,
    "by name": """
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"first": nn.Linear(6, 1), "second": nn.Linear(6, 1)})

        def forward(self, x):
            return sum(self.parts[name](x) for name in self.parts)
        """,
    "a list of which one is exchanged": """
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleList([nn.Linear(6, 6), nn.ReLU()])
            self.parts[1] = nn.Linear(6, 1)

        def forward(self, x):
            return self.parts[1](self.parts[0](x))
        """,
}

_NAMED = """
    class Parts(nn.Module):BODY

    judge = Parts()
    opt = torch.optim.Adam(judge.parameters())
    for real in data:
        fake = netG(noise())
        opt.zero_grad()
        (judge(FAKE).mean() - judge(real).mean()).backward()
        opt.step()
        optG.zero_grad()
        (-judge(fake)).mean().backward()
        optG.step()
    """


@pytest.mark.parametrize("name", NAMED_PARTS)
def test_a_critic_whose_parts_have_names(tmp_path: Path, name: str) -> None:
    code = _NAMED.replace("BODY", NAMED_PARTS[name].replace("\n", "\n    "))
    findings = [f for f in found(tmp_path, RULE, START, code.replace("FAKE", "fake")) if f.rule == RULE]
    assert [f.promise for f in findings] == [Promise.REPAIR]
    assert [f for f in found(tmp_path, RULE, START, code.replace("FAKE", "fake.detach()")) if f.rule == RULE] == []


WITHIN = {
    "a dict": ("batch = {'fake': netG(noise()), 'real': real}", "batch['fake']"),
    "a dict that is filled": ("batch = {}; batch['real'] = real; batch['fake'] = netG(noise())", "batch['fake']"),
    "a tuple": ("batch = (netG(noise()), real)", "batch[0]"),
    "a list": ("batch = [real, netG(noise())]", "batch[1]"),
}
SHARED_ITEM = """
for real in data:
    {made}
    loss_d = netD({item}).mean() - netD(real).mean()
    optD.zero_grad()
    loss_d.backward()
    optD.step()
    {again}
    loss_g = -netD({item}).mean()
    optG.zero_grad()
    loss_g.backward()
    optG.step()
"""


@pytest.mark.parametrize(("made", "item"), WITHIN.values(), ids=WITHIN)
def test_a_fake_in_a_container_is_detached_where_it_is_taken(tmp_path: Path, made: str, item: str) -> None:
    program = SHARED_ITEM.format(made=made, item=item, again=made)
    (finding,) = analysed(tmp_path, Options(select=(RULE,)), START, program)
    assert finding.promise is Promise.EXACT
    old, new = (tmp_path / "train.py").read_text().splitlines(), mended(tmp_path, [finding]).splitlines()
    changed = [(a.strip(), b.strip()) for a, b in zip(old, new, strict=True) if a != b]
    before = f"loss_d = netD({item}).mean() - netD(real).mean()"
    assert changed == [(before, before.replace(item, f"{item}.detach()"))]


@pytest.mark.parametrize(("made", "item"), WITHIN.values(), ids=WITHIN)
def test_one_whose_gradients_reach_the_generator_stays(tmp_path: Path, made: str, item: str) -> None:
    # its gradients of this loss are not cleared: both losses train the generator
    program = SHARED_ITEM.format(made=made, item=item, again=made).replace("    optG.zero_grad()\n", "")
    assert analysed(tmp_path, Options(select=(RULE,)), START, program) == []


def test_one_expression_for_the_fake_and_what_learns_stays(tmp_path: Path) -> None:
    program = """
    for real in data:
        batch = {}
        loss = 0
        for name, image in (('real', real), ('fake', netG(noise()))):
            batch['image'] = image
            loss = loss + netD(batch['image']).mean()
        optG.zero_grad()
        optD.zero_grad()
        loss.backward()
        optG.step()
        optD.step()
    """
    assert analysed(tmp_path, Options(select=(RULE,)), START, textwrap.dedent(program)) == []


CHOSEN = """
class Other(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.first = nn.Linear(inner, 5)
        self.last = nn.Linear(5, outer)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))


if input() == "other":
    netG, netD = Other(4, 6), Other(6, 1)
    optG = torch.optim.Adam(netG.parameters())
    optD = torch.optim.Adam(netD.parameters())
for real in data:
    optD.zero_grad()
    loss_d = netD({fake}).mean() - netD(real).mean()
    loss_d.backward()
    optD.step()
    {between}
    (-netD(netG(noise()))).mean().backward()
    optG.step()
"""


@pytest.mark.parametrize(
    ("fake", "cut"),
    [
        ("netG(noise())", "netG(noise()).detach()"),
        ("netG.forward(noise())", "netG.forward(noise()).detach()"),
        ("torch.tanh(netG(noise()))", "torch.tanh(netG(noise())).detach()"),
    ],
)
def test_one_of_two_networks_is_called_in_the_call(tmp_path: Path, fake: str, cut: str) -> None:
    program = CHOSEN.format(fake=fake, between="optG.zero_grad()")
    (finding,) = analysed(tmp_path, Options(select=(RULE,)), START, program)
    assert finding.promise is Promise.EXACT
    lines_now = added((tmp_path / "train.py").read_text(), mended(tmp_path, [finding]))
    assert lines_now == [f"loss_d = netD({cut}).mean() - netD(real).mean()"]


@pytest.mark.parametrize(
    ("fake", "between"),
    [
        # both losses train the generator
        ("netG(noise())", "pass"),
        # it is cut already
        ("netG(noise()).detach()", "optG.zero_grad()"),
        # of the two things that the expression may give, one is data
        ("(netG if input() else torch.sigmoid)(torch.rand(5, 4)).mean()", "pass"),
    ],
)
def test_one_of_two_networks_whose_gradients_are_used_or_that_is_cut_stays(
    tmp_path: Path, fake: str, between: str
) -> None:
    assert analysed(tmp_path, Options(select=(RULE,)), START, CHOSEN.format(fake=fake, between=between)) == []


ASKING = """
import torch
from torch import nn

class Judge(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.seen, self.kept = nn.Linear(2, 1), None, {{}}

    def forward(self, given):
        {asks}
        return self.layer(given) * factor

G, D = nn.Linear(4, 2), Judge()
opt_g, opt_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(9):
    fake = G(torch.randn(8, 4))
    opt_d.zero_grad()
    D(fake).mean().backward(retain_graph=True)
    opt_d.step()
    opt_g.zero_grad()
    D({again}).mean().backward()
    opt_g.step()
"""


@pytest.mark.parametrize(
    ("asks", "again", "mended"),
    [
        ("factor = 2 if given.requires_grad else 1", "fake", False),
        ("factor = 2 if (given * 3).requires_grad else 1", "fake", False),
        ("factor = 2 if given.is_leaf else 1", "fake", False),
        ("factor = 2 if given.grad_fn is None else 1", "fake", False),
        ("factor, self.seen = (2 if given is self.seen else 1), given", "fake", False),
        ("factor, self.kept[given] = len(self.kept), 1", "fake", False),
        # the loss of the generator goes through what the call has kept
        ("factor, self.seen = 1, given", "D.seen", False),
        ("factor, self.seen = 1, torch.tanh(given)", "D.seen", False),
        ("factor = 2 if given.shape[0] > 4 else 1", "fake", True),
        ("factor, self.seen = 1, given.detach()", "fake", True),
        ("factor = 2 if self.layer.weight.requires_grad else 1", "fake", True),
    ],
)
def test_a_call_that_would_notice_is_left_alone(tmp_path: Path, asks: str, again: str, mended: bool) -> None:
    findings = found(tmp_path, RULE, ASKING.format(asks=asks, again=again))
    assert any(f.promise is Promise.EXACT for f in findings) is mended
