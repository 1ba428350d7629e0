"""Names for array types, so that signatures say what a cell is.

Axis letters used in docstrings: N nodes, P pods, R resources, D domains, G groups, V victims.
"""

import numpy as np
import numpy.typing as npt

Bool = npt.NDArray[np.bool_]
Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]
