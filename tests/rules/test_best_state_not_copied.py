"""What best-state-not-copied finds and leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from codemods.terms.findings import Promise
from tests.rules.tools import LEARNING, found, mended, sited

RULE = "best-state-not-copied"
HEAD = (
    LEARNING
    + """

import copy

def epoch():
    total = 0.0
    for x, y in batches():
        loss = criterion(net(x), y)
        learn(loss)
        total += loss.item()
    return total
"""
)

STOPPER = """
        class Stopper:
            def __init__(self):
                self.low, self.best = 1e9, None

            def look(self, total, model):
                if total < self.low:
                    self.low = total
                    self.best = model.state_dict()
"""

FOUND = {
    "in a dict, loaded by its key": (
        """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
        net.load_state_dict(best["model"])
        """,
        'best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}',
        'best = {"model": copy.deepcopy(net.state_dict()), "opt": copy.deepcopy(opt.state_dict()), "low": low}',
    ),
    "in a dict, saved when the loop is over": (
        """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
        torch.save(best, "best.pt")
        """,
        'best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}',
        'best = {"model": copy.deepcopy(net.state_dict()), "opt": copy.deepcopy(opt.state_dict()), "low": low}',
    ),
    "in a dict, of which one state is saved": (
        """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
        if best is not None:
            torch.save(best["model"], "best.pt")
            print(best["low"])
        """,
        'best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}',
        'best = {"model": copy.deepcopy(net.state_dict()), "opt": copy.deepcopy(opt.state_dict()), "low": low}',
    ),
    "in a dict that is saved at once as well": (
        """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
                torch.save(best, "best.pt")
        net.load_state_dict(best["model"])
        """,
        'best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}',
        'best = {"model": copy.deepcopy(net.state_dict()), "opt": copy.deepcopy(opt.state_dict()), "low": low}',
    ),
    "in a dict that begins without": (
        """
        low, best = 1e9, {"model": None, "low": float("inf")}
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
        net.load_state_dict(best["model"])
        """,
        'best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}',
        'best = {"model": copy.deepcopy(net.state_dict()), "opt": copy.deepcopy(opt.state_dict()), "low": low}',
    ),
    "the lowest of several epochs": (
        """
        low = 1e9
        best = None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken in one line with others": (
        """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low, best = total, net.state_dict()
        net.load_state_dict(best)
        """,
        "low, best = total, net.state_dict()",
        "low, best = total, copy.deepcopy(net.state_dict())",
    ),
    "an attribute in one line with others": (
        STOPPER.replace("self.low = total\n                    self.best = ", "self.low, self.best = total, ")
        + """
        stopper = Stopper()
        for i in range(5):
            stopper.look(epoch(), net)
        net.load_state_dict(stopper.best)
        """,
        "self.low, self.best = total, model.state_dict()",
        "self.low, self.best = total, copy.deepcopy(model.state_dict())",
    ),
    "begun in one line with others": (
        """
        best, low = None, float("inf")
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "begun with its type": (
        """
        best: dict | None = None
        for i in range(5):
            if epoch() < 10:
                best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "early stopping": (
        """
        low, waited = 1e9, 0
        for i in range(50):
            total = epoch()
            if total < low:
                low = total
                kept = net.state_dict()
            else:
                waited += 1
                if waited > 3:
                    break
        net.load_state_dict(kept)
        """,
        "kept = net.state_dict()",
        "kept = copy.deepcopy(net.state_dict())",
    ),
    "a copy of the dict alone": (
        """
        for i in range(5):
            before = net.state_dict().copy()
            if epoch() > 100:
                net.load_state_dict(before)
        """,
        "before = net.state_dict().copy()",
        "before = copy.deepcopy(net.state_dict())",
    ),
    "in a function": (
        """
        def fit(model, optimizer):
            low, state = 1e9, 0
            for x, y in batches():
                loss = criterion(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if loss.item() < low:
                    low = loss.item()
                    kept = model.state_dict()
            model.load_state_dict(kept)
            return model

        fit(net, opt)
        """,
        "kept = model.state_dict()",
        "kept = copy.deepcopy(model.state_dict())",
    ),
    "in an object that watches the loss": (
        STOPPER
        + """
        stop = Stopper()
        for i in range(5):
            stop.look(epoch(), net)
        net.load_state_dict(stop.best)
        """,
        "self.best = model.state_dict()",
        "self.best = copy.deepcopy(model.state_dict())",
    ),
    "in a trainer, and saved as well": (
        """
        class Trainer:
            def __init__(self, model):
                self.model, self.low, self.kept = model, 1e9, None

            def run(self):
                for i in range(5):
                    total = epoch()
                    if total < self.low:
                        self.low = total
                        self.kept = self.model.state_dict()
                        torch.save(self.kept, "best.pt")
                if self.kept is not None:
                    self.model.load_state_dict(self.kept)

        Trainer(net).run()
        """,
        "self.kept = self.model.state_dict()",
        "self.kept = copy.deepcopy(self.model.state_dict())",
    ),
    "saved when the loop is over": (
        """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = net.state_dict()
        torch.save(best, "best.pt")
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "saved every other turn, in a function": (
        """
        def fit(model):
            low, kept = 1e9, None
            for i in range(5):
                total = epoch()
                if total < low:
                    low = total
                    kept = model.state_dict()
                if i % 2:
                    torch.save(kept, "best.pt")
        fit(net)
        """,
        "kept = model.state_dict()",
        "kept = copy.deepcopy(model.state_dict())",
    ),
    "taken in every turn, until one is worse": (
        """
        low = 1e9
        for i in range(5):
            total = epoch()
            if total > low:
                break
            low = total
            best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken in every turn, until an inner loop is left with it": (
        """
        for i in range(5):
            for x, y in batches():
                learn(criterion(net(x), y))
                if x.sum() > 100:
                    break
                best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken in every turn that raises nothing": (
        """
        for i in range(5):
            try:
                epoch()
                best = net.state_dict()
            except ValueError:
                print("bad")
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken in every turn that is not skipped": (
        """
        for i in range(5):
            if epoch() > 1:
                continue
            best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken in every turn, until somebody interrupts it": (
        """
        try:
            for i in range(5):
                epoch()
                best = net.state_dict()
        except KeyboardInterrupt:
            net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken in every turn, before its steps": (
        """
        for i in range(5):
            best = net.state_dict()
            epoch()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken before a loop that takes some": (
        """
        best = net.state_dict()
        for i in range(5):
            if epoch() > 1:
                print("bad")
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken in every turn that is not left after its steps": (
        """
        while True:
            total = epoch()
            if total < 0.1:
                break
            best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken in every turn, and the turns around it go on without": (
        """
        for i in range(5):
            epoch()
            while True:
                if i > 2:
                    break
                epoch()
                best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken where every second step is": (
        """
        for i in range(5):
            epoch()
            if i % 2:
                epoch()
                best = net.state_dict()
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "taken before the steps of a loop that is left at its head": (
        """
        i = 0
        while True:
            if i > 5:
                break
            best = net.state_dict()
            epoch()
            i += 1
        net.load_state_dict(best)
        """,
        "best = net.state_dict()",
        "best = copy.deepcopy(net.state_dict())",
    ),
    "an object that returns early": (
        STOPPER.replace("if total < self.low:", "if total > self.low:\n                    return")
        .replace("    self.low = total", "self.low = total")
        .replace("    self.best = model", "self.best = model")
        + """
        stop = Stopper()
        for i in range(5):
            stop.look(epoch(), net)
        net.load_state_dict(stop.best)
        """,
        "self.best = model.state_dict()",
        "self.best = copy.deepcopy(model.state_dict())",
    ),
}
"""Programs with the line that is found."""

LEFT = {
    "of a model that is moved for it, and back": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = net.cpu().state_dict()
            net.double()
        torch.save(best, "best.pt")
        """,
    "in a dict, of a model that is moved for it, and back": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.cpu().state_dict()}
            net.double()
        torch.save(best, "best.pt")
        """,
    "in a dict, saved at once": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
                torch.save(best, "best.pt")
        print(low)
        """,
    "in a dict, copied one by one": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": copy.deepcopy(net.state_dict()), "opt": copy.deepcopy(opt.state_dict()), "low": low}
        net.load_state_dict(best["model"])
        """,
    "in a dict that is copied": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = copy.deepcopy({"model": net.state_dict(), "low": low})
        net.load_state_dict(best["model"])
        """,
    "in a dict that is copied later": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
                best = copy.deepcopy(best)
        net.load_state_dict(best["model"])
        """,
    "in a dict, the loop is left at once": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
                break
        net.load_state_dict(best["model"])
        """,
    "in a dict, taken anew in the end": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
        best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
        torch.save(best, "best.pt")
        """,
    "in a dict, under another key": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": copy.deepcopy(net.state_dict()), "last": net.state_dict()}
        net.load_state_dict(best["model"])
        """,
    "in a dict that is written to": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
                best["model"] = copy.deepcopy(net.state_dict())
        net.load_state_dict(best["model"])
        """,
    "in a dict whose state is written to": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
        best["model"].update(torch.load("other.pt"))
        net.load_state_dict(best["model"])
        """,
    "in a dict that others get": """
        from elsewhere import keep
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
                keep(best)
        net.load_state_dict(best["model"])
        """,
    "in a dict with whatever another holds": """
        from elsewhere import more
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), **more()}
        net.load_state_dict(best["model"])
        """,
    "in a dict, and the loop over the keys copies": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
                best = {key: copy.deepcopy(value) for key, value in best.items()}
        net.load_state_dict(best["model"])
        """,
    "in a dict, loaded into another model": """
        other = copy.deepcopy(net)
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = {"model": net.state_dict(), "opt": opt.state_dict(), "low": low}
        other.load_state_dict(best["model"])
        """,
    "in a dict in every turn, on one of several processes": """
        import sys
        rank = int(sys.argv[1])
        for i in range(5):
            epoch()
            if rank == 0:
                state = {"epoch": i, "model": net.state_dict()}
        if rank == 0:
            torch.save(state, "last.pt")
        """,
    "in a dict after the last step of every turn": """
        for i in range(5):
            epoch()
            state = {"epoch": i, "model": net.state_dict()}
        torch.save(state, "last.pt")
        net.load_state_dict(state["model"])
        """,
    "taken in every turn, after its steps": """
        best = net.state_dict()
        for i in range(5):
            epoch()
            best = net.state_dict()
        net.load_state_dict(best)
        """,
    "taken in every turn, and the loop is left at its head": """
        i = 0
        while True:
            if i > 5:
                break
            i += 1
            epoch()
            best = net.state_dict()
        net.load_state_dict(best)
        """,
    "taken in every turn that trains": """
        for i in range(5):
            if i == 2:
                continue
            epoch()
            best = net.state_dict()
        net.load_state_dict(best)
        """,
    "taken in a branch with all steps": """
        for i in range(9):
            if i % 2:
                epoch()
                best = net.state_dict()
            else:
                print("not this time")
        net.load_state_dict(best)
        """,
    "taken in the other branch, with all steps": """
        i = 0
        while True:
            if i > 5:
                break
            else:
                i += 1
                epoch()
                best = net.state_dict()
        net.load_state_dict(best)
        """,
    "taken in every turn, behind a loop that is left early": """
        for i in range(5):
            for x, y in batches():
                learn(criterion(net(x), y))
                if x.sum() > 100:
                    break
            best = net.state_dict()
        net.load_state_dict(best)
        """,
    "taken in every turn of a function that gives up": """
        def fit(model):
            for i in range(5):
                total = epoch()
                assert total < 1e9
                if total > 100:
                    return
                best = model.state_dict()
            model.load_state_dict(best)
        fit(net)
        """,
    "taken in every turn of a function": """
        def fit(model, many):
            if not many:
                return
            for i in range(many):
                epoch()
                best = model.state_dict()
            model.load_state_dict(best)
        fit(net, 5)
        """,
    "taken in every turn, also of inner loops": """
        for i in range(5):
            for x, y in batches():
                if x.sum() > 100:
                    continue
                learn(criterion(net(x), y))
            with torch.no_grad():
                best = net.state_dict()
        net.load_state_dict(best)
        """,
    "taken by an object in every turn": STOPPER.replace(
        "if total < self.low:", "if total:\n                    print(total)"
    )
    .replace("    self.low = total", "self.low = total")
    .replace("    self.best = model", "self.best = model")
    + """
        stop = Stopper()
        for i in range(5):
            stop.look(epoch(), net)
        net.load_state_dict(stop.best)
        """,
    "a deep copy": """
        low = 1e9
        for i in range(5):
            total = epoch()
            if total < low:
                low, best = total, None
                best = copy.deepcopy(net.state_dict())
        net.load_state_dict(best)
        """,
    "begun as a copy, in one line with others": """
        best, low = copy.deepcopy(net.state_dict()), float("inf")
        for i in range(5):
            if epoch() < low:
                best = net.state_dict()
        net.load_state_dict(best)
        """,
    "a copy, in one line with others": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low, best = total, copy.deepcopy(net.state_dict())
        net.load_state_dict(best)
        """,
    "the other of two is loaded": """
        best = kept = None
        for i in range(5):
            epoch()
            best, kept = net.state_dict(), {k: v.clone() for k, v in net.state_dict().items()}
        net.load_state_dict(kept)
        """,
    "what is handed on from name to name": """
        best = older = None
        for i in range(5):
            older, best = best, net.state_dict()
            epoch()
        net.load_state_dict(older)
        """,
    "taken in one line, and the loop is left": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total > 1:
                low, best = total, net.state_dict()
                break
        net.load_state_dict(best)
        """,
    "clones": """
        for i in range(5):
            best = {k: v.clone() for k, v in net.state_dict().items()}
            epoch()
        net.load_state_dict(best)
        """,
    "cloned one by one": """
        for i in range(5):
            best = net.state_dict()
            for k in best:
                best[k] = best[k].clone()
            epoch()
        net.load_state_dict(best)
        """,
    "another model gets it": """
        target = copy.deepcopy(net)
        for i in range(5):
            state = net.state_dict()
            epoch()
            target.load_state_dict(state)
        """,
    "no step in between": """
        for i in range(5):
            epoch()
            state = net.state_dict()
            net.load_state_dict(state)
        """,
    "the loop is left at once": """
        best = None
        for i in range(5):
            if epoch() < 10:
                best = net.state_dict()
                break
        net.load_state_dict(best)
        """,
    "saved at once": """
        low = 1e9
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = net.state_dict()
                torch.save(best, "best.pt")
        """,
    "saved as the newest by intent": """
        state = net.state_dict()
        for i in range(5):
            epoch()
            torch.save(state, "last.pt")
        """,
    "a copy is saved": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = copy.deepcopy(net.state_dict())
        torch.save(best, "best.pt")
        """,
    "what is saved is taken anew": """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = net.state_dict()
        best = net.state_dict()
        torch.save(best, "last.pt")
        """,
    "saved by something else": """
        from elsewhere import save
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low = total
                best = net.state_dict()
        save(best, "best.pt")
        """,
    "read from a file": """
        for i in range(5):
            epoch()
            best = net.state_dict()
            torch.save(best, "best.pt")
        best = torch.load("best.pt")
        net.load_state_dict(best)
        """,
    "the model is made anew": """
        for i in range(5):
            epoch()
            best = net.state_dict()
            epoch()
        net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
        net = net.eval()
        net.load_state_dict(best)
        """,
    "a model that cannot be seen": """
        from elsewhere import model
        sgd = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in batches():
            best = model.state_dict()
            sgd.zero_grad()
            criterion(model(x), y).backward()
            sgd.step()
        model.load_state_dict(best)
        """,
    "an object that copies it later": STOPPER
    + """
        stop = Stopper()
        for i in range(5):
            stop.look(epoch(), net)
            stop.best = copy.deepcopy(stop.best)
        net.load_state_dict(stop.best)
        """,
    "an object whose state is written to": STOPPER
    + """
        stop = Stopper()
        for i in range(5):
            stop.look(epoch(), net)
            for name in stop.best:
                stop.best[name] = stop.best[name].clone()
        net.load_state_dict(stop.best)
        """,
    "an object whose attributes are set by name": STOPPER
    + """
        stop = Stopper()
        for i in range(5):
            stop.look(epoch(), net)
            setattr(stop, "best", copy.deepcopy(stop.best))
        net.load_state_dict(stop.best)
        """,
    "an object that watches another model": STOPPER
    + """
        stop = Stopper()
        average = copy.deepcopy(net)
        for i in range(5):
            epoch()
            stop.look(1.0, net)
            average.load_state_dict(stop.best)
        """,
    "an object that hands it out": STOPPER
    + """
        from elsewhere import keep

        stop = Stopper()
        for i in range(5):
            stop.look(epoch(), net)
            keep(stop.best)
        net.load_state_dict(stop.best)
        """,
    "a model that is moved, so that its old memory stays": STOPPER
    + """
        stop = Stopper()
        for i in range(5):
            stop.look(epoch(), net)
            net.double()
            net.float()
        net.load_state_dict(stop.best)
        """,
    "a state of its own": """
        class Own(nn.Linear):
            def state_dict(self):
                return copy.deepcopy(super().state_dict())

        own = Own(4, 2)
        sgd = torch.optim.SGD(own.parameters(), lr=0.1)
        for x, y in batches():
            best = own.state_dict()
            sgd.zero_grad()
            criterion(own(x), y).backward()
            sgd.step()
        own.load_state_dict(best)
        """,
}

