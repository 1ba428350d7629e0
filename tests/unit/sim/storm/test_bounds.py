"""What may be so for a while only is found when it lasts, and only then."""

import pytest
from tests.unit.sim.storm.stage import Stage, with_denied_gang

from muster.sim.storm import world
from muster.sim.storm.bounds import (
    GRACE_S,
    NOTICED_WITHIN_S,
    SAID_WITHIN_S,
    Bounded,
    NotHeldIdle,
    NoticesBackup,
    SaysWhatIs,
    TreesNotHeldIdle,
)
from muster.sim.storm.forest import Forest
from muster.sim.storm.promises import Starts


@pytest.fixture
def stage() -> Stage:
    return with_denied_gang()


def held(stage: Stage, *, owned: bool) -> NotHeldIdle:
    """A checker that sees g-0 bound, with or without a controller."""
    starts = Starts(stage.world.ledger)
    checker = NotHeldIdle(stage.world, starts)
    stage.world.ledger.readers += [starts, checker]
    stage.run(1.0)
    pod = stage.object("g-0")
    pod["spec"]["nodeName"] = "n0"
    if owned:
        pod["metadata"]["ownerReferences"] = [{"controller": True}]
    checker.see("pods", None, pod, stage.world.now_s())
    look(checker, stage)
    return checker


def test_a_gang_that_is_half_held_for_too_long_is_found(stage: Stage) -> None:
    checker = held(stage, owned=True)
    now_s = stage.world.now_s()
    assert list(checker.check(now_s + 300.0 + GRACE_S - 1.0)) == []
    assert "gang g holds 1 of 2" in next(iter(checker.check(now_s + 300.0 + GRACE_S + 1.0)))


def test_a_gang_of_bare_pods_is_exempt(stage: Stage) -> None:
    checker = held(stage, owned=False)
    assert list(checker.check(stage.world.now_s() + 1000.0)) == []


def test_time_without_a_leader_does_not_count(stage: Stage) -> None:
    checker = held(stage, owned=True)
    stage.world.is_up = False
    assert list(checker.check(stage.world.now_s() + 1000.0)) == []


def half_grown(*, owned: bool) -> tuple[TreesNotHeldIdle, Stage]:
    """A checker that sees a tree of which one group is bound and the other may not be."""
    stage = Stage()
    forest = Forest(stage.world.ledger)
    checker = TreesNotHeldIdle(stage.world, forest)
    stage.world.ledger.readers += [forest, checker]
    stage.grow(denied="b")
    stage.own(*(("a-0", "a-1") if owned else ()))
    checker.see("pods", None, stage.object("a-0"), stage.world.now_s())
    look(checker, stage)
    return checker, stage


def test_a_tree_that_is_half_held_for_too_long_is_found() -> None:
    checker, stage = half_grown(owned=True)
    now_s = stage.world.now_s()
    assert list(checker.check(now_s + 300.0 + GRACE_S - 1.0)) == []
    found = next(iter(checker.check(now_s + 300.0 + GRACE_S + 1.0)))
    assert found.startswith("tree tree has not started and holds a-0, a-1 since")


def test_of_a_tree_bare_pods_are_exempt() -> None:
    checker, stage = half_grown(owned=False)
    assert list(checker.check(stage.world.now_s() + 1000.0)) == []


def test_a_group_of_a_tree_under_way_may_not_say_that_it_is_whole() -> None:
    stage = Stage()
    forest = Forest(stage.world.ledger)
    checker = SaysWhatIs(stage.world, forest)
    stage.world.ledger.readers += [forest, checker]
    stage.grow(denied="b")
    assert look(checker, stage, after_s=SAID_WITHIN_S + 1.0) == []
    group = stage.world.ledger.groups["a"]
    group["status"]["conditions"] = [{"type": "muster.dev/Whole", "status": "True"}]
    checker.see("podgroups.scheduling.k8s.io", None, group, stage.world.now_s())
    look(checker, stage)
    (found,) = look(checker, stage, after_s=2 * SAID_WITHIN_S + 2.0)
    assert "group a has 2 of 2 placed" in found


def test_a_basic_group_is_no_gang_and_may_hold_what_it_likes(stage: Stage) -> None:
    checker = held(stage, owned=True)
    group = stage.world.ledger.groups["g"]
    group["spec"]["schedulingPolicy"] = {"basic": {}}
    checker.restored(stage.world.now_s())
    look(checker, stage)
    assert list(checker.check(stage.world.now_s() + 1000.0)) == []


