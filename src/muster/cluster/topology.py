"""Labels and taints of all nodes as columns of small integers: label → value id per node, node → taint set.

Many nodes share few values, so a rule is judged once per value and spread to the rows by indexing.
Built from the nodes on first use and shared by all snapshots until a label or taint changes.
Axis: N node rows.
"""

from typing import NamedTuple

import numpy as np

from muster.api.core import Node, Taint
from muster.base.arrays import Bool, Int32, Int64, pick

NO_VALUE = -1


class LabelColumn(NamedTuple):
    """One label key over all rows.

    Shapes   ids [N]: index into `values`, or NO_VALUE where the node lacks the label (or is dead).
    """

    ids: Int32
    values: tuple[str, ...]

    def mask(self, matching: Bool, rows: Int32, *, missing: bool) -> Bool:
        """[K] spread an answer per value [len(values)] to these rows; `missing` is the one for NO_VALUE."""
        answers = np.append(matching, missing)  # index NO_VALUE is the last cell
        spread: Bool = answers[pick(self.ids, rows)]
        return spread

    def totals(self, amounts: Int64) -> Int64:
        """[len(values) + 1] sums of amounts [N] over rows of each value; the last cell, NO_VALUE, is 0."""
        labelled = self.ids != NO_VALUE
        sums = np.bincount(self.ids[labelled], weights=amounts[labelled], minlength=len(self.values) + 1)
        return np.rint(sums).astype(np.int64)

    def rows_like(self, row: int) -> Int32:
        """Rows with the same value as this row, itself included; none where it has no value."""
        if self.ids[row] == NO_VALUE:
            return np.empty(0, dtype=np.int32)
        return np.flatnonzero(self.ids == self.ids[row]).astype(np.int32)


class NodeLabels:
    """The labels of all rows, one column per key asked for."""

    def __init__(self, nodes: tuple[Node | None, ...]) -> None:
        self._nodes = nodes
        self._columns: dict[str, LabelColumn] = {}

    def column(self, key: str) -> LabelColumn:
        """Values of this label; ids are in order of the value's text, so equal clusters give equal ids."""
        column = self._columns.get(key)
        if column is None:
            column = self._columns[key] = self._build(key)
        return column

    def _build(self, key: str) -> LabelColumn:
        found = [None if node is None else (node.metadata.labels or {}).get(key) for node in self._nodes]
        values = tuple(sorted({value for value in found if value is not None}))
        id_of: dict[str | None, int] = {value: i for i, value in enumerate(values)}
        ids = np.fromiter((id_of.get(value, NO_VALUE) for value in found), np.int32, len(found))
        ids.flags.writeable = False
        return LabelColumn(ids, values)


class NodeTaints:
    """The taints of all rows: `sets` are the distinct lists of taints, `set_of` [N] which one a row has."""

    def __init__(self, nodes: tuple[Node | None, ...]) -> None:
        index_of: dict[tuple[tuple[str, str, str], ...], int] = {}
        sets: list[tuple[Taint, ...]] = []
        self.set_of: Int32 = np.zeros(len(nodes), dtype=np.int32)
        for row, node in enumerate(nodes):
            taints = tuple(node.spec.taints or ()) if node is not None else ()
            key = tuple((taint.key, taint.value, taint.effect) for taint in taints)
            if key not in index_of:
                index_of[key] = len(sets)
                sets.append(taints)
            self.set_of[row] = index_of[key]
        self.set_of.flags.writeable = False
        self.sets = tuple(sets)
