"""What is made of the objects of each kind."""

from typing import Any

import msgspec
import pytest

from muster.api.core import Pod
from muster.framework.groups import ObjectKey
from muster.framework.ports import GroupGone, GroupSeen, NodeGone, PodGone, PodSeen
from muster.runtime.kinds import GROUPS, NODES, PODS


def test_what_is_gone_is_told_by_name_and_uid() -> None:
    key = ObjectKey("default", "x")
    assert PODS.gone(key, "u") == PodGone(key, "u")
    assert GROUPS.gone(key, "u") == GroupGone(key, "u")
    assert NODES.gone(ObjectKey("", "n1"), "u") == NodeGone("n1")


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        pytest.param({}, {}, True, id="version-only"),
        pytest.param({"nodeName": ""}, {"nodeName": ""}, False, id="it-waits"),
        pytest.param({"nodeName": ""}, {}, False, id="it-was-bound"),
        pytest.param({}, {"labels": {"a": "b"}}, False, id="labels"),
        pytest.param({}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, False, id="it-leaves"),
        pytest.param({}, {"phase": "Running"}, False, id="it-runs"),
    ],
)
def test_of_a_bound_pod_only_what_is_read_is_news(
    was: dict[str, Any], now: dict[str, Any], expected: bool
) -> None:
    def pod(version: str, said: dict[str, Any]) -> Pod:
        fields = {"nodeName": "n1", "phase": "Pending", **said}
        spec, status = {"nodeName": fields.pop("nodeName")}, {"phase": fields.pop("phase")}
        metadata = {"name": "p", "resourceVersion": version, **fields}
        return msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, PODS.type)

    assert PODS.is_no_news(pod("1", was), pod("2", now)) is expected


def test_pods_come_with_the_group_they_name() -> None:
    text = b'{"metadata":{"name":"p","namespace":"d"},"spec":{"schedulingGroup":{"podGroupName":"g"}}}'

    seen = PODS.seen(msgspec.json.decode(text, type=PODS.type))
    assert isinstance(seen, PodSeen)
    assert seen.group == ObjectKey("d", "g")


def test_pods_come_with_what_says_nothing_on_them() -> None:
    text = b'{"metadata":{"name":"p","annotations":{"muster.dev/bind-timeout":"1m"}},"spec":{}}'
    seen = PODS.seen(msgspec.json.decode(text, type=PODS.type))
    assert isinstance(seen, PodSeen)
    assert [field.path for field in seen.idle] == ["metadata.annotations[muster.dev/bind-timeout]"]


def test_groups_come_in_the_cores_own_words() -> None:

    text = b'{"metadata":{"name":"g","namespace":"d"},"spec":{"schedulingPolicy":{"gang":{"minCount":4}}}}'
    seen = GROUPS.seen(msgspec.json.decode(text, type=GROUPS.type))
    assert isinstance(seen, GroupSeen)
    assert seen.group.min_count == 4
