"""Faults of learning: parameters without gradient or optimizer, losses without a graph, gradients never cleared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from codemods.terms.counting import listed
from verify.diagnosis.evidence import Sources, events, last, site_of
from verify.diagnosis.model import Clue, Fault, Kind
from verify.measured.results import Run
from verify.measured.values import Site

#: So many steps have to be made before a parameter without a gradient, or with an old one, is a fault.
_FEWEST = 3
_NO_GRAPH = "does not require grad and does not have a grad_fn"
_SHOWN = 4
#: Cuts that are made on purpose.
_MEANT = frozenset({"detach", "detach_", "data", "no_grad"})


def cut_off(run: Run, flow: Run | None, sources: Sources) -> list[Fault]:
    """Return the losses without a way to what an optimizer holds; ``flow`` is the run that followed graphs, if any."""
    found = []
    for site, calls, why in rootless(run):
        event = next((e for e in reversed(events(flow, "flow")) if site_of(e["loss"]) == site), None) if flow else None
        clues = _cuts(event, sources)
        found.append(
            Fault(
                Kind.LOSS_CUT_OFF,
                f"the loss has no graph that leads to the model: {why}",
                site,
                (sources.clue("loss", site), *clues),
                _cut_remedy(clues),
                {"calls": calls},
            )
        )
    return found


def rootless(run: Run) -> list[tuple[Site | None, int, str]]:
    """Return the sites of backwards that lead to no parameter of an optimizer, with calls and a reason."""
    record = run.record
    errors = [(caught.site, caught.error) for caught in record.caught]
    if record.error is not None:
        errors.append((record.error_site, record.error))
    refused = [(site, 1, "torch refuses it") for site, error in errors if _NO_GRAPH in error.message]
    if refused:
        return refused[:1]
    event = _learning(run)
    # Where others learn that no optimizer holds, the optimizer is the fault, not the loss.
    stepped = any(row["steps"] for row in event["optimizers"]) and not event["outside"]
    rows = []
    for row in event["backwards"]:
        if row["rootless"] == row["calls"]:
            rows.append((site_of(row["site"]), row["calls"], "it is a new leaf, and its gradient goes nowhere"))
        elif stepped and not row["reaches"] and not any(other["reaches"] for other in event["backwards"]):
            rows.append((site_of(row["site"]), row["calls"], "no parameter of an optimizer is in it"))
    return rows


def _cuts(event: Mapping[str, Any] | None, sources: Sources) -> list[Clue]:
    if event is None:
        return []
    born = event["born"]
    if event["cuts"]:
        cut = event["cuts"][-1]
        why = "under no_grad" if cut["reason"] == "no_grad" else f"{cut['call']} gives a tensor without a graph"
        clues = [sources.clue("cause", cut["site"], why)]
        if cut["reason"] == "no_grad" and cut.get("off") not in (None, cut["site"]):
            clues.append(sources.clue("off", cut["off"], "switches gradients off"))
    else:
        clues = [
            sources.clue("cause", left["site"], f"{left['call']} takes the value out of torch")
            for left in event["left"][-1:]
        ]
    again = born is not None and not any(clue.site == site_of(born) for clue in clues)
    return [*clues, sources.clue("made", born, "makes a new tensor of it, without a graph")] if again else clues


def _cut_remedy(clues: Sequence[Clue]) -> str:
    if not clues:
        return "compute the loss from what the model returns, by operations of torch that have gradients"
    text = clues[0].text
    if "out of torch" in text or "item" in text:
        return "call backward on the tensor itself, and take numbers for people beside it"
    if "no_grad" in text:
        return "run this line with gradients on"
    return "compute the loss from the values before this line, by operations that have gradients"


def silent(run: Run) -> list[tuple[Mapping[str, Any], list[Mapping[str, Any]]]]:
    """Return the optimizers that hold parameters which never had a gradient, with these."""
    rows = _learning(run)["optimizers"]
    return [(row, row["silent"]) for row in rows if row["silent"] and row["steps"] >= _FEWEST]


def _learning(run: Run) -> Mapping[str, Any]:
    """What was told of learning; nothing of anybody where the run did not come to it."""
    return last(run, "learning") or {"optimizers": [], "outside": [], "backwards": []}


def no_gradient(run: Run, flow: Run | None, sources: Sources) -> list[Fault]:
    """Return the parameters that an optimizer holds and that never get a gradient."""
    outside = _learning(run)["outside"]
    faults = []
    for row, parameters in silent(run):
        lost = [p for p in parameters if not p["name"]]
        if lost and (fault := _replaced(row, lost, outside, sources)) is not None:
            faults.append(fault)
            parameters = [p for p in parameters if p["name"]]
        reached = [p for p in parameters if p["reached"]]
        unreached = [p for p in parameters if not p["reached"]]
        if reached and row["silent_count"] == row["parameters"]:
            faults.append(_emptied(row, reached, sources))
        elif unreached:
            faults.append(_unreached(row, unreached, flow, sources))
    return faults


def _names(parameters: Sequence[Mapping[str, Any]]) -> str:
    return listed([p["name"] or f"one of shape {tuple(p['shape'])}" for p in parameters], _SHOWN)


def _emptied(row: Mapping[str, Any], parameters: Sequence[Mapping[str, Any]], sources: Sources) -> Fault:
    site = site_of(row["site"])
    return Fault(
        Kind.NO_GRADIENT,
        f"{row['name']} steps without gradients: backwards make them, and they are gone before each step",
        site,
        (sources.clue("step", site), Clue("parameters", name=_names(parameters))),
        "clear gradients before the backward or after the step, not between the two",
        {"parameters": row["parameters"], "steps": row["steps"]},
    )


def _replaced(
    row: Mapping[str, Any], lost: Sequence[Mapping[str, Any]], outside: Sequence[Mapping[str, Any]], sources: Sources
) -> Fault | None:
    """The optimizer holds parameters that nothing leads to, while others learn that it does not hold."""
    if not outside:
        return None
    site = site_of(row["site"])
    return Fault(
        Kind.NOT_IN_OPTIMIZER,
        f"{row['name']} holds {len(lost)} parameters that the model has no more, and not those that took their place",
        site,
        (sources.clue("step", site), Clue("parameters", name=_names(outside), text="get gradients, in no optimizer")),
        "make the optimizer after the last change of the model's layers",
        {"parameters": len(outside), "steps": row["steps"]},
    )


def _unreached(
    row: Mapping[str, Any], parameters: Sequence[Mapping[str, Any]], flow: Run | None, sources: Sources
) -> Fault:
    site = site_of(row["site"])
    clues = [Clue("parameters", name=_names(parameters), text=f"in none of {row['steps']} steps")]
    names = {p["name"] for p in parameters}
    remedy = "use them in the forward, or take them out of the model"
    event = last(flow, "flow") if flow is not None else None
    if event is not None:
        unused = names & set(event["unused"])
        cuts = [cut for cut in event["cuts"] if names & set(cut["leaves"])]
        # Somebody wrote that one; a choice or a comparison has no gradient to keep.
        cuts.sort(key=lambda cut: cut["reason"] not in _MEANT)
        cut = cuts[0] if cuts else None
        if unused:
            clues.append(Clue("unused", name=", ".join(sorted(unused)[:_SHOWN]), text="no forward uses them"))
        if cut is not None:
            why = "under no_grad" if cut["reason"] == "no_grad" else f"{cut['call']} ends their graph"
            clues.insert(0, sources.clue("cause", cut["site"], why))
            remedy = "let this line keep the graph, if these parameters are to learn"
        elif names - unused and event["left"]:
            left = event["left"][-1]
            clues.insert(0, sources.clue("cause", left["site"], f"{left['call']} takes values out of torch"))
            remedy = "stay in torch from these parameters to the loss"
    return Fault(
        Kind.NO_GRADIENT,
        f"{row['silent_count']} of {row['parameters']} parameters of {row['name']} never get a gradient",
        next((clue.site for clue in clues if clue.site is not None), site),
        tuple(clues),
        remedy,
        {"parameters": row["silent_count"], "of": row["parameters"], "steps": row["steps"]},
    )


def not_in_optimizer(run: Run, sources: Sources) -> list[Fault]:
    """Return the parameters that get gradients, that no optimizer holds and no module registers."""
    event = _learning(run)
    loose = [p for p in event["outside"] if not p["module"]]
    if not loose or not any(row["steps"] >= _FEWEST for row in event["optimizers"]):
        return []
    site = site_of(event["optimizers"][0]["site"])
    return [
        Fault(
            Kind.NOT_IN_OPTIMIZER,
            f"{len(loose)} parameters get gradients, and no optimizer holds them",
            site,
            (
                Clue("parameters", name=_names(loose), text="their modules are registered with no other module"),
                sources.clue("step", site),
            ),
            "hold layers in a torch.nn.ModuleList, ModuleDict or attribute, so that parameters() finds them",
            {"parameters": len(loose)},
        )
    ]


def remarks(run: Run) -> list[str]:
    """Say which registered parameters get gradients for nobody, which are frozen, in case that was meant for a while
    only, and which get no gradients but zeros."""
    told = (
        _outside(run),
        _idle(run, "frozen", "are frozen (requires_grad is False), and stay as they are", 1),
        _idle(run, "zero", "get no gradients but zeros", _FEWEST),
    )
    return [text for text in told if text]


def _outside(run: Run) -> str:
    rows = [p for p in _learning(run)["outside"] if p["module"]]
    # Where an optimizer holds parameters that nothing leads to, those outside are told of already.
    if not rows or any(not p["name"] for _, parameters in silent(run) for p in parameters):
        return ""
    return f"{len(rows)} parameters get gradients and are in no optimizer that steps: {_names(rows)}"


def _idle(run: Run, kind: str, what: str, steps: int) -> str:
    """Say of optimizers with that many ``steps`` which parameters are of a ``kind``, and ``what`` that means."""
    rows = [row for row in _learning(run)["optimizers"] if row.get(kind) and row["steps"] >= steps]
    told = (
        f"{len(row[kind])} of {row['parameters']} parameters of {row['name']} {what}: "
        f"{listed([name for name in row[kind] if name], _SHOWN)}"
        for row in rows
    )
    return "; ".join(text.removesuffix(": ") for text in told)


def never_cleared(run: Run, sources: Sources) -> list[Fault]:
    """Return the optimizers whose gradients are added up over all steps."""
    faults = []
    for row in _learning(run)["optimizers"]:
        if row["uncleared"] < _FEWEST or row["uncleared"] + 1 < row["steps"]:
            continue
        site = site_of(row["site"])
        faults.append(
            Fault(
                Kind.NEVER_CLEARED,
                f"gradients are never cleared: each step of {row['name']} takes those of all steps before it",
                site,
                (sources.clue("step", site, f"{row['uncleared'] + 1} steps with the same gradients, added up"),),
                "call zero_grad() once for each step, before its backward",
                {"steps": row["steps"]},
            )
        )
    return faults
