"""What must hold in a storm, by what the API shows, write by write, and by what each process was told.

Each promise is a checker of the loop (`check`); some follow the ledger (`see`, `restored`).  None asks the
scheduler what it thinks.  Next: `bounds.py`, what may be so for a while only.
"""

from collections.abc import Callable, Iterable, Iterator

from muster.sim.checkers import NothingForgotten
from muster.sim.loop import Noting
from muster.sim.storm.door import Landed
from muster.sim.storm.ledger import GROUPS, PODS, Ledger
from muster.sim.storm.world import StormWorld
from muster.sim.view import (
    Object,
    amount,
    condition_of,
    counts_for,
    group_of,
    has_ended,
    is_leaving,
    is_placed,
    min_count_of,
    name_of,
    node_of,
    requests_of,
    uid_of,
)

BIND_TIMEOUT = "muster.dev/bind-timeout"
BIND_TIMEOUT_S = 300.0
ON_MEMBER_LOSS = "muster.dev/on-member-loss"
RELEASE_BARE = "muster.dev/release-bare-pods"
WHOLE = "muster.dev/Whole"
SAID_AGAIN_S = 300.0  # for a condition that a late write took back: an outage and a change of leaders
_LOOK_EVERY_S = 10.0
_UNITS_S = {"s": 1.0, "m": 60.0, "h": 3600.0}


class BindsAsDecided(Noting):
    """A binding lands only where the process that leads has decided, on the very pod it decided about.

    Nothing of an earlier leader lands once the next one has begun: a gang's binds come from one decision.
    """

    name = "binds as decided"

    def __init__(self, world: StormWorld) -> None:
        super().__init__()
        self._world = world
        world.landing_readers.append(self.landed)

    def landed(self, landed: Landed) -> None:
        """Judge a binding at the moment that the server accepts it: a kubelet may refuse the pod at once."""
        process = self._world.processes.get(landed.user)
        if process is None:
            return
        pod = f"pod {name_of(landed.pod)}"
        if landed.node_name not in process.decided.get(uid_of(landed.pod), ()):
            self._complaints.append(
                f"{pod} was bound to {landed.node_name}, which {landed.user} did not decide"
            )
        if process.term != self._world.terms:
            self._complaints.append(
                f"{pod} was bound by {landed.user}, leader {process.term} of {self._world.terms}"
            )
        if not self._world.is_outdated(process):
            self._complaints += self._overfull(landed)

    def _overfull(self, landed: Landed) -> Iterator[str]:
        """No node holds more of ours than it has, whoever led when; what a rival took is not ours."""
        ledger, node_name = self._world.ledger, landed.node_name
        node = ledger.nodes.get(node_name)
        if node is None:
            return
        taken = dict(requests_of(landed.pod))
        for pod in ledger.pods.values():
            by = ledger.landed.get(uid_of(pod))
            ours = by is not None and by.user in self._world.processes
            if (
                ours
                and node_of(pod) == node_name
                and not has_ended(pod)
                and uid_of(pod) != uid_of(landed.pod)
            ):
                for resource, asked in requests_of(pod).items():
                    taken[resource] = taken.get(resource, 0) + asked
        offered = node["status"].get("allocatable") or {}
        over = [
            resource for resource, asked in taken.items() if asked > amount(str(offered.get(resource, 0)))
        ]
        if over:
            yield f"node {node_name} holds more {', '.join(sorted(over))} of ours than it has"


class BeginsWithAll:
    """Whoever begins to lead knows of every binding of those who led before: it has listed afresh."""

    name = "begins with all"

    def __init__(self, world: StormWorld) -> None:
        self._world = world
        self._judged = 0

    def check(self, now_s: float) -> Iterator[str]:
        """What the leader that has just begun does not know."""
        if self._judged == self._world.terms:
            return
        self._judged = self._world.terms
        leader = self._world.deciding
        if leader is None or leader.term != self._judged or self._world.is_outdated(leader):
            return
        told = {pod.metadata.uid: pod.spec.node_name for pod in leader.told.pods.values()}
        for name, pod in self._world.ledger.pods.items():
            landed = self._world.ledger.landed.get(uid_of(pod))
            is_ours = landed is not None and landed.user in self._world.processes
            if is_ours and told.get(uid_of(pod), "") != node_of(pod):
                yield f"{leader.identity} begins and does not know that {name} is on {node_of(pod)}"


