"""DefaultPreemption: who is eligible, in which words, and that it asks the search."""

import numpy as np
from msgspec.structs import replace

from muster.framework.points import Preemptor
from muster.framework.runner import Runner, Weighted
from muster.framework.status import Verdict
from muster.placement.eviction import Trial, Try
from muster.placement.victims import Unit
from muster.plugins.group_preemption import DefaultPreemption
from muster.plugins.node_resources import NodeResourcesFit
from muster.plugins.priority_sort import PrioritySort
from muster.testing.builders import make_cluster, make_pod

POD = make_pod("h", cpu=1)


def preemptor(kind: str = "podgroup", *, priority: int = 100, **words: object) -> Preemptor:
    """One pod that wants the one cpu that another has."""
    snapshot = make_cluster().node("n1", cpu=1).running("low", "n1", cpu=1).snapshot()
    judge = Runner([Weighted(PrioritySort()), Weighted(NodeResourcesFit())])

    def on(fork: object, rows: object, steer: object) -> Trial:
        fits = judge.filter(POD, fork, np.array([0], dtype=np.int32)).feasible[0]  # type: ignore[arg-type]
        return Trial(bool(fits), "no room", ((POD, 0),) if fits else ())

    facts = {
        "policy": "PreemptLowerPriority",
        "is_draining": False,
        "units": (Unit("default/low", 1, ((snapshot.pods_on(0)[0], 0),)),),
        **words,
    }
    return Preemptor(
        kind=kind,
        priority=priority,
        budgets=(),
        snapshot=snapshot,
        judge=judge,
        trial=Try(on=on, members=1),
        **facts,  # type: ignore[arg-type]
    )


def test_it_says_whom_it_would_drive_out() -> None:
    rescue = DefaultPreemption().post_filter(preemptor())
    assert rescue.status.ok
    assert rescue.status.message == "found a placement for podgroup, preempting 1 victims"
    assert rescue.eviction is not None
    assert [unit.name for unit in rescue.eviction.victims] == ["default/low"]


def test_never_is_never() -> None:
    rescue = DefaultPreemption().post_filter(preemptor(policy="Never"))
    assert rescue.status.verdict is Verdict.UNSCHEDULABLE
    assert rescue.status.message == "not eligible due to preemptionPolicy=Never."
    assert rescue.eviction is None


def test_while_the_first_victims_leave_no_others_are_asked() -> None:
    plugin = DefaultPreemption()
    assert plugin.post_filter(preemptor(is_draining=True)).status.message == (
        "ongoing preemption on nominated nodes"
    )
    assert plugin.post_filter(preemptor("pod", is_draining=True)).status.message == (
        "not eligible due to a terminating pod on the nominated node."
    )


def test_where_nobody_is_weaker_it_is_said_to_those_who_might_expect_it() -> None:
    plugin = DefaultPreemption()
    for kind, priority, text in (
        ("podgroup", 100, "No preemption victims found for incoming preemptor"),
        ("pod", 100, "0/1 nodes are available: 1 No preemption victims found for incoming pod."),
        ("podgroup", 0, ""),
    ):
        rescue = plugin.post_filter(preemptor(kind, priority=priority, units=()))
        assert rescue.status.verdict is Verdict.UNRESOLVABLE
        assert rescue.status.message == text


def test_where_even_that_is_not_enough_the_trials_words_are_given() -> None:
    hopeless = Try(on=lambda fork, rows, steer: Trial(False, "2 scheduled, 0 remaining"), members=1)
    rescue = DefaultPreemption().post_filter(replace(preemptor(), trial=hopeless))
    assert rescue.status.verdict is Verdict.UNSCHEDULABLE
    assert rescue.status.message == "2 scheduled, 0 remaining"
