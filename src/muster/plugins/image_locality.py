"""ImageLocality: prefer nodes that have the pod's images already, the more of their bytes the better."""

from typing import ClassVar

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Float64, Int32
from muster.cluster.snapshot import Snapshot

_MIB = 1024.0 * 1024.0
_LEAST_BYTES = 23 * _MIB  # less than this is not worth a preference
_MOST_BYTES_EACH = 1000 * _MIB  # per container; more than this makes no difference


class ImageLocality:
    """Score by the bytes of the pod's images on the node, each weighed with the share of nodes that have it.

    The share keeps pods from all going to the one node that pulled a rare image first.
    """

    name: ClassVar[str] = "ImageLocality"
    reads_metadata: ClassVar[bool] = False

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        containers = (*(pod.spec.init_containers or ()), *pod.spec.containers)
        present = np.zeros(len(rows), dtype=np.float64)
        node_count = max(1, len(snapshot.live_rows()))
        for name in [container.image for container in containers if container.image]:
            sizes = snapshot.images.column(name)
            if holders := np.count_nonzero(sizes):
                present += sizes[rows] * (holders / node_count)
        if not present.any():  # no node has any: 40 µs less on 5,000 nodes
            return present
        most = max(_MOST_BYTES_EACH * len(containers), _LEAST_BYTES + 1)
        score: Float64 = 100.0 * (present.clip(_LEAST_BYTES, most) - _LEAST_BYTES) / (most - _LEAST_BYTES)
        return score
