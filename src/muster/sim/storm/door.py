"""Where requests arrive at the API server: webhooks, quota, and what befalls a pod right after its binding.

A `FrontDoor` stands before the `ApiServer`, for everybody: schedulers, users, controllers, kubelets.  It
refuses what a cluster's policies refuse, and keeps the record of who bound what (`bindings`).
"""

from collections.abc import Callable
from typing import NamedTuple

from muster.apiserver.exchange import Request, Response
from muster.apiserver.server import ApiServer
from muster.controllers.kubelet import KUBELET_ANNOTATION, STOPPED
from muster.sim.storm.weather import Sky
from muster.sim.view import Object, group_of, node_of

MERGE = "application/merge-patch+json"
_KUBELET = "system:serviceaccount:kube-system:kubelet"
_PROVISIONER = "system:serviceaccount:kube-system:simulated-provisioner"
_RETRY_AFTER_S = 3
_KEPT_METADATA = ("name", "labels", "annotations", "ownerReferences")
_KEPT_SPEC = (
    "schedulerName",
    "terminationGracePeriodSeconds",
    "restartPolicy",
    "containers",
    "schedulingGroup",
    "priorityClassName",
    "resourceClaims",
    "volumes",
)


class Landed(NamedTuple):
    """A binding that the server accepted."""

    pod: Object
    node_name: str
    user: str


