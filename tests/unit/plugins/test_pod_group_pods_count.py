"""Placements by how many members they take."""

import numpy as np

from muster.framework.points import PlacementTotals
from muster.plugins.pod_group_pods_count import PodGroupPodsCount
from muster.testing.builders import make_cluster, make_group
from muster.testing.conformance import check_plugin


def test_it_keeps_the_contract() -> None:
    check_plugin(PodGroupPodsCount())


def test_members_count_as_a_share_of_the_most() -> None:
    empty = np.zeros((3, 1))
    totals = PlacementTotals(make_cluster().snapshot(), empty, empty, np.array([3, 4, 1]))
    assert PodGroupPodsCount().score_placements(make_group(), totals).tolist() == [75.0, 100.0, 25.0]
