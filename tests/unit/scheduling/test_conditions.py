"""Only news is written."""

from msgspec.structs import replace

from muster.api.meta import Condition
from muster.framework.groups import Group
from muster.framework.ports import PatchGroupStatus
from muster.scheduling.conditions import (
    INITIALLY_SCHEDULED,
    MESSAGE_BYTES_MAX,
    UNSEEN_S_MAX,
    WAITING,
    Conditions,
    shorten,
)
from muster.testing.builders import make_group, make_pod

FALSE = Condition(type=INITIALLY_SCHEDULED, status="False", reason="Unschedulable", message="no room")
TRUE = Condition(type=INITIALLY_SCHEDULED, status="True", reason="Scheduled", message="")
T0, T1 = "1970-01-01T00:00:10Z", "1970-01-01T00:00:20Z"


def shown(group: Group, patch: PatchGroupStatus | None) -> Group:
    """The object after the patch."""
    assert patch is not None
    kept = [
        condition
        for condition in group.conditions
        if condition.type not in patch.remove_conditions
        and condition.type not in {new.type for new in patch.set_conditions}
    ]
    return replace(group, conditions=(*kept, *patch.set_conditions))


def test_the_same_again_writes_nothing_though_the_watch_has_not_shown_it() -> None:
    conditions = Conditions()
    group = make_group("g")
    assert conditions.patch_group(group, [FALSE], now_s=10) is not None
    assert conditions.patch_group(group, [FALSE], now_s=20) is None


def test_other_words_are_written_and_keep_the_time_of_the_transition() -> None:
    conditions = Conditions()
    group = make_group("g")
    group = shown(group, conditions.patch_group(group, [FALSE], now_s=10))
    conditions.see_group(group, 11)
    patch = conditions.patch_group(group, [replace(FALSE, message="less room")], now_s=20)
    assert patch is not None
    assert patch.set_conditions[0].last_transition_time == T0


def test_another_status_has_a_new_time() -> None:
    conditions = Conditions()
    group = make_group("g")
    group = shown(group, conditions.patch_group(group, [FALSE], now_s=10))
    patch = conditions.patch_group(group, [TRUE], now_s=20)
    assert patch is not None
    assert patch.set_conditions[0].last_transition_time == T1


def test_what_is_true_is_known_before_the_watch_shows_it() -> None:
    conditions = Conditions()
    group = make_group("g")
    conditions.patch_group(group, [TRUE], now_s=10)
    conditions.see_group(replace(group, version="9"), 11)  # an older state of the object
    assert conditions.has_been_scheduled(group)


def test_one_patch_sets_and_removes_and_removes_only_what_is_there() -> None:
    conditions = Conditions()
    group = make_group("g", conditions=(Condition(type=WAITING, status="True"),))
    patch = conditions.patch_group(group, [TRUE], remove=[WAITING, "other"], now_s=10)
    assert patch is not None
    assert patch.remove_conditions == (WAITING,)
    assert conditions.patch_group(group, [], remove=[WAITING], now_s=11) is None


def test_conditions_of_others_keep_their_place() -> None:
    mine = Condition(type="example.com/Mine", status="True")
    group = make_group("g", conditions=(mine, Condition(type=WAITING, status="True")))
    patch = Conditions().patch_group(group, [TRUE], remove=[WAITING], now_s=10)
    assert patch is not None
    assert patch.order == ("example.com/Mine", INITIALLY_SCHEDULED)


def test_a_condition_taken_away_by_hand_is_missed() -> None:
    conditions = Conditions()
    group = make_group("g")
    conditions.see_group(shown(group, conditions.patch_group(group, [FALSE], now_s=10)), 11)
    conditions.see_group(group, 12)
    assert conditions.of_group(group, INITIALLY_SCHEDULED) is None


def test_a_write_that_was_given_up_may_be_said_again() -> None:
    conditions = Conditions()
    group = make_group("g")
    patch = conditions.patch_group(group, [FALSE], now_s=10)
    assert patch is not None
    conditions.unwrite(patch)
    assert conditions.patch_group(group, [FALSE], now_s=20) is not None


def test_a_write_never_seen_is_not_believed_for_ever() -> None:
    conditions = Conditions()
    group = make_group("g")
    conditions.patch_group(group, [TRUE], now_s=10)
    conditions.see_group(group, 10 + UNSEEN_S_MAX + 1)
    assert not conditions.has_been_scheduled(group)


def test_a_group_that_does_not_show_what_was_written_is_looked_at_again() -> None:
    conditions = Conditions()
    group = make_group("g")
    patch = conditions.patch_group(group, [TRUE], now_s=10)
    assert conditions.next_due_s() is None
    conditions.see_group(group, 11)
    assert conditions.next_due_s() == 10 + UNSEEN_S_MAX
    assert list(conditions.tick(10 + UNSEEN_S_MAX)) == [group.key]
    conditions.see_group(group, 12)
    conditions.see_group(shown(group, patch), 13)
    assert conditions.next_due_s() is None


def test_a_pod_that_does_not_show_what_was_written_is_told_again_at_the_next_attempt() -> None:
    conditions = Conditions()
    pod = make_pod("p")
    words = {"reason": "Unschedulable", "message": "no room"}
    assert conditions.patch_pod(pod, **words, now_s=10) is not None
    assert conditions.patch_pod(pod, **words, now_s=9 + UNSEEN_S_MAX) is None
    assert conditions.patch_pod(pod, **words, now_s=10 + UNSEEN_S_MAX) is not None


def test_a_group_of_the_same_name_starts_with_nothing() -> None:
    conditions = Conditions()
    conditions.patch_group(make_group("g", uid="old"), [TRUE], now_s=10)
    assert not conditions.has_been_scheduled(make_group("g", uid="new"))


def test_a_pods_condition_carries_its_generation_and_is_written_once() -> None:
    conditions = Conditions()
    pod = make_pod("p")
    pod = replace(pod, metadata=replace(pod.metadata, generation=4))
    patch = conditions.patch_pod(pod, reason="Unschedulable", message="m", now_s=10)
    assert patch is not None
    assert patch.condition is not None
    assert (patch.condition.observed_generation, patch.condition.last_transition_time) == (4, T0)
    assert conditions.patch_pod(pod, reason="Unschedulable", message="m", now_s=20) is None
    again = conditions.patch_pod(pod, reason="SchedulerError", message="m", now_s=20)
    assert again is not None
    assert again.condition is not None
    assert again.condition.last_transition_time == T0


def test_a_pod_that_is_gone_is_forgotten() -> None:
    conditions = Conditions()
    pod = make_pod("p")
    conditions.patch_pod(pod, reason="Unschedulable", message="m", now_s=10)
    conditions.lose_pod(pod.metadata.uid)
    assert conditions.of_pod(pod) is None


def test_a_text_is_cut_to_what_an_event_takes() -> None:
    assert shorten("x" * MESSAGE_BYTES_MAX) == "x" * MESSAGE_BYTES_MAX
    assert len(shorten("x" * 5000).encode()) == MESSAGE_BYTES_MAX
    assert len(shorten("×" * 5000).encode()) <= MESSAGE_BYTES_MAX
