"""What is left of devices while a search tries."""

from tests.unit.cluster.device_objects import (
    DRIVER,
    given,
    make_claim,
    make_counters,
    make_device,
    make_part,
    make_pool,
    make_share,
    make_shared,
    make_slice,
)

from muster.api.devices import DeviceObject
from muster.cluster.device_pools import Offer
from muster.cluster.devices import DeviceBook
from muster.placement.device_capacity import Amount
from muster.placement.device_ledger import Ledger

CORES = (DRIVER, "n1", "gpu", "cores")


def ledger_of(*objects: DeviceObject) -> tuple[Ledger, tuple[Offer, ...]]:
    book = DeviceBook()
    for each in objects:
        book.apply(each)
    devices = book.freeze()
    return Ledger(devices), devices.pools.offers


def memory(amount: int) -> tuple[Amount, ...]:
    return (Amount("memory", amount * 1000, str(amount)),)


def test_a_device_is_free_until_it_is_given_and_after_it_is_taken_back() -> None:
    ledger, (own, other) = ledger_of(
        make_slice("n1", make_device("a"), make_device("b")), make_claim("c", allocation=given("b"))
    )
    assert (ledger.is_free(own, ()), ledger.is_free(other, ())) == (True, False)
    ledger.give(own, ())
    assert not ledger.is_free(own, ())
    ledger.take_back(own, ())
    assert ledger.is_free(own, ())


def test_shares_are_given_while_there_is_capacity() -> None:
    ledger, (offer,) = ledger_of(
        make_slice("n1", make_shared("a", memory="10")), make_claim("c", allocation=make_share("a", "4"))
    )
    assert ledger.is_free(offer, memory(6))
    assert not ledger.is_free(offer, memory(7))
    ledger.give(offer, memory(5))
    assert ledger.share_of(offer.id) == (("memory", 9000),)
    assert ledger.is_free(offer, memory(1))
    assert not ledger.is_free(offer, memory(2))


def test_a_device_for_many_that_somebody_has_whole_is_not_shared() -> None:
    ledger, (offer,) = ledger_of(make_slice("n1", make_shared("a")), make_claim("c", allocation=given("a")))
    assert not ledger.is_free(offer, memory(1))


def test_parts_are_given_while_there_are_counters() -> None:
    parts = [make_part("a", cores=3), make_part("b", cores=2), make_part("c", cores=1)]
    ledger, (three, two, one) = ledger_of(*make_pool("n1", [make_counters(cores=4)], *parts))
    ledger.give(three, ())
    assert ledger.left_of(CORES) == 1000
    assert (ledger.is_free(two, ()), ledger.is_free(one, ())) == (False, True)
    ledger.take_back(three, ())
    assert ledger.left_of(CORES) == 4000


def test_parts_that_claims_have_are_counted() -> None:
    pool = make_pool("n1", [make_counters(cores=4)], make_part("a", cores=3), make_part("b", cores=2))
    ledger, (_, two) = ledger_of(*pool, make_claim("c", allocation=given("a")))
    assert ledger.left_of(CORES) == 1000
    assert not ledger.is_free(two, ())


def test_a_part_in_shares_takes_its_counters_once() -> None:
    shared = make_shared("a", memory="10")
    part = make_part("a", cores=3)
    shared_part = type(shared)(
        "a",
        capacity=shared.capacity,
        allow_multiple_allocations=True,
        consumes_counters=part.consumes_counters,
    )
    both = make_pool("n1", [make_counters(cores=4)], shared_part)
    ledger, (offer,) = ledger_of(*both)
    ledger.give(offer, memory(1))
    assert ledger.is_free(offer, memory(1))
    ledger.give(offer, memory(1))
    assert ledger.left_of(CORES) == 1000
    ledger.take_back(offer, memory(1))
    assert ledger.left_of(CORES) == 1000
    ledger.take_back(offer, memory(1))
    assert ledger.left_of(CORES) == 4000


def test_what_is_left_of_a_set_is_told_by_name_of_its_counters() -> None:
    sets = [make_counters(slices=2, cores=4), make_counters("other", cores=1)]
    ledger, (part,) = ledger_of(*make_pool("n1", sets, make_part("a", cores=3)))
    ledger.give(part, ())
    assert ledger.left_in((DRIVER, "n1", "gpu")) == (("cores", 1000), ("slices", 2000))
    assert ledger.left_in((DRIVER, "n1", "other")) == (("cores", 1000),)
    assert ledger.left_in((DRIVER, "n1", "none")) == ()