class SoundDecisions:
    """Whatever a process decides is right by what it was told: gangs whole, room kept, evictions with a seat.

    Retry-After is obeyed, every pod to be placed is in one queue, and the books add up.
    """

    name = "sound decisions"

    def __init__(self, world: StormWorld) -> None:
        self._world = world
        self._looked_s = 0.0
        self._heard = ("", 0)
        self._queues: dict[str, NothingForgotten] = {}

    def check(self, now_s: float) -> Iterator[str]:
        """Complaints about every process since the last step."""
        for replica in self._world.replicas.values():
            if not replica.is_deciding or self._world.is_outdated(replica):
                continue  # one that still knows what never was is about to be started anew
            if replica.has_decided:
                replica.has_decided = False
                for checker in replica.judges:
                    for complaint in checker.check(now_s):
                        yield f"{replica.identity}: {checker.name}: {complaint}"
            for complaint in replica.questions.check(now_s):
                yield f"{replica.identity}: {replica.questions.name}: {complaint}"
            if replica.line.impatience:
                yield f"Retry-After: {replica.line.impatience[0]}"
        if now_s - self._looked_s >= _LOOK_EVERY_S:
            self._looked_s = now_s
            yield from self._look_at_queues()

    def _look_at_queues(self) -> Iterator[str]:
        leader = self._world.deciding
        if leader is None or self._world.is_outdated(leader):
            return
        if self._heard == (leader.identity, leader.heard):
            return  # it has been told nothing since the last look
        if leader.is_settled:
            self._heard = leader.identity, leader.heard
        queues = self._queues.setdefault(leader.identity, NothingForgotten(leader, leader.told))
        for complaint in queues.check(leader.clock.now_s()):
            yield f"{leader.identity}: {queues.name}: {complaint}"


class Starts:
    """Which gangs have started: minCount members were bound at the same time.

    `is_outdated` tells of a write whether it comes from a process that has seen what a restored backup took
    back.  What such a one says of a group is taken for so: nobody can tell it from a loss after it.
    """

    def __init__(self, ledger: Ledger, is_outdated: Callable[[Object], bool] = lambda written: False) -> None:
        self.started: set[str] = set()  # uids of groups
        self.ever_bound: dict[str, set[str]] = {}  # by uid of the group: uids of pods
        self.least_needed: dict[str, int] = {}  # by uid of the group
        self._ledger = ledger
        self.is_by_outdated = is_outdated

    def see(self, kind: str, before: Object | None, after: Object | None, now_s: float) -> None:
        """Look at the group that an object belongs to."""
        if kind == GROUPS and after is not None:
            self._look(after)
            if says_scheduled(after) and self.is_by_outdated(after):
                self.started.add(uid_of(after))
        elif kind == PODS and after is not None and node_of(after) and group_of(after):
            group = self._ledger.groups.get(group_of(after))
            if group is not None:
                self._look(group)

    def restored(self, now_s: float) -> None:
        """What has started after the backup never has."""
        self.started.clear()
        self.ever_bound.clear()
        for group in self._ledger.groups.values():
            self._look(group)
            if says_scheduled(group):
                self.started.add(uid_of(group))

    def is_over(self, group: Object) -> bool:
        """Whether nothing of the group is under way: it has started, or says so after all its bindings.

        A member that vanishes in the moment in which the last one is bound is a loss after the start: nobody
        who hears of the world by watches can tell it from one that vanishes a moment later.
        """
        uid = uid_of(group)
        needed = min_count_of(group) or 1
        is_said = says_scheduled(group) and len(self.ever_bound.get(uid, ())) >= needed
        return uid in self.started or is_said

    def was_ever_bound(self, group: Object) -> bool:
        """Whether the least minimum that the group ever had was bound, at one time or not."""
        uid = uid_of(group)
        return len(self.ever_bound.get(uid, ())) >= self.least_needed.get(uid, 1)

    def _look(self, group: Object) -> None:
        uid, members = uid_of(group), self._ledger.members_of(name_of(group))
        needed = min_count_of(group) or 1
        self.least_needed[uid] = min(needed, self.least_needed.get(uid, needed))
        bound = self.ever_bound.setdefault(uid, set())
        bound.update(uid_of(pod) for pod in members if node_of(pod))
        if sum(counts_for(group, pod) for pod in members) >= needed:
            self.started.add(uid)


