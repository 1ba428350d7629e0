"""Frozen snapshots and their forks."""

import gc
import weakref
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.api.meta import ObjectMeta
from muster.api.quantity import INT64_MAX
from muster.api.storage import PersistentVolumeClaim
from muster.cluster.requests import HostPort
from muster.cluster.snapshot import PodMove, RowHistory, Snapshot
from muster.cluster.volumes import NO_VOLUMES
from muster.testing.builders import ClusterBuilder, make_cluster, make_gang, make_pod
from muster.testing.strategies import clusters, gangs


def picture(snapshot: Snapshot) -> object:
    return (
        snapshot.requested.tolist(),
        [[pod.metadata.name for pod in snapshot.pods_on(row)] for row in range(len(snapshot.node_names))],
        [snapshot.host_ports_on(row) for row in range(len(snapshot.node_names))],
    )


def test_the_arrays_of_a_snapshot_refuse_writes() -> None:
    snapshot = make_cluster().node().snapshot()
    for array in (snapshot.live, snapshot.allocatable, snapshot.requested, snapshot.unschedulable):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_placing_on_the_frozen_original_is_an_error() -> None:
    snapshot = make_cluster().node().snapshot()
    with pytest.raises(ValueError, match="frozen"):
        snapshot.place(make_pod(), 0)
    with pytest.raises(ValueError, match="frozen"):
        snapshot.place_many((make_pod(),), np.array([0], dtype=np.int32))


@given(cluster=clusters(), members=gangs(), data=st.data())
def test_what_happens_on_a_fork_stays_there(
    cluster: ClusterBuilder, members: tuple, data: st.DataObject
) -> None:  # type: ignore[type-arg]
    snapshot = cluster.snapshot()
    before = picture(snapshot)
    rows = snapshot.live_rows().tolist()
    fork = snapshot.fork()
    for pod in members if rows else ():
        fork.place(pod, data.draw(st.sampled_from(rows)))
    second = picture(fork)
    for pod in members if rows else ():
        fork.fork().place(pod, rows[0])
    assert picture(snapshot) == before
    assert picture(fork) == second


@given(st.lists(st.lists(st.integers(0, 4)), max_size=6))
def test_rows_changed_since_a_moment_are_those_whose_last_change_is_later(steps: list[list[int]]) -> None:
    history, last = RowHistory(object(), 0, *np.zeros((2, 0), dtype=np.int64)), dict.fromkeys(range(5), 0)
    for moment, rows in enumerate(steps, start=1):
        last.update(dict.fromkeys(rows, moment))
        history = history.go_on(5, np.array(sorted(set(rows)), dtype=np.int64))
        for since in range(moment + 1):
            later = [row for row in range(5) if last[row] > since]
            assert history.changed_since(since).tolist() == later


def test_a_fork_of_a_fork_has_what_both_have_placed() -> None:
    snapshot, pod = make_cluster().nodes(2).snapshot(), make_pod(cpu=1)
    first = snapshot.fork()
    first.place(pod, 0)
    second = first.fork()
    second.place_many((pod, pod), np.array([1, 1], dtype=np.int32))
    counts = [view.requested[:, 0].tolist() for view in (second, first, snapshot)]
    assert counts == [[1000, 2000], [1000, 0], [0, 0]]


def test_placing_many_equals_placing_one_by_one() -> None:
    snapshot = make_cluster().nodes(3).running("old", "n1", host_ports=[80]).snapshot()
    pods = make_gang("g", 5, cpu="1", host_ports=[443])
    rows = np.array([0, 2, 0, 0, 2], dtype=np.int32)
    at_once, in_turn = snapshot.fork(), snapshot.fork()
    at_once.place_many(pods, rows)
    for pod, row in zip(pods, rows.tolist(), strict=True):
        in_turn.place(pod, row)
    assert picture(at_once) == picture(in_turn)


def test_placing_nobody_changes_nothing() -> None:
    fork = make_cluster().node().snapshot().fork()
    fork.place_many((), np.array([], dtype=np.int32))
    assert fork.pods_on(0) == ()


def test_with_other_volumes_a_fork_has_the_pods_that_it_had() -> None:
    cluster = make_cluster().node(cpu=4).node(cpu=4).running("there", "n1", cpu=1)
    fork = cluster.snapshot().fork()
    fork.place(make_pod("here", cpu=1, host_ports=(80,)), 1)
    fork.remove(fork.pods_on(0)[0], 0)
    other = fork.with_volumes(
        NO_VOLUMES._replace(claims={("default", "c"): PersistentVolumeClaim(ObjectMeta())})
    )
    assert picture(other) == picture(fork)
    assert (other.is_fork, list(other.volumes.claims)) == (True, [("default", "c")])
    assert (other.origin.is_fork, other.origin.volumes) == (False, other.volumes)
    assert picture(other.origin) == picture(fork.origin)
    assert fork.volumes is NO_VOLUMES


