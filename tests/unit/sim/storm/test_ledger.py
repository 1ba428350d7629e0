"""The ledger follows every write, and begins anew with a restored store."""

from tests.unit.sim.storm.stage import Stage

from muster.sim.storm.ledger import PODS
from muster.sim.view import Object, name_of


class Notes:
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def see(self, kind: str, before: Object | None, after: Object | None, now_s: float) -> None:
        thing = after or before
        if kind == PODS and thing is not None:
            self.lines.append(f"{'+' if before is None else '-' if after is None else '~'}{name_of(thing)}")

    def restored(self, now_s: float) -> None:
        self.lines.append("restored")


def test_readers_are_told_of_every_write() -> None:
    stage, notes = Stage(replicas=False), Notes()
    stage.world.ledger.readers.append(notes)
    stage.pod("p")
    stage.run(0.1)
    stage.world.client.delete("pod", "p", gracePeriodSeconds=0)
    stage.run(0.1)
    assert (notes.lines[0], notes.lines[-1]) == ("+p", "-p")


def test_members_are_known_by_their_group() -> None:
    stage = Stage(replicas=False)
    stage.gang("g", 2)
    stage.pod("p")
    stage.run(0.1)
    assert [name_of(pod) for pod in stage.world.ledger.members_of("g")] == ["g-0", "g-1"]


def test_a_restored_store_is_read_anew() -> None:
    stage, notes = Stage(replicas=False), Notes()
    stage.pod("old")
    stage.run(0.1)
    backup = stage.world.store.backup()
    stage.pod("new")
    stage.run(0.1)
    stage.world.ledger.readers.append(notes)
    stage.world.restore(backup)
    assert sorted(stage.world.ledger.pods) == ["old"]
    assert notes.lines == ["restored"]
    assert sorted(stage.world.ledger.view().pods) == ["old"]
