"""What an entity asks for, so that all who ask alike are refused together.

Two entities ask alike if no rule can tell them apart: neither has anything placed, promised or nominated, and
shapes, order and number of their members and what their groups demand are equal.  In comes a cast; out comes
a key for dictionaries.  Next: `sleepers.py`.
"""

from collections.abc import Hashable
from itertools import groupby

from muster.framework.runner import Runner
from muster.scheduling.members import Cast, Member, Stage

NEVER = "Never"


def find_ask(cast: Cast, runner: Runner, label_keys: frozenset[str]) -> Hashable:
    """The key of what a lone pod or a pod group without parent asks for; None where it is like no other.

    `label_keys`: those that rules in the cluster read.
    """
    group = cast.group
    if cast.is_composite or cast.parent is not None or not _is_untouched(cast):
        return None
    if group is not None and (not group.is_gang or group.rank_key or group.unsupported):
        return None
    waiting = cast.waiting()
    if not waiting or any(member.pod.status.nominated_node_name for member in waiting):
        return None
    labels = runner.labels_read(label_keys)
    shapes = (member.shape(metadata=runner.reads_metadata, labels=labels) for member in waiting)
    runs = tuple((shape, sum(1 for _ in run)) for shape, run in groupby(shapes))
    terms = None
    if group is not None:
        terms = (group.needed, group.priority, group.topology_keys, group.preferred_levels)
    return (terms, policy_of(cast, waiting), runs)


def policy_of(cast: Cast, waiting: list[Member]) -> str:
    """The group's own preemption policy where it has one, else Never if any member's is."""
    if cast.group is not None and cast.group.preemption_policy:
        return cast.group.preemption_policy
    policies = {member.pod.spec.preemption_policy for member in waiting}
    return NEVER if NEVER in policies else "PreemptLowerPriority"


def _is_untouched(cast: Cast) -> bool:
    return not any(members for stage, members in cast.stages.items() if stage is not Stage.WAITING)
