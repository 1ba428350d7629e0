"""What the API fills into a pod, or into the template of one, when it is decoded."""

import re

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.fields import items, mapping, text
from muster.apiserver.strategies.resources import default_pod_requests, default_requests, round_up

CONTAINER_LISTS = ("initContainers", "containers", "ephemeralContainers")
_IMAGE = re.compile(
    r"(?P<name>[^@]*?)(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?P<digest>@[A-Za-z0-9]+:[0-9a-fA-F]+)?"
)
_FILE_MODE = 0o644
_PROBE_DEFAULTS = (
    ("timeoutSeconds", 1),
    ("periodSeconds", 10),
    ("successThreshold", 1),
    ("failureThreshold", 3),
)
_MODED_VOLUMES = ("configMap", "secret", "projected", "downwardAPI")
_VOLUME_FIELDS_THAT_ARE_NO_SOURCE = frozenset({"name"})


def default_pod_spec(spec: Object) -> None:
    """Everything that a pod and a pod template get alike."""
    spec.setdefault("restartPolicy", "Always")
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("terminationGracePeriodSeconds") is None:
        spec["terminationGracePeriodSeconds"] = 30
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    _default_account(spec)
    for volume in items(spec, "volumes"):
        _default_volume(volume)
    for key in CONTAINER_LISTS:
        for container in items(spec, key):
            _default_container(container, host_network=bool(spec.get("hostNetwork")))
    if spec.get("overhead"):
        round_up(spec["overhead"])


def default_pod(spec: Object) -> None:
    """What a pod gets and a template does not: requests from limits, service links."""
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    for key in CONTAINER_LISTS[:2]:
        for container in items(spec, key):
            if mapping(container, "resources"):
                default_requests(container["resources"])
    default_pod_requests(spec)


def _default_account(spec: Object) -> None:
    """The two names of the service account say the same."""
    name = text(spec, "serviceAccountName") or text(spec, "serviceAccount")
    if name:
        spec["serviceAccountName"] = spec["serviceAccount"] = name


def _default_volume(volume: Object) -> None:
    if not any(key not in _VOLUME_FIELDS_THAT_ARE_NO_SOURCE for key in volume):
        volume["emptyDir"] = {}
    for key in _MODED_VOLUMES:
        source = volume.get(key)
        if isinstance(source, dict) and source.get("defaultMode") is None:
            source["defaultMode"] = _FILE_MODE
    path = volume.get("hostPath")
    if isinstance(path, dict) and path.get("type") is None:
        path["type"] = ""


def _default_container(container: Object, *, host_network: bool) -> None:
    if not container.get("terminationMessagePath"):
        container["terminationMessagePath"] = "/dev/termination-log"
    if not container.get("terminationMessagePolicy"):
        container["terminationMessagePolicy"] = "File"
    if not container.get("imagePullPolicy"):
        container["imagePullPolicy"] = pull_policy(text(container, "image"))
    for port in items(container, "ports"):
        if not port.get("protocol"):
            port["protocol"] = "TCP"
        if host_network and not port.get("hostPort") and port.get("containerPort"):
            port["hostPort"] = port["containerPort"]
    for variable in items(container, "env"):
        reference = mapping(variable, "valueFrom").get("fieldRef")
        if isinstance(reference, dict) and not reference.get("apiVersion"):
            reference["apiVersion"] = "v1"
    for key in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(container.get(key), dict):
            _default_probe(container[key])
    for hook in mapping(container, "lifecycle").values():
        if isinstance(hook, dict):
            _default_http(hook.get("httpGet"))
    for amounts in ("limits", "requests"):
        round_up(mapping(mapping(container, "resources"), amounts))


def _default_probe(probe: Object) -> None:
    _default_http(probe.get("httpGet"))
    if isinstance(probe.get("grpc"), dict) and probe["grpc"].get("service") is None:
        probe["grpc"]["service"] = ""
    defaults = (
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    )
    for key, value in defaults:
        if not probe.get(key):
            probe[key] = value


def _default_http(action: object) -> None:
    if isinstance(action, dict):
        action["path"] = action.get("path") or "/"
        action["scheme"] = action.get("scheme") or "HTTP"


def pull_policy(image: str) -> str:
    """Always for `latest` or no tag, else IfNotPresent."""
    match = _IMAGE.fullmatch(image)
    if match is None or match["name"] != match["name"].lower():
        return "IfNotPresent"
    tag = match["tag"] or ("" if match["digest"] else "latest")
    return "Always" if tag == "latest" else "IfNotPresent"
