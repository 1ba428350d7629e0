"""Trees are made, changed and deleted from the seed, and made again after a backup was restored."""

from collections import Counter

from tests.unit.sim.storm.stage import Stage, generator

from muster.sim.storm.supplies import Supplies
from muster.sim.storm.trees import Trees
from muster.sim.storm.users import Users
from muster.sim.view import min_count_of, parent_of


def grown(seconds: float, *, seed: int = 1, storm_s: float = 400.0) -> tuple[Stage, Trees, Users]:
    """Trees of gangs, and nothing else."""
    stage = Stage(nodes=4)
    users = Users(
        stage.world,
        generator(seed),
        Supplies(stage.world, generator(seed), storm_s=storm_s),
        storm_s=storm_s,
    )
    trees = Trees(stage.world, generator(seed), users, storm_s=storm_s)
    trees.start()
    stage.run(seconds)
    return stage, trees, users


def test_trees_of_gangs_and_basic_groups_come_and_are_placed() -> None:
    groups = [group for seed in range(8) for group in grown(200.0, seed=seed)[0].world.ledger.groups.values()]
    assert {"tree-1", "tree-2"} <= {parent_of(group) for group in groups}
    assert {min_count_of(group) is None for group in groups} == {True, False}


def test_members_of_a_tree_are_bound() -> None:
    assert sum(len(grown(200.0, seed=seed)[0].bound()) for seed in range(8)) >= 20


def test_a_minimum_changes_and_a_tree_is_deleted() -> None:
    stages = [grown(450.0, seed=seed)[0] for seed in range(4)]
    counts = sum((stage.counts for stage in stages), Counter[str]())
    assert counts["user changed minGroupCount"] >= 1
    assert counts["user deleted a tree"] >= 1
    for stage in stages:
        assert {parent_of(group) for group in stage.world.ledger.groups.values()} <= set(
            stage.world.ledger.composites
        )


def test_in_calm_weather_no_tree_is_made() -> None:
    stage, trees, _ = grown(0.0)
    trees.calm()
    stage.run(450.0)
    assert stage.world.ledger.composites == {}
    assert stage.counts["user deleted a tree"] == 0


def test_what_was_made_after_a_backup_is_made_again() -> None:
    stage, _, _ = grown(0.0)
    backup = stage.world.store.backup()
    stage.run(200.0)
    made = set(stage.world.ledger.composites)
    assert made
    stage.world.restore(backup)
    stage.run(1.0)
    assert not stage.world.ledger.composites
    stage.run(10.0)
    assert set(stage.world.ledger.composites) == made


def test_the_bindings_of_some_groups_are_denied_for_a_while() -> None:
    stages = [grown(200.0, seed=seed)[0] for seed in range(4)]
    limited = [stage.world.door.bound_max for stage in stages]
    assert any(limited)
    assert all(name.startswith("gang-tree-") for names in limited for name in names)
    for stage in stages:
        stage.run(400.0)
        assert not stage.world.door.bound_max
