"""API objects of a claims scenario: its namespace, its pool of nodes, and what is there for nobody else.

Names of everything that no namespace holds, topology keys and classes carry the seed.  Comes from
`scenario.py`; next: `play.py`, which sends them.
"""

from collections.abc import Iterator
from typing import Any

from tests.conformance import manifests
from tests.differential.claims.scenario import (
    BACKING,
    CAPACITIES,
    CLASSES,
    DISK_DRIVER,
    INDEX,
    MADE,
    MEMORY,
    NOW,
    PAIR,
    RULES,
    SELECTED,
    WAIT,
    ClaimScenario,
    Short,
)
from tests.differential.objects import CORE, POOL, Made

RESOURCE, STORAGE = "/apis/resource.k8s.io/v1", "/apis/storage.k8s.io/v1"
_WORN = {"key": "worn.test", "value": "x"}
PROVISIONED = "pv.kubernetes.io/provisioned-by"


def namespace_of(scenario: ClaimScenario) -> str:
    again = f"-{scenario.take}" if scenario.take else ""
    return f"c{scenario.seed}{again}"


def own(scenario: ClaimScenario, name: str) -> str:
    """The name of something that no namespace holds."""
    return f"{namespace_of(scenario)}-{name}"


def zone_key(scenario: ClaimScenario) -> str:
    return f"{namespace_of(scenario)}.differential.test/zone"


def provisioner_of(scenario: ClaimScenario) -> str:
    return f"{namespace_of(scenario)}.made.test"


def resource_of(scenario: ClaimScenario, by: str) -> str:
    """The extended resource that a class backs: by the name it gives, or by the class's own."""
    if by == "name":
        return f"{namespace_of(scenario)}.differential.test/dev"
    return f"deviceclass.resource.kubernetes.io/{own(scenario, BACKING)}"


def cluster_objects(scenario: ClaimScenario) -> Iterator[Made]:
    """All but the pods."""
    space = namespace_of(scenario)
    labels = {"kubernetes.io/metadata.name": space, "resource.kubernetes.io/admin-access": "true"}
    metadata = {"name": space, "labels": labels}
    yield Made(f"{CORE}/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    for name, short in scenario.nodes.items():
        yield from _node(scenario, name, short)
    for name, rules in CLASSES.items():
        spec: Short = {"selectors": _selectors(rules)}
        if name == BACKING:
            spec["extendedResourceName"] = resource_of(scenario, by="name")
        yield _made(f"{RESOURCE}/deviceclasses", own(scenario, name), {"spec": spec})
    for short in scenario.taints:
        yield _made(
            f"{RESOURCE}/devicetaintrules", own(scenario, short["rule"]), {"spec": _taint(scenario, short)}
        )
    for short in scenario.slices:
        yield _made(
            f"{RESOURCE}/resourceslices", own(scenario, short["slice"]), {"spec": _slice(scenario, short)}
        )
    yield from _classes(scenario)
    for short in scenario.volumes:
        yield _volume(scenario, short)
    for short in scenario.claims:
        path = f"{RESOURCE}/namespaces/{space}/resourceclaims"
        yield _made(path, short["claim"], {"spec": {"devices": _claim(scenario, short)}})
    for short in scenario.disks:
        path = f"{CORE}/namespaces/{space}/persistentvolumeclaims"
        yield _made(path, short["disk"], {"spec": _disk(scenario, short)})


def pod_object(scenario: ClaimScenario, short: Short, scheduler: str) -> Made:
    selector = {POOL: namespace_of(scenario)}
    if "zone" in short:
        selector[zone_key(scenario)] = short["zone"]
    volumes: list[Any] = [
        {"name": name, "persistentVolumeClaim": {"claimName": name}} for name in short.get("disks", ())
    ]
    if "ephemeral" in short:
        template = {"spec": _disk(scenario, short["ephemeral"])}
        volumes.append({"name": "e", "ephemeral": {"volumeClaimTemplate": template}})
    claims = [{"name": name, "resourceClaimName": name} for name in short.get("claims", ())]
    fields = {"cpu": short["cpu"], "nodeSelector": selector, "volumes": volumes, "resourceClaims": claims}
    if "asks" in short:
        fields["more"] = {resource_of(scenario, short["asks"]["by"]): short["asks"]["count"]}
    manifest = manifests.pod_manifest(short["pod"], fields, scheduler=scheduler)
    return Made(f"{CORE}/namespaces/{namespace_of(scenario)}/pods", manifest)


def provisioned(scenario: ClaimScenario, claim: Short) -> Made:
    """The volume that a provisioner makes for a claim of the API with its node selected."""
    meta = claim["metadata"]
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        **{key: meta[key] for key in ("namespace", "name", "uid")},
    }
    spec = {
        "capacity": claim["spec"]["resources"]["requests"],
        "accessModes": claim["spec"]["accessModes"],
        "storageClassName": claim["spec"]["storageClassName"],
        "persistentVolumeReclaimPolicy": "Retain",
        "claimRef": reference,
        "csi": {"driver": provisioner_of(scenario), "volumeHandle": meta["uid"]},
        "nodeAffinity": {"required": _terms("kubernetes.io/hostname", meta["annotations"][SELECTED])},
    }
    made = _made(f"{CORE}/persistentvolumes", own(scenario, f"made-{meta['name']}"), {"spec": spec})
    made.body["metadata"]["annotations"] = {PROVISIONED: provisioner_of(scenario)}
    return made


