"""What happens to a simulated cluster: random users, random operators, one generator.

`churn` is the one scenario yet: gangs, basic groups, lone pods and Jobs come, change, end and are deleted
while nodes come and go and the scheduler restarts; then all calms down.  Another scenario is another class
with `start` and `calm` in `SCENARIOS`.  Next: `run.py`.
"""

from collections.abc import Callable
from functools import partial
from typing import Protocol

import numpy as np

from muster.controllers.kubelet import KUBELET_ANNOTATION, STOPPED
from muster.framework.annotations import EXIT_CODE, RUN_SECONDS
from muster.sim.client import (
    Client,
    group_manifest,
    job_manifest,
    node_manifest,
    pod_manifest,
    pod_spec,
    priority_class_manifest,
)
from muster.sim.loop import Simulation
from muster.sim.view import (
    GPU,
    GPU_MILLI,
    ClusterView,
    Object,
    gpus_of,
    group_of,
    has_ended,
    is_gated,
    is_leaving,
    min_count_of,
    name_of,
)

GATE = "example.com/hold"
_PRIORITIES = {"low": 10, "high": 1000}
_SPEC_OF_MADE_PODS = (
    "schedulerName",
    "terminationGracePeriodSeconds",
    "restartPolicy",
    "containers",
    "schedulingGroup",
    "priorityClassName",
)


class Operator(Protocol):
    """What a scenario may do beside requests, and where it looks."""

    client: Client
    scheduler_name: str

    def view(self) -> ClusterView:
        """The cluster as it is now."""
        ...

    def restart_scheduler(self) -> None:
        """Drop the scheduler and start another from what the API holds."""
        ...

    def count(self, name: str) -> None:
        """Note that something has happened which the objects do not show."""
        ...


class Scenario(Protocol):
    """A source of actions."""

    churn_s: float  # how long things keep happening
    calm_s: float  # how long the cluster is then given to come to rest

    def start(self) -> None:
        """Post the first actions."""
        ...

    def calm(self) -> None:
        """Undo what keeps things from being placed (cordons, gates); nothing new comes after this."""
        ...


