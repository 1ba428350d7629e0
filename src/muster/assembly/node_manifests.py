"""Node objects for an embedded cluster: out of a shape ("cpu=8,memory=64Gi") or of a manifest file's text.

In comes what the user typed or wrote; out go plain Node objects to be created on the embedded server.  A node
of a file may have `devices` beside its `metadata`: see `controllers/device_descriptions.py`.
Every mistake is a `ConfigError` that names the file, the document, the field and the cure.
Next: `assembly/embedded.py`, which creates them.
"""

import contextlib
import difflib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from muster.api.quantity import QuantityError, parse_quantity
from muster.base.errors import ConfigError
from muster.cluster.axes import CPU, MEMORY, PODS
from muster.controllers.device_descriptions import read_pools
from muster.controllers.device_driver import DEVICES

Object = dict[str, Any]

DEFAULT_SHAPE = "cpu=8,memory=64Gi,nvidia.com/gpu=1"
NODE_COUNT_MAX = 100_000
_PODS_PER_NODE = "110"
_STANDARD = (CPU, MEMORY, "ephemeral-storage", PODS)
_SHAPE_EXAMPLE = "write it like cpu=8,memory=64Gi,nvidia.com/gpu=1"

# The fields of a Node; None: anything may stand there.  From core/v1, Kubernetes 1.37.
_TAINT = {"key": None, "value": None, "effect": None, "timeAdded": None}
_NODE: Mapping[str, Any] = {
    "apiVersion": None,
    "kind": None,
    "devices": None,
    "metadata": {
        **dict.fromkeys(("name", "labels", "annotations", "uid", "resourceVersion", "generation")),
        **dict.fromkeys(("creationTimestamp", "managedFields", "finalizers", "ownerReferences", "selfLink")),
    },
    "spec": {
        "taints": [_TAINT],
        **dict.fromkeys(("unschedulable", "podCIDR", "podCIDRs", "providerID", "externalID", "configSource")),
    },
    "status": {
        **dict.fromkeys(
            ("capacity", "allocatable", "conditions", "addresses", "images", "nodeInfo", "phase")
        ),
        **dict.fromkeys(("daemonEndpoints", "volumesInUse", "volumesAttached", "config", "features")),
        **dict.fromkeys(("runtimeHandlers", "declaredFeatures")),
    },
}
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def nodes_from_shape(count: int, shape: str) -> list[Object]:
    """Give `count` nodes n1, n2, … of one shape: resource=quantity pairs, separated by commas.

    A node takes 110 pods unless the shape says otherwise.
    Raises   ConfigError for a count below 0 or above 100,000 and for a shape that cannot be read.
    """
    if not 0 <= count <= NODE_COUNT_MAX:
        raise ConfigError(
            f"must be between 0 and {NODE_COUNT_MAX}, got {count}",
            path="--nodes",
            hint="give a number of nodes, or a file of Node manifests",
        )
    allocatable = _parse_shape(shape)
    return [_node(f"n{number}", allocatable) for number in range(1, count + 1)]


def nodes_from_text(text: str, source: str) -> list[Object]:
    """Give the Node objects of a YAML or JSON text with one or several documents, or a List.

    `source` is the file's name, for messages.  What is left out is filled: `allocatable` and `capacity` from
    each other, `pods` with 110.
    Raises   ConfigError naming file, document, field and cure; also when there is no node at all.
    """
    nodes: list[Object] = []
    seen: dict[str, str] = {}
    pools: dict[tuple[str, str], str] = {}
    for place, document in _documents(text, source):
        _check_node(document, place)
        name = document["metadata"]["name"]
        if name in seen:
            raise ConfigError(
                f"a second node named {name!r}",
                path=f"{place}: $.metadata.name",
                hint=f"the first is {seen[name]}",
            )
        seen[name] = place
        for pool in read_pools(document.get("devices"), name, f"{place}: $.devices"):
            other = pools.setdefault((pool.driver, pool.name), name)
            if other != name:
                raise ConfigError(
                    f"pool {pool.name!r} of {pool.driver} is that of node {other!r}",
                    path=f"{place}: $.devices",
                    hint="give each node's pool a name of its own, or leave the name out",
                )
        nodes.append(_completed(document))
    if not nodes:
        raise ConfigError("no Node in it", path=source, hint="--nodes 0 starts a cluster without nodes")
    return nodes


def _parse_shape(shape: str) -> dict[str, str]:
    amounts: dict[str, str] = {}
    for part in shape.split(","):
        resource, separator, quantity = (text.strip() for text in part.partition("="))
        if not separator or not resource:
            raise ConfigError(f"{part!r} is not resource=quantity", path="--node-shape", hint=_SHAPE_EXAMPLE)
        if resource in amounts:
            raise ConfigError(f"{resource} is given twice", path="--node-shape", hint=_SHAPE_EXAMPLE)
        _check_resource(resource, quantity, f"--node-shape: {resource}")
        amounts[resource] = quantity
    return {**amounts, PODS: amounts.get(PODS, _PODS_PER_NODE)}


def _node(name: str, allocatable: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "spec": {},
        "status": {"capacity": dict(allocatable), "allocatable": dict(allocatable)},
    }


