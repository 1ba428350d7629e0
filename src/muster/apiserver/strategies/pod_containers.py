"""Validation of a pod's containers and volumes."""

import re
from collections.abc import Iterator

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    not_found,
    not_supported,
    required,
    text,
)
from muster.apiserver.strategies.names import dns_label
from muster.apiserver.strategies.resources import validate_resources

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_PORT_RANGE = "must be between 1 and 65535, inclusive"
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_VARIABLE_NAME = re.compile(r"[ -<>-~]+")
_VARIABLE_TEXT = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def validate_volumes(path: str, volumes: list[Object]) -> list[Cause]:
    """Names unique, one source each."""
    found: list[Cause] = []
    seen: set[str] = set()
    for index, volume in enumerate(volumes):
        here, name = f"{path}[{index}]", text(volume, "name")
        sources = sorted(key for key in volume if key != "name")
        if len(sources) > 1:
            found.append(forbidden(f"{here}.{sources[-1]}", "may not specify more than 1 volume type"))
            continue
        if not name:
            found.append(required(f"{here}.name"))
        else:
            found += invalid_each(f"{here}.name", name, dns_label(name))
        if name in seen:
            found.append(duplicate(f"{here}.name", name))
        seen.add(name)
        claim = volume.get("persistentVolumeClaim")
        if isinstance(claim, dict) and not text(claim, "claimName"):
            found.append(required(f"{here}.persistentVolumeClaim.claimName"))
    return found


def validate_containers(path: str, spec: Object) -> list[Cause]:
    """Ordinary, init and ephemeral containers, in this order; names are unique over all."""
    if not items(spec, "containers"):
        return [required(f"{path}.containers"), *_validate_init(path, spec, set())]
    volumes = frozenset(text(volume, "name") for volume in items(spec, "volumes"))
    claims = frozenset(text(claim, "name") for claim in items(spec, "resourceClaims"))
    host_network = bool(spec.get("hostNetwork"))
    found: list[Cause] = []
    seen: set[str] = set()
    for index, container in enumerate(items(spec, "containers")):
        here = f"{path}.containers[{index}]"
        found += _validate_container(here, container, volumes, claims, host_network=host_network)
        found += _validate_unique(here, container, seen)
        found += _validate_restart(here, container)
        found += _validate_probes(here, container)
    found += _validate_host_ports(f"{path}.containers", items(spec, "containers"))
    return found + _validate_init(path, spec, seen)


def _validate_init(path: str, spec: Object, seen: set[str]) -> list[Cause]:
    volumes = frozenset(text(volume, "name") for volume in items(spec, "volumes"))
    claims = frozenset(text(claim, "name") for claim in items(spec, "resourceClaims"))
    host_network = bool(spec.get("hostNetwork"))
    found: list[Cause] = []
    for index, container in enumerate(items(spec, "initContainers")):
        here = f"{path}.initContainers[{index}]"
        found += _validate_container(here, container, volumes, claims, host_network=host_network)
        found += _validate_unique(here, container, seen)
        found += _validate_restart(here, container)
        if container.get("restartPolicy") == "Always":
            found += _validate_probes(here, container)
        elif container.get("restartPolicy") in (None, "Never", "OnFailure"):
            detail = "may not be set for init containers without restartPolicy=Always"
            found += [
                forbidden(f"{here}.{key}", detail) for key in ("lifecycle", *_PROBES) if container.get(key)
            ]
    for index, container in enumerate(items(spec, "ephemeralContainers")):
        here = f"{path}.ephemeralContainers[{index}]"
        found += _validate_container(here, container, volumes, claims, host_network=host_network)
        found += _validate_unique(here, container, seen)
    return found


def _validate_unique(here: str, container: Object, seen: set[str]) -> list[Cause]:
    name = text(container, "name")
    if name and name in seen:
        return [duplicate(f"{here}.name", name)]
    seen.add(name)
    return []


def _validate_container(
    here: str, container: Object, volumes: frozenset[str], claims: frozenset[str], *, host_network: bool
) -> list[Cause]:
    name, image = text(container, "name"), text(container, "image")
    found = invalid_each(f"{here}.name", name, dns_label(name)) if name else [required(f"{here}.name")]
    if not image:
        found.append(required(f"{here}.image"))
    elif image != image.strip():
        found.append(invalid(f"{here}.image", image, "must not have leading or trailing whitespace"))
    policy = container.get("terminationMessagePolicy")
    if policy not in _MESSAGE_POLICIES:
        found.append(not_supported(f"{here}.terminationMessagePolicy", policy, _MESSAGE_POLICIES))
    found += _validate_ports(f"{here}.ports", items(container, "ports"), host_network=host_network)
    found += _validate_variables(f"{here}.env", items(container, "env"))
    found += _validate_mounts(f"{here}.volumeMounts", items(container, "volumeMounts"), volumes)
    pull = container.get("imagePullPolicy")
    if pull not in _PULL_POLICIES:
        found.append(not_supported(f"{here}.imagePullPolicy", pull, _PULL_POLICIES))
    found += _validate_identity(f"{here}.securityContext", mapping(container, "securityContext"))
    return found + validate_resources(f"{here}.resources", mapping(container, "resources"), claims=claims)


