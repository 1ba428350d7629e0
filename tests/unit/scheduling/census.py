"""How much a scheduler remembers: a census of all that can be reached from it."""

from collections import Counter, deque
from collections.abc import Iterator
from typing import Any

import numpy as np


def count_entries(root: object) -> Counter[str]:
    """Entries of every container and array that can be reached, by the attribute that they are reached by.

    Only containers and objects of Muster are looked into; each is counted once.
    """
    found: Counter[str] = Counter()
    seen: set[int] = set()
    held: list[object] = []  # so that no identity is given twice
    stack: list[tuple[str, object]] = [("scheduler", root)]
    while stack:
        name, thing = stack.pop()
        if id(thing) in seen or isinstance(thing, type):
            continue
        seen.add(id(thing))
        held.append(thing)
        if isinstance(thing, np.ndarray):
            found[name] += thing.size
        elif isinstance(thing, dict):
            found[name] += len(thing)
            stack += [(name, each) for pair in thing.items() for each in pair]
        elif isinstance(thing, list | set | frozenset | deque | tuple):
            found[name] += len(thing)
            stack += [(name, each) for each in thing]
        elif type(thing).__module__.startswith("muster."):
            owner = type(thing).__name__
            stack += [(f"{owner}.{attribute}", value) for attribute, value in _attributes(thing)]
    return found


def _attributes(thing: object) -> Iterator[tuple[str, Any]]:
    names = set(getattr(thing, "__dict__", ()))
    for kind in type(thing).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names |= {slots} if isinstance(slots, str) else set(slots)
    for name in names - {"__dict__", "__weakref__"}:
        if hasattr(thing, name):
            yield name, getattr(thing, name)
