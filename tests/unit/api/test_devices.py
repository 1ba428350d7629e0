"""Devices and claims as they are read, and allocations as they are written."""

import msgspec

from muster.api.codec import decode_object
from muster.api.devices import (
    AllocatedDevice,
    Allocation,
    DeviceAllocation,
    ResourceClaim,
    ResourceSlice,
)


def test_a_slice_tells_its_devices_with_values_of_every_kind() -> None:
    attributes = {
        "model": {"string": "h100"},
        "index": {"int": 3},
        "ok": {"bool": True},
        "v": {"version": "1.0.0"},
    }
    device = {"name": "gpu-0", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}
    pool = {"name": "n1", "generation": 2, "resourceSliceCount": 1}
    raw = {
        "metadata": {"name": "s"},
        "spec": {"driver": "a.b", "nodeName": "n1", "pool": pool, "devices": [device]},
    }
    spec = decode_object(raw, ResourceSlice).spec
    assert (spec.driver, spec.node_name, spec.pool.generation) == ("a.b", "n1", 2)
    assert spec.devices is not None
    found = spec.devices[0].attributes or {}
    assert (found["model"].string, found["index"].int_value, found["ok"].bool_value) == ("h100", 3, True)


def test_a_claim_is_read_with_its_alternatives_and_users() -> None:
    requests = [{"name": "r", "firstAvailable": [{"name": "big", "deviceClassName": "gpu", "count": 2}]}]
    status = {"reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}]}
    raw = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}, "status": status}
    claim = decode_object(raw, ResourceClaim)
    assert claim.spec.devices.requests is not None
    (alternative,) = claim.spec.devices.requests[0].first_available or ()
    assert (alternative.device_class_name, alternative.count) == ("gpu", 2)
    assert claim.status.reserved_for is not None
    assert claim.status.reserved_for[0].uid == "u"


def test_an_allocation_is_written_as_the_api_wants_it() -> None:
    allocation = Allocation(DeviceAllocation([AllocatedDevice("r", "a.b", "n1", "gpu-0")]))
    assert msgspec.to_builtins(allocation) == {
        "devices": {"results": [{"request": "r", "driver": "a.b", "pool": "n1", "device": "gpu-0"}]}
    }