def _validate_identity(path: str, context: Object) -> list[Cause]:
    found = [
        invalid(f"{path}.{key}", context[key], f"must be between 0 and {2**31 - 1}, inclusive")
        for key in ("runAsUser", "runAsGroup")
        if isinstance(context.get(key), int) and not 0 <= context[key] < 2**31
    ]
    if context.get("privileged") and context.get("allowPrivilegeEscalation") is False:
        detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        found.append(invalid(path, context, detail))
    return found


def _validate_restart(here: str, container: Object) -> list[Cause]:
    policy = container.get("restartPolicy")
    if policy is None or policy in _RESTART_POLICIES:
        return []
    return [not_supported(f"{here}.restartPolicy", policy, _RESTART_POLICIES)]


def _validate_probes(here: str, container: Object) -> list[Cause]:
    found: list[Cause] = []
    for key in _PROBES:
        probe = container.get(key)
        if isinstance(probe, dict):
            given = [handler for handler in _HANDLERS if probe.get(handler) is not None]
            if not given:
                found.append(required(f"{here}.{key}", "must specify a handler type"))
            found += [
                forbidden(f"{here}.{key}.{handler}", "may not specify more than 1 handler type")
                for handler in given[1:]
            ]
    return found


def _validate_ports(path: str, ports: list[Object], *, host_network: bool) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"{path}[{index}]", text(port, "name")
        if name:
            problems = _port_name(name)
            found += invalid_each(f"{here}.name", name, problems)
            if not problems and name in names:
                found.append(duplicate(f"{here}.name", name))
            names.add(name)
        number, host = port.get("containerPort") or 0, port.get("hostPort") or 0
        if number == 0:
            found.append(required(f"{here}.containerPort"))
        elif not 1 <= number <= 65535:
            found.append(invalid(f"{here}.containerPort", number, _PORT_RANGE))
        if host and not 1 <= host <= 65535:
            found.append(invalid(f"{here}.hostPort", host, _PORT_RANGE))
        elif host_network and host != number:
            detail = "must match `containerPort` when `hostNetwork` is true"
            found.append(invalid(f"{here}.hostPort", host, detail))
        if port.get("protocol") not in _PROTOCOLS:
            found.append(not_supported(f"{here}.protocol", port.get("protocol"), _PROTOCOLS))
    return found


def _port_name(name: str) -> Iterator[str] | list[str]:
    found: list[str] = []
    if len(name) > 15:
        found.append("must be no more than 15 bytes")
    if not _PORT_NAME.fullmatch(name):
        found.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
        return found
    if not any(character.isalpha() for character in name):
        found.append("must contain at least one letter (a-z)")
    if "--" in name:
        found.append("must not contain consecutive hyphens")
    if name[0] == "-" or name[-1] == "-":
        found.append("must not begin or end with a hyphen")
    return found


def _validate_host_ports(path: str, containers: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    seen: set[str] = set()
    for index, container in enumerate(containers):
        for place, port in enumerate(items(container, "ports")):
            if not port.get("hostPort"):
                continue
            taken = f"{port.get('protocol')}/{text(port, 'hostIP')}/{port['hostPort']}"
            if taken in seen:
                found.append(duplicate(f"{path}[{index}].ports[{place}].hostPort", taken))
            seen.add(taken)
    return found


def _validate_variables(path: str, variables: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    for index, variable in enumerate(variables):
        here, name = f"{path}[{index}]", text(variable, "name")
        if not name:
            found.append(required(f"{here}.name"))
        elif not _VARIABLE_NAME.fullmatch(name):
            detail = _VARIABLE_TEXT
            found.append(invalid(f"{here}.name", name, detail))
        source = variable.get("valueFrom")
        if not isinstance(source, dict):
            continue
        given = [key for key in _SOURCES if source.get(key) is not None]
        if text(variable, "value") and given:
            found.append(invalid(f"{here}.valueFrom", "", "may not be specified when `value` is not empty"))
        elif not given:
            names = ", ".join(f"`{key}`" for key in _SOURCES[:-1])
            detail = f"must specify one of: {names} or `{_SOURCES[-1]}`"
            found.append(invalid(f"{here}.valueFrom", "", detail))
        elif len(given) > 1:
            detail = "may not have more than one field specified at a time"
            found.append(invalid(f"{here}.valueFrom", "", detail))
    return found


def _validate_mounts(path: str, mounts: list[Object], volumes: frozenset[str]) -> list[Cause]:
    found: list[Cause] = []
    points: set[str] = set()
    for index, mount in enumerate(mounts):
        here, name, point = f"{path}[{index}]", text(mount, "name"), text(mount, "mountPath")
        if not name:
            found.append(required(f"{here}.name"))
        if name not in volumes:
            found.append(not_found(f"{here}.name", name))
        if not point:
            found.append(required(f"{here}.mountPath"))
        elif point in points:
            found.append(invalid(f"{here}.mountPath", point, "must be unique"))
        points.add(point)
    return found
