"""Faults of memory and time: what holds the peak, containers that grow, steps that get slower."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from verify.diagnosis.allocator import fragments
from verify.diagnosis.evidence import Sources, events, last, site_of, size
from verify.diagnosis.model import Clue, Fault, Kind
from verify.judging.faults import symptoms
from verify.measured.results import Outcome, Run
from verify.measured.values import TroubleKind

#: A container is worth a word from so many bytes a step on: an hour at ten steps a second fills half a gigabyte.
_WORTH = 16 << 10
#: What graphs of fewer bytes hold is not worth a remark.
_TOLD = 1 << 20
#: The first steps do what is done once.
_WARM = 2
_FEWEST_STEPS = 12
#: How much longer the last third takes, in proportion and in seconds, and how many pairs of steps agree.
_SLOWER, _SECONDS, _AGREE = 1.4, 0.002, 0.8
_SHOWN = 4
#: So many steps' graphs at once are one too many; more than that pile up.
_BESIDE = 2
#: So many of those who hold them are named.
_NAMED = 2


def stores(run: Run) -> list[Fault]:
    """Return the containers that grow with every step by what has no graph."""
    event = last(run, "stores")
    faults = []
    for row in [] if event is None else event["containers"]:
        tensors, plain = row["tensor_bytes"], row["plain_bytes"]
        if row["graph"] or tensors + plain < _WORTH:
            continue
        held = tensors >= plain
        kind = Kind.GROWING_TENSORS if held else Kind.GROWING_CONTAINER
        what = "tensors without a graph" if held else "Python objects"
        text = f"{row['length']} entries at the end of the run, {row['added']:.3g} more each step"
        if row["kind"] == "Tensor":
            text = f"one tensor of {size(row['length'])} at the end of the run"
        faults.append(
            Fault(
                kind,
                f"{row['name']} grows by {size(tensors + plain)} of {what} a step",
                None,
                (Clue("carrier", name=row["name"], text=text),),
                "keep what is needed of each entry, on the CPU, and clear it when it has been used",
                {"bytes_per_step": round(tensors + plain), "length": row["length"]},
            )
        )
    return faults


def memory(run: Run, sources: Sources) -> list[Fault]:
    """Return the end of memory, with what held it."""
    seen = symptoms(run)
    if run.outcome is not Outcome.MEMORY and (seen.error is None or seen.error.kind != TroubleKind.MEMORY):
        return []
    event = last(run, "exhausted") or last(run, "near") or last(run, "holdings")
    site = run.record.error_site or (None if event is None else site_of(event["site"]))
    carriers, steps = _alive(run)
    clues = [*carriers, *([] if event is None else holders(event, sources))]
    pieces = None if seen.error is None else fragments(seen.error.message)
    message = seen.error.message.partition("\n")[0][:160] if seen.error is not None else ""
    message = next((note.partition(": ")[2] for note in run.notes if note.startswith("stopped: it held")), message)
    remedy = "smaller batches, or checkpoints around the lines that hold most"
    if seen.leak or steps > _BESIDE:
        remedy = "memory is short because graphs pile up: mend that first"
    elif steps == _BESIDE:
        remedy = (
            "the graph of the step before is still alive beside this one's: delete what holds it before the next step"
        )
    elif pieces is not None and pieces.unused >= pieces.asked:
        remedy = (
            "the card has the memory, in pieces: batches of few different sizes, or the variable"
            " PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"
        )
        clues.insert(0, Clue("fragments", text=f"{size(pieces.unused)} is free between tensors, in pieces too small"))
    elif event is not None and _trained(event) > max(event["saved"], (run.peak or 0) / 4):
        remedy = "the model and its optimizer hold most of it: smaller batches will not help much"
    return [
        Fault(
            Kind.OUT_OF_MEMORY,
            "memory runs out" + (f": {message}" if message else ""),
            site,
            tuple(clues),
            remedy,
            {"peak_bytes": run.peak}
            | ({} if event is None else {"saved_bytes": event["saved"]})
            | ({} if pieces is None else {"asked_bytes": pieces.asked, "unused_bytes": pieces.unused}),
        )
    ]


def _trained(event: Mapping[str, Any]) -> int:
    return int(event["parameters"] + event["gradients"] + event["state"])


def _alive(run: Run) -> tuple[list[Clue], int]:
    """Who held graphs of several steps that no backward has freed when memory was short, and of how many steps."""
    graphs = [event for event in events(run, "graph") if event["for"] == "memory"]
    rows = [row for row in (graphs[-1]["boxes"] if graphs else []) if row["freed"] is None and row["holders"]]
    rows = sorted((row for row in rows if row["steps"] >= _BESIDE), key=lambda row: (-row["steps"], -row["nodes"]))
    clues = [
        Clue("carrier", None, "", holder["name"], holder["function"], f"graphs of {row['steps']} steps")
        for row in rows[:1]
        for holder in row["holders"][:_NAMED]
    ]
    return clues, max((row["steps"] for row in rows), default=0)


def holders(event: Mapping[str, Any], sources: Sources) -> list[Clue]:
    """Return who holds memory, the largest first."""
    clues = [
        (row["bytes"], sources.clue("activations", row["site"], f"{size(row['bytes'])} kept for the backward"))
        for row in event["lines"][:_SHOWN]
    ]
    for key, text in (("parameters", "parameters"), ("gradients", "their gradients"), ("state", "optimizer state")):
        if event[key]:
            clues.append((event[key], Clue(key, text=f"{size(event[key])} of {text}")))
    return [clue for _, clue in sorted(clues, key=lambda row: -row[0])]


def peak(run: Run) -> str:
    """Say in a sentence what holds memory when the largest backward begins; empty where that is not known."""
    event = last(run, "holdings")
    if event is None or not event["lines"] or event["saved"] < _TOLD:
        return ""
    first = event["lines"][0]
    site = site_of(first["site"])
    return (
        f"when the largest backward begins, graphs hold {size(event['saved'])}"
        + (f", most of it ({size(first['bytes'])}) made at {site}" if site is not None else "")
        + f"; parameters, gradients and optimizer states are {size(_trained(event))}"
    )


def slows(run: Run) -> tuple[float, float] | None:
    """Return the median seconds of a step in the first and in the last third, where steps get slower beyond doubt."""
    event = last(run, "pace")
    seconds: Sequence[float] = [] if event is None else event["seconds"][_WARM:]
    if len(seconds) < _FEWEST_STEPS:
        return None
    third = len(seconds) // 3
    early, late = statistics.median(seconds[:third]), statistics.median(seconds[-third:])
    pairs = list(combinations(seconds, 2))
    agree = sum(after > before for before, after in pairs) / len(pairs)
    if late < _SLOWER * early or late - early < _SECONDS or agree < _AGREE:
        return None
    return early, late


def slower(run: Run, timed: Run, sources: Sources) -> list[Fault]:
    """Return that steps get slower; ``timed`` is the run whose lines were timed."""
    found = slows(run)
    if found is None or slows(timed) is None:
        # Seen once and not again: another program's load.
        return []
    early, late = found
    event = last(timed, "pace")
    rows = [] if event is None else [row for row in event["lines"] if row["after"] - row["before"] > _SECONDS / 4]
    clues = [
        sources.clue("cause", row["site"], f"{1e3 * row['before']:.1f} ms at first, {1e3 * row['after']:.1f} at last")
        for row in rows[:2]
    ]
    return [
        Fault(
            Kind.SLOWER_STEPS,
            f"steps get slower: {1e3 * early:.1f} ms at first, {1e3 * late:.1f} ms at the end of the run",
            clues[0].site if clues else None,
            tuple(clues),
            "let this line work on what is new in each step, not on all that has gathered" if clues else "",
            {"first_seconds": early, "last_seconds": late},
        )
    ]
