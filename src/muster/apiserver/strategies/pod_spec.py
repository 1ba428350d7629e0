"""Validation of a pod's spec as a whole, the same for pods and for templates of pods."""

import ipaddress

from muster.apiserver.kinds import Cause, Object
from muster.apiserver.strategies.fields import (
    duplicate,
    forbidden,
    invalid,
    invalid_each,
    items,
    mapping,
    not_supported,
    required,
    text,
)
from muster.apiserver.strategies.names import dns_label, dns_subdomain, label_key
from muster.apiserver.strategies.pod_containers import validate_containers, validate_volumes
from muster.apiserver.strategies.pod_placement import (
    validate_affinity,
    validate_gates,
    validate_node_selector,
    validate_spread,
    validate_tolerations,
)
from muster.apiserver.strategies.resources import validate_amount, validate_pod_resources

INT32_MAX = 2**31 - 1
_RESTART_POLICIES = ("Always", "OnFailure", "Never")
_DNS_POLICIES = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_PREEMPTION_POLICIES = ("PreemptLowerPriority", "Never")
_SYSTEMS = ("linux", "windows")
_DEADLINE = f"must be between 1 and {INT32_MAX}, inclusive"
_IDENTITY = f"must be between 0 and {INT32_MAX}, inclusive"
_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"


def validate_pod_spec(path: str, spec: Object) -> list[Cause]:
    """All field errors of a spec, in stock's order."""
    found = validate_volumes(f"{path}.volumes", items(spec, "volumes"))
    found += validate_claims(f"{path}.resourceClaims", items(spec, "resourceClaims"))
    found += validate_containers(path, spec)
    found += validate_pod_resources(f"{path}.resources", spec)
    found += _validate_policies(path, spec)
    found += validate_node_selector(f"{path}.nodeSelector", mapping(spec, "nodeSelector"))
    found += _validate_security(path, spec)
    found += validate_affinity(f"{path}.affinity", spec.get("affinity"))
    if spec.get("dnsPolicy") == "None" and not items(mapping(spec, "dnsConfig"), "nameservers"):
        detail = "must provide `dnsConfig` when `dnsPolicy` is None"
        found.append(required(f"{path}.dnsConfig", detail))
    for index, gate in enumerate(items(spec, "readinessGates")):
        type_ = text(gate, "conditionType")
        found += invalid_each(f"{path}.readinessGates[{index}].conditionType", type_, label_key(type_))
    found += validate_gates(f"{path}.schedulingGates", items(spec, "schedulingGates"))
    found += validate_spread(f"{path}.topologySpreadConstraints", items(spec, "topologySpreadConstraints"))
    found += _validate_names(path, spec)
    found += validate_tolerations(f"{path}.tolerations", items(spec, "tolerations"))
    found += _validate_aliases(f"{path}.hostAliases", items(spec, "hostAliases"))
    found += _validate_rest(path, spec)
    return found + _validate_group(f"{path}.schedulingGroup", spec.get("schedulingGroup"))


def validate_claims(path: str, claims: list[Object]) -> list[Cause]:
    """Resource claims of a pod: named, each by one reference."""
    found: list[Cause] = []
    seen: set[str] = set()
    sources = ("resourceClaimName", "resourceClaimTemplateName")
    for index, claim in enumerate(claims):
        here, name = f"{path}[{index}]", text(claim, "name")
        if name and name in seen:
            found.append(duplicate(f"{here}.name", name))
        seen.add(name)
        found += invalid_each(f"{here}.name", name, dns_label(name)) if name else [required(f"{here}.name")]
        given = [key for key in sources if claim.get(key) is not None]
        if len(given) != 1:
            names = [f"`{key}`" for key in sources]
            none = f"must specify one of: {', '.join(names)}"
            both = f"at most one of {' or '.join(names)} may be specified"
            found.append(invalid(here, claim, both if given else none))
        for key in given:
            found += invalid_each(f"{here}.{key}", claim[key], dns_subdomain(claim[key]))
    return found


