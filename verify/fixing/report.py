"""What `codemod fix` did, for the terminal and as JSON."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from codemods.source.diffs import printable_lines
from verify.diagnosis.evidence import size
from verify.diagnosis.reports.json import content
from verify.fixing.repairs import Fixed, Repair

VERSION = 1
_ROWS = ("does", "learns", "time", "memory", "losses")
_COLUMN = 34
_SHOWN = 3


def text(fixed: Fixed, *, written: bool) -> str:
    """Return the repairs with their proofs and diffs, and where the program stands."""
    lines = []
    for number, fault in enumerate(fixed.before.faults, 1):
        at = f"  ({fault.site})" if fault.site is not None else ""
        lines.append(printable_lines(f"fault {number}: {fault.headline}{at}"))
    for number, repair in enumerate(fixed.repairs, 1):
        plain = ["", f"repair {number}: {repair.title}", f"   means   {repair.meaning}"]
        plain += [f"   proof   {proof}" for proof in repair.proof]
        # A diff stays one that can be applied.
        lines += [*map(printable_lines, (*plain, *_choices(repair))), "", repair.diff.rstrip()]
    plain = ["", *(f"tried in vain: {one.title}: {one.why}" for one in fixed.refused)] if fixed.refused else []
    lines += map(printable_lines, (*plain, "", *_standing(fixed, written)))
    return "\n".join(lines).lstrip("\n") + "\n"


def _choices(repair: Repair) -> list[str]:
    """All changes that remove the fault, side by side: the one that is made first."""
    if not repair.others:
        rows = zip(_ROWS, told(repair), strict=True)
        return [f"   {row:<8}{text}" for row, text in rows if text and row != "does"]
    columns = [[textwrap.wrap(text, _COLUMN) or [""] for text in told(each)] for each in (repair, *repair.others)]
    heads = ["this one", *("or, and less learns" if other.price else "or" for other in repair.others)]
    lines = ["", "   " + " " * 8 + "".join(f"{head:<{_COLUMN + 3}}" for head in heads).rstrip()]
    for number, row in enumerate(_ROWS):
        cells = [column[number] for column in columns]
        for line in range(max(map(len, cells))):
            texts = [cell[line] if line < len(cell) else "" for cell in cells]
            shown = "".join(f"{text:<{_COLUMN + 3}}" for text in texts)
            lines.append(f"   {row if line == 0 else '':<8}{shown}".rstrip())
    return lines


def told(repair: Repair) -> tuple[str, str, str, str, str]:
    """What ``repair`` does, what learns with it, its time, memory and losses; empty where nothing is known."""
    seen = repair.measures
    learns = f"{seen.learning} of {seen.meant} parameters" if seen.meant else ""
    if seen.idle:
        learns += f"; not {', '.join(seen.idle[:_SHOWN])}" + (" and others" if len(seen.idle) > _SHOWN else "")
    time = "" if seen.seconds is None else f"{1e3 * seen.seconds:.3g} ms a step"
    memory = "" if seen.saved is None else f"graphs keep {size(seen.saved)}"
    if seen.nodes is not None:
        memory += f"{', ' if memory else ''}{seen.nodes} nodes"
    return repair.title, learns, time, memory, _course(seen.losses)


def _course(losses: Sequence[float]) -> str:
    """Losses at the start, in the middle and at the end."""
    if not losses:
        return ""
    shown = list(dict.fromkeys((0, len(losses) // 2, len(losses) - 1)))
    return ", ".join(f"{losses[place]:.4g} (backward {place + 1})" for place in shown)


def _standing(fixed: Fixed, written: bool) -> list[str]:
    after = fixed.after
    if after.reason:
        return [part for part in (after.traceback.rstrip(), after.reason, *after.advice) if part]
    steps = f"{after.steps} steps" if after.steps else f"{after.backwards} backwards"
    if not after.faults:
        lines = [f"nothing is wrong any more in {steps}" if fixed.repairs else f"nothing found in {steps}"]
    else:
        lines = [f"left: {fault.headline}: {fault.remedy}" for fault in after.faults]
    if fixed.besides:
        needless = ", and this does not need" if fixed.repairs else ""
        lines.append(f"the rules also find{needless}: {', '.join(fixed.besides)} (codemod apply --verify)")
    lines += [f"limit: {text}" for text in after.limits]
    if fixed.repairs:
        lines.append("written" if written else "nothing is written yet: --write does that")
    return lines


def as_json(fixed: Fixed, *, written: bool) -> str:
    """Return the same as one JSON object, as docs/fix.md describes it."""
    told = {
        "version": VERSION,
        "status": fixed.status,
        "written": written,
        "before": content(fixed.before),
        "after": content(fixed.after),
        "repairs": [_repair(repair) for repair in fixed.repairs],
        "besides": list(fixed.besides),
        "refused": [{"title": one.title, "why": one.why} for one in fixed.refused],
    }
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _numbers(losses: Sequence[float]) -> list[float | None]:
    """Losses as JSON allows them: NaN and infinities are null."""
    return [loss if math.isfinite(loss) else None for loss in losses]


def _repair(repair: Repair) -> dict[str, Any]:
    measures = {
        **asdict(repair.measures),
        "idle": list(repair.measures.idle),
        "starved": list(repair.measures.starved),
        "losses": _numbers(repair.measures.losses),
    }
    # The proof says what it is for.
    del measures["first"]
    return {
        "title": repair.title,
        "meaning": repair.meaning,
        "proof": list(repair.proof),
        "diff": repair.diff,
        "measures": measures,
        "price": repair.price,
        "others": [_repair(each) for each in repair.others],
    }
