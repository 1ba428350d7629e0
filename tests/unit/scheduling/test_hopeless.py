"""What not even the empty cluster could take."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduling.test_attempt import make_cast, make_runner
from tests.unit.scheduling.test_room import cluster_of
from tests.unit.scheduling.world import World, key_of

from muster.scheduling.attempt import attempt
from muster.scheduling.hopeless import Never, why_never
from muster.testing.builders import ClusterBuilder, make_cluster


def never(cluster: ClusterBuilder, min_count: int, *cpus: int, **group: Any) -> Never:
    cast = make_cast(min_count, *({"cpu": cpu} for cpu in cpus), **group)
    return why_never(cast, cluster.snapshot(), make_runner())


def test_a_group_that_running_pods_keep_out_may_hope() -> None:
    assert never(make_cluster().node("n1", cpu=4).running("x", "n1", cpu=4), 2, 2, 2) == Never()


@pytest.mark.parametrize(
    ("cluster", "cpus", "group", "text", "missing"),
    [
        pytest.param(
            make_cluster().node(cpu=2),
            [3],
            {},
            "no node could take a member even if it were empty",
            1,
            id="node",
        ),
        pytest.param(
            make_cluster().node(cpu=2).node(cpu=1),
            [1] * 5,
            {},
            "the cluster could take 3 of the 5 members it needs even if it were empty",
            2,
            id="cluster",
        ),
        pytest.param(
            cluster_of([[2], [3], [1]]),
            [1] * 4,
            {"topology_keys": ("rack",)},
            "none of 3 domains of rack could take the 4 members it needs even if it were empty: "
            "r1 is the largest and takes 3",
            1,
            id="domain",
        ),
        pytest.param(
            cluster_of([[2]]),
            [1],
            {"topology_keys": ("row",)},
            "no node has the label row",
            0,
            id="no-domain",
        ),
    ],
)
def test_who_can_never_fit_is_told_what_is_too_small(
    cluster: ClusterBuilder, cpus: list[int], group: dict[str, Any], text: str, missing: int
) -> None:
    assert never(cluster, len(cpus), *cpus, **group) == Never(text, missing)


racks = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=3), min_size=1, max_size=3)


@given(sizes=racks, cpus=st.lists(st.integers(1, 3), min_size=1, max_size=4), is_racked=st.booleans())
def test_nothing_that_fits_the_empty_cluster_is_called_hopeless(
    sizes: list[list[int]], cpus: list[int], *, is_racked: bool
) -> None:
    keys = ("rack",) if is_racked else ()
    cast = make_cast(len(cpus), *({"cpu": cpu} for cpu in cpus), topology_keys=keys)
    cluster = cluster_of(sizes)
    if attempt(cast, cluster.snapshot(), make_runner()).placements:
        assert why_never(cast, cluster.snapshot(), make_runner()) == Never()


def test_a_hopeless_group_is_tried_once_and_again_when_a_node_comes() -> None:
    world = World().node("n1", cpu=2, labels={"rack": "r1"})
    world.group("g", 3, topology_keys=("rack",)).members("g", 0, 1, 2).run(100)
    pending = world.scheduler.report().find(key_of("g"))
    assert pending is not None
    assert (pending.place, pending.attempts) == ("unschedulable", 1)
    assert "none of 1 domains of rack" in pending.message
    world.node("n2", cpu=8).run()
    assert world.bound == set()
    world.node("n3", cpu=1, labels={"rack": "r1"}).run()
    assert world.bound == {"g-0", "g-1", "g-2"}


def test_room_taken_on_a_new_node_and_given_back_is_not_slept_through() -> None:
    world = World().node("n1", cpu=1).group("g", 2).members("g", 0, 1).run(20)
    world.pod("x", node="n2").node("n2", cpu=1).run(20)
    world.delete("x").run()
    assert world.bound == {"g-0", "g-1"}
