"""What is known of devices and claims, and what was allocated."""

from msgspec.structs import replace
from tests.unit.cluster.device_objects import DRIVER, given, in_place, make_claim, make_class

from muster.api.core import PodClaim, PodClaimStatus, PodStatus
from muster.api.devices import ResourceClaim
from muster.cluster.devices import DeviceBook, device_claims_of
from muster.testing.builders import make_pod

KEY = ("default", "c")
GPU0 = (DRIVER, "n1", "gpu-0")


def test_what_claims_have_is_taken_by_the_api_and_by_choice() -> None:
    book = DeviceBook()
    book.apply(make_claim("c"))
    assert book.freeze().taken == {}
    book.choose(KEY, given("gpu-0"))
    assert book.freeze().taken == {GPU0: (KEY,)}
    assert book.freeze().allocation_of(KEY) == given("gpu-0")
    book.apply(make_claim("c", allocation=given("gpu-1")))
    assert book.freeze().choices == {}
    assert list(book.freeze().taken) == [(DRIVER, "n1", "gpu-1")]


def test_a_choice_may_be_given_up_and_goes_with_its_claim() -> None:
    book = DeviceBook()
    book.choose(KEY, given("gpu-0"))
    book.unchoose(KEY)
    assert book.freeze().taken == {}
    book.apply(make_claim("c"))
    book.choose(KEY, given("gpu-0"))
    assert book.remove(ResourceClaim, KEY, "another") is None
    book.remove(ResourceClaim, KEY, "uid-c")
    assert book.freeze().taken == {}


def test_devices_that_were_asked_back_are_so_until_the_claim_is_seen_changed_or_gone() -> None:
    book = DeviceBook()
    for _ in range(2):
        book.apply(make_claim("c", allocation=given("gpu-0"), version="5"))
        book.free(KEY, "5")
        book.apply(make_claim("c", allocation=given("gpu-0"), version="5"))
        assert (book.is_freed(KEY), book.freeze().freed) == (True, {KEY})
        book.apply(make_claim("c", version="6"))
        assert (book.is_freed(KEY), book.freeze().freed) == (False, frozenset())
        book.free(KEY, "6")
        book.remove(ResourceClaim, KEY, "")
        assert not book.is_freed(KEY)


def test_claims_made_for_a_pod_are_found_until_they_are_gone_or_another_pods() -> None:
    book = DeviceBook()
    book.apply(in_place(make_claim("c"), "p", "u"))
    book.apply(in_place(make_claim("d"), "q", "v"))
    book.apply(make_claim("e"))
    assert [[claim.metadata.name for claim in book.made_for(uid)] for uid in ("u", "v", "")] == [
        ["c"],
        ["d"],
        [],
    ]
    book.apply(in_place(make_claim("c", version="6"), "q", "v"))
    book.remove(ResourceClaim, ("default", "d"), "")
    assert [[claim.metadata.name for claim in book.made_for(uid)] for uid in ("u", "v")] == [[], ["c"]]


def test_the_picture_is_the_same_until_something_changes() -> None:
    book = DeviceBook()
    book.apply(make_class())
    first = book.freeze()
    assert book.freeze() is first
    assert not book.apply(make_claim("c", version="5")) or book.freeze() is not first
    assert not book.apply(make_claim("c", version="4"))


def test_a_pod_names_claims_or_templates_of_which_its_status_tells() -> None:
    claims = [PodClaim("a", "c"), PodClaim("b", None, "t"), PodClaim("d", None, "t")]
    pod = make_pod("p", resource_claims=claims)
    status = PodStatus(resource_claim_statuses=[PodClaimStatus("b", "p-b-x")])
    assert device_claims_of(replace(pod, status=status)) == (
        ("a", KEY),
        ("b", ("default", "p-b-x")),
        ("d", None),
    )
