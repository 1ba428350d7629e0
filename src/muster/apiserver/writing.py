"""Create, update and patch: the way of an object from a body into the store.

The order is Kubernetes': decode, default, prepare, admit, validate, store.  What the kind wants at each
step is its strategy's; what metadata and versions must be is here.  Patches are computed in `patching.py`.
"""

from muster.apiserver.bodies import read_object
from muster.apiserver.calls import Call
from muster.apiserver.kinds import Cause, Kind, Object, Refused
from muster.apiserver.metadata import fill_new, keep_old
from muster.apiserver.options import read_write_options
from muster.apiserver.patching import apply_patch, copied
from muster.apiserver.quoting import quoted
from muster.apiserver.routing import Route
from muster.apiserver.statuses import (
    MODIFIED,
    already_exists,
    bad_request,
    conflict,
    details_of,
    invalid,
    not_found,
    precondition_failed,
)

_NAMESPACE_MISMATCH = "the namespace of the provided object does not match the namespace sent on the request"


def create(call: Call, route: Route) -> tuple[int, Object]:
    """Answer a POST to a collection: the status code and the object as stored.

    Raises   Refused.
    """
    options = read_write_options(call.request, "CreateOptions")
    call.dry_run = options.dry_run
    view = route.kind
    obj = read_object(call, view.group, route.version, view.kind, options.validation)
    return 201, store_new(call, view, obj, route.namespace)


def store_new(call: Call, view: Kind, obj: Object, namespace: str) -> Object:
    """Take a decoded object through the rules of its kind and store it."""
    kind = call.catalog.stored(view)
    strategy = view.strategy
    obj = _to_stored(call, view, kind, obj)
    metadata = obj.setdefault("metadata", {})
    given = metadata.get("namespace", "")
    if given and given != namespace and kind.namespaced:
        raise bad_request(_NAMESPACE_MISMATCH)
    metadata.pop("namespace", None)
    drop_double_owners(metadata, call)
    if metadata.pop("resourceVersion", ""):
        raise Refused("resourceVersion should not be set on objects to be created", code=500, reason="")
    strategy.default(obj, call)
    if namespace:
        admit_namespace(call, kind, namespace, metadata.get("name", ""))
    fill_new(metadata, namespace, call.now_s, call.chance)
    strategy.prepare_create(obj, call)
    strategy.admit_create(obj, call)
    causes = strategy.validate_create(obj, call)
    metadata = obj["metadata"]
    if causes:
        raise invalid(kind.group, kind.kind, metadata.get("name", ""), causes)
    existing = call.store.get(kind, namespace, metadata["name"])
    if existing is not None:
        refused = already_exists(kind, metadata["name"])
        if "deletionTimestamp" in existing["metadata"]:
            refused.message = f"object is being deleted: {refused.message}"
        raise refused
    return obj if call.dry_run else call.store.create(kind, obj, call.now_s)


def update(call: Call, route: Route) -> tuple[int, Object]:
    """Answer a PUT of an object or a subresource that is written like one."""
    options = read_write_options(call.request, "UpdateOptions")
    call.dry_run = options.dry_run
    view = route.kind
    kind = call.catalog.stored(view)
    obj = read_object(call, view.group, route.version, view.kind, options.validation)
    _check_name(obj.setdefault("metadata", {}), route)
    old = call.store.get(kind, route.namespace, route.name)
    if old is None:
        if view.create_on_update and route.sub is None:
            return 201, _store_by_update(call, route, obj)
        raise not_found(kind, route.name)
    obj = _to_stored(call, view, kind, obj)
    drop_double_owners(obj["metadata"], call)
    uid = obj["metadata"].get("uid")
    if uid and uid != old["metadata"]["uid"]:
        raise precondition_failed(kind, route.namespace, route.name, uid, old["metadata"]["uid"])
    return 200, store_changed(call, view, obj, old, _sub_name(route))


def _store_by_update(call: Call, route: Route, obj: Object) -> Object:
    """Create what a PUT found missing; the version it names is nothing, a uid cannot be met."""
    if uid := obj["metadata"].get("uid"):
        raise precondition_failed(call.catalog.stored(route.kind), route.namespace, route.name, uid, "")
    obj["metadata"].pop("resourceVersion", None)
    return store_new(call, route.kind, obj, route.namespace)


def patch(call: Call, route: Route) -> tuple[int, Object]:
    """Answer a PATCH."""
    options = read_write_options(call.request, "PatchOptions")
    call.dry_run = options.dry_run
    view = route.kind
    kind = call.catalog.stored(view)
    old = call.store.get(kind, route.namespace, route.name)
    obj = apply_patch(call, route, old, options.validation)
    assert old is not None
    _check_name(obj.setdefault("metadata", {}), route)
    obj = _to_stored(call, view, kind, obj)
    drop_double_owners(obj["metadata"], call, when=" after mutating admission happens")
    return 200, store_changed(call, view, obj, old, _sub_name(route))