def _validate_policies(path: str, spec: Object) -> list[Cause]:
    found: list[Cause] = []
    restart, dns = spec.get("restartPolicy"), spec.get("dnsPolicy")
    if restart not in _RESTART_POLICIES:
        found.append(not_supported(f"{path}.restartPolicy", restart, _RESTART_POLICIES))
    if dns not in _DNS_POLICIES:
        found.append(not_supported(f"{path}.dnsPolicy", dns, _DNS_POLICIES))
    return found


def _validate_security(path: str, spec: Object) -> list[Cause]:
    found: list[Cause] = []
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid(f"{path}.shareProcessNamespace", True, detail))
    context = mapping(spec, "securityContext")
    for key in ("fsGroup", "runAsUser", "runAsGroup"):
        value = context.get(key)
        if isinstance(value, int) and not 0 <= value <= INT32_MAX:
            found.append(invalid(f"{path}.securityContext.{key}", value, _IDENTITY))
    for index, value in enumerate(items(context, "supplementalGroups")):
        if not 0 <= value <= INT32_MAX:
            where = f"{path}.securityContext.supplementalGroups[{index}]"
            found.append(invalid(where, value, _IDENTITY))
    return found


def _validate_names(path: str, spec: Object) -> list[Cause]:
    found: list[Cause] = []
    for key in ("serviceAccountName", "nodeName"):
        if name := text(spec, key):
            found += invalid_each(f"{path}.{key}", name, dns_subdomain(name))
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= INT32_MAX:
        found.append(invalid(f"{path}.activeDeadlineSeconds", deadline, _DEADLINE))
    for key in ("hostname", "subdomain"):
        if name := text(spec, key):
            found += invalid_each(f"{path}.{key}", name, dns_label(name))
    return found


def _validate_aliases(path: str, aliases: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    for index, alias in enumerate(aliases):
        found += validate_address(f"{path}[{index}].ip", text(alias, "ip"))
        for place, name in enumerate(items(alias, "hostnames")):
            found += invalid_each(f"{path}[{index}].hostnames[{place}]", name, dns_subdomain(str(name)))
    return found


def validate_address(path: str, address: str) -> list[Cause]:
    """An IP address of either family."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return [invalid(path, address, _ADDRESS)]
    return []


def _validate_rest(path: str, spec: Object) -> list[Cause]:
    found: list[Cause] = []
    if name := text(spec, "priorityClassName"):
        found += invalid_each(f"{path}.priorityClassName", name, dns_subdomain(name))
    if name := text(spec, "runtimeClassName"):
        found += invalid_each(f"{path}.runtimeClassName", name, dns_subdomain(name))
    policy = spec.get("preemptionPolicy")
    if policy is not None and policy not in _PREEMPTION_POLICIES:
        found.append(not_supported(f"{path}.preemptionPolicy", policy, _PREEMPTION_POLICIES))
    for name, value in mapping(spec, "overhead").items():
        found += validate_amount(f"{path}.overhead[{name}]", name, value)
    system = spec.get("os")
    if isinstance(system, dict):
        name = text(system, "name")
        if not name:
            found.append(required(f"{path}.os.name", "cannot be empty"))
        elif name not in _SYSTEMS:
            found.append(not_supported(f"{path}.os", name, _SYSTEMS))
    return found


def _validate_group(path: str, group: Object | None) -> list[Cause]:
    """A member names its group; the group need not exist."""
    if group is None:
        return []
    name = group.get("podGroupName")
    if name is None:
        return [invalid(f"{path}.podGroupName", None, "must specify one of: `podGroupName`")]
    return invalid_each(f"{path}.podGroupName", name, dns_subdomain(name))


def validate_gated_binding(path: str, spec: Object) -> list[Cause]:
    """A pod cannot be on a node while gates hold it back."""
    if text(spec, "nodeName") and items(spec, "schedulingGates"):
        detail = "cannot be set until all schedulingGates have been cleared"
        return [forbidden(f"{path}.nodeName", detail)]
    return []
