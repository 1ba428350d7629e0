"""Strategic merge patches: merges that know, from the schema, which lists are merged and by what key.

Directives: `$patch` (delete, replace, merge), `$retainKeys`, `$setElementOrder/LIST`,
`$deleteFromPrimitiveList/LIST`.  Source: k8s.io/apimachinery util/strategicpatch.
"""

from typing import Any

from muster.apiserver.kinds import Object
from muster.apiserver.schemas import Field, ListOf, MapOf, Record, Type

_PATCH, _RETAIN = "$patch", "$retainKeys"
_ORDER, _DELETE = "$setElementOrder/", "$deleteFromPrimitiveList/"


class PatchError(ValueError):
    """A patch that cannot be applied."""


def merge_strategically(record: Record, current: Object, patch: Object) -> Object:
    """The object that the patch makes of `current`; it may share parts with both.

    Raises   PatchError.
    """
    return _merge_map(record, current, patch)


def _merge_map(type_: Type | None, original: Object, patch: Object) -> Object:
    if _PATCH in patch:
        directive = patch[_PATCH]
        rest = {key: value for key, value in patch.items() if key != _PATCH}
        if directive == "replace":
            return rest
        if directive == "delete":
            return {}
        if directive != "merge":
            raise PatchError(f"unknown patch type: {directive} in map: {go_text(patch)}")
        patch = rest
    out = _retained(original, patch)
    for key, value in patch.items():
        if key.startswith(_DELETE):
            name = key.removeprefix(_DELETE)
            if isinstance(out.get(name), list):
                gone = {_identity(item, "") for item in _list_of(value)}
                out[name] = [item for item in out[name] if _identity(item, "") not in gone]
    for key, value in patch.items():
        if key == _RETAIN or key.startswith((_ORDER, _DELETE)):
            continue
        field, inner = _field_of(type_, key)
        order = patch.get(_ORDER + key)
        _merge_entry(out, key, value, field, inner, order)
    for key, value in patch.items():
        name = key.removeprefix(_ORDER)
        if key.startswith(_ORDER) and name not in patch and isinstance(out.get(name), list):
            field, _ = _field_of(type_, name)
            merge_key = field.merge_key if field is not None else ""
            out[name] = _ordered(out[name], _list_of(value), out[name], merge_key or "")
    return out


def _retained(original: Object, patch: Object) -> Object:
    keys = patch.get(_RETAIN)
    if keys is None:
        return dict(original)
    kept = _list_of(keys)
    return {key: value for key, value in original.items() if key in kept}


def _list_of(value: Any) -> list[Any]:
    if not isinstance(value, list):
        found = {str: "string", bool: "bool", dict: "map[string]interface {}"}.get(type(value), "int64")
        raise PatchError(f"expected a []interface {{}}, but received a {found}")
    return value


def _field_of(type_: Type | None, key: str) -> tuple[Field | None, Type | None]:
    """The field (where the type has fields) and the type of what is under a key."""
    if isinstance(type_, Record):
        field = type_.fields.get(key)
        return field, field.type if field is not None else None
    if isinstance(type_, MapOf):
        return None, type_.item
    return None, None


def _merge_entry(
    out: Object, key: str, value: Any, field: Field | None, inner: Type | None, order: Any
) -> None:
    if value is None:
        out.pop(key, None)
        return
    old = out.get(key)
    if field is not None and field.replaced:
        out[key] = value
    elif isinstance(value, dict) and isinstance(old, dict):
        out[key] = _merge_map(inner, old, value)
    elif isinstance(value, list) and isinstance(old, list) and field is not None:
        if field.merge_key is None:
            out[key] = value
            return
        item = inner.item if isinstance(inner, ListOf) else None
        out[key] = _merge_list(item, old, value, field.merge_key)
        if order is not None:
            out[key] = _ordered(out[key], _list_of(order), old, field.merge_key)
    elif not _has_directive(value):
        out[key] = _without_directives(value)


