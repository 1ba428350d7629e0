"""What is known of each pod: its object, where it counts as placed, and what it takes there.

Comes from `state.py`, which keeps one record a pod and changes it; snapshots read amounts here.
"""

from collections.abc import Mapping

from muster.api.core import Pod
from muster.cluster.requests import Amounts, HostPort, pod_requests

PodKey = tuple[str, str]  # namespace, name; `framework.groups.ObjectKey` is one


class PodRecord:
    """One pod as known: its object, and where it counts as placed ("" nowhere)."""

    __slots__ = ("amounts", "assumed", "confirmed", "devices", "keys_read", "node_name", "pod", "ports")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.node_name = ""
        self.assumed = False
        self.confirmed = False
        self.amounts: Amounts = {}
        self.ports: tuple[HostPort, ...] = ()
        self.keys_read: frozenset[str] = frozenset()
        self.devices: tuple[int, ...] = ()  # as assumed with its place; what its binding says goes before


def key_of(pod: Pod) -> PodKey:
    """The namespace and name of a pod."""
    return (pod.metadata.namespace, pod.metadata.name)


def amounts_in(records: Mapping[PodKey, PodRecord], pod: Pod) -> Amounts:
    """What the pod takes, as reckoned when this very object was placed; reckoned now if it is not."""
    record = records.get(key_of(pod))
    is_known = record is not None and record.pod is pod and record.node_name
    return record.amounts if record is not None and is_known else pod_requests(pod)
