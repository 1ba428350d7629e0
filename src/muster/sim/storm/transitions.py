"""What a storm has been through: every kind of fault and transition must happen over the seeds.

`Transitions` follows the ledger and counts; `REQUIRED` is what a run of many seeds must have met.
"""

from collections.abc import Callable, Iterable

from muster.controllers.volume_readings import SELECTED_NODE
from muster.sim.storm.forest import Forest
from muster.sim.storm.ledger import CLAIMS, GROUPS, PODS, VOLUME_CLAIMS, Ledger
from muster.sim.storm.promises import Starts, holds, says_scheduled
from muster.sim.view import (
    Object,
    claims_of,
    devices_in,
    group_of,
    is_leaving,
    is_waiting,
    min_count_of,
    name_of,
    node_of,
    phase_of,
    uid_of,
    users_of,
)

_EFFECTS = (
    "BindPod",
    "EvictPod",
    "PatchPodStatus",
    "PatchGroupStatus",
    "RecordEvent",
    "SelectNode",
    "WriteClaim",
)
_LOST = ("request reset, done", "answer lost", "request late", "answered 500, done")

FAULTS = (
    "request not sent",
    "request reset, not done",
    "request reset, done",
    "answer lost",
    "request late",
    "answer late",
    "request doubled",
    "answered 500, not done",
    "answered 500, done",
    "answered 429",
    "binding denied by a policy",
    "binding refused with 403",
    "binding refused with 409",
    "binding refused with 404",
    "binding refused with 429",
    "pod made anew under its binding",
    "bound to a node that is gone",
    "node died before the pod started",
    "kubelet refused: OutOfcpu",
    "kubelet refused: UnexpectedAdmissionError",
    "quota refused a pod",
    "status write refused by a webhook",
    "claim write refused with 403",
    "claim write refused with 409",
    "volume choice refused with 403",
    *(f"claim write: {fault}" for fault in _LOST),
    "provisioner failed",
    "user deleted a claim for a device",
    "user deleted a claim for a volume",
    "rival took a device",
    "rival took a device of another claim",
    "rival took a device first",
    "event late",
    "event doubled",
    "watch expired (410)",
    "watch broken",
    "watch expired while it was broken (410)",
    "leader went while the standby lagged",
    "API server away",
    "API server lags",
    "restored from a backup",
    "restored, and nobody started the schedulers anew",
    "leader stood still",
    "machine of the leader slept",
    "standby stood still",
    "leader killed",
    "node lost",
    "node came back",
    "node fell silent",
    "pod forced off its node",
    "member deleted by force",
    "rival bound a pod",
    "daemon came",
    "process crashed",
    "process lost",
    "process restored",
    "process stopped",
    "crash before an answer was told",
    *(f"crash before {effect}" for effect in _EFFECTS),
    *(f"crash after {effect}" for effect in _EFFECTS),
)

TRANSITIONS = (
    "leader began",
    "user changed minCount",
    "user lifted a gate",
    "user deleted a member",
    "user deleted a gang",
    "member replaced by its owner",
    "gang half held",
    "gang started",
    "gang started after it was half held",
    "gang empty after it was half held",
    "gang lost members after its start",
    "gang whole again",
    "pod preempted",
    "pod succeeded",
    "pod failed",
    "group gone",
    "claim got a device",
    "claim given back before its pod was bound",
    "claim free after its pod",
    "device in two claims",
    "volume made",
    "volume given up for another node",
    "gang with claims started",
    "tree in part",
    "tree started",
    "tree started after it was in part",
    "tree empty after it was in part",
    "group of a started tree emptied",
    "user changed minGroupCount",
    "user deleted a tree",
)

REQUIRED = (*FAULTS, *TRANSITIONS)


