"""What result-dropped finds and leaves alone."""

from __future__ import annotations

from pathlib import Path

from codemods.edits.apply import apply_edits
from codemods.source.options import Options
from tests.rules.tools import LEARNING, MAIN, analysed, sited

RULE = "result-dropped"
HEAD = (
    LEARNING
    + """

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
"""
)

FOUND = {
    "the state that a turn leaves for the next": (
        """
        rnn, state = nn.LSTMCell(4, 4), torch.zeros(16, 4)
        for x, y in batches():
            state, cell = rnn(x, (state, state))
            state.detach()
            learn(criterion(net(cell), y))
        """,
        "state.detach()",
    ),
    "states that one statement reads and gives": (
        """
        rnn, head = nn.LSTM(4, 8), nn.Linear(8, 2)
        h, c = torch.zeros(1, 16, 8), torch.zeros(1, 16, 8)
        for x, y in batches():
            out, (h, c) = rnn(x.unsqueeze(0), (h, c))
            h.detach()
            learn(criterion(head(out[0]), y))
        """,
        "h.detach()",
    ),
    "a state that the next turn of a while reads first": (
        """
        mean, turns = torch.zeros(16, 2), 0
        while turns < 20:
            out = net(torch.randn(16, 4)) + mean
            mean = out * 0.5
            mean.detach()
            learn(criterion(out, torch.zeros(16, 2)))
            turns += 1
        """,
        "mean.detach()",
    ),
    "to a device": (
        """
        for x, y in batches():
            x.to(device)
            learn(criterion(net(x), y))
        """,
        "x.to(device)",
        "x = x.to(device)",
    ),
    "to a device in a function": (
        """
        def step(x, y):
            x.cuda()
            y = y.cuda()
            learn(criterion(net(x), y))

        for x, y in batches():
            step(x, y)
        """,
        "x.cuda()",
        "x = x.cuda()",
    ),
    "to a device, without waiting": (
        """
        for x, y in batches():
            y.to(device, non_blocking=True)
            learn(criterion(net(x), y))
        """,
        "y.to(device, non_blocking=True)",
        "y = y.to(device, non_blocking=True)",
    ),
    "a tensor of all turns": (
        """
        weights = torch.rand(2)
        weights.to(device)
        for x, y in batches():
            learn((criterion(net(x), y) * weights).sum())
        """,
        "weights.to(device)",
        "weights = weights.to(device)",
    ),
    "what a loss takes": (
        """
        from elsewhere import loader
        for x, y in loader:
            x.to(device)
            y.to(device)
            learn(criterion(net(x), y))
        """,
        "y.to(device)",
    ),
    "what a function of torch compares": (
        """
        from elsewhere import loader
        for batch in loader:
            x, y = batch
            y.cuda()
            learn(nn.functional.cross_entropy(net(x), y))
        """,
        "y.cuda()",
    ),
    "one of several": (
        """
        for x, y in batches():
            noise = torch.randn(16, 4)
            noise.to(device)
            learn(criterion(net(x + noise), y))
        """,
        "noise.to(device)",
        "noise = noise.to(device)",
    ),
    "a variable of the file, in a function": (
        """
        offset = torch.rand(4)

        def step(x, y):
            offset.to(device)
            learn(criterion(net(x + offset), y))

        for x, y in batches():
            step(x, y)
        """,
        "offset.to(device)",
    ),
    "detach": (
        """
        for x, y in batches():
            out = net(x)
            learn(criterion(out, y))
            out.detach()
            print(out.mean())
        """,
        "out.detach()",
    ),
    "an attribute": (
        """
        class State:
            pass

        state = State()
        state.noise = torch.randn(16, 4)
        state.noise.double()
        for x, y in batches():
            learn(criterion(net(x + state.noise), y))
        """,
        "state.noise.double()",
    ),
    "clamped, read in the next turn": (
        """
        scale = torch.ones(1)
        for x, y in batches():
            learn(criterion(net(x) * scale, y))
            scale.clamp(0, 1)
        """,
        "scale.clamp(0, 1)",
    ),
    "a parameter, which would be no leaf": (
        """
        scale = nn.Parameter(torch.ones(2))
        scale.to(torch.float64)
        own = torch.optim.SGD([scale], lr=0.1)
        for x, y in batches():
            own.zero_grad()
            (criterion(net(x), y) * scale).sum().backward()
            own.step()
        """,
        "scale.to(torch.float64)",
    ),
    "a leaf that asks for gradients": (
        """
        weights = torch.randn(2, requires_grad=True)
        weights.to(device)
        for x, y in batches():
            (criterion(net(x), y) * weights).sum().backward()
            print(weights.grad)
        """,
        "weights.to(device)",
    ),
    "a leaf, without gradients": (
        """
        weights = torch.randn(2, requires_grad=True)
        with torch.no_grad():
            weights.to(device)
        for x, y in batches():
            (criterion(net(x), y) * weights).sum().backward()
        """,
        "weights.to(device)",
    ),
    "without gradients, for a loss that needs them": (
        """
        for x, y in batches():
            out = net(x)
            with torch.no_grad():
                out.to(device)
            learn(criterion(out, y))
        """,
        "out.to(device)",
    ),
    "a leaf among others, without gradients": (
        """
        weights, other = [torch.randn(2, requires_grad=True) for _ in range(2)]
        with torch.no_grad():
            weights.to(device)
        for x, y in batches():
            (criterion(net(x), y) * weights).sum().backward()
        """,
        "weights.to(device)",
    ),
    "without gradients, and read there": (
        """
        for x, y in batches():
            learn(criterion(net(x), y))
            noise = 1
            with torch.no_grad():
                noise = torch.randn(16, 4)
                noise.to(device)
                print(net(noise).mean())
        """,
        "noise.to(device)",
        "noise = noise.to(device)",
    ),
    "one of two, of which one is a leaf": (
        """
        import sys
        if len(sys.argv) > 1:
            weights = torch.randn(2, requires_grad=True)
        else:
            weights = net(torch.randn(1, 4)).detach()
        weights.to(device)
        for x, y in batches():
            learn((criterion(net(x), y) * weights).sum())
        """,
        "weights.to(device)",
    ),
    "a leaf only afterwards": (
        """
        weights = torch.randn(2)
        weights.to(device)
        weights.requires_grad_()
        for x, y in batches():
            (criterion(net(x), y) * weights).sum().backward()
        """,
        "weights.to(device)",
        "weights = weights.to(device)",
    ),
    "a result of the model": (
        """
        for x, y in batches():
            out = net(x)
            out.to(device)
            learn(criterion(out, y))
        """,
        "out.to(device)",
        "out = out.to(device)",
    ),
}
"""Programs with the line that is found."""

