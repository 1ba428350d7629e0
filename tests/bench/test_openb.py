"""The openb benchmark: the trace as read, arrivals as published, FGD beside a slow and obvious twin."""

import math

import numpy as np
import pytest
from bench.openb_inflation import inflate
from bench.openb_policies import (
    BestFitPolicy,
    Choice,
    FgdPolicy,
    Fragmentation,
    RandomPolicy,
    Room,
    popular_shapes,
)
from bench.openb_trace import (
    VARIANTS,
    Nodes,
    PodShape,
    make_arrivals,
    read_nodes,
    read_pods,
    shuffle_nodes,
)

WHOLE = PodShape(4000, 0, 1, 1000, ())
HALF = PodShape(2000, 0, 1, 500, ())
BIG = PodShape(8000, 0, 4, 1000, ())
ONLY_T4 = PodShape(1000, 0, 1, 300, ("T4",))
CPU_ONLY = PodShape(16_000, 0, 0, 0, ())
SHAPES = (WHOLE, WHOLE, HALF, HALF, HALF, BIG, ONLY_T4, CPU_ONLY)


def small_nodes(count: int = 6) -> Nodes:
    models = tuple("T4" if row % 2 else "V100" for row in range(count))
    gpus = np.array([(0, 1, 2, 4, 8, 8)[row % 6] for row in range(count)])
    return Nodes(
        tuple(f"n{row}" for row in range(count)), np.full(count, 32_000), np.full(count, 1000), gpus, models
    )


def test_the_cluster_is_the_published_one() -> None:
    nodes = read_nodes()
    assert (len(nodes.names), int(nodes.gpus.sum()), int(nodes.cpu_milli.sum())) == (1213, 6212, 107_018_000)


@pytest.mark.parametrize("variant", VARIANTS)
def test_arrivals_ask_for_130_percent_of_the_gpus(variant: str) -> None:
    capacity = read_nodes().gpu_milli
    arrivals = make_arrivals(read_pods(variant), capacity, np.random.default_rng(42))
    asked = sum(shape.total_gpu_milli for shape in arrivals)
    assert 1.3 * capacity - 8000 < asked <= 1.3 * capacity


def test_nodes_are_shuffled_and_stay_the_same_nodes() -> None:
    nodes = read_nodes()
    shuffled = shuffle_nodes(nodes, np.random.default_rng(3))
    assert shuffled.names != nodes.names
    as_rows = [
        sorted(zip(n.names, n.cpu_milli, n.memory_mib, n.gpus, n.models, strict=True))
        for n in (nodes, shuffled)
    ]
    assert as_rows[0] == as_rows[1]


def test_of_equally_popular_shapes_the_larger_goes_first() -> None:
    assert [shape for shape, _ in popular_shapes((HALF, WHOLE))] == [WHOLE, HALF]


def test_memory_is_room_too() -> None:
    room = Room(small_nodes())
    needy = WHOLE._replace(memory_mib=600)
    room.take(needy, 4, (0,))
    assert room.allows(needy, np.arange(6)).tolist() == [False, True, True, True, False, True]


def test_arrivals_of_a_seed_are_always_the_same() -> None:
    capacity = read_nodes().gpu_milli
    first, second = (
        make_arrivals(read_pods("multigpu50"), capacity, np.random.default_rng(7)) for _ in range(2)
    )
    assert first == second


def test_popular_shapes_cover_95_percent_and_no_more_than_needed() -> None:
    pods = (WHOLE,) * 90 + (HALF,) * 6 + (BIG,) * 4
    assert [shape for shape, _ in popular_shapes(pods)] == [WHOLE, HALF]
    assert sum(share for _, share in popular_shapes(pods)) == pytest.approx(1.0)


# ── the slow twin of FGD ─────────────────────────────────────────────────────────────────────────


