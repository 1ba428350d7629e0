"""Who uses the cluster in a storm: gangs come, change and end, owners replace what is lost, a rival binds.

A gang's members have an owner that makes them anew under the same or another name (as controllers do), or
are bare pods that nobody replaces.  Next: `outages.py`, what befalls the cluster.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from msgspec import Struct

from muster.apiserver.exchange import Request
from muster.assembly.requests import JSON
from muster.framework.annotations import EXIT_CODE, RUN_SECONDS
from muster.sim.client import (
    NAMESPACE,
    SCHEDULER_NAMES,
    group_manifest,
    job_manifest,
    node_manifest,
    pod_manifest,
    pod_spec,
    priority_class_manifest,
)
from muster.sim.storm.supplies import RIVAL, Supplies
from muster.sim.storm.world import StormWorld
from muster.sim.view import (
    Object,
    group_of,
    is_gated,
    is_leaving,
    min_count_of,
    name_of,
    phase_of,
    requests_of,
    takes_pods,
    uid_of,
)

GATE = "example.com/hold"
GANGS = (20, 27)
_PRIORITIES = {"low": 10, "high": 1000}
_OWNER_LOOKS_S = 5.0
POLICIES = ("replace", "hold", "restart", "release")


class Gang(Struct):
    """What an owner wants: a group, and `size` members of it."""

    name: str
    size: int
    spec: Object
    manifest: Object  # of the group
    pod_annotations: dict[str, str]
    owner_uid: str  # "": nobody replaces its members
    keeps_names: bool
    gated: frozenset[int]
    made: dict[int, int]  # how often each member was made
    is_applied: bool = False  # whether the group has been made


class Users:
    """Acts on the world at random moments until `end_s`."""

    def __init__(
        self, world: StormWorld, generator: np.random.Generator, supplies: Supplies, *, storm_s: float
    ) -> None:
        self._world = world
        self._client = world.client
        self._generator = generator
        self.supplies = supplies
        self._storm_s = storm_s
        self._gangs: dict[str, Gang] = {}
        self._made = 0
        self._is_calm = False
        self._rests = False
        self._restored_s = 0.0
        self._actions: tuple[tuple[float, Callable[[], None]], ...] = (
            (3.0, self._add_lone_pod),
            (2.0, self._change_min_count),
            (2.0, self._lift_gate),
            (3.0, self._delete_member),
            (2.0, self._force_delete_member),
            (1.5, self._delete_gang),
            (1.0, self._add_job),
            (1.5, self._cordon_or_uncordon),
            (4.0, self._rival_binds),
            (1.5, self._daemon_comes),
        )
        weights = np.array([weight for weight, _ in self._actions])
        self._chances = weights / weights.sum()

    def start(self) -> None:
        """Make the nodes, and post everything that is to happen."""
        for name, value in _PRIORITIES.items():
            self._client.create("priorityclass", priority_class_manifest(name, value))
        for number in range(int(self._generator.integers(10, 13))):
            self._add_node("node", number, cpu=int(self._generator.integers(4, 9)), devices=2)
        for _ in range(int(self._generator.integers(*GANGS))):
            self._world.post_when_up(self._add_gang, float(self._generator.uniform(0, self._storm_s - 60)))
        for _ in range(int(self._generator.integers(50, 80))):
            self._world.post_when_up(self._act, float(self._generator.uniform(10, self._storm_s)))
        self._world.post(self._owners_look, _OWNER_LOOKS_S)

    def calm(self) -> None:
        """Undo what keeps things from being placed, and add room for all."""
        self._is_calm = True
        for pod in list(self._world.ledger.pods.values()):
            if is_gated(pod):
                self._client.patch("pod", name_of(pod), {"spec": {"schedulingGates": None}})
        for gang in self._gangs.values():
            gang.gated = frozenset()
            gang.pod_annotations.pop(EXIT_CODE, None)
        for node in list(self._world.ledger.nodes.values()):
            self._client.patch("node", name_of(node), {"spec": {"unschedulable": False}})
        for number in range(4):
            self._add_node("spare", number, cpu=40, devices=32)

    def rest(self) -> None:
        """Owners replace nobody any more."""
        self._rests = True

    def _add_node(self, kind: str, number: int, *, cpu: int, devices: int) -> None:
        """A node of this size."""
        amounts = {"cpu": str(cpu), "memory": "64Gi", "pods": "60"}
        manifest = node_manifest(f"{kind}-{number}", amounts)
        self.supplies.add_to_node(manifest, number, devices=devices)
        self._client.create("node", manifest)

    # ── when ─────────────────────────────────────────────────────────────────────────────────────

    def _act(self) -> None:
        if not self._is_calm:
            self._actions[int(self._generator.choice(len(self._actions), p=self._chances))][1]()

    # ── gangs and their owners ───────────────────────────────────────────────────────────────────

    def _add_gang(self) -> None:
        """The group before or after its members; some gated, some of an owner that keeps names."""
        if self._is_calm:
            return
        name = self._new_name("gang")
        size = int(self._generator.integers(2, 8))
        min_count = int(self._generator.integers(1, size + 1)) if self._strikes(0.3) else size
        priority_class = str(self._generator.choice(["", "", "", "", "low", "low", "high"]))
        annotations: dict[str, str] = {}
        if self._strikes(0.6):
            annotations["muster.dev/bind-timeout"] = str(self._generator.choice(["30", "60s", "2m"]))
        if self._strikes(0.4):
            annotations["muster.dev/on-member-loss"] = str(self._generator.choice(POLICIES))
        if self._strikes(0.2):
            annotations["muster.dev/ready-timeout"] = "45s"
        cpu = str(self._generator.choice(["1", "1", "500m", "2", "3"]))
        supplies = self.supplies.draw()
        if supplies:
            priority_class = self.supplies.soften(priority_class)
        spec = pod_spec({"cpu": cpu}, scheduler=SCHEDULER_NAMES[0], group=name, priority_class=priority_class)
        spec |= supplies
        manifest = group_manifest(
            name, min_count, priority_class=priority_class, goes_whole=self._strikes(0.3)
        )
        manifest["metadata"]["annotations"] = annotations
        gated = frozenset(number for number in range(size) if self._strikes(0.03))
        gang = Gang(
            name=name,
            size=size,
            spec=spec,
            manifest=manifest,
            pod_annotations=self.draw_ending(),
            owner_uid=self.make_owner(name) if self._strikes(0.8) else "",
            keeps_names=self._strikes(0.5),
            gated=gated,
            made={},
        )
        if self._strikes(0.12):  # it is half bound, for longer than it may be
            self._world.limit_bindings(
                name, int(self._generator.integers(1, size)), float(self._generator.uniform(200, 600))
            )
        self.add(gang, late_s=float(self._generator.choice([0.0, 0.0, 2.0, 20.0])))

    def add(self, gang: Gang, *, late_s: float) -> None:
        """Have this gang from now on: its members at once, its group so much later."""
        self._gangs[gang.name] = gang
        self._world.post_when_up(partial(self._make_group, gang), late_s)
        for number in range(gang.size):
            self._make_member(gang, number)

    def remove(self, name: str) -> None:
        """The gang's group and members are deleted, and nobody makes them again."""
        if self._gangs.pop(name, None) is not None:
            self._delete(name)

    def _make_group(self, gang: Gang) -> None:
        if gang.name in self._gangs:
            gang.is_applied = True
            self._client.create("group", gang.manifest)

    def make_owner(self, name: str) -> str:
        """Its uid, "" if it could not be made."""
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
        code, owner = self._world.call("POST", path, body, JSON)
        return uid_of(owner) if code < 300 else ""

    def _make_member(self, gang: Gang, number: int) -> None:
        times = gang.made.get(number, 0)
        suffix = "" if gang.keeps_names or times == 0 else f"-{times}"
        spec = dict(gang.spec)
        if number in gang.gated:
            spec["schedulingGates"] = [{"name": GATE}]
        pod = pod_manifest(f"{gang.name}-{number}{suffix}", spec, annotations=gang.pod_annotations)
        if gang.owner_uid:
            pod["metadata"]["ownerReferences"] = [
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "name": gang.name,
                    "uid": gang.owner_uid,
                    "controller": True,
                }
            ]
        pod["metadata"]["labels"] = {"member": str(number)}
        if self._client.create("pod", pod) is not None:
            gang.made[number] = times + 1
            if times:
                self._world.count("member replaced by its owner")

    def _owners_look(self) -> None:
        """Every owner makes the members that it lacks; failed ones go first."""
        self._world.post(self._owners_look, _OWNER_LOOKS_S)
        if self._rests or not self._world.is_up:
            return
        self._apply_again()
        for gang in self._gangs.values():
            there: set[int] = set()
            for pod in self._world.ledger.members_of(gang.name):
                number = int((pod["metadata"].get("labels") or {}).get("member", -1))
                if phase_of(pod) == "Failed" and gang.owner_uid:
                    self._client.delete("pod", name_of(pod), gracePeriodSeconds=0)
                else:
                    there.add(number)
            for number in range(gang.size):
                if number not in there and (gang.owner_uid or number not in gang.made):
                    self._make_member(gang, number)

    def _apply_again(self) -> None:
        """After a backup was restored: what users made since is made again, what they deleted is deleted."""
        if self._restored_s == self._world.restored_s:
            return
        self._restored_s = self._world.restored_s
        for name in [name for name in self._world.ledger.groups if name.startswith("gang-")]:
            if name not in self._gangs:
                self._delete(name)
        for gang in self._gangs.values():
            if gang.owner_uid:
                gang.owner_uid = self.make_owner(gang.name) or gang.owner_uid
            if gang.is_applied:
                self._client.create("group", gang.manifest)

    def _change_min_count(self) -> None:
        groups = [group for group in self._world.ledger.groups.values() if min_count_of(group) is not None]
        if group := self._pick(groups):
            gang = self._gangs.get(name_of(group))
            size = gang.size if gang is not None else 2
            min_count = int(self._generator.integers(1, size + 1))
            change = {"spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}}}
            if self._client.patch("group", name_of(group), change) is not None:
                self._world.count("user changed minCount")

    def _lift_gate(self) -> None:
        if pod := self._pick([pod for pod in self._world.ledger.pods.values() if is_gated(pod)]):
            self._client.patch("pod", name_of(pod), {"spec": {"schedulingGates": None}})
            self._world.count("user lifted a gate")

    def _delete_member(self) -> None:
        if pod := self._pick(self._members()):
            self._client.delete("pod", name_of(pod))
            self._world.count("user deleted a member")

    def _force_delete_member(self) -> None:
        if pod := self._pick(self._members()):
            self._client.delete("pod", name_of(pod), gracePeriodSeconds=0)
            self._world.count("member deleted by force")

    def _members(self) -> list[Object]:
        return [pod for pod in self._world.ledger.pods.values() if group_of(pod) and not is_leaving(pod)]

    def _delete_gang(self) -> None:
        names = sorted(self._gangs)
        if names:
            name = names[int(self._generator.integers(len(names)))]
            del self._gangs[name]
            self._delete(name)
            self._world.count("user deleted a gang")

    def _delete(self, name: str) -> None:
        self._client.delete("group", name)
        for pod in self._world.ledger.members_of(name):
            self._client.delete("pod", name_of(pod))

    def _add_job(self) -> None:
        parallelism = int(self._generator.integers(2, 5))
        job = job_manifest(
            self._new_name("job"),
            pod_spec({"cpu": "1"}, scheduler=SCHEDULER_NAMES[0]),
            parallelism=parallelism,
            completions=parallelism,
            gang=True,
            annotations={RUN_SECONDS: str(int(self._generator.integers(20, 200)))},
        )
        job["spec"]["backoffLimit"] = 1000
        self._client.create("job", job)

    # ── others ───────────────────────────────────────────────────────────────────────────────────

    def _add_lone_pod(self) -> None:
        spec = pod_spec(
            {"cpu": str(self._generator.choice(["500m", "1", "2"]))},
            scheduler=SCHEDULER_NAMES[0],
            priority_class=str(self._generator.choice(["", "", "low", "high"])),
        )
        self._client.create("pod", pod_manifest(self._new_name("pod"), spec, annotations=self.draw_ending()))

    def _cordon_or_uncordon(self) -> None:
        if node := self._pick(list(self._world.ledger.nodes.values())):
            cordoned = not node["spec"].get("unschedulable", False)
            self._client.patch("node", name_of(node), {"spec": {"unschedulable": cordoned}})

    def _rival_binds(self) -> None:
        """Another scheduler puts a pod of its own where it sees room: what is on the wire it cannot see."""
        name = self._new_name("rival")
        spec = pod_spec({"cpu": str(self._generator.choice(["1", "2", "4"]))}, scheduler=RIVAL)
        annotations = {RUN_SECONDS: str(int(self._generator.integers(30, 300)))}
        pod = self._client.create("pod", pod_manifest(name, spec, annotations=annotations))
        if pod is None:
            return
        rooms = self._world.ledger.view().room_left
        asked = requests_of(pod)["cpu"]
        usable = [
            node
            for node, room in rooms.items()
            if room.get("cpu", 0) >= asked and takes_pods(self._world.ledger.nodes[node])
        ]
        if not usable:
            return
        target = usable[int(self._generator.integers(len(usable)))]
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "target": {"kind": "Node", "name": target},
        }
        path = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}/binding"
        headers = {"content-type": JSON}
        answer = self._world.serve(Request("POST", path, headers=headers, body=body, user=RIVAL))
        if answer.status < 300:
            self._world.count("rival bound a pod")

    def _daemon_comes(self) -> None:
        """A pod that is made with its node."""
        if node := self._pick(list(self._world.ledger.nodes.values())):
            spec = pod_spec({"cpu": "500m"}, scheduler=RIVAL) | {"nodeName": name_of(node)}
            annotations = {RUN_SECONDS: str(int(self._generator.integers(30, 300)))}
            manifest = pod_manifest(self._new_name("daemon"), spec, annotations=annotations)
            if self._client.create("pod", manifest) is not None:
                self._world.count("daemon came")

    # ── chance ───────────────────────────────────────────────────────────────────────────────────

    def draw_ending(self) -> dict[str, str]:
        """Annotations that say how long a pod runs and how it ends; none: for ever."""
        if self._strikes(0.15):
            return {}
        annotations = {RUN_SECONDS: str(int(self._generator.integers(40, 500)))}
        return annotations | ({EXIT_CODE: "1"} if self._strikes(0.05) else {})

    def _new_name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made}"

    def _strikes(self, chance: float) -> bool:
        return bool(self._generator.random() < chance)

    def _pick(self, things: list[Object]) -> Object | None:
        return things[int(self._generator.integers(len(things)))] if things else None
