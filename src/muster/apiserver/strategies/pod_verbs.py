"""The verbs of pods that are no plain writes: binding, eviction, log.  Handlers for `catalog.py`."""

from muster.apiserver.exchange import Request, Response
from muster.apiserver.kinds import Access, Cause, Object, Refused
from muster.apiserver.quoting import quoted
from muster.apiserver.strategies.fields import invalid_each, items, mapping, not_supported, required, text
from muster.apiserver.strategies.names import dns_subdomain
from muster.apiserver.strategies.pods import timestamp
from muster.apiserver.strategies.selectors import selects

BUDGETS = "poddisruptionbudgets.policy"
_BUDGET_TEXT = "Cannot evict pod as it would violate the pod's disruption budget."
_TWO_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
_CONFIRMED_MOST = 2000
_KUBELET_PORT = 10250


def find_pod(access: Access, namespace: str, name: str) -> Object:
    """The stored pod.

    Raises   Refused, 404.
    """
    pod = access.get("pods", namespace, name)
    if pod is None:
        details = {"name": name, "kind": "pods"}
        raise Refused(f"pods {quoted(name)} not found", code=404, reason="NotFound", details=details)
    return pod


def _bad_request(message: str) -> Refused:
    return Refused(message, code=400, reason="BadRequest")


def _check_namespace(body: Object, namespace: str) -> None:
    if text(mapping(body, "metadata"), "namespace") not in ("", namespace):
        raise _bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _succeeded() -> Response:
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
    return Response(201, status)


def with_condition(status: Object, condition: Object, now_s: float) -> Object:
    """A status with a condition put in its place; its time changes only with its value."""
    conditions = list(items(status, "conditions"))
    for index, known in enumerate(conditions):
        if known.get("type") == condition["type"]:
            same = known.get("status") == condition["status"]
            when = known.get("lastTransitionTime") if same else timestamp(now_s)
            conditions[index] = {"lastProbeTime": None, "lastTransitionTime": when} | condition
            break
    else:
        conditions.append({"lastProbeTime": None, "lastTransitionTime": timestamp(now_s)} | condition)
    return {**status, "conditions": conditions}


def bind(request: Request, namespace: str, name: str, body: Object, access: Access) -> Response:
    """`pods/NAME/binding`: put an unbound pod on a node, which need not exist."""
    _check_namespace(body, namespace)
    if text(mapping(body, "metadata"), "name") != name:
        raise _bad_request("name in URL does not match name in Binding object")
    causes = _validate_target(mapping(body, "target"))
    if causes:
        texts = [f"{cause.field}: {cause.message}" for cause in causes]
        raise Refused(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]", code=500, reason="")
    pod = find_pod(access, namespace, name)
    _check_preconditions(pod, mapping(body, "metadata"))
    if why := _why_not_bound(pod, name):
        message = f"Operation cannot be fulfilled on pods/binding {quoted(name)}: {why}"
        details = {"name": name, "kind": "pods/binding"}
        raise Refused(message, code=409, reason="Conflict", details=details)
    access.write("pods", _bound(pod, body, access.now_s))
    return _succeeded()


def bind_by_body(request: Request, namespace: str, name: str, body: Object, access: Access) -> Response:
    """`bindings`: the same, the pod being named in the body."""
    target = text(mapping(body, "metadata"), "name")
    if not target:
        raise _bad_request("Name parameter required.")
    return bind(request, namespace, target, body, access)


def _validate_target(target: Object) -> list[Cause]:
    found: list[Cause] = []
    if text(target, "kind") not in ("", "Node"):
        found.append(not_supported("target.kind", text(target, "kind"), ("Node", "<empty>")))
    node = text(target, "name")
    if not node:
        found.append(required("target.name"))
    else:
        found += invalid_each("target.name", node, dns_subdomain(node))
    return found


def _check_preconditions(pod: Object, asked: Object) -> None:
    """A binding may name the uid and the version of the pod that it is meant for."""
    meta = pod["metadata"]
    for what, key in (("UID", "uid"), ("ResourceVersion", "resourceVersion")):
        wanted, found = text(asked, key), text(meta, key)
        if wanted and wanted != found:
            place = f"/registry/pods/{meta['namespace']}/{meta['name']}"
            message = (
                f'Operation cannot be fulfilled on pods "{meta["name"]}": StorageError: invalid object, '
                f"Code: 4, Key: {place}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "
                f"{what} in precondition: {wanted}, {what} in object meta: {found}"
            )
            details = {"name": meta["name"], "kind": "pods"}
            raise Refused(message, code=409, reason="Conflict", details=details)


def _why_not_bound(pod: Object, name: str) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return f"pod {name} is being deleted, cannot be assigned to a host"
    if node := text(pod["spec"], "nodeName"):
        return f'pod {name} is already assigned to node "{node}"'
    if items(pod["spec"], "schedulingGates"):
        return f"pod {name} has non-empty .spec.schedulingGates"
    return ""


def _bound(pod: Object, body: Object, now_s: float) -> Object:
    meta, given = dict(pod["metadata"]), mapping(body, "metadata")
    for key in ("annotations", "labels"):
        if mapping(given, key):
            meta[key] = {**mapping(meta, key), **mapping(given, key)}
    status = {key: value for key, value in mapping(pod, "status").items() if key != "nominatedNodeName"}
    status = with_condition(status, {"type": "PodScheduled", "status": "True"}, now_s)
    spec = {**pod["spec"], "nodeName": text(mapping(body, "target"), "name")}
    return {**pod, "metadata": meta, "spec": spec, "status": status}


