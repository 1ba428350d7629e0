"""Names for array types, so that signatures say what a cell is; and picking rows without copying them.

Axis letters used in docstrings: N nodes, P pods, R resources, D domains, G groups, V victims.
"""

from typing import TypeVar

import numpy as np
import numpy.ma
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
Int8 = npt.NDArray[np.int8]
Int16 = npt.NDArray[np.int16]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

_Array = TypeVar("_Array", Bool, Int32, Int64, Float64)


def pick(array: _Array, rows: Int32) -> _Array:
    """The entries of some rows; a view, not to be written, where these are all of them.

    Shapes   array [N, …]; rows [K], ascending, each once; returns [K, …].
    """
    # Most placements are the whole cluster; 5,000 rows picked one by one cost 36 µs, a view nothing.
    return array if len(rows) == len(array) else array[rows]
