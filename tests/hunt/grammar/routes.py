"""Ways for a value to get from one place to another, attached as it was: containers, calls, indexing, torch's own.

A route is a few statements that bind ``{o}`` from ``{v}``, with what they need beside them.
"""

from __future__ import annotations

from typing import NamedTuple

from tests.hunt.grammar.sketch import Sketch


class Route(NamedTuple):
    """``text`` binds ``{o}`` to what ``{v}`` was; ``head`` stands at the top level, ``need`` are imports."""

    text: str
    need: tuple[str, ...] = ()
    head: str = ""


ANY: dict[str, Route] = {
    "name": Route("{o} = {v}"),
    "tuple": Route("{o}, _ = ({v}, 1)"),
    "list item": Route("{o} = [{v}][0]"),
    "last item": Route("{o} = [1, {v}][-1]"),
    "unknown place, unpacked": Route(
        "_held = [None]\n_held[random.randrange(1)] = {v}\n{o}, = _held", ("import random",)
    ),
    "unknown place, first of": Route(
        "_held = [None]\n_held[random.randrange(1)] = {v}\n{o} = next(iter(_held))", ("import random",)
    ),
    "unknown place, starred": Route(
        "_held = [None, 1]\n_held[random.randrange(1)] = {v}\n{o}, *_ = _held", ("import random",)
    ),
    "unknown place, gone through": Route(
        "_held = [None]\n_held[random.randrange(1)] = {v}\nfor {o} in _held:\n    pass", ("import random",)
    ),
    "unknown key, unpacked": Route(
        "_held = {{0: None}}\n_held[random.randrange(1)] = {v}\n{o}, = _held.values()", ("import random",)
    ),
    "unknown key, got": Route(
        "_held = {{1: None}}\n_held[random.randrange(1)] = {v}\n{o} = _held.get(0)", ("import random",)
    ),
    "inserted anywhere": Route(
        "_held = [1]\n_held.insert(random.randrange(1), {v})\n{o}, _ = _held", ("import random",)
    ),
    "turned round": Route("{o}, _ = [1, {v}][::-1]"),
    "turned round in place": Route("_held = [1, {v}]\n_held.reverse()\n{o}, _ = _held"),
    "sorted pairs": Route("(_, {o}), _ = sorted([(1, None), (0, {v})], key=lambda pair: pair[0])"),
    "groups of an optimizer": Route(
        "_inner = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)\n"
        '_inner.param_groups[0]["held"] = {v}\nfor _group in _inner.param_groups:\n    {o} = _group["held"]'
    ),
    "state of an optimizer": Route(
        "_inner = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)\n"
        '_inner.state["held"] = {v}\n{o} = _inner.state["held"]'
    ),
    "dict item": Route('{o} = {{"a": {v}}}["a"]'),
    "dict get": Route('{o} = dict(a={v}).get("a")'),
    "dict values": Route("{o} = next(iter(dict(a={v}).values()))"),
    "dict items": Route("for _key, {o} in dict(a={v}).items():\n    pass"),
    "dict union": Route('{o} = ({{"a": 1}} | {{"a": {v}}})["a"]'),
    "dict pop": Route('{o} = {{"a": {v}}}.pop("a")'),
    "setdefault": Route('{o} = {{}}.setdefault("a", {v})'),
    "namespace": Route("{o} = types.SimpleNamespace(a={v}).a", ("import types",)),
    "named tuple": Route(
        "{o} = Pair({v}, 2).first",
        ("import typing",),
        "class Pair(typing.NamedTuple):\n    first: object\n    second: object",
    ),
    "unpacked named tuple": Route(
        "{o}, _ = Pair({v}, 2)",
        ("import typing",),
        "class Pair(typing.NamedTuple):\n    first: object\n    second: object",
    ),
    "replaced named tuple": Route(
        "{o} = Pair(1, 2)._replace(first={v}).first",
        ("import typing",),
        "class Pair(typing.NamedTuple):\n    first: object\n    second: object",
    ),
    "named tuple as dict": Route(
        '{o} = Pair({v}, 2)._asdict()["first"]',
        ("import typing",),
        "class Pair(typing.NamedTuple):\n    first: object\n    second: object",
    ),
    "old named tuple": Route(
        "{o} = Item(value={v}, weight=1.0).value",
        ("from collections import namedtuple",),
        'Item = namedtuple("Item", "value weight")',
    ),
    "dataclass": Route(
        "{o} = Record({v}).value",
        ("import dataclasses",),
        "@dataclasses.dataclass\nclass Record:\n    value: object\n    weight: float = 1.0",
    ),
    "replaced dataclass": Route(
        "{o} = dataclasses.replace(Record(None), value={v}).value",
        ("import dataclasses",),
        "@dataclasses.dataclass\nclass Record:\n    value: object\n    weight: float = 1.0",
    ),
    "dataclass fields": Route(
        "{o} = [getattr(_r, f.name) for _r in [Record({v})] for f in dataclasses.fields(_r)][0]",
        ("import dataclasses",),
        "@dataclasses.dataclass\nclass Record:\n    value: object\n    weight: float = 1.0",
    ),
    "deque": Route("{o} = collections.deque([{v}], maxlen=2).popleft()", ("import collections",)),
    "chain map": Route('{o} = collections.ChainMap({{}}, {{"a": {v}}})["a"]', ("import collections",)),
    "ordered dict": Route('{o} = collections.OrderedDict([("a", {v})])["a"]', ("import collections",)),
    "user dict": Route('{o} = collections.UserDict(a={v})["a"]', ("import collections",)),
    "heap": Route("_heap = []\nheapq.heappush(_heap, (0, {v}))\n{o} = heapq.heappop(_heap)[1]", ("import heapq",)),
    "queue": Route("_queue = queue.Queue()\n_queue.put({v})\n{o} = _queue.get()", ("import queue",)),
    "exception": Route(
        "try:\n    raise Carrier({v})\nexcept Carrier as error:\n    {o} = error.args[0]",
        (),
        "class Carrier(Exception):\n    pass",
    ),
    "exception attribute": Route(
        "try:\n    raise Holding({v})\nexcept Holding as error:\n    {o} = error.value",
        (),
        "class Holding(Exception):\n    def __init__(self, value):\n"
        "        super().__init__('held')\n        self.value = value",
    ),
    "stop iteration": Route(
        "try:\n    next(returning({v}))\nexcept StopIteration as stop:\n    {o} = stop.value",
        (),
        "def returning(value):\n    return value\n    yield",
    ),
    "generator": Route("{o} = next(yielding({v}))", (), "def yielding(value):\n    yield value"),
    "yield from": Route("{o} = list(delegating({v}))[0]", (), "def delegating(value):\n    yield from [value]"),
    "iterable class": Route(
        "[{o}] = Several({v})",
        (),
        "class Several:\n    def __init__(self, value):\n        self.value = value\n\n"
        "    def __iter__(self):\n        yield self.value",
    ),
    "iterator class": Route(
        "for {o} in Once({v}):\n    pass",
        (),
        "class Once:\n    def __init__(self, value):\n        self.values = [value]\n\n"
        "    def __iter__(self):\n        return self\n\n    def __next__(self):\n"
        "        if not self.values:\n            raise StopIteration\n"
        "        return self.values.pop()",
    ),
    "item class": Route(
        '{o} = Lookup({v})["a"]',
        (),
        "class Lookup:\n    def __init__(self, value):\n        self.value = value\n\n"
        "    def __getitem__(self, key):\n        return self.value",
    ),
    "attribute hook": Route(
        "{o} = Forwarding({v}).anything",
        (),
        "class Forwarding:\n    def __init__(self, value):\n        self.value = value\n\n"
        '    def __getattr__(self, name):\n        return self.__dict__["value"]',
    ),
    "property": Route(
        "{o} = Boxed({v}).content",
        (),
        "class Boxed:\n    def __init__(self, value):\n        self._value = value\n\n    @property\n"
        "    def content(self):\n        return self._value",
    ),
    "class attribute": Route(
        "Shelf.value = {v}\n{o} = Shelf.value\nShelf.value = None", (), "class Shelf:\n    value = None"
    ),
    "slots": Route(
        "_slim = Slim()\n_slim.value = {v}\n{o} = _slim.value", (), 'class Slim:\n    __slots__ = ("value",)'
    ),
    "setattr": Route(
        '_any = Anything()\nsetattr(_any, "value", {v})\n{o} = getattr(_any, "value")', (), "class Anything:\n    pass"
    ),
    "instance dict": Route(
        '_any = Anything()\n_any.__dict__["value"] = {v}\n{o} = _any.value', (), "class Anything:\n    pass"
    ),
    "vars": Route('_any = Anything()\n_any.value = {v}\n{o} = vars(_any)["value"]', (), "class Anything:\n    pass"),
    "lambda": Route("{o} = (lambda value: value)({v})"),
    "default argument": Route("{o} = (lambda value={v}: value)()"),
    "closure": Route(
        "{o} = keeping({v})()", (), "def keeping(value):\n    def kept():\n        return value\n    return kept"
    ),
    "star arguments": Route("{o} = spread(*[{v}])", (), "def spread(*values):\n    return values[0]"),
    "keywords": Route('{o} = named(**{{"value": {v}}})', (), "def named(**values):\n    return values['value']"),
    "partial": Route(
        "{o} = functools.partial(same, {v})()", ("import functools",), "def same(value):\n    return value"
    ),
    "map": Route("{o} = list(map(same, [{v}]))[0]", (), "def same(value):\n    return value"),
    "zip": Route("for {o}, _ in zip([{v}], [1]):\n    pass"),
    "filter": Route("{o} = next(filter(lambda value: True, [{v}]))"),
    "comprehension": Route("{o} = [value for value in [{v}]][0]"),
    "dict comprehension": Route("{o} = {{key: value for key, value in [(1, {v})]}}[1]"),
    "generator expression": Route("{o} = next(value for value in ({v},))"),
    "sorted": Route("{o} = sorted([{v}], key=id)[0]"),
    "reversed": Route("{o} = next(reversed([{v}]))"),
    "max by key": Route("{o} = max([{v}], key=id)"),
    "enumerate": Route("_, {o} = next(enumerate([{v}]))"),
    "chain": Route("{o} = next(itertools.chain([], [{v}]))", ("import itertools",)),
    "zip longest": Route("{o} = list(itertools.zip_longest([{v}], [1, 2]))[0][0]", ("import itertools",)),
    "product": Route("{o} = list(itertools.product([{v}], [1]))[0][0]", ("import itertools",)),
    "islice": Route("{o} = next(itertools.islice([{v}], 0, 1))", ("import itertools",)),
    "cycle": Route("{o} = next(itertools.cycle([{v}]))", ("import itertools",)),
    "tee": Route("{o} = next(itertools.tee([{v}])[1])", ("import itertools",)),
    "reduce": Route("{o} = functools.reduce(lambda a, b: b, [1, {v}])", ("import functools",)),
    "item getter": Route('{o} = operator.itemgetter("a")({{"a": {v}}})', ("import operator",)),
    "attribute getter": Route(
        '{o} = operator.attrgetter("a")(types.SimpleNamespace(a={v}))', ("import operator", "import types")
    ),
    "operator mul": Route("{o} = operator.mul({v}, 1.0)", ("import operator",)),
    "operator add": Route("{o} = operator.add({v}, 0.0)", ("import operator",)),
    "operator sub": Route("{o} = operator.sub({v}, 0.0)", ("import operator",)),
    "operator truediv": Route("{o} = operator.truediv({v}, 1.0)", ("import operator",)),
    "operator neg": Route("{o} = operator.neg(operator.neg({v}))", ("import operator",)),
    "operator iadd": Route("{o} = operator.iadd({v}.clone(), 0.0)", ("import operator",)),
    "operator getitem": Route("{o} = operator.getitem([{v}], 0)", ("import operator",)),
    "sum builtin": Route("{o} = sum([{v}])"),
    "starred": Route("{o}, *_ = [{v}, 2, 3]"),
    "starred rest": Route("_, *_rest = [1, {v}]\n{o} = _rest[0]"),
    "nested": Route("(_, [{o}]), _ = (1, [{v}]), 3"),
    "swap": Route("_a, _b = {v}, 1\n_a, _b = _b, _a\n{o} = _b"),
    "walrus": Route("if ({o} := {v}) is not None:\n    pass"),
    "conditional": Route("{o} = {v} if {v} is not None else None"),
    "or": Route("{o} = None or {v}"),
    "copy": Route("{o} = copy.copy([{v}])[0]", ("import copy",)),
    "list extend": Route("_list = []\n_list.extend([{v}])\n{o} = _list[0]"),
    "list insert": Route("_list = [1]\n_list.insert(0, {v})\n{o} = _list[0]"),
    "list plus": Route("{o} = ([1] + [{v}])[-1]"),
    "list times": Route("{o} = ([{v}] * 2)[1]"),
    "slice assignment": Route("_list = [1, 2]\n_list[:1] = [{v}]\n{o} = _list[0]"),
    "context manager": Route(
        "with giving({v}) as {o}:\n    pass",
        ("import contextlib",),
        "@contextlib.contextmanager\ndef giving(value):\n    yield value",
    ),
    "exit stack": Route(
        "with contextlib.ExitStack() as _stack:\n    {o} = _stack.enter_context(contextlib.nullcontext({v}))",
        ("import contextlib",),
    ),
    "context class": Route(
        "with Entered({v}) as {o}:\n    pass",
        (),
        "class Entered:\n    def __init__(self, value):\n        self.value = value\n\n"
        "    def __enter__(self):\n        return self.value\n\n"
        "    def __exit__(self, *args):\n        return False",
    ),
    "cached property": Route(
        "{o} = Once2({v}).content",
        ("import functools",),
        "class Once2:\n    def __init__(self, value):\n        self._value = value\n\n"
        "    @functools.cached_property\n    def content(self):\n        return self._value",
    ),
    "weak dict": Route(
        "_weak = weakref.WeakValueDictionary()\n_kept = {v}\n_weak[1] = _kept\n{o} = _weak[1]", ("import weakref",)
    ),
    "coroutine": Route(
        "try:\n    asking({v}).send(None)\nexcept StopIteration as stop:\n    {o} = stop.value",
        (),
        "async def asking(value):\n    return value",
    ),
    "generator send": Route(
        "_coroutine = echo()\nnext(_coroutine)\n{o} = _coroutine.send({v})",
        (),
        "def echo():\n    value = None\n    while True:\n        value = yield value",
    ),
    "thread": Route(
        "_got = []\n_thread = threading.Thread(target=lambda: _got.append({v}))\n_thread.start()\n"
        "_thread.join()\n{o} = _got[0]",
        ("import threading",),
    ),
    "match": Route('match {{"a": {v}}}:\n    case {{"a": {o}}}:\n        pass'),
    "match sequence": Route("match [{v}, 1]:\n    case [{o}, *_]:\n        pass"),
    "globals": Route('globals()["_stash"] = {v}\n{o} = globals().pop("_stash")'),
    "new type": Route("{o} = type('Made', (), {{'value': {v}}}).value"),
    "staticmethod": Route(
        "{o} = Handy.through({v})", (), "class Handy:\n    @staticmethod\n    def through(value):\n        return value"
    ),
    "classmethod": Route(
        "{o} = Handier.through({v})",
        (),
        "class Handier:\n    @classmethod\n    def through(cls, value):\n        return value",
    ),
    "descriptor": Route(
        "_owner = Owner()\n_owner.value = {v}\n{o} = _owner.value",
        (),
        "class Descriptor:\n    def __get__(self, owner, kind=None):\n"
        "        return owner.__dict__['_v']\n\n    def __set__(self, owner, value):\n"
        "        owner.__dict__['_v'] = value\n\n\nclass Owner:\n    value = Descriptor()",
    ),
    "recursion": Route(
        "{o} = sinking({v}, 2)",
        (),
        "def sinking(value, depth):\n    return value if depth == 0 else sinking(value, depth - 1)",
    ),
}

