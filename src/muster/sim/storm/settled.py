"""What must hold once the storm is over and everything has had its time: asked at the end.

There is room for everybody then, nothing is gated, cordoned, silent or refused any more.  `KnowsWhatIs` is
asked on the way, too, of every replica that nothing is on its way to.
"""

from collections.abc import Iterator, Mapping

from muster.scheduling.gangs import Gang
from muster.scheduling.standing import RELEASED
from muster.sim.storm.forest import Forest
from muster.sim.storm.promises import (
    ON_MEMBER_LOSS,
    WHOLE,
    Starts,
    annotations_of,
    holds,
    is_exempt,
    says_scheduled,
)
from muster.sim.storm.world import StormWorld
from muster.sim.view import (
    Object,
    condition_of,
    counts_for,
    group_of,
    is_waiting,
    min_count_of,
    min_group_count_of,
    name_of,
    node_of,
    parent_of,
    phase_of,
    uid_of,
)

COUNTED_WITHIN_S = 40.0  # counts are said half a minute after they changed


class WholeOrEmpty:
    """Every gang that has its members is whole, every other one holds nothing; and nobody else waits."""

    name = "whole or empty"

    def __init__(self, world: StormWorld, starts: Starts, forest: Forest) -> None:
        self._world = world
        self._starts = starts
        self._forest = forest

    def check(self, now_s: float) -> Iterator[str]:
        """Gangs and trees that are neither, and lone pods that wait."""
        ledger = self._world.ledger
        for name, group in ledger.groups.items():
            yield from self._look(name, group, ledger.members_of(name))
        for composite in ledger.composites.values():
            yield from self._look_at_tree(composite)
        for name, pod in ledger.pods.items():
            if is_waiting(pod) and not group_of(pod) and pod["spec"].get("schedulerName") != "rival":
                yield f"pod {name} waits"

    def _look(self, name: str, group: Object, members: list[Object]) -> Iterator[str]:
        needed = min_count_of(group)
        placed = sum(counts_for(group, pod) for pod in members)
        waiting = [pod for pod in members if is_waiting(pod)]
        holding = [pod for pod in members if holds(pod)]
        has_started = self._starts.is_over(group)
        tree = self._forest.groups_of(parent_of(group)) if parent_of(group) else [group]
        if self._forest.is_hopeless(group) or self._wait_after_a_loss(tree):
            waiting = []  # with right: the others of its tree are not there, or it is not to be tried yet
        if needed is None or placed >= needed:
            if waiting:
                yield f"group {name} has {len(waiting)} members that wait"
        elif placed + len(waiting) >= needed:
            if annotations_of(group).get(ON_MEMBER_LOSS) == "hold" and has_started:
                return
            yield f"gang {name} has {placed} of {needed} placed and {len(waiting)} wait"
        elif holding and not has_started and not is_exempt(group, holding):
            yield f"gang {name} holds {len(holding)} of {needed} and never started"

    def _look_at_tree(self, composite: Object) -> Iterator[str]:
        """Of a tree that could, enough groups are whole; one that never could holds nothing."""
        name, forest = name_of(composite), self._forest
        whole, needed = forest.count_whole(composite), min_group_count_of(composite)
        if whole >= needed or forest.has_started(composite):
            return
        if self._wait_after_a_loss(forest.groups_of(name)):
            return
        if forest.is_possible(composite):
            yield f"tree {name} has {whole} of {needed} groups whole, and others could be"
        elif held := forest.holding(composite):
            yield f"tree {name} never started, and {', '.join(held)} hold room"

    def _wait_after_a_loss(self, groups: list[Object]) -> bool:
        """Whether one of a tree, or a gang alone, was released for lost members and its time is not over yet.

        By the clock of whoever leads.  One that is released as it is bound, ever again, is not excused.
        """
        leader = self._world.deciding
        return leader is not None and any(_again_s(each) > leader.clock.now_s() for each in groups)


def _again_s(group: Object) -> float:
    """When a gang is tried again that was released because members were lost; 0.0 for others."""
    said = condition_of(group, WHOLE) or {}
    message = said.get("message", "")
    if said.get("reason") != RELEASED or "members were lost" not in message:
        return 0.0
    return Gang().read_releases(message)


class KnowsWhatIs:
    """Every replica that nothing is on its way to has been told of what is there, and of nothing else."""

    name = "knows what is"

    def __init__(self, world: StormWorld) -> None:
        self._world = world

    def check(self, now_s: float) -> Iterator[str]:
        """Pods and groups of which a replica was told something else than the API holds."""
        ledger = self._world.ledger
        for replica in self._world.replicas.values():
            if not replica.is_informed or self._world.is_outdated(replica):
                continue
            told = replica.told
            pods = {key.name: (pod.metadata.uid, pod.spec.node_name or "") for key, pod in told.pods.items()}
            groups = {key.name: group.uid for key, group in told.groups.items()}
            there = {name: (uid_of(pod), node_of(pod)) for name, pod in ledger.pods.items()}
            yield from _differences(replica.identity, "pod", pods, there)
            there_groups = {name: uid_of(group) for name, group in ledger.groups.items()}
            yield from _differences(replica.identity, "group", groups, there_groups)


def _differences(
    identity: str, what: str, told: Mapping[str, object], there: Mapping[str, object]
) -> Iterator[str]:
    for name in sorted(told.keys() | there.keys()):
        if told.get(name) != there.get(name):
            yield f"{identity} was told {what} {name} is {told.get(name)}, and it is {there.get(name)}"


class ConditionsAgree:
    """What a group says of itself is so."""

    name = "conditions agree"

    def __init__(self, world: StormWorld, forest: Forest) -> None:
        self._world = world
        self._forest = forest

    def check(self, now_s: float) -> Iterator[str]:
        """Groups that say what is not so."""
        for name, group in self._world.ledger.groups.items():
            if self._forest.may_wait(group):
                continue  # it says that its tree is under way
            members = self._world.ledger.members_of(name)
            needed = min_count_of(group) or 1
            placed = sum(counts_for(group, pod) for pod in members)
            if placed >= needed and not says_scheduled(group):
                yield f"group {name} has {placed} of {needed} placed and does not say so"
            condition = condition_of(group, WHOLE)
            if condition is None or min_count_of(group) is None or not any(map(holds, members)):
                continue  # a gang that holds nothing any more may leave its last word
            if (placed >= needed) != (condition["status"] == "True"):
                yield f"group {name} has {placed} of {needed} placed and {WHOLE} is {condition['status']}"
            if now_s - self._world.ledger.changed_s.get(name, 0.0) < COUNTED_WITHIN_S:
                continue
            running = sum(phase_of(pod) == "Running" for pod in members)
            said = str(condition.get("message", ""))
            if condition.get("reason") == "Running" and running and f"{running} running" not in said:
                yield f"group {name} has {running} running and says: {said}"
