"""Attached values that are only kept: in a sum, in a list, as the best so far.

A value is *kept* if what holds it still does when the next step has begun, if the graph behind it served a ``backward``
(a graph that never did is evaluation, which another rule mends) and if no ``backward`` ever comes through what holds
it. ``places.py`` finds what is kept and whether it outlives its step, ``judging.py`` says whether its graph is needed,
by the uses that ``uses.py`` knows.
"""
