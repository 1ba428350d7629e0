"""What a pod's rules about other pods say, and which labels they read."""

from typing import Any

import pytest

from muster.api.core import LabelSelector, LabelSelectorRequirement
from muster.cluster.pod_rules import (
    Audience,
    has_pod_rules,
    label_keys_read,
    labels_of_namespace,
    labels_read,
    rules_key,
    rules_of,
    with_own_labels,
)
from muster.testing.builders import make_pod

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEB = {"matchLabels": {"app": "web"}}
TEAM = {"matchLabels": {"team": "x"}}


def term(**fields: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": WEB, **fields}


def test_every_kind_of_rule_is_read_and_preferences_are_signed() -> None:
    weighted = [{"weight": 5, "podAffinityTerm": term()}]
    rules = rules_of(
        make_pod(
            affinity={
                "podAffinity": {REQUIRED: [term()], PREFERRED: weighted},
                "podAntiAffinity": {REQUIRED: [term(topologyKey="rack")], PREFERRED: weighted},
            }
        )
    )
    assert [t.topology_key for t in rules.near] == ["zone"]
    assert [t.topology_key for t in rules.apart] == ["rack"]
    assert [t.weight for t in rules.preferred] == [5, -5]


def test_a_pod_with_rules_about_nodes_only_has_none_about_pods() -> None:
    pod = make_pod(affinity={"nodeAffinity": {}})
    assert not has_pod_rules(pod)
    assert not rules_of(pod)
    assert not label_keys_read(pod)


@pytest.mark.parametrize(
    ("fields", "mine", "other"),
    [
        pytest.param({}, True, False, id="own-namespace-without-any"),
        pytest.param({"namespaces": ["b"]}, False, True, id="named"),
        pytest.param({"namespaceSelector": {}}, True, True, id="empty-selector-is-every"),
        pytest.param({"namespaceSelector": TEAM}, False, True, id="by-label"),
        pytest.param(
            {"namespaces": ["a"], "namespaceSelector": TEAM},
            True,
            True,
            id="either",
        ),
    ],
)
def test_which_namespaces_a_term_is_about(fields: dict[str, Any], mine: bool, other: bool) -> None:
    owner = make_pod(namespace="a", affinity={"podAffinity": {REQUIRED: [term(**fields)]}})
    audience = rules_of(owner).near[0].audience
    for namespace, expected in (("a", mine), ("b", other)):
        pod = make_pod(namespace=namespace, labels={"app": "web"})
        assert audience.includes(pod, {"b": {"team": "x"}}) is expected


def test_no_label_selector_is_about_nobody_and_an_empty_one_about_everybody() -> None:
    names = frozenset(("default",))
    assert not Audience(names, None).includes(make_pod(), {})
    assert Audience(names, LabelSelector()).includes(make_pod(), {})


def test_a_namespace_not_seen_yet_has_the_label_of_its_name() -> None:
    assert labels_of_namespace("a", {}) == {"kubernetes.io/metadata.name": "a"}
    assert labels_of_namespace("a", {"a": {"team": "x"}}) == {"team": "x"}


def test_own_labels_are_added_to_a_selector_once() -> None:
    selector = LabelSelector(match_labels={"app": "web"})
    same = with_own_labels(selector, {"hash": "1", "job": "j"}, same=["hash", "none"], other=["job"])
    assert same is not None
    assert same.match_expressions == [
        LabelSelectorRequirement(key="hash", operator="In", values=["1"]),
        LabelSelectorRequirement(key="job", operator="NotIn", values=["j"]),
    ]
    assert with_own_labels(same, {"hash": "1", "job": "j"}, same=["hash"], other=["job"]) is same
    assert with_own_labels(None, {"hash": "1"}, same=["hash"]) is None


def test_label_keys_of_every_selector_are_named() -> None:
    unlike = term(mismatchLabelKeys=["job"])
    expression = {"matchExpressions": [{"key": "tier", "operator": "Exists"}]}
    pod = make_pod(
        affinity={
            "podAffinity": {REQUIRED: [term(matchLabelKeys=["hash"])]},
            "podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": unlike}]},
        },
        topology_spread_constraints=[
            {"maxSkew": 1, "topologyKey": "zone", "labelSelector": expression, "matchLabelKeys": ["rev"]}
        ],
    )
    assert label_keys_read(pod) == {"app", "hash", "job", "tier", "rev"}


def test_only_labels_that_are_read_are_told() -> None:
    pod = make_pod(labels={"app": "web", "index": "1"})
    assert labels_read(pod, frozenset(("app", "none"))) == (("app", "web"),)


def test_equal_rules_have_one_key_and_taken_over_labels_part_them() -> None:
    def key(**words: Any) -> bytes:
        fields = words.pop("fields", {})
        return rules_key(make_pod(affinity={"podAffinity": {REQUIRED: [term(**fields)]}}, **words))

    assert key(labels={"index": "0"}) == key(labels={"index": "1"})
    assert key(namespace="a") != key(namespace="b")
    by_hash = {"matchLabelKeys": ["hash"]}
    assert key(fields=by_hash, labels={"hash": "0"}) != key(fields=by_hash, labels={"hash": "1"})
