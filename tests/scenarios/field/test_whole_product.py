"""Reported faults that show only over time: the whole product with its kubelets, on virtual time.

The name of a test ends with the id of its case in `tests/conformance/field_cases.yaml`.
"""

import json
from functools import partial

import numpy as np
import pytest

from muster.apiserver.exchange import Request, Response
from muster.assembly.embedded import Server
from muster.controllers.device_driver import DEVICES
from muster.framework.ports import Effect, Event, WriteClaim
from muster.sim.client import (
    group_manifest,
    job_manifest,
    node_manifest,
    pod_manifest,
    pod_spec,
    priority_class_manifest,
)
from muster.sim.faults import NO_FAULTS, Faults, Observer
from muster.sim.loop import Simulation
from muster.sim.view import has_ended, is_placed, is_waiting, min_count_of, node_of, takes_pods
from muster.sim.world import ProductWorld

START_S = 1_767_225_600.0
GPU = "nvidia.com/gpu"
ROOM = {"cpu": "64", "memory": "64Gi", "pods": "110"}


def make_world(
    *observers: Observer, seed: int = 1, faults: Faults = NO_FAULTS
) -> tuple[ProductWorld, Simulation]:
    streams = np.random.default_rng(seed).spawn(2)
    world = ProductWorld(
        now_s=START_S,
        server_generator=streams[0],
        line_generator=streams[1],
        observers=observers,
        faults=faults,
    )
    return world, Simulation(world, start_s=START_S)


def test_sixty_gangs_over_two_nodes_all_get_their_turn_b012() -> None:
    world, simulation = make_world()
    for name in ("n1", "n2"):
        world.client.create("node", node_manifest(name, ROOM | {GPU: "8"}))

    def submit(number: int) -> None:
        size, name = number % 8 + 1, f"g{number}"
        world.client.create("group", group_manifest(name, size))
        for member in range(size):
            spec = pod_spec({"cpu": "1", GPU: "1"}, scheduler="muster", group=name)
            pod = pod_manifest(f"{name}-{member}", spec, annotations={"muster.dev/run-seconds": "30"})
            world.client.create("pod", pod)

    for number in range(60):
        simulation.post(partial(submit, number), delay_s=15.0 * number)
    idle_since_s: float | None = None
    while simulation.step() and simulation.now_s < START_S + 3600:
        idle_since_s = (idle_since_s or simulation.now_s) if _some_gang_would_fit(world) else None
        assert idle_since_s is None or simulation.now_s - idle_since_s < 12, "room and a gang that fits it"
    members = world.view().pods.values()
    assert len(members) == sum(number % 8 + 1 for number in range(60))
    assert all(has_ended(pod) for pod in members)


def _some_gang_would_fit(world: ProductWorld) -> bool:
    view = world.view()
    free = sum(
        max(0, view.room_left[name][GPU]) // 1000 for name, node in view.nodes.items() if takes_pods(node)
    )
    waiting = [
        min_count_of(group) or 1
        for name, group in view.groups.items()
        if sum(is_waiting(pod) for pod in view.members(name)) >= (min_count_of(group) or 1)
        and not any(is_placed(pod) for pod in view.members(name))
    ]
    return min(waiting, default=free + 1) <= free


def test_pods_that_a_node_refuses_are_replaced_ever_more_slowly_b031() -> None:
    world, simulation = make_world()
    for name in ("n1", "n2"):
        world.client.create("node", node_manifest(name, ROOM | {"cpu": "8"}))
    template = pod_spec({"cpu": "8"}, scheduler="muster")
    job = job_manifest("j", template, parallelism=2, completions=2, gang=True)
    job["spec"]["backoffLimit"] = 1000
    world.client.create("job", job)
    made: set[str] = set()

    def refuse_on_first_node() -> None:
        for name, pod in world.view().pods.items():
            made.add(name)
            if node_of(pod) == "n1" and not has_ended(pod):
                status = {"phase": "Failed", "reason": "TopologyAffinityError"}
                world.client.patch("pod", name, {"status": status}, subresource="status")
        simulation.post(refuse_on_first_node, delay_s=1.0)

    refuse_on_first_node()
    simulation.run_until(START_S + 600)
    assert 3 <= len(made) <= 20
    assert sum(is_placed(pod) for pod in world.view().pods.values()) >= 1


