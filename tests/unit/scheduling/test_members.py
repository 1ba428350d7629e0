"""Who belongs where, and how far each has come."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.api.core import Pod, PodClaimStatus
from muster.framework.groups import ObjectKey
from muster.scheduling.members import EntityKey, Members, Stage, group_entity
from muster.testing.builders import make_group, make_pod

G = ObjectKey("default", "g")


def make_members() -> Members:
    return Members(frozenset({"muster"}))


def dying(pod: Pod) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


@pytest.mark.parametrize(
    ("pod", "stage"),
    [
        pytest.param(make_pod("p"), Stage.WAITING, id="ours"),
        pytest.param(make_pod("p", scheduler="other"), Stage.FOREIGN, id="another-scheduler"),
        pytest.param(dying(make_pod("p")), Stage.LEAVING, id="dying-and-not-placed"),
        pytest.param(make_pod("p", node="n1"), Stage.BOUND, id="bound"),
        pytest.param(make_pod("p", node="n1", scheduler="other"), Stage.BOUND, id="bound-by-another"),
        pytest.param(dying(make_pod("p", node="n1")), Stage.BOUND, id="bound-and-dying"),
        pytest.param(make_pod("p", node="n1", phase="Succeeded"), Stage.SUCCEEDED, id="succeeded"),
        pytest.param(make_pod("p", phase="Failed"), Stage.FAILED, id="failed"),
    ],
)
def test_a_pod_has_the_stage_its_object_shows(pod: Pod, stage: Stage) -> None:
    assert make_members().see_pod(pod, None).after is stage


def test_an_older_sight_does_not_undo_an_assumption_or_an_acceptance() -> None:
    members = make_members()
    pod = make_pod("p")
    member = members.see_pod(pod, G).member
    members.assume(member, "n1")
    assert members.see_pod(pod, G).after is Stage.ASSUMED
    members.accept(member)
    assert members.see_pod(pod, G).after is Stage.BOUND
    assert member.node_name == "n1"


def test_a_forgotten_member_is_where_its_object_says() -> None:
    members = make_members()
    member = members.see_pod(make_pod("p"), G).member
    members.assume(member, "n1")
    members.see_pod(dying(make_pod("p")), G)
    members.forget(member)
    assert (member.stage, member.node_name) == (Stage.LEAVING, "")


def test_members_are_tried_in_the_order_of_their_creation_then_as_seen() -> None:
    members = make_members()
    for name, second in (("late", 9), ("b", 1), ("a", 1)):
        pod = make_pod(name)
        created = replace(pod.metadata, creation_timestamp=f"2026-01-01T00:00:0{second}Z")
        members.see_pod(replace(pod, metadata=created), G)
    waiting = members.cast(group_entity(G)).waiting()
    assert [member.key.name for member in waiting] == ["b", "a", "late"]


def test_who_waits_is_known_anew_when_somebody_comes_or_goes_and_whatever_is_done_to_the_answer() -> None:
    members = make_members()
    cast = members.see_pod(make_pod("a"), G) and members.cast(group_entity(G))
    cast.waiting().clear()
    assert [member.key.name for member in cast.waiting()] == ["a"]
    second = members.see_pod(make_pod("b"), G).member
    assert [member.key.name for member in cast.waiting()] == ["a", "b"]
    members.assume(second, "n1")
    assert [member.key.name for member in cast.waiting()] == ["a"]


def test_what_is_known_of_a_lone_pod_stays_while_it_changes_and_goes_with_it() -> None:
    members = make_members()
    member = members.see_pod(make_pod("p"), None).member
    cast = members.cast(member.entity)
    members.see_pod(make_pod("p", version="2"), None)
    members.assume(member, "n1")
    assert members.cast(member.entity) is cast
    members.lose_pod(member.key)
    assert members.casts() == {}


def test_a_group_that_its_only_pod_leaves_is_forgotten() -> None:
    members = make_members()
    members.see_pod(make_pod("p"), G)
    member = members.see_pod(make_pod("p"), None).member
    assert list(members.casts()) == [member.entity]


def test_placed_members_are_counted_by_what_the_api_accepted_and_what_is_on_the_wire() -> None:
    members = make_members()
    members.see_group(make_group("g", 3))
    for name, words in (
        ("bound", {"node": "n1"}),
        ("done", {"phase": "Succeeded"}),
        ("bad", {"phase": "Failed"}),
    ):
        members.see_pod(make_pod(name, **words), G)  # type: ignore[arg-type]
    members.assume(members.see_pod(make_pod("wire"), G).member, "n1")
    members.see_pod(make_pod("waits"), G)
    cast = members.cast(group_entity(G))
    assert (cast.accepted_count, cast.placed_count) == (2, 3)


def test_a_change_of_status_asks_for_nothing_and_a_change_of_spec_or_labels_does() -> None:
    members = make_members()
    members.see_pod(make_pod("p", cpu=1), None)
    assert not members.see_pod(make_pod("p", cpu=1, version="9"), None).asks_anew
    assert members.see_pod(make_pod("p", cpu=2), None).asks_anew
    assert members.see_pod(make_pod("p", cpu=2, labels={"a": "b"}), None).asks_anew


def test_a_pod_that_is_bound_asks_for_nothing_anew_unless_it_asks_for_something_else() -> None:
    members = make_members()
    members.see_pod(make_pod("p", cpu=1), None)
    assert not members.see_pod(make_pod("p", cpu=1, node="n1"), None).asks_anew
    members.see_pod(make_pod("q", cpu=1), None)
    assert members.see_pod(make_pod("q", cpu=2, node="n1"), None).asks_anew


def test_a_claim_that_has_been_made_for_a_pod_is_news() -> None:
    members = make_members()
    pod = make_pod("p")
    members.see_pod(pod, None)
    made = replace(
        pod, status=replace(pod.status, resource_claim_statuses=[PodClaimStatus("gpus", "p-gpus")])
    )
    assert members.see_pod(made, None).asks_anew


def test_a_group_without_members_and_members_without_group_are_both_known() -> None:
    members = make_members()
    members.see_group(make_group("g", 3))
    assert members.find_group(G) is not None
    members.see_pod(make_pod("p"), G)
    members.lose_group(group_entity(G))
    assert members.find_group(G) is None
    assert [member.key.name for member in members.cast(group_entity(G)).waiting()] == ["p"]
    members.lose_pod(ObjectKey("default", "p"))
    assert members.casts() == {}


def test_a_lone_pod_is_its_own_entity() -> None:
    member = make_members().see_pod(make_pod("p"), None).member
    assert member.entity == EntityKey("pod", ObjectKey("default", "p"))
    assert str(member.entity) == "default/p"


def test_who_begins_or_ends_to_take_room_is_news() -> None:
    members = make_members()
    before = members.holders_version
    member = members.see_pod(make_pod("p"), G).member
    assert members.holders_version == before
    members.assume(member, "n1")
    assert members.holders_version == before + 1


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.sampled_from(["waiting", "bound", "succeeded", "failed", "foreign", "gone", "assume", "forget"]),
    )
)


@given(STEPS)
def test_every_pod_is_in_one_stage_whatever_is_seen(steps: list[tuple[str, str]]) -> None:
    members = make_members()
    for name, step in steps:
        key = ObjectKey("default", name)
        member = members.find(key)
        if step == "gone":
            members.lose_pod(key)
        elif step == "assume":
            if member is not None and member.stage is Stage.WAITING:
                members.assume(member, "n1")
        elif step == "forget":
            if member is not None and member.stage is Stage.ASSUMED:
                members.forget(member)
        else:
            words = {
                "waiting": {},
                "bound": {"node": "n1"},
                "succeeded": {"phase": "Succeeded"},
                "failed": {"phase": "Failed"},
                "foreign": {"scheduler": "other"},
            }[step]
            members.see_pod(make_pod(name, **words), G)  # type: ignore[arg-type]
        stages = members.cast(group_entity(G)).stages
        found = [key for pods in stages.values() for key in pods]
        assert len(found) == len(set(found))
        for stage, pods in stages.items():
            assert all(member.stage is stage for member in pods.values())
