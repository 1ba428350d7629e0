"""Readings of API objects."""

import pytest

from muster.controllers.objects import (
    controller_of,
    event,
    find_condition,
    rfc3339,
    rfc3339_micro,
    seconds_of,
    with_condition,
    without_finalizer,
)
from muster.controllers.ports import Object

OLD, NEW = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"
NEW_S = 1_767_225_660.25


def make_object(*conditions: Object) -> Object:
    return {"metadata": {"name": "x"}, "status": {"conditions": list(conditions)}}


def test_times_go_there_and_back() -> None:
    assert rfc3339(NEW_S) == NEW
    assert rfc3339_micro(NEW_S) == "2026-01-01T00:01:00.250000Z"
    assert seconds_of(NEW) == int(NEW_S)
    assert seconds_of(rfc3339_micro(NEW_S)) == NEW_S


@pytest.mark.parametrize("text", [None, "", "soon", "2026-13-01T00:00:00Z"])
def test_a_time_that_is_none_is_none(text: str | None) -> None:
    assert seconds_of(text) is None


def test_a_new_condition_comes_last_with_its_time() -> None:
    other = {"type": "A", "status": "True"}
    conditions = with_condition(make_object(other), {"type": "B", "status": "True"}, NEW_S)
    assert conditions == [other, {"type": "B", "status": "True", "lastTransitionTime": NEW}]


def test_other_words_keep_place_and_time_another_status_moves_the_time() -> None:
    known = {"type": "A", "status": "True", "reason": "Old", "lastTransitionTime": OLD}
    obj = make_object(known, {"type": "B", "status": "True"})
    same = with_condition(obj, {"type": "A", "status": "True", "reason": "New"}, NEW_S)
    moved = with_condition(obj, {"type": "A", "status": "False"}, NEW_S)
    assert same[0] == {**known, "reason": "New"}
    assert (moved[0]["status"], moved[0]["lastTransitionTime"]) == ("False", NEW)
    assert [entry["type"] for entry in moved] == ["A", "B"]


def test_the_object_is_not_changed() -> None:
    known = {"type": "A", "status": "True"}
    obj = make_object(known)
    with_condition(obj, {"type": "A", "status": "False"}, NEW_S)
    assert find_condition(obj, "A") == {"type": "A", "status": "True"}


def test_a_finalizer_is_taken_off_at_the_version_that_was_read() -> None:
    obj: Object = {"metadata": {"finalizers": ["a", "b"], "resourceVersion": "7"}}
    assert without_finalizer(obj, "a") == {"metadata": {"finalizers": ["b"], "resourceVersion": "7"}}
    last: Object = {"metadata": {"finalizers": ["a"], "resourceVersion": "7"}}
    assert without_finalizer(last, "a") == {"metadata": {"finalizers": None, "resourceVersion": "7"}}


def test_the_controller_is_the_owner_marked_so() -> None:
    owners = [{"name": "a"}, {"name": "b", "controller": True}]
    assert controller_of({"metadata": {"ownerReferences": owners}}) == owners[1]
    assert controller_of({"metadata": {"ownerReferences": owners[:1]}}) is None
    assert controller_of({"metadata": {}}) is None


def make_event(name: str, namespace: str | None, serial: int = 0) -> Object:
    place = {"namespace": namespace} if namespace else {}
    about = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "uid": "u", **place}}
    body = event(about, "Normal", "R", "m", source="me", now_s=NEW_S, serial=serial).body
    assert body is not None
    return dict(body)


def test_an_event_goes_to_its_objects_namespace_or_to_default() -> None:
    assert make_event("p", "ml")["metadata"]["namespace"] == "ml"
    assert make_event("n1", None)["metadata"]["namespace"] == "default"


def test_events_of_one_instant_have_names_of_their_own_and_long_names_are_cut() -> None:
    assert make_event("p", "ml", 0)["metadata"]["name"] != make_event("p", "ml", 1)["metadata"]["name"]
    assert len(make_event("p" * 253, "ml")["metadata"]["name"]) <= 253
