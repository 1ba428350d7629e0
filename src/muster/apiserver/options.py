"""The options of a request, read from its query (and, for deletions, its body) and checked.

One Struct a verb family; the refusals are Kubernetes'.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, structs

from muster.api.times import is_duration
from muster.apiserver.codec import DecodeError, Reading, decode
from muster.apiserver.exchange import Request
from muster.apiserver.kinds import Cause, Object, Refused
from muster.apiserver.quoting import quoted
from muster.apiserver.schemas import Schemas
from muster.apiserver.statuses import bad_request, invalid

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)")
_MANAGER_LENGTH = 128
_MATCHES = '"Exact", "NotOlderThan", ""'


class WriteOptions(Struct, frozen=True):
    """Options of create, update and patch; `validation` is Strict, Warn or Ignore."""

    dry_run: bool = False
    validation: str = "Warn"


class ListOptions(Struct, frozen=True):
    """Options of list, watch and deletecollection, as given."""

    limit: int = 0
    continue_token: str = ""
    label_selector: str = ""
    field_selector: str = ""
    resource_version: str = ""
    match: str = ""
    watch: bool = False
    bookmarks: bool = False
    initial_events: bool | None = None
    timeout_s: int | None = None


class DeleteOptions(Struct, frozen=True):
    """Options of a deletion; `policy` is Foreground, Background, Orphan or "" (none asked)."""

    dry_run: bool = False
    grace_s: int | None = None
    policy: str = ""
    uid: str = ""
    resource_version: str = ""
    orphan_dependents: bool | None = None


def read_write_options(request: Request, options_kind: str) -> WriteOptions:
    """The options of a write; `options_kind` is CreateOptions, UpdateOptions or PatchOptions.

    Raises   Refused (422).
    """
    query = request.query
    if not query:
        return WriteOptions()
    causes: list[Cause] = []
    force = _boolean(request, "force")
    content = request.headers.get("content-type", "")
    if options_kind == "PatchOptions":
        if content.startswith("application/apply-patch"):
            if not request.first("fieldManager"):
                why = "Required value: is required for apply patch"
                causes.append(Cause("fieldManager", "FieldValueRequired", why))
        elif force is not None:
            why = "Forbidden: may not be specified for non-apply patch"
            causes.append(Cause("force", "FieldValueForbidden", why))
    if len(request.first("fieldManager") or "") > _MANAGER_LENGTH:
        why = f"Too long: may not be more than {_MANAGER_LENGTH} bytes"
        causes.append(Cause("fieldManager", "FieldValueTooLong", why))
    causes += _unprintable(request.first("fieldManager") or "")
    dry_run = [value for key, value in query if key == "dryRun"]
    causes += _dry_run_causes(dry_run)
    validation = request.first("fieldValidation") or ""
    if validation not in ("", "Ignore", "Strict", "Warn"):
        why = f'Unsupported value: {quoted(validation)}: supported values: "", "Ignore", "Strict", "Warn"'
        causes.append(Cause("fieldValidation", "FieldValueNotSupported", why))
    if causes:
        raise invalid("meta.k8s.io", options_kind, "", causes)
    return WriteOptions(dry_run=bool(dry_run), validation=validation or "Warn")


def _unprintable(manager: str) -> list[Cause]:
    """The first letter of a fieldManager that nobody can read, as stock tells it."""
    at = next((index for index, letter in enumerate(manager) if not letter.isprintable()), None)
    if at is None:
        return []
    offset = len(manager[:at].encode("utf-8", "replace"))
    why = (
        f"Invalid value: {quoted(manager)}: invalid character U+{ord(manager[at]):04X} (at position {offset})"
    )
    return [Cause("fieldManager", "FieldValueInvalid", why)]


def check_timeout(request: Request) -> None:
    """Refuse (400) a `timeout` in the query that is no duration of Go's; nothing here takes that long."""
    text = request.first("timeout")
    if text and not is_duration(text):
        why = "missing unit in" if _NUMBER.fullmatch(text) else "invalid"
        raise bad_request(
            f"invalid timeout specified in the request URL - time: {why} duration {quoted(text)}"
        )


def read_list_options(request: Request, *, is_watch: bool = False) -> ListOptions:
    """The options of a list or watch; `is_watch`: the path says so, whatever the query says.

    Raises   Refused (400 for what cannot be read, 422 for what does not go together).
    """
    query = request.query
    if not query and not is_watch:
        return ListOptions()
    values: dict[str, str] = {}
    for key, value in query:
        values.setdefault(key, value)
    options = ListOptions(
        limit=_integer(values.get("limit")) or 0,
        continue_token=values.get("continue", ""),
        label_selector=values.get("labelSelector", ""),
        field_selector=values.get("fieldSelector", ""),
        resource_version=values.get("resourceVersion", ""),
        match=values.get("resourceVersionMatch", ""),
        watch=is_watch or bool(_boolean(request, "watch")),
        bookmarks=bool(_boolean(request, "allowWatchBookmarks")),
        initial_events=_boolean(request, "sendInitialEvents"),
        timeout_s=_integer(values.get("timeoutSeconds")),
    )
    from_now = options.resource_version in ("", "0")
    if options.watch and options.initial_events is None and not options.match and from_now:
        options = structs.replace(options, initial_events=True, match="NotOlderThan")
    causes = _watch_causes(options) if options.watch else _list_causes(options)
    if causes:
        raise invalid("meta.k8s.io", "ListOptions", "", causes)
    return options