class TrueIsTrue(Noting):
    """PodGroupInitiallyScheduled turns True only once minCount members have been bound, and stays.

    An older write that lands late may take it back for a moment; the scheduler has to notice.
    """

    name = "true is true"

    def __init__(self, starts: Starts) -> None:
        super().__init__()
        self._starts = starts
        self._taken_back: dict[str, tuple[str, float]] = {}  # uid → name of the group, and since when

    def see(self, kind: str, before: Object | None, after: Object | None, now_s: float) -> None:
        """Judge what is said of a group as it is said."""
        if kind != GROUPS:
            return
        if before is not None and (after is None or uid_of(before) != uid_of(after)):
            self._taken_back.pop(uid_of(before), None)
        if after is None:
            return
        uid, was = uid_of(after), before is not None and uid_of(before) == uid_of(after)
        said = was and before is not None and says_scheduled(before)
        bound, needed = len(self._starts.ever_bound.get(uid, ())), self._starts.least_needed.get(uid, 1)
        if says_scheduled(after) and not said and bound < needed and uid not in self._starts.started:
            self._complaints.append(f"group {name_of(after)} is True with {bound} of {needed} ever bound")
        elif said and not says_scheduled(after):
            self._taken_back[uid] = (name_of(after), now_s)
        elif says_scheduled(after):
            self._taken_back.pop(uid, None)

    def restored(self, now_s: float) -> None:
        """What was taken back may never have been said."""
        self._taken_back.clear()

    def check(self, now_s: float) -> Iterator[str]:
        """Complaints since the last check, and what is not said again."""
        yield from super().check(now_s)
        for name, since_s in self._taken_back.values():
            if now_s - since_s > SAID_AGAIN_S:
                yield f"group {name} was True and is not since {since_s:.0f}"


def holds(pod: Object) -> bool:
    """Whether it takes room that somebody could take back."""
    return bool(node_of(pod)) and not has_ended(pod) and not is_leaving(pod)


def is_exempt(group: Object, members: Iterable[Object]) -> bool:
    """Whether some of these members may not be deleted: nobody would make them again."""
    if annotations_of(group).get(RELEASE_BARE) == "true":
        return False
    return any(
        not any(owner.get("controller") for owner in pod["metadata"].get("ownerReferences") or ())
        for pod in members
    )


def says_scheduled(group: Object) -> bool:
    """Whether its condition PodGroupInitiallyScheduled is True."""
    return _is_true(group, "PodGroupInitiallyScheduled")


def says_whole(group: Object) -> bool:
    """Whether its condition muster.dev/Whole is True."""
    return _is_true(group, WHOLE)


def _is_true(group: Object, type_: str) -> bool:
    condition = condition_of(group, type_)
    return condition is not None and condition["status"] == "True"


def bind_timeout_s(group: Object, composite: Object | None = None) -> float:
    """How long it may hold without having started: by its own word, else by that of its tree."""
    said = [annotations_of(each).get(BIND_TIMEOUT) for each in (group, composite) if each is not None]
    text = next(filter(None, said), None)
    if text is None:
        return BIND_TIMEOUT_S
    unit = _UNITS_S.get(text[-1])
    return float(text) if unit is None else float(text[:-1]) * unit


def annotations_of(thing: Object) -> dict[str, str]:
    """metadata.annotations."""
    return thing["metadata"].get("annotations") or {}


def is_whole(group: Object, members: Iterable[Object]) -> bool:
    """Whether its minimum is placed."""
    return sum(map(is_placed, members)) >= (min_count_of(group) or 1)
