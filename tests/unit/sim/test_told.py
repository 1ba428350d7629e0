"""Decisions are judged by what the scheduler had been told when it made them."""

import pytest
from msgspec.structs import replace

from muster.api.core import ExtendedResourceClaimStatus, ExtendedResourceRequest, Pod, PodSpec, PodStatus
from muster.api.meta import Condition, ObjectMeta
from muster.framework.groups import Group, ObjectKey
from muster.framework.ports import (
    BindDone,
    BindFailed,
    BindPod,
    CompositeGone,
    CompositeSeen,
    GroupGone,
    GroupSeen,
    NodeGone,
    NodeSeen,
    PatchPodStatus,
    PodGone,
    PodSeen,
    TimeReached,
)
from muster.sim.told import GangWhole, RoomAsTold, Told, requests_of
from muster.testing.builders import make_node, make_pod

GANG = ObjectKey("default", "g")


def seen_pod(name: str, *, node: str = "", phase: str = "Pending") -> PodSeen:
    metadata = ObjectMeta(name=name, namespace="default", uid=f"uid-{name}")
    return PodSeen(Pod(metadata, PodSpec(node_name=node), PodStatus(phase=phase)), GANG)


def bind(name: str) -> BindPod:
    return BindPod(ObjectKey("default", name), f"uid-{name}", "n1", "muster", GANG)


def tell_gang(min_count: int, *pods: PodSeen) -> tuple[Told, GangWhole]:
    told = Told()
    told.observe(GroupSeen(Group(GANG, "uid-g", min_count=min_count)), (), 0.0)
    for pod in pods:
        told.observe(pod, (), 0.0)
    return told, GangWhole(told)


def test_binding_fewer_than_the_minimum_is_a_torn_decision() -> None:
    told, checker = tell_gang(3, seen_pod("a"), seen_pod("b"), seen_pod("c"))
    told.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    assert list(checker.check(1.0)) == ["gang default/g of 3 had 2 placed after binding 2 at 1.000"]
    assert list(checker.check(1.0)) == []


def tell_tree(*, said: tuple[Condition, ...] = ()) -> tuple[Told, GangWhole]:
    """A tree of two gangs of one: `a` is in g, `b` in h; what g says of itself."""
    told, tree, other = Told(), ObjectKey("default", "tree"), ObjectKey("default", "h")
    told.observe(CompositeSeen(Group(tree, "uid-tree", min_count=2, is_composite=True)), (), 0.0)
    told.observe(GroupSeen(Group(GANG, "uid-g", min_count=1, parent=tree, conditions=said)), (), 0.0)
    told.observe(GroupSeen(Group(other, "uid-h", min_count=1, parent=tree, conditions=said)), (), 0.0)
    told.observe(seen_pod("a"), (), 0.0)
    told.observe(PodSeen(seen_pod("b").pod, other), (), 0.0)
    return told, GangWhole(told)


def test_binding_fewer_groups_than_a_tree_needs_is_a_torn_decision() -> None:
    told, checker = tell_tree()
    told.observe(TimeReached(), (bind("a"),), 1.0)
    assert list(checker.check(1.0)) == ["tree default/tree of 2 groups had 1 placed after a binding at 1.000"]
    told.observe(TimeReached(), (replace(bind("b"), group=ObjectKey("default", "h")),), 2.0)
    assert list(checker.check(2.0)) == []


def test_of_a_tree_that_has_started_one_group_may_be_filled_alone() -> None:
    told, checker = tell_tree(said=(Condition("PodGroupInitiallyScheduled", "True"),))
    told.observe(TimeReached(), (bind("a"),), 1.0)
    assert list(checker.check(1.0)) == []


def test_a_tree_that_has_started_stays_so_when_a_group_of_it_goes_or_its_minimum_is_raised() -> None:
    told, checker = tell_tree()
    told.observe(seen_pod("c", node="n1"), (), 0.1)
    told.observe(PodSeen(seen_pod("d", node="n1").pod, ObjectKey("default", "h")), (), 0.1)
    tree = told.composites[ObjectKey("default", "tree")]
    told.observe(GroupGone(ObjectKey("default", "h"), "uid-h"), (), 0.2)
    told.observe(CompositeSeen(replace(tree, min_count=3)), (), 0.3)
    told.observe(TimeReached(), (bind("a"),), 1.0)
    assert list(checker.check(1.0)) == []