told, test_found, test_left = sited(RULE, HEAD, FOUND, LEFT)


SAVING = """
        low, best = 1e9, None
        for i in range(5):
            total = epoch()
            if total < low:
                low, best = total, None
                best = net.state_dict()
        net.load_state_dict(best)
        """
COPIES = {
    "nothing": ("", "import copy\nimport torch"),
    "the module": ("import copy", "import copy"),
    "the module by another name": ("import copy as cp", "import copy\nimport torch"),
    "another module": ("import shutil as copy", None),
    "a function of the module": ("from copy import copy", None),
    "a function of the file": ("def copy(x):\n    return x", None),
    "a variable of the file": ("copy = list.copy", None),
    "the module, which is given away": ("import copy\ncopy = copy.copy", None),
    "the module, on one path": ("if net is None:\n    import copy", None),
    "a method": ("class Log:\n    def copy(self):\n        return 0", "import copy\nimport torch"),
}
"""What ``copy`` is in a file, and how the file begins then, or holds on; None where it stays as it is."""


@pytest.mark.parametrize("name", COPIES)
def test_the_module_that_copies_is_the_one_of_python(tmp_path: Path, name: str) -> None:
    line, begins = COPIES[name]
    (finding,) = found(tmp_path, RULE, HEAD.replace("import copy\n", line + "\n"), SAVING)
    assert finding.promise is (Promise.ADVICE if begins is None else Promise.BEHAVIOUR)
    text = mended(tmp_path, [finding])
    assert ("best = copy.deepcopy(net.state_dict())" in text) is (begins is not None)
    assert begins is None or begins in text


WRITTEN = sum(len(program) > 2 for program in FOUND.values())
