"""Native objects become groups, members and events."""

from typing import Any

import pytest

from muster.api.core import PodClaim
from muster.base.errors import ObjectInvalid
from muster.dialects.native import decode_group, decode_pod, event_of, group_key_of
from muster.framework.groups import ObjectKey
from muster.framework.ports import GroupGone, GroupSeen, NodeGone, NodeSeen, PodGone, PodSeen


def raw_group(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {
            "name": "g",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": "1970-01-01T00:00:09Z",
        },
        "spec": {"schedulingPolicy": {"basic": {}}, **spec},
    }


RAW_POD = {"metadata": {"name": "p", "namespace": "default", "uid": "u"}, "spec": {"containers": []}}


def test_a_gang_has_a_minimum_and_a_basic_group_none() -> None:
    assert decode_group(raw_group(schedulingPolicy={"gang": {"minCount": 3}})).min_count == 3
    basic = decode_group(raw_group())
    assert (basic.min_count, basic.is_gang, basic.needed) == (None, False, 1)


def test_what_identifies_a_group_is_kept() -> None:
    group = decode_group(raw_group(priority=5, preemptionPolicy="Never", disruptionMode={"all": {}}))
    assert (group.key, group.uid, group.version, group.created_s) == (
        ObjectKey("default", "g"),
        "u",
        "7",
        9.0,
    )
    assert (group.priority, group.preemption_policy, group.disruption_mode) == (5, "Never", "all")


def test_claims_of_a_group_are_kept_as_it_names_them() -> None:
    wanted = {"name": "c", "resourceClaimTemplateName": "t"}
    group = decode_group(raw_group(resourceClaims=[wanted]))
    assert group.claims == (PodClaim("c", None, "t"),)
    assert group.unsupported == ()


def test_topology_keys_and_parent_are_kept_for_those_who_will_honour_them() -> None:
    spec = {"schedulingConstraints": {"topology": [{"key": "rack"}]}, "parentCompositePodGroupName": "c"}
    group = decode_group(raw_group(**spec))
    assert group.topology_keys == ("rack",)
    assert group.parent == ObjectKey("default", "c")


def test_empty_constraints_ask_for_nothing() -> None:
    assert decode_group(raw_group(schedulingConstraints={}, resourceClaims=[])).unsupported == ()


def test_a_pod_names_its_group_in_its_own_namespace() -> None:
    grouped = {**RAW_POD, "spec": {"containers": [], "schedulingGroup": {"podGroupName": "g"}}}
    assert group_key_of(decode_pod(grouped)) == ObjectKey("default", "g")
    assert group_key_of(decode_pod(RAW_POD)) is None


def test_what_cannot_be_read_is_refused_with_its_place() -> None:
    with pytest.raises(ObjectInvalid, match=r"minCount|\$"):
        decode_group(raw_group(schedulingPolicy={"gang": {"minCount": "many"}}))


def test_objects_of_a_watch_become_events() -> None:
    assert isinstance(event_of("pods", RAW_POD), PodSeen)
    assert event_of("pods", RAW_POD, gone=True) == PodGone(ObjectKey("default", "p"), "u")
    assert isinstance(event_of("nodes", {"metadata": {"name": "n1"}}), NodeSeen)
    assert event_of("nodes", {"metadata": {"name": "n1"}}, gone=True) == NodeGone("n1")
    assert isinstance(event_of("podgroups", raw_group()), GroupSeen)
    assert event_of("podgroups", raw_group(), gone=True) == GroupGone(ObjectKey("default", "g"), "u")


def test_another_resource_is_no_business_of_the_core() -> None:
    with pytest.raises(ValueError, match="configmaps"):
        event_of("configmaps", RAW_POD)


def test_wishes_in_annotations_are_part_of_the_group_and_bad_ones_hold_it() -> None:
    raw = raw_group()
    raw["metadata"]["annotations"] = {
        "muster.dev/topology-levels": "zone,rack",
        "muster.dev/rank-order": "index",
        "muster.dev/rank": "x",
    }
    group = decode_group(raw)
    assert (group.preferred_levels, group.rank_key) == (("zone", "rack"), "index")
    assert [field.path for field in group.unsupported] == ["metadata.annotations[muster.dev/rank]"]
