"""PodGroup and CompositePodGroup through the server."""

from typing import Any

import pytest
from tests.unit.apiserver.strategies.full_server import CLASSES, COMPOSITES, GANG, GROUPS, FullServer

from muster.apiserver.server import DEFAULT_GATES
from muster.apiserver.strategies.groups import validate_claims

REFERENCE = {"workloadName": "w", "templateName": "t"}


def condition(type_: str, status: str, reason: str = "R") -> dict[str, str]:
    when = "2026-01-01T00:00:00Z"
    return {"type": type_, "status": status, "reason": reason, "message": "", "lastTransitionTime": when}


def test_a_group_gets_its_defaults_priority_and_protection() -> None:
    group = FullServer().create(GROUPS, "g", spec={"schedulingPolicy": GANG})
    assert group["spec"] == {
        "schedulingPolicy": GANG,
        "disruptionMode": {"single": {}},
        "priority": 0,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert group["metadata"]["finalizers"] == ["scheduling.k8s.io/podgroup-protection"]
    assert group["status"] == {}
    assert "generation" not in group["metadata"]


def test_a_composite_group_is_not_protected() -> None:
    spec = {"schedulingPolicy": {"basic": {}}, "workloadRef": REFERENCE}
    assert "finalizers" not in FullServer().create(COMPOSITES, "c", spec=spec)["metadata"]


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        pytest.param(
            {"parentCompositePodGroupName": "p"},
            "spec.workloadRef: Required value: must be set when parentCompositePodGroupName is set",
            id="a parent without workload",
        ),
        pytest.param(
            {"workloadRef": {"workloadName": "w", "templateName": "a.b"}},
            'spec.workloadRef.templateName: Invalid value: "a.b": must not contain dots',
            id="a template name with a dot",
        ),
        pytest.param(
            {"disruptionMode": {"single": {}, "all": {}}},
            'spec.disruptionMode: Invalid value: "{single, all}": must specify exactly one of: `single`, '
            "`all`",
            id="both disruption modes",
        ),
    ],
)
def test_a_bad_group_is_refused(spec: dict[str, Any], fault: str) -> None:
    assert FullServer().create_faults(GROUPS, spec={"schedulingPolicy": GANG, **spec}) == [fault]


def test_faults_come_in_the_order_of_the_fields() -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": -1}}, "disruptionMode": {}, "workloadRef": {}}
    found = FullServer().create_faults(GROUPS, spec=spec)
    assert [fault.split(":")[0] for fault in found] == [
        "spec.workloadRef.workloadName",
        "spec.workloadRef.templateName",
        "spec.schedulingPolicy.gang.minCount",
        "spec.disruptionMode",
    ]


def test_min_count_may_change_and_nothing_else() -> None:
    server = FullServer()
    server.create(GROUPS, "g", spec={"schedulingPolicy": GANG})
    lower = {"schedulingPolicy": {"gang": {"minCount": 1}}}
    assert server.change(GROUPS, "g", spec=lower)["spec"]["schedulingPolicy"] == lower["schedulingPolicy"]
    change = {"workloadRef": REFERENCE, "priority": 5, "disruptionMode": {"single": None, "all": {}}}
    assert server.change_faults(GROUPS, "g", spec=change) == [
        f"spec.{key}: Invalid value: null: field is immutable"
        for key in ("workloadRef", "disruptionMode", "priority")
    ]


def test_a_put_without_the_priority_that_admission_gave_is_refused() -> None:
    server = FullServer()
    version = server.create(GROUPS, "g", spec={"schedulingPolicy": GANG})["metadata"]["resourceVersion"]
    body = {"metadata": {"name": "g", "resourceVersion": version}, "spec": {"schedulingPolicy": GANG}}
    assert server.faults("PUT", f"{GROUPS}/g", body) == [
        "spec.priority: Invalid value: null: field is immutable"
    ]


