"""Where a pod wants to be."""

from typing import Any

import pytest

from muster.apiserver.kinds import Object
from muster.apiserver.strategies import pod_placement as placement


def texts(causes: list[Any]) -> list[str]:
    return [f"{cause.field}: {cause.message}" for cause in causes]


@pytest.mark.parametrize(
    ("toleration", "fault"),
    [
        pytest.param(
            {"key": "a", "operator": "Near"},
            't[0].operator: Unsupported value: "Near": supported values: "Equal", "Exists"',
            id="operator",
        ),
        pytest.param(
            {"key": "a", "operator": "Exists", "value": "x"},
            "t[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
            id="a value for Exists",
        ),
        pytest.param(
            {"key": "a", "effect": "NoSchedule", "tolerationSeconds": 3},
            "t[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set",
            id="seconds without eviction",
        ),
        pytest.param(
            {"key": "a", "effect": "X"},
            't[0].effect: Unsupported value: "X": supported values: "NoSchedule", "PreferNoSchedule", '
            '"NoExecute"',
            id="effect",
        ),
    ],
)
def test_a_bad_toleration_is_refused(toleration: Object, fault: str) -> None:
    assert texts(placement.validate_tolerations("t", [toleration])) == [fault]


def test_all_taints_are_tolerated_by_exists_alone() -> None:
    assert placement.validate_tolerations("t", [{"operator": "Exists"}]) == []
    assert "match all values and all keys" in placement.validate_tolerations("t", [{}])[0].message


def required_terms(*terms: Object) -> Object:
    return {"nodeAffinity": {placement.REQUIRED: {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    ("term", "fault"),
    [
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]},
            "matchExpressions[0].values: Required value: must be specified single value when `operator` is "
            "'Lt' "
            "or 'Gt'",
            id="greater than two",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "X"}]},
            'matchExpressions[0].operator: Invalid value: "X": not a valid selector operator',
            id="operator",
        ),
        pytest.param(
            {"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]},
            'matchFields[0].key: Invalid value: "spec.x": not a valid field selector key',
            id="a field that is none",
        ),
        pytest.param(
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a", "b"]}]},
            "matchFields[0].values: Required value: must be only one value when `operator` is 'In' or "
            "'NotIn' for "
            "node field selector",
            id="two names",
        ),
    ],
)
def test_a_bad_node_term_is_refused(term: Object, fault: str) -> None:
    path = f"a.nodeAffinity.{placement.REQUIRED}.nodeSelectorTerms[0]"
    assert texts(placement.validate_affinity("a", required_terms(term))) == [f"{path}.{fault}"]


def test_required_node_affinity_has_a_term() -> None:
    found = placement.validate_affinity("a", required_terms())
    assert found[0].message == "Required value: must have at least one node selector term"


def pod_term(**term: Any) -> list[str]:
    affinity = {"podAffinity": {placement.REQUIRED: [{"topologyKey": "zone", **term}]}}
    return [cause.message for cause in placement.validate_affinity("a", affinity)]


def test_pod_affinity_names_a_topology() -> None:
    assert pod_term(topologyKey="")[0] == "Required value: can not be empty"
    assert pod_term(topologyKey="rack") == []


def test_label_keys_need_a_selector_and_cannot_be_both() -> None:
    assert pod_term(matchLabelKeys=["x"]) == [
        "Forbidden: must not be specified when labelSelector is not set"
    ]
    assert pod_term(labelSelector={}, matchLabelKeys=["x"], mismatchLabelKeys=["x"]) == [
        'Invalid value: "x": exists in both matchLabelKeys and mismatchLabelKeys'
    ]


def test_a_key_is_matched_by_the_pod_or_by_the_selector() -> None:
    selector = {"matchLabels": {"x": "1"}}
    assert pod_term(labelSelector=selector, matchLabelKeys=["x"]) == [
        'Invalid value: "x": exists in both matchLabelKeys and labelSelector'
    ]
    merged = {"matchExpressions": [{"key": "x", "operator": "In", "values": ["1"]}]}
    assert pod_term(labelSelector=merged, matchLabelKeys=["x"]) == []


def test_a_weight_is_from_one_to_a_hundred() -> None:
    preferred = [{"weight": 101, "podAffinityTerm": {"topologyKey": "z"}}]
    found = placement.validate_affinity("a", {"podAntiAffinity": {placement.PREFERRED: preferred}})
    assert found[0].message == "Invalid value: 101: must be in the range 1-100"


def spread(**constraint: Any) -> Object:
    return {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **constraint}


@pytest.mark.parametrize(
    ("constraint", "message"),
    [
        pytest.param(spread(maxSkew=0), "Invalid value: 0: must be greater than zero", id="skew"),
        pytest.param(spread(topologyKey=""), "Required value: can not be empty", id="key"),
        pytest.param(spread(minDomains=0), "Invalid value: 0: must be greater than zero", id="domains"),
        pytest.param(
            spread(minDomains=2, whenUnsatisfiable="ScheduleAnyway"),
            "Invalid value: 2: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not "
            "ScheduleAnyway",
            id="domains of a wish",
        ),
        pytest.param(
            spread(nodeTaintsPolicy="X"),
            'Unsupported value: "X": supported values: "Honor", "Ignore"',
            id="policy",
        ),
    ],
)
def test_a_bad_spread_constraint_is_refused(constraint: Object, message: str) -> None:
    assert [cause.message for cause in placement.validate_spread("s", [constraint])] == [message]


def test_a_spread_constraint_is_there_once_and_the_first_is_blamed() -> None:
    found = placement.validate_spread("s", [spread(), spread(topologyKey="rack"), spread()])
    assert texts(found) == ['s[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{zone, DoNotSchedule}"']


def test_gates_are_qualified_names_and_differ() -> None:
    found = texts(placement.validate_gates("g", [{"name": "x.y/z"}, {"name": "a"}, {"name": "a"}]))
    assert found == ['g[2]: Duplicate value: "a"']


def test_label_keys_become_terms_with_the_pods_own_values() -> None:
    term: Object = {"labelSelector": {}, "matchLabelKeys": ["x", "absent"], "mismatchLabelKeys": ["y"]}
    spec = {"affinity": {"podAffinity": {placement.REQUIRED: [term]}}}
    placement.merge_label_keys(spec, {"x": "1", "y": "2"})
    assert term["labelSelector"]["matchExpressions"] == [
        {"key": "x", "operator": "In", "values": ["1"]},
        {"key": "y", "operator": "NotIn", "values": ["2"]},
    ]


def test_a_node_selector_is_labels() -> None:
    assert placement.validate_node_selector("n", {"a b": "c"})[0].field == "n"
