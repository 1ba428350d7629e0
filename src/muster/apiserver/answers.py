"""In what form an answer goes out: the object itself, only its metadata, or a table of it.

`Form` is picked from the Accept header; `server.py` shapes single answers with it, `watching.py` every
event.
"""

from typing import Any

import msgspec
import yaml
from msgspec import Struct

from muster.apiserver.calls import Call
from muster.apiserver.exchange import Request
from muster.apiserver.kinds import Kind, Object, Refused
from muster.apiserver.quoting import quoted
from muster.apiserver.statuses import bad_request, not_acceptable

_ACCEPTED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
STREAMS = ("application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch")
_META_VERSIONS = ("v1", "v1beta1")
_INCLUDE = ("", "Metadata", "Object", "None")


class Form(Struct, frozen=True):
    """`shape` is object, Table, PartialObjectMetadata or …List; `media` what it is encoded as."""

    shape: str = "object"
    media: str = "application/json"
    meta_version: str = "v1"
    include: str = "Metadata"

    @property
    def is_plain(self) -> bool:
        """Whether the object goes out as it is, as JSON."""
        return self.shape == "object" and self.media == "application/json"


_PLAIN = Form()


def form_of(request: Request, *, streams: bool = False) -> Form:
    """The first form in the Accept header that this server can give; `streams` where it may be a watch.

    Raises   Refused (406) when there is none, (400) for a bad includeObject.
    """
    accept = request.headers.get("accept", "")
    if not accept or accept in ("*/*", "application/json"):
        return _PLAIN
    understood = False
    for clause in sorted(accept.split(","), key=_quality, reverse=True):
        media, *parameters = (part.strip() for part in clause.split(";"))
        given = dict(part.partition("=")[::2] for part in parameters)
        if media == "*/*":
            media = "application/json"
        if media not in ("application/json", "application/yaml"):
            continue
        shape = given.get("as", "")
        if not shape:
            return Form(media=media)
        understood = True
        if given.get("g") != "meta.k8s.io" or given.get("v") not in _META_VERSIONS:
            continue
        if shape in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            include = request.first("includeObject") or ""
            if include not in _INCLUDE:
                why = f"includeObject: Invalid value: {quoted(include)}: must be"
                why = f"Unable to convert to Table as requested: {why} 'Metadata', 'Object', 'None', or empty"
                raise bad_request(why)
            return Form(shape=shape, media=media, meta_version=given["v"], include=include or "Metadata")
    raise not_acceptable(_ACCEPTED + (STREAMS if streams else ()), understood=understood)


def _quality(clause: str) -> float:
    _, _, text = clause.partition("q=")
    try:
        return float(text.partition(";")[0]) if text else 1.0
    except ValueError:
        return 0.0


def shaped(form: Form, call: Call, view: Kind, version: str, answer: Object) -> Object:
    """An answer in this form; a list becomes one table, or a list of metadata."""
    if form.shape == "object" or answer.get("kind") == "Status":
        return answer
    items = answer["items"] if answer["kind"] == f"{view.kind}List" else None
    if form.shape != "Table":
        _check_shape(form, view, is_list=items is not None)
    api_version = f"meta.k8s.io/{form.meta_version}"
    if form.shape == "Table":
        table = table_of(form, call, view, version, [answer] if items is None else items)
        metadata = answer["metadata"]
        keep = ("resourceVersion", "continue", "remainingItemCount")
        table["metadata"] = {key: metadata[key] for key in keep if key in metadata}
        return table
    if items is None:
        return metadata_of(answer, api_version)
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": api_version,
        "metadata": answer["metadata"],
        "items": [metadata_of(item, api_version) for item in items],
    }


def _check_shape(form: Form, view: Kind, *, is_list: bool) -> None:
    """Refuse (406) metadata of a list in the form for one object, and the other way about."""
    if form.shape.endswith("List") != is_list:
        hub = view.group.partition(".")[0] or "core"
        found = f"a list (*{hub}.{view.kind}List)" if is_list else f"not a list (*{hub}.{view.kind})"
        message = f"you requested {form.shape}, but the requested object is {found}"
        raise Refused(message, code=406, reason="NotAcceptable", details={})


def metadata_of(obj: Object, api_version: str) -> Object:
    """Only the metadata of an object."""
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": obj["metadata"]}


def table_of(
    form: Form, call: Call, view: Kind, version: str, items: list[Object], *, columns: bool = True
) -> Object:
    """A table with one row for each object (as shown in this version)."""
    strategy = view.strategy
    definitions = [
        {"name": name, "type": type_, "format": format_, "description": "", "priority": priority}
        for name, type_, format_, priority in strategy.columns()
    ]
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{form.meta_version}",
        "metadata": {},
        "columnDefinitions": definitions if columns else [],
        "rows": [_row(form, call, view, version, item) for item in items],
    }


def _row(form: Form, call: Call, view: Kind, version: str, item: Object) -> Object:
    cells = view.strategy.cells(view.from_view(item) if view.from_view is not None else item, call)
    if form.include == "None":
        return {"cells": cells, "object": None}
    if form.include == "Object":
        whole = {**view_of_item(view, version), **item}
        return {"cells": cells, "object": whole}
    return {"cells": cells, "object": metadata_of(item, f"meta.k8s.io/{form.meta_version}")}


def view_of_item(view: Kind, version: str) -> Object:
    """The kind and apiVersion that an item of a list leaves out."""
    return {"kind": view.kind, "apiVersion": f"{view.group}/{version}" if view.group else version}


def encoded(form: Form, obj: Any, *, pretty: bool = False) -> bytes:
    """An answer as bytes."""
    if form.media == "application/yaml":
        return yaml.dump(obj, Dumper=yaml.SafeDumper, sort_keys=False, allow_unicode=True).encode()
    raw = msgspec.json.encode(obj)
    return msgspec.json.format(raw, indent=2) + b"\n" if pretty else raw + b"\n"