def test_a_group_stored_while_a_gate_was_off_stays_as_it_is() -> None:
    server = FullServer(gates=frozenset({"GenericWorkload"}))
    server.create(GROUPS, "g", spec={"schedulingPolicy": GANG})
    server.api.gates = DEFAULT_GATES
    changed = server.change(GROUPS, "g", metadata={"labels": {"a": "b"}})
    assert "preemptionPolicy" not in changed["spec"]


def test_a_composite_policy_is_frozen_whole_and_its_workload_required() -> None:
    server = FullServer()
    policy = {"gang": {"minGroupCount": 2}}
    server.create(COMPOSITES, "c", spec={"schedulingPolicy": policy, "workloadRef": REFERENCE})
    more = {"schedulingPolicy": {"gang": {"minGroupCount": 3}}}
    assert server.change_faults(COMPOSITES, "c", spec=more) == [
        "spec.schedulingPolicy: Invalid value: null: field is immutable"
    ]
    assert server.create_faults(COMPOSITES, spec={"schedulingPolicy": policy}) == [
        "spec.workloadRef: Required value"
    ]


def test_gates_that_are_off_drop_fields_without_a_word() -> None:
    server = FullServer(gates=frozenset({"GenericWorkload"}))
    constraints = {"topology": [{"key": "rack"}]}
    spec = {"schedulingPolicy": GANG, "schedulingConstraints": constraints, "preemptionPolicy": "Never"}
    stored = server.create(GROUPS, "g", spec=spec)["spec"]
    assert stored.keys() == {"schedulingPolicy", "disruptionMode", "priority"}


def test_claims_of_a_group_are_dropped_while_their_gate_is_off() -> None:
    claims = [{"name": "c", "resourceClaimName": "x"}]
    server = FullServer()
    group = server.create(GROUPS, "g", spec={"schedulingPolicy": GANG, "resourceClaims": claims})
    assert "resourceClaims" not in group["spec"]
    server.api.gates = DEFAULT_GATES | {"DRAWorkloadResourceClaims"}
    group = server.create(GROUPS, "h", spec={"schedulingPolicy": GANG, "resourceClaims": claims})
    assert group["spec"]["resourceClaims"] == claims


def test_a_claim_names_one_source() -> None:
    found = validate_claims("p", [{"name": "c"}])
    assert found[0].message.endswith("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
    assert validate_claims("p", [{"name": "c", "resourceClaimName": "x"}] * 5)[0].message.startswith(
        "Too many: 5"
    )


def test_a_class_that_never_preempts_must_be_said_again() -> None:
    server = FullServer()
    server.create(CLASSES, "never", value=5, preemptionPolicy="Never")
    spec = {"schedulingPolicy": GANG, "priorityClassName": "never"}
    code, message = server.refusal("POST", GROUPS, {"metadata": {"name": "g"}, "spec": spec})
    assert code == 403
    assert "the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided" in message
    group = server.create(GROUPS, "g", spec={**spec, "preemptionPolicy": "Never"})
    assert (group["spec"]["priority"], group["spec"]["preemptionPolicy"]) == (5, "Never")


@pytest.mark.parametrize(
    ("conditions", "word"),
    [
        pytest.param([], "Pending", id="nothing said"),
        pytest.param([condition("Other", "True")], "Pending", id="only other types"),
        pytest.param([condition("PodGroupInitiallyScheduled", "True")], "Scheduled", id="true"),
        pytest.param([condition("PodGroupInitiallyScheduled", "Unknown")], "Unschedulable", id="not true"),
        pytest.param(
            [condition("PodGroupInitiallyScheduled", "True"), condition("DisruptionTarget", "False", "Why")],
            "Why",
            id="a victim",
        ),
    ],
)
def test_the_table_sums_the_conditions_up(conditions: list[dict[str, str]], word: str) -> None:
    server = FullServer()
    server.create(GROUPS, "g", spec={"schedulingPolicy": GANG, "workloadRef": REFERENCE})
    server.change(GROUPS, "g/status", status={"conditions": conditions})
    assert server.table(GROUPS) == [["g", "Gang", "w", word, "0s"]]
