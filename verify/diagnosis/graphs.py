"""Faults of the graph itself: walked twice, changed under it, piling up, built for nobody."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from verify.diagnosis.evidence import Sources, events, last, site_of
from verify.diagnosis.model import Clue, Fault, Kind
from verify.judging.faults import symptoms
from verify.measured.records import Holder
from verify.measured.results import Run
from verify.measured.values import Site

_NOWHERE = "in library code; no line of yours was running"
#: Steps within which a window of carried graphs looks like a pile.
_FEW_STEPS = 12


def second_backwards(run: Run, sources: Sources) -> list[Fault]:
    """Return the backwards of ``run`` that met a freed graph, each place once."""
    found: dict[Any, Fault] = {}
    for event in events(run, "second"):
        fault = _second(event, sources)
        found.setdefault((fault.site, fault.clues[0].site), fault)
    return list(found.values())


def _second(event: Mapping[str, Any], sources: Sources) -> Fault:
    site = site_of(event["site"])
    producer, consumer, freed = (site_of(event[key]) for key in ("producer", "consumer", "freed"))
    operation = event["operation"]
    made = f"made the graph ({operation})" if producer else f"made the graph ({operation}), {_NOWHERE}"
    clues = [sources.clue("cause", producer, made)]
    names = event["names"]
    if names:
        others = tuple(dict.fromkeys(name["name"] for name in names[1:] if name["name"] != names[0]["name"]))
        more = f"also {', '.join(others)}" if others else ""
        clues.append(Clue("carrier", None, "", names[0]["name"], names[0]["function"], more, others))
    elif not event["twice"]:
        clues.append(Clue("carrier", text="no variable holds it any more when the error comes"))
    if event["twice"]:
        clues.append(sources.clue("consumer", site, "walks the same loss again"))
    else:
        clues.append(sources.clue("consumer", consumer, "uses it again" if consumer else f"uses it again, {_NOWHERE}"))
    clues.append(sources.clue("freed by", freed, f"backward {event['freed_index'] + 1}"))
    if event["same"] is False:
        clues.append(Clue("note", text="two runs did not come to the same nodes; names are those of the error"))
    figures = {"backward": event["index"] + 1, "freed_by_backward": event["freed_index"] + 1, "operation": operation}
    return Fault(
        Kind.SECOND_BACKWARD,
        "a backward walks a graph that another one has freed",
        site,
        tuple(clues),
        _second_remedy(event, names[0]["name"] if names else "the tensor"),
        figures,
    )


def _second_remedy(event: Mapping[str, Any], name: str) -> str:
    if event["twice"] and (event["site"] == event["freed"] or not event["fresh"]):
        return "compute the loss anew in every turn; or, if twice is meant, call backward once with the losses added"
    if event["twice"]:
        return "call backward once for each loss, or retain_graph=True in the first call if twice is meant"
    # In one turn, before the parameters are updated, two losses are meant.
    together = event["stepped"] is False and event["producer"] != event["consumer"]
    if not event["crosses"] or together:
        return f"both losses are built on {name}: add them and call backward once; or retain_graph=True in the first"
    if event["producer"] == event["consumer"]:
        return f"cut the graph where the next step begins: use {name}.detach(), of each tensor in it"
    if event["site"] != event["freed"] and event["fresh"]:
        return (
            f"two losses of one step walk {name}, with an optimizer's step between them: use {name}.detach() in the "
            "second where it is to learn nothing from it; or build it anew for it"
        )
    return (
        f"build {name} anew in every step, with a graph of its own; or detach it, if nothing that it is made of learns"
    )


def changes_in_place(run: Run, sources: Sources) -> list[Fault]:
    """Return the backwards of ``run`` that met a saved tensor which had been changed, each place once."""
    found: dict[Any, Fault] = {}
    for event in events(run, "inplace"):
        hit = event["hits"][0]
        site, reader, changed = site_of(event["site"]), site_of(hit["reader"]), site_of(hit["changed"])
        name = hit["names"][0]["name"] if hit["names"] else ""
        clues = [
            sources.clue("cause", changed, f"changed it in place ({_operation(hit['by'])})")
            if changed
            else Clue("cause", text="the line that changed it was not seen"),
            sources.clue("saved by", reader, f"{hit['operation']} keeps its {hit['operand']} for the backward"),
        ]
        clues[1:1] = _callers(hit.get("through", ()), site, sources)
        if name:
            clues.insert(1, Clue("carrier", None, "", name, hit["names"][0]["function"]))
        versions = {"version": hit["version"], "expected": hit["expected"], "operation": hit["operation"]}
        fault = Fault(
            Kind.CHANGED_IN_PLACE,
            "a tensor that the backward needs was changed in place",
            site,
            tuple(clues),
            _change_remedy(hit, name or "the tensor", sources.text(changed)),
            versions,
        )
        found.setdefault((fault.site, changed, reader), fault)
    return list(found.values())


def _callers(through: Iterable[Any], site: Site | None, sources: Sources) -> list[Clue]:
    """The line beside the backward at ``site`` from which the change was called, where it was made further inside."""
    beside = (one for one in map(site_of, through) if one is not None and site is not None)
    found = next((one for one in beside if site and (one.path, one.function) == (site.path, site.function)), None)
    return [] if found is None else [sources.clue("called from", found)]


def _operation(name: Any) -> str:
    return str(name).rpartition("::")[2].partition(".")[0] or "an operation"


def _change_remedy(hit: Mapping[str, Any], name: str, source: str) -> str:
    by = hit["by"]
    if hit["old"]:
        return "the graph of an earlier step is walked again: detach what is carried from step to step"
    if ".step(" in source:
        return (
            "build the later loss after the step, or step after the last backward with gradients of its own loss alone"
        )
    if by:
        return f"write the result to a new tensor instead of into {name}, or change it after the backward"
    return f"do not change {name} between the forward and the backward"


def growing_graphs(run: Run, sources: Sources) -> list[Fault]:
    """Return the growth of the graph, where nodes of many steps that are over stay alive."""
    seen = symptoms(run)
    census = run.record.census
    if not seen.leak:
        return []
    steps = max(len(run.record.steps), len(run.record.backwards))
    if census is not None and census.boundaries < _FEW_STEPS <= steps:
        return []
    again = _walked_again(run)
    clues = []
    # Of those that hold equally many steps the one with the fewest nodes holds what the others are built on.
    carriers = sorted(seen.holders, key=lambda holder: (-holder.births, holder.nodes))
    for holder in carriers[:2]:
        text = f"{holder.nodes} nodes of {holder.births} steps"
        clues.append(Clue("carrier", None, "", holder.name, holder.function, text))
        if holder.made is not None:
            clues.append(sources.clue("cause", holder.made, "made the newest of it"))
    if again is not None:
        site, share = again
        clues.append(sources.clue("consumer", site, f"walks old steps again: {share} of the nodes of its last call"))
    return [
        Fault(
            Kind.GROWING_GRAPH,
            f"the graph grows by {seen.slope:.0f} nodes a step",
            next((clue.site for clue in clues if clue.site is not None), None),
            tuple(clues),
            _growth_remedy(carriers[0] if carriers else None, again is not None),
            {"nodes_per_step": round(seen.slope, 1), "nodes": seen.live[-1] if seen.live else 0},
        )
    ]


def _growth_remedy(holder: Holder | None, walked: bool) -> str:
    if holder is not None and not holder.function:
        return f"no variable of yours holds it ({holder.name}): hand over values without a graph, or clear it there"
    plain = "it" if holder is None else holder.name.replace("[*]", "")
    if walked:
        return f"cut the graph where the next step begins: use {plain}.detach(), and drop retain_graph=True"
    return f"keep numbers in {plain}, not graphs: .item() of a loss, .detach() of any other tensor"


def _walked_again(run: Run) -> tuple[Any, str] | None:
    """The backward that walks nodes which earlier ones walked, more each time, and the share of its last call."""
    event = last(run, "walks")
    rows = {} if event is None else _by_site(event["backwards"])
    for site, counts in rows.items():
        again = [old for _, old in counts]
        if len(again) >= 4 and again[-1] > again[len(again) // 2] > again[1]:
            fresh, old = counts[-1]
            return site_of(list(site)), f"{old} of {fresh + old}"
    return None


def _by_site(rows: list[Any]) -> dict[Any, list[tuple[int, int]]]:
    found: dict[Any, list[tuple[int, int]]] = {}
    for site, fresh, again in rows:
        found.setdefault(tuple(site or ()), []).append((fresh, again))
    return found


def unused_forwards(run: Run, sources: Sources, ungraded: Sequence[Fault] = ()) -> list[Fault]:
    """Return the lines that call a model with gradients on, and whose graphs no backward ever uses.

    ``ungraded``: parameters without a gradient. Where their graph is cut off, what was made of it has no use; that is
    no fault of its own.
    """
    if not run.record.backwards:
        return []
    causes = [clue.site for fault in ungraded if (clue := fault.clue("cause")) is not None and clue.site is not None]
    cut = {(site.path, site.function) for site in causes}
    return [
        Fault(
            Kind.UNUSED_FORWARDS,
            f"{wasted.calls} forwards build a graph that no backward uses",
            wasted.site,
            (sources.clue("cause", wasted.site, f"up to {wasted.peak} such graphs alive at once"),),
            "put it under torch.no_grad(), or torch.inference_mode()",
            {"calls": wasted.calls, "alive_at_once": wasted.peak},
        )
        for wasted in symptoms(run).wasted
        if wasted.site is None or (wasted.site.path, wasted.site.function) not in cut
    ]
