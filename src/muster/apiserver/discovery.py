"""What the server serves, as clients ask for it: /api, /apis, and the resources of each version.

Everything comes from the catalog's rows.  Two forms: the old one, a document a version, and the aggregated
one, which kubectl takes.
"""

from muster.apiserver.kinds import Kind, Object, Subresource
from muster.apiserver.routing import Catalog

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def api_versions() -> Object:
    """/api."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [],
    }


def api_groups(catalog: Catalog) -> Object:
    """/apis."""
    groups = [_group(catalog, group) for group in catalog.groups if group]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def api_group(catalog: Catalog, group: str) -> Object:
    """/apis/GROUP."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(catalog, group)}


def _group(catalog: Catalog, group: str) -> Object:
    versions = [
        {"groupVersion": f"{group}/{version}", "version": version} for version in catalog.groups[group]
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_resources(catalog: Catalog, group: str, version: str) -> Object:
    """/api/v1 and /apis/GROUP/VERSION."""
    resources: list[Object] = []
    for kind in _kinds(catalog, group, version):
        row: Object = {
            "name": kind.resource,
            "singularName": kind.singular,
            "namespaced": kind.namespaced,
            "kind": kind.kind,
            "verbs": list(kind.verbs),
        }
        if kind.short_names:
            row["shortNames"] = list(kind.short_names)
        if kind.categories:
            row["categories"] = list(kind.categories)
        resources.append(row)
        resources += [_legacy_sub(kind, sub) for sub in kind.subresources]
    out: Object = {"kind": "APIResourceList"}
    if group:
        out["apiVersion"] = "v1"
    out["groupVersion"] = f"{group}/{version}" if group else version
    out["resources"] = sorted(resources, key=lambda row: str(row["name"]))
    return out


def _legacy_sub(kind: Kind, sub: Subresource) -> Object:
    row: Object = {
        "name": f"{kind.resource}/{sub.name}",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": sub.kind or kind.kind,
        "verbs": list(sub.verbs),
    }
    if sub.group:
        row["group"] = sub.group
        row["version"] = sub.version
    return row


def aggregated(catalog: Catalog, *, core: bool) -> Object:
    """/api or /apis in the aggregated form."""
    items = [
        _aggregated_group(catalog, group, versions)
        for group, versions in catalog.groups.items()
        if core == (group == "")
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    }


def _aggregated_group(catalog: Catalog, group: str, versions: list[str]) -> Object:
    shown = []
    for version in versions:
        resources = [_aggregated_resource(kind) for kind in _kinds(catalog, group, version)]
        resources.sort(key=lambda row: str(row["resource"]))
        shown.append({"version": version, "resources": resources, "freshness": "Current"})
    return {"metadata": {"name": group} if group else {}, "versions": shown}


def _aggregated_resource(kind: Kind) -> Object:
    row: Object = {
        "resource": kind.resource,
        "responseKind": {"group": "", "version": "", "kind": kind.kind},
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        row["shortNames"] = list(kind.short_names)
    if kind.categories:
        row["categories"] = list(kind.categories)
    if kind.subresources:
        row["subresources"] = [
            {
                "subresource": sub.name,
                "responseKind": {
                    "group": sub.group,
                    "version": sub.version,
                    "kind": sub.kind or kind.kind,
                },
                "verbs": list(sub.verbs),
            }
            for sub in kind.subresources
        ]
    return row


def _kinds(catalog: Catalog, group: str, version: str) -> list[Kind]:
    return [kind for kind in catalog.kinds if kind.group == group and version in kind.versions]
