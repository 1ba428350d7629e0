"""Which devices a node reaches, and what pods of a trial have taken."""

import numpy as np
import pytest
from msgspec.structs import replace
from tests.unit.cluster.device_objects import (
    DRIVER,
    given,
    make_claim,
    make_class,
    make_counters,
    make_device,
    make_part,
    make_pool,
    make_request,
    make_slice,
)

from muster.api.core import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from muster.api.devices import (
    AllocatedDevice,
    Allocation,
    DerivedAttribute,
    Device,
    DeviceAllocation,
    DeviceObject,
)
from muster.placement.device_offers import (
    MET,
    UNMET,
    DeviceOffers,
)
from muster.placement.device_selectors import SelectorError
from muster.testing.builders import make_cluster, make_node

C, D = ("default", "c"), ("default", "d")
BOTH = np.array([0, 1], dtype=np.int32)
ZONE_A = NodeSelector([NodeSelectorTerm([LabelSelectorRequirement("zone", "In", ["a"])])])


def offers_with(*objects: DeviceObject) -> DeviceOffers:
    """Two nodes, n1 in zone a and n2 in zone b."""
    cluster = make_cluster().node(labels={"zone": "a"}).node(labels={"zone": "b"})
    for each in objects:
        cluster.state.devices.apply(each)
    return DeviceOffers(cluster.snapshot())


def names(offers: DeviceOffers, row: int) -> list[str]:
    return [offer.device.name for offer in offers.on(row)]


def test_a_node_reaches_its_own_devices_and_those_for_many() -> None:
    own = make_slice("n1", make_device("own"))
    zone = make_slice("zone", make_device("near"), node_selector=ZONE_A)
    every = make_slice("all", make_device("far"), all_nodes=True)
    offers = offers_with(own, zone, every)
    assert sorted(names(offers, 0)) == ["far", "near", "own"]
    assert names(offers, 1) == ["far"]


def test_devices_of_one_slice_may_choose_their_nodes() -> None:
    devices = (Device("a", node_name="n2"), Device("b", node_selector=ZONE_A), Device("c", all_nodes=True))
    offers = offers_with(make_slice("mixed", *devices, per_device_node_selection=True))
    assert sorted(names(offers, 0)) == ["b", "c"]
    assert sorted(names(offers, 1)) == ["a", "c"]


def test_rows_with_like_devices_are_searched_once_for_all_decisions() -> None:
    cluster = make_cluster().node().node()
    slices = (make_slice("n1", make_device("a")), make_slice("n2", make_device("b")))
    for each in (make_class(), make_claim("c"), *slices):
        cluster.state.devices.apply(each)
    assert DeviceOffers(cluster.snapshot()).meets([C], BOTH).tolist() == [MET, MET]
    cluster.state.devices.apply(make_claim("d", allocation=given("b", node="n2")))
    later = DeviceOffers(cluster.snapshot())
    assert later.meets([C], BOTH).tolist() == [MET, UNMET]
    assert len(later._known.answers) == 2


def test_what_is_remembered_ends_with_a_changed_slice_or_class() -> None:
    cluster = make_cluster().node().node()
    for each in (make_class(), make_claim("c"), make_slice("n1", make_device("a"))):
        cluster.state.devices.apply(each)
    assert DeviceOffers(cluster.snapshot()).meets([C], BOTH).tolist() == [MET, UNMET]
    cluster.state.devices.apply(make_slice("n2", make_device("a")))
    assert DeviceOffers(cluster.snapshot()).meets([C], BOTH).tolist() == [MET, MET]
    cluster.state.devices.apply(make_class('device.driver == "other"'))
    assert DeviceOffers(cluster.snapshot()).meets([C], BOTH).tolist() == [UNMET, UNMET]


def test_nodes_with_like_devices_differ_in_what_they_reach_beside_them() -> None:
    two = make_claim("c", make_request("r", 2))
    own = [make_slice(node, make_device("a")) for node in ("n1", "n2")]
    near = make_slice("zone", make_device("near"), node_selector=ZONE_A)
    assert offers_with(make_class(), two, *own, near).meets([C], BOTH).tolist() == [MET, UNMET]


def test_a_node_that_is_relabelled_reaches_no_more_what_it_reached_by_the_label() -> None:
    cluster = make_cluster().node("n1", labels={"zone": "a"}).node("n2")
    near = make_slice("zone", make_device("near"), node_selector=ZONE_A)
    for each in (
        make_class(),
        make_claim("c", make_request("r", 2)),
        make_slice("n1", make_device("a")),
        near,
    ):
        cluster.state.devices.apply(each)
    assert DeviceOffers(cluster.snapshot()).meets([C], BOTH).tolist() == [MET, UNMET]
    cluster.state.apply_node(make_node("n1"))
    assert DeviceOffers(cluster.snapshot()).meets([C], BOTH).tolist() == [UNMET, UNMET]
    cluster.state.apply_node(make_node("n1", labels={"zone": "a"}))
    assert DeviceOffers(cluster.snapshot()).meets([C], BOTH).tolist() == [MET, UNMET]


