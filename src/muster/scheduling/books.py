"""All that the scheduler remembers between two events, in one place; changed only inside `Scheduler.handle`.

`touched` are entities about which something changed since they were last looked at (the arrivals in
flight): they are reviewed together before the next cycle, so that a thousand new members cost one look at
their group.
"""

from collections.abc import Hashable
from math import inf

from msgspec.structs import replace

from muster.api.core import Pod
from muster.base.heap import KeyedHeap
from muster.cluster.budgets import Budget
from muster.cluster.devices import ClaimKey
from muster.cluster.requests import pod_requests
from muster.cluster.state import ClusterState
from muster.framework.events import Change, ClusterEvent
from muster.framework.groups import ObjectKey
from muster.framework.ports import RecordEvent
from muster.framework.runner import Runner
from muster.placement.capacity import members_per_node
from muster.placement.shapes import ShapeKey
from muster.scheduling.arrivals import Arrivals
from muster.scheduling.asks import find_ask, may_preempt, priority_of
from muster.scheduling.conditions import Conditions
from muster.scheduling.gangs import Gangs, Kept
from muster.scheduling.hopeless import Hopes
from muster.scheduling.inflight import InFlight
from muster.scheduling.members import Cast, EntityKey, Member, Members
from muster.scheduling.metrics import Metrics
from muster.scheduling.nominations import Nominations
from muster.scheduling.preparations import Preparations
from muster.scheduling.queue import Queue, QueueTimes
from muster.scheduling.reasons import Explanations
from muster.scheduling.rescues import Rescues
from muster.scheduling.searches import Searches
from muster.scheduling.speech import Speech
from muster.scheduling.units import Units, Victim


class Books:
    """The state machine's state."""

    def __init__(self, *, runner: Runner, scheduler_names: frozenset[str], times: QueueTimes) -> None:
        self.runner = runner
        self.state = ClusterState()
        self.members = Members(scheduler_names)
        self.metrics = Metrics()
        self.queue = Queue(
            sort_key=runner.sort_key,
            rules_of=runner.rules_of,
            copies_on=self._copies_on,
            ask_of=self.ask_of,
            may_drive_out=self.may_drive_out,
            times=times,
        )
        self.arrivals = Arrivals()
        self.inflight = InFlight()
        self.gangs = Gangs()
        self.kept: dict[str, Kept] = {}  # by uid of the pod that the room is kept for
        self.conditions = Conditions()
        self.speech = Speech()
        self.explanations = Explanations(runner)
        self.hopes = Hopes(runner)
        self.searches = Searches()
        self.nominations = Nominations()
        self.claims_due: KeyedHeap[ClaimKey] = KeyedHeap()  # claims to look at: used by nobody who is bound
        self.preparations = Preparations()
        self.units = Units(self.members)
        self.rescues = Rescues()
        self.victims: dict[str, Victim] = {}  # by uid: asked to leave, and not gone yet
        self.told_when_done: dict[str, RecordEvent] = {}  # by uid of a victim: said when its eviction is done
        self.budgets: dict[ObjectKey, Budget] = {}
        self.touched: dict[EntityKey, Change | None] = {}
        self.synced = False

    def touch(self, entity: EntityKey, wake: Change | None = None) -> None:
        """Have the entity looked at before the next cycle; `wake`: the change that may end its refusal.

        Looked at is the root of its tree, as it is then.
        """
        self.touched[entity] = wake or self.touched.get(entity)

    def root(self, entity: EntityKey) -> Cast:
        """The cast of the tree that the entity is in."""
        return self.members.cast(self.members.root_of(entity))

    def forget(self, entity: EntityKey, now_s: float) -> None:
        """The entity is gone, or is no root any more: it is in no queue, and nothing is said of it."""
        self.arrivals.take(entity)
        self.queue.forget(entity, now_s)
        self.speech.forget(entity)
        self.hopes.forget(entity)

    def rank_of(self, pod: Pod) -> int:
        """The priority a running pod counts with when somebody wants its room: its group's, if known."""
        member = self.members.find(ObjectKey(pod.metadata.namespace, pod.metadata.name))
        group = self.members.find_group(member.group) if member is not None and member.group else None
        return group.priority if group is not None else pod.spec.priority or 0

    def shape_of(self, member: Member) -> ShapeKey:
        """What its pod asks for; reckoned once, as the pod comes, for a decision is waited for."""
        labels = self.runner.labels_read(self.state.label_keys_read)
        return member.shape(metadata=self.runner.reads_metadata, labels=labels)

    def ask_of(self, entity: EntityKey) -> Hashable:
        """What it asks for, by which all are refused together; None where it is like no other."""
        cast = self.members.cast(entity)
        waiting = cast.waiting()
        if self.nominations and any(self.nominations.node_of(member.pod.metadata.uid) for member in waiting):
            return None
        keys = self.state.label_keys_read
        known = cast.asked  # in a storm it is asked for when it is looked at, tried, refused
        if known is None or known[0] != cast.version or known[1] is not cast.group or known[2] != keys:
            ask = find_ask(cast, waiting, self.runner, keys)
            known = cast.asked = (cast.version, cast.group, keys, ask)
        return known[3]

    def may_drive_out(self, entity: EntityKey, now_s: float) -> bool:
        """Whether somebody weaker is there, so that it may find room by driving it out."""
        cast = self.members.cast(entity)
        has_weaker = self.units.has_weaker(
            self.state.snapshot(),
            priority=priority_of(cast),
            root=entity,
            asked=self.victims,
            now_s=now_s,
        )
        waiting = cast.waiting() if has_weaker else []
        return bool(waiting) and may_preempt(cast, waiting, self.runner)

    def _copies_on(self, pod: Pod, node_name: str, takes_below: float) -> int:
        """How many copies of the pod the node has room for by resources alone, once the weaker are gone.

        `takes_below`: those of less priority; infinite: all.
        """
        table = self.state.table
        row = table.row_of.get(node_name)
        if row is None:
            return 0
        amounts = pod_requests(pod)
        if any(amount and name not in table.axis.names for name, amount in amounts.items()):
            return 0
        free = table.allocatable[row : row + 1]
        if takes_below < inf:
            free = free - table.requested[row : row + 1]
            for other in self.state.pods_on(node_name) if takes_below > -inf else ():
                if min(other.spec.priority or 0, self.rank_of(other)) < takes_below:
                    free = free + table.axis.row(pod_requests(other))
        return int(members_per_node(free, table.axis.row(amounts), table.live[row : row + 1])[0])

    def tell(self, event: ClusterEvent, now_s: float) -> None:
        """Wake whom a change of the cluster can help; before everything is listed nobody waits yet."""
        if self.synced:
            backed = self.state.devices.backed
            if backed and event.node is not None:
                event = replace(event, backed=frozenset(backed))
            self.queue.tell(event, now_s)

    def free_promise(self, node_name: str, pod: Pod, now_s: float) -> None:
        """Room that was promised to this pod ("": none was) is anybody's again."""
        if node_name:
            self.tell(ClusterEvent(Change.POD_FREED, pod=pod, node=self.state.node(node_name)), now_s)
