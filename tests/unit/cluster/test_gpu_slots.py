"""Device slots: who holds which device, alike before and after a restart, and beside a slow count."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muster.api.core import Pod
from muster.cluster.gpu_annotations import GPU_INDEX, GPU_MILLI
from muster.cluster.gpu_slots import DEVICES_MAX, GpuTable, choose_devices, copies_left, lay_out
from muster.cluster.requests import DeviceAsk, device_ask, pod_requests
from muster.cluster.state import ClusterState
from muster.testing.builders import make_cluster, make_node, make_pod


def part(name: str, milli: int, *, index: str | None = None, node: str = "n1", gpu: int | None = 1) -> Pod:
    annotations = {GPU_MILLI: str(milli), **({} if index is None else {GPU_INDEX: index})}
    return make_pod(name, gpu=gpu, annotations=annotations, node=node)


# ── what a pod asks for ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("pod", "ask"),
    [
        (make_pod(), None),
        (make_pod(gpu=2), DeviceAsk(2, 1000)),
        (part("p", 300), DeviceAsk(1, 300)),
        (part("p", 300, gpu=None), DeviceAsk(1, 300)),
        (part("p", 1000, gpu=4), DeviceAsk(4, 1000)),
        (part("p", 1000, gpu=None), DeviceAsk(1, 1000)),
        (
            part("p", 300, gpu=2),
            DeviceAsk(2, 1000),
        ),  # refused while it waits; running, it holds what stock says
        (make_pod(gpu=1, annotations={GPU_MILLI: "x"}), DeviceAsk(1, 1000)),
    ],
)
def test_a_pod_takes_a_part_of_one_device_or_whole_ones(pod: Pod, ask: DeviceAsk | None) -> None:
    assert device_ask(pod) == ask


def test_a_part_takes_no_whole_gpu_and_a_whole_one_does() -> None:
    assert "nvidia.com/gpu" not in pod_requests(part("p", 300))
    assert pod_requests(part("p", 1000))["nvidia.com/gpu"] == 1


# ── choosing ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("left", "ask", "devices"),
    [
        ([1000, 1000], DeviceAsk(1, 400), (0,)),
        ([1000, 600, 400], DeviceAsk(1, 400), (2,)),
        ([600, 500, 500], DeviceAsk(1, 500), (1,)),
        ([500, 1000, 1000, 1000], DeviceAsk(2, 1000), (1, 2)),
        ([100, 300], DeviceAsk(1, 400), (1,)),  # overcommitted anyway: where it is emptiest
        ([100, 1000, 300], DeviceAsk(2, 1000), (1, 2)),
        ([], DeviceAsk(1, 400), ()),
    ],
)
def test_the_fullest_device_with_room_is_chosen(
    left: list[int], ask: DeviceAsk, devices: tuple[int, ...]
) -> None:
    assert choose_devices(np.array(left, dtype=np.int32), ask) == devices


@given(st.lists(st.integers(-200, 1000), min_size=1, max_size=8), st.integers(1, 1000), st.integers(1, 4))
def test_so_many_copies_fit_as_can_be_placed_one_after_another(
    left: list[int], milli: int, many: int
) -> None:
    ask = DeviceAsk(1, milli) if milli < 1000 else DeviceAsk(many, 1000)
    slots, copies = np.array(left, dtype=np.int32), 0
    while (slots >= ask.milli).sum() >= ask.devices:
        slots[list(choose_devices(slots, ask))] -= ask.milli
        copies += 1
    assert copies_left(np.array([left], dtype=np.int32), ask)[0] == copies


# ── books ────────────────────────────────────────────────────────────────────────────────────────


def test_devices_that_bindings_say_go_before_guesses() -> None:
    pods = [make_pod("a-whole", gpu=1, node="n1"), part("b", 400, index="0"), part("c", 500)]
    left, holds = lay_out(3, ((pod, ()) for pod in pods))
    assert left.tolist() == [100, 0, 1000]
    assert holds["default", "c"].devices == (0,)


def test_an_index_that_is_no_device_of_the_node_is_not_believed() -> None:
    left, _ = lay_out(2, [(part("p", 400, index="7"), ())])
    assert left.tolist() == [600, 1000]


def test_a_node_with_very_many_devices_has_no_slots() -> None:
    table = GpuTable()
    table.put(0, DEVICES_MAX + 1, [(part("p", 400), ())])
    assert table.freeze(1).count.tolist() == [0]


def test_nobody_pays_before_somebody_shares() -> None:
    state = ClusterState()
    state.apply_node(make_node("n1", gpu=2))
    state.apply_pod(make_pod("p", gpu=1, node="n1"))
    assert not state.snapshot().share_devices
    assert not state._gpus.active


def test_slots_follow_pods_nodes_and_assumptions() -> None:
    state = ClusterState()
    state.apply_node(make_node("n1", gpu=2))
    state.apply_pod(make_pod("whole", gpu=1, node="n1"))
    waiting = part("p", 400, node="")
    state.apply_pod(waiting)
    assert state.snapshot().gpus.left.tolist() == [[0, 1000]]
    state.assume(waiting, "n1", (0,))
    assert state.snapshot().gpus.left.tolist() == [[600, 0]]
    state.apply_pod(part("p", 400, index="0"))
    assert state.snapshot().gpus.left.tolist() == [[600, 0]]
    state.apply_node(make_node("n1", gpu=3))
    assert state.snapshot().gpus.left.tolist() == [[600, 0, 1000]]
    state.remove_pod(("default", "whole"), "uid-whole")
    assert state.snapshot().gpus.left.tolist() == [[600, 1000, 1000]]
    state.remove_node("n1")
    assert state.snapshot().gpus.count.tolist() == [0]


def test_a_refused_binding_gives_the_device_back() -> None:
    state = ClusterState()
    state.apply_node(make_node("n1", gpu=1))
    pod = part("p", 400, node="")
    state.assume(pod, "n1", (0,))
    state.forget(("default", "p"), "uid-p")
    state.apply_pod(pod)
    assert state.snapshot().gpus.left.tolist() == [[1000]]


@given(st.permutations(range(6)))
def test_a_restart_comes_to_the_same_books_in_whatever_order_pods_are_seen(order: list[int]) -> None:
    pods = [
        make_pod("w1", gpu=1, node="n1"),
        make_pod("w2", gpu=1, node="n1"),
        part("a", 300, index="1"),
        part("b", 600, index="2"),
        part("c", 600),
        part("d", 200),
    ]
    first, again = ClusterState(), ClusterState()
    for state, turn in ((first, range(6)), (again, order)):
        state.apply_node(make_node("n1", gpu=5))
        for index in turn:
            state.apply_pod(pods[index])
    assert again.snapshot().gpus.left.tolist() == first.snapshot().gpus.left.tolist()
    assert again.snapshot().gpus.holds_on(0) == first.snapshot().gpus.holds_on(0)


# ── forks ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_known", [False, True])
def test_a_fork_places_and_removes_and_the_original_stays(is_known: bool) -> None:
    cluster = make_cluster().node("n1", gpu=2)
    if is_known:
        cluster.state.apply_pod(part("waits", 1, node=""))
    snapshot = cluster.snapshot()
    fork = snapshot.fork()
    one, two = part("one", 700, node=""), part("two", 400, node="")
    fork.place(one, 0)
    fork.place(two, 0)
    branch = fork.fork()
    branch.remove(one, 0)
    assert branch.gpus.left.tolist() == [[1000, 600]]
    assert fork.gpus.left.tolist() == [[300, 600]]
    fork.place(part("three", 300, node=""), 0)
    assert branch.gpus.left.tolist() == [[1000, 600]]
    assert snapshot.gpus.left.tolist() == [[1000, 1000]]
    assert (fork.share_devices, snapshot.share_devices) == (True, False)
