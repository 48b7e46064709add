"""What walks the graph, hooks into it, and switches its recording on and off."""

from __future__ import annotations

from codemods.terms.words import words

DETACHING = words("detach detach_")

HOOKING_METHODS = words("register_hook register_prehook register_post_accumulate_grad_hook retain_grad")
"""Methods of tensors and of nodes of the graph that have something done with each gradient (docs)."""

GRAD_MODE_QUESTIONS = words("torch.is_grad_enabled torch.is_inference_mode_enabled torch._C.is_grad_enabled")
"""Functions that ask whether gradients are on (docs)."""

GRAD_OFF = words(
    """
    torch.no_grad torch.inference_mode torch.autograd.no_grad torch.autograd.grad_mode.no_grad
    torch.autograd.inference_mode
    """
)

GRAD_ON = words("torch.enable_grad torch.autograd.enable_grad torch.autograd.grad_mode.enable_grad")

GRAD_SWITCH = words(
    """
    torch.set_grad_enabled torch.autograd.set_grad_enabled torch.autograd.grad_mode.set_grad_enabled
    torch._C._set_grad_enabled
    """
)
"""What switches recording off and on (docs: torch.autograd.grad_mode)."""

BACKWARD_FUNCTIONS = words("torch.autograd.backward torch.autograd.variable.backward")

GRAD_FUNCTIONS = words("torch.autograd.grad torch.autograd.functional.jacobian torch.autograd.functional.hessian")

FUNCTIONAL_GRADIENTS = (
    "torch.autograd.functional.",
    "torch.func.",
    "functorch.",
    "higher.",
    "torch.autograd.gradcheck",
)

BACKWARD_METHODS = words("backward manual_backward")
"""Methods of wrappers (accelerate, DeepSpeed, Lightning, Fabric) that back-propagate their argument (docs)."""

CHECKPOINT = "torch.utils.checkpoint.checkpoint"

OF_CHECKPOINTS = words("use_reentrant preserve_rng_state context_fn determinism_check debug early_stop")
"""Arguments that a checkpoint takes itself and does not hand to its function (docs)."""

PARAMETRIZATION_CACHES = words("torch.nn.utils.parametrize.cached")
"""Contexts in which all forwards share one graph from a weight to what its parametrization makes of it (docs)."""

WEIGHT_CACHES = words(
    """
    torch.autocast torch.amp.autocast torch.cuda.amp.autocast torch.cpu.amp.autocast
    torch.cuda.amp.autocast_mode.autocast torch.cpu.amp.autocast_mode.autocast torch.amp.autocast_mode.autocast
    torch.nn.utils.parametrize.cached
    """
)
"""Contexts in which the first forward leaves what it makes of a weight to the others: one without gradients leaves them
no graph (pytorch/pytorch#112583, which torch 2.13 has mended for ``autocast``; ``cached``: ran on 2.13)."""
