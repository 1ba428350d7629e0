"""How much of a device's capacities one request takes."""

import pytest
from tests.unit.cluster.device_objects import make_device, make_shared

from muster.api.devices import CapacityPolicy, CapacityRange, CapacityRequirements, Device
from muster.placement.device_capacity import consumption

RANGE = CapacityPolicy("10Gi", valid_range=CapacityRange("10Gi", "40Gi", "5Gi"))
VALUES = CapacityPolicy("10Gi", valid_values=["10Gi", "20Gi", "40Gi"])


def taken(device: Device, asked: str | None) -> str | None:
    found = consumption(device, CapacityRequirements({"memory": asked}) if asked is not None else None)
    return None if found is None else found[0].text


@pytest.mark.parametrize(
    ("policy", "asked", "text"),
    [
        (None, None, "80Gi"),
        (None, "7Gi", "7Gi"),
        (None, "81Gi", None),
        (RANGE, None, "10Gi"),
        (RANGE, "1Gi", "10Gi"),
        (RANGE, "10Gi", "10Gi"),
        (RANGE, "11Gi", "15Gi"),
        (RANGE, "40Gi", "40Gi"),
        (RANGE, "41Gi", None),
        (VALUES, None, "10Gi"),
        (VALUES, "11Gi", "20Gi"),
        (VALUES, "41Gi", None),
        (CapacityPolicy("3"), "2", "2"),
        (CapacityPolicy("1", valid_range=CapacityRange("1", None, "500m")), "1100m", "1500m"),
        (CapacityPolicy("1", valid_range=CapacityRange("1")), "1100m", "1100m"),
        (CapacityPolicy("1", valid_range=CapacityRange("1", "4")), "5", None),
    ],
)
def test_a_share_is_rounded_up_to_what_the_device_gives_out(
    policy: CapacityPolicy | None, asked: str | None, text: str | None
) -> None:
    assert taken(make_shared("a", policy=policy), asked) == text


def test_a_capacity_that_the_device_has_not_cannot_be_asked_for() -> None:
    assert consumption(make_device("a"), CapacityRequirements({"cores": 1})) is None


def test_a_whole_device_must_have_as_much_as_is_asked_for() -> None:
    assert taken(make_device("a", memory="40Gi"), "40Gi") == "40Gi"
    assert taken(make_device("a", memory="40Gi"), "41Gi") is None


def test_amounts_are_thousandths() -> None:
    found = consumption(make_shared("a"), CapacityRequirements({"memory": "1500m"}))
    assert found is not None
    assert [amount.milli for amount in found] == [1500]
