"""Placements weighed by counting."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduling.test_attempt import make_cast, make_runner

from muster.placement.domains import Placements, partition
from muster.scheduling.board import Board
from muster.scheduling.leaf import LeafTrial
from muster.scheduling.room import Room, are_enough, find_room
from muster.testing.builders import ClusterBuilder, make_cluster, make_group


def racks_of(cluster: ClusterBuilder) -> Placements:
    snapshot = cluster.snapshot()
    column = snapshot.labels.column("rack")
    return partition(snapshot.live_rows(), column.ids, column.values)


def room_of(cluster: ClusterBuilder, cpus: list[int]) -> Room:
    cast = make_cast(2, *({"cpu": cpu} for cpu in cpus))
    return find_room(cast.waiting(), cluster.snapshot(), racks_of(cluster), make_runner())


def cluster_of(racks: list[list[int]]) -> ClusterBuilder:
    cluster = make_cluster()
    for index, rack in enumerate(racks):
        for cpu in rack:
            cluster.node(cpu=cpu, labels={"rack": f"r{index}"})
    return cluster


def test_like_members_are_counted_exactly_and_mixed_ones_from_above() -> None:
    cluster = cluster_of([[2, 2], [3]])
    room = room_of(cluster, [1, 1, 1])
    assert (room.takes.tolist(), room.holds.tolist(), room.is_exact) == ([3, 3], [4, 3], True)
    mixed = room_of(cluster, [2, 2, 2, 1])
    assert (mixed.takes.tolist(), mixed.is_exact) == ([3, 2], False)


def test_a_group_is_asked_once_per_number_of_members() -> None:
    enough = are_enough(make_group("g", 3), np.array([2, 3, 5, 2]), make_runner())
    assert enough.tolist() == [False, True, True, False]


racks = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=4)


@given(sizes=racks, cpus=st.lists(st.integers(1, 3), min_size=1, max_size=5))
def test_a_trial_never_places_more_than_was_counted_and_as_many_for_like_members(
    sizes: list[list[int]], cpus: list[int]
) -> None:
    cluster = cluster_of(sizes)
    placements, room = racks_of(cluster), room_of(cluster, cpus)
    cast = make_cast(None, *({"cpu": cpu} for cpu in cpus))
    for index in range(placements.count):
        board = Board(cluster.snapshot().fork())
        LeafTrial(cast, cast.waiting(), board, make_runner(), placements.rows_of(index)).run()
        placed = len(board.all_placed())
        assert placed <= room.takes[index]
        if room.is_exact:
            assert placed == room.takes[index]
