"""What every kind does."""

import pytest
from tests.unit.apiserver.strategies.full_server import GANG, GROUPS, MAPS, PODS, FullServer

from muster.apiserver.strategies.base import BaseStrategy, field_at, fields_with, forbid


def test_a_generation_counts_changes_of_the_spec_only() -> None:
    server = FullServer()
    server.pod("p")
    assert server.change(PODS, "p", metadata={"labels": {"a": "b"}})["metadata"]["generation"] == 1
    changed = server.change(PODS, "p", spec={"activeDeadlineSeconds": 9})
    assert changed["metadata"]["generation"] == 2


def test_a_kind_without_generation_keeps_what_it_was_created_with() -> None:
    server = FullServer()
    server.create(MAPS, "m", metadata={"generation": 7})
    assert server.change(MAPS, "m", metadata={"generation": 9})["metadata"]["generation"] == 7


def test_the_status_path_writes_neither_spec_nor_labels() -> None:
    server = FullServer()
    server.create(GROUPS, "g", spec={"schedulingPolicy": GANG})
    answer = server.change(
        GROUPS,
        "g/status",
        metadata={"labels": {"a": "b"}},
        spec={"schedulingPolicy": {"gang": {"minCount": 9}}},
    )
    assert answer["spec"]["schedulingPolicy"] == GANG
    assert "labels" not in answer["metadata"]


def test_admission_names_what_it_refuses() -> None:
    refused = forbid("podgroups", "scheduling.k8s.io", "g", "no")
    assert refused.message == 'podgroups.scheduling.k8s.io "g" is forbidden: no'
    assert refused.details == {"name": "g", "kind": "podgroups", "group": "scheduling.k8s.io"}
    assert forbid("pods", "", "p", "no").details == {"name": "p", "kind": "pods"}


@pytest.mark.parametrize(
    ("path", "value"), [("spec.on", "true"), ("spec.no", ""), ("spec.name", "a"), ("spec.name.deeper", "")]
)
def test_a_field_selector_compares_text(path: str, value: str) -> None:
    assert field_at({"spec": {"on": True, "name": "a"}}, path) == value


def test_a_field_may_have_a_value_where_it_is_absent() -> None:
    read = fields_with({"spec.unschedulable": "false"})
    assert read({"spec": {}}, "spec.unschedulable") == "false"
    assert read({"spec": {"unschedulable": True}}, "spec.unschedulable") == "true"


def test_what_is_refused_is_not_warned_of() -> None:
    bad = {"metadata": {"name": "a.b"}, "spec": {"containers": []}}
    response = FullServer().ask("POST", PODS, bad)
    assert response.status == 422
    assert response.headers == ()


def test_nothing_is_refused_or_held_unless_a_kind_says_so() -> None:
    strategy = BaseStrategy()
    assert strategy.holds({"metadata": {}}) is False
    assert [name for name, *_ in strategy.columns()] == ["Name", "Age"]


def test_a_status_cannot_be_written_to_an_object_of_another_uid() -> None:
    server = FullServer()
    server.create(GROUPS, "g", spec={"schedulingPolicy": GANG})
    found = server.change_faults(GROUPS, "g/status", metadata={"uid": "other"})
    assert found == ['metadata.uid: Invalid value: "other": field is immutable']