def _documents(text: str, source: str) -> Iterator[tuple[str, Object]]:
    """Walk the documents, opening Lists, with the words that name each place."""
    for number, document in enumerate(_load(text, source), start=1):
        place = f"{source}: document {number}"
        if document is None:
            continue
        if not isinstance(document, dict):
            raise ConfigError(
                "not an object", path=place, hint="a Node starts with apiVersion: v1, kind: Node"
            )
        if str(document.get("kind", "")).endswith("List"):
            for index, item in enumerate(document.get("items") or []):
                yield f"{place}: $.items[{index}]", item
        else:
            yield place, document


def _load(text: str, source: str) -> list[Any]:
    if text.lstrip().startswith("{"):  # YAML does not know JSON's escapes for characters beyond 16 bits
        with contextlib.suppress(msgspec.DecodeError, RecursionError):
            return [msgspec.json.decode(text)]
    try:
        return list(yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, RecursionError) as error:
        where, what = _yaml_fault(error)
        raise ConfigError(what, path=f"{source}{where}", hint="the file must be YAML or JSON") from error


def _yaml_fault(error: Exception) -> tuple[str, str]:
    mark = getattr(error, "problem_mark", None)
    where = f": line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
    return where, str(
        getattr(error, "problem", None) or getattr(error, "reason", None) or "nested too deeply"
    )


def _check_node(document: object, place: str) -> None:
    if not isinstance(document, dict):
        raise ConfigError("not an object", path=place, hint="a Node starts with apiVersion: v1, kind: Node")
    for field, wanted in (("kind", "Node"), ("apiVersion", "v1")):
        if document.get(field) != wanted:
            raise ConfigError(
                f"must be {wanted}, got {document.get(field)!r}",
                path=f"{place}: $.{field}",
                hint="only nodes belong into this file; create the rest with kubectl apply",
            )
    _check_fields(document, _NODE, f"{place}: $")
    name = (document.get("metadata") or {}).get("name")
    if not isinstance(name, str) or not name:
        raise ConfigError("required", path=f"{place}: $.metadata.name", hint="give the node a name")
    annotations = document["metadata"].get("annotations") or {}
    if not isinstance(annotations, dict):
        raise ConfigError(f"must be an object, got {annotations!r}", path=f"{place}: $.metadata.annotations")
    if document.get("devices") and DEVICES in annotations:
        raise ConfigError(
            "said twice", path=f"{place}: $.metadata.annotations.{DEVICES}", hint="keep $.devices only"
        )
    for index, taint in enumerate((document.get("spec") or {}).get("taints") or []):
        if taint.get("effect") not in _EFFECTS:
            raise ConfigError(
                f"must be one of {', '.join(_EFFECTS)}, got {taint.get('effect')!r}",
                path=f"{place}: $.spec.taints[{index}].effect",
            )
    for list_name in ("capacity", "allocatable"):
        amounts = (document.get("status") or {}).get(list_name) or {}
        _check_amounts(amounts, f"{place}: $.status.{list_name}")


def _check_fields(value: object, known: Any, path: str) -> None:
    """Refuse what is not a field of a Node, and what is of the wrong kind of value."""
    if known is None or value is None:
        return
    if isinstance(known, list):
        if not isinstance(value, list):
            raise ConfigError(f"must be a list, got {value!r}", path=path)
        for index, item in enumerate(value):
            _check_fields({} if item is None else item, known[0], f"{path}[{index}]")
        return
    if not isinstance(value, dict):
        raise ConfigError(f"must be an object, got {value!r}", path=path)
    for field, part in value.items():
        if field not in known:
            raise ConfigError(f"no such field: {field!r}", path=path, hint=_nearest(str(field), known))
        _check_fields(part, known[field], f"{path}.{field}")


def _nearest(field: str, known: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(field, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(sorted(known))}"


def _check_amounts(amounts: object, path: str) -> None:
    if not isinstance(amounts, dict):
        raise ConfigError(f"must be an object of resource: quantity, got {amounts!r}", path=path)
    for resource, quantity in amounts.items():
        _check_resource(str(resource), quantity, f"{path}.{resource}")


def _check_resource(resource: str, quantity: object, path: str) -> None:
    if not (resource in _STANDARD or "/" in resource or resource.startswith("hugepages-")):
        near = difflib.get_close_matches(resource, _STANDARD, n=1, cutoff=0.7)
        cure = (
            f"did you mean {near[0]!r}?" if near else "extended resources have a domain, like nvidia.com/gpu"
        )
        raise ConfigError(f"no such resource: {resource!r}", path=path, hint=cure)
    try:
        amount = parse_quantity(quantity) if isinstance(quantity, str | int | float) else None
    except QuantityError:
        amount = None
    if amount is None or amount < 0 or isinstance(quantity, bool):
        raise ConfigError(
            f"not a quantity: {quantity!r}", path=path, hint="a number with an optional suffix: 8, 500m, 64Gi"
        )


def _completed(document: Object) -> Object:
    status = dict(document.get("status") or {})
    allocatable = status.get("allocatable") or status.get("capacity") or {}
    allocatable = {PODS: _PODS_PER_NODE, **{name: str(amount) for name, amount in allocatable.items()}}
    status["allocatable"] = allocatable
    status["capacity"] = status.get("capacity") or dict(allocatable)
    found = {**document, "spec": document.get("spec") or {}, "status": status}
    devices = found.pop("devices", None)
    if devices:
        metadata = found["metadata"]
        said = {DEVICES: msgspec.json.encode(devices).decode()}
        found["metadata"] = {**metadata, "annotations": {**(metadata.get("annotations") or {}), **said}}
    return found
