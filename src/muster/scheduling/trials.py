"""Trying an entity on a fork without those who may be driven out for it: greedily, in other orders, exactly.

In come the entity's cast and the rules; out comes a way to try it that the choice of victims asks again and
again (`placement/eviction.py`), and what a try costs.  Members, or groups of a tree, that are unlike and find
no room greedily are searched for exactly where that is a matter of milliseconds.  Comes from `preemption.py`.
"""

from collections.abc import Sequence

import numpy as np

from muster.api.core import Pod
from muster.base.arrays import Int32
from muster.base.errors import PluginError
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner
from muster.placement.eviction import TRY_WORK, On, Trial
from muster.placement.exact import Limits, solve
from muster.placement.shapes import ShapeKey
from muster.placement.steering import Steer
from muster.scheduling.attempt import UNSCHEDULABLE, Attempt, attempt, conclude
from muster.scheduling.board import Outcome
from muster.scheduling.likeness import shape_of
from muster.scheduling.members import Cast, Member
from muster.scheduling.questions import find_question
from muster.scheduling.rejectors import widen
from muster.scheduling.searches import Question
from muster.scheduling.seating import seat, try_other_orders

_NODES_MAX, _LOTS_MAX, _DOMAINS_MAX = 64, 8, 16  # searched exactly: some milliseconds; nodes that any may use
_BRANCHES = 50
_EXACT_WORK = 10_000  # what that costs, in rows judged


def trial_of(cast: Cast, runner: Runner) -> On:
    """A way to try the entity on a fork, in all rows or some."""

    def on(fork: Snapshot, rows: Int32 | None, steer: Steer | None, explain: bool = True) -> Trial:
        judge = runner if steer is None else runner.steered(steer)
        found = attempt(cast, fork, judge, rows=rows, explain=explain)
        if found.reason == UNSCHEDULABLE and rows is None:
            found = _in_another_way(cast, fork, judge, may_search=steer is None) or found
        seats = tuple((member.pod, fork.row_of_node[node]) for member, node in found.placements)
        message = found.message
        if cast.group is None and found.shortfalls:
            message = found.shortfalls[0].text
        if explain and rows is None and steer is None:
            found = widen(cast, fork, runner, found)
        return Trial(not found.reason, message, seats, found.rejectors, found.unplaced, found.missing)

    return on


def _in_another_way(cast: Cast, fork: Snapshot, runner: Runner, *, may_search: bool) -> Attempt | None:
    """A placement of unlike members that the order of their creation misses; None if none was found."""
    try:
        question = find_question(cast, fork, runner)
        if not isinstance(question, Question):
            return None
        outcome = try_other_orders(question, cast, fork, runner)
        if outcome is None and may_search and _is_small(question):
            outcome = _search(question, cast, fork, runner)
    except PluginError:
        return None
    return None if outcome is None else conclude(cast, fork, runner, outcome)


def _is_small(question: Question) -> bool:
    root, feasible = question.problem.root, question.problem.packing.feasible
    return (
        feasible.any(axis=0).sum() <= _NODES_MAX
        and len(question.lots) <= _LOTS_MAX
        and len(root.domains) <= _DOMAINS_MAX
    )


def _search(question: Question, cast: Cast, fork: Snapshot, runner: Runner) -> Outcome | None:
    answer = solve(question.problem, Limits(branches=_BRANCHES))
    return None if answer.counts is None else seat(question, answer.counts, cast, fork, runner)


def work_of(cast: Cast, runner: Runner, snapshot: Snapshot) -> int:
    """What a try costs, in rows judged: a member that cannot be counted with its like asks for itself."""
    rows = snapshot.live_rows()
    of_shape: dict[ShapeKey, list[Member]] = {}
    for member in cast.waiting():
        of_shape.setdefault(shape_of(member, snapshot, runner), []).append(member)
    greedy = sum(len(rows) + _one_by_one(alike, runner, snapshot, rows) for alike in of_shape.values())
    is_unlike = cast.is_composite or len(of_shape) > 1
    pods = [alike[0].pod for alike in of_shape.values()]
    return greedy + (_EXACT_WORK if is_unlike and _are_few(pods, runner, snapshot) else 0)


def _are_few(pods: Sequence[Pod], runner: Runner, snapshot: Snapshot) -> bool:
    """Whether so few nodes are open to any of them that a search among these is possible."""
    if snapshot.live.sum() <= _NODES_MAX:
        return True
    try:
        usable = [runner.usable(pod, snapshot) for pod in pods]
    except PluginError:  # the try says so
        return True
    return bool(np.logical_or.reduce(usable).sum() <= _NODES_MAX)


def _one_by_one(alike: Sequence[Member], runner: Runner, snapshot: Snapshot, rows: Int32) -> int:
    return 0 if runner.can_count(alike[0].pod, snapshot, rows) else TRY_WORK * len(alike)