def look(checker: Bounded, stage: Stage, *, after_s: float = 0.0) -> list[str]:
    return list(checker.check(stage.world.now_s() + after_s))


def unsaid(conditions: list[dict[str, str]]) -> tuple[SaysWhatIs, Stage]:
    """A checker that sees a whole gang of two which says no more than this."""
    stage = Stage(nodes=1)
    checker = SaysWhatIs(stage.world, Forest(stage.world.ledger))
    stage.run(10.0)
    stage.gang("g", 2, cpu="1")
    stage.run(10.0)
    group = stage.world.ledger.groups["g"]
    group["status"]["conditions"] = conditions
    checker.see("podgroups.scheduling.k8s.io", None, group, stage.world.now_s())
    look(checker, stage)
    return checker, stage


STARTED = {"type": "PodGroupInitiallyScheduled", "status": "True"}
IN_PART = {"type": "muster.dev/Whole", "status": "False"}


@pytest.mark.parametrize(
    ("conditions", "what"),
    [
        ([], "is not said to be scheduled"),
        ([STARTED, IN_PART], "is said to be scheduled, and muster.dev/Whole is False"),
    ],
)
def test_a_whole_gang_that_is_not_said_to_be_so_is_found(conditions: list[dict[str, str]], what: str) -> None:
    checker, stage = unsaid(conditions)
    assert look(checker, stage, after_s=SAID_WITHIN_S - 1.0) == []
    complaints = look(checker, stage, after_s=SAID_WITHIN_S + 1.0)
    assert len(complaints) == 1
    assert what in complaints[0]


def test_a_whole_gang_that_says_so_is_in_order() -> None:
    checker, stage = unsaid([STARTED])
    assert look(checker, stage, after_s=1000.0) == []


def test_time_in_which_nothing_may_be_said_does_not_count() -> None:
    checker, stage = unsaid([])
    stage.world.door.refuses_status = True
    assert look(checker, stage, after_s=1000.0) == []


@pytest.fixture
def unnoticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody starts schedulers anew after a backup was restored, however little it takes back."""
    monkeypatch.setattr(world, "_RESTARTED_AFTER_RESTORE", 0.0)
    monkeypatch.setattr(world, "_NOTICEABLE_WRITES", 0)


@pytest.mark.usefixtures("unnoticed")
def test_a_process_that_goes_on_after_a_restored_backup_is_found() -> None:
    stage = Stage(nodes=1)
    checker = NoticesBackup(stage.world)
    stage.run(10.0)
    backup = stage.world.store.backup()
    stage.run(10.0)
    now_s = stage.world.now_s()
    assert list(checker.check(now_s)) == []
    assert list(checker.check(now_s + 1000.0)) == []
    stage.world.restore(backup)
    assert list(checker.check(now_s + 1000.0 + NOTICED_WITHIN_S - 1.0)) == []
    assert len(list(checker.check(now_s + 1000.0 + NOTICED_WITHIN_S + 1.0))) == len(stage.world.replicas)


@pytest.mark.usefixtures("unnoticed")
def test_a_process_that_has_seen_nothing_of_what_a_backup_takes_back_may_go_on() -> None:
    stage = Stage(nodes=1)
    standby = stage.world.replicas["b"]
    standby.pause(30.0)
    stage.run(20.0)
    backup = stage.world.store.backup()
    stage.run(5.0)
    stage.world.restore(backup)
    checker = NoticesBackup(stage.world)
    complaints = []
    for _ in range(20):
        stage.run(5.0)
        complaints += list(checker.check(stage.world.now_s()))
    assert complaints == []
    assert stage.world.replicas["b"] is standby
    assert stage.world.replicas["a"].identity != "muster-a-1"


def test_both_replicas_notice_a_restored_backup_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(world, "_RESTARTED_AFTER_RESTORE", 0.0)
    stage = Stage(nodes=1)
    stage.run(10.0)
    backup = stage.world.store.backup()
    for number in range(120):
        stage.pod(f"p{number}", scheduler="nobody")
    stage.run(60.0)
    before = {replica.identity for replica in stage.world.replicas.values()}
    stage.world.restore(backup)
    assert stage.counts["restored, and nobody started the schedulers anew"] == 1
    stage.run(NOTICED_WITHIN_S)
    assert not before & {replica.identity for replica in stage.world.replicas.values()}
