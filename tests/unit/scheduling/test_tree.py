"""Groups in placements: which is chosen, and what is said when none will do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduling.test_attempt import make_cast, make_runner, nodes_of
from tests.unit.scheduling.test_room import cluster_of, racks_of

from muster.scheduling.attempt import Attempt, attempt
from muster.scheduling.board import Board
from muster.scheduling.tree import Aim, TreeTrial
from muster.testing.builders import ClusterBuilder


def in_racks(cluster: ClusterBuilder, min_count: int | None, cpus: list[int]) -> Attempt:
    cast = make_cast(min_count, *({"cpu": cpu} for cpu in cpus), topology_keys=("rack",))
    return attempt(cast, cluster.snapshot(), make_runner())


def rack_of(cluster: ClusterBuilder, decision: Attempt) -> str:
    nodes = {
        node.metadata.name: (node.metadata.labels or {})["rack"] for node in cluster.state.table.nodes if node
    }
    found = {nodes[name] for name in nodes_of(decision).values()}
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize(
    ("racks", "min_count", "cpus", "rack"),
    [
        pytest.param([[2], [2, 2]], 4, [1] * 4, "r1", id="the-only-one-large-enough"),
        pytest.param([[2, 2, 2], [2, 2]], 3, [1] * 3, "r1", id="the-fuller"),
        pytest.param([[3], [2, 2]], 3, [1] * 4, "r1", id="the-one-that-takes-more"),
        pytest.param([[2, 2], [2, 2]], 2, [1] * 2, "r0", id="of-equals-the-first-by-name"),
        pytest.param([[2, 2], [3, 1]], 2, [3, 1], "r1", id="of-two-sizes"),
    ],
)
def test_the_rack_is_chosen_by_use_and_members(
    racks: list[list[int]], min_count: int, cpus: list[int], rack: str
) -> None:
    cluster = cluster_of(racks)
    assert rack_of(cluster, in_racks(cluster, min_count, cpus)) == rack


def test_where_no_rack_is_large_enough_the_nearest_is_spoken_of() -> None:
    decision = in_racks(cluster_of([[1], [2], [1]]), 3, [1] * 3)
    assert decision.placements == ()
    assert decision.message.startswith(
        "0/3 placements are available, first placement status (r1): minCount (3)"
    )


def test_a_key_that_no_node_has_is_a_reason() -> None:
    cast = make_cast(1, {"cpu": 1}, topology_keys=("row",))
    decision = attempt(cast, cluster_of([[2]]).snapshot(), make_runner())
    assert decision.message == "no feasible placements found: none of 1 node has the label row"
    assert decision.rejectors == {"TopologyPlacement"}


racks = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4)


@given(sizes=racks, count=st.integers(1, 6), min_count=st.integers(1, 6))
def test_counting_chooses_what_trying_every_rack_would(
    sizes: list[list[int]], count: int, min_count: int
) -> None:
    cluster = cluster_of(sizes)
    cast = make_cast(min_count, *({"cpu": 1} for _ in range(count)), topology_keys=("rack",))
    fast = attempt(cast, cluster.snapshot(), make_runner())
    group: Any = cast.group
    placements = racks_of(cluster)
    slow = TreeTrial(make_runner())._try_each(
        cast, group, Board(cluster.snapshot().fork()), placements, placements, Aim.EVERYTHING
    )
    chosen = {member.key.name: cluster.snapshot().node_names[row] for member, row in slow.board.all_placed()}
    assert nodes_of(fast) == (chosen if slow.ok else {})