def test_sums_on_a_fork_saturate() -> None:
    fork = make_cluster().node().snapshot().fork()
    fork.place_many(make_gang("g", 3, memory="8Ei"), np.array([0, 0, 0], dtype=np.int32))
    assert fork.requested[0].tolist() == [0, INT64_MAX, 0, 3]


def test_free_is_negative_where_a_node_is_overcommitted() -> None:
    snapshot = make_cluster().node(cpu=1).running("old", "n1", cpu=3).snapshot()
    assert snapshot.free[0, 0] == -2000
    assert snapshot.free_at(np.array([0], dtype=np.int32))[0, 0] == -2000


def test_what_is_free_on_some_rows_or_all_is_what_is_free_there() -> None:
    snapshot = make_cluster().node(cpu=1).node(cpu=2).node(cpu=3).snapshot().fork()
    snapshot.place(make_pod("p", cpu=1), 1)
    for rows in ([0, 1, 2], [1, 2], [1], []):
        found = snapshot.free_at(np.array(rows, dtype=np.int32))
        assert found.tolist() == [snapshot.free[row].tolist() for row in rows]


def test_what_no_node_offers_has_no_column_but_a_name() -> None:
    snapshot = make_cluster().node(gpu=1).snapshot()
    pod = make_pod(gpu=1, requests={"x.y/b": 1, "x.y/a": 2, "x.y/zero": 0})
    assert snapshot.unknown_resources(pod) == ("x.y/a", "x.y/b")
    assert snapshot.request_of(pod).tolist() == [0, 0, 0, 1, 1]


def test_host_ports_are_known_by_row() -> None:
    snapshot = make_cluster().nodes(2).running("old", "n2", host_ports=[80]).snapshot()
    fork = snapshot.fork()
    fork.place(make_pod(host_ports=[443]), 0)
    assert snapshot.rows_with_host_ports() == (1,)
    assert fork.rows_with_host_ports() == (0, 1)
    assert fork.host_ports_on(1) == (HostPort("TCP", "0.0.0.0", 80),)


def test_rows_of_deleted_nodes_are_not_live() -> None:
    cluster = make_cluster().nodes(3)
    cluster.state.remove_node("n2")
    assert cluster.snapshot().live_rows().tolist() == [0, 2]
    assert cluster.snapshot().nodes[1] is None


@given(cluster=clusters(), data=st.data())
def test_a_pod_removed_and_placed_again_leaves_the_fork_as_it_was(
    cluster: ClusterBuilder, data: st.DataObject
) -> None:
    fork = cluster.snapshot().fork()
    rows = [row for row in fork.live_rows().tolist() if fork.pods_on(row)]
    if not rows:
        return
    row = data.draw(st.sampled_from(rows))
    pod = data.draw(st.sampled_from(fork.pods_on(row)))
    requested, ports = fork.requested.tolist(), sorted(fork.host_ports_on(row))
    with_ports = fork.rows_with_host_ports()
    fork.remove(pod, row)
    assert pod not in fork.pods_on(row)
    fork.place(pod, row)
    assert fork.requested.tolist() == requested
    assert sorted(fork.host_ports_on(row)) == ports
    assert fork.rows_with_host_ports() == with_ports


def test_removing_a_pod_frees_its_room_and_ports_on_the_fork_only() -> None:
    snapshot = make_cluster().node("n1", cpu=4).running("a", "n1", cpu=2, host_ports=[80]).snapshot()
    before = picture(snapshot)
    fork = snapshot.fork()
    fork.remove(fork.pods_on(0)[0], 0)
    assert (fork.requested == 0).all()
    assert fork.pods_on(0) == ()
    assert fork.rows_with_host_ports() == ()
    assert picture(snapshot) == before


def test_removing_from_an_overflowing_row_counts_again_what_is_left() -> None:
    cluster = make_cluster().node("n1").running("huge", "n1", requests={"memory": str(INT64_MAX)})
    fork = cluster.running("small", "n1", memory="1Gi").snapshot().fork()
    fork.remove(fork.pods_on(0)[0], 0)
    assert fork.requested[0, fork.axis.column_of("memory")] == 2**30


def test_a_pod_that_is_not_there_cannot_be_removed() -> None:
    fork = make_cluster().node("n1").snapshot().fork()
    with pytest.raises(ValueError, match="not on row 0"):
        fork.remove(make_pod("a"), 0)


def _count_moves(value: int, moves: Sequence[PodMove]) -> int:
    return value + sum(move.sign for move in moves)


