"""OpenAPI v3 documents, made from the catalog and the schemas: enough for kubectl to apply and explain.

One document a group and version: the schemas of everything reachable from its kinds, and its paths.
"""

from typing import Any

from muster.apiserver.kinds import Kind, Object, Subresource
from muster.apiserver.routing import Catalog
from muster.apiserver.schemas import Field, ListOf, MapOf, Record, Scalar, Schemas, Type

_SCALARS: dict[str, Object] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "float": {"type": "number", "format": "double"},
    "bytes": {"type": "string", "format": "byte"},
    "object": {"type": "object"},
}
_NAMED: dict[str, tuple[str, Object]] = {
    "time": (
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        {"type": "string", "format": "date-time"},
    ),
    "microtime": (
        "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        {"type": "string", "format": "date-time"},
    ),
    "quantity": (
        "io.k8s.apimachinery.pkg.api.resource.Quantity",
        {"oneOf": [{"type": "string"}, {"type": "number"}]},
    ),
    "intstr": (
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        {"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
    ),
}
_PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
)
_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_METHODS = {"create": "post", "get": "get", "update": "put", "patch": "patch", "delete": "delete"}
_ITEM_VERBS = ("get", "update", "patch", "delete")
_LIST_VERBS = ("list", "create", "deletecollection")
_WRITE_QUERY = ("dryRun", "fieldManager", "fieldValidation")
_LIST_QUERY = (
    "continue",
    "fieldSelector",
    "labelSelector",
    "limit",
    "resourceVersion",
    "timeoutSeconds",
    "watch",
)


def document_of(catalog: Catalog, schemas: Schemas, group: str, version: str) -> Object:
    """The document of one group and version."""
    components: dict[str, Object] = {}
    paths: dict[str, Object] = {}
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    for kind in catalog.kinds:
        if kind.group != group or version not in kind.versions:
            continue
        name = f"{group.partition('.')[0] or 'core'}.{version}/{kind.kind}"
        _add_record(components, schemas.record(name))
        gvk = {"group": group, "version": version, "kind": kind.kind}
        schema = components[_name_of(schemas.record(name))]
        schema["x-kubernetes-group-version-kind"] = [gvk]
        _add_paths(paths, root, kind, gvk, _reference(schemas.record(name)))
    _add_record(components, schemas.record("meta.v1/DeleteOptions"))
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.37.2"},
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": dict(sorted(components.items()))},
    }


def _name_of(record: Record) -> str:
    package, short = record.name.split("/")
    return f"{_META}.{short}" if package == "meta.v1" else f"io.k8s.api.{package}.{short}"


def _reference(record: Record) -> Object:
    return {"$ref": f"#/components/schemas/{_name_of(record)}"}


def _add_record(components: dict[str, Object], record: Record) -> None:
    name = _name_of(record)
    if name in components:
        return
    schema: Object = {"type": "object"}
    components[name] = schema
    required = [field.name for field in record.fields.values() if field.required]
    if required:
        schema["required"] = required
    if record.fields:
        schema["properties"] = {field.name: _property(components, field) for field in record.fields.values()}


def _property(components: dict[str, Object], field: Field) -> Object:
    shown = _type(components, field.type)
    out: Object = {"allOf": [shown]} if "$ref" in shown else dict(shown)
    if field.replaced:
        out["x-kubernetes-patch-strategy"] = "replace"
    if field.merge_key is not None:
        out["x-kubernetes-patch-strategy"] = "merge,retainKeys" if field.retain_keys else "merge"
        if field.merge_key:
            out["x-kubernetes-patch-merge-key"] = field.merge_key
    if field.list_type:
        out["x-kubernetes-list-type"] = field.list_type
    if field.list_keys:
        out["x-kubernetes-list-map-keys"] = list(field.list_keys)
    return out


def _type(components: dict[str, Object], type_: Type) -> Object:
    if isinstance(type_, Record):
        _add_record(components, type_)
        return _reference(type_)
    if isinstance(type_, ListOf):
        return {"type": "array", "items": _type(components, type_.item)}
    if isinstance(type_, MapOf):
        return {"type": "object", "additionalProperties": _type(components, type_.item)}
    assert isinstance(type_, Scalar)
    if type_.form in _NAMED:
        name, schema = _NAMED[type_.form]
        components.setdefault(name, dict(schema))
        return {"$ref": f"#/components/schemas/{name}"}
    if type_.form == "int":
        return {"type": "integer", "format": "int64" if type_.bits > 31 else "int32"}
    return dict(_SCALARS[type_.form])


def _add_paths(paths: dict[str, Object], root: str, kind: Kind, gvk: Object, schema: Object) -> None:
    everywhere = f"{root}/{kind.resource}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.resource}" if kind.namespaced else everywhere
    for verb in _LIST_VERBS:
        if verb in kind.verbs:
            method = {"list": "get", "create": "post", "deletecollection": "delete"}[verb]
            paths.setdefault(collection, _parameters(collection))[method] = _operation(verb, gvk, schema)
            if verb == "list" and kind.namespaced:
                paths.setdefault(everywhere, {})[method] = _operation(verb, gvk, schema)
    item = f"{collection}/{{name}}"
    for verb in _ITEM_VERBS:
        if verb in kind.verbs:
            paths.setdefault(item, _parameters(item))[verb_method(verb)] = _operation(verb, gvk, schema)
    for sub in kind.subresources:
        _add_sub_paths(paths, f"{item}/{sub.name}", sub, gvk, schema)


def _add_sub_paths(
    paths: dict[str, Object], path: str, sub: Subresource, gvk: Object, schema: Object
) -> None:
    spoken = {"group": sub.group, "version": sub.version or "v1", "kind": sub.kind} if sub.kind else gvk
    for verb in sub.verbs:
        operation = _operation(verb, spoken, schema if not sub.kind else {"type": "object"})
        paths.setdefault(path, _parameters(path))[verb_method(verb)] = operation


def verb_method(verb: str) -> str:
    """The HTTP method of a verb on one object, in lower case."""
    return _METHODS[verb]


def _parameters(path: str) -> Object:
    names = [name for name in ("name", "namespace") if f"{{{name}}}" in path]
    return {"parameters": [_parameter(name, "path") for name in names]}


def _parameter(name: str, where: str) -> Object:
    out: Object = {"name": name, "in": where, "schema": {"type": "string", "uniqueItems": True}}
    return out | {"required": True} if where == "path" else out


def _operation(verb: str, gvk: Object, schema: Object) -> Object:
    writes = verb in ("create", "update", "patch")
    query = _WRITE_QUERY if writes else _LIST_QUERY if verb in ("list", "deletecollection") else ()
    if verb == "patch":
        query = (*query, "force")
    operation: Object = {
        "parameters": [_parameter(name, "query") for name in query],
        "responses": {"200": {"description": "OK", "content": {"application/json": {"schema": schema}}}},
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": gvk,
    }
    if verb == "patch":
        body: dict[str, Any] = {media: {"schema": {"type": "object"}} for media in _PATCHES}
        operation["requestBody"] = {"content": body, "required": True}
    elif writes:
        operation["requestBody"] = {"content": {"application/json": {"schema": schema}}, "required": True}
    return operation