class Transitions:
    """Counts what befalls gangs and pods, write by write."""

    def __init__(self, ledger: Ledger, starts: Starts, forest: Forest, count: Callable[[str], None]) -> None:
        self._ledger = ledger
        self._starts = starts
        self._forest = forest
        self._count = count
        self._trees: dict[str, str] = {}  # by uid of the composite: "in part", "started" or "emptied"
        self._half: set[str] = set()
        self._started: set[str] = set()
        self._decayed: set[str] = set()

    def see(self, kind: str, before: Object | None, after: Object | None, now_s: float) -> None:
        """Compare the object before and after."""
        thing = after if after is not None else before
        tree = self._forest.tree_of(kind, thing) if thing is not None else ""
        if (composite := self._ledger.composites.get(tree)) is not None:
            self._see_tree(composite)
        if kind == PODS:
            self._see_pod(before, after)
            group = self._ledger.groups.get(group_of(thing)) if thing is not None else None
            if group is not None:
                self._see_group(group)
        elif kind == GROUPS:
            if after is None:
                self._count("group gone")
            else:
                self._see_group(after)
        elif kind == CLAIMS and before is not None:
            self._see_claim(before, after)
        elif kind == VOLUME_CLAIMS and before is not None and after is not None:
            if after["spec"].get("volumeName") and not before["spec"].get("volumeName"):
                self._count("volume made")
            if _selected(before) and not _selected(after):
                self._count("volume given up for another node")

    def restored(self, now_s: float) -> None:
        """Gangs may be anything now."""
        self._trees.clear()
        self._half.clear()
        self._decayed.clear()
        self._started = set(self._starts.started)

    def _see_pod(self, before: Object | None, after: Object | None) -> None:
        if after is None:
            return
        if phase_of(after) in ("Succeeded", "Failed") and (not before or phase_of(before) != phase_of(after)):
            self._count(f"pod {phase_of(after).lower()}")
        if is_leaving(after) and not (before and is_leaving(before)):
            conditions: Iterable[Object] = after["status"].get("conditions") or ()
            reasons = [each.get("reason") for each in conditions if each["type"] == "DisruptionTarget"]
            if "PreemptionByScheduler" in reasons:
                self._count("pod preempted")
            elif "ReleasedByScheduler" in reasons:
                self._count("pod released")

    def _see_claim(self, before: Object, after: Object | None) -> None:
        had, has = devices_in(before), devices_in(after) if after is not None else []
        if has and not had:
            self._count("claim got a device")
            others = (each for each in self._ledger.claims.values() if uid_of(each) != uid_of(before))
            if any(device in has for other in others for device in devices_in(other)):
                self._count("device in two claims")
        elif had and not has:
            pods = [self._ledger.pods.get(name) for name in users_of(before).values()]
            if any(pod is not None and is_waiting(pod) for pod in pods):
                self._count("claim given back before its pod was bound")
            else:
                self._count("claim free after its pod")

    def _see_group(self, group: Object) -> None:
        uid, needed = uid_of(group), min_count_of(group)
        if needed is None:
            return
        members = self._ledger.members_of(name_of(group))
        holding = sum(map(holds, members))
        if uid in self._starts.started:
            self._see_started(uid, group, sum(bool(node_of(pod)) for pod in members) >= needed)
        elif holding:
            if uid not in self._half:
                self._half.add(uid)
                self._count("gang half held")
        elif uid in self._half:
            self._half.discard(uid)
            self._count("gang empty after it was half held")

    def _see_tree(self, composite: Object) -> None:
        uid, was = uid_of(composite), self._trees.get(uid_of(composite))
        if self._forest.has_started(composite):
            if was in (None, "in part"):
                self._trees[uid] = "started"
                self._count("tree started" if was is None else "tree started after it was in part")
            elif was == "started" and self._forest.was_emptied(composite):
                self._trees[uid] = "emptied"
                self._count("group of a started tree emptied")
        elif self._forest.holding(composite):
            if was is None:
                self._trees[uid] = "in part"
                self._count("tree in part")
        elif was == "in part":
            del self._trees[uid]
            self._count("tree empty after it was in part")

    def _see_started(self, uid: str, group: Object, whole: bool) -> None:
        if uid not in self._started:
            self._started.add(uid)
            self._count("gang started")
            if any(map(claims_of, self._ledger.members_of(name_of(group)))):
                self._count("gang with claims started")
            if uid in self._half:
                self._count("gang started after it was half held")
        if not whole and uid not in self._decayed:
            self._decayed.add(uid)
            self._count("gang lost members after its start")
        elif whole and uid in self._decayed and says_scheduled(group):
            self._decayed.discard(uid)
            self._count("gang whole again")


def _selected(claim: Object) -> bool:
    """Whether a node was chosen for which its volume is to be made."""
    return SELECTED_NODE in (claim["metadata"].get("annotations") or {})
