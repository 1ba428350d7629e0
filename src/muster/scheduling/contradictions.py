"""What members and their group must agree on before anybody is placed; texts as stock words them.

Already placed members are asked too: a gang of which one runs under another scheduler is nobody's to
complete.
"""

from collections.abc import Sequence

from muster.api.core import Pod
from muster.framework.groups import Group
from muster.scheduling.members import Cast, Member, Stage

_DEFAULT_POLICY = "PreemptLowerPriority"


def find_contradiction(cast: Cast, waiting: Sequence[Member]) -> str | None:
    """The first thing on which members, or members and group, disagree; texts as stock words them."""
    group = cast.group
    pods = [member.pod for member in (*cast.of(Stage.BOUND, Stage.ASSUMED), *waiting)]
    if group is None or not pods:
        return None
    first = pods[0].spec
    for spec in (pod.spec for pod in pods):
        if spec.scheduler_name != first.scheduler_name:
            return (
                "all pods in a single pod group should have the same .spec.schedulerName set, "
                f'got: "{first.scheduler_name}" and "{spec.scheduler_name}"'
            )
    for spec in (pod.spec for pod in pods):
        if (spec.priority or 0) != group.priority:
            return (
                "all pods in a single pod group should have the same priority as the pod group's priority, "
                f"got {spec.priority or 0} and {group.priority}"
            )
    return _policy_contradiction(group, pods)


def _policy_contradiction(group: Group, pods: Sequence[Pod]) -> str | None:
    """A group has a policy of its own only where the API serves one (gate PodGroupPreemptionPolicy)."""
    wanted = group.preemption_policy or pods[0].spec.preemption_policy or _DEFAULT_POLICY
    as_group = " as the pod group's preemption policy" if group.preemption_policy else ""
    for pod in pods:
        policy = pod.spec.preemption_policy or _DEFAULT_POLICY
        if policy != wanted:
            got = f"{policy} and {wanted}" if as_group else f"{wanted} and {policy}"
            return (
                f"all pods in a single pod group should have the same preemption policy{as_group}, got {got}"
            )
    return None
