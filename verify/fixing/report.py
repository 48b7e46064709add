"""What `codemod fix` did, for the terminal and for programs."""

from __future__ import annotations

import json

from verify.diagnosis.json import content
from verify.fixing.fix import Fixed

VERSION = 1


def text(fixed: Fixed, *, written: bool) -> str:
    """Return the repairs with their proofs and diffs, and where the program stands."""
    lines = []
    for number, fault in enumerate(fixed.before.faults, 1):
        at = f"  ({fault.site})" if fault.site is not None else ""
        lines.append(f"fault {number}: {fault.headline}{at}")
    for number, repair in enumerate(fixed.repairs, 1):
        lines += ["", f"repair {number}: {repair.title}", f"   means   {repair.meaning}"]
        lines += [f"   proof   {proof}" for proof in repair.proof]
        lines += ["", repair.diff.rstrip()]
    if fixed.refused:
        lines += ["", *(f"tried in vain: {one.title}: {one.why}" for one in fixed.refused)]
    lines += ["", *_standing(fixed, written)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _standing(fixed: Fixed, written: bool) -> list[str]:
    after = fixed.after
    if after.reason:
        return [part for part in (after.traceback.rstrip(), after.reason, *after.advice) if part]
    steps = f"{after.steps} steps" if after.steps else f"{after.backwards} backwards"
    if not after.faults:
        lines = [f"nothing is wrong any more in {steps}" if fixed.repairs else f"nothing found in {steps}"]
    else:
        lines = [f"left: {fault.headline}: {fault.remedy}" for fault in after.faults]
    if fixed.repairs:
        lines.append("written" if written else "nothing is written yet: --write does that")
    return lines


def as_json(fixed: Fixed, *, written: bool) -> str:
    """Return the same as one JSON object, of the shape that docs/fix.md tells."""
    told = {
        "version": VERSION,
        "status": fixed.status,
        "written": written,
        "before": content(fixed.before),
        "after": content(fixed.after),
        "repairs": [
            {"title": r.title, "meaning": r.meaning, "proof": list(r.proof), "diff": r.diff} for r in fixed.repairs
        ],
        "refused": [{"title": one.title, "why": one.why} for one in fixed.refused],
    }
    return json.dumps(told, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
