"""Get and list: objects as they are now, as they were, and in pages.

A page's continue token names the revision that the first page saw, so that all pages are of one moment.
"""

import base64
import binascii
import re

import msgspec
from msgspec import structs

from muster.apiserver.calls import Call
from muster.apiserver.gojson import JsonError, parse
from muster.apiserver.kinds import Kind, Object, Refused
from muster.apiserver.options import ListOptions, read_list_options
from muster.apiserver.quoting import quoted
from muster.apiserver.routing import Route
from muster.apiserver.selectors import Selection, parse_selection
from muster.apiserver.statuses import PageExpired, bad_request, not_found, too_large_version
from muster.apiserver.store import key_of
from muster.apiserver.views import view_of, without_type
from muster.base.errors import Expired
from muster.base.numbers import whole_number

_OLD_LIST = "The resourceVersion for the provided list is too old."
_OLD_TOKEN = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)
_NOT_URL_BASE64 = re.compile(r"[^A-Za-z0-9_-]")


def get(call: Call, route: Route) -> Object:
    """Answer a GET of one object.

    Raises   Refused.
    """
    _check_version(call, call.request.first("resourceVersion") or "")
    kind = call.catalog.stored(route.kind)
    found = call.store.get(kind, route.namespace, route.name)
    if found is None:
        raise not_found(route.kind, route.name)
    return view_of(route.kind, route.version, found)


def list_all(call: Call, route: Route) -> Object:
    """Answer a GET of a collection.

    Raises   Refused.
    """
    options = read_list_options(call.request)
    selection = parse_selection(route.kind, options.label_selector, options.field_selector)
    if options.resource_version == "0" and not options.continue_token:
        options = structs.replace(options, limit=0)  # stock's cache gives all that it has
    if options.continue_token or options.limit > 0 or options.resource_version not in ("", "0"):
        return _page(call, route, options, selection)
    items = items_of_list(call, route.kind, route.namespace, selection)
    return list_object(route.kind, route.version, items, call.store.revision)


def version_asked(call: Call, text: str) -> int:
    """The revision that a resourceVersion names, 0 for none.

    Raises   Refused: 400 when it is no number, 504 when it is still to come.
    """
    if not text:
        return 0
    version = whole_number(text)
    if version is None:
        why = _why_no_version(text)
        raise bad_request(f"invalid resource version: resourceVersion: Invalid value: {quoted(text)}: {why}")
    if version > call.store.revision:
        raise too_large_version(version, call.store.revision)
    return version


def _check_version(call: Call, text: str) -> None:
    """The same for one object, where Kubernetes takes a bad number for a fault of its own."""
    if text and whole_number(text) is None:
        raise bad_version(text)
    version_asked(call, text)


def bad_version(text: str) -> Refused:
    """The 500 for a resourceVersion of a get or watch that is no number."""
    why = _why_no_version(text)
    return Refused(f"resourceVersion: Invalid value: {quoted(text)}: {why}", code=500, reason="")


def _why_no_version(text: str) -> str:
    """Go's words; a revision of this store is far from the twenty digits that a uint64 may have."""
    is_long = text.isascii() and text.isdigit()
    return (
        f"strconv.ParseUint: parsing {quoted(text)}: {'value out of range' if is_long else 'invalid syntax'}"
    )


def items_of_list(call: Call, view: Kind, namespace: str, selection: Selection) -> list[Object]:
    """The stored objects that are selected, in order."""
    objects = call.store.list(call.catalog.stored(view), namespace or None)
    return selected(view, objects, selection)


def selected(view: Kind, objects: list[Object], selection: Selection) -> list[Object]:
    """Those of some stored objects that are selected."""
    if selection.is_everything:
        return objects
    if view.to_view is not None and selection.fields:
        return [obj for obj in objects if selection.holds(view.to_view(obj))]
    return [obj for obj in objects if selection.holds(obj)]


def list_object(
    view: Kind, version: str, items: list[Object], revision: int, *, token: str = "", remaining: int = 0
) -> Object:
    """The list that holds these stored objects."""
    metadata: Object = {"resourceVersion": str(revision)}
    if token:
        metadata["continue"] = token
        if remaining:
            metadata["remainingItemCount"] = remaining
    return {
        "kind": f"{view.kind}List",
        "apiVersion": f"{view.group}/{version}" if view.group else version,
        "metadata": metadata,
        "items": [without_type(view_of(view, version, obj)) for obj in items],
    }


def _page(call: Call, route: Route, options: ListOptions, selection: Selection) -> Object:
    start = ""
    if options.continue_token:
        if options.resource_version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        revision, start = _read_token(options.continue_token)
        at_revision = revision > 0
        if not at_revision:
            revision = call.store.revision
    else:
        revision = version_asked(call, options.resource_version)
        at_revision = options.match == "Exact" or (options.match == "" and options.limit > 0 and revision > 0)
        if not at_revision:
            revision = call.store.revision
    objects = _objects_at(call, route, revision, start, at_revision=at_revision)
    names = [key for key in objects if key >= start] if start else list(objects)
    items = selected(route.kind, [objects[key] for key in names], selection)
    if options.limit <= 0 or len(items) <= options.limit:
        return list_object(route.kind, route.version, items, revision)
    shown = items[: options.limit]
    last = shown[-1]["metadata"]
    return list_object(
        route.kind,
        route.version,
        shown,
        revision,
        token=_make_token(revision, key_of(last.get("namespace", ""), last["name"])),
        remaining=len(items) - len(shown) if selection.is_everything else 0,
    )


def _objects_at(
    call: Call, route: Route, revision: int, start: str, *, at_revision: bool
) -> dict[str, Object]:
    kind = call.catalog.stored(route.kind)
    namespace = route.namespace or None
    if not at_revision or revision == call.store.revision:
        return call.store.at(kind, namespace, call.store.revision)
    try:
        return call.store.at(kind, namespace, revision)
    except Expired:
        if not call.request.first("continue"):
            raise Refused(_OLD_LIST, code=410, reason="Expired") from None
        # Going on with what is there now is the client's choice, so it gets a token for that.
        raise PageExpired(_OLD_TOKEN, _make_token(-1, start.removesuffix("\0"))) from None


def _make_token(revision: int, key: str) -> str:
    text = msgspec.json.encode({"v": "meta.k8s.io/v1", "rv": revision, "start": f"{key}\0"})
    return base64.urlsafe_b64encode(text).decode().rstrip("=")


def _read_token(token: str) -> tuple[int, str]:
    """The revision and the first key that a token names; revision -1 means now."""
    bad = _NOT_URL_BASE64.search(token)
    try:
        if bad:
            raise binascii.Error
        raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    except binascii.Error:
        at = bad.start() if bad else max(len(token) - 1, 0)
        raise _bad_token(f"illegal base64 data at input byte {at}") from None
    try:
        value = parse(raw).value
    except JsonError as error:
        raise _bad_token(str(error)) from None
    if not isinstance(value, dict) or value.get("v") != "meta.k8s.io/v1":
        version = value.get("v", "") if isinstance(value, dict) else ""
        raise _bad_token(f"server does not recognize this encoded version {version}")
    revision, start = value.get("rv"), value.get("start")
    if not isinstance(revision, int) or revision == 0:
        raise _bad_token("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _bad_token("encoded start key empty (version meta.k8s.io/v1)")
    return revision, start


def _bad_token(why: str) -> Refused:
    return bad_request(f"invalid continue token: continue key is not valid: {why}")
