"""A small preemptor to ask a PostFilter plugin about, and the promises that its answer must keep."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Bool, Int32, Int64
from muster.cluster.snapshot import Snapshot
from muster.framework.points import NodeVerdict, PostFilter, Preemptor, Rescue
from muster.placement.capacity import members_per_node
from muster.placement.eviction import Eviction, Trial, Try
from muster.placement.steering import Steer
from muster.placement.victims import Unit
from muster.testing.builders import make_cluster, make_pod

HIGH = make_pod("high", cpu=1, priority=100)


class RoomOnly:
    """A judge that looks at resources alone."""

    reads_metadata = False

    def labels_read(self, keys: frozenset[str]) -> frozenset[str]:
        return frozenset()

    def filter(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> NodeVerdict:
        every = np.ones(len(rows), dtype=np.bool_)
        return NodeVerdict(members_per_node(snapshot.free_at(rows), snapshot.request_of(pod), every) > 0)

    def usable(self, pod: Pod, snapshot: Snapshot) -> Bool:
        return snapshot.live.copy()

    def rows_changed(self, placed: Pod, row: int, pod: Pod, snapshot: Snapshot) -> Int32 | None:
        return np.array([row], dtype=np.int32)

    def capacity(self, pod: Pod, snapshot: Snapshot, rows: Int32) -> Int64 | None:
        every = np.ones(len(rows), dtype=np.bool_)
        return members_per_node(snapshot.free_at(rows), snapshot.request_of(pod), every)

    def counts_only(self, others: Sequence[Pod], pod: Pod, snapshot: Snapshot) -> bool:
        return True


def make_preemptor(kind: str = "podgroup", *, with_victim: bool = True, **facts: Any) -> Preemptor:
    """One pod that wants the one cpu another has: a weaker one, or (no victim) one that may not go.

    Further keywords are fields of `Preemptor`.
    """
    snapshot = make_cluster().node("n1", cpu=1).running("low", "n1", cpu=1).snapshot()
    unit = Unit("default/low", 1, ((snapshot.pods_on(0)[0], 0),))
    return Preemptor(
        **{
            "kind": kind,
            "priority": 100,
            "policy": "PreemptLowerPriority",
            "is_draining": False,
            "units": (unit,) if with_victim else (),
            "budgets": (),
            "snapshot": snapshot,
            "judge": RoomOnly(),
            "trial": Try(on=_place, members=1),
            **facts,
        }
    )


def _place(fork: Snapshot, rows: Int32 | None, steer: Steer | None, explain: bool = True) -> Trial:
    where = fork.live_rows() if rows is None else rows
    fits = where[RoomOnly().filter(HIGH, fork, where).feasible]
    return Trial(bool(fits.size), "no room", ((HIGH, int(fits[0])),) if fits.size else ())


def broken_promises(plugin: PostFilter) -> list[str]:
    """What the plugin's answers about small preemptors fail to keep; empty when they keep all."""
    broken = []
    for preemptor in (
        make_preemptor(),
        make_preemptor("pod"),
        make_preemptor(with_victim=False),
        make_preemptor(policy="Never"),
        make_preemptor(is_draining=True),
    ):
        rescue = plugin.post_filter(preemptor)
        if not isinstance(rescue, Rescue):
            return ["answers with a Rescue"]
        if rescue.status.ok != (rescue.eviction is not None):
            broken.append("gives an eviction on success and only then")
        if rescue.eviction is not None:
            broken += _broken_by(rescue.eviction, preemptor)
    return sorted(set(broken))


def _broken_by(eviction: Eviction, preemptor: Preemptor) -> list[str]:
    broken = []
    if not eviction.seats:
        broken.append("evicts nobody without a seat for it")
    if any(unit not in preemptor.units for unit in eviction.victims):
        broken.append("evicts only units it was given")
    if preemptor.policy == "Never" or preemptor.is_draining:
        broken.append("evicts nobody for one that never preempts, or whose victims are leaving")
    return broken
