"""The rule ``anomaly-mode-left-on``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Ran, Trace
from codemods.proofs.observations import Observation
from codemods.proofs.syntax import true
from codemods.proofs.turns import loops_around
from codemods.rules._sites import SiteRule, under
from codemods.terms.edits import RemoveStatement
from codemods.terms.findings import Promise

_SETTING = frozenset({"torch.autograd.set_detect_anomaly", "torch.autograd.anomaly_mode.set_detect_anomaly"})
_BLOCK = frozenset({"torch.autograd.detect_anomaly", "torch.autograd.anomaly_mode.detect_anomaly"})


class AnomalyModeLeftOn(SiteRule):
    """Anomaly detection that is on for the whole of a training run.

    Why it hurts: it is a tool for finding a fault. With it, each operation of a forward records the stack of Python
    calls that led to it, and each backward looks for NaN in every gradient. Of a perceptron with three layers (batches
    of 64, torch 2.13, CPU) a step took 2.4 to 2.9 times as long. Larger layers hide more of it, many small operations
    show more.

    Left alone: what an option, a condition or a variable decides; what is switched off again; blocks around less than
    a loop of steps; programs in which no optimizer is seen to step in a loop.

    The rewrite: the statement that switches it on goes.

    Advice: a ``with`` block of anomaly detection is named and left. Let an option decide what is needed now and then.

    Promise: behaviour. It may be meant: with it a gradient that is NaN raises. Where none is NaN, the parameters are
    updated bit for bit as before.

    Source: https://docs.pytorch.org/docs/stable/autograd.html#anomaly-detection
    """

    name = "anomaly-mode-left-on"
    promise = Promise.BEHAVIOUR
    summary = "anomaly detection slows every step of a training run"
    gate = (b".backward(", b"autograd.backward(")

    def observe(self, trace: Trace) -> Iterable[Observation]:
        if not any(path in _SETTING or path in _BLOCK for path in trace.called.values()):
            return
        setting = [call for call, path in trace.called.items() if path in _SETTING]
        for ran in trace.ran:
            file = ran.frame.file
            for call in _switched(trace, ran):
                later = trace.called[call] in _SETTING
                span = range(ran.first, ran.last if not later else trace.ran[-1].last)
                around = loops_around(ran.place)
                steps = [s for s in trace.steps if s.place.clock in span and loops_around(s.place) != around]
                if (
                    not trace.complete
                    or not steps
                    or not _on(call)
                    or (later and len(setting) > 1)
                    or _decided(file, call)
                ):
                    yield self.fine(file, call)
                    continue
                yield self.fault(
                    file,
                    call,
                    "anomaly detection is on for the whole training run: every operation records its stack, every "
                    "backward looks for NaN",
                    "remove it once the bug is found, or put it behind an option",
                    (steps[0].place, "each of these steps pays for it"),
                    edits=[RemoveStatement(file.span(ran.statement))] if isinstance(ran.statement, ast.Expr) else [],
                )


def _switched(trace: Trace, ran: Ran) -> Iterator[ast.Call]:
    """The calls by which a statement switches it on, or off."""
    statement = ran.statement
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        if trace.called.get(statement.value) in _SETTING:
            yield statement.value
    elif isinstance(statement, ast.With):
        for item in statement.items:
            call = item.context_expr
            if isinstance(call, ast.Call) and trace.called.get(call) in _BLOCK:
                yield call


def _on(call: ast.Call) -> bool:
    """Whether it is switched on whatever happens."""
    given = [*call.args[:1], *(k.value for k in call.keywords if k.arg == "mode")]
    return true(given[0]) if given else isinstance(call.func, (ast.Attribute, ast.Name)) and not call.keywords


def _decided(file: ParsedFile, call: ast.Call) -> bool:
    """Whether something decides if it comes to this."""
    return under(file, call, ast.If, ast.Try, ast.ExceptHandler, ast.Match, ast.IfExp)


RULE = AnomalyModeLeftOn