TENSOR: dict[str, Route] = {
    "clone": Route("{o} = {v}.clone()"),
    "times one": Route("{o} = {v} * 1.0"),
    "to": Route("{o} = {v}.to(torch.float32)"),
    "contiguous": Route("{o} = {v}.contiguous()"),
    "double": Route("{o} = {v}.double().float()"),
    "squeeze": Route("{o} = {v}.unsqueeze(0).squeeze(0)"),
    "stacked": Route("{o} = torch.stack([{v}])[0]"),
    "indexed none": Route("{o} = {v}[None][0]"),
    "ellipsis": Route("{o} = {v}[...]"),
    "where": Route("{o} = torch.where({v} > -1e9, {v}, {v} * 0.5)"),
    "maximum": Route("{o} = torch.maximum({v}, {v} - 1.0)"),
    "clamp": Route("{o} = {v}.clamp(min=-1e6)"),
    "nan to num": Route("{o} = torch.nan_to_num({v})"),
    "broadcast": Route("{o}, _ = torch.broadcast_tensors({v}, {v})"),
    "view as": Route("{o} = {v}.view_as({v})"),
    "expand as": Route("{o} = {v}.expand_as({v})"),
    "type as": Route("{o} = {v}.type_as({v})"),
    "in place": Route("{o} = {v}.clone()\n{o} *= 1.0"),
    "add in place": Route("{o} = torch.zeros_like({v})\n{o}.add_({v})"),
    "copy in place": Route("{o} = torch.zeros_like({v})\n{o}.copy_({v})"),
    "whole write": Route("{o} = torch.zeros_like({v})\n{o}[...] = {v}"),
    "addcmul": Route("{o} = torch.addcmul({v}, {v}, {v}, value=0.0)"),
    "lerp": Route("{o} = torch.lerp({v}, {v}, 0.5)"),
    "relu": Route("{o} = F.leaky_relu({v})"),
    "checkpoint": Route(
        "{o} = torch.utils.checkpoint.checkpoint(lambda value: value * 1.0, {v}, use_reentrant=False)",
        ("import torch.utils.checkpoint",),
    ),
    "positive": Route("{o} = +{v}"),
    "double negation": Route("{o} = -(-{v})"),
    "power": Route("{o} = {v} ** 1"),
    "identity": Route("{o} = nn.Identity()({v})"),
    "requires grad": Route("{o} = {v}.requires_grad_()"),
    "custom function": Route(
        "{o} = Passing.apply({v})",
        (),
        "class Passing(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, value):\n        return value * 1.0\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        return grad",
    ),
    "enable grad": Route("with torch.enable_grad():\n    {o} = {v} * 1.0"),
    "grad mode": Route("with torch.set_grad_enabled(True):\n    {o} = {v} + 0.0"),
    "autocast off": Route('with torch.autocast("cpu", enabled=False):\n    {o} = {v} * 1.0'),
}

