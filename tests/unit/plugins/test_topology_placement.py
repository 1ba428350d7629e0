"""Domains of a topology key."""

import pytest

from muster.framework.status import Status, Verdict
from muster.placement.domains import Placements
from muster.plugins.topology_placement import TopologyPlacement
from muster.testing.builders import make_cluster, make_group, make_pod
from muster.testing.conformance import check_plugin

IN_RACKS = make_group("g", 2, topology_keys=("rack",))
CLUSTER = make_cluster().rack(1, 1).rack(1).node("bare").snapshot()  # n1, n2 in r1, n3 in r2


def found(*pinned: int) -> Placements | Status:
    members = [(make_pod(f"g-{row}"), row) for row in pinned]
    return TopologyPlacement().placements(IN_RACKS, CLUSTER, CLUSTER.live_rows(), pinned=members)


def test_it_keeps_the_contract() -> None:
    check_plugin(TopologyPlacement())


def test_there_is_one_placement_per_domain_and_none_without_the_label() -> None:
    placements = found()
    assert isinstance(placements, Placements)
    assert placements.names == ("r1", "r2")
    assert [placements.rows_of(index).tolist() for index in range(2)] == [[0, 1], [2]]


def test_a_group_without_a_key_may_go_anywhere() -> None:
    placements = TopologyPlacement().placements(make_group("g", 2), CLUSTER, CLUSTER.live_rows(), pinned=())
    assert isinstance(placements, Placements)
    assert placements.rows_of(0).tolist() == [0, 1, 2, 3]


def test_a_member_placed_already_pins_the_group_to_its_domain() -> None:
    placements = found(2)
    assert isinstance(placements, Placements)
    assert placements.names == ("r2",)


@pytest.mark.parametrize(
    ("pinned", "text"),
    [
        pytest.param((0, 2), "more than 1 domain found for pod group: r1, r2", id="two-domains"),
        pytest.param((3,), "no topology domain found for pod default/g-3", id="no-label"),
        pytest.param((-1,), "no topology domain found for pod default/g--1", id="node-not-known"),
    ],
)
def test_members_that_contradict_the_rule_are_an_error(pinned: tuple[int, ...], text: str) -> None:
    status = found(*pinned)
    assert isinstance(status, Status)
    assert status.verdict is Verdict.ERROR
    assert status.message == f"cannot determine domain for already scheduled pods: {text}"


def test_a_member_outside_the_rows_of_the_parent_is_an_error() -> None:
    members = [(make_pod("g-0"), 0)]
    status = TopologyPlacement().placements(IN_RACKS, CLUSTER, CLUSTER.live_rows()[2:], pinned=members)
    assert isinstance(status, Status)


def test_what_is_remembered_of_racks_is_what_would_be_found_anew() -> None:
    """The slow twin: a plugin that has never been asked."""
    plugin = TopologyPlacement()
    moved = make_cluster().rack(1).rack(1, 1).node("bare").snapshot()
    for snapshot in (CLUSTER, CLUSTER, moved, CLUSTER):
        for rows in (snapshot.live_rows(), snapshot.live_rows()[1:], snapshot.live_rows()):
            remembered = plugin.placements(IN_RACKS, snapshot, rows, pinned=())
            anew = TopologyPlacement().placements(IN_RACKS, snapshot, rows, pinned=())
            assert isinstance(remembered, Placements)
            assert isinstance(anew, Placements)
            assert remembered.names == anew.names
            assert remembered.rows.tolist() == anew.rows.tolist()
            assert remembered.bounds.tolist() == anew.bounds.tolist()


def test_rows_that_were_written_since_are_parted_anew() -> None:
    plugin, rows = TopologyPlacement(), CLUSTER.live_rows()[:2].copy()
    plugin.placements(IN_RACKS, CLUSTER, rows, pinned=())
    rows[1] = 2
    again = plugin.placements(IN_RACKS, CLUSTER, rows, pinned=())
    assert isinstance(again, Placements)
    assert again.names == ("r1", "r2")
