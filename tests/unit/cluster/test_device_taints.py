"""Taints that rules put on devices."""

import pytest
from msgspec.structs import replace
from tests.unit.cluster.device_objects import DRIVER, make_device, make_slice, make_taint_rule

from muster.api.devices import DeviceTaint, DeviceTaintRule
from muster.cluster.device_taints import with_taints
from muster.cluster.devices import DeviceBook

OWN = DeviceTaint("hot", "", "NoSchedule")
SLICES = {"s": make_slice("n1", make_device("a"), replace(make_device("b"), taints=[OWN]))}


def tainted_by(*rules: DeviceTaintRule) -> list[list[str]]:
    """The keys of the taints of devices a and b."""
    found = with_taints(SLICES, {rule.metadata.name: rule for rule in rules})
    return [[taint.key for taint in device.taints or ()] for device in found["s"].spec.devices or ()]


@pytest.mark.parametrize(
    ("selector", "devices"),
    [
        pytest.param({}, "ab", id="an-empty-selector-is-every-device"),
        pytest.param(None, "", id="without-a-selector-none"),
        pytest.param({"driver": DRIVER, "pool": "n1", "device": "b"}, "b", id="one-device"),
        pytest.param({"driver": "other.example.com"}, "", id="another-driver"),
        pytest.param({"pool": "n2", "device": "b"}, "", id="another-pool"),
        pytest.param({"pool": "n1"}, "ab", id="a-pool-of-any-driver"),
    ],
)
def test_a_rule_taints_the_devices_it_selects(selector: dict[str, str] | None, devices: str) -> None:
    first, second = tainted_by(make_taint_rule("r", selector, key="r"))
    assert ("r" in first, "r" in second) == ("a" in devices, "b" in devices)


def test_taints_of_rules_come_after_the_devices_own_in_order_of_name() -> None:
    rules = [make_taint_rule(name, {"device": "b"}, key=name) for name in ("z", "m")]
    assert tainted_by(*rules) == [[], ["hot", "m", "z"]]


def test_the_book_taints_while_the_rule_is_there() -> None:
    book = DeviceBook()
    book.apply(SLICES["s"])
    before = book.freeze()
    book.apply(make_taint_rule("r", {"device": "a"}))
    assert [len(offer.device.taints or ()) for offer in book.freeze().pools.offers] == [1, 1]
    assert not book.apply(make_taint_rule("r", {}, version="4"))
    assert book.remove(DeviceTaintRule, ("", "r"), "another") is None
    book.remove(DeviceTaintRule, ("", "r"), "uid-r")
    assert book.freeze().pools.offers == before.pools.offers