def evict(request: Request, namespace: str, name: str, body: Object, access: Access) -> Response:
    """`pods/NAME/eviction`: delete a pod unless its budget forbids."""
    _check_namespace(body, namespace)
    if text(mapping(body, "metadata"), "name") != name:
        raise _bad_request("name in URL does not match name in Eviction object")
    pod = find_pod(access, namespace, name)
    options = dict(mapping(body, "deleteOptions"))
    dry = access.dry_run or bool(items(options, "dryRun"))
    if not _ignores_budgets(pod):
        budgets = [
            budget
            for budget in access.list(BUDGETS, namespace)
            if selects(budget["spec"].get("selector"), mapping(pod["metadata"], "labels"))
        ]
        if len(budgets) > 1:
            raise Refused(_TWO_BUDGETS, code=500, reason="")
        if budgets and _counts(pod, budgets[0]):
            spent = _spend(budgets[0], name, access.now_s)
            if not dry:
                access.write(BUDGETS, spent)
    if access.dry_run:
        options["dryRun"] = ["All"]
    if not dry and not mapping(options, "preconditions"):
        _mark_disrupted(pod, access)
    access.delete("pods", namespace, name, options)
    return _succeeded()


def _ignores_budgets(pod: Object) -> bool:
    phase = text(mapping(pod, "status"), "phase")
    return phase in ("Succeeded", "Failed", "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def _mark_disrupted(pod: Object, access: Access) -> None:
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    status = with_condition(mapping(pod, "status"), condition, access.now_s)
    access.write("pods", {**pod, "status": status})


def _counts(pod: Object, budget: Object) -> bool:
    """Whether the pod is one that the budget protects: an unready one may go while enough others stay."""
    status = mapping(budget, "status")
    conditions = items(mapping(pod, "status"), "conditions")
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return True
    if budget["spec"].get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return False
    healthy, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    return not (desired > 0 and healthy >= desired)


def _refuse_eviction(cause: str, retry_after_s: int = 0) -> Refused:
    details: Object = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    headers: tuple[tuple[str, str], ...] = ()
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
        headers = (("Retry-After", str(retry_after_s)),)
    return Refused(_BUDGET_TEXT, code=429, reason="TooManyRequests", details=details, headers=headers)


def _spend(budget: Object, pod_name: str, now_s: float) -> Object:
    """The budget with one disruption less, remembered until the controller has seen it."""
    meta, status = budget["metadata"], dict(mapping(budget, "status"))
    name = meta["name"]
    details = {"name": name, "group": "policy", "kind": "poddisruptionbudgets"}
    where = f'poddisruptionbudgets.policy "{name}" is forbidden: '
    if status.get("observedGeneration", 0) < meta.get("generation", 0):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise _refuse_eviction(cause, 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise Refused(f"{where}pdb disruptions allowed is negative", details=details)
    if len(mapping(status, "disruptedPods")) > _CONFIRMED_MOST:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise Refused(where + why, details=details)
    if allowed == 0:
        need, have = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
        cause = f"The disruption budget {name} needs {need} healthy pods and has {have} currently"
        raise _refuse_eviction(cause)
    status["disruptionsAllowed"] = allowed - 1
    status["disruptedPods"] = {**mapping(status, "disruptedPods"), pod_name: timestamp(now_s)}
    if allowed == 1:
        status = _exhausted(status, meta.get("generation", 0), now_s)
    return {**budget, "status": status}


def _exhausted(status: Object, generation: int, now_s: float) -> Object:
    condition = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": timestamp(now_s),
        "reason": "InsufficientPods",
        "message": "",
    }
    others = [c for c in items(status, "conditions") if c.get("type") != condition["type"]]
    return {**status, "conditions": [*others, condition]}


def read_log(request: Request, namespace: str, name: str, body: Object, access: Access) -> Response:
    """`pods/NAME/log`: what stock says where no kubelet answers."""
    pod = find_pod(access, namespace, name)
    container = _choose_container(pod, request.first("container") or "")
    node_name = text(pod["spec"], "nodeName")
    if not node_name:
        return Response(204, raw=b"", content_type="")
    node = access.get("nodes", "", node_name)
    if node is None:
        details = {"name": node_name, "kind": "pods"}
        raise Refused(f'pods "{node_name}" not found', code=404, reason="NotFound", details=details)
    addresses = {text(a, "type"): text(a, "address") for a in items(mapping(node, "status"), "addresses")}
    known = [addresses[type_] for type_ in ("Hostname", "InternalDNS", "InternalIP") if type_ in addresses]
    if not known:
        raise Refused("no preferred addresses found; known addresses: []", code=500, reason="")
    port = mapping(mapping(mapping(node, "status"), "daemonEndpoints"), "kubeletEndpoint").get("Port")
    place = f"{known[-1]}:{port or _KUBELET_PORT}"
    url = f"https://{place}/containerLogs/{namespace}/{name}/{container}"
    raise Refused(f'Get "{url}": dial tcp {place}: connect: connection refused', code=500, reason="")


def _choose_container(pod: Object, asked: str) -> str:
    spec, name = pod["spec"], pod["metadata"]["name"]
    ordinary = [text(c, "name") for c in items(spec, "containers")]
    init = [text(c, "name") for c in items(spec, "initContainers")]
    ephemeral = [text(c, "name") for c in items(spec, "ephemeralContainers")]
    if not asked:
        if len(ordinary) == 1:
            return ordinary[0]
        message = f"a container name must be specified for pod {name}, choose one of: [{' '.join(ordinary)}]"
        if init:
            message += f" or one of the init containers: [{' '.join(init)}]"
        raise _bad_request(message)
    if asked not in (*ordinary, *init, *ephemeral):
        raise _bad_request(f"container {asked} is not valid for pod {name}")
    return asked