def _node(scenario: ClaimScenario, name: str, short: Short) -> Iterator[Made]:
    labels = {zone_key(scenario) if key == "zone" else key: value for key, value in short["labels"].items()}
    offered = {resource_of(scenario, by="name"): short["offers"]} if "offers" in short else {}
    fields = {"cpu": short["cpu"], "labels": labels, "more": offered}
    manifest = manifests.node_manifest(own(scenario, name), fields)
    manifest["metadata"]["labels"][POOL] = namespace_of(scenario)
    yield Made(f"{CORE}/nodes", manifest)
    if "limit" in short:
        drivers = [
            {"name": driver, "nodeID": name, "allocatable": {"count": short["limit"]}}
            for driver in (DISK_DRIVER, provisioner_of(scenario))
        ]
        yield _made(f"{STORAGE}/csinodes", own(scenario, name), {"spec": {"drivers": drivers}})


def _slice(scenario: ClaimScenario, short: Short) -> Short:
    spec: Short = {
        "driver": short["driver"],
        "pool": {
            "name": own(scenario, short["pool"]),
            "generation": short["generation"],
            "resourceSliceCount": short["of"],
        },
    }
    if "counters" in short:
        spec["sharedCounters"] = _counter_sets(short["counters"], "name")
    else:
        spec["devices"] = [_device(scenario, device) for device in short["devices"]]
    if "node" in short:
        spec["nodeName"] = own(scenario, short["node"])
    elif "zone" in short:
        spec["nodeSelector"] = _terms(zone_key(scenario), short["zone"])
    else:
        spec["perDeviceNodeSelection"] = True
    return spec


def _taint(scenario: ClaimScenario, short: Short) -> Short:
    selector = {"driver": short["driver"], "pool": own(scenario, short["pool"])}
    if "device" in short:
        selector["device"] = short["device"]
    return {"deviceSelector": selector, "taint": _WORN | {"effect": short["effect"]}}


def _device(scenario: ClaimScenario, short: Short) -> Short:
    attributes = {INDEX: {"int": short["index"]}, "version": {"version": short["version"]}}
    if "model" in short:
        attributes["model"] = {"string": short["model"]}
    if "pair" in short:
        attributes[PAIR] = {"int": short["pair"]}
    device: Short = {"name": short["device"], "attributes": attributes}
    device["capacity"] = {name: _capacity(short, name) for name in CAPACITIES if name in short}
    if "shared" in short:
        device["allowMultipleAllocations"] = True
    if "cut" in short:
        device["consumesCounters"] = _counter_sets(short["cut"], "counterSet")
    if "taint" in short:
        device["taints"] = [_WORN | {"effect": short["taint"]}]
    if "node" in short:
        device["nodeName"] = own(scenario, short["node"])
    return device


def _counter_sets(counters: Short, key: str) -> list[Short]:
    return [
        {key: name, "counters": {each: {"value": _amount(each, value)} for each, value in found.items()}}
        for name, found in counters.items()
    ]


def _capacity(short: Short, name: str) -> Short:
    """A capacity of a device with the rules for shares of it."""
    capacity: Short = {"value": _amount(name, short[name])}
    rules = short.get("policy", {}).get(name)
    if rules is None:
        return capacity
    policy: Short = {"default": _amount(name, rules["default"])}
    if "values" in rules:
        policy["validValues"] = [_amount(name, value) for value in rules["values"]]
    else:
        policy["validRange"] = {
            word: _amount(name, rules[word]) for word in ("min", "max", "step") if word in rules
        }
    return capacity | {"requestPolicy": policy}


def _amount(name: str, value: int) -> str:
    return f"{value}Gi" if name == MEMORY else str(value)


def _claim(scenario: ClaimScenario, short: Short) -> Short:
    requests = []
    for request in short["requests"]:
        if "first" in request:
            subs = [{"name": each["name"], **_wanted(scenario, each)} for each in request["first"]]
            requests.append({"name": request["name"], "firstAvailable": subs})
        else:
            requests.append({"name": request["name"], "exactly": _wanted(scenario, request)})
    constraints = []
    if "match" in short:
        constraints.append({"matchAttribute": short["match"]})
    if "distinct" in short:
        constraints.append({"distinctAttribute": short["distinct"]})
    return {"requests": requests, **({"constraints": constraints} if constraints else {})}


