"""Slices, classes and claims as the tests of the scheduler need them."""

from typing import Any

from msgspec.structs import replace

from muster.api.devices import (
    AllocatedDevice,
    Allocation,
    CapacityPolicy,
    CELSelector,
    Consumer,
    Counter,
    CounterConsumption,
    CounterSet,
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
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
    Request,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimStatus,
    ResourcePool,
    ResourceSlice,
    SliceSpec,
)
from muster.api.meta import ObjectMeta, OwnerReference
from muster.cluster.extended_resources import ANNOTATION

DRIVER = "gpu.example.com"


def make_device(name: str, *, memory: str = "80Gi", **attributes: str | int | bool) -> Device:
    """A device with these attributes of its driver's domain."""
    found = {
        key: DeviceAttribute(bool_value=value)
        if isinstance(value, bool)
        else DeviceAttribute(int_value=value)
        if isinstance(value, int)
        else DeviceAttribute(string=value)
        for key, value in attributes.items()
    }
    return Device(name, found, {"memory": DeviceCapacity(memory)})


def make_part(name: str, counter_set: str = "gpu", **amounts: str | int) -> Device:
    """A device that is cut from a counter set."""
    taken = {key: Counter(value) for key, value in amounts.items()}
    return replace(make_device(name), consumes_counters=[CounterConsumption(counter_set, taken)])


def make_counters(name: str = "gpu", **amounts: str | int) -> CounterSet:
    """What devices are cut from."""
    return CounterSet(name, {key: Counter(value) for key, value in amounts.items()})


def make_shared(name: str, *, policy: CapacityPolicy | None = None, memory: str = "80Gi") -> Device:
    """A device that several claims may have, each a share of its memory."""
    capacity = {"memory": DeviceCapacity(memory, policy)}
    return Device(name, capacity=capacity, allow_multiple_allocations=True)


def make_share(device: str, memory: str, share_id: str = "s", node: str = "n1") -> Allocation:
    """An allocation of so much of the memory of a device."""
    result = AllocatedDevice(
        "r", DRIVER, node, device, share_id=share_id, consumed_capacity={"memory": memory}
    )
    return Allocation(DeviceAllocation([result]))


def make_pool(node: str, counters: list[CounterSet], *devices: Device, **spec: Any) -> list[ResourceSlice]:
    """A pool of two slices: counters, and devices that are cut from them."""
    where = spec or {"node_name": node}
    of_counters = {**where, "shared_counters": counters, "devices": None}
    return [
        make_slice(node, *devices, count=2, name=f"{node}-devices", **where),
        make_slice(node, count=2, name=f"{node}-counters", **of_counters),
    ]


def make_slice(
    node: str, *devices: Device, generation: int = 1, count: int = 1, name: str = "", **spec: Any
) -> ResourceSlice:
    """All devices of a node."""
    where = spec or {"node_name": node}
    pool = ResourcePool(node, generation, count)
    meta = ObjectMeta(name=name or f"slice-{node}", uid=f"uid-{name or node}")
    return ResourceSlice(meta, SliceSpec(DRIVER, pool, **{"devices": list(devices), **where}))


def make_class(*expressions: str, name: str = "gpu") -> DeviceClass:
    """A class of devices that meet these expressions."""
    selectors = [DeviceSelector(CELSelector(text)) for text in expressions]
    return DeviceClass(ObjectMeta(name=name, uid=f"uid-{name}"), DeviceClassSpec(selectors))


def make_taint_rule(
    name: str,
    selector: dict[str, str] | None,
    *,
    key: str = "broken",
    effect: str = "NoSchedule",
    version: str = "5",
) -> DeviceTaintRule:
    """A rule that taints what it selects; None: nothing."""
    chosen = None if selector is None else DeviceTaintSelector(**selector)
    meta = ObjectMeta(name=name, uid=f"uid-{name}", resource_version=version)
    return DeviceTaintRule(meta, DeviceTaintRuleSpec(chosen, DeviceTaint(key, "", effect)))


def make_request(name: str = "r", count: int = 1, *expressions: str, **fields: Any) -> Request:
    """A request for so many devices of the class "gpu"."""
    selectors = [DeviceSelector(CELSelector(text)) for text in expressions]
    wanted = {"device_class_name": "gpu", "count": count, "selectors": selectors}
    return Request(name, DeviceRequest(**(wanted | fields)))


def make_claim(
    name: str,
    *requests: Request,
    match: str = "",
    distinct: str = "",
    allocation: Allocation | None = None,
    users: tuple[str, ...] = (),
    version: str = "5",
) -> ResourceClaim:
    """A claim for one device unless requests are given; constraints are over all its requests."""
    constraints = [DeviceConstraint(match_attribute=match)] if match else []
    constraints += [DeviceConstraint(distinct_attribute=distinct)] if distinct else []
    spec = ResourceClaimSpec(DeviceClaim(list(requests or (make_request(),)), constraints))
    meta = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}", resource_version=version)
    reserved = [Consumer("pods", user, f"uid-{user}") for user in users]
    return ResourceClaim(meta, spec, ResourceClaimStatus(allocation, reserved))


def in_place(claim: ResourceClaim, pod: str, uid: str) -> ResourceClaim:
    """The claim as one that was made in place of a pod's extended resources."""
    owner = OwnerReference("v1", "Pod", pod, uid, controller=True)
    meta = replace(claim.metadata, annotations={ANNOTATION: "true"}, owner_references=[owner])
    return replace(claim, metadata=meta)


def given(*devices: str, node: str = "n1", request: str = "r") -> Allocation:
    """An allocation of devices of one node, reached from everywhere."""
    return Allocation(DeviceAllocation([AllocatedDevice(request, DRIVER, node, name) for name in devices]))
