"""Deletion: at once, gracefully, or when the last finalizer has gone.

The garbage collector (`controllers/garbage.py`) finishes what the finalizers `orphan` and
`foregroundDeletion`, added here, ask of it.
"""

from typing import Any

from muster.apiserver.bodies import check_options_type, read_document
from muster.apiserver.calls import Call
from muster.apiserver.exchange import Response
from muster.apiserver.gojson import JsonError
from muster.apiserver.kinds import Kind, Object
from muster.apiserver.metadata import time_of, time_text
from muster.apiserver.options import DeleteOptions, read_delete_options, read_list_options
from muster.apiserver.protobuf import ProtobufError
from muster.apiserver.reading import items_of_list, list_object
from muster.apiserver.routing import Route
from muster.apiserver.selectors import parse_selection
from muster.apiserver.statuses import bad_request, conflict, details_of, not_found, success
from muster.apiserver.views import view_of

_ORPHAN, _FOREGROUND = "orphan", "foregroundDeletion"


def delete(call: Call, route: Route) -> Response:
    """Answer a DELETE of one object."""
    options = _options(call)
    return delete_object(call, route.kind, route.version, route.namespace, route.name, options)


def delete_collection(call: Call, route: Route) -> Response:
    """Answer a DELETE of a collection: the objects that it selected, as they were."""
    options = _options(call)
    asked = read_list_options(call.request)
    selection = parse_selection(route.kind, asked.label_selector, asked.field_selector)
    found = items_of_list(call, route.kind, route.namespace, selection)
    for obj in found:
        delete_object(call, route.kind, route.version, route.namespace, obj["metadata"]["name"], options)
    return Response(200, list_object(route.kind, route.version, found, call.store.revision))


def _options(call: Call) -> DeleteOptions:
    body: Any = call.request.body
    if isinstance(body, bytes) and body:
        try:
            body = read_document(call.request, call.schemas.record("meta.v1/DeleteOptions")).value
        except (JsonError, ProtobufError) as error:
            raise bad_request(str(error)) from None
        check_options_type(body)
    options = read_delete_options(call.request, body or None, call.schemas)
    call.dry_run = options.dry_run
    return options


def delete_object(
    call: Call, view: Kind, version: str, namespace: str, name: str, options: DeleteOptions
) -> Response:
    """What a deletion of this object with these options answers.

    Raises   Refused: 404, 409 for a failed precondition, whatever admission says.
    """
    kind = call.catalog.stored(view)
    old = call.store.get(kind, namespace, name)
    if old is None:
        raise not_found(kind, name)
    _check_preconditions(kind, old["metadata"], options)
    kind.strategy.admit_delete(old, call)
    if kind.default_warning and not options.policy and options.orphan_dependents is None:
        call.warn(kind.default_warning)
    obj = {**old, "metadata": dict(old["metadata"])}
    metadata = obj["metadata"]
    graceful, pending = _plan_grace(call, kind, obj, options)
    finalizers = _finalizers_for(kind, metadata, options)
    if finalizers != (metadata.get("finalizers") or []):
        metadata["finalizers"] = finalizers
        if not finalizers:
            del metadata["finalizers"]
    if pending:
        return Response(200, view_of(view, version, call.replace(kind, obj, old)))
    stays = bool(finalizers) or kind.strategy.holds(obj)
    if stays and not graceful:
        _mark(metadata, call.now_s, 0)
    if graceful or stays:
        kind.strategy.begin_delete(obj, call)
        obj = call.replace(kind, obj, old)
        if stays or metadata["deletionGracePeriodSeconds"] > 0:
            return Response(200, view_of(view, version, obj))
    last = obj if graceful else old  # without grace nothing was written before it goes
    if not call.dry_run:
        last = call.store.delete(kind, last, call.now_s)
    if kind.returns_deleted or kind.grace_s is not None:
        return Response(200, view_of(view, version, last))
    return Response(200, success(200, details_of(view, name, uid=metadata["uid"])))


def _check_preconditions(kind: Kind, metadata: Object, options: DeleteOptions) -> None:
    for what, asked, found, hint in (
        ("UID", options.uid, metadata["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, metadata["resourceVersion"], "modified"),
    ):
        if asked and asked != found:
            why = (
                f"the {what} in the precondition ({asked}) does not match the {what} in record ({found}). "
                f"The object might have been {hint}"
            )
            raise conflict(kind, metadata["name"], why, by_kind=True)


def _mark(metadata: Object, now_s: float, grace_s: int) -> None:
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = time_text(now_s + grace_s)
        if metadata.get("generation", 0) > 0:
            metadata["generation"] += 1
    metadata["deletionGracePeriodSeconds"] = grace_s


def _plan_grace(call: Call, kind: Kind, obj: Object, options: DeleteOptions) -> tuple[bool, bool]:
    """Set the time of a graceful deletion; gives (graceful, nothing to do but wait).

    Source   k8s.io/apiserver registry/rest BeforeDelete.
    """
    if kind.grace_s is None:
        return False, False
    metadata = obj["metadata"]
    if "deletionTimestamp" not in metadata:
        _mark(metadata, call.now_s, kind.grace_s(obj, options.grace_s))
        return True, False
    left_s = metadata.get("deletionGracePeriodSeconds") or 0
    if left_s == 0:
        return False, False
    if options.grace_s is None or options.grace_s >= left_s:
        return False, True
    grace_s = options.grace_s
    ends_s = time_of(metadata["deletionTimestamp"]) - left_s + grace_s
    if ends_s < call.now_s:
        ends_s = int(call.now_s)
        grace_s = min(grace_s, 1)
    metadata["deletionTimestamp"] = time_text(ends_s)
    metadata["deletionGracePeriodSeconds"] = grace_s
    return True, False


def _finalizers_for(kind: Kind, metadata: Object, options: DeleteOptions) -> list[str]:
    """The finalizers that the propagation policy leaves on the object."""
    present = metadata.get("finalizers") or []
    policy = options.policy
    if options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if not policy:
        if _ORPHAN in present:
            policy = "Orphan"
        elif _FOREGROUND in present:
            policy = "Foreground"
        else:
            policy = kind.default_propagation
    kept = [name for name in present if name not in (_ORPHAN, _FOREGROUND)]
    if policy == "Orphan":
        return [*kept, _ORPHAN]
    return [*kept, _FOREGROUND] if policy == "Foreground" else kept
