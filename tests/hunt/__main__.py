"""``python -m tests.hunt --seeds 0:50000 --jobs 2``: programs are rewritten, run and held to every promise."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from pathlib import Path

from tests.hunt.hunting import Findings, Hunt, hunted


def main() -> int:
    """Hunt as the command line says; 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.hunt", description=__doc__)
    parser.add_argument("--seeds", default="0:1000", help="FROM:TO, the programs to look at")
    parser.add_argument(
        "--crossed", action="store_true", help="programs that cross situations with ways, not those of the grammar"
    )
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--out", type=Path, help="where shrunk violations are written")
    parser.add_argument("--rule", action="append", default=[], help="only with this rule selected (repeatable)")
    parser.add_argument("--minutes", type=float, default=0, help="stop after so long")
    parser.add_argument(
        "--verify", type=int, default=0, help="send one of so many rewritten programs through verify too"
    )
    parser.add_argument(
        "--coverage", type=int, default=0, help="measure the lines of the engine that one of so many reaches"
    )
    parser.add_argument("--shrink", type=float, default=20, help="seconds for each violation; 0 does not shrink")
    given = parser.parse_args()
    # The programs train on the CPU; where there is a card, autograd starts threads for it, which do not survive a fork.
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    start, end = map(int, given.seeds.split(":"))
    hunt = Hunt(tuple(given.rule), given.out, given.verify, given.coverage, given.shrink, given.crossed)
    found = Findings()
    began = time.monotonic()
    portions = [(hunt, seed, min(seed + 20, end)) for seed in range(start, end, 20)]
    with multiprocessing.get_context("fork").Pool(given.jobs, maxtasksperchild=50) as pool:
        for number, part in enumerate(pool.imap_unordered(hunted, portions), 1):
            found.add(part)
            if number % 5 == 0:
                spent = time.monotonic() - began
                print(f"{found.line()}, {found.programs / spent:.1f}/s", file=sys.stderr, flush=True)
            if given.minutes and time.monotonic() - began > given.minutes * 60:
                pool.terminate()
                break
    print(found.table())
    return 1 if found.broken else 0


if __name__ == "__main__":
    sys.exit(main())
