"""One group in one placement."""

from typing import Any

from tests.unit.scheduling.test_attempt import make_cast, make_runner

from muster.scheduling.board import Board, Outcome
from muster.scheduling.leaf import LeafTrial
from muster.testing.builders import ClusterBuilder, make_cluster


def play(cluster: ClusterBuilder, cpus: list[int], *, limit: int | None = None, **group: Any) -> Outcome:
    snapshot = cluster.snapshot()
    cast = make_cast(group.pop("min_count", 2), *({"cpu": cpu} for cpu in cpus), **group)
    rows = snapshot.live_rows()
    return LeafTrial(cast, cast.waiting(), Board(snapshot.fork()), make_runner(), rows, limit=limit).run()


def names(outcome: Outcome) -> list[str]:
    return [member.key.name for member, _ in outcome.board.all_placed()]


def test_no_more_members_are_placed_than_the_limit_says() -> None:
    outcome = play(make_cluster().node(cpu=8), [1, 1, 1, 1], limit=2)
    assert (outcome.ok, names(outcome)) == (True, ["g-0", "g-1"])


def test_who_does_not_fit_does_not_use_up_the_limit() -> None:
    outcome = play(make_cluster().node(cpu=3), [9, 1, 1, 1], limit=2)
    assert names(outcome) == ["g-1", "g-2"]


def test_a_leaf_that_misses_its_minimum_says_so_for_its_group() -> None:
    outcome = play(make_cluster().node(cpu=1), [1, 1])
    assert not outcome.ok
    assert list(outcome.findings.group_texts.values()) == [outcome.status.message]
    assert outcome.findings.culprit is not None
