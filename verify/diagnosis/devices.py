"""Tensors of two devices that meet in one operation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verify.diagnosis.evidence import Sources, last, site_of
from verify.diagnosis.model import Clue, Fault, Kind
from verify.judging.faults import symptoms
from verify.measured.results import Run

_MESSAGES = ("Expected all tensors to be on the same device", "is not on the expected device")


def asked(run: Run) -> bool:
    """Whether ``run`` speaks of devices worth a closer look: it mixes them, or says CUDA where there is none."""
    other = symptoms(run).other
    return bool(run.record.devices) or (other is not None and any(text in other.message for text in _MESSAGES))


def mixed(run: Run | None, sources: Sources) -> list[Fault]:
    """Return the operation that takes tensors of two devices, of the run that looked for it."""
    event = None if run is None else last(run, "mixed")
    if event is None:
        return []
    rows = event["operands"]
    # The one that lies elsewhere has no values, or is on the CPU, where tensors are made unless told otherwise.
    wrong = min(rows, key=lambda row: (row["device"] != "meta", row["device"] != "cpu"))
    here = next(row for row in rows if row["device"] != wrong["device"])
    site = site_of(event["site"])
    operation = str(event["operation"]).strip("_")
    clues = [sources.clue("cause", wrong["born"], f"made it on {wrong['device']}")] if wrong["born"] else []
    clues.append(_operand("carrier", wrong))
    clues.append(_operand("other", here))
    clues.append(sources.clue("consumer", site, f"{operation} takes both"))
    name = wrong["names"][0]["name"] if wrong["names"] else "the tensor"
    return [
        Fault(
            Kind.OTHER_DEVICE,
            f"{operation} takes a tensor on {wrong['device']} and one on {here['device']}",
            site,
            tuple(clues),
            _remedy(name, wrong, here),
            {"operation": operation, "function": "" if site is None else site.function},
        )
    ]


def _operand(role: str, row: Mapping[str, Any]) -> Clue:
    names = row["names"] or (row["near"] if role == "other" else [])
    text = f"is on {row['device']} (argument {row['argument']})"
    return Clue(role, None, "", names[0]["name"], names[0]["function"], text) if names else Clue(role, text=text)


def _remedy(name: str, wrong: Mapping[str, Any], here: Mapping[str, Any]) -> str:
    if wrong["device"] == "meta":
        return f"make {name} on {here['device']}: what is on meta has a shape and no values"
    named = [*here["names"], *here["near"]]
    where = f"{named[0]['name']}.device" if named else repr(here["device"])
    moved = f"{name} = {name}.to({where})" if name != "the tensor" else f"move the tensor by .to({where})"
    return f"{moved}; what a module keeps belongs in register_buffer, so that it goes with the module"
