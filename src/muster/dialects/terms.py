"""What `muster.dev/` annotations say about a gang that cannot be whole: timeouts, lost members, bare pods.

In come the annotations of a PodGroup or CompositePodGroup; out come the core's `Terms`, and what cannot be
read as reasons, by which the group is held.  Next: `annotations.py`, the other wishes.
"""

import re
from collections.abc import Mapping

from muster.framework.groups import ON_MEMBER_LOSS, Terms, UnsupportedField, annotation_path

BIND_TIMEOUT = "muster.dev/bind-timeout"
READY_TIMEOUT = "muster.dev/ready-timeout"
MEMBER_LOSS = "muster.dev/on-member-loss"
BARE_PODS = "muster.dev/release-bare-pods"
TERMS = (BIND_TIMEOUT, READY_TIMEOUT, MEMBER_LOSS, BARE_PODS)

TIMEOUT_S_MIN, TIMEOUT_S_MAX = 10.0, 7 * 86_400.0

_DURATION = re.compile(r"([0-9]{1,7})(s|m|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_TRUTH = {"true": True, "false": False}


def read_terms(annotations: Mapping[str, str]) -> tuple[Terms, tuple[UnsupportedField, ...]]:
    """The terms, with the default in place of each value that cannot be read, and those values."""
    default = Terms()
    bad: list[UnsupportedField] = []
    loss = annotations.get(MEMBER_LOSS, default.on_member_loss).strip()
    if loss not in ON_MEMBER_LOSS:
        bad.append(fault(MEMBER_LOSS, f'"{loss}" is none of {", ".join(ON_MEMBER_LOSS)}'))
        loss = default.on_member_loss
    bare = annotations.get(BARE_PODS, "false").strip()
    if bare not in _TRUTH:
        bad.append(fault(BARE_PODS, f'"{bare}" is neither true nor false'))
    return (
        Terms(
            bind_timeout_s=_seconds(annotations, BIND_TIMEOUT, bad),
            ready_timeout_s=_seconds(annotations, READY_TIMEOUT, bad),
            on_member_loss=loss,
            releases_bare_pods=_TRUTH.get(bare, False),
        ),
        tuple(bad),
    )


def find_idle_terms(annotations: Mapping[str, str], *, has_parent: bool) -> tuple[UnsupportedField, ...]:
    """Terms that say nothing on a composite group: it takes a bind-timeout for its tree, and only on top."""
    bad = [
        fault(name, "says nothing on a composite pod group; give it to its pod groups")
        for name in TERMS
        if name in annotations and name != BIND_TIMEOUT
    ]
    if has_parent and BIND_TIMEOUT in annotations:
        bad.append(fault(BIND_TIMEOUT, "counts for a whole tree; give it to the composite pod group on top"))
    return tuple(bad)


def find_idle_on_basic(annotations: Mapping[str, str], *, has_parent: bool) -> tuple[UnsupportedField, ...]:
    """Terms that say nothing on a basic group: it is never given up, save with its tree."""
    return tuple(
        fault(
            name, "says nothing on a basic group; give the group a gang policy, or take the annotation away"
        )
        for name in TERMS
        if name in annotations and not (name == BARE_PODS and has_parent)
    )


def _seconds(annotations: Mapping[str, str], name: str, bad: list[UnsupportedField]) -> float | None:
    text = annotations.get(name)
    if text is None:
        return None
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        bad.append(fault(name, f'"{text}" is no time; give seconds, minutes or hours: 300, 300s, 5m or 1h'))
        return None
    found_s = float(match[1]) * _SECONDS[match[2]]
    if not TIMEOUT_S_MIN <= found_s <= TIMEOUT_S_MAX:
        bad.append(fault(name, f'"{text}" is not between {TIMEOUT_S_MIN:.0f} seconds and seven days'))
        return None
    return found_s


def fault(name: str, why: str) -> UnsupportedField:
    """What is wrong with the annotation of this name."""
    return UnsupportedField(annotation_path(name), why)