class Churn:
    """Random gangs and everything that can befall them."""

    calm_s = 420.0  # longer than an unconfirmed assumption lives, and than any backoff

    def __init__(self, world: Operator, simulation: Simulation, generator: np.random.Generator) -> None:
        self._world = world
        self._client = world.client
        self._simulation = simulation
        self._generator = generator
        self._made = 0
        self._pause_s = float(generator.choice([0.3, 1.0, 3.0]))
        self.churn_s = self._pause_s * float(generator.uniform(30, 90))
        self._runs_long = float(generator.uniform(0, 0.4))  # share of pods that never end by themselves
        self._until_s = simulation.now_s + self.churn_s
        actions: tuple[tuple[float, Callable[[], None]], ...] = (
            (6.0, self._add_gang),
            (2.0, self._add_basic_group),
            (4.0, self._add_lone_pods),
            (1.5, self._add_job),
            (2.0, self._change_min_count),
            (2.0, self._lift_gate),
            (3.0, self._delete_pod),
            (2.0, self._delete_group),
            (1.0, self._make_pod_again),
            (0.7, self._make_group_again),
            (1.0, self._delete_ended_pods),
            (1.0, self._add_node),
            (0.6, self._delete_node),
            (1.0, self._cordon_or_uncordon),
            (0.7, self._resize_node),
            (0.7, self._stop_or_start_node),
            (0.4, self._world.restart_scheduler),
        )
        weights = np.array([weight for weight, _ in actions])
        self._chances = weights / weights.sum()
        self._actions = tuple(action for _, action in actions)

    def start(self) -> None:
        for name, value in _PRIORITIES.items():
            self._client.create("priorityclass", priority_class_manifest(name, value))
        for _ in range(int(self._generator.integers(2, 8))):
            self._add_node()
        self._simulation.post(self._act)

    def calm(self) -> None:
        view = self._world.view()
        sound = {"metadata": {"annotations": {KUBELET_ANNOTATION: None}}, "spec": {"unschedulable": None}}
        for name in view.nodes:
            self._client.patch("node", name, sound)
        for name, pod in view.pods.items():
            if is_gated(pod):
                self._client.patch("pod", name, {"spec": {"schedulingGates": None}})

    def _act(self) -> None:
        """One random action, and the next one a random while later."""
        self._actions[int(self._generator.choice(len(self._actions), p=self._chances))]()
        delay_s = float(self._generator.exponential(self._pause_s))
        if self._simulation.now_s + delay_s < self._until_s:
            self._simulation.post(self._act, delay_s=delay_s)

    # ── users ────────────────────────────────────────────────────────────────────────────────────

    def _add_gang(self) -> None:
        size = int(self._generator.integers(1, 7))
        min_count = int(self._generator.integers(1, size + 1)) if self._strikes(0.3) else size
        self._add_group("gang", size, min_count)

    def _add_basic_group(self) -> None:
        self._add_group("basic", int(self._generator.integers(1, 5)), None)

    def _add_group(self, kind: str, size: int, min_count: int | None) -> None:
        """The group before, between or after its pods; some of them late, some gated."""
        name = self._new_name(kind)
        priority_class = str(self._generator.choice(["", "", "low", "high"]))
        requests = self._requests()
        manifest = group_manifest(
            name, min_count, priority_class=priority_class, goes_whole=self._strikes(0.3)
        )
        spread_s = float(self._generator.choice([0.0, 0.0, 0.5, 10.0]))
        delay_s = float(self._generator.uniform(0, spread_s))
        self._simulation.post(partial(self._create, "group", manifest), delay_s=delay_s)
        for number in range(size):
            gates = (GATE,) if self._strikes(0.04) else ()
            spec = pod_spec(
                requests,
                scheduler=self._world.scheduler_name,
                group=name,
                priority_class=priority_class,
                gates=gates,
            )
            pod = pod_manifest(f"{name}-{number}", spec, annotations=self._ending())
            delay_s = float(self._generator.uniform(0, spread_s))
            self._simulation.post(partial(self._create, "pod", pod), delay_s=delay_s)

    def _add_lone_pods(self) -> None:
        for _ in range(int(self._generator.integers(1, 4))):
            spec = pod_spec(
                self._requests(),
                scheduler=self._world.scheduler_name,
                priority_class=str(self._generator.choice(["", "low", "high"])),
                grace_s=int(self._generator.choice([0, 0, 5])),
            )
            self._create("pod", pod_manifest(self._new_name("pod"), spec, annotations=self._ending()))

    def _add_job(self) -> None:
        parallelism = int(self._generator.integers(1, 5))
        manifest = job_manifest(
            self._new_name("job"),
            pod_spec(self._requests(), scheduler=self._world.scheduler_name),
            parallelism=parallelism,
            completions=parallelism * int(self._generator.integers(1, 3)),
            gang=self._strikes(0.6),
            annotations={RUN_SECONDS: str(int(self._generator.integers(1, 20)))},
        )
        self._create("job", manifest)

    def _change_min_count(self) -> None:
        gangs = [group for group in self._world.view().groups.values() if min_count_of(group) is not None]
        if group := self._pick(gangs):
            size = len(self._world.view().members(name_of(group)))
            min_count = int(self._generator.integers(1, max(size, 1) + 2))
            change = {"spec": {"schedulingPolicy": {"gang": {"minCount": min_count}}}}
            self._client.patch("group", name_of(group), change)

    def _lift_gate(self) -> None:
        if pod := self._pick([pod for pod in self._world.view().pods.values() if is_gated(pod)]):
            self._client.patch("pod", name_of(pod), {"spec": {"schedulingGates": None}})

    def _delete_pod(self) -> None:
        if pod := self._pick([pod for pod in self._world.view().pods.values() if not is_leaving(pod)]):
            self._client.delete("pod", name_of(pod))

    def _delete_group(self) -> None:
        """A group, and most often its pods with it."""
        view = self._world.view()
        if group := self._pick([group for group in view.groups.values() if not is_leaving(group)]):
            self._client.delete("group", name_of(group))
            if self._strikes(0.8):
                for pod in view.members(name_of(group)):
                    self._client.delete("pod", name_of(pod))

    def _make_pod_again(self) -> None:
        """A pod of the same name, group and needs, at once: as a controller with stable names does."""
        pods = [pod for pod in self._world.view().pods.values() if not pod["metadata"].get("ownerReferences")]
        if pod := self._pick(pods):
            annotations = pod["metadata"].get("annotations")
            spec = {key: value for key, value in pod["spec"].items() if key in _SPEC_OF_MADE_PODS}
            self._client.delete("pod", name_of(pod), gracePeriodSeconds=0)
            if self._client.create("pod", pod_manifest(name_of(pod), spec, annotations=annotations)):
                self._world.count("pod made again under its name")

    def _make_group_again(self) -> None:
        """A group of the same name with another minimum, the old one forced away under its members."""
        groups = [g for g in self._world.view().groups.values() if not g["metadata"].get("ownerReferences")]
        if group := self._pick(groups):
            name, min_count = name_of(group), int(self._generator.integers(1, 6))
            self._client.delete("group", name)
            self._client.patch("group", name, {"metadata": {"finalizers": None}})
            priority_class = str(group["spec"].get("priorityClassName") or "")
            manifest = group_manifest(name, min_count, priority_class=priority_class)
            if self._client.create("group", manifest):
                self._world.count("group made again under its name")

    def _delete_ended_pods(self) -> None:
        for pod in self._world.view().pods.values():
            if has_ended(pod) and not group_of(pod):
                self._client.delete("pod", name_of(pod))

    # ── operators ────────────────────────────────────────────────────────────────────────────────

    def _add_node(self) -> None:
        if len(self._world.view().nodes) < 12:
            amounts = {"cpu": str(int(self._generator.integers(1, 9))), "memory": "64Gi", "pods": "16"}
            if self._strikes(0.4):
                amounts["nvidia.com/gpu"] = str(int(self._generator.integers(1, 5)))
            self._create("node", node_manifest(self._new_name("node"), amounts))

    def _delete_node(self) -> None:
        nodes = list(self._world.view().nodes.values())
        if len(nodes) > 1 and (node := self._pick(nodes)):
            self._client.delete("node", name_of(node))

    def _cordon_or_uncordon(self) -> None:
        if node := self._pick(list(self._world.view().nodes.values())):
            cordoned = not node["spec"].get("unschedulable", False)
            self._client.patch("node", name_of(node), {"spec": {"unschedulable": cordoned}})

    def _resize_node(self) -> None:
        if node := self._pick(list(self._world.view().nodes.values())):
            cpu = str(int(self._generator.integers(1, 9)))
            change = {"status": {"capacity": {"cpu": cpu}, "allocatable": {"cpu": cpu}}}
            self._client.patch("node", name_of(node), change, subresource="status")

    def _stop_or_start_node(self) -> None:
        if node := self._pick(list(self._world.view().nodes.values())):
            stopped = (node["metadata"].get("annotations") or {}).get(KUBELET_ANNOTATION) == STOPPED
            word = None if stopped else STOPPED
            self._client.patch(
                "node", name_of(node), {"metadata": {"annotations": {KUBELET_ANNOTATION: word}}}
            )

    # ── chance ───────────────────────────────────────────────────────────────────────────────────

    def _create(self, kind: str, manifest: Object) -> None:
        self._client.create(kind, manifest)

    def _requests(self) -> dict[str, str]:
        requests = {"cpu": str(self._generator.choice(["1", "1", "500m", "2"]))}
        if self._strikes(0.2):
            requests["nvidia.com/gpu"] = "1"
        return requests

    def _ending(self) -> dict[str, str]:
        """Annotations that say when and how a pod ends."""
        if self._strikes(self._runs_long):
            return {}
        annotations = {RUN_SECONDS: str(int(self._generator.integers(1, 60)))}
        return annotations | ({EXIT_CODE: "1"} if self._strikes(0.1) else {})

    def _new_name(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made}"

    def _strikes(self, chance: float) -> bool:
        return bool(self._generator.random() < chance)

    def _pick(self, things: list[Object]) -> Object | None:
        return things[int(self._generator.integers(len(things)))] if things else None


class Shares(Churn):
    """Churn in which most pods want GPUs, and most of those a part of one."""

    def _requests(self) -> dict[str, str]:
        return {"cpu": "200m", **({GPU: "1"} if self._strikes(0.8) else {})}

    def _create(self, kind: str, manifest: Object) -> None:
        if kind == "node":
            gpus = str(int(self._generator.integers(1, 5)))
            for amounts in ("capacity", "allocatable"):
                manifest["status"][amounts][GPU] = gpus
        if kind == "pod" and gpus_of(manifest) and self._strikes(0.7):
            milli = str(self._generator.choice([160, 310, 470, 500, 810]))
            manifest["metadata"]["annotations"][GPU_MILLI] = milli
        super()._create(kind, manifest)


SCENARIOS: dict[str, Callable[[Operator, Simulation, np.random.Generator], Scenario]] = {
    "churn": Churn,
    "shares": Shares,
}
