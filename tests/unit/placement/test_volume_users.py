"""Which claims for volumes are in use."""

from tests.unit.cluster.volume_objects import mounts

from muster.placement.volume_users import users_of_claims
from muster.testing.builders import make_cluster, make_pod


def test_pods_are_counted_by_claim_with_those_that_come_and_go_on_a_fork() -> None:
    cluster = make_cluster().node().node()
    cluster.running("p", "n1", volumes=mounts("c")).running("q", "n2", volumes=mounts("c", "d"))
    snapshot = cluster.snapshot()
    fork = snapshot.fork()
    assert users_of_claims(fork) == {("default", "c"): 2, ("default", "d"): 1}
    fork.place(make_pod("r", volumes=mounts("e")), 0)
    fork.remove(fork.pods_on(1)[0], 1)
    assert users_of_claims(fork) == {("default", "c"): 1, ("default", "e"): 1}
    assert users_of_claims(snapshot) == {("default", "c"): 2, ("default", "d"): 1}
