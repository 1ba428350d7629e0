"""NodeTable: the growing columns behind the snapshots; one row per node.

`state.py` is its only writer.  A node keeps its row for life; the row of a deleted node is dead until a
new node takes it (lowest first), so the table is never longer than the most nodes there were at once.
"""

import heapq
import sys
from collections.abc import Collection

import numpy as np

from muster.api.core import Node
from muster.api.quantity import QuantityError, resource_amount
from muster.base.arrays import Bool, Int64
from muster.cluster.axes import ResourceAxis
from muster.cluster.extended_resources import PLENTY

_ROWS_INITIAL = 64
_REFERENCES_OWN = 3  # to an array that is an attribute here, while a method looks at it


class NodeTable:
    """Node rows and their amounts.

    Shapes   live, unschedulable [capacity]; allocatable, requested [capacity, R]; only the first `len()`
             rows mean anything.
    Units    base units of the resource axis.
    """

    def __init__(self) -> None:
        self.axis = ResourceAxis()
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self.backed: frozenset[str] = frozenset()
        self.row_of: dict[str, int] = {}
        self.live: Bool = np.zeros(_ROWS_INITIAL, dtype=np.bool_)
        self.unschedulable: Bool = np.zeros(_ROWS_INITIAL, dtype=np.bool_)
        self.allocatable: Int64 = np.zeros((_ROWS_INITIAL, len(self.axis)), dtype=np.int64)
        self.requested: Int64 = np.zeros((_ROWS_INITIAL, len(self.axis)), dtype=np.int64)
        self._dead: list[int] = []
        self._frozen: Int64 | None = None  # what was frozen last

    def __len__(self) -> int:
        return len(self.names)

    def put(self, node: Node) -> int:
        """Write a node to its row, a dead or a new one; the axis must already have what it offers."""
        name = node.metadata.name
        row = self.row_of.get(name)
        if row is None:
            row = self._new_row(name)
        self.nodes[row] = node
        self.live[row] = True
        self.unschedulable[row] = node.spec.unschedulable
        self.allocatable[row] = self.axis.row(offered_by(node, self.backed))
        return row

    def drop(self, name: str) -> int:
        """Mark the node's row dead and empty.  Raises KeyError for an unknown node."""
        row = self.row_of.pop(name)
        self.nodes[row] = None
        self.live[row] = False
        self.unschedulable[row] = False
        self.allocatable[row] = 0
        self.requested[row] = 0
        heapq.heappush(self._dead, row)
        return row

    def freeze_requested(self, changed: Int64) -> Int64:
        """[len, R] `requested` as it is now, refusing writes; `changed`: rows since it was frozen last.

        If nobody holds that array any more, nor a view of it, only those rows are written: else 280 kB are
        copied for every decision on 5,000 nodes.
        """
        now, frozen = self.requested[: len(self)], self._frozen
        if frozen is None or frozen.shape != now.shape or sys.getrefcount(frozen) > _REFERENCES_OWN:
            frozen = self._frozen = now.copy()
        else:
            frozen.flags.writeable = True
            frozen[changed] = now[changed]
        frozen.flags.writeable = False
        return frozen

    def widen(self, axis: ResourceAxis) -> None:
        """Take a longer axis; new columns start at zero (the caller fills `requested`)."""
        extra = len(axis) - len(self.axis)
        self.axis = axis
        self.allocatable = np.pad(self.allocatable, ((0, 0), (0, extra)))
        self.requested = np.pad(self.requested, ((0, 0), (0, extra)))
        self._offer_again()

    def back(self, names: frozenset[str]) -> None:
        """Nodes that do not offer these resources give devices instead: PLENTY, as far as amounts go."""
        self.backed = names
        self._offer_again()

    def own_count(self, row: int, name: str) -> int:
        """How much of a resource the node itself offers."""
        column = self.axis.find_column(name)
        offered = 0 if column is None else int(self.allocatable[row, column])
        return 0 if offered == PLENTY and name in self.backed else offered

    def _offer_again(self) -> None:
        for row, node in enumerate(self.nodes):
            if node is not None:
                self.allocatable[row] = self.axis.row(offered_by(node, self.backed))

    def _new_row(self, name: str) -> int:
        if self._dead:
            row = heapq.heappop(self._dead)
            self.names[row] = name
        else:
            row = len(self.names)
            self.names.append(name)
            self.nodes.append(None)
            if row == len(self.live):
                self._double()
        self.row_of[name] = row
        return row

    def _double(self) -> None:
        more = len(self.live)
        self.live = np.pad(self.live, (0, more))
        self.unschedulable = np.pad(self.unschedulable, (0, more))
        self.allocatable = np.pad(self.allocatable, ((0, more), (0, 0)))
        self.requested = np.pad(self.requested, ((0, more), (0, 0)))


def allocatable_of(node: Node) -> dict[str, int]:
    """Resource → amount in base units that the node gives to pods; an unreadable quantity counts as none."""
    amounts: dict[str, int] = {}
    for name, value in (node.status.allocatable or {}).items():
        try:
            amounts[name] = max(resource_amount(name, value), 0)
        except QuantityError:
            amounts[name] = 0
    return amounts


def offered_by(node: Node, backed: Collection[str]) -> dict[str, int]:
    """What the node gives, and PLENTY of each of these resources that it does not offer itself."""
    amounts = allocatable_of(node)
    return amounts | {name: amounts.get(name) or PLENTY for name in backed}
