"""What must hold at the end is found broken where it is."""

import pytest
from tests.unit.sim.storm.stage import Stage

from muster.api.times import format_seconds
from muster.sim.storm.forest import Forest
from muster.sim.storm.promises import Starts
from muster.sim.storm.settled import COUNTED_WITHIN_S, ConditionsAgree, KnowsWhatIs, WholeOrEmpty


def settled(size: int, *, cpu: str = "1") -> tuple[Stage, Starts]:
    """A gang on two nodes of 8 CPUs, after a while."""
    stage = Stage()
    starts = Starts(stage.world.ledger)
    stage.world.ledger.readers.append(starts)
    stage.run(10.0)
    stage.gang("g", size, cpu=cpu)
    stage.run(10.0)
    return stage, starts


def complaints(stage: Stage, starts: Starts) -> list[str]:
    return list(WholeOrEmpty(stage.world, starts, Forest(stage.world.ledger)).check(stage.world.now_s()))


def test_a_gang_that_is_whole_is_in_order() -> None:
    stage, starts = settled(4)
    assert complaints(stage, starts) == []
    assert list(ConditionsAgree(stage.world, Forest(stage.world.ledger)).check(0.0)) == []


def test_a_gang_that_waits_is_found() -> None:
    stage, starts = settled(3, cpu="8")
    assert complaints(stage, starts) == ["gang g has 0 of 3 placed and 3 wait"]


@pytest.mark.parametrize(
    ("cause", "after_s", "count"),
    [
        pytest.param("members were lost: 1 of 3 were left", 300.0, 0, id="not to be tried yet"),
        pytest.param("members were lost: 1 of 3 were left", -10.0, 1, id="its time is over"),
        pytest.param("it was not whole within 30 s", 300.0, 1, id="it never starts"),
    ],
)
def test_a_gang_that_was_released_for_a_loss_waits_its_time_with_right(
    cause: str, after_s: float, count: int
) -> None:
    stage, starts = settled(3, cpu="8")
    leader = stage.world.deciding
    assert leader is not None
    again = format_seconds(leader.clock.now_s() + after_s)
    text = f"3 created; releases in a row: 6, not tried again before {again}; the last because {cause}"
    said = {"type": "muster.dev/Whole", "status": "False", "reason": "Released", "message": text}
    stage.world.ledger.groups["g"]["status"] = {"conditions": [said]}
    assert len(complaints(stage, starts)) == count


def test_a_lone_pod_that_waits_is_found_but_not_a_rivals() -> None:
    stage, starts = settled(4)
    stage.pod("r", scheduler="rival")
    stage.run(1.0)
    assert complaints(stage, starts) == []
    stage.world.ledger.pods["r"]["spec"]["schedulerName"] = "muster"
    assert complaints(stage, starts) == ["pod r waits"]


@pytest.mark.parametrize(("has_started", "count"), [(False, 1), (True, 0)])
def test_a_gang_short_of_members_may_hold_only_if_it_has_started(has_started: bool, count: int) -> None:
    stage, starts = settled(2)
    stage.world.ledger.members["g"].pop("g-1")
    stage.object("g-0")["metadata"]["ownerReferences"] = [{"controller": True}]
    if not has_started:
        starts.started.clear()
        starts.ever_bound.clear()
    assert len(complaints(stage, starts)) == count


def test_a_group_that_is_placed_and_does_not_say_so_is_found() -> None:
    stage, _ = settled(2)
    group = stage.world.ledger.groups["g"]
    group["status"]["conditions"] = []
    assert list(ConditionsAgree(stage.world, Forest(stage.world.ledger)).check(0.0)) == [
        "group g has 2 of 2 placed and does not say so"
    ]


def test_a_count_that_is_not_so_is_found() -> None:
    stage, _ = settled(2)
    group = stage.world.ledger.groups["g"]
    whole = {"type": "muster.dev/Whole", "status": "True", "reason": "Running"}
    told = {**whole, "message": "2 created, 2 bound, 1 running of 2 needed"}
    others = [each for each in group["status"]["conditions"] if each["type"] != whole["type"]]
    group["status"]["conditions"] = [*others, told]
    later_s = stage.world.now_s() + COUNTED_WITHIN_S
    assert len(list(ConditionsAgree(stage.world, Forest(stage.world.ledger)).check(later_s))) == 1
    assert list(ConditionsAgree(stage.world, Forest(stage.world.ledger)).check(stage.world.now_s())) == []


def test_those_that_have_succeeded_are_not_counted_among_the_running() -> None:
    stage, _ = settled(2)
    stage.object("g-0")["status"] |= {"phase": "Succeeded", "startTime": "2099-01-01T00:00:00Z"}
    group = stage.world.ledger.groups["g"]
    whole = {"type": "muster.dev/Whole", "status": "True", "reason": "Running"}
    others = [each for each in group["status"]["conditions"] if each["type"] != whole["type"]]
    told = {**whole, "message": "2 created, 2 bound, 1 running, 1 succeeded of 2 needed"}
    group["status"]["conditions"] = [*others, told]
    assert (
        list(
            ConditionsAgree(stage.world, Forest(stage.world.ledger)).check(
                stage.world.now_s() + COUNTED_WITHIN_S
            )
        )
        == []
    )


def test_a_replica_that_was_not_told_that_a_pod_is_gone_is_found() -> None:
    stage, _ = settled(2)
    assert list(KnowsWhatIs(stage.world).check(0.0)) == []
    stage.world.ledger.pods.pop("g-1")
    said = list(KnowsWhatIs(stage.world).check(0.0))
    assert len(said) == len(stage.world.replicas)
    assert said[0].endswith("and it is None")


# ── composite groups ─────────────────────────────────────────────────────────────────────────────


def grown(*, needed: int | None = None, denied: str = "") -> tuple[Stage, Starts, Forest]:
    """A tree of two gangs of two, after a while."""
    stage = Stage()
    starts, forest = Starts(stage.world.ledger), Forest(stage.world.ledger)
    stage.world.ledger.readers += [starts, forest]
    stage.grow(needed=needed, denied=denied)
    stage.own(*stage.bound())
    return stage, starts, forest


def of_trees(stage: Stage, starts: Starts, forest: Forest) -> list[str]:
    found = WholeOrEmpty(stage.world, starts, forest).check(stage.world.now_s())
    return [complaint for complaint in found if complaint.startswith("tree")]


def test_a_tree_that_is_whole_is_in_order() -> None:
    assert of_trees(*grown()) == []


def test_a_tree_that_could_be_whole_and_is_not_is_found() -> None:
    assert of_trees(*grown(denied="b")) == ["tree tree has 1 of 2 groups whole, and others could be"]


def test_a_tree_that_cannot_be_whole_may_hold_nothing() -> None:
    stage, starts, forest = grown(denied="b")
    stage.world.ledger.members["b"].clear()
    assert of_trees(stage, starts, forest) == ["tree tree never started, and a-0, a-1 hold room"]
    stage.world.ledger.members["a"].clear()
    assert of_trees(stage, starts, forest) == []


def test_a_group_waits_with_right_where_its_tree_lacks_others() -> None:
    stage, starts, forest = grown(needed=3)
    assert list(WholeOrEmpty(stage.world, starts, forest).check(0.0)) == []
