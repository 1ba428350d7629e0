"""Slices, classes and claims as the tests of the scheduler need them."""

from typing import Any

from muster.api.devices import (
    AllocatedDevice,
    Allocation,
    CELSelector,
    Consumer,
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


def make_slice(
    node: str, *devices: Device, generation: int = 1, count: int = 1, name: str = "", **spec: Any
) -> ResourceSlice:
    """All devices of a node."""
    where = spec or {"node_name": node}
    pool = ResourcePool(node, generation, count)
    meta = ObjectMeta(name=name or f"slice-{node}", uid=f"uid-{name or node}")
    return ResourceSlice(meta, SliceSpec(DRIVER, pool, devices=list(devices), **where))


def make_class(*expressions: str, name: str = "gpu") -> DeviceClass:
    """A class of devices that meet these expressions."""
    selectors = [DeviceSelector(CELSelector(text)) for text in expressions]
    return DeviceClass(ObjectMeta(name=name, uid=f"uid-{name}"), DeviceClassSpec(selectors))


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


def given(*devices: str, node: str = "n1", request: str = "r") -> Allocation:
    """An allocation of devices of one node, reached from everywhere."""
    return Allocation(DeviceAllocation([AllocatedDevice(request, DRIVER, node, name) for name in devices]))
