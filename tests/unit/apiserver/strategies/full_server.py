"""A server of every kind with its real rules, and short ways to ask it and to read what it refuses."""

from typing import Any

import numpy as np
from tests.unit.apiserver.small_server import MERGE_PATCH, SmallServer

from muster.apiserver.kinds import Object
from muster.apiserver.server import DEFAULT_GATES, ApiServer

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
SPACES = "/api/v1/namespaces"
MAPS = "/api/v1/namespaces/default/configmaps"
EVENTS = "/api/v1/namespaces/default/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
COMPOSITES = "/apis/scheduling.k8s.io/v1alpha3/namespaces/default/compositepodgroups"
WORKLOADS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/workloads"
CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
JOBS = "/apis/batch/v1/namespaces/default/jobs"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
BUDGETS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"

GANG: Object = {"gang": {"minCount": 2}}
CONTAINER: Object = {"name": "c", "image": "i"}


class FullServer(SmallServer):
    """The whole catalog."""

    def __init__(self, *, gates: frozenset[str] = DEFAULT_GATES) -> None:
        self.now_s = 1_700_000_000.0
        self.api = ApiServer(np.random.default_rng(1), gates=gates, now_s=self.now_s)
        self.store = self.api.store

    def create(self, path: str, name: str, **body: Any) -> Object:
        """Create an object that must be accepted; `metadata` beside the name may be given."""
        body["metadata"] = {"name": name, **body.get("metadata", {})}
        return self.object("POST", path, body)

    def change(self, path: str, name: str, **body: Any) -> Object:
        """Merge-patch an object; the patch must be accepted."""
        return self.object("PATCH", f"{path}/{name}", body, content=MERGE_PATCH)

    def faults(self, method: str, target: str, body: Any, **more: Any) -> list[str]:
        """The field errors of a write that must be refused with 422, as `field: message`."""
        response = self.ask(method, target, body, **more)
        assert response.status == 422, response.object
        assert response.object is not None
        return [f"{cause['field']}: {cause['message']}" for cause in response.object["details"]["causes"]]

    def create_faults(self, path: str, **body: Any) -> list[str]:
        """What is wrong with an object to be created."""
        body["metadata"] = {"name": "bad", **body.get("metadata", {})}
        return self.faults("POST", path, body)

    def change_faults(self, path: str, name: str, **body: Any) -> list[str]:
        """What is wrong with a merge patch."""
        return self.faults("PATCH", f"{path}/{name}", body, content=MERGE_PATCH)

    def pod(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> Object:
        """Create a pod of one container."""
        spec = {"containers": [CONTAINER], **spec}
        return self.create(PODS, name, metadata={"labels": labels or {}}, spec=spec)

    def pod_faults(self, **spec: Any) -> list[str]:
        """What is wrong with a pod of this spec."""
        return self.create_faults(PODS, spec={"containers": [CONTAINER], **spec})

    def table(self, path: str) -> list[list[Any]]:
        """The cells of a list."""
        accept = "application/json;as=Table;v=v1;g=meta.k8s.io"
        return [row["cells"] for row in self.object("GET", path, accept=accept)["rows"]]
