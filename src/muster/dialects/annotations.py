"""What `muster.dev/` annotations on a group object ask for: preferred topology and rank order.

In come the annotations of a PodGroup or CompositePodGroup; out come the fields of the core's `Group`, and
what cannot be read as reasons, by which the group is held: a value is never ignored.  What says nothing on a
pod is named, too; the pod is placed all the same.  Next: `native.py`.
"""

import re
from collections.abc import Mapping

from msgspec import Struct

from muster.dialects.terms import TERMS, fault
from muster.framework.annotations import FOR_USERS, ON_PODS
from muster.framework.groups import GroupKey, UnsupportedField

PREFIX = "muster.dev/"
PREFERRED_KEY = "muster.dev/preferred-topology-key"
LEVELS = "muster.dev/topology-levels"
RANK_ORDER = "muster.dev/rank-order"
KNOWN = (PREFERRED_KEY, LEVELS, RANK_ORDER, *TERMS)

_NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = re.compile(rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{_NAME}")


class Wishes(Struct, frozen=True):
    """`levels` are label keys, widest first; `rank_key` the label or annotation that holds a pod's rank."""

    levels: tuple[str, ...] = ()
    rank_key: str = ""
    unreadable: tuple[UnsupportedField, ...] = ()


def read_wishes(annotations: Mapping[str, str]) -> Wishes:
    """What the annotations ask for; a name under `muster.dev/` that is none of `KNOWN` is unreadable, too."""
    bad: list[UnsupportedField] = []
    levels: tuple[str, ...] = ()
    if LEVELS in annotations:
        levels = tuple(key.strip() for key in annotations[LEVELS].split(","))
        wrong = next((key for key in levels if not _KEY.fullmatch(key)), None)
        if wrong is not None:
            bad.append(fault(LEVELS, f'"{wrong}" is no label key; give label keys, widest first: zone,rack'))
        elif len(set(levels)) < len(levels):
            bad.append(fault(LEVELS, "a label key is given twice"))
    if PREFERRED_KEY in annotations:
        key = annotations[PREFERRED_KEY].strip()
        if LEVELS in annotations:
            bad.append(fault(PREFERRED_KEY, f"give this or {LEVELS}, not both"))
        elif not _KEY.fullmatch(key):
            bad.append(fault(PREFERRED_KEY, f'"{key}" is no label key'))
        levels = levels or (key,)
    rank_key = annotations.get(RANK_ORDER, "").strip()
    if RANK_ORDER in annotations and not _KEY.fullmatch(rank_key):
        bad.append(fault(RANK_ORDER, f'"{rank_key}" is no key of a label or annotation'))
    bad += [
        fault(name, _why_not_here(name))
        for name in sorted(annotations)
        if name.startswith(PREFIX) and name not in KNOWN
    ]
    return Wishes(levels, rank_key, tuple(bad))


def _why_not_here(name: str) -> str:
    if name in FOR_USERS:
        return "says nothing on a group; give it to the pods"
    return f"there is no such annotation; there are {', '.join(KNOWN)}"


def find_idle(annotations: Mapping[str, str], group: GroupKey | None) -> tuple[UnsupportedField, ...]:
    """Annotations of a pod of this group that say nothing on pods, with where they belong."""
    names = [name for name in annotations if name.startswith(PREFIX) and name not in ON_PODS]
    return tuple([fault(name, _why_idle(name, group)) for name in sorted(names)])


def _why_idle(name: str, group: GroupKey | None) -> str:
    if name not in KNOWN:
        of_pods, of_groups = ", ".join(FOR_USERS), ", ".join(KNOWN)
        return f"nobody reads it on a pod; on pods there are {of_pods}, on groups {of_groups}"
    if group is None:
        return "says nothing on a pod; it is for pod groups, and this pod is of none"
    return f"says nothing on a pod; give it to pod group {group}"
