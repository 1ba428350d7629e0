"""The world as a whole: outages, backups, and processes that are started again."""

from tests.unit.sim.storm.stage import Stage


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
