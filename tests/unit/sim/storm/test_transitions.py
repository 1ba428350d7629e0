"""What happens is counted once, and what never happened is known."""

from tests.unit.sim.storm.stage import Stage

from muster.sim.coverage import missing
from muster.sim.storm.forest import Forest
from muster.sim.storm.promises import Starts
from muster.sim.storm.transitions import FAULTS, REQUIRED, TRANSITIONS, Transitions


def watched() -> Stage:
    stage = Stage(nodes=1)
    starts = Starts(stage.world.ledger)
    count = stage.world.count
    forest = Forest(stage.world.ledger)
    transitions = Transitions(stage.world.ledger, starts, forest, count)
    stage.world.ledger.readers += [starts, forest, transitions]
    stage.run(10.0)
    return stage


def test_a_gang_that_starts_is_counted_once() -> None:
    stage = watched()
    stage.gang("g", 3)
    stage.run(20.0)
    assert stage.counts["gang started"] == 1
    assert stage.counts["gang half held"] == 1
    assert stage.counts["gang started after it was half held"] == 1


def test_a_gang_that_loses_members_and_gets_them_back_is_counted() -> None:
    stage = watched()
    stage.gang("g", 2)
    stage.run(5.0)
    pod = stage.object("g-0")
    stage.world.client.delete("pod", "g-0", gracePeriodSeconds=0)
    stage.run(1.0)
    assert stage.counts["gang lost members after its start"] == 1
    keys = ("schedulerName", "containers", "schedulingGroup", "restartPolicy")
    spec = {key: value for key, value in pod["spec"].items() if key in keys}
    stage.world.client.create("pod", {"kind": "Pod", "metadata": {"name": "g-0"}, "spec": spec})
    stage.run(5.0)
    assert stage.counts["gang whole again"] == 1


def test_what_never_happened_is_missing() -> None:
    stage = watched()
    assert set(missing(stage.counts, REQUIRED)) > {"gang started", "watch expired (410)"}
    assert set(REQUIRED) == set(FAULTS) | set(TRANSITIONS)


def test_a_tree_that_starts_after_it_was_in_part_is_counted_once_and_so_is_one_of_its_groups_emptied() -> (
    None
):
    stage = watched()
    stage.tree("tree", "a b")
    stage.run(20.0)
    assert stage.counts["tree in part"] + stage.counts["tree started"] == 1
    assert stage.counts["tree started"] + stage.counts["tree started after it was in part"] == 1
    for name in ("a-0", "a-1"):
        stage.world.client.delete("pod", name, gracePeriodSeconds=0)
    stage.run(1.0)
    assert stage.counts["group of a started tree emptied"] == 1


def test_a_tree_that_is_given_up_is_counted() -> None:
    stage = watched()
    stage.world.door.bound_max["b"] = 0
    stage.tree("tree", "a b")
    stage.run(5.0)
    stage.own("a-0", "a-1")
    stage.run(1.0)
    stage.world.client.patch("pod", "a-0", {"metadata": {"labels": {"seen": "again"}}})
    stage.run(1.0)
    for name in ("a-0", "a-1"):
        stage.world.client.delete("pod", name, gracePeriodSeconds=0)
    stage.run(1.0)
    assert stage.counts["tree in part"] == 1
    assert stage.counts["tree empty after it was in part"] == 1
