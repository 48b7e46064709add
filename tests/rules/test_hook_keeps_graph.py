"""What hook-keeps-graph finds and leaves alone."""

from __future__ import annotations

from pathlib import Path

from codemods.source.options import Options
from tests.rules.tools import LEARNING, analysed, sited

RULE = "hook-keeps-graph"
TRAINING = """
for x, y in batches():
    learn(criterion(net(x), y))
"""

FOUND = {
    "a list that nobody reads": (
        """
        kept = []
        def look(module, given, made):
            kept.append(made)
        net[0].register_forward_hook(look)
        """
        + TRAINING.replace("\n", "\n        "),
        "kept.append(made)",
        "kept.append(made.detach())",
    ),
    "a lambda": (
        """
        kept = []
        net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for x, y in batches():
            learn(criterion(net(x), y))
        print(torch.stack(kept).std())
        """,
        "net[0].register_forward_hook(lambda module, given, made: kept.append(made))",
        "net[0].register_forward_hook(lambda module, given, made: kept.append(made.detach()))",
    ),
    "an object that is called": (
        """
        class Recorder:
            def __init__(self):
                self.made = []

            def __call__(self, module, given, made):
                self.made.append(made)

        recorder = Recorder()
        for layer in net:
            layer.register_forward_hook(recorder)
        for x, y in batches():
            learn(criterion(net(x), y))
        print(recorder.made[0].shape)
        """,
        "self.made.append(made)",
        "self.made.append(made.detach())",
    ),
    "a list for each layer": (
        """
        from collections import defaultdict

        kept = defaultdict(list)
        def watch(name):
            def look(module, given, made):
                kept[name].append(made)
            return look
        for name, layer in net.named_children():
            layer.register_forward_hook(watch(name))
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
        "kept[name].append(made)",
        "kept[name].append(made.detach())",
    ),
    "what a layer is given": (
        """
        kept = []
        def look(module, given):
            kept.append(given)
        net[2].register_forward_pre_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
        "kept.append(given)",
    ),
    "a method": (
        """
        class Viewer:
            def __init__(self, model):
                self.maps = []
                for module in model.modules():
                    if isinstance(module, nn.Linear):
                        module.register_forward_hook(self.save)

            def save(self, module, given, made):
                self.maps.append(made)

        viewer = Viewer(net)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
        "self.maps.append(made)",
        "self.maps.append(made.detach())",
    ),
    "a deque without a limit": (
        """
        from collections import deque
        kept = deque([], maxlen=None)
        net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
        "net[0].register_forward_hook(lambda module, given, made: kept.append(made))",
        "net[0].register_forward_hook(lambda module, given, made: kept.append(made.detach()))",
    ),
    "another hook is taken away": (
        """
        kept = []
        def look(module, given, made):
            kept.append(made)
        def once(module, given, made):
            print(made.shape)
        net[0].register_forward_hook(look)
        handle = net[2].register_forward_hook(once)
        for x, y in batches():
            learn(criterion(net(x), y))
            handle.remove()
        """,
        "kept.append(made)",
        "kept.append(made.detach())",
    ),
    "a handle that nobody uses": (
        """
        kept = []
        handle = net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
        "handle = net[0].register_forward_hook(lambda module, given, made: kept.append(made))",
        "handle = net[0].register_forward_hook(lambda module, given, made: kept.append(made.detach()))",
    ),
    "a condition that is no limit": (
        """
        kept = []
        def look(module, given, made):
            if isinstance(made, torch.Tensor) and module.training:
                kept.append(made)
        net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
        "kept.append(made)",
        "kept.append(made.detach())",
    ),
}