MATRIX: dict[str, Route] = {
    "rows": Route("{o} = torch.stack(list({v}))"),
    "unbind": Route("{o} = torch.stack({v}.unbind(0))"),
    "unpacked rows": Route("_r0, _r1, *_rows = {v}\n{o} = torch.stack([_r0, _r1, *_rows])"),
    "split": Route("{o} = torch.cat({v}.split(2))"),
    "chunk": Route("{o} = torch.cat(torch.chunk({v}, 2, dim=0))"),
    "tensor split": Route("_top, _bottom = torch.tensor_split({v}, 2)\n{o} = torch.vstack([_top, _bottom])"),
    "columns": Route("{o} = torch.cat([{v}[:, :1], {v}[:, 1:]], 1)"),
    "column stack": Route("{o} = torch.column_stack([{v}[:, 0], {v}[:, 1]])"),
    "list index": Route("{o} = {v}[[0, 1, 2, 3]]"),
    "mask index": Route("{o} = {v}[torch.ones(4, dtype=torch.bool)]"),
    "index select": Route("{o} = {v}.index_select(0, torch.arange(4))"),
    "gather": Route("{o} = {v}.gather(1, torch.tensor([[0, 1]] * 4))"),
    "take along": Route("{o} = torch.take_along_dim({v}, torch.tensor([[1, 0]] * 4), 1)"),
    "masked select": Route("{o} = torch.masked_select({v}, {v} > -1e9).view(4, 2)"),
    "narrow": Route("{o} = {v}.narrow(0, 0, 4)"),
    "select": Route("{o} = torch.stack([{v}.select(1, 0), {v}.select(1, 1)], 1)"),
    "sort": Route("{o} = {v}.sort(1).values"),
    "sort pair": Route("{o}, _ = torch.sort({v}, 0)"),
    "topk": Route("{o} = {v}.topk(2).values"),
    "topk pair": Route("{o}, _order = torch.topk({v}, 2, dim=1)"),
    "cummax": Route("{o} = {v}.cummax(0).values"),
    "cummin pair": Route("{o}, _ = torch.cummin({v}, 0)"),
    "cumsum": Route("{o} = {v}.cumsum(1)"),
    "max keepdim": Route("{o} = {v} - {v}.max(1, keepdim=True).values"),
    "max index": Route("{o} = {v} + torch.max({v}, 1, True)[0]"),
    "min values": Route("{o} = {v} + {v}.min(dim=1, keepdim=True)[0]"),
    "median": Route("{o} = {v} + {v}.median(1, keepdim=True).values"),
    "mode": Route("{o} = {v} + {v}.mode(1, keepdim=True).values"),
    "kthvalue": Route("{o} = {v} + {v}.kthvalue(1, 1, keepdim=True).values"),
    "aminmax": Route("_low, _high = torch.aminmax({v})\n{o} = {v} - _low + 0.1 * _high"),
    "var mean": Route("_var, _mean = torch.var_mean({v}, 0)\n{o} = ({v} - _mean) + _var"),
    "flatten": Route("{o} = {v}.flatten().view(4, 2)"),
    "unflatten": Route("{o} = {v}.reshape(-1).unflatten(0, (4, 2))"),
    "transpose": Route("{o} = {v}.t().t()"),
    "mT": Route("{o} = {v}.mT.T"),
    "permute": Route("{o} = {v}.permute(1, 0).transpose(0, 1)"),
    "einsum": Route('{o} = torch.einsum("ij,jk->ik", {v}, torch.eye(2))'),
    "matmul": Route("{o} = {v} @ torch.eye(2)"),
    "packed data": Route(
        "{o} = pack_padded_sequence({v}.unsqueeze(0), [4], batch_first=True).data",
        ("from torch.nn.utils.rnn import pack_padded_sequence",),
    ),
    "packed": Route(
        "_packed = pack_sequence([{v}])\n{o} = pad_packed_sequence(_packed, batch_first=True)[0][0]",
        ("from torch.nn.utils.rnn import pack_sequence, pad_packed_sequence",),
    ),
    "padded": Route("{o} = pad_sequence([{v}], batch_first=True)[0]", ("from torch.nn.utils.rnn import pad_sequence",)),
    "item write": Route("{o} = torch.zeros(4, 2)\n{o}[:2] = {v}[:2]\n{o}[2:] = {v}[2:]"),
    "view write": Route(
        "{o} = torch.zeros(4, 2)\n_view = {o}[:, 0]\n_view.copy_({v}[:, 0])\n"
        "_view = {o}.select(1, 1)\n_view += {v}[:, 1]"
    ),
    "view fill": Route("{o} = torch.zeros(4, 2)\n_flat = {o}.view(-1)\n_flat[:] = {v}.reshape(-1)"),
    "row views": Route("{o} = torch.zeros(4, 2)\nfor _row, _value in zip({o}, {v}):\n    _row.add_(_value)"),
    "scatter": Route("{o} = torch.zeros(4, 2).scatter(1, torch.tensor([[0, 1]] * 4), {v})"),
    "index add": Route("{o} = torch.zeros(4, 2)\n{o}.index_add_(0, torch.arange(4), {v})"),
    "index copy": Route("{o} = torch.zeros(4, 2).index_copy(0, torch.arange(4), {v})"),
    "index put": Route("{o} = torch.zeros(4, 2)\n{o}.index_put_((torch.arange(4),), {v})"),
    "masked scatter": Route("{o} = torch.zeros(4, 2).masked_scatter(torch.ones(4, 2, dtype=torch.bool), {v})"),
    "pad": Route("{o} = F.pad({v}, (1, 1))[:, 1:-1]"),
    "normalize": Route("{o} = F.normalize({v}, dim=1)"),
    "softmax": Route("{o} = {v} * F.softmax({v}, -1)"),
    "repeat": Route("{o} = {v}.repeat(2, 1)[:4]"),
    "tile": Route("{o} = torch.tile({v}, (1, 2))[:, :2]"),
    "roll": Route("{o} = {v}.roll(1, 0)"),
    "flip": Route("{o} = torch.flip({v}, [0])"),
    "diag": Route("{o} = {v} + torch.diag({v} @ {v}.T)[:, None]"),
    "complex": Route("{o} = torch.view_as_real(torch.view_as_complex({v}.contiguous()))"),
    "fft": Route("{o} = torch.fft.rfft({v}, dim=0).real[:2].repeat(2, 1)"),
    "svd": Route("{o} = {v} * torch.linalg.svdvals({v}).sum()"),
    "qr": Route("_q, _ = torch.linalg.qr({v})\n{o} = _q"),
    "slogdet": Route("{o} = {v} + torch.linalg.slogdet({v}.T @ {v} + torch.eye(2)).logabsdet"),
    "vmap": Route("{o} = torch.vmap(lambda row: row * 1.0)({v})"),
    "unfold": Route("{o} = {v}.unfold(0, 1, 1).squeeze(-1)"),
    "as strided": Route("{o} = {v}.contiguous().as_strided((4, 2), (2, 1))"),
    "batch loop": Route(
        "_rows = []\nfor _k in range({v}.size(0)):\n    _rows.append({v}[_k])\n{o} = torch.stack(_rows)"
    ),
    "column comprehension": Route("{o} = torch.stack([column for column in {v}.T], dim=1)"),
    "tolist of views": Route("{o} = torch.cat([*map(torch.atleast_2d, {v})])"),
    "multi head": Route("_att = torch.softmax({v} @ {v}.T, -1)\n{o} = _att @ {v}"),
    "maxpool": Route("{o} = F.max_pool1d({v}.unsqueeze(0), 1).squeeze(0)"),
    "maxpool indices": Route("_pooled, _ = F.max_pool1d({v}.unsqueeze(0), 1, return_indices=True)\n{o} = _pooled[0]"),
}


