"""A cluster that a test rearranges between two looks of a checker."""

from typing import Any

from muster.sim.client import group_manifest, node_manifest, pod_manifest, pod_spec
from muster.sim.view import ClusterView, Object


class Scene:
    """Nodes, pods and groups as the API would list them; uids are `uid-NAME`."""

    def __init__(self) -> None:
        self.nodes: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.groups: dict[str, Object] = {}

    def node(self, name: str, cpu: int, **spec: Any) -> None:
        """Add or replace a node."""
        self.nodes[name] = node_manifest(name, {"cpu": str(cpu), "pods": "10"}) | {"spec": spec}

    def pod(
        self, name: str, *, cpu: str = "1", node: str = "", group: str = "", phase: str = "Pending"
    ) -> None:
        """Add or replace a pod."""
        pod = pod_manifest(name, pod_spec({"cpu": cpu}, scheduler="muster", group=group))
        pod["metadata"]["uid"] = f"uid-{name}"
        pod["spec"]["nodeName"] = node
        self.pods[name] = pod | {"status": {"phase": phase}}

    def group(self, name: str, min_count: int | None, *, status: str = "") -> None:
        """Add or replace a group; `status` is that of PodGroupInitiallyScheduled."""
        group = group_manifest(name, min_count)
        group["metadata"] |= {"uid": f"uid-{name}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        conditions = [{"type": "PodGroupInitiallyScheduled", "status": status}] if status else []
        self.groups[name] = group | {"status": {"conditions": conditions}}

    def look(self) -> ClusterView:
        """The cluster now."""
        return ClusterView(self.nodes.values(), self.pods.values(), self.groups.values())
