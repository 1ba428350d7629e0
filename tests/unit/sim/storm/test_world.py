"""The world as a whole: outages, backups, and processes that are started again."""

import pytest
from tests.unit.sim.storm.stage import Stage

from muster.apiserver.store import Backup
from muster.sim.run import START_S
from muster.sim.storm import world


def test_nothing_happens_while_the_server_is_away() -> None:
    stage = Stage()
    stage.run(10.0)
    stage.gang("g", 2)
    stage.world.go_away(60.0)
    stage.run(59.0)
    assert stage.bound() == []
    stage.run(60.0)
    assert stage.bound() == ["g-0", "g-1"]


def test_what_was_made_after_a_backup_never_was() -> None:
    stage = Stage()
    stage.run(10.0)
    backup = stage.world.store.backup()
    stage.gang("g", 2)
    stage.run(5.0)
    stage.world.restore(backup)
    stage.run(1.0)
    assert stage.world.ledger.pods == {}
    assert stage.world.store.revision >= backup.revision


def test_the_cluster_goes_on_after_a_backup() -> None:
    stage = Stage()
    stage.run(10.0)
    stage.world.restore(stage.world.store.backup())
    stage.gang("g", 2)
    stage.run(60.0)
    assert stage.bound() == ["g-0", "g-1"]


def test_a_process_that_died_is_started_again() -> None:
    stage = Stage()
    stage.run(5.0)
    stage.world.replicas["a"].end("crashed")
    assert "a" not in stage.world.replicas
    stage.run(9.0)
    assert stage.world.replicas["a"].identity != "muster-a-1"


def with_much_to_take_back(stage: Stage) -> Backup:
    """A backup, and more writes after it than revisions catch up with in a minute."""
    stage.run(10.0)
    backup = stage.world.store.backup()
    for number in range(120):
        stage.pod(f"p{number}", scheduler="nobody")
    stage.run(20.0)
    return backup


def test_a_process_that_stands_still_while_a_backup_is_restored_is_started_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(world, "_RESTARTED_AFTER_RESTORE", 0.0)
    stage = Stage()
    backup = with_much_to_take_back(stage)
    still = stage.world.replicas["b"]
    still.pause(60.0)
    stage.world.restore(backup)
    stage.run(15.0)
    assert still.is_dead


def test_who_has_died_before_a_backup_was_restored_may_have_seen_what_it_takes_back() -> None:
    stage = Stage()
    backup = with_much_to_take_back(stage)
    killed = stage.world.replicas["a"]
    killed.kill()
    stage.run(10.0)
    stage.world.restore(backup)
    assert stage.world.is_outdated(killed)


def test_a_process_that_saw_another_past_than_a_backup_holds_is_started_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(world, "_RESTARTED_AFTER_RESTORE", 0.0)
    stage = Stage()
    stage.run(10.0)
    older = stage.world.store.backup()
    with_much_to_take_back(stage)
    newer, taken_s = stage.world.store.backup(), stage.world.now_s()
    stage.world.restore(older)
    stage.run(20.0)
    begun_between = stage.world.replicas["a"]
    assert begun_between.seen < newer.revision
    stage.world.restore(newer, taken_s - 1.0)
    stage.run(15.0)
    assert begun_between.is_dead


def test_what_is_to_be_done_while_the_api_server_is_away_is_done_when_it_is_back() -> None:
    stage = Stage(nodes=1, replicas=False)
    done: list[float] = []
    stage.run(1.0)
    stage.world.go_away(20.0)
    stage.world.post_when_up(lambda: done.append(stage.world.now_s() - START_S), 2.0)
    stage.run(60.0)
    assert done == [23.0]  # looked for every five seconds


def test_a_limit_to_the_bindings_of_a_group_ends() -> None:
    stage = Stage()
    stage.run(10.0)
    stage.world.limit_bindings("g", 1, 100.0)
    stage.gang("g", 2)
    stage.run(60.0)
    assert len(stage.bound()) == 1
    stage.run(100.0)
    assert stage.bound() == ["g-0", "g-1"]