def store_changed(call: Call, view: Kind, obj: Object, old: Object, sub: str) -> Object:
    """Take a changed object through the rules of its kind and store it; gives it as stored."""
    kind = call.catalog.stored(view)
    strategy = view.strategy
    metadata = obj["metadata"]
    _check_version(view, kind, metadata, old["metadata"])
    _keep_other_side(kind, obj, old, sub)
    strategy.default(obj, call)
    if kind.namespaced:
        metadata["namespace"] = old["metadata"]["namespace"]
    keep_old(metadata, old["metadata"])
    strategy.prepare_update(obj, old, sub, call)
    strategy.admit_update(obj, old, sub, call)
    causes = strategy.validate_update(obj, old, sub, call)
    if causes:
        raise invalid(kind.group, kind.kind, obj["metadata"].get("name", ""), causes)
    if _is_finished(kind, obj, old):
        if not call.dry_run:
            call.store.delete(kind, old, call.now_s)
        return obj
    return call.replace(kind, obj, old)


def drop_double_owners(metadata: Object, call: Call, when: str = "") -> None:
    """Keep each owner reference once, and warn of the others."""
    kept: list[Object] = []
    double: list[str] = []
    seen: set[tuple[tuple[str, str], ...]] = set()
    for owner in metadata.get("ownerReferences") or ():
        identity = tuple(sorted((name, str(value)) for name, value in owner.items()))
        if identity in seen:
            double.append(owner.get("uid", ""))
        else:
            seen.add(identity)
            kept.append(owner)
    if double:
        metadata["ownerReferences"] = kept
        call.warn(
            f".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references "
            "in 1.20+, and may reject such requests as early as 1.24; please fix your requests; "
            f"duplicate UID(s) observed: {', '.join(double)}"
        )


def _is_finished(kind: Kind, obj: Object, old: Object) -> bool:
    """Whether this change took away the last thing that kept a deleted object."""
    metadata = old["metadata"]
    if "deletionTimestamp" not in metadata or metadata.get("deletionGracePeriodSeconds"):
        return False
    return not obj["metadata"].get("finalizers") and not kind.strategy.holds(obj)


def _to_stored(call: Call, view: Kind, kind: Kind, obj: Object) -> Object:
    """The object as it is stored: in the kind's own form and its first version."""
    if view.from_view is not None:
        obj = view.from_view(obj)
    version = kind.versions[0]
    obj["kind"] = kind.kind
    obj["apiVersion"] = f"{kind.group}/{version}" if kind.group else version
    return obj


def _keep_other_side(kind: Kind, obj: Object, old: Object, sub: str) -> None:
    """An object's status is written through /status alone, and nothing else is."""
    if sub == "status":
        for name in [name for name in {**obj, **old} if name not in ("metadata", "status")]:
            _keep(obj, old, name)
    elif any(row.name == "status" for row in kind.subresources):
        _keep(obj, old, "status")


def _keep(obj: Object, old: Object, name: str) -> None:
    if name in old:
        obj[name] = copied(old[name])
    else:
        obj.pop(name, None)


def _check_name(metadata: Object, route: Route) -> None:
    name = metadata.get("name", "")
    if not name:
        why = f"the name of the object ({route.name} based on URL) was undeterminable: name must be provided"
        raise bad_request(why)
    if name != route.name:
        why = f"the name of the object ({name}) does not match the name on the URL ({route.name})"
        raise bad_request(why)
    given = metadata.get("namespace", "")
    if given and given != route.namespace:
        if not route.kind.namespaced:
            metadata.pop("namespace")
            return
        raise bad_request(_NAMESPACE_MISMATCH)


def _check_version(view: Kind, kind: Kind, metadata: Object, old: Object) -> None:
    given = metadata.get("resourceVersion", "")
    if given in ("", "0"):
        if not view.unconditional_update:
            why = "Invalid value: 0: must be specified for an update"
            cause = Cause("metadata.resourceVersion", "FieldValueInvalid", why)
            raise invalid(kind.group, kind.resource, old["name"], [cause])
    elif not (given.isascii() and given.isdigit()):
        raise Refused(f"strconv.ParseUint: parsing {quoted(given)}: invalid syntax", code=500, reason="")
    elif given != old["resourceVersion"]:
        raise conflict(kind, old["name"], MODIFIED)


def admit_namespace(call: Call, kind: Kind, namespace: str, name: str) -> None:
    """Refuse (404, 403) to create anything where there is no namespace, or where it goes."""
    found = call.get("namespaces", "", namespace)
    if found is None:
        raise not_found(call.catalog.by_name["namespaces"], namespace)
    if "deletionTimestamp" in found["metadata"]:
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        details = details_of(kind, name)
        message = f"namespace {namespace} is being terminated"
        details["causes"] = [
            {"reason": "NamespaceTerminating", "message": message, "field": "metadata.namespace"}
        ]
        raise Refused(f"{kind.name} {quoted(name)} is forbidden: {why}", details=details)


def _sub_name(route: Route) -> str:
    return route.sub.name if route.sub is not None else ""