def _list_causes(options: ListOptions) -> list[Cause]:
    causes: list[Cause] = []
    match = options.match
    if match:
        if not options.resource_version:
            why = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            causes.append(_forbidden("resourceVersionMatch", why))
        if options.continue_token:
            why = "resourceVersionMatch is forbidden when continue is provided"
            causes.append(_forbidden("resourceVersionMatch", why))
        causes += _match_causes(match)
        if match == "Exact" and options.resource_version == "0":
            why = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
            causes.append(_forbidden("resourceVersionMatch", why))
    if options.initial_events is not None:
        causes.append(_forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return causes


def _watch_causes(options: ListOptions) -> list[Cause]:
    causes: list[Cause] = []
    match = options.match
    if options.initial_events is not None:
        if match != "NotOlderThan":
            why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            causes.append(_forbidden("resourceVersionMatch", why))
    elif match:
        why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        causes.append(_forbidden("resourceVersionMatch", why))
    if match and match != "NotOlderThan":
        why = f'Unsupported value: {quoted(match)}: supported values: "NotOlderThan"'
        causes.append(Cause("resourceVersionMatch", "FieldValueNotSupported", why))
    if match and options.continue_token:
        why = "resourceVersionMatch is forbidden when continue is provided"
        causes.append(_forbidden("resourceVersionMatch", why))
    return causes


def _match_causes(match: str) -> list[Cause]:
    if match in ("Exact", "NotOlderThan"):
        return []
    why = f"Unsupported value: {quoted(match)}: supported values: {_MATCHES}"
    return [Cause("resourceVersionMatch", "FieldValueNotSupported", why)]


def read_delete_options(request: Request, body: Mapping[str, Any] | None, schemas: Schemas) -> DeleteOptions:
    """The options of a deletion: the body where there is one, else the query.

    Raises   Refused (400 for what cannot be read, 422 for what does not go together).
    """
    given = _decoded_options(body, schemas) if body else _options_of_query(request)
    policy = given.get("propagationPolicy", "")
    orphan = given.get("orphanDependents")
    causes: list[Cause] = []
    if orphan is not None and policy:
        why = f"Invalid value: {quoted(policy)}: orphanDependents and deletionPropagation cannot be both set"
        causes.append(Cause("propagationPolicy", "FieldValueInvalid", why))
    if policy not in ("", "Foreground", "Background", "Orphan"):
        supported = '"Foreground", "Background", "Orphan", "nil"'
        why = f"Unsupported value: {quoted(policy)}: supported values: {supported}"
        causes.append(Cause("propagationPolicy", "FieldValueNotSupported", why))
    dry_run = given.get("dryRun") or []
    causes += _dry_run_causes(dry_run)
    if causes:
        raise invalid("meta.k8s.io", "DeleteOptions", "", causes)
    grace_s = given.get("gracePeriodSeconds")
    wanted = given.get("preconditions") or {}
    return DeleteOptions(
        dry_run=bool(dry_run),
        grace_s=1 if grace_s is not None and grace_s < 0 else grace_s,
        policy=policy,
        uid=wanted.get("uid", ""),
        resource_version=wanted.get("resourceVersion", ""),
        orphan_dependents=orphan,
    )


def _decoded_options(body: Mapping[str, Any], schemas: Schemas) -> Object:
    try:
        return decode(schemas.record("meta.v1/DeleteOptions"), dict(body), Reading())
    except DecodeError as error:
        raise bad_request(str(error)) from None


def _options_of_query(request: Request) -> Object:
    options: Object = {}
    if (grace_s := _integer(request.first("gracePeriodSeconds"))) is not None:
        options["gracePeriodSeconds"] = grace_s
    if policy := request.first("propagationPolicy"):
        options["propagationPolicy"] = policy
    if (orphan := _boolean(request, "orphanDependents")) is not None:
        options["orphanDependents"] = orphan
    options["dryRun"] = [value for key, value in request.query if key == "dryRun"]
    return options


def _dry_run_causes(values: list[str]) -> list[Cause]:
    if all(value == "All" for value in values):
        return []
    shown = ",".join(map(quoted, values))
    why = f'Unsupported value: [{shown}]: supported values: "All"'
    return [Cause("dryRun", "FieldValueNotSupported", why)]


def _forbidden(field: str, why: str) -> Cause:
    return Cause(field, "FieldValueForbidden", f"Forbidden: {why}")


def _boolean(request: Request, name: str) -> bool | None:
    """Any word but a false one is true, the empty one too, as Kubernetes reads query parameters."""
    value = request.first(name)
    return None if value is None else value.lower() not in ("false", "0")


def _integer(text: str | None) -> int | None:
    if text is None or text == "":
        return None
    try:
        number = int(text)
    except ValueError:
        raise _not_a_number(text, "invalid syntax") from None
    if not -(1 << 63) <= number < 1 << 63:
        raise _not_a_number(text, "value out of range")
    return number


def _not_a_number(text: str, why: str) -> Refused:
    return bad_request(f"strconv.ParseInt: parsing {quoted(text)}: {why}")
