"""What members and their group must agree on before anybody is placed; texts as stock words them.

Already placed members are asked too: a gang of which one runs under another scheduler is nobody's to
complete, and one whose members run in two domains of its topology key never was.
"""

from collections.abc import Sequence

from muster.api.core import Pod
from muster.base.errors import PluginError
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import Group
from muster.framework.runner import Runner
from muster.framework.status import Status, Verdict
from muster.scheduling.members import Cast, Member, Stage

LEVELS_MAX = 4  # as of the templates of a Workload: three levels of composites, one of pod groups
INVALID_TREE = "InvalidTree"
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


def find_fault(cast: Cast) -> Status | None:
    """Why this tree of groups is none that can be placed: a ring, or more levels than there may be."""
    if not cast.is_composite:
        return None
    level, seen = [cast], {id(cast)}
    for _ in range(LEVELS_MAX - 1):
        level = [child for each in level for child in each.children.values()]
        ring = next((child for child in level if id(child) in seen), None)
        if ring is not None:
            return _fault(f"composite pod group {_name(ring)} is an ancestor of itself")
        seen.update(id(child) for child in level)
    deepest = next((child for child in level if child.is_composite), None)
    if deepest is None:
        return None
    return _fault(
        f"composite pod group {_name(deepest)} is on level {LEVELS_MAX} of its tree, "
        f"which is the deepest there may be, and for pod groups only"
    )


def _fault(text: str) -> Status:
    return Status(Verdict.UNRESOLVABLE, text, INVALID_TREE)


def _name(cast: Cast) -> str:
    return str(cast.group.key) if cast.group is not None else "that does not exist"


def find_split(cast: Cast, snapshot: Snapshot, runner: Runner) -> str | None:
    """Why the members placed already cannot be all in one placement of their group, None if they can."""
    group = cast.group
    if group is None or not group.topology_keys:
        return None
    pinned = pinned_members(cast, snapshot)
    try:
        answer = runner.placements(group, snapshot, snapshot.live_rows(), pinned=pinned)
    except PluginError:  # the next attempt says so
        return None
    return answer.message if isinstance(answer, Status) else None


def pinned_members(cast: Cast, snapshot: Snapshot) -> list[tuple[Pod, int]]:
    """Members that have a place in the cluster, with their rows; -1 where the node is not known."""
    rows = snapshot.row_of_node
    return [(member.pod, rows.get(member.node_name, -1)) for member in cast.of(Stage.BOUND, Stage.ASSUMED)]


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