LEFT = {
    "a state that each turn gives before it reads it": """
        rnn = nn.LSTMCell(4, 4)
        for x, y in batches():
            state = torch.zeros(16, 4)
            state, cell = rnn(x, (state, state))
            state.detach()
            learn(criterion(net(cell), y))
        """,
    "a state that the rest of the turn gives anew": """
        state = torch.zeros(16, 4)
        for x, y in batches():
            out = net(x + state)
            state = torch.tanh(x)
            state.detach()
            learn(criterion(out, y))
            state = torch.zeros(16, 4)
        """,
    "what the turns of a loop are made of is read once": """
        rows = net(torch.randn(16, 4))
        for x in torch.unbind(rows):
            rows = net(torch.randn(16, 4))
            rows.detach()
            learn(criterion(net(torch.randn(16, 4)), torch.randn(16, 2)))
        """,
    "what goes over it has a variable of its own": """
        for x, y in batches():
            sums = [out.sum() for out in [x, y]]
            out = net(x) * len(sums)
            learn(criterion(out, y))
            out.detach()
        """,
    "a function that the loop defines reads one of its own": """
        for x, y in batches():
            def doubled(out):
                return out * 2
            out = doubled(net(x))
            learn(criterion(out, y))
            out.detach()
        """,
    "kept": """
        for x, y in batches():
            x = x.to(device)
            learn(criterion(net(x), y))
        """,
    "a module moves itself": """
        net.to(device)
        net.float()
        criterion.to(device)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "in place": """
        for x, y in batches():
            x.clamp_(0, 1)
            out = net(x)
            learn(criterion(out, y))
            out.detach_()
            print(out.mean())
        """,
    "a device is woken up": """
        torch.zeros(1).to(device)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "nobody reads it again": """
        for x, y in batches():
            learn(criterion(net(x), y))
            y.cpu()
        """,
    "it is tried": """
        for x, y in batches():
            try:
                x.to(device)
            except RuntimeError:
                break
            learn(criterion(net(x), y))
        """,
    "what a loader gives may move itself, and its labels do not": """
        from elsewhere import loader
        for x, y in loader:
            x.to(device)
            learn(net(x).sum())
        """,
    "what is bound anew before a loss takes it": """
        from elsewhere import loader
        for x, y in loader:
            y.to(device)
            y = torch.zeros(16, 2)
            learn(criterion(net(x), y))
        """,
    "a loss that cannot be seen": """
        from elsewhere import loader, loss_of
        for x, y in loader:
            y.to(device)
            learn(loss_of(net(x), y))
        """,
    "what a loader gives may move itself": """
        from elsewhere import dataset
        for batch in torch.utils.data.DataLoader(dataset):
            batch.to(device)
            learn(criterion(net(batch.x), batch.y))
        """,
    "an object of the tree": """
        class Batch:
            def __init__(self):
                self.x = torch.randn(16, 4)

            def to(self, device):
                self.x = self.x.to(device)

        batch = Batch()
        batch.to(device)
        for x, y in batches():
            learn(criterion(net(batch.x), y))
        """,
    "sometimes a module": """
        def move(thing):
            thing.to(device)
            return thing

        move(net)
        for x, y in batches():
            learn(criterion(net(move(x)), y))
        """,
}

