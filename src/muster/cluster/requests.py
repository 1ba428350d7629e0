"""What a pod takes from its node: resource name → amount in base units, and its host ports.

Containers run together and add up; init containers run before them, one at a time, so only the largest
counts, together with the sidecars (restartable init containers) started before it.  Pod-level requests
replace the sum for cpu, memory and hugepages; overhead comes on top.  One pod is one of "pods".
Next: `axes.py` turns the amounts into a row of columns.
"""

from collections.abc import Iterable
from typing import NamedTuple

from muster.api.core import Container, ContainerStatus, Pod, PodStatus, Quantities, ResourceRequirements
from muster.api.quantity import INT64_MAX, QuantityError, resource_amount
from muster.cluster.axes import CPU, MEMORY, PODS
from muster.cluster.gpu_annotations import DEVICE_MILLI, GPU, find_faults, milli_of

Amounts = dict[str, int]


class HostPort(NamedTuple):
    """A port of the node itself that a container holds; `ip` is "0.0.0.0" for all addresses."""

    protocol: str
    ip: str
    port: int


def pod_requests(pod: Pod) -> Amounts:
    """Give everything the pod takes, "pods" included; amounts of 2**63 − 1 mean "more than can be said".

    A quantity that cannot be read counts as such, so that the pod fits nowhere rather than anywhere.
    A resize of a running pod counts at the larger of what was asked and what the kubelet still holds.
    A pod that takes a part of a GPU (`muster.dev/gpu-milli`) takes no whole one: see `gpu_slots.py`.
    Source   k8s.io/component-helpers resource.PodRequests with status resources, as the stock scheduler.
    """
    total = _requests_as_written(pod)
    if pod.metadata.annotations and _part_of(pod, total) is not None:
        total.pop(GPU, None)
    return total


class DeviceAsk(NamedTuple):
    """GPUs a pod takes: so many devices, and of each so many thousandths; several are whole ones."""

    devices: int
    milli: int


def device_ask(pod: Pod) -> DeviceAsk | None:
    """Give the GPUs the pod takes; None if none.  An annotation that makes no sense counts for nothing."""
    total = _requests_as_written(pod)
    part = _part_of(pod, total)
    if part is not None:
        return DeviceAsk(1, part)
    count = total.get(GPU, 0) or int(milli_of(pod) == DEVICE_MILLI)
    return DeviceAsk(count, DEVICE_MILLI) if count else None


def device_faults(pod: Pod) -> tuple[tuple[str, str], ...]:
    """Give what is wrong with the annotations about GPUs of a pod that waits: fields, and why."""
    if not pod.metadata.annotations:
        return ()
    return tuple(find_faults(pod, _requests_as_written(pod).get(GPU, 0)))


def _part_of(pod: Pod, total: Amounts) -> int | None:
    """Thousandths of one device, less than all; None where whole ones are taken or no sense is made."""
    milli = milli_of(pod)
    return milli if milli is not None and milli < DEVICE_MILLI and total.get(GPU, 0) <= 1 else None


def _requests_as_written(pod: Pod) -> Amounts:
    spec = pod.spec
    statuses = _statuses_by_name(pod) if spec.node_name else {}
    infeasible = bool(spec.node_name) and _is_resize_infeasible(pod)
    total: Amounts = {}
    for container in spec.containers:
        _add(total, _container_requests(container, statuses.get(container.name), infeasible))
    if spec.init_containers:
        _apply_init_containers(total, spec.init_containers, statuses, infeasible)
    if spec.resources is not None:
        _apply_pod_level(total, spec.resources)
        if spec.node_name and pod.status.resources is not None:
            _apply_pod_level_held(total, pod.status, infeasible)
    if spec.overhead:
        _add(total, _read(spec.overhead))
    total[PODS] = 1
    return total


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Give the host ports of the pod's containers and sidecars, each once, in order."""
    spec = pod.spec
    found: dict[HostPort, None] = {}
    for container in (*spec.containers, *(c for c in spec.init_containers or () if _is_sidecar(c))):
        for port in container.ports or ():
            if port.host_port > 0:
                found[HostPort(port.protocol or "TCP", port.host_ip or "0.0.0.0", port.host_port)] = None
    return tuple(found)


def _apply_init_containers(
    total: Amounts,
    init_containers: Iterable[Container],
    statuses: dict[str, ContainerStatus],
    infeasible: bool,
) -> None:
    """Raise `total` (the sum of the containers) by sidecars, and to the largest init phase."""
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in init_containers:
        if _is_sidecar(container):
            amounts = _container_requests(container, statuses.get(container.name), infeasible)
            _add(total, amounts)
            _add(sidecars, amounts)
            _raise(largest, sidecars)
        else:
            phase = _container_requests(container, None, infeasible)
            _add(phase, sidecars)
            _raise(largest, phase)
    _raise(total, largest)


def _apply_pod_level(total: Amounts, resources: ResourceRequirements) -> None:
    """Let requests of the whole pod replace the sum; a limit alone counts where no container asks."""
    for name, amount in {**_read(resources.limits or {}), **total, **_read(resources.requests or {})}.items():
        if _is_pod_level(name):
            total[name] = amount


def _apply_pod_level_held(total: Amounts, status: PodStatus, infeasible: bool) -> None:
    """While the whole pod is resized (KEP-5419) count what the kubelet still holds, if that is more."""
    held = _read(status.resources.requests or {}) if status.resources is not None else {}
    _raise(held, _read(status.allocated_resources or {}))
    for name, amount in held.items():
        if _is_pod_level(name):
            total[name] = amount if infeasible else max(total.get(name, 0), amount)


def _is_pod_level(name: str) -> bool:
    return name in (CPU, MEMORY) or name.startswith("hugepages-")


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _container_requests(container: Container, status: ContainerStatus | None, infeasible: bool) -> Amounts:
    if status is None or status.resources is None:
        return _amounts_of(container.resources)
    held = _read(status.resources.requests or {})
    _raise(held, _read(status.allocated_resources or {}))
    if not infeasible:
        _raise(held, _amounts_of(container.resources))
    return held


def _amounts_of(resources: ResourceRequirements | None) -> Amounts:
    """Read requests; a limit without a request asks for the limit (the API fills that in, too)."""
    if resources is None:
        return {}
    return _read({**(resources.limits or {}), **(resources.requests or {})})


def _read(quantities: Quantities) -> Amounts:
    amounts: Amounts = {}
    for name, value in quantities.items():
        try:
            amount = max(resource_amount(name, value), 0)
        except QuantityError:
            amount = INT64_MAX
        if name != PODS:
            amounts[name] = amount
    return amounts


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = min(total.get(name, 0) + amount, INT64_MAX)


def _raise(total: Amounts, other: Amounts) -> None:
    for name, amount in other.items():
        total[name] = max(total.get(name, 0), amount)


def _statuses_by_name(pod: Pod) -> dict[str, ContainerStatus]:
    status = pod.status
    return {
        entry.name: entry
        for entries in (status.container_statuses, status.init_container_statuses)
        for entry in entries or ()
        if entry.resources is not None
    }


def _is_resize_infeasible(pod: Pod) -> bool:
    condition = pod.find_condition("PodResizePending")
    return condition is not None and condition.reason == "Infeasible"
