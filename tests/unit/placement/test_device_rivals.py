"""Two claims with one device: whose it is."""

from tests.unit.cluster.device_objects import (
    given,
    make_claim,
    make_counters,
    make_part,
    make_pool,
    make_share,
    make_shared,
    make_slice,
)

from muster.api.devices import Allocation, DeviceObject
from muster.cluster.devices import ClaimKey, DeviceBook
from muster.placement.device_rivals import find_rival

C, D = ("default", "c"), ("default", "d")
SHARED = make_slice("n1", make_shared("a", memory="10Gi"))
PARTS = make_pool("n1", [make_counters(cores=4)], make_part("a", cores=3), make_part("b", cores=2))


def rival_of(
    ours: Allocation, theirs: Allocation, *objects: DeviceObject, their_version: str = "5"
) -> ClaimKey | None:
    """Ours is claim c, version 7."""
    book = DeviceBook()
    claims = (
        make_claim("c", allocation=ours, version="7"),
        make_claim("d", allocation=theirs, version=their_version),
    )
    for each in (*objects, *claims):
        book.apply(each)
    return find_rival(C, book.freeze())


def test_a_device_is_whose_claim_was_written_first() -> None:
    assert rival_of(given("a"), given("a")) == D
    assert rival_of(given("a"), given("a"), their_version="9") is None
    assert rival_of(given("a"), given("b")) is None


def test_shares_of_a_device_are_rivals_only_beyond_its_capacity() -> None:
    assert rival_of(make_share("a", "4Gi"), make_share("a", "6Gi"), SHARED) is None
    assert rival_of(make_share("a", "5Gi"), make_share("a", "6Gi"), SHARED) == D
    assert rival_of(make_share("a", "5Gi"), make_share("a", "6Gi"), SHARED, their_version="8") is None


def test_a_whole_device_and_a_share_of_it_are_rivals() -> None:
    assert rival_of(make_share("a", "1Gi"), given("a"), SHARED) == D


def test_parts_are_rivals_when_their_counters_do_not_suffice_for_both() -> None:
    assert rival_of(given("a"), given("b"), *PARTS) == D
    assert rival_of(given("a"), given("b"), *PARTS, their_version="8") is None
    enough = make_pool("n1", [make_counters(cores=5)], make_part("a", cores=3), make_part("b", cores=2))
    assert rival_of(given("a"), given("b"), *enough) is None


def test_what_is_only_chosen_is_no_rival() -> None:
    book = DeviceBook()
    book.apply(make_claim("c", allocation=given("a"), version="7"))
    book.apply(make_claim("d", version="5"))
    book.choose(D, given("a"))
    assert find_rival(C, book.freeze()) is None
