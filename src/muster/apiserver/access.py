"""Who may ask what: members of system:masters everything, others what Kubernetes lets anybody do.

Roles and bindings are not served yet; the refusals are those of a cluster without any.
"""

from msgspec import Struct, structs

from muster.apiserver.exchange import Request
from muster.apiserver.kinds import Refused
from muster.apiserver.quoting import quoted
from muster.apiserver.statuses import bad_request

_MASTERS = "system:masters"
_AUTHENTICATED = "system:authenticated"
IMPERSONATION = frozenset(("impersonate-user", "impersonate-group", "impersonate-uid"))
_PUBLIC = ("healthz", "livez", "readyz", "version")
_DISCOVERY = ("api", "apis", "openapi")
_SELF_REVIEWS = (
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
)
_VERBS = {
    "GET": "get",
    "HEAD": "get",
    "POST": "create",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


class Attributes(Struct, frozen=True):
    """What a request asks for, as authorization sees it; `resource` "" for a path that is no resource's."""

    verb: str
    path: str
    group: str = ""
    resource: str = ""
    sub: str = ""
    namespace: str = ""
    name: str = ""


def is_master(request: Request) -> bool:
    """Whether everything is allowed."""
    return _MASTERS in request.groups


def impersonated(request: Request) -> Request:
    """The request as the user it says it is.

    Raises   Refused (403) for who may not do that, (400) where it says what of a user, but not whose.
    """
    user = request.headers.get("impersonate-user", "")
    if not user:
        raise _nobody(request)
    if not is_master(request):
        message = (
            f"users {quoted(user)} is forbidden: User {quoted(request.user)} cannot impersonate resource "
            '"users" in API group "" at the cluster scope'
        )
        raise Refused(message, details={"name": user, "kind": "users"})
    groups = _groups_asked(request)
    if user != "system:anonymous" and _AUTHENTICATED not in groups:
        groups = (*groups, _AUTHENTICATED)
    kept = {key: value for key, value in request.headers.items() if not key.startswith("impersonate-")}
    return structs.replace(request, user=user, groups=groups, headers=kept)


def _groups_asked(request: Request) -> tuple[str, ...]:
    asked = request.headers.get("impersonate-group", "")
    return tuple(group.strip() for group in asked.split(",") if group.strip())


def _nobody(request: Request) -> Refused:
    groups = _groups_asked(request)
    listed = f"[]string{{{', '.join(map(quoted, groups))}}}"
    who = (
        f'&user.DefaultInfo{{Name:"", UID:{quoted(request.headers.get("impersonate-uid", ""))}, '
        f"Groups:{listed if groups else '[]string(nil)'}, Extra:map[string][]string(nil)}}"
    )
    return bad_request(f"requested {who} without impersonating a user name")


def check_access(request: Request, parts: list[str]) -> None:
    """Let the request pass, or refuse it.

    Raises   Refused (403).
    """
    if is_master(request):
        return
    asked = attributes_of(request, parts)
    authenticated = _AUTHENTICATED in request.groups
    if not asked.resource:
        first = parts[0] if parts else ""
        open_to_all = first in _PUBLIC or (authenticated and first in _DISCOVERY)
        if asked.verb == "get" and open_to_all:
            return
        message = f"forbidden: User {quoted(request.user)} cannot {asked.verb} path {quoted(asked.path)}"
        raise Refused(message, details={})
    if authenticated and asked.verb == "create" and (asked.group, asked.resource) in _SELF_REVIEWS:
        return
    raise Refused(_denied(request.user, asked), details=_details(asked))


def attributes_of(request: Request, parts: list[str]) -> Attributes:
    """What a request asks for, told from its path alone."""
    verb = _VERBS.get(request.method, request.method.lower())
    if not parts or parts[0] not in ("api", "apis"):
        return Attributes(verb, request.path)
    prefix = 2 if parts[0] == "api" else 3
    group = parts[1] if parts[0] == "apis" and len(parts) > 1 else ""
    rest = parts[prefix:]
    if not rest:
        return Attributes(verb, request.path)
    watch = rest[0] == "watch"
    rest = rest[1:] if watch else rest
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and rest[2] not in ("status", "finalize"):
        namespace, rest = rest[1], rest[2:]
    elif len(rest) > 1 and rest[0] == "namespaces":
        namespace = rest[1]
    resource, name, sub = (*rest, "", "", "")[:3]
    if verb == "get" and (watch or (request.first("watch") or "").lower() in ("true", "1")):
        verb = "watch"
    elif not name:
        verb = {"get": "list", "delete": "deletecollection"}.get(verb, verb)
    return Attributes(verb, request.path, group, resource, sub, namespace, name)


def _denied(user: str, asked: Attributes) -> str:
    what = f"{asked.resource}.{asked.group}" if asked.group else asked.resource
    named = f"{what} {quoted(asked.name)}" if asked.name else what
    resource = f"{asked.resource}/{asked.sub}" if asked.sub else asked.resource
    where = f"in the namespace {quoted(asked.namespace)}" if asked.namespace else "at the cluster scope"
    return (
        f"{named} is forbidden: User {quoted(user)} cannot {asked.verb} resource {quoted(resource)} in API "
        f"group {quoted(asked.group)} {where}"
    )


def _details(asked: Attributes) -> dict[str, str]:
    details = {"name": asked.name, "group": asked.group, "kind": asked.resource}
    return {key: value for key, value in details.items() if value}
