"""A gang is not bound again right after its release."""

import pytest

from muster.api.core import Pod, PodSpec, PodStatus
from muster.api.meta import Condition, ObjectMeta
from muster.framework.groups import Group, ObjectKey, Terms
from muster.framework.ports import BindPod, EvictPod, GroupSeen, PodSeen, TimeReached
from muster.sim.storm.releases import ReleasesBackOff
from muster.sim.told import Told

GANG, POD = ObjectKey("default", "g"), ObjectKey("default", "p")
RELEASE = EvictPod(POD, "uid-p", Condition("DisruptionTarget", "True"))
BIND = BindPod(POD, "uid-q", "n1", "muster", GANG)


def listener(*, on_member_loss: str = "replace") -> ReleasesBackOff:
    told = Told()
    group = Group(GANG, "uid-g", min_count=2, terms=Terms(on_member_loss=on_member_loss))
    told.observe(GroupSeen(group), (), 0.0)
    pod = Pod(ObjectMeta(name="p", namespace="default", uid="uid-p"), PodSpec(node_name="n1"), PodStatus())
    told.observe(PodSeen(pod, GANG), (), 0.0)
    return ReleasesBackOff(told)


@pytest.mark.parametrize(
    ("on_member_loss", "after_s", "count"),
    [
        pytest.param("replace", 3.0, 1, id="too early"),
        pytest.param("replace", 10.0, 0, id="in time"),
        pytest.param("restart", 0.0, 0, id="its owner wants it restarted"),
    ],
)
def test_a_released_gang_waits(on_member_loss: str, after_s: float, count: int) -> None:
    checker = listener(on_member_loss=on_member_loss)
    checker.observe(TimeReached(), (RELEASE,), 100.0)
    checker.observe(TimeReached(), (BIND,), 100.0 + after_s)
    assert len(list(checker.check(0.0))) == count


@pytest.mark.parametrize(("on_member_loss", "count"), [("replace", 0), ("restart", 1), ("release", 1)])
def test_members_that_alone_were_not_ready_in_time_are_replaced_at_once(
    on_member_loss: str, count: int
) -> None:
    checker = listener(on_member_loss=on_member_loss)
    message = "gang default/g is released: 1 of 2 members were ready within 45 s"
    late = EvictPod(POD, "uid-p", Condition("DisruptionTarget", "True", message=message))
    checker.observe(TimeReached(), (late,), 100.0)
    checker.observe(TimeReached(), (BIND,), 101.0)
    assert len(list(checker.check(0.0))) == count


def test_a_binding_that_is_asked_for_again_is_no_new_one() -> None:
    checker = listener()
    checker.observe(TimeReached(), (BIND,), 90.0)
    checker.observe(TimeReached(), (RELEASE,), 100.0)
    checker.observe(TimeReached(), (BIND,), 101.0)
    assert list(checker.check(0.0)) == []
