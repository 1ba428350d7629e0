"""What a claim has been given, as its status says it."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import (
    make_claim,
    make_class,
    make_device,
    make_request,
    make_shared,
    make_slice,
)

from muster.api.core import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from muster.api.devices import Allocation, Device, DeviceObject, DeviceToleration, ResourceClaim
from muster.cluster.devices import DeviceBook
from muster.placement.device_allocation import Given
from muster.placement.device_capacity import consumption
from muster.placement.device_results import allocation_of


def allocate(claim: ResourceClaim, *objects: DeviceObject, node: str = "n1") -> Allocation:
    """The first devices that there are, one for each request."""
    book = DeviceBook()
    for each in (make_class(), *objects):
        book.apply(each)
    devices = book.freeze()
    given = [
        Given(request.name, offer, False, consumption(offer.device, None) or ())
        for request, offer in zip(claim.spec.devices.requests or (), devices.pools.offers, strict=False)
    ]
    return allocation_of(claim, given, node, devices)


def only(allocation: Allocation) -> tuple[LabelSelectorRequirement, ...]:
    """What the selector asks of labels and fields."""
    selector = allocation.node_selector
    (term,) = (selector.node_selector_terms if selector is not None else None) or ()
    return (*(term.match_expressions or ()), *(term.match_fields or ()))


def labelled(key: str, value: str) -> NodeSelector:
    return NodeSelector([NodeSelectorTerm([LabelSelectorRequirement(key, "In", [value])])])


HERE = LabelSelectorRequirement("metadata.name", "In", ["n1"])


def test_devices_of_a_node_are_reached_from_it_alone() -> None:
    assert only(allocate(make_claim("c"), make_slice("n1", make_device("a")))) == (HERE,)


def test_devices_for_all_are_reached_from_everywhere_unless_they_bind_to_the_node() -> None:
    assert allocate(make_claim("c"), make_slice("x", make_device("a"), all_nodes=True)).node_selector is None
    bound = replace(make_device("a"), binds_to_node=True)
    assert only(allocate(make_claim("c"), make_slice("x", bound, all_nodes=True))) == (HERE,)


def test_devices_of_several_slices_are_reached_where_all_of_them_are() -> None:
    devices = (
        Device("a", node_selector=labelled("zone", "a")),
        Device("b", node_selector=labelled("rack", "r")),
    )
    claim = make_claim("c", make_request("r"), make_request("s"))
    found = allocate(claim, make_slice("x", *devices, per_device_node_selection=True))
    assert [each.key for each in only(found)] == ["zone", "rack"]


def test_a_share_has_an_id_of_its_own_and_says_what_it_takes() -> None:
    claim = make_claim("c", make_request("r"), make_request("s"))
    found = (
        allocate(claim, make_slice("n1", make_shared("a", memory="8Gi"), make_shared("b"))).devices.results
        or []
    )
    assert found[0].consumed_capacity == {"memory": "8Gi"}
    assert len({each.share_id for each in found}) == 2
    again = allocate(
        claim, make_slice("n1", make_shared("a", memory="8Gi"), make_shared("b"))
    ).devices.results
    assert again == found


def test_tolerations_and_binding_conditions_go_with_the_device() -> None:
    slow = replace(make_device("a"), binding_conditions=["ready"], binding_failure_conditions=["broken"])
    toleration = DeviceToleration("k", "Exists")
    claim = make_claim("c", make_request("r", tolerations=[toleration]))
    (result,) = allocate(claim, make_slice("n1", slow)).devices.results or ()
    assert (result.binding_conditions, result.binding_failure_conditions) == (["ready"], ["broken"])
    assert result.tolerations == [toleration]
    assert (result.share_id, result.consumed_capacity) == (None, None)


def test_parameters_of_a_class_come_once_and_name_requests_only_where_others_are_not_meant() -> None:
    opaque = {"opaque": {"driver": "d", "parameters": {}}}
    configured = make_class()
    configured = replace(configured, spec=replace(configured.spec, config=[opaque]))
    claim = make_claim("c", make_request("r"), make_request("s"))
    devices = replace(
        claim.spec.devices, config=[{**opaque, "requests": ["s"]}, {**opaque, "requests": ["gone"]}]
    )
    claim = replace(claim, spec=replace(claim.spec, devices=devices))
    found = allocate(claim, configured, make_slice("n1", make_device("a"), make_device("b")))
    assert found.devices.config == [
        {"source": "FromClass", **opaque},
        {"source": "FromClaim", **opaque, "requests": ["s"]},
    ]
