"""Event and Effect types: the whole contract of the scheduler with the outside.

Events come in through `Scheduler.handle(event, now_s)`, effects go out as its return value.  Everything
that speaks to the world is an effect; its outcome comes back as an event.  `now_s` is seconds since the
Unix epoch on a clock that never goes back (the runtime adds a monotonic clock to the wall time of its
start; the simulator counts).

Adding a type here needs a decision record: every performer (runtime/executor.py, sim/world.py,
assembly/loopback.py) must learn it.
"""

import math

from msgspec import Struct

from muster.api.core import ExtendedResourceRequest, Node, Pod
from muster.api.devices import Allocation, Consumer, DeviceObject, Request
from muster.api.meta import Condition
from muster.api.storage import StorageObject
from muster.cluster.budgets import Budget
from muster.framework.groups import Group, GroupKey, ObjectKey, PodKey, UnsupportedField
from muster.placement.packing import Answer, Problem

# ── events: what was seen ────────────────────────────────────────────────────────────────────────


class PodSeen(Struct, frozen=True):
    """A pod exists in this state: added or changed.  `group` is what its dialect says it belongs to.

    `idle`: what stands on it for Muster and says nothing there; it is told, and the pod placed all the same.
    """

    pod: Pod
    group: GroupKey | None = None
    idle: tuple[UnsupportedField, ...] = ()


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


class NamespaceSeen(Struct, frozen=True):
    """A namespace exists with these labels: added or changed."""

    name: str
    labels: dict[str, str] = {}


class NamespaceGone(Struct, frozen=True):
    """A namespace no longer exists."""

    name: str


class GroupSeen(Struct, frozen=True):
    """A pod group exists in this state: added or changed."""

    group: Group


class GroupGone(Struct, frozen=True):
    """A pod group object no longer exists."""

    key: GroupKey
    uid: str


class PdbSeen(Struct, frozen=True):
    """A disruption budget exists in this state: added or changed."""

    budget: Budget


class PdbGone(Struct, frozen=True):
    """A disruption budget no longer exists."""

    key: ObjectKey
    uid: str


class CompositeSeen(Struct, frozen=True):
    """A composite group (a group of groups) exists in this state: added or changed."""

    group: Group


class CompositeGone(Struct, frozen=True):
    """A composite group object no longer exists; its key may be a pod group's too."""

    key: GroupKey
    uid: str


class StorageSeen(Struct, frozen=True):
    """A volume, a claim for one, or what says how volumes come to be, exists in this state."""

    found: StorageObject


class StorageGone(Struct, frozen=True):
    """Such an object (of this type of `api/storage.py`) no longer exists; `key` without namespace as ""."""

    kind: type
    key: ObjectKey
    uid: str


class DevicesSeen(Struct, frozen=True):
    """A slice of devices, a class of them, or a claim for some exists in this state."""

    found: DeviceObject


class DevicesGone(Struct, frozen=True):
    """Such an object (of this type of `api/devices.py`) no longer exists; `key` without namespace as ""."""

    kind: type
    key: ObjectKey
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


OVERDUE = "Overdue"  # `reason` of a BindFailed that was not sent any more: it changes nothing


class BindFailed(Struct, frozen=True):
    """The API refused the binding, or nobody knows (`code` 0: timeout, reset; the bind may have landed)."""

    key: PodKey
    uid: str
    node_name: str
    code: int
    reason: str
    message: str
    retry_after_s: float | None = None


class EvictDone(Struct, frozen=True):
    """The API took the pod's deletion.  `is_gone`: there was nothing left to delete."""

    key: PodKey
    uid: str
    is_gone: bool = False


class EvictFailed(Struct, frozen=True):
    """The API refused to mark or to delete the pod, or nobody knows (`code` 0); a Retry-After is over."""

    key: PodKey
    uid: str
    code: int
    message: str


class WriteFailed(Struct, frozen=True):
    """A status write (`PatchPodStatus`, `PatchGroupStatus`) was given up; the core may say it again later."""

    effect: "PatchPodStatus | PatchGroupStatus"
    code: int
    message: str


class PrepareDone(Struct, frozen=True):
    """The API took what must precede a binding."""

    effect: "Prepare"


class PrepareFailed(Struct, frozen=True):
    """The API refused what must precede a binding, or nobody knows (`code` 0)."""

    effect: "Prepare"
    code: int
    message: str


class SearchDone(Struct, frozen=True):
    """What became of the `Search` with this ticket."""

    ticket: int
    answer: Answer