def test_a_fold_is_built_once_and_carried_on_over_the_moves_of_each_fork() -> None:
    built = []

    def build(origin: Snapshot) -> int:
        built.append(origin)
        return 100

    snapshot = make_cluster().nodes(2).snapshot()
    fork = snapshot.fork()
    pod = make_pod("a")
    fork.place(pod, 0)
    assert fork.fold("k", build, _count_moves) == 101
    child = fork.fork()
    child.place(make_pod("b"), 1)
    fork.remove(pod, 0)
    assert child.fold("k", build, _count_moves) == 102
    assert fork.fold("k", build, _count_moves) == 100
    assert snapshot.fold("k", build, _count_moves) == 100
    assert snapshot.fork().fold("k", build, _count_moves) == 100
    assert built == [snapshot]


def test_what_one_fork_has_reckoned_of_a_forks_moves_no_other_reckons_again() -> None:
    stepped = []

    def step(value: int, moves: Sequence[PodMove]) -> int:
        stepped.append(len(moves))
        return value + len(moves)

    trunk = make_cluster().nodes(2).snapshot().fork()
    for number in range(5):
        trunk.place(make_pod(f"a{number}"), 0)
    for _ in range(3):
        child = trunk.fork()
        child.place(make_pod("b"), 1)
        assert child.fold("k", lambda origin: 0, step) == 6
    assert stepped == [5, 1, 1, 1]
    late = trunk.fork()
    trunk.place(make_pod("c"), 0)
    assert late.fold("k", lambda origin: 0, step) == 5


def test_moves_are_told_from_a_pods_own_on_or_supposed() -> None:
    fork = make_cluster().nodes(2).snapshot().fork()
    one, two = make_pod("one"), make_pod("two")
    fork.place(one, 0)
    fork.place(two, 1)
    assert [move.pod for move in fork.moves_since(two, 1)] == [two]
    assert [move.pod for move in fork.moves_since(one, 0)] == [one, two]
    assert next(iter(fork.moves_since(make_pod("three"), 1))).row == 1
    assert len(fork.moves) == 2


def test_a_snapshot_nobody_needs_is_gone_without_the_garbage_collector() -> None:
    snapshot = make_cluster().node("n1").snapshot()
    fork = snapshot.fork()
    gone = weakref.ref(snapshot), weakref.ref(fork)
    gc.disable()
    try:
        del snapshot, fork
        assert [reference() for reference in gone] == [None, None]
    finally:
        gc.enable()


def test_many_pods_come_and_go_at_once_as_they_would_one_by_one() -> None:
    cluster = make_cluster().node("n1", cpu=8).node("n2", cpu=8)
    cluster.running("a", "n1", cpu=1).running("b", "n1", cpu=2, host_ports=[80]).running("c", "n2", cpu=3)
    snapshot = cluster.snapshot()
    gone = [(pod, row) for row in (0, 1) for pod in snapshot.pods_on(row)]
    come = [(make_pod("d", cpu=1, host_ports=[81]), 0), (make_pod("e", cpu=2), 0), (make_pod("f"), 1)]
    one_by_one, at_once = snapshot.fork(), snapshot.fork()
    for pod, row in gone:
        one_by_one.remove(pod, row)
    for pod, row in come:
        one_by_one.place(pod, row)
    for pairs, move in ((gone, at_once.remove_each), (come, at_once.place_each)):
        rows = np.array([row for _, row in pairs], dtype=np.int32)
        requests = np.array([snapshot.request_of(pod) for pod, _ in pairs])
        move([pod for pod, _ in pairs], rows, requests)
    assert picture(at_once) == picture(one_by_one)
    assert [move.sign for move in at_once.moves] == [-1, -1, -1, 1, 1, 1]


def test_placing_many_saturates_as_placing_one_does() -> None:
    fork = make_cluster().node("n1").snapshot().fork()
    pods = [make_pod(name, requests={"memory": str(INT64_MAX)}) for name in "ab"]
    requests = np.array([fork.request_of(pod) for pod in pods])
    fork.place_each(pods, np.zeros(2, dtype=np.int32), requests)
    assert fork.requested[0, fork.axis.column_of("memory")] == INT64_MAX
    fork.remove_each(pods[:1], np.zeros(1, dtype=np.int32), requests[:1])
    assert fork.requested[0, fork.axis.column_of("memory")] == INT64_MAX


def test_a_later_state_of_a_pod_takes_it_off_beside_others_as_they_were() -> None:
    snapshot = make_cluster().node("n1").running("a", "n1", cpu=1).running("b", "n1", cpu=1).snapshot()
    a, b = snapshot.pods_on(0)
    later = replace(a, metadata=replace(a.metadata, deletion_timestamp="2027-01-15T07:59:59Z"))
    fork = snapshot.fork()
    requests = np.array([snapshot.request_of(pod) for pod in (later, b)])
    fork.remove_each((later, b), np.zeros(2, dtype=np.int32), requests)
    assert fork.pods_on(0) == ()
    assert not fork.requested.any()