def test_drivers_with_attributes_of_one_name_are_told_apart() -> None:
    """Of two devices that call something `pair`, only the driver's own has the attribute of its domain."""
    claim = make_claim("c", make_request("r", 1), match=f"{DRIVER}/pair")
    slices = [make_slice(node, make_device("a", pair=0)) for node in ("n1", "n2")]
    slices[1] = replace(slices[1], spec=replace(slices[1].spec, driver="other.example.com"))
    assert offers_with(make_class(), claim, *slices).meets([C], BOTH).tolist() == [MET, UNMET]


@pytest.mark.parametrize("whose", ["deviceclass gpu", "the claim"])
def test_a_selector_that_fails_names_the_device_and_whose_it_is(whose: str) -> None:
    failing = f'device.attributes["{DRIVER}"].nope == "x"'
    of_class = whose != "the claim"
    claim = make_claim("c", make_request("r", 1, *([] if of_class else [failing])))
    device_class = make_class(*([failing] if of_class else []))
    offers = offers_with(device_class, claim, make_slice("n1", make_device("a")))
    with pytest.raises(SelectorError) as raised:
        offers.meets([C], BOTH)
    assert str(raised.value).endswith(f"no such key: nope (device gpu.example.com/n1/a, selector of {whose})")


def test_nodes_differ_in_what_is_derived_from_their_devices() -> None:
    """Only on n1 are both devices, of unlike attributes, on the same side."""
    derived = [DerivedAttribute("derived/side", f'int(device.attributes["{DRIVER}"].side)')]
    asked = [
        make_request(name, 1, f'device.attributes["{DRIVER}"].kind == "{name}"', derived_attributes=derived)
        for name in ("gpu", "nic")
    ]
    slices = [
        make_slice(node, make_device("g", kind="gpu", side=0), make_device("n", kind="nic", side=side))
        for node, side in (("n1", "0"), ("n2", "1"))
    ]
    offers = offers_with(make_class(), make_claim("c", *asked, match="derived/side"), *slices)
    assert offers.meets([C], BOTH).tolist() == [MET, UNMET]


def test_nodes_differ_in_which_counters_are_used_up_whatever_the_order_of_their_sets() -> None:
    """On n1 what part x is cut from is used up, on n2 what part y is; only x cannot be replaced."""
    of_model = {kind: make_device("", model=kind).attributes for kind in ("x", "y", "other")}
    asked = [make_request("r", 1, model("x")), make_request("q", 1, f"{model('y')} || {model('z')}")]
    found: list[DeviceObject] = [make_class(), make_claim("c", *asked)]
    for node, order, used in (("n1", "xy", "x"), ("n2", "yx", "y")):
        parts = [
            replace(make_part(f"{kind}-{of}", of, slices=1), attributes=of_model[kind])
            for kind, of in (("x", "x"), ("y", "y"), ("other", "x"), ("other", "y"))
        ]
        counters = [make_counters(name, slices=1) for name in order]
        found += make_pool(node, counters, *parts, make_device("z", model="z"))
        found.append(make_claim(f"of-{node}", allocation=given(f"other-{used}", node=node)))
    assert offers_with(*found).meets([C], BOTH).tolist() == [UNMET, MET]


def test_a_shared_device_in_use_takes_no_more_of_the_counters_it_is_cut_from() -> None:
    """On both nodes all is used up: on n1 by the device itself, on n2 by another part."""
    shared = replace(make_part("s", slices=1), attributes={}, capacity=None, allow_multiple_allocations=True)
    found: list[DeviceObject] = [make_class("device.allowMultipleAllocations == true"), make_claim("c")]
    for node in ("n1", "n2"):
        found += make_pool(node, [make_counters(slices=1)], shared, make_part("other", slices=1))
    share = AllocatedDevice("r", DRIVER, "n1", "s", share_id="1")
    found.append(make_claim("of-n1", allocation=Allocation(DeviceAllocation([share]))))
    found.append(make_claim("of-n2", allocation=given("other", node="n2")))
    assert offers_with(*found).meets([C], BOTH).tolist() == [MET, UNMET]


def model(name: str) -> str:
    return f'device.attributes["{DRIVER}"].model == "{name}"'
