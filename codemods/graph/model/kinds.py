"""The vocabulary of a trace: what was done about gradients, what reads a value, and how a value gets out of sight."""

from __future__ import annotations

from enum import Enum


class Marked(Enum):
    """What a :class:`~codemods.graph.model.trace.Mark` tells of gradients, or of parameters."""

    CLEARED = "zero_grad"
    GRADIENT_READ = "grad-read"
    GRADIENTS_CHANGED = "gradients-changed"
    PARAMETERS_CHANGED = "parameter-changed"
    PARAMETERS_LOADED = "parameters-loaded"
    STATE_TAKEN = "state-taken"
    """``state_dict()`` of a module was called."""
    DATA_WRITTEN = "data-written"
    """Values were written through ``.data``, which no backward notices."""
    OPTIMIZED = "optimized"
    """An optimizer was made."""
    HOOK = "hook"
    MODULE_HOOK = "module-hook"
    SAVED_TENSORS_HOOKS = "saved-hooks"
    CUSTOM_FUNCTION = "custom-function"
    """An ``autograd.Function`` was applied."""
    OWN_BACKWARD = "own-backward"
    """The same, where its ``backward`` is of the tree."""
    RECOMPUTED = "recomputed"
    """A checkpoint runs its function once more in the backward."""
    REENTRANT_CHECKPOINT = "reentrant-checkpoint"
    FUNCTIONAL_GRADIENT = "functional-gradient"
    GRAPH_READ = "graph-read"
    REQUIRES_GRAD_READ = "requires_grad-read"
    IS_LEAF_READ = "is_leaf-read"
    GRAD_MODE_READ = "grad-mode-read"
    REQUIRES_GRAD = "requires_grad"
    """An input was made to ask for gradients."""
    ENABLE_GRAD = "enable_grad"
    SET_GRAD_ENABLED = "set_grad_enabled"
    HANDED_OUT = "handed-out"
    """Code that cannot be seen got a module, parameters or an optimizer."""
    UNSEEN_MODULE_METHOD = "unseen-module-method"
    PADDED = "padded"
    ERROR_CAUGHT = "error-caught"
    """The code counts on an error that only tensors with a graph make."""


class NodeKind(Enum):
    """What a node of the graph stands for."""

    LEAF = "leaf"
    """A parameter, or an input that asks for gradients."""
    OP = "op"
    MODULE = "module"
    """The output of a module."""
    PHI = "phi"
    """Either of its parents: two paths meet here."""
    PART = "part"
    """An element or attribute of something opaque."""
    CALL = "call"
    """A call that cannot be seen."""
    ARGUMENT = "argument"
    """An argument that nobody in the tree passes: it may be attached outside."""


class WalkKind(Enum):
    """What walked a graph."""

    BACKWARD = "backward"
    GRAD = "grad"
    """``autograd.grad``."""


class CarrierKind(Enum):
    """What holds a value under a name."""

    LOCAL = "local"
    GLOBAL = "global"
    ATTRIBUTE = "attribute"
    ELEMENT = "element"
    HELD = "held"
    """An element that became what it is after it was put there."""


class UnseenKind(Enum):
    """Where a graph may come from that nothing here tells of."""

    CALL = "call"
    """Code that cannot be seen made the value."""
    ARGUMENT = "argument"
    """An argument of a function that nobody in the tree calls."""
    ATTRIBUTE = "attribute"
    """An attribute that nothing in sight sets."""
    LOST = "lost"
    """The simulation does not know what lies there: perhaps a graph that it knows."""


class AliasForm(Enum):
    """What makes a tensor without history that shares its memory with another."""

    VARIABLE = "variable"
    DATA = "data"
    DETACH = "detach"


class PlainKind(Enum):
    """What a value is that is certainly no tensor."""

    NUMBER = "number"
    TEXT = "text"
    ARRAY = "array"
    RANGE = "range"


class SequenceKind(Enum):
    """What holds several values in an order, or is gone through like that."""

    LIST = "list"
    TUPLE = "tuple"
    SET = "set"
    FROZEN_SET = "frozenset"
    DEQUE = "deque"
    GENERATOR = "generator"
    TURNS = "turns"
    """What only a loop reads: ``enumerate``, ``zip``, a view of a dict."""
    MODULES = "modules"
    """The children of a module."""


