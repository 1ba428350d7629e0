"""One try at one entity, decided on a snapshot."""

from typing import Any, ClassVar

import pytest

from muster.api.core import Pod
from muster.assembly.profiles import BUILT_IN
from muster.base.arrays import Int32
from muster.cluster.snapshot import Snapshot
from muster.framework.groups import ObjectKey, UnsupportedField
from muster.framework.points import NodeVerdict
from muster.framework.runner import Runner, Weighted
from muster.scheduling.attempt import Attempt, attempt
from muster.scheduling.members import Cast, Members, group_entity
from muster.testing.builders import ClusterBuilder, make_cluster, make_group, make_pod

G = ObjectKey("default", "g")


def make_runner(*more: Any) -> Runner:
    return Runner([Weighted(make()) for make in BUILT_IN.values()] + [Weighted(plugin) for plugin in more])


def make_cast(min_count: int | None, *pods: dict[str, Any], **group: Any) -> Cast:
    members = Members(frozenset({"muster"}))
    members.see_group(make_group("g", min_count, **group))
    for index, words in enumerate(pods):
        members.see_pod(make_pod(f"g-{index}", group="g", **words), G)
    return members.cast(group_entity(G))


def play(cluster: ClusterBuilder, cast: Cast, *plugins: Any) -> Attempt:
    return attempt(cast, cluster.snapshot(), make_runner(*plugins))


def nodes_of(decision: Attempt) -> dict[str, str]:
    return {member.key.name: node for member, node in decision.placements}


ONE, TWO, BIG = {"cpu": 1}, {"cpu": 2}, {"cpu": 8}


@pytest.mark.parametrize(
    ("cpus", "min_count", "pods", "placed"),
    [
        pytest.param([4], 3, [ONE] * 3, 3, id="all-fit"),
        pytest.param([2], 3, [ONE] * 3, 0, id="one-too-many"),
        pytest.param([3], 3, [ONE] * 5, 3, id="as-many-as-fit-beyond-the-minimum"),
        pytest.param([2, 2], 2, [TWO] * 2, 2, id="over-two-nodes"),
        pytest.param([2, 2], 2, [{"cpu": 3}, ONE], 0, id="one-fits-nowhere"),
        pytest.param([4], 2, [BIG, ONE, ONE], 2, id="who-does-not-fit-stops-nobody"),
        pytest.param([4], None, [BIG, BIG], 0, id="basic-nothing-fits"),
        pytest.param([1], None, [ONE] * 3, 1, id="basic-what-fits"),
        pytest.param([3, 1], 2, [{"cpu": 3}, ONE], 2, id="two-sizes"),
    ],
)
def test_a_group_is_placed_from_its_minimum_on(
    cpus: list[int], min_count: int | None, pods: list[dict[str, Any]], placed: int
) -> None:
    cluster = make_cluster()
    for cpu in cpus:
        cluster.node(cpu=cpu)
    decision = play(cluster, make_cast(min_count, *pods))
    assert len(decision.placements) == placed
    assert (decision.reason == "") == (placed > 0)


def test_the_try_stops_when_the_minimum_is_out_of_reach() -> None:
    decision = play(make_cluster().node(cpu=4), make_cast(3, BIG, ONE, ONE))
    assert decision.message == "minCount (3) cannot be satisfied: 0 scheduled, 2 remaining"
    assert [key.name for key in decision.own_texts] == ["g-0"]


@pytest.mark.parametrize("pods", [[BIG, ONE, ONE], [ONE] * 5], ids=["one-too-large", "one-too-many"])
def test_a_try_that_need_not_say_why_comes_to_the_same_and_tells_nobody(pods: list[dict[str, Any]]) -> None:
    snapshot, cast = make_cluster().node(cpu=4).snapshot(), make_cast(len(pods), *pods)
    told = attempt(cast, snapshot, make_runner())
    short = attempt(cast, snapshot, make_runner(), explain=False)
    assert (short.reason, short.message, short.placements) == (told.reason, told.message, told.placements)
    assert (len(told.own_texts), short.own_texts, short.shortfalls) == (1, {}, ())


