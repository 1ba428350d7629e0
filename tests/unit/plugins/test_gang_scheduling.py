"""The gang policy."""

import pytest

from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.framework.status import Verdict
from muster.plugins.gang_scheduling import GangScheduling
from muster.testing.builders import make_gang, make_group
from muster.testing.conformance import check_plugin


def test_it_keeps_the_contract() -> None:
    check_plugin(GangScheduling())


@pytest.mark.parametrize(
    ("min_count", "waiting", "placed", "ok"),
    [
        pytest.param(3, 2, 0, False, id="one-short"),
        pytest.param(3, 3, 0, True, id="complete"),
        pytest.param(3, 1, 2, True, id="placed-members-count"),
        pytest.param(3, 0, 2, False, id="placed-members-alone-too-few"),
        pytest.param(None, 1, 0, True, id="basic"),
    ],
)
def test_a_gang_is_held_until_its_minimum_exists(
    min_count: int | None, waiting: int, placed: int, *, ok: bool
) -> None:
    status = GangScheduling().pre_enqueue(
        make_group("g", min_count), waiting=make_gang("g", waiting), placed=placed
    )
    assert status.ok == ok


def test_the_message_counts_members() -> None:
    status = GangScheduling().pre_enqueue(make_group("g", 3), waiting=make_gang("g", 1), placed=1)
    assert status.message == "waits for members: 2 of 3 exist"


@pytest.mark.parametrize(
    ("assigned", "remaining", "verdict", "message"),
    [
        (3, 0, Verdict.SUCCESS, ""),
        (2, 1, Verdict.WAIT, "minCount (3) is not yet satisfied: 2 scheduled, 1 remaining"),
        (2, 0, Verdict.UNSCHEDULABLE, "minCount (3) cannot be satisfied: 2 scheduled, 0 remaining"),
    ],
    ids=["enough", "may-become-enough", "never"],
)
def test_the_verdict_comes_as_early_as_it_is_known(
    assigned: int, remaining: int, verdict: Verdict, message: str
) -> None:
    status = GangScheduling().placement_feasible(make_group("g", 3), assigned=assigned, remaining=remaining)
    assert (status.verdict, status.message) == (verdict, message)


def hint(change: Change, event: ClusterEvent) -> Hint:
    group = make_group("g", 3)
    rejected = Rejected(group.key, group, ())
    rule = next(rule for rule in GangScheduling().hint_rules() if rule.change is change)
    assert rule.helps is not None
    return rule.helps(rejected, event)


def test_a_new_member_helps_its_own_gang_only() -> None:
    own, other = make_group("g").key, make_group("h").key
    assert hint(Change.POD_ADDED, ClusterEvent(Change.POD_ADDED, group_key=own)) is Hint.QUEUE
    assert hint(Change.POD_ADDED, ClusterEvent(Change.POD_ADDED, group_key=other)) is Hint.SKIP


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(3, 2, Hint.QUEUE), (3, 4, Hint.SKIP), (3, 3, Hint.QUEUE)]
)
def test_a_raised_minimum_helps_nobody(before: int, after: int, expected: Hint) -> None:
    event = ClusterEvent(
        Change.GROUP_CHANGED,
        group_key=make_group("g").key,
        old_group=make_group("g", before),
        group=make_group("g", after),
    )
    assert hint(Change.GROUP_CHANGED, event) is expected


def test_another_groups_change_helps_nobody() -> None:
    event = ClusterEvent(Change.GROUP_CHANGED, group_key=make_group("h").key)
    assert hint(Change.GROUP_CHANGED, event) is Hint.SKIP
