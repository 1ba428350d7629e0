"""The checker finds what does not agree; each test breaks one thing on purpose."""

import numpy as np
import pytest

from muster.base.errors import InvariantViolated
from muster.cluster.invariants import check_state
from muster.cluster.state import ClusterState
from muster.testing.builders import make_cluster, make_pod


def cluster() -> ClusterState:
    return make_cluster().nodes(2).running("p", "n1", cpu=1, host_ports=[80]).state


def test_a_sound_state_passes() -> None:
    check_state(cluster())


def test_a_total_that_is_not_the_sum_is_found() -> None:
    state = cluster()
    state.table.requested[0, 0] += 1
    with pytest.raises(InvariantViolated, match="node n1: pods ask for"):
        check_state(state)


def test_a_dead_row_that_is_not_empty_is_found() -> None:
    state = cluster()
    state.remove_node("n2")
    state.table.requested[1, 0] = 5
    with pytest.raises(InvariantViolated, match="dead row 1"):
        check_state(state)


def test_a_row_with_another_name_is_found() -> None:
    state = cluster()
    state.table.names[0] = "other"
    with pytest.raises(InvariantViolated, match="row 0 should be node n1"):
        check_state(state)


def test_live_rows_without_a_node_are_found() -> None:
    state = cluster()
    state.table.live[1] = False
    with pytest.raises(InvariantViolated, match="live rows are"):
        check_state(state)


def test_a_snapshot_that_can_be_written_is_found() -> None:
    state = cluster()
    snapshot = state.snapshot()
    snapshot._requested = np.array(snapshot.requested)
    with pytest.raises(InvariantViolated, match="can be written"):
        check_state(state)


def test_a_pod_on_two_rows_is_found() -> None:
    state = cluster()
    snapshot = state.snapshot()
    snapshot._pods_by_row = (snapshot.pods_on(0), snapshot.pods_on(0))
    with pytest.raises(InvariantViolated, match="pod default/p is on n1 and n2"):
        check_state(state)


def test_an_ended_pod_that_takes_room_is_found() -> None:
    state = cluster()
    snapshot = state.snapshot()
    snapshot._pods_by_row = ((make_pod("p", node="n1", phase="Failed"),), ())
    with pytest.raises(InvariantViolated, match="has ended"):
        check_state(state)


def test_ports_that_do_not_agree_are_found() -> None:
    state = cluster()
    state.snapshot()._ports_by_row = {}
    with pytest.raises(InvariantViolated, match="host ports"):
        check_state(state)


def test_a_pod_that_is_missing_on_its_node_is_found() -> None:
    state = make_cluster().nodes(2).running("p", "n1").state
    snapshot = state.snapshot()
    snapshot._pods_by_row = ((), ())
    snapshot._requested = np.zeros_like(snapshot.requested)
    snapshot.requested.flags.writeable = False
    with pytest.raises(InvariantViolated, match="missing on n1"):
        check_state(state)
