"""Who holds what."""

from msgspec.structs import replace

from muster.api.meta import OwnerReference
from muster.framework.groups import ObjectKey
from muster.scheduling.holders import Holders, without
from muster.scheduling.members import Members
from muster.testing.builders import make_cluster, make_pod

G = ObjectKey("default", "g")


def test_a_group_holds_the_sum_of_its_members_on_each_node() -> None:
    members = Members(frozenset({"muster"}))
    for index, node in enumerate(("n2", "n1", "n2")):
        members.see_pod(make_pod(f"g-{index}", node=node, cpu=1), G)
    members.see_pod(make_pod("g-3", cpu=1), G)  # waits: holds nothing
    snapshot = make_cluster().nodes(2).snapshot()
    (group,) = Holders().running(members, snapshot)
    cpu = snapshot.axis.column_of("cpu")
    assert group.name == "default/g"
    assert group.rows.tolist() == [0, 1]
    assert group.requests[:, cpu].tolist() == [1000, 2000]


def test_a_lone_pod_is_named_as_a_pod_and_assumed_members_hold_too() -> None:
    members = Members(frozenset({"muster"}))
    members.assume(members.see_pod(make_pod("p", cpu=1), None).member, "n1")
    (group,) = Holders().running(members, make_cluster().node().snapshot())
    assert group.name == "pod default/p"


def test_pods_that_never_end_and_nodes_that_are_gone_free_nothing() -> None:
    members = Members(frozenset({"muster"}))
    daemon = make_pod("d", node="n1", cpu=1)
    owner = OwnerReference(kind="DaemonSet", name="d", uid="u")
    members.see_pod(replace(daemon, metadata=replace(daemon.metadata, owner_references=[owner])), None)
    members.see_pod(make_pod("p", node="gone", cpu=1), None)
    assert Holders().running(members, make_cluster().node().snapshot()) == []


def test_what_is_remembered_follows_the_members() -> None:
    holders = Holders()
    members = Members(frozenset({"muster"}))
    snapshot = make_cluster().node().snapshot()
    cpu = snapshot.axis.column_of("cpu")
    held = []
    members.see_pod(make_pod("g-0", node="n1", cpu=1), G)
    held.append(holders.running(members, snapshot)[0].requests[0, cpu])
    members.see_pod(make_pod("g-1", node="n1", cpu=1), G)
    held.append(holders.running(members, snapshot)[0].requests[0, cpu])
    for index in (0, 1):
        members.lose_pod(ObjectKey("default", f"g-{index}"))
    assert held == [1000, 2000]
    assert holders.running(members, snapshot) == []


def test_rows_follow_the_nodes() -> None:
    holders = Holders()
    members = Members(frozenset({"muster"}))
    members.see_pod(make_pod("p", node="n2", cpu=1), None)
    rows = [
        holders.running(members, make_cluster().node(first).node(second).snapshot())[0].rows.tolist()
        for first, second in (("n1", "n2"), ("n2", "n1"))
    ]
    assert rows == [[1], [0]]


def test_after_the_end_of_some_their_room_is_free_and_that_of_others_is_not() -> None:
    members = Members(frozenset({"muster"}))
    cluster = make_cluster().nodes(2, cpu=4)
    for name, group in (("g-0", G), ("g-1", G), ("p", None)):
        cluster.running(name, "n1", cpu=1)
        members.see_pod(make_pod(name, node="n1", cpu=1), group)
    members.see_pod(make_pod("unknown-to-the-snapshot", node="n2"), G)
    snapshot = cluster.snapshot()
    fork = without(["default/g"], members, snapshot)
    assert [pod.metadata.name for pod in fork.pods_on(0)] == ["p"]
    assert len(snapshot.pods_on(0)) == 3