@pytest.mark.parametrize(
    ("status", "reason", "count"), [("False", "MembersLost", 0), ("False", "UnderWay", 1)]
)
def test_what_a_group_says_tells_whether_its_tree_had_started(status: str, reason: str, count: int) -> None:
    told, checker = tell_tree()
    said = (Condition("muster.dev/Whole", status, reason),)
    told.observe(GroupSeen(replace(told.groups[GANG], conditions=said)), (), 0.1)
    told.observe(TimeReached(), (bind("a"),), 1.0)
    assert len(list(checker.check(1.0))) == count


def test_to_a_new_scheduler_a_group_that_is_not_there_has_had_its_time() -> None:
    told, _ = tell_tree()
    tree, other = ObjectKey("default", "tree"), told.groups[ObjectKey("default", "h")]
    told.observe(GroupGone(other.key, other.uid), (), 0.1)
    assert told.is_tree_under_way(tree)
    told.observe(seen_pod("c", node="n1"), (), 0.2)
    assert not told.is_tree_under_way(tree)
    told.observe(GroupSeen(other), (), 0.3)
    assert told.is_tree_under_way(tree)


def test_a_composite_that_is_gone_is_no_tree() -> None:
    told, checker = tell_tree()
    told.observe(CompositeGone(ObjectKey("default", "tree"), "uid-tree"), (), 0.5)
    told.observe(TimeReached(), (bind("a"),), 1.0)
    assert list(checker.check(1.0)) == []


@pytest.mark.parametrize(
    "placed",
    [
        pytest.param(seen_pod("c", node="n1"), id="bound"),
        pytest.param(seen_pod("c", phase="Succeeded"), id="succeeded"),
    ],
)
def test_members_already_placed_count_toward_the_minimum(placed: PodSeen) -> None:
    told, checker = tell_gang(3, seen_pod("a"), seen_pod("b"), placed)
    told.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    assert list(checker.check(1.0)) == []


def test_a_failed_member_does_not_count() -> None:
    told, checker = tell_gang(2, seen_pod("a"), seen_pod("b", node="n1", phase="Failed"))
    told.observe(TimeReached(), (bind("a"),), 1.0)
    assert len(list(checker.check(1.0))) == 1


def test_a_refused_member_may_be_bound_again_while_the_others_stay() -> None:
    told, checker = tell_gang(2, seen_pod("a"), seen_pod("b"))
    told.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    refusal = BindFailed(ObjectKey("default", "b"), "uid-b", "n1", 500, "", "")
    told.observe(refusal, (bind("b"),), 2.0)
    assert list(checker.check(2.0)) == []


def test_after_a_refusal_the_rest_of_the_gang_is_needed() -> None:
    told, checker = tell_gang(2, seen_pod("a"), seen_pod("b"))
    told.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    told.observe(BindFailed(ObjectKey("default", "b"), "uid-b", "n1", 500, "", ""), (), 2.0)
    told.observe(PodGone(ObjectKey("default", "a"), "uid-a"), (bind("b"),), 3.0)
    assert len(list(checker.check(3.0))) == 1


def test_a_gang_made_whole_by_a_decision_is_remembered() -> None:
    told, checker = tell_gang(2, seen_pod("a"), seen_pod("b"))
    told.observe(TimeReached(), (bind("a"), bind("b")), 1.0)
    assert checker.ever_whole == {"uid-g"}