Event = (
    PodSeen
    | PodGone
    | NodeSeen
    | NodeGone
    | NamespaceSeen
    | NamespaceGone
    | GroupSeen
    | GroupGone
    | CompositeSeen
    | CompositeGone
    | PdbSeen
    | PdbGone
    | StorageSeen
    | StorageGone
    | DevicesSeen
    | DevicesGone
    | Synced
    | TimeReached
    | BindDone
    | BindFailed
    | EvictDone
    | EvictFailed
    | WriteFailed
    | PrepareDone
    | PrepareFailed
    | SearchDone
)

# ── effects ──────────────────────────────────────────────────────────────────────────────────────


class ObjectReference(Struct, frozen=True):
    """What an Event is about."""

    api_version: str
    kind: str
    key: PodKey
    uid: str


class BindPod(Struct, frozen=True):
    """POST the binding of this very pod to this node; uid and `version` (as decided on) are preconditions.

    `devices`, if any, are the node's GPUs that the pod gets; they go with the binding as the annotation
    `muster.dev/gpu-index`.  It is not begun any more where it could land after `until_s`: it is decided on
    anew by then.  The performer answers with exactly one `BindDone` or `BindFailed`.
    """

    key: PodKey
    uid: str
    node_name: str
    scheduler_name: str
    group: GroupKey | None = None
    version: str = ""
    devices: tuple[int, ...] = ()
    until_s: float = math.inf


class EvictPod(Struct, frozen=True):
    """Mark this very pod with the condition, then delete it with its own grace; no budget is asked.

    `preemptor_kind` and `preemptor` say for whom (podgroup, compositepodgroup or pod); both are empty where
    nobody takes the place: a gang that is not whole is released.

    The performer answers with exactly one `EvictDone` or `EvictFailed`.
    """

    key: PodKey
    uid: str
    condition: Condition
    preemptor_kind: str = ""
    preemptor: ObjectKey = ObjectKey("", "")


class PromiseVolume(Struct, frozen=True):
    """Give a volume to a claim: say on the volume for whom it is; the volume controller does the rest.

    `version`: the volume must not have changed since (the API answers 409).  `claim_uid` "" takes the promise
    back.  `key`: the pod for whose sake.  The performer answers with exactly one `PrepareDone` or
    `PrepareFailed`; so for the next.
    """

    key: PodKey
    volume_name: str
    version: str
    claim: ObjectKey
    claim_uid: str


class SelectNode(Struct, frozen=True):
    """Have a volume made for a claim where this node reaches it; `node_name` "" takes the choice back."""

    key: PodKey
    claim: ObjectKey
    claim_uid: str
    node_name: str


class WriteClaim(Struct, frozen=True):
    """Say what a claim for devices has got (None: what it has; `clears`: nothing any more) and for whom.

    A claim that gets devices is protected from deletion first, and the API refuses (422) to give it others
    than it has; one that gets more users, or loses all, must still be of this `version` (409).
    """

    key: PodKey
    claim: ObjectKey
    claim_uid: str
    version: str
    allocation: Allocation | None
    reserved_for: tuple[Consumer, ...]
    clears: bool = False


class MakeClaim(Struct, frozen=True):
    """Make a claim in place of extended resources of a pod, with these devices, and name it on the pod.

    `claim` is how it is called until the API has given it a name.
    """

    key: PodKey
    claim: ObjectKey
    uid: str
    requests: tuple[Request, ...]
    mappings: tuple[ExtendedResourceRequest, ...]
    allocation: Allocation


class DropClaim(Struct, frozen=True):
    """Delete a claim that was made in place of extended resources of a pod, and say so on the pod."""

    key: PodKey
    claim: ObjectKey
    uid: str
    claim_uid: str


Prepare = PromiseVolume | SelectNode | WriteClaim | MakeClaim | DropClaim


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


class Search(Struct, frozen=True):
    """Look for a placement of unlike members (`placement/exact.py`) for at most `time_ms`.

    The performer does it beside the scheduler and answers with exactly one `SearchDone`.  A later search for
    the same group makes one that has not begun needless: that one may be dropped without an answer.
    """

    ticket: int
    group: GroupKey
    problem: Problem
    time_ms: int


class WakeAt(Struct, frozen=True):
    """Send `TimeReached` at this time; a later `WakeAt` replaces an earlier one that is still to come."""

    at_s: float


Effect = BindPod | Prepare | EvictPod | PatchPodStatus | PatchGroupStatus | RecordEvent | Search | WakeAt
