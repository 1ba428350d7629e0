"""Devices by claims, in process: a gang whose members each claim two linked devices of 8-device nodes.

The same gang again and again (its last self is gone), while on a tenth of the nodes one device changes hands
between two decisions.  Seeded.  Next: `rows.py`.
"""

import time
from typing import Any

import numpy as np
from msgspec.structs import replace

from bench.hand_fed import HandFed, group_seen
from bench.in_process import figures
from bench.objects import copies, in_group, make_node, pod_asking
from muster.api.core import Node, Pod, PodClaim
from muster.api.devices import (
    AllocatedDevice,
    Allocation,
    CELSelector,
    Device,
    DeviceAllocation,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceClassSpec,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    Request,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    SliceSpec,
)
from muster.api.meta import ObjectMeta
from muster.framework.groups import ObjectKey
from muster.framework.ports import DevicesSeen, NodeSeen

DRIVER, CLASS = "gpu.example.com", "gpu"
DEVICES_PER_NODE, DEVICES_PER_MEMBER = 8, 2
TAKEN, CHURN = 0.4, 0.1
SEED = 20_26
PAIR = f"{DRIVER}/pair"
SELECTOR = f'device.attributes["{DRIVER}"].model == "H100"'
ENOUGH = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("80Gi")) >= 0'


def place_gangs(nodes: int, members: int, decisions: int) -> dict[str, Any]:
    """Place one gang after the other; the first decision is the cold one, the rest are warm."""
    rng = np.random.default_rng(SEED)
    fed = HandFed()
    room = _Room(fed, nodes, rng)
    fed.begin()
    cold_ms, gangs_ms, faults = 0.0, [], []
    for number in range(decisions + 1):
        before_s = fed.handled_s
        placed = _place(fed, f"g-{number}", members)
        faults += room.faults(placed, members)
        if number == 0:
            cold_ms = 1000.0 * sum(fed.decisions_s)
            fed.decisions_s.clear()
        else:
            gangs_ms.append(1000.0 * (fed.handled_s - before_s))
        for index in range(members):
            fed.lose(ObjectKey("default", f"g-{number}-{index}"))
            fed.lose_claim(ObjectKey("default", f"g-{number}-{index}"))
        room.churn(rng)
    return figures(fed, decisions) | {
        "cold_ms": cold_ms,
        "gang_ms": float(np.mean(gangs_ms)),
        "wrong": faults[:3],
    }


def _place(fed: HandFed, name: str, members: int) -> list[ResourceClaim]:
    """Have a gang come; gives its claims as they are after it has been placed."""
    fed.see([group_seen(name, members)])
    pods = list(copies(pod_asking({"cpu": "1"}), members, prefix=name))
    for pod in pods:
        fed.show(open_claim(pod.metadata.name))
    fed.see(in_group(_claiming(pod), name) for pod in pods)
    fed.run()
    return [fed.claims[ObjectKey("default", pod.metadata.name)] for pod in pods]


class _Room:
    """The nodes with their devices, and who has those that are taken."""

    def __init__(self, fed: HandFed, nodes: int, rng: np.random.Generator) -> None:
        self._fed = fed
        self.taken = rng.random((nodes, DEVICES_PER_NODE)) < TAKEN
        began = time.thread_time()
        fed.see([DevicesSeen(device_class())])
        for row in range(nodes):
            fed.see([NodeSeen(node_with_devices(row)), DevicesSeen(slice_of(row))])
        for row, index in np.argwhere(self.taken).tolist():
            fed.show(taken_claim(row, index))
        self.built_s = time.thread_time() - began

    def churn(self, rng: np.random.Generator) -> None:
        """On a tenth of the nodes one device is given back and another is taken."""
        nodes = len(self.taken)
        for row in rng.permutation(nodes)[: int(nodes * CHURN)].tolist():
            ours = np.flatnonzero(self.taken[row])
            free = np.flatnonzero(~self.taken[row])
            if not len(ours) or not len(free):
                continue
            old, new = int(rng.choice(ours)), int(rng.choice(free))
            self._fed.lose_claim(ObjectKey("default", f"t-{row}-{old}"))
            self._fed.show(taken_claim(row, new))
            self.taken[row, old], self.taken[row, new] = False, True

    def faults(self, claims: list[ResourceClaim], members: int) -> list[str]:
        """What is wrong with these claims of a gang."""
        found: list[str] = []
        seen: set[tuple[int, int]] = set()
        for claim in claims:
            results = claim.status.allocation.devices.results if claim.status.allocation else []
            devices = [(result.pool, int(result.device.split("-")[1])) for result in results or ()]
            rows = {(int(pool.split("-")[1]), index // 2) for pool, index in devices}
            if len(devices) != DEVICES_PER_MEMBER or len(rows) != 1:
                found.append(f"claim {claim.metadata.name} has {devices}, no linked pair")
            if any(self.taken[int(pool.split("-")[1]), index] for pool, index in devices) or rows & seen:
                found.append(f"claim {claim.metadata.name} has devices of others: {devices}")
            seen |= rows
        bound = sum(key.name.rpartition("-")[0].startswith("g-") for key in self._fed.node_of)
        return found if bound == members else [*found, f"{bound} of {members} members bound"]


def device_class() -> DeviceClass:
    """The class of all devices that are asked for."""
    spec = DeviceClassSpec([DeviceSelector(CELSelector(SELECTOR))])
    return DeviceClass(ObjectMeta(name=CLASS, uid=CLASS), spec)


def node_with_devices(row: int) -> Node:
    """A large node."""
    return make_node(row, {}, {"cpu": "96", "memory": "768Gi", "pods": "110"}, [], "1")


def slice_of(row: int) -> ResourceSlice:
    """Its eight devices, two by two linked."""
    node = f"node-{row:05d}"
    devices = [
        Device(
            f"gpu-{index}",
            {
                "model": DeviceAttribute(string="H100"),
                "index": DeviceAttribute(int_value=index),
                PAIR: DeviceAttribute(int_value=index // 2),
            },
            {"memory": DeviceCapacity("80Gi")},
        )
        for index in range(DEVICES_PER_NODE)
    ]
    spec = SliceSpec(DRIVER, ResourcePool(node, 1, 1), node_name=node, devices=devices)
    return ResourceSlice(ObjectMeta(name=node, uid=f"slice-{node}", resource_version="1"), spec)


def open_claim(name: str) -> ResourceClaim:
    """A claim for a linked pair."""
    wanted = DeviceRequest(
        device_class_name=CLASS, count=DEVICES_PER_MEMBER, selectors=[DeviceSelector(CELSelector(ENOUGH))]
    )
    constraint = DeviceConstraint(requests=["gpu"], match_attribute=PAIR)
    spec = ResourceClaimSpec(DeviceClaim([Request("gpu", wanted)], [constraint]))
    return ResourceClaim(
        ObjectMeta(name=name, namespace="default", uid=f"claim-{name}", resource_version="1"), spec
    )


def taken_claim(row: int, index: int) -> ResourceClaim:
    """A claim of somebody else that has this device."""
    claim = open_claim(f"t-{row}-{index}")
    results = [AllocatedDevice("gpu", DRIVER, f"node-{row:05d}", f"gpu-{index}")]
    return replace(claim, status=ResourceClaimStatus(Allocation(DeviceAllocation(results))))


def _claiming(pod: Pod) -> Pod:
    """The pod with the claim of its own name."""
    claims = [PodClaim("gpus", pod.metadata.name)]
    return replace(pod, spec=replace(pod.spec, resource_claims=claims))
