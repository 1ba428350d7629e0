"""From a path to what it names: a resource, an object, a subresource, or a document of the server.

`server.py` dispatches on the `Route`; refusals for paths that are not served are made here.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from muster.apiserver.kinds import Kind, Subresource
from muster.apiserver.statuses import bad_request, method_not_allowed, no_such_path


class Route(NamedTuple):
    """What a path names; `name` "" is the collection, `watched` the old /watch/ form."""

    kind: Kind
    version: str
    namespace: str
    name: str
    sub: Subresource | None
    watched: bool = False


class Catalog:
    """The kinds that are served, found by path or by name."""

    def __init__(self, kinds: Iterable[Kind]) -> None:
        self.kinds = tuple(kinds)
        self.by_name: dict[str, Kind] = {kind.name: kind for kind in self.kinds}
        self._by_path: dict[tuple[str, str, str], Kind] = {
            (kind.group, version, kind.resource): kind for kind in self.kinds for version in kind.versions
        }
        self._by_kind = {
            (kind.group, version, kind.kind): kind for kind in self.kinds for version in kind.versions
        }
        self._subresources: Mapping[tuple[str, str], Subresource] = {
            (kind.name, sub.name): sub for kind in self.kinds for sub in kind.subresources
        }
        self.groups: dict[str, list[str]] = {}
        for kind in self.kinds:
            known = self.groups.setdefault(kind.group, [])
            known += [version for version in kind.versions if version not in known]
        for versions in self.groups.values():
            versions.sort(key=version_order)

    def of_kind(self, api_version: str, kind: str) -> Kind | None:
        """The row of an apiVersion and kind, or None."""
        group, _, version = api_version.rpartition("/")
        return self._by_kind.get((group, version, kind))

    def stored(self, kind: Kind) -> Kind:
        """The row whose objects this row shows: itself, but for views."""
        return self.by_name[kind.stored_as] if kind.stored_as else kind

    def route(self, parts: list[str]) -> Route | None:
        """The resource that the parts of a path name; None where the path is no resource's.

        Raises   Refused where the group is served and the rest is not.
        """
        if parts[0] == "api" and len(parts) > 2:
            group, version, rest = "", parts[1], parts[2:]
        elif parts[0] == "apis" and len(parts) > 3:
            group, version, rest = parts[1], parts[2], parts[3:]
        else:
            return None
        if group not in self.groups:
            return None
        watched = rest[0] == "watch"
        if watched:
            rest = rest[1:] or [""]
        return self._resource(group, version, rest, watched=watched)

    def _resource(self, group: str, version: str, rest: list[str], *, watched: bool) -> Route:
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and ("namespaces", rest[2]) not in self._subresources:
            namespace, rest = rest[1], rest[2:]
            kind = self._by_path.get((group, version, rest[0]))
            if kind is None or not kind.namespaced:
                raise no_such_path()
        found = self._by_path.get((group, version, rest[0]))
        if found is None or len(rest) > 3:
            raise no_such_path()
        name = rest[1] if len(rest) > 1 else ""
        if found.namespaced and name and not namespace:
            raise no_such_path()
        sub = None
        if len(rest) == 3:
            sub = self._subresources.get((found.name, rest[2]))
            if sub is None:
                raise no_such_path()
        return Route(found, version, namespace, name, sub, watched)


def check_name(route: Route) -> None:
    """Refuse (400) a name that no object can have because it would be another path."""
    name = route.name
    if name in (".", ".."):
        raise bad_request(f"Name parameter invalid: \"{name}\": may not be '{name}'")
    if "%" in name:
        raise bad_request(f"Name parameter invalid: \"{name}\": may not contain '%'")


def verb_of(route: Route, method: str, *, watch: bool) -> str:
    """The verb of a request: get, list, watch, create, update, patch, delete or deletecollection.

    Raises   Refused (405) where the path does not take the method.
    """
    verb = _verb(route, method, watch=watch)
    allowed = route.sub.verbs if route.sub is not None else route.kind.verbs
    everywhere = route.kind.namespaced and not route.namespace
    if verb not in allowed or (everywhere and verb not in ("list", "watch")):
        raise method_not_allowed()
    return verb


def _verb(route: Route, method: str, *, watch: bool) -> str:
    if route.watched and method != "GET":
        return ""
    if method == "GET":
        if route.sub is not None:
            return "get"
        if route.watched or (watch and not route.name):
            return "watch"
        return "get" if route.name else "list"
    if method == "POST":
        return "create" if route.sub is not None or not route.name else ""
    if method == "PUT":
        return "update" if route.name else ""
    if method == "PATCH":
        return "patch" if route.name else ""
    if method == "DELETE":
        return "delete" if route.name else "deletecollection"
    return ""


def version_order(version: str) -> tuple[int, int, int]:
    """Sort key: v1 before v1beta1 before v1alpha3, newer before older."""
    for rank, word in ((1, "beta"), (2, "alpha")):
        major, found, minor = version[1:].partition(word)
        if found:
            return rank, -int(major), -int(minor)
    return 0, -int(version[1:]), 0