def test_members_already_placed_count() -> None:
    decision = play(make_cluster().node(cpu=1), make_cast(2, {"node": "elsewhere"}, ONE))
    assert list(nodes_of(decision)) == ["g-1"]


def test_a_satisfied_group_with_nothing_new_placed_is_unschedulable() -> None:
    decision = play(make_cluster().node(cpu=1), make_cast(1, {"node": "elsewhere"}, BIG))
    assert decision.reason == "Unschedulable"


def test_who_found_no_room_is_told_what_the_filters_said() -> None:
    cluster = make_cluster().node(cpu=1).node(cpu=9, unschedulable=True)
    decision = play(cluster, make_cast(1, TWO))
    assert list(decision.own_texts.values()) == [
        "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."
    ]
    assert {"NodeResourcesFit", "NodeUnschedulable", "GangScheduling"} <= decision.rejectors


def test_without_nodes_every_filter_is_a_rejector_so_that_a_node_wakes_the_group() -> None:
    decision = play(make_cluster(), make_cast(2, ONE, ONE))
    assert "NodeResourcesFit" in decision.rejectors
    assert "0/0 nodes are available" in next(iter(decision.own_texts.values()))


@pytest.mark.parametrize(
    ("pods", "missing"),
    [
        pytest.param([ONE] * 5, 3, id="of-one-shape-it-is-known-how-many"),
        pytest.param([ONE, TWO, ONE, ONE, ONE], 0, id="of-several-it-is-not"),
    ],
)
def test_how_many_places_are_missing(pods: list[dict[str, Any]], missing: int) -> None:
    assert play(make_cluster().node(cpu=2), make_cast(5, *pods)).missing == missing


def test_a_contradiction_places_nobody() -> None:
    decision = play(make_cluster().node(cpu=9), make_cast(2, {"cpu": 1, "priority": 5}, ONE))
    assert decision.reason == "SchedulerError"
    assert decision.placements == ()


def test_a_group_that_asks_for_what_is_not_built_is_held_with_the_field() -> None:
    field = UnsupportedField("spec.schedulingConstraints.topology", "topology is not followed yet")
    decision = play(make_cluster().node(cpu=9), make_cast(1, ONE, unsupported=(field,)))
    assert (decision.reason, decision.placements) == ("Unschedulable", ())
    assert decision.message == "spec.schedulingConstraints.topology: topology is not followed yet"


def test_a_member_that_asks_for_what_is_not_built_finds_no_room_and_others_do() -> None:
    disk = {"volumes": [{"name": "v", "iscsi": {"iqn": "x"}}], "cpu": 1}
    decision = play(make_cluster().node(cpu=9), make_cast(1, disk, ONE))
    assert list(nodes_of(decision)) == ["g-1"]
    assert "spec.volumes" in next(iter(decision.own_texts.values()))


def test_the_snapshot_is_left_as_it_was() -> None:
    snapshot = make_cluster().node(cpu=4).snapshot()
    before = snapshot.requested.copy()
    attempt(make_cast(3, ONE, ONE, ONE), snapshot, make_runner())
    assert (snapshot.requested == before).all()


class Broken:
    """Raises on one pod."""

    name: ClassVar[str] = "Broken"
    reads_metadata: ClassVar[bool] = True

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        raise KeyError("zone")

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return None


def test_a_plugin_that_raises_on_one_member_fails_all() -> None:
    decision = play(make_cluster().node(cpu=9), make_cast(2, ONE, ONE), Broken())
    assert (decision.reason, decision.placements) == ("SchedulerError", ())
    assert decision.message.startswith("failed to schedule other pod from a pod group: plugin 'Broken'")
    assert next(iter(decision.own_texts.values())).startswith("plugin 'Broken' raised at filter")
