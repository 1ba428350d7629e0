"""A product broken on purpose is found out, by the checker that is there for it, within a few seeds.

Each test takes one promise out of the product and plays seeds until a checker complains.
"""

import numpy as np
import pytest

from muster.cluster.state import ClusterState
from muster.framework.points import NodeVerdict
from muster.framework.status import Status
from muster.plugins.gang_scheduling import GangScheduling
from muster.plugins.node_resources import NodeResourcesFit
from muster.scheduling.books import Books
from muster.scheduling.members import Cast, Stage
from muster.scheduling.queue import Queue
from muster.scheduling.scheduler import Scheduler
from muster.scheduling.speech import Speech
from muster.sim.report import Report
from muster.sim.run import run_seed
from muster.sim.told import RoomAsTold

SEEDS_MAX = 12


def first_violation() -> Report:
    """The report of the first seed that ends in a violation; fails when none does."""
    for seed in range(2, 2 + SEEDS_MAX):
        report = run_seed(seed)
        if report.violation:
            return report
    pytest.fail("nobody noticed")


def test_a_gang_placed_in_part_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(GangScheduling, "placement_feasible", lambda *_, **__: Status.success())
    report = first_violation()
    assert report.violation.startswith("gang whole:")
    assert report.replay.startswith(f"muster simulate --seed {report.seed} --scenario churn --until-event ")


def test_a_node_filled_beyond_its_room_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    give_everybody_room(monkeypatch)
    assert first_violation().violation.startswith("room as told:")


def test_a_node_filled_beyond_its_room_is_found_by_what_the_api_shows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give_everybody_room(monkeypatch)
    monkeypatch.setattr(RoomAsTold, "judge", lambda *_: None)
    assert first_violation().violation.startswith("node room:")


def give_everybody_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every node take every pod, a hundred times over."""

    def every_row(self: object, pod: object, snapshot: object, rows: np.ndarray) -> NodeVerdict:
        return NodeVerdict(np.ones(len(rows), dtype=np.bool_))

    def many(self: object, pod: object, snapshot: object, rows: np.ndarray) -> np.ndarray:
        return np.full(len(rows), 100, dtype=np.int64)

    monkeypatch.setattr(NodeResourcesFit, "filter", every_row)
    monkeypatch.setattr(NodeResourcesFit, "capacity", many)


def test_room_that_wakes_nobody_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = Queue.refuse

    def refuse_for_ever(self: Queue, key: object, *args: object, **kwargs: object) -> None:
        refuse(self, key, *args, **kwargs)  # type: ignore[arg-type]
        entry = self.find(key)  # type: ignore[arg-type]
        assert entry is not None
        entry.due_s = np.inf
        self._due.remove(key)  # type: ignore[arg-type]

    monkeypatch.setattr(Queue, "refuse", refuse_for_ever)
    monkeypatch.setattr(Books, "tell", lambda *_, **__: None)
    assert first_violation().violation.startswith("room is used:")


def test_a_placed_group_that_never_says_so_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cast, "accepted_count", property(lambda cast: -cast.placed_count))
    monkeypatch.setattr(Cast, "placed_count", property(placed_count))
    assert first_violation().violation.startswith("scheduled is said:")


def placed_count(cast: Cast) -> int:
    """What the product counts as placed, not leaning on what is broken here."""
    return sum(len(cast.stages[stage]) for stage in (Stage.ASSUMED, Stage.BOUND, Stage.SUCCEEDED))


def test_a_condition_that_is_true_too_early_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cast, "placed_count", property(placed_count))
    monkeypatch.setattr(Cast, "accepted_count", 100)
    assert first_violation().violation.startswith("true stays true:")


def test_a_pod_that_changes_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scheduler, "_touch", lambda *_, **__: None)
    assert first_violation().violation.startswith("nothing forgotten:")


def test_room_that_is_never_given_back_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    release = ClusterState._release

    def release_the_name_only(self: ClusterState, key: object, record: object) -> None:
        requested = self.table.requested.copy()
        release(self, key, record)  # type: ignore[arg-type]
        self.table.requested[:] = requested

    monkeypatch.setattr(ClusterState, "_release", release_the_name_only)
    assert first_violation().violation.startswith("nothing forgotten:")


def test_a_group_that_waits_in_silence_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Speech, "arm", lambda *_, **__: None)
    assert first_violation().violation.startswith("says why:")
