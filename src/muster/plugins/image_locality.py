"""ImageLocality: prefer nodes that have the pod's images already, the more of their bytes the better."""

from typing import ClassVar

import numpy as np

from muster.api.core import Container, Pod
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

    def is_silent(self, pod: Pod, snapshot: Snapshot) -> bool:
        return not any(snapshot.images.holders(image) for image in _images(pod))

    def score(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Float64:
        present = np.zeros(len(rows), dtype=np.float64)
        node_count = max(1, len(snapshot.live_rows()))
        for name in _images(pod):
            if holders := snapshot.images.holders(name):
                present += snapshot.images.column(name)[rows] * (holders / node_count)
        most = max(_MOST_BYTES_EACH * len(_containers(pod)), _LEAST_BYTES + 1)
        score: Float64 = 100.0 * (present.clip(_LEAST_BYTES, most) - _LEAST_BYTES) / (most - _LEAST_BYTES)
        return score


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*(pod.spec.init_containers or ()), *pod.spec.containers)


def _images(pod: Pod) -> list[str]:
    return [container.image for container in _containers(pod) if container.image]
