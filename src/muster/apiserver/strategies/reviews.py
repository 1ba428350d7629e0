"""Questions about oneself: who am I, may I.  Answered, never stored; the rights are those of `allowed`.

Until there is RBAC, members of `system:masters` may do everything and nobody else anything.
"""

from muster.apiserver.exchange import Request, Response
from muster.apiserver.kinds import Access, Cause, Object, Refused
from muster.apiserver.strategies.fields import mapping, printed, text

MASTERS = "system:masters"
_OPEN_PATHS = ["/healthz", "/livez", "/readyz", "/version", "/version/"]
_DISCOVERY_PATHS = [
    "/api",
    "/api/*",
    "/apis",
    "/apis/*",
    "/healthz",
    "/livez",
    "/openapi",
    "/openapi/*",
    "/readyz",
    "/version",
    "/version/",
]


def allowed(groups: tuple[str, ...]) -> bool:
    """Whether somebody of these groups may do what they ask."""
    return MASTERS in groups


def _answer(body: Object, kind: str, group: str, status: Object) -> Response:
    answer = {"kind": kind, "apiVersion": f"{group}/v1", "metadata": mapping(body, "metadata")}
    if "spec" in body:
        answer["spec"] = body["spec"]
    return Response(201, {**answer, "status": status})


def review_self(request: Request, namespace: str, name: str, body: Object, access: Access) -> Response:
    """SelfSubjectReview: the caller's name and groups."""
    info: Object = {"username": request.user}
    if request.groups:
        info["groups"] = list(request.groups)
    return _answer(body, "SelfSubjectReview", "authentication.k8s.io", {"userInfo": info})


def review_access(request: Request, namespace: str, name: str, body: Object, access: Access) -> Response:
    """SelfSubjectAccessReview: whether the caller may do one thing."""
    spec = mapping(body, "spec")
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) == (path is None):
        detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _invalid(Cause("spec", "FieldValueInvalid", f"Invalid value: {printed(path)}: {detail}"))
    verdict: Object = {"allowed": allowed(request.groups)}
    return _answer(body, "SelfSubjectAccessReview", "authorization.k8s.io", verdict)


def _invalid(cause: Cause) -> Refused:
    details = {
        "group": "authorization.k8s.io",
        "causes": [{"reason": cause.type, "message": cause.message, "field": cause.field}],
    }
    message = f'.authorization.k8s.io "" is invalid: {cause.field}: {cause.message}'
    return Refused(message, code=422, reason="Invalid", details=details)


def review_rules(request: Request, namespace: str, name: str, body: Object, access: Access) -> Response:
    """SelfSubjectRulesReview: all that the caller may do in a namespace."""
    if not text(mapping(body, "spec"), "namespace"):
        raise Refused("no namespace on request", code=400, reason="BadRequest")
    everything = allowed(request.groups)
    resources: list[Object] = [
        {
            "verbs": ["create"],
            "apiGroups": ["authorization.k8s.io"],
            "resources": ["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
        },
        {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["selfsubjectreviews"]},
    ]
    paths: list[Object] = [
        {"verbs": ["get"], "nonResourceURLs": _DISCOVERY_PATHS},
        {"verbs": ["get"], "nonResourceURLs": _OPEN_PATHS},
    ]
    if everything:
        resources.insert(0, {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]})
        paths.insert(0, {"verbs": ["*"], "nonResourceURLs": ["*"]})
    status: Object = {"resourceRules": resources, "nonResourceRules": paths, "incomplete": False}
    return _answer({**body, "spec": {}}, "SelfSubjectRulesReview", "authorization.k8s.io", status)
