"""What the interpreter needs of a server and of time, as two small interfaces, and paths by word.

Implementations: `simulation.py` (this process, virtual time) and `https.py` (a kubeconfig, real time).
"""

from typing import Any, NamedTuple, Protocol

Object = dict[str, Any]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"

NAMESPACE = "default"
GROUP_API = "/apis/scheduling.k8s.io/v1beta1"
COMPOSITE_API = "/apis/scheduling.k8s.io/v1alpha3"

PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODES = "/api/v1/nodes"
GROUPS = f"{GROUP_API}/namespaces/{NAMESPACE}/podgroups"
COMPOSITES = f"{COMPOSITE_API}/namespaces/{NAMESPACE}/compositepodgroups"
WORKLOADS = f"{GROUP_API}/namespaces/{NAMESPACE}/workloads"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
BUDGETS = f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets"
EVENTS = f"/apis/events.k8s.io/v1/namespaces/{NAMESPACE}/events"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"

# the word of a case → the collection it speaks of
COLLECTIONS = {
    "pod": PODS,
    "pods": PODS,
    "group": GROUPS,
    "groups": GROUPS,
    "composite": COMPOSITES,
    "node": NODES,
    "job": JOBS,
    "jobs": JOBS,
    "workload": WORKLOADS,
    "workloads": WORKLOADS,
    "pdb": BUDGETS,
    "events": EVENTS,
}


class Answer(NamedTuple):
    """Status code and body; a body that is no JSON object comes as its text under `message`."""

    status: int
    object: Object


class Transport(Protocol):
    """Sends one request and gives the answer, whatever it is."""

    def call(self, method: str, path: str, body: Object | None = None, content_type: str = JSON) -> Answer:
        """`path` with its query, as on the wire."""
        ...


class Clock(Protocol):
    """Time as the cases mean it."""

    def now_s(self) -> float:
        """Seconds, never going back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let this much time pass."""
        ...


class SchedulerControl(Protocol):
    """Stops and starts the scheduler under test; returns when it is done."""

    def __call__(self, order: str, /) -> None:
        """`order` is stop or start."""
        ...


class RequestRefused(Exception):
    """A request that had to succeed did not."""

    def __init__(self, method: str, path: str, answer: Answer) -> None:
        self.code = answer.status
        self.message = str(answer.object.get("message"))
        super().__init__(f"{method} {path}: {self.code} {self.message}")


class Api:
    """A transport with the three calls that cases are made of."""

    def __init__(self, transport: Transport) -> None:
        self.call = transport.call

    def must(self, method: str, path: str, body: Object | None = None, content_type: str = JSON) -> Object:
        """Send and give the object; raises RequestRefused for any answer but success."""
        answer = self.call(method, path, body, content_type)
        if answer.status >= 300:
            raise RequestRefused(method, path, answer)
        return answer.object

    def items(self, path: str) -> list[Object]:
        """The items of a list; none where the server does not serve it."""
        answer = self.call("GET", path)
        return answer.object.get("items") or [] if answer.status == 200 else []

    def merge(self, path: str, change: Object) -> Object:
        """Send a merge patch that must succeed."""
        return self.must("PATCH", path, change, MERGE_PATCH)

    def serves(self, path: str) -> bool:
        """Whether a GET of this path is answered with success."""
        return self.call("GET", path).status == 200