class FunctionKind(Enum):
    """What calling a function of a class means."""

    FUNCTION = "function"
    STATIC_METHOD = "staticmethod"
    CLASS_METHOD = "classmethod"
    PROPERTY = "property"
    SETTER = "setter"
    DELETER = "deleter"


class Altered(Enum):
    """How a tensor was changed in place."""

    VALUES = "values"
    ATTACHED = "attached"
    """Values with a history came in."""
    SHAPE = "shape"
    """The object itself changed, and not its memory."""
    REQUIRES_GRAD = "requires_grad"
    VOLATILE = "volatile"
    UNSEEN = "unseen"
    """Code that cannot be seen got it, and may write to it."""


#: What was written into the memory itself.
WRITTEN = frozenset({Altered.VALUES, Altered.ATTACHED})


class OldKind(Enum):
    """What today's PyTorch wants in another form."""

    CALL = "call"
    """A function or class that has another name, or is gone."""
    BASE = "base"
    """The same, as the base of a class."""
    LOSS = "loss"
    """``size_average`` or ``reduce`` of a loss."""
    VERBOSE = "verbose"
    """``verbose`` of a scheduler."""
    METHOD = "method"
    FIRST_ELEMENT = "first-element"
    """``loss.data[0]``."""
    TYPE_IS_VARIABLE = "type-is-variable"


class UseKind(Enum):
    """What reads a value and makes no node of it."""

    FORMAT = "format"
    TRUTH = "truth"
    COMPARE = "compare"
    SCHEDULER = "scheduler"
    DETACH = "detach"
    DATA = "data"
    ATTRIBUTE = "attribute"
    METHOD = "method"
    TORCH = "torch"
    """A function of torch, which gives something other than a tensor with a graph."""
    CALL = "call"
    """A function with a public name."""
    PASSED = "passed"
    """A call of which nothing else is noted."""
    HISTORY_READ = "history-read"
    REFUSED = "refused"
    """It raises where there is a graph, and code catches that."""
    IDENTITY = "identity"
    """Code asks which object it is, as a set and the keys of a dict do, or gives it attributes: what is detached is
    another one."""
    GRADIENT_READ = "gradient-read"
    """Its ``.grad`` is read, or it gets a hook."""
    UNSEEN_CALL = "unseen"
    """A function that cannot be seen, for what it returns."""
    CALLED_UNSEEN = "called-unseen"
    """A module that cannot be seen."""
    STORED_UNSEEN = "stored-unseen"
    """It was put into something that cannot be seen."""


class Escape(Enum):
    """How a value goes where code that cannot be seen may back-propagate it; the text completes a sentence."""

    WEIGHT_LEFT = "its weight stays behind, and is read"
    WALKED_ELSEWHERE = "walked at another time"
    BASE_METHOD = "a method of a base that cannot be seen"
    SUBCLASS_METHOD = "a method that only subclasses have"
    NOT_ENTERED = "a call that was not entered"
    DECORATOR_HANDS_OUT = "what decorates the function may hand it out again"
    DECORATOR_KEEPS = "what decorates the function may keep what it returns"
    RAISED = "raised"
    STORED_ANYWHERE = "stored where it cannot be followed"
    STORED_UNSEEN = "stored on an object that cannot be seen"
    INTO_ARRAY = "put into an array"
    SENT = "sent to a generator"
    YIELDED = "yielded to a caller that cannot be seen"
    RETURNED_TO_CALLER = "returned to a caller that cannot be seen"
    RETURNED = "returned to code that cannot be seen"
    METACLASS = "what makes the class may use it"
    EVALUATED_TEXT = "code in a text may use it"
    HOOK = "a hook that cannot be seen gets it"
    UNSEEN_BACKWARD = "a backward that cannot be seen gets it"
    COROUTINE = "what runs the coroutine gets it"
    FUNCTIONAL_GRADIENT = "a functional gradient may use it"
    CALLED_LATER = "it may be back-propagated later"
    GRAPH_READ = "its grad_fn is read"


class GradSetting(Enum):
    """What a decorator of a function sets while it runs; the value: whether gradients are on, None if unknown."""

    UNSET = ""
    OFF = False
    ON = True
    UNKNOWN = None


class ModuleMode(Enum):
    """What was last done with a module as a whole: ``eval()``, ``train()``, or a state dict was loaded into it."""

    EVAL = "eval"
    TRAIN = "train"
    LOADED = "loaded"
