"""Status objects: how every refusal reads, and the refusals that do not depend on a kind's rules.

Whoever must say no raises `Refused` (kinds.py); `server.py` turns it into the answer with `status_of`.
"""

from collections.abc import Sequence
from typing import Any

from muster.apiserver.kinds import Cause, Kind, Object, Refused
from muster.apiserver.quoting import quoted

NOT_FOUND_PATH = "the server could not find the requested resource"


class PageExpired(Refused):
    """410 for a page whose moment is forgotten; `token` goes on with what is there now."""

    def __init__(self, message: str, token: str) -> None:
        super().__init__(message, code=410, reason="Expired")
        self.token = token


def status_of(refused: Refused) -> Object:
    """The Status object of a refusal."""
    status: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {"continue": refused.token} if isinstance(refused, PageExpired) else {},
        "status": "Failure",
        "message": refused.message,
    }
    if refused.reason:
        status["reason"] = refused.reason
    if refused.details is not None:
        status["details"] = dict(refused.details)
    status["code"] = refused.code
    return status


def success(code: int, details: Object | None = None) -> Object:
    """A Status that says that all went well; `code` only with details left out, as Kubernetes does."""
    status: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details is not None:
        status["details"] = details
    else:
        status["code"] = code
    return status


def details_of(kind: Kind, name: str, *, uid: str = "") -> Object:
    """The details that name an object by its resource."""
    details = {"name": name, "group": kind.group, "kind": kind.resource, "uid": uid}
    return {key: value for key, value in details.items() if value}


def bad_request(message: str) -> Refused:
    """400."""
    return Refused(message, code=400, reason="BadRequest")


def not_found(kind: Kind, name: str) -> Refused:
    """404 for an object."""
    return Refused(
        f"{kind.name} {quoted(name)} not found", code=404, reason="NotFound", details=details_of(kind, name)
    )


def no_such_path() -> Refused:
    """404 for a resource, version or subresource that is not served."""
    return Refused(NOT_FOUND_PATH, code=404, reason="NotFound", details={})


def method_not_allowed() -> Refused:
    """405."""
    message = "the server does not allow this method on the requested resource"
    return Refused(message, code=405, reason="MethodNotAllowed", details={})


def already_exists(kind: Kind, name: str) -> Refused:
    """409 for a name in use."""
    message = f"{kind.name} {quoted(name)} already exists"
    return Refused(message, code=409, reason="AlreadyExists", details=details_of(kind, name))


def conflict(kind: Kind, name: str, why: str, *, by_kind: bool = False) -> Refused:
    """409 for a write that lost; `by_kind` names the object by its kind, as preconditions do."""
    shown = (f"{kind.kind}.{kind.group}" if kind.group else kind.kind) if by_kind else kind.name
    details = details_of(kind, name)
    if by_kind:
        details["kind"] = kind.kind
    message = f"Operation cannot be fulfilled on {shown} {quoted(name)}: {why}"
    return Refused(message, code=409, reason="Conflict", details=details)


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def precondition_failed(kind: Kind, namespace: str, name: str, asked_uid: str, uid: str) -> Refused:
    """409 for a write to an object of another uid."""
    shelf = "minions" if kind.resource == "nodes" else kind.resource
    place = f"{namespace}/{name}" if namespace else name
    why = (
        f"StorageError: invalid object, Code: 4, Key: /registry/{shelf}/{place}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {asked_uid}, "
        f"UID in object meta: {uid}"
    )
    return conflict(kind, name, why)


def invalid(group: str, kind: str, name: str, causes: Sequence[Cause], *, shown: str = "") -> Refused:
    """422 with field errors, as Kubernetes words one or several."""
    texts = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    title = shown or (f"{kind}.{group}" if group else kind)
    details: dict[str, Any] = {"name": name, "group": group, "kind": kind}
    details = {key: value for key, value in details.items() if value}
    details["causes"] = [
        {"reason": cause.type, "message": cause.message, "field": cause.field}
        for cause in dict.fromkeys(causes)
    ]
    return Refused(
        f"{title} {quoted(name)} is invalid: {joined}", code=422, reason="Invalid", details=details
    )


def unsupported_media_type(accepted: Sequence[str]) -> Refused:
    """415 for a body of a type that is not understood."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return Refused(message, code=415, reason="UnsupportedMediaType")


def not_acceptable(accepted: Sequence[str], *, understood: bool) -> Refused:
    """406 for an answer type that cannot be given; `understood`: only its parameters are not."""
    if understood:
        message = f"only the following media types are accepted: {', '.join(accepted[:3])}"
        return Refused(message, code=406, reason="NotAcceptable", details={})
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(accepted)}"
    return Refused(message, code=406, reason="NotAcceptable", details={})


def too_large_version(asked: int, newest: int) -> Refused:
    """504 for a read of a revision that is still to come."""
    details = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    message = f"Timeout: Too large resource version: {asked}, current: {newest}"
    return Refused(message, code=504, reason="Timeout", details=details, headers=(("Retry-After", "1"),))