def _without_directives(value: Any) -> Any:
    """What a patch says where nothing was before: without its directives, nulls and deletions."""
    if isinstance(value, dict):
        return {
            key: _without_directives(item)
            for key, item in value.items()
            if item is not None and not key.startswith("$") and not _has_directive(item)
        }
    if isinstance(value, list):
        return [_without_directives(item) for item in value if not _has_directive(item)]
    return value


def _has_directive(item: Any) -> bool:
    return isinstance(item, dict) and _PATCH in item


def go_text(value: Any) -> str:
    """A JSON value as Go prints it in passing: map[a:1 b:[x y]]."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_text(item)}' for key, item in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_text(item) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    return "<nil>" if value is None else str(value)


def _merge_list(type_: Type | None, original: list[Any], patch: list[Any], merge_key: str) -> list[Any]:
    if len({isinstance(item, dict) for item in [*original, *patch]}) > 1:
        raise PatchError(f"list element types are not identical: {go_text([original, patch])}")
    if not any(isinstance(item, dict) for item in patch):
        places = _places(original, "")
        merged = [*original, *(item for item in patch if _identity(item, "") not in places)]
        return _ordered(merged, patch, original, "")
    if not merge_key:
        raise PatchError("cannot merge lists without merge key")
    original, patch = _apply_directives(original, patch, merge_key)
    merged = list(original)
    places = _places(merged, merge_key)
    for item in patch:
        at = places.setdefault(_identity(item, merge_key), len(merged))
        if at == len(merged):
            merged.append(_without_directives(item))
        else:
            merged[at] = _merge_map(type_, merged[at], item)
    return _ordered(merged, patch, original, merge_key)


def _apply_directives(original: list[Any], patch: list[Any], merge_key: str) -> tuple[list[Any], list[Any]]:
    """Do what items with `$patch` ask; gives the list that is left, and the items to merge into it."""
    plain: list[Any] = []
    deleted: set[str] = set()
    replaces = False
    for item in patch:
        directive = item.get(_PATCH)
        if directive == "replace":
            replaces = True
            continue
        if merge_key not in item:
            raise PatchError(f"map: {go_text(item)} does not contain declared merge key: {merge_key}")
        if directive == "delete":
            deleted.add(_identity(item, merge_key))
        elif directive is None or directive == "merge":
            plain.append(item)
        else:
            raise PatchError(f"unknown patch type found: {directive}")
    kept = [item for item in original if _identity(item, merge_key) not in deleted]
    return ([], plain) if replaces else (kept, plain)


def _identity(item: Any, merge_key: str) -> str:
    """What makes an item of a list the same as another: the value of its key, or all of it."""
    value = item.get(merge_key) if merge_key and isinstance(item, dict) else item
    return value if isinstance(value, str) else repr(value)


def _places(items: list[Any], merge_key: str) -> dict[str, int]:
    """Where each item of a list stands, by its identity."""
    places: dict[str, int] = {}
    for index, item in enumerate(items):
        places.setdefault(_identity(item, merge_key), index)
    return places


def _ordered(merged: list[Any], patch: list[Any], server: list[Any], merge_key: str) -> list[Any]:
    """The merged items: those of the patch in its order, the others in the server's, woven together."""
    in_patch, in_server = _places(patch, merge_key), _places(server, merge_key)
    mine: list[tuple[int, Any]] = []
    others: list[tuple[int, Any]] = []
    for item in merged:
        identity = _identity(item, merge_key)
        if identity in in_patch:
            mine.append((in_patch[identity], item))
        else:
            others.append((in_server.get(identity, len(server)), item))
    mine.sort(key=lambda pair: pair[0])
    others.sort(key=lambda pair: pair[0])
    out: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(mine):
        place = in_server.get(_identity(mine[right][1], merge_key))
        if place is not None and others[left][0] < place:
            out.append(others[left][1])
            left += 1
        else:
            out.append(mine[right][1])
            right += 1
    return out + [item for _, item in others[left:]] + [item for _, item in mine[right:]]