told, test_found, test_left = sited(RULE, HEAD, FOUND, LEFT)


WRITTEN = sum(len(program) > 2 for program in FOUND.values())


def test_a_tensor_that_many_branches_make_is_looked_at_once(tmp_path: Path) -> None:
    # so many ways lead back to its leaf that to go each of them takes for ever
    branches = "".join(
        f"if y > {i}:\n    y = y if x.any() else y * 2\nelse:\n    y = y if x.all() else z\n" for i in range(60)
    )
    program = f"x = torch.randn(16, 4)\ny = net(x).sum()\nz = net(x).mean()\n{branches}y.to(device)\nlearn(y)\n"
    (finding,) = analysed(tmp_path, Options(select=(RULE,)), HEAD, program)
    assert "y.to(device)" in finding.message


def test_the_state_that_a_dropped_result_was_meant_to_cut_is_told_with_it(tmp_path: Path) -> None:
    # the program raises at its second backward: both are to be seen before anything is mended, and after it
    program = """
    rnn, head = nn.LSTM(4, 8), nn.Linear(8, 2)
    h, c = torch.zeros(1, 16, 8), torch.zeros(1, 16, 8)
    for x, y in batches():
        out, (h, c) = rnn(x.unsqueeze(0), (h, c))
        h.detach()
        c.detach()
        learn(criterion(head(out[0]), y))
    """
    options = Options(select=(RULE, "carried-hidden-state"))
    told = [(one.rule, one.span.line) for one in analysed(tmp_path, options, HEAD, program)]
    assert sorted(rule for rule, _ in told) == ["carried-hidden-state", RULE, RULE]
    carried = next(one for one in analysed(tmp_path, options, HEAD, program) if one.rule != RULE)
    (edits,) = {tuple(edit for _, edit in carried.edits)}
    mended = apply_edits((tmp_path / MAIN).read_text(), list(edits))
    assert [one.rule for one in analysed(tmp_path, options, mended)] == [RULE, RULE]
