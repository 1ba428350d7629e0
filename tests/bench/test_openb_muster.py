"""The product on a small openb: devices as its books say, gangs whole or not at all, who fits is placed."""

import numpy as np
import pytest
from bench.openb_gangs import FgdGangs, Gang, GangPolicy, MusterGangs, inflate_gangs, make_gangs
from bench.openb_inflation import inflate
from bench.openb_muster import MusterPolicy, _runner
from bench.openb_policies import Choice, FgdPolicy, Fragmentation, Room
from bench.openb_trace import Nodes, PodShape

WHOLE = PodShape(4000, 100, 1, 1000, ())
HALF = PodShape(2000, 50, 1, 500, ())
PART = PodShape(1000, 10, 1, 310, ("T4",))
BIG = PodShape(8000, 200, 4, 1000, ())
CPU_ONLY = PodShape(6000, 10, 0, 0, ())
SHAPES = (WHOLE, WHOLE, HALF, HALF, PART, BIG, CPU_ONLY)


def small_nodes() -> Nodes:
    gpus = np.array([1, 2, 4, 8, 8])
    models = ("T4", "V100", "T4", "V100", "T4")
    names = tuple(f"n{row}" for row in range(5))
    return Nodes(names, np.full(5, 40_000), np.full(5, 2000), gpus, models)


@pytest.mark.parametrize("seed", range(3))
def test_the_product_turns_nobody_away_who_fits_and_overcommits_nothing(seed: int) -> None:
    nodes, rng = small_nodes(), np.random.default_rng(seed)
    arrivals = [SHAPES[int(rng.integers(len(SHAPES)))] for _ in range(60)]
    outcome = inflate(arrivals, Room(nodes), MusterPolicy(nodes, SHAPES), Fragmentation(SHAPES, nodes))
    assert outcome.wrong == ()
    assert 0 < outcome.lost < 60


@pytest.mark.parametrize("seed", range(2))
def test_what_is_remembered_places_nobody_elsewhere(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes, rng = small_nodes(), np.random.default_rng(seed)
    arrivals = [SHAPES[int(rng.integers(len(SHAPES)))] for _ in range(40)]
    usual = MusterPolicy(nodes, SHAPES)
    forgetful = MusterPolicy(nodes, SHAPES)
    for shape in arrivals:
        monkeypatch.setattr(forgetful, "_runner", _runner(SHAPES))
        assert usual.choose(shape, Room(nodes)) == forgetful.choose(shape, Room(nodes))


@pytest.mark.parametrize("name", ["fgd", "muster"])
def test_gangs_are_whole_or_nothing(name: str) -> None:
    nodes, rng = small_nodes(), np.random.default_rng(5)
    policy: GangPolicy = MusterGangs(MusterPolicy(nodes, SHAPES))
    if name == "fgd":
        policy = FgdGangs(FgdPolicy(Fragmentation(SHAPES, nodes), 5))
    gangs = [Gang(SHAPES[int(rng.integers(7))], int(rng.integers(1, 5))) for _ in range(30)]
    outcome = inflate_gangs(gangs, Room(nodes), policy)
    assert outcome.wrong == ()
    assert outcome.unallocated < 30.0


def test_sizes_of_gangs_are_drawn_and_only_of_whole_gpu_pods() -> None:
    gangs = make_gangs([WHOLE, HALF, CPU_ONLY] * 500, 3_000_000, np.random.default_rng(1))
    whole = [gang.members for gang in gangs if gang.shape == WHOLE]
    assert {gang.members for gang in gangs if gang.shape != WHOLE} == {1}
    assert 0.88 < sum(members == 1 for members in whole) / len(whole) < 0.95
    assert max(whole) > 8
    assert sum(gang.members * gang.shape.total_gpu_milli for gang in gangs) <= 1.3 * 3_000_000


class Torn:
    """Places one member of each gang."""

    def place(self, gang: Gang, room: Room) -> list[Choice] | None:
        room.take(gang.shape, 3, (0,))
        return [Choice(3, (0,))]


class Lazy:
    """Turns every gang away."""

    def place(self, gang: Gang, room: Room) -> list[Choice] | None:
        return None


def test_a_torn_gang_and_one_turned_away_are_wrong() -> None:
    torn = inflate_gangs([Gang(WHOLE, 3)], Room(small_nodes()), Torn())
    assert "1 of 3 placed" in torn.wrong[0]
    lazy = inflate_gangs([Gang(WHOLE, 23), Gang(WHOLE, 24)], Room(small_nodes()), Lazy())
    assert [text.split(":")[0] for text in lazy.wrong] == ["gang 0 was turned away though it fits"]