def test_a_node_may_not_be_given_more_than_it_has_been_told_to_have() -> None:
    told = Told()
    checker = RoomAsTold(told)
    told.observe(NodeSeen(make_node("n1", cpu=2)), (), 0.0)
    told.observe(PodSeen(make_pod("there", cpu=1, node="n1")), (), 0.0)
    told.observe(PodSeen(make_pod("done", cpu=1, node="n1", phase="Succeeded")), (), 0.0)
    for name in ("a", "b"):
        told.observe(PodSeen(make_pod(name, cpu=1)), (), 0.0)
    told.observe(TimeReached(), (bind("a"),), 1.0)
    assert list(checker.check(1.0)) == []
    told.observe(TimeReached(), (bind("b"),), 2.0)
    assert list(checker.check(2.0)) == ["node n1 was given more cpu than it has"]


def test_what_a_claim_stands_for_a_node_need_not_have() -> None:
    pod = make_pod("a", requests={"example.com/gpu": 1})
    assert requests_of(pod)["example.com/gpu"] == 1000
    mapping = ExtendedResourceRequest("c", "example.com/gpu", "r")
    said = ExtendedResourceClaimStatus([mapping], "x")
    claimed = replace(pod, status=replace(pod.status, extended_resource_claim_status=said))
    assert "example.com/gpu" not in requests_of(claimed)


def test_a_node_that_is_known_to_be_gone_has_no_room() -> None:
    told = Told()
    checker = RoomAsTold(told)
    told.observe(NodeSeen(make_node("n1", cpu=2)), (), 0.0)
    told.observe(PodSeen(make_pod("a", cpu=1)), (), 0.0)
    told.observe(NodeGone("n1"), (), 0.0)
    told.observe(TimeReached(), (bind("a"),), 1.0)
    assert list(checker.check(1.0)) == ["node n1 was given more cpu, pods than it has"]


def test_a_binding_is_on_the_wire_until_the_watch_shows_it_or_it_is_refused() -> None:
    told = Told()
    told.observe(seen_pod("a"), (bind("a"),), 0.0)
    told.observe(BindDone(ObjectKey("default", "a"), "uid-a", "n1"), (), 1.0)
    assert set(told.on_the_wire) == {ObjectKey("default", "a")}
    assert told.accepted == {"uid-a"}
    told.observe(seen_pod("a", node="n1"), (), 2.0)
    assert told.on_the_wire == {}
    told.reset()
    assert (told.pods, told.accepted) == ({}, set())


@pytest.mark.parametrize(
    ("is_there", "found"),
    [pytest.param(True, True, id="its node is there"), pytest.param(False, False, id="its node is gone")],
)
def test_the_room_of_a_binding_without_an_answer_stays_taken(is_there: bool, found: bool) -> None:
    told = Told()
    checker = RoomAsTold(told)
    told.observe(NodeSeen(make_node("n1", cpu=1)), (), 0.0)
    told.observe(NodeSeen(make_node("n2", cpu=1)), (), 0.0)
    for name in ("a", "b"):
        told.observe(PodSeen(make_pod(name, cpu=1, uid=f"uid-{name}"), None), (), 0.0)
    told.observe(TimeReached(), (bind("a"),), 1.0)
    told.observe(BindFailed(ObjectKey("default", "a"), "uid-a", "n1", 0, "", "no answer"), (), 2.0)
    if not is_there:
        told.observe(NodeGone("n1"), (), 2.5)
    waits = PatchPodStatus(ObjectKey("default", "a"), "uid-a", Condition("PodScheduled", "False"))
    told.observe(TimeReached(), (waits,), 3.0)
    assert bool(told.on_the_wire) is found
    told.observe(NodeSeen(make_node("n1", cpu=1)), (), 3.5)
    told.observe(TimeReached(), (bind("b"),), 4.0)
    assert bool(list(checker.check(4.0))) is found


@pytest.mark.parametrize("is_group_first", [True, False])
def test_members_told_before_their_group_count_as_ever_bound(is_group_first: bool) -> None:
    told = Told()
    group = GroupSeen(Group(GANG, "uid-g", min_count=2))
    pods = (seen_pod("a", node="n1"), seen_pod("b", node="n1"), seen_pod("c"))
    for event in (group, *pods) if is_group_first else (*pods, group):
        told.observe(event, (), 0.0)
    assert told.ever_bound == {"uid-g": {"uid-a", "uid-b"}}
