"""Pods as the API shows them once it has taken their binding."""

from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.meta import Condition


def bound(pod: Pod, node: str, version: str) -> Pod:
    """The pod on this node, scheduled and not started yet."""
    return replace(
        pod,
        metadata=replace(pod.metadata, resource_version=version),
        spec=replace(pod.spec, node_name=node),
        status=replace(pod.status, conditions=[Condition("PodScheduled", "True")]),
    )
