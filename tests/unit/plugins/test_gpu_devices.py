"""GpuDevices."""

import numpy as np
import pytest

from muster.api.core import Pod
from muster.cluster.gpu_annotations import GPU_MILLI
from muster.cluster.snapshot import Snapshot
from muster.framework.events import Change, ClusterEvent, Hint, Rejected
from muster.placement.capacity import UNLIMITED
from muster.plugins.gpu_devices import GpuDevices
from muster.testing.builders import make_cluster, make_node, make_pod
from muster.testing.conformance import check_plugin


def part(milli: int, name: str = "p", **fields: object) -> Pod:
    return make_pod(name, gpu=1, annotations={GPU_MILLI: str(milli)}, **fields)  # type: ignore[arg-type]


def shared() -> Snapshot:
    """Four nodes: none, one half full, two of which one is half full, a hundred devices."""
    cluster = make_cluster().node("a").node("b", gpu=1).node("c", gpu=2).node("d", gpu=100)
    cluster.state.apply_pod(part(500, "on-b", node="b"))
    cluster.state.apply_pod(part(600, "on-c", node="c"))
    return cluster.snapshot()


def test_it_keeps_the_contract() -> None:
    pods = [part(300), part(500), part(1000), make_pod(gpu=2), make_pod(gpu=1)]
    check_plugin(GpuDevices(), pods=pods, snapshots=[shared()])


@pytest.mark.parametrize(
    ("pod", "fits"),
    [
        (make_pod(), [True] * 4),
        (part(400), [False, True, True, False]),
        (part(600), [False, False, True, False]),
        (make_pod(gpu=1), [False, False, True, True]),
        (make_pod(gpu=2), [False, False, False, True]),
    ],
)
def test_parts_go_where_a_device_has_so_much_left_and_whole_ones_where_nobody_is(
    pod: Pod, fits: list[bool]
) -> None:
    snapshot = shared()
    assert GpuDevices().filter(pod, snapshot, snapshot.live_rows()).feasible.tolist() == fits


def test_the_reason_says_how_much_no_device_has_left() -> None:
    snapshot = shared()
    verdict = GpuDevices().filter(part(600), snapshot, snapshot.live_rows())
    assert {reason.text for reason in verdict.reasons} == {"node(s) had no GPU with 600 thousandths left"}
    full, without = verdict.reasons
    assert (full.resolvable, full.rejected.tolist()) == (True, [False, True, False, False])
    assert (without.resolvable, without.rejected.tolist()) == (False, [True, False, False, True])


def test_where_nobody_shares_whole_devices_are_left_to_the_count_of_pieces() -> None:
    snapshot = make_cluster().node("n", gpu=1).snapshot()
    rows = snapshot.live_rows()
    assert GpuDevices().filter(make_pod(gpu=2), snapshot, rows).feasible.tolist() == [True]
    assert GpuDevices().capacity(make_pod(gpu=2), snapshot, rows).tolist() == [UNLIMITED]
    assert not GpuDevices().rows_changed(make_pod(gpu=1), 0, make_pod(gpu=1), snapshot).size  # type: ignore[union-attr]


def test_copies_are_counted_device_by_device() -> None:
    snapshot = make_cluster().node("n", gpu=3).snapshot()
    assert GpuDevices().capacity(part(400), snapshot, snapshot.live_rows()).tolist() == [6]


def test_a_part_is_steered_to_the_device_that_it_fills_best() -> None:
    snapshot = shared()
    rows = np.array([1, 2], dtype=np.int32)
    assert GpuDevices().score(part(400), snapshot, rows).tolist() == [90.0, 100.0]


def test_parts_cannot_be_stated_as_sums_and_whole_devices_can() -> None:
    snapshot = shared()
    rows = snapshot.live_rows()
    assert GpuDevices().packing([part(400), make_pod(gpu=1)], snapshot, rows) is None
    packing = GpuDevices().packing([make_pod(gpu=1), make_pod(gpu=2)], snapshot, rows)
    assert packing is not None
    assert packing.room[:3, 0].tolist() == [0, 0, 1]
    assert packing.need[:, 0].tolist() == [1, 2]


def test_a_bad_annotation_is_named_with_field_and_cure() -> None:
    (field,) = GpuDevices().unsupported(make_pod(annotations={GPU_MILLI: "0.5"}))
    assert field.path == "metadata.annotations[muster.dev/gpu-milli]"
    assert "500" in field.why


def test_only_a_pod_with_devices_that_goes_and_a_node_with_devices_that_comes_can_help() -> None:
    rules = {rule.change: rule.helps for rule in GpuDevices().hint_rules()}
    rejected = Rejected(None, None, (part(400),))
    freed, added = rules[Change.POD_FREED], rules[Change.NODE_ADDED]
    assert freed is not None
    assert added is not None
    assert freed(rejected, ClusterEvent(Change.POD_FREED, pod=make_pod())) is Hint.SKIP
    assert freed(rejected, ClusterEvent(Change.POD_FREED, pod=part(100))) is Hint.QUEUE
    assert added(rejected, ClusterEvent(Change.NODE_ADDED, node=make_node())) is Hint.SKIP
    assert added(rejected, ClusterEvent(Change.NODE_ADDED, node=make_node(gpu=1))) is Hint.QUEUE
