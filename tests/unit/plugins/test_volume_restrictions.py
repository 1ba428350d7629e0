"""VolumeRestrictions."""

from tests.unit.cluster.volume_objects import make_claim, mounts

from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.plugins.volume_restrictions import IN_USE, VolumeRestrictions
from muster.testing.builders import ClusterBuilder, make_cluster, make_pod
from muster.testing.conformance import check_plugin


def cluster_with(mode: str) -> ClusterBuilder:
    cluster = make_cluster().nodes(2)
    cluster.state.volumes.apply(make_claim("c", access_modes=[mode]))
    return cluster


def test_it_keeps_the_contract() -> None:
    pods = [make_pod("p", volumes=mounts("c")), make_pod("q", volumes=mounts("c"))]
    snapshot = cluster_with("ReadWriteOncePod").snapshot()
    check_plugin(VolumeRestrictions(), pods=pods, snapshots=[snapshot])


def test_a_claim_for_one_pod_is_no_second_one_s_anywhere() -> None:
    snapshot = cluster_with("ReadWriteOncePod").running("old", "n1", volumes=mounts("c")).snapshot()
    verdict = VolumeRestrictions().filter(make_pod(volumes=mounts("c")), snapshot, snapshot.live_rows())
    assert verdict.feasible.tolist() == [False, False]
    assert [reason.text for reason in verdict.reasons] == [IN_USE]


def test_other_claims_are_shared() -> None:
    snapshot = cluster_with("ReadWriteOnce").running("old", "n1", volumes=mounts("c")).snapshot()
    verdict = VolumeRestrictions().filter(make_pod(volumes=mounts("c")), snapshot, snapshot.live_rows())
    assert verdict.feasible.all()


def test_a_member_of_the_same_gang_counts_and_one_that_left_does_not() -> None:
    fork = cluster_with("ReadWriteOncePod").snapshot().fork()
    first, second = (make_pod(name, volumes=mounts("c")) for name in ("p", "q"))
    fork.place(first, 0)
    assert not VolumeRestrictions().filter(second, fork, fork.live_rows()).feasible.any()
    fork.remove(first, 0)
    assert VolumeRestrictions().filter(second, fork, fork.live_rows()).feasible.all()


def test_the_end_of_its_user_wakes_who_waits_for_the_claim() -> None:
    helps = next(rule.helps for rule in VolumeRestrictions().hint_rules() if rule.change is Change.POD_FREED)
    assert helps is not None
    rejected = Rejected(None, None, (make_pod(volumes=mounts("c")),))
    gone = [make_pod("old", volumes=mounts(name)) for name in ("c", "d")]
    answers = [helps(rejected, ClusterEvent(Change.POD_FREED, pod=pod)) for pod in gone]
    assert answers == [Hint.QUEUE, Hint.SKIP]
