"""What a total costs in each form that `attached-loss-total` can write.

    PYTHON tests/benchmarks/total_forms.py [TIMES]

Run it with the interpreter whose PyTorch is asked, from 2.0 on; it needs nothing else. Prints a line of JSON: the
version, and of each form the microseconds that ``total += FORM`` takes (the shortest of some rounds; of a loss with a
graph, on the CPU, one thread), what it warns of, and whether the total keeps the graph. A form is run in a process of
its own, because PyTorch warns once a process. ``TIMES`` (20000) are the additions of a round; with 0 no time is taken,
as on an emulated processor, where it would say little.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import warnings
from typing import Any

import torch

ROUNDS = 5
FORMS = {
    "loss": lambda loss: loss,
    "loss.item()": lambda loss: loss.item(),
    "float(loss)": lambda loss: float(loss),
    "loss.detach()": lambda loss: loss.detach(),
    "float(loss.detach())": lambda loss: float(loss.detach()),
}


def told(form: str, times: int) -> dict[str, Any]:
    """What one form does, in this process."""
    torch.manual_seed(0)
    loss = torch.nn.functional.mse_loss(torch.nn.Linear(8, 1)(torch.randn(4, 8)), torch.zeros(4, 1))
    taken = FORMS[form]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        total: Any = 0.0
        for _ in range(3):
            total = total + taken(loss)
    shortest = min((_round(taken, loss, times) for _ in range(ROUNDS)), default=0.0) if times else None
    return {
        "microseconds": None if shortest is None else round(shortest * 1e6, 2),
        "warns": sorted({str(one.message).strip().splitlines()[0] for one in caught}),
        "keeps_graph": getattr(total, "grad_fn", None) is not None,
    }


def _round(taken: Any, loss: torch.Tensor, times: int) -> float:
    total: Any = 0.0
    started = time.perf_counter()
    for _ in range(times):
        total += taken(loss)
        if taken is FORMS["loss"]:
            # A chain of all additions would be measured with it, and freed at the end.
            total = 0.0
    return (time.perf_counter() - started) / times


def apart(form: str, times: int) -> dict[str, Any]:
    """What one form does, in a process of its own."""
    back, out = os.pipe()
    child = os.fork()
    if not child:
        os.close(back)
        with os.fdopen(out, "w") as told_to:
            json.dump(told(form, times), told_to)
        os._exit(0)
    os.close(out)
    with os.fdopen(back) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    answered: dict[str, Any] = json.loads(text)
    return answered


def main(times: int) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    forms = {form: apart(form, times) for form in FORMS}
    print(json.dumps({"torch": torch.__version__, "machine": platform.machine(), "forms": forms}))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
