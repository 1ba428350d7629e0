"""Stored objects as a version of the API shows them, and what is only a part of them: metadata, tables.

`answers.py` picks the form that the client asked for.
"""

from muster.apiserver.kinds import Kind, Object


def view_of(view: Kind, version: str, obj: Object) -> Object:
    """A stored object in this version of this kind; it shares its parts with the stored one."""
    api_version = f"{view.group}/{version}" if view.group else version
    if view.to_view is not None:
        obj = view.to_view(obj)
    if obj["apiVersion"] == api_version:
        return obj
    return {**obj, "apiVersion": api_version}


def without_type(obj: Object) -> Object:
    """An object as an item of a list, where kind and apiVersion are not repeated."""
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}
