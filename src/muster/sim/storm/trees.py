"""Composite groups in a storm: trees of two or three gangs or basic groups, not all of them always needed.

A tree's groups are gangs of `users.py` like all others: their members are deleted, replaced, refused, their
minimum changes, one of them may go.  Nobody may bind the members of one for a while; the composite comes
before or after them, its minimum changes, and the whole tree may go.  Every fourth seed has some.
Next: `forest.py`, what is promised of them.
"""

from functools import partial

import numpy as np
from msgspec import Struct

from muster.sim.client import SCHEDULER_NAMES, composite_manifest, group_manifest, pod_spec
from muster.sim.storm.users import POLICIES, Gang, Users
from muster.sim.storm.world import StormWorld
from muster.sim.view import Object, name_of

SEEDS_PER_TREES = 4  # one of so many seeds has trees: they take long to play
_TREES = (3, 6)
_LOOK_S = 5.0


class Tree(Struct):
    """What its owner wants: the composite, once it has been applied, and gangs by these names."""

    manifest: Object
    groups: tuple[str, ...]
    is_applied: bool = False


class Trees:
    """Makes trees at random moments until `storm_s`, changes some and deletes some."""

    def __init__(
        self, world: StormWorld, generator: np.random.Generator, users: Users, *, storm_s: float
    ) -> None:
        self._world = world
        self._generator = generator
        self._users = users
        self._storm_s = storm_s
        self._trees: dict[str, Tree] = {}
        self._made = 0
        self._is_calm = False
        self._restored_s = 0.0

    def start(self) -> None:
        """Post everything that is to happen."""
        for _ in range(int(self._generator.integers(*_TREES))):
            self._world.post_when_up(self._add, self._moment_s(0, self._storm_s - 200))
            self._world.post_when_up(self._change_minimum, self._moment_s(60, self._storm_s))
        self._world.post_when_up(self._delete, self._moment_s(60, self._storm_s))
        self._world.post(self._look, _LOOK_S)

    def calm(self) -> None:
        """Nothing is made, changed or deleted any more."""
        self._is_calm = True

    def _add(self) -> None:
        if self._is_calm:
            return
        self._made += 1
        name = f"tree-{self._made}"
        count = int(self._generator.integers(2, 4))
        needed = max(1, count - 1) if self._strikes(0.3) else count
        priority_class = str(self._generator.choice(["", "", "", "", "low", "high"]))
        manifest = composite_manifest(name, needed, priority_class=priority_class)
        if self._strikes(0.7):
            bound = str(self._generator.choice(["30", "60s", "2m"]))
            manifest["metadata"]["annotations"] = {"muster.dev/bind-timeout": bound}
        groups = tuple(f"gang-{name}-{letter}" for letter in "abc"[:count])
        self._trees[name] = Tree(manifest, groups)
        self._world.post_when_up(
            partial(self._apply, name), float(self._generator.choice([0.0, 0.0, 2.0, 20.0]))
        )
        for group in groups:
            late_s = float(self._generator.choice([0.0, 0.0, 2.0, 20.0]))
            self._users.add(self._draw(group, name, priority_class), late_s=late_s)
        if self._strikes(0.4):
            denied = groups[int(self._generator.integers(count))]  # its tree is left in part
            self._world.limit_bindings(denied, 0, self._moment_s(60, 400))

    def _draw(self, name: str, parent: str, priority_class: str) -> Gang:
        """One group of a tree: a gang, or basic."""
        size = int(self._generator.integers(1, 5))
        least = int(self._generator.integers(1, size + 1)) if self._strikes(0.3) else size
        min_count = None if self._strikes(0.15) else least
        manifest = group_manifest(name, min_count, priority_class=priority_class, parent=parent)
        annotations: dict[str, str] = {}
        if min_count is not None and self._strikes(0.2):
            annotations["muster.dev/bind-timeout"] = "45s"
        if min_count is not None and self._strikes(0.3):
            annotations["muster.dev/on-member-loss"] = str(self._generator.choice(POLICIES))
        manifest["metadata"]["annotations"] = annotations
        cpu = str(self._generator.choice(["1", "1", "500m", "2"]))
        return Gang(
            name=name,
            size=size,
            spec=pod_spec(
                {"cpu": cpu}, scheduler=SCHEDULER_NAMES[0], group=name, priority_class=priority_class
            )
            | self._users.supplies.draw(),
            manifest=manifest,
            pod_annotations=self._users.draw_ending(),
            owner_uid=self._users.make_owner(name) if self._strikes(0.9) else "",
            keeps_names=self._strikes(0.5),
            gated=frozenset(number for number in range(size) if self._strikes(0.02)),
            made={},
        )

    def _apply(self, name: str) -> None:
        if tree := self._trees.get(name):
            tree.is_applied = True
            self._world.client.create("composite", tree.manifest)

    def _change_minimum(self) -> None:
        name = self._pick()
        if self._is_calm or not name or name not in self._world.ledger.composites:
            return
        needed = int(self._generator.integers(1, len(self._trees[name].groups) + 1))
        change = {"spec": {"schedulingPolicy": {"gang": {"minGroupCount": needed}}}}
        if self._world.client.patch("composite", name, change) is not None:
            self._trees[name].manifest["spec"]["schedulingPolicy"] = change["spec"]["schedulingPolicy"]
            self._world.count("user changed minGroupCount")

    def _delete(self) -> None:
        name = self._pick()
        if self._is_calm or not name:
            return
        for group in self._trees.pop(name).groups:
            self._users.remove(group)
        self._world.client.delete("composite", name)
        self._world.count("user deleted a tree")

    def _look(self) -> None:
        """After a backup was restored: what was made since is made again, what was deleted is deleted."""
        self._world.post(self._look, _LOOK_S)
        if self._restored_s == self._world.restored_s or not self._world.is_up:
            return
        self._restored_s = self._world.restored_s
        for composite in list(self._world.ledger.composites.values()):
            if name_of(composite) not in self._trees:
                self._world.client.delete("composite", name_of(composite))
        for tree in self._trees.values():
            if tree.is_applied:
                self._world.client.create("composite", tree.manifest)

    def _moment_s(self, first_s: float, last_s: float) -> float:
        return float(self._generator.uniform(first_s, last_s))

    def _strikes(self, chance: float) -> bool:
        return bool(self._generator.random() < chance)

    def _pick(self) -> str:
        names = sorted(self._trees)
        return names[int(self._generator.integers(len(names)))] if names else ""
