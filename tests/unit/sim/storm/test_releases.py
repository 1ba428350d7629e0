"""A gang is not bound again right after its release."""

import pytest

from muster.api.core import Pod, PodSpec, PodStatus
from muster.api.meta import Condition, ObjectMeta
from muster.framework.groups import Group, ObjectKey
from muster.framework.ports import BindPod, EvictPod, GroupSeen, PodSeen, TimeReached
from muster.sim.storm.releases import ReleasesBackOff
from muster.sim.told import Told

GANG, POD = ObjectKey("default", "g"), ObjectKey("default", "p")
RELEASE = EvictPod(POD, "uid-p", Condition("DisruptionTarget", "True"))
BIND = BindPod(POD, "uid-q", "n1", "muster", GANG)


def listener(*, scheduled: str = "False") -> ReleasesBackOff:
    told = Told()
    conditions = (Condition("PodGroupInitiallyScheduled", scheduled),)
    told.observe(GroupSeen(Group(GANG, "uid-g", min_count=2, conditions=conditions)), (), 0.0)
    pod = Pod(ObjectMeta(name="p", namespace="default", uid="uid-p"), PodSpec(node_name="n1"), PodStatus())
    told.observe(PodSeen(pod, GANG), (), 0.0)
    return ReleasesBackOff(told)


@pytest.mark.parametrize(
    ("scheduled", "after_s", "count"),
    [
        pytest.param("False", 3.0, 1, id="too early"),
        pytest.param("False", 10.0, 0, id="in time"),
        pytest.param("True", 0.0, 0, id="it had started, and restarts"),
    ],
)
def test_a_released_gang_waits(scheduled: str, after_s: float, count: int) -> None:
    checker = listener(scheduled=scheduled)
    checker.observe(TimeReached(), (RELEASE,), 100.0)
    checker.observe(TimeReached(), (BIND,), 100.0 + after_s)
    assert len(list(checker.check(0.0))) == count


def test_a_binding_that_is_asked_for_again_is_no_new_one() -> None:
    checker = listener()
    checker.observe(TimeReached(), (BIND,), 90.0)
    checker.observe(TimeReached(), (RELEASE,), 100.0)
    checker.observe(TimeReached(), (BIND,), 101.0)
    assert list(checker.check(0.0)) == []
