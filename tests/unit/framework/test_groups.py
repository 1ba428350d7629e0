"""Groups in the core's words."""

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.meta import Condition, OwnerReference
from muster.framework.groups import ObjectKey, explain_missing
from muster.testing.builders import make_group, make_pod


def test_a_key_reads_as_namespace_and_name() -> None:
    assert str(ObjectKey("ml", "train")) == "ml/train"
    assert str(ObjectKey("", "n1")) == "n1"


def test_a_basic_group_needs_one_member_and_a_gang_its_minimum() -> None:
    assert (make_group("g").needed, make_group("g").is_gang) == (1, False)
    assert (make_group("g", 4).needed, make_group("g", 4).is_gang) == (4, True)


def test_a_condition_is_found_by_its_type() -> None:
    condition = Condition(type="T", status="True")
    group = make_group("g", conditions=(condition,))
    assert group.find_condition("T") is condition
    assert group.find_condition("U") is None


def owned_pod(*, controller: bool) -> Pod:
    owner = OwnerReference(kind="Job", name="train", uid="u", controller=controller)
    pod = make_pod("p")
    return replace(pod, metadata=replace(pod.metadata, owner_references=[owner]))


def test_why_members_are_missing_is_to_be_found_with_who_makes_them() -> None:
    known = (make_pod("bare"), owned_pod(controller=True))
    assert explain_missing(3, known) == (
        "if the other 3 are refused, by a quota or a webhook, the events of Job train say so"
    )
    assert explain_missing(1, known).startswith("if the other one is refused")


def test_of_pods_without_a_controller_nobody_is_known_to_make_more() -> None:
    assert explain_missing(3, (make_pod("bare"), owned_pod(controller=False))) == ""
