"""PodGroupPodsCount: of the places where a group fits, the one that takes most of its members (KEP-5732)."""

from typing import ClassVar

import numpy as np

from muster.base.arrays import Float64
from muster.framework.groups import Group
from muster.framework.points import PlacementTotals


class PodGroupPodsCount:
    """The members placed there, as a share of the most that any candidate takes."""

    name: ClassVar[str] = "PodGroupPodsCount"

    def score_placements(self, group: Group, totals: PlacementTotals) -> Float64:
        most = max(int(totals.member_count.max(initial=0)), 1)
        return np.multiply(totals.member_count, 100.0 / most, dtype=np.float64)
