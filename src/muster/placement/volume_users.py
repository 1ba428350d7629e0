"""Which claims for volumes are in use: by how many of the pods that count as placed.

In comes a snapshot or a fork; out come counts by claim.  Next: `plugins/volume_restrictions.py`, which keeps
claims for one pod to one pod.
"""

from collections.abc import Mapping, Sequence

from muster.api.core import Pod
from muster.cluster.snapshot import PodMove, Snapshot
from muster.cluster.volumes import ClaimKey, claims_of


def users_of_claims(snapshot: Snapshot) -> Mapping[ClaimKey, int]:
    """How many placed pods use each claim; claims that nobody uses are not there."""

    def build(original: Snapshot) -> dict[ClaimKey, int]:
        counts: dict[ClaimKey, int] = {}
        for row in range(len(original.nodes)):
            for pod in original.pods_on(row):
                if pod.spec.volumes:
                    _count(counts, pod, 1)
        return counts

    def step(counts: dict[ClaimKey, int], moves: Sequence[PodMove]) -> dict[ClaimKey, int]:
        counts = dict(counts)
        for move in moves:
            if move.pod.spec.volumes:
                _count(counts, move.pod, move.sign)
        return counts

    return snapshot.fold("users of claims", build, step)


def _count(counts: dict[ClaimKey, int], pod: Pod, sign: int) -> None:
    for key, _ in claims_of(pod):
        counts[key] = counts.get(key, 0) + sign
        if not counts[key]:
            del counts[key]