def _wanted(scenario: ClaimScenario, short: Short) -> Short:
    wanted: Short = {"deviceClassName": own(scenario, short["class"])}
    if short["count"] == "All":
        wanted["allocationMode"] = "All"
    else:
        wanted |= {"allocationMode": "ExactCount", "count": short["count"]}
    if "rules" in short:
        wanted["selectors"] = _selectors(short["rules"])
    if "tolerates" in short:
        wanted["tolerations"] = [{"key": "worn.test", "operator": "Exists"}]
    if "admin" in short:
        wanted["adminAccess"] = True
    if "needs" in short:
        needs = {name: _amount(name, value) for name, value in short["needs"].items()}
        wanted["capacity"] = {"requests": needs}
    return wanted


def _selectors(rules: Any) -> list[Short]:
    return [{"cel": {"expression": RULES[rule].expression}} for rule in rules]


def _classes(scenario: ClaimScenario) -> Iterator[Made]:
    path, nobody = f"{STORAGE}/storageclasses", "kubernetes.io/no-provisioner"
    modes = {WAIT: "WaitForFirstConsumer", NOW: "Immediate"}
    for name, mode in modes.items():
        yield _made(path, own(scenario, name), {"provisioner": nobody, "volumeBindingMode": mode})
    fields: Short = {"provisioner": provisioner_of(scenario), "volumeBindingMode": modes[WAIT]}
    if zones := scenario.storage.get("zones"):
        fields["allowedTopologies"] = [
            {"matchLabelExpressions": [{"key": zone_key(scenario), "values": list(zones)}]}
        ]
    yield _made(path, own(scenario, MADE), fields)
    room = scenario.storage.get("room")
    said = {
        "storageCapacity": room is not None,
        "preventPodSchedulingIfMissing": "demands" in scenario.storage,
    }
    if any(said.values()):
        yield _made(f"{STORAGE}/csidrivers", provisioner_of(scenario), {"spec": said})
    space = namespace_of(scenario)
    for zone, size in (room or {}).items():
        body = {
            "storageClassName": own(scenario, MADE),
            "capacity": f"{size}Gi",
            "nodeTopology": {"matchLabels": {zone_key(scenario): zone}},
        }
        yield _made(f"{STORAGE}/namespaces/{space}/csistoragecapacities", f"room-{zone}", body)


def _volume(scenario: ClaimScenario, short: Short) -> Made:
    name = own(scenario, short["volume"])
    spec: Short = {
        "capacity": {"storage": f"{short['size']}Gi"},
        "accessModes": short["modes"],
        "storageClassName": own(scenario, short["class"]),
        "persistentVolumeReclaimPolicy": "Retain",
    }
    if "driver" in short:
        spec["csi"] = {"driver": short["driver"], "volumeHandle": name}
    else:
        spec["hostPath"] = {"path": "/disk"}
    if "node" in short:
        terms = _terms("kubernetes.io/hostname", own(scenario, short["node"]))
        spec["nodeAffinity"] = {"required": terms}
    if "zone" in short:
        spec["nodeAffinity"] = {"required": _terms(zone_key(scenario), short["zone"])}
    made = _made(f"{CORE}/persistentvolumes", name, {"spec": spec})
    made.body["metadata"]["labels"] = dict(short.get("labels", {}))
    return made


def _disk(scenario: ClaimScenario, short: Short) -> Short:
    spec: Short = {
        "storageClassName": own(scenario, short["class"]),
        "accessModes": [short["mode"]],
        "resources": {"requests": {"storage": f"{short['size']}Gi"}},
    }
    if "tier" in short:
        spec["selector"] = {"matchLabels": {"tier": short["tier"]}}
    return spec


def _terms(key: str, value: str) -> Short:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}


KINDS = {
    "deviceclasses": "DeviceClass",
    "devicetaintrules": "DeviceTaintRule",
    "resourceslices": "ResourceSlice",
    "resourceclaims": "ResourceClaim",
    "storageclasses": "StorageClass",
    "csidrivers": "CSIDriver",
    "csinodes": "CSINode",
    "csistoragecapacities": "CSIStorageCapacity",
    "persistentvolumes": "PersistentVolume",
    "persistentvolumeclaims": "PersistentVolumeClaim",
}


def _made(path: str, name: str, fields: Short) -> Made:
    base, _, resource = path.rpartition("/")
    version = base.partition("/namespaces/")[0].removeprefix("/apis/").removeprefix("/api/")
    body = {"apiVersion": version, "kind": KINDS[resource], "metadata": {"name": name}, **fields}
    return Made(path, body)
