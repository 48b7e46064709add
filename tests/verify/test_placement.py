"""Scripts that say nothing of devices, moved to one: seen with the device that every torch has, which holds no data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

ZYGOTE = Path(__file__).parent / "zygote"

PROGRAM = dedent(
    """\
    import numpy, runpy, sys
    import torch
    from torch import nn

    runpy.run_path(sys.argv[1])["place"]("meta")
    print(torch.randn(2).device, nn.Linear(2, 2).weight.device, torch.from_numpy(numpy.zeros(2)).device)
    print(sorted(torch.randperm(3, generator=torch.Generator()).tolist()))
    print(torch.zeros(2, device="cpu").numpy())
    print([len(part) for part in torch.utils.data.random_split(range(5), [3, 2])])
    drawn = torch.rand(2, generator=torch.Generator(), requires_grad=True)
    print(drawn.device, drawn.requires_grad, (torch.FloatTensor([1, 2]) * torch.ones(2)).device)
    """
)


def test_factories_modules_and_arrays_go_there_and_shuffles_stay() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(ZYGOTE / "placement.py")], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == [
        "meta meta meta",
        "[0, 1, 2]",
        "[0. 0.]",
        "[3, 2]",
        "meta True meta",
    ]
