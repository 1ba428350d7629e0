"""Strategies give valid things, and the edges that tests rely on do occur."""

from hypothesis import find, given, settings

from muster.api.core import Pod
from muster.api.quantity import INT64_MAX, parse_quantity
from muster.cluster.invariants import check_state
from muster.plugins.node_resources import NodeResourcesFit
from muster.testing.builders import ClusterBuilder
from muster.testing.strategies import clusters, gangs, quantities

PATIENT = settings(max_examples=2000, derandomize=True)


@given(clusters())
def test_clusters_are_sound(cluster: ClusterBuilder) -> None:
    check_state(cluster.state)


@given(gangs())
def test_members_have_names_of_their_own(members: tuple[Pod, ...]) -> None:
    assert len({pod.metadata.name for pod in members}) == len(members)


@given(quantities())
def test_quantities_follow_the_grammar(text: str) -> None:
    assert 0 <= parse_quantity(text) <= INT64_MAX


def test_overcommitted_nodes_occur() -> None:
    cluster = find(clusters(), lambda c: bool((c.snapshot().free < 0).any()), settings=PATIENT)
    assert cluster.snapshot().live_rows().size


def test_gangs_that_fit_in_part_occur() -> None:
    def fits_in_part(cluster: ClusterBuilder) -> bool:
        snapshot = cluster.snapshot()
        pod = next(iter(snapshot.pods_on(0)), None) if snapshot.node_names else None
        if pod is None:
            return False
        feasible = NodeResourcesFit().filter(pod, snapshot, snapshot.live_rows()).feasible
        return bool(feasible.any() and not feasible.all())

    assert fits_in_part(find(clusters(), fits_in_part, settings=PATIENT))
