"""The rule ``input-requires-grad``."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from codemods.graph.model.program import ParsedFile
from codemods.graph.model.trace import Trace
from codemods.proofs.observations import Decision, Observation, Shows, Site
from codemods.proofs.reach import folds
from codemods.proofs.syntax import true
from codemods.rules.base import Rule
from codemods.rules.input_requires_grad.leaves import Leaves
from codemods.source.gates import form
from codemods.terms.edits import DropArgument, Edit, RemoveStatement, ReplaceExpression
from codemods.terms.findings import Finding, Promise
from codemods.terms.spans import Span


class InputRequiresGrad(Rule):
    """Data that asks for gradients which nobody reads.

    Why it hurts: Only parameters learn. A batch, a target, a mask or an initial state with ``requires_grad=True`` makes
    ``backward`` compute one gradient more, that of the input: for a convolution on images that is a whole transposed
    convolution, and a tensor as large as the batch that is kept in ``.grad`` (37 MiB for 64 images of 224 x 224
    pixels). Measured on the first convolution of a ResNet with its first block, 8 images of 64 x 64 pixels on one CPU
    core, ``backward`` takes 1.8 times as long. The habit comes from the time of ``Variable``, and from the belief that
    the input has to require gradients so that the network can learn.

    The rewrite: ``requires_grad=True`` goes from ``Variable(...)`` and from factories such as ``torch.zeros``;
    ``requires_grad_()`` and ``x.requires_grad = True`` go as statements, or become ``x`` within an expression.

    Left alone: tensors whose ``.grad`` is read or that ``autograd.grad``, a hook or an optimizer takes (adversarial
    examples, saliency maps, gradient penalties, latent codes), also in a callee; tensors that reach a reentrant
    ``checkpoint`` or an ``autograd.Function``, whose parameters would silently stop learning, and what asks only where
    checkpoints are in use; the only leaf of a loss on any path (frozen models, an accumulator of a loop that may run no
    iteration); what reaches code that cannot be seen; what no ``backward`` and no model in sight takes; tensors of a
    caller that cannot be seen, and those made elsewhere whose gradient nothing in sight computes: they may be
    parameters that are being thawed.

    Advice: a tensor that outlives the step and looks like a parameter that nobody registered.

    Promise: exact. The parameters' gradients are the same, bit for bit.

    Source: https://docs.pytorch.org/docs/stable/notes/autograd.html#setting-requires-grad
    """

    name = "input-requires-grad"
    promise = Promise.EXACT
    summary = "data asks for gradients that nobody reads"
    gate = (
        form(r"\brequires_grad ?= ?True\b", word="requires_grad"),
        form(r"\brequires_grad_\(\s*(?:\)|True\b|requires_grad\s*=\s*True\b)", word="requires_grad_("),
    )

    # reading a run

    def observe(self, trace: Trace) -> Iterable[Observation]:
        judge = Leaves(trace)
        for leaf in judge.leaves:
            file = leaf.place.frame.file
            shows = judge.judge(leaf) if trace.complete else Shows.UNSURE
            used = judge.lasting(leaf) if shows is Shows.FAULT else None
            steps = [(leaf.place.path, leaf.place.line, "asks for gradients here")]
            steps += [(w.place.path, w.place.line, "computed here, never read") for w in leaf.walks[:1]]
            taken, folded = judge.taken(leaf), any(folds(child) for child in leaf.children)
            yield self.seen(file, leaf.place.node, shows, lasting=used, trail=steps, taken=taken, folds=folded)

    # deciding

    def decide_site(self, site: Site, decision: Decision) -> Iterator[Finding]:
        file = decision.files(site.path) if site.faulty and site.any("taken") else None
        if file is None:
            return
        edit = edit_for(file, site)
        if edit is None:
            return
        lasting = site.any("lasting")
        message = "this tensor requires gradients that nothing reads"
        if lasting:
            message = (
                "this looks like a parameter, but no optimizer owns it: its gradients are computed and nobody "
                "reads them; register it as nn.Parameter, or drop requires_grad"
            )
        yield Finding(
            self.name, site.path, statement_of(file, site),
            Promise.ADVICE if lasting else Promise.EQUIVALENT if site.any("folds") else Promise.EXACT,
            message, "" if lasting else "do not ask for gradients", site.trail,
            () if lasting else ((site.path, edit),), cuts=((None, (site.path, site.span.line)),),
        )  # fmt: skip


RULE = InputRequiresGrad


def statement_of(file: ParsedFile, site: Site) -> Span:
    """The span of the statement around a site."""
    node = file.find(site.span, ast.expr)
    while node is not None and not isinstance(node, ast.stmt):
        node = file.parent(node)
    return site.span if node is None else file.span(node)


def edit_for(file: ParsedFile, site: Site) -> Edit | None:
    """What takes the wish for gradients away, None where it does not stand there as a literal."""
    node = file.find(site.span, ast.Call, ast.Attribute)
    if isinstance(node, ast.Attribute):
        statement = file.parent(node)
        if isinstance(statement, ast.Assign) and statement.targets == [node] and true(statement.value):
            return RemoveStatement(file.span(statement))
        return None
    if not isinstance(node, ast.Call):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        return _without_call(file, node, node.func.value)
    given = [k for k in node.keywords if k.arg == "requires_grad"]
    if len(given) == 1 and true(given[0].value):
        return DropArgument(site.span, "requires_grad")
    return None


def _without_call(file: ParsedFile, call: ast.Call, receiver: ast.expr) -> Edit | None:
    given = [*call.args, *(k.value for k in call.keywords)]
    if not all(map(true, given)):
        return None
    statement = file.parent(call)
    if isinstance(statement, ast.Expr) and isinstance(receiver, (ast.Name, ast.Attribute)):
        return RemoveStatement(file.span(statement))
    text = ast.get_source_segment(file.text, receiver)
    assert text is not None
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        text = f"({text})"
    return ReplaceExpression(file.span(call), text)
