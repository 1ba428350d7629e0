"""Groups in the core's words."""

from muster.api.meta import Condition
from muster.framework.groups import ObjectKey
from muster.testing.builders import make_group


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
