"""Ways in which Python hands a value on: each snippet puts ``IN`` somewhere and takes it out again as ``OUT``.

They are written so that one can stand behind the other: what goes in is a tensor, and what comes out is one.
"""

from __future__ import annotations

IMPORTS = """\
import asyncio, collections, concurrent.futures, contextlib, contextvars, copy, dataclasses, enum, functools, heapq
import itertools, operator, queue, random, statistics, threading, types, typing, weakref
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, NamedTuple
"""

_SNIPPETS = """\
# a namespace
OUT = SimpleNamespace(loss=IN).loss

# a namespace given later
ns = SimpleNamespace()
ns.loss = IN
OUT = ns.loss

# a namespace of a dict
OUT = SimpleNamespace(**{'loss': IN}).loss

# vars of a namespace
ns = SimpleNamespace(loss=IN)
OUT = vars(ns)['loss']

# values of vars
ns = SimpleNamespace(loss=IN)
OUT = list(vars(ns).values())[0]

# the dict of a namespace
ns = SimpleNamespace()
ns.__dict__['loss'] = IN
OUT = ns.loss

# the dict of a namespace updated
ns = SimpleNamespace()
ns.__dict__.update(loss=IN)
OUT = ns.loss

# the dict of an object
class A:
    pass
a = A()
a.__dict__['loss'] = IN
OUT = a.loss

# the dict of an object read
class A:
    pass
a = A()
a.loss = IN
OUT = a.__dict__['loss']

# the dict of an object updated
class A:
    pass
a = A()
a.__dict__.update({'loss': IN})
OUT = a.loss

# an object that updates itself
class A:
    def __init__(self, **kw):
        self.__dict__.update(kw)
OUT = A(loss=IN).loss

# an object whose dict is itself
class A(dict):
    def __init__(self, **kw):
        super().__init__(**kw)
        self.__dict__ = self
OUT = A(loss=IN).loss

# setattr by a computed name
class A:
    pass
a = A()
for k in ('p', 'q'):
    setattr(a, k + 'r', IN)
OUT = a.pr

# getattr by a computed name
class A:
    pass
a = A()
a.pr = IN
OUT = getattr(a, 'p' + 'R'.lower())

# getattr with a default
class A:
    pass
OUT = getattr(A(), 'missing', IN)

# object.__setattr__
class A:
    pass
a = A()
object.__setattr__(a, 'loss', IN)
OUT = a.loss

# globals
globals()['kept'] = IN
OUT = globals()['kept']

# globals by name
globals()['kept'] = IN
OUT = kept

# locals
def f(t):
    return locals()['t']
OUT = f(IN)

# a class attribute
class A:
    loss = None
A.loss = IN
OUT = A().loss

# a class attribute by type
class A:
    loss = None
a = A()
type(a).loss = IN
OUT = a.loss

# a class attribute by __class__
class A:
    loss = None
a = A()
a.__class__.loss = IN
OUT = A.loss

# a class body
class A:
    loss = IN
OUT = A().loss

# a function attribute
def f():
    return f.last
f.last = IN
OUT = f()

# a tensor attribute
t = torch.zeros(3)
t.loss = IN
OUT = t.loss

# a slot
class A:
    __slots__ = ('loss',)
a = A()
a.loss = IN
OUT = a.loss

# an enum
class E(enum.Enum):
    A = 1
d = {E.A: IN}
OUT = d[E.A]

# a named tuple
class P(NamedTuple):
    a: Any
    b: Any
OUT = P(IN, 1).a

# a named tuple unpacked
class P(NamedTuple):
    a: Any
    b: Any
OUT, other = P(IN, 1)

# a named tuple by index
class P(NamedTuple):
    a: Any
    b: Any
OUT = P(1, IN)[1]

# a named tuple replaced
class P(NamedTuple):
    a: Any
    b: Any
OUT = P(1, 2)._replace(b=IN).b

# a named tuple as a dict
class P(NamedTuple):
    a: Any
    b: Any
OUT = P(IN, 2)._asdict()['a']

# a named tuple in a loop
class P(NamedTuple):
    a: Any
for OUT in P(IN):
    pass

# a named tuple given on
class P(NamedTuple):
    a: Any
def f(a):
    return a
OUT = f(*P(IN))

# a named tuple with a method
class P(NamedTuple):
    a: Any
    def get(self):
        return self.a
OUT = P(IN).get()

# collections.namedtuple
P = namedtuple('P', 'a b')
OUT = P(IN, 1).a

# collections.namedtuple unpacked
P = namedtuple('P', ['a', 'b'])
other, OUT = P(1, IN)

# collections.namedtuple by index
P = namedtuple('P', 'a, b')
OUT = P(a=1, b=IN)[1]

# collections.namedtuple replaced
P = namedtuple('P', 'a b')
OUT = P(1, 2)._replace(a=IN)[0]

# collections.namedtuple made
P = namedtuple('P', 'a b')
OUT = P._make([IN, 1]).a

# a derived namedtuple
class P(namedtuple('P', 'a b')):
    pass
OUT = P(IN, 1).a

# transitions
P = namedtuple('P', 'a b')
batch = P(*zip(*[P(IN, 1), P(IN, 2)]))
OUT = batch.a[0]

# a dataclass
@dataclass
class D:
    loss: Any
OUT = D(IN).loss

# a dataclass with defaults
@dataclass
class D:
    n: int = 0
    loss: Any = None
OUT = D(loss=IN).loss

# dataclasses.replace
@dataclass
class D:
    n: int
    loss: Any
OUT = dataclasses.replace(D(1, None), loss=IN).loss

# dataclasses.replace keeps
@dataclass
class D:
    n: int
    loss: Any
OUT = dataclasses.replace(D(1, IN), n=2).loss

# dataclasses.fields
@dataclass
class D:
    loss: Any
d = D(IN)
OUT = [getattr(d, f.name) for f in dataclasses.fields(d)][0]

# dataclasses.make_dataclass
D = dataclasses.make_dataclass('D', ['loss'])
OUT = D(IN).loss

# a field with a factory
@dataclass
class D:
    kept: list = field(default_factory=list)
d = D()
d.kept.append(IN)
OUT = d.kept[0]

# __post_init__
@dataclass
class D:
    loss: Any
    def __post_init__(self):
        self.double = self.loss * 2
OUT = D(IN).double

# ChainMap
OUT = ChainMap({}, {'a': IN})['a']

# ChainMap written
d = {}
ChainMap(d)['a'] = IN
OUT = d['a']

# OrderedDict
OUT = OrderedDict(a=IN)['a']

# OrderedDict of pairs
OUT = OrderedDict([('a', IN)])['a']

# OrderedDict popped
d = OrderedDict()
d['a'] = IN
OUT = d.popitem(last=False)[1]

# OrderedDict moved
d = OrderedDict(a=IN, b=1)
d.move_to_end('a')
OUT = list(d.values())[-1]

# defaultdict
d = defaultdict(list)
d['a'].append(IN)
OUT = d['a'][0]

# defaultdict of a dict
d = defaultdict(list, {'a': [IN]})
OUT = d['a'][0]

# defaultdict summed
d = defaultdict(float)
d['a'] += IN
OUT = d['a']

# defaultdict of a lambda
d = defaultdict(lambda: IN)
OUT = d['a']

# Counter
c = Counter()
c['a'] += IN
OUT = c['a']

# Counter of a dict
OUT = Counter({'a': IN})['a']

# UserDict
class U(UserDict):
    pass
u = U()
u['a'] = IN
OUT = u['a']

# UserDict given
OUT = UserDict(a=IN)['a']

# the data of a UserDict
u = UserDict(a=IN)
OUT = u.data['a']

# UserList
u = UserList()
u.append(IN)
OUT = u[0]

# UserList of a list
class U(UserList):
    pass
OUT = U([IN])[0]

# deque
d = deque(maxlen=2)
d.append(IN)
OUT = d.pop()

# deque rotated
d = deque([IN, 1])
d.rotate(1)
OUT = d[1]

# deque of a generator
d = deque(t for t in [IN])
OUT = d[0]

# deque extended left
d = deque()
d.extendleft([IN])
OUT = d.popleft()

# a heap
q = []
heapq.heappush(q, (1, IN))
OUT = heapq.heappop(q)[1]

# a heap made
q = [(2, IN)]
heapq.heapify(q)
OUT = q[0][1]

# heappushpop
q = [(2, 0)]
OUT = heapq.heappushpop(q, (1, IN))[1]

# nsmallest
OUT = heapq.nsmallest(1, [(1, IN)], key=lambda p: p[0])[0][1]

# merge
OUT = list(heapq.merge([(1, IN)], [(2, 0)]))[0][1]

# a queue
q = queue.Queue()
q.put(IN)
OUT = q.get()

# a queue without waiting
q = queue.LifoQueue()
q.put_nowait(IN)
OUT = q.get_nowait()

# a priority queue
q = queue.PriorityQueue()
q.put((0, IN))
OUT = q.get()[1]

# a simple queue
q = queue.SimpleQueue()
q.put({'loss': IN})
OUT = q.get()['loss']

# types.MappingProxyType
OUT = types.MappingProxyType({'a': IN})['a']

# weakref
t = IN
r = weakref.ref(t)
OUT = r()

# a weak dict
t = IN
d = weakref.WeakValueDictionary()
d['a'] = t
OUT = d['a']

# a context variable
v = contextvars.ContextVar('v')
v.set(IN)
OUT = v.get()

# a thread's own
l = threading.local()
l.t = IN
OUT = l.t

# random.choice
OUT = random.choice([IN])

# random.sample
OUT = random.sample([IN], 1)[0]

# random.choices
OUT = random.choices([IN], k=2)[1]

# random.shuffle
c = [IN, IN]
random.shuffle(c)
OUT = c[0]

# statistics.median
OUT = statistics.median_low([IN])

# typing.cast
OUT = typing.cast('Tensor', IN)

# a dict read by attribute
class A(dict):
    __getattr__ = dict.__getitem__
OUT = A(loss=IN).loss

# a dict written by attribute
class A(dict):
    __getattr__ = dict.get
    __setattr__ = dict.__setitem__
a = A()
a.loss = IN
OUT = a['loss']

# a dict with __getattr__
class A(dict):
    def __getattr__(self, name):
        return self[name]
a = A()
a['loss'] = IN
OUT = a.loss

# a derived dict
class A(dict):
    pass
a = A()
a['loss'] = IN
OUT = a['loss']

# a derived dict given
class A(dict):
    pass
OUT = A(loss=IN)['loss']

# a derived dict of a dict
class A(dict):
    pass
OUT = A({'loss': IN})['loss']

# a derived dict's items
class A(dict):
    pass
for k, OUT in A(loss=IN).items():
    pass

# a derived dict's update
class A(dict):
    pass
a = A()
a.update(loss=IN)
OUT = a.get('loss')

# a derived dict's own setter
class A(dict):
    def __setitem__(self, k, v):
        super().__setitem__(k, v)
a = A()
a['loss'] = IN
OUT = a['loss']

# a derived dict's missing
class A(dict):
    def __missing__(self, k):
        return IN
OUT = A()['loss']

# a derived list
class A(list):
    pass
a = A()
a.append(IN)
OUT = a[0]

# a derived list given
class A(list):
    pass
OUT = A([IN])[0]

# a derived list in a loop
class A(list):
    pass
for OUT in A([IN]):
    pass

# a derived list with its own append
class A(list):
    def append(self, t):
        super().append((t, 1))
a = A()
a.append(IN)
OUT = a[0][0]

# a derived tuple
class A(tuple):
    pass
OUT, other = A((IN, 1))

# a derived deque
class A(deque):
    pass
a = A(maxlen=3)
a.append(IN)
OUT = a.popleft()

# a derived Module dict
class A(OrderedDict):
    pass
a = A()
a['l'] = IN
OUT = next(iter(a.values()))

# a nest of lists
c = [[[[[[[IN]]]]]]]
d = [c]
OUT = d[0][0][0][0][0][0][0][0]

# a nest given on
def f(*a):
    return a
c = {'a': [{'b': ([IN],)}]}
OUT = f(c)[0]['a'][0]['b'][0][0]

# more than sixteen
c = [0] * 20
c += [IN]
OUT = c[20]

# a long list
c = [torch.zeros(3) for _ in range(40)]
c.append(IN)
OUT = c[-1]

# a long slice
c = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, IN]
OUT = c[5:][-1]

# a long sum of lists
a = [0, 1, 2, 3, 4, 5, 6, 7]
b = [8, 9, 10, 11, 12, 13, 14, 15, 16, IN]
OUT = (a + b)[-1]

# a slice written
c = [0, 1]
c[:] = [IN]
OUT = c[0]

# a slice written in the middle
c = [0, 1, 2]
c[1:2] = [IN, IN]
OUT = c[1]

# a list inserted
c = [1]
c.insert(0, IN)
OUT = c[0]

# a list sorted
c = [(2, 0), (1, IN)]
c.sort(key=lambda p: p[0])
OUT = c[0][1]

# a list reversed
c = [0, IN]
c.reverse()
OUT = c[0]

# a list extended by a generator
c = []
c.extend(t for t in [IN])
OUT = c[0]

# a list grown
c = []
c += (IN,)
OUT = c[0]

# a list of lists
c = [[]] * 2
c[0].append(IN)
OUT = c[1][0]

# a dict merged
OUT = ({'b': 1} | {'a': IN})['a']

# a dict merged in place
d = {}
d |= {'a': IN}
OUT = d['a']

# a dict unpacked
d = {'a': IN}
OUT = {**d, 'b': 1}['a']

# a dict of a namespace unpacked
ns = SimpleNamespace(a=IN)
OUT = {**vars(ns)}['a']

# dict of a derived dict
class A(dict):
    pass
a = A(l=IN)
OUT = dict(a)['l']

# dict of a generator
OUT = dict((k, IN) for k in 'ab')['a']

# dict of vars
class A:
    pass
a = A()
a.l = IN
OUT = dict(vars(a))['l']

# dict.fromkeys
OUT = dict.fromkeys(['a'], IN)['a']

# setdefault
d = {}
OUT = d.setdefault('a', IN)

# get with a default
OUT = {}.get('a', IN)

# pop with a default
OUT = {}.pop('a', IN)

# popitem
OUT = {'a': IN}.popitem()[1]

# a key of a computed name
d = {}
d['p' + str(1)] = IN
OUT = d['p1']

# a dict with a computed name read
d = {'a': 1}
k = input_name = 'b'
d[k.upper().lower()] = IN
OUT = d['b']

# a tuple key
d = {(1, 2): IN}
OUT = d[1, 2]

# update with pairs
d = {}
d.update([('a', IN)])
OUT = d['a']

# update with a generator
d = {}
d.update((k, IN) for k in 'ab')
OUT = d['a']

# a set
s = {IN}
OUT = s.pop()

# a frozen set
OUT = next(iter(frozenset([IN])))

# a set joined
s = set() | {IN}
OUT = list(s)[0]

# a set's union
s = set().union([IN])
OUT = list(s)[0]

# an items view
d = {'a': IN}
OUT = list(d.items())[0][1]

# sorted items
d = {'a': IN}
OUT = sorted(d.items(), key=lambda p: p[0])[0][1]

# max of items
d = {'a': IN}
OUT = max(d.items(), key=lambda p: p[0])[1]

# keys that are tensors
d = {IN: 1}
OUT = next(iter(d))

# a list as default
def f(t, kept=[]):
    kept.append(t)
    return kept
OUT = f(IN)[-1]

# a dict as default
def f(t=None, kept={}):
    if t is not None:
        kept['t'] = t
    return kept['t']
f(IN)
OUT = f()

# copy.copy of a list
OUT = copy.copy([IN])[0]

# copy.copy of a list that is emptied
c = [IN]
d = copy.copy(c)
c.clear()
OUT = d[0]

# copy.copy of an object
class A:
    pass
a = A()
a.l = IN
b = copy.copy(a)
a.l = None
OUT = b.l

# copy.copy of a dict
OUT = copy.copy({'a': IN})['a']

# copy.copy of a tensor
OUT = copy.copy(IN)

# dict.copy
d = {'a': IN}
e = d.copy()
d.clear()
OUT = e['a']

# operator.mul
OUT = operator.mul(IN, 2)

# operator.add
OUT = operator.add(1, IN)

# operator.itemgetter
OUT = operator.itemgetter(1)((0, IN))

# operator.itemgetter of several
OUT, other = operator.itemgetter('a', 'b')({'a': IN, 'b': 1})

# operator.attrgetter
class A:
    pass
a = A()
a.l = IN
OUT = operator.attrgetter('l')(a)

# operator.methodcaller
OUT = operator.methodcaller('mul', 2)(IN)

# operator.getitem
OUT = operator.getitem([IN], 0)

# operator.setitem
d = {}
operator.setitem(d, 'a', IN)
OUT = d['a']

# operator.iadd
OUT = operator.iadd([0], [IN])[1]

# functools.reduce
OUT = functools.reduce(lambda a, b: a + b, [IN, 1])

# functools.reduce from
OUT = functools.reduce(operator.add, [1, 2], IN)

# functools.reduce over a weight
OUT = functools.reduce(lambda a, b: a + b * IN, [1.0, 2.0])

# functools.partial
OUT = functools.partial(torch.mul, IN)(2)

# functools.partial by keyword
def f(a, b):
    return b
OUT = functools.partial(f, b=IN)(1)

# the arguments of a partial
OUT = functools.partial(print, IN).args[0]

# functools.partialmethod
class A:
    def f(self, t, n):
        return t * n
    g = functools.partialmethod(f, n=2)
OUT = A().g(IN)

# functools.partialmethod of an attribute
class A:
    def f(self, n):
        return self.t * n
    g = functools.partialmethod(f, 2)
a = A()
a.t = IN
OUT = a.g()

# functools.singledispatch
@functools.singledispatch
def f(t):
    return 0
@f.register(torch.Tensor)
def _(t):
    return t * 2
OUT = f(IN)

# functools.lru_cache
@functools.lru_cache(maxsize=None)
def f(n):
    return IN * n
OUT = f(2)

# functools.cached_property
class A:
    def __init__(self, t):
        self.t = t
    @functools.cached_property
    def d(self):
        return self.t * 2
OUT = A(IN).d

# functools.wraps
def twice(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return f(*args, **kwargs) * 2
    return wrapper
@twice
def g(t):
    return t
OUT = g(IN)

# a decorator that computes
def weighted(f):
    def wrapper(n):
        return f(n) * IN
    return wrapper
@weighted
def g(n):
    return n
OUT = g(2)

# a decorator that keeps
def kept(f):
    def wrapper(t):
        wrapper.last = f(t)
        return 0
    return wrapper
@kept
def g(t):
    return t
g(IN)
OUT = g.last

# a decorator of a class
class Kept:
    def __init__(self, f):
        self.f = f
    def __call__(self, t):
        self.last = self.f(t)
        return self.last
@Kept
def g(t):
    return t
OUT = g(IN)

# a decorator with arguments
def scaled(by):
    def wrap(f):
        def wrapper(t):
            return f(t) * by
        return wrapper
    return wrap
@scaled(IN)
def g(t):
    return t
OUT = g(2)

# a registry
known = {}
def register(f):
    known[f.__name__] = f
    return f
@register
def mine(t):
    return t
OUT = known['mine'](IN)

# a closure
def outer():
    t = IN
    def inner():
        return t
    return inner
OUT = outer()()

# nonlocal
def outer():
    t = None
    def put(v):
        nonlocal t
        t = v
    put(IN)
    return t
OUT = outer()

# a global
def put(v):
    global kept
    kept = v
put(IN)
OUT = kept

# a lambda
OUT = (lambda t: t)(IN)

# a default of a lambda
OUT = (lambda t=IN: t)()

# keywords
def f(**kw):
    return kw['t']
OUT = f(t=IN)

# keywords handed on
def f(**kw):
    return g(**kw)
def g(t=None, **kw):
    return t
OUT = f(t=IN, u=1)

# arguments
def f(*a):
    return a[-1]
OUT = f(0, IN)

# arguments handed on
def f(*a, **k):
    return g(*a, **k)
def g(a, b):
    return b
OUT = f(0, b=IN)

# recursion
def f(t, n):
    return t if n == 0 else f(t, n - 1)
OUT = f(IN, 5)

# a function handed over
def f(g, t):
    return g(t)
OUT = f(lambda v: v * 2, IN)

# a method handed over
def f(g):
    return g(2)
OUT = f(IN.mul)

# a method of a tensor kept
m = IN.mul
OUT = m(2)

# a method by name
OUT = getattr(IN, 'mul')(2)

# a method by a computed name
name = 'm' + 'ul'
OUT = getattr(IN, name)(2)

# sum
OUT = sum([IN, 1])

# sum with a start
OUT = sum([1, 2], IN)

# sum with start=
OUT = sum([1, 2], start=IN)

# sum of a generator
OUT = sum(t * 2 for t in [IN])

# sum of a map
OUT = sum(map(lambda t: t * 2, [IN]))

# sum of values
OUT = sum({'a': IN}.values())

# sum of lists
OUT = sum([[IN], [1]], [])[0]

# sum of what iterates
class A:
    def __iter__(self):
        yield IN
OUT = sum(A())

# max by a key
OUT = max([IN], key=lambda t: 0)

# max of what iterates
class A:
    def __iter__(self):
        yield IN
OUT = max(A(), key=lambda t: 0)

# max by a default
OUT = max([], default=IN)

# max of a queue
q = deque([IN])
OUT = max(q, key=id)

# max of a tensor
OUT = max(IN)

# min of two
OUT = min(IN, IN + 1, key=id)

# abs
OUT = abs(IN)

# pow
OUT = pow(IN, 2)

# pow to it
OUT = pow(2.0, IN)

# sorted
OUT = sorted([IN], key=lambda t: 0)[0]

# reversed
OUT = list(reversed([0, IN]))[0]

# zip
OUT = [b for a, b in zip([1], [IN])][0]

# zip of a list
OUT = list(zip(*[(1, IN), (2, IN)]))[1][0]

# zip of three
for a, b, OUT in zip([1], [2], [IN]):
    pass

# zip of a generator
rows = ((1, t) for t in [IN])
OUT = list(zip(*rows))[1][0]

# map of two
OUT = list(map(lambda a, b: b, [1], [IN]))[0]

# map of operator
OUT = list(map(operator.mul, [2], [IN]))[0]

# map of a method
OUT = list(map(torch.Tensor.sum, [IN]))[0]

# map of a bound method
OUT = list(map(IN.mul, [2]))[0]

# filter
OUT = list(filter(None, [[IN]]))[0][0]

# filter by a function
OUT = next(filter(lambda t: True, [IN]))

# enumerate
for i, OUT in enumerate([IN]):
    pass

# next with a default
OUT = next(iter([]), IN)

# next of a generator
OUT = next(t for t in [IN])

# iter with a sentinel
c = [None, IN]
OUT = next(iter(c.pop, None))

# iter of a function
for OUT in iter(lambda: IN, None):
    break

# list of what iterates
class A:
    def __iter__(self):
        yield IN
OUT = list(A())[0]

# unpacked from what iterates
class A:
    def __iter__(self):
        yield IN
        yield 1
OUT, other = A()

# star of what iterates
class A:
    def __iter__(self):
        yield IN
OUT = [*A()][0]

# tuple of a generator
OUT = tuple(t for t in [IN])[0]

# star unpacking
first, *several = 1, IN, 2
OUT = several[0]

# star in the middle
first, *mid, last = [1, IN, 3]
OUT = mid[0]

# star of a generator
first, *rest = (t for t in [0, IN])
OUT = rest[0]

# a nest unpacked
(a, (b, OUT)), c = (1, (2, IN)), 3

# swapped
a, b = 1, IN
a, b = b, a
OUT = a

# walrus
if (t := IN) is not None:
    OUT = t

# walrus in a comprehension
c = [last := t for t in [IN]]
OUT = last

# a comprehension
OUT = [t for c in [[IN]] for t in c if t is not None][0]

# a dict comprehension
OUT = {k: v for k, v in [('a', IN)]}['a']

# a set comprehension
OUT = next(iter({t for t in [IN]}))

# a conditional
OUT = IN if IN is not None else 0

# or
OUT = None or IN

# and
OUT = 1 and IN

# an f-string beside it
a, OUT = f'{1}', IN

# chain
OUT = list(itertools.chain([0], [IN]))[1]

# chain of a nest
OUT = next(itertools.chain.from_iterable([[IN]]))

# islice
OUT = next(itertools.islice([IN, 1], 1))

# accumulate
OUT = list(itertools.accumulate([1, IN]))[-1]

# accumulate by a function
OUT = list(itertools.accumulate([1, 2], lambda a, b: a + b * IN))[-1]

# zip_longest
OUT = list(itertools.zip_longest([1, 2], [IN]))[0][1]

# zip_longest's fill
OUT = list(itertools.zip_longest([1, 2], [3], fillvalue=IN))[1][1]

# starmap
OUT = next(itertools.starmap(lambda a, b: a * b, [(2, IN)]))

# starmap over a weight
OUT = next(itertools.starmap(lambda a, b: a * b * IN, [(2, 1)]))

# tee
a, b = itertools.tee([IN])
OUT = next(b)

# product
OUT = next(itertools.product([1], [IN]))[1]

# combinations
OUT = next(itertools.combinations([1, IN], 2))[1]

# permutations
OUT = next(itertools.permutations([IN, 1]))[0]

# cycle
OUT = next(itertools.cycle([IN]))

# repeat
OUT = next(itertools.repeat(IN))

# takewhile
OUT = next(itertools.takewhile(lambda t: True, [IN]))

# dropwhile
OUT = next(itertools.dropwhile(lambda t: False, [IN]))

# compress
OUT = next(itertools.compress([IN], [1]))

# filterfalse
OUT = next(itertools.filterfalse(lambda t: False, [IN]))

# groupby
OUT = [list(g)[0][1] for k, g in itertools.groupby([(1, IN)], key=lambda p: p[0])][0]

# a generator
def g():
    yield IN
OUT = next(g())

# a generator in a loop
def g():
    for _ in range(2):
        yield IN
for OUT in g():
    pass

# a generator sent
def g():
    t = yield
    yield t * 2
c = g()
next(c)
OUT = c.send(IN)

# a generator sent that keeps
kept = []
def g():
    t = yield
    kept.append(t)
    yield
c = g()
next(c)
c.send(IN)
OUT = kept[0]

# yield from
def f():
    yield IN
def g():
    yield from f()
OUT = next(g())

# what yield from returns
def f():
    yield 1
    return IN
def g():
    t = yield from f()
    yield t
OUT = list(g())[-1]

# what a generator returns
def g():
    yield 1
    return IN
c = g()
next(c)
try:
    next(c)
except StopIteration as stop:
    OUT = stop.value

# what a coroutine returns
async def g(v):
    return v
try:
    g(IN).send(None)
except StopIteration as stop:
    OUT = stop.value

# what a coroutine returns in a tuple
async def g(v):
    return v, 1
try:
    g(IN).send(None)
except StopIteration as stop:
    OUT = stop.value[0]

# many yields
def g():
    for n in range(3):
        yield n
    yield 4
    yield 5
    yield 6
    yield 7
    yield 8
    yield 9
    yield 10
    yield IN
OUT = list(g())[-1]

# an iterator
class A:
    def __iter__(self):
        return self
    def __next__(self):
        return IN
OUT = next(iter(A()))

# an iterator in a loop
class A:
    def __iter__(self):
        return iter([IN])
for OUT in A():
    pass

# items by __getitem__
class A:
    def __getitem__(self, i):
        if i > 1:
            raise IndexError
        return IN
OUT = [t for t in A()][0]

# __getitem__
class A:
    def __getitem__(self, k):
        return IN
OUT = A()['a']

# __getitem__ of a slice
class A:
    def __getitem__(self, k):
        return IN
OUT = A()[1:2]

# __setitem__
class A:
    def __setitem__(self, k, v):
        self.t = v
a = A()
a['a'] = IN
OUT = a.t

# __getattr__
class A:
    def __getattr__(self, name):
        return IN
OUT = A().loss

# __getattr__ of an inner
class A:
    def __init__(self, inner):
        self.inner = inner
    def __getattr__(self, name):
        return getattr(self.inner, name)
OUT = A(SimpleNamespace(loss=IN)).loss

# __getattribute__
class A:
    def __getattribute__(self, name):
        return IN
OUT = A().loss

# __setattr__
class A:
    def __setattr__(self, name, value):
        object.__setattr__(self, '_' + name, value)
a = A()
a.t = IN
OUT = a._t

# __call__
class A:
    def __call__(self, t):
        return t
OUT = A()(IN)

# __enter__
class A:
    def __enter__(self):
        return IN
    def __exit__(self, *a):
        pass
with A() as OUT:
    pass

# __exit__
class A:
    def __enter__(self):
        return self
    def __exit__(self, *a):
        self.t = IN
with A() as a:
    pass
OUT = a.t

# __add__
class A:
    def __add__(self, o):
        return o * 2
OUT = A() + IN

# __radd__
class A:
    def __radd__(self, o):
        return o * 2
OUT = IN + A()

# __radd__ in a sum
class A:
    def __radd__(self, o):
        return IN
OUT = sum([A()])

# __iadd__
class A:
    def __iadd__(self, o):
        self.t = o
        return self
a = A()
a += IN
OUT = a.t

# __add__ for +=
class A:
    def __add__(self, o):
        return o
a = A()
a += IN
OUT = a

# __sub__
class A:
    def __sub__(self, o):
        return IN
OUT = A() - 1

# __truediv__
class A:
    def __truediv__(self, o):
        return IN
OUT = A() / 2

# __rtruediv__
class A:
    def __rtruediv__(self, o):
        return IN
OUT = 1 / A()

# __pow__
class A:
    def __pow__(self, o):
        return IN
OUT = A() ** 2

# __matmul__
class A:
    def __matmul__(self, o):
        return IN
OUT = A() @ 2

# __rshift__
class A:
    def __rshift__(self, o):
        return o
OUT = A() >> IN

# __or__
class A:
    def __or__(self, o):
        return o
OUT = A() | IN

# __neg__
class A:
    def __neg__(self):
        return IN
OUT = -A()

# __abs__
class A:
    def __abs__(self):
        return IN
OUT = abs(A())

# __invert__
class A:
    def __invert__(self):
        return IN
OUT = ~A()

# __lt__
class A:
    def __lt__(self, o):
        return IN
OUT = A() < 1

# __eq__
class A:
    def __eq__(self, o):
        return IN
OUT = A() == 1

# __round__
class A:
    def __round__(self, n=None):
        return IN
OUT = round(A())

# __reversed__
class A:
    def __reversed__(self):
        return iter([IN])
OUT = next(reversed(A()))

# __new__
class A:
    def __new__(cls, t):
        made = super().__new__(cls)
        made.t = t
        return made
OUT = A(IN).t

# __new__ of something else
class A:
    def __new__(cls, t):
        return t
OUT = A(IN)

# one object
class A:
    one = None
    def __new__(cls):
        if cls.one is None:
            cls.one = object.__new__(cls)
        return cls.one
A().t = IN
OUT = A().t

# __init_subclass__
class A:
    def __init_subclass__(cls, t=None):
        cls.t = t
class B(A, t=IN):
    pass
OUT = B.t

# __class_getitem__
class A:
    def __class_getitem__(cls, t):
        return t
OUT = A[IN]

# a property
class A:
    def __init__(self, t):
        self._t = t
    @property
    def t(self):
        return self._t
OUT = A(IN).t

# a property with a setter
class A:
    @property
    def t(self):
        return self._t
    @t.setter
    def t(self, v):
        self._t = v
a = A()
a.t = IN
OUT = a._t

# a property of a call
class A:
    t = property(lambda self: IN)
OUT = A().t

# a property of super
class A:
    @property
    def t(self):
        return IN
class B(A):
    @property
    def t(self):
        return super().t
OUT = B().t

# a descriptor
class G:
    def __get__(self, obj, kind=None):
        return IN
class A:
    t = G()
OUT = A().t

# a descriptor that is set
class G:
    def __get__(self, obj, kind=None):
        return obj.kept
    def __set__(self, obj, v):
        obj.kept = v
class A:
    t = G()
a = A()
a.t = IN
OUT = a.kept

# a static method
class A:
    @staticmethod
    def f(t):
        return t
OUT = A.f(IN)

# a class method
class A:
    @classmethod
    def make(cls, t):
        a = cls()
        a.t = t
        return a
OUT = A.make(IN).t

# a method of the class
class A:
    def f(self, t):
        return t
OUT = A.f(A(), IN)

# super
class A:
    def f(self, t):
        return t
class B(A):
    def f(self, t):
        return super().f(t)
OUT = B().f(IN)

# two bases
class A:
    pass
class M:
    def f(self):
        return self.t
class B(A, M):
    pass
b = B()
b.t = IN
OUT = b.f()

# type()
A = type('A', (), {'t': IN})
OUT = A().t

# type() with a method
A = type('A', (), {'f': lambda self: IN})
OUT = A().f()

# a metaclass
class M(type):
    def __call__(cls, t):
        return t
class A(metaclass=M):
    pass
OUT = A(IN)

# an object without __init__
class A:
    pass
a = A()
setattr(a, 't', IN)
OUT = a.t

# what an exception brings
try:
    raise ValueError(IN)
except ValueError as ex:
    OUT = ex.args[0]

# what an exception of one's own brings
class E(Exception):
    def __init__(self, t):
        self.t = t
try:
    raise E(IN)
except E as ex:
    OUT = ex.t

# what a derived exception brings
class E(Exception):
    pass
try:
    raise E(IN)
except E as ex:
    OUT = ex.args[0]

# an exception out of a call
class E(Exception):
    pass
def f(t):
    raise E('late', t)
try:
    f(IN)
except E as ex:
    OUT = ex.args[1]

# raise from
class E(Exception):
    pass
try:
    try:
        raise E(IN)
    except E as inner:
        raise ValueError(1) from inner
except ValueError as ex:
    OUT = ex.__cause__.args[0]

# raised again
class E(Exception):
    pass
try:
    try:
        raise E(IN)
    except E:
        raise
except E as ex:
    OUT = ex.args[0]

# an exception that is kept
e = ValueError(IN)
OUT = e.args[0]

# bound in a try
try:
    OUT = IN
    raise ValueError
except ValueError:
    pass

# finally
try:
    pass
finally:
    OUT = IN

# else of a try
try:
    t = IN
except ValueError:
    t = None
else:
    OUT = t

# a context manager
@contextlib.contextmanager
def c(t):
    yield t
with c(IN) as OUT:
    pass

# a context manager in a try
@contextlib.contextmanager
def c(t):
    try:
        yield {'t': t}
    finally:
        pass
with c(IN) as d:
    OUT = d['t']

# nullcontext
with contextlib.nullcontext(IN) as OUT:
    pass

# closing
class A:
    def close(self):
        pass
a = A()
a.t = IN
with contextlib.closing(a) as b:
    OUT = b.t

# enter_context
@contextlib.contextmanager
def c(t):
    yield t
with contextlib.ExitStack() as stack:
    OUT = stack.enter_context(c(IN))

# enter_context of an object
class A:
    def __enter__(self):
        return IN
    def __exit__(self, *a):
        pass
with contextlib.ExitStack() as stack:
    OUT = stack.enter_context(A())

# a thread
kept = []
def f(t):
    kept.append(t)
th = threading.Thread(target=f, args=(IN,))
th.start()
th.join()
OUT = kept[0]

# a thread by keywords
kept = {}
def f(t=None):
    kept['t'] = t
th = threading.Thread(target=f, kwargs={'t': IN})
th.start()
th.join()
OUT = kept['t']

# a thread of one's own
class T(threading.Thread):
    def __init__(self, t):
        super().__init__()
        self.t = t
    def run(self):
        self.out = self.t * 2
th = T(IN)
th.start()
th.join()
OUT = th.out

# an executor
with concurrent.futures.ThreadPoolExecutor(1) as ex:
    OUT = ex.submit(lambda t: t, IN).result()

# an executor's closure
with concurrent.futures.ThreadPoolExecutor(1) as ex:
    OUT = ex.submit(lambda: IN * 2).result()

# an executor's map
with concurrent.futures.ThreadPoolExecutor(1) as ex:
    OUT = list(ex.map(lambda t: t, [IN]))[0]

# an executor that keeps
kept = []
with concurrent.futures.ThreadPoolExecutor(1) as ex:
    ex.submit(kept.append, IN).result()
OUT = kept[0]

# await
async def f(t):
    return t
async def m():
    return await f(IN)
OUT = asyncio.run(m())

# gather
async def f(t):
    return t
async def m():
    return await asyncio.gather(f(IN), f(1))
OUT = asyncio.run(m())[0]

# async for
async def g():
    yield IN
async def m():
    async for t in g():
        return t
OUT = asyncio.run(m())

# an async comprehension
async def g():
    yield IN
async def m():
    return [t async for t in g()]
OUT = asyncio.run(m())[0]

# async with
class A:
    async def __aenter__(self):
        return IN
    async def __aexit__(self, *a):
        pass
async def m():
    async with A() as t:
        return t
OUT = asyncio.run(m())

# match
match IN:
    case t:
        OUT = t

# match a sequence
match [1, IN]:
    case [1, t]:
        OUT = t

# match a rest
match [1, IN, 3]:
    case [1, *rest]:
        OUT = rest[0]

# match a dict
match {'a': IN}:
    case {'a': t}:
        OUT = t

# match the rest of a dict
match {'a': 1, 'b': IN}:
    case {'a': 1, **rest}:
        OUT = rest['b']

# match a class
@dataclass
class D:
    t: Any
match D(IN):
    case D(t):
        OUT = t

# match by attribute
match SimpleNamespace(t=IN):
    case SimpleNamespace(t=t):
        OUT = t

# match by __match_args__
class D:
    __match_args__ = ('t',)
    def __init__(self, t):
        self.t = t
match D(IN):
    case D(t):
        OUT = t

# match a tuple kind
match [IN]:
    case list(c):
        OUT = c[0]

# a loop's last
OUT = None
for t in [0, IN]:
    OUT = t

# a loop of three
a = b = c = 0
for _ in range(4):
    a, b, c = b, c, IN
OUT = a

# a while loop
n, OUT = 0, None
while n < 1:
    OUT, n = IN, n + 1

# else of a loop
for _ in range(1):
    pass
else:
    OUT = IN

# a break
for t in [IN, IN]:
    OUT = t
    break

# an annotated name
OUT: Any = IN

# a chain
a = OUT = b = IN

# an augmented element
c = [0.0]
c[0] += IN
OUT = c[0]

# an augmented attribute
class A:
    t = 0.0
a = A()
a.t += IN
OUT = a.t

# an augmented key
d = {'a': 0.0}
d['a'] += IN
OUT = d['a']

# del beside it
c = [0, IN]
del c[0]
OUT = c[0]

# a swap of elements
c = [0, IN]
c[0], c[1] = c[1], c[0]
OUT = c[0]

# a nested function's list
kept = []
def f():
    kept.append(IN)
f()
OUT = kept.pop()

"""


def _parsed() -> dict[str, str]:
    found = {}
    for block in _SNIPPETS.strip().split("\n\n"):
        name, _, code = block.partition("\n")
        assert name.startswith("# "), name
        assert name[2:] not in found, name
        found[name[2:]] = code
    return found


HANDING_ON = _parsed()
"""Snippets after which ``OUT`` is ``IN``, or computed from it, by what they do."""


def snippet(name: str, given: str = "h", made: str = "out") -> str:
    """The snippet of a name, from the variable ``given`` to the variable ``made``."""
    return HANDING_ON[name].replace("OUT", made).replace("IN", given)
