"""What events of the probe say: a method for each that :mod:`verify.measured.records` describes."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from verify.measured.records import (
    Backward,
    Caught,
    Census,
    FileKind,
    Forwards,
    Holder,
    Loss,
    Output,
    Rates,
    Record,
    Returned,
    State,
    Step,
    Tensors,
    Variables,
    Waiting,
    Written,
)
from verify.measured.steered import Driven, Knob, KnobKind, Observed, Stop, Stopped
from verify.measured.values import Site, Trouble, TroubleKind, Values

#: Events that are kept as they come: the list of the record that they go to, and the one field that is kept.
_KEPT = {
    "note": ("notes", "text"),
    "device": ("devices", "what"),
    "unrepeatable": ("unrepeatable", "what"),
    "standin": ("standins", ""),
    "made": ("made", ""),
    "capped": ("capped", ""),
    "left": ("left", ""),
    "diagnosis": ("diagnoses", ""),
}
#: Events by which a function shows what it did.
_TELLING = ("output", "backward", "step", "printed")


class Reading:
    """A record in the making, and what later events need of earlier ones."""

    def __init__(self) -> None:
        self.record = Record()
        self.described: dict[Any, Tensors] = {}
        self.rates: dict[int, Rates] = {}
        self.driving = False
        self.told = 0

    def read(self, kind: Any, event: dict[str, Any]) -> None:
        """Take an event in; what is not known is left out."""
        self.told += kind in _TELLING and bool(event.get("told", True))
        reader = _READERS.get(str(kind))
        if reader is not None:
            reader(self, event)
        elif kind in _KEPT:
            name, field = _KEPT[kind]
            getattr(self.record, name).append(event[field] if field else event)

    # the run as a whole

    def start(self, event: dict[str, Any]) -> None:
        self.record.about = event
        self.record.process = str(event.get("process", "main"))

    def error(self, event: dict[str, Any]) -> None:
        self.record.error = _trouble(event)
        self.record.error_site = _site(event.get("site"))
        self.record.traceback = event.get("traceback", "")
        self.record.missing = event.get("missing")

    def end(self, event: dict[str, Any]) -> None:
        self.record.end, self.record.status = event["reason"], event.get("status")
        self.record.ended = float(event.get("time", math.nan))
        self.record.stack = tuple(Site(*site) for site in event.get("stack", ()))

    def state(self, event: dict[str, Any]) -> None:
        self.record.state = _state(event)

    def variables(self, event: dict[str, Any]) -> None:
        self.record.variables = _variables(event)

    def carried(self, event: dict[str, Any]) -> None:
        path, name = event["name"]
        self.record.carried[path, name, event["call"]] = _variables(event)

    def census(self, event: dict[str, Any]) -> None:
        self.record.census = Census(
            event["boundaries"],
            {int(birth): nodes for birth, nodes in event["ages"].items()},
            event["leak"],
            tuple(
                Holder(h["name"], h["function"], h["nodes"], h["births"], _site(h.get("made")))
                for h in event["holders"]
            ),
        )

    def loaded(self, event: dict[str, Any]) -> None:
        self.record.loaded = tuple(event["paths"])
        self.record.libraries = tuple(event.get("libraries", ()))

    def overhead(self, event: dict[str, Any]) -> None:
        self.record.overhead = event["seconds"]

    def held(self, event: dict[str, Any]) -> None:
        self.record.held = True

    # steps

    def backward(self, event: dict[str, Any]) -> None:
        self.record.backwards.append(_backward(event, len(self.record.steps)))

    def step(self, event: dict[str, Any]) -> None:
        if event.get("rates") is not None:
            self.rates[event["optimizer"]] = _rates(event["rates"])
        self.record.steps.append(_step(event, self.rates, self.described))

    def tensors(self, event: dict[str, Any]) -> None:
        self.record.trained.update(event.get("made", ()))
        initial = _values_if(event.get("initial"))
        self.described[event["of"]] = Tensors(tuple(event["names"]), tuple(event["types"]), initial)

    def precision(self, event: dict[str, Any]) -> None:
        self.record.precision = event["type"]

    def output(self, event: dict[str, Any]) -> None:
        site = _site(event.get("site"))
        form = None if event.get("form") is None else tuple(event["form"])
        place, steps = (site, event["line"], event["call"]), len(self.record.steps)
        self.record.outputs.append(
            Output(
                *place,
                _values(event),
                steps,
                form,
                event.get("graphs", ""),
                event.get("module", ""),
                event.get("thread", False),
            )
        )

    def trains(self, event: dict[str, Any]) -> None:
        self.record.outputs = [each for each in self.record.outputs if each.line != event["line"]]

    def returned(self, event: dict[str, Any]) -> None:
        path, name = event["name"]
        self.record.returned.append(Returned(path, name, event["call"], _values(event), tuple(event["form"])))

    def forwards(self, event: dict[str, Any]) -> None:
        self.record.forwards = [Forwards(_site(f["site"]), f["calls"], f["used"], f["peak"]) for f in event["sites"]]

    def raised(self, event: dict[str, Any]) -> None:
        self.caught(event, forward=True)

    def caught(self, event: dict[str, Any], *, forward: bool = False) -> None:
        site, error = _site(event.get("site")), _trouble(event["error"])
        self.record.caught.append(Caught(site, error, len(self.record.steps), len(self.record.backwards), forward))

    # what comes out, and which lines ran

    def printed(self, event: dict[str, Any]) -> None:
        self.record.printed.setdefault(event["stream"], []).append(event["text"])

    def file(self, event: dict[str, Any]) -> None:
        self.record.files.append(_written(event))

    def changed(self, event: dict[str, Any]) -> None:
        self.record.changed.update(event["paths"])

    def reached(self, event: dict[str, Any]) -> None:
        line = (event["path"], event["line"])
        if self.driving and line not in self.record.reached:
            self.record.alone.add(line)
        self.record.reached.add(line)
        self.record.reached_after.setdefault(line, len(self.record.steps))

    def part(self, event: dict[str, Any]) -> None:
        self.record.parts_after.setdefault(tuple(event["place"]), len(self.record.steps))

    # what the probe did of its own

    def seed(self, event: dict[str, Any]) -> None:
        self.record.seeds.append((event["generator"], event["value"]))
        self.record.own_seeds.append((event["generator"], event.get("instead", event["value"])))

    def invented(self, event: dict[str, Any]) -> None:
        self.record.invented.append(_site(event["site"]))

    def knob(self, event: dict[str, Any]) -> None:
        self.record.knobs.append(Knob(KnobKind(event["kind"]), event["path"], event["line"], event["turns"]))

    def observed(self, event: dict[str, Any]) -> None:
        told = event["begun"], event["whole"], _values(event), tuple(event["form"]), event["graphs"]
        self.record.observed.append(Observed(event["place"], event["call"], *told))

    def stopped(self, event: dict[str, Any]) -> None:
        frames = tuple(
            Stop(
                frame["path"],
                tuple(frame["span"]),
                tuple((name, None if origin is None else tuple(origin)) for name, origin in frame["hollow"]),
            )
            for frame in event["frames"]
            if frame["span"] is not None
        )
        # Where the innermost place is not known, no other may be taken for it.
        known = frames if len(frames) == len(event["frames"]) else ()
        told = event["graph"], event["missing"], event["why"], event.get("absent", False), event.get("walk", False)
        self.record.stopped = Stopped(known, *told)

    def drive(self, event: dict[str, Any]) -> None:
        self.driving, self.told = True, 0

    def driven(self, event: dict[str, Any]) -> None:
        self.record.driven.append(_driven(event, self.told))
        self.driving = False


_READERS: dict[str, Callable[[Reading, dict[str, Any]], None]] = {
    name: reader for name, reader in vars(Reading).items() if not name.startswith("_") and name != "read"
}


def _driven(event: Mapping[str, Any], told: int) -> Driven:
    error = event["error"]
    trouble, site = (None, None) if error is None else (_trouble(error), _site(error.get("site")))
    place = event["path"], event["name"]
    return Driven(*place, event["how"], event["call"], event["reason"], trouble, site, told, event.get("recipe"))


def _backward(event: Mapping[str, Any], steps_before: int) -> Backward:
    error = event.get("error")
    return Backward(
        **_fields(event, "index call time rng retain create grad nodes live seconds bytes peak"),
        site=_site(event.get("site")),
        losses=tuple(
            Loss(None if loss["value"] is None else float.fromhex(loss["value"]), loss["digest"], loss["numel"])
            for loss in event["losses"]
        ),
        error=None if error is None else _trouble(error),
        steps_before=steps_before,
        waiting=_waiting(event),
    )


def _step(event: Mapping[str, Any], rates: Mapping[int, Rates], tensors: Mapping[Any, Tensors]) -> Step:
    names = tensors.get("buffers")
    return Step(
        **_fields(event, "optimizer name call time live bytes peak"),
        site=_site(event.get("site")),
        params=_values(event["params"]),
        grads=_values_if(event.get("grads")),
        rates=rates.get(event["optimizer"], ()),
        rng=event.get("rng", ""),
        buffers=_values_if(event.get("buffers")),
        tensors=tensors.get(event["optimizer"]),
        buffer_names=names.names if names is not None else (),
        waiting=_waiting(event),
    )


def _fields(event: Mapping[str, Any], names: str) -> dict[str, Any]:
    """The fields that are taken as they are written."""
    return {name: event[name] for name in names.split()}


def _written(event: Mapping[str, Any]) -> Written:
    kind = FileKind(event["kind"])
    return Written(
        event["path"],
        kind,
        tuple(event.get("names", ())),
        _values(event) if kind is FileKind.TENSORS else Values(event.get("digest", ""), 0),
        _numbers(event),
        tuple(event.get("lines", ())),
        event.get("texts", {}),
        event.get("kinds", {}),
    )


def _numbers(event: Mapping[str, Any]) -> dict[str, float]:
    return {name: float.fromhex(number) for name, number in event.get("numbers", {}).items()}


def _variables(event: Mapping[str, Any]) -> Variables:
    return Variables(tuple(event["names"]), _values(event), _numbers(event), event.get("texts", {}))


def _state(event: Mapping[str, Any]) -> State:
    return State(
        rng=event["rng"],
        names=tuple(event["names"]),
        parameters=_values(event["parameters"]),
        buffers=_values_if(event.get("buffers")),
        rates=tuple(_rates(groups) for groups in event["rates"] if groups is not None),
        waiting=_waiting(event),
    )


def _values(value: Mapping[str, Any]) -> Values:
    sums = base64.b64decode(value.get("sums", ""))
    return Values(value["digest"], value["count"], sums, value.get("missing", 0))


def _values_if(value: Mapping[str, Any] | None) -> Values | None:
    return None if value is None else _values(value)


def _waiting(event: Mapping[str, Any]) -> tuple[Waiting, ...]:
    return tuple(Waiting(entry["made"], entry["name"], _values(entry)) for entry in event.get("waiting", ()))


def _rates(groups: Iterable[Mapping[str, str]]) -> Rates:
    return tuple({name: float.fromhex(value) for name, value in group.items()} for group in groups)


def _site(value: Any) -> Site | None:
    return None if value is None else Site(value[0], value[1], value[2])


def _trouble(value: Mapping[str, Any]) -> Trouble:
    return Trouble(value["type"], value["message"], TroubleKind(value.get("kind", "other")))
