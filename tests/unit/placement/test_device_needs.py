"""What a pod's claims for devices come to."""

import pytest
from msgspec.structs import replace
from tests.unit.cluster.device_objects import given, make_claim, make_class

from muster.api.core import Pod, PodClaim, PodClaimStatus
from muster.api.devices import DeviceObject, ResourceClaim
from muster.api.meta import OwnerReference
from muster.cluster.devices import DeviceBook, Devices
from muster.placement.device_needs import USERS_MAX, find_device_needs
from muster.testing.builders import make_pod

C, D = ("default", "c"), ("default", "d")


def devices_of(*objects: DeviceObject) -> Devices:
    book = DeviceBook()
    for each in objects:
        book.apply(each)
    return book.freeze()


@pytest.mark.parametrize(
    ("objects", "refusal"),
    [
        ([], 'waiting for resource claims: resourceclaim "c" not found'),
        ([make_claim("c")], 'resourceclaim "c": request r: deviceclass gpu not found'),
    ],
)
def test_what_leads_nowhere_is_named(objects: list[DeviceObject], refusal: str) -> None:
    pod = make_pod(resource_claims=[PodClaim("x", "c")])
    assert find_device_needs(pod, devices_of(*objects), {}).refusal == refusal


def test_a_claim_that_is_being_deleted_is_named() -> None:
    claim = make_claim("c")
    leaving = replace(claim, metadata=replace(claim.metadata, deletion_timestamp="2027-01-15T08:00:00Z"))
    pod = make_pod(resource_claims=[PodClaim("x", "c")])
    refusal = find_device_needs(pod, devices_of(make_class(), leaving), {}).refusal
    assert refusal == 'resourceclaim "c" is being deleted'


def test_needs_tell_allocated_and_open_claims_apart() -> None:
    known = devices_of(make_class(), make_claim("c"), make_claim("d", allocation=given("gpu-0")))
    pod = make_pod(resource_claims=[PodClaim("x", "c"), PodClaim("y", "d")])
    needs = find_device_needs(pod, known, {})
    assert (needs.allocated, needs.open_claims) == ((D,), (C,))


def with_template(made: str | None = "c") -> Pod:
    """A pod whose claim comes from a template; what was made for it is in its status."""
    pod = make_pod("p", uid="uid-p", resource_claims=[PodClaim("x", None, "template")])
    return replace(pod, status=replace(pod.status, resource_claim_statuses=[PodClaimStatus("x", made)]))


def owned_by(uid: str, *, controller: bool = True) -> ResourceClaim:
    claim = make_claim("c")
    owner = OwnerReference("v1", "Pod", "p", uid, controller)
    return replace(claim, metadata=replace(claim.metadata, owner_references=[owner]))


def test_a_claim_from_a_template_must_be_the_pod_s_own() -> None:
    text = "ResourceClaim default/c was not created for pod default/p (pod is not owner)"
    for claim in (make_claim("c"), owned_by("another"), owned_by("uid-p", controller=False)):
        assert find_device_needs(with_template(), devices_of(make_class(), claim), {}).refusal == text
    own = find_device_needs(with_template(), devices_of(make_class(), owned_by("uid-p")), {})
    assert (own.refusal, own.open_claims) == ("", (C,))


def test_a_claim_that_the_status_says_is_not_needed_is_not_waited_for() -> None:
    needs = find_device_needs(with_template(made=None), devices_of(), {})
    assert needs == ("", (), (), "")


def test_a_claim_takes_no_more_users_than_the_api_does() -> None:
    users = tuple(f"u{index}" for index in range(USERS_MAX - 1))
    known = devices_of(make_class(), make_claim("c", allocation=given("gpu-0"), users=users))
    pod = make_pod("p", uid="uid-p", resource_claims=[PodClaim("x", "c")])
    assert find_device_needs(pod, known, {}).refusal == ""
    refusal = find_device_needs(pod, known, {C: 1}).refusal  # a sibling is the last
    assert refusal == 'resourceclaim "c" is in use by 256 pods, the most it can be reserved for'
    user = make_pod("u0", uid="uid-u0", resource_claims=[PodClaim("x", "c")])
    assert find_device_needs(user, known, {C: 9}).refusal == ""


def test_a_claim_of_the_group_is_the_group_s_own_and_has_one_user() -> None:
    wanted = PodClaim("x", None, "template")
    pod = make_pod("p", uid="uid-p", group="g", resource_claims=[wanted])
    pod = replace(pod, status=replace(pod.status, resource_claim_statuses=[PodClaimStatus("x", "c")]))
    for owner, refusal in (
        ("uid-g", ""),
        ("uid-p", "ResourceClaim default/c was not created for pod group default/g (pod group is not owner)"),
    ):
        book = DeviceBook()
        for each in (make_class(), owned_by(owner)):
            book.apply(each)
        book.see_group(("default", "g"), "uid-g", (wanted,))
        assert find_device_needs(pod, book.freeze(), {C: USERS_MAX}).refusal == refusal