class OneRefusal:
    """The API server as everybody reaches it; the first deletion that a scheduler asks for fails."""

    def __init__(self, inner: Server) -> None:
        self.inner, self.store, self.catalog = inner, inner.store, inner.catalog
        self.refused: list[str] = []
        self.pods_made = 0

    def handle(self, request: Request, now_s: float) -> Response:
        if request.method == "DELETE" and request.user == "system:kube-scheduler" and not self.refused:
            self.refused.append(request.path.rpartition("/")[2])
            return Response(500, {"kind": "Status", "code": 500, "reason": "InternalError"})
        response = self.inner.handle(request, now_s)
        self.pods_made += (
            request.method == "POST" and request.path.endswith("/pods") and response.status == 201
        )
        return response


def test_an_eviction_that_fails_once_ends_and_nobody_makes_pods_in_a_loop_b131() -> None:
    world, simulation = make_world()
    door = world.cluster.server = OneRefusal(world.cluster.server)
    world.client.create("node", node_manifest("n1", ROOM | {"cpu": "4"}))
    template = pod_spec({"cpu": "1"}, scheduler="muster")
    world.client.create("job", job_manifest("low", template, parallelism=4, completions=4, gang=True))
    simulation.run_until(START_S + 60)
    evicted = {name for name, pod in world.view().pods.items() if is_placed(pod)}
    assert len(evicted) == 4
    world.client.create("priorityclass", priority_class_manifest("high", 1000))
    world.client.create("group", group_manifest("high", 4, priority_class="high"))
    for member in range(4):
        spec = pod_spec({"cpu": "1"}, scheduler="muster", group="high", priority_class="high")
        world.client.create("pod", pod_manifest(f"high-{member}", spec))
    simulation.run_until(START_S + 3600)
    pods = world.view().pods
    assert door.refused[0] in evicted
    assert not evicted & set(pods)
    assert {name for name, pod in pods.items() if is_placed(pod)} == {f"high-{n}" for n in range(4)}
    assert door.pods_made <= 4 + 4 + 3 * 4


class ClaimWrites:
    """What the scheduler wanted written on claims."""

    def __init__(self) -> None:
        self.allocations: list[WriteClaim] = []
        self.count = 0

    def observe(self, event: Event, effects: tuple[Effect, ...], now_s: float) -> None:
        writes = [effect for effect in effects if isinstance(effect, WriteClaim)]
        self.count += len(writes)
        self.allocations += [write for write in writes if write.allocation is not None]

    def reset(self) -> None:
        """A scheduler starts; there is one in these tests."""


@pytest.mark.parametrize("seed", range(4))
def test_a_claim_that_members_share_is_allocated_once_b155(seed: int) -> None:
    """Two members come while the claim of the first is written; watches are late, bindings are refused."""
    writes = ClaimWrites()
    faults = Faults(bind_refused=0.3, event_late=0.7, event_late_s_max=0.5, event_doubled=0.3)
    world, simulation = make_world(writes, seed=seed, faults=faults)
    for name in ("n1", "n2"):
        node = node_manifest(name, ROOM)
        described = json.dumps([{"driver": "gpu.example.com", "count": 1}])
        node["metadata"]["annotations"] = {DEVICES: described}
        world.client.create("node", node)
    resources, metadata = "/apis/resource.k8s.io/v1", {"name": "gpu"}
    world.call("POST", f"{resources}/deviceclasses", {"metadata": metadata, "spec": {}}, "application/json")
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    claims = f"{resources}/namespaces/default/resourceclaims"
    world.call(
        "POST",
        claims,
        {"metadata": metadata, "spec": {"devices": {"requests": requests}}},
        "application/json",
    )
    world.client.create("group", group_manifest("g", 2))

    def submit(member: int) -> None:
        spec = pod_spec({"cpu": "1"}, scheduler="muster", group="g")
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": "gpu"}]
        world.client.create("pod", pod_manifest(f"g-{member}", spec))

    for member, delay_s in enumerate((1.0, 1.0, 1.003, 1.01)):
        simulation.post(partial(submit, member), delay_s=delay_s)
    simulation.run_until(START_S + 120)
    pods = world.view().pods.values()
    assert len({node_of(pod) for pod in pods}) == 1
    assert all(is_placed(pod) for pod in pods)
    assert 1 <= len(writes.allocations) <= 2  # one that met a conflict is given back, and written anew
    assert writes.count <= 8
    _, claim = world.call("GET", f"{claims}/gpu", None, "application/json")
    assert sorted(user["name"] for user in claim["status"]["reservedFor"]) == [f"g-{i}" for i in range(4)]
