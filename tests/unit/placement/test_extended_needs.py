"""What pods need in place of extended resources, by node."""

import numpy as np
from msgspec.structs import replace
from tests.unit.cluster.device_objects import in_place, make_claim, make_class

from muster.api.core import ExtendedResourceClaimStatus, Pod
from muster.cluster.devices import NO_DEVICES
from muster.cluster.extended_resources import unwritten_key
from muster.cluster.snapshot import Snapshot
from muster.placement.device_offers import DeviceOffers
from muster.placement.extended_needs import by_missing, claims_for, find_made, missing_on, uses_devices
from muster.testing.builders import make_cluster, make_pod

GPU = "nvidia.com/gpu"
POD = make_pod("p", uid="u", gpu=2)


def make_snapshot() -> Snapshot:
    """n1 offers GPUs itself, n2 and n3 do not; a class backs them."""
    cluster = make_cluster().node(gpu=4).nodes(2)
    found = make_class()
    cluster.state.devices.apply(replace(found, spec=replace(found.spec, extended_resource_name=GPU)))
    return cluster.snapshot()


def test_who_asks_for_a_backed_resource_uses_devices() -> None:
    devices = make_snapshot().devices
    assert uses_devices(POD, devices)
    assert not uses_devices(make_pod("q"), devices)
    assert not uses_devices(POD, NO_DEVICES)


def test_devices_are_needed_node_by_node_where_it_does_not_offer_the_resource() -> None:
    snapshot = make_snapshot()
    assert [missing_on(POD, snapshot, row) for row in range(3)] == [(), (GPU,), (GPU,)]
    found = {missing: where.tolist() for missing, where in by_missing(POD, snapshot, snapshot.live_rows())}
    assert found == {(): [0], (GPU,): [1, 2]}


def test_for_a_pod_that_asks_for_none_all_rows_are_alike() -> None:
    snapshot = make_snapshot()
    found = [(missing, len(where)) for missing, where in by_missing(make_pod("q"), snapshot, np.arange(3))]
    assert found == [((), 3)]


def test_a_claim_is_thought_up_once_and_not_for_a_pod_that_is_placed() -> None:
    snapshot = make_snapshot()
    offers = DeviceOffers(snapshot)
    (key,) = claims_for(POD, (GPU,), snapshot, offers, is_placed=True)
    assert key == unwritten_key("default", "u", (GPU,))
    assert offers.claim_of(key).spec.devices.requests[0].exactly.count == 2
    assert claims_for(POD, (GPU,), snapshot, offers, is_placed=False) != (key,)
    assert claims_for(POD, (), snapshot, offers, is_placed=True) == ()
    bound = replace(POD, spec=replace(POD.spec, node_name="n2"))
    assert claims_for(bound, (GPU,), snapshot, offers, is_placed=True) == ()


def test_a_claim_counts_as_made_when_the_pod_names_it() -> None:
    devices = NO_DEVICES._replace(claims={("default", "c"): in_place(make_claim("c"), "p", "u")})
    status = replace(POD.status, extended_resource_claim_status=ExtendedResourceClaimStatus([], "c"))
    named: Pod = replace(POD, status=status)
    assert find_made(POD, devices) is None
    assert find_made(named, devices) == ("default", "c")
    assert find_made(named, NO_DEVICES) is None
    chosen = devices._replace(choices={unwritten_key("default", "u"): None})
    assert find_made(named, chosen) is None
