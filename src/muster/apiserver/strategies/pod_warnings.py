"""What is allowed in a pod and probably not meant: one text each, sent as Warning headers at creation."""

from collections.abc import Iterator

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.fields import items, mapping, text
from muster.apiserver.strategies.names import dns_label
from muster.apiserver.strategies.pod_defaults import CONTAINER_LISTS
from muster.apiserver.strategies.pod_placement import PREFERRED, REQUIRED
from muster.apiserver.strategies.resources import is_whole

# An old label → since when it is deprecated, and the label to use.
_OLD_LABELS = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
}


def pod_warnings(pod: Object) -> Iterator[str]:
    """The warnings of a new pod, in stock's order."""
    spec = mapping(pod, "spec")
    if problems := dns_label(text(mapping(pod, "metadata"), "name")):
        yield (
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        )
    for key in mapping(spec, "nodeSelector"):
        if key in _OLD_LABELS:
            since, better = _OLD_LABELS[key]
            yield f'spec.nodeSelector[{key}]: deprecated since {since}; use "{better}" instead'
    yield from _affinity_warnings(mapping(mapping(spec, "affinity"), "nodeAffinity"))
    for index, constraint in enumerate(items(spec, "topologySpreadConstraints")):
        path = f"spec.topologySpreadConstraints[{index}]"
        yield from _old_label(f"{path}.topologyKey", text(constraint, "topologyKey"))
        if constraint.get("labelSelector") is None:
            yield f"{path}.labelSelector: a null labelSelector results in matching no pod"
    for key in CONTAINER_LISTS:
        for index, container in enumerate(items(spec, key)):
            yield from _container_warnings(f"spec.{key}[{index}]", container)


def _old_label(path: str, key: str) -> Iterator[str]:
    if key in _OLD_LABELS:
        since, better = _OLD_LABELS[key]
        yield f'{path}: {key} is deprecated since {since}; use "{better}" instead'


def _affinity_warnings(affinity: Object) -> Iterator[str]:
    path = "spec.affinity.nodeAffinity"
    required = items(mapping(affinity, REQUIRED), "nodeSelectorTerms")
    terms = [(f"{path}.{REQUIRED}.nodeSelectorTerms[{i}]", term) for i, term in enumerate(required)]
    terms += [
        (f"{path}.{PREFERRED}[{i}].preference", mapping(term, "preference"))
        for i, term in enumerate(items(affinity, PREFERRED))
    ]
    for where, term in terms:
        for index, requirement in enumerate(items(term, "matchExpressions")):
            yield from _old_label(f"{where}.matchExpressions[{index}].key", text(requirement, "key"))


def _container_warnings(path: str, container: Object) -> Iterator[str]:
    for kind in ("limits", "requests"):
        value = mapping(mapping(container, "resources"), kind).get("memory")
        if value is not None and not is_whole(value):
            where = f"{path}.resources.{kind}[memory]"
            yield f'{where}: fractional byte value "{value}" is invalid, must be an integer'
    names: set[str] = set()
    for index, variable in enumerate(items(container, "env")):
        name = text(variable, "name")
        if name in names:
            yield (
                f'{path}.env[{index}]: hides previous definition of "{name}", which may be dropped when '
                "using apply"
            )
        names.add(name)
    yield from _port_warnings(f"{path}.ports", items(container, "ports"))


def _port_warnings(path: str, ports: list[Object]) -> Iterator[str]:
    first: dict[tuple[object, ...], int] = {}
    for index, port in enumerate(ports):
        what = tuple(port.get(key) or "" for key in ("containerPort", "protocol", "hostPort", "hostIP"))
        if what in first:
            yield f"{path}[{index}]: duplicate port definition with {path}[{first[what]}]"
        first.setdefault(what, index)
