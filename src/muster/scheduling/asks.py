"""What an entity asks for and how urgently, so that all who ask alike are refused together.

Two entities ask alike if no rule can tell them apart: neither has anything placed, promised or nominated, and
shapes, order and number of their members and what their groups demand are equal.  In comes a cast; out comes
a key for dictionaries.  Next: `sleepers.py`.
"""

from collections.abc import Hashable, Sequence
from itertools import groupby

from muster.framework.runner import Runner
from muster.placement.shapes import ShapeKey
from muster.scheduling.members import Cast, Member, Stage

_NEVER = "Never"


def find_ask(cast: Cast, waiting: Sequence[Member], runner: Runner, label_keys: frozenset[str]) -> Hashable:
    """The key of what a lone pod or a pod group without parent asks for; None where it is like no other.

    `waiting`: its members to place, in their order; `label_keys`: those that rules in the cluster read.
    """
    group = cast.group
    if cast.is_composite or cast.parent is not None or not is_untouched(cast):
        return None
    if group is not None and (not group.is_gang or group.rank_key or group.unsupported):
        return None
    if not waiting or any(member.pod.status.nominated_node_name for member in waiting):
        return None
    labels = runner.labels_read(label_keys)
    shapes = [member.shape(metadata=runner.reads_metadata, labels=labels) for member in waiting]
    if shapes.count(shapes[0]) == len(shapes):
        runs: tuple[tuple[ShapeKey, int], ...] = ((shapes[0], len(shapes)),)
    else:
        runs = tuple((shape, len(list(run))) for shape, run in groupby(shapes))
    terms = None
    if group is not None:
        terms = (group.needed, group.priority, group.topology_keys, group.preferred_levels)
    return (terms, policy_of(cast, waiting), runs)


def priority_of(cast: Cast) -> int:
    """A group's priority is its own; a lone pod's the pod's."""
    if cast.group is not None:
        return cast.group.priority
    return next((member.pod.spec.priority or 0 for member in cast.of(Stage.WAITING)), 0)


def policy_of(cast: Cast, waiting: Sequence[Member]) -> str:
    """The group's own preemption policy where it has one, else Never if any member's is."""
    if cast.group is not None and cast.group.preemption_policy:
        return cast.group.preemption_policy
    policies = {member.pod.spec.preemption_policy for member in waiting}
    return _NEVER if _NEVER in policies else "PreemptLowerPriority"


def may_preempt(cast: Cast, waiting: Sequence[Member], runner: Runner) -> bool:
    """Whether it may drive out whoever is weaker: some rule makes room, and its policy lets it."""
    return runner.makes_room and policy_of(cast, waiting) != _NEVER


def is_untouched(cast: Cast) -> bool:
    """Whether all its members wait to be placed."""
    return len(cast.stages[Stage.WAITING]) == sum(map(len, cast.stages.values()))
