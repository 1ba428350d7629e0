"""What a node lacks for claims, in words."""

from typing import Any

import pytest
from msgspec.structs import replace
from tests.unit.cluster.device_objects import (
    given,
    make_claim,
    make_class,
    make_device,
    make_request,
    make_slice,
    make_taint_rule,
)
from tests.unit.placement.test_device_offers import C, D, offers_with

from muster.api.devices import ALL, CapacityRequirements, DeviceObject, Request
from muster.placement.device_allocation import Given
from muster.placement.device_reasons import find_lack

GPUS = make_slice("n1", make_device("a", pair=0), make_device("b", pair=1))
FOREIGN = replace(make_claim("x", allocation=given("a")))
TAINT = make_taint_rule("r", {"device": "b"})


@pytest.mark.parametrize(
    ("wanted", "others", "said"),
    [
        pytest.param({"count": 3}, [], "asks for 3 of class gpu: of 2 devices there 2 would do, 2 free"),
        pytest.param(
            {"count": 2}, [FOREIGN], "asks for 2 of class gpu: of 2 devices there 2 would do, 1 free"
        ),
        pytest.param({"count": 2}, [TAINT], "1 would do, 1 free, 1 more but for taint broken"),
        pytest.param(
            {"allocation_mode": ALL}, [TAINT], "asks for all of class gpu: of 2 devices there 1 would"
        ),
        pytest.param({"allocation_mode": ALL}, [FOREIGN], "2 would do, 1 free"),
        pytest.param(
            {"capacity": CapacityRequirements({"memory": "99Gi"})},
            [],
            "asks for 1 of class gpu with memory 99Gi: of 2 devices there 0 would do",
        ),
    ],
)
def test_a_request_that_is_short_is_counted(
    wanted: dict[str, Any], others: list[DeviceObject], said: str
) -> None:
    claim = make_claim("c", make_request("few", 1), make_request("r", **wanted))
    text = find_lack([C], 0, offers_with(make_class(), GPUS, claim, *others), ())
    assert text.startswith("claim default/c: request r asks for ")
    assert said in text


def test_a_node_without_devices_is_told_apart() -> None:
    text = find_lack([C], 1, offers_with(make_class(), GPUS, make_claim("c")), ())
    assert text == "claim default/c: request r asks for 1 of class gpu: no devices are published there"


def test_what_others_of_the_trial_have_is_not_free_and_the_claim_that_lacks_is_named() -> None:
    offers = offers_with(make_class(), GPUS, make_claim("c"), make_claim("d", make_request("r", 2)))
    has_a = Given("r", offers.on(0)[0], is_admin=False)
    assert find_lack([C, D], 0, offers, [has_a]).startswith("claim default/d: request r asks for 2 ")
    assert "2 would do, 1 free" in find_lack([C, D], 0, offers, [has_a])


def test_alternatives_lack_only_when_all_of_them_do() -> None:
    alternatives = [
        replace(make_request(name, count).exactly, name=name) for name, count in (("x", 9), ("y", 1))
    ]
    claim = make_claim("c", Request("r", first_available=alternatives), make_request("s", 5))
    assert "request s asks for 5" in find_lack([C], 0, offers_with(make_class(), GPUS, claim), ())


@pytest.mark.parametrize("wanted", [{"count": 33}, {"allocation_mode": ALL}])
def test_more_devices_than_a_claim_takes_are_told_with_the_cure(wanted: dict[str, Any]) -> None:
    many = make_slice("n1", *(make_device(f"d{index}") for index in range(33)))
    claim = make_claim("c", make_request("r", **wanted))
    text = find_lack([C], 0, offers_with(make_class(), many, claim), ())
    assert text == (
        "claim default/c: asks for 33 devices there, and a claim takes 32 at most: "
        "share them out among several claims"
    )


def test_constraints_are_blamed_where_no_request_is_short() -> None:
    claim = make_claim("c", make_request("r", 2), match="gpu.example.com/pair")
    text = find_lack([C], 0, offers_with(make_class(), GPUS, claim), ())
    assert text.endswith("but not together within its constraints (matchAttribute gpu.example.com/pair)")
    alien = make_claim("c", make_request("r", 2), match="gpu.example.com/numa")
    text = find_lack([C], 0, offers_with(make_class(), GPUS, alien), ())
    assert text.endswith(": matchAttribute gpu.example.com/numa names an attribute that no device there has")
    both = make_claim("c", make_request("r", 1), make_request("s", 2))
    assert find_lack([C], 0, offers_with(make_class(), GPUS, both), ()).endswith(
        "not for all of them together"
    )


@pytest.mark.parametrize(
    ("slices", "said"),
    [
        ([make_slice("n1", make_device("a"), count=2)], "is not whole: 1 of 2 slices; "),
        (
            [make_slice("n1", make_device("a"), make_device("a"))],
            "contradict each other, or have compatibilityGroups; ",
        ),
    ],
)
def test_a_pool_that_is_not_whole_is_named(slices: list[DeviceObject], said: str) -> None:
    offers = offers_with(make_class(), make_claim("c"), *slices)
    text = find_lack([C], 0, offers, ())
    assert "gpu.example.com/n1" in text
    assert f"{said}claim default/c: request r" in text
    assert "gpu.example.com/n1" not in find_lack([C], 1, offers, ())
