"""Resource ↔ column: the R axis of every array, with the unit of each column.

An axis is immutable; when a node offers a resource not seen before, `state.py` takes a longer axis whose
first columns are the old ones.  Only what some node offers has a column: a request for anything else fits
nowhere, and a pod that takes it elsewhere takes it from nobody.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from muster.api.quantity import INT64_MAX
from muster.base.arrays import Int64

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
BASE_RESOURCES = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)


class ResourceAxis:
    """An ordered set of resource names; the first four are always cpu, memory, ephemeral-storage and pods.

    Units    cpu in milli-CPU; memory, ephemeral-storage and hugepages in bytes; pods and extended
             resources in pieces.
    """

    __slots__ = ("_column_of", "names")

    def __init__(self, names: Iterable[str] = BASE_RESOURCES) -> None:
        self.names = tuple(names)
        if self.names[: len(BASE_RESOURCES)] != BASE_RESOURCES:
            raise ValueError(f"an axis starts with {BASE_RESOURCES}, got {self.names}")
        self._column_of = {name: column for column, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: str) -> bool:
        return name in self._column_of

    def column_of(self, name: str) -> int:
        """The column of a resource.  Raises KeyError if the axis has none."""
        return self._column_of[name]

    def find_column(self, name: str) -> int | None:
        """The column of a resource, or None."""
        return self._column_of.get(name)

    def with_names(self, names: Iterable[str]) -> "ResourceAxis":
        """An axis that also has these resources (new ones in order of name); itself if it has them all."""
        new = sorted({name for name in names if name not in self._column_of})
        return ResourceAxis(self.names + tuple(new)) if new else self

    def row(self, amounts: Mapping[str, int]) -> Int64:
        """[R] these amounts in column order; resources without a column are left out.

        Amounts are held within 0 .. 2**63 − 1: nobody asks for, or offers, less than nothing.
        """
        row = np.zeros(len(self.names), dtype=np.int64)
        for name, amount in amounts.items():
            column = self._column_of.get(name)
            if column is not None:
                row[column] = min(max(amount, 0), INT64_MAX)
        return row


def add_saturating(left: Int64, right: Int64) -> Int64:
    """Add amounts (none negative) cell by cell, stopping at 2**63 − 1 instead of wrapping."""
    with np.errstate(over="ignore"):
        total: Int64 = left + right
    total[total < 0] = INT64_MAX
    return total


def multiply_saturating(row: Int64, count: int | Int64) -> Int64:
    """Multiply amounts (none negative) by counts, stopping at 2**63 − 1 instead of wrapping.

    Shapes   row [R], count a number or [K, 1]; returns [R] or [K, R].
    """
    with np.errstate(over="ignore"):
        total: Int64 = row * count
    total[row > INT64_MAX // np.maximum(count, 1)] = INT64_MAX
    return total
