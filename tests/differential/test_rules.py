"""The slow checker knows each rule: one pod, one node, allowed or refused by that rule's name."""

import pytest
from tests.differential.rules import Cluster, Placed
from tests.differential.scenario import Short

ALL = "requiredDuringSchedulingIgnoredDuringExecution"
HARD = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}


def pod(**more: object) -> Short:
    return {"pod": "x", "cpu": 1, "priorityClassName": "p1", "labels": {"app": "a", "rev": "1"}, **more}


def refusal(node: Short, asked: Short, *others: Short, **nodes: Short) -> str | None:
    """Why `asked` may not be on `node` (n0), where each of `others` is on n0 unless it names its node."""
    cluster = Cluster(
        {"n0": {"cpu": 9, **node}, **{name: {"cpu": 9, **more} for name, more in nodes.items()}}
    )
    placed = [Placed(other, other.get("node", "n0")) for other in others]
    return cluster.with_pods(placed).refusal(asked, "n0")


@pytest.mark.parametrize(
    ("taint", "tolerations", "expected"),
    [
        ({"effect": "NoSchedule"}, [], "taints"),
        ({"effect": "NoExecute"}, [], "taints"),
        ({"effect": "PreferNoSchedule"}, [], None),
        ({"effect": "NoSchedule"}, [{"operator": "Exists"}], None),
        ({"effect": "NoSchedule"}, [{"key": "k", "operator": "Exists", "effect": "NoExecute"}], "taints"),
        ({"effect": "NoSchedule"}, [{"key": "k", "operator": "Equal", "value": "w"}], "taints"),
        ({"effect": "NoSchedule"}, [{"key": "k", "operator": "Equal", "value": "v"}], None),
    ],
)
def test_a_taint_is_tolerated_by_key_value_and_effect(
    taint: Short, tolerations: list[Short], expected: str | None
) -> None:
    node = {"taints": [{"key": "k", "value": "v", **taint}]}
    assert refusal(node, pod(tolerations=tolerations)) == expected


@pytest.mark.parametrize(("tolerations", "expected"), [([], "taints"), ([{"operator": "Exists"}], None)])
def test_who_tolerates_everything_goes_to_a_cordoned_node(
    tolerations: list[Short], expected: str | None
) -> None:
    assert refusal({"unschedulable": True}, pod(tolerations=tolerations)) == expected


@pytest.mark.parametrize(
    ("operator", "value", "expected"),
    [("Gt", "3", "node affinity"), ("Gt", "2", None), ("Lt", "3", "node affinity"), ("Lt", "4", None)],
)
def test_labels_are_compared_as_numbers(operator: str, value: str, expected: str | None) -> None:
    term = {"matchExpressions": [{"key": "gen", "operator": operator, "values": [value]}]}
    asked = pod(affinity={"nodeAffinity": {ALL: {"nodeSelectorTerms": [term]}}})
    assert refusal({"labels": {"gen": "3"}}, asked) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {}, "host ports"),
        ({}, {"protocol": "UDP"}, None),
        ({"hostIP": "127.0.0.1"}, {"hostIP": "127.0.0.2"}, None),
        ({"hostIP": "127.0.0.1"}, {}, "host ports"),
    ],
)
def test_ports_collide_by_protocol_and_address(first: Short, second: Short, expected: str | None) -> None:
    one, other = (pod(ports=[{"hostPort": 80, **more}]) for more in (first, second))
    assert refusal({}, one, other) == expected


def test_a_gate_holds_a_pod_back() -> None:
    assert refusal({}, pod(gates=["wait"])) == "gate"


@pytest.mark.parametrize(("keys", "expected"), [([], "anti-affinity"), (["rev"], None)])
def test_a_term_means_pods_of_the_same_revision_where_it_says_so(
    keys: list[str], expected: str | None
) -> None:
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "a"}}, "matchLabelKeys": keys}
    asked = pod(affinity={"podAntiAffinity": {ALL: [term]}})
    other = pod(labels={"app": "a", "rev": "2"})
    assert refusal({"labels": {"rack": "r0"}}, asked, other) == expected


@pytest.mark.parametrize(("operator", "expected"), [("In", "anti-affinity"), ("NotIn", None)])
def test_a_term_may_select_by_expression(operator: str, expected: str | None) -> None:
    selector = {"matchExpressions": [{"key": "app", "operator": operator, "values": ["a", "b"]}]}
    term = {"topologyKey": "rack", "labelSelector": selector}
    asked = pod(affinity={"podAntiAffinity": {ALL: [term]}})
    assert refusal({"labels": {"rack": "r0"}}, asked, pod()) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", None), ("Ignore", "spread")])
def test_nodes_a_pod_may_not_use_count_where_the_policy_ignores_that(
    policy: str, expected: str | None
) -> None:
    selector = {"matchLabels": {"app": "a"}}
    constraint = {"topologyKey": "rack", "labelSelector": selector, "nodeAffinityPolicy": policy, **HARD}
    asked = pod(nodeSelector={"disk": "ssd"}, topologySpreadConstraints=[constraint])
    here, there = {"labels": {"rack": "r0", "disk": "ssd"}}, {"labels": {"rack": "r1"}}
    assert refusal(here, asked, pod(), n1=there) == expected


@pytest.mark.parametrize(("policy", "expected"), [("Honor", None), ("Ignore", "spread")])
def test_tainted_nodes_count_where_the_policy_ignores_that(policy: str, expected: str | None) -> None:
    selector = {"matchLabels": {"app": "a"}}
    constraint = {"topologyKey": "rack", "labelSelector": selector, "nodeTaintsPolicy": policy, **HARD}
    asked = pod(topologySpreadConstraints=[constraint])
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    there = {"labels": {"rack": "r1"}, "taints": [taint]}
    assert refusal({"labels": {"rack": "r0"}}, asked, pod(), n1=there) == expected