def slow_fragment(nodes: Nodes, row: int, cpu: int, gpu: list[int], pods: tuple[PodShape, ...]) -> float:
    """One node, one shape, one device after another, as the paper tells it."""
    lost = 0.0
    for shape, share in popular_shapes(pods):
        usable = [left for left in gpu if left >= shape.gpu_milli]
        is_open = not shape.models or nodes.models[row] in shape.models
        hosts = shape.gpus and len(usable) >= shape.gpus and cpu >= shape.cpu_milli and is_open
        lost += share * (sum(left for left in gpu if left < shape.gpu_milli) if hosts else sum(gpu))
    return lost


def slow_choice(nodes: Nodes, room: Room, shape: PodShape, pods: tuple[PodShape, ...]) -> Choice | None:
    """Try the pod everywhere and keep the first of the best."""
    best: tuple[int, Choice] | None = None
    for row in range(len(nodes.names)):
        if not room.allows(shape, np.array([row]))[0]:
            continue
        cpu, gpu = int(room.cpu_left[row]), room.gpu_left[row].tolist()
        fitting = [device for device in range(8) if gpu[device] >= shape.gpu_milli]
        sets = [tuple(sorted(fitting, key=lambda device: (gpu[device], device))[: shape.gpus])]
        if shape.is_shared:
            sets = [(device,) for device in fitting]
        before = slow_fragment(nodes, row, cpu, gpu, pods)
        for devices in sets:
            left = [amount - shape.gpu_milli * (device in devices) for device, amount in enumerate(gpu)]
            after = slow_fragment(nodes, row, cpu - shape.cpu_milli, left, pods)
            score = int(100.0 / (1.0 + math.exp(-(before - after) / 1000.0)))
            if best is None or score > best[0]:
                best = (score, Choice(row, devices))
    return None if best is None else best[1]


@pytest.mark.parametrize("seed", range(8))
def test_fgd_chooses_as_its_slow_twin(seed: int) -> None:
    rng, nodes = np.random.default_rng(seed), small_nodes()
    room = Room(nodes)
    policy = FgdPolicy(Fragmentation(SHAPES, nodes), len(nodes.names))
    for _ in range(60):
        shape = SHAPES[int(rng.integers(len(SHAPES)))]
        choice = policy.choose(shape, room)
        assert choice == slow_choice(nodes, room, shape, SHAPES)
        if choice is not None:
            room.take(shape, *choice)


def test_bestfit_takes_the_node_with_least_left() -> None:
    nodes = small_nodes()
    room = Room(nodes)
    room.take(BIG, 4, (0, 1, 2, 3))
    assert BestFitPolicy().choose(BIG, room) == Choice(4, (4, 5, 6, 7))
    room.take(BIG, 4, (4, 5, 6, 7))
    assert BestFitPolicy().choose(BIG, room) == Choice(3, (0, 1, 2, 3))


# ── the checker ──────────────────────────────────────────────────────────────────────────────────


class Lazy:
    """Turns everybody away."""

    def choose(self, shape: PodShape, room: Room) -> Choice | None:
        return None


class Greedy:
    """Puts everybody on the first device of the last node."""

    def choose(self, shape: PodShape, room: Room) -> Choice | None:
        return Choice(len(room.cpu_left) - 1, (0,))


def test_turning_away_a_pod_that_fits_is_wrong() -> None:
    nodes = small_nodes()
    outcome = inflate([WHOLE], Room(nodes), Lazy(), Fragmentation(SHAPES, nodes))
    assert "turned away though it fits" in outcome.wrong[0]


def test_a_device_given_twice_is_wrong() -> None:
    nodes = small_nodes()
    outcome = inflate([WHOLE, WHOLE], Room(nodes), Greedy(), Fragmentation(SHAPES, nodes))
    assert len(outcome.wrong) == 1


def test_a_pod_that_fits_nowhere_is_lost_and_not_wrong() -> None:
    nodes = small_nodes(2)
    policy = RandomPolicy(np.random.default_rng(1))
    outcome = inflate([BIG, WHOLE], Room(nodes), policy, Fragmentation(SHAPES, nodes))
    assert (outcome.lost, outcome.wrong, outcome.unallocated) == (1, (), 0.0)
