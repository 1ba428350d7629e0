"""Event and Effect types: the whole contract of the scheduler with the outside.

Events come in through `Scheduler.handle(event, now_s)`, effects go out as its return value.  Everything
that speaks to the world is an effect; its outcome comes back as an event.  `now_s` is seconds since the
Unix epoch on a clock that never goes back (the runtime adds a monotonic clock to the wall time of its
start; the simulator counts).

Adding a type here needs a decision record: every performer (runtime/executor.py, sim/world.py,
assembly/loopback.py) must learn it.
"""

from msgspec import Struct

from muster.api.core import Node, Pod
from muster.api.meta import Condition
from muster.framework.groups import Group, GroupKey, PodKey

# ── events: what was seen ────────────────────────────────────────────────────────────────────────


class PodSeen(Struct, frozen=True):
    """A pod exists in this state: added or changed.  `group` is what its dialect says it belongs to."""

    pod: Pod
    group: GroupKey | None = None


class PodGone(Struct, frozen=True):
    """A pod object no longer exists."""

    key: PodKey
    uid: str


class NodeSeen(Struct, frozen=True):
    """A node exists in this state: added or changed."""

    node: Node


class NodeGone(Struct, frozen=True):
    """A node object no longer exists."""

    name: str


class GroupSeen(Struct, frozen=True):
    """A pod group exists in this state: added or changed."""

    group: Group


class GroupGone(Struct, frozen=True):
    """A pod group object no longer exists."""

    key: GroupKey
    uid: str


class Synced(Struct, frozen=True):
    """Every kind has been listed once; before this the scheduler only takes notes and decides nothing."""


class TimeReached(Struct, frozen=True):
    """The time asked for by `WakeAt` has come."""


# ── events: what became of an effect ─────────────────────────────────────────────────────────────


class BindDone(Struct, frozen=True):
    """The API accepted the binding (or the pod turned out to be on that node already)."""

    key: PodKey
    uid: str
    node_name: str


class BindFailed(Struct, frozen=True):
    """The API refused the binding, or nobody knows (`code` 0: timeout, reset; the bind may have landed)."""

    key: PodKey
    uid: str
    node_name: str
    code: int
    reason: str
    message: str
    retry_after_s: float | None = None


class WriteFailed(Struct, frozen=True):
    """A status write (`PatchPodStatus`, `PatchGroupStatus`) was given up; the core may say it again later."""

    effect: "PatchPodStatus | PatchGroupStatus"
    code: int
    message: str


Event = (
    PodSeen
    | PodGone
    | NodeSeen
    | NodeGone
    | GroupSeen
    | GroupGone
    | Synced
    | TimeReached
    | BindDone
    | BindFailed
    | WriteFailed
)

# ── effects ──────────────────────────────────────────────────────────────────────────────────────


class ObjectReference(Struct, frozen=True):
    """What an Event is about."""

    api_version: str
    kind: str
    key: PodKey
    uid: str


class BindPod(Struct, frozen=True):
    """POST the binding of this very pod (uid is a precondition) to this node.

    The performer answers with exactly one `BindDone` or `BindFailed`.
    """

    key: PodKey
    uid: str
    node_name: str
    scheduler_name: str
    group: GroupKey | None = None


class PatchPodStatus(Struct, frozen=True):
    """Set one condition of a pod and, unless left alone, its nominated node.

    `nominated_node_name`: None leaves it, "" clears it.  The performer fills `lastTransitionTime`
    nowhere: the condition already carries it.
    """

    key: PodKey
    uid: str
    condition: Condition | None = None
    nominated_node_name: str | None = None


class PatchGroupStatus(Struct, frozen=True):
    """Set and remove conditions of a group in one write (a strategic merge by condition type).

    `order`: the types that are on the object as last seen, then the new ones; a patch that did not say it
    would push conditions of others behind ours.
    """

    key: GroupKey
    uid: str
    set_conditions: tuple[Condition, ...] = ()
    remove_conditions: tuple[str, ...] = ()
    order: tuple[str, ...] = ()


class RecordEvent(Struct, frozen=True):
    """Write an events.k8s.io/v1 Event; `type` is Normal or Warning.  A failure is dropped, and counted."""

    regarding: ObjectReference
    type: str
    reason: str
    action: str
    note: str
    scheduler_name: str
    related: ObjectReference | None = None


class WakeAt(Struct, frozen=True):
    """Send `TimeReached` at this time; a later `WakeAt` replaces an earlier one that is still to come."""

    at_s: float


Effect = BindPod | PatchPodStatus | PatchGroupStatus | RecordEvent | WakeAt