class FrontDoor:
    """The API server as everybody reaches it.

    `quota` is how many pods may exist (None: any number); `bound_max` how many of a group's members a webhook
    lets be bound (any number of others); `refuses_status` is True while the webhook before the status of
    groups does not answer; `rival_first` is called with an allocation that a rival writes on a claim of its
    own at this very moment.
    """

    def __init__(
        self, inner: ApiServer, sky: Sky, count: Callable[[str], None], landed: Callable[[Landed], None]
    ) -> None:
        self.inner = inner
        self.store = inner.store
        self.catalog = inner.catalog
        self.quota: int | None = None
        self.bound_max: dict[str, int] = {}
        self.refuses_status = False
        self.rival_first: Callable[[Object], None] = lambda allocation: None
        self.writers: dict[int, str] = {}  # who wrote, by the last revision of the request
        self._sky = sky
        self._count = count
        self._landed = landed
        self._pods = self.catalog.by_name["pods"]
        self._nodes = self.catalog.by_name["nodes"]

    def handle(self, request: Request, now_s: float) -> Response:
        """Answer a request, unless a policy does."""
        path = request.path
        if request.method == "POST" and path.endswith("/binding"):
            return self._bind(request, now_s)
        if request.method == "POST" and path.endswith("/pods") and self.quota is not None:
            if len(self.store.keys(self._pods)) >= self.quota:
                self._count("quota refused a pod")
                return _refusal(403, "Forbidden", "exceeded quota: pods")
        elif request.method == "PATCH" and "claims/" in path:
            if (refusal := self._refuse_claim(request)) is not None:
                return refusal
        elif request.method == "PATCH" and path.endswith("/status"):
            if self.refuses_status and "/podgroups/" in path:
                self._count("status write refused by a webhook")
                return _refusal(500, "InternalError", "failed calling webhook")
            if request.user == _KUBELET:
                request = self._spoil_start(request)
        before = self.store.revision
        response = self.inner.handle(request, now_s)
        if self.store.revision != before:
            self.writers[self.store.revision] = request.user
        return response

    # ── claims ──

    def _refuse_claim(self, request: Request) -> Response | None:
        """What a scheduler writes on claims may be refused; what a provisioner gives up is counted."""
        if request.user == _PROVISIONER and "selected-node" in str(request.body):
            self._count("provisioner failed")
        if request.user.startswith("system:"):
            return None
        weather = self._sky.weather
        if "/persistentvolumeclaims/" in request.path:
            fate = self._sky.pick((("volume choice refused with 403", weather.choice_denied),))
        else:
            fate = self._sky.pick(
                (
                    ("claim write refused with 403", weather.claim_denied),
                    ("claim write refused with 409", weather.claim_conflict),
                )
            )
        if not fate:
            self._let_rival_in(request)
            return None
        self._count(fate)
        if fate.endswith("409"):
            return _refusal(409, "Conflict", "the object has been modified")
        return _refusal(403, "Forbidden", 'admission webhook "c.example.com" denied the request')

    def _let_rival_in(self, request: Request) -> None:
        """Somebody may have given away the device just before."""
        status = request.body.get("status") if isinstance(request.body, dict) else None
        allocation = (status or {}).get("allocation")
        if allocation and self._sky.strikes(self._sky.weather.rival_first):
            self._count("rival took a device first")
            self.rival_first(allocation)

    # ── bindings ──

    def _bind(self, request: Request, now_s: float) -> Response:
        _, namespace, _, name, _ = request.path.rsplit("/", 4)
        pod = self.store.get(self._pods, namespace, name)
        assert isinstance(request.body, dict)
        node_name = str(request.body["target"]["name"])
        refusal = self._refuse_bind(pod)
        if refusal is not None:
            return refusal
        weather = self._sky.weather
        fate = self._sky.pick(
            (
                ("made anew", weather.made_anew),
                ("node gone", weather.node_gone),
                ("node dies", weather.node_dies),
            )
        )
        if fate == "made anew" and pod is not None and pod["metadata"].get("ownerReferences"):
            self._make_anew(pod, now_s)
        elif fate == "node gone":
            self._count("bound to a node that is gone")
            self.inner.handle(Request("DELETE", f"/api/v1/nodes/{node_name}"), now_s)
        response = self.inner.handle(request, now_s)
        if response.status >= 300:
            return response
        bound = self.store.get(self._pods, namespace, name)
        if bound is not None:
            self._landed(Landed(bound, node_name, request.user))
        if fate == "node dies" and self.store.get(self._nodes, "", node_name) is not None:
            self._count("node died before the pod started")
            self.stop_kubelet(node_name, now_s)
        return response

    def _refuse_bind(self, pod: Object | None) -> Response | None:
        weather = self._sky.weather
        if pod is not None and self._are_enough_bound(group_of(pod)):
            self._count("binding denied by a policy")
            return _refusal(403, "Forbidden", 'admission webhook "policy.example.com" denied the request')
        match self._sky.pick(
            (
                ("403", weather.bind_denied),
                ("409", weather.bind_conflict),
                ("404", weather.bind_missing),
                ("429", weather.bind_throttled),
            )
        ):
            case "403":
                self._count("binding refused with 403")
                return _refusal(403, "Forbidden", 'admission webhook "w.example.com" denied the request')
            case "409":
                self._count("binding refused with 409")
                return _refusal(409, "Conflict", "the object has been modified")
            case "404":
                self._count("binding refused with 404")
                return _refusal(404, "NotFound", "pods not found")
            case "429":
                self._count("binding refused with 429")
                return _refusal(429, "TooManyRequests", "slow down", _RETRY_AFTER_S)
        return None

    def _are_enough_bound(self, group: str) -> bool:
        most = self.bound_max.get(group)
        if most is None:
            return False
        pods = self.store.list(self._pods)
        return sum(group_of(pod) == group and bool(node_of(pod)) for pod in pods) >= most

    def _make_anew(self, pod: Object, now_s: float) -> None:
        """The pod goes by force, and its owner makes another of its name at once."""
        self._count("pod made anew under its binding")
        metadata = pod["metadata"]
        pods = f"/api/v1/namespaces/{metadata['namespace']}/pods"
        grace: Object = {"gracePeriodSeconds": 0}
        self.inner.handle(Request("DELETE", f"{pods}/{metadata['name']}", body=grace), now_s)
        kept = {key: metadata[key] for key in _KEPT_METADATA if key in metadata}
        spec = {key: value for key, value in pod["spec"].items() if key in _KEPT_SPEC}
        made: Object = {"apiVersion": "v1", "kind": "Pod", "metadata": kept, "spec": spec}
        self.inner.handle(Request("POST", pods, body=made), now_s)

    # ── kubelets ──

    def stop_kubelet(self, node_name: str, now_s: float) -> None:
        """Let a node fall silent."""
        body: Object = {"metadata": {"annotations": {KUBELET_ANNOTATION: STOPPED}}}
        self.inner.handle(
            Request("PATCH", f"/api/v1/nodes/{node_name}", headers={"content-type": MERGE}, body=body), now_s
        )

    def _spoil_start(self, request: Request) -> Request:
        """A kubelet that is about to start a pod may refuse it."""
        body = request.body
        if not isinstance(body, dict) or (body.get("status") or {}).get("phase") != "Running":
            return request
        weather = self._sky.weather
        reason = self._sky.pick(
            (("OutOfcpu", weather.out_of_cpu), ("UnexpectedAdmissionError", weather.unexpected_admission))
        )
        if not reason:
            return request
        self._count(f"kubelet refused: {reason}")
        failed = {"phase": "Failed", "reason": reason, "message": "Pod was rejected"}
        refused = {"metadata": body["metadata"], "status": failed}
        return Request("PATCH", request.path, headers=request.headers, body=refused, user=request.user)


def _refusal(code: int, reason: str, message: str, retry_after_s: int | None = None) -> Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }
    headers = () if retry_after_s is None else (("Retry-After", str(retry_after_s)),)
    return Response(code, status, headers=headers)
