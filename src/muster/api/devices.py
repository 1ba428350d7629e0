"""Devices and claims for them (resource.k8s.io/v1), as the scheduler reads them.

Decoded straight from the API's JSON.  Next: `cluster/devices.py`, which keeps them.
"""

from msgspec import Struct, field

from muster.api.core import NodeSelector
from muster.api.meta import Condition, ObjectMeta

Quantity = str | int | float

ALL, EXACT_COUNT = "All", "ExactCount"


class DeviceAttribute(Struct, frozen=True, rename="camel"):
    bool_value: bool | None = field(name="bool", default=None)
    int_value: int | None = field(name="int", default=None)
    string: str | None = None
    version: str | None = None
    bools: list[bool] | None = None
    ints: list[int] | None = None
    strings: list[str] | None = None
    versions: list[str] | None = None


class CapacityRange(Struct, frozen=True, rename="camel"):
    """Amounts from `min` to `max` in steps of `step` from `min` on."""

    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityPolicy(Struct, frozen=True, rename="camel"):
    """How much of a capacity one share may take; `default` for whom does not say."""

    default: Quantity | None = None
    valid_values: list[Quantity] | None = None
    valid_range: CapacityRange | None = None


class DeviceCapacity(Struct, frozen=True, rename="camel"):
    value: Quantity = 0
    request_policy: CapacityPolicy | None = None


class Counter(Struct, frozen=True):
    value: Quantity = 0


class CounterSet(Struct, frozen=True):
    """What several devices of a pool are cut out of, like the slices of one GPU."""

    name: str = ""
    counters: dict[str, Counter] | None = None


class CounterConsumption(Struct, frozen=True, rename="camel"):
    """What a device takes out of a counter set while anybody has it."""

    counter_set: str = ""
    counters: dict[str, Counter] | None = None
    compatibility_groups: list[str] | None = None


class DeviceTaint(Struct, frozen=True, rename="camel"):
    key: str = ""
    value: str = ""
    effect: str = ""


class DeviceTaintSelector(Struct, frozen=True):
    """Which devices a rule taints: all that have what is given here; None: whatever it is."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True, rename="camel"):
    """`device_selector` None: no device at all."""

    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Struct, frozen=True):
    """A taint that an administrator puts on devices, beside those that their driver says."""

    metadata: ObjectMeta
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


class DeviceToleration(Struct, frozen=True, rename="camel", omit_defaults=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class Device(Struct, frozen=True, rename="camel"):
    """One device of a slice."""

    name: str = ""
    attributes: dict[str, DeviceAttribute] | None = None
    capacity: dict[str, DeviceCapacity] | None = None
    taints: list[DeviceTaint] | None = None
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    consumes_counters: list[CounterConsumption] | None = None
    binds_to_node: bool | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    allow_multiple_allocations: bool | None = None


class ResourcePool(Struct, frozen=True, rename="camel"):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class SliceSpec(Struct, frozen=True, rename="camel"):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool | None = None
    per_device_node_selection: bool | None = None
    devices: list[Device] | None = None
    shared_counters: list[CounterSet] | None = None


class ResourceSlice(Struct, frozen=True):
    """Part of a pool of devices."""

    metadata: ObjectMeta
    spec: SliceSpec = SliceSpec()


class CELSelector(Struct, frozen=True):
    expression: str = ""


class DeviceSelector(Struct, frozen=True):
    cel: CELSelector | None = None


class DeviceClassSpec(Struct, frozen=True, rename="camel"):
    selectors: list[DeviceSelector] | None = None
    config: list[dict[str, object]] | None = None
    extended_resource_name: str | None = None


class DeviceClass(Struct, frozen=True):
    """What an administrator calls a kind of device."""

    metadata: ObjectMeta
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Struct, frozen=True):
    requests: dict[str, Quantity] | None = None


class DerivedAttribute(Struct, frozen=True):
    """What constraints find under this name, before any attribute: what an expression says of the device."""

    name: str = ""
    expression: str = ""


class DeviceRequest(Struct, frozen=True, rename="camel"):
    """What is asked for under one name: an exact request, or one of several alternatives."""

    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] | None = None
    allocation_mode: str = EXACT_COUNT
    count: int = 1
    admin_access: bool = False
    tolerations: list[DeviceToleration] | None = None
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DerivedAttribute] | None = None


class Request(Struct, frozen=True, rename="camel"):
    name: str = ""
    exactly: DeviceRequest | None = None
    first_available: list[DeviceRequest] | None = None


class DeviceConstraint(Struct, frozen=True, rename="camel"):
    requests: list[str] | None = None
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Struct, frozen=True, rename="camel"):
    requests: list[Request] | None = None
    constraints: list[DeviceConstraint] | None = None
    config: list[dict[str, object]] | None = None


class ResourceClaimSpec(Struct, frozen=True):
    devices: DeviceClaim = DeviceClaim()


class AllocatedDevice(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One device given to one request; `request` is "name" or "name/alternative".

    `share_id`: it is a share of a device that several claims may have, of this `consumed_capacity`.
    """

    request: str
    driver: str
    pool: str
    device: str
    admin_access: bool = False
    tolerations: list[DeviceToleration] | None = None
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] | None = None
    share_id: str | None = field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] | None = None


class DeviceAllocation(Struct, frozen=True, omit_defaults=True):
    results: list[AllocatedDevice] | None = None
    config: list[dict[str, object]] | None = None


class Allocation(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a claim got, and the nodes that reach all of it (None: every node)."""

    devices: DeviceAllocation = DeviceAllocation()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class Consumer(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Who may use a claim."""

    resource: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""


class DeviceStatus(Struct, frozen=True, rename="camel"):
    """What a driver says of a device that a claim has."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = field(name="shareID", default=None)
    conditions: list[Condition] | None = None


class ResourceClaimStatus(Struct, frozen=True, rename="camel"):
    allocation: Allocation | None = None
    reserved_for: list[Consumer] | None = None
    devices: list[DeviceStatus] | None = None


class ResourceClaim(Struct, frozen=True):
    """A request for devices, and what came of it."""

    metadata: ObjectMeta
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


DeviceObject = ResourceSlice | DeviceTaintRule | DeviceClass | ResourceClaim