def carried(sketch: Sketch, slot: str, value: str, *, matrix: bool = False, most: int = 2) -> str:
    """Send ``value`` along up to ``most`` routes in ``slot``; returns the name that it has then."""
    tables = [ANY, ANY, TENSOR, *([MATRIX, MATRIX] if matrix else [])]
    for _ in range(sketch.choices.below(most + 1)):
        table = sketch.choices.one(tables)
        kind = sketch.choices.one(tuple(table))
        value = along(sketch, slot, table[kind], value)
        sketch.features.append(f"route {kind}")
    return value


def along(sketch: Sketch, slot: str, route: Route, value: str) -> str:
    """Send ``value`` along one route."""
    name = sketch.fresh("v")
    sketch.need(*route.need)
    if route.head:
        sketch.define(route.head)
    sketch.add(slot, route.text.format(o=name, v=value))
    return name


REDUCTIONS = (
    "F.mse_loss({v}, {y})",
    "(({v} - {y}) ** 2).mean()",
    "nn.MSELoss()({v}, {y})",
    "({v} - {y}).pow(2).sum() / 4",
    "F.l1_loss({v}, {y})",
    "F.smooth_l1_loss({v}, {y})",
    "F.cross_entropy({v}, {y}.argmax(1))",
    "nn.CrossEntropyLoss()({v}, {y}.argmax(dim=1))",
    "({v} - {y}).norm()",
    "({v} * {y}).max(1).values.sum()",
    "torch.topk({v} * {y}, 1).values.mean()",
    "({v} - {y}).abs().max()",
    "torch.logsumexp({v} * {y}, 1).mean()",
    "F.binary_cross_entropy_with_logits({v}, ({y} > 0).float())",
    "-F.log_softmax({v}, 1)[range(4), 0].mean()",
    "F.nll_loss(F.log_softmax({v}, -1), {y}.argmax(1))",
    "1 - F.cosine_similarity({v}, {y}).mean()",
    "sum(((a - b) ** 2).sum() for a, b in zip({v}, {y}))",
    "torch.stack([F.mse_loss(a, b) for a, b in zip({v}, {y})]).mean()",
    "torch.dist({v}, {y})",
    "({v} - {y}).square().median()",
    "torch.var({v} - {y})",
    "F.huber_loss({v}, {y})",
    "(({v} - {y}) ** 2).sum(dim=1).mean(dim=0)",
    "torch.linalg.vector_norm({v} - {y})",
    "F.kl_div(F.log_softmax({v}, 1), F.softmax({y}, 1), reduction='batchmean')",
    "({v} - {y}).abs().kthvalue(2, dim=0).values.sum()",
    "torch.einsum('ij,ij->', {v}, {y})",
    "torch.trace({v} @ {y}.T)",
    "F.mse_loss({v}, {y}, reduction='none').mean()",
    "({v} - {y}).pow(2).amax()",
    "({v}.sort(0)[0] - {y}).pow(2).mean()",
)


def reduced(sketch: Sketch, value: str, target: str = "y") -> str:
    """An expression for one number, attached, out of a matrix and its target."""
    return sketch.choices.one(REDUCTIONS).format(v=value, y=target)
