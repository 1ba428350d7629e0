"""Rank order, and packing by preferred levels, as a group sees them."""

from typing import Any

from tests.unit.scheduling.test_attempt import make_cast, nodes_of, play

from muster.scheduling.attempt import Attempt
from muster.testing.builders import ClusterBuilder, make_cluster

KEY = "index"


def racks(*sizes: tuple[str, str, int]) -> ClusterBuilder:
    cluster = make_cluster()
    for number, (zone, rack, cpu) in enumerate(sizes, start=1):
        cluster.node(f"n{number}", cpu=cpu, labels={"zone": zone, "rack": rack})
    return cluster


def ranked(cluster: ClusterBuilder, ranks: list[str], **group: Any) -> Attempt:
    pods = [{"cpu": 1, "labels": {KEY: rank}} for rank in ranks]
    return play(cluster, make_cast(len(ranks), *pods, rank_key=KEY, **group))


def test_members_are_laid_by_rank_along_the_levels() -> None:
    cluster = racks(("b", "r3", 2), ("a", "r2", 1), ("a", "r1", 1), ("b", "r4", 2))
    found = ranked(cluster, ["5", "0", "3", "1", "4", "2"], preferred_levels=("zone", "rack"))
    nodes = nodes_of(found)
    by_rank = [nodes[f"g-{index}"] for index in (1, 3, 5, 2, 4, 0)]
    assert by_rank == ["n3", "n2", "n1", "n1", "n4", "n4"]


def test_ranks_are_numbers_not_words() -> None:
    found = ranked(racks(("a", "r1", 1), ("a", "r2", 1)), ["10", "9"], preferred_levels=("rack",))
    assert nodes_of(found) == {"g-1": "n1", "g-0": "n2"}


def test_a_member_without_a_rank_is_named() -> None:
    found = ranked(racks(("a", "r1", 8)), ["0", "first"])
    assert (found.reason, found.placements) == ("Unschedulable", ())
    assert (
        "pod g-1 has no whole number of at most 19 digits as its label or annotation index" in found.message
    )


def test_a_rank_of_thousands_of_digits_is_none() -> None:
    found = ranked(racks(("a", "r1", 8)), ["0", "9" * 5000])
    assert "pod g-1 has no whole number" in found.message


def packed(cluster: ClusterBuilder, count: int, *levels: str, **group: Any) -> set[str]:
    cast = make_cast(None, *({"cpu": 1} for _ in range(count)), preferred_levels=levels, **group)
    return set(nodes_of(play(cluster, cast)).values())


def test_the_narrowest_level_that_holds_all_is_taken() -> None:
    cluster = racks(("a", "r1", 2), ("a", "r2", 2), ("b", "r3", 3), ("c", "r4", 2), ("c", "r5", 3))
    assert packed(cluster, 3, "zone", "rack") <= {"n3", "n5"}
    assert packed(cluster, 4, "zone", "rack") == {"n1", "n2"}
    assert packed(cluster, 5, "zone", "rack") == {"n4", "n5"}


def test_a_preference_costs_no_member_its_place() -> None:
    assert packed(racks(("a", "r1", 2), ("b", "r2", 1)), 3, "rack") == {"n1", "n2"}


def test_few_domains_are_used_where_one_does_not_hold_all() -> None:
    cluster = racks(("a", "r1", 1), ("a", "r2", 1), ("a", "r3", 2), ("a", "r4", 3))
    assert packed(cluster, 5, "rack") == {"n3", "n4"}


def test_a_preferred_level_stays_inside_the_domain_that_is_asked_for() -> None:
    cluster = racks(("a", "r1", 1), ("a", "r2", 1), ("b", "r3", 4))
    cast = make_cast(
        2, {"cpu": 1, "node": "n1"}, {"cpu": 1}, topology_keys=("zone",), preferred_levels=("rack",)
    )
    cluster.running("g-0", "n1", cpu=1)
    assert set(nodes_of(play(cluster, cast)).values()) == {"n2"}


def test_a_level_that_no_node_has_is_a_reason() -> None:
    cast = make_cast(1, {"cpu": 1}, preferred_levels=("rak",))
    found = play(racks(("a", "r1", 1)), cast)
    assert found.placements == ()
    assert found.message == "no node has the label rak, which the group prefers to be packed by"
