"""What placed pods take is known from their records."""

from muster.cluster.requests import pod_requests
from muster.cluster.state import ClusterState
from muster.testing.builders import make_node, make_pod


def test_what_a_placed_pod_takes_is_not_read_again() -> None:
    state = ClusterState()
    state.apply_node(make_node("n1", cpu=8))
    small, other = make_pod("a", cpu=1, node="n1"), make_pod("b", cpu=2)
    state.apply_pod(small)
    snapshot = state.snapshot()
    assert snapshot.amounts_of(small) is snapshot.amounts_of(small)
    assert snapshot.amounts_of(other) == pod_requests(other)


def test_another_state_of_a_placed_pod_takes_what_it_says_itself() -> None:
    state = ClusterState()
    state.apply_node(make_node("n1", cpu=8))
    small, large = make_pod("a", cpu=1, node="n1"), make_pod("a", cpu=4, node="n1")
    state.apply_pod(small)
    snapshot = state.snapshot()
    assert snapshot.amounts_of(large) == pod_requests(large)
    state.apply_pod(large)
    assert snapshot.amounts_of(small) == pod_requests(small)
    state.remove_pod(("default", "a"), "uid-a")
    assert snapshot.amounts_of(large) == pod_requests(large)
