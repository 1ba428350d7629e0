"""Events, by both doors."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import EVENTS, NEW_EVENTS, FullServer

from muster.apiserver.strategies.events import event_field, from_new, to_new

ABOUT = {"kind": "Pod", "name": "p", "namespace": "default"}
NEW: dict[str, Any] = {
    "regarding": ABOUT,
    "reason": "R",
    "note": "m",
    "type": "Normal",
    "action": "Do",
    "reportingController": "me.example.com",
    "reportingInstance": "me-1",
    "eventTime": "2026-01-01T00:00:00.000000Z",
}


def test_an_event_is_one_object_with_two_faces() -> None:
    server = FullServer()
    server.create(NEW_EVENTS, "e", **NEW)
    core = server.object("GET", f"{EVENTS}/e")
    assert (core["apiVersion"], core["involvedObject"], core["message"]) == ("v1", ABOUT, "m")
    assert (core["source"], core["firstTimestamp"], core["reportingComponent"]) == (
        {},
        None,
        "me.example.com",
    )
    new = server.object("GET", f"{NEW_EVENTS}/e")
    assert (new["regarding"], new["note"], new["deprecatedSource"]) == (ABOUT, "m", {})


def test_turning_an_event_around_twice_changes_nothing() -> None:
    stored = from_new({**NEW, "kind": "Event", "metadata": {"name": "e"}})
    assert from_new(to_new(stored)) == stored


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        pytest.param({"eventTime": None}, ["eventTime: Required value"], id="no time"),
        pytest.param({"type": "Worse"}, ['type: Invalid value: "": has invalid value: Worse'], id="type"),
        pytest.param({"action": ""}, ["action: Required value"], id="no action"),
        pytest.param({"reportingInstance": ""}, ["reportingInstance: Required value"], id="nobody"),
        pytest.param(
            {"note": "n" * 1025},
            ['message: Invalid value: "": can have at most 1024 characters'],
            id="a long note",
        ),
        pytest.param(
            {"series": {"count": 1}},
            [
                'series.count: Invalid value: "": should be at least 2',
                "series.lastObservedTime: Required value",
            ],
            id="a series of one",
        ),
        pytest.param({"deprecatedCount": 3}, ['count: Invalid value: "": needs to be unset'], id="old field"),
    ],
)
def test_a_new_event_says_what_readers_need(change: dict[str, Any], faults: list[str]) -> None:
    assert FullServer().create_faults(NEW_EVENTS, **{**NEW, **change}) == faults


def test_a_new_event_changes_only_by_its_series() -> None:
    server = FullServer()
    server.create(NEW_EVENTS, "e", **NEW)
    series = {"count": 2, "lastObservedTime": "2026-01-01T00:00:01.000000Z"}
    assert server.change(NEW_EVENTS, "e", series=series)["series"] == series
    assert server.change_faults(NEW_EVENTS, "e", note="z") == [
        'message: Invalid value: "z": field is immutable'
    ]


def test_a_core_event_may_say_almost_anything() -> None:
    server = FullServer()
    server.create(EVENTS, "E_1", involvedObject={"kind": "Node", "name": "n"}, type="X", count=-1)
    assert server.create_faults(EVENTS, involvedObject={"kind": "Pod", "namespace": "kube-system"}) == [
        'involvedObject.namespace: Invalid value: "kube-system": does not match event.namespace'
    ]


def test_a_field_selector_finds_the_source_of_both_kinds() -> None:
    assert event_field({"source": {"component": "a"}}, "source") == "a"
    assert event_field({"source": {}, "reportingComponent": "b"}, "source") == "b"
    assert event_field({"involvedObject": {"name": "p"}}, "involvedObject.name") == "p"


def test_the_table_names_object_and_source() -> None:
    server = FullServer()
    server.create(NEW_EVENTS, "e", **NEW)
    [cells] = server.table(EVENTS)
    assert cells[1:7] == ["Normal", "R", "pod/p", "", "me.example.com, me-1", "m"]
    assert cells[8:] == [1, "e"]
    assert server.table(NEW_EVENTS) == [cells]
