"""Which devices are alike to a search."""

from tests.unit.cluster.device_objects import (
    make_claim,
    make_counters,
    make_device,
    make_part,
    make_pool,
    make_shared,
    make_slice,
)

from muster.api.devices import DeviceObject, DeviceRequest
from muster.cluster.device_pools import Offer
from muster.cluster.devices import DeviceBook
from muster.placement.device_capacity import Amount
from muster.placement.device_ledger import Ledger
from muster.placement.device_likeness import Likeness

MATCHED = make_claim("c", match="gpu.example.com/pair")


def likeness_of(*objects: DeviceObject) -> tuple[Likeness, Ledger, tuple[Offer, ...]]:
    book = DeviceBook()
    for each in objects:
        book.apply(each)
    devices = book.freeze()
    ledger, offers = Ledger(devices), devices.pools.offers
    return Likeness([MATCHED], [offers], ledger, lambda request, offer: 1, [DeviceRequest()]), ledger, offers


def test_devices_are_alike_but_for_what_constraints_read() -> None:
    devices = [make_device("a", pair=1, model="x"), make_device("b", pair=1), make_device("c", pair=2)]
    likeness, _, (a, b, c) = likeness_of(make_slice("n1", *devices))
    assert likeness.of(a) == likeness.of(b)
    assert likeness.of(a) != likeness.of(c)


def test_shares_are_alike_while_as_much_is_taken() -> None:
    likeness, ledger, (a, b) = likeness_of(make_slice("n1", make_shared("a"), make_shared("b")))
    assert likeness.of(a) == likeness.of(b)
    ledger.give(a, (Amount("memory", 1, "1m"),))
    assert likeness.of(a) != likeness.of(b)


def test_parts_of_like_counter_sets_are_alike_until_one_is_in_use() -> None:
    counters = [make_counters("one", cores=4), make_counters("two", cores=4), make_counters("three", cores=5)]
    parts = [make_part(name, name, cores=2) for name in ("one", "two", "three")]
    likeness, ledger, (one, two, three) = likeness_of(*make_pool("n1", counters, *parts))
    assert likeness.of(one) == likeness.of(two)
    assert likeness.of(one) != likeness.of(three)
    ledger.give(one, ())
    likeness.use(one, 0)
    assert likeness.of(one) != likeness.of(two)
    ledger.take_back(one, ())
    likeness.release(one, 0)
    assert likeness.of(one) == likeness.of(two)
