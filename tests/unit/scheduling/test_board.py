"""Trials on branches."""

from muster.framework.groups import ObjectKey
from muster.scheduling.board import Board, Findings
from muster.scheduling.members import Cast, Member, Stage
from muster.testing.builders import make_cluster, make_pod


def test_what_a_branch_places_is_not_on_the_board_it_came_from() -> None:
    board, cast = Board(make_cluster().node().snapshot().fork()), Cast()
    branch = board.branch()
    member = Member(make_pod("p", cpu=1), None, Stage.WAITING, 1)
    branch.fork.place(member.pod, 0)
    branch.add(cast, [(member, 0)])
    assert branch.placed(cast) == branch.all_placed() == ((member, 0),)
    assert board.placed(cast) == board.all_placed() == ()
    assert board.fork.pods_on(0) == ()


def test_what_was_found_first_stays() -> None:
    first, second = Findings(), Findings()
    p, q = ObjectKey("default", "p"), ObjectKey("default", "q")
    first.own_texts[p] = "early"
    second.own_texts.update({p: "late", q: "late"})
    second.culprit = Cast()
    first.merge(second)
    assert first.own_texts == {p: "early", q: "late"}
    assert first.culprit is second.culprit
