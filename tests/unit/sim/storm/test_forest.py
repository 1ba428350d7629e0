"""What the API shows of composite groups: who has started, who waits, who waits with right."""

from tests.unit.sim.storm.stage import Stage

from muster.sim.client import group_manifest
from muster.sim.storm.forest import Forest, TrueAfterItsTree
from muster.sim.storm.promises import Starts
from muster.sim.view import name_of


def planted(*, denied: str = "", needed: int | None = None) -> tuple[Stage, Forest]:
    """A tree of gangs of two on two nodes of 8 CPUs, after a while; nobody may bind a member of `denied`."""
    stage = Stage()
    forest = Forest(stage.world.ledger)
    stage.world.ledger.readers.append(forest)
    stage.grow(denied=denied, needed=needed)
    return stage, forest


def empty(stage: Stage, group: str) -> None:
    for pod in stage.world.ledger.members_of(group):
        stage.world.client.delete("pod", name_of(pod), gracePeriodSeconds=0)
    stage.run(1.0)


def test_a_tree_whose_groups_are_whole_has_started() -> None:
    stage, forest = planted()
    assert forest.has_started(stage.world.ledger.composites["tree"])
    assert not forest.may_wait(stage.world.ledger.groups["a"])


def test_a_tree_in_part_is_under_way_with_all_its_groups() -> None:
    stage, forest = planted(denied="b")
    assert not forest.has_started(stage.world.ledger.composites["tree"])
    assert forest.is_under_way(stage.world.ledger.groups["a"])
    assert forest.may_wait(stage.world.ledger.groups["a"])


def test_a_tree_that_needs_one_group_has_started_with_one() -> None:
    stage, forest = planted(denied="b", needed=1)
    assert forest.has_started(stage.world.ledger.composites["tree"])


def test_what_a_tree_holds_is_what_may_be_taken_back() -> None:
    stage, forest = planted(denied="b")
    tree = stage.world.ledger.composites["tree"]
    assert forest.holding(tree) == []  # pods without a controller stay
    stage.own("a-0", "a-1")
    assert forest.holding(tree) == ["a-0", "a-1"]


def test_a_group_of_a_started_tree_that_is_emptied_may_begin_anew_until_all_are_whole_again() -> None:
    stage, forest = planted()
    empty(stage, "b")
    assert forest.was_emptied(stage.world.ledger.composites["tree"])
    assert forest.may_wait(stage.world.ledger.groups["a"])
    assert not forest.is_under_way(stage.world.ledger.groups["a"])
    stage.gang("b", 2, parent="tree")
    stage.run(20.0)
    assert not forest.may_wait(stage.world.ledger.groups["a"])


def test_a_group_that_is_emptied_before_the_last_is_whole_does_not_count() -> None:
    stage, forest = planted(denied="b")
    empty(stage, "a")
    stage.world.client.delete("group", "a")
    stage.world.door.bound_max.clear()
    stage.run(60.0)
    assert not forest.has_started(stage.world.ledger.composites["tree"])


def test_a_group_whose_tree_is_not_there_waits_with_right() -> None:
    stage, forest = planted()
    stage.world.client.create("group", group_manifest("c", 1, parent="another"))
    stage.run(1.0)
    assert forest.is_hopeless(stage.world.ledger.groups["c"])
    assert forest.may_wait(stage.world.ledger.groups["c"])
    assert not forest.is_hopeless(stage.world.ledger.groups["a"])


def test_a_group_whose_tree_lacks_members_of_another_waits_with_right() -> None:
    stage, forest = planted(needed=3)
    assert not forest.is_possible(stage.world.ledger.composites["tree"])
    assert forest.is_hopeless(stage.world.ledger.groups["a"])


def test_a_group_waits_with_right_while_another_of_its_tree_is_held() -> None:
    stage, forest = planted()
    stage.world.ledger.groups["b"]["metadata"]["annotations"] = {"muster.dev/on-member-loss": "hold"}
    assert not forest.is_hopeless(stage.world.ledger.groups["a"])
    stage.world.client.delete("pod", "b-0", gracePeriodSeconds=0)
    stage.run(1.0)
    stage.world.ledger.groups["b"]["metadata"]["annotations"] = {"muster.dev/on-member-loss": "hold"}
    assert forest.is_hopeless(stage.world.ledger.groups["a"])


def test_after_a_backup_a_tree_has_started_if_its_groups_say_so() -> None:
    stage, forest = planted()
    forest.restored(stage.world.now_s())
    assert forest.has_started(stage.world.ledger.composites["tree"])
    for group in stage.world.ledger.groups.values():
        group["status"]["conditions"] = []
    stage.world.ledger.members["b"].clear()
    forest.restored(stage.world.now_s())
    assert not forest.has_started(stage.world.ledger.composites["tree"])


def test_after_a_backup_a_tree_has_started_if_a_group_says_that_it_is_whole() -> None:
    stage, forest = planted()
    stage.run(60.0)
    empty(stage, "b")
    stage.world.client.delete("group", "b")
    stage.run(1.0)
    forest.restored(stage.world.now_s())
    assert forest.has_started(stage.world.ledger.composites["tree"])


# ── what is said ─────────────────────────────────────────────────────────────────────────────────


def said_whole(*, denied: str) -> list[str]:
    """What is complained of where the first group of a tree says that it is whole."""
    stage = Stage()
    starts, forest = Starts(stage.world.ledger), Forest(stage.world.ledger)
    checker = TrueAfterItsTree(stage.world.ledger, starts, forest)
    stage.world.ledger.readers += [starts, forest, checker]
    stage.grow(denied=denied)
    assert list(checker.check(0.0)) == []
    said = {"conditions": [{"type": "muster.dev/Whole", "status": "True"}]}
    before = stage.world.ledger.groups["a"] | {"status": {}}
    checker.see("podgroups.scheduling.k8s.io", before, before | {"status": said}, 0.0)
    return list(checker.check(0.0))


def test_a_group_that_says_it_is_whole_before_its_tree_has_started_is_found() -> None:
    assert said_whole(denied="b") == [
        "group a says that it is whole, and 1 of 2 groups of its tree were ever bound"
    ]


def test_a_group_of_a_started_tree_may_say_that_it_is_whole() -> None:
    assert said_whole(denied="") == []
