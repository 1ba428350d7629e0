"""Slices → whole pools, in order, and what their devices are cut from."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import (
    DRIVER,
    make_counters,
    make_device,
    make_part,
    make_pool,
    make_shared,
    make_slice,
)

from muster.api.devices import CapacityPolicy, DeviceCapacity, ResourceSlice
from muster.cluster.device_pools import Pools, find_pools

CORES = (DRIVER, "n1", "gpu", "cores")


def pools_of(*slices: ResourceSlice) -> Pools:
    return find_pools({each.metadata.name: each for each in slices})


def names(pools: Pools) -> list[str]:
    return [offer.device.name for offer in pools.offers]


def test_a_pool_counts_when_all_its_slices_are_there() -> None:
    first = make_slice("n1", make_device("b"), count=2, name="s1")
    assert names(pools_of(first)) == []
    assert pools_of(first).broken == (first,)
    both = pools_of(first, make_slice("n1", make_device("a"), count=2, name="s2"))
    assert (names(both), both.broken) == (["b", "a"], ())


def test_only_the_newest_generation_of_a_pool_counts() -> None:
    old = make_slice("n1", make_device("old"), name="s1")
    assert names(pools_of(old, make_slice("n1", make_device("new"), generation=2, name="s2"))) == ["new"]


def test_devices_come_in_the_order_of_pools_slices_and_lists() -> None:
    slices = (
        make_slice("n2", make_device("a")),
        make_slice("n1", make_device("gpu-10"), make_device("gpu-9"), count=2, name="x"),
        make_slice("n1", make_device("z"), count=2, name="w"),
    )
    found = pools_of(*slices)
    assert names(found) == ["z", "gpu-10", "gpu-9", "a"]
    assert [offer.rank for offer in found.offers] == [0, 1, 2, 3]


def test_a_pool_with_devices_that_must_become_ready_comes_last() -> None:
    slow = replace(make_device("slow"), binding_conditions=["ready"])
    assert names(pools_of(make_slice("n1", slow), make_slice("n2", make_device("a")))) == ["a", "slow"]


def test_parts_tell_what_they_take_of_the_counters() -> None:
    found = pools_of(*make_pool("n1", [make_counters(cores=4)], make_part("p", cores=3)))
    assert found.counters == {CORES: 4000}
    assert found.offers[0].consumes == ((CORES, 3000),)
    assert found.consumers == {(DRIVER, "n1", "p"): ((CORES, 3000),)}


def test_a_pool_that_contradicts_itself_is_broken() -> None:
    twice = make_slice("n1", make_device("a"), make_device("a"))
    unknown = make_slice("n1", make_part("p", cores=1))
    counters = [make_counters(cores=1), make_counters(cores=2)]
    for slices in ([twice], [unknown], make_pool("n1", counters, make_part("p", cores=1))):
        found = pools_of(*slices)
        assert (found.offers, len(found.broken)) == ((), len(slices))


def test_amounts_that_are_no_quantities_break_a_pool() -> None:
    policy = CapacityPolicy(default="much")
    for device in (make_shared("a", policy=policy), make_shared("a", memory="-1")):
        assert pools_of(make_slice("n1", device)).offers == ()


def test_a_device_for_many_tells_its_capacities() -> None:
    found = pools_of(make_slice("n1", make_shared("a", memory="1k"), make_device("b")))
    assert found.capacities_of((DRIVER, "n1", "a")) == {"memory": 1_000_000}
    assert found.capacities_of((DRIVER, "n1", "b")) == {}
    assert [offer.is_shared for offer in found.offers] == [True, False]
    assert found.offers[0].device.capacity == {"memory": DeviceCapacity("1k")}


def test_a_pool_whose_parts_exclude_each_other_by_groups_is_not_used() -> None:
    part = make_part("p", cores=3)
    grouped = replace((part.consumes_counters or [])[0], compatibility_groups=["a"])
    found = pools_of(*make_pool("n1", [make_counters(cores=4)], replace(part, consumes_counters=[grouped])))
    assert (names(found), len(found.broken)) == ([], 2)
