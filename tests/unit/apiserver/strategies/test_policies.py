"""Parts that groups, templates and Jobs share."""

from typing import Any

import pytest

from muster.apiserver.kinds import Object
from muster.apiserver.strategies import policies


def policy_faults(policy: Object, old: Object | None = None) -> list[str]:
    return [f"{c.field}: {c.message}" for c in policies.validate_policy("p", policy, old, count="minCount")]


@pytest.mark.parametrize(
    ("policy", "fault"),
    [
        pytest.param({"gang": {"minCount": 0}}, "p.gang.minCount: Required value", id="zero counts as unset"),
        pytest.param(
            {"gang": {"minCount": -1}},
            "p.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
            id="negative",
        ),
        pytest.param({}, 'p: Invalid value: "": must specify one of: `basic`, `gang`', id="neither"),
    ],
)
def test_a_policy_is_one_of_two(policy: Object, fault: str) -> None:
    assert policy_faults(policy) == [fault]


def test_the_count_changes_and_the_kind_does_not() -> None:
    assert policy_faults({"gang": {"minCount": 4}}, {"gang": {"minCount": 8}}) == []
    assert policy_faults({"basic": {}}, {"gang": {"minCount": 8}}) == [
        "p.basic: Invalid value: null: field is immutable",
        "p.gang: Invalid value: null: field cannot be cleared once set",
    ]


def test_at_most_one_topology_term() -> None:
    two = {"topology": [{"key": "a"}, {"key": "b"}]}
    assert policies.validate_constraints("p", two)[0].message == "Too many: 2: must have at most 1 item"
    assert policies.validate_constraints("p", {"topology": [{"key": ""}]})[0].message == "Required value"
    assert policies.validate_constraints("p", {"topology": [{"key": "rack"}]}) == []
    assert policies.validate_constraints("p", None) == []


def test_a_priority_above_the_users_own_is_refused() -> None:
    spec = {"priorityClassName": "hi", "priority": 2_000_000_000, "preemptionPolicy": "Maybe"}
    assert [c.message for c in policies.validate_priority("p", spec)] == [
        "Invalid value: 2000000000: must be less than or equal to 1000000000",
        'Unsupported value: "Maybe": supported values: "Never", "PreemptLowerPriority"',
    ]


@pytest.mark.parametrize(
    ("new", "old", "changed"),
    [
        pytest.param({"priority": 0}, {}, True, id="zero is not nothing"),
        pytest.param({"a": None}, {}, False, id="null is nothing"),
        pytest.param({"priority": 1}, {"priority": 1}, False, id="the same"),
    ],
)
def test_what_may_not_change_is_compared(new: Object, old: Object, changed: bool) -> None:
    assert bool(policies.validate_unchanged("p", new, old, "priority", "a")) is changed


class _Gates:
    now_s = 0.0
    user = ""
    gates: frozenset[str] = frozenset()

    def get(self, resource: str, namespace: str, name: str) -> Object | None:
        return None

    def list(self, resource: str, namespace: str | None = None) -> Any:
        return iter(())

    def warn(self, text: str) -> None:
        raise AssertionError(text)


def test_a_field_whose_gate_is_off_is_dropped_unless_it_is_in_use() -> None:
    spec: Object = {"schedulingConstraints": {"topology": []}, "preemptionPolicy": "Never"}
    policies.drop_gated(spec, {"preemptionPolicy": "Never"}, _Gates())
    assert spec == {"preemptionPolicy": "Never"}


def test_a_template_prints_constraints_that_were_dropped() -> None:
    spec: Object = {"name": "t", "schedulingConstraints": {"topology": []}}
    policies.drop_gated(spec, None, _Gates())
    assert spec == {"name": "t", "schedulingConstraints": None}


def test_the_table_names_the_policy() -> None:
    assert policies.policy_name({"spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}) == "Gang"
    assert policies.policy_name({"spec": {"schedulingPolicy": {"basic": {}}}}) == "Basic"
