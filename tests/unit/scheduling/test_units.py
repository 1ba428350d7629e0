"""Victim units up the trees of their groups."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.unit.scheduling.slow_units import find_weaker

from muster.cluster.state import ClusterState
from muster.framework.groups import ObjectKey
from muster.placement.victims import Unit
from muster.scheduling.members import EntityKey, Members, composite_entity, group_entity
from muster.scheduling.units import Units, Victim, is_overdue
from muster.testing.builders import make_group, make_node, make_pod

NOW_S = 1_800_000_000.0


class Scene:
    def __init__(self) -> None:
        self.members = Members(frozenset({"muster"}))
        self.units = Units(self.members)
        self.state = ClusterState()
        self.state.apply_node(make_node("n1"))

    def pod(self, name: str, group: str | None = None, **words: Any) -> "Scene":
        deleted = words.pop("deleted", None)
        pod = make_pod(name, node=words.pop("node", "n1"), **words)
        if deleted:
            pod = replace(pod, metadata=replace(pod.metadata, deletion_timestamp=deleted))
        self.state.apply_pod(pod)
        self.members.see_pod(pod, ObjectKey("default", group) if group else None)
        return self

    def group(self, name: str, **fields: Any) -> "Scene":
        self.members.see_group(make_group(name, 1, **fields))
        return self

    def composite(self, name: str, **fields: Any) -> "Scene":
        return self.group(name, is_composite=True, **fields)

    def weaker(
        self, priority: int = 100, root: EntityKey | None = None, asked: tuple[str, ...] = ()
    ) -> list[Unit]:
        root = root or EntityKey("pod", ObjectKey("default", "preemptor"))
        snapshot = self.state.snapshot()
        victims = {f"uid-{name}": Victim(root, ObjectKey("default", name)) for name in asked}
        return list(
            self.units.find_weaker(snapshot, priority=priority, root=root, asked=victims, now_s=NOW_S)
        )

    def names(self, **words: Any) -> list[list[str]]:
        return sorted(sorted(pod.metadata.name for pod, _ in unit.pods) for unit in self.weaker(**words))


PARENT = ObjectKey("default", "c")


def test_members_of_a_single_group_go_alone_and_of_a_whole_one_together() -> None:
    scene = Scene().group("s").pod("s-0", "s").pod("s-1", "s")
    scene.group("w", disruption_mode="all").pod("w-0", "w").pod("w-1", "w").pod("lone")
    assert scene.names() == [["lone"], ["s-0"], ["s-1"], ["w-0", "w-1"]]
    assert {unit.is_group for unit in scene.weaker() if len(unit.pods) == 1} == {True, False}


def test_a_whole_composite_goes_with_everything_below_whatever_its_children_say() -> None:
    scene = Scene().composite("c", disruption_mode="all")
    scene.group("v", parent=PARENT).pod("v-0", "v").group("w", parent=PARENT).pod("w-0", "w")
    assert scene.names() == [["v-0", "w-0"]]


def test_under_a_single_composite_each_child_is_as_it_says() -> None:
    scene = Scene().composite("c")
    scene.group("v", parent=PARENT, disruption_mode="all").pod("v-0", "v").pod("v-1", "v")
    scene.group("w", parent=PARENT).pod("w-0", "w").pod("w-1", "w")
    assert scene.names() == [["v-0", "v-1"], ["w-0"], ["w-1"]]


def test_a_member_counts_with_its_groups_priority() -> None:
    scene = Scene().group("low", priority=1).pod("a", "low", priority=500)
    scene.group("high", priority=500).pod("b", "high", priority=1)
    assert scene.names() == [["a"]]


@pytest.mark.parametrize(("priority", "count"), [(10, 0), (11, 1)])
def test_only_what_is_strictly_weaker_may_go(priority: int, count: int) -> None:
    scene = Scene().pod("a", priority=10)
    assert len(scene.weaker(priority=priority)) == count
    scene = Scene().group("w", priority=10, disruption_mode="all").pod("w-0", "w")
    assert len(scene.weaker(priority=priority)) == count


def test_nobody_drives_out_its_own_tree() -> None:
    scene = Scene().composite("c", priority=100).group("v", parent=PARENT, priority=1).pod("v-0", "v")
    assert scene.weaker(root=composite_entity(PARENT)) == []
    assert len(scene.weaker(root=group_entity(ObjectKey("default", "other")))) == 1


def test_who_was_asked_to_leave_counts_as_leaving() -> None:
    scene = Scene().pod("a")
    (unit,) = scene.weaker(asked=("a",))
    assert unit.is_leaving
    assert not scene.weaker()[0].is_leaving


def test_who_should_be_gone_for_long_is_not_counted_on() -> None:
    long_ago, just_now = "2027-01-15T07:58:59Z", "2027-01-15T07:59:01Z"
    assert Scene().pod("a", deleted=long_ago).weaker() == []
    assert len(Scene().pod("a", deleted=just_now).weaker()) == 1
    assert not is_overdue(make_pod("a"), NOW_S)


def test_ended_pods_are_in_no_unit() -> None:
    assert Scene().pod("a", phase="Succeeded").weaker() == []


def test_a_pod_on_a_node_that_is_not_known_has_no_row() -> None:
    assert Scene().pod("a", node="gone").weaker()[0].pods[0][1] == -1


GROUPS = ("", "g0", "g1", "c0", "c1")


def change(scene: Scene, what: str, index: int, other: int, number: int) -> None:
    """One thing that can happen to pods, groups and composites of few names."""
    key = ObjectKey("default", f"p{index}")
    group = GROUPS[other % 3]
    parent = ObjectKey("default", f"c{other % 2}")
    if what == "pod":
        words = {"priority": other, "node": ("n1", "n2", "")[number % 3], "version": ""}
        if number % 5 == 0:
            words["deleted"] = "2027-01-15T07:58:59Z" if number % 2 else "2027-01-15T07:59:59Z"
        scene.pod(key.name, group or None, **words)
        if number % 4 == 0:
            young = "2027-01-15T07:59:50Z"
            pod = scene.members.find(key).pod  # type: ignore[union-attr]
            pod = replace(pod, metadata=replace(pod.metadata, creation_timestamp=young))
            scene.members.see_pod(pod, ObjectKey("default", group) if group else None)
    elif what == "no pod":
        scene.members.lose_pod(key)
    elif what == "group":
        mode = ("single", "all")[number % 2]
        words = {"parent": parent} if number % 3 else {}
        scene.group(f"g{index % 2}", priority=other, disruption_mode=mode, **words)
    elif what == "composite":
        words = {"parent": ObjectKey("default", "c0")} if index % 2 and number % 3 else {}
        mode = ("single", "all")[number % 2]
        scene.composite(f"c{index % 2}", priority=other, disruption_mode=mode, **words)
    elif what == "node":
        scene.state.apply_node(make_node(f"n{1 + index % 2}"))
    elif what == "no node":
        scene.state.remove_node(f"n{1 + index % 2}")
    else:
        make = composite_entity if number % 2 else group_entity
        scene.members.lose_group(make(ObjectKey("default", f"{'c' if number % 2 else 'g'}{index % 2}")))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["pod", "pod", "pod", "no pod", "group", "composite", "no group", "node", "no node"]
            ),
            st.integers(0, 5),
            st.integers(0, 5),
            st.integers(0, 59),
            st.booleans(),
        ),
        max_size=30,
    )
)
def test_what_is_kept_is_what_a_walk_over_everything_finds(
    changes: list[tuple[str, int, int, int, bool]],
) -> None:
    scene = Scene()
    root = composite_entity(ObjectKey("default", "c0"))
    for step, (what, index, other, number, is_asked) in enumerate(changes):
        change(scene, what, index, other, number)
        if not is_asked:
            continue
        asked = {f"uid-p{number % 7}": Victim(root, ObjectKey("default", f"p{number % 7}"))}
        snapshot, now_s = scene.state.snapshot(), NOW_S + step
        words = {"priority": other, "root": root, "asked": asked, "now_s": now_s}
        kept = scene.units.find_weaker(snapshot, **words)
        walked = find_weaker(scene.members, snapshot, **words)
        assert [_in_order(unit) for unit in kept] == [_in_order(unit) for unit in walked]
        assert scene.units.has_weaker(snapshot, **words) == bool(kept)


def _in_order(unit: Unit) -> Unit:
    """The same unit with its pods by name: in which order they go together is no promise."""
    return replace(unit, pods=tuple(sorted(unit.pods, key=lambda pair: pair[0].metadata.name)))


def test_units_of_a_priority_that_nobody_asks_for_do_not_pile_up() -> None:
    scene = Scene()
    for number in range(2000):
        scene.pod("a", priority=50, labels={"n": str(number)})
        scene.weaker(priority=1)
    assert sum(map(len, scene.units._ranked.values())) < 10


def test_who_runs_no_more_is_in_no_unit_any_more() -> None:
    scene = Scene().group("g", disruption_mode="all").pod("a", "g").pod("b", "g")
    assert scene.names() == [["a", "b"]]
    for name in "ab":
        scene.members.lose_pod(ObjectKey("default", name))
    assert scene.names() == []


def test_a_group_that_comes_under_another_takes_its_units_along() -> None:
    scene = Scene().composite("c", disruption_mode="all").group("g", disruption_mode="all").pod("a", "g")
    scene.group("h", disruption_mode="all").pod("b", "h")
    assert scene.names() == [["a"], ["b"]]
    for name in "gh":
        scene.group(name, disruption_mode="all", parent=PARENT)
    assert scene.names() == [["a", "b"]]
