"""Pods and host ports by node row, kept up with every pod that comes or goes.

`state.py` is the only writer; a snapshot gets them as they are.  Axis: N node rows.
"""

from collections.abc import Iterable, Mapping, Sequence

from muster.api.core import Pod
from muster.cluster.requests import HostPort

PortsByRow = Mapping[int, tuple[HostPort, ...]]


class PodsByRow:
    """Who counts as placed on each row, in the order in which they came.

    A list is changed when its pod comes or goes, not when a snapshot is taken: where 450 rows were touched
    between two decisions, making the lists anew was 2 of 5 ms.
    """

    def __init__(self) -> None:
        self._pods: list[tuple[Pod, ...]] = []
        self._ports: dict[int, tuple[HostPort, ...]] = {}
        self._is_shared = False  # whether a snapshot holds this very dictionary of ports

    def add(self, row: int, pod: Pod, ports: tuple[HostPort, ...]) -> None:
        """The pod is on the row now."""
        self._reach(row)
        self._pods[row] = (*self._pods[row], pod)
        if ports:
            self._own_ports()[row] = self._ports.get(row, ()) + ports

    def remove(self, row: int, pod: Pod) -> None:
        """This very object is not on the row any more; its ports are `take_ports`' to settle."""
        self._pods[row] = tuple(other for other in self._pods[row] if other is not pod)

    def take_ports(self, row: int, ports: Iterable[HostPort]) -> None:
        """These host ports, and no others, are taken on the row."""
        self._own_ports().pop(row, None)
        if taken := tuple(ports):
            self._ports[row] = taken

    def reset(self, row: int, pods: tuple[Pod, ...], ports: tuple[HostPort, ...]) -> None:
        """These pods, and no others, are on the row."""
        self._reach(row)
        self._pods[row] = pods
        if ports or row in self._ports:
            self.take_ports(row, ports)

    def freeze(self, count: int) -> tuple[Sequence[tuple[Pod, ...]], PortsByRow]:
        """All as it is now.  Shapes: [count]."""
        self._reach(count - 1)
        self._is_shared = True
        return tuple(self._pods), self._ports

    def _reach(self, row: int) -> None:
        if row >= len(self._pods):
            self._pods.extend([()] * (row + 1 - len(self._pods)))

    def _own_ports(self) -> dict[int, tuple[HostPort, ...]]:
        if self._is_shared:
            self._ports, self._is_shared = dict(self._ports), False
        return self._ports