LEFT = {
    "a deque with a limit": """
        from collections import deque
        kept = deque(maxlen=2)
        net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "a deque with a limit, by its place": """
        from collections import deque
        kept = deque([], 2)
        net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "taken away at once": """
        kept = []
        handle = net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        net(torch.randn(2, 4))
        handle.remove()
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "taken away by itself": """
        kept = []
        def look(module, given, made):
            kept.append(made)
            handle.remove()
        handle = net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "taken away with others": """
        kept = []
        def look(module, given, made):
            kept.append(made)
        handles = [layer.register_forward_hook(look) for layer in net]
        net(torch.randn(2, 4))
        for handle in handles:
            handle.remove()
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "taken away where a block ends": """
        kept = []
        with net[0].register_forward_hook(lambda module, given, made: kept.append(made)):
            net(torch.randn(2, 4))
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "a few alone": """
        kept = []
        def look(module, given, made):
            if len(kept) < 3:
                kept.append(made)
        net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "a few alone, behind a return": """
        class Recorder:
            def __init__(self):
                self.made = []

            def __call__(self, module, given, made):
                if len(self.made) >= 3:
                    return
                self.made.append(made)

        net[0].register_forward_hook(Recorder())
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "a few alone, by a count": """
        kept = []
        class Count:
            turns = 0
        def look(module, given, made):
            if Count.turns < 3:
                kept.append(made)
        net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
            Count.turns += 1
        """,
    "while a flag is set": """
        kept, on = [], True
        def look(module, given, made):
            if on:
                kept.append(made)
        net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
            on = False
        """,
    "emptied once in a while": """
        kept = []
        net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for epoch in range(5):
            for x, y in batches():
                learn(criterion(net(x), y))
            kept.clear()
        """,
    "emptied by a slice": """
        kept = []
        net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for epoch in range(5):
            for x, y in batches():
                learn(criterion(net(x), y))
            del kept[:]
        """,
    "detached": """
        kept = []
        def look(module, given, made):
            kept.append(made.detach())
        net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "numbers": """
        kept = []
        net[0].register_forward_hook(lambda module, given, made: kept.append(made.abs().mean().item()))
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "emptied by each step": """
        kept = []
        net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for x, y in batches():
            loss = criterion(net(x), y) + sum(made.abs().mean() for made in kept)
            kept.clear()
            learn(loss)
        """,
    "made anew by each step": """
        class Recorder:
            def __init__(self):
                self.made = []

            def __call__(self, module, given, made):
                self.made.append(made)

        recorder = Recorder()
        net[0].register_forward_hook(recorder)
        for x, y in batches():
            recorder.made = []
            learn(criterion(net(x), y))
        """,
    "used by the loss of its step": """
        kept = []
        net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        for x, y in batches():
            learn(criterion(net(x), y) + kept[-1].abs().mean())
        """,
    "replaced": """
        last = {}
        def look(module, given, made):
            last["made"] = made
        net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "one forward without gradients": """
        kept = []
        handle = net[0].register_forward_hook(lambda module, given, made: kept.append(made))
        with torch.no_grad():
            net(torch.randn(2, 4))
        handle.remove()
        """,
    "gradients": """
        kept = []
        net[0].register_full_backward_hook(lambda module, given, made: kept.append(made[0]))
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "handed to code that nobody sees": """
        from monitors import watch

        kept = []
        def look(module, given, made):
            kept.append(made)
            watch(made)
        net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
        """,
    "a list that is no hook's": """
        kept = []
        for x, y in batches():
            made = net(x)
            kept.append(made)
            learn(criterion(made, y))
        """,
    "a method of the same name that nobody registers": """
        kept = []
        def look(module, given, made):
            kept.append(made)
        for x, y in batches():
            made = net(x)
            look(net, x, made)
            learn(criterion(made, y))
        """,
}

told, test_found, test_left = sited(RULE, LEARNING, FOUND, LEFT)


def test_one_place_is_told_once(tmp_path: Path) -> None:
    # only the values are read, which stored-graph mends
    program = """
        kept = []
        def look(module, given, made):
            kept.append(made)
        net[0].register_forward_hook(look)
        for x, y in batches():
            learn(criterion(net(x), y))
        print(len(kept))
        """
    findings = analysed(tmp_path, Options(select=(RULE, "stored-graph")), LEARNING, program)
    assert [f.rule for f in findings] == ["stored-graph"]
