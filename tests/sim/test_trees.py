"""Trees of groups under random trouble, on a seed: whatever happened, once it ends all of them run and stay.

Some seeds of the storm play trees, too (`sim/storm/trees.py`), of one level.  Here composites of gangs, basic
groups and composites lose members, answers, leaders and whole groups.  The trouble is the unit tests' world:
one scheduler, and an API that does what it is told.
"""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace
from tests.unit.scheduling.gang_world import REFUSED, refill, start
from tests.unit.scheduling.world import World, key_of

from muster.framework.groups import Terms

SEEDS = range(12)
POLICIES = ("replace", "replace", "replace", "hold", "restart", "release")
REFUSALS = (REFUSED, (409, "conflict"), (429, "busy"), (500, "broken"), (0, "lost"))


class Trouble:
    """A world with a tree of three groups and one with a composite inside, and what may happen to them."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.world = World()
        self.sizes: dict[str, int] = {}
        for number in range(int(self.rng.integers(1, 5))):
            self.world.node(f"n{number}", cpu=int(self.rng.integers(3, 9)))
        self._tree("s", inner=False)
        self._tree("t", inner=True)
        self.actions: tuple[Callable[[], object], ...] = (
            self._refuse,
            lambda: self.world.refused.clear(),
            lambda: self._with_pod(self.world.delete),
            lambda: self._with_bound(
                lambda name: self.world.end(name, phase=self._one("Succeeded", "Failed"))
            ),
            lambda: self._with_bound(lambda name: start(self.world, name, is_ready=self._flip(0.5))),
            self.refill,
            self.refill,
            self.world.restart,
            self._change_minimum,
            self._make_group_anew,
            lambda: self.world.pod("vip", cpu=2, priority=100),
            lambda: setattr(self.world, "grace_s", self._one(0.0, 30.0)),
            lambda: setattr(self.world, "deny_evictions", self._flip(0.5)),
        )

    def play(self) -> World:
        """Trouble for a while, then half an hour of peace with room for everybody."""
        self.refill()
        for _ in range(int(self.rng.integers(10, 50))):
            self.actions[int(self.rng.integers(len(self.actions)))]()
            if self._flip(0.5):
                self.clear_away()
            self.world.run(self._one(0.0, 1.0, 5.0, 30.0, 120.0, 400.0))
        self._calm_down()
        for _ in range(30):
            self.clear_away()
            self.refill()
            for name in sorted(self.world.bound):
                if self.world.pods[key_of(name)].status.phase != "Succeeded":
                    start(self.world, name, is_ready=True)
            self.world.run(60)
        return self.world

    def refill(self) -> None:
        for name, size in self.sizes.items():
            refill(self.world, name, size)

    def clear_away(self) -> None:
        """Those that were asked to go are gone, and the failed are removed."""
        for key, pod in list(self.world.pods.items()):
            if pod.is_terminating or pod.status.phase == "Failed":
                self.world.delete(key.name)

    def _tree(self, name: str, *, inner: bool) -> None:
        times = self._one(None, 20.0, 600.0)
        above = 2 if inner else 3
        least = self._one(None, *range(1, above + 1))
        self.world.group(name, least, is_composite=True, terms=Terms(bind_timeout_s=times))
        if inner:
            self.world.group(f"{name}-in", self._one(1, 2), is_composite=True, parent=key_of(name))
        for number in range(3):
            group, size = f"{name}{number}", int(self.rng.integers(1, 4))
            terms = Terms(
                bind_timeout_s=self._one(None, None, 15.0, 900.0),
                ready_timeout_s=self._one(None, None, 300.0),
                on_member_loss=self._one(*POLICIES),
                releases_bare_pods=self._flip(0.3),
            )
            parent = f"{name}-in" if inner and number else name
            self.world.group(group, self._one(None, *range(1, size + 1)), parent=key_of(parent), terms=terms)
            self.sizes[group] = size

    def _refuse(self) -> None:
        group = self._one(*self.sizes)
        self.world.refused = {f"{group}-{self.rng.integers(self.sizes[group])}": self._one(*REFUSALS)}

    def _end(self, name: str) -> None:
        self.world.end(name, phase=self._one("Succeeded", "Failed"))

    def _start(self, name: str) -> None:
        start(self.world, name, is_ready=self._flip(0.5))

    def _with_pod(self, action: Callable[[str], object]) -> None:
        if self.world.pods:
            action(self._one(*sorted(key.name for key in self.world.pods)))

    def _with_bound(self, action: Callable[[str], object]) -> None:
        if self.world.bound:
            action(self._one(*sorted(self.world.bound)))

    def _change_minimum(self) -> None:
        name = self._one(*self.sizes)
        group = self.world.groups[key_of(name)]
        if group.is_gang:
            least = int(self.rng.integers(1, self.sizes[name] + 2))
            self.world.change_group(name, min_count=least, generation=group.generation + 1)

    def _make_group_anew(self) -> None:
        name = self._one(*self.sizes)
        group = self.world.groups[key_of(name)]
        self.world.delete_group(name)
        self.world.group(name, group.min_count, parent=group.parent, terms=group.terms)

    def _calm_down(self) -> None:
        world = self.world
        world.refused, world.grace_s, world.deny_evictions = {}, 0.0, False
        for key in [key for key in world.pods if key.name == "vip"]:
            world.delete(key.name)
        for name, size in self.sizes.items():
            group = world.groups[key_of(name)]
            least = None if group.min_count is None else min(group.min_count, size)
            policy = "replace" if group.terms.on_member_loss == "hold" else group.terms.on_member_loss
            world.change_group(name, min_count=least, terms=replace(group.terms, on_member_loss=policy))
        for number in range(4):
            world.node(f"big{number}", cpu=16)

    def _flip(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def _one(self, *things):  # type: ignore[no-untyped-def]
        return things[int(self.rng.integers(len(things)))]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_the_trouble_every_group_of_every_tree_runs_and_nobody_is_released_any_more(seed: int) -> None:
    world = Trouble(seed).play()
    assert {key.name for key in world.pods} == world.bound
    world.evicted.clear()
    world.run(3600).restart().run(3600)
    assert world.evicted == []
